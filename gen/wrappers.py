"""What the C++ functions do. A wrapper is straight-line code: interceptors → (record) → kernel → history.

The forms of a kernel op share one `run_<symbol>` (checks, output shapes, allocation, kernel), which takes the given
output or null. What statements call stands in src/ops/wrappers.h; what depends on the kind of a value is left to its
overloads.
"""

from __future__ import annotations

import re

from gen import derivatives, kernels, registry, rules
from gen.declarations import Form, forms
from gen.expressions import names
from gen.kernels import promotion
from gen.schema import Arg, parameters, result_type
from gen.table import Op
from gen.text import block, commas, fill, flag, pieces, source

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
  @checked check_taken("$name", $taken, $tensors);
  const Device where_ = $device;
  @moved move_numbers("$name", where_, $written, {$numbers});
  @update shape::$symbol($call);
  @update Tensor out = start_update("$name", given0, self, where_, Expanded::$expanded);
  @silent shape::$symbol($call);
  @made auto $outs = begin_outputs("$name", where_, shape::$symbol($call)$begun);
  if (!where_.is_meta()) {
    @mixed keep_apart("$name", out, $in_step, $others);
    find_kernel(kernel_tables, where_, &KernelTable::$symbol, "$name")($arguments);
  }
  $finish
  @update return out;
  @made return $returned;
}
"""


def device_of(op: Op) -> str:
    tensors = [a.name for a in op.tensors]
    for a in op.args:
        if a.type.base == "Device":  # where the result goes
            return f"{a.name}.value_or({tensors[0]}.device())"
    if not tensors:
        return "options.device()" if op.has_options else "Device(kCPU)"
    alone = len(tensors) == 1 and op.tensors[0].type.is_tensor and not op.tensors[0].type.optional
    if alone or op.kernel.place == "anywhere":  # copies go from one device to another
        return f"{tensors[0]}.device()"
    if any(a.type.is_list for a in op.tensors):
        return f'common_device("{op.name}", addresses_of({commas(tensors)}))'
    return f'common_device("{op.name}", {{{addresses(tensors)}}})'


def addresses(tensors: list[str]) -> str:
    return commas([f"&{name}" for name in tensors])


def taken(op: Op) -> str:
    """The dtypes of a kernel's inputs."""
    return " | ".join(("set_all", *op.kernel.stored))


def local(arg: Arg) -> str:
    """Declares the owned copy of a parameter `name_` as `name`."""
    if arg.type.base == "int" and (arg.type.size or 1) > 1 and not arg.type.optional:  # int[1]: one int will do
        return f'DimVector {arg.name} = repeat_to({arg.type.size}, "{arg.name}", {arg.name}_);'
    return f"auto {arg.name} = own({arg.name}_);"


def choice(op: Op, named: list[str]) -> list[str]:
    """Runs the first formula that fits the iterator and the attributes: the same choice for all devices."""
    lines, test = [f"const auto {value};" for value in named], ""
    for f in op.formulas:
        attributes = [f"{{{commas(list(f.attributes))}}}"] if f.attributes else []
        call = f"run_formula({commas('it', f'&KernelTable::{f.name}', attributes)});"
        fits = [f.when, f"contains({' | '.join(f.dtypes)}, it.common_dtype())" if f.dtypes else ""]
        test = " && ".join(filter(None, fits))
        lines += block(f"if ({test})", [call, "return it.take_output();"]) if test else [call]
    return lines if not test else [*lines, "dtype_not_implemented(it.op(), it.common_dtype());"]


def run_pointwise(op: Op) -> list[str]:
    named = [check for check in op.kernel.check if re.match(r"\w+ = ", check)]
    checks = [check for check in op.kernel.check if check not in named]
    late = [check for check in checks if "it" in names(check)]
    early = [f"{check};" for check in checks if check not in late]
    exact = op.kernel.promote in ("same", "real") and "any_dtype" not in op.out
    if exact and len(op.tensors) == 1 and "out" in op.forms:
        late.append("check_out_dtype(it)")
    return fill(
        RUN_POINTWISE,
        symbol=op.symbol,
        name=op.name,
        parameters=parameters(op.args),
        inputs=[f"it.add_input({a.name});" for a in op.args if a.type.is_tensor],
        promotion=promotion(op),
        dtypes=" | ".join(op.kernel.dtypes),
        before=early,
        after=[f"{check};" for check in late],
        choice=choice(op, named),
    )


