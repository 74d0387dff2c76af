"""What the C++ functions do. A wrapper is straight-line code: interceptors → (record) → kernel → history.

The forms of a kernel op share one `run_<symbol>` (checks, output shapes, allocation, kernel), which takes the given
output or null. What statements call stands in src/ops/wrappers.h; what depends on the kind of a value is left to its
overloads.
"""

from __future__ import annotations

import re

from gen import derivatives, kernels, rules, schemas, tangents, types
from gen.declarations import call_arguments, name_of, out_parameters, signature
from gen.kernels import has_shape_function, promotion
from gen.table import Arg, Op, Type
from gen.text import HEADER, block, commas, fill, flag, pieces, source

OPS_PER_FILE = 24

# ---- run_<symbol>: outputs of the caller are `given`, null where they are to be made ----

RUN_POINTWISE = """
Tensor run_$symbol($parameters, const Tensor* given, bool resize) {
  $before
  const Tensor fresh;
  TensorIterator it("$name");
  it.add_output(given != nullptr ? *given : fresh, resize);
  $inputs
  it.build({$promotion, $dtypes});
  $after
  if (it.numel() != 0 && !it.device().is_meta()) {
    $choice
  }
  return it.take_output();
}
"""

RUN = """
$result run_$symbol($parameters) {
  $locals
  $dtypes
  const Device where_ = $device;
  $move_numbers
  $outputs
  if (!where_.is_meta()) {
    $apart
    $kernel($arguments);
  }
  $finish
}
"""


def device_of(op: Op) -> str:
    for a in op.args:
        if a.type.base == "Device":  # where the result goes
            return f"{a.name}.value_or({op.tensors[0].name}.device())"
    if not op.tensors:
        return "options.device()" if any(a.type.base == "options" for a in op.args) else "Device(kCPU)"
    alone = len(op.tensors) == 1 and op.tensors[0].type.is_tensor and not op.tensors[0].type.optional
    if alone or op.kernel.anywhere:  # copies go from one device to another
        return f"{op.tensors[0].name}.device()"
    names = [a.name for a in op.tensors]
    if any(a.type.is_list for a in op.tensors):
        return f'common_device("{op.name}", addresses_of({commas(names)}))'
    return f'common_device("{op.name}", {{{commas([f"&{name}" for name in names])}}})'


def output_count(op: Op) -> int:
    """How many outputs of the caller `run_<symbol>` takes."""
    return 0 if op.gives_list else len(op.results)


def move_numbers(op: Op) -> list[str]:
    """Away from the CPU: 0-d CPU tensors among the operands are brought to the device, one to be written is refused."""
    tensors = [f"&{a.name}" for a in op.args if a.type.is_tensor]
    if len(tensors) < 2 or op.kernel.anywhere:
        return []
    written = tensors.pop(0) if op.kernel.kind == "update" else "nullptr"
    return [f'move_numbers("{op.name}", where_, {written}, {{{commas(tensors)}}});']


def input_dtypes(op: Op) -> str:
    """The dtypes of a kernel's inputs."""
    return " | ".join(("set_all", *op.kernel.stored))


def check_dtypes(op: Op) -> list[str]:
    if not op.tensors or op.kernel.anywhere:
        return []
    return [
        f"check_input_dtypes({commas(chr(34) + op.name + chr(34), input_dtypes(op), [a.name for a in op.tensors])});"
    ]


def run_update(op: Op) -> dict[str, list[str] | str]:
    shape = [f"shape::{op.symbol}({call_arguments(op)});"] if has_shape_function(op) else []
    start = f'start_update("{op.name}", given0, self, where_, Expanded::{op.kernel.expanded.title()})'
    others = [a.name for a in op.args[1:] if a.type.base == "Tensor"]
    return {
        "outputs": [*shape, f"Tensor out = {start};"],
        "apart": [f'copy_overlapping_inputs("{op.name}", out, {flag(op.kernel.in_step)}, {commas(others)});']
        if others
        else [],
        "arguments": commas("out", [a.name for a in op.args[1:]]),
        "finish": ["return out;"],
    }


