"""Feature extraction: models that return intermediate results, by names of nodes of traced
graphs.
"""

import inspect
from collections import OrderedDict
from typing import Any

from rushlight import fx, nn
from rushlight._warnings import warn

__all__ = [
    "DualGraphModule",
    "LeafModuleAwareTracer",
    "NodePathTracer",
    "create_feature_extractor",
    "get_graph_node_names",
]


class LeafModuleAwareTracer(fx.Tracer):
    """A tracer that does not trace into modules of these classes: `leaf_modules=`.

    Args:
        args, kwargs: those of `fx.Tracer`, and `leaf_modules`: classes.

    For an example see `vision.models.feature_extraction.get_graph_node_names`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.leaf_modules = kwargs.pop("leaf_modules", ())
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualname: str) -> bool:
        return isinstance(m, tuple(self.leaf_modules)) or super().is_leaf_module(m, module_qualname)


class NodePathTracer(LeafModuleAwareTracer):
    """A tracer that knows each node's name: the module's path, and the operation where it is not
    the module itself.

    Names that come again get a number, "layer1.0.relu", "layer1.0.relu_1", in the place of one that
    they end in.

    Args:
        args, kwargs: those of `LeafModuleAwareTracer`.

    For an example see `vision.models.feature_extraction.get_graph_node_names`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._path = ""
        self.node_to_qualname: OrderedDict[fx.Node, str] = OrderedDict()

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        outer, self._path = self._path, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self._path = outer

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        *_: Any,
    ) -> Any:
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr, *_)
        self.node_to_qualname[proxy.node] = self._name(proxy.node)
        return proxy

    def _name(self, node: fx.Node) -> str:
        name = self._path
        if node.op != "call_module":
            name = f"{name}.{node.name}" if name else node.name
        head, _, number = name.rpartition("_")
        name = head if head and number.isdigit() else name
        taken = set(self.node_to_qualname.values())
        again, i = name, 0
        while again in taken:
            i += 1
            again = f"{name}_{i}"
        return again


def _trace(
    model: nn.Module,
    training: bool,
    settings: dict[str, Any] | None,
    concrete: dict[str, Any] | None,
) -> tuple[NodePathTracer, fx.Graph]:
    from .. import ops

    settings = dict(settings or {})
    layers = [c for _, c in inspect.getmembers(ops, inspect.isclass) if issubclass(c, nn.Module)]
    settings.setdefault("leaf_modules", layers)
    functions = (f for _, f in inspect.getmembers(ops, inspect.isfunction))
    settings.setdefault("autowrap_functions", tuple(functions))
    tracer = NodePathTracer(**settings)
    before = {m: m.training for m in model.modules()}
    try:
        return tracer, tracer.trace(model.train(training), concrete_args=concrete)
    finally:
        for m, mode in before.items():
            m.training = mode


def _names(tracer: NodePathTracer) -> list[str]:
    return list(tracer.node_to_qualname.values())


def _warn_of_differences(train: list[str], evaluated: list[str]) -> None:
    if train != evaluated:
        only = [sorted(set(a) - set(b)) for a, b in ((train, evaluated), (evaluated, train))]
        warn(
            f"The graphs of training and evaluation differ: {only[0]} are in the first alone, "
            f"{only[1]} in the second. "
            "Give train_return_nodes and eval_return_nodes where a name is in one alone.",
        )


def get_graph_node_names(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """The names of the nodes of a model's graphs for training and for evaluation, in order.

    Args:
        model: the network.
        tracer_kwargs: those of `NodePathTracer`.
        suppress_diff_warning: say nothing where the two graphs differ.
        concrete_args: arguments of `forward` that are no tensors, by name.

    Example:
        >>> from rushlight.vision.models import resnet18
        >>> from rushlight.vision.models.feature_extraction import create_feature_extractor
        >>> from rushlight.vision.models.feature_extraction import get_graph_node_names
        >>> net = resnet18(weights=None).eval()
        >>> get_graph_node_names(net)[1][:3]
        ['x', 'conv1', 'bn1']
        >>> features = create_feature_extractor(net, {"layer1": "early", "avgpool": "late"})
        >>> {name: tuple(x.shape) for name, x in features(torch.zeros(1, 3, 64, 64)).items()}
        {'early': (1, 64, 16, 16), 'late': (1, 512, 1, 1)}
    """
    train, evaluated = (
        _names(_trace(model, mode, tracer_kwargs, concrete_args)[0]) for mode in (True, False)
    )
    if not suppress_diff_warning:
        _warn_of_differences(train, evaluated)
    return train, evaluated


class DualGraphModule(fx.GraphModule):
    """A module with a graph for training and one for evaluation; `train` and `eval` choose.

    Args:
        root: the network whose parts run.
        train_graph: what runs in training.
        eval_graph: what runs in evaluation.
        class_name: of the module.

    For an example see `vision.models.feature_extraction.get_graph_node_names`.
    """

    def __init__(
        self,
        root: nn.Module,
        train_graph: fx.Graph,
        eval_graph: fx.Graph,
        class_name: str = "GraphModule",
    ) -> None:
        # What either graph uses is taken over from the model.
        both = {
            node.target: None
            for graph in (train_graph, eval_graph)
            for node in graph.nodes
            if node.op in ("call_module", "get_attr")
        }
        holder = fx.Graph()
        for target in both:
            holder.create_node("get_attr", str(target), (), {})
        super().__init__(root, holder, class_name)
        self.train_graph, self.eval_graph = train_graph, eval_graph
        self.training = root.training
        self.graph = train_graph if self.training else eval_graph

    def train(self, mode: bool = True):
        if mode != self.training:
            self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)


