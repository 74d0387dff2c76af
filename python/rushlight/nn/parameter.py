"""`Parameter` and `Buffer`: tensors that a `Module` registers when they are assigned to it."""

from collections import OrderedDict

import rushlight
from rushlight import _C, Tensor

__all__ = ["Buffer", "Parameter"]


class _MarkedMeta(type(Tensor)):  # type: ignore[misc]
    """Counts any tensor that carries the class's mark as an instance.

    `Parameter(x)` of a tensor subclass keeps the subclass and only sets the mark.
    """

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        mark = cls.__dict__.get(
            "_mark_name"
        )  # a subclass of Parameter does not take marked tensors
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=_MarkedMeta):
    """A tensor that is a module's parameter: `Module.parameters()` lists it.

    Args:
        data: the values, shared and not copied; an empty tensor if None.
        requires_grad: whether gradients are computed, also under `no_grad`.
    """

    _mark_name = "_is_param"
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = rushlight.empty(0)
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        tensor = data.detach().requires_grad_(requires_grad)
        if type(tensor) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(tensor).__name__} was found instead. To use the type as a Parameter, "
                "please correct the detach() semantics defined by its __torch_function__."
            )
        tensor._is_param = True
        return tensor

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self):  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        from rushlight import _utils

        # Hooks are not saved; PyTorch's format has a place for them.
        hooks: OrderedDict = OrderedDict()
        state = {k: v for k, v in vars(self).items() if k != "_is_param"}
        if not state:
            return _utils._rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)


class Buffer(Tensor, metaclass=_MarkedMeta):
    """A tensor that is part of a module's state but not trained.

    Assigning one to an attribute of a module registers it, as `register_buffer` does.

    Args:
        data: the values, shared and not copied; an empty tensor if None.
        persistent: whether the module's `state_dict` holds it.
    """

    _mark_name = "_is_buffer"

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = rushlight.empty(0)
        tensor = data.detach().requires_grad_(data.requires_grad)
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor
