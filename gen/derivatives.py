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

# Kind of a saved thing → how wrappers save it, and how the backward function finds it again.
_SAVING = {
    "tensor": ("node->save($kept);", "const Tensor $name = node.saved($tensor);"),
    "output": ("node->reserve_saved();", "const Tensor $name = node.saved($tensor);"),
    "list": (
        "node->keep(static_cast<int64_t>($name.size()));\nnode->save_list($name);",
        "const $owned $name = node.$list($tensor, length_$name);",
    ),
    "meta": ("node->keep(TensorMeta($name));", "const auto $name = node.value($value).get<TensorMeta>();"),
    "metas": (
        "node->keep(metas_of($name));",
        "const auto metas_$name = node.value($value).get<std::vector<TensorMeta>>();",
    ),
    "value": ("node->keep($name);", "const auto $name = node.value($value).get<$owned>();"),
}
_HOLDING_TENSORS = ("tensor", "output", "list")


@dataclass(frozen=True)
class Saved:
    """One thing that a node keeps; its kind is a key of _SAVING."""

    name: str
    kind: str
    needed_by: tuple[int, ...]  # indices of the formulas that use it
    arg: Arg | None = None  # None for results


@dataclass(frozen=True)
class Formula:
    names: tuple[str, ...]  # the arguments that it gives gradients for; several when joint
    expression: str


@dataclass
class Plan:
    formulas: list[Formula]
    saved: list[Saved]
    differentiable: list[Arg]  # in the order of their edges


def _uses(name: str, text: str) -> tuple[bool, bool]:
    """Whether `name` occurs as a whole tensor, and whether only its metadata is asked somewhere."""
    ends = [m.end() for m in re.finditer(rf"(?<![\w.:]){name}\b(?!\s*\()", text)]
    meta = [re.match(rf"\s*\.\s*{_META}", text[end:]) is not None for end in ends]
    return not all(meta), any(meta)


def result_names(op: Op) -> list[str]:
    if len(op.results) == 1:
        return [op.results[0].name or "result"]
    return [r.name or f"result{i}" for i, r in enumerate(op.results)]


def plan(op: Op) -> Plan | None:
    """None when the op has no gradient."""
    if not isinstance(op.grad, dict):
        return None
    formulas = [Formula(tuple(n.strip() for n in key.split(",")), text) for key, text in op.grad.items()]
    wanted = {n for f in formulas for n in f.names}
    if unknown := wanted - {a.name for a in op.tensors}:
        raise TableError(f"{op.text}: derivative for {min(unknown)!r}, which is no tensor argument")
    saved = []

    def note(name: str, kind: str, users: set[int], arg: Arg | None = None) -> None:
        if users:
            saved.append(Saved(name, kind, tuple(sorted(users)), arg))

    texts = list(enumerate(f.expression for f in formulas))
    for a in op.args:
        if a.name == "grad":  # in a formula always the gradient, never the argument of a backward op
            continue
        metas = {i for i, text in texts if re.search(rf"\bmetas\({a.name}\)", text)}
        whole = {i for i, text in texts if _uses(a.name, re.sub(r"\bmetas\(\w+\)", "", text))[0]}
        meta = {i for i, text in texts if _uses(a.name, text)[1]}
        if a.type.base != "Tensor":
            note(a.name, "value", whole | meta, a)
        elif a.type.is_list:
            note(a.name, "list", whole, a)
            note(a.name, "metas", metas, a)
        elif whole:
            note(a.name, "tensor", whole | meta, a)
        else:
            note(a.name, "meta", meta, a)
    for name in result_names(op):
        note(name, "output", {i for i, text in texts if any(_uses(name, text))})
    return Plan(formulas, saved, [a for a in op.args if a.name in wanted])


def any_wanted(p: Plan) -> str:
    return " || ".join(f"grad_wanted({a.name})" for a in p.differentiable)


def _plus(a: str, b: str) -> str:
    if a.isdigit() and b.isdigit():
        return str(int(a) + int(b))
    return b if a == "0" else f"{a} + {b}"


def _tensor_places(p: Plan, length: str) -> dict[Saved, str]:
    """Where saved tensors and lists lie among the node's tensors; `length` is that of the list `{}`."""
    place, places = "0", {}
    for s in p.saved:
        if s.kind in _HOLDING_TENSORS:
            places[s] = place
            place = _plus(place, length.format(s.name) if s.kind == "list" else "1")
    return places


# ---- the backward function ----


def _grads(op: Op) -> list[str]:
    names = result_names(op)
    if len(names) > 1:
        return [f"Tensor& grad_{n} = grads[{i}];" for i, n in enumerate(names)]
    if op.results[0].type.is_list:
        return ["ArrayRef<Tensor> grad_list(grads, node.num_outputs());"]
    return ["Tensor& grad = grads[0];"]


def _wants(a: Arg) -> str:
    if a.type.is_list:
        return f"node.wants_any(edge_{a.name}, count_{a.name})"
    return f"node.wants(edge_{a.name})"


