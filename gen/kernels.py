"""Kernels: the struct of them, the declarations of shape functions, views and composites, the formulas."""

from __future__ import annotations

from typing import NamedTuple

from gen.schema import TableError, owning_type, parameters
from gen.table import Op
from gen.text import HEADER, commas, each, flag, lines, pieces, source

FORMULAS_PER_FILE = 12


def kernel_function(op: Op, name: str) -> str:
    """Of a kernel that is no formula."""
    given = parameters(op.args[op.kernel.kind == "update" :])
    if op.kernel.kind == "dynamic":
        return f"{op.result} {name}({given})"
    outs = ["TensorList out"] if op.gives_list else [f"const Tensor& {o}" for o in op.outs]
    return f"void {name}({commas(outs, given)})"


def contract(op: Op) -> str:
    """What src/ops defines of an op: its shape function, the geometry of a view, a composite."""
    count = 0 if op.kernel.kind == "update" else len(op.results)
    spec = "std::vector<OutSpec>" if op.gives_list else {0: "void", 1: "OutSpec"}.get(count, f"OutSpecs<{count}>")
    result = {
        "kernel": spec,
        "view": "std::vector<ViewSpec>" if op.gives_list else "ViewSpec",
        "composite": "Tensor&" if op.inplace_only else op.result,
    }[op.kind]
    shape = commas([f"{owning_type(a.type)}& {a.name}" for a in op.args])
    return f"{result} {op.symbol}({shape if op.kind == 'kernel' else op.parameters})"


def kernels_header(ops: list[Op]) -> str:
    kernels: dict[str, dict[str, str]] = {"isa": {}, "once": {}, "anywhere": {}}  # the order of the struct
    for op in ops:
        if op.kind == "kernel" and op.kernel.kind != "pointwise":
            kernels[op.kernel.place][op.symbol] = kernel_function(op, f"(*{op.symbol})")
    formula = "void (*{})(const TensorIterator& it, const Scalar* attributes)".format
    kernels["isa"] |= {name: formula(name) for name in formulas(ops)}
    lists = []
    for place, members in kernels.items():
        lists += [f"#define RL_{place.upper()}_KERNELS(X) \\", *(f"  X({name}) \\" for name in members), ""]
    struct = f"""
        {HEADER}
        #pragma once

        #include "core/iterator.h"
        #include "core/op_support.h"

        namespace rushlight {{

        struct KernelTable {{
          {each(f"{said};" for members in kernels.values() for said in members.values())}
        }};

        }}  // namespace rushlight

        {each(lists)}

        #include "core/kernel_table.h"
    """
    return "\n".join([*lines(struct), ""])


def contracts_header(ops: list[Op]) -> str:
    """A header of its own, so that a new composite compiles no kernel again."""
    spaces = []
    for space, kind in {"shape": "kernel", "views": "view", "composite": "composite"}.items():
        own = [op for op in ops if op.kind == kind and op.kernel.kind not in ("pointwise", "dynamic")]
        spaces += [f"namespace {space} {{", *(f"{contract(op)};" for op in own), f"}}  // namespace {space}", ""]
    # What entries name for sparse tensors; what Python is shown in the place of ops.
    sparse = [(op, op.sparse) for op in ops if op.sparse not in (None, "values")]
    parts = [(op, op.symbol) for op in ops if "parts" in op.shown]
    for space, named in {"sparse": sparse, "parts": parts}.items():
        declared = dict.fromkeys(f"{op.result} {name}({op.parameters});" for op, name in named)
        spaces += [f"namespace {space} {{", *declared, f"}}  // namespace {space}", ""]
    return source(["generated/kernels.h"], "rushlight", spaces[:-1], "\n#pragma once\n")


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
            gives = op.kernel.promotion if op.kernel.promote in ("bool", "real") else "Promote::Same"
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


def files_by_template(name: str, template: str, folder: str, kernels: list[str]) -> dict[str, str]:
    """The files of kernels on each device that are calls of a template."""
    columns = {
        f"isa/{name}.cpp": (f"cpu/isa/{folder}/{template}.h", "rushlight::cpu::RL_ISA"),
        f"cuda/{name}.cu": (f"cuda/{template}.cuh", "rushlight::cuda"),
    }
    return {
        path: source([header, "generated/kernels.h"], namespace, kernels)
        for path, (header, namespace) in columns.items()
    }


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; those in isa/ are compiled once per instruction set."""
    headers = {"kernels": kernels_header(ops), "contracts": contracts_header(ops)}
    files = {f"include/generated/{name}.h": text for name, text in headers.items()}
    for path, (macro, header, namespace, by_hand) in FORMULAS.items():
        made = []
        for name, (f, dtypes) in formulas(ops).items():
            said = commas(f"{name}, {f.inputs}, {f.attributes}", " | ".join(dtypes), f.promotion)
            made += [f"{macro}({said}, {flag(f.loop == 'rounds_once')})"] if f.loop not in by_hand else []
        for name, part in pieces(made, FORMULAS_PER_FILE, lambda _: "pointwise"):
            files[path.format(name)] = source([header, "generated/kernels.h"], namespace, part)
    return files
