"""cuSPARSELt, which is not used."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available():
    """Whether cuSPARSELt is used: always False."""
    return False


def version():
    """The version of cuSPARSELt: always None."""
    return


def get_max_alg_id():
    """The number of algorithms of cuSPARSELt: always None."""
    return
