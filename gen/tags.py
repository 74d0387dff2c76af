"""What is true of an overload, in the words of `torch.Tag`.

Most of it follows from the entry: its kind, its arguments, its form. `tags=` of an entry adds the rest: a word, as
"pointwise" for a composite, or "core.Tensor" for one overload of the functional form alone ("core.default" for the one
without a name). `tests/parity/test_tags.py` compares them with PyTorch's.
"""

from __future__ import annotations

from functools import cache

from gen.table import Op, TableError, Type, load

WORDS = [
    "core",
    "cudagraph_unsafe",
    "data_dependent_output",
    "dynamic_output_shape",
    "flexible_layout",
    "generated",
    "inplace",
    "inplace_view",
    "maybe_aliasing_or_mutating",
    "needs_contiguous_strides",
    "needs_exact_strides",
    "needs_fixed_stride_order",
    "nondeterministic_bitwise",
    "nondeterministic_seeded",
    "out",
    "out_variant",
    "pointwise",
    "pt2_compliant_tag",
    "reduction",
    "view_copy",
]


@cache
def _views() -> frozenset[str]:
    return frozenset(op.name for op in load() if any(r.type.alias and not r.type.written for r in op.results))


def _words_for(op: Op, overload) -> set[str]:
    """The words of the entry that are meant for an overload."""
    found = set()
    for text in op.tags:
        word, _, name = text.partition(".")
        if word not in WORDS:
            raise TableError(f"{op.text}: no tag is named {word!r}")
        own = overload.form == "functional" or op.inplace_only
        if name == (overload.overload or "default") if name else own or word != "core":
            found.add(word)
    return found


def of(op: Op, overload) -> set[str]:
    """The words that hold for an overload."""
    is_written = any(a.type.written for a in overload.args)
    draws = isinstance(op.batch, str) and op.batch.startswith("random")
    holds = {
        "pt2_compliant_tag": True,
        "out": overload.form == "out",
        "inplace": overload.form == "inplace" or (is_written and overload.form != "out" and op.name.endswith("_")),
        "inplace_view": op.inplace_only and op.name[:-1] in _views(),
        "pointwise": op.kernel.kind == "pointwise",
        "nondeterministic_seeded": draws or any(a.type == Type("Generator", optional=True) for a in op.args),
        "dynamic_output_shape": op.kernel.kind == "dynamic",
        "view_copy": op.name.endswith("_copy") and op.name.removesuffix("_copy") in _views(),
    }
    return {word for word, true in holds.items() if true} | _words_for(op, overload)


def bits(op: Op, overload) -> str:
    """The set as the bits of C++'s `Tag`."""
    return f"{sum(1 << WORDS.index(word) for word in of(op, overload)):#x}u"
