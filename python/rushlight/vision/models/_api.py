"""Models by name, and the data of weights that others trained.

What is known of weights (address, size, classes, accuracy, transforms of their inputs) stands in
weights.json, names of classes in categories.json. A module of models makes its enumerations with
`weights_enum` and its functions with `builder`; both are found by name from here on.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, EnumMeta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rushlight._warnings import warn
from rushlight.hub import load_state_dict_from_url

from . import _texts

_ADDRESS = "https://download.pytorch.org/models/"
_BUILDERS: dict[str, Callable[..., Any]] = {}
_WEIGHTS: dict[str, Any] = {}  # by the name of the model


Model = TypeVar("Model")


@functools.cache
def _read(name: str) -> dict[str, Any]:
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


def categories(name: str) -> list[str]:
    """Names of the classes of a data set: "imagenet", "coco" …"""
    return list(_read("categories.json")[name])


@dataclass
class Weights:
    """Where weights are, what makes a model's input of an image, and what is known about them.

    Args:
        url: where the weights are.
        transforms: a function that makes what makes a model's input.
        meta: what is known: classes, how many parameters, accuracy.

    Example:
        >>> weights = torch.vision.models.ResNet18_Weights.DEFAULT.value
        >>> weights.meta["categories"][:3]
        ['tench', 'goldfish', 'great white shark']
    """

    url: str
    transforms: Callable[..., Any]
    meta: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and (self.url, self.meta) == (other.url, other.meta)


class _Members(EnumMeta):
    if TYPE_CHECKING:  # members come from weights.json, which checkers do not read

        def __getattr__(cls, name: str) -> WeightsEnum: ...


class WeightsEnum(Enum, metaclass=_Members):
    """What a model may be filled with: a member for each training; DEFAULT is the most exact.

    Each function that makes a model has one.

    Example:
        >>> [weights.name for weights in torch.vision.models.ResNet50_Weights]
        ['IMAGENET1K_V1', 'IMAGENET1K_V2']
    """

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """`obj`, or the member of that name; None stays None. TypeError for weights of another
        model.
        """
        if isinstance(obj, str):
            obj = cls[obj.replace(cls.__name__ + ".", "")]
        elif obj is not None and not isinstance(obj, cls):
            raise TypeError(
                f"Invalid Weight class provided; expected {cls.__name__} but received "
                f"{type(obj).__name__}."
            )
        return obj

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The weights, downloaded unless they are there; arguments of
        `hub.load_state_dict_from_url`.
        """
        return dict(load_state_dict_from_url(self.url, *args, **kwargs))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    @property
    def url(self) -> str:
        """Where the file of weights is."""
        return self.value.url

    @property
    def transforms(self) -> Callable[..., Any]:
        """What prepares an image for the network: call it to make it."""
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of the weights: classes, the number of parameters, accuracy."""
        return self.value.meta


def _preset(name: str, **settings: Any) -> Any:
    presets = importlib.import_module("rushlight.vision.transforms._presets")
    modes = importlib.import_module("rushlight.vision.transforms.functional").InterpolationMode
    if "interpolation" in settings:
        settings["interpolation"] = modes(settings["interpolation"])
    return getattr(presets, name)(**settings)


def _weights(entry: dict[str, Any]) -> Weights:
    name, settings = entry["transforms"]
    meta = dict(entry["meta"])
    for key in ("categories", "keypoint_names"):
        if isinstance(meta.get(key), str):
            meta[key] = categories(meta[key])
    if "min_size" in meta:
        meta["min_size"] = tuple(meta["min_size"])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return Weights(entry["url"], functools.partial(_preset, name, **settings), meta)


def weights_enum(name: str, module: str) -> type[WeightsEnum]:
    """The enumeration of this name in weights.json, for the module that it is made in."""
    members: dict[str, Weights] = {}
    entries = _read("weights.json")[name]
    for member, entry in entries.items():
        members[member] = members[entry] if isinstance(entry, str) else _weights(entry)
    made = cast("Any", WeightsEnum)(name, list(members.items()), module=module)
    made.__doc__ = _texts.of_weights(name, module, entries)
    return made


def overwrite(kwargs: dict[str, Any], param: str, new_value: Any) -> None:
    """Sets an argument that weights decide; ValueError if the caller wants another."""
    if param in kwargs and kwargs[param] != new_value:
        raise ValueError(
            f"The parameter '{param}' expected value {new_value} but got {kwargs[param]} instead."
        )
    kwargs[param] = new_value


def _legacy(weights: type[WeightsEnum] | None, args: tuple, kwargs: dict[str, Any]) -> None:
    """Arguments as they were given before there were enumerations of weights."""
    if args:
        warn("Weights and progress are keyword arguments; by position they are deprecated.")
        kwargs.update(zip(("weights", "progress"), args, strict=False))
    if "pretrained" in kwargs or isinstance(kwargs.get("weights"), bool):
        wanted = kwargs.pop("pretrained", None)
        wanted = kwargs.get("weights") if wanted is None else wanted
        warn("The parameter 'pretrained' is deprecated, please use 'weights' instead.")
        kwargs["weights"] = next(iter(weights)) if wanted and weights is not None else None


def _argument_names(make: Callable[..., Any], after: int) -> list[str]:
    """Names of the arguments, but for the first, of a function that puts a model on a backbone.

    Its arguments by name alone are for its builder's `prepare`.
    """
    listed = list(inspect.signature(make).parameters.values())[after:]
    names = [p.name for p in listed if p.kind is p.POSITIONAL_OR_KEYWORD]
    return names if "weights_backbone" in names else []


def _made_by(make: Callable[..., Any], settings: tuple[Any, ...]) -> str:
    """The name of the class of models: `make` itself, what it returns, or its first argument."""
    made = make if isinstance(make, type) else inspect.signature(make).return_annotation
    return (settings[0] if made is Any else made).__name__


def builder(
    name: str,
    weights: Any,
    make: Callable[..., Model],
    *settings: Any,
    module: str,
    prepare: Callable[[Any, dict[str, Any]], Callable[[Any], None] | None] | None = None,
    load: Callable[[Any, dict[str, Any]], None] | None = None,
    classes: bool = True,
    backbone: WeightsEnum | None = None,
    shown: str = "",
) -> Callable[..., Model]:
    """The function that makes a model of this name, registered for `get_model`.

    It calls make(*settings, **kwargs). backbone: the weights_backbone where the caller says none,
    if make has such an argument. shown: arguments of the docstring's example. Where weights are
    asked for, their classes decide num_classes unless `classes` is False, `load` puts the loaded
    dict into the model, and `prepare` sees weights and arguments before; what it returns is called
    with the model at last.
    """

    named = _argument_names(make, len(settings))

    def build(*args: Any, weights: Any = None, progress: bool = True, **kwargs: Any) -> Any:
        given = {"weights": weights, "progress": progress, **kwargs}
        _legacy(build.weights, args, given)
        chosen, progress = given.pop("weights"), given.pop("progress")
        chosen = build.weights.verify(chosen) if build.weights is not None else chosen
        given = {**({"weights_backbone": backbone} if "weights_backbone" in named else {}), **given}
        if chosen is not None and classes:
            overwrite(given, "num_classes", len(chosen.meta["categories"]))
        finish = prepare(chosen, given) if prepare is not None else None
        model = make(*settings, **given)
        if chosen is not None:
            state = chosen.get_state_dict(progress=progress, check_hash=True)
            (load or (lambda m, s: m.load_state_dict(s)))(model, state)
        if finish is not None:
            finish(model)
        return model

    build.__name__ = build.__qualname__ = name
    build.__module__ = module
    arguments = ["weights", "progress", *named, "kwargs"]
    build.__doc__ = _texts.of_builder(
        name, module, weights, _made_by(make, settings), arguments, shown
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    build.__signature__ = inspect.Signature(
        [
            inspect.Parameter("weights", keyword, default=None, annotation=weights),
            inspect.Parameter("progress", keyword, default=True, annotation=bool),
            *(
                inspect.Parameter(n, keyword, default=backbone if n == "weights_backbone" else None)
                for n in named
            ),
            inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation=Any),
        ]
    )
    return register(name, build, weights)


# What a module of models makes: an enumeration, and the function that makes the model.
Made = tuple[type[WeightsEnum], Callable[..., Model]]


def register(name: str, build: Any, weights: Any) -> Any:
    """Makes a function, returned as it is, and its weights found by the name of its model."""
    build.weights = weights
    _BUILDERS[name], _WEIGHTS[name] = build, weights
    return build


def register_model(name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function found by `get_model`, by its own name or the one that is
    given.

    Args:
        name: the name to find it by; None: that of the function.

    Raises:
        ValueError: the name is taken.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        key = name if name is not None else function.__name__
        if key in _BUILDERS:
            raise ValueError(f"An entry is already registered under the name '{key}'.")
        _BUILDERS[key] = function
        return function

    return register


def list_models(
    module: ModuleType | None = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """Sorted names of all models, or of those of a module; include and exclude are shell
    patterns.

    Args:
        module: of which models are listed; None: of all.
        include: a pattern of names that are listed, as "resnet*", or several.
        exclude: a pattern of names that are not.

    Example:
        >>> torch.vision.models.list_models(include="resnet*", exclude="*5*")
        ['resnet101', 'resnet18', 'resnet34']
    """

    def matches(name: str, patterns: Iterable[str] | str) -> bool:
        listed = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch.fnmatch(name, pattern) for pattern in listed)

    names = [
        n
        for n, f in _BUILDERS.items()
        if module is None or f.__module__.rpartition(".")[0] == module.__name__
    ]
    if include:
        names = [n for n in names if matches(n, include)]
    if exclude:
        names = [n for n in names if not matches(n, exclude)]
    return sorted(names)


def get_model_builder(name: str) -> Callable[..., Any]:
    """The function that makes the model of this name; ValueError if there is none.

    Args:
        name: the model's name, in upper or lower case.

    Example:
        >>> torch.vision.models.get_model_builder("AlexNet").__name__
        'alexnet'
    """
    found = _BUILDERS.get(name.lower())
    if found is None:
        raise ValueError(f"Unknown model {name}")
    return found


def get_model(name: str, **config: Any) -> Any:
    """The model of this name, made with these arguments.

    Args:
        name: the model's name, in upper or lower case.
        config: arguments of its function.

    Raises:
        ValueError: there is no such model.

    Example:
        >>> net = torch.vision.models.get_model("squeezenet1_1", num_classes=4)
        >>> type(net).__name__
        'SqueezeNet'
    """
    return get_model_builder(name)(**config)


def get_model_weights(name: Callable[..., Any] | str) -> type[WeightsEnum]:
    """The enumeration of weights of a model, by its name or by its function.

    Args:
        name: the model's name or function.

    Raises:
        ValueError: there is no such model, or it has no weights.

    Example:
        >>> list(torch.vision.models.get_model_weights("resnet50"))
        [ResNet50_Weights.IMAGENET1K_V1, ResNet50_Weights.IMAGENET1K_V2]
    """
    function = get_model_builder(name) if isinstance(name, str) else name
    said = getattr(function, "weights", None)
    if said is None:
        parameter = inspect.signature(function).parameters.get("weights")
        choices = getattr(
            parameter and parameter.annotation, "__args__", [parameter and parameter.annotation]
        )
        said = next(
            (c for c in choices if isinstance(c, type) and issubclass(c, WeightsEnum)), None
        )
    if said is None:
        raise ValueError(
            "The weights of this function cannot be found: it names no WeightsEnum for `weights`."
        )
    return said


def get_weight(name: str) -> WeightsEnum:
    """The weights of a full name as "ResNet50_Weights.IMAGENET1K_V2"; ValueError if there are
    none.

    Args:
        name: the full name of the weights.

    Example:
        >>> torch.vision.models.get_weight("ResNet50_Weights.IMAGENET1K_V2").meta["num_params"]
        25557032
    """
    enum_name, dot, member = name.partition(".")
    if not dot:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    found = next((w for w in _WEIGHTS.values() if w is not None and w.__name__ == enum_name), None)
    if found is None:
        raise ValueError(
            f"The weight enum '{enum_name}' for the specific method couldn't be retrieved."
        )
    return found[member]
