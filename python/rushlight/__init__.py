"""rushlight: tensors, automatic differentiation and neural networks with PyTorch's API.

`import rushlight as torch` runs a PyTorch program. What every program needs is loaded here; the
rest, `nn`, `optim`, `utils.data` and so on, when it is first used.
"""

# ruff: noqa: F401, F403  # names below are for type checkers and for those who import this

from __future__ import annotations

import builtins as _builtins
import importlib as _importlib
import os as _os
import sys as _sys
from math import e as e, inf as inf, nan as nan, pi as pi
from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._lazy import later as _later
from rushlight._lazy import lazy
from rushlight._tensor import Tensor as Tensor
from rushlight.functional import *

# What is public in the extension (types, dtypes, settings), then every function of the op table.
globals().update(
    {
        name: value
        for name, value in vars(_C).items()
        if name[0] != "_" and name not in ("ops", "TensorBase")
    }
)
globals().update({name: value for name, value in vars(_C.ops).items() if not name.startswith("__")})

complex = _C.ops._complex
_segment_reduce = _C.ops.segment_reduce

# Old names of dtypes: FloatTensor, FloatStorage.
_KINDS = {dtype._kind: dtype for dtype in _C._dtypes if dtype._computes}
# Storages of the codes of quantised tensors, which files name by the dtype of these tensors.
_CODE_KINDS = {dtype._kind: dtype for dtype in (_C.qint8, _C.quint8, _C.qint32)}

# Modules that themselves need the package.
_extension = _later("rushlight.foreign.extension")
_notes = _later("rushlight.foreign.notes")
_python_ops = _later("rushlight._library.python_ops")
_storage = _later("rushlight.storage")


def _is_shown(name):
    """Whether `dir` shows a name."""
    from rushlight._names.listed import is_shown as is_shown

    return is_shown(name)


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from rushlight.types import Device
    from typing import Any
    from rushlight._C import *
    from rushlight._functions import *

