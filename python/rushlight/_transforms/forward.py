"""Transforms in forward mode: `jvp`, `jacfwd`, and `linearize`, `hessian`, which take both modes.

A level of forward mode (`include/rushlight/forward.h`) is entered for each call of `jvp`, so that
transforms nest; columns of a Jacobian are computed together by `vmap`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import _C
from rushlight._transforms.reverse import (
    Argnums,
    Inputs,
    basis_of,
    call,
    check_outputs,
    is_tensor,
    jacrev,
    select_arguments,
    split_aux,
)
from rushlight._transforms.vmap import vmap
from rushlight.utils import _pytree

_JVP = "jvp(f, primals, tangents)"


@contextlib.contextmanager
def _level() -> Iterator[int]:
    """A level of forward mode, which is on within it."""
    limit = _C._forward_limit()
    level = _C._enter_forward_level()
    try:
        _C._set_forward_limit(limit or 2**64 - 1)
        yield level
    finally:
        _C._set_forward_limit(limit)
        _C._exit_forward_level(level)


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return `func(*primals)` and J v for the tangents v, which have the structure of the primals.

    Computed in forward mode, beside the values.

    Args:
        strict: RuntimeError if an output does not depend on the primals, instead of zeros.
        has_aux: func returns (output, aux), and aux comes third.
        func: a function of tensors.
        primals: its arguments, a tuple.
        tangents: for each argument a tensor of its shape.

    Example:
        >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
        (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp: Expected primals to be a tuple of the arguments of f, but got "
            f"{type(primals).__name__}"
        )
    flat, spec = _pytree.tree_flatten(primals)
    directions, form = _pytree.tree_flatten(tangents)
    if form != spec:
        raise RuntimeError(
            f"{_JVP}: primals and tangents must have the same python structure, but primals are "
            f"{spec} and tangents {form}"
        )
    _check_tensors(flat, "primals")
    _check_tensors(directions, "tangents")
    with _level() as level:
        duals = [_C._make_dual(p, t, level) for p, t in zip(flat, directions, strict=True)]
        output, aux = split_aux(call(func, *spec.unflatten(duals)), has_aux, _JVP)
        outputs, form = _pytree.tree_flatten(output)
        check_outputs(outputs, _JVP)
        if has_aux:
            for value in _pytree.tree_leaves(aux):
                if not is_tensor(value):
                    raise RuntimeError(
                        f"{_JVP}: Expected tensors, got unsupported type {type(value)}"
                    )
        products = []
        for o in outputs:
            product = _C._tangent_of(o, level)
            if product is None and strict:
                raise RuntimeError(
                    f"{_JVP}, strict=True): an output of f is independent of the inputs, so that "
                    "it has no derivative; strict=False gives zeros"
                )
            products.append(rushlight.zeros_like(o) if product is None else product)
        output = form.unflatten([_C._primal_of(o, level) for o in outputs])
        aux = _pytree.tree_map_only(_C.TensorBase, lambda t: _C._primal_of(t, level), aux)
    products = form.unflatten(products)
    return (output, products, aux) if has_aux else (output, products)


def _check_tensors(values: list[rushlight.Tensor], name: str) -> None:
    if not values:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for v in values:
        if not is_tensor(v):
            raise RuntimeError(
                f"{_JVP}: Expected {name} to only contain Tensors, got unsupported type {type(v)}"
            )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `func(*primals)` and a function from tangents to J v.

    The function is run once. Its derivative is kept as a graph, wᵀ J for an open w: it is linear in
    w, so its derivative with respect to w, applied to v, is J v.

    Args:
        func: a function of tensors.
        primals: its arguments.

    Example:
        >>> value, product = torch.func.linearize(torch.square, torch.tensor(3.0))
        >>> value, product(torch.tensor(1.0))
        (tensor(9.), tensor(6.))
    """
    recorded = rushlight.is_grad_enabled()
    with rushlight.enable_grad():
        inputs = Inputs(primals)
        outputs, form = _pytree.tree_flatten(call(func, *inputs.tree()))
        check_outputs(outputs, "linearize(f, *primals)")
        open_vectors = Inputs([rushlight.zeros_like(o) for o in outputs])
        rows, _ = _pytree.tree_flatten(inputs.gradients(outputs, open_vectors.tree(), True))
        output = inputs.detach_results(form.unflatten(outputs), recorded)

    def product(*tangents):
        directions, given = _pytree.tree_flatten(tangents)
        if given != inputs.spec:
            raise RuntimeError(
                f"Expected the tangents {given} to have the same argspec as the primals "
                f"{inputs.spec}"
            )
        for i, (p, t) in enumerate(zip(inputs.flat, directions, strict=True)):
            for what in ("shape", "dtype", "device"):
                if getattr(p, what) != getattr(t, what):
                    raise RuntimeError(
                        f"linearize: tangent {i} in flattened pytree doesn't match the {what} of "
                        f"its primal: {getattr(t, what)} instead of {getattr(p, what)}"
                    )
        recorded = rushlight.is_grad_enabled()
        with rushlight.enable_grad():
            found = open_vectors.gradients(rows, directions, True)
            return inputs.detach_results(form.unflatten(_pytree.tree_leaves(found)), recorded)

    return output, product


def _check_real(values: list[rushlight.Tensor], what: str, which: str) -> None:
    for t in values:
        if t.is_complex():
            raise RuntimeError(f"{what}: Expected all {which} to be real, and one is complex")


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: all columns at once, in forward mode.

    Args:
        argnums: which arguments to differentiate by; for a tuple of them the Jacobian is one.
        has_aux: func returns (output, aux), and so does this.
        randomness: as in `vmap`.
        func: a function of tensors.

    Example:
        >>> torch.func.jacfwd(torch.square)(torch.tensor([3.0, 5.0]))
        tensor([[ 6.,  0.],
                [ 0., 10.]])
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        picked, replaced = select_arguments(args, argnums)
        primals, spec = _pytree.tree_flatten(picked)
        _check_tensors(primals, "primals")
        _check_real(primals, "jacfwd", "inputs")

        def columns(*directions):
            results = jvp(
                lambda *values: func(*replaced(spec.unflatten(values)), **kwargs),
                tuple(primals),
                directions,
                has_aux=has_aux,
            )
            return results[1:]

        found, *aux = vmap(columns, randomness=randomness)(*basis_of(primals))
        outputs, form = _pytree.tree_flatten(found)
        _check_real(outputs, "jacfwd", "outputs")
        sizes = [p.numel() for p in primals]

        def of_inputs(output):
            parts = output.movedim(0, -1).split(sizes, -1)
            return spec.unflatten(
                part.reshape(output.shape[1:] + p.shape)
                for part, p in zip(parts, primals, strict=True)
            )

        result = form.unflatten([of_inputs(o) for o in outputs])
        if not has_aux:
            return result
        return result, _pytree.tree_map_only(_C.TensorBase, lambda t: t[0], aux[0])

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of a scalar function: forward over reverse
    mode.

    Args:
        func: a function of tensors whose result is one number.
        argnums: which arguments to differentiate by.

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([2.0, 5.0]))
        tensor([[12.,  0.],
                [ 0., 30.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
