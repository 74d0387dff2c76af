"""Modules spread over devices: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]

ColwiseParallel = _refused.kind("ColwiseParallel", __name__)
ParallelStyle = _refused.kind("ParallelStyle", __name__)
PrepareModuleInput = _refused.kind("PrepareModuleInput", __name__)
PrepareModuleOutput = _refused.kind("PrepareModuleOutput", __name__)
RowwiseParallel = _refused.kind("RowwiseParallel", __name__)
SequenceParallel = _refused.kind("SequenceParallel", __name__)
parallelize_module = _refused.function("torch.distributed.tensor.parallel.parallelize_module")
loss_parallel = _refused.function("torch.distributed.tensor.parallel.loss_parallel")
