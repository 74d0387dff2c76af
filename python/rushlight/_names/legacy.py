"""Types by name: `FloatTensor([1])`, `isinstance(t, LongTensor)`, `t.type("torch.IntTensor")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C, _KINDS, Tensor, device
from rushlight._warnings import warn
from rushlight.cuda.devices import is_available

if TYPE_CHECKING:
    from typing import Any

_NAMES = {f"{kind}Tensor": dtype for kind, dtype in _KINDS.items()}


def _check_place(place: str, text: str) -> None:
    if place == "cuda" and not is_available():
        raise TypeError(f"type {text} not available: there is no CUDA device here")


class _TensorType(type):
    """The class of `FloatTensor` and its like: calling one makes a Tensor of its dtype."""

    dtype: _C.dtype
    place: str  # "cpu" or "cuda"
    layout: _C.layout = _C.strided

    def __new__(mcs, name, bases, namespace):
        if bases:
            raise TypeError(f"type '{bases[0]._text()}' is not an acceptable base type")
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args, **kwargs):
        _check_place(cls.place, cls._text())
        return _C._legacy_tensor(cls.dtype, args, {"device": cls.place, **kwargs})

    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.place
            and instance.layout is cls.layout
        )

    @property
    def is_cuda(cls) -> bool:
        """Whether its tensors lie on a GPU."""
        return cls.place == "cuda"

    @property
    def is_sparse(cls) -> bool:
        """Whether its tensors keep some elements only."""
        return cls.layout is not _C.strided

    def _text(cls) -> str:
        return f"torch.{'cuda.' if cls.place == 'cuda' else ''}{cls.__name__}"

    def __repr__(cls) -> str:
        return f"<class '{cls._text()}'>"


_DOC = """The older form of `tensor(data, dtype={dtype})` and `empty(size, dtype={dtype})`.

Args:
    args: the elements, or sizes.
    kwargs: `device`.

Example:
    >>> {module}.{name}([1, 0]).dtype
    {dtype}
"""


def _types(module: str, place: str) -> dict[str, type]:
    path = module.replace("rushlight", "torch")
    text = _DOC if place == "cpu" else _DOC.partition("\n\nExample")[0]
    docs = {n: text.format(dtype=d, module=path, name=n) for n, d in _NAMES.items()}
    return {
        name: _TensorType(
            name,
            (),
            {"dtype": dtype, "place": place, "__module__": module, "__doc__": docs[name]},
        )
        for name, dtype in _NAMES.items()
    }


TYPES = _types("rushlight", "cpu")
CUDA_TYPES = _types("rushlight.cuda", "cuda")
globals().update(TYPES)


def type_name(dtype, place, layout=_C.strided):
    """ "torch.FloatTensor", "torch.cuda.FloatTensor", "torch.sparse.FloatTensor"."""
    path = "" if place.type == "cpu" else f"{place.type}."
    return f"torch.{path}{'' if layout is _C.strided else 'sparse.'}{dtype._kind}Tensor"


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


def set_default_tensor_type(t: Any) -> None:
    """The older form of `set_default_dtype` and `set_default_device`, by a tensor type or its name.

    Args:
        t: a type such as `torch.DoubleTensor`, or its name, "torch.DoubleTensor".

    Example:
        >>> torch.set_default_tensor_type("torch.DoubleTensor")
        >>> torch.zeros(1).dtype
        torch.float64
        >>> torch.set_default_tensor_type(torch.FloatTensor)

    Raises:
        TypeError: for a dtype, a type that is not floating-point, or one of a GPU without one.
    """
    if isinstance(t, _C.dtype):
        raise TypeError(
            "invalid type object: only floating-point tensor types can be the default, such as "
            f"FloatTensor, but got {t}"
        )
    warn(
        "set_default_tensor_type() is deprecated as of PyTorch 2.1: set_default_dtype() and "
        "set_default_device() say what it said",
    )
    dtype, place = parse_type(t)
    if place is not None:
        _check_place(place.type, type_name(dtype, place))
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if place is not None:
        _C._set_default_device(None if place.type == "cpu" else place)
    _C.ops.set_default_dtype(dtype)
