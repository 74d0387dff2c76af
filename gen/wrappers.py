"""What the C++ functions do. A wrapper is straight-line code: interceptors → (record) → kernel → history.

The forms of a kernel op share one `run_<symbol>` (checks, output shapes, allocation, kernel), which takes the given
output or null. What statements call stands in src/ops/wrappers.h; what depends on the kind of a value is left to its
overloads.
"""

from __future__ import annotations

from gen import derivatives, kernels, registry, rules
from gen.declarations import Form, forms
from gen.expressions import read
from gen.schema import Arg, parameters
from gen.table import Op, load
from gen.text import block, commas, each, flag, lines, only, pieces, source, when
from ops.roles import CAST, WRITE

OPS_PER_FILE = 24

# ---- run_<symbol>: outputs of the caller are `given`, null where they are to be made ----


def addresses(tensors: list[str]) -> str:
    return f"{{{commas(f'&{name}' for name in tensors)}}}"


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
    listed = any(a.type.is_list for a in op.tensors)
    return f'common_device("{op.name}", {f"addresses_of({commas(tensors)})" if listed else addresses(tensors)})'


def input_dtypes(op: Op) -> str:
    """The dtypes of a kernel's inputs."""
    return " | ".join(("set_all", *op.kernel.stored))


def local(arg: Arg) -> str:
    """Declares the owned copy of a parameter `name_` as `name`."""
    if arg.type.base == "int" and (arg.type.size or 1) > 1 and not arg.type.optional:  # int[1]: one int will do
        return f'DimVector {arg.name} = repeat_to({arg.type.size}, "{arg.name}", {arg.name}_);'
    return f"auto {arg.name} = owning_copy({arg.name}_);"


def choice(op: Op) -> list[str]:
    """Runs the first formula that fits the iterator and the attributes: the same choice for all devices."""
    found, test = [f"const auto {e.name} = {e.cpp};" for e in op.kernel.checks if e.name], ""
    for f in op.formulas:
        attributes = f"{{{commas(f.values)}}}" if f.attributes else ""
        call = f"run_formula({commas('it', f'&KernelTable::{f.name}', attributes)});"
        fits = [f.condition, f"contains({' | '.join(f.dtypes)}, it.common_dtype())" if f.dtypes else ""]
        test = " && ".join(filter(None, fits))
        found += block(f"if ({test})", [call, "return it.take_output();"]) if test else [call]
    return found if not test else [*found, "dtype_not_implemented(it.op(), it.common_dtype());"]


def run_pointwise(op: Op) -> list[str]:
    checks = [check for check in op.kernel.checks if not check.name]
    early = [check.cpp for check in checks if "it" not in check.names]
    late = [check.cpp for check in checks if "it" in check.names]
    exact = op.kernel.promote in ("same", "real") and "any_dtype" not in op.out
    late += ["check_out_dtype(it)"] * (exact and len(op.tensors) == 1 and "out" in op.forms)
    return lines(f"""
        Tensor run_{op.symbol}({op.parameters}, const Tensor* given, bool resize) {{
          {each(f"{check};" for check in early)}
          const Tensor fresh;
          TensorIterator it("{op.name}");
          it.add_output(given != nullptr ? *given : fresh, resize);
          {each(f"it.add_input({a.name});" for a in op.args if a.type.is_tensor)}
          it.build({{{op.kernel.promotion}, {" | ".join(op.kernel.dtypes)}}});
          {each(f"{check};" for check in late)}
          if (it.numel() != 0 && !it.device().is_meta()) {{
            {each(choice(op))}
          }}
          return it.take_output();
        }}
    """)


