"""Steps of optimisers: what they check, their kernels on every device, and the same recorded, from one rule each."""

from __future__ import annotations

from gen.kernels import contract, files_by_template, kernel_function
from gen.schema import parameters
from gen.table import Op
from gen.text import block, commas, flat, source


def call(op: Op, function: str, text: str) -> str:
    """The statement that gives lists, counters and the rule to a function; `text`: what is said of a list."""
    lists = [text.format(a.name) for a in op.tensors if a.type.meaning != "Count"]
    counters = [text.format(a.name) for a in op.tensors if a.type.meaning == "Count"]
    settings = commas(f".{a.name} = {a.name}" for a in op.args if a not in op.tensors)
    rule = f"rules::{op.kernel.formulas[0].name}{{{settings}}}"
    return f'{function}("{op.name}", {{{commas(lists)}}}, {{{commas(counters)}}}, {rule});'


def shape(op: Op) -> list[str]:
    return [*block(contract(op), [call(op, "check_step", '{{"{0}", {0}}}')]), ""]


def recorded(op: Op) -> list[str]:
    head = f"void _recorded_{op.name}({parameters(op.args)})"
    return [*block(head, [call(op, "record_step", '{{"{0}", {0}}}')]), ""]


def kernel(op: Op) -> list[str]:
    return [*block(kernel_function(op, op.symbol), [call(op, "step_by", "{}")]), ""]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; those in isa/ are compiled once per instruction set."""
    found = [op for op in ops if op.kernel.kind == "step"]
    return {
        "src/step_checks.cpp": source(["ops/step_checks.h"], "rushlight::shape", flat(map(shape, found))),
        "src/recorded_steps.cpp": source(["ops/recorded_steps.h"], "rushlight::composite", flat(map(recorded, found))),
        **files_by_template("steps", "step_by", "pointwise", flat(map(kernel, found))),
    }
