"""The C++ half: declarations, wrappers, kernel tables, backward functions and the boxed registry.

A wrapper is straight-line code: upper mode → (record) → checks, output shapes, allocation, kernel → history. Each form
of an op (functional, in-place, out=) shares one `run_<symbol>`, which takes the given output or null.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from gen import derivatives, types
from gen.table import Arg, Op, Type
from gen.text import HEADER, block, choice, header, source

OPS_PER_FILE = 24
CALLS_PER_FILE = 60


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


def out_parameters(op: Op) -> list[str]:
    return [n if n == "out" else f"out_{n}" for n in out_names(op)]


def writes_self(op: Op) -> bool:
    """Whether the in-place form gives self; what writes into lists of tensors gives nothing."""
    return bool(op.args) and op.args[0].type.is_tensor and op.args[0].name == "self"


def taking_numbers(op: Op, names: set[str]) -> Op:
    """The op with numbers in place of these arguments."""
    number = Type("Scalar")
    return replace(op, args=[replace(a, type=number) if a.name in names else a for a in op.args])


def call_arguments(op: Op, **replace: str) -> str:
    return ", ".join(replace.get(a.name, a.name) for a in op.args)


def signature(op: Op, form: str, *, defaults: bool = False, name: str | None = None) -> str:
    """`Tensor add(const Tensor& self, …)` in the form functional, inplace or out, as a free function."""
    ps = types.parameters(op, defaults=defaults)
    if form == "functional":
        return f"{types.result_type(op.results)} {name or op.name}({ps})"
    if form == "inplace":
        return f"{'Tensor&' if writes_self(op) else 'void'} {name or inplace_name(op)}({ps})"
    outs = ", ".join(f"const Tensor& {o}" for o in out_parameters(op))
    result = "Tensor&" if len(op.results) == 1 else f"std::tuple<{', '.join(['Tensor&'] * len(op.results))}>"
    return f"{result} {name or op.name + '_out'}({outs}{', ' if ps else ''}{ps})"


def forms(op: Op) -> list[str]:
    return (
        (["functional"] if functional(op) else [])
        + (["inplace"] if inplace(op) else [])
        + (["out"] if out_form(op) else [])
    )


# ---- headers ----


# What Python has as modules of functions.
NAMESPACES = ("fft", "linalg", "special")


def ops_header(ops: list[Op]) -> str:
    lines = []
    for op in ops:
        lines.append(f"// {op.text}")
        for form in forms(op):
            lines.append(f"RL_API {signature(op, form, defaults=True)};")
            lines += number_overloads(op, form)
    for space in NAMESPACES:
        lines += namespace(space, ops)
    lines += ["", f'inline constexpr const char* schema_hash = "{schema_hash(ops)}";']
    text = header(["<cmath>", "", "<rushlight/tensor.h>"], "rushlight", lines)
    return text + "\n#include <rushlight/operators.h>\n"


def namespace(space: str, ops: list[Op]) -> list[str]:
    """The ops named after a namespace, under their short names there: linalg_svd is linalg::svd."""
    lines = []
    for op in ops:
        if op.name.startswith(space + "_") and functional(op):
            head = signature(op, "functional", defaults=True, name=op.name.removeprefix(space + "_"))
            lines.append(f"inline {head} {{ return rushlight::{op.name}({call_arguments(op)}); }}")
    return ["", f"namespace {space} {{", *lines, f"}}  // namespace {space}"] if lines else []


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
        call = call_arguments(op, **{n: f"make_number({n})" for n in chosen})
        outs = "".join(f"{o}, " for o in out_parameters(op)) if form == "out" else ""
        target = {"functional": op.name, "inplace": inplace_name(op), "out": op.name + "_out"}[form]
        lines.append(f"inline {signature(taking_numbers(op, chosen), form, defaults=True)} {{ return {target}({outs}{call}); }}")
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
                    number = [f"make_number({c})" if c == a.name else c for c in call]
                    yield result, name, taking_numbers(op, {a.name}), number
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
    lines = []
    for result, name, op, call in methods_of(ops):
        head = f"{result} Tensor::{name}({types.parameters(op, skip_self=True)}) const"
        lines += block(head, [f"return rushlight::{name}({', '.join(call)});"])
    return source(["<rushlight/ops.h>"], "rushlight", lines)


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
    outs = [f"const Tensor& {o}" for o in out_parameters(op)]
    if has_list_result(op):
        outs = ["TensorList out"]
    return ", ".join([*outs, *([types.parameters(op)] if op.args else [])])


def kernel_result(op: Op) -> str:
    assert op.kernel is not None
    return types.result_type(op.results) if op.kernel.kind == "dynamic" else "void"


def attributes(op: Op) -> list[Arg]:
    """Of a pointwise op: the arguments that are not tensors."""
    return [a for a in op.args if a.type.base != "Tensor"]


def spec_type(op: Op) -> str:
    if op.kernel is not None and op.kernel.kind == "update":
        return "void"
    if has_list_result(op):
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
        lines.append(f"  {kernel_declaration(op, f'(*{op.symbol})')};")
    lines += ["};", "// By device; a null entry is an op that the device lacks. Meta has none and needs none."]
    lines += ["extern const KernelTable* kernel_tables[num_device_types];"]
    lines += [f'inline constexpr const char* kernel_table_hash = "{schema_hash(ops)}";  // of the schemas', ""]
    lines += ["// Kernels over copy_raw, fill_raw and views, which every device shares.", "namespace anywhere {"]
    lines += [f"RL_API {kernel_declaration(op)};" for op in kernels(ops) if is_anywhere(op)]
    lines += ["}  // namespace anywhere", "", "namespace cpu {"]
    lines += [f"{kernel_declaration(op)};" for op in kernels(ops) if not on_isa(op) and not is_anywhere(op)]
    for level in ("v2", "v3", "v4"):
        lines.append(f"namespace {level} {{")
        lines += [f"{kernel_declaration(op)};" for op in kernels(ops) if on_isa(op)]
        lines.append(f"}}  // namespace {level}")
    lines += ["}  // namespace cpu", "}  // namespace rushlight", ""]
    return "\n".join(lines)


def kernel_declaration(op: Op, name: str = "") -> str:
    return f"{kernel_result(op)} {name or op.symbol}({kernel_parameters(op)})"


def on_isa(op: Op) -> bool:
    return op.kernel is not None and op.kernel.isa


def is_anywhere(op: Op) -> bool:
    return op.kernel is not None and op.kernel.anywhere


def cpu_kernel(op: Op) -> str:
    """In the macro that defines a table for an instruction set `level`."""
    if is_anywhere(op):
        return f"anywhere::{op.symbol}"
    return f"cpu::{'level::' if on_isa(op) else ''}{op.symbol}"


def kernel_tables_source(ops: list[Op]) -> str:
    lines = [HEADER, '#include "generated/kernels.h"', "", '#include "cpu/isa_level.h"', ""]
    lines += ["namespace rushlight {", "", "namespace cpu {", "", "#define RL_CPU_TABLE(level) \\", "  namespace level { \\"]
    lines.append("  const KernelTable kernel_table = { \\")
    for op in kernels(ops):
        lines.append(f"      .{op.symbol} = {cpu_kernel(op)}, \\")
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
        lines = []
        for op in chosen[start : start + 12]:
            assert op.kernel is not None
            inputs = len([a for a in op.args if a.type.is_tensor])
            lines.append(
                f"RL_POINTWISE_KERNEL({op.symbol}, {inputs}, {len(attributes(op))}, "
                f"{' | '.join(op.kernel.dtypes)}, {promotion(op)})"
            )
        files.append(source(["cpu/isa/loops.h", "generated/kernels.h"], "rushlight::cpu::RL_ISA", lines))
    return files


def promotion(op: Op) -> str:
    assert op.kernel is not None
    return f"Promote::{op.kernel.promote.capitalize()}"


# ---- wrappers ----


def addresses(op: Op) -> str:
    """An expression for the addresses of the op's tensors, as they are when it is evaluated."""
    if any(a.type.is_list for a in op.tensors):
        return f"addresses_of({', '.join(a.name for a in op.tensors)})"
    return "{" + ", ".join(f"&{a.name}" for a in op.tensors) + "}"


