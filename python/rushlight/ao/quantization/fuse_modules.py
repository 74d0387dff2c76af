"""Fusion of consecutive modules: convolution, batch norm and relu become one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import nn
from rushlight.ao.nn import intrinsic
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_known_modules",
    "fuse_linear_bn",
    "fuse_modules",
    "fuse_modules_qat",
    "get_fuser_method",
]

_CONVS = {
    nn.Conv1d: (intrinsic.ConvBn1d, intrinsic.ConvBnReLU1d, intrinsic.ConvReLU1d),
    nn.Conv2d: (intrinsic.ConvBn2d, intrinsic.ConvBnReLU2d, intrinsic.ConvReLU2d),
    nn.Conv3d: (intrinsic.ConvBn3d, intrinsic.ConvBnReLU3d, intrinsic.ConvReLU3d),
}
_NORMS = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}


def _check(is_qat: bool, layer: Any, norm: Any) -> None:
    if layer.training != norm.training:
        raise AssertionError(
            "Conv and BN both must be in the same mode, but only one of them trains"
        )
    if is_qat and norm.num_features != getattr(layer, "out_channels", norm.num_features):
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d.")
    if is_qat and not (norm.affine and norm.track_running_stats):
        raise AssertionError("Only support fusing BatchNorm2d with affine and tracked statistics")


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """Fold a batch norm into its convolution; for training (`is_qat`) return both as one module.

    Args:
        is_qat: whether the network is trained further.
        conv: a convolution.
        bn: the batch norm behind it.

    Raises:
        ValueError: one is in training and the other is not.

    Example:
        >>> from rushlight import nn
        >>> conv, bn = nn.Conv2d(3, 8, 3).eval(), nn.BatchNorm2d(8).eval()
        >>> fused = torch.ao.quantization.fuse_conv_bn(False, conv, bn)
        >>> x = torch.randn(1, 3, 8, 8)
        >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-5)
        True
    """
    _check(is_qat, conv, bn)
    return _CONVS[type(conv)][0](conv, bn) if is_qat else fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """Fuse a convolution, its batch norm and relu into one module.

    Args:
        is_qat: whether the network is trained further.
        conv: a convolution.
        bn: the batch norm behind it.
        relu: the `nn.ReLU` behind that.

    For an example see `ao.quantization.fuse_conv_bn`.
    """
    _check(is_qat, conv, bn)
    _, three, two = _CONVS[type(conv)]
    return three(conv, bn, relu) if is_qat else two(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """Fold a batch norm into its linear layer; for training return both as one module.

    Args:
        is_qat: whether the network is trained further.
        linear: a linear layer.
        bn: the batch norm behind it.

    For an example see `ao.quantization.fuse_conv_bn`.
    """
    _check(is_qat, linear, bn)
    return intrinsic.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def _one_behind_other(kind: type):
    def fuse(is_qat, *modules):
        """Modules as one."""
        return kind(*modules)

    return fuse


_METHODS: dict[Any, Any] = {
    (nn.Linear, nn.ReLU): _one_behind_other(intrinsic.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _one_behind_other(intrinsic.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _one_behind_other(intrinsic.BNReLU3d),
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
}
for _conv, _norm in _NORMS.items():
    _METHODS[_conv, _norm] = fuse_conv_bn
    _METHODS[_conv, _norm, nn.ReLU] = fuse_conv_bn_relu
    _METHODS[_conv, nn.ReLU] = _one_behind_other(_CONVS[_conv][2])


def get_fuser_method(
    op_list: tuple[Any, ...], additional_fuser_method_mapping: dict[Any, Any] | None = None
) -> Callable[..., nn.Module]:
    """The function that fuses modules of these classes.

    Args:
        op_list: a tuple of classes of modules.
        additional_fuser_method_mapping: a dict from further tuples to functions.

    Raises:
        NotImplementedError: none is known.

    Example:
        >>> from rushlight import nn
        >>> torch.ao.quantization.get_fuser_method((nn.Conv2d, nn.BatchNorm2d)).__name__
        'fuse_conv_bn'
    """
    method = {**_METHODS, **(additional_fuser_method_mapping or {})}.get(tuple(op_list))
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return method


def _move_hooks(hooks: dict[int, Any], register: Any) -> None:
    while hooks:
        register(hooks.pop(next(iter(hooks))))


def fuse_known_modules(
    mod_list: Sequence[nn.Module],
    is_qat: bool,
    additional_fuser_method_mapping: dict[Any, Any] | None = None,
) -> list[nn.Module]:
    """Fuse modules; returns the fused module, and identities to replace the others.

    Hooks before the first and behind the last come along.

    Args:
        mod_list: modules in the order in which they run.
        is_qat: whether the network is trained further.
        additional_fuser_method_mapping: a dict from tuples of classes to functions `(is_qat,
            *modules)`.

    Example:
        >>> from rushlight import nn
        >>> modules = [nn.Conv2d(3, 8, 3).eval(), nn.ReLU().eval()]
        >>> [type(m).__name__ for m in torch.ao.quantization.fuse_known_modules(modules, False)]
        ['ConvReLU2d', 'Identity']
    """
    method = get_fuser_method(tuple(type(m) for m in mod_list), additional_fuser_method_mapping)
    fused = method(is_qat, *mod_list)
    first, *others = mod_list
    _move_hooks(first._forward_pre_hooks, fused.register_forward_pre_hook)
    _move_hooks(mod_list[-1]._forward_hooks, fused.register_forward_hook)
    return [fused, *(nn.Identity().train(first.training) for _ in others)]


def _fuse(model, modules_to_fuse, is_qat, inplace, fuser_func, custom):
    if not inplace:
        model = copy.deepcopy(model)
    extra = (custom or {}).get("additional_fuser_method_mapping", {})
    groups = [modules_to_fuse] if isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in groups:
        modules = [model.get_submodule(name) for name in names]
        for name, module in zip(names, fuser_func(modules, is_qat, extra), strict=True):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, module)
    return model


def fuse_modules(
    model,
    modules_to_fuse,
    inplace=False,
    fuser_func=fuse_known_modules,
    fuse_custom_config_dict=None,
):
    """Fuse consecutive modules of a network in evaluation mode.

    Args:
        model: the network.
        modules_to_fuse: names of modules in the order in which they run, or lists of them.
        inplace: change the network itself.
        fuser_func: makes new modules of a list of modules.
        fuse_custom_config_dict: `additional_fuser_method_mapping` of further functions.

    Example:
        >>> from rushlight import nn
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
        >>> fused = torch.ao.quantization.fuse_modules(net, ["0", "1", "2"])
        >>> [type(m).__name__ for m in fused]
        ['ConvReLU2d', 'Identity', 'Identity']
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: nn.Module,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> nn.Module:
    """Fuse consecutive modules of a network in training mode: batch norms stay.

    It has the arguments of `fuse_modules`.

    For an example see `ao.quantization.fuse_modules`.
    """
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
