"""`Builder`: writes the nodes of one ONNX graph, and knows the dtype of every value."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.onnx._model import rename
from rushlight.onnx._types import ELEMENT_TYPES, element_type, onnx_package, tensor_proto
from rushlight.onnx._values import Expected, Size, SizeOf, Unsupported, Value, expression_of

__all__ = ["Builder", "Unsupported", "Value"]

# Dtypes of results that are not the dtype of the first input.
_RESULTS: dict[str, rushlight.dtype] = {
    **dict.fromkeys(("Shape", "Size", "ArgMax", "ArgMin", "NonZero"), rushlight.int64),
    **dict.fromkeys(
        ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf"),
        rushlight.bool,
    ),
    **dict.fromkeys(
        ("Not", "And", "Or", "Xor"),
        rushlight.bool,
    ),
}
_SECOND = {"Where"}
_BROADCASTS = {
    "Add",
    "And",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Where",
    "Xor",
}
_KEEPS_SHAPE = {
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "CumSum",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
    "ScatterElements",
    "ScatterND",
}


class Builder:
    """One ONNX graph under way.

    `g.Add(a, b)`, `g.Concat(a, b, axis=1)` and so on write a node each, and return its result.
    Inputs are Values, None for those left out, Python numbers (constants of the first Value's
    dtype) and lists of ints (int64 vectors); attributes that are None are left out. `outputs=n`
    gives a tuple of n results; `dtype` says what these are where it is not the dtype of the first
    input.

    Args:
        opset: the version of ONNX's ops.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Tensor] = {}
        self.domains: dict[str, int] = {}
        self.names: set[str] = set()
        self.where = ""  # what the names of new nodes begin with
        self._first = 0  # the first node that was written for the program's node under way
        # What the node under way returns: the first of its results, and all.
        self.result: Any = None
        self.parts: list[Expected] = []
        # By symbol, where a size is that it can be read off: a tensor, a dimension, and the factor
        # and the number by which the size there differs.
        self.symbols: dict[str, tuple[Value, int | None, int, int]] = {}
        self.sizes_written: dict[Any, Value] = {}
        self.overload = ""  # what the node under way calls
        self._constants: dict[tuple[str, str], Value] = {}

    def since(self, version: int) -> bool:
        """Whether the model may use ops of this version."""
        return self.opset >= version

    # ---- names, inputs, constants ----

    def name(self, wanted: str) -> str:
        """A name that no other value has: the wanted one, with a number if need be."""
        found, n = wanted, 0
        while found in self.names:
            n += 1
            found = f"{wanted}_{n}"
        self.names.add(found)
        return found

    def begin(self, where: str) -> None:
        """What follows is written for this node of the program, and named after it."""
        self.where, self._first = where, len(self.nodes)

    def rename(self, value: Value, name: str) -> None:
        """Renames a result of the node under way, unless the name is taken."""
        own = self.nodes[self._first :]
        if name in self.names or not any(value.name in node.output for node in own):
            return
        self.names.discard(value.name)
        self.names.add(name)
        rename(own, {value.name: name})
        value.name = name

    def initializer(self, name: str, tensor: Tensor) -> Value:
        """A constant tensor of the graph."""
        if tensor.dtype not in ELEMENT_TYPES:
            raise Unsupported(f"a constant of {tensor.dtype}")
        name = self.name(name)
        self.initializers[name] = tensor
        return Value(name, tensor.dtype, tensor.shape)

    def constant(self, value: Any, dtype: rushlight.dtype | None = None) -> Value:
        """A constant of numbers, written once however often it is used."""
        if isinstance(value, Tensor):
            return self.initializer("constant", value)
        tensor = rushlight.tensor(value, dtype=dtype)
        key = str(tensor.dtype), repr(value)
        if key not in self._constants:
            made = self.initializer("constant", tensor)
            made.number = value if isinstance(value, int) else None
            self._constants[key] = made
        return self._constants[key]

    def int64(self, value: Any) -> Value:
        """A number, or a list of numbers, as int64; a Value is cast."""
        if isinstance(value, Value):
            return self.cast(value, rushlight.int64)
        return self.constant(value, rushlight.int64)

    def _input(self, thing: Any, dtype: rushlight.dtype) -> Value | None:
        if thing is None or isinstance(thing, Value):
            return thing
        if isinstance(thing, list | tuple):
            return self.vector(thing)
        return self.constant(thing, dtype)

    # ---- nodes ----

    def op(
        self,
        kind: str,
        *inputs: Any,
        outputs: int = 1,
        dtype: rushlight.dtype | Sequence[rushlight.dtype] | None = None,
        shape: Sequence[Any] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Writes a node; returns its result, or a tuple of its results if there are several."""
        first = next((v.dtype for v in inputs if isinstance(v, Value)), rushlight.float32)
        taken = [self._input(v, first) for v in inputs]
        while taken and taken[-1] is None:
            taken.pop()
        if dtype is None:
            source = taken[1] if kind in _SECOND else taken[0] if taken else None
            dtype = _RESULTS.get(kind) or (source.dtype if source is not None else first)
        dtypes: list[Any] = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * outputs
        if shape is None and kind in _KEEPS_SHAPE and taken[0] is not None:
            shape = taken[0].shape
        elif shape is None and kind in _BROADCASTS:
            shape = _together([v.shape for v in taken if v is not None])
        names = [self.name(f"{self.where}_{kind}" if self.where else kind) for _ in dtypes]
        # A trailing _ keeps attributes apart from what this function takes itself.
        given = {k.rstrip("_"): v for k, v in attributes.items() if v is not None}
        self.nodes.append(
            onnx_package().helper.make_node(
                kind,
                ["" if v is None else v.name for v in taken],
                names,
                name=f"node_{names[0]}",
                domain=domain,
                **given,
            )
        )
        made = tuple(Value(n, d, shape) for n, d in zip(names, dtypes, strict=True))
        return made if outputs > 1 else made[0]

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        if not kind[0].isupper():
            raise AttributeError(kind)
        return functools.partial(self.op, kind)

    def cast(self, x: Value, dtype: rushlight.dtype) -> Value:
        """A tensor in another dtype."""
        if x.dtype == dtype:
            return x
        if x.number is not None:
            return self.constant(x.number, dtype)
        return self.op("Cast", x, to=element_type(dtype), dtype=dtype)

    def full(self, sizes: Sequence[Any], value: Any, dtype: rushlight.dtype) -> Value:
        """A tensor of one number."""
        if not sizes:
            return self.constant(value, dtype)
        proto = tensor_proto("value", rushlight.tensor([value], dtype=dtype))
        return self.ConstantOfShape(self.vector(sizes), value=proto, dtype=dtype, shape=sizes)

    # ---- sizes: ints where they are constant, 0-d Values where they are not ----

    def vector(self, items: Sequence[Any]) -> Value:
        """Sizes as an int64 vector."""
        if all(isinstance(i, int) for i in items):
            return self.constant([int(i) for i in items], rushlight.int64)
        parts = [
            self.Unsqueeze(self.int64(i), [0]) if isinstance(i, Value) else self.int64([i])
            for i in items
        ]
        return self.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]

    def size(self, x: Value, dim: int) -> Any:
        """The size of a dimension: an int, or a 0-d Value."""
        assert x.shape is not None
        return x.shape[dim]

    def shape(self, x: Value) -> Value:
        """The sizes of a tensor as a vector."""
        if x.shape is not None and all(isinstance(s, int) for s in x.shape):
            return self.vector(x.shape)
        return self.Shape(x)

    def sized(self, sizes: Iterable[Any]) -> tuple[Any, ...]:
        """Sizes as a program has them: ints, and Sizes for those that know an expression."""
        exprs = [(n, expression_of(n)) for n in sizes]
        return tuple(int(n) if expr is None else Size(self, expr) for n, expr in exprs)

    def dimension(self, x: Value, dim: int) -> Value:
        """The size of a dimension as a 0-d tensor."""
        return self.Squeeze(self.Shape(x, start=dim, end=dim + 1), [0], shape=())

    def computed(self, expr: Any) -> Value:
        """The 0-d tensor of an expression of sizes, written once."""
        if expr not in self.sizes_written:
            where, self.where = self.where, "size"
            self.sizes_written[expr] = self._size(expr)
            self.where = where
        return self.sizes_written[expr]

    def _size(self, expr: Any) -> Value:
        if expr.number is not None:
            return self.int64(expr.number)
        total: Value | None = None
        for atoms, factor in expr.terms.items():
            term: Value | None = None
            for atom in atoms:
                part = self._symbol(atom.name) if atom.args is None else self._function(atom)
                term = part if term is None else self.Mul(term, part)
            if term is None:
                term = self.int64(factor)
            elif factor != 1:
                term = self.Mul(term, factor)
            total = term if total is None else self.Add(total, term)
        assert total is not None
        return total

    def _symbol(self, name: str) -> Value:
        if name not in self.symbols:
            raise Unsupported(f"the size {name} is that of no input")
        tensor, dim, factor, more = self.symbols[name]
        size = tensor if dim is None else self.dimension(tensor, dim)
        size = self.Sub(size, more) if more else size
        return self.Div(size, factor) if factor != 1 else size

    def _function(self, atom: Any) -> Value:
        kinds = {"FloorDiv": "Div", "CleanDiv": "Div", "Mod": "Mod", "Max": "Max", "Min": "Min"}
        if atom.name not in kinds:
            raise Unsupported(f"the function {atom.name} of sizes")
        return self.op(kinds[atom.name], *(self.computed(a) for a in atom.args))

    def product(self, sizes: Sequence[Any]) -> Any:
        """The product of sizes."""
        exprs = [s.expr if isinstance(s, Size) else s for s in sizes]
        if any(isinstance(s, Size) for s in sizes) and not any(isinstance(e, Value) for e in exprs):
            whole = math.prod(exprs)
            return whole if isinstance(whole, int) else Size(self, whole)
        number, found = 1, None
        for size in sizes:
            if isinstance(size, int):
                number *= size
            else:
                found = size if found is None else self.Mul(found, size)
        if found is None or number == 0:
            return number
        return found if number == 1 else self.Mul(found, number)

    def share(self, size: Any, n: int) -> Any:
        """A size divided by a number that divides it."""
        if isinstance(size, Size):
            return Size(self, size.expr // n)
        return size // n if isinstance(size, int) else self.Div(size, n)

    def reshape(self, x: Value, sizes: Sequence[Any]) -> Value:
        """A tensor in another shape; -1 is what is left."""
        sizes = list(sizes)
        if x.shape is not None and tuple(sizes) == x.shape:
            return x
        open_ones = [i for i, s in enumerate(sizes) if not isinstance(s, int)]
        target = list(sizes)
        if len(open_ones) == 1 and -1 not in sizes and 0 not in sizes:
            target[open_ones[0]] = -1
        allow = 1 if 0 in target else None
        return self.Reshape(x, self.vector(target), allowzero=allow, shape=_unless(sizes, -1))

    def expand(self, x: Value, sizes: Sequence[Any]) -> Value:
        """A tensor broadcast to a shape."""
        if x.shape == tuple(sizes):
            return x
        return self.Expand(x, self.vector(sizes), shape=sizes)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """A tensor with its dimensions in another order."""
        order = [d % x.rank for d in order]
        if order == sorted(order):
            return x
        assert x.shape is not None
        return self.Transpose(x, perm=order, shape=[x.shape[d] for d in order])

    def swap(self, x: Value, a: int, b: int) -> Value:
        """A tensor with two dimensions exchanged."""
        order = list(range(x.rank))
        if order:
            order[a], order[b] = order[b], order[a]
        return self.transpose(x, order)

    def slice(self, x: Value, dim: int, start: Any, end: Any, step: int = 1) -> Value:
        """Elements `start:end:step` of a dimension; bounds may be Values."""
        bounds = [self.vector([start]), self.vector([end]), self.vector([dim])]
        shape = None
        if x.shape is not None:
            shape = list(x.shape)
            known = all(isinstance(n, int) for n in (shape[dim], start, end))
            shape[dim] = len(range(*slice(start, end, step).indices(shape[dim]))) if known else None
        out = self.Slice(x, *bounds, None if step == 1 else self.vector([step]), shape=shape)
        if shape is not None and shape[dim] is None:
            shape[dim] = SizeOf(self, out, dim % len(shape))
            out.shape = tuple(shape)
        return out

    def unsqueeze(self, x: Value, *dims: int) -> Value:
        """A tensor with dimensions of size 1 at these places of the result."""
        if not dims:
            return x
        shape = None
        if x.shape is not None:
            places, rest = {d % (x.rank + len(dims)) for d in dims}, iter(x.shape)
            shape = [1 if d in places else next(rest) for d in range(x.rank + len(dims))]
        return self.Unsqueeze(x, list(dims), shape=shape)

    def squeeze(self, x: Value, *dims: int) -> Value:
        """A tensor without these dimensions of size 1."""
        if not dims:
            return x
        shape = None
        if x.shape is not None:
            places = {d % x.rank for d in dims}
            shape = [s for d, s in enumerate(x.shape) if d not in places]
        return self.Squeeze(x, list(dims), shape=shape)

    # ---- operands ----

    def common(self, *operands: Any) -> rushlight.dtype:
        """The dtype in which tensors and numbers meet."""

        def sample(thing: Any) -> Any:
            if not isinstance(thing, Value):
                return thing
            rank = 1 if thing.shape is None else len(thing.shape)
            return rushlight.empty((1,) * rank, dtype=thing.dtype, device="meta")

        found = sample(operands[0])
        if len(operands) == 1:
            return found.dtype
        for other in operands[1:]:
            dtype = rushlight.result_type(found, sample(other))
            rank = 1 if isinstance(found, Tensor) and found.dim() else 0
            found = rushlight.empty((1,) * rank, dtype=dtype, device="meta")
        return found.dtype

    def broadcast(self, *xs: Value) -> list[Value]:
        """Tensors expanded to the shape that they have together."""
        if len({x.shape for x in xs}) == 1:
            return list(xs)
        sizes = _together([x.shape for x in xs])
        if sizes is not None:
            return [self.expand(x, sizes) for x in xs]
        whole = xs[0]
        for x in xs[1:]:
            whole = self.Expand(whole, self.shape(x))
        return [self.Expand(x, self.Shape(whole)) for x in xs]

    def operand(self, x: Any, dtype: rushlight.dtype) -> Value:
        """A tensor or number in a dtype."""
        return self.cast(x, dtype) if isinstance(x, Value) else self.constant(x, dtype)

    def operands(self, *xs: Any, dtype: rushlight.dtype | None = None) -> list[Value]:
        """Tensors and numbers in one dtype: the given one, or the one in which they meet."""
        dtype = dtype or self.common(*xs)
        return [self.operand(x, dtype) for x in xs]


def _together(shapes: Sequence[tuple[Any, ...] | None]) -> tuple[Any, ...] | None:
    """The shape that tensors have together, by which ones are broadcast."""
    if any(shape is None for shape in shapes):
        return None
    rank = max(len(shape or ()) for shape in shapes)
    found = []
    for dim in range(-rank, 0):
        sizes = [shape[dim] for shape in shapes if shape is not None and len(shape) >= -dim]
        wide = [s for s in sizes if not (isinstance(s, int) and s == 1)]
        found.append(next((s for s in wide if isinstance(s, int)), wide[0] if wide else 1))
    return tuple(found)


def _unless(sizes: Sequence[Any], unknown: Any) -> Sequence[Any] | None:
    return None if any(isinstance(s, int) and s == unknown for s in sizes) else sizes
