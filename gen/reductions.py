"""Reductions and ops of rows: their shape functions, and the kernels that follow from formulas, on every device."""

from __future__ import annotations

from gen.expressions import read
from gen.kernels import contract, files_by_template, kernel_function
from gen.schema import Arg
from gen.table import Formula, Op
from gen.text import UNUSED, block, commas, each, flat, lines, pieces, source

OPS_PER_FILE = 6

# Kind → the template that makes a kernel of a formula.
TEMPLATES = {"reduction": "reduce_by", "rows": "scan_by"}


def dim_of(op: Op) -> Arg | None:
    return next((a for a in op.args if a.type.meaning == "Dim"), None)


def shape(op: Op) -> list[str]:
    """The shape function: checks, the sizes that are left, the dtypes that the entry says."""
    kernel, dim, given = op.kernel, dim_of(op), op.tensors[0].name
    keepdim = any(a.name == "keepdim" for a in op.args)
    how = f"{'keepdim' if keepdim else 'false'}, Reduces::{kernel.reduces.capitalize()}"
    sizes = f"sizes_without(name, {given}, {dim.name if dim else 'NoDim()'}, {how})"
    if dim and kernel.kind == "rows" and not keepdim:
        sizes = f"sizes_of_rows({given}, {dim.name})"
    *others, last = [read(text).cpp for text in kernel.gives]
    specs = [*(f"OutSpec{{sizes, {dtype}}}" for dtype in others), f"OutSpec{{std::move(sizes), {last}}}"]
    body = lines(f"""
        [[maybe_unused]] constexpr const char* name = "{op.name}";
        {each(f"{check.cpp};" for check in kernel.checks)}
        DimVector sizes = {sizes};
        return {f"{{{commas(specs)}}}" if others else specs[0]};
    """)
    return [*block(contract(op), body), ""]


def kernel(op: Op) -> list[str]:
    """The first formula that fits computes it: the same choice for all devices."""
    dim = dim_of(op)
    over = "{}" if dim is None else dim.name
    if dim and dim.type.optional and not dim.type.is_list:
        over = f"{over}.has_value() ? OptionalIntArrayRef(*{over}) : OptionalIntArrayRef()"
    outs = commas(f"&{out}" for out in op.outs)

    def call(f: Formula) -> str:
        chosen = commas(f"fold::{f.name}", " | ".join(op.kernel.dtypes))
        given = commas(f'"{op.name}"', f"{{{outs}}}", op.tensors[0].name, over, f.values)
        return f"{TEMPLATES[op.kernel.kind]}<{chosen}>({given});"

    body: list[str] = []
    for f in op.kernel.formulas:
        body += block(f"if ({f.condition})", [call(f), "return;"]) if f.when else [call(f)]
    return [*block(kernel_function(op, op.symbol), body), ""]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; those in isa/ are compiled once per instruction set."""
    found = [op for op in ops if op.kernel.kind in TEMPLATES]
    shapes = [UNUSED, "", *flat(map(shape, found))]
    files = {"src/reductions.cpp": source(["ops/reductions.h"], "rushlight::shape", shapes)}
    by_formula = [op for op in found if op.kernel.formulas]
    for name, part in pieces(by_formula, OPS_PER_FILE, lambda op: TEMPLATES[op.kernel.kind]):
        kernels = [UNUSED, "", *flat(map(kernel, part))]
        files |= files_by_template(name, TEMPLATES[part[0].kernel.kind], "reduce", kernels)
    return files