def run_custom(op: Op) -> dict[str, list[str] | str]:
    outs = [f"out{i}" for i in range(len(op.results))]
    given = [f"given{i}" for i in range(output_count(op))]
    arguments = call_arguments(op)
    spec = f"shape::{op.symbol}({arguments})"
    if not outs:
        return {"outputs": [f"{spec};"], "apart": [], "arguments": arguments, "finish": []}
    made, returned = (f"[{commas(outs)}]", f"{{{commas(outs)}}}") if len(outs) > 1 else ("out0", "out0")
    inputs = f"[&] {{ return addresses_of({commas([a.name for a in op.tensors])}); }}"
    begun = commas(f'"{op.name}", where_', spec, [f"{{{commas(given)}}}", inputs] if given else [])
    return {
        "outputs": [f"auto {made} = begin_outputs({begun});"],
        "apart": [],
        "arguments": commas(outs, arguments),
        "finish": [*(f"finish_out(given{i}, out{i});" for i in range(len(given))), f"return {returned};"],
    }


def choice(op: Op) -> list[str]:
    """Runs the first formula that fits the iterator and the attributes: the same choice for all devices."""
    lines = [f"const auto {name} = {value};" for name, value in op.kernel.let]
    for f in op.formulas:
        attributes = [f"{{{commas(list(f.attributes))}}}"] if f.attributes else []
        call = f"run_formula({commas('it', f'&KernelTable::{f.name}', attributes)});"
        fits = [f.when, f"contains({' | '.join(f.dtypes)}, it.common_dtype())" if f.dtypes else ""]
        test = " && ".join(filter(None, fits))
        lines += block(f"if ({test})", [call, "return it.take_output();"]) if test else [call]
    return lines if not test else [*lines, "dtype_not_implemented(it.op(), it.common_dtype());"]


def run_function(op: Op) -> list[str]:
    if op.kernel.kind == "pointwise":
        late = [check for check in op.kernel.check if re.search(r"\bit\b", check)]
        exact = op.kernel.promote in ("same", "real") and not op.kernel.casts_out
        if exact and len(op.tensors) == 1 and "out" in op.forms:
            late.append("check_out_dtype(it)")
        return fill(
            RUN_POINTWISE,
            symbol=op.symbol,
            name=op.name,
            parameters=types.parameters(op.args),
            inputs=[f"it.add_input({a.name});" for a in op.args if a.type.is_tensor],
            promotion=promotion(op),
            dtypes=" | ".join(op.kernel.dtypes),
            before=[f"{check};" for check in op.kernel.check if check not in late],
            after=[f"{check};" for check in late],
            choice=choice(op),
        )
    given = [f"const Tensor* given{i}" for i in range(output_count(op))]
    return fill(
        RUN,
        symbol=op.symbol,
        result=types.result_type(op.results),
        parameters=commas(types.parameters(op.args, suffix="_"), given),
        locals=[types.local(a) for a in op.args],
        dtypes=check_dtypes(op),
        device=device_of(op),
        move_numbers=move_numbers(op),
        kernel=f'find_kernel(kernel_tables, where_, &KernelTable::{op.symbol}, "{op.name}")',
        **(run_update(op) if op.kernel.kind == "update" else run_custom(op)),
    )


def run_call(op: Op, form: str) -> str:
    """The statement that runs the kernel in a form."""
    new = ["nullptr"] * output_count(op)
    outs = {"functional": new, "inplace": ["&self"], "out": [f"&{o}" for o in out_parameters(op)]}[form]
    if op.kernel.kind == "dynamic":
        kernel = f'"{op.name}", {input_dtypes(op)}, &KernelTable::{op.symbol}'
        return f"run_dynamic({kernel}, {device_of(op)}, {call_arguments(op)})"
    resize = [flag(form == "out")] if op.kernel.kind == "pointwise" else []  # in place: given self as it is
    return f"run_{op.symbol}({commas(call_arguments(op), outs, resize)})"


# ---- the boxed form ----


def function_name(op: Op, form: str) -> str:
    return f"{op.name}_{form}_{op.node_index}"


