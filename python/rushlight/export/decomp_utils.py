"""Tables of what ops are made of, for graphs that are exported."""

from . import CustomDecompTable

__all__ = ["CustomDecompTable"]
