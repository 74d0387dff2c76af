"""Quantisation of networks as graphs: layers and arithmetic are found in what a network computes.

Unlike `prepare` and `convert`, nothing has to be written into the network: it is traced
(`rushlight.fx`), fused, given observers, and rewritten so that layers, sums, products and `cat`
compute with codes. What has no form for codes stays in floats.
"""

from __future__ import annotations

import copy
from typing import Any

from rushlight import nn
from rushlight.ao.quantization.fx import _convert, _fuse, _prepare
from rushlight.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.fx import GraphModule

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _refuse(function: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            raise NotImplementedError(
                f"{function}: {name} is not implemented; the rules of rushlight's own layers hold"
            )


def _config(kind: Any, given: Any) -> Any:
    if given is None:
        return kind()
    return kind.from_dict(given) if isinstance(given, dict) else given


def fuse_fx(
    model: nn.Module,
    fuse_custom_config: FuseCustomConfig | dict[str, Any] | None = None,
    backend_config: Any = None,
) -> GraphModule:
    """Trace a network in evaluation mode and fuse its convolutions, batch norms and relus.

    Args:
        model: the network; it stays as it is.
        fuse_custom_config: which attributes to keep.
        backend_config: None.

    Example:
        >>> from rushlight.ao.quantization.quantize_fx import fuse_fx
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()).eval()
        >>> [n.target for n in fuse_fx(net).graph.nodes if n.op == "call_module"]
        ['0']
    """
    _refuse("fuse_fx", backend_config=backend_config)
    custom = _config(FuseCustomConfig, fuse_custom_config)
    graph = _fuse.trace(copy.deepcopy(model), (), ())
    _fuse.fuse(graph, is_qat=False)
    _fuse.keep_attributes(model, graph, custom.preserved_attributes)
    return graph


def _prepared(
    model: nn.Module, qconfig_mapping: Any, is_qat: bool, prepare_custom_config: Any
) -> GraphModule:
    custom = _config(PrepareCustomConfig, prepare_custom_config)
    mapping = _config(QConfigMapping, qconfig_mapping)
    held = copy.deepcopy(model)
    graph = _fuse.trace(
        held, custom.non_traceable_module_names, custom.non_traceable_module_classes
    )
    _fuse.fuse(graph, is_qat)
    _prepare.prepare(graph, mapping, is_qat, custom)
    _fuse.keep_attributes(held, graph, custom.preserved_attributes)
    return graph


def prepare_fx(
    model: nn.Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: Any = None,
    backend_config: Any = None,
) -> GraphModule:
    """Trace and fuse a network, and insert observers, for calibration.

    Args:
        model: the network in evaluation mode; it stays as it is.
        qconfig_mapping: which qconfig holds where, e.g. `get_default_qconfig_mapping("x86")`.
        example_inputs: inputs as forward takes them. Nothing depends on them.
        prepare_custom_config: what not to trace, inputs and outputs that are codes, attributes to
            keep.
        _equalization_config: None.
        backend_config: None.

    Returns:
        A graph with the modules of the network, to be run on data and given to `convert_fx`.

    Example:
        >>> from rushlight.ao.quantization import get_default_qconfig_mapping, quantize_fx
        >>> net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
        >>> inputs = (torch.randn(16, 8),)
        >>> prepared = quantize_fx.prepare_fx(net, get_default_qconfig_mapping(), inputs)
        >>> _ = prepared(*inputs)  # observers see what comes
        >>> quantized = quantize_fx.convert_fx(prepared)
        >>> type(quantized.get_submodule("0")).__name__
        'LinearReLU'
    """
    _refuse("prepare_fx", _equalization_config=_equalization_config, backend_config=backend_config)
    return _prepared(model, qconfig_mapping, False, prepare_custom_config)


def prepare_qat_fx(
    model: nn.Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    backend_config: Any = None,
) -> GraphModule:
    """Trace and fuse a network whose weights and results are rounded to codes while it is trained.

    Args:
        model: the network in training mode; it stays as it is.
        qconfig_mapping: e.g. `get_default_qat_qconfig_mapping("x86")`.
        example_inputs: inputs as forward takes them. Nothing depends on them.
        prepare_custom_config: as for `prepare_fx`.
        backend_config: None.

    Returns:
        A graph to be trained and given to `convert_fx`.

    Example:
        >>> from rushlight.ao.quantization import get_default_qat_qconfig_mapping, quantize_fx
        >>> net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).train()
        >>> inputs = (torch.randn(16, 8),)
        >>> net = quantize_fx.prepare_qat_fx(net, get_default_qat_qconfig_mapping(), inputs)
        >>> net(*inputs).sum().backward()
        >>> quantized = quantize_fx.convert_fx(net.eval())
    """
    _refuse("prepare_qat_fx", backend_config=backend_config)
    return _prepared(model, qconfig_mapping, True, prepare_custom_config)


def convert_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Any = None,
    backend_config: Any = None,
    keep_original_weights: bool = False,
) -> GraphModule:
    """Make a network of codes of a prepared one.

    Args:
        graph_module: what `prepare_fx` or `prepare_qat_fx` gave, after it saw data.
        convert_custom_config: which attributes to keep.
        _remove_qconfig: leave no qconfigs behind.
        qconfig_mapping: None: that of `prepare_fx` holds.
        backend_config: None.
        keep_original_weights: False.

    Returns:
        A graph that takes and gives floats. Its scales are buffers, and its state can be loaded
        into another one that was made in the same way.

    For an example see `ao.quantization.quantize_fx.prepare_fx`.
    """
    _refuse(
        "convert_fx",
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
        keep_original_weights=keep_original_weights,
    )
    if not _convert.is_prepared(graph_module):
        raise ValueError(
            f"convert_fx: expected what prepare_fx or prepare_qat_fx gives, not a "
            f"{type(graph_module).__name__} without observers"
        )
    custom = _config(ConvertCustomConfig, convert_custom_config)
    graph = _convert.convert(copy.deepcopy(graph_module), _remove_qconfig)
    _fuse.keep_attributes(graph_module, graph, custom.preserved_attributes)
    return graph