_OF_KINDS = {
    "rushlight._names.legacy": " ".join(f"{kind}Tensor" for kind in _KINDS),
    "rushlight.storage": " ".join(f"{kind}Storage" for kind in (*_KINDS, *_CODE_KINDS)),
}
with lazy(__name__, _OF_KINDS, _is_shown):
    from . import (
        __config__,
        __future__,
        _dynamo,
        _higher_order_ops,
        _library,
        _prims_common,
        _subclasses,
        _tensor_str,
        _utils,
        accelerator,
        amp,
        ao,
        autograd,
        backends,
        compiler,
        cpu,
        cuda,
        distributed,
        distributions,
        export,
        fft,
        func,
        futures,
        fx,
        gguf,
        hub,
        jit,
        language,
        library,
        linalg,
        masked,
        monitor,
        mps,
        mtia,
        multiprocessing,
        nested,
        nn,
        onnx,
        optim,
        overrides,
        package,
        profiler,
        quasirandom,
        random,
        safetensors,
        serialization,
        signal,
        sparse,
        special,
        storage,
        testing,
        torch_version,
        types,
        utils,
        version,
        xpu,
    )
    from rushlight._checks import (
        _check,
        _check_index,
        _check_is_size,
        _check_not_implemented,
        _check_tensor_all,
        _check_tensor_all_with,
        _check_type,
        _check_value,
        _check_with,
    )
    from rushlight._files.archive import (
        PyTorchFileReader as PyTorchFileReader,
        PyTorchFileWriter as PyTorchFileWriter,
    )
    from rushlight._higher_order_ops import cond as cond, while_loop as while_loop
    from rushlight._library.classes import classes as classes
    from rushlight._library.python_ops import (
        _assert_scalar,
        _assert_tensor_metadata,
        _convert_indices_from_coo_to_csr,
        _convert_indices_from_csr_to_coo,
        _functional_assert_async,
        _functional_assert_scalar,
        _functional_sym_constrain_range,
        _functional_sym_constrain_range_for_size,
        _has_compatible_shallow_copy_type,
        ops,
        sym_constrain_range as sym_constrain_range,
        sym_constrain_range_for_size as sym_constrain_range_for_size,
    )
    from rushlight._library.tags import Tag as Tag
    from rushlight._names.built import (
        has_cuda as has_cuda,
        has_cudnn as has_cudnn,
        has_lapack as has_lapack,
        has_mkl as has_mkl,
        has_mkldnn as has_mkldnn,
        has_mps as has_mps,
        has_openmp as has_openmp,
        has_spectral as has_spectral,
    )
    from rushlight._names.legacy import set_default_tensor_type as set_default_tensor_type
    from rushlight._names.limits import finfo as finfo, iinfo as iinfo
    from rushlight._quantized import (
        _empty_affine_quantized,
        _make_per_channel_quantized_tensor,
        _make_per_tensor_quantized_tensor,
        choose_qparams_optimized as choose_qparams_optimized,
        dequantize as dequantize,
        int_repr as int_repr,
        per_channel_affine as per_channel_affine,
        per_channel_affine_float_qparams as per_channel_affine_float_qparams,
        per_channel_symmetric as per_channel_symmetric,
        per_tensor_affine as per_tensor_affine,
        per_tensor_symmetric as per_tensor_symmetric,
        q_per_channel_axis as q_per_channel_axis,
        q_per_channel_scales as q_per_channel_scales,
        q_per_channel_zero_points as q_per_channel_zero_points,
        q_scale as q_scale,
        q_zero_point as q_zero_point,
        qscheme as qscheme,
        quantize_per_channel as quantize_per_channel,
        quantize_per_tensor as quantize_per_tensor,
        quantize_per_tensor_dynamic as quantize_per_tensor_dynamic,
    )
    from rushlight._quantized.fake import (
        fake_quantize_per_channel_affine as fake_quantize_per_channel_affine,
        fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine,
        fused_moving_avg_obs_fake_quant as fused_moving_avg_obs_fake_quant,
    )
    from rushlight._settings import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
        get_deterministic_debug_mode as get_deterministic_debug_mode,
        get_float32_matmul_precision as get_float32_matmul_precision,
        get_num_interop_threads as get_num_interop_threads,
        is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,  # noqa: E501
        read_vitals as read_vitals,
        set_deterministic_debug_mode as set_deterministic_debug_mode,
        set_float32_matmul_precision as set_float32_matmul_precision,
        set_num_interop_threads as set_num_interop_threads,
        set_vital as set_vital,
        use_deterministic_algorithms as use_deterministic_algorithms,
    )
    from rushlight._sym import (
        SymBool as SymBool,
        SymFloat as SymFloat,
        SymInt as SymInt,
        sym_float as sym_float,
        sym_int as sym_int,
        sym_ite as sym_ite,
        sym_max as sym_max,
        sym_min as sym_min,
        sym_not as sym_not,
        sym_sqrt as sym_sqrt,
        sym_sum as sym_sum,
    )
    from rushlight._tensor_str import (
        get_printoptions as get_printoptions,
        set_printoptions as set_printoptions,
    )
    from rushlight.amp import GradScaler as GradScaler, autocast as autocast
    from rushlight.amp._by_device import (
        get_autocast_cpu_dtype as get_autocast_cpu_dtype,
        get_autocast_gpu_dtype as get_autocast_gpu_dtype,
        is_autocast_cpu_enabled as is_autocast_cpu_enabled,
        set_autocast_cpu_dtype as set_autocast_cpu_dtype,
        set_autocast_cpu_enabled as set_autocast_cpu_enabled,
        set_autocast_gpu_dtype as set_autocast_gpu_dtype,
    )
    from rushlight.ao import quantization as quantization
    from rushlight.autograd.grad_mode import (
        enable_grad as enable_grad,
        inference_mode as inference_mode,
        no_grad as no_grad,
        set_grad_enabled as set_grad_enabled,
    )
    from rushlight.compiler import compile as compile
    from rushlight.func import vmap as vmap
    from rushlight.futures import Future as Future
    from rushlight.jit import ScriptFunction as ScriptFunction, ScriptModule as ScriptModule
    from rushlight.nested._functions import (
        _nested_from_padded,
        _nested_tensor_from_mask,
        _nested_tensor_from_mask_left_aligned,
    )
    from rushlight.nn._products import _grouped_mm, _scaled_mm
    from rushlight.random import (
        fork_rng as fork_rng,
        get_rng_state as get_rng_state,
        initial_seed as initial_seed,
        manual_seed as manual_seed,
        seed as seed,
        set_rng_state as set_rng_state,
    )
    from rushlight.serialization import load as load, save as save
    from rushlight.sparse._lobpcg import lobpcg as lobpcg
    from rushlight.sparse._make import (
        _sparse_bsc_tensor_unsafe,
        _sparse_bsr_tensor_unsafe,
        _sparse_compressed_tensor_unsafe,
        _sparse_coo_tensor_unsafe,
        _sparse_csc_tensor_unsafe,
        _sparse_csr_tensor_unsafe,
        _validate_sparse_bsc_tensor_args,
        _validate_sparse_bsr_tensor_args,
        _validate_sparse_compressed_tensor_args,
        _validate_sparse_coo_tensor_args,
        _validate_sparse_csc_tensor_args,
        _validate_sparse_csr_tensor_args,
        sparse_bsc_tensor as sparse_bsc_tensor,
        sparse_bsr_tensor as sparse_bsr_tensor,
        sparse_compressed_tensor as sparse_compressed_tensor,
        sparse_coo_tensor as sparse_coo_tensor,
        sparse_csc_tensor as sparse_csc_tensor,
        sparse_csr_tensor as sparse_csr_tensor,
    )
    from rushlight.storage import (
        Storage as Storage,
        TypedStorage as TypedStorage,
        UntypedStorage as UntypedStorage,
    )
    from rushlight.torch_version import __version__
    from rushlight.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack

