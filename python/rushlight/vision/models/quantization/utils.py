"""What networks under the names of quantised forms share: they compute in floats, take the float
forms' weights, and merge normalisations into convolutions.
"""

from itertools import pairwise
from typing import Any

from rushlight import nn
from rushlight.nn.utils.fusion import fuse_conv_bn_eval

from .._api import Made, get_model_builder, get_weight, register, weights_enum

__all__: list[str] = []


def fuse_convolutions(model: nn.Module) -> None:
    """Fold each batch norm into the convolution before it, and replace it by an Identity.

    RuntimeError in training, where both still change.
    """
    if model.training:
        raise RuntimeError("fuse_model wants a model in evaluation: call eval() before")
    for module in list(model.modules()):
        children = list(module.named_children())
        for (first, conv), (second, norm) in pairwise(children):
            fits = isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
            if fits and conv.out_channels == norm.num_features:
                setattr(module, first, fuse_conv_bn_eval(conv, norm))
                setattr(module, second, nn.Identity())


class Quantizable(nn.Module):
    """A module with `fuse_model`."""

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Run `fuse_convolutions`; NotImplementedError for quantisation-aware training."""
        if is_qat:
            raise NotImplementedError("training that knows of quantisation is not supported")
        fuse_convolutions(self)


def make(title: str, kinds: dict[type, type], module: str) -> Made[Quantizable]:
    """Weights and the function of a network: the plain one with modules of `kinds`."""
    weights = weights_enum(f"{title}_QuantizedWeights", module)
    for member in weights:
        member.meta["unquantized"] = get_weight(member.meta["unquantized"])
    name = title.lower()
    plain = get_model_builder(name)

    def build(
        *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
    ) -> Any:
        if quantize:
            raise NotImplementedError(
                f"{name}: quantised arithmetic is not supported; quantize=False gives floats"
            )
        model = plain(weights=weights, progress=progress, **kwargs)
        for part in model.modules():
            part.__class__ = kinds.get(type(part), type(part))  # which adds functions alone
        return model

    build.__name__ = build.__qualname__ = name
    build.__module__ = module
    build.__doc__ = f"""{title} of modules that can be fused and quantised, as floats.

Args:
    weights: those of quantised or of float networks, or None for random numbers.
    progress: whether downloads show how far they are.
    quantize: True raises.
    kwargs: those of `vision.models.{name}`.

Raises:
    NotImplementedError: with `quantize`, since there is no quantised form.

Example:
    >>> from rushlight.vision.models import quantization
    >>> hasattr(quantization.{name}(weights=None), "fuse_model")
    True
"""
    return weights, register(f"quantized_{name}", build, weights)