def device_of(op: Op) -> str:
    for a in op.args:
        if a.type.base == "Device":  # where the result goes
            return f"{a.name}.value_or({op.tensors[0].name}.device())"
    if is_anywhere(op):  # copies go from one device to another
        return f"{op.tensors[0].name}.device()"
    if len(op.tensors) == 1 and op.tensors[0].type.is_tensor and not op.tensors[0].type.optional:
        return f"{op.tensors[0].name}.device()"
    if not op.tensors:
        options = [a for a in op.args if a.type.base == "options"]
        return "options.device()" if options else "Device(kCPU)"
    return f'common_device("{op.name}", {addresses(op)})'


def has_list_result(op: Op) -> bool:
    return any(r.type.is_list for r in op.results)


def given_count(op: Op) -> int:
    """How many outputs of the caller `run_<symbol>` takes."""
    assert op.kernel is not None
    if op.kernel.kind == "dynamic" or (op.kernel.kind == "custom" and (not op.results or has_list_result(op))):
        return 0
    return max(len(op.results), 1)


def settle_numbers(op: Op) -> list[str]:
    """Away from the CPU: 0-d CPU tensors among the operands are brought to the device, one to be written is refused."""
    assert op.kernel is not None
    tensors = [a for a in op.args if a.type.is_tensor]
    if op.kernel.kind not in ("custom", "update") or len(tensors) < 2 or is_anywhere(op):
        return []
    written = "&self" if op.kernel.kind == "update" else "nullptr"
    moved = ", ".join(f"&{a.name}" for a in tensors[1 if op.kernel.kind == "update" else 0 :])
    call = f'settle_numbers("{op.name}", where_, {written}, {{{moved}}});'
    return block("if (RL_UNLIKELY(!where_.is_cpu()))", [call])


