"""From derivative strings to what a node saves and the C++ body of its backward.

A derivative names arguments, results and `grad`. `plan` finds what it really needs: whole tensors, or only sizes and
dtypes (`x.sizes()` …), or plain values; wrappers save just that, and the backward function unpacks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gen.expressions import Expression, TableError, read
from gen.schema import Arg, owning_type, parameters, parts
from gen.table import Op
from gen.text import block, commas, each, flag, flat, lines, only

# Kind of a saved thing → how wrappers save it, and how the backward function finds it again. Of a list that has a
# gradient only the metadata is known there.
_SAVING = {
    "tensor": ("save({kept})", "Tensor {name} = node.saved({place})"),
    "output": ("reserve_saved()", "Tensor {name} = node.saved({place})"),
    "list": ("save_list({name})", "auto {name} = node.saved_list({place})"),
    "meta": ("keep(TensorMeta({name}))", "auto {name} = node.value({place}).get<TensorMeta>()"),
    "metas": ("keep(metas_of({name}))", "auto {name} = node.value({place}).get<std::vector<TensorMeta>>()"),
    "value": ("keep({name})", "auto {name} = node.value({place}).get<{type}>()"),
}


@dataclass(frozen=True)
class Gradient:
    """One expression of `grad=`."""

    args: tuple[Arg, ...]  # those that it gives gradients for; several when joint
    expression: Expression

    def statements(self, wanted: list[str]) -> list[str]:
        """Of a joint one: `gradients`, of which those are wanted for which C++ says so."""
        mask = f"const std::array<bool, {len(self.args)}> mask = {{{commas(wanted)}}};"
        return [mask] * ("mask" in self.expression.names) + [f"auto gradients = {self.expression.cpp};"]


@dataclass(frozen=True)
class Saved:
    """One thing that a node keeps; its kind is a key of _SAVING."""

    name: str
    kind: str
    needed_by: tuple[Gradient, ...]
    type: str  # what a value is unboxed to

    @property
    def is_tensor(self) -> bool:
        """Whether it lies among the node's tensors: the others are values."""
        return self.kind in ("tensor", "output", "list")


def _kind(arg: Arg | None, uses: set[str]) -> str:
    if arg is None or arg.type.base != "Tensor":
        return "output" if arg is None else "value"
    if arg.type.is_list:
        return "list" if arg.type.element_optional else "metas"
    return "tensor" if "whole" in uses else "meta"


def plan(op: Op) -> Plan | None:
    """None when the op has no gradient."""
    return Plan(op, op.grad) if isinstance(op.grad, dict) else None


