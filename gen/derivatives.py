"""From derivative strings to what a node saves and the C++ body of its backward.

A derivative names arguments, results and `grad`. `plan` finds what it really needs: whole tensors, or only sizes and
dtypes (`x.sizes()` …), or plain values; wrappers save just that, and the backward function unpacks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gen import types
from gen.table import Arg, Op, TableError
from gen.text import block, commas, fill, flag

_META = r"(?:sizes|dim|numel|dtype|scalar_type|size|device|options|is_complex|strides|storage_offset)\("

# Kind of a saved thing → how wrappers save it, and how the backward function finds it again. Of a list that has a
# gradient only the metadata is known there.
_SAVING = {
    "tensor": ("node->save($kept);", "const Tensor $name = node.saved($place);"),
    "output": ("node->reserve_saved();", "const Tensor $name = node.saved($place);"),
    "list": ("node->save_list($name);", "const auto $name = node.saved_list($place);"),
    "meta": ("node->keep(TensorMeta($name));", "const auto $name = node.value($place).get<TensorMeta>();"),
    "metas": ("node->keep(metas_of($name));", "const auto $name = node.value($place).get<std::vector<TensorMeta>>();"),
    "value": ("node->keep($name);", "const auto $name = node.value($place).get<$owned>();"),
}
_TENSORS = ("tensor", "output", "list")


@dataclass(frozen=True)
class Formula:
    args: tuple[Arg, ...]  # those that it gives gradients for; several when joint
    expression: str


@dataclass(frozen=True)
class Saved:
    """One thing that a node keeps; its kind is a key of _SAVING."""

    name: str
    kind: str
    needed_by: tuple[Formula, ...]
    arg: Arg | None = None  # None for results


@dataclass
class Plan:
    formulas: list[Formula]
    saved: list[Saved]
    differentiable: list[Arg]  # in the order of their edges


def _uses(name: str, text: str) -> set[str]:
    """How `name` occurs in a formula: as a "whole" tensor, asked for its "meta" data."""
    ends = [m.end() for m in re.finditer(rf"(?<![\w.:]){name}\b(?!\s*\()", text)]
    return {"meta" if re.match(rf"\s*\.\s*{_META}", text[end:]) else "whole" for end in ends}


def _kind(arg: Arg | None, uses: set[str]) -> str:
    if arg is None:
        return "output"
    if arg.type.base != "Tensor":
        return "value"
    if arg.type.is_list:
        return "list" if arg.type.element_optional else "metas"
    return "tensor" if "whole" in uses else "meta"


def result_names(op: Op) -> list[str]:
    if len(op.results) == 1:
        return [op.results[0].name or "result"]
    return [r.name or f"result{i}" for i, r in enumerate(op.results)]


def plan(op: Op) -> Plan | None:
    """None when the op has no gradient."""
    if not isinstance(op.grad, dict):
        return None
    tensors = {a.name: a for a in op.tensors}
    formulas = []
    for key, text in op.grad.items():
        names = [name.strip() for name in key.split(",")]
        if unknown := [name for name in names if name not in tensors]:
            raise TableError(f"{op.text}: derivative for {unknown[0]!r}, which is no tensor argument")
        formulas.append(Formula(tuple(tensors[name] for name in names), text))
    differentiable = [a for a in op.tensors if any(a in f.args for f in formulas)]
    if len(differentiable) > 1 and any(a.type.is_list for a in differentiable):
        raise TableError(f"{op.text}: a list that has a gradient must be the only such argument")
    saved = []
    # `grad` in a formula is always the gradient, never the argument of a backward op.
    known = {a.name: a for a in op.args if a.name != "grad"} | dict.fromkeys(result_names(op))
    for name, arg in known.items():
        uses = {f: _uses(name, f.expression) for f in formulas}
        if users := tuple(f for f, found in uses.items() if found):
            saved.append(Saved(name, _kind(arg, set().union(*uses.values())), users, arg))
    lists = [s for s in saved if s.kind == "list"]
    if len(lists) > 1:
        raise TableError(f"{op.text}: the derivative uses more than one list of tensors")
    return Plan(formulas, [s for s in saved if s not in lists] + lists, differentiable)


def any_wanted(p: Plan) -> str:
    return " || ".join(f"needs_grad({a.name})" for a in p.differentiable)


def _places(p: Plan) -> dict[Saved, int]:
    """Where saved things lie among the node's tensors or among its values; a list is the last of the tensors."""
    kept = [[s for s in p.saved if (s.kind in _TENSORS) == tensors] for tensors in (True, False)]
    return {s: i for things in kept for i, s in enumerate(things)}


# ---- the backward function ----


