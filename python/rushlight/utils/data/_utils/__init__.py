"""Parts of the loader, some of which programs import by PyTorch's names."""

from rushlight._raised import ExceptionWrapper

from . import collate, fetch, pin_memory, worker

__all__ = ["ExceptionWrapper", "collate", "fetch", "pin_memory", "worker"]