def run_function(op: Op) -> list[str]:
    if op.kernel.kind == "pointwise":
        return run_pointwise(op)
    update, count = op.kernel.kind == "update", 0 if op.gives_list else len(op.results)
    given = [f"given{i}" for i in range(count)]
    outs = [f"out{i}" for i in range(len(op.results))]
    tensors = [a.name for a in op.tensors]
    numbers = [a.name for a in op.args if a.type.is_tensor]
    local_to = op.kernel.place != "anywhere"
    others = [a.name for a in op.args[1:] if a.type.base == "Tensor"]
    inputs = f", {{{commas(given)}}}, [&] {{ return addresses_of({commas(tensors)}); }}" if given else ""
    many = len(outs) > 1
    return fill(
        RUN,
        symbol=op.symbol,
        name=op.name,
        result=result_type(op.results),
        parameters=commas(parameters(op.args, suffix="_"), [f"const Tensor* {g}" for g in given]),
        locals=[local(a) for a in op.args],
        checked=tensors and local_to,
        taken=taken(op),
        tensors=commas(tensors),
        device=device_of(op),
        # Away from the CPU 0-d CPU tensors among the operands are brought to the device, one to be written is refused.
        moved=len(numbers) > 1 and local_to,
        written=f"&{numbers.pop(0)}" if update and numbers else "nullptr",
        numbers=addresses(numbers),
        update=update,
        silent=not update and not outs,
        made=not update and outs,
        call=op.call(),
        expanded={"elements": "Welcome", "warned": "Warned"}.get(op.kernel.shares, "Refused"),
        outs=f"[{commas(outs)}]" if many else "out0",
        begun=inputs,
        mixed=update and others,
        in_step=flag(op.kernel.shares == "input"),
        others=commas(others),
        arguments=commas("out", [a.name for a in op.args[1:]]) if update else commas(outs, op.call()),
        finish=[] if update else [f"finish_out({g}, {o});" for g, o in zip(given, outs, strict=False)],
        returned=f"{{{commas(outs)}}}" if many else "out0",
    )


def run_call(op: Op, form: str) -> str:
    """The expression that runs the kernel in a form."""
    if op.kernel.kind == "dynamic":
        kernel = f'"{op.name}", {taken(op)}, &KernelTable::{op.symbol}'
        return f"run_dynamic({kernel}, {device_of(op)}, {op.call()})"
    new = [] if op.gives_list else ["nullptr"] * len(op.results)
    outs = {"functional": new, "inplace": ["&self"], "out": [f"&{o}" for o in Form(op, "out").outs]}[form]
    resize = [flag(form == "out")] if op.kernel.kind == "pointwise" else []  # in place: given self as it is
    return f"run_{op.symbol}({commas(op.call(), outs, resize)})"


# ---- the forms ----

WRAPPER = """
$info
$signature {
  @format if (RL_UNLIKELY(options.has_memory_format())) {
  @format   return in_format($formatted, options);
  @format }
  const Asks asked = asks_of_call($tensors);
  if (RL_UNLIKELY(asked > ask::grad)) {
    if (const Dispatch by = interceptor($function, asked$comma$tensors)) {
      $handed
    }
  }
  $body
}
"""

# What composites do; `lower` is the way that the levels below autograd get a call.
COMPOSITE = """
@whole if (RL_UNLIKELY($seen)) {
@whole   $lower
@whole }
@sparse if (RL_UNLIKELY(is_sparse(options))) {
@sparse   return as_leaf($dispatched, options.requires_grad());
@sparse }
return $call;
"""

VIEW = """
$recording
if (RL_UNLIKELY($seen)) {
  return record_answer($lower, self, ViewKind::$kind, $node);
}
return recorded_view(self, views::$call, ViewKind::$kind, $node);
"""

KERNEL = """
@inplace const bool record = $wanted;
@inplace check_inplace("$name", self, record);
@differentiable Ref<Node> node;
@differentiable if ($record) {
@differentiable   $saving
@differentiable }
"""

