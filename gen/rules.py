"""What an entry says to autocast, forward derivatives and batching, or what its kind says for it.

Rules are data: docs/adding-an-op.md explains their words and tests/ops/rules.py carries them out.
`python -m gen rules` counts them and lists what has none, with the reasons.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gen.derivatives import plan
from gen.expressions import Expression, TableError, read
from gen.table import Op
from gen.text import commas
from ops.roles import ZEROS

_CASTS = ("lower", "float32", "promote", "refused")
DEVICES = ("cpu", "accelerator")
_TANGENTS = ("linear", "multilinear", "elementwise", "reduced", "twice")
_BATCHES = ("aligned", "leading", "matrices", "dims", "fold", "random", "random_like", "slices", "refused")
_REASONED = ("twice", "slices", "refused")


@dataclass(frozen=True)
class Rule:
    kind: str  # a word, or "expression"
    formulas: dict[str, Expression] = field(default_factory=dict)  # by argument or result; of a batch by ""
    reason: str = ""  # why there is no better rule


def _word(op: Op, words: tuple[str, ...], said: str) -> Rule | None:
    """The rule that one of the words names; those that are slow or refuse say why."""
    kind, _, reason = said.partition(": ")
    if kind not in words:
        return None
    if (kind in _REASONED) != bool(reason):
        raise TableError(f"{op.text}: {kind!r} {'wants a reason' if kind in _REASONED else 'has no reason'}")
    return Rule(kind, reason=reason)


def _formula(op: Op, text: str) -> Rule:
    """An expression that C++ and Python both read, of names that are known."""
    known = {*(a.name for a in op.args), *op.result_names, "true", "false", "none", "batch"}
    expression = read(text)
    used = {name for name, how in expression.names.items() if how != {"called"}}
    if not expression.is_python or not used <= known:
        raise TableError(f"{op.text}: {text!r} is not read alike by C++ and Python, or uses a name that is not known")
    return Rule("expression", {"": expression})


def autocast(op: Op) -> dict[str, str]:
    """Device → how autocast treats the op; devices that leave it alone are absent."""
    said = op.autocast if isinstance(op.autocast, dict) else dict.fromkeys(DEVICES, op.autocast)
    if wrong := [r for d, r in said.items() if d not in DEVICES or (r is not None and r not in _CASTS)]:
        raise TableError(f"{op.text}: unknown autocast {wrong[0]!r}")
    return {device: rule for device, rule in said.items() if rule}


def differentiable(op: Op) -> tuple[list[str], list[str]]:
    """The arguments and results between which there is a derivative."""
    p = plan(op)
    return ([a.name for a in p.differentiable], p.results) if p else ([], [])


def tangent(op: Op) -> Rule:
    """How tangents of the results follow from those of the arguments."""
    args, results = differentiable(op)
    word = _word(op, _TANGENTS, op.jvp) if isinstance(op.jvp, str) else None
    if word is not None:
        return word
    if op.jvp:
        said = op.jvp if isinstance(op.jvp, dict) else {args[0]: op.jvp}
        if not (said.keys() <= set(args) or (said.keys() == set(results) and len(args) == 1)):
            raise TableError(f"{op.text}: the keys of jvp= are arguments, or all results of an op of one argument")
        return Rule("expression", {name: read(text) for name, text in said.items()})
    if op.kind == "composite" or not isinstance(op.grad, dict):
        return Rule("composite" if op.kind == "composite" else "none")
    if all(text == f"{ZEROS}(grad)" for text in op.grad.values()):
        return Rule("zero")
    if all("no_derivative" in read(text).names for text in op.grad.values()):
        return Rule("refused", reason="it has no derivative")
    if op.kind == "view" or op.kernel.kind == "pointwise":
        return Rule("linear" if op.kind == "view" else "elementwise")
    if op.kernel.kind == "reduction":
        return Rule("reduced")
    return Rule("twice", reason="no rule yet")


def batch(op: Op) -> dict[str, Rule]:
    """Which arguments may have a batch dimension ("" for all) → how the op meets it; the first that fits holds."""
    if op.batch is not None:
        said = op.batch if isinstance(op.batch, dict) else {"": op.batch}
        return {names: _word(op, _BATCHES, text) or _formula(op, text) for names, text in said.items()}
    if op.kind != "kernel":
        return {"": Rule(op.kind)}
    if op.kernel.kind == "step":  # elements are stepped one by one, so a batch is more of them
        refused = Rule("refused", reason="a counter of steps is one for all slices")
        return {commas(a.name for a in op.tensors if a.type.meaning != "Count"): Rule("leading"), "": refused}
    by_kind = {
        "pointwise": Rule("aligned"),
        **dict.fromkeys(("reduction", "rows"), Rule("dims")),
        "dynamic": Rule("refused", reason="the results of slices differ in size"),
    }
    return {"": by_kind.get(op.kernel.kind, Rule("slices", reason="no rule yet"))}


def report(ops: list[Op]) -> str:
    """How many ops have which rule, and those that have none."""
    casts = [rule for op in ops for rule in sorted(set(autocast(op).values())) or ["nothing"]]
    found = [(op, "jvp", tangent(op)) for op in ops]
    found += [(op, "batch", rule) for op in ops for rule in batch(op).values()]
    lines = []
    kinds = {key: [rule.kind for _, what, rule in found if what == key] for key in ("jvp", "batch")}
    for key, said in {"autocast": casts, **kinds}.items():
        lines.append(f"{key + '=':10}" + ", ".join(f"{kind} {n}" for kind, n in Counter(said).most_common()))
    for wanted in _REASONED:
        lines += ["", f"{wanted}:"]
        lines += [f"  {what:6}{op.symbol:32}{rule.reason}" for op, what, rule in found if rule.kind == wanted]
    return "\n".join(lines)
