"""How gradients are exchanged: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

allreduce_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook"
)
bf16_compress_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook"
)
bf16_compress_wrapper = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_wrapper"
)
fp16_compress_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook"
)
fp16_compress_wrapper = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper"
)
