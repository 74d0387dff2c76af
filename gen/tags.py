"""What is true of an overload, in the words of `torch.Tag`.

Most of it follows from the entry: its kind, its arguments, its form. `tags=` of an entry adds the rest: a word, as
"pointwise" for a composite, or "core.Tensor" for one overload of the functional form alone ("core.default" for the one
without a name). `tests/parity/test_tags.py` compares them with PyTorch's.
"""

from __future__ import annotations

from functools import cache

from gen.overloads import Overload
from gen.schema import TableError, Type
from gen.table import Op, load


@cache
def _views() -> frozenset[str]:
    return frozenset(op.name for op in load() if any(r.type.alias and not r.type.written for r in op.results))


def _writes(op: Op, o: Overload) -> bool:
    return o.form != "out" and op.name.endswith("_") and any(a.type.written for a in o.args)


def _draws(op: Op, _: Overload) -> bool:
    given = any(a.type == Type("Generator", optional=True) for a in op.args)
    return given or (isinstance(op.batch, str) and op.batch.startswith("random"))


def _never(op: Op, o: Overload) -> bool:
    return False


# Every word, in the order of C++'s `Tag`, and when it holds though an entry does not say it.
_HOLDS = {
    "core": _never,
    "cudagraph_unsafe": _never,
    "data_dependent_output": _never,
    "dynamic_output_shape": lambda op, o: op.kernel.kind == "dynamic",
    "flexible_layout": _never,
    "generated": _never,
    "inplace": lambda op, o: o.form == "inplace" or _writes(op, o),
    "inplace_view": lambda op, o: op.inplace_only and op.name[:-1] in _views(),
    "maybe_aliasing_or_mutating": _never,
    "needs_contiguous_strides": _never,
    "needs_exact_strides": _never,
    "needs_fixed_stride_order": _never,
    "nondeterministic_bitwise": _never,
    "nondeterministic_seeded": _draws,
    "out": lambda op, o: o.form == "out",
    "out_variant": _never,
    "pointwise": lambda op, o: op.kernel.kind == "pointwise",
    "pt2_compliant_tag": lambda op, o: True,
    "reduction": _never,
    "view_copy": lambda op, o: op.name.endswith("_copy") and op.name.removesuffix("_copy") in _views(),
}
WORDS = list(_HOLDS)


def _says(op: Op, o: Overload, said: str) -> str:
    """The word of an item of `tags=` if it is meant for an overload."""
    word, _, name = said.partition(".")
    if word not in WORDS:
        raise TableError(f"{op.text}: no tag is named {word!r}")
    own = o.form == "functional" or op.inplace_only
    return word if (name == (o.overload or "default") if name else own or word != "core") else ""


def bits(op: Op, o: Overload) -> str:
    """The words that hold for an overload, as the bits of C++'s `Tag`."""
    found = {word for word, holds in _HOLDS.items() if holds(op, o)} | {_says(op, o, said) for said in op.tags}
    return f"{sum(1 << i for i, word in enumerate(WORDS) if word in found):#x}u"