def boxed_function(op: Op, form: str, arrays: schemas.Arrays) -> list[str]:
    """The overloads of a form and the function behind them."""
    outs = [Arg(o, Type("Tensor")) for o in out_parameters(op)] if form == "out" else []
    function = f"static_cast<{signature(op, form, name='(*)')}>({name_of(op, form)})"
    writes = form != "functional" and not op.inplace_only
    functional = f"&function_{function_name(op, 'functional')}" if writes else "nullptr"
    more = {"functional": functional, "sparse": sparse_rule(op, form), "tangent": tangents.rule(op, form)}
    return schemas.tables(op, form, function_name(op, form), function, outs + op.args, more, arrays)


REGISTRY = """
$declarations

ArrayRef<const OpInfo*> all_ops() {
  static constexpr const OpInfo* rows[] = {
      $rows
  };
  return rows;
}
"""


def registry(ops: list[Op]) -> str:
    """All overloads by name."""
    forms = [(op, form) for op in ops for form in op.forms]
    declarations = [f"extern const OpInfo overloads_{function_name(op, form)}[];" for op, form in forms]
    rows = [
        (overload.name, f"overloads_{function_name(op, form)} + {i},")
        for op, form in forms
        for i, overload in enumerate(schemas.overloads_of_form(op, form))
    ]
    rows.sort(key=lambda row: row[0])
    lines = fill(REGISTRY, declarations=declarations, rows=[row for _, row in rows])
    return source(["<rushlight/mode.h>"], "rushlight", lines)


# ---- the functional and the in-place form ----

WRAPPER = """
$info
$signature {
  $format
  $intercept
  $body
}
"""

INTERCEPT = """
const Asks asked = asks_of_call($tensors);
if (RL_UNLIKELY(asked > ask::grad)) {
  if (const Dispatch by = interceptor($arguments)) {
    $handed
  }
}
"""

VIEW = """
if (RL_UNLIKELY($seen)) {
  return record_answer($lower, self, ViewKind::$kind, $node);
}
return recorded_view(self, $call, ViewKind::$kind, $node);
"""


def asking_tensors(op: Op, form: str) -> list[str]:
    """The tensors of a call whose asks count; undefined ones exist in C++ only, and are refused where one is needed."""
    outs = out_parameters(op) if form == "out" else []
    optional = [a.name for a in op.args if a.type.is_tensor and a.type.optional]
    return outs + [f"MaybeUndefined{{{a.name}}}" if a.name in optional else a.name for a in op.tensors]


def intercept(op: Op, form: str) -> list[str]:
    """Statements before everything else: whoever wants to see the call gets it."""
    call = boxed_call(op, form, "by")
    handed = [f"return {call};"]
    if form == "inplace":
        handed = [f"{call};", "return const_cast<Tensor&>(self);"]
    elif form == "out":
        given = commas([f"const_cast<Tensor&>({o})" for o in out_parameters(op)])
        handed = [f"{call};", f"return {given};" if len(op.results) == 1 else f"return {{{given}}};"]
    arguments = commas(f"function_{function_name(op, form)}", "asked", asking_tensors(op, form))
    return fill(INTERCEPT, tensors=commas(asking_tensors(op, form)), arguments=arguments, handed=handed)


def recording(op: Op, form: str) -> list[str]:
    """Statements before the kernel: `node` remembers the inputs where a gradient is wanted."""
    plan = derivatives.plan(op)
    wanted = f"may_record_grad(asked) && ({derivatives.any_wanted(plan)})" if plan is not None else "false"
    lines = []
    if form == "inplace":
        lines = [f"const bool record = {wanted};", f'check_inplace("{op.inplace_name}", self, record);']
        wanted = "record"
    if plan is not None:
        record = derivatives.record(op, plan, inplace=form == "inplace")
        lines += ["Ref<Node> node;", *block(f"if ({wanted})", record)]
    return lines


SPARSE = """
if (RL_UNLIKELY(is_sparse(options))) {
  return as_leaf($call, options.requires_grad());
}
"""


def sparse_dispatch(op: Op, form: str) -> list[str]:
    """Statements for factories that are asked for a sparse tensor."""
    if not (op.has_options and form == "functional"):
        return []
    return fill(SPARSE, call=boxed_call(op, form, "dispatch_sparse"))


