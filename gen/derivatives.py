"""From derivative strings to what a node saves and the C++ body of its backward.

A derivative names arguments, results and `grad`. `plan` finds what it really needs: whole tensors, or only sizes and
dtypes (`x.sizes()` …), or plain values; wrappers save just that, and the backward function unpacks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gen import types
from gen.table import Arg, Op, TableError
from gen.text import block

_META = r"(?:sizes|dim|numel|dtype|scalar_type|size|device|options|is_complex|strides|storage_offset)\("


@dataclass(frozen=True)
class Saved:
    """One thing that a node keeps. kind: tensor, list, output, meta, metas, value."""

    name: str
    kind: str
    needed_by: tuple[int, ...]  # indices of the formulas that use it
    arg: Arg | None = None


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
    whole = meta = False
    for m in re.finditer(rf"(?<![\w.:]){name}\b(?!\s*\()", text):
        if re.match(rf"\s*\.\s*{_META}", text[m.end() :]):
            meta = True
        else:
            whole = True
    return whole, meta


def result_names(op: Op) -> list[str]:
    if len(op.results) == 1:
        return [op.results[0].name or "result"]
    return [r.name or f"result{i}" for i, r in enumerate(op.results)]


def plan(op: Op) -> Plan | None:
    """None when the op has no gradient."""
    if not isinstance(op.grad, dict):
        return None
    by_name = {a.name: a for a in op.args}
    formulas = [Formula(tuple(n.strip() for n in key.split(",")), text) for key, text in op.grad.items()]
    for f in formulas:
        for n in f.names:
            if n not in by_name or by_name[n].type.base != "Tensor":
                raise TableError(f"{op.text}: derivative for {n!r}, which is no tensor argument")
    wanted = {n for f in formulas for n in f.names}
    differentiable = [a for a in op.args if a.name in wanted]
    saved: list[Saved] = []

    def note(name: str, kind: str, users: list[int], arg: Arg | None = None) -> None:
        if users:
            saved.append(Saved(name, kind, tuple(users), arg))

    for a in op.args:
        if a.name == "grad":  # in a formula always the gradient, never the argument of a backward op
            continue
        whole = [i for i, f in enumerate(formulas) if _uses(a.name, _without_metas(f.expression))[0]]
        meta = [i for i, f in enumerate(formulas) if _uses(a.name, f.expression)[1]]
        metas = [i for i, f in enumerate(formulas) if re.search(rf"\bmetas\({a.name}\)", f.expression)]
        if a.type.base == "Tensor" and a.type.is_list:
            note(a.name, "list", whole, a)
            note(a.name, "metas", metas, a)
        elif a.type.is_tensor:
            note(a.name, "tensor", sorted({*whole, *meta}) if whole else [], a)
            note(a.name, "meta", [] if whole else meta, a)
        else:
            note(a.name, "value", sorted({*whole, *meta}), a)
    for r in result_names(op):
        users = [i for i, f in enumerate(formulas) if any(_uses(r, f.expression))]
        note(r, "output", users)
    return Plan(formulas, saved, differentiable)


def _without_metas(text: str) -> str:
    return re.sub(r"\bmetas\(\w+\)", "", text)


def needed(op: Op, p: Plan, s: Saved) -> str:
    """A C++ condition: is this saved thing used by any wanted gradient? `true` when always."""
    names = {n for i in s.needed_by for n in p.formulas[i].names}
    if names >= {a.name for a in p.differentiable}:
        return "true"
    return " || ".join(f"want_{a.name}" for a in p.differentiable if a.name in names)


def backward_function(op: Op, p: Plan) -> list[str]:
    """The C++ function `backward_<symbol>` of the op's node."""
    names = result_names(op)
    if len(names) == 1 and op.results[0].type.is_list:
        grads = ["ArrayRef<Tensor> grad_list(grads, node.num_outputs());"]
    elif len(names) == 1:
        grads = ["Tensor& grad = grads[0];"]
    else:
        grads = [f"Tensor& grad_{n} = grads[{i}];" for i, n in enumerate(names)]
    lines = [f"[[maybe_unused]] const {text}" for text in grads]
    # Edges: one per tensor, as many as it holds for a list, whose length is the first kept value.
    values = 0
    offset = "0"
    for a in p.differentiable:
        lines.append(f"const size_t edge_{a.name} = {offset};")
        if a.type.is_list:
            lines.append(f"const auto count_{a.name} = static_cast<size_t>(node.value({values}).get<int64_t>());")
            values += 1
        offset = f"edge_{a.name} + {f'count_{a.name}' if a.type.is_list else 1}"
    # Where each saved thing lies.
    unpack: dict[Saved, str] = {}
    tensors = "0"
    for s in p.saved:
        if s.kind in ("tensor", "output"):
            unpack[s] = f"const Tensor {s.name} = node.saved({tensors});"
            tensors = _plus(tensors, "1")
            continue
        value = f"node.value({values})"
        values += 1
        if s.kind == "list":
            assert s.arg is not None
            lines.append(f"const auto length_{s.name} = static_cast<size_t>({value}.get<int64_t>());")
            method = "saved_optional_list" if s.arg.type.element_optional else "saved_list"
            unpack[s] = f"const {types.owned(s.arg.type)} {s.name} = node.{method}({tensors}, length_{s.name});"
            tensors = _plus(tensors, f"length_{s.name}")
        elif s.kind == "meta":
            unpack[s] = f"const auto {s.name} = {value}.get<TensorMeta>();"
        elif s.kind == "metas":
            unpack[s] = f"const auto metas_{s.name} = {value}.get<std::vector<TensorMeta>>();"
        else:
            assert s.arg is not None
            unpack[s] = f"const auto {s.name} = {value}.get<{types.owned(s.arg.type)}>();"
    for i, f in enumerate(p.formulas):
        args = [next(a for a in p.differentiable if a.name == n) for n in f.names]
        body = [unpack[s] for s in p.saved if i in s.needed_by]
        text = re.sub(r"\bmetas\((\w+)\)", r"metas_\1", f.expression)
        first = args[0].name
        if len(args) > 1:
            if re.search(r"\bmask\b", text):
                body.append(f"const std::array<bool, {len(args)}> mask = {{{', '.join(map(_wants, args))}}};")
            body.append(f"auto gradients = {text};")
            for k, a in enumerate(args):
                body += block(f"if ({_wants(a)})", [f"out[edge_{a.name}] = std::get<{k}>(gradients);"])
        elif args[0].type.is_list:
            body.append(f"const std::vector<Tensor> gradients = {text};")
            body.append(f"std::copy_n(gradients.begin(), count_{first}, out + edge_{first});")
        else:
            body.append(f"out[edge_{first}] = {text};")
        lines += block(f"if ({' || '.join(map(_wants, args))})", body)
    return block(f"void backward_{op.symbol}(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out)", lines)


