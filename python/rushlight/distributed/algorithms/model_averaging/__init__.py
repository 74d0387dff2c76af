"""Parameters averaged over processes now and then."""