def record_history(op: Op, form: str) -> list[str]:
    """Statements after the kernel: results get their history, and `node` remembers those that it needs."""
    plan = derivatives.plan(op)
    if plan is None:
        return []
    if form == "inplace":
        lines = ["rebase_history(self, node);"]
        lines += [f"const Tensor& {s.name} = self;" for s in plan.saved if s.kind == "output"]
    else:
        names = derivatives.result_names(op)
        lines = [f"const auto& {names[0] if len(names) == 1 else f'[{commas(names)}]'} = made_;"]
        lines += [f"{'clear_history' if n in op.nondiff else 'set_history'}({n}, node);" for n in names]
    return block("if (node)", lines + derivatives.record_outputs(plan))


def composite_call(op: Op, form: str) -> str:
    call = f"composite::{op.symbol}({call_arguments(op)})"
    if form == "inplace" and not op.inplace_only:
        before = f"before_write({commas([a.name for a in op.tensors])})"
        return f"self.copy_(composite::{op.symbol}({call_arguments(op, self=before)}))"
    if form == "functional" and op.has_options:
        return f"as_leaf({call}, options.requires_grad())"
    return call


def has_handler_below(op: Op, outs: list[str] | None = None) -> str:
    """Whether a mode below autograd or a special tensor handles the call."""
    return f"asks_handler_below({commas('asked', outs or [], [a.name for a in op.tensors])})"


def boxed_call(op: Op, form: str, to: str) -> str:
    """The call of a form in boxed form, handed to a function."""
    result = types.result_type(op.results) if form == "functional" else "void"
    outs = out_parameters(op) if form == "out" else []
    arguments = commas(to, f"function_{function_name(op, form)}", outs, call_arguments(op))
    return f"dispatch_boxed<{result}>({arguments})"


FORMAT = """
if (RL_UNLIKELY(options.has_memory_format())) {
  return in_format($call, options);
}
"""


def in_format(op: Op, form: str) -> list[str]:
    """Statements for options that say a memory format: what follows them meets none."""
    if not (op.has_options and form == "functional"):
        return []
    said = {"options": "without_format(options)", "memory_format": "format_of(options, memory_format)"}
    return fill(FORMAT, call=f"{name_of(op, form)}({call_arguments(op, **said)})")


def kernel_body(op: Op, form: str, result: str, lower: str) -> list[str]:
    """The kernel of a form that records, and what follows it."""
    run = run_call(op, form)
    if result == "void":
        call = f"RL_LIKELY(!{has_handler_below(op)}) ? static_cast<void>({run}) : {lower};"
    else:
        call = f"{result} made_ = RL_LIKELY(!{has_handler_below(op)}) ? {run} : {lower};"
    written = [a.name for a in op.args if a.type.written or (form == "inplace" and a.name == "self")]
    return [*recording(op, form), call, *(f"count_write({name});" for name in written), *record_history(op, form)]


def wrapper(op: Op, form: str, arrays: schemas.Arrays) -> list[str]:
    """Interceptors, history, kernel."""
    result = types.result_type(op.results) if form == "functional" else "void"
    lower = boxed_call(op, form, "dispatch_lower")
    finish = ["return made_;"] if result != "void" else []
    if form == "inplace":
        finish = ["return const_cast<Tensor&>(self);"]
    if op.kind == "composite":
        body = [*sparse_dispatch(op, form), f"return {composite_call(op, form)};"]
        if op.stays_whole:
            whole = [f"{lower};", *finish] if form == "inplace" else [f"return {lower};"]
            body = block(f"if (RL_UNLIKELY({has_handler_below(op)}))", whole) + body
    elif op.kind == "view":
        body = recording(op, form) + fill(
            VIEW,
            seen=has_handler_below(op),
            lower=lower,
            kind="MultiOutput" if op.gives_list else op.view_kind,
            node="Ref<Node>()" if derivatives.plan(op) is None else "node",
            call=f"views::{op.symbol}({call_arguments(op)})",
        )
    else:
        body = kernel_body(op, form, result, lower) + finish
    return fill(
        WRAPPER,
        info=boxed_function(op, form, arrays),
        signature=signature(op, form),
        format=in_format(op, form),
        intercept=intercept(op, form),
        body=body,
    )