def run_function(op: Op) -> list[str]:
    """`run_<symbol>`: checks, outputs and kernel. `given` are outputs of the caller (null: make them)."""
    assert op.kernel is not None
    bodies = {"pointwise": run_pointwise, "dynamic": run_dynamic, "update": run_update, "custom": run_custom}
    kernel = f'find_kernel(kernel_tables, where_, &KernelTable::{op.symbol}, "{op.name}")'
    lines = bodies[op.kernel.kind](op, kernel)
    if op.kernel.kind == "pointwise":
        head = f"Tensor run_{op.symbol}({types.parameters(op)}, const Tensor* given, bool resize)"
        return block(head, lines)
    given = [f"const Tensor* given{i}" for i in range(given_count(op))]
    if op.kernel.kind != "dynamic":
        lines = [types.local(a) for a in op.args] + lines
    head = types.parameters(op, suffix="" if op.kernel.kind == "dynamic" else "_")
    updates_self = op.inplace_only and op.args[0].type.is_tensor
    result = "Tensor" if updates_self else types.result_type(op.results)
    return block(f"{result} run_{op.symbol}({', '.join([head, *given] if head else given)})", lines)


def run_pointwise(op: Op, kernel: str) -> list[str]:
    assert op.kernel is not None
    scalars = "".join(
        f", {a.name}" if "kernel" in op.manual or a.type.base == "Scalar" else f", Scalar({a.name})"
        for a in attributes(op)
    )
    return [
        "const Tensor fresh;",
        f'TensorIterator it("{op.name}");',
        "it.add_output(given != nullptr ? *given : fresh, resize);",
        *(f"it.add_input({a.name});" for a in op.args if a.type.is_tensor),
        f"it.build({{{promotion(op)}, {' | '.join(op.kernel.dtypes)}}});",
        "const Device where_ = it.device();",
        *block("if (it.numel() != 0 && !where_.is_meta())", [f"{kernel}(it{scalars});"]),
        "return it.output();",
    ]


