"""Forward mode: what an op does where an argument has a tangent, from its rule (gen/rules.py).

`tangent_<symbol>` computes the tangents of the results from those of the arguments; `forward_<function>` runs a form of
the op and gives them to its results. Wrappers call the latter. What both call stands in src/ops/forward_pass.h.
"""

from __future__ import annotations

import re

from gen import derivatives, rules, types
from gen.declarations import call_arguments, name_of, signature
from gen.table import Arg, Op, TableError
from gen.text import block, commas, flag, header, pieces, source

OPS_PER_FILE = 40

# ---- which ops, by which arguments ----


def _plan(op: Op) -> derivatives.Plan:
    """The derivative of an op that has a rule for tangents, and so a derivative."""
    plan = derivatives.plan(op)
    assert plan is not None
    return plan


def carriers(op: Op, form: str) -> list[Arg]:
    """The arguments whose tangents matter to a form; none for what has nothing to do with tangents."""
    kind = rules.tangent(op).kind
    if kind == "composite" or (op.inplace_only and form != "inplace"):
        return []
    if not op.results:  # a step of an optimiser
        return [a for a in op.tensors if not a.type.element_optional]
    if kind != "none":
        plan = derivatives.plan(op)
        return plan.differentiable if plan is not None else []
    single = [a for a in op.tensors if not a.type.element_optional]
    return [a for a in single if a.name == "self"] if form == "inplace" else single


def function(op: Op, form: str) -> str:
    return f"forward::{op.name}_{form}_{op.node_index}"


def rule(op: Op, form: str) -> str:
    """What a form does where arguments have tangents, as the data of its function."""
    args = carriers(op, form) if form != "out" else []
    if not args:
        return "{}"
    mask = sum(1 << i for i, a in enumerate(op.args) if a in args)
    return f"{{boxed<{function(op, form)}>, {mask}u}}"


# ---- tangents of the results ----


def _names(op: Op) -> list[str]:
    """The results that have tangents."""
    return [n for n in derivatives.result_names(op) if n not in op.nondiff]


def _type(op: Op) -> str:
    return "std::vector<Tensor>" if op.gives_list or len(_names(op)) > 1 else "Tensor"


def _tangent(a: Arg) -> str:
    return f"{a.name}_t"


def _is_defined(a: Arg) -> str:
    return f"forward::any_defined({_tangent(a)})" if a.type.is_list else f"{_tangent(a)}.defined()"


def _call(op: Op, **instead: str) -> str:
    if not op.inplace_only:
        return f"rushlight::{op.name}({call_arguments(op, **instead)})"
    receiver = instead.pop("self", "self")
    return f"rushlight::{op.inplace_name}({call_arguments(op, self=f'{receiver}.clone()', **instead)})"


def _sum(op: Op, args: list[Arg], part) -> list[str]:
    """The sum of what the arguments that have tangents add: `part(a)` are statements."""
    lines = ["Tensor total;"]
    for a in args:
        lines += block(f"if ({_is_defined(a)})", part(a))
    return [*lines, "return total;"]


def _linear(op: Op, args: list[Arg]) -> list[str]:
    call = _call(op, **{a.name: f"forward::or_zeros({_tangent(a)}, {a.name})" for a in args})
    names = derivatives.result_names(op)
    if len(names) == 1:
        return [f"return {call};"]
    bound = [f"of_{n}" for n in names]
    kept = [f"of_{n}" for n in _names(op)]
    ignored = [f"static_cast<void>({b});" for b in bound if b not in kept]
    result = kept[0] if len(kept) == 1 else f"{{{commas(kept)}}}"
    return [f"const auto [{commas(bound)}] = {call};", *ignored, f"return {result};"]


def _multilinear(op: Op, args: list[Arg]) -> list[str]:
    return _sum(op, args, lambda a: [f"forward::add(total, {_call(op, **{a.name: _tangent(a)})});"])


def _gradient(op: Op, a: Arg) -> tuple[list[str], str]:
    """Statements before, and the expression of the entry's own gradient of an argument."""
    formula = next(f for f in _plan(op).formulas if a in f.args)
    if len(formula.args) == 1:
        return [], formula.expression
    lines = [f"auto gradients = {formula.expression};"]
    if re.search(r"\bmask\b", formula.expression):
        wanted = commas([str(b is a).lower() for b in formula.args])
        lines.insert(0, f"const std::array<bool, {len(formula.args)}> mask = {{{wanted}}};")
    return lines, f"std::get<{formula.args.index(a)}>(gradients)"


