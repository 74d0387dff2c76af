"""The C++ half: declarations, wrappers, kernel tables, backward functions and the boxed registry.

A wrapper is straight-line code: upper mode → (record) → checks, output shapes, allocation, kernel → history. Each form
of an op (functional, in-place, out=) shares one `run_<symbol>`, which takes the given output or null.
"""

from __future__ import annotations

import hashlib
import textwrap

from gen import derivatives, types
from gen.table import Arg, Op, Type

HEADER = "// Generated from the op table by `python -m gen`. Do not edit.\n"
OPS_PER_FILE = 24


# ---- forms and names ----


def functional(op: Op) -> bool:
    return not op.inplace_only


def inplace(op: Op) -> bool:
    return op.inplace_only or "inplace" in op.variants


def out_form(op: Op) -> bool:
    return "out" in op.variants and bool(op.results) and not any(r.type.is_list for r in op.results)


def inplace_name(op: Op) -> str:
    return op.name if op.inplace_only else op.name + "_"


def out_names(op: Op) -> list[str]:
    return ["out"] if len(op.results) == 1 else [r.name or f"out{i}" for i, r in enumerate(op.results)]


def call_arguments(op: Op, **replace: str) -> str:
    return ", ".join(replace.get(a.name, a.name) for a in op.args)


def signature(op: Op, form: str, *, defaults: bool = False, name: str | None = None) -> str:
    """`Tensor add(const Tensor& self, …)` in the form functional, inplace or out, as a free function."""
    ps = types.parameters(op, defaults=defaults)
    if form == "functional":
        return f"{types.result_type(op.results)} {name or op.name}({ps})"
    if form == "inplace":
        if not (op.args and op.args[0].type.is_tensor and op.args[0].name == "self"):
            return f"void {name or inplace_name(op)}({ps})"  # lists of tensors written in place
        return f"Tensor& {name or inplace_name(op)}({ps})"
    outs = ", ".join(f"const Tensor& {'out_' + n if n != 'out' else n}" for n in out_names(op))
    result = "Tensor&" if len(op.results) == 1 else f"std::tuple<{', '.join(['Tensor&'] * len(op.results))}>"
    return f"{result} {name or op.name + '_out'}({outs}{', ' if ps else ''}{ps})"


def forms(op: Op) -> list[str]:
    return (
        (["functional"] if functional(op) else [])
        + (["inplace"] if inplace(op) else [])
        + (["out"] if out_form(op) else [])
    )


# ---- headers ----


def ops_header(ops: list[Op]) -> str:
    lines = [HEADER, "#pragma once", "", "#include <cmath>", "", "#include <rushlight/tensor.h>", ""]
    lines += ["namespace rushlight {", ""]
    for op in ops:
        lines.append(f"// {op.text}")
        for form in forms(op):
            lines.append(f"RL_API {signature(op, form, defaults=True)};")
            lines += number_overloads(op, form)
    lines += ["", f'inline constexpr const char* schema_hash = "{schema_hash(ops)}";', ""]
    lines += ["}  // namespace rushlight", "", "#include <rushlight/operators.h>", ""]
    return "\n".join(lines)


def schema_hash(ops: list[Op]) -> str:
    return hashlib.sha256("\n".join(op.text for op in ops).encode()).hexdigest()[:16]


def number_overloads(op: Op, form: str) -> list[str]:
    """Where a schema says Tensor|Scalar, overloads that take the number."""
    numbers = [a for a in op.args if a.type.number]
    lines = []
    for bits in range(1, 1 << len(numbers)):
        chosen = {a.name for i, a in enumerate(numbers) if bits >> i & 1}
        if all(a.name in chosen for a in op.args if a.type.base == "Tensor"):
            continue
        if form == "inplace" and "self" in chosen:
            continue
        args = [
            Arg(a.name, Type("Scalar"), a.default, a.keyword_only) if a.name in chosen else a for a in op.args
        ]
        copy = Op(op.text, op.name, op.overload, args, op.results, op.kind, op.family, variants=op.variants)
        call = call_arguments(op, **{n: f"make_number({n})" for n in chosen})
        outs = "".join(f"{'out_' + n if n != 'out' else n}, " for n in out_names(op)) if form == "out" else ""
        target = {"functional": op.name, "inplace": inplace_name(op), "out": op.name + "_out"}[form]
        lines.append(f"inline {signature(copy, form, defaults=True)} {{ return {target}({outs}{call}); }}")
    return lines


def methods_of(ops: list[Op]):
    """(result, name, op whose arguments are the method's, arguments of the call) of every method."""
    for op in ops:
        call = ["*this" if i == op.receiver else a.name for i, a in enumerate(op.args)]
        for form, result in method_forms(op):
            name = op.name if form == "functional" else inplace_name(op)
            yield result, name, op, call
            for a in op.args:
                if a.type.number and a is not op.args[op.receiver]:
                    args = [Arg(b.name, Type("Scalar"), b.default, b.keyword_only) if b is a else b for b in op.args]
                    taken = Op(op.text, op.name, op.overload, args, op.results, op.kind, op.family)
                    yield result, name, taken, [f"make_number({c})" if c == a.name else c for c in call]
                    break


def methods_header(ops: list[Op]) -> str:
    lines = [HEADER.rstrip()]
    for result, name, op, _ in methods_of(ops):
        lines.append(f"{result} {name}({types.parameters(op, defaults=True, skip_self=True)}) const;")
    return "\n".join(lines) + "\n"


# Names that class Tensor defines by hand.
HAND_WRITTEN_METHODS = {"item", "size", "stride", "is_contiguous", "requires_grad_", "retain_grad"}


def method_forms(op: Op) -> list[tuple[str, str]]:
    if "method" not in op.variants or op.receiver < 0:
        return []
    if op.name in HAND_WRITTEN_METHODS:
        return []
    found = []
    if functional(op):
        found.append(("functional", types.result_type(op.results)))
    if inplace(op) and op.args[0].name == "self":
        found.append(("inplace", "Tensor&"))
    return found


def methods_source(ops: list[Op]) -> str:
    lines = [HEADER, "#include <rushlight/ops.h>", "", "namespace rushlight {", ""]
    for result, name, op, call in methods_of(ops):
        lines.append(f"{result} Tensor::{name}({types.parameters(op, skip_self=True)}) const {{")
        lines.append(f"  return rushlight::{name}({', '.join(call)});")
        lines.append("}")
    lines += ["", "}  // namespace rushlight", ""]
    return "\n".join(lines)


# ---- kernels ----


def kernels(ops: list[Op]) -> list[Op]:
    return [op for op in ops if op.kind == "kernel"]


def kernel_parameters(op: Op) -> str:
    assert op.kernel is not None
    if op.kernel.kind == "pointwise":
        by_hand = "kernel" in op.manual  # then attributes come as the schema says, else as Scalars
        kinds = [types.parameter(a.type) if by_hand else "const Scalar&" for a in attributes(op)]
        return "".join(["TensorIterator& it"] + [f", {k} {a.name}" for k, a in zip(kinds, attributes(op), strict=True)])
    if op.kernel.kind == "dynamic":
        return types.parameters(op)
    if op.kernel.kind == "update":
        return "const Tensor& out" + "".join(f", {types.parameter(a.type)} {a.name}" for a in op.args[1:])
    outs = [f"const Tensor& out_{n}" if n != "out" else "const Tensor& out" for n in out_names(op)]
    if any(r.type.is_list for r in op.results):
        outs = ["TensorList out"]
    if not op.results:
        outs = []
    return ", ".join([*outs, types.parameters(op)])


def kernel_result(op: Op) -> str:
    assert op.kernel is not None
    return types.result_type(op.results) if op.kernel.kind == "dynamic" else "void"


def attributes(op: Op) -> list[Arg]:
    """Of a pointwise op: the arguments that are not tensors."""
    return [a for a in op.args if a.type.base != "Tensor"]


def spec_type(op: Op) -> str:
    if op.kernel is not None and op.kernel.kind == "update":
        return "void"
    if any(r.type.is_list for r in op.results):
        return "std::vector<OutSpec>"
    if not op.results:
        return "void"
    return "OutSpec" if len(op.results) == 1 else f"OutSpecs<{len(op.results)}>"


def shape_parameters(op: Op) -> str:
    return ", ".join(f"{types.owned(a.type)}& {a.name}" for a in op.args)


def has_shape_function(op: Op) -> bool:
    return op.kernel is not None and op.kernel.kind in ("custom", "update") and "shape" not in op.manual


def kernels_header(ops: list[Op]) -> str:
    lines = [HEADER, "#pragma once", "", '#include "core/iterator.h"', '#include "core/op_support.h"', ""]
    lines += ["namespace rushlight {", "", "namespace shape {"]
    lines += [f"{spec_type(op)} {op.symbol}({shape_parameters(op)});" for op in ops if has_shape_function(op)]
    lines += ["}  // namespace shape", "", "namespace views {"]
    for op in ops:
        if op.kind == "view":
            many = op.results[0].type.is_list
            lines.append(f"{'std::vector<ViewSpec>' if many else 'ViewSpec'} {op.symbol}({types.parameters(op)});")
    lines += ["}  // namespace views", "", "namespace composite {"]
    for op in ops:
        if op.kind == "composite":
            result = "Tensor&" if op.inplace_only else types.result_type(op.results)
            lines.append(f"{result} {op.symbol}({types.parameters(op)});")
    lines += ["}  // namespace composite", "", "struct KernelTable {"]
    for op in kernels(ops):
        lines.append(f"  {kernel_result(op)} (*{op.symbol})({kernel_parameters(op)});")
    lines += ["};", "// By device; a null entry is an op that the device lacks. Meta has none and needs none."]
    lines += ["extern const KernelTable* kernel_tables[num_device_types];", "", "namespace cpu {"]
    lines += [f"{kernel_result(op)} {op.symbol}({kernel_parameters(op)});" for op in kernels(ops) if not on_isa(op)]
    for level in ("v2", "v3", "v4"):
        lines.append(f"namespace {level} {{")
        lines += [f"{kernel_result(op)} {op.symbol}({kernel_parameters(op)});" for op in kernels(ops) if on_isa(op)]
        lines.append(f"}}  // namespace {level}")
    lines += ["}  // namespace cpu", "}  // namespace rushlight", ""]
    return "\n".join(lines)


def on_isa(op: Op) -> bool:
    return op.kernel is not None and op.kernel.isa


def kernel_tables_source(ops: list[Op]) -> str:
    lines = [HEADER, '#include "generated/kernels.h"', "", '#include "cpu/isa_level.h"', ""]
    lines += ["namespace rushlight {", "", "namespace cpu {", "", "#define RL_CPU_TABLE(level) \\", "  namespace level { \\"]
    lines.append("  const KernelTable kernel_table = { \\")
    for op in kernels(ops):
        lines.append(f"      .{op.symbol} = cpu::{'level::' if on_isa(op) else ''}{op.symbol}, \\")
    lines += [
        "  }; \\",
        "  }",
        "#ifdef RL_ONE_ISA",
        "RL_CPU_TABLE(RL_ONE_ISA)",
        "#else",
        "RL_CPU_TABLE(v2)",
        "RL_CPU_TABLE(v3)",
        "RL_CPU_TABLE(v4)",
        "#endif",
        "",
        "static const KernelTable* cpu_table() { return &RL_ISA_TABLE(kernel_table); }",
        "",
        "}  // namespace cpu",
        "",
        "const KernelTable* kernel_tables[num_device_types] = {cpu::cpu_table(), nullptr, nullptr};",
        "",
        "}  // namespace rushlight",
        "",
    ]
    return "\n".join(lines)


def pointwise_sources(ops: list[Op]) -> list[str]:
    """The files that are compiled once per instruction set: formulas become kernels."""
    chosen = [
        op
        for op in kernels(ops)
        if op.kernel is not None and op.kernel.kind == "pointwise" and "kernel" not in op.manual
    ]
    files = []
    for start in range(0, len(chosen), 12):
        lines = [HEADER, '#include "cpu/isa/loops.h"', '#include "generated/kernels.h"', ""]
        lines += ["namespace rushlight::cpu::RL_ISA {", ""]
        for op in chosen[start : start + 12]:
            assert op.kernel is not None
            inputs = len([a for a in op.args if a.type.is_tensor])
            lines.append(
                f"RL_POINTWISE_KERNEL({op.symbol}, {inputs}, {len(attributes(op))}, "
                f"{' | '.join(op.kernel.dtypes)}, {promotion(op)})"
            )
        lines += ["", "}  // namespace rushlight::cpu::RL_ISA", ""]
        files.append("\n".join(lines))
    return files


def promotion(op: Op) -> str:
    assert op.kernel is not None
    return f"Promote::{op.kernel.promote.capitalize()}"


# ---- wrappers ----


def indent(lines: list[str], by: int = 2) -> list[str]:
    return [textwrap.indent(line, " " * by) for line in lines]


def tensor_addresses(op: Op) -> tuple[list[str], str]:
    """Statements and an expression for the list of the op's tensor inputs, as they are when it is evaluated."""
    tensors = [a for a in op.args if a.type.base == "Tensor"]
    if not any(a.type.is_list for a in tensors):
        return [], "{" + ", ".join(f"&{a.name}" for a in tensors) + "}"
    lines = ["const auto list_inputs = [&] {", "  std::vector<const Tensor*> list;"]
    for a in tensors:
        if a.type.is_list and a.type.element_optional:
            lines.append(f"  for (const std::optional<Tensor>& t : {a.name}) {{")
            lines.append("    list.push_back(t.has_value() ? &*t : nullptr);")
            lines.append("  }")
        elif a.type.is_list:
            lines.append(f"  for (const Tensor& t : {a.name}) {{")
            lines.append("    list.push_back(&t);")
            lines.append("  }")
        else:
            lines.append(f"  list.push_back(&{a.name});")
    return [*lines, "  return list;", "};"], "list_inputs()"


def device_of(op: Op, addresses: str) -> str:
    tensors = [a for a in op.args if a.type.base == "Tensor"]
    if len(tensors) == 1 and tensors[0].type.is_tensor and not tensors[0].type.optional:
        return f"{tensors[0].name}.device()"
    if not tensors:
        options = [a for a in op.args if a.type.base == "options"]
        return "options.device()" if options else "Device(kCPU)"
    return f'common_device("{op.name}", {addresses})'


def run_function(op: Op) -> list[str]:
    """`run_<symbol>`: checks, outputs and kernel. `given` are outputs of the caller (null: make them)."""
    assert op.kernel is not None
    kind = op.kernel.kind
    n = len(op.results)
    writes_self = op.inplace_only and op.args[0].type.is_tensor
    result = "Tensor" if writes_self else types.result_type(op.results)
    kernel = f"find_kernel(kernel_tables, where_, &KernelTable::{op.symbol}, \"{op.name}\")"
    if kind == "pointwise":
        lines = [f"Tensor run_{op.symbol}({types.parameters(op)}, const Tensor* given, bool resize) {{"]
        lines.append(f'  TensorIterator it("{op.name}");')
        lines.insert(1, "  const Tensor fresh;")
        lines.append("  it.add_output(given != nullptr ? *given : fresh, resize);")
        lines += [f"  it.add_input({a.name});" for a in op.args if a.type.is_tensor]
        lines.append(f"  it.build({{{promotion(op)}, {' | '.join(op.kernel.dtypes)}}});")
        lines.append("  const Device where_ = it.device();")
        lines.append("  if (it.numel() != 0 && !where_.is_meta()) {")
        as_is = "kernel" in op.manual
        scalars = "".join(
            f", {a.name}" if as_is or a.type.base == "Scalar" else f", Scalar({a.name})" for a in attributes(op)
        )
        lines.append(f"    {kernel}(it{scalars});")
        lines += ["  }", "  return it.output();", "}"]
        return lines
    givens = ", ".join(f"const Tensor* given{i}" for i in range(max(n, 1))) if kind != "dynamic" else ""
    suffix = "_" if kind in ("custom", "update") else ""
    if kind == "custom" and (n == 0 or any(r.type.is_list for r in op.results)):
        givens = ""
    head = ", ".join(p for p in (types.parameters(op, suffix=suffix), givens) if p)
    lines = [f"{result} run_{op.symbol}({head}) {{"]
    if kind in ("custom", "update"):
        for a in op.args:
            lines.append("  " + types.local(a))
    setup, addresses = tensor_addresses(op)
    lines += indent(setup)
    lines.append(f"  const Device where_ = {device_of(op, addresses)};")
    arguments = ", ".join(a.name for a in op.args)
    if kind == "dynamic":
        lines.append(
            f'  RL_CHECK_NOT_IMPLEMENTED(!where_.is_meta(), "{op.name}: the size of the result depends on values, '
            'which meta tensors lack");'
        )
        lines.append(f"  return {kernel}({arguments});")
    elif kind == "update":
        rest = "".join(f", {a.name}" for a in op.args[1:])
        if has_shape_function(op):
            lines.append(f"  shape::{op.symbol}({arguments});")
        lines.append("  Tensor out = given0 != nullptr ? *given0 : make_empty_like(self, self.dtype());")
        lines.append("  if (where_.is_meta()) {")
        lines.append("    return out;")
        lines.append("  }")
        lines.append("  if (!out.is_same(self)) {")
        lines.append("    copy_raw(out, self);")
        if not op.kernel.constant:
            lines.append("  } else {")
            lines.append(f'    check_no_internal_overlap("{op.name}", out);')
        lines.append("  }")
        for a in op.args[1:]:
            if a.type.is_tensor:
                in_step = ", true" if op.kernel.in_step else ""
                lines.append(f'  {a.name} = apart_from("{op.name}", out, {a.name}{in_step});')
            elif a.type.base == "Tensor" and a.type.element_optional:
                lines.append(f"  for (std::optional<Tensor>& t : {a.name}) {{")
                lines.append(f'    t = t.has_value() ? std::optional(apart_from("{op.name}", out, *t)) : t;')
                lines.append("  }")
        lines.append(f"  {kernel}(out{rest});")
        lines.append("  return out;")
    elif n == 0:
        lines.append(f"  shape::{op.symbol}({arguments});")
        lines.append("  if (!where_.is_meta()) {")
        lines.append(f"    {kernel}({arguments});")
        lines.append("  }")
    elif any(r.type.is_list for r in op.results):
        lines.append(f"  const std::vector<OutSpec> specs = shape::{op.symbol}({arguments});")
        lines.append("  std::vector<Tensor> out;")
        lines.append("  for (const OutSpec& spec : specs) {")
        lines.append("    out.push_back(make_output(spec, where_));")
        lines.append("  }")
        lines.append("  if (!where_.is_meta()) {")
        lines.append(f"    {kernel}(out, {arguments});")
        lines += ["  }", "  return out;"]
    else:
        one = n == 1
        lines.append(f"  const {spec_type(op)} spec = shape::{op.symbol}({arguments});")
        for i in range(n):
            s = "spec" if one else f"spec[{i}]"
            lines.append(
                f'  Tensor out{i} = given{i} != nullptr ? begin_out("{op.name}", *given{i}, {s}, where_, '
                f"{addresses}) : make_output({s}, where_);"
            )
        if not one:
            lines.append("  if (given0 != nullptr) {")
            lines.append(f'    check_outputs_apart("{op.name}", {{{", ".join(f"given{i}" for i in range(n))}}});')
            lines.append("  }")
        lines.append("  if (!where_.is_meta()) {")
        lines.append(f"    {kernel}({', '.join(f'out{i}' for i in range(n))}{', ' if arguments else ''}{arguments});")
        lines.append("  }")
        for i in range(n):
            lines.append(f"  if (given{i} != nullptr) {{")
            lines.append(f"    finish_out(*given{i}, out{i});")
            lines.append("  }")
        lines.append("  return out0;" if one else f"  return {{{', '.join(f'out{i}' for i in range(n))}}};")
    lines.append("}")
    return lines


def run_call(op: Op, form: str) -> str:
    """The call of run_<symbol> in a form; for pointwise ops in place: given self, no resize."""
    assert op.kernel is not None
    args = call_arguments(op)
    if op.kernel.kind == "dynamic":
        return f"run_{op.symbol}({args})"
    if op.kernel.kind == "custom" and (not op.results or any(r.type.is_list for r in op.results)):
        return f"run_{op.symbol}({args})"
    if form == "functional":
        given = ["nullptr"] * max(len(op.results), 1)
    elif form == "inplace":
        given = ["&self"]
    else:
        given = [f"&{'out_' + n if n != 'out' else n}" for n in out_names(op)]
    if op.kernel.kind == "pointwise":
        given.append("true" if form == "out" else "false")
    return f"run_{op.symbol}({', '.join([args, *given] if args else given)})"


