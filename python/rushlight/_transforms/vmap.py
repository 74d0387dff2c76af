"""`vmap`: calls of a function whose tensors have a batch dimension that it does not see.

The batch is carried through ops in C++ (src/ops/batching.cpp) by rules of the op table. Here stand
the arguments and results of such calls: which dimensions are mapped over, chunks, and custom
functions that bring a rule of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import rushlight
from rushlight import _C
from rushlight._C import _functorch
from rushlight.utils import _pytree
from rushlight.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

# Programs import these, and put their own functions in the place of those with an underscore:
# tensordict's know its dicts.
__all__ = ["restore_vmap", "vmap"]

Tensor = rushlight.Tensor
_add_batch_dim = _functorch._add_batch_dim
_remove_batch_dim = _functorch._remove_batch_dim
_RANDOMNESS = ("error", "different", "same")


class VmapInfo(NamedTuple):
    """What the `vmap` method of a custom function gets: the batch size and the randomness."""

    batch_size: int
    randomness: str


_levels: list[tuple[int, VmapInfo]] = []  # that run, by number


def _is_tensor(value):
    return isinstance(value, _C.TensorBase)


def _get_name(func):
    return getattr(func, "__name__", None) or repr(func)


def _not_none(dim):
    return dim is None


def _flat_dims(dims, spec):
    """A dimension or None for each leaf; None if the structures do not fit."""
    return _broadcast_to_and_flatten(dims, spec, is_leaf=_not_none)


def check_randomness(randomness: str) -> None:
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different' and 'same', not "
            f"{randomness}"
        )


# ---- arguments ----


def _process_batched_inputs(in_dims, args, func):
    """The size of the batch, the dimensions of arguments' leaves, these, and their structure."""
    head = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a tuple with an item for each input, which "
            f"may be a container like the input, but it is {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_get_name(func)})(<inputs>): got no inputs: only functions of positional "
            "arguments can be mapped."
        )
    leaves, spec = tree_flatten(args)
    dims = _flat_dims(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of the inputs, {spec}; its own "
            f"is {_pytree.tree_structure(in_dims)}."
        )
    flat = []
    sizes = []
    for value, dim in zip(leaves, dims, strict=True):
        if dim is not None:
            dim = _input_dim(head, value, dim)
            sizes.append(value.size(dim))
        flat.append(dim)
    if not sizes:
        raise ValueError(f"{head}Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size where they are mapped, got {sizes}; "
            "in_dims says along which dimension each is, or None where all samples share it"
        )
    return sizes[0], flat, leaves, spec


def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """The arguments of a slice, for the scope of a level."""
    return tree_unflatten(
        (
            value if dim is None else _add_batch_dim(value, dim, vmap_level)
            for dim, value in zip(flat_in_dims, flat_args, strict=True)
        ),
        args_spec,
    )


def _input_dim(head, value, dim):
    if not isinstance(dim, int):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input, which is either an integer dimension, or None "
            "where all slices share the input."
        )
    if not _is_tensor(value):
        raise ValueError(
            f"{head}in_dim={dim} for an input of {type(value)}: cannot vmap over non-Tensor "
            "arguments, whose in_dim is None"
        )
    rank = value.dim()
    if not -rank <= dim < rank:
        raise ValueError(
            f"{head}Got in_dim={dim} for some input of {rank} dimensions: expected in_dim to "
            f"satisfy -{rank} <= in_dim < {rank}."
        )
    return dim % rank


# ---- results ----


_OUT_DIMS = (
    ": `out_dims` must be an int, None or a container of these that says for each output which of "
    "its dimensions is the mapped one."
)


