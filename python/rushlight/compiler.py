"""`compile` and related names, which are no-ops: programs run as they are.

Programs are run as they are written: `compile` gives the function or module back in a wrapper that
calls it. There is nothing to compile, so the arguments that say how change nothing, but those that
PyTorch does not know are refused; what programs rely on (names, `_orig_mod`, `disable`,
`is_compiling`) is as in PyTorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.utils import _pytree

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
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = frozenset(
    [
        "aot_eager",
        "aot_eager_decomp_partition",
        "aot_eager_decomp_partition_crossref",
        "aot_eager_decomp_partition_with_mode",
        "aot_eager_default_partitioner",
        "aot_ts",
        "cudagraphs",
        "dynamo_accuracy_minifier_backend",
        "dynamo_minifier_backend",
        "eager",
        "eager_debug",
        "eager_noexcept",
        "inductor",
        "invoke_subgraph",
        "openxla",
        "openxla_eval",
        "pre_dispatch_eager",
        "ts",
        "tvm",
    ]
)


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic=None,
    backend="inductor",
    mode=None,
    options=None,
    disable: bool = False,
    name=None,
):
    """Return `model` in a wrapper that calls it unchanged; without `model`, a decorator.

    A module comes back as an `OptimizedModule`, whose state has the prefix `_orig_mod.`.

    Raises:
        RuntimeError: both `mode` and `options` are given, or a mode or backend that there is not.

    Args:
        model: a module or a function.
        fullgraph: accepted, without effect.
        dynamic: accepted, without effect.
        backend: accepted, without effect.
        mode: accepted, without effect.
        options: accepted, without effect.
        disable: accepted, without effect.
        name: accepted, without effect.

    Example:
        >>> f = torch.compile(lambda x: x + 1)
        >>> f(torch.tensor([1]))
        tensor([2])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be given to compile: a mode stands for some options"
        )
    _check_backend(backend)
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(
            f"Unrecognized mode={mode!r}: compile() takes one of {', '.join(_MODES)}"
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
    if isinstance(model, nn.Module):
        return OptimizedModule(model)
    if inspect.isclass(model):
        return model

    @functools.wraps(model)
    def call_model(*args, **kwargs):
        return model(*args, **kwargs)

    call_model._torchdynamo_orig_callable = model  # type: ignore
    return call_model


class TorchDynamoException(RuntimeError):
    """The base of what compiling raises; see `_dynamo.exc`."""


class InvalidBackend(TorchDynamoException):
    """There is no compiler of this name."""


def _check_backend(backend):
    """Refuses the name of a compiler that neither PyTorch nor an installed package has."""
    if not isinstance(backend, str) or backend in _BACKENDS:
        return
    from importlib.metadata import entry_points

    installed = {entry.name for entry in entry_points(group="torch_dynamo_backends")}
    if backend not in installed:
        raise InvalidBackend(
            f"Invalid backend: compile() knows no {backend!r}, but a function and these names: "
            f"{', '.join(sorted(_BACKENDS | installed))}"
        )


class OptimizedModule(nn.Module):
    """A wrapper of a module, `_orig_mod`: it has the module's attributes and forwards calls."""

    __module__ = "rushlight._dynamo.eval_frame"

    def __init__(self, mod) -> None:
        super().__init__()
        # Shares what the wrapped module keeps, as its state is one's own under a prefix.
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if (
            name in ("_orig_mod", "training")
            or name.startswith("_")
            or "_modules" not in vars(self)
        ):
            super().__setattr__(name, value)
        elif "_orig_mod" in self._modules:
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        if name == "_orig_mod":
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]

    def __iter__(self):
        return iter(self._orig_mod)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


_exporting = False  # set by `rushlight.export` while a program runs


def is_compiling():
    """Whether the program is being exported; nothing else is compiled.

    Example:
        >>> torch.compiler.is_compiling()
        False
    """
    return _exporting


def is_dynamo_compiling():
    """Whether a compiler is running: always False.

    Example:
        >>> torch.compiler.is_dynamo_compiling()
        False
    """
    return False


def is_exporting():
    """Whether the program is being exported.

    Example:
        >>> torch.compiler.is_exporting()
        False
    """
    return _exporting


def disable(fn=None, recursive: bool = True, *, reason=None):
    """Return the function unchanged; also a decorator.

    Args:
        fn: the function; None for a decorator.
        recursive: accepted, without effect.
        reason: accepted, without effect.

    Example:
        >>> torch.compiler.disable(abs)(-1)
        1
    """
    if fn is None:
        return lambda function: disable(function, recursive)
    return fn


def allow_in_graph(fn: Callable[..., Any]):
    """Return the function, or list of functions, unchanged.

    Args:
        fn: the function, or a list of functions.

    Example:
        >>> torch.compiler.allow_in_graph(len) is len
        True
    """
    return fn


def assume_constant_result(fn: Callable[..., Any]):
    """Return the function unchanged.

    Args:
        fn: the function.

    Example:
        >>> torch.compiler.assume_constant_result(len) is len
        True
    """
    return fn


def substitute_in_graph(
    original_fn, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
):
    """A decorator that returns its function unchanged: the original is never replaced.

    Args:
        original_fn: the function that is not replaced.
        can_constant_fold_through: without effect.
        skip_signature_check: without effect.

    Example:
        >>> @torch.compiler.substitute_in_graph(len)
        ... def length(x):
        ...     return 0
        >>> len("abc")
        3
    """
    return lambda function: function


def wrap_numpy(fn: Callable[..., Any]):
    """Turn a function of arrays into one of tensors.

    Args:
        fn: a function of arrays.

    Example:
        >>> import numpy
        >>> cumulated = torch.compiler.wrap_numpy(numpy.cumsum)
        >>> cumulated(torch.tensor([2, 5, 1]))
        tensor([2, 7, 8])
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        arrays = _pytree.tree_map_only(
            rushlight.Tensor, lambda t: t.detach().numpy(), (args, kwargs)
        )
        result = fn(*arrays[0], **arrays[1])
        return _pytree.tree_map(
            lambda a: rushlight.as_tensor(a) if hasattr(a, "__array__") else a, result
        )

    return wrapper


def cudagraph_mark_step_begin():
    """A no-op: there are no graphs.

    Example:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def reset():
    """A no-op: nothing is cached.

    Example:
        >>> torch.compiler.reset()
    """


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of compilers: none. `compile` accepts those of PyTorch all the same.

    Args:
        exclude_tags: without effect.

    Example:
        >>> torch.compiler.list_backends()
        []
    """
    return []


class set_stance:
    """A no-op as a function, context manager or decorator.

    Args:
        stance: "default", "force_eager" or another of PyTorch's; without effect.
        skip_guard_eval_unsafe: without effect.
        force_backend: without effect.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     pass
    """

    def __init__(
        self, stance="default", *, skip_guard_eval_unsafe: bool = False, force_backend=None
    ) -> None:
        if stance not in _STANCES + _MORE_STANCES:
            raise RuntimeError(
                f"invalid torch.compile stance {stance!r}: set_stance() takes one of "
                f"{', '.join(_STANCES + _MORE_STANCES)}"
            )
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance(): the stance {stance!r} cannot have force_backend set; only the "
                "default one takes it"
            )
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False

    def __call__(self, function: Callable[..., Any]):
        return function
