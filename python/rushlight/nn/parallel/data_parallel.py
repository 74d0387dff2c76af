"""Data parallelism on the devices of one machine: `data_parallel`, `DataParallel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DataParallel", "data_parallel"]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run a module on a batch that is split over devices.

    Args:
        module: the module.
        inputs: its argument, or a tuple of them; tensors are cut.
        device_ids: the devices; a number is a GPU. By default all GPUs; without any, the module is
            just called.
        output_device: where results are joined; the first of the devices by default.
        dim: the dimension of batches.
        module_kwargs: keyword arguments, cut as well.

    Example:
        >>> torch.nn.parallel.data_parallel(
        ...     torch.nn.ReLU(), torch.tensor([-4.0, 4.0]), device_ids=["cpu"]
        ... )
        tensor([0., 4.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    if device_ids is None:
        device_ids = list(range(rushlight.cuda.device_count()))
    if not device_ids:
        return module(*inputs, **(module_kwargs or {}))
    given, named = scatter_kwargs(inputs, module_kwargs, device_ids, dim)
    if not given:
        given, named = ((),), ({},)
    used = device_ids[: len(given)]
    if len(used) == 1:
        return module(*given[0], **named[0])
    results = parallel_apply(replicate(module, used), given, named, used)
    return gather(results, device_ids[0] if output_device is None else output_device, dim)


class DataParallel(Module):
    """Wraps a module so that its batches are split over GPUs; without a GPU it just calls the
    module.

    Args:
        module: the module, found again under `.module`.
        device_ids: the GPUs to use; all if None.
        output_device: the device on which results are gathered.
        dim: the dimension of batches.

    Example:
        >>> torch.nn.DataParallel(torch.nn.Linear(2, 1))(torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | str | Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
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
        """The results of the module for parts of the inputs, gathered on the output device."""
        return self.module(*inputs, **kwargs)
