"""`Parameter` and `Buffer`: tensors that a `Module` registers when they are assigned to it; their
uninitialized forms, which get a size later."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, overload

import rushlight
from rushlight import _C, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from rushlight.types import Device

# Programs and files find all this in `nn.parameter`. It stands here because files and processes
# hold parameters, and need not load `nn` for that.
_PUBLIC = "rushlight.nn.parameter"


class _ParameterMeta(type(Tensor)):
    """Counts any tensor that carries the class's mark as an instance.

    `Parameter(x)` of a tensor subclass keeps the subclass and only sets the mark.
    """

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        mark = cls.__dict__.get("_mark_name")  # subclasses of Parameter take no marked tensors
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: `Module.parameters()` lists it.

    Args:
        data: the values, shared and not copied; an empty tensor if None.
        requires_grad: whether gradients are computed, also under `no_grad`.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> weight.requires_grad, weight.is_leaf
        (True, True)
    """

    __module__ = _PUBLIC

    _mark_name = "_is_param"
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = rushlight.empty(0)
        elif not hasattr(data, "detach"):
            raise AttributeError(
                f"{type(data).__name__!r} object has no attribute 'detach': Parameter takes a "
                "tensor, which torch.tensor() makes of numbers"
            )
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients, but this "
                f"one is {str(data.dtype).removeprefix('torch.')}: make it of floats"
            )
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        tensor = data.detach().requires_grad_(requires_grad)
        if type(tensor) is not type(data):
            raise RuntimeError(
                f"{type(data).__name__} makes no Parameter: its detach() has to give the same "
                f"type, but gave {type(tensor).__name__} (see its __torch_function__)"
            )
        tensor._is_param = True
        return tensor

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copied
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        # Hooks are not saved; PyTorch's format has a place for them.
        hooks: OrderedDict = OrderedDict()
        state = {k: v for k, v in vars(self).items() if k != "_is_param"}
        if not state:
            return _rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)  # hooks are never saved: the argument is an empty dict


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(parameter).update(state)
    return parameter


# By which files name them.
_rebuild_parameter.__module__ = _rebuild_parameter_with_state.__module__ = "rushlight._utils"


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor that is part of a module's state but not trained.

    Assigning one to an attribute of a module registers it, as `register_buffer` does.

    Args:
        data: the values, shared and not copied; an empty tensor if None.
        persistent: whether the module's `state_dict` holds it.

    Example:
        >>> module = torch.nn.Module()
        >>> module.mean = torch.nn.Buffer(torch.zeros(2))
        >>> list(module.state_dict())
        ['mean']
    """

    __module__ = _PUBLIC

    _mark_name = "_is_buffer"

    def __new__(cls, data=None, *, persistent: bool = True):
        if data is None:
            data = rushlight.empty(0)
        tensor = data.detach().requires_grad_(data.requires_grad)
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor


class UninitializedTensorMixin:
    """A tensor without a size: it can be moved and converted, all else waits for `materialize`.

    For an example see `nn.parameter.is_lazy`.
    """

    data: Any
    requires_grad: bool
    _becomes: type = Tensor
    _conversions = frozenset(("bfloat16", "cpu", "cuda", "double", "float", "half", "to", "type"))
    _allowed = _conversions | frozenset(
        (
            "__get__",
            "__set__",
            "__delete__",
            "__hash__",
            "detach",
            "is_complex",
            "is_floating_point",
            "requires_grad_",
        )
    )

    def materialize(
        self, shape: Sequence[int], device: Device = None, dtype: _C.dtype | None = None
    ) -> None:
        """Become an ordinary parameter or buffer of a size, with values that are not set yet."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = rushlight.empty(shape, device=device, dtype=dtype)
        self.__class__ = self._becomes

    @property
    def shape(self):
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter: the first `forward` gives it "
            "one. A state that has none for it yet cannot be loaded into a module that has been "
            "called"
        )

    def share_memory_(self) -> NoReturn:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter: call the module once, so that it "
            "has some"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        made = type(self), (self.requires_grad, self.data.device, self.data.dtype)
        return (*made, dict(vars(self))) if vars(self) else made

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            kind, arguments = self.__reduce_ex__(2)[:2]
            copied = memo[id(self)] = kind(*arguments)
            vars(copied).update(copy.deepcopy(vars(self), memo))
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name not in cls._allowed:
            raise ValueError(
                f"Attempted to use an uninitialized parameter in {func}: a {cls.__name__} gets its "
                "shape when its lazy module is called for the first time; call it with a batch "
                "before"
            )
        result = _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        if name in cls._conversions and isinstance(result, Tensor):
            return cls(args[0].requires_grad, result.device, result.dtype)  # type: ignore
        return result


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose size is known after the first call of its lazy module.

    Args:
        requires_grad: whether gradients are computed.
        device, dtype: those of the parameter to come.

    Example:
        >>> torch.nn.UninitializedParameter()
        <UninitializedParameter>
    """

    __module__ = _PUBLIC

    _mark_name = None
    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Device = None, dtype: _C.dtype | None = None
    ):
        data = rushlight.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose size is known after the first call of its lazy module.

    Args:
        requires_grad: whether gradients are computed for it.
        device: where it will be.
        dtype: what it will hold.
        persistent: whether it belongs to the state dict.

    Example:
        >>> torch.nn.UninitializedBuffer()
        <UninitializedBuffer>
    """

    __module__ = _PUBLIC

    _becomes = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
        persistent: bool = True,
    ):
        data = rushlight.empty(0, device=device, dtype=dtype)
        tensor = Tensor._make_subclass(cls, data, requires_grad)
        tensor.persistent = persistent
        return tensor


def is_lazy(param: Tensor | None) -> bool:
    """Whether a parameter or buffer has no size yet.

    Args:
        param: a parameter or a buffer.

    Example:
        >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


@overload
def new_parameter(shape: Any, *, device: Any = None, dtype: Any = None) -> Parameter: ...


@overload
def new_parameter(shape: Any, wanted: Any, *, device: Any = None, dtype: Any = None) -> Any: ...


def new_parameter(shape: Any, wanted: Any = True, *, device: Any = None, dtype: Any = None) -> Any:
    """A parameter whose values are not set yet; None if there is to be none."""
    return Parameter(rushlight.empty(shape, device=device, dtype=dtype)) if wanted else None


def clear_grads(parameters, set_to_none):
    """Remove the gradients of parameters, or fill them with zeros apart from their history."""
    for parameter in parameters:
        grad = parameter.grad
        if grad is None:
            continue
        if set_to_none:
            parameter.grad = None
            continue
        if grad.grad_fn is not None:
            grad.detach_()
        else:
            grad.requires_grad_(False)
        grad.zero_()