def _elementwise(op: Op, args: list[Arg]) -> list[str]:
    (result,) = _names(op)

    def part(a):
        lines, gradient = _gradient(op, a)
        grad = f"const Tensor grad = forward::in_place_of_gradient({_tangent(a)}, {result});"
        return [grad, *lines, f"forward::add(total, forward::conjugate({gradient}));"]

    return _sum(op, args, part)


def _reduction(op: Op, args: list[Arg]) -> list[str]:
    (a,) = args
    lines, gradient = _gradient(op, a)
    named = {b.name for b in op.args}
    dim, keepdim = "dim" if "dim" in named else "OptionalIntArrayRef()", "keepdim" if "keepdim" in named else "false"
    names = derivatives.result_names(op)
    # What the entry's gradient is for one in the place of the gradient of one result.
    gradients = [f"const Tensor& {'grad' if len(names) == 1 else f'grad_{n}'}" for n in names]
    slope = block(f"const auto slope = [&]({commas(gradients)})", [*lines, f"return {gradient};"], end=";")
    parts = []
    for name in _names(op):
        given = commas([f"{'ones' if n == name else 'zeros'}_like({n})" for n in names])
        parts.append(f"forward::reduce_tangent(slope({given}), {_tangent(a)}, {name}, {dim}, {keepdim})")
    return [*slope, f"return {parts[0]};" if len(parts) == 1 else f"return {{{commas(parts)}}};"]


def _expression(op: Op, args: list[Arg]) -> list[str]:
    formulas = rules.tangent(op).formulas
    if formulas.keys() == set(_names(op)) and not formulas.keys() <= {a.name for a in args}:
        parts = [formulas[n] for n in _names(op)]
        return [f"return {parts[0]};" if len(parts) == 1 else f"return {{{commas(parts)}}};"]

    def part(a):
        if a.name not in formulas:
            return [f'forward::refuse("{op.name}", "{a.name}");']
        return [f"forward::add(total, {formulas[a.name]});"]

    return _sum(op, args, part)


def _zero(op: Op, args: list[Arg]) -> list[str]:
    parts = [f"zeros_like({n})" for n in _names(op)]
    return [f"return {parts[0]};" if len(parts) == 1 else f"return {{{commas(parts)}}};"]


def _by_backward(op: Op, args: list[Arg]) -> list[str]:
    if any(a.type.is_list for a in args):
        raise TableError(f"{op.text}: lists of tensors cannot be differentiated twice")
    call = _call(op, **{a.name: f"given[{i}]" for i, a in enumerate(args)})
    names = derivatives.result_names(op)
    run = [f"return {{{call}}};"]
    if len(names) > 1:
        ignored = [f"static_cast<void>(of_{n});" for n in names if n in op.nondiff]
        bound = commas([f"of_{n}" for n in names])
        run = [f"const auto [{bound}] = {call};", *ignored, f"return {{{commas([f'of_{n}' for n in _names(op)])}}};"]
    given = f"{{{commas([a.name for a in args])}}}, {{{commas([_tangent(a) for a in args])}}}"
    lines = block(
        f"auto out = forward::derivative_of_backward({given}, "
        "[&](const std::vector<Tensor>& given) -> forward::Results",
        run,
        end=");",
    )
    return [*lines, "return out;" if len(_names(op)) > 1 else "return out[0];"]


_RULES = {
    "linear": _linear,
    "multilinear": _multilinear,
    "elementwise": _elementwise,
    "reduced": _reduction,
    "expression": _expression,
    "zero": _zero,
    "twice": _by_backward,
}


def _parameters(op: Op, args: list[Arg]) -> str:
    results = [f"const Tensor& {n}" for n in derivatives.result_names(op) if not op.gives_list]
    kinds = {True: "const std::vector<Tensor>&", False: "const Tensor&"}
    return commas(types.parameters(op.args), results, [f"{kinds[a.type.is_list]} {_tangent(a)}" for a in args])


def tangent_function(op: Op) -> list[str]:
    kind = rules.tangent(op).kind
    if kind not in _RULES:
        return []
    args = _plan(op).differentiable
    head = f"{_type(op)} tangent_{op.symbol}({_parameters(op, args)})"
    return [*block(head, _RULES[kind](op, args)), ""]


# ---- forms ----


def _uses_result(op: Op) -> bool:
    """Whether the rule reads a result's elements, not only its form."""
    rule, names = rules.tangent(op), derivatives.result_names(op)
    texts = list(rule.formulas.values())
    if rule.kind == "elementwise":
        texts = [f.expression for f in _plan(op).formulas]
    return any(re.search(rf"(?<![\w.:]){n}\b", text) for n in names for text in texts)