def run_dynamic(op: Op, kernel: str) -> list[str]:
    unknown = "the size of the result depends on values, which meta tensors lack"
    return [
        f"const Device where_ = {device_of(op)};",
        f'RL_CHECK_NOT_IMPLEMENTED(!where_.is_meta(), "{op.name}: {unknown}");',
        f"return {kernel}({call_arguments(op)});",
    ]


def run_update(op: Op, kernel: str) -> list[str]:
    assert op.kernel is not None
    in_step, constant = (str(flag).lower() for flag in (op.kernel.in_step, op.kernel.constant))
    others = [f'keep_apart("{op.name}", out, {a.name}, {in_step});' for a in op.args[1:] if a.type.base == "Tensor"]
    rest = "".join(f", {a.name}" for a in op.args[1:])
    return [
        f"const Device where_ = {device_of(op)};",
        *settle_numbers(op),
        *([f"shape::{op.symbol}({call_arguments(op)});"] if has_shape_function(op) else []),
        f'Tensor out = start_update("{op.name}", given0, self, where_, {constant});',
        *block("if (!where_.is_meta())", [*others, f"{kernel}(out{rest});"]),
        "return out;",
    ]


def run_custom(op: Op, kernel: str) -> list[str]:
    n = len(op.results)
    lines = [f"const Device where_ = {device_of(op)};", *settle_numbers(op)]
    shape = f"shape::{op.symbol}({call_arguments(op)});"
    outs = [f"out{i}" for i in range(n)]
    if n == 0:
        lines.append(shape)
    elif has_list_result(op):
        lines += [f"const {spec_type(op)} specs = {shape}", "std::vector<Tensor> out0 = make_outputs(specs, where_);"]
    else:
        lines.append(f"const {spec_type(op)} spec = {shape}")
        for i in range(n):
            spec = "spec" if n == 1 else f"spec[{i}]"
            given = f'begin_out("{op.name}", *given{i}, {spec}, where_, {addresses(op)})'
            lines.append(f"Tensor out{i} = given{i} != nullptr ? {given} : make_output({spec}, where_);")
        if n > 1:
            apart = f'check_outputs_apart("{op.name}", {{{", ".join(f"given{i}" for i in range(n))}}});'
            lines += block("if (given0 != nullptr)", [apart])
    lines += block("if (!where_.is_meta())", [f"{kernel}({', '.join([*outs, *(a.name for a in op.args)])});"])
    lines += [f"finish_out(given{i}, out{i});" for i in range(given_count(op))]
    if n:
        lines.append("return out0;" if n == 1 else f"return {{{', '.join(outs)}}};")
    return lines


def run_call(op: Op, form: str) -> str:
    """The call of run_<symbol> in a form; for pointwise ops in place: given self, no resize."""
    assert op.kernel is not None
    outs = {"functional": ["nullptr"] * given_count(op), "inplace": ["&self"], "out": [f"&{o}" for o in out_parameters(op)]}
    given = outs[form][: given_count(op)]
    if op.kernel.kind == "pointwise":
        given.append("true" if form == "out" else "false")
    return f"run_{op.symbol}({', '.join([*(a.name for a in op.args), *given])})"


def recording(op: Op, form: str) -> list[str]:
    """Statements before the kernel: `node` remembers the inputs where a gradient is wanted."""
    plan = derivatives.plan(op)
    wanted = f"tls.grad_mode && ({derivatives.any_wanted(plan)})" if plan is not None else "false"
    lines = []
    if form == "inplace":
        lines = [f"const bool record = {wanted};", f'check_inplace("{inplace_name(op)}", self, record);']
        wanted = "record"
    if plan is not None:
        record = derivatives.record(op, plan, inplace=form == "inplace")
        lines += ["Ref<Node> node;", *block(f"if ({wanted})", record)]
    return lines


def remembering(op: Op, form: str) -> list[str]:
    """Statements after the kernel: results get their history, and `node` remembers those that it needs."""
    plan = derivatives.plan(op)
    if plan is None:
        return []
    names = derivatives.result_names(op)
    if form == "inplace":
        lines = ["rebase_history(self, node);"]
        lines += [f"const Tensor& {s.name} = self;" for s in plan.saved if s.kind == "output"]
    else:
        sources = ["made_"] if len(names) == 1 else [f"std::get<{i}>(made_)" for i in range(len(names))]
        lines = [f"const auto& {n} = {source};" for n, source in zip(names, sources, strict=True)]
        lines += [f"{'set_no_history' if n in op.nondiff else 'set_history'}({n}, node);" for n in names]
    return block("if (node)", lines + derivatives.record_outputs(op, plan))


