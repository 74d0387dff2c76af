"""Types by name: `FloatTensor([1])`, `isinstance(t, LongTensor)`, `t.type("torch.IntTensor")`."""

from __future__ import annotations

import warnings

from rushlight import _C, _KINDS, Tensor, device
from rushlight.cuda.devices import is_available

_NAMES = {f"{kind}Tensor": dtype for kind, dtype in _KINDS.items()}


class _TensorType(type):
    """The class of `FloatTensor` and its like: calling one makes a Tensor of its dtype."""

    dtype: _C.dtype
    place: str  # "cpu" or "cuda"

    def __call__(cls, *args, **kwargs):
        if cls.place == "cuda" and not is_available():
            raise TypeError(f"type {cls._text()} not available: there is no GPU that can be used")
        return _C._legacy_tensor(cls.dtype, args, {"device": cls.place, **kwargs})

    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.place
        )

    def _text(cls) -> str:
        return f"torch.{'cuda.' if cls.place == 'cuda' else ''}{cls.__name__}"

    def __repr__(cls) -> str:
        return f"<class '{cls._text()}'>"


def _types(module: str, place: str) -> dict[str, type]:
    return {
        name: _TensorType(name, (), {"dtype": dtype, "place": place, "__module__": module})
        for name, dtype in _NAMES.items()
    }


TYPES = _types("rushlight", "cpu")
CUDA_TYPES = _types("rushlight.cuda", "cuda")
globals().update(TYPES)


def type_name(dtype, place):
    """ "torch.FloatTensor", "torch.cuda.FloatTensor"."""
    return f"torch.{'cuda.' if place.type == 'cuda' else ''}{dtype._kind}Tensor"


def parse_type(value):
    """The dtype, and the device where it says one, of a dtype, a name or a class."""
    if isinstance(value, _C.dtype):
        return value, None
    if isinstance(value, _TensorType):
        return value.dtype, device(value.place)
    if value is Tensor:
        return _C.ops.get_default_dtype(), device("cpu")
    if isinstance(value, str):
        name = value.removeprefix("torch.")
        place = "cuda" if name.startswith("cuda.") else "cpu"
        name = name.removeprefix("cuda.")
        if name == "Tensor":
            return _C.ops.get_default_dtype(), device(place)
        if name in _NAMES:
            return _NAMES[name], device(place)
        raise ValueError(f"invalid type: '{value}'")
    if value in (float, int, bool, complex):
        return {float: _C.float64, int: _C.int64, bool: _C.bool, complex: _C.complex128}[
            value
        ], None
    raise TypeError(
        "type(): argument 'dtype' must be torch.dtype, str or a tensor type, "
        f"not {type(value).__name__}"
    )


def set_default_tensor_type(t):
    """The older form of `set_default_dtype` and `set_default_device`, by a tensor type or its name.

    Raises:
        TypeError: for a dtype, or a type that is not floating-point.
    """
    if isinstance(t, _C.dtype):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    dtype, place = parse_type(t)
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if place is not None:
        _C._set_default_device(None if place.type == "cpu" else place)
    _C.ops.set_default_dtype(dtype)
