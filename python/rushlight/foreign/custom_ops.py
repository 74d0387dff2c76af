"""The older way to make ops of one's own, by names. New code takes `rushlight.library`."""

from __future__ import annotations

from rushlight.foreign import custom_op as _ops

__all__ = [
    "custom_op",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]


def custom_op(qualname, func_or_schema=None):
    """A new op of that name, with the schema that a text or the annotations of a function say."""
    _ops.parse_qualname(qualname)

    def define(function):
        _ops.check_signature(qualname, function)
        _ops.custom_op_with_schema(qualname, _ops.infer_schema(function, mutates_args=()))
        return function

    if func_or_schema is None:
        return define
    if isinstance(func_or_schema, str):
        _ops.custom_op_with_schema(qualname, func_or_schema)
        return None
    return define(func_or_schema)


def _decorate(register, function):
    return register if function is None else register(function)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """Decorates what an op does on devices."""
    op = _ops._find_custom_op(qualname, also_check_torch_library=True)
    return _decorate(op.impl(device_types), func)


def impl_abstract(qualname, *, func=None):
    """Decorates what an op makes of meta and fake tensors."""
    op = _ops._find_custom_op(qualname, also_check_torch_library=True)
    return _decorate(op.impl_abstract(), func)


def impl_save_for_backward(qualname, *, func=None):
    """Decorates what an op keeps for its backward: `save(inputs, output)`."""
    op = _ops._find_custom_op(qualname, also_check_torch_library=True)
    return _decorate(op.impl_save_for_backward(), func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """Decorates the backward of an op, which returns gradients by the names of its arguments."""
    op = _ops._find_custom_op(qualname, also_check_torch_library=True)
    return _decorate(op.impl_backward(output_differentiability), func)


def _destroy(qualname):
    """Takes an op away."""
    _ops._find_custom_op(qualname)._destroy()
