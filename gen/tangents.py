"""Forward mode: what an op does where an argument has a tangent, from its rule (gen/rules.py).

`tangent_<symbol>` computes the tangents of the results from those of the arguments; `forward::<function>` runs a form
of the op and gives them to its results. Wrappers call the latter. What both call stands in src/ops/forward_pass.h.
"""

from __future__ import annotations

from gen import derivatives, rules
from gen.declarations import Form, forms
from gen.expressions import TableError
from gen.schema import Arg, parameters
from gen.table import Op
from gen.text import UNUSED, block, commas, flag, header, pieces, source
from ops.roles import COPY, ONES, ZEROS

OPS_PER_FILE = 40

# ---- which ops, by which arguments ----


def carriers(form: Form) -> list[Arg]:
    """The arguments whose tangents matter to a form; none for what has nothing to do with tangents."""
    op, kind = form.op, rules.tangent(form.op).kind
    if form.kind == "out" or kind == "composite" or (op.inplace_only and form.kind != "inplace"):
        return []
    plan = derivatives.plan(op)
    if op.results and kind != "none":
        return plan.differentiable if plan is not None else []
    single = [a for a in op.tensors if not a.type.element_optional]
    # Without results: a step of an optimiser.
    return [a for a in single if a.name == "self"] if form.kind == "inplace" and op.results else single


def rule(form: Form) -> str:
    """What a form does where arguments have tangents, as the data of its function."""
    args = carriers(form)
    mask = sum(1 << i for i, a in enumerate(form.op.args) if a in args)
    return f"{{boxed<forward::{form.function}>, {mask}u}}" if args else ""


# ---- tangents of the results ----


def _together(parts: list[str], kind: str = "") -> str:
    """One thing, or several as a list."""
    return parts[0] if len(parts) == 1 else f"{kind}{{{commas(parts)}}}"


class Tangent:
    """The tangents of an op's results: each method has the statements of a rule."""

    def __init__(self, op: Op) -> None:
        self.op, self.rule = op, rules.tangent(op)
        plan = derivatives.plan(op)
        assert plan is not None
        self.args, self.names, self.gradients = plan.differentiable, plan.results, plan.gradients

    def _call(self, instead: dict[str, str]) -> str:
        if self.op.inplace_only:
            instead["self"] = f"{instead.get('self', 'self')}.{COPY}()"
        name = self.op.inplace_name if self.op.inplace_only else self.op.name
        return f"rushlight::{name}({self.op.call(**instead)})"

    def _sum(self, part) -> list[str]:
        """The sum of what the arguments that have tangents add: `part(a)` are statements and what is added."""
        lines = ["Tensor total;"]
        for a in self.args:
            *before, added = part(a)
            added = added if added.endswith(";") else f"forward::add(total, {added});"
            has = f"forward::any_defined({a.name}_t)" if a.type.is_list else f"{a.name}_t.defined()"
            lines += block(f"if ({has})", [*before, added])
        return [*lines, "return total;"]

    def _results(self, call: str, *, always: bool = False) -> list[str]:
        """Returns those results of a call that have tangents."""
        if len(self.op.result_names) == 1:
            return [f"return {{{call}}};" if always else f"return {call};"]
        ignored = [n for n in self.op.result_names if n not in self.names]
        kept = [f"of_{n}" for n in self.names]
        said = f"{{{commas(kept)}}}" if always else _together(kept)
        bound = f"const auto [{commas([f'of_{n}' for n in self.op.result_names])}] = {call};"
        return [bound, *(f"static_cast<void>(of_{n});" for n in ignored), f"return {said};"]

    def linear(self) -> list[str]:
        return self._results(self._call({a.name: f"forward::or_zeros({a.name}_t, {a.name})" for a in self.args}))

    def multilinear(self) -> list[str]:
        return self._sum(lambda a: [self._call({a.name: f"{a.name}_t"})])

    def _gradient(self, a: Arg) -> tuple[list[str], str]:
        """Statements before, and the expression of the entry's own gradient of an argument."""
        f = next(f for f in self.gradients if a in f.args)
        if len(f.args) == 1:
            return [], f.expression.cpp
        return f.statements([flag(b is a) for b in f.args]), f"std::get<{f.args.index(a)}>(gradients)"

    def elementwise(self) -> list[str]:
        (result,) = self.names

        def part(a: Arg) -> list[str]:
            lines, gradient = self._gradient(a)
            grad = f"const Tensor grad = forward::in_place_of_gradient({a.name}_t, {result});"
            return [grad, *lines, f"forward::conjugate({gradient})"]

        return self._sum(part)

    def reduced(self) -> list[str]:
        (a,), results = self.args, self.op.result_names
        lines, gradient = self._gradient(a)
        dim = next((b.name for b in self.op.args if b.type.meaning == "Dim"), "OptionalIntArrayRef()")
        keepdim = next((b.name for b in self.op.args if b.name == "keepdim"), "false")
        # What the entry's gradient is for one in the place of the gradient of one result.
        gradients = [f"const Tensor& {'grad' if len(results) == 1 else f'grad_{n}'}" for n in results]
        slope = block(f"const auto slope = [&]({commas(gradients)})", [*lines, f"return {gradient};"], end=";")
        parts = []
        for name in self.names:
            given = commas([f"{ONES if n == name else ZEROS}({n})" for n in results])
            parts.append(f"forward::reduce_tangent(slope({given}), {a.name}_t, {name}, {dim}, {keepdim})")
        return [*slope, f"return {_together(parts)};"]

    def expression(self) -> list[str]:
        said = self.rule.formulas
        if said.keys() == set(self.names) and not said.keys() <= {a.name for a in self.args}:
            return [f"return {_together([said[n].cpp for n in self.names])};"]
        refused = 'forward::refuse("{}", "{}");'.format
        return self._sum(lambda a: [said[a.name].cpp if a.name in said else refused(self.op.name, a.name)])

    def zero(self) -> list[str]:
        return [f"return {_together([f'{ZEROS}({n})' for n in self.names])};"]

    def twice(self) -> list[str]:
        if any(a.type.is_list for a in self.args):
            raise TableError(f"{self.op.text}: lists of tensors cannot be differentiated twice")
        call = self._call({a.name: f"given[{i}]" for i, a in enumerate(self.args)})
        given = f"{{{commas([a.name for a in self.args])}}}, {{{commas([f'{a.name}_t' for a in self.args])}}}"
        function = "[&](const std::vector<Tensor>& given) -> forward::Results"
        head = f"auto out = forward::derivative_of_backward({given}, {function}"
        lines = block(head, self._results(call, always=True), end=");")
        return [*lines, "return out;" if len(self.names) > 1 else "return out[0];"]

    def function(self) -> list[str]:
        results = [f"const Tensor& {n}" for n in self.op.result_names if not self.op.gives_list]
        lists = {True: "const std::vector<Tensor>&", False: "const Tensor&"}
        tangents = [f"{lists[a.type.is_list]} {a.name}_t" for a in self.args]
        kind = "std::vector<Tensor>" if self.op.gives_list or len(self.names) > 1 else "Tensor"
        head = f"{kind} tangent_{self.op.symbol}({commas(parameters(self.op.args), results, tangents)})"
        return [*block(head, getattr(self, self.rule.kind)()), ""]

    # ---- what forms do with them ----

    def reads_results(self) -> bool:
        """Whether the rule reads a result's elements, not only its form."""
        elementwise = self.rule.kind == "elementwise"
        read = [f.expression for f in self.gradients] if elementwise else self.rule.formulas.values()
        return any(name in expression.names for name in self.op.result_names for expression in read)

    def rule_arguments(self, results: list[str], *, written: str = "", instead: dict[str, str] | None = None) -> str:
        """A call of the function in a form."""
        tangents = [f"pass.{'before' if a.name == written else 'of'}({a.name})" for a in self.args]
        return f"tangent_{self.op.symbol}({commas(self.op.call(**instead or {}), results, tangents)})"

    def behind(self) -> list[str]:
        """Statements behind the functional form, whose results are `made`."""
        bound = [f"of_{n}" for n in self.op.result_names]
        results, lines = "made", []
        if len(bound) > 1:
            lines = [f"const auto& [{commas(bound)}] = made;"]
            results = _together([f"of_{n}" for n in self.names], "std::vector<Tensor>")
        given = self.rule_arguments([] if self.op.gives_list else bound if len(bound) > 1 else ["made"])
        return [*lines, f"pass.{'set_view_tangent' if self.op.kind == 'view' else 'set_tangents'}({results}, {given});"]

    def around(self) -> tuple[list[str], list[str]]:
        """Statements before and behind the in-place form: a rule that reads the result runs behind the op, others
        before it, on what was there, which is overwritten."""
        reads = self.reads_results()
        unwritten = {
            a.name: f"forward::value_before_write({a.name}, self, before)" for a in self.op.tensors if a.type.is_tensor
        }
        given = self.rule_arguments(["self"] * len(self.op.results), written="self", instead=unwritten)
        before = [f"const Tensor before = pass.values(self, {flag(reads)});"]
        before += [] if reads else [f"const Tensor tangent = {given};"]
        return before, [f"pass.write(self, {given if reads else 'tangent'});"]


