"""Parts of the loader, some of which programs import by PyTorch's names."""

from rushlight._raised import ExceptionWrapper

__all__ = ["ExceptionWrapper"]