def _output_dims(func, out_dims, output, spec) -> list[Any]:
    def refuse(text: str) -> NoReturn:
        raise ValueError(f"vmap({_get_name(func)}, ..., out_dims={out_dims}){text}")

    if _is_tensor(output):
        if out_dims is None or isinstance(out_dims, int):
            return [out_dims]
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            return list(out_dims)
        if isinstance(out_dims, (tuple, list, dict)):
            dims = None
        else:
            refuse(_OUT_DIMS)
    else:
        dims = _flat_dims(out_dims, spec)
    if dims is None:
        refuse(
            "(<inputs>): out_dims is not compatible with the structure of the outputs, "
            f"{spec}; its own is {_pytree.tree_structure(out_dims)}."
        )
    if any(d is not None and not isinstance(d, int) for d in dims):
        refuse(_OUT_DIMS)
    return dims


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    """What a result of a slice is outside: the batch stands in a dimension, if in any."""
    if out_dim is None:
        if _is_tensor(batched_output) and _C._has_batch(batched_output, vmap_level):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not _is_tensor(batched_output):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(batched_output)}. Give None in out_dims for what is none."
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(batched_outputs, out_dims, vmap_level, batch_size, func):
    """What a function returned for a slice, with the batch."""
    found, spec = tree_flatten(batched_outputs)
    dims = _output_dims(func, out_dims, batched_outputs, spec)
    name = _get_name(func)
    return tree_unflatten(
        (
            _maybe_remove_batch_dim(name, value, vmap_level, batch_size, dim)
            for value, dim in zip(found, dims, strict=True)
        ),
        spec,
    )


class _Level:
    """The scope of a level."""

    def __init__(self, batch: int, randomness: str) -> None:
        self.info = VmapInfo(batch, randomness)

    def __enter__(self) -> int:
        self.level = _functorch._vmap_increment_nesting(*self.info)
        _levels.append((self.level, self.info))
        return self.level

    def __exit__(self, *error):
        _levels.pop()
        _functorch._vmap_decrement_nesting()


def _call_batched(func, batch, dims, leaves, spec, out_dims, randomness, kwargs):
    """One call in which all slices are computed."""
    with _Level(batch, randomness) as level:
        output = func(*_create_batched_inputs(dims, leaves, level, spec), **kwargs)
        return _unwrap_batched(output, out_dims, level, batch, func)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments.

    `func` is called once, with tensors that have one dimension less; ops compute all slices
    together.

    Args:
        in_dims: the dimension of each argument, None for those that stay whole; nested as these.
        out_dims: the position of the batch dimension in results; None for results that are the same
            for all slices.
        randomness: "error" refuses random numbers; "different" draws other ones for each slice,
            "same" the same for all.
        chunk_size: how many slices are computed together; None for all.
        func: the function.

    Raises:
        ValueError: where dimensions or structures do not fit, or nothing is mapped over.
        RuntimeError: for what differs from slice to slice but in values (control flow, `item`), and
            for in-place ops that would write a batch into a tensor without one.

    Example:
        >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.arange(6.0).view(3, 2))
        tensor([1., 5., 9.])
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        inputs = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None:
            return _call_batched(func, *inputs, out_dims, randomness, kwargs)
        return _in_chunks(func, *inputs, out_dims, randomness, kwargs, chunk_size)

    return wrapper


def _in_chunks(func, batch, dims, leaves, spec, out_dims, randomness, kwargs, size):
    state = rushlight.get_rng_state() if randomness == "same" else None
    chunks: list[Any] = []
    form: Any = None
    where: list[Any] = []
    for start in range(0, batch, size):
        if state is not None:
            rushlight.set_rng_state(state)
        count = min(size, batch - start)
        part = [
            v if d is None else v.narrow(d, start, count) for v, d in zip(leaves, dims, strict=True)
        ]
        output = _call_batched(func, count, dims, part, spec, out_dims, randomness, kwargs)
        found, form = tree_flatten(output)
        where = _output_dims(func, out_dims, output, form)
        chunks.append(found)
    return form.unflatten(
        column[0] if d is None else rushlight.cat(column, d)
        for column, d in zip(zip(*chunks, strict=True), where, strict=True)
    )


# ---- rules of custom functions ----


def level_among(values):
    """The innermost level that one of the tensors in a tree has a batch of; 0 for none."""
    return max((_C._batch_level(v) for v in _pytree.tree_leaves(values)), default=0)


def _info_of(level: int) -> VmapInfo:
    for known, info in _levels:
        if known == level:
            return info
    raise RuntimeError("vmap: your tensor may have escaped from inside a function being vmapped")