def view_result(op: Op, lower: str) -> list[str]:
    node = "Ref<Node>()" if derivatives.plan(op) is None else "node"
    kind = "MultiOutput" if has_list_result(op) else op.view_kind
    answered = f"return record_answer({lower.removesuffix(';')}, self, ViewKind::{kind}, {node});"
    return [*block("if (RL_UNLIKELY(tls.lower != nullptr))", [answered]), *made_view(op, node)]


def made_view(op: Op, node: str) -> list[str]:
    call = f"views::{op.symbol}({call_arguments(op)})"
    if not has_list_result(op):
        return [
            f"Tensor result = make_view(self, {call});",
            f"record_view(result, self, ViewKind::{op.view_kind}, {node});",
            "return result;",
        ]
    made = ["result.push_back(make_view(self, spec));", f"record_view(result.back(), self, ViewKind::MultiOutput, {node});"]
    return [
        f"const std::vector<ViewSpec> specs = {call};",
        "std::vector<Tensor> result;",
        "result.reserve(specs.size());",
        *block("for (const ViewSpec& spec : specs)", made),
        "return result;",
    ]


def composite_result(op: Op, form: str) -> str:
    call = f"composite::{op.symbol}({call_arguments(op)})"
    if form == "inplace" and not op.inplace_only:
        return f"return self.copy_({call});"
    if form == "functional" and any(a.type.base == "options" for a in op.args):
        return f"return as_leaf({call}, options.requires_grad());"
    return f"return {call};"


def wrapper(op: Op, form: str, index: str) -> list[str]:
    """The functional or the in-place form: mode, history, kernel."""
    on_self = form == "inplace" and writes_self(op)
    result = types.result_type(op.results) if form == "functional" else "void"
    boxed = "".join(f", {a.name}" for a in op.args)
    upper, lower = (f"dispatch_boxed<{result}>(dispatch_{level}, {index}{boxed});" for level in ("upper", "lower"))
    done = ["return const_cast<Tensor&>(self);"] if on_self else []
    lines = block("if (RL_UNLIKELY(tls.upper != nullptr))", [upper, *done] if on_self else [f"return {upper}"])
    if op.kind == "composite":
        return block(signature(op, form), [*lines, composite_result(op, form)])
    records = on_self or form == "functional"  # what writes into lists of tensors has no gradient
    if records:
        lines += recording(op, form)
    if op.kind == "view":
        return block(signature(op, form), lines + view_result(op, lower))
    run = run_call(op, form if records else "functional")
    if result == "void":
        lines += choice("RL_LIKELY(tls.lower == nullptr)", [f"{run};"], [lower])
    else:
        lines.append(f"{result} made_ = RL_LIKELY(tls.lower == nullptr) ? {run} : {lower}")
        done = ["return made_;"]
    written = [a.name for a in op.args if a.type.written and not (a.name == "self" and inplace(op))]
    lines += [f"count_write({name});" for name in (["self", *written] if on_self else written)]
    if records:
        lines += remembering(op, form)
    return block(signature(op, form), lines + done)