def run_function(op: Op) -> list[str]:
    if op.kernel.kind == "pointwise":
        return run_pointwise(op)
    update, local_to = op.kernel.kind == "update", op.kernel.place != "anywhere"
    outs = [f"out{i}" for i in range(len(op.results))]
    given = [f"given{i}" for i in range(0 if op.gives_list else len(outs))]
    tensors, single = [a.name for a in op.tensors], [a.name for a in op.args if a.type.is_tensor]
    moved = single[1:] if update else single
    others = [a.name for a in op.args[1:] if a.type.base == "Tensor"]
    made, returned = (f"[{commas(outs)}]", f"{{{commas(outs)}}}") if len(outs) > 1 else ("out0", "out0")
    inputs = f", {{{commas(given)}}}, [&] {{ return addresses_of({commas(tensors)}); }}" if given else ""
    shape = f"shape::{op.symbol}({op.call()})"
    arguments = commas("out", [a.name for a in op.args[1:]]) if update else commas(outs, op.call())
    expanded = {"elements": "Welcome", "warned": "Warned"}.get(op.kernel.shares, "Refused")
    step = flag(op.kernel.shares == "input")
    # Away from the CPU 0-d CPU tensors among the operands are brought to the device, one to be written is refused.
    written = "&self" if update else "nullptr"
    # What is only stored (complex32, wide unsigned integers, 8-bit floats) becomes what is asked for.
    converts = op.kernel.kind in ("reduction", "rows") and any(a.name == "dtype" for a in op.args)
    return lines(f"""
        {op.result} run_{op.symbol}({commas(parameters(op.args, suffix="_"), [f"const Tensor* {g}" for g in given])}) {{
          {each(map(local, op.args))}
          {only(converts)}if (dtype.has_value() && !contains(set_all, self.dtype())) {{
          {only(converts)}  self = cast_raw(self, *dtype);
          {only(converts)}}}
          {only(tensors and local_to)}check_input_dtypes("{op.name}", {input_dtypes(op)}, {commas(tensors)});
          const Device where_ = {device_of(op)};
          {only(len(single) > 1 and local_to)}move_numbers("{op.name}", where_, {written}, {addresses(moved)});
          {only(update or not outs)}{shape};
          {only(update)}Tensor out = start_update("{op.name}", given0, self, where_, Expanded::{expanded});
          {only(not update and outs)}auto {made} = begin_outputs("{op.name}", where_, {shape}{inputs});
          if (!where_.is_meta()) {{
            {only(update and others)}copy_overlapping_inputs("{op.name}", out, {step}, {commas(others)});
            find_kernel(kernel_tables, where_, &KernelTable::{op.symbol}, "{op.name}")({arguments});
          }}
          {each(f"finish_out(given{i}, out{i});" for i in range(0 if update else len(given)))}
          {only(outs)}return {"out" if update else returned};
        }}
    """)


def run_call(op: Op, form: str) -> str:
    """The expression that runs the kernel in a form."""
    if op.kernel.kind == "dynamic":
        return f'run_dynamic("{op.name}", {input_dtypes(op)}, &KernelTable::{op.symbol}, {device_of(op)}, {op.call()})'
    new = ["nullptr"] * (0 if op.gives_list else len(op.results))
    outs = {"functional": new, "inplace": ["&self"], "out": [f"&{o}" for o in op.outs]}[form]
    resize = flag(form == "out") if op.kernel.kind == "pointwise" else ""  # in place: given self as it is
    return f"run_{op.symbol}({commas(op.call(), outs, resize)})"


# ---- the forms ----


