"""Which sizes of the inputs stay open: `Dim`, and what says so of all arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any

from rushlight import Tensor, nn
from rushlight._dynamo.exc import UserError
from rushlight.export._sizes import int_oo
from rushlight.fx.experimental.symbolic_shapes import ConstraintViolationError
from rushlight.utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHint:
    """How a size is to be taken that has no name: AUTO, DYNAMIC or STATIC."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """The same with a range."""
        if self.kind == "STATIC":
            raise TypeError("Dim.STATIC has no range")
        if (min is not None and min < 0) or (max is not None and max < (min or 0)):
            raise AssertionError(f"Dim.{self.kind}: there is no size from {min} to {max}")
        return _DimHint(self.kind, min, max)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DimHint) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.min, self.max))

    def __repr__(self) -> str:
        said = [
            f"{name}={v}" for name, v in (("min", self.min), ("max", self.max)) if v is not None
        ]
        return f"DimHint({', '.join([self.kind, *said])})"


class Dim:
    """A size with a name, which stays open; the same name is the same size everywhere.

    `2 * dim + 1` is a size that depends on it. `Dim.DYNAMIC` is an open size without a name,
    `Dim.AUTO` one that stays open if the program allows it, `Dim.STATIC` one that is fixed.

    Args:
        name: an identifier.
        min: the least that it can be, 0 by default.
        max: the most that it can be.

    Example:
        >>> batch = torch.export.Dim("batch", min=2, max=64)
        >>> 2 * batch + 1
        2*batch + 1
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    # `root` times `scale` plus `shift`.
    root: Dim
    scale: int
    shift: int

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, int_oo if max is None else max
        if not isinstance(name, str) or not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        if high < low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={low}, max={high}")
        self.__name__ = name
        self.min, self.max = low, high
        self.root, self.scale, self.shift = self, 1, 0

    def _derive(self, scale: int, shift: int) -> Dim:
        if type(scale) is not int or type(shift) is not int:
            raise NotImplementedError(
                f"{self.__name__}: a size that depends on another one is that times an int, plus "
                "or minus an int"
            )
        if scale * self.scale <= 0:
            raise NotImplementedError(f"{self.__name__}: the factor of a size must be positive")
        derived = Dim.__new__(Dim)
        derived.root = self.root
        derived.scale, derived.shift = scale * self.scale, scale * self.shift + shift
        root, a, b = self.root, derived.scale, derived.shift
        text = root.__name__ if a == 1 else f"{a}*{root.__name__}"
        derived.__name__ = text if b == 0 else f"{text} {'-' if b < 0 else '+'} {abs(b)}"
        derived.min = a * root.min + b
        derived.max = int_oo if root.max == math.inf else int(a * root.max + b)
        return derived

    def __add__(self, other: Any) -> Dim:
        return self._derive(1, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        return self._derive(1, -other)

    def __mul__(self, other: Any) -> Dim:
        return self._derive(other, 0)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        if self.root is not self:
            return self.__name__
        high = "" if self.max == math.inf else f", max={self.max}"
        return f"Dim('{self.__name__}', min={self.min}{high})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several open sizes of one range.

    Args:
        *names: an identifier for each.
        min: the least that they can be, 0 by default.
        max: the most that they can be.

    Example:
        >>> height, width = torch.export.dims("height", "width", min=8)
        >>> height
        Dim('height', min=8)
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


# ---- of all arguments ----


def combined_args(mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name; those of `**more` among the others."""
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[name] = value
    return found


def _where(path: str) -> str:
    return f"`dynamic_shapes{path}`"


def _of_tensor(tensor: Tensor, spec: Any, path: str) -> dict[int, Any]:
    """What is said of each dimension of a tensor."""
    if isinstance(spec, list | tuple):
        if len(spec) != tensor.dim():
            raise UserError(
                f"Expected {tensor.dim()} dimensions in {_where(path)}, for a tensor of shape "
                f"{list(tensor.shape)}, but got {len(spec)}"
            )
        spec = dict(enumerate(spec))
    if not isinstance(spec, dict):
        raise UserError(
            f"{_where(path)} says {spec!r} of a tensor; a list or tuple with an entry for each "
            "of its sizes is wanted, or a dict of some of them by number"
        )
    said = {}
    for index, dim in spec.items():
        if not isinstance(index, int) or not -tensor.dim() <= index < tensor.dim():
            raise UserError(
                f"{_where(path)} tells of dimension {index!r} of a tensor of shape "
                f"{list(tensor.shape)}"
            )
        if (dim is not None and not isinstance(dim, Dim | _DimHint | int)) or isinstance(dim, bool):
            raise UserError(
                f"Unexpected dimension mapped to index {index}: {dim!r}, in {_where(path)}. A size "
                "is a number, a Dim, or one of Dim.AUTO, Dim.DYNAMIC and Dim.STATIC"
            )
        if isinstance(dim, int) and dim != tensor.shape[index]:
            raise ConstraintViolationError(
                f"Static shape constraint of {dim} does not match input size of "
                f"{tensor.shape[index]}, for dimension {index} of {_where(path)}"
            )
        if isinstance(dim, Dim | _DimHint):
            said[index % tensor.dim()] = dim
    return said


def _walk(value: Any, spec: Any, path: str) -> Iterator[Any]:
    """For each leaf of an argument what is said of it: by dimension, or as a number."""
    if spec is None:
        yield from ({} for _ in pytree.tree_leaves(value))
    elif isinstance(value, Tensor):
        yield _of_tensor(value, spec, path)
    elif pytree.tree_is_leaf(value):
        if isinstance(spec, Dim) or not isinstance(spec, _DimHint):
            raise UserError(f"{_where(path)} is {spec!r}, but the argument is {value!r}")
        open_ = spec.kind != "STATIC" and type(value) is int
        yield {-1: spec} if open_ else {}
    else:
        children, _ = pytree.SUPPORTED_NODES[pytree._get_node_type(value)].flatten_fn(value)
        if isinstance(value, dict):
            if not isinstance(spec, dict) or set(spec) != set(value):
                raise UserError(f"{_where(path)} must be a dict with the keys {list(value)}")
            parts = [(spec[key], f"[{key!r}]") for key in value]
        else:
            if type(spec) is type(value):
                spec, _ = pytree.SUPPORTED_NODES[pytree._get_node_type(spec)].flatten_fn(spec)
            elif isinstance(spec, dict):
                spec = list(spec.values())
            if not isinstance(spec, list | tuple) or len(spec) != len(list(children)):
                raise UserError(f"{_where(path)} must have {len(list(children))} parts")
            parts = [(part, f"[{i}]") for i, part in enumerate(spec)]
        for child, (part, step) in zip(children, parts, strict=True):
            yield from _walk(child, part, path + step)


def leaf_specs(
    mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> list[dict[int, Any]]:
    """For each leaf of the arguments, the dimensions that stay open, and how.

    Raises:
        UserError: `dynamic_shapes` is not built like the arguments.
    """
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    given = combined_args(mod, args, kwargs)
    if not dynamic_shapes:
        return [{} for _ in pytree.tree_leaves((args, kwargs))]
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(given):
            raise UserError(
                f"top-level keys must be the arg names {list(given)}, got "
                f"{list(dynamic_shapes)}. A "
                "list or tuple goes by the order of the arguments instead."
            )
        said = {name: (dynamic_shapes[name], f"[{name!r}]") for name in given}
    else:
        if len(dynamic_shapes) != len(given):
            raise UserError(
                f"`dynamic_shapes` has {len(dynamic_shapes)} parts, but there are {len(given)} "
                f"arguments: {list(given)}"
            )
        specs = zip(given, dynamic_shapes, strict=True)
        said = {name: (spec, f"[{i}]") for i, (name, spec) in enumerate(specs)}
    # Leaves are those of the arguments as they were passed: keywords in their own order.
    order = [*(name for name in given if name not in kwargs), *kwargs]
    return [leaf for name in order for leaf in _walk(given[name], *said[name])]


class ShapesCollection:
    """Open sizes by tensor, `shapes[x] = {0: Dim.DYNAMIC}`, for arguments in many containers.

    Example:
        >>> x = torch.ones(2, 3)
        >>> shapes = torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim.DYNAMIC}
        >>> program = torch.export.export(torch.nn.ReLU(), (x,), dynamic_shapes=shapes)
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 3])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.get(id(t))
        if known is not None and known[1] != shape:
            raise AssertionError(f"a tensor has the sizes {known[1]} and {shape}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Tensor) -> Any:
        known = self._shapes.get(id(t))
        if known is None:
            known = self._shapes[id(t)] = (t, {})
        return known[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(
        self, m: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The same by argument, as `export` takes it."""
        seen: set[int] = set()

        def shape_of(leaf: Any) -> Any:
            seen.add(id(leaf))
            known = self._shapes.get(id(leaf))
            return None if known is None else known[1]

        result = pytree.tree_map(shape_of, combined_args(m, args, kwargs or {}))
        if set(self._shapes) - seen:
            raise ValueError("a tensor of the collection is not among the arguments")
        return result


class AdditionalInputs:
    """Further examples of arguments: sizes that differ from those of the first stay open.

    Example:
        >>> more = torch.export.AdditionalInputs()
        >>> more.add((torch.ones(5, 3),))
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=more)
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 3])
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """One more example."""
        if not isinstance(args, tuple) or not isinstance(kwargs or {}, dict):
            raise AssertionError("an example is a tuple of arguments, and a dict of keywords")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(
        self, m: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """What differs, by argument, as `export` takes it."""
        first = combined_args(m, args, kwargs or {})
        others = [combined_args(m, *example) for example in self._examples]

        def compare(leaf: Any, *more: Any) -> Any:
            if isinstance(leaf, Tensor):
                sizes = [t.shape for t in more]
                return tuple(
                    Dim.DYNAMIC if any(s[i] != n for s in sizes) else None
                    for i, n in enumerate(leaf.shape)
                )
            differs = any(v != leaf for v in more)
            return Dim.DYNAMIC if differs and type(leaf) is int else None

        return pytree.tree_map(compare, first, *others)

    def verify(self, ep: Any) -> None:
        """Run a program on all examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)
