"""`make_fx`: traces the ops that a function runs on tensors, below autograd or above it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx._lazy_graph_module import _make_graph_module
from rushlight.fx.experimental._control import ControlTracer
from rushlight.fx.experimental._key_tracer import PythonKeyTracer
from rushlight.fx.experimental._op_forms import lift_fresh_copy
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy import Proxy
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

__all__ = [
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "disable_proxy_modes_tracing",
    "get_proxy_mode",
    "make_fx",
    "maybe_disable_fake_tensor_mode",
]

_modes: list[ProxyTorchDispatchMode] = []
_FALLBACK = "_local_scalar_dense"


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes every op that runs inside it into the graph of a tracer.

    Args:
        tracer: the tracer.
        decompositions: by op, functions that are run in its place.

    For an example see `fx.experimental.proxy_tensor.make_fx`.
    """

    def __init__(
        self, tracer: PythonKeyTracer, decompositions: dict[Any, Callable[..., Any]] | None = None
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.decompositions = decompositions or {}

    def __enter__(self):
        _modes.append(self)
        return super().__enter__()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _modes.remove(self)
        super().__exit__(kind, value, trace)

    def track(self, value: Any, proxy: Proxy) -> None:
        """Set the proxy of a tensor, or of each of several."""
        self.tracer.track(value, proxy.node)

    def proxy_of(self, value: Any) -> Any:
        """The proxy of a tensor; tensors from elsewhere become attributes of the module."""
        return self.tracer.proxy(self.tracer.node_of(value)) if isinstance(value, Tensor) else value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {} if kwargs is None else kwargs
        instead = self.decompositions.get(func)
        if instead is not None:
            with self:
                result = instead(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return _record(self.tracer, func, args, kwargs)


def _record(tracer: PythonKeyTracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Run and record a call; what would read values off tensors that are traced is refused."""
    if getattr(tracer, "paused", False):
        return func(*args, **kwargs)
    if func.__name__.startswith(_FALLBACK):
        _refuse_item(tracer, func, args[0])
        return func(*args, **kwargs)
    if func is rushlight.ops.aten.lift_fresh.default:
        return _lift(tracer, args[0])
    return tracer.record(func, args, kwargs)


def _refuse_item(tracer: PythonKeyTracer, func: Any, tensor: Tensor) -> None:
    known = tracer.known_node(tensor)
    if known is not None and known.target is not lift_fresh_copy():
        raise RuntimeError(
            f"It appears that you're trying to get value out of a tensor that is traced ({func}): "
            "a number or a branch would depend on it, and the graph holds neither. Compute with "
            "tensors (where, index_select) instead."
        )


def _lift(tracer: PythonKeyTracer, made: Tensor) -> Tensor:
    """A tensor that the program wrote down: the graph copies a constant."""
    result = rushlight.ops.aten.lift_fresh.default(made)
    with _disable_current_modes():  # its values, where the results of ops are fake
        copy = made if isinstance(made, FakeTensor) else made.detach().clone()
    source = tracer.constant(copy)
    target = lift_fresh_copy()
    name = target.overloadpacket.__name__
    node = tracer.create_node("call_function", target, (source,), {}, name=name)
    tracer.track(result, node)
    return result


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that is tracing, or None.

    Example:
        >>> from rushlight.fx.experimental import proxy_tensor
        >>> proxy_tensor.get_proxy_mode() is None
        True
    """
    return _modes[-1] if _modes else None


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Within it nothing is recorded.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
        >>> def forward(x):
        ...     with disable_proxy_modes_tracing():
        ...         print("the sum is", (x.detach() + 1).sum().item())
        ...     return x * 3
        >>> graph = make_fx(forward)(torch.ones(2)).graph
        the sum is 4.0
        >>> [str(node.target) for node in graph.nodes if node.op == "call_function"]
        ['aten.mul.Tensor']
    """
    with _disable_current_modes():
        yield


@contextlib.contextmanager
def maybe_disable_fake_tensor_mode() -> Iterator[None]:
    """Within it tensors are real.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import maybe_disable_fake_tensor_mode
        >>> with maybe_disable_fake_tensor_mode():
        ...     print(torch.ones(2).sum().item())
        2.0
    """
    with _disable_current_modes():
        yield


# ---- make_fx ----


def _names(f: Callable[..., Any], count: int) -> list[str]:
    """Names of the arguments of a call, as the function's signature has them."""
    try:
        code = inspect.unwrap(f).__code__
    except AttributeError:
        return [f"arg{i}" for i in range(count)]
    names = list(code.co_varnames[: code.co_argcount])
    if inspect.ismethod(f):
        names = names[1:]
    if code.co_flags & inspect.CO_VARARGS or len(names) < count:
        return [f"arg{i}" for i in range(count)]
    return names[:count]


def _as_input(mode: FakeTensorMode | None, value: Any) -> Any:
    """What the function gets for an argument."""
    return mode.from_tensor(value) if mode is not None and isinstance(value, Tensor) else value


class _Lower(TorchDispatchMode):
    """Runs ops as they are; while a mode is there, tensors that a program writes down are told."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Tracing:
    """One call of what `make_fx` returns."""

    def __init__(self, f: Any, table: Any, mode: str, pre_dispatch: bool, foreign: bool) -> None:
        self.f, self.table, self.pre_dispatch = f, table or {}, pre_dispatch
        self.tracer = ControlTracer()
        self.mode = None
        if mode != "real":
            self.mode = FakeTensorMode(allow_non_fake_inputs=foreign)
            self.tracer.fake_mode, self.tracer.makes_fakes = self.mode, True

    def inputs(self, args: tuple[Any, ...]) -> tuple[list[Any], list[str], bool]:
        """The arguments for the function, and a placeholder for each leaf."""
        names, nested, values = _names(self.f, len(args)), False, []
        for name, arg in zip(names, args, strict=True):
            flat, spec = pytree.tree_flatten(arg)
            nested = nested or not spec.is_leaf()
            given = []
            for i, value in enumerate(flat):
                value = _as_input(self.mode, value)
                if isinstance(value, FakeTensor) and self.mode is None:
                    self.tracer.fake_mode = value.fake_mode
                node = self.tracer.create_node("placeholder", f"{name}_{i + 1}", (), {})
                node.target = node.name
                self.tracer.track(value, node)
                given.append(value)
            values.append(pytree.tree_unflatten(given, spec))
        return values, names, nested

    def run(self, values: list[Any]) -> Any:
        """What the function gives, while its ops are recorded."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.tracer.active())
            stack.enter_context(self.mode or _Lower())
            if not self.pre_dispatch:
                stack.enter_context(ProxyTorchDispatchMode(self.tracer, self.table))
                return self.f(*values)
            stack.enter_context(self.tracer.batches)
            return _C._watch_ops(self._seen, lambda: self.f(*values))

    def _seen(self, func: Any, args: Any, kwargs: Any) -> Any:
        instead = self.table.get(func)
        if instead is not None:
            result = _C._watch_ops(self._seen, lambda: instead(*args, **kwargs))
            if result is not NotImplemented:
                return result
        return _record(self.tracer, func, args, kwargs)

    def graph_module(self, args: tuple[Any, ...]) -> GraphModule:
        """The graph of the function on these arguments."""
        values, names, nested = self.inputs(args)
        result = self.run(values)
        tracer = self.tracer
        flat, spec = pytree.tree_flatten(result)
        shown = flat if nested else result
        tracer.create_node("output", "output", (tracer.create_arg(shown),), {})
        if nested:
            _, in_spec = pytree.tree_flatten(args)
            tracer.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, in_spec, spec)))
        name = getattr(self.f, "__name__", None) or type(self.f).__name__
        module = _make_graph_module(
            tracer.root, tracer.graph, "GraphModule" if "<" in name else name
        )
        if nested:
            module._in_spec, module._out_spec = in_spec, spec
        return module


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on its arguments and returns the graph of the ops that ran.

    Tensors that `f` closes over become attributes of the module: `_param_constant0` for
    parameters, `_tensor_constant0` for others.

    Args:
        f: a function or a module, of tensors and containers of them.
        decomposition_table: by op, functions that are run in its place; one that returns
            NotImplemented leaves the op.
        tracing_mode: "real", the ops compute; "fake", they run on shapes and dtypes alone;
            "symbolic", which is the same as "fake": sizes in the graph are numbers.
        _allow_non_fake_inputs: in fake modes, let `f` close over real tensors.
        pre_dispatch: record the ops that `f` calls, above autograd, instead of those that they
            and the backward passes in it are made of.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> graph = make_fx(lambda x: (2 * x).sum())(torch.ones(3)).graph
        >>> [str(node.target) for node in graph.nodes if node.op == "call_function"]
        ['aten.mul.Tensor', 'aten.sum.default']
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    def wrapped(*args: Any) -> GraphModule:
        tracing = _Tracing(
            f, decomposition_table, tracing_mode, pre_dispatch, _allow_non_fake_inputs
        )
        return tracing.graph_module(args)

    return wrapped