def _grads(op: Op) -> list[str]:
    names = result_names(op)
    if len(names) > 1:
        return [f"Tensor& grad_{n} = grads[{i}];" for i, n in enumerate(names)]
    if op.results[0].type.is_list:
        return ["ArrayRef<Tensor> grad_list(grads, node.num_outputs());"]
    return ["Tensor& grad = grads[0];"]


def _wants(a: Arg) -> str:
    return "node.wants_any()" if a.type.is_list else f"node.wants(edge_{a.name})"


def _gradients(f: Formula) -> list[str]:
    """Statements that compute a formula and give its results to the edges of its arguments."""
    args, text = f.args, f.expression
    if len(args) != 1:
        lines = [f"auto gradients = {text};"]
        if re.search(r"\bmask\b", text):
            lines.insert(0, f"const std::array<bool, {len(args)}> mask = {{{commas([_wants(a) for a in args])}}};")
        for k, a in enumerate(args):
            lines += block(f"if ({_wants(a)})", [f"out[edge_{a.name}] = std::get<{k}>(gradients);"])
        return lines
    if args[0].type.is_list:
        return [f"std::ranges::move({text}, out);"]
    return [f"out[edge_{args[0].name}] = {text};"]


def backward_function(op: Op, p: Plan) -> list[str]:
    """The C++ function `backward_<symbol>` of the op's node."""
    lines = [f"[[maybe_unused]] const {text}" for text in _grads(op)]
    lines += [f"const size_t edge_{a.name} = {i};" for i, a in enumerate(p.differentiable) if not a.type.is_list]
    places = _places(p)
    # What several formulas use is unpacked once: a hook may have to compute it again.
    shared = [s for s in p.saved if s.kind in _TENSORS and len(s.needed_by) > 1]
    for s in shared:
        wanted = " || ".join(_wants(a) for f in s.needed_by for a in f.args)
        found = f"node.saved{'_list' if s.kind == 'list' else ''}({places[s]})"
        lines.append(f"const auto {s.name} = {wanted} ? {found} : decltype({found})();")
    for f in p.formulas:
        body = []
        for s in p.saved:
            if f in s.needed_by and s not in shared:
                owned = types.owning_type(s.arg.type) if s.arg is not None else "Tensor"
                body += fill(_SAVING[s.kind][1], name=s.name, place=places[s], owned=owned)
        lines += block(f"if ({' || '.join(_wants(a) for a in f.args)})", body + _gradients(f))
    return block(f"void backward_{op.symbol}(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out)", lines)


def descriptors(op: Op, p: Plan) -> list[str]:
    """The node's constant descriptors, one for each name that it may have."""
    # Names of saved tensors and of values, in order; "-" for what has no public name.
    public = {s: "-" if s.kind in ("meta", "metas") else s.name + ("[]" if s.kind == "list" else "") for s in p.saved}
    tensors, values = (
        " ".join(name for s, name in public.items() if (s.kind in _TENSORS) == wanted) for wanted in (True, False)
    )
    return [
        f"const NodeDescriptor descriptor_{op.symbol}{f'_{i}' if i else ''} = "
        f'{{"{name}", backward_{op.symbol}, {flag(op.undefined_grads)}, "{tensors}", "{values}"}};'
        for i, name in enumerate(op.node_names.values())
    ]


# ---- what wrappers do ----


def _needed(p: Plan, s: Saved) -> str:
    """A C++ condition: is this saved thing used by any wanted gradient? `true` when always."""
    users = {a for f in s.needed_by for a in f.args}
    if users >= set(p.differentiable):
        return "true"
    return " || ".join(f"want_{a.name}" for a in p.differentiable if a in users)


def record(op: Op, p: Plan, *, inplace: bool) -> list[str]:
    """Statements that build `node` before the kernel runs: edges, inputs and values saved."""
    descriptor = f"&descriptor_{op.symbol}"
    for i, condition in enumerate(op.node_names):
        if condition:
            descriptor = f"{condition} ? &descriptor_{op.symbol}_{i} : {descriptor}"
    lines = [f"node = Ref<Node>::steal(new Node({descriptor}));"]
    lines += [f"[[maybe_unused]] const bool want_{a.name} = needs_grad({a.name});" for a in p.differentiable]
    lines += [f"add_edges(*node, {a.name});" for a in p.differentiable]
    for s in p.saved:
        # An in-place op overwrites self: what its derivative needs is the value before.
        kept = "value_before(self)" if inplace and s.name == "self" else s.name
        if (condition := _needed(p, s)) != "true":
            kept = f"{condition} ? {kept} : Tensor()"
        lines += fill(_SAVING[s.kind][0], name=s.name, kept=kept)
    return lines


def record_outputs(p: Plan) -> list[str]:
    """Statements that save results, after the history is set."""
    return [f"node->fill_saved({place}, {s.name});" for s, place in _places(p).items() if s.kind == "output"]