def _gradients(args: list[Arg], text: str) -> list[str]:
    """Statements that compute a formula and give its results to the edges of `args`."""
    first = args[0].name
    if len(args) > 1:
        lines = [f"auto gradients = {text};"]
        if re.search(r"\bmask\b", text):
            lines.insert(0, f"const std::array<bool, {len(args)}> mask = {{{commas([_wants(a) for a in args])}}};")
        for k, a in enumerate(args):
            lines += block(f"if ({_wants(a)})", [f"out[edge_{a.name}] = std::get<{k}>(gradients);"])
        return lines
    if args[0].type.is_list:
        copied = f"std::copy_n(gradients.begin(), count_{first}, out + edge_{first});"
        return [f"const std::vector<Tensor> gradients = {text};", copied]
    return [f"out[edge_{first}] = {text};"]


def backward_function(op: Op, p: Plan) -> list[str]:
    """The C++ function `backward_<symbol>` of the op's node."""
    lines = [f"[[maybe_unused]] const {text}" for text in _grads(op)]
    # Edges: one per tensor, as many as it holds for a list, whose length is the first kept value.
    values, edge = 0, "0"
    for a in p.differentiable:
        lines.append(f"const size_t edge_{a.name} = {edge};")
        edge = f"edge_{a.name} + 1"
        if a.type.is_list:
            lines.append(f"const auto count_{a.name} = static_cast<size_t>(node.value({values}).get<int64_t>());")
            values += 1
            edge = f"edge_{a.name} + count_{a.name}"
    tensors = _tensor_places(p, "length_{}")
    unpack: dict[Saved, list[str]] = {}
    for s in p.saved:
        if s.kind == "list":
            lines.append(f"const auto length_{s.name} = static_cast<size_t>(node.value({values}).get<int64_t>());")
        optional = s.arg is not None and s.arg.type.element_optional
        unpack[s] = fill(
            _SAVING[s.kind][1],
            name=s.name,
            tensor=tensors.get(s),
            value=values,
            list="saved_optional_list" if optional else "saved_list",
            owned=types.owned(s.arg.type) if s.arg is not None else "Tensor",
        )
        values += s.kind not in ("tensor", "output")
    for i, f in enumerate(p.formulas):
        args = [next(a for a in p.differentiable if a.name == n) for n in f.names]
        body = [line for s in p.saved if i in s.needed_by for line in unpack[s]]
        body += _gradients(args, re.sub(r"\bmetas\((\w+)\)", r"metas_\1", f.expression))
        lines += block(f"if ({' || '.join(_wants(a) for a in args)})", body)
    return block(f"void backward_{op.symbol}(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out)", lines)


def descriptors(op: Op, p: Plan) -> list[str]:
    """The node's constant descriptors, one for each name that it may have."""
    # Names of saved tensors and of values, in order; "-" for what has no public name.
    tensors = [s.name + ("[]" if s.kind == "list" else "") for s in p.saved if s.kind in _HOLDING_TENSORS]
    values = ["-" for a in p.differentiable if a.type.is_list]
    values += [s.name if s.kind == "value" else "-" for s in p.saved if s.kind not in ("tensor", "output")]
    return [
        f"const NodeDescriptor descriptor_{op.symbol}{f'_{i}' if i else ''} = "
        f'{{"{name}", backward_{op.symbol}, {flag(op.undefined_grads)}, "{" ".join(tensors)}", "{" ".join(values)}"}};'
        for i, name in enumerate(op.node_names.values())
    ]


# ---- what wrappers do ----


def _needed(p: Plan, s: Saved) -> str:
    """A C++ condition: is this saved thing used by any wanted gradient? `true` when always."""
    names = {n for i in s.needed_by for n in p.formulas[i].names}
    if names >= {a.name for a in p.differentiable}:
        return "true"
    return " || ".join(f"want_{a.name}" for a in p.differentiable if a.name in names)


def record(op: Op, p: Plan, *, inplace: bool) -> list[str]:
    """Statements that build `node` before the kernel runs: edges, inputs and values saved."""
    descriptor = f"&descriptor_{op.symbol}"
    for i, condition in enumerate(op.node_names):
        if condition:
            descriptor = f"{condition} ? &descriptor_{op.symbol}_{i} : {descriptor}"
    lines = [f"node = Ref<Node>::steal(new Node({descriptor}));"]
    lines += [f"[[maybe_unused]] const bool want_{a.name} = grad_wanted({a.name});" for a in p.differentiable]
    lines += [f"add_edges(*node, {a.name});" for a in p.differentiable]
    for s in p.saved:
        # An in-place op overwrites self: what its derivative needs is the value before.
        kept = "self.clone()" if inplace and s.name == "self" else s.name
        if (condition := _needed(p, s)) != "true":
            kept = f"{condition} ? {kept} : Tensor()"
        lines += fill(_SAVING[s.kind][0], name=s.name, kept=kept)
    return lines


def record_outputs(p: Plan) -> list[str]:
    """Statements that save results, after the history is set."""
    places = _tensor_places(p, "{}.size()")
    return [f"node->fill_saved({place}, {s.name});" for s, place in places.items() if s.kind == "output"]
