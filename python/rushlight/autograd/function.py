"""Custom functions: a class with static `forward` and `backward`, called through `apply`.

`ctx`, the first argument of both, is the node of the graph: what forward leaves on it, backward
finds, and the results' `grad_fn` is it. Where `setup_context(ctx, inputs, output)` is given,
forward takes no ctx.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from rushlight import _C
from rushlight._warnings import warn
from rushlight.autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from rushlight import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """Methods of a `ctx` beside those of `_C._FunctionBase`.

    Example:
        >>> isinstance(torch.autograd.Function, type)
        True
    """

    def mark_shared_storage(self, *pairs):
        """A no-op: outputs that share memory with inputs are detected."""


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The base of `ctx` classes.

    For an example see `autograd.Function`.
    """


def custom_nodes_behind(results: Iterable[Any]) -> list[BackwardCFunction]:
    """Nodes of custom functions in the graph of some tensors."""
    todo = [t.grad_fn for t in results if t.grad_fn is not None]
    seen, found = set(todo), []
    while todo:
        node = todo.pop()
        if isinstance(node, BackwardCFunction):
            found.append(node)
        more = {n for n, _ in node.next_functions if n is not None} - seen
        seen |= more
        todo.extend(more)
    return found


class FunctionMeta(type):
    """Gives each Function the class of its `ctx`, and looks up its methods once.

    Args:
        name: the class's name.
        bases: its bases.
        namespace: what its body defines.

    For an example see `autograd.Function`.
    """

    # What Function declares.
    forward: Callable[..., Any]
    setup_context: Callable[..., Any]
    backward: Callable[..., Any]
    vjp: Callable[..., Any]
    # What is found out here.
    _backward_cls: type
    _has_setup_context: bool
    _num_forward_arguments: int
    _backward_method: Any

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._num_forward_arguments = -1
        if not any(isinstance(base, FunctionMeta) for base in bases):  # Function itself
            cls._has_setup_context = False
            return
        cls._has_setup_context = cls.setup_context is not Function.setup_context
        if cls._has_setup_context:
            cls._num_forward_arguments = _positional_count(cls.forward)
        own_backward = cls.backward is not Function.backward
        own_vjp = cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(
                f"{name} defines both 'backward' and 'vjp', which are two names of one method: "
                "leave one of them out"
            )
        cls._backward_method = staticmethod(cls.vjp if own_vjp else cls.backward)


def _positional_count(forward: Callable[..., Any]) -> int:
    """How many arguments can be given by position; -1 for any number."""
    parameters = inspect.signature(forward).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return -1
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


class Function(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """The base of custom functions, which are called by `apply`.

    `forward(ctx, ...)` computes; `backward(ctx, grad, ...)` is given the gradients of the results
    and returns those of the arguments, None for one that has none.

    Args:
        args: nothing: the class itself is used.
        kwargs: nothing.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
    """

    def __init__(self, *args, **kwargs: Any) -> None:
        name = type(self).__name__
        warn(
            f"{name} should not be instantiated: its methods are static, call {name}.apply",
            DeprecationWarning,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Its methods "
            f"must be static: call {type(self).__name__}.apply"
        )

    # vmap goes through custom functions op by op, so neither is asked for.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, *args):
        """The result under `vmap`, for functions that override it."""
        raise NotImplementedError("vmap is not implemented for this custom autograd.Function")

    @classmethod
    def _bind_forward(cls, *args, **kwargs):
        """All arguments of forward by position, defaults filled in."""
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{cls.__name__}: forward cannot have keyword-only arguments where setup_context "
                "is separate"
            )
        return bound.args

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the results; `ctx` is the first argument unless there is a setup_context."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save what backward needs; only used if forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Return one gradient for each input of forward, None for inputs without one."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method: without them a Function has no "
            "derivative in backward mode"
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Forward-mode differentiation, which custom functions do not have."""
        raise NotImplementedError(
            "You must implement the jvp function: without it a Function has no derivative in "
            "forward mode"
        )


Function._backward_method = staticmethod(Function.backward)


def once_differentiable(backward: _F) -> _F:
    """A decorator for a `backward` whose result cannot be differentiated: doing so raises.

    Args:
        backward: the static method.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     @torch.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
    """

    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            results = backward(ctx, *grads)
        if not _C.is_grad_enabled():
            return results
        if not any(isinstance(g, _C.TensorBase) and g.requires_grad for g in grads):
            return results
        message = (
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )

        def guard(result: Tensor) -> Tensor:
            if result is None:
                return None
            # Requires grad whether or not the result does, so that asking raises.
            return _C._with_backward_error(result.detach().requires_grad_(), message)

        return tuple(map(guard, results)) if isinstance(results, tuple) else guard(results)

    return wrapper  # pyright: ignore[reportReturnType]


class InplaceFunction(Function):
    """Deprecated name of Function, for functions that may write their input.

    Args:
        inplace: kept as an attribute.

    For an example see `autograd.Function`.
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


NestedIOFunction = Function