class Plan:
    """The derivative of an op."""

    def __init__(self, op: Op, grad: dict[str, str]) -> None:
        self.op, tensors = op, {a.name: a for a in op.tensors}
        if unknown := [name for key in grad for name in parts(key) if name not in tensors]:
            raise TableError(f"{op.text}: derivative for {unknown[0]!r}, which is no tensor argument")
        self.gradients = [Gradient(tuple(tensors[n] for n in parts(key)), read(text)) for key, text in grad.items()]
        # In the order of their edges.
        self.differentiable = [a for a in op.tensors if any(a in f.args for f in self.gradients)]
        if len(self.differentiable) > 1 and any(a.type.is_list for a in self.differentiable):
            raise TableError(f"{op.text}: a list that has a gradient must be the only such argument")
        self.any_wanted = f"any_needs_grad({commas(a.name for a in self.differentiable)})"
        self.results = [name for name in op.result_names if name not in op.nondiff]
        # `grad` in an expression is always the gradient, never the argument of a backward op.
        known = {a.name: a for a in op.args if a.name != "grad"} | dict.fromkeys(op.result_names)
        saved = []
        for name, arg in known.items():
            uses = {f: f.expression.names.get(name, set()) - {"called"} for f in self.gradients}
            if users := tuple(f for f, found in uses.items() if found):
                kind = _kind(arg, set().union(*uses.values()))
                saved.append(Saved(name, kind, users, owning_type(arg.type) if arg is not None else "Tensor"))
        self.saved = sorted(saved, key=lambda s: s.kind == "list")  # a list is the last of the tensors
        if sum(s.kind == "list" for s in saved) > 1:
            raise TableError(f"{op.text}: the derivative uses more than one list of tensors")

    def place(self, s: Saved) -> int:
        """Where a saved thing lies among the node's tensors or among its values."""
        return [t for t in self.saved if t.is_tensor == s.is_tensor].index(s)

    # ---- the backward function ----

    def _gradient(self, f: Gradient, shared: list[Saved]) -> list[str]:
        """Statements that compute a gradient and give its results to the edges of its arguments."""
        own = [s for s in self.saved if f in s.needed_by and s not in shared]
        found = [_SAVING[s.kind][1].format(name=s.name, place=self.place(s), type=s.type) for s in own]
        first, *others = f.args
        if others:
            given = f.statements([_wants([a]) for a in f.args])
            for k, a in enumerate(f.args):
                given += block(f"if ({_wants([a])})", [f"out[edge_{a.name}] = std::get<{k}>(gradients);"])
        elif first.type.is_list:
            given = [f"std::ranges::move({f.expression.cpp}, out);"]
        else:
            given = [f"out[edge_{first.name}] = {f.expression.cpp};"]
        return block(f"if ({_wants(f.args)})", [*(f"const {text};" for text in found), *given])

    def backward_function(self) -> list[str]:
        """The C++ function `backward_<symbol>` of the op's node."""
        op, several = self.op, len(self.op.results) > 1
        used = {name for f in self.gradients for name in f.expression.names}
        named = [f"grad_{n}" if several else "grad" for n in op.result_names]
        grads = {name: f"Tensor& {name} = grads[{i}];" for i, name in enumerate(named)}
        if op.gives_list:
            grads = {"grad_list": "ArrayRef<Tensor> grad_list(grads, node.num_outputs());"}
        # What several gradients use is unpacked once: a hook may have to compute it again.
        shared = [s for s in self.saved if s.is_tensor and len(s.needed_by) > 1]
        unpacked = []
        for s in shared:
            found = f"node.saved{'_list' if s.kind == 'list' else ''}({self.place(s)})"
            wanted = _wants(a for f in s.needed_by for a in f.args)
            unpacked.append(f"const auto {s.name} = {wanted} ? {found} : decltype({found})();")
        edges = [f"edge_{a.name}" for a in self.differentiable if not a.type.is_list]
        return lines(f"""
            void backward_{op.symbol}(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out) {{
              {each(f"const {text}" for name, text in grads.items() if name in used)}
              {only(edges)}enum : size_t {{ {commas(edges)} }};
              {each(unpacked)}
              {each(flat(self._gradient(f, shared) for f in self.gradients))}
            }}
        """)

    def descriptors(self) -> list[str]:
        """The node's constant descriptors, one for each name that it may have."""
        # Names of saved tensors and of values, in order; "-" for what has no public name.
        public = [(s, "-" if "meta" in s.kind else s.name + "[]" * (s.kind == "list")) for s in self.saved]
        kept = [" ".join(name for s, name in public if s.is_tensor == wanted) for wanted in (True, False)]
        undefined = any(f.expression.takes_undefined for f in self.gradients)
        said = f'backward_{self.op.symbol}, {flag(undefined)}, "{kept[0]}", "{kept[1]}"'
        named = [(f"descriptor_{self.op.symbol}", name) for name in self.op.node_names.values()]
        named = [(f"{symbol}_{i}" if i else symbol, name) for i, (symbol, name) in enumerate(named)]
        return [f'const NodeDescriptor {symbol} = {{"{name}", {said}}};' for symbol, name in named]

    # ---- what wrappers do ----

    def _self_kept(self) -> str:
        """What is saved of self: what it was before where it is overwritten, which forms have to say."""
        if "inplace" not in self.op.forms or not any(s.name == "self" and s.kind == "tensor" for s in self.saved):
            return "self"
        return "value_before(self)" if self.op.inplace_only else "writes ? value_before(self) : self"

    def record(self, *, inplace: bool) -> str:
        """The call that makes the node before the kernel runs."""
        given = [a.name for a in self._recorded()]
        return f"record_{self.op.symbol}({commas(given, flag(inplace) if 'writes' in self._self_kept() else '')})"

    def _recorded(self) -> list[Arg]:
        """The arguments of which the node keeps something, or is chosen by."""
        used = {a.name for a in self.differentiable} | {s.name for s in self.saved if s.kind != "output"}
        used |= {name for condition in self.op.node_names if condition for name in read(condition).names}
        return [a for a in self.op.args if a.name in used]

    def recording(self) -> list[str]:
        """The function that makes a node: edges, inputs and values saved."""
        descriptor = f"descriptor_{self.op.symbol}"
        for i, condition in enumerate(self.op.node_names):
            if condition:
                descriptor = f"{read(condition).cpp} ? descriptor_{self.op.symbol}_{i} : {descriptor}"
        saves, some = [], {}
        for s in self.saved:
            kept = self._self_kept() if s.name == "self" else s.name
            users = [a for a in self.differentiable if any(a in f.args for f in s.needed_by)]
            if users != self.differentiable:
                some |= dict.fromkeys(a.name for a in users) if s.kind == "tensor" else {}
                inside = f"({kept})" if "?" in kept else kept
                kept = f"{' || '.join(f'want_{a.name}' for a in users)} ? {inside} : Tensor()"
            saves.append(f"node->{_SAVING[s.kind][0].format(name=s.name, kept=kept)};")
        made = f"make_node({commas(descriptor, [a.name for a in self.differentiable])})"
        wants = [f"const bool want_{name} = needs_grad({name});" for name in some]
        body = [f"Ref<Node> node = {made};", *wants, *saves, "return node;"] if saves else [f"return {made};"]
        given = commas(parameters(self._recorded()), "bool writes" if "writes" in self._self_kept() else "")
        return block(f"Ref<Node> record_{self.op.symbol}({given})", body)

    def record_outputs(self) -> list[str]:
        """Statements that save results, after the history is set."""
        return [f"node->fill_saved({self.place(s)}, {s.name});" for s in self.saved if s.kind == "output"]


def _wants(args: Iterable[Arg]) -> str:
    """Whether the backward function is asked for one of these gradients."""
    return " || ".join("node.wants_any()" if a.type.is_list else f"node.wants(edge_{a.name})" for a in args)
