"""What the C++ functions do. A wrapper is straight-line code: upper mode → (record) → kernel → history.

The forms of a kernel op share one `run_<symbol>` (checks, output shapes, allocation, kernel), which takes the given
output or null. What statements call stands in src/ops/wrappers.h; what depends on the kind of a value is left to its
overloads.
"""

from __future__ import annotations

from gen import derivatives, types
from gen.declarations import call_arguments, name_of, out_parameters, registry, signature
from gen.kernels import has_shape_function, promotion, spec_type
from gen.table import Op
from gen.text import block, commas, fill, flag, pieces, source

OPS_PER_FILE = 24

# ---- run_<symbol>: outputs of the caller are `given`, null where they are to be made ----

RUN_POINTWISE = """
Tensor run_$symbol($parameters, const Tensor* given, bool resize) {
  const Tensor fresh;
  TensorIterator it("$name");
  it.add_output(given != nullptr ? *given : fresh, resize);
  $inputs
  it.build({$promotion, $dtypes});
  const Device where_ = it.device();
  if (it.numel() != 0 && !where_.is_meta()) {
    $kernel($arguments);
  }
  return it.output();
}
"""

RUN_DYNAMIC = """
$result run_$symbol($parameters) {
  const Device where_ = $device;
  RL_CHECK_NOT_IMPLEMENTED(!where_.is_meta(),
                           "$name: the size of the result depends on values, which meta tensors lack");
  return $kernel($arguments);
}
"""

RUN = """
$result run_$symbol($parameters) {
  $locals
  const Device where_ = $device;
  $settle
  $outputs
  if (!where_.is_meta()) {
    $apart
    $kernel($arguments);
  }
  $finish
}
"""


def addresses(op: Op) -> str:
    """An expression for the addresses of the op's tensors, as they are when it is evaluated."""
    if any(a.type.is_list for a in op.tensors):
        return f"addresses_of({commas([a.name for a in op.tensors])})"
    return "{" + commas([f"&{a.name}" for a in op.tensors]) + "}"


def device_of(op: Op) -> str:
    for a in op.args:
        if a.type.base == "Device":  # where the result goes
            return f"{a.name}.value_or({op.tensors[0].name}.device())"
    if not op.tensors:
        return "options.device()" if any(a.type.base == "options" for a in op.args) else "Device(kCPU)"
    alone = len(op.tensors) == 1 and op.tensors[0].type.is_tensor and not op.tensors[0].type.optional
    if alone or op.kernel.anywhere:  # copies go from one device to another
        return f"{op.tensors[0].name}.device()"
    return f'common_device("{op.name}", {addresses(op)})'


def given_count(op: Op) -> int:
    """How many outputs of the caller `run_<symbol>` takes."""
    if op.kernel.kind == "dynamic" or (op.kernel.kind == "custom" and (not op.results or op.gives_list)):
        return 0
    return max(len(op.results), 1)


def settle_numbers(op: Op) -> list[str]:
    """Away from the CPU: 0-d CPU tensors among the operands are brought to the device, one to be written is refused."""
    tensors = [f"&{a.name}" for a in op.args if a.type.is_tensor]
    if len(tensors) < 2 or op.kernel.anywhere:
        return []
    written = "&self" if op.kernel.kind == "update" else "nullptr"
    moved = commas(tensors[1 if op.kernel.kind == "update" else 0 :])
    return block(
        "if (RL_UNLIKELY(!where_.is_cpu()))", [f'settle_numbers("{op.name}", where_, {written}, {{{moved}}});']
    )


def run_update(op: Op) -> dict[str, list[str] | str]:
    shape = [f"shape::{op.symbol}({call_arguments(op)});"] if has_shape_function(op) else []
    start = f'start_update("{op.name}", given0, self, where_, {flag(op.kernel.constant)})'
    others = [a.name for a in op.args[1:] if a.type.base == "Tensor"]
    return {
        "outputs": [*shape, f"Tensor out = {start};"],
        "apart": [f'keep_apart("{op.name}", out, {name}, {flag(op.kernel.in_step)});' for name in others],
        "arguments": commas("out", [a.name for a in op.args[1:]]),
        "finish": ["return out;"],
    }


def run_custom(op: Op) -> dict[str, list[str] | str]:
    n = len(op.results)
    outs = [f"out{i}" for i in range(n)]
    given = [f"given{i}" for i in range(given_count(op))]
    shape = f"shape::{op.symbol}({call_arguments(op)});"
    if n == 0:
        outputs = [shape]
    elif op.gives_list:
        outputs = [f"const {spec_type(op)} specs = {shape}", "std::vector<Tensor> out0 = make_outputs(specs, where_);"]
    else:
        outputs = [f"const {spec_type(op)} spec = {shape}"]
        for i in range(n):
            spec = "spec" if n == 1 else f"spec[{i}]"
            begun = f'begin_out("{op.name}", *given{i}, {spec}, where_, {addresses(op)})'
            outputs.append(f"Tensor out{i} = given{i} != nullptr ? {begun} : make_output({spec}, where_);")
        if n > 1:
            apart = f'check_outputs_apart("{op.name}", {{{commas(given)}}});'
            outputs += block("if (given0 != nullptr)", [apart])
    results = ["return out0;" if n == 1 else f"return {{{commas(outs)}}};"] if n else []
    return {
        "outputs": outputs,
        "apart": [],
        "arguments": commas(outs, call_arguments(op)),
        "finish": [*(f"finish_out({g}, {o});" for g, o in zip(given, outs, strict=False)), *results],
    }


