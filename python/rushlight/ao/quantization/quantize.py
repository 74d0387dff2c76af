"""Quantisation of networks of modules: prepare, calibrate or train, convert."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import rushlight
from rushlight import nn
from rushlight._warnings import warn
from rushlight.ao.nn import intrinsic
from rushlight.ao.quantization import quantization_mappings as mappings
from rushlight.ao.quantization.observer import ObserverBase
from rushlight.ao.quantization.qconfig import default_dynamic_qconfig
from rushlight.ao.quantization.stubs import DeQuantStub, QuantWrapper

__all__ = [
    "add_quant_dequant",
    "convert",
    "default_eval_fn",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]


def default_eval_fn(model: nn.Module, calib_data: Iterable[Any]):
    """Run a network on pairs of inputs and targets.

    Args:
        model: the network.
        calib_data: an iterable of pairs (input, target); targets are not looked at.

    Example:
        >>> from rushlight.ao import quantization
        >>> quantization.default_eval_fn(torch.nn.Linear(4, 2), [(torch.ones(1, 4), None)])
    """
    for data, _ in calib_data:
        model(data)


# ---- which qconfig holds where ----


def _propagate(module: Any, by_name: dict[Any, Any], given: Any, prefix: str, custom: Any) -> None:
    qconfig = by_name.get(type(module), given)
    qconfig = by_name.get(prefix, qconfig)
    qconfig = getattr(module, "qconfig", qconfig)
    module.qconfig = qconfig
    unquantised = tuple((custom or {}).get("non_traceable_module_class", ()))
    for name, child in module.named_children():
        if not isinstance(child, unquantised):
            _propagate(child, by_name, qconfig, f"{prefix}.{name}" if prefix else name, custom)


def propagate_qconfig_(
    module: nn.Module,
    qconfig_dict: dict[Any, Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
):
    """Give each module its qconfig: its own, else that of its name or class, else its parent's.

    Args:
        module: the network, changed in place.
        qconfig_dict: qconfigs by names and classes; "" is the network's.
        prepare_custom_config_dict: `non_traceable_module_class`, classes that are left alone.

    Example:
        >>> from rushlight.ao import quantization
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2))
        >>> net.qconfig = quantization.get_default_qconfig()
        >>> quantization.propagate_qconfig_(net)
        >>> net[0].qconfig is net.qconfig
        True
    """
    by_name = qconfig_dict or {}
    _propagate(module, by_name, by_name.get(""), "", prepare_custom_config_dict)


# ---- observers ----


def _observe_result(module: Any, inputs: Any, output: Any) -> Any:
    return module.activation_post_process(output)


def _add_observers(module: Any, kinds: Any, custom: dict[Any, Any]) -> None:
    device = next(iter({p.device for p in module.parameters()}), None)

    def insert(child: Any) -> None:
        qconfig = getattr(child, "qconfig", None)
        if qconfig is None or hasattr(child, "activation_post_process"):
            return
        made = qconfig.activation()
        child.add_module("activation_post_process", made if device is None else made.to(device))
        child.register_forward_hook(_observe_result, prepend=True)

    for name, child in module.named_children():
        if type(child) in (nn.Dropout, DeQuantStub):
            continue
        if hasattr(type(child), "add_relu"):  # functions as a module
            if getattr(child, "qconfig", None):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, intrinsic.modules._FusedModule):
            insert(child)
        elif type(child) in custom:
            setattr(module, name, custom[type(child)].from_float(child))
        elif type(child) in kinds:
            insert(child)
        else:
            _add_observers(child, kinds, custom)
    if not list(module.children()) and type(module) in kinds:
        insert(module)


def prepare(
    model: nn.Module,
    inplace: bool = False,
    allow_list: Iterable[Any] | None = None,
    observer_non_leaf_module_list: Sequence[Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> nn.Module:
    """Insert observers into a network, for calibration.

    Args:
        model: a network in evaluation whose `qconfig`, or those of its parts, say how.
        inplace: change the network itself.
        allow_list: the classes of modules that are observed.
        observer_non_leaf_module_list: further ones.
        prepare_custom_config_dict: `float_to_observed_custom_module_class` and
            `non_traceable_module_class`.

    For an example see `ao.quantization.quantize`.
    """
    custom = (prepare_custom_config_dict or {}).get("float_to_observed_custom_module_class", {})
    if not inplace:
        model = copy.deepcopy(model)
    kinds = allow_list
    if kinds is None:
        kinds = mappings.get_default_qconfig_propagation_list()
    kinds = {*kinds, *(observer_non_leaf_module_list or ())}
    propagate_qconfig_(model, None, prepare_custom_config_dict)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warn(
            "None of the submodule got qconfig applied, so nothing will be quantized: set "
            "`qconfig` of the network or of its parts before preparing it",
        )
    _add_observers(model, kinds, custom)
    return model


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Wrap each module that has a qconfig and no children in a `QuantWrapper`.

    Args:
        module: the network; it is changed, but for what is wrapped itself.

    Returns:
        the network, or the wrapper of it.

    Example:
        >>> from rushlight.ao import quantization
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2))
        >>> net[0].qconfig = quantization.get_default_qconfig()
        >>> type(quantization.add_quant_dequant(net)[0]).__name__
        'QuantWrapper'
    """
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


