"""Calls of modules with other parameters and buffers than their own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn

from ._named_member_accessor import swap_tensor

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.nn import Module


__all__ = ["functional_call"]


def _holdings(module, prefix="", above=()):
    """(name, tensor) of all parameters and buffers, under each of their names."""
    for space in (module._parameters, module._buffers):
        for name, tensor in space.items():
            if tensor is not None:
                yield prefix + name, tensor
    above = (*above, module)
    for name, child in module._modules.items():
        if child is not None and not any(child is m for m in above):  # modules may form a ring
            yield from _holdings(child, f"{prefix}{name}.", above)


def _untie(module, given):
    """`given` with what it says of a tensor under each of the tensor's names."""
    names = {}
    for name, tensor in _holdings(module):
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for tied in names.values():
        said = [name for name in tied if name in given]
        if any(given[name] is not given[said[0]] for name in said):
            raise ValueError(
                f"functional_call got multiple values for keys {said}, which name one tensor; with "
                "tie_weights=False each keeps its own"
            )
        if said:
            result.update((name, given[said[0]]) for name in tied)
    return result


def _check_names(module, given):
    own = {name for name, _ in _holdings(module)}
    problems = []
    for what, names in (("Unexpected", given.keys() - own), ("Missing", own - given.keys())):
        if names:
            problems.append(f"{what} key(s): {', '.join(repr(n) for n in sorted(names))}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )


@contextlib.contextmanager
def _reparametrize_module(
    module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False
):
    """While the block runs, a module has other parameters and buffers.

    What the block assigned in their place is in `parameters_and_buffers` afterwards.

    Args:
        tie_weights: whether tensors that the module has under several names are replaced under all
            of them.
        strict: RuntimeError if names are missing or unknown.
        stack_weights: accepted; a place that several names lead to is always put back as it was.
    """
    given = _untie(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, given)
    places = {}  # where a name leads: several do to one, where a module is part of others
    try:
        for name, value in given.items():
            path, _, leaf = name.rpartition(".")
            try:
                holder = module.get_submodule(path)
            except AttributeError:
                raise AttributeError(f"{type(module).__name__} has no attribute `{path}`") from None
            before = swap_tensor(holder, leaf, value, allow_missing=True)
            *_, names = places.setdefault((id(holder), leaf), (holder, leaf, before, []))
            names.append(name)
        yield
    finally:
        for holder, leaf, before, names in places.values():
            after = swap_tensor(holder, leaf, before, allow_missing=True)
            parameters_and_buffers.update(
                (name, after) for name in names if name in parameters_and_buffers
            )


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated form of `func.functional_call`, for one dict.

    Args:
        module: the network.
        parameters_and_buffers: tensors by their names in the network.
        args: the positional arguments, a tuple or a single one.
        kwargs: those by name.
        tie_weights: whether a tensor under one of its names stands for all of them.
        strict: whether unknown and missing names raise.

    For an example see `func.functional_call`.
    """
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated. "
        "Please use `torch.func.functional_call` instead.",
        FutureWarning,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