# ---- out= ----


OUT_WRAPPER = """
$info
$signature {
  $intercept
  $checks
  if (RL_UNLIKELY($seen)) {
    $lower
  }
  $body
}
"""


def out_wrapper(op: Op, arrays: schemas.Arrays) -> list[str]:
    outs = out_parameters(op)
    plan = derivatives.plan(op)
    wanted = f"{derivatives.any_wanted(plan)} || " if plan is not None else ""
    checks = [f'check_out_grad("{op.name}", tls.grad_mode && ({wanted}needs_grad({o})));' for o in outs]
    given = [a.name for a in op.tensors if not a.type.element_optional]
    checks.append(f'check_out_tangents("{op.name}", {commas(given, outs)});')
    lines = []
    if any(a.name == "dtype" and a.type.base == "ScalarType" and a.type.optional for a in op.args):
        lines.append(f'check_out_dtype("{op.name}", dtype, {outs[0]});')
        if op.in_out_dtype:
            lines.append(f"dtype = {outs[0]}.dtype();")
    if op.has_options:
        made = f"composite::{op.symbol}({call_arguments(op, options=f'options_of({outs[0]}, options)')})"
        how = f"{flag(op.any_shape)}, options.requires_grad()"
        lines += ["const NoGradGuard no_grad;", f'fill_out("{op.name}", {outs[0]}, {made}, {how});']
    elif op.kind == "composite" or op.kernel.kind == "dynamic":
        if op.kernel.kind == "dynamic":
            inputs = commas([f"&{a.name}" for a in op.tensors])
            lines += [f'check_apart("{op.name}", {o}, {{{inputs}}});' for o in outs]
        made = f"composite::{op.symbol}({call_arguments(op)})" if op.kind == "composite" else run_call(op, "functional")
        if op.in_out_dtype:
            made = f"{made}.to({outs[0]}.dtype())"
        lines.append(f'assign_outs("{op.name}", {made}, {commas(outs)});')
    elif op.kernel.kind == "update":
        lines.append(f'assign_outs("{op.name}", {run_call(op, "functional")}, out);')
    else:
        lines.append(f"{run_call(op, 'out')};")
        if op.kernel.kind == "pointwise":
            lines.append("count_write(out);")
    given = commas([f"const_cast<Tensor&>({o})" for o in outs])
    finish = f"return {given};" if len(outs) == 1 else f"return {{{given}}};"
    return fill(
        OUT_WRAPPER,
        info=boxed_function(op, "out", arrays),
        signature=signature(op, "out"),
        checks=checks,
        intercept=intercept(op, "out"),
        seen=has_handler_below(op, outs),
        lower=[f"{boxed_call(op, 'out', 'dispatch_lower')};", *(f"count_write({o});" for o in outs), finish],
        body=[*lines, finish],
    )


# ---- sparse tensors ----


SPARSE_H = """
#pragma once

#include "core/sparse.h"

namespace rushlight::sparse {

$functions

}  // namespace rushlight::sparse
"""


def sparse_function(op: Op) -> str:
    """What an op does with sparse tensors; in place the result is what `self` becomes."""
    return f"{types.result_type(op.results)} {op.sparse}({types.parameters(op.args)})"


def sparse_rule(op: Op, form: str) -> str:
    """What the entry says of sparse tensors, as the data of a form."""
    if not op.sparse:  # factories refuse sparse tensors in the place of what would read their memory
        return "{nullptr, SparseRule::Where::Above}" if op.has_options and form == "functional" else "{}"
    where = "Below"
    if form != "out":
        where = "Above" if op.kind == "composite" else "Recorded" if derivatives.plan(op) is not None else "Below"
    where = f"SparseRule::Where::{where}"
    if op.sparse == "values":
        pointer = f"{types.result_type(op.results)} (*)({types.parameters(op.args)})"
        return f"{{boxed<static_cast<{pointer}>({op.name})>, {where}, true}}"
    return f"{{boxed<sparse::{op.sparse}>, {where}}}"