# ---- modules that take others' places ----


def swap_module(
    mod: nn.Module,
    mapping: dict[Any, Any],
    custom_module_class_mapping: dict[Any, Any],
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """Make the quantised module for this one; return the module itself if there is none.

    Args:
        mod: the module.
        mapping: a dict from classes of modules to the classes that replace them.
        custom_module_class_mapping: the same for modules that observe themselves.
        use_precomputed_fake_quant: take over fake quantisations that the module has.

    For an example see `ao.quantization.quantize`.
    """
    kind = type(mod)
    if getattr(mod, "qconfig", None) is None:
        return mod
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        takes = inspect.signature(mapping[kind].from_float).parameters
        keep = "use_precomputed_fake_quant" in takes
        extra = {"use_precomputed_fake_quant": use_precomputed_fake_quant} if keep else {}
        made = mapping[kind].from_float(mod, **extra)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observe_result:
            made.register_forward_hook(hook)
    device = next(iter({p.device for p in mod.parameters()}), None)
    if device is not None and device.type != "cpu":
        made.to(device)
    return made


def _swap_all(module: Any, mapping: Any, custom: Any, keep: bool) -> None:
    new = {}
    for name, child in module.named_children():
        if not isinstance(child, intrinsic.modules._FusedModule) and type(child) not in custom:
            _swap_all(child, mapping, custom, keep)
        new[name] = swap_module(child, mapping, custom, keep)
    for name, child in new.items():
        module._modules[name] = child


def _without_qconfig(module: Any) -> None:
    for part in module.modules():
        if hasattr(part, "qconfig"):
            del part.qconfig
        for name, child in list(part._modules.items()):
            if name == "activation_post_process" and isinstance(child, ObserverBase):
                del part._modules[name]
                _drop_hooks(part)


def _drop_hooks(module: Any) -> None:
    for key, hook in list(module._forward_hooks.items()):
        if hook is _observe_result:
            module._forward_hooks.pop(key)


def convert(
    module: nn.Module,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """Replace observed or trained modules of a network by quantised ones.

    Args:
        module: what `prepare` or `prepare_qat` gave.
        mapping: a dict from classes of modules to the classes that replace them.
        inplace: change the network itself.
        remove_qconfig: leave no qconfigs behind.
        is_reference: True raises, because there are no reference modules.
        convert_custom_config_dict: `observed_to_quantized_custom_module_class`.
        use_precomputed_fake_quant: take over fake quantisations that modules have.

    For an example see `ao.quantization.quantize`.
    """
    if is_reference:
        raise NotImplementedError("convert(): there are no reference modules")
    custom = (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class", {})
    if not inplace:
        module = copy.deepcopy(module)
    chosen = mappings.get_default_static_quant_module_mappings() if mapping is None else mapping
    _swap_all(module, chosen, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _without_qconfig(module)
    return module


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Prepare a network, run it on data by `run_fn(model, *run_args)`, and convert it.

    Args:
        model: a network in evaluation with a `qconfig`.
        run_fn: called as `run_fn(model, *run_args)`: runs the network on data like that of later.
        run_args: the further arguments of `run_fn`.
        mapping: a dict from classes of modules to the classes that replace them.
        inplace: change the network itself.

    Returns:
        the quantised network.

    Example:
        >>> from rushlight import nn
        >>> from rushlight.ao import quantization
        >>> net = quantization.QuantWrapper(nn.Sequential(nn.Linear(4, 2), nn.ReLU())).eval()
        >>> net.qconfig = quantization.get_default_qconfig()
        >>> data = torch.randn(16, 4)
        >>> quantised = quantization.quantize(net, lambda model, x: model(x), [data])
        >>> type(quantised.module[0]).__module__
        'rushlight.ao.nn.quantized.modules'
        >>> (quantised(data) - net(data)).abs().max().item() < 0.1
        True
    """
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


def quantize_dynamic(
    model: nn.Module,
    qconfig_spec: Any = None,
    dtype: rushlight.dtype = rushlight.qint8,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> nn.Module:
    """Quantise the weights of a network's linear and recurrent layers.

    Args:
        model: the network.
        qconfig_spec: classes or names of modules, or a dict from them to qconfigs.
        dtype: the dtype of the weights, `qint8`.
        mapping: a dict from classes of modules to the classes that replace them.
        inplace: change the network itself.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2))
        >>> quantised = torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear})
        >>> type(quantised[0]).__module__
        'rushlight.ao.nn.quantized.dynamic.modules'
    """
    if qconfig_spec is None or isinstance(qconfig_spec, set | frozenset | list | tuple):
        if dtype != rushlight.qint8:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}: only qint8 has "
                "some, so pass a qconfig for each class or name"
            )
        kinds = qconfig_spec
        if kinds is None:
            kinds = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
        qconfig_spec = dict.fromkeys(kinds, default_dynamic_qconfig)
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    chosen = mappings.get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    return convert(model, chosen, inplace=True)


# ---- training ----


def prepare_qat(
    model: nn.Module, mapping: dict[Any, Any] | None = None, inplace: bool = False
) -> nn.Module:
    """Prepare a network for quantisation-aware training: weights and results are rounded to codes.

    Args:
        model: the network, in training, with a `qconfig` of fake quantisations.
        mapping: from classes of modules to those with rounded weights.
        inplace: change the network itself.

    Example:
        >>> from rushlight import nn
        >>> from rushlight.ao import quantization
        >>> net = quantization.QuantWrapper(nn.Linear(4, 2)).train()
        >>> net.qconfig = quantization.get_default_qat_qconfig()
        >>> prepared = quantization.prepare_qat(net)
        >>> prepared(torch.randn(8, 4)).sum().backward()  # and so on: it is trained
        >>> type(quantization.convert(prepared.eval()).module).__module__
        'rushlight.ao.nn.quantized.modules'
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    if mapping is None:
        mapping = mappings.get_default_qat_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    kinds = {*mappings.get_default_qconfig_propagation_list(), *mapping.values()}
    _add_observers(model, kinds, {})
    return model


def quantize_qat(
    model: nn.Module, run_fn: Callable[..., Any], run_args: Any, inplace: bool = False
) -> nn.Module:
    """Prepare a network, train it by `run_fn(model, *run_args)`, and convert it.

    Args:
        model: a network in training with a `qconfig` of fake quantisations; see
            `get_default_qat_qconfig`.
        run_fn: called as `run_fn(model, *run_args)`: trains the network.
        run_args: the further arguments of `run_fn`.
        inplace: change the network itself.

    Returns:
        the quantised network.

    For an example see `ao.quantization.prepare_qat`.
    """
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model
