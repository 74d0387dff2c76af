"""Transforms of functions: `grad`, `vjp`, `jvp`, Jacobians, `vmap`, and modules as functions.

They are built on autograd: transforms nest, and a result can be differentiated by what is around
it. `vmap` calls the function once for each slice and stacks the results: it saves writing, not
time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight.autograd.functional import by_columns, by_rows
from rushlight.nn.utils import stateless
from rushlight.utils import _pytree

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
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


def grad_and_value(func: Callable[..., Any], argnums=0, has_aux: bool = False):
    """A function that returns the gradient of `func`, a scalar, and its value.

    Args:
        argnums: which arguments to differentiate by; for a tuple of them the gradient is one.
        has_aux: func returns (output, aux), and the result is (gradient, (value, aux)).
    """

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with _transform():
            chosen, replaced = _chosen(args, argnums)
            values, fresh = _fresh(chosen)
            output, aux = _split_aux(func(*replaced(values), **kwargs), has_aux)
            if not _is_tensor(output):
                raise RuntimeError(
                    "Expected f(*args) passed to grad to return a Tensor, got "
                    f"{type(output).__name__}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "Expected f(*args) passed to grad to return a scalar tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = iter(_gradients([output], fresh, [rushlight.ones_like(output)]))
            result = _pytree.tree_map_only(_C.TensorBase, lambda t: next(found), chosen)
            result = result[0] if isinstance(argnums, int) else result
            value = (output, aux) if has_aux else output
            return _settled((result, value), fresh)

    return wrapped


def grad(func: Callable[..., Any], argnums=0, has_aux: bool = False):
    """A function that returns the gradient of `func`, a scalar (with `has_aux`: and aux)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapped


def vjp(func: Callable[..., Any], *primals, has_aux: bool = False):
    """Return `func(*primals)` and a function from vectors of its form to products vᵀ J."""
    with _transform():
        values, fresh = _fresh(primals)
        output, aux = _split_aux(func(*values), has_aux)
        outputs, spec = _pytree.tree_flatten(output)

    def product(cotangents, **options):
        with _transform():
            vectors = spec.flatten_up_to(cotangents)
            found = iter(_gradients(outputs, fresh, vectors))
            result = _pytree.tree_map_only(_C.TensorBase, lambda t: next(found), primals)
            return _settled(result, fresh)

    with _transform():
        shown = _settled(output, fresh)
    return (shown, product, aux) if has_aux else (shown, product)


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


def jacrev(
    func: Callable[..., Any],
    argnums=0,
    *,
    has_aux: bool = False,
    chunk_size=None,
    _preallocate_and_copy: bool = False,
):
    """A function that returns the Jacobian of `func`, computed by rows."""

    def compute(outputs, fresh):
        def gradients(number, element):
            return _gradients([element], fresh, [rushlight.ones_like(element)])

        return by_rows(outputs, fresh, gradients)

    return _jacobian(func, argnums, has_aux, compute)


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


# ---- vmap ----


def _dims_of(tree, dims, what):
    """A dimension or None for each leaf of a tree; `dims` may be a prefix of the tree."""
    leaves, spec = _pytree.tree_flatten(tree)
    flat = _pytree._broadcast_to_and_flatten(dims, spec, is_leaf=lambda d: d is None)
    if flat is None:
        raise ValueError(
            f"vmap: {what} is not compatible with the structure of the values: {dims} for {spec}"
        )
    return leaves, spec, flat


def vmap(
    func: Callable[..., Any], in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size=None
):
    """A function that maps `func` over a dimension of its arguments, and stacks the results.

    Args:
        in_dims: the dimension of each argument, None for those that stay whole.
        out_dims: where the new dimension of results goes.
        randomness: "error", "different" or "same" random numbers in every call.

    Raises:
        ValueError: for sizes that differ, or when nothing is mapped over.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        wanted = tuple(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims
        if isinstance(wanted, tuple) and len(wanted) != len(args):
            raise ValueError(
                f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}): in_dims is not "
                f"compatible with the structure of inputs: {len(args)} were given"
            )
        leaves, spec, dims = _dims_of(tuple(args), wanted, "in_dims")
        sizes = set()
        for value, dim in zip(leaves, dims, strict=True):
            if dim is None:
                continue
            if not _is_tensor(value):
                raise ValueError(
                    f"vmap: Got in_dim={dim} for an input but the input is of type "
                    f"{type(value)}: use None as the respective in_dim"
                )
            if not -value.dim() <= dim < value.dim():
                raise ValueError(
                    f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of "
                    f"dimensionality {value.dim()}"
                )
            sizes.add(value.size(dim))
        if len(sizes) != 1:
            raise ValueError(
                "vmap: at least one input must have a dimension to map over"
                if not sizes
                else f"vmap: Expected all tensors to have the same size in the mapped dimension, "
                f"got sizes {sorted(sizes)} for the mapped dimension"
            )
        state = rushlight.get_rng_state() if randomness == "same" else None
        results = []
        for i in range(sizes.pop()):
            if state is not None:
                rushlight.set_rng_state(state)
            call = spec.unflatten(
                v if d is None else v.select(d, i) for v, d in zip(leaves, dims, strict=True)
            )
            results.append(func(*call, **kwargs))
        if not results:
            raise ValueError("vmap: the mapped dimension has size 0")
        return _stacked(results, out_dims)

    return wrapped


def _stacked(results, out_dims):
    _, spec, dims = _dims_of(results[0], out_dims, "out_dims")
    columns = zip(*(spec.flatten_up_to(r) for r in results), strict=True)
    out = []
    for column, dim in zip(columns, dims, strict=True):
        if not all(map(_is_tensor, column)):
            raise ValueError(
                f"vmap: the function must only return Tensors, got type {type(column[0])}"
            )
        out.append(column[0] if dim is None else rushlight.stack(column, dim))
    return spec.unflatten(out)


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