def written_arguments(op: Op) -> list[str]:
    """Statements that count a write for arguments that the op changes besides self."""
    lines = []
    for a in op.args:
        if not a.type.written or (a.name == "self" and inplace(op)):
            continue
        if a.type.is_list:
            lines.append(f"for (const Tensor& t : {a.name}) {{")
            lines.append("  t.impl()->bump_version();")
            lines.append("}")
        else:
            lines.append(f"if ({a.name}.defined()) {{")
            lines.append(f"  {a.name}.impl()->bump_version();")
            lines.append("}")
    return lines


def boxed_arguments(op: Op) -> str:
    return "".join(f", {a.name}" for a in op.args)


def result_variables(op: Op) -> list[str]:
    return derivatives.result_names(op)


def functional_wrapper(op: Op, index: str) -> list[str]:
    result = types.result_type(op.results)
    plan = derivatives.plan(op)
    lines = [f"{signature(op, 'functional')} {{"]
    lines.append("  if (RL_UNLIKELY(tls.upper != nullptr)) {")
    lines.append(f"    return dispatch_boxed<{result}>(dispatch_upper, {index}{boxed_arguments(op)});")
    lines.append("  }")
    if op.kind == "composite":
        options = [a for a in op.args if a.type.base == "options"]
        if options:
            lines.append(f"  return as_leaf(composite::{op.symbol}({call_arguments(op)}), options.requires_grad());")
        else:
            lines.append(f"  return composite::{op.symbol}({call_arguments(op)});")
        lines.append("}")
        return lines
    if plan is not None:
        lines.append("  Ref<Node> node;")
        lines.append(f"  if (tls.grad_mode && ({derivatives.any_wanted(plan)})) {{")
        lines += indent(derivatives.record(op, plan, inplace=False), 4)
        lines.append("  }")
    if op.kind == "view":
        lines += indent(view_body(op))
        lines.append("}")
        return lines
    run = run_call(op, "functional")
    if op.results:
        lines.append(
            f"  {result} made_ = RL_LIKELY(tls.lower == nullptr) ? {run}"
            f" : dispatch_boxed<{result}>(dispatch_lower, {index}{boxed_arguments(op)});"
        )
    else:
        lines.append("  if (RL_LIKELY(tls.lower == nullptr)) {")
        lines.append(f"    {run};")
        lines.append("  } else {")
        lines.append(f"    dispatch_boxed<void>(dispatch_lower, {index}{boxed_arguments(op)});")
        lines.append("  }")
    lines += indent(written_arguments(op))
    if plan is not None:
        names = result_variables(op)
        lines.append("  if (node) {")
        if len(names) == 1 and op.results[0].type.is_list:
            lines.append("    for (const Tensor& t : made_) {")
            lines.append("      set_history(t, node);")
            lines.append("    }")
        else:
            for i, n in enumerate(names):
                source = "made_" if len(names) == 1 else f"std::get<{i}>(made_)"
                lines.append(f"    const Tensor& {n} = {source};")
                lines.append(f"    (void){n};")
            for n in names:
                lines.append(f"    {'set_no_history' if n in op.nondiff else 'set_history'}({n}, node);")
        lines += indent(derivatives.record_outputs(op, plan), 4)
        lines.append("  }")
    if op.results:
        lines.append("  return made_;")
    lines.append("}")
    return lines


def view_body(op: Op) -> list[str]:
    plan = derivatives.plan(op)
    node = "node" if plan is not None else "Ref<Node>()"
    if op.results[0].type.is_list:
        return [
            f"const std::vector<ViewSpec> specs = views::{op.symbol}({call_arguments(op)});",
            "std::vector<Tensor> result;",
            "result.reserve(specs.size());",
            "for (const ViewSpec& spec : specs) {",
            "  result.push_back(make_view(self, spec));",
            f"  record_view(result.back(), self, ViewKind::MultiOutput, {node});",
            "}",
            "return result;",
        ]
    return [
        f"Tensor result = make_view(self, views::{op.symbol}({call_arguments(op)}));",
        f"record_view(result, self, ViewKind::{op.view_kind}, {node});",
        "return result;",
    ]


