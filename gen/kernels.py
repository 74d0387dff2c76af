"""Kernels: the struct of them, the declarations of shape functions, views and composites, the formulas."""

from __future__ import annotations

from dataclasses import replace

from gen import types
from gen.declarations import out_parameters
from gen.table import Op, Type
from gen.text import HEADER, commas, fill, pieces, source

FORMULAS_PER_FILE = 12


def declaration(op: Op, name: str = "") -> str:
    """Of the kernel."""
    result = types.result_type(op.results) if op.kernel.kind == "dynamic" else "void"
    outs = ["TensorList out"] if op.gives_list else [f"const Tensor& {o}" for o in out_parameters(op)]
    first, args = {
        "pointwise": (["TensorIterator& it"], op.attributes),
        "custom": (outs, op.args),
        "update": (["const Tensor& out"], op.args[1:]),
        "dynamic": ([], op.args),
    }[op.kernel.kind]
    if op.by_formula:  # whose attributes are Scalars, whatever the schema says
        args = [replace(a, type=Type("Scalar")) for a in args]
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
    return f"{spec_type(op)} {op.symbol}({commas([f'{types.owned(a.type)}& {a.name}' for a in op.args])})"


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

PLACES = ("ISA", "ONCE", "ANYWHERE")  # the order of the struct


def kernels_header(ops: list[Op]) -> str:
    kernels = [(place, [op for op in ops if op.kind == "kernel" and op.kernel.place == place]) for place in PLACES]
    lists = [
        [f"#define RL_{place}_KERNELS(X) \\", *(f"  X({op.symbol}) \\" for op in members), ""]
        for place, members in kernels
    ]
    lines = fill(
        KERNELS_H,
        pointers=[f"{declaration(op, f'(*{op.symbol})')};" for _, members in kernels for op in members],
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


# Path of a file of formulas → the macro that makes a kernel of one, where it stands, and the namespace.
FORMULAS = {
    "isa/{}.cpp": ("RL_POINTWISE_KERNEL", "cpu/isa/pointwise/loops.h", "rushlight::cpu::RL_ISA"),
    "cuda/{}.cu": ("RL_CUDA_POINTWISE", "cuda/pointwise.cuh", "rushlight"),
}


def formula(op: Op) -> str:
    """What such a macro is given."""
    inputs = sum(a.type.is_tensor for a in op.args)
    return f"({op.symbol}, {inputs}, {len(op.attributes)}, {' | '.join(op.kernel.dtypes)}, {promotion(op)})"


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; those in isa/ are compiled once per instruction set."""
    files = {
        "include/generated/kernels.h": kernels_header(ops),
        "include/generated/contracts.h": contracts_header(ops),
    }
    for path, (macro, header, namespace) in FORMULAS.items():
        for name, part in pieces([op for op in ops if op.by_formula], FORMULAS_PER_FILE, lambda op: "pointwise"):
            lines = [macro + formula(op) for op in part]
            files[path.format(name)] = source([header, "generated/kernels.h"], namespace, lines)
    return files
