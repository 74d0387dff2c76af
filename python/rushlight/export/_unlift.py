"""From an exported program to a module that is called like the original one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import nn
from rushlight.export._guards import GuardsFn, check_call
from rushlight.export.graph_signature import InputKind, OutputKind, TensorArgument
from rushlight.fx._codegen import _plain, _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr
from rushlight.fx.node import Node, map_arg

if TYPE_CHECKING:
    from rushlight.export.exported_program import ExportedProgram

__all__ = ["unlifted_module"]

_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ)


class _CodeGen(_PyTreeCodeGen):
    """Takes positional arguments and keywords, in containers, as the original module does."""

    def __init__(self, info: _PyTreeInfo, positional: int) -> None:
        super().__init__(info)
        self.positional = positional

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = self.pytree_info.orig_args
        head = super(_PyTreeCodeGen, self).gen_fn_def(["self", *names], maybe_return_annotation)
        if not free_vars:
            return head
        plain = [_plain(name) for name in free_vars if name != "self"]
        args = ", ".join(names[: self.positional])
        kwargs = ", ".join(f"'{name}':{name}" for name in names[self.positional :])
        taken = f"fx_pytree.tree_flatten_spec(([{args}], {{{kwargs}}}), self._in_spec)"
        return f"{head}\n    {', '.join(plain)}, = {taken}"

    def process_inputs(self, *inputs: Any) -> Any:
        count = self.positional
        named = self.pytree_info.orig_args[count:]
        keywords = dict(zip(named, inputs[count:], strict=True))
        return super().process_inputs(inputs[:count], keywords)


def _no_mode(name: str) -> Any:
    def refuse(self: nn.Module, mode: bool = True) -> nn.Module:
        raise NotImplementedError(
            f"Calling {name}() is not supported yet: whether an exported graph trains was decided "
            "when it was exported"
        )

    return refuse


def _names_of(in_spec: Any, given: list[str] | None) -> tuple[list[str], int]:
    """The names of arguments, and how many of them are positional."""
    spec_args, spec_kwargs = in_spec.children()
    count = len(spec_args.children())
    keywords = list(spec_kwargs.context or ())
    names = list(given or [])
    if len(names) != count + len(keywords):
        names = [f"arg_{i}" for i in range(count)] + keywords
    return names, count


class _Unlifter:
    """Copies the graph of a program, with what was lifted read from the module again."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program, self.signature = program, program.graph_signature
        self.graph, self.twin = Graph(), {}
        self.of_target: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}

    def inputs(self) -> None:
        """Placeholders of arguments stay, all others read attributes."""
        program = self.program
        nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
        pairs = list(zip(nodes, self.signature.input_specs, strict=True))
        held = [pair for pair in pairs if pair[1].kind in _HELD]
        for node, spec in held:
            target = str(spec.target)
            source = (
                program.constants
                if spec.kind in (InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ)
                or spec.persistent is False
                else program.state_dict
            )
            self.attributes[target] = source[target]
            read = self.graph.create_node("get_attr", target, (), {}, target.replace(".", "_"))
            read.meta.update(node.meta)
            self.twin[node] = self.of_target[target] = read
        for node, spec in pairs:
            if spec.kind not in _HELD:
                copied = self.graph.node_copy(node)
                self.twin[node] = self.of_target[node.name] = copied

    def guards(self, guards: list[str]) -> None:
        """A call of the module that checks the arguments."""
        inputs = tuple(n for n in self.twin.values() if n.op == "placeholder")
        if inputs:
            self.attributes["_guards_fn"] = GuardsFn([n.name for n in inputs], guards)
            self.graph.create_node("call_module", "_guards_fn", inputs, {})

    def steps(self) -> None:
        """All nodes between, and the output; what is mutated is written at the end."""
        for node in self.program.graph.nodes:
            if node.op == "output":
                self.output(node)
            elif node.op != "placeholder":
                if node.op == "get_attr":
                    self.attributes[node.target] = _get(self.program.graph_module, node.target)
                self.twin[node] = self.graph.node_copy(node, self.twin.__getitem__)

    def output(self, node: Node) -> None:
        """The values for the program, and writes of all others."""
        values = list(map_arg(node.args[0], self.twin.__getitem__))
        kept = []
        for value, spec in zip(values, self.signature.output_specs, strict=True):
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
                kept.append(value)
            elif spec.kind in _WRITTEN and isinstance(spec.arg, TensorArgument):
                place = self.of_target[str(spec.target)]
                copy = rushlight.ops.aten.copy_.default
                self.graph.create_node("call_function", copy, (place, value), {}, "copy_")
        self.graph.output(tuple(kept))


_WRITTEN = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
)


def _get(module: nn.Module, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


def unlifted_module(program: ExportedProgram, check_guards: bool = True) -> GraphModule:
    """A module with the parameters, buffers and constants of a program, called as the original.

    Args:
        program: the program; the module shares its tensors.
        check_guards: check at each call that the arguments fit.
    """
    in_spec, out_spec = program.call_spec.in_spec, program.call_spec.out_spec
    unlifter = _Unlifter(program)
    unlifter.inputs()
    if check_guards:
        unlifter.guards(program._guards)
    unlifter.steps()
    names, positional = _names_of(in_spec, program._forward_arg_names())
    info = _PyTreeInfo(names, in_spec, out_spec)
    unlifter.graph.set_codegen(_CodeGen(info, positional))
    root = nn.Module()
    for spec in program.graph_signature.input_specs:  # also those that nothing reads
        if spec.kind in _HELD:
            _assign_attr(unlifter.attributes[str(spec.target)], root, str(spec.target))
    for target, value in unlifter.attributes.items():
        if target not in unlifter.of_target:
            _assign_attr(value, root, target)
    _set_persistence(root, program)
    module = GraphModule(root, unlifter.graph, "GraphModule")
    module._in_spec, module._out_spec = in_spec, out_spec
    module.register_forward_pre_hook(
        lambda _, args, kwargs: (args, check_call(in_spec, args, kwargs)), with_kwargs=True
    )
    kind: Any = type(module)
    kind.train, kind.eval = _no_mode("train"), _no_mode("eval")
    return module


def _set_persistence(root: nn.Module, program: ExportedProgram) -> None:
    """Buffers that are not in the state, and constants, stay out of it."""
    signature = program.graph_signature
    for target in (*signature.non_persistent_buffers, *signature.lifted_tensor_constants):
        path, _, name = target.rpartition(".")
        parent = root.get_submodule(path)
        if name in parent._buffers:
            parent._non_persistent_buffers_set.add(name)
