"""Numbers and records of the schema by which `.pt2` files say what is in them (version 8)."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.export._expressions import Expression, parse, sympy_text
from rushlight.export._fakes import SizedFake
from rushlight.export._sizes import SizeBool, SizeInt

__all__ = [
    "DTYPES",
    "FORMATS",
    "LAYOUTS",
    "MAJOR",
    "MINOR",
    "bool_of",
    "bool_record",
    "device_of",
    "device_record",
    "fake_tensor",
    "int_of",
    "int_record",
    "real_tensor",
    "tensor_record",
]

MAJOR, MINOR = 8, 20

DTYPES = _C._exported_dtypes()
_SPARSE = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS = {getattr(rushlight, name): code for code, name in enumerate(_SPARSE, 1)} | {
    rushlight.strided: 7
}
FORMATS = {
    rushlight.contiguous_format: 1,
    rushlight.channels_last: 2,
    rushlight.channels_last_3d: 3,
    rushlight.preserve_format: 4,
}
_DTYPE_OF, _LAYOUT_OF = ({v: k for k, v in table.items()} for table in (DTYPES, LAYOUTS))


def int_record(value: Any) -> dict[str, Any]:
    """A size: a number, or an expression and the number that it was in the example."""
    if isinstance(value, SizeInt) and value.expr is not None and value.expr.symbols():
        hint = None if depends_on_values(value.expr) else {"as_int": int(value)}
        return {"as_expr": {"expr_str": sympy_text(value.expr), "hint": hint}}
    return {"as_int": int(value)}


_COMPARISONS = {
    "eq": "Equality",
    "ne": "Unequality",
    "lt": "StrictLessThan",
    "le": "LessThan",
    "gt": "StrictGreaterThan",
    "ge": "GreaterThan",
}


def bool_record(value: SizeBool) -> dict[str, Any]:
    """A comparison of sizes."""
    sides = (Expression.of(getattr(v, "expr", None) or v) for v in value.operands)
    text = f"{_COMPARISONS[value.name]}({', '.join(map(sympy_text, sides))})"
    return {"as_expr": {"expr_str": text, "hint": None}}


def bool_of(record: dict[str, Any]) -> Any:
    """The comparison of a record; None where it is another condition."""
    atom = parse(record["as_expr"]["expr_str"]).atom if "as_expr" in record else None
    for name, text in _COMPARISONS.items():
        if atom is not None and atom.name == text and len(atom.args or ()) == 2:
            return SizeBool(name, tuple(atom.args or ()), True)
    return None


def depends_on_values(expression: Expression) -> bool:
    """Whether a symbol in it is read off the values of a tensor: u0, u1 …"""
    return any(name.startswith("u") for name in expression.symbols())


def int_of(record: dict[str, Any], symbols: dict[str, int]) -> int:
    """The size of a record; `symbols` has what symbols were in the example."""
    if "as_int" in record:
        return int(record["as_int"])
    expression: Expression = parse(record["as_expr"]["expr_str"])
    hint = record["as_expr"].get("hint")
    if hint and "as_int" in hint:
        value = int(hint["as_int"])
        if expression.name is not None:
            symbols.setdefault(expression.name, value)
    else:
        for name in expression.symbols():
            if name.startswith("u"):  # any number will do
                symbols.setdefault(name, 7)
        value = int(expression.value(symbols))
    return SizeInt(value, expression)


def device_record(device: Any) -> dict[str, Any]:
    """A device: its type and index."""
    return {"type": device.type, "index": device.index}


def device_of(record: dict[str, Any]) -> Any:
    """The device of a record."""
    index = record.get("index")
    return rushlight.device(record["type"] if index is None else f"{record['type']}:{index}")


def tensor_record(tensor: Tensor) -> dict[str, Any]:
    """What is known of a tensor beside its values.

    Raises:
        NotImplementedError: the schema has no number for its dtype or layout.
    """
    if tensor.dtype not in DTYPES or tensor.layout not in LAYOUTS:
        raise NotImplementedError(
            f"a .pt2 file cannot say {tensor.dtype}, {tensor.layout}: it has no number for that"
        )
    strides = getattr(tensor, "sym_strides", None) or tensor.stride()
    return {
        "dtype": DTYPES[tensor.dtype],
        "sizes": [int_record(n) for n in tensor.shape],
        "requires_grad": tensor.requires_grad,
        "device": device_record(tensor.device),
        "strides": [int_record(n) for n in strides],
        "storage_offset": {"as_int": tensor.storage_offset()},
        "layout": LAYOUTS[tensor.layout],
    }


def _facts(record: dict[str, Any], symbols: dict[str, int]) -> tuple[Any, Any, Any, Any, int]:
    if record["dtype"] not in _DTYPE_OF:
        raise ValueError(f"dtype {record['dtype']} of a .pt2 file is not known")
    if _LAYOUT_OF.get(record.get("layout", 7)) is not rushlight.strided:
        raise NotImplementedError("a .pt2 file has a sparse tensor, which is not read")
    sizes = [int_of(n, symbols) for n in record["sizes"]]
    strides = [int_of(n, symbols) for n in record["strides"]]
    offset = int_of(record.get("storage_offset", {"as_int": 0}), symbols)
    return _DTYPE_OF[record["dtype"]], device_of(record["device"]), sizes, strides, offset


def fake_tensor(mode: FakeTensorMode, record: dict[str, Any], symbols: dict[str, int]) -> Tensor:
    """A fake tensor with the facts of a record."""
    dtype, device, sizes, strides, _ = _facts(record, symbols)
    meta = rushlight.empty_strided(
        [int(n) for n in sizes], [int(n) for n in strides], dtype=dtype, device="meta"
    )
    wanted = bool(record.get("requires_grad")) and (dtype.is_floating_point or dtype.is_complex)
    if not any(isinstance(n, SizeInt) for n in (*sizes, *strides)):
        return FakeTensor(mode, meta, device, wanted)
    fake = SizedFake(mode, meta, device, wanted)
    fake.sym_sizes, fake.sym_strides = tuple(sizes), tuple(strides)
    return fake


def real_tensor(record: dict[str, Any], storage: Any) -> Tensor:
    """A tensor on a storage, which is checked to hold it."""
    dtype, _, sizes, strides, offset = _facts(record, {})
    made = rushlight.empty(0, dtype=dtype)
    if min([offset, *sizes, *strides]) < 0 or len(sizes) != len(strides):
        raise ValueError(f"a .pt2 file has a tensor of sizes {sizes} and strides {strides}")
    if 0 in sizes:
        return made.new_empty(sizes)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if (last + 1) * made.element_size() > storage.nbytes():
        raise ValueError(
            f"a .pt2 file has {storage.nbytes()} bytes for a tensor of sizes {sizes}, strides "
            f"{strides} and offset {offset}: too few"
        )
    return made.set_(storage, offset, sizes, strides)
