"""Optimises networks for evaluation: folds batch norms into convolutions, removes dropouts."""

from __future__ import annotations

import collections
import copy
from typing import Any

from rushlight import nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Transformer
from rushlight.fx.node import Node
from rushlight.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_PAIRS = (
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
)


def matches_module_pattern(pattern: Any, node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node and its input call modules of these two classes.

    Args:
        pattern: the classes, of the first module and of the one after it.
        node: the node that calls the second.
        modules: the modules of the network by name.

    Example:
        >>> from rushlight.fx.experimental import optimization
        >>> net = torch.fx.symbolic_trace(
        ...     torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        ... )
        >>> *_, relu, output = net.graph.nodes
        >>> pattern = [torch.nn.Linear, torch.nn.ReLU]
        >>> optimization.matches_module_pattern(pattern, relu, dict(net.named_modules()))
        True
    """
    if not node.args or not isinstance(node.args[0], Node):
        return False
    for one, kind in zip((node.args[0], node), pattern, strict=True):
        if one.op != "call_module" or type(modules.get(one.target)) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Replace the module that a node calls.

    Args:
        node: a node that calls a module.
        modules: the modules of the network by name.
        new_module: is called from now on.

    Example:
        >>> from rushlight.fx.experimental import optimization
        >>> net = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> _, relu, _ = net.graph.nodes
        >>> optimization.replace_node_module(relu, dict(net.named_modules()), torch.nn.Tanh())
        >>> net.get_submodule("0")
        Tanh()
    """
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Fold batch norms into the convolutions before them, for evaluation.

    A convolution that is called more than once, or whose result is used elsewhere, stays as it is.

    Args:
        model: the network, in evaluation mode.
        inplace: change it instead of a copy.
        no_trace: it is a GraphModule already.

    Example:
        >>> from rushlight.fx.experimental import optimization
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
        >>> fused = optimization.fuse(net)
        >>> [node.target for node in fused.graph.nodes if node.op == "call_module"]
        ['0']
    """
    if not inplace:
        model = copy.deepcopy(model)
    keep = no_trace and isinstance(model, GraphModule)
    traced: GraphModule = model if keep else symbolic_trace(model)  # type: ignore[assignment]
    model = traced
    modules = dict(model.named_modules(remove_duplicate=False))
    calls = collections.Counter(
        id(modules[node.target]) for node in model.graph.nodes if node.op == "call_module"
    )
    for pattern in _PAIRS:
        for node in model.graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            conv, norm = modules[node.args[0].target], modules[node.target]
            shared = len(node.args[0].users) > 1 or calls[id(conv)] > 1
            if shared or not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(conv, norm))
            node.replace_all_uses_with(node.args[0])
            model.graph.erase_node(node)
    model.delete_all_unused_submodules()
    model.recompile()
    return model


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        dropout = isinstance(self.submodules[target], nn.Dropout)
        return args[0] if dropout else super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Remove the dropouts of a network, for evaluation.

    Args:
        model: the network; it stays as it is.

    Example:
        >>> from rushlight.fx.experimental import optimization
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
        >>> made = optimization.remove_dropout(net)
        >>> [node.target for node in made.graph.nodes if node.op == "call_module"]
        ['0']
    """
    return _WithoutDropout(symbolic_trace(model)).transform()