def _has_batch(t, level):
    """Whether a tensor, or one of its tangents, has a batch of a level."""
    if _C._has_batch(t, level):
        return True
    forward = _C._forward_level_of(t)
    if not forward:
        return False
    tangent = _C._tangent_of(t, forward)
    return (tangent is not None and _has_batch(tangent, level)) or _has_batch(
        _C._primal_of(t, forward), level
    )


def by_rule(rule, args, what, kwargs=None):
    """Calls `rule(info, in_dims, *args, **kwargs)` with batches; results get theirs back."""
    level = level_among(args)
    info = _info_of(level)
    leaves, spec = tree_flatten(args)
    has = [_is_tensor(v) and _has_batch(v, level) for v in leaves]
    opened = spec.unflatten(
        _remove_batch_dim(v, level, info.batch_size, 0) if h else v
        for v, h in zip(leaves, has, strict=True)
    )
    dims = spec.unflatten(0 if h else None for h in has)
    result = rule(info, dims, *opened, **(kwargs or {}))
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"Expected the vmap staticmethod of {what} to have two returns: its results, and "
            "where each of them has the batch."
        )
    output, out_dims = result
    found, form = tree_flatten(output)
    where = _flat_dims(out_dims, form)
    if where is None:
        raise RuntimeError(
            f"{what}: the out_dims of its vmap staticmethod are not compatible with the output: "
            f"{_pytree.tree_structure(out_dims)} does not say for each part of {form} where its "
            "batch is."
        )
    return form.unflatten(
        v if d is None else _add_batch_dim(v, d, level) for v, d in zip(found, where, strict=True)
    )


def _with_all_batches(args):
    """Tensors that all have the batches that one of them has.

    A function may make a result of those alone that have none. Its gradient, the sum over the
    slices, would then count in the backward of each slice.
    """
    for level, info in _levels:
        has = [_is_tensor(v) and _has_batch(v, level) for v in args]
        if any(has):
            own = _add_batch_dim(rushlight.ones(info.batch_size, dtype=rushlight.bool), 0, level)
            args = [
                rushlight.where(own.to(v.device), v, v.detach())
                if _is_tensor(v) and not h and (v.is_floating_point() or v.is_complex())
                else v
                for v, h in zip(args, has, strict=True)
            ]
    return args


def apply_function(cls, args):
    """`cls.apply(*args)` in vmap; NotImplemented where it runs on slices as it is."""
    if not level_among(args):
        return NotImplemented
    bases = [c for c in cls.__mro__ if not c.__module__.endswith(".autograd.function")]
    own = any("vmap" in vars(c) for c in bases)
    if cls.generate_vmap_rule:
        if own:
            raise RuntimeError(
                f"{cls.__name__} is called in vmap, but it has both generate_vmap_rule=True and "
                "its own rule, the static method `vmap`; only one of them can hold."
            )
        whole = _with_all_batches(args)
        if all(a is b for a, b in zip(whole, args, strict=True)):
            return NotImplemented
        return cls.apply(*whole)
    if not own:
        raise RuntimeError(
            f"{cls.__name__} is called in vmap, but it does not have vmap support: a static "
            "method `vmap`, or generate_vmap_rule=True where forward is made of ops alone."
        )
    return by_rule(cls.vmap, args, cls.__name__)


def restore_vmap(func: Callable[..., Any], in_dims, batch_size: int, randomness: str):
    """`vmap` that gives results as rules do: batches in front where there are any, and where."""

    def inner(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims: list[Any] = _flat_dims(in_dims, spec) or []
        with _Level(batch_size, randomness) as level:
            opened = spec.unflatten(
                v if d is None else _add_batch_dim(v, d, level)
                for v, d in zip(leaves, dims, strict=True)
            )
            found, form = tree_flatten(func(*opened, **kwargs))
            where = [0 if _is_tensor(v) and _C._has_batch(v, level) else None for v in found]
            found = [
                v if d is None else _remove_batch_dim(v, level, batch_size, 0)
                for v, d in zip(found, where, strict=True)
            ]
        return form.unflatten(found), form.unflatten(where)

    return inner
