"""Transforms of functions: `grad`, `vjp`, `jvp`, Jacobians, `vmap`, and modules as functions.

They are built on autograd: transforms nest in any order, and a result can be differentiated by what
is around it. `vmap` computes all slices together.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._transforms import (
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    jacrev,
    vjp,
)
from rushlight._vmap import vmap
from rushlight.autograd.functional import by_columns
from rushlight.nn.utils import stateless
from rushlight.utils import _pytree

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

_depth = 0  # of transforms that run on each other


@contextlib.contextmanager
def _transform():
    global _depth
    _depth += 1
    try:
        with rushlight.enable_grad():
            yield
    finally:
        _depth -= 1


def _is_tensor(value):
    return isinstance(value, _C.TensorBase)


def _fresh(tree):
    """A tree with tensors to differentiate by, and the list of these."""
    made = []

    def one(t):
        made.append(t.view_as(t) if t.requires_grad else t.detach().requires_grad_())
        return made[-1]

    return _pytree.tree_map_only(_C.TensorBase, one, tree), made


def _settled(tree, fresh):
    """Results without the graph that only this transform needed."""
    if _depth > 1:
        return tree
    own = {id(t) for t in fresh}

    def needed(t):
        seen, todo = set(), [t.grad_fn]
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if hasattr(node, "variable") and id(node.variable) not in own:
                return True
            todo += [n for n, _ in node.next_functions]
        return False

    def one(t):
        return t if not t.requires_grad or needed(t) else t.detach()

    return _pytree.tree_map_only(_C.TensorBase, one, tree)


def _gradients(outputs, inputs, vectors):
    """Gradients with zeros where there is no dependence; recorded."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    results = [None] * len(inputs)
    if pairs:
        results = rushlight.autograd.grad(
            [o for o, _ in pairs],
            inputs,
            [v for _, v in pairs],
            create_graph=True,
            allow_unused=True,
        )
    return [
        rushlight.zeros_like(i) if r is None else r for r, i in zip(results, inputs, strict=True)
    ]


def _chosen(args, argnums):
    """The arguments to differentiate by, and a function that puts others in their place."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = tuple(n % len(args) for n in numbers)

    def replaced(values):
        out = list(args)
        for n, value in zip(numbers, values, strict=True):
            out[n] = value
        return out

    return tuple(args[n] for n in numbers), replaced


def _split_aux(result, has_aux):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError("has_aux=True: the function must return a tuple (output, aux)")
    return result


def jvp(
    func: Callable[..., Any], primals, tangents, *, strict: bool = False, has_aux: bool = False
):
    """Return `func(*primals)` and J v for the tangents v, which have the form of the primals."""
    with _transform():
        values, fresh = _fresh(tuple(primals))
        spec = _pytree.tree_structure(tuple(primals))
        vectors = spec.flatten_up_to(tuple(tangents))
        vectors = [v for v in vectors if _is_tensor(v)]
        output, aux = _split_aux(func(*values), has_aux)
        outputs, form = _pytree.tree_flatten(output)
        products = _forward(outputs, fresh, vectors)
        result = _settled((output, form.unflatten(products)), fresh)
    return (*result, aux) if has_aux else result


def _forward(outputs, inputs, vectors):
    """J v by differentiating wᵀ J, which is linear in w."""
    w = [rushlight.zeros_like(o).requires_grad_() for o in outputs]
    rows = _gradients(outputs, inputs, w)
    return _gradients(rows, w, vectors)


def jacfwd(
    func: Callable[..., Any], argnums=0, has_aux: bool = False, *, randomness: str = "error"
):
    """A function that returns the Jacobian of `func`, computed by columns."""

    def compute(outputs, fresh):
        return by_columns(
            outputs,
            fresh,
            lambda w: _gradients(outputs, fresh, w),
            lambda product, w, unit: _gradients([product], w, [unit]),
        )

    return _jacobian(func, argnums, has_aux, compute)


def _jacobian(func, argnums, has_aux, compute):
    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with _transform():
            chosen, replaced = _chosen(args, argnums)
            values, fresh = _fresh(chosen)
            output, aux = _split_aux(func(*replaced(values), **kwargs), has_aux)
            outputs, form = _pytree.tree_flatten(output)

            def of_inputs(blocks):
                found = iter(blocks)
                result = _pytree.tree_map_only(_C.TensorBase, lambda t: next(found), chosen)
                return result[0] if isinstance(argnums, int) else result

            result = form.unflatten([of_inputs(b) for b in compute(outputs, fresh)])
            result = _settled(result, fresh)
        return (result, aux) if has_aux else result

    return wrapped


def hessian(func: Callable[..., Any], argnums=0):
    """A function that returns the second derivatives of `func`, a scalar."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---- modules as functions ----


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args=None,
    kwargs=None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Call a module with other parameters and buffers, given by name.

    Args:
        parameter_and_buffer_dicts: a dict, or several whose names differ. Names that the module
            lacks become attributes for the time of the call; what the call assigns to a name of
            one dict is in it afterwards.
        tie_weights: what the module has under several names is replaced under all.
        strict: RuntimeError where names are missing or more.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    else:
        given = {}
        for names in parameter_and_buffer_dicts:
            for name, value in names.items():
                if name in given:
                    raise ValueError(
                        f"{name} appeared in multiple dictionaries; behavior is ambiguous"
                    )
                given[name] = value
    return stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def replace_all_batch_norm_modules_(root):
    """Take the running statistics from all batch normalisations in a module: for `vmap`."""
    from rushlight.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models):
    """The parameters and the buffers of several like modules, stacked by name, as two dicts."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training mode")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(kind):
        spaces = [dict(getattr(m, kind)()) for m in models]
        return {
            name: rushlight.stack([s[name].detach() for s in spaces]).requires_grad_(
                value.requires_grad
            )
            for name, value in spaces[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