def run_function(op: Op) -> list[str]:
    kind = op.kernel.kind
    spelt = {
        "symbol": op.symbol,
        "name": op.name,
        "kernel": f'find_kernel(kernel_tables, where_, &KernelTable::{op.symbol}, "{op.name}")',
        "result": "Tensor" if op.inplace_only and op.args[0].type.is_tensor else types.result_type(op.results),
    }
    if kind == "pointwise":
        numbers = [
            a.name if not op.by_formula or a.type.base == "Scalar" else f"Scalar({a.name})" for a in op.attributes
        ]
        return fill(
            RUN_POINTWISE,
            parameters=types.parameters(op.args),
            inputs=[f"it.add_input({a.name});" for a in op.args if a.type.is_tensor],
            promotion=promotion(op),
            dtypes=" | ".join(op.kernel.dtypes),
            arguments=commas("it", numbers),
            **spelt,
        )
    if kind == "dynamic":
        parameters = types.parameters(op.args)
        return fill(RUN_DYNAMIC, parameters=parameters, device=device_of(op), arguments=call_arguments(op), **spelt)
    given = [f"const Tensor* given{i}" for i in range(given_count(op))]
    return fill(
        RUN,
        parameters=commas(types.parameters(op.args, suffix="_"), given),
        locals=[types.local(a) for a in op.args],
        device=device_of(op),
        settle=settle_numbers(op),
        **spelt,
        **(run_update(op) if kind == "update" else run_custom(op)),
    )


def run_call(op: Op, form: str) -> str:
    """The call of run_<symbol> in a form; for pointwise ops in place: given self, no resize."""
    count = given_count(op)
    outs = {"functional": ["nullptr"] * count, "inplace": ["&self"], "out": [f"&{o}" for o in out_parameters(op)]}
    resize = [flag(form == "out")] if op.kernel.kind == "pointwise" else []
    return f"run_{op.symbol}({commas(call_arguments(op), outs[form][:count], resize)})"


# ---- the functional and the in-place form ----

WRAPPER = """
$signature {
  if (RL_UNLIKELY(tls.upper != nullptr)) {
    $upper
  }
  $body
}
"""

VIEW = """
if (RL_UNLIKELY(tls.lower != nullptr)) {
  return record_answer($lower, self, ViewKind::$kind, $node);
}
return recorded_view(self, $call, ViewKind::$kind, $node);
"""

KERNEL_IN_PLACE = """
if (RL_LIKELY(tls.lower == nullptr)) {
  $run;
} else {
  $lower;
}
"""


def defined_checks(op: Op, form: str) -> list[str]:
    """Undefined tensors exist in C++ only; nothing behind these lines meets one where a tensor is needed."""
    name = op.inplace_name if form == "inplace" else op.name
    needed = [a.name for a in op.args if a.type.base == "Tensor" and not (a.type.optional or a.type.element_optional)]
    outs = out_parameters(op) if form == "out" else []
    return [f'check_defined("{name}", "{tensor}", {tensor});' for tensor in needed + outs]


def recording(op: Op, form: str) -> list[str]:
    """Statements before the kernel: `node` remembers the inputs where a gradient is wanted."""
    plan = derivatives.plan(op)
    wanted = f"tls.grad_mode && ({derivatives.any_wanted(plan)})" if plan is not None else "false"
    lines = []
    if form == "inplace":
        lines = [f"const bool record = {wanted};", f'check_inplace("{op.inplace_name}", self, record);']
        wanted = "record"
    if plan is not None:
        record = derivatives.record(op, plan, inplace=form == "inplace")
        lines += ["Ref<Node> node;", *block(f"if ({wanted})", record)]
    return lines


def made_values(op: Op) -> list[str]:
    """The results, of which `made_` holds one or several."""
    n = len(op.results)
    return ["made_"] if n == 1 else [f"std::get<{i}>(made_)" for i in range(n)]


def remembering(op: Op, form: str) -> list[str]:
    """Statements after the kernel: results get their history, and `node` remembers those that it needs."""
    plan = derivatives.plan(op)
    if plan is None:
        return []
    if form == "inplace":
        lines = ["rebase_history(self, node);"]
        lines += [f"const Tensor& {s.name} = self;" for s in plan.saved if s.kind == "output"]
    else:
        names = derivatives.result_names(op)
        lines = [f"const auto& {n} = {value};" for n, value in zip(names, made_values(op), strict=True)]
        lines += [f"{'set_no_history' if n in op.nondiff else 'set_history'}({n}, node);" for n in names]
    return block("if (node)", lines + derivatives.record_outputs(plan))


