"""`compile` and related names: pointwise ops that are computed together.

`compile` gives a function or module back in a wrapper. A call runs the program as it is written, in
Python, with the shapes, checks, errors and gradients that it has otherwise; but pointwise ops on
the CPU are noted instead of run, and a chain of them is computed in one pass over memory when
somebody looks at a result (docs/compile.md). Nothing is traced or assumed, so there is nothing to
guard and nothing to compile again, and the bits are those of the program without `compile`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import rushlight
from rushlight import _C, nn
from rushlight._lazy import later
from rushlight.utils import _pytree

if TYPE_CHECKING:
    pass

_graphs = later("rushlight._dynamo._graphs")
_capture = later("rushlight._dynamo._capture")

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "capture",
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


_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def compile(
    model: _F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    name: str | None = None,
) -> _F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    name: str | None = None,
) -> Callable[[_F], _F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    name: str | None = None,
) -> Any:
    """Return `model` in a wrapper whose calls compute chains of pointwise ops in one pass.

    A module comes back as an `OptimizedModule`, whose state has the prefix `_orig_mod.`; without
    `model`, a decorator. Results have the bits that they have without `compile`, for any number of
    threads; backward of what was computed in the wrapper is computed so, too.

    Args:
        model: a module or a function.
        fullgraph: where the backend is a function, raise instead of warning for a program that no
            graph holds; otherwise without effect: any program is taken whole.
        dynamic: accepted, without effect: no size is assumed.
        backend: `"inductor"`; the names that run the program as it is (`"eager"`, `"aot_eager"` and
            their variants) do so, and other names are as `"inductor"`. Or a function of a
            `GraphModule` and a list of tensors: it gets the graph of the ops that the program calls
            (parameters are attributes of it) for each kind of arguments, and what it returns is
            called in the program's place with the tensors among the arguments.
        mode: `"reduce-overhead"` replays calls, as `compiler.capture` does, where what they return
            is not differentiated; the other modes are as none.
        options: accepted, without effect.
        disable: if True, `model` is returned.
        name: accepted, without effect.

    Raises:
        RuntimeError: both `mode` and `options` are given, or a mode or backend that there is not.

    Example:
        >>> @torch.compile
        ... def gelu(x):
        ...     return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
        >>> gelu(torch.tensor([-1.5, 0.5]))
        tensor([-0.1004,  0.3457])
    """
    call = _call_for(backend, mode, options, fullgraph)
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
        return OptimizedModule(model, call)
    if inspect.isclass(model):
        return model

    @functools.wraps(model)
    def call_model(*args, **kwargs):
        return call(model, *args, **kwargs)

    call_model._torchdynamo_orig_callable = model  # type: ignore
    call_model._call = call  # type: ignore
    return call_model


def capture(step: Any, check: int = 2) -> Any:
    """Return a function that records a step, and replays it without Python.

    A step is a function that does the same ops at each call: forward, backward, clipping, an
    optimiser's step. Its first call for each kind of arguments (shapes, dtypes, strides, numbers)
    runs as it is written; the next ones are recorded, op by op below autograd, and compared. Once
    `check` of them in a row did the same, calls replay their ops on the arguments that are given
    then. Results are those of the step, bit for bit; they have no history. Random ops draw in the
    same order.

    Parameters, buffers and other tensors that the step finds are used as they are then. Where
    something is replaced or changed that its program can reach (parameters, modules, hooks, modes,
    settings, attributes, variables), the step is recorded anew; floats that change each time, as a
    learning rate by a schedule, are looked up. What a step does beside ops is not replayed (it
    appends to a list, counts in an attribute); reading values (`item`, `tolist`, `if tensor:`) and
    seeding raise where they stand.

    Args:
        step: a function of tensors and hashable values; its tensors want no gradient.
        check: how many recordings have to be alike, at least 2.

    Raises:
        RuntimeError: when called, if the step reads values, or no `check` recordings are alike;
            the message says where they differ.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> @torch.compiler.capture
        ... def step(x):
        ...     optimizer.zero_grad()
        ...     loss = (w * x).sum()
        ...     loss.backward()
        ...     optimizer.step()
        ...     return loss
        >>> [float(step(torch.ones(2))) for _ in range(5)]
        [3.0, 2.799999952316284, 2.5999999046325684, 2.3999998569488525, 2.1999998092651367]
        >>> step.replays
        2
    """
    if check < 2:
        raise ValueError(f"capture: check has to be at least 2, but is {check}")
    if not callable(step):
        raise TypeError(f"capture: expected a function, but got {type(step)}")
    return _capture.Captured(step, check)


def _call_for(backend: Any, mode: str | None, options: Any, fullgraph: bool):
    """What calls a function that is compiled so, given it and its arguments."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be given to compile: a mode stands for some options"
        )
    _check_backend(backend)
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(
            f"Unrecognized mode={mode!r}: compile() takes one of {', '.join(_MODES)}"
        )
    if callable(backend):
        return _graphs.GraphCall(backend, fullgraph)
    if backend in _AS_IT_IS:
        return _call_as_it_is
    return _capture.CapturedCall(_C._call_noted) if mode == "reduce-overhead" else _C._call_noted


