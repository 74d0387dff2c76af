"""`make_fx`: traces the ops that a function runs on tensors, below autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn
from rushlight.fx._lazy_graph_module import _make_graph_module
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy import Proxy
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["ProxyTorchDispatchMode", "get_proxy_mode", "make_fx"]

_modes: list[ProxyTorchDispatchMode] = []


def _key(tensor: Tensor) -> Any:
    """What is the same for two tensors with the same elements in the same memory."""
    if tensor.numel() == 0:
        return id(tensor)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


class PythonKeyTracer(Tracer):
    """A tracer whose graph is written by a dispatch mode."""

    def __init__(self) -> None:
        super().__init__()
        self.root = nn.Module()
        self.graph = Graph(tracer_cls=PythonKeyTracer)

    def create_arg(self, a: Any) -> Any:
        """Convert an argument; parameters of any module become attributes of the root."""
        if not isinstance(a, nn.Parameter):
            return super().create_arg(a)
        own = dict(self.root.named_parameters())
        name = next((name for name, parameter in own.items() if parameter is a), None)
        if name is None:
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes every op that runs inside it into the graph of a tracer.

    Args:
        tracer: the tracer.
        decompositions: by op, functions that are run in its place.
    """

    def __init__(
        self, tracer: PythonKeyTracer, decompositions: dict[Any, Callable[..., Any]] | None = None
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.decompositions = decompositions or {}
        # By memory and geometry: the tensor, which must live on, and what stands for it. What an op
        # gives is another object to those who called it.
        self.known: dict[Any, tuple[Tensor, Proxy]] = {}

    def __enter__(self):
        _modes.append(self)
        return super().__enter__()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _modes.pop()
        super().__exit__(kind, value, trace)

    def track(self, value: Any, proxy: Proxy) -> None:
        """Set the proxy of a tensor, or of each of several."""
        if isinstance(value, Tensor):
            self.known[_key(value)] = (value, proxy)
        elif isinstance(value, list | tuple):
            for i, part in enumerate(value):
                if isinstance(part, Tensor):
                    self.track(part, proxy[i])  # type: ignore[index]

    def proxy_of(self, value: Any) -> Any:
        """The proxy of a tensor; tensors from elsewhere become attributes of the module."""
        if not isinstance(value, Tensor):
            return value
        found = self.known.get(_key(value))
        if found is None:
            proxy = self.tracer.proxy(self.tracer.create_arg(value))
            found = self.known[_key(value)] = (value, proxy)
        return found[1]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {} if kwargs is None else kwargs
        instead = self.decompositions.get(func)
        if instead is not None:
            with self:
                return instead(*args, **kwargs)
        given = pytree.tree_map(self.proxy_of, (list(args), kwargs))
        proxy = self.tracer.create_proxy("call_function", func, tuple(given[0]), given[1])
        result = func(*args, **kwargs)
        self.track(result, proxy)
        return result


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that is tracing, or None."""
    return _modes[-1] if _modes else None


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on its arguments and returns the graph of the ops that ran.

    Args:
        f: the function, of tensors and containers of them.
        decomposition_table: by op, functions that are run in its place.
        tracing_mode: "real", the one that is there: the ops compute.
    """
    if tracing_mode != "real":
        raise NotImplementedError(f"tracing_mode={tracing_mode!r}: ops are traced as they compute")

    def traced(*args: Any) -> GraphModule:
        tracer = PythonKeyTracer()
        mode = ProxyTorchDispatchMode(tracer, decomposition_table)
        flat, spec = pytree.tree_flatten(list(args))
        for i, value in enumerate(flat):
            proxy = tracer.create_proxy("placeholder", f"arg{i}_1", (), {})
            mode.track(value, proxy)
        with mode:
            result = f(*pytree.tree_unflatten(flat, spec))
        output = pytree.tree_map(lambda x: mode.proxy_of(x), result)
        tracer.create_node("output", "output", (tracer.create_arg(output),), {})
        return _make_graph_module(tracer.root, tracer.graph, getattr(f, "__name__", "GraphModule"))

    return traced
