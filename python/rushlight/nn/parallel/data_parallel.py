"""`DataParallel`: a module over the GPUs of one machine; without a GPU, the module itself."""

from __future__ import annotations

import rushlight

from ..modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Wraps a module so that its batches are split over GPUs; without any it is just called.

    Args:
        module: the module, found again under `.module`.
        device_ids: the GPUs to use; all if None.
        output_device: where results are gathered.
        dim: the dimension of batches.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        cuda = getattr(rushlight, "cuda", None)
        if cuda is not None and cuda.is_available() and (device_ids is None or device_ids):
            raise NotImplementedError(
                "DataParallel over GPUs is not supported; use one process for each GPU"
            )
        self.dim = dim
        self.module = module
        self.device_ids = []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
