"""Parametrisation: `module.weight` becomes a function of other, trained tensors.

The trained tensors lie in `module.parametrizations.weight`, and the module's class becomes a
subclass of its own, in which the name is a property.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached():
    """A context manager in which each parametrised tensor is computed once.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> with torch.nn.utils.parametrize.cached():
        ...     print(layer.weight is layer.weight)
        True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, value):
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _assign(tensor: Tensor, value: Tensor) -> None:
    """New values in the tensor's own object; an optimiser keeps hold of it."""
    tensor.data = value.detach()


def _kind(tensor):
    """What a parametrization may not change."""
    return {"dtype": tensor.dtype, "shape": tensor.shape}


def _check_kept(kind, made):
    """ValueError where a parametrization made no tensor, or one of another kind."""
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what, new in _kind(made).items():
        if new != kind[what]:
            raise ValueError(
                f"Registering a parametrization may not change the {what} without unsafe=True: "
                f"{kind[what]} became {new}"
            )


class ParametrizationList(ModuleList):
    """The functions of a parametrised tensor, and the tensors from which it is computed.

    `original` (or `original0`, `original1`, ... where the first function takes several) is what
    is trained.

    Args:
        modules: the functions, in order.
        original: the tensor.
        unsafe: whether it is not checked that shape and dtype stay.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> type(layer.parametrizations.weight).__name__
        'ParametrizationList'
    """

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = _kind(original)
        new: Any = self._inverse(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for what in ("dtype", "device"):  # what a parameter's memory must keep
                if getattr(new, what) != getattr(original, what):
                    raise ValueError(
                        f"right_inverse outputs one tensor, so it may not change the {what}: "
                        f"{getattr(original, what)} became {getattr(new, what)}"
                    )
            if new is not original:
                original.data = new.detach()
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"right_inverse must return a Tensor or a list of such, but its item {i} "
                        f"is of type {type(part).__name__}"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_kept(before, self())

    def _inverse(self, value):
        """What the functions would make `value` of, or `value` where one cannot say."""
        new = value
        with rushlight.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    continue  # starts from the value itself
                try:
                    new = module.right_inverse(new)
                except NotImplementedError:
                    continue
        if not isinstance(new, Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError(
                "right_inverse must return a Tensor or a list of such, but it returned one of type "
                f"{type(new).__name__}"
            )
        return new

    def right_inverse(self, value):
        """Set the trained tensors so that the tensor becomes `value`."""
        with rushlight.no_grad():
            new = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                _assign(self.original, new)
                return
            if not isinstance(new, (list, tuple)) or len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}."
                )
            for i, part in enumerate(new):
                own = getattr(self, f"original{i}")
                if own.dtype != part.dtype and not self.unsafe:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while "
                        f"`original{i}` has dtype {own.dtype}"
                    )
                _assign(own, part)

    def forward(self):
        """The parametrised tensor: the stored one, through all parametrisations."""
        modules = list(self)
        if self.is_tensor:
            value = modules[0](self.original)
        else:
            value = modules[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in modules[1:]:
            value = module(value)
        return value


def _inject_class(module):
    """Give the module a class of its own, for the properties."""
    cls = module.__class__

    def refuse(self, protocol):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()."
        )

    def refuse_scripts(self):
        names = ", ".join(map(repr, self.parametrizations))
        raise RuntimeError(
            "Parametrization is not working with scripting: remove_parametrizations() leaves an "
            f"ordinary tensor (here of {names}), and jit.trace records what is computed"
        )

    def copy(self, memo):
        # Python's own way begins with __reduce_ex__, which is refused above but not by `cls`.
        make, arguments, state, *_ = cls.__reduce_ex__(self, 4)
        twin = memo[id(self)] = make(*arguments)
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        vars(twin).update(deepcopy(attributes, memo))
        for name, value in deepcopy(slots, memo).items():
            setattr(twin, name, value)
        return twin

    members: dict[str, Any] = {"__reduce_ex__": refuse, "__prepare_scriptable__": refuse_scripts}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copy
    members["__module__"] = __name__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    """Make `name` compute the tensor and, when assigned, set what it is computed from."""

    def get(self):
        if _cache_depth:
            key = (id(self), name)
            if key not in _cache:
                _cache[key] = self.parametrizations[name]()
            return _cache[key]
        return self.parametrizations[name]()

    def put(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(get, put))


def _check_right_inverse(parametrization, name, value, made):
    """ValueError if what a parametrization would set differs in kind from what is there."""
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(value, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} "
                f"as module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {getattr(value, what)}\n"
                f"returned {what}: {getattr(back, what)}"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module with another module.

    Args:
        module: it is changed and returned.
        tensor_name: of a parameter, a buffer, or a tensor that is parametrized already.
        parametrization: computes the tensor; its `right_inverse`, if it has one, gives what the
            present value is computed from (one tensor or several).
        unsafe: do not check that shape and dtype stay.

    Example:
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, weight):
        ...         return weight.triu() + weight.triu(1).T
        >>> layer = torch.nn.Linear(3, 3)
        >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        functions = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            made = parametrization(value)
            _check_kept(_kind(value), made)
            _check_right_inverse(parametrization, tensor_name, value, made)
        functions.append(parametrization)
        functions.unsafe |= unsafe
        return module
    if tensor_name not in [*module._buffers, *module._parameters]:
        raise ValueError(
            f"register_parametrization: {type(module).__name__} does not have a parameter, "
            f"buffer or parametrized tensor {tensor_name!r}"
        )
    functions = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = functions
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module (any, by default) is parametrized.

    Args:
        module: the module.
        tensor_name: the name of a tensor; None asks for any.

    Example:
        >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.Linear(3, 3))
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrised tensor an ordinary one again.

    Args:
        leave_parametrized: it keeps its computed value; else it gets back `original`.
        module: the module.
        tensor_name: the name of the tensor.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 4))
        >>> torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=3, out_features=4, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"{type(module).__name__} does not have a parametrization of {tensor_name!r}"
        )
    functions = module.parametrizations[tensor_name]
    plain: Any = functions.original if functions.is_tensor else None
    if leave_parametrized:
        value = getattr(module, tensor_name)
        if plain is not None:
            _assign(plain, value)
        else:
            plain = Parameter(value.detach()) if value.requires_grad else value
    elif plain is None:
        raise ValueError(
            f"Cannot leave unparametrized what is computed from {functions.ntensors} tensors; "
            "leave_parametrized=True keeps the value"
        )
    kind = type(module)
    delattr(kind, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, plain)
    if len(module.parametrizations) == 0:
        del module.parametrizations
        module.__class__ = kind.__bases__[0]
    return module


def type_before_parametrizations(module: Module):
    """The module's class without parametrizations.

    Args:
        module: the module.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> torch.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy the parametrisations of one module, and their tensors, to another.

    Args:
        tensor_name: of one tensor alone.
        from_module: the module that has them.
        to_module: the module that gets them, which is returned.

    Example:
        >>> first = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> second = torch.nn.Linear(2, 2)
        >>> second = torch.nn.utils.parametrize.transfer_parametrizations_and_params(first, second)
        >>> torch.equal(first.weight, second.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, ModuleDict):
        raise AssertionError("from_module.parametrizations must be a ModuleDict")
    names = from_module.parametrizations if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for function in from_module.parametrizations[name]:
            register_parametrization(to_module, name, function)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        if source.is_tensor:
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