def inplace_wrapper(op: Op, index: str) -> list[str]:
    plan = derivatives.plan(op)
    name = inplace_name(op)
    self_tensor = op.args[0].type.is_tensor and op.args[0].name == "self"
    lines = [f"{signature(op, 'inplace')} {{"]
    lines.append("  if (RL_UNLIKELY(tls.upper != nullptr)) {")
    lines.append(f"    dispatch_boxed<void>(dispatch_upper, {index}{boxed_arguments(op)});")
    lines.append(f"    return{' const_cast<Tensor&>(self)' if self_tensor else ''};")
    lines.append("  }")
    if op.kind == "composite":
        if op.inplace_only:
            lines.append(f"  return composite::{op.symbol}({call_arguments(op)});")
        else:
            lines.append(f"  return self.copy_(composite::{op.symbol}({call_arguments(op)}));")
        lines.append("}")
        return lines
    if not self_tensor:  # writes into lists of tensors: no gradient
        lines.append("  if (RL_LIKELY(tls.lower == nullptr)) {")
        lines.append(f"    {run_call(op, 'functional')};")
        lines.append("  } else {")
        lines.append(f"    dispatch_boxed<void>(dispatch_lower, {index}{boxed_arguments(op)});")
        lines.append("  }")
        lines += indent(written_arguments(op))
        lines.append("}")
        return lines
    if plan is not None:
        lines.append(f"  const bool record = tls.grad_mode && ({derivatives.any_wanted(plan)});")
    else:
        lines.append("  const bool record = false;")
    lines.append(f'  check_inplace("{name}", self, record);')
    if plan is not None:
        lines.append("  Ref<Node> node;")
        lines.append("  if (record) {")
        lines += indent(derivatives.record(op, plan, inplace=True), 4)
        lines.append("  }")
    lines.append("  if (RL_LIKELY(tls.lower == nullptr)) {")
    lines.append(f"    {run_call(op, 'inplace')};")
    lines.append("  } else {")
    lines.append(f"    dispatch_boxed<void>(dispatch_lower, {index}{boxed_arguments(op)});")
    lines.append("  }")
    lines.append("  self.impl()->bump_version();")
    lines += indent(written_arguments(op))
    if plan is not None:
        lines.append("  if (node) {")
        lines.append("    rebase_history(self, node);")
        for s in plan.saved:
            if s.kind == "output":
                lines.append(f"    const Tensor& {s.name} = self;")
        lines += indent(derivatives.record_outputs(op, plan), 4)
        lines.append("  }")
    lines.append("  return const_cast<Tensor&>(self);")
    lines.append("}")
    return lines


def out_wrapper(op: Op) -> list[str]:
    outs = ["out_" + n if n != "out" else n for n in out_names(op)]
    plan = derivatives.plan(op)
    wanted = f"{derivatives.any_wanted(plan)} || " if plan is not None else ""
    lines = [f"{signature(op, 'out')} {{"]
    for o in outs:
        lines.append(f'  check_out_grad("{op.name}", tls.grad_mode && ({wanted}grad_wanted({o})));')
    one = len(outs) == 1
    if op.kind == "composite":
        lines.append("  const NoGradGuard no_grad;")
        lines.append(f"  const auto made_ = composite::{op.symbol}({call_arguments(op)});")
        for i, o in enumerate(outs):
            lines.append(f'  assign_out("{op.name}", {o}, {"made_" if one else f"std::get<{i}>(made_)"});')
    else:
        assert op.kernel is not None
        if op.kernel.kind == "update":
            lines.append("  const Tensor made_ = run_" + op.symbol + f"({call_arguments(op)}, nullptr);")
            lines.append(f'  assign_out("{op.name}", out, made_);')
        else:
            lines.append(f"  {run_call(op, 'out')};")
            if op.kernel.kind == "pointwise":
                lines.append("  out.impl()->bump_version();")
    refs = [f"const_cast<Tensor&>({o})" for o in outs]
    lines.append(f"  return {refs[0]};" if one else f"  return {{{', '.join(refs)}}};")
    lines.append("}")
    return lines


