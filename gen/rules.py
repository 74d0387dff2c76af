"""What an entry says to autocast, forward derivatives and batching, or what its kind says for it.

Rules are data: docs/adding-an-op.md explains their words and expressions, tests/ops/rules.py carries them out.
`python -m gen rules` counts them and lists what has none, with the reasons.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

from gen.derivatives import plan, result_names
from gen.table import Op, TableError

_CASTS = ("lower", "float32", "promote", "refused")
DEVICES = ("cpu", "accelerator")
_TANGENTS = ("linear", "multilinear", "elementwise", "reduced", "twice")
_BATCHES = ("aligned", "leading", "matrices", "dims", "fold", "random", "random_like", "slices", "refused")
_REASONED = ("twice", "slices", "refused")
# What C++ and Python both read, and read alike.
_SHARED = "Expression Call Attribute Name Constant BinOp UnaryOp Load Add Sub Mult Div USub"


@dataclass(frozen=True)
class Rule:
    kind: str  # a word, or "expression"
    formulas: dict[str, str] = field(default_factory=dict)  # of a tangent: argument or result → expression
    text: str = ""  # of a batch: the expression
    reason: str = ""  # why there is no better rule


def _word(op: Op, words: tuple[str, ...], said: str) -> Rule | None:
    """The rule that one of the words names; those that are slow or refuse say why."""
    kind, _, reason = said.partition(": ")
    if kind not in words:
        return None
    if (kind in _REASONED) != bool(reason):
        raise TableError(f"{op.text}: {kind!r} {'wants a reason' if kind in _REASONED else 'has no reason'}")
    return Rule(kind, reason=reason)


def _check(op: Op, text: str, more: set[str]) -> str:
    """Refuses an expression that C++ and Python do not both read, or that uses unknown names."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise TableError(f"{op.text}: {text!r} is no expression") from error
    if not all(type(n).__name__ in _SHARED.split() for n in ast.walk(tree)):
        raise TableError(f"{op.text}: {text!r} is not read alike by C++ and Python")
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    known = {a.name for a in op.args} | set(result_names(op)) | {"true", "false", "none"} | more | called
    if unknown := {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - known:
        raise TableError(f"{op.text}: {text!r} uses {min(unknown)!r}")
    return text


def autocast(op: Op) -> dict[str, str]:
    """Device → how autocast treats the op; devices that leave it alone are absent."""
    said = op.autocast if isinstance(op.autocast, dict) else dict.fromkeys(DEVICES, op.autocast)
    if wrong := [r for d, r in said.items() if d not in DEVICES or (r is not None and r not in _CASTS)]:
        raise TableError(f"{op.text}: unknown autocast {wrong[0]!r}")
    return {device: rule for device, rule in said.items() if rule}


def differentiable(op: Op) -> tuple[list[str], list[str]]:
    """The arguments and results between which there is a derivative."""
    p = plan(op)
    named = [] if p is None else [n for n in result_names(op) if n not in op.nondiff]
    return [a.name for a in p.differentiable] if p else [], named


def tangent(op: Op) -> Rule:
    """How tangents of the results follow from those of the arguments."""
    args, results = differentiable(op)
    if isinstance(op.jvp, dict) or (op.jvp and _word(op, _TANGENTS, op.jvp) is None):
        said = op.jvp if isinstance(op.jvp, dict) else {args[0]: op.jvp}
        if not (said.keys() <= set(args) or (said.keys() == set(results) and len(args) == 1)):
            raise TableError(f"{op.text}: the keys of jvp= are arguments, or all results of an op of one argument")
        return Rule("expression", dict(said))
    word = _word(op, _TANGENTS, op.jvp) if op.jvp else None
    if word is not None:
        return word
    if op.kind == "composite":
        return Rule("composite")
    if not isinstance(op.grad, dict):
        return Rule("none")
    if all(text == "zeros_like(grad)" for text in op.grad.values()):
        return Rule("zero")
    if all(text.startswith("no_derivative(") for text in op.grad.values()):
        return Rule("refused", reason="it has no derivative")
    if op.kind == "view":
        return Rule("linear")
    if op.kernel.kind == "pointwise":
        return Rule("elementwise")
    return Rule("twice", reason="no rule yet")


def batch(op: Op) -> dict[str, Rule]:
    """Which arguments may have a batch dimension ("" for all) → how the op meets it; the first that fits holds."""
    if op.batch is not None:
        said = op.batch if isinstance(op.batch, dict) else {"": op.batch}
        return {
            names: _word(op, _BATCHES, text) or Rule("expression", text=_check(op, text, {"batch"}))
            for names, text in said.items()
        }
    if op.kind in ("composite", "view"):
        return {"": Rule(op.kind)}
    if op.kernel.kind == "pointwise":
        return {"": Rule("aligned")}
    if op.kernel.kind == "dynamic":
        return {"": Rule("refused", reason="the results of slices differ in size")}
    return {"": Rule("slices", reason="no rule yet")}


def report(ops: list[Op]) -> str:
    """How many ops have which rule, and those that have none."""
    lines = []
    counts = {
        "autocast": Counter(rule for op in ops for rule in sorted(set(autocast(op).values())) or ["nothing"]),
        "jvp": Counter(tangent(op).kind for op in ops),
        "batch": Counter(rule.kind for op in ops for rule in batch(op).values()),
    }
    for key, counted in counts.items():
        lines.append(f"{key + '=':10}" + ", ".join(f"{kind} {n}" for kind, n in counted.most_common()))
    rules = [(op, "jvp", tangent(op)) for op in ops] + [
        (op, "batch", rule) for op in ops for rule in batch(op).values()
    ]
    for wanted in _REASONED:
        lines += ["", f"{wanted}:"]
        lines += [f"  {what:6}{op.symbol:32}{rule.reason}" for op, what, rule in rules if rule.kind == wanted]
    return "\n".join(lines)