newaxis = None
legacy_contiguous_format = _C.contiguous_format


def typename(obj: Any) -> str:
    """The name of a type for messages: "torch.FloatTensor" for tensors.

    Args:
        obj: the object.

    Example:
        >>> torch.typename(torch.ones(2))
        'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def is_storage(obj: Any) -> _builtins.bool:
    """Whether an object is a storage.

    Args:
        obj: the object.

    Example:
        >>> torch.is_storage(torch.ones(2).untyped_storage())
        True
    """
    return isinstance(obj, _C.StorageBase | _storage.TypedStorage)


def _shape_as_tensor(input):
    """The sizes of a tensor, as a tensor."""
    return _C.ops.tensor(input.shape)


def _assert(condition, message):
    """`assert` that stays with `python -O` and takes a tensor as the condition."""
    if type(condition) is not Tensor and _C._has_torch_function(condition):
        return _C._offer_torch_function(_assert, (condition,), (condition, message), {})
    if not condition:  # of a tensor: whether its one element is
        raise AssertionError(message)
    return None


def _assert_async(input, assert_msg="Expected Tensor with single nonzero value, but got zero"):
    """RuntimeError if the one element of a tensor is 0."""
    if not input:
        raise RuntimeError(assert_msg)


def get_device_module(device: Device = None) -> ModuleType:
    """The module of a device type: `rushlight.cpu` for "cpu"; RuntimeError if there is none.

    Args:
        device: a device or its name; None: that of the accelerator.

    Example:
        >>> torch.get_device_module("cpu").__name__
        'rushlight.cpu'
    """
    if device is not None and not isinstance(device, str | _C.device):
        raise RuntimeError(
            f"Invalid value of device {device!r}: expected a torch.device, str, or None"
        )
    kind = "cpu" if device is None else _C.device(device).type
    try:
        return _importlib.import_module(f"rushlight.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module") from None


def set_default_device(device: Device) -> None:
    """Makes factories without a `device` use this one; None means the CPU.

    Args:
        device: a device or its name; None: the CPU.

    Example:
        >>> torch.set_default_device("meta")
        >>> device = torch.zeros(2).device
        >>> torch.set_default_device(None)
        >>> device
        device(type='meta')
    """
    _C._set_default_device(device)


def _python_name(name: str) -> Callable[..., Any] | type:
    """What PyTorch has in its extension and rushlight in Python."""
    if name[:2] != "__" and name in vars(_extension()):
        return getattr(_extension, name)
    raise AttributeError(f"module 'rushlight._C' has no attribute {name!r}")


setattr(_C, "__getattr__", _python_name)  # noqa: B010


def _result_type(name):
    """A named result's type before an op has given one."""
    packet = getattr(_python_ops.ops.aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        fields = [r.name for r in getattr(packet, overload)._schema.returns]
        if len(fields) > 1 and "" not in fields:
            return _C._result_type(name, tuple(fields))
    raise AttributeError(f"module 'rushlight.return_types' has no attribute {name!r}")


setattr(_C.return_types, "__getattr__", _result_type)  # noqa: B010
_sys.modules["rushlight.return_types"] = _C.return_types  # pyright: ignore[reportArgumentType]


if _os.environ.get("RUSHLIGHT_VERBOSE", "0") not in ("", "0"):
    _notes.watch()
