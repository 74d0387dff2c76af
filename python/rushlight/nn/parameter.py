"""`Parameter` and `Buffer`, tensors that a `Module` registers; their uninitialized forms."""

from rushlight._parameter import (  # noqa: F401
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    UninitializedTensorMixin,
    _ParameterMeta,
    clear_grads,
    is_lazy,
    new_parameter,
)

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]
