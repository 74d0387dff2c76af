"""cuSPARSELt, which is not used."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available():
    """Whether cuSPARSELt is used: always False.

    Example:
        >>> torch.backends.cusparselt.is_available()
        False
    """
    return False


def version():
    """The version of cuSPARSELt: always None.

    Example:
        >>> torch.backends.cusparselt.version() is None
        True
    """
    return


def get_max_alg_id():
    """The number of algorithms of cuSPARSELt: always None.

    Example:
        >>> torch.backends.cusparselt.get_max_alg_id() is None
        True
    """
    return
