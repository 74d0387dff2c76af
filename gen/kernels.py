"""Kernels: their declarations, those of shape functions, views and composites, the CPU's tables, the formulas."""

from __future__ import annotations

from collections.abc import Iterator

from gen import types
from gen.declarations import out_parameters, schema_hash
from gen.table import Op
from gen.text import HEADER, commas, fill, pieces, source

FORMULAS_PER_FILE = 12
LEVELS = ("v2", "v3", "v4")


def declaration(op: Op, name: str = "") -> str:
    """Of the kernel."""
    kind = op.kernel.kind
    result = types.result_type(op.results) if kind == "dynamic" else "void"
    if kind == "pointwise" and op.by_formula:  # whose attributes are Scalars, whatever the schema says
        parameters = commas("TensorIterator& it", [f"const Scalar& {a.name}" for a in op.attributes])
    elif kind == "pointwise":
        parameters = commas("TensorIterator& it", types.parameters(op.attributes))
    elif kind == "dynamic":
        parameters = types.parameters(op.args)
    elif kind == "update":
        parameters = commas("const Tensor& out", types.parameters(op.args[1:]))
    else:
        outs = ["TensorList out"] if op.gives_list else [f"const Tensor& {o}" for o in out_parameters(op)]
        parameters = commas(outs, types.parameters(op.args))
    return f"{result} {name or op.symbol}({parameters})"


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

namespace shape {
$shapes
}  // namespace shape

namespace views {
$views
}  // namespace views

namespace composite {
$composites
}  // namespace composite

struct KernelTable {
  $pointers
};
// By device; a null entry is an op that the device lacks. Meta has none and needs none.
extern const KernelTable* kernel_tables[num_device_types];
inline constexpr const char* kernel_table_hash = "$hash";  // of the schemas

// Kernels over copy_raw, fill_raw and views, which every device shares.
namespace anywhere {
$anywhere
}  // namespace anywhere

namespace cpu {
$once
$levels
}  // namespace cpu
}  // namespace rushlight
"""


def kernels_header(ops: list[Op]) -> str:
    kernels = [op for op in ops if op.kind == "kernel"]
    on_isa = [f"{declaration(op)};" for op in kernels if op.kernel.isa]
    lines = fill(
        KERNELS_H,
        shapes=[f"{shape_function(op)};" for op in ops if has_shape_function(op)],
        views=[f"{view_function(op)};" for op in ops if op.kind == "view"],
        composites=[f"{composite_function(op)};" for op in ops if op.kind == "composite"],
        pointers=[f"{declaration(op, f'(*{op.symbol})')};" for op in kernels],
        hash=schema_hash(ops),
        anywhere=[f"RL_API {declaration(op)};" for op in kernels if op.kernel.anywhere],
        once=[f"{declaration(op)};" for op in kernels if not op.kernel.isa and not op.kernel.anywhere],
        levels=[line for level in LEVELS for line in (f"namespace {level} {{", *on_isa, f"}}  // namespace {level}")],
    )
    return "\n".join([HEADER, *lines, ""])


CPU_TABLES = """
namespace cpu {

#define RL_CPU_TABLE(level) \\
  namespace level { \\
  const KernelTable kernel_table = { \\
      $rows
  }; \\
  }
#ifdef RL_ONE_ISA
RL_CPU_TABLE(RL_ONE_ISA)
#else
$tables
#endif

static const KernelTable* cpu_table() { return &RL_ISA_TABLE(kernel_table); }

}  // namespace cpu

const KernelTable* kernel_tables[num_device_types] = {cpu::cpu_table(), nullptr, nullptr};
"""


def kernel_tables(ops: list[Op]) -> str:
    rows = []
    for op in ops:
        if op.kind == "kernel":
            space = "anywhere::" if op.kernel.anywhere else "cpu::level::" if op.kernel.isa else "cpu::"
            rows.append(f".{op.symbol} = {space}{op.symbol}, \\")
    lines = fill(CPU_TABLES, rows=rows, tables=[f"RL_CPU_TABLE({level})" for level in LEVELS])
    return source(["generated/kernels.h", "", "cpu/isa_level.h"], "rushlight", lines)


def promotion(op: Op) -> str:
    return f"Promote::{op.kernel.promote.capitalize()}"


def formulas(ops: list[Op], macro: str) -> Iterator[list[str]]:
    """Uses of a macro that makes a kernel of a formula, for one file each."""
    for _, part in pieces([op for op in ops if op.by_formula], FORMULAS_PER_FILE):
        yield [
            f"{macro}({op.symbol}, {sum(a.type.is_tensor for a in op.args)}, {len(op.attributes)}, "
            f"{' | '.join(op.kernel.dtypes)}, {promotion(op)})"
            for op in part
        ]


def pointwise_sources(ops: list[Op]) -> list[str]:
    """The files that are compiled once per instruction set."""
    includes = ["cpu/isa/loops.h", "generated/kernels.h"]
    return [source(includes, "rushlight::cpu::RL_ISA", lines) for lines in formulas(ops, "RL_POINTWISE_KERNEL")]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {
        "include/generated/kernels.h": kernels_header(ops),
        "src/kernel_tables.cpp": kernel_tables(ops),
    }
    return files | {f"isa/pointwise_{i}.cpp": text for i, text in enumerate(pointwise_sources(ops))}
