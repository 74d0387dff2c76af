"""`opcheck`: whether what is registered for an op of one's own holds together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight._lazy import later
from rushlight._library import registry
from rushlight.utils import _pytree

_subclasses = later("rushlight._subclasses")


class OpCheckError(Exception):
    """An op does other things than its schema or its functions say."""


def _tensors(tree):
    return registry.tensors_in(tree)


def _copies(tree):
    return _pytree.tree_map_only(
        rushlight.Tensor,
        lambda t: t.detach().clone().requires_grad_(t.requires_grad),
        tree,
    )


def _schema(op, args, kwargs):
    args, kwargs = _copies((args, kwargs))
    values = op.bind(args, kwargs)
    before = [[t.detach().clone() for t in _tensors(v)] for v in values]
    with rushlight.no_grad():
        result = op.call(values)
    owners = {
        t.untyped_storage()._cdata: argument
        for argument, v in zip(op._schema.arguments, values, strict=True)
        for t in _tensors(v)
        if t.numel() > 0
    }
    for argument, v, old in zip(op._schema.arguments, values, before, strict=True):
        written = argument.alias_info is not None and argument.alias_info.is_write
        for t, o in zip(_tensors(v), old, strict=True):
            if not written and not rushlight.equal(t.nan_to_num(), o.nan_to_num()):
                raise OpCheckError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )
    several = isinstance(result, tuple)
    for said, value in zip(op._schema.returns, result if several else (result,), strict=False):
        for t in _tensors(value):
            owner = owners.get(t.untyped_storage()._cdata) if t.numel() > 0 else None
            if owner is not None and said.alias_info is None:
                raise OpCheckError(
                    f"Argument {owner.name} is not defined to alias output but was aliasing"
                )


def _autograd(op, args, kwargs):
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    if not op.has_kernel("Autograd") and not op.has_kernel("CompositeImplicitAutograd"):
        result = op(*_copies(args), **_copies(kwargs))
        if any(t.requires_grad for t in _tensors(result)):
            raise OpCheckError(
                f"{op.qualname}: inputs require gradients, and neither an autograd formula "
                "(register_autograd) nor a composite function is registered"
            )


def _fake(op, args, kwargs):
    with rushlight.no_grad():
        real = op(*_copies(args), **_copies(kwargs))
    mode = _subclasses.FakeTensorMode()
    args, kwargs = _pytree.tree_map_only(rushlight.Tensor, mode.from_tensor, (args, kwargs))
    with mode, rushlight.no_grad():
        fake = op(*args, **kwargs)
    for r, f in zip(_tensors(real), _tensors(fake), strict=True):
        for what in ("shape", "dtype", "device", "layout"):
            if getattr(r, what) != getattr(f, what):
                raise OpCheckError(
                    f"{op.qualname}: the fake implementation gives {what} {getattr(f, what)}, the "
                    f"op {getattr(r, what)}"
                )
        if r.stride() != f.stride() and r.numel() > 0:
            raise OpCheckError(
                f"{op.qualname}: the fake implementation gives strides {f.stride()}, the op "
                f"{r.stride()}"
            )


def _backward(op, args, kwargs):
    args, kwargs = _copies((args, kwargs))
    result = [t for t in _tensors(op(*args, **kwargs)) if t.requires_grad]
    if result:
        inputs = [t for t in _tensors((args, kwargs)) if t.requires_grad]
        grads = [rushlight.ones_like(t) for t in result]
        rushlight.autograd.grad(result, inputs, grads, allow_unused=True)


_TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_dynamic": _backward,
    "test_aot_dispatch_static": _backward,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check an op of one's own on sample arguments; {test: "SUCCESS" or what went wrong}.

    "test_schema" looks at what is written and aliased, "test_autograd_registration" for a formula
    where gradients are wanted, "test_faketensor" compares sizes with those of the fake
    implementation, "test_aot_dispatch_dynamic" runs forward and backward.

    Args:
        op: the op, such as `torch.ops.aten.sin.default`, or what `custom_op` returned.
        args: arguments by position, a tuple.
        kwargs: arguments by name.
        test_utils: the checks, one name or several.
        raise_exception: whether a failure is raised, or returned.
        atol, rtol: tolerances of results; None: by the dtype.

    Raises:
        OpCheckError: a test failed, and `raise_exception` is set.

    Example:
        >>> @torch.library.custom_op("docs_check::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> @torch.library.register_fake("docs_check::halve")
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> found = torch.library.opcheck(halve, (torch.ones(2),))
        >>> found["test_schema"]
        'SUCCESS'
    """
    found = getattr(op, "_opoverload", op)
    if isinstance(found, registry.CustomPacket):
        found = found.default
    if not isinstance(found, registry.CustomOverload):
        raise ValueError(f"opcheck(op, ...): op must be an op of one's own, got {type(op)}")
    tests = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(tests) - set(_TESTS)
    if not tests or unknown:
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be a subset of "
            f"{tuple(_TESTS)} but it was not"
        )
    results = {}
    for test in tests:
        try:
            _TESTS[test](found, args, kwargs or {})
            results[test] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {test} failed with {error} (scroll up for stack trace)"
                ) from error
            results[test] = error
    return results
