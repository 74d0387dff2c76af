"""Kernels: the struct of them, the declarations of shape functions, views and composites, the formulas."""

from __future__ import annotations

from typing import NamedTuple

from gen.declarations import out_names
from gen.schema import TableError, owned, parameters, result_type
from gen.table import Op
from gen.text import HEADER, commas, fill, flag, pieces, source

FORMULAS_PER_FILE = 12


def kernel_function(op: Op, name: str) -> str:
    """Of a kernel that is no formula."""
    args = op.args[op.kernel.kind == "update" :]
    if op.kernel.kind == "dynamic":
        return f"{result_type(op.results)} {name}({parameters(args)})"
    outs = ["TensorList out"] if op.gives_list else [f"const Tensor& {o}" for o in out_names(op)]
    return f"void {name}({commas(outs, parameters(args))})"


def shape_function(op: Op) -> str:
    count = 0 if op.kernel.kind == "update" else len(op.results)
    spec = "std::vector<OutSpec>" if op.gives_list else {0: "void", 1: "OutSpec"}.get(count, f"OutSpecs<{count}>")
    return f"{spec} {op.symbol}({commas([f'{owned(a.type)}& {a.name}' for a in op.args])})"


def view_function(op: Op) -> str:
    return f"{'std::vector<ViewSpec>' if op.gives_list else 'ViewSpec'} {op.symbol}({parameters(op.args)})"


def composite_function(op: Op, name: str = "") -> str:
    result = "Tensor&" if op.inplace_only else result_type(op.results)
    return f"{result} {name or op.symbol}({parameters(op.args)})"


KERNELS_H = """
#pragma once

#include "core/iterator.h"
#include "core/op_support.h"

namespace rushlight {

struct KernelTable {
  $pointers
};

}  // namespace rushlight

$lists

#include "core/kernel_table.h"
"""

CONTRACTS_H = """
#pragma once

#include "generated/kernels.h"

namespace rushlight {

namespace shape {
$shapes
}  // namespace shape

namespace views {
$views
}  // namespace views

namespace composite {
$composites
}  // namespace composite

}  // namespace rushlight
"""

FORMULA = "void (*{})(const TensorIterator& it, const Scalar* attributes)"


def kernels_header(ops: list[Op]) -> str:
    kernels: dict[str, dict[str, str]] = {"isa": {}, "once": {}, "anywhere": {}}  # the order of the struct
    for op in ops:
        if op.kind == "kernel" and op.kernel.kind != "pointwise":
            kernels[op.kernel.place][op.symbol] = kernel_function(op, f"(*{op.symbol})")
    kernels["isa"] |= {name: FORMULA.format(name) for name in formulas(ops)}
    lists = [
        [f"#define RL_{place.upper()}_KERNELS(X) \\", *(f"  X({name}) \\" for name in members), ""]
        for place, members in kernels.items()
    ]
    pointers = [f"{said};" for members in kernels.values() for said in members.values()]
    return "\n".join(
        [HEADER, *fill(KERNELS_H, pointers=pointers, lists=[line for lines in lists for line in lines]), ""]
    )


def contracts_header(ops: list[Op]) -> str:
    """What src/ops defines: a header of its own, so that a new composite compiles no kernel again."""
    lines = fill(
        CONTRACTS_H,
        shapes=[f"{shape_function(op)};" for op in ops if op.kernel.kind in ("custom", "update")],
        views=[f"{view_function(op)};" for op in ops if op.kind == "view"],
        composites=[f"{composite_function(op)};" for op in ops if op.kind == "composite"],
    )
    return "\n".join([HEADER, *lines, ""])


def promotion(op: Op) -> str:
    return f"Promote::{op.kernel.promote.capitalize()}"


# ---- formulas ----


class FormulaKernel(NamedTuple):
    inputs: int
    attributes: int
    promotion: str
    loop: str


def formulas(ops: list[Op]) -> dict[str, tuple[FormulaKernel, dict[str, None]]]:
    """Every formula once, though several ops may use it, with all dtypes that they want of it."""
    found: dict[str, tuple[FormulaKernel, dict[str, None]]] = {}
    for op in ops:
        for f in op.formulas if op.kernel.kind == "pointwise" else ():
            inputs = sum(a.type.is_tensor for a in op.args) if f.inputs is None else f.inputs
            gives = promotion(op) if op.kernel.promote in ("bool", "real") else "Promote::Same"
            said = FormulaKernel(inputs, len(f.attributes), gives, f.loop)
            known, dtypes = found.setdefault(f.name, (said, {}))
            if said != known:
                raise TableError(f"{op.name}: another op says something else of the formula {f.name}")
            dtypes |= dict.fromkeys(f.dtypes or op.kernel.dtypes)
    return found


# Path of a file of formulas → the macro that makes a kernel of one, where it stands, the namespace, and which
# formulas have kernels written by hand instead.
FORMULAS = {
    "isa/{}.cpp": ("RL_POINTWISE_KERNEL", "cpu/isa/pointwise/loops.h", "rushlight::cpu::RL_ISA", ("isa", "all")),
    "cuda/{}.cu": ("RL_CUDA_POINTWISE", "cuda/pointwise.cuh", "rushlight", ("all",)),
}


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; those in isa/ are compiled once per instruction set."""
    files = {
        "include/generated/kernels.h": kernels_header(ops),
        "include/generated/contracts.h": contracts_header(ops),
    }
    for path, (macro, header, namespace, by_hand) in FORMULAS.items():
        made = []
        for name, (f, dtypes) in formulas(ops).items():
            said = commas(
                name, f"{f.inputs}, {f.attributes}", " | ".join(dtypes), f.promotion, flag(f.loop == "rounds_once")
            )
            made += [f"{macro}({said})"] if f.loop not in by_hand else []
        for name, lines in pieces(made, FORMULAS_PER_FILE, lambda _: "pointwise"):
            files[path.format(name)] = source([header, "generated/kernels.h"], namespace, lines)
    return files
