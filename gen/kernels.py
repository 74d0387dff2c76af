"""Kernels: the struct of them, the declarations of shape functions, views and composites, the formulas."""

from __future__ import annotations

from typing import NamedTuple

from gen import types
from gen.declarations import out_parameters
from gen.table import Op, TableError
from gen.text import HEADER, commas, fill, flag, pieces, source

FORMULAS_PER_FILE = 12


def declaration(op: Op, name: str = "") -> str:
    """Of a kernel that is no formula."""
    result = types.result_type(op.results) if op.kernel.kind == "dynamic" else "void"
    outs = ["TensorList out"] if op.gives_list else [f"const Tensor& {o}" for o in out_parameters(op)]
    first, args = {
        "custom": (outs, op.args),
        "update": (["const Tensor& out"], op.args[1:]),
        "dynamic": ([], op.args),
    }[op.kernel.kind]
    return f"{result} {name or op.symbol}({commas(first, types.parameters(args))})"


def spec_type(op: Op) -> str:
    """What the shape function gives."""
    if op.kernel.kind == "update" or not op.results:
        return "void"
    if op.gives_list:
        return "std::vector<OutSpec>"
    return "OutSpec" if len(op.results) == 1 else f"OutSpecs<{len(op.results)}>"


def has_shape_function(op: Op) -> bool:
    return op.kernel.kind in ("custom", "update") and "shape" not in op.manual


def shape_function(op: Op) -> str:
    return f"{spec_type(op)} {op.symbol}({commas([f'{types.owning_type(a.type)}& {a.name}' for a in op.args])})"


def view_function(op: Op) -> str:
    return f"{'std::vector<ViewSpec>' if op.gives_list else 'ViewSpec'} {op.symbol}({types.parameters(op.args)})"


def composite_function(op: Op) -> str:
    result = "Tensor&" if op.inplace_only else types.result_type(op.results)
    return f"{result} {op.symbol}({types.parameters(op.args)})"


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

FORMULA = "void {}(const TensorIterator& it, const Scalar* attributes)"
PLACES = ("ISA", "ONCE", "ANYWHERE")  # the order of the struct


def kernels_header(ops: list[Op]) -> str:
    own = [op for op in ops if op.kind == "kernel" and op.kernel.kind != "pointwise"]
    pointers = [(op.kernel.place, op.symbol, declaration(op, f"(*{op.symbol})")) for op in own]
    pointers += [("ISA", name, FORMULA.format(f"(*{name})")) for name in formulas(ops)]
    kernels = {place: {name: said for at, name, said in pointers if at == place} for place in PLACES}
    lists = [
        [f"#define RL_{place}_KERNELS(X) \\", *(f"  X({name}) \\" for name in members), ""]
        for place, members in kernels.items()
    ]
    lines = fill(
        KERNELS_H,
        pointers=[f"{said};" for members in kernels.values() for said in members.values()],
        lists=[line for lines in lists for line in lines],
    )
    return "\n".join([HEADER, *lines, ""])


def contracts_header(ops: list[Op]) -> str:
    """What src/ops defines: a header of its own, so that a new composite compiles no kernel again."""
    lines = fill(
        CONTRACTS_H,
        shapes=[f"{shape_function(op)};" for op in ops if has_shape_function(op)],
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
    rounds_once: bool
    by_hand: str


def formulas(ops: list[Op]) -> dict[str, tuple[FormulaKernel, dict[str, None]]]:
    """Every formula once, though several ops may use it, with all dtypes that they want of it."""
    found: dict[str, tuple[FormulaKernel, dict[str, None]]] = {}
    for op in ops:
        for f in op.formulas if op.kernel.kind == "pointwise" else ():
            inputs = sum(a.type.is_tensor for a in op.args) if f.inputs is None else f.inputs
            gives = promotion(op) if op.kernel.promote in ("bool", "real") else "Promote::Same"
            said = FormulaKernel(inputs, len(f.attributes), gives, f.rounds_once, f.by_hand)
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
        made = [
            f"{macro}({name}, {f.inputs}, {f.attributes}, {' | '.join(dtypes)}, {f.promotion}, {flag(f.rounds_once)})"
            for name, (f, dtypes) in formulas(ops).items()
            if f.by_hand not in by_hand
        ]
        for name, lines in pieces(made, FORMULAS_PER_FILE, lambda _: "pointwise"):
            files[path.format(name)] = source([header, "generated/kernels.h"], namespace, lines)
    return files
