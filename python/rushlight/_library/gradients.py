"""The function for autograd of an op of one's own, from a backward and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight._library import schema as schemas
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from rushlight._library.registry import CustomOverload
    from rushlight.autograd.function import BackwardCFunction
    from rushlight.utils._pytree_specs import TreeSpec


class _Context:
    """The `ctx` of an `autograd.Function`, with `needs_input_grad` in the form of the arguments."""

    def __init__(self, ctx: BackwardCFunction, spec: TreeSpec) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_spec", spec)

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)

    @property
    def needs_input_grad(self) -> tuple[list[bool], bool, bool]:
        """For each argument whether a gradient is wanted; a list of them for a list."""
        flat = self._ctx.needs_input_grad[1:]
        return tuple(self._spec.unflatten(flat[: self._spec.num_leaves]))


class _Call:
    """One call: how its arguments and results are made of the tensors that autograd sees."""

    def __init__(self, op, values):
        self.op = op
        self.flat, self.spec = _pytree.tree_flatten(list(values[: op._num_positional]))
        self.named = list(values[op._num_positional :])
        self.results: Any = None

    def values(self, flat):
        """All arguments, from the leaves of those by position."""
        return [*self.spec.unflatten(flat), *self.named]

    def flat_gradients(self, made):
        """The gradients of the leaves, from one for each argument by position."""
        flat = []
        for i, (grad, child) in enumerate(zip(made, self._children(), strict=True)):
            if child is None:
                flat.append(grad)
            elif grad is None:
                flat += [None] * child
            elif not isinstance(grad, (list, tuple)) or len(grad) != child:
                raise RuntimeError(
                    f"{self.op.qualname}: the gradient of argument {i}, a list of {child} tensors, "
                    f"must be a list of as many or None, got {type(grad).__name__}"
                )
            else:
                flat += grad
        return flat

    def _children(self):
        """For each argument how many leaves its list has; None for one that is no list."""
        whole = self.spec.unflatten(self.flat)
        return [len(v) if isinstance(v, (list, tuple)) else None for v in whole]


def _check_differentiable(op: CustomOverload) -> None:
    if not schemas.is_functional(op._schema):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op}: {op._schema} "
            "writes into an argument, gives a view or gives nothing. An op that does not can "
            "have one."
        )
    if any(a.type.startswith("Tensor") for a in op._schema.arguments[op._num_positional :]):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args is not supported yet. Got {op._schema}"
        )


def function_of(op, backward, setup_context):
    """`apply` of an `autograd.Function` whose forward is the op behind autograd.

    Raises:
        RuntimeError: the op writes into an argument, returns a view, or nothing.
    """
    _check_differentiable(op)
    count = op._num_positional
    named = [a.name for a in op._schema.arguments[count:]]

    class Function(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, call, *flat):
            values = call.values(flat)
            output = op.below(values)
            leaves, call.results = _pytree.tree_flatten(output)
            if setup_context is not None:
                given = {"inputs": tuple(values[:count]), "output": output}
                if named:
                    given["keyword_only_inputs"] = dict(zip(named, values[count:], strict=True))
                setup_context(_Context(ctx, call.spec), **given)
            ctx._call = call
            return tuple(leaves)

        @staticmethod
        def backward(ctx, *grads):
            call = ctx._call
            made = backward(_Context(ctx, call.spec), *_per_result(call.results, grads))
            made = made if isinstance(made, tuple) else (made,)
            given = op.count_of_given([*call.spec.unflatten(call.flat), *call.named])
            if len(made) < given or any(g is not None for g in made[count:]):
                raise RuntimeError(
                    f"{op.qualname}: expected the backward to return {given} gradients, one for "
                    f"each argument that was given, but it returned {len(made)}"
                )
            made = (*made, *[None] * count)[:count]
            return (None, *call.flat_gradients(made))

    name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}"
    Function = type(name, (Function,), {})

    def apply(*args, **kwargs):
        call = _Call(op, op.bind(args, kwargs))
        flat = Function.apply(call, *call.flat)
        return call.results.unflatten(flat)

    if backward is None:  # nothing is differentiable
        return lambda *args, **kwargs: op.below(op.bind(args, kwargs))
    return apply


def _per_result(spec, grads):
    """Gradients, one for each result; a list for a list."""
    whole = spec.unflatten(grads)
    return whole if isinstance(whole, tuple) else (whole,)


def refuse_aliases(op, values, result):
    """RuntimeError if a result shares memory with an argument, or with another result."""
    seen = {
        t.untyped_storage()._cdata
        for t in _pytree.tree_iter(values)
        if isinstance(t, _C.TensorBase) and t.numel() > 0
    }
    for t in _pytree.tree_iter(result):
        if isinstance(t, _C.TensorBase) and t.numel() > 0:
            address = t.untyped_storage()._cdata
            if address in seen:
                raise RuntimeError(
                    f"{op.qualname} (with implementation in Python): a result shares memory "
                    "with an input or another result, and may not alias any; return a clone of it."
                )
            seen.add(address)