def forward_function(form: Form) -> list[str]:
    """Ops without a derivative: constants where results say true or false, else an error where they are numbers."""
    op, kind, inplace = form.op, rules.tangent(form.op).kind, form.kind == "inplace"
    runs = kind != "refused" and op.results and not (kind == "none" and inplace and op.kernel.promote != "bool")
    before, behind = [], []
    if kind == "none":
        refuse = f'forward::refuse_results("{op.name}", made);'
        behind = [f"pass.write(self, {ZEROS}(self));" if inplace else refuse]
    elif runs:
        before, behind = Tangent(op).around() if inplace else ([], Tangent(op).behind())
    run = [
        f"const forward::Pass pass({commas(a.name for a in carriers(form))});",
        *before,
        f"{'' if inplace else 'auto made = '}rushlight::{form.call()};",
        *behind,
        "return const_cast<Tensor&>(self);" if inplace else "return made;",
    ]
    head = form.signature(name=f"forward::{form.function}")
    return [*block(head, run if runs else [f'forward::refuse("{form.name}");']), ""]


# ---- files ----


def tangents_source(ops: list[Op]) -> str:
    lines = [UNUSED, "", "namespace {", ""]
    for op in ops:
        lines += Tangent(op).function() if hasattr(Tangent, rules.tangent(op).kind) else []
    lines += ["}  // namespace", ""]
    lines += [line for op in ops for form in forms(op) if carriers(form) for line in forward_function(form)]
    return source(["generated/forward.h", "ops/derivatives.h", "ops/tangents.h"], "rushlight", lines[:-1])


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    concerned = [op for op in ops if any(carriers(form) for form in forms(op))]
    found = [form for op in concerned for form in forms(op) if carriers(form)]
    declared = [f"{form.signature(name=form.function)};" for form in found]
    files = {"include/generated/forward.h": header(["ops/forward_pass.h"], "rushlight::forward", declared)}
    for name, part in pieces(concerned, OPS_PER_FILE, lambda op: op.family):
        files[f"src/forward_{name}.cpp"] = tangents_source(part)
    return files
