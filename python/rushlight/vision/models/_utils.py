"""What architectures share: rounded channels, initial weights, and the maps in the middle of a
model; and what functions that make models in torchvision's manner use.
"""

import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn
from rushlight._warnings import warn

from ._api import WeightsEnum
from ._api import overwrite as _ovewrite_named_param  # noqa: F401  # torchvision's name


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of divisor nearest to v, at least min_value (divisor), not more than a tenth
    below v.
    """
    least = divisor if min_value is None else min_value
    nearest = max(least, int(v + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * v else nearest


_NORMS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm)


def he_normal(weight: Tensor) -> None:
    """Normal numbers whose variance is 2 over what an input reaches."""
    nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")


def normal(std: float) -> Callable[[Tensor], object]:
    """Normal numbers around 0."""
    return lambda weight: nn.init.normal_(weight, 0, std)


def trunc_normal(std: float) -> Callable[[Tensor], object]:
    """Normal numbers around 0, between -2 and 2."""
    return lambda weight: nn.init.trunc_normal_(weight, std=std)


def init_layers(
    model: nn.Module,
    conv: Callable[[Tensor], object] | None = he_normal,
    linear: Callable[[Tensor], object] | None = None,
    conv_bias: bool = True,
) -> None:
    """Draws weights of layers in order and sets biases to 0, weights of normalisations to 1.

    conv_bias: whether biases of convolutions are set, too.
    """
    for m in model.modules():
        if isinstance(m, nn.modules.conv._ConvNd):
            draw = conv
        elif isinstance(m, nn.Linear):
            draw = linear
        elif isinstance(m, _NORMS) and m.weight is not None:
            draw = nn.init.ones_
        else:
            continue
        if draw is not None:
            draw(m.weight)
            if m.bias is not None and (conv_bias or not isinstance(m, nn.modules.conv._ConvNd)):
                nn.init.zeros_(m.bias)


def init_perceptron(model: nn.Module) -> None:
    """Draws weights of linear layers by what they connect, and biases close to 0."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=1e-6)


class IntermediateLayerGetter(nn.ModuleDict):
    """The first children of a model, up to the last that is wanted; results of those in
    return_layers, by new names.
    """

    _version = 2

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        wanted = {str(k): str(v) for k, v in return_layers.items()}
        names = [name for name, _ in model.named_children()]
        if not set(wanted).issubset(names):
            raise ValueError("return_layers are not present in model")
        last = max((names.index(name) for name in wanted), default=len(names) - 1)
        super().__init__(OrderedDict((n, m) for n, m in list(model.named_children())[: last + 1]))
        self.return_layers = wanted

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        out = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


def depth_rates(most: float, count: int) -> list[float]:
    """Probabilities of dropping each of `count` blocks: from 0 to `most`, the last."""
    return [most * i / max(count - 1.0, 1.0) for i in range(count)]


def init_by_fan_out(weight: Tensor) -> None:
    """Uniform numbers within one over the root of the outputs."""
    reach = 1.0 / math.sqrt(weight.shape[0])
    nn.init.uniform_(weight, -reach, reach)


def _ovewrite_value_param(param: str, actual: Any, expected: Any) -> Any:
    """`expected`, unless the caller has said something else: ValueError."""
    if actual is not None and actual != expected:
        raise ValueError(
            f"The parameter '{param}' expected value {expected} but got {actual} instead."
        )
    return expected


def kwonly_to_pos_or_kw(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Lets arguments by name alone be given by position, too, with a warning; TypeError if a
    function has none.
    """
    parameters = inspect.signature(fn).parameters.values()
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if not named:
        raise TypeError(f"Found no keyword-only parameter on function '{fn.__name__}'")
    before = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(named, args[len(before) :], strict=False))
        if given:
            warn(f"{' and '.join(given)} by position are deprecated for {fn.__name__}; name them.")
        return fn(*args[: len(before)], **{**kwargs, **given})

    return inner


def handle_legacy_interface(**weights: tuple[str, Any]) -> Callable[..., Any]:
    """A decorator of functions that make models: takes what was said before there were
    enumerations of weights.

    By argument of the function: the name that it had (`pretrained`), and the weights that True
    stands for, or a function of the arguments that gives them.
    """

    def outer(build: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(build).parameters)

        @functools.wraps(build)
        def inner(*args: Any, **kwargs: Any) -> Any:
            if args:
                warn(f"Arguments by position are deprecated for {build.__name__}; name them.")
                kwargs.update(zip(names, args, strict=False))
            for new, (old, default) in weights.items():
                said = kwargs.get(new)
                modern = said is None or isinstance(said, WeightsEnum | str)
                if modern and (new in kwargs or old not in kwargs) and said != "legacy":
                    continue
                wanted = kwargs.pop(old, False) if modern else said
                chosen = (default(kwargs) if callable(default) else default) if wanted else None
                if wanted and not isinstance(chosen, WeightsEnum):
                    raise ValueError(f"No weights available for model {build.__name__}")
                warn(f"The parameter '{old}' is deprecated, please use '{new}={chosen}' instead.")
                kwargs[new] = chosen
            return build(**kwargs)

        return inner

    return outer
