"""Parameters averaged now and then: the names, which refuse."""