def out_wrapper(op: Op) -> list[str]:
    outs = out_parameters(op)
    plan = derivatives.plan(op)
    wanted = f"{derivatives.any_wanted(plan)} || " if plan is not None else ""
    lines = [f'check_out_grad("{op.name}", tls.grad_mode && ({wanted}grad_wanted({o})));' for o in outs]
    if op.kind == "composite":
        lines += ["const NoGradGuard no_grad;", f"const auto made_ = composite::{op.symbol}({call_arguments(op)});"]
        if len(outs) > 1:
            lines.append(f'check_outputs_apart("{op.name}", {{{", ".join("&" + o for o in outs)}}});')
        made = ["made_"] if len(outs) == 1 else [f"std::get<{i}>(made_)" for i in range(len(outs))]
        lines += [f'assign_out("{op.name}", {o}, {m});' for o, m in zip(outs, made, strict=True)]
    elif op.kernel is not None and op.kernel.kind == "update":
        lines += [f"const Tensor made_ = {run_call(op, 'functional')};", f'assign_out("{op.name}", out, made_);']
    else:
        lines.append(f"{run_call(op, 'out')};")
        if op.kernel is not None and op.kernel.kind == "pointwise":
            lines.append("count_write(out);")
    refs = [f"const_cast<Tensor&>({o})" for o in outs]
    lines.append(f"return {refs[0]};" if len(refs) == 1 else f"return {{{', '.join(refs)}}};")
    return block(signature(op, "out"), lines)


def wrappers_source(ops: list[Op], index: dict[tuple[str, str], int]) -> str:
    lines = ["extern const OpInfo op_infos[];", "", "namespace {", ""]
    for op in ops:
        plan = derivatives.plan(op)
        if plan is not None:
            lines += derivatives.backward_function(op, plan)
            undefined = "true" if op.undefined_grads else "false"
            tensors, values = derivatives.kept_names(plan)
            for i, name in enumerate(op.node_names.values()):
                lines.append(
                    f'const NodeDescriptor descriptor_{op.symbol}{f"_{i}" if i else ""} = {{"{name}", '
                    f'backward_{op.symbol}, {undefined}, "{tensors}", "{values}"}};'
                )
            lines.append("")
        if op.kind == "kernel":
            lines += [*run_function(op), ""]
    lines += ["}  // namespace", ""]
    for op in ops:
        for form in forms(op):
            if form == "out":
                lines += [*out_wrapper(op), ""]
            else:
                name = op.name if form == "functional" else inplace_name(op)
                lines += [*wrapper(op, form, f"op_infos[{index[name, op.overload]}]"), ""]
    includes = ["<rushlight/ops.h>", "", "generated/kernels.h"]
    includes += ["ops/answers.h"] if any(op.kind == "view" for op in ops) else []
    includes += ["ops/derivatives.h", "ops/wrappers.h"]
    return source(includes, "rushlight", lines[:-1])


# ---- the boxed registry ----


def registry(ops: list[Op]) -> list[tuple[str, Op, str]]:
    """(name, op, form) of every boxed entry, sorted by name."""
    names = {"functional": lambda op: op.name, "inplace": inplace_name}
    entries = [(names[form](op), op, form) for op in ops for form in forms(op) if form != "out"]
    return sorted(entries, key=lambda e: e[0])


def registry_sources(entries: list[tuple[str, Op, str]]) -> list[str]:
    calls, table = [], []
    for i, (name, op, form) in enumerate(entries):
        pointer = signature(op, form, name="(*)")
        calls += block(f"std::vector<Value> call_{i}(const std::vector<Value>& a)", [f"return call_boxed(static_cast<{pointer}>({name}), a);"])
        schema = op.text if form == "functional" or op.inplace_only else op.text.replace(op.name, name, 1)
        table.append(f'    {{"{name}", "{op.overload}", {json.dumps(schema)}, {len(op.args)}, boxed::call_{i}}},')
    lines = ["namespace boxed {"]
    lines += [f"std::vector<Value> call_{i}(const std::vector<Value>& a);" for i in range(len(entries))]
    lines += ["}  // namespace boxed", "", "extern const OpInfo op_infos[];", "const OpInfo op_infos[] = {", *table, "};", ""]
    lines.append(f"ArrayRef<OpInfo> all_ops() {{ return {{op_infos, {len(entries)}}}; }}")
    includes = ["<rushlight/ops.h>", "", "ops/wrappers.h"]
    files = [calls[i : i + 3 * CALLS_PER_FILE] for i in range(0, len(calls), 3 * CALLS_PER_FILE)]
    return [
        source(["<rushlight/mode.h>"], "rushlight", lines),
        *(source(includes, "rushlight::boxed", part) for part in files),
    ]


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