OUT = """
$checks
if (RL_UNLIKELY($seen)) {
  $lower
  $counts
  $finish
}
$run
$finish
"""


class Wrapper:
    """The function of a form."""

    def __init__(self, form: Form) -> None:
        self.form, self.op, self.kind = form, form.op, form.kind
        self.plan = derivatives.plan(form.op)
        self.tensors = [a.name for a in self.op.tensors]
        self.factory = self.op.has_options and self.kind == "functional"

    def boxed(self, to: str) -> str:
        """The call in boxed form, handed to a function."""
        result = result_type(self.op.results) if self.kind == "functional" else "void"
        return (
            f"dispatch_boxed<{result}>({commas(to, f'function_{self.form.function}', self.form.outs, self.op.call())})"
        )

    @property
    def finish(self) -> list[str]:
        """The statement that returns what the caller gave to be written."""
        given = commas([f"const_cast<Tensor&>({o})" for o in self.form.outs or ["self"]])
        return [f"return {{{given}}};" if len(self.form.outs) > 1 else f"return {given};"]

    def handed(self, to: str) -> list[str]:
        """Statements that hand the call to a function, and return."""
        if self.kind == "functional":
            return [f"return {self.boxed(to)};"]
        return [f"{self.boxed(to)};", *self.finish]

    @property
    def seen(self) -> str:
        """Whether a mode below autograd or a special tensor handles the call."""
        return f"asked_below({commas('asked', self.form.outs, self.tensors)})"

    def lines(self, arrays: registry.Arrays) -> list[str]:
        """Interceptors come first: whoever wants to see the call gets it."""
        # Undefined tensors exist in C++ only, and are refused where one is needed.
        optional = [a.name for a in self.op.args if a.type.is_tensor and a.type.optional]
        asking = [f"MaybeUndefined{{{name}}}" if name in optional else name for name in self.tensors]
        plain = {"options": "without_format(options)", "memory_format": "format_of(options, memory_format)"}
        bodies = {"composite": self.composite, "view": self.view, "kernel": self.kernel}
        return fill(
            WRAPPER,
            info=registry.tables(self.form, arrays),
            signature=self.form.signature(),
            format=self.factory,
            formatted=self.form.call(**plain),
            function=f"function_{self.form.function}",
            tensors=commas(self.form.outs, asking),
            comma=", " if self.form.outs or asking else "",
            handed=self.handed("by"),
            body=self.out() if self.kind == "out" else bodies[self.op.kind](),
        )

    def composite(self) -> list[str]:
        call = f"composite::{self.op.symbol}({self.op.call()})"
        if self.kind == "inplace" and not self.op.inplace_only:
            before = {"self": f"before_write({commas(self.tensors)})"}
            call = f"self.copy_(composite::{self.op.symbol}({self.op.call(**before)}))"
        elif self.factory:
            call = f"as_leaf({call}, options.requires_grad())"
        return fill(
            COMPOSITE,
            whole=self.op.whole,
            seen=self.seen,
            lower=self.handed("dispatch_lower"),
            sparse=self.factory,
            dispatched=self.boxed("dispatch_sparse"),
            call=call,
        )

    def recording(self) -> list[str]:
        """Statements before the kernel: `node` remembers the inputs where a gradient is wanted."""
        wanted = f"grad_asked(asked) && ({self.plan.any_wanted})" if self.plan else "false"
        inplace = self.kind == "inplace"
        return fill(
            KERNEL,
            inplace=inplace,
            wanted=wanted,
            name=self.form.name,
            differentiable=self.plan,
            record="record" if inplace else wanted,
            saving=self.plan.record(inplace=inplace) if self.plan else [],
        )

    def remembering(self) -> list[str]:
        """Statements after the kernel: results get their history, and `node` remembers those that it needs."""
        if self.plan is None:
            return []
        named, nondiff = self.op.result_names, self.op.nondiff
        if self.kind == "inplace":
            lines = ["rebase_history(self, node);"]
            lines += [f"const Tensor& {s.name} = self;" for s in self.plan.saved if s.kind == "output"]
        else:
            lines = [f"const auto& {named[0] if len(named) == 1 else f'[{commas(named)}]'} = made_;"]
            lines += [f"{'set_no_history' if n in nondiff else 'set_history'}({n}, node);" for n in named]
        return block("if (node)", lines + self.plan.record_outputs())

    def view(self) -> list[str]:
        single = "Normal" if self.plan else "NoGrad"
        return fill(
            VIEW,
            recording=self.recording(),
            seen=self.seen,
            lower=self.boxed("dispatch_lower"),
            kind="MultiOutput" if self.op.gives_list else single,
            node="node" if self.plan else "Ref<Node>()",
            call=f"{self.op.symbol}({self.op.call()})",
        )

    def kernel(self) -> list[str]:
        run, lower = run_call(self.op, self.kind), self.boxed("dispatch_lower")
        made = self.kind == "functional" and bool(self.op.results)
        result = f"{self.form.result} made_ = " if made else ""
        run = run if made else f"static_cast<void>({run})"
        written = [a.name for a in self.op.args if a.type.written or (self.kind == "inplace" and a.name == "self")]
        counts = [f"count_write({name});" for name in written]
        finish = self.finish if self.kind == "inplace" else ["return made_;"] if made else []
        call = f"{result}RL_LIKELY(!{self.seen}) ? {run} : {lower};"
        return [*self.recording(), call, *counts, *self.remembering(), *finish]

    def out_run(self) -> list[str]:
        """Statements that write the result into what was given."""
        op, outs, call = self.op, self.form.outs, f"composite::{self.op.symbol}({{}})"
        if op.has_options:
            made = call.format(op.call(options=f"options_of({outs[0]}, options)"))
            how = f"{flag('any_shape' in op.out)}, options.requires_grad()"
            return ["const NoGradGuard no_grad;", f'fill_out("{op.name}", {outs[0]}, {made}, {how});']
        composite, dynamic = op.kind == "composite", op.kernel.kind == "dynamic"
        if not composite and not dynamic and op.kernel.kind != "update":
            counts = ["count_write(out);"] if op.kernel.kind == "pointwise" else []
            return [f"{run_call(op, 'out')};", *counts]
        made = call.format(op.call()) if composite else run_call(op, "functional")
        made += f".to({outs[0]}.dtype())" if "dtype" in op.out and op.kernel.kind != "update" else ""
        apart = [f'check_apart("{op.name}", {o}, {{{addresses(self.tensors)}}});' for o in outs if dynamic]
        return [*apart, f'assign_outs("{op.name}", {made}, {commas(outs)});']

    def out(self) -> list[str]:
        op, outs = self.op, self.form.outs
        wanted = f"{self.plan.any_wanted} || " if self.plan else ""
        checks = [f'check_out_grad("{op.name}", tls.grad_mode && ({wanted}grad_wanted({o})));' for o in outs]
        given = [a.name for a in op.tensors if not a.type.element_optional]
        checks.append(f'check_out_tangents("{op.name}", {commas(given, outs)});')
        run = self.out_run()
        if any(a.name == "dtype" and a.type.base == "ScalarType" and a.type.optional for a in op.args):
            own = [f"dtype = {outs[0]}.dtype();"] if "dtype" in op.out else []
            run = [f'check_out_dtype("{op.name}", dtype, {outs[0]});', *own, *run]
        counts = [f"count_write({o});" for o in outs]
        lower = f"{self.boxed('dispatch_lower')};"
        return fill(OUT, checks=checks, seen=self.seen, lower=lower, counts=counts, finish=self.finish, run=run)


# ---- files ----


def wrappers_source(ops: list[Op]) -> str:
    lines, arrays = ["namespace {", ""], registry.Arrays()
    for op in ops:
        if (plan := derivatives.plan(op)) is not None:
            lines += [*plan.backward_function(), *plan.descriptors(), ""]
        if op.kernel.kind in ("pointwise", "custom", "update"):
            lines += [*run_function(op), ""]
    lines += ["}  // namespace", ""]
    for op in ops:
        if op.body:
            lines += block(kernels.composite_function(op, f"composite::{op.symbol}"), [op.body])
        for form in forms(op):
            lines += [*Wrapper(form).lines(arrays), ""]
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
    parts = pieces(ops, OPS_PER_FILE, lambda op: op.family)
    return {f"src/ops_{name}.cpp": wrappers_source(part) for name, part in parts}