def _names_by_node(nodes: list[str] | dict[str, str] | None) -> dict[str, str] | None:
    if nodes is None:
        return None
    return dict(nodes) if isinstance(nodes, dict) else {str(n): str(n) for n in nodes}


def _cut(tracer: NodePathTracer, graph: fx.Graph, wanted: dict[str, str]) -> fx.Graph:
    """The graph with the wanted nodes as its results, by their new names, and nothing that they do
    not need.
    """
    names = tracer.node_to_qualname
    found: OrderedDict[str, fx.Node] = OrderedDict()
    for query, new in wanted.items():
        inside = [n for n in graph.nodes if n in names and n.op != "output"]
        match = [n for n in inside if names[n] == query or names[n].startswith(f"{query}.")]
        match = match or [
            n for n in inside if names[n].split(".")[: query.count(".") + 1] == query.split(".")
        ]
        if not match:
            choices = sorted({n.split(".")[0] for n in names.values()})
            raise ValueError(
                f"node: '{query}' is not present in model: `get_graph_node_names` lists those of "
                f"training and of evaluation, which may differ. Names begin with {choices}."
            )
        found[new] = match[-1]
    for node in [n for n in graph.nodes if n.op == "output"]:
        graph.erase_node(node)
    graph.output(dict(found))
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    return graph


def create_feature_extractor(
    model: nn.Module,
    return_nodes: list[str] | dict[str, str] | None = None,
    train_return_nodes: list[str] | dict[str, str] | None = None,
    eval_return_nodes: list[str] | dict[str, str] | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> fx.GraphModule:
    """A module that returns a dict of a model's results at return_nodes, under their names or new
    ones.

    A name is that of a node (`get_graph_node_names`) or of a module, whose last node is meant. The
    model's parameters are shared. ValueError for names that are not there and for contradicting
    arguments.

    Args:
        model: the network.
        return_nodes: names of nodes, as `get_graph_node_names` gives them, or a dict from them to
            the names of the results.
        train_return_nodes, eval_return_nodes: the same for training and for evaluation, instead.
        tracer_kwargs: those of `NodePathTracer`.
        suppress_diff_warning: say nothing where the two graphs differ.
        concrete_args: arguments of `forward` that are no tensors, by name.

    For an example see `vision.models.feature_extraction.get_graph_node_names`.
    """
    given = [
        return_nodes is not None,
        train_return_nodes is not None,
        eval_return_nodes is not None,
    ]
    if not any(given):
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, "
            "should be specified"
        )
    if given[1] != given[2]:
        raise ValueError(
            "`train_return_nodes` and `eval_return_nodes` go together: both should be specified"
        )
    if given[0] == given[1]:
        raise ValueError(
            "If `train_return_nodes` and `eval_return_nodes` are specified, then both should be "
            "specified"
        )
    wanted = {
        True: _names_by_node(return_nodes or train_return_nodes),
        False: _names_by_node(return_nodes or eval_return_nodes),
    }
    graphs, names = {}, {}
    for mode in (True, False):
        tracer, graph = _trace(model, mode, tracer_kwargs, concrete_args)
        names[mode] = _names(tracer)
        graphs[mode] = _cut(tracer, graph, wanted[mode] or {})
    if return_nodes is not None and not suppress_diff_warning:
        _warn_of_differences(names[True], names[False])
    return DualGraphModule(model, graphs[True], graphs[False], type(model).__name__)