def _call_as_it_is(function, *args, **kwargs):
    return function(*args, **kwargs)


_AS_IT_IS = frozenset(name for name in _BACKENDS if "eager" in name)


class TorchDynamoException(RuntimeError):
    """The base of what compiling raises; see `_dynamo.exc`."""


class InvalidBackend(TorchDynamoException):
    """There is no compiler of this name."""


class Unsupported(TorchDynamoException):
    """A program that no graph can hold."""


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
    """A wrapper of a module, `_orig_mod`: it has the module's attributes and forwards calls.

    Args:
        mod: the module.
        call: what runs its `forward`, given the function and its arguments; None: `compile`'s way.

    Example:
        >>> torch.compile(torch.nn.Linear(2, 3))
        OptimizedModule(
          (_orig_mod): Linear(in_features=2, out_features=3, bias=True)
        )
    """

    __module__ = "rushlight._dynamo.eval_frame"

    def __init__(self, mod: nn.Module, call=None) -> None:
        super().__init__()
        # Shares what the wrapped module keeps, as its state is one's own under a prefix.
        self._orig_mod = mod
        self._call = _C._call_noted if call is None else call
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._call(self._orig_mod, *args, **kwargs)

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
        return len(cast("Any", self._orig_mod))

    def __getitem__(self, index):
        return cast("Any", self._orig_mod)[index]

    def __iter__(self):
        return iter(cast("Any", self._orig_mod))

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


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None
) -> Any:
    """Return the function in a wrapper whose ops run at once, where `compile` is on too.

    Args:
        fn: the function, or a module, whose calls are changed in place; None for a decorator.
        recursive: if False, `fn` is returned: what it calls is not disabled, and it has no ops
            of its own.
        reason: accepted, without effect.

    Example:
        >>> torch.compiler.disable(abs)(-1)
        1
    """
    if fn is None:
        return lambda function: disable(function, recursive)
    if not recursive or inspect.isclass(fn):
        return fn
    if isinstance(fn, nn.Module):
        fn.forward = disable(fn.forward)
        return fn

    @functools.wraps(fn)
    def call_now(*args, **kwargs):
        return _C._call_now(fn, *args, **kwargs)

    call_now._torchdynamo_disable = True  # type: ignore
    return call_now


def allow_in_graph(fn: Callable[..., Any]):
    """Return the function, or list of functions, unchanged.

    Args:
        fn: a function, or several in a list.

    Example:
        >>> torch.compiler.allow_in_graph(len)
        <built-in function len>
    """
    return fn


def assume_constant_result(fn: Callable[..., Any]):
    """Return the function unchanged.

    Args:
        fn: a function whose result does not change.

    Example:
        >>> torch.compiler.assume_constant_result(len)
        <built-in function len>
    """
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns its function unchanged: the original is never replaced.

    Args:
        original_fn: the function that is not replaced.
        can_constant_fold_through: accepted, without effect.
        skip_signature_check: accepted, without effect.

    Example:
        >>> torch.compiler.substitute_in_graph(abs)(len)
        <built-in function len>
    """
    return lambda function: function


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of arrays into one of tensors.

    Args:
        fn: a function of numpy's arrays.

    Example:
        >>> torch.compiler.wrap_numpy(lambda a: a.cumsum())(torch.tensor([1, 2, 3]))
        tensor([1, 3, 6])
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
    """Forget the code that has been made for chains, and the recordings of captured steps.

    Both are made again when they are needed.

    Example:
        >>> torch.compiler.reset()
    """
    _C._forget_code()
    _capture.forget_recordings()


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of compilers: none. `compile` accepts those of PyTorch all the same.

    Args:
        exclude_tags: accepted, without effect.

    Example:
        >>> torch.compiler.list_backends()
        []
    """
    return []


class set_stance:
    """Whether `compile` has an effect, from now on; also a context manager and a decorator.

    Args:
        stance: `"force_eager"`: compiled functions run as they are written; with every other name
            they are compiled, and as nothing is ever compiled again, all of those mean one thing.
        skip_guard_eval_unsafe: accepted, without effect: there are no guards.
        force_backend: accepted, without effect.

    Raises:
        RuntimeError: a stance that there is not, or one with `force_backend`.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     torch.compile(torch.relu)(torch.tensor([-2.5, 4.0]))
        tensor([0., 4.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
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
        self._before = _C._regions_note(stance != "force_eager")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        _C._regions_note(self._before)
        return False

    def __call__(self, function: Callable[..., Any]):
        """The function, with this stance while it runs."""
        _C._regions_note(self._before)

        @functools.wraps(function)
        def call_with_stance(*args, **kwargs):
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return call_with_stance