def wrappers_source(ops: list[Op], index: dict[tuple[str, str], int]) -> str:
    lines = [HEADER, "#include <rushlight/ops.h>", "", '#include "generated/kernels.h"']
    lines += ['#include "ops/derivatives.h"', "", "namespace rushlight {", ""]
    lines += ["extern const OpInfo op_infos[];", "", "namespace {", ""]
    for op in ops:
        plan = derivatives.plan(op)
        if plan is not None:
            lines.append(derivatives.backward_function(op, plan))
            undefined = "true" if op.undefined_grads else "false"
            tensors, values = derivatives.kept_names(plan)
            for i, name in enumerate(op.node_names.values()):
                lines.append(
                    f'const NodeDescriptor descriptor_{op.symbol}{f"_{i}" if i else ""} = {{"{name}", '
                    f'backward_{op.symbol}, {undefined}, "{tensors}", "{values}"}};'
                )
            lines.append("")
        if op.kind == "kernel":
            lines += run_function(op)
            lines.append("")
    lines += ["}  // namespace", ""]
    for op in ops:
        if functional(op):
            lines += functional_wrapper(op, f"op_infos[{index[op.name, op.overload]}]")
            lines.append("")
        if inplace(op):
            lines += inplace_wrapper(op, f"op_infos[{index[inplace_name(op), op.overload]}]")
            lines.append("")
        if out_form(op):
            lines += out_wrapper(op)
            lines.append("")
    lines += ["}  // namespace rushlight", ""]
    return "\n".join(lines)


# ---- the boxed registry ----


def registry(ops: list[Op]) -> list[tuple[str, Op, str]]:
    """(name, op, form) of every boxed entry, sorted by name."""
    entries = []
    for op in ops:
        if functional(op):
            entries.append((op.name, op, "functional"))
        if inplace(op):
            entries.append((inplace_name(op), op, "inplace"))
    return sorted(entries, key=lambda e: e[0])


def registry_sources(entries: list[tuple[str, Op, str]]) -> list[str]:
    files = []
    table = []
    for start in range(0, len(entries), 60):
        lines = [HEADER, "#include <rushlight/ops.h>", "", '#include "core/op_support.h"', ""]
        lines += ["namespace rushlight::boxed {", ""]
        for i, (name, op, form) in enumerate(entries[start : start + 60], start):
            call = f"{name}({', '.join(types.unbox(a.type, f'a[{k}]') for k, a in enumerate(op.args))})"
            lines.append(f"std::vector<Value> call_{i}(const std::vector<Value>& a) {{")
            lines.append("  (void)a;")
            if form == "inplace" and op.args[0].name == "self":
                lines.append("  const Tensor self = a[0].get<Tensor>();")
                lines.append(f"  {call};")
                lines.append("  return {Value(self)};")
            elif form == "inplace" or not op.results:
                lines.append(f"  {call};")
                lines.append("  return {};")
            else:
                lines.append(f"  return box_results({call});")
            lines.append("}")
            schema = op.text if form == "functional" or op.inplace_only else op.text.replace(op.name, name, 1)
            escaped = schema.replace("\\", "\\\\").replace('"', '\\"')
            table.append(f'    {{"{name}", "{op.overload}", "{escaped}", {len(op.args)}, boxed::call_{i}}},')
        lines += ["", "}  // namespace rushlight::boxed", ""]
        files.append("\n".join(lines))
    lines = [HEADER, "#include <rushlight/mode.h>", "", "namespace rushlight {", "", "namespace boxed {"]
    lines += [f"std::vector<Value> call_{i}(const std::vector<Value>& a);" for i in range(len(entries))]
    lines += ["}  // namespace boxed", "", "extern const OpInfo op_infos[];", "const OpInfo op_infos[] = {", *table, "};", ""]
    lines += [f"ArrayRef<OpInfo> all_ops() {{ return {{op_infos, {len(entries)}}}; }}", ""]
    lines += ["}  // namespace rushlight", ""]
    return ["\n".join(lines), *files]


# ---- all of it ----


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": methods_header(ops),
        "include/generated/kernels.h": kernels_header(ops),
        "src/methods.cpp": methods_source(ops),
        "src/kernel_tables.cpp": kernel_tables_source(ops),
    }
    entries = registry(ops)
    index = {(name, op.overload): i for i, (name, op, _) in enumerate(entries)}
    families: dict[str, list[Op]] = {}
    for op in ops:
        families.setdefault(op.family, []).append(op)
    for family, members in families.items():
        for k in range(0, len(members), OPS_PER_FILE):
            part = members[k : k + OPS_PER_FILE]
            files[f"src/ops_{family}_{k // OPS_PER_FILE}.cpp"] = wrappers_source(part, index)
    for i, text in enumerate(registry_sources(entries)):
        files[f"src/registry_{i}.cpp"] = text
    for i, text in enumerate(pointwise_sources(ops)):
        files[f"isa/pointwise_{i}.cpp"] = text
    return files