class Wrapper:
    """The function of a form."""

    def __init__(self, form: Form) -> None:
        self.form, self.op, self.kind = form, form.op, form.kind
        self.plan = derivatives.plan(form.op)
        self.tensors = [a.name for a in self.op.tensors]
        self.function = f"function_{form.function}"
        self.factory = self.op.has_options and self.kind == "functional"
        # What the result is called: as derivatives call it.
        self.made = self.op.result_names[0] if len(self.op.result_names) == 1 else "made_"
        # Whether a mode below autograd or a special tensor handles the call; the way that it gets it.
        self.seen = f"asks_handler_below({commas('asked', form.outs, self.tensors)})"
        self.lower = self.boxed_call("dispatch_lower")
        given = commas(f"const_cast<Tensor&>({o})" for o in form.outs or ["self"])
        self.finish = f"return {{{given}}};" if len(form.outs) > 1 else f"return {given};"

    def boxed_call(self, to: str) -> str:
        """The call in boxed form, handed to a function."""
        return f"dispatch_boxed<{self.form.result}>({commas(to, self.function, self.form.outs, self.op.call())})"

    def lines(self) -> list[str]:
        """Interceptors come first: whoever wants to see the call gets it."""
        # Undefined tensors exist in C++ only, and are refused where one is needed.
        optional = [a.name for a in self.op.args if a.type.is_tensor and a.type.optional]
        asking = commas(self.form.outs, [f"MaybeUndefined{{{n}}}" if n in optional else n for n in self.tensors])
        plain = {"options": "without_format(options)", "memory_format": "format_of(options, memory_format)"}
        formatted = f"return in_format({self.form.call(**plain)}, options);"
        body = {"composite": self.composite, "view": self.view, "kernel": self.kernel}[self.op.kind]
        composed = self.op.kind == "composite" and not self.op.whole
        handler = f"interceptor_if_asked({commas(self.function, 'asked', asking)})"
        if composed:
            handler = f"interceptor_of_call({commas(self.function, asking)})"
        if self.kind == "out":  # those of autograd and below it, too
            recorded = self.plan.differentiable if self.plan else []
            wanted = f"any_needs_grad({commas([a.name for a in recorded], self.form.outs)})"
            said = commas(self.function, f'"{self.op.name}"', wanted, asking)
            handler, body = f"handler_of_out({said})", self.out
        return lines(f"""
            {each(registry.function(self.form))}
            {self.form.signature()} {{
              {when(self.factory, "if (RL_UNLIKELY(options.has_memory_format()))", formatted)}
              {only(self.kind != "out" and not composed)}const Asks asked = asks_of_call({asking});
              {when(True, f"if (const Dispatch by = {handler})", f"return {self.boxed_call('by')};")}
              {each(body())}
            }}
        """)

    def composite(self) -> list[str]:
        call = f"composite::{self.op.symbol}({self.op.call()})"
        if self.kind == "inplace" and not self.op.inplace_only:
            before = {"self": f"before_write({commas(self.tensors)})"}
            call = f"self.{WRITE}(composite::{self.op.symbol}({self.op.call(**before)}))"
        sparse = f"return as_leaf({self.boxed_call('dispatch_sparse')}, options.requires_grad());"
        return lines(f"""
            {when(self.op.whole, f"if (RL_UNLIKELY({self.seen}))", f"return {self.lower};")}
            {when(self.factory, "if (RL_UNLIKELY(is_sparse(options)))", sparse)}
            return {f"as_leaf({call}, options.requires_grad())" if self.factory else call};
        """)

    def recording(self) -> list[str]:
        """Statements before the kernel: `node` remembers the inputs where a gradient is wanted."""
        wanted = f"may_record_grad(asked) && {self.plan.any_wanted}" if self.plan else "false"
        checked = f'check_inplace("{self.form.name}", self, '
        if self.plan is None:
            return [f"{checked}false);"] if self.kind == "inplace" else []
        record = self.plan.record(inplace=self.kind == "inplace")
        if self.kind == "inplace":
            return [
                f"const bool record = {wanted};",
                f"{checked}record);",
                f"const Ref<Node> node = record ? {record} : Ref<Node>();",
            ]
        return [f"const Ref<Node> node = {wanted} ? {record} : Ref<Node>();"]

    def remembering(self) -> list[str]:
        """Statements after the kernel: results get their history, and `node` remembers those that it needs."""
        if self.plan is None:
            return []
        named = self.op.result_names
        if self.kind == "inplace":
            found = ["rebase_history(self, node);"]
            found += [f"const Tensor& {s.name} = self;" for s in self.plan.saved if s.kind == "output"]
        elif len(named) == 1:
            found = [f"set_history({self.made}, node);"]
        else:
            found = [f"const auto& [{commas(named)}] = made_;"]
            found += [f"{'set_history' if n in self.plan.results else 'clear_history'}({n}, node);" for n in named]
        return block("if (node)", found + self.plan.record_outputs())

    def view(self) -> list[str]:
        kind, node = ("Normal", "node") if self.plan else ("NoGrad", "Ref<Node>()")
        how = f"ViewKind::{'MultiOutput' if self.op.gives_list else kind}, {node}"
        return lines(f"""
            {each(self.recording())}
            {when(True, f"if (RL_UNLIKELY({self.seen}))", f"return record_answer({self.lower}, self, {how});")}
            return recorded_view(self, views::{self.op.symbol}({self.op.call()}), {how});
        """)

    def kernel(self) -> list[str]:
        run, made = run_call(self.op, self.kind), self.kind == "functional" and self.op.results
        first = f"{self.form.result} {self.made} = " if made else ""
        # What both return is dropped where it is what was given.
        run = run if made or not self.op.results else f"static_cast<void>({run})"
        lower = self.lower if made or not self.op.results else f"static_cast<void>({self.lower})"
        written = [a.name for a in self.op.args if a.type.written or (self.kind == "inplace" and a.name == "self")]
        return lines(f"""
            {each(self.recording())}
            {first}RL_LIKELY(!{self.seen}) ? {run} : {lower};
            {each(f"count_write({name});" for name in written)}
            {each(self.remembering())}
            {only(self.kind == "inplace" or made)}{self.finish if self.kind == "inplace" else f"return {self.made};"}
        """)

    def writing(self) -> list[str]:
        """Statements that write the result into what was given."""
        op, outs, call = self.op, self.form.outs, f"composite::{self.op.symbol}({{}})"
        if op.has_options:
            made = call.format(op.call(options=f"options_of({outs[0]}, options)"))
            how = f"{flag('any_shape' in op.out)}, options.requires_grad()"
            return ["const NoGradGuard no_grad;", f'fill_out("{op.name}", {outs[0]}, {made}, {how});']
        if op.kernel.kind in ("pointwise", "reduction", "rows", "custom"):
            return [f"{run_call(op, 'out')};", *["count_write(out);"] * (op.kernel.kind == "pointwise")]
        made = call.format(op.call()) if op.kind == "composite" else run_call(op, "functional")
        made += f".{CAST}({outs[0]}.dtype())" if "dtype" in op.out else ""
        apart = [f'check_apart("{op.name}", {o}, {addresses(self.tensors)});' for o in outs]
        apart = apart if op.kernel.kind == "dynamic" else []
        return [*apart, f'assign_outs("{op.name}", {made}, {commas(outs)});']

    def out(self) -> list[str]:
        op, outs = self.op, self.form.outs
        typed = any(a.name == "dtype" and a.type.base == "ScalarType" and a.type.optional for a in op.args)
        return lines(f"""
            {only(typed)}check_out_dtype("{op.name}", dtype, {outs[0]});
            {only(typed and "dtype" in op.out)}dtype = {outs[0]}.dtype();
            {each(self.writing())}
            {self.finish}
        """)


