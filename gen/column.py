"""The CUDA column of the kernel table: its declarations, its struct, and the formulas as device kernels.

A hand-written kernel joins by being defined: `void cuda::NAME(…)` in src/cuda, with the signature declared here. The
struct refers to all of them weakly, so that what nobody defines is null, which callers meet as NotImplementedError.
"""

from __future__ import annotations

from gen import cpp
from gen.table import Op

FORMULAS_PER_FILE = 12


def by_formula(ops: list[Op]) -> list[Op]:
    """Pointwise ops whose kernel is their formula and nothing else."""
    return [
        op
        for op in cpp.kernels(ops)
        if op.kernel is not None and op.kernel.kind == "pointwise" and "kernel" not in op.manual
    ]


def inputs(op: Op) -> int:
    return len([a for a in op.args if a.type.is_tensor])


def column_header(ops: list[Op]) -> str:
    lines = [cpp.HEADER, "#pragma once", "", '#include "generated/kernels.h"', ""]
    lines += ["// table.cpp refers to kernels weakly: those that are not defined are null there.", "#ifndef RL_COLUMN"]
    lines += ["#define RL_COLUMN", "#endif", "", "namespace rushlight::cuda {"]
    for op in cpp.kernels(ops):
        if not cpp.is_anywhere(op):
            lines.append(f"RL_COLUMN {cpp.kernel_declaration(op)};")
    lines += ["", "extern const KernelTable table;", "extern const char* const kernel_names[];  // ends with null", "}  // namespace rushlight::cuda", ""]
    return "\n".join(lines)


def column_table(ops: list[Op]) -> str:
    lines = [cpp.HEADER, "#define RL_COLUMN __attribute__((weak))", '#include "generated/column.h"', ""]
    lines += ["namespace rushlight::cuda {", "", "const KernelTable table = {"]
    for op in cpp.kernels(ops):
        lines.append(f"    .{op.symbol} = {'anywhere' if cpp.is_anywhere(op) else 'cuda'}::{op.symbol},")
    lines += ["};", "", "// In the order of the struct.", "const char* const kernel_names[] = {"]
    lines += [f'    "{op.symbol}",' for op in cpp.kernels(ops)]
    lines += ["    nullptr,", "};", "", "}  // namespace rushlight::cuda", ""]
    return "\n".join(lines)


def formula_sources(ops: list[Op]) -> list[str]:
    chosen = by_formula(ops)
    files = []
    for start in range(0, len(chosen), FORMULAS_PER_FILE):
        lines = [cpp.HEADER, '#include "cuda/pointwise.cuh"', '#include "generated/column.h"', ""]
        lines += ["namespace rushlight {", ""]
        for op in chosen[start : start + FORMULAS_PER_FILE]:
            assert op.kernel is not None
            lines.append(
                f"RL_CUDA_POINTWISE({op.symbol}, {inputs(op)}, {len(cpp.attributes(op))}, "
                f"{' | '.join(op.kernel.dtypes)}, {cpp.promotion(op)})"
            )
        lines += ["", "}  // namespace rushlight", ""]
        files.append("\n".join(lines))
    return files


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {
        "cuda/include/generated/column.h": column_header(ops),
        "cuda/table.cpp": column_table(ops),
    }
    for i, text in enumerate(formula_sources(ops)):
        files[f"cuda/pointwise_{i}.cu"] = text
    return files
