"""Tables of decompositions of ops, for exported graphs."""

from . import CustomDecompTable

__all__ = ["CustomDecompTable"]