def _rule_arguments(op: Op, results: list[str], *, written: str = "", **instead: str) -> str:
    tangents = [f"pass.{'before' if a.name == written else 'of'}({a.name})" for a in _plan(op).differentiable]
    return commas(call_arguments(op, **instead), results, tangents)


def _pass(op: Op, form: str) -> str:
    return f"const forward::Pass pass({commas([a.name for a in carriers(op, form)])});"


def _refusal(op: Op, form: str) -> list[str]:
    """Ops without a derivative: constants where results say true or false, else an error where they are numbers."""
    if form == "inplace":
        if op.kernel.promote != "bool":
            return [f'forward::refuse("{op.inplace_name}");']
        return [
            _pass(op, form),
            f"rushlight::{op.inplace_name}({call_arguments(op)});",
            "pass.write(self, zeros_like(self));",
            "return const_cast<Tensor&>(self);",
        ]
    return [
        _pass(op, form),
        f"auto made = rushlight::{op.name}({call_arguments(op)});",
        f'forward::refuse_results("{op.name}", made);',
        "return made;",
    ]


def _functional(op: Op) -> list[str]:
    names = derivatives.result_names(op)
    setter = "set_view_tangent" if op.kind == "view" else "set_tangents"
    lines = [_pass(op, "functional"), f"auto made = rushlight::{op.name}({call_arguments(op)});"]
    if op.gives_list:
        return [*lines, f"pass.{setter}(made, tangent_{op.symbol}({_rule_arguments(op, [])}));", "return made;"]
    if len(names) == 1:
        return [*lines, f"pass.{setter}(made, tangent_{op.symbol}({_rule_arguments(op, ['made'])}));", "return made;"]
    bound = [f"of_{n}" for n in names]
    kept = [f"of_{n}" for n in _names(op)]
    results = kept[0] if len(kept) == 1 else f"std::vector<Tensor>{{{commas(kept)}}}"
    call = f"pass.{setter}({results}, tangent_{op.symbol}({_rule_arguments(op, bound)}));"
    return [*lines, f"const auto& [{commas(bound)}] = made;", call, "return made;"]


def _inplace(op: Op) -> list[str]:
    """A rule that reads the result runs behind the op, others before it: on what was there, which is overwritten."""
    run = f"rushlight::{op.inplace_name}({call_arguments(op)});"
    results = ["self"] * len(derivatives.result_names(op))
    before = {a.name: f"forward::value_before_write({a.name}, self, before)" for a in op.tensors if a.type.is_tensor}
    tangent = f"tangent_{op.symbol}({_rule_arguments(op, results, written='self', **before)})"
    lines = [_pass(op, "inplace"), f"const Tensor before = pass.values(self, {flag(_uses_result(op))});"]
    if _uses_result(op):
        lines += [run, f"pass.write(self, {tangent});"]
    else:
        lines += [f"const Tensor tangent = {tangent};", run, "pass.write(self, tangent);"]
    return [*lines, "return const_cast<Tensor&>(self);"]


def forward_function(op: Op, form: str) -> list[str]:
    kind = rules.tangent(op).kind
    if kind == "refused" or not op.results:
        body = [f'forward::refuse("{name_of(op, form)}");']
    elif kind == "none":
        body = _refusal(op, form)
    else:
        body = _inplace(op) if form == "inplace" else _functional(op)
    return [*block(signature(op, form, name=function(op, form)), body), ""]


# ---- files ----


def _forms(op: Op) -> list[str]:
    return [form for form in op.forms if form != "out" and carriers(op, form)]


def tangents_source(ops: list[Op]) -> str:
    lines = ['#pragma GCC diagnostic ignored "-Wunused-parameter"', "", "namespace {", ""]
    for op in ops:
        lines += tangent_function(op)
    lines += ["}  // namespace", ""]
    for op in ops:
        for form in _forms(op):
            lines += forward_function(op, form)
    return source(["generated/forward.h", "ops/derivatives.h", "ops/tangents.h"], "rushlight", lines[:-1])


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    concerned = [op for op in ops if _forms(op)]
    declared = [
        f"{signature(op, form, name=function(op, form).removeprefix('forward::'))};"
        for op in concerned
        for form in _forms(op)
    ]
    files = {"include/generated/forward.h": header(["ops/forward_pass.h"], "rushlight::forward", declared)}
    for name, part in pieces(concerned, OPS_PER_FILE, lambda op: op.family):
        files[f"src/forward_{name}.cpp"] = tangents_source(part)
    return files
