"""Names of PyTorch's extension, `torch._C`, that are Python here; `_C` finds them."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _settings
from rushlight._files.archive import PyTorchFileReader, PyTorchFileWriter
from rushlight._library.keys import DispatchKey, DispatchKeySet
from rushlight._library.tags import Tag
from rushlight.foreign import table_of_ops
from rushlight.futures import Future
from rushlight.jit import ScriptFunction, ScriptMethod, ScriptModule, is_tracing
from rushlight.jit._recording import TracingState, state

__all__ = [
    "DispatchKey",
    "DispatchKeySet",
    "Future",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptFunction",
    "ScriptMethod",
    "ScriptModule",
    "Tag",
    "TracingState",
]

_is_tracing = is_tracing
_get_deterministic_fill_uninitialized_memory = _settings.marks_unwritten
_set_deterministic_fill_uninitialized_memory = _settings.set_marks_unwritten
_TensorBase = rushlight._C.TensorBase
_cpu = rushlight.cpu
_VariableFunctions = table_of_ops

# ---- settings of PyTorch's compiler of scripts: kept, so that programs can put them back ----

_kept: dict[str, Any] = {}


def _setting(name: str, first: Any, gives_old: bool = True) -> Any:
    """A function that keeps a value, and gives the one before."""

    def change(value: Any, *more: Any) -> Any:
        before = _kept.get(name, first)
        _kept[name] = value
        return before if gives_old else None

    change.__name__ = change.__qualname__ = name
    change.__doc__ = "Accepted: nothing is compiled."
    return change


_jit_set_profiling_executor = _setting("_jit_set_profiling_executor", True)
_jit_set_profiling_mode = _setting("_jit_set_profiling_mode", True)
_jit_set_bailout_depth = _setting("_jit_set_bailout_depth", 20)
_jit_set_num_profiled_runs = _setting("_jit_set_num_profiled_runs", 1)
_jit_set_fusion_strategy = _setting("_jit_set_fusion_strategy", [])
_jit_set_autocast_mode = _setting("_jit_set_autocast_mode", True)
_jit_set_nvfuser_enabled = _setting("_jit_set_nvfuser_enabled", False)
_jit_set_llga_enabled = _setting("_jit_set_llga_enabled", False, gives_old=False)
_jit_set_texpr_fuser_enabled = _setting("_jit_set_texpr_fuser_enabled", True, gives_old=False)
_jit_override_can_fuse_on_cpu = _setting("_jit_override_can_fuse_on_cpu", False, gives_old=False)
_jit_override_can_fuse_on_gpu = _setting("_jit_override_can_fuse_on_gpu", True, gives_old=False)
_set_graph_executor_optimize = _setting("_set_graph_executor_optimize", True, gives_old=False)


def _get_graph_executor_optimize() -> bool:
    """What `_set_graph_executor_optimize` was told, at first True."""
    return _kept.get("_set_graph_executor_optimize", True)


def _jit_can_fuse_on_cpu() -> bool:
    """False: nothing is compiled."""
    return False


def _log_api_usage_once(event: str) -> None:
    """Tells nobody."""


def _is_alias_of(a: rushlight.Tensor, b: rushlight.Tensor) -> bool:
    """Whether two tensors have one storage."""
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode sees the calls of this thread."""
    return rushlight._C._torch_function_mode_count() > 0


def _get_tracing_state() -> TracingState | None:
    """The trace that is being taken on this thread, or None."""
    return state()


def _get_accelerator(check: bool | None = None) -> Any:
    """The device of the accelerator; the CPU where there is none."""
    return rushlight.accelerator.current_accelerator() or rushlight.device("cpu")


def _get_default_device() -> str:
    """The name of the device that factories use."""
    return str(rushlight.get_default_device())


def _get_privateuse1_backend_name() -> str:
    """The name of a device of somebody's own: the one that PyTorch gives it at first."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """Whether a function runs that `vmap` maps, or that a transform differentiates."""
    from rushlight import _C
    from rushlight._transforms import vmap as _vmap

    return bool(_vmap._levels) or _C._is_transforming()
