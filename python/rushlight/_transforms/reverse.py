"""Transforms in reverse mode: `grad`, `vjp`, `jacrev`, over ordinary autograd.

A transform differentiates by tensors on the memory of its arguments which are results of nodes of
their own. So transforms nest, within and around `vmap`, and backward is recorded only where what is
differentiated depends on something from outside that wants a gradient, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from rushlight import Tensor

Argnums = int | tuple[int, ...]

# Whether backward is recorded whoever wants a gradient now: set by `export` while a program runs,
# since its arguments may want one later.
records_all = False


def is_tensor(value):
    return isinstance(value, _C.TensorBase)


def call(func, *args, **kwargs):
    """Calls what a transform differentiates, which may write into its arguments alone."""
    return _C._call_transformed(func, args, kwargs, _pytree.tree_leaves((args, kwargs)))


class Inputs:
    """What a transform differentiates by: a tree of tensors, and their nodes."""

    def __init__(self, tree):
        self.flat, self.spec = _pytree.tree_flatten(tree)
        for value in self.flat:
            if not is_tensor(value):
                raise ValueError(
                    f"Thing passed to transform API must be of class Tensor, not {type(value)}"
                )
        self._made = [_C._begin_transform(t) for t in self.flat]
        self.nodes = tuple(t.grad_fn for t in self._made)

    def tree(self):
        return self.spec.unflatten(self._made)

    def gradients(self, outputs, vectors, retain=False):
        """Gradients as a tree, zeros where there is no dependence."""
        pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
        found = [None] * len(self.nodes)
        if pairs:
            outputs = [o for o, _ in pairs]
            vectors = [v for _, v in pairs]
            create = (
                any(v.requires_grad for v in vectors)
                or _C._depends_on_others(outputs, self.nodes)
                or records_all
            )
            edges = tuple((node, 0) for node in self.nodes)
            found = _C._run_backward(outputs, vectors, retain or create, create, edges, False, True)
        return self.spec.unflatten(
            rushlight.zeros_like(t) if g is None else g
            for g, t in zip(found, self.flat, strict=True)
        )

    def detach_results(self, tree, recorded: bool):
        """Results without the graph that only this transform needed; with none if around it nothing
        is `recorded`."""

        def one(t: Tensor) -> Tensor:
            kept = recorded and _C._depends_on_others([t], self.nodes)
            return t if kept or not t.requires_grad else _C._without_graph(t)

        return _pytree.tree_map_only(_C.TensorBase, one, tree)


def _numbers(args, argnums):
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums should be int or Tuple[int, ...], got {type(argnums).__name__}"
        )
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnums: elements must be int, got {type(n).__name__}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = tuple(n % len(args) for n in numbers)
    if len(set(numbers)) < len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return numbers


def slice_argnums(args, argnums, as_tuple: bool = True):
    """The arguments of these numbers."""
    numbers = _numbers(args, argnums)
    if isinstance(argnums, int):
        return (args[numbers[0]],) if as_tuple else args[numbers[0]]
    return tuple(args[n] for n in numbers)


def select_arguments(args, argnums):
    """The arguments to differentiate by, and a function that puts others in their place."""
    numbers = _numbers(args, argnums)

    def replace(values):
        out = list(args)
        values = (values,) if isinstance(argnums, int) else values
        for n, value in zip(numbers, values, strict=True):
            out[n] = value
        return out

    return slice_argnums(args, argnums, as_tuple=False), replace


def split_aux(result, has_aux, what):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{what}: with has_aux=True, f should return a tuple (output, aux), but returned "
            f"{type(result).__name__}"
        )
    return result


def check_outputs(outputs: list[Tensor], what: str) -> None:
    """The outputs of a function, flat, which must be tensors."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(f"{what}: f must return at least one tensor, but got output = {outputs}")
    for o in outputs:
        if not is_tensor(o):
            raise RuntimeError(
                f"{what}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(o)}"
            )


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of a scalar function `func`, and its value.

    Args:
        argnums: which arguments to differentiate by; for a tuple of them the gradient is one.
        has_aux: func returns (output, aux), and the result is (gradient, (value, aux)).
        func: a function whose result has one element.

    Example:
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recorded = rushlight.is_grad_enabled()
        with rushlight.enable_grad():
            picked, replaced = select_arguments(args, argnums)
            inputs = Inputs(picked)
            result = call(func, *replaced(inputs.tree()), **kwargs)
            output, aux = split_aux(result, has_aux, "grad_and_value(f)(*args)")
            if not is_tensor(output):
                raise RuntimeError(
                    "Expected f(*args) to return a Tensor, got "
                    f"{type(output).__name__} (grad differentiates one number)"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad differentiates functions that return a scalar tensor, but got tensor "
                    f"with {output.dim()} dims: vjp or jacrev take those"
                )
            found = inputs.gradients([output], [rushlight.ones_like(output)])
            found, output, aux = inputs.detach_results((found, output, aux), recorded)
        return found, ((output, aux) if has_aux else output)

    return wrapper


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of a scalar function `func` (with `has_aux`, also
    aux).

    Args:
        func: a function whose result has one element.
        argnums: which arguments to differentiate by.
        has_aux: whether func returns (output, aux).

    Example:
        >>> torch.func.grad(lambda x: x**2)(torch.tensor(3.0))
        tensor(6.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)` and a function from vectors of its structure to products vᵀ J.

    That function returns a tuple, one product for each primal, and may be called again and again.

    Args:
        has_aux: func returns (output, aux), and aux comes third.
        func: the function.
        primals: its arguments.

    Example:
        >>> value, pullback = torch.func.vjp(torch.sin, torch.tensor(0.0))
        >>> pullback(torch.tensor(2.0))
        (tensor(2.),)
    """
    what = "vjp(f, *primals)"
    recorded = rushlight.is_grad_enabled()
    with rushlight.enable_grad():
        inputs = Inputs(primals)
        output, aux = split_aux(call(func, *inputs.tree()), has_aux, what)
        outputs, spec = _pytree.tree_flatten(output)
        check_outputs(outputs, what)
        shown, aux = inputs.detach_results((output, aux), recorded)

    def product(cotangents, retain_graph: bool = True, create_graph=None):
        recorded = rushlight.is_grad_enabled()
        with rushlight.enable_grad():
            vectors, form = _pytree.tree_flatten(cotangents)
            if form != spec:
                raise RuntimeError(
                    "the cotangents must have the pytree structure of what the function returned: "
                    f"{spec}, but got {form}"
                )
            for v, o in zip(vectors, outputs, strict=True):
                if v.shape != o.shape:
                    raise RuntimeError(
                        "Mismatch in shape: each cotangent must have the shape of its output, "
                        f"{tuple(o.shape)}, got {tuple(v.shape)}"
                    )
            found = inputs.gradients(outputs, vectors, retain_graph)
            # Vectors may be what a transform differentiates by that began after this one.
            later = recorded and any(v.requires_grad for v in vectors)
            return found if later else inputs.detach_results(found, recorded)

    return (shown, product, aux) if has_aux else (shown, product)


def basis_of(tensors: list[Tensor]) -> list[Tensor]:
    """The unit vectors of all elements together, a batch of directions for each tensor."""
    sizes = [t.numel() for t in tensors]
    directions = []
    for n, t in enumerate(tensors):
        unit = rushlight.zeros(sum(sizes), sizes[n], dtype=t.dtype, device=t.device)
        unit.diagonal(-sum(sizes[:n])).fill_(1)
        directions.append(unit.reshape((-1, *t.shape)))
    return directions


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, whose rows are computed together by `vmap`.

    Args:
        argnums: which arguments to differentiate by; for a tuple of them the Jacobian is one.
        has_aux: func returns (output, aux), and so does this.
        chunk_size: how many rows are computed together; None for all. Fewer take less memory.
        func: a function of tensors.

    Example:
        >>> torch.func.jacrev(torch.square)(torch.tensor([3.0, 5.0]))
        tensor([[ 6.,  0.],
                [ 0., 10.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        from rushlight._transforms.vmap import vmap

        picked, replaced = select_arguments(args, argnums)

        def partial(*values):
            return func(*replaced(values[0] if isinstance(argnums, int) else values), **kwargs)

        primals = (picked,) if isinstance(argnums, int) else picked
        output, product, *aux = vjp(partial, *primals, has_aux=has_aux)
        outputs, form = _pytree.tree_flatten(output)
        sizes = [o.numel() for o in outputs]
        directions = basis_of(outputs)

        def rows(*vectors: Tensor) -> tuple[Tensor, ...]:
            return product(form.unflatten(vectors))

        if chunk_size == 1:
            each = [rows(*(d[i] for d in directions)) for i in range(sum(sizes))]
            flat, spec = zip(*map(_pytree.tree_flatten, each), strict=True)
            found = spec[0].unflatten(map(rushlight.stack, zip(*flat, strict=True)))
        else:
            found = vmap(rows, chunk_size=chunk_size)(*directions)
        blocks, spec = _pytree.tree_flatten(found[0] if isinstance(argnums, int) else found)
        parts = [b.split(sizes) for b in blocks]
        result = form.unflatten(
            spec.unflatten(
                p[k].reshape(o.shape + p[k].shape[1:])
                if p[k].numel()
                else p[k].reshape((*o.shape, *b.shape[1:]))
                for p, b in zip(parts, blocks, strict=True)
            )
            for k, o in enumerate(outputs)
        )
        return (result, aux[0]) if has_aux else result

    return wrapper


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the same results and effects on its arguments as `func`.

    Ops that write are recorded as they run, so there is nothing to take out before they do;
    `remove` is "mutations" or "mutations_and_views".

    Args:
        func: a function of tensors.
        remove: "mutations", or "mutations_and_views", which makes copies of views as well.

    Example:
        >>> def grow(x):
        ...     y = x.clone()
        ...     return y.add_(1)
        >>> torch.func.functionalize(grow)(torch.tensor([4]))
        tensor([5])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove=...): the value of remove must be 'mutations' or "
            f"'mutations_and_views', got {remove!r}"
        )

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapper


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value of a tensor in `vmap`, with the batch in front; other tensors unchanged.

    Args:
        recurse: whether all levels are removed, or only one.
        tensor: the tensor.

    Example:
        >>> torch.func.debug_unwrap(torch.tensor([4]))
        tensor([4])
    """
    while _C._batch_level(tensor):
        tensor = _C._batch_value(tensor)
        if not recurse:
            break
    return tensor
