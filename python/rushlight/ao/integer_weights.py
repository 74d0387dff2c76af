"""Weights of 4 and 8 bits for the linear layers of a network: `quantize_` and what it is told.

The names are those of the package torchao, which is found here as `torchao.quantization` under the
alias where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao._integer_weights import Blocks, IntegerWeight, Rows, wrap
from rushlight.ao.nn.quantized._weights import MOST_TERMS

__all__ = [
    "FqnToConfig",
    "Int4WeightOnlyConfig",
    "Int8DynamicActivationInt8WeightConfig",
    "Int8WeightOnlyConfig",
    "quantize_",
]


@dataclass(frozen=True)
class Int8WeightOnlyConfig:
    """Weights of 8 bits.

    The input of a layer is rounded to 8 bits in blocks, too, for sums of whole numbers.

    Args:
        group_size: inputs of a result that share a scale, a multiple of 8; None: all of them.

    Example:
        >>> from rushlight.ao import Int8WeightOnlyConfig, quantize_
        >>> layer = torch.nn.Linear(16, 4)
        >>> quantize_(layer, Int8WeightOnlyConfig())
        >>> layer(torch.ones(2, 16)).shape
        torch.Size([2, 4])
    """

    group_size: int | None = None

    def _layout(self, weight: Any) -> Any:
        inputs = weight.shape[1]
        if self.group_size is not None:
            fits = inputs % self.group_size == 0
            return Blocks.of(weight, self.group_size, 8, True) if fits else None
        block = next((n for n in (128, 64, 32, 8) if inputs % n == 0), None)
        if block is None:
            return None
        whole = Blocks.of(weight, inputs, 8, True) if inputs <= 32768 else None
        if whole is None:
            return None
        scales = whole.scales.expand(inputs // block, -1).contiguous()
        return whole._replace(scales=scales, block=block)


@dataclass(frozen=True)
class Int4WeightOnlyConfig:
    """Weights of 4 bits with a scale and a zero point for each block of inputs.

    The input of a layer is rounded to 8 bits in the same blocks, for sums of whole numbers.

    Args:
        group_size: inputs of a result that share a scale, a multiple of 8.

    Example:
        >>> from rushlight.ao import Int4WeightOnlyConfig, quantize_
        >>> layer = torch.nn.Linear(64, 4)
        >>> quantize_(layer, Int4WeightOnlyConfig(group_size=32))
        >>> layer(torch.ones(2, 64)).shape
        torch.Size([2, 4])
    """

    group_size: int = 128

    def _layout(self, weight: Any) -> Any:
        fits = weight.shape[1] % self.group_size == 0
        return Blocks.of(weight, self.group_size, 4, False) if fits else None


@dataclass(frozen=True)
class Int8DynamicActivationInt8WeightConfig:
    """Weights of 8 bits with a scale for each result; each row of an input is rounded by itself.

    For an example see `ao.Int8WeightOnlyConfig`.
    """

    def _layout(self, weight: Any) -> Any:
        return Rows.of(weight) if weight.shape[1] <= MOST_TERMS else None


@dataclass(frozen=True)
class FqnToConfig:
    """What is told for single layers.

    Args:
        fqn_to_config: by the name of a layer within the network, what becomes of its weight; None:
            it stays. "_default" is for all others.

    Example:
        >>> from rushlight.ao import FqnToConfig, Int8WeightOnlyConfig, quantize_
        >>> net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 4))
        >>> quantize_(net, FqnToConfig({"0": Int8WeightOnlyConfig(), "1": None}))
        >>> type(net[1].weight).__name__  # as it was
        'Parameter'
    """

    fqn_to_config: dict[str, Any] = field(default_factory=dict)

    def _of(self, name: str) -> Any:
        return self.fqn_to_config.get(name, self.fqn_to_config.get("_default"))


def _is_linear(module: Any, name: str) -> bool:
    return isinstance(module, nn.Linear) and not isinstance(module.weight, IntegerWeight)


def quantize_(
    model: Any,
    config: Any,
    filter_fn: Callable[[Any, str], bool] | None = None,
    device: Any = None,
) -> None:
    """Give the linear layers of a network weights of codes, in place.

    Layers whose inputs do not go into groups stay as they are, and layers that share a weight go on
    to share it. `state_dict()` has the codes, and `save` and `load` keep them.

    Args:
        model: the network.
        config: what weights become, or `FqnToConfig`.
        filter_fn: which modules, by module and name; None: all linear layers.
        device: where the network goes first.

    Raises:
        TypeError: for what is no configuration, or a chosen module without a matrix as `weight`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(64, 8))
        >>> torch.ao.quantize_(net, torch.ao.Int8WeightOnlyConfig())
        >>> net[0].weight
        IntegerWeight(8 bits in blocks of 64, size=(8, 64), dtype=torch.float32)
    """
    if device is not None:
        model.to(device)
    layers: dict[Any, list[Any]] = {}  # those that share a weight together
    for name, module in model.named_modules():
        chosen = config._of(name) if isinstance(config, FqnToConfig) else config
        if chosen is None or not (filter_fn or _is_linear)(module, name):
            continue
        if not hasattr(chosen, "_layout"):
            raise TypeError(
                f"quantize_ expects a configuration such as Int8WeightOnlyConfig(), not {chosen!r}"
            )
        weight = module._parameters.get("weight")
        if weight is None or weight.dim() != 2:
            raise TypeError(
                f"quantize_: {name or 'the network'} ({type(module).__name__}) has no matrix as "
                "its parameter 'weight'; a parametrised one needs remove_parametrizations() first"
            )
        layers.setdefault((id(weight), chosen), []).append(module)
    weight = None
    for (_, chosen), sharing in layers.items():
        made = _in_codes(sharing[0].weight, chosen)  # and the numbers go, before those of the next
        for module in sharing:
            module.weight = made


def _in_codes(weight: Any, config: Any) -> Any:
    """The parameter of codes; the weight itself where its inputs do not go into groups."""
    if isinstance(weight, IntegerWeight):
        return weight
    with rushlight.no_grad():
        layout = config._layout(weight.detach().float())
    if layout is None:
        return weight
    return nn.Parameter(wrap(layout, weight.dtype), requires_grad=False)
