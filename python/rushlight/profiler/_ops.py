"""Events of ops: what their arguments were and how many operations they took."""

from __future__ import annotations

import rushlight
from rushlight.profiler._events import FunctionEvent

__all__ = ["op_event"]

# The words of traces for dtypes.
_TYPES = {
    rushlight.uint8: "unsigned char",
    rushlight.int8: "signed char",
    rushlight.int16: "short int",
    rushlight.int32: "int",
    rushlight.int64: "long int",
    rushlight.float16: "c10::Half",
    rushlight.bfloat16: "c10::BFloat16",
    rushlight.float32: "float",
    rushlight.float64: "double",
    rushlight.complex64: "c10::complex<float>",
    rushlight.complex128: "c10::complex<double>",
    rushlight.bool: "bool",
}


def _is_tensor(argument):
    """Whether it stands for one: (sizes, strides, dtype); a list of numbers is a tuple, too."""
    return (
        isinstance(argument, tuple)
        and len(argument) == 3
        and isinstance(argument[2], rushlight.dtype)
    )


def _is_list(argument):
    return isinstance(argument, list) and bool(argument) and any(map(_is_tensor, argument))


def _sizes(argument):
    """An argument as formulas of operations take it: tensors by their sizes."""
    if _is_tensor(argument):
        return argument[0]
    return [_sizes(a) for a in argument] if _is_list(argument) else argument


def _concrete(argument: int | list[int] | None) -> int | list[int] | None:
    if isinstance(argument, (bool, int, float, complex, str)):
        return argument
    return list(argument) if isinstance(argument, (list, tuple)) else None


def _describe(event, arguments):
    for a in arguments:
        shape, strides, concrete, kind = [], [], None, ""
        if _is_tensor(a):
            shape, strides = list(a[0]), list(a[1])
            kind = _TYPES.get(a[2], str(a[2]).removeprefix("torch."))
        elif _is_list(a):
            shape = [list(t[0]) if t is not None else [] for t in a]
            strides = [list(t[1]) if t is not None else [] for t in a]
            kind = "TensorList"
        else:
            concrete = _concrete(a)
            if concrete is not None:
                kind = "ScalarList" if isinstance(concrete, list) else "Scalar"
        event.input_shapes.append([] if kind == "TensorList" else shape)
        event.structured_input_shapes.append(shape)
        event.structured_input_strides.append(strides)
        event.concrete_inputs.append(concrete)
        event.input_dtypes.append(kind)


def _flops(name, arguments, result):
    """By the formulas of `utils.flop_counter`; `add` and `mul`: one for each element of the first.

    0 where nothing says how many.
    """
    from rushlight.utils._flops import formula_of_sizes

    if name in ("aten::add", "aten::mul"):
        n = 1
        for size in _sizes(arguments[0]):
            n *= size
        return n
    formula = formula_of_sizes(name)
    if formula is None:
        return 0
    return formula(*map(_sizes, arguments), out_shape=_sizes(result))


def op_event(op, thread, shapes, flops):
    """The event of an op as `_profile_stop` tells it."""
    name, overload, begin, end, arguments, result, size = op
    event = FunctionEvent(
        0, name, thread, begin / 1e3, end / 1e3, overload_name=overload, cpu_memory_usage=size
    )
    if flops:
        event.flops = _flops(name, arguments, result)
    if shapes:
        _describe(event, arguments)
    return event
