"""The names of PyTorch's compiler back end that programs use; see `rushlight.compiler`."""

from rushlight._inductor import config
from rushlight.compiler import cudagraph_mark_step_begin

__all__ = ["config", "cudagraph_mark_step_begin"]