def _plus(a: str, b: str) -> str:
    if a.isdigit() and b.isdigit():
        return str(int(a) + int(b))
    return b if a == "0" else f"{a} + {b}"


def _wants(a: Arg) -> str:
    if a.type.is_list:
        return f"node.wants_any(edge_{a.name}, count_{a.name})"
    return f"node.wants(edge_{a.name})"


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
        condition = needed(op, p, s)
        if s.kind == "tensor":
            # An in-place op overwrites self: what its derivative needs is the value before.
            kept = "self.clone()" if inplace and s.name == "self" else s.name
            lines.append(f"node->save({kept if condition == 'true' else f'{condition} ? {kept} : Tensor()'});")
        elif s.kind == "output":
            lines.append("node->reserve_saved();")
        elif s.kind == "list":
            lines.append(f"node->keep(static_cast<int64_t>({s.name}.size()));")
            lines.append(f"node->save_list({s.name});")
        elif s.kind == "meta":
            lines.append(f"node->keep(TensorMeta({s.name}));")
        elif s.kind == "metas":
            lines.append(f"node->keep(metas_of({s.name}));")
        else:
            lines.append(f"node->keep({s.name});")
    return lines


def record_outputs(op: Op, p: Plan) -> list[str]:
    """Statements that save results, after the history is set."""
    return [
        f"node->fill_saved({i}, {s.name});"
        for i, s in _tensor_slots(p)
        if s.kind == "output"
    ]


def kept_names(p: Plan) -> tuple[str, str]:
    """The names of a node's saved tensors and of its values, in order; "-" for what has no public name."""
    tensors = [s.name + ("[]" if s.kind == "list" else "") for s in p.saved if s.kind in ("tensor", "output", "list")]
    values = ["-" for a in p.differentiable if a.type.is_list]
    values += [s.name if s.kind == "value" else "-" for s in p.saved if s.kind not in ("tensor", "output")]
    return " ".join(tensors), " ".join(values)


def _tensor_slots(p: Plan):
    index = "0"
    for s in p.saved:
        if s.kind in ("tensor", "output"):
            yield index, s
            index = _plus(index, "1")
        elif s.kind == "list":
            index = _plus(index, f"{s.name}.size()")


def any_wanted(p: Plan) -> str:
    return " || ".join(f"grad_wanted({a.name})" for a in p.differentiable)
