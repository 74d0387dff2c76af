"""The CUDA column of the kernel table: its declarations, its struct, and the formulas as device kernels.

A hand-written kernel joins by being defined: `void cuda::NAME(…)` in src/cuda, with the signature declared here. The
struct refers to all of them weakly, so that what nobody defines is null, which callers meet as NotImplementedError.
"""

from __future__ import annotations

from gen import kernels
from gen.table import Op
from gen.text import HEADER, fill, source

COLUMN_H = """
#pragma once

#include "generated/kernels.h"

// table.cpp refers to kernels weakly: those that are not defined are null there.
#ifndef RL_COLUMN
#define RL_COLUMN
#endif

namespace rushlight::cuda {
$declarations

extern const KernelTable table;
extern const char* const kernel_names[];  // ends with null
}  // namespace rushlight::cuda
"""

TABLE = """
#define RL_COLUMN __attribute__((weak))
#include "generated/column.h"

namespace rushlight::cuda {

const KernelTable table = {
    $rows
};

// In the order of the struct.
const char* const kernel_names[] = {
    $names
    nullptr,
};

}  // namespace rushlight::cuda
"""


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    ops = [op for op in ops if op.kind == "kernel"]
    declarations = [f"RL_COLUMN {kernels.declaration(op)};" for op in ops if not op.kernel.anywhere]
    rows = [f".{op.symbol} = {'anywhere' if op.kernel.anywhere else 'cuda'}::{op.symbol}," for op in ops]
    table = fill(TABLE, rows=rows, names=[f'"{op.symbol}",' for op in ops])
    files = {
        "cuda/include/generated/column.h": "\n".join([HEADER, *fill(COLUMN_H, declarations=declarations), ""]),
        "cuda/table.cpp": "\n".join([HEADER, *table, ""]),
    }
    for i, lines in enumerate(kernels.formulas(ops, "RL_CUDA_POINTWISE")):
        files[f"cuda/pointwise_{i}.cu"] = source(["cuda/pointwise.cuh", "generated/column.h"], "rushlight", lines)
    return files
