"""cuSPARSELt, which is not there."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available():
    """False."""
    return False


def version():
    """None."""
    return


def get_max_alg_id():
    """None."""
    return