# ---- files ----


def wrappers_source(ops: list[Op]) -> str:
    inside = ["namespace {", ""]
    for op in ops:
        if (plan := derivatives.plan(op)) is not None:
            inside += [*plan.backward_function(), *plan.descriptors(), *plan.recording(), ""]
        if op.kind == "kernel" and op.kernel.kind != "dynamic":
            inside += [*run_function(op), ""]
    inside += ["}  // namespace", ""]
    names = {name for op in load() for name in (op.name, op.inplace_name)}
    for op in ops:
        head = kernels.contract(op).replace(op.symbol, f"composite::{op.symbol}", 1) if op.body else ""
        inside += block(head, read(op.body).statements(names)) if op.body else []
        inside += [line for form in forms(op) for line in [*Wrapper(form).lines(), ""]]
    wanted = {
        "core/sparse.h": any(op.has_options for op in ops),
        "ops/recorded_views.h": any(op.kind == "view" for op in ops),
        "ops/batch_formulas.h": any(r.kind == "expression" for op in ops for r in rules.batch(op).values()),
        "generated/forward.h": True,
        "ops/derivatives.h": True,
        "ops/pointwise_choice.h": any(op.kernel.kind == "pointwise" for op in ops),
        "ops/wrappers.h": True,
    }
    includes = ["<rushlight/ops.h>", "", *(path for path, used in wanted.items() if used)]
    return source(includes, "rushlight", inside[:-1])


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    parts = pieces(ops, OPS_PER_FILE, lambda op: op.family)
    return {f"src/ops_{name}.cpp": wrappers_source(part) for name, part in parts}