def sparse_header(ops: list[Op]) -> str:
    """The declarations of what entries name."""
    functions = [f"{sparse_function(op)};" for op in ops if op.sparse not in (None, "values")]
    return "\n".join([HEADER, *fill(SPARSE_H, functions=list(dict.fromkeys(functions))), ""])


# ---- what Python that looks at ops is shown in the place of some ----


PARTS = """
namespace parts {

$declared

}  // namespace parts

namespace {

$functions

using Table = std::unordered_map<const OpFunction*, PartsFunction>;
PartsFunction found_in(const Table& table, const OpFunction& function) {
  const auto found = table.find(&function);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

PartsFunction parts_of(const OpFunction& function) {
  static const Table known = {
      $below
  };
  return found_in(known, function);
}

PartsFunction traced_as(const OpFunction& function) {
  static const Table known = {
      $above
  };
  return found_in(known, function);
}
"""


def is_traced_through(op: Op) -> bool:
    """Whether a trace shows what a composite is made of: those that aten lacks are the package's own business."""
    functional = "functional" in op.forms and not op.has_options and not op.inplace_only
    return op.traced == "body" or (op.kind == "composite" and op.own and functional)


def parts_source(ops: list[Op]) -> str:
    """What ops are composed of to Python code that looks at them below autograd, and above it."""
    composed = [op for op in ops if op.parts]
    written = [op for op in ops if op.traced not in ("", "body")]
    head = "{} {}({})".format
    results = {id(op): types.result_type(op.results) for op in ops}
    functions = []
    for op in written:
        lines = [f"return {op.traced};"]
        functions += block(head(results[id(op)], f"traced_{op.symbol}", types.parameters(op.args)), lines)

    def row(op, function):
        overload = schemas.overloads_of_form(op, "functional")[0].overload
        return f'{{find_op("{op.name}", "{overload}")->function, boxed<{function}>}},'

    text = fill(
        PARTS,
        declared=[head(results[id(op)], op.symbol, types.parameters(op.args)) + ";" for op in composed],
        functions=functions,
        below=[row(op, f"parts::{op.symbol}") for op in composed],
        above=[row(op, f"traced_{op.symbol}") for op in written]
        + [row(op, f"composite::{op.symbol}") for op in ops if is_traced_through(op)],
    )
    includes = ["<unordered_map>", "", "<rushlight/ops.h>", "", "core/parts.h", "ops/wrappers.h"]
    return source(includes, "rushlight", text)


# ---- files ----


def wrappers_source(ops: list[Op]) -> str:
    lines, arrays = ["namespace {", ""], schemas.Arrays()
    for op in ops:
        if (plan := derivatives.plan(op)) is not None:
            lines += [*derivatives.backward_function(op, plan), *derivatives.descriptors(op, plan), ""]
        if op.kernel.kind in ("pointwise", "custom", "update"):
            lines += [*run_function(op), ""]
    lines += ["}  // namespace", ""]
    for op in ops:
        if op.body:
            head = kernels.composite_function(op).replace(op.symbol, f"composite::{op.symbol}", 1)
            lines += block(head, [op.body])
        for form in op.forms:
            lines += [*(out_wrapper(op, arrays) if form == "out" else wrapper(op, form, arrays)), ""]
    wanted = {
        "generated/sparse.h": any(op.sparse or op.has_options for op in ops),
        "ops/recorded_views.h": any(op.kind == "view" for op in ops),
        "ops/batch_formulas.h": any(r.kind == "expression" for op in ops for r in rules.batch(op).values()),
        "generated/forward.h": True,
        "ops/derivatives.h": True,
        "ops/pointwise_choice.h": any(op.kernel.kind == "pointwise" for op in ops),
        "ops/wrappers.h": True,
    }
    includes = ["<rushlight/ops.h>", "", *(path for path, used in wanted.items() if used)]
    return source(includes, "rushlight", lines[:-1])


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {
        "src/registry.cpp": registry(ops),
        "src/parts.cpp": parts_source(ops),
        "include/generated/sparse.h": sparse_header(ops),
    }
    for name, part in pieces(ops, OPS_PER_FILE, lambda op: op.family):
        files[f"src/ops_{name}.cpp"] = wrappers_source(part)
    return files
