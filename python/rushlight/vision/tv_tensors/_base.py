"""What all kinds of tensors have in common: ops on them give plain tensors, usually."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._C import DisableTorchFunctionSubclass

_keeps_kind = False

# Ops whose results are of the kind of their first argument all the same.
_ALWAYS = {Tensor.clone, Tensor.to, Tensor.detach, Tensor.requires_grad_, Tensor.pin_memory}


class _ReturnTypeScope:
    """Sets the return type back when a `with` block ends."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> _ReturnTypeScope:
        return self

    def __exit__(self, *error: Any) -> None:
        global _keeps_kind
        _keeps_kind = self._before


def set_return_type(return_type: str) -> _ReturnTypeScope:
    """Set what ops on TVTensors return, at once or in a `with` block; transforms always keep
    classes.

    Args:
        return_type: "Tensor" (the default) or "TVTensor"; upper and lower case are equal.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> with tv_tensors.set_return_type("TVTensor"):
        ...     made = tv_tensors.Image(torch.zeros(3, 4, 4)) + 1
        >>> type(made).__name__
        'Image'
    """
    global _keeps_kind
    ways = {"tensor": False, "tvtensor": True}
    if return_type.lower() not in ways:
        raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', got {return_type}")
    before, _keeps_kind = _keeps_kind, ways[return_type.lower()]
    return _ReturnTypeScope(before)


def _plain_property(name: str) -> Any:
    """A property of tensors that is read without a call of `__torch_function__`."""
    read = getattr(Tensor, name).__get__

    def get(self: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return read(self)

    return property(get, doc=getattr(Tensor, name).__doc__)


class TVTensor(Tensor):
    """The base of tensor subclasses for kinds of data.

    Args:
        device: where it lies; where the data does if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> isinstance(tv_tensors.Image(torch.zeros(3, 4, 4)), tv_tensors.TVTensor)
        True
    """

    _fields: tuple[str, ...] = ()  # what it knows besides its numbers

    shape = _plain_property("shape")
    ndim = _plain_property("ndim")
    dtype = _plain_property("dtype")
    device = _plain_property("device")

    @staticmethod
    def _to_tensor(
        data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None
    ) -> Tensor:
        if requires_grad is None:
            requires_grad = data.requires_grad if isinstance(data, Tensor) else False
        return rushlight.as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:
        """Convert a tensor to this class, with the fields of `like` unless others are given."""
        return cls._make(tensor, {f: kwargs.get(f, getattr(like, f)) for f in cls._fields})

    @classmethod
    def _make(cls, tensor: Tensor, fields: Mapping[str, Any]) -> Any:
        made = tensor.as_subclass(cls)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    @classmethod
    def _wrap_output(
        cls, output: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Results of an op as this kind, with the fields of the first argument that is of it."""
        if isinstance(output, tuple | list):
            return type(output)(cls._wrap_output(part, args, kwargs) for part in output)
        if not isinstance(output, Tensor) or isinstance(output, cls):
            return output
        if not cls._fields:
            return output.as_subclass(cls)
        like = next(_of_kind(cls, (args, kwargs)))
        return cls._make(output, {name: getattr(like, name) for name in cls._fields})

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the function as for plain tensors; `set_return_type` says what it gives."""
        if any(not issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **kwargs or {})
        keeps = _keeps_kind or (func in _ALWAYS and isinstance(args[0], cls))
        if keeps:
            return cls._wrap_output(result, args, kwargs)
        in_place = isinstance(result, cls)
        return result.as_subclass(Tensor) if in_place else result

    def _make_repr(self, **kwargs: Any) -> str:
        said = ", ".join(f"{name}={value}" for name, value in kwargs.items())
        return f"{super().__repr__()[:-1]}, {said})"

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        del tensor_contents
        return self._make_repr(**{name: getattr(self, name) for name in self._fields})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Of a copy there is no history; the fields cannot change.
        return self.detach().clone().requires_grad_(self.requires_grad)


def _of_kind(cls: type, values: Any) -> Any:
    """Those of nested values that are of a class."""
    if isinstance(values, cls):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _of_kind(cls, value)
    elif isinstance(values, Mapping):
        yield from _of_kind(cls, list(values.values()))