def composite_call(op: Op, form: str) -> str:
    call = f"composite::{op.symbol}({call_arguments(op)})"
    if form == "inplace" and not op.inplace_only:
        return f"self.copy_({call})"
    if form == "functional" and any(a.type.base == "options" for a in op.args):
        return f"as_leaf({call}, options.requires_grad())"
    return call


def kernel_body(op: Op, form: str, lower: str) -> list[str]:
    """The kernel of a form that records, and what follows it."""
    on_self = form == "inplace" and op.on_self
    records = on_self or form == "functional"  # what writes into lists of tensors has no gradient
    result = types.result_type(op.results) if form == "functional" else "void"
    run = run_call(op, form if records else "functional")
    lines = recording(op, form) if records else []
    if result == "void":
        lines += fill(KERNEL_IN_PLACE, run=run, lower=lower)
    else:
        lines.append(f"{result} made_ = RL_LIKELY(tls.lower == nullptr) ? {run} : {lower};")
    written = [a.name for a in op.args if a.type.written and not (a.name == "self" and "inplace" in op.forms)]
    lines += [f"count_write({name});" for name in (["self", *written] if on_self else written)]
    if records:
        lines += remembering(op, form)
    if on_self:
        return [*lines, "return const_cast<Tensor&>(self);"]
    return lines if result == "void" else [*lines, "return made_;"]


def wrapper(op: Op, form: str, index: str) -> list[str]:
    """Mode, history, kernel."""
    result = types.result_type(op.results) if form == "functional" else "void"
    upper, lower = (
        f"dispatch_boxed<{result}>({commas(f'dispatch_{level}', index, call_arguments(op))})"
        for level in ("upper", "lower")
    )
    on_self = form == "inplace" and op.on_self
    handed = [f"{upper};", "return const_cast<Tensor&>(self);"] if on_self else [f"return {upper};"]
    if op.kind == "composite":
        body = [f"return {composite_call(op, form)};"]
    elif op.kind == "view":
        body = recording(op, form) + fill(
            VIEW,
            lower=lower,
            kind="MultiOutput" if op.gives_list else op.view_kind,
            node="Ref<Node>()" if derivatives.plan(op) is None else "node",
            call=f"views::{op.symbol}({call_arguments(op)})",
        )
    else:
        body = kernel_body(op, form, lower)
    return fill(WRAPPER, signature=signature(op, form), upper=handed, body=defined_checks(op, form) + body)


# ---- out= ----


def out_wrapper(op: Op) -> list[str]:
    outs = out_parameters(op)
    plan = derivatives.plan(op)
    wanted = f"{derivatives.any_wanted(plan)} || " if plan is not None else ""
    lines = defined_checks(op, "out")
    lines += [f'check_out_grad("{op.name}", tls.grad_mode && ({wanted}grad_wanted({o})));' for o in outs]
    if op.kind == "composite":
        lines += ["const NoGradGuard no_grad;", f"const auto made_ = composite::{op.symbol}({call_arguments(op)});"]
        if len(outs) > 1:
            lines.append(f'check_outputs_apart("{op.name}", {{{commas([f"&{o}" for o in outs])}}});')
        lines += [f'assign_out("{op.name}", {o}, {m});' for o, m in zip(outs, made_values(op), strict=True)]
    elif op.kernel.kind == "update":
        lines += [f"const Tensor made_ = {run_call(op, 'functional')};", f'assign_out("{op.name}", out, made_);']
    else:
        lines.append(f"{run_call(op, 'out')};")
        if op.kernel.kind == "pointwise":
            lines.append("count_write(out);")
    given = commas([f"const_cast<Tensor&>({o})" for o in outs])
    lines.append(f"return {given};" if len(outs) == 1 else f"return {{{given}}};")
    return block(signature(op, "out"), lines)


# ---- files ----


def wrappers_source(ops: list[Op], index: dict[tuple[str, str], int]) -> str:
    """`index`: the places of (name, overload) in the boxed registry."""
    lines = ["extern const OpInfo op_infos[];", "", "namespace {", ""]
    for op in ops:
        if (plan := derivatives.plan(op)) is not None:
            lines += [*derivatives.backward_function(op, plan), *derivatives.descriptors(op, plan), ""]
        if op.kind == "kernel":
            lines += [*run_function(op), ""]
    lines += ["}  // namespace", ""]
    for op in ops:
        for form in op.forms:
            entry = index.get((name_of(op, form), op.overload))
            lines += [*(out_wrapper(op) if form == "out" else wrapper(op, form, f"op_infos[{entry}]")), ""]
    views = ["ops/recorded_views.h"] if any(op.kind == "view" for op in ops) else []
    includes = ["<rushlight/ops.h>", "", "generated/kernels.h", *views, "ops/derivatives.h", "ops/wrappers.h"]
    return source(includes, "rushlight", lines[:-1])


def places(ops: list[Op]) -> dict[tuple[str, str], int]:
    return {(name, op.overload): i for i, (name, op, _) in enumerate(registry(ops))}


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    index = places(ops)
    files = {}
    for family in dict.fromkeys(op.family for op in ops):
        for k, part in pieces([op for op in ops if op.family == family], OPS_PER_FILE):
            files[f"src/ops_{family}_{k}.cpp"] = wrappers_source(part, index)
    return files
