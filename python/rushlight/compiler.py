"""`compile` and what belongs to it.

Programs are run as they are written: `compile` gives the function or module back in a wrapper that
calls it. There is nothing to compile, so the arguments that say how change nothing; what programs
rely on (names, `_orig_mod`, `disable`, `is_compiling`) is as in PyTorch.
"""

from __future__ import annotations

import functools
import inspect

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

_STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager")
_MORE_STANCES = ("eager_on_recompile", "fail_on_recompile")


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="inductor",
    mode=None,
    options=None,
    disable=False,
    name=None,
):
    """Return `model` in a wrapper that calls it as it is; without `model` a decorator.

    A module comes back as an `OptimizedModule`, whose state has the prefix `_orig_mod.`.

    Raises:
        RuntimeError: both `mode` and `options` are given.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            name=name,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or module, but got {type(model)}")
    if disable:
        return model
    from rushlight import nn

    if isinstance(model, nn.Module):
        from rushlight._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    if inspect.isclass(model):
        return model

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        return model(*args, **kwargs)

    compiled._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return compiled


def is_compiling():
    """Whether a compiler looks at the program: never."""
    return False


def is_dynamo_compiling():
    """Whether a compiler looks at the program: never."""
    return False


def is_exporting():
    """Whether the program is being exported: never."""
    return False


def disable(fn=None, recursive=True, *, reason=None):
    """Return the function, which is not compiled anyway; a decorator."""
    if fn is None:
        return lambda function: disable(function, recursive)
    return fn


def allow_in_graph(fn):
    """Return the function, or list of functions."""
    return fn


def assume_constant_result(fn):
    """Return the function."""
    return fn


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False
):
    """A decorator that returns the function: the original is never replaced."""
    return lambda function: function


def wrap_numpy(fn):
    """A function of arrays as one of tensors."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        import rushlight
        from rushlight.utils import _pytree

        arrays = _pytree.tree_map_only(
            rushlight.Tensor, lambda t: t.detach().numpy(), (args, kwargs)
        )
        result = fn(*arrays[0], **arrays[1])
        return _pytree.tree_map(
            lambda a: rushlight.as_tensor(a) if hasattr(a, "__array__") else a, result
        )

    return wrapped


def cudagraph_mark_step_begin():
    """Accepted: there are no graphs to tell apart."""


def reset():
    """Accepted: nothing is cached."""


def list_backends(exclude_tags=("debug", "experimental")):
    """The compilers there are: none. `compile` takes every name and runs programs as they are."""
    return []


class set_stance:
    """Accepted, as a function, context manager or decorator."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _STANCES + _MORE_STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False

    def __call__(self, function):
        return function
