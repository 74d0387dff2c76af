"""`unflatten`: an exported program as modules again, each with the steps that ran in it."""

from __future__ import annotations

import abc
import operator
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.export._guards import GuardsFn
from rushlight.export.exported_program import ExportedProgram, ModuleCallSignature
from rushlight.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_arg
from rushlight.utils import _pytree as pytree

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(abc.ABC):
    """Turns arguments in other containers into those that were exported; a subclass says how.

    For an example see `export.UnflattenedModule`.
    """

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: Any,
        input_spec: Any,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any = None,
    ) -> list[Any]:
        """The leaves of `target_spec`.

        Args:
            target_spec: the containers that were exported.
            input_spec: the containers of this call.
            input_args: the leaves of this call.
            metadata: of the module.
            obj: the module.
        """


class InterpreterModule(nn.Module):
    """A module that runs a graph, node by node.

    Args:
        graph: the graph; its attributes and submodules are those of this module.
        type_name: the class of the module that it was exported from.

    For an example see `export.unflatten`.
    """

    def __init__(self, graph: Graph | None = None, type_name: str | None = None) -> None:
        super().__init__()
        self.graph = Graph() if graph is None else graph
        self.graph.owning_module = self
        self._type = type_name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        if kwargs:
            names = [n.target for n in self.graph.nodes if n.op == "placeholder"]
            args = (*args, *(kwargs[name] for name in names[len(args) :]))
        return Interpreter(self, graph=self.graph).run(*args, enable_io_processing=False)

    def type_name(self) -> str | None:
        """The class of the module that it was exported from."""
        return self._type

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Print the code of the graph and of those of submodules."""
        code = GraphModule(self, self.graph, type(self).__name__)
        return code.print_readable(print_output, **options)


_LIFTED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class _Builder:
    """Puts the nodes of a program into the modules that they ran in."""

    def __init__(self, program: ExportedProgram, root: UnflattenedModule) -> None:
        self.program, self.root = program, root
        signature = program.graph_signature
        self.targets = {
            s.arg.name: str(s.target) for s in signature.input_specs if s.kind in _LIFTED
        }
        self.kept = {e.fqn: e.signature for e in program.module_call_graph if e.signature}
        # Tied parameters have several names; a module reads its own.
        self.names: dict[int, list[str]] = {}
        for name, value in program.state_dict.items():
            self.names.setdefault(id(value), []).append(name)
        self.texts: dict[str, str] = {}
        self.specs = 0

    def state(self) -> None:
        """Copies of parameters, buffers and constants, where they were."""
        called = {
            fqn
            for node in self.program.graph.nodes
            for fqn, _ in (node.meta.get("nn_module_stack") or {}).values()
        }
        for entry in self.program.module_call_graph:  # modules in their own order
            if entry.fqn and entry.fqn in called:
                self._parent(f"{entry.fqn}.x")
        copies: dict[int, Tensor] = {}
        specs = self.program.graph_signature.input_specs
        for spec in (s for s in specs if s.kind in _LIFTED):
            target = str(spec.target)
            value = self.program.state_dict.get(target)
            persistent = value is not None
            value = self.program.constants[target] if value is None else value
            twin = copies.get(id(value))
            if twin is None:
                twin = value.detach().clone()
                if isinstance(value, nn.Parameter):
                    twin = nn.Parameter(twin, value.requires_grad)
                copies[id(value)] = twin
            module, field = self._parent(target)
            if isinstance(twin, nn.Parameter):
                module.register_parameter(field, twin)
            else:
                module.register_buffer(field, twin, persistent=persistent)

    def _parent(self, target: str) -> tuple[nn.Module, str]:
        """The module that an attribute goes into; those on the way are made."""
        *way, field = target.split(".")
        module: nn.Module = self.root
        for part in way:
            if part not in module._modules:
                module.add_module(part, InterpreterModule())
            module = module._modules[part]
        return module, field

    def module_at(self, fqn: str, graph: Graph, type_name: str | None) -> str:
        """Gives a module its graph; the name by which it is called, another one if it had one."""
        text = _text(graph)
        name, again = fqn, 0
        while self.texts.get(name, text) != text:
            again += 1
            name = f"{fqn}@{again}"
        if name not in self.texts:
            self.texts[name] = text
            module, field = self._parent(name)
            known = module._modules.get(field)
            if known is None:
                known = InterpreterModule()
                module.add_module(field, known)
                if again:
                    self._share(fqn, known)
            if isinstance(known, InterpreterModule):
                known.graph, known._type = graph, type_name
                graph.owning_module = known
        return name

    def _share(self, fqn: str, twin: nn.Module) -> None:
        """Lets another graph of a module read its tensors and submodules."""
        module = self.root.get_submodule(fqn)
        twin._parameters, twin._buffers = module._parameters, module._buffers
        twin._modules = module._modules

    def build(self) -> Graph:
        """The graph of the whole."""
        nodes = [n for n in self.program.graph.nodes if n.op not in ("placeholder", "output")]
        whole = _Frame(self, "", 1)
        for node in self.program.graph.find_nodes(op="placeholder"):
            if node.name not in self.targets:
                whole.take(node)
        whole.run(nodes)
        output = self.program.graph.output_node()
        kept = []
        specs = self.program.graph_signature.output_specs
        for value, spec in zip(output.args[0], specs, strict=True):
            inner = map_arg(value, whole.value)
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
                kept.append(inner)
            else:
                place = self._place(str(spec.target), whole)
                copy = rushlight.ops.aten.copy_.default
                whole.graph.create_node("call_function", copy, (place, inner), {}, "copy_")
        whole.graph.output(tuple(kept))
        return whole.graph

    def _place(self, target: str, whole: _Frame) -> Node:
        """What an output is written into."""
        for node in self.program.graph.find_nodes(op="placeholder"):
            if self.targets.get(node.name) == target or node.name == target:
                return whole.value(node)
        raise ValueError(f"the program writes into {target}, which it does not have")


class _Frame:
    """One call of a module: its graph, and what it takes from outside."""

    def __init__(self, builder: _Builder, fqn: str, depth: int) -> None:
        self.builder, self.fqn, self.depth = builder, fqn, depth
        self.graph = Graph()
        self.known: dict[Node, Any] = {}
        self.inputs: list[Node] = []

    def take(self, node: Node, name: str | None = None) -> Node:
        """One more input."""
        made = self.graph.create_node("placeholder", name or node.name)
        made.target = made.name
        made.meta.update(node.meta)
        self.known[node] = made
        self.inputs.append(node)
        return made

    def value(self, node: Node) -> Any:
        """What stands for a node here."""
        if node in self.known:
            return self.known[node]
        target = self.builder.targets.get(node.name)
        if node.op == "placeholder" and target is not None:
            prefix = f"{self.fqn}." if self.fqn else ""
            value = self.builder.program.state_dict.get(target)
            tied = self.builder.names.get(id(value), []) if value is not None else []
            own = next((n for n in (target, *tied) if n.startswith(prefix)), None)
            if own is not None:
                before = next(iter(n for n in self.graph.nodes if n.op != "placeholder"), None)
                place = (
                    self.graph.inserting_before(before) if before else self.graph.inserting_before()
                )
                with place:
                    read = self.graph.get_attr(own.removeprefix(prefix))
                read.meta.update(node.meta)
                self.known[node] = read
                return read
        before = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        if before is None:
            return self.take(node)
        with self.graph.inserting_before(before):
            return self.take(node)

    def run(self, nodes: list[Node]) -> None:
        """Copy nodes, with those of inner calls as calls of modules."""
        at = 0
        while at < len(nodes):
            key = self._inner(nodes[at])
            if key is None:
                self._copy(nodes[at])
                at += 1
                continue
            end = at
            while end < len(nodes) and self._inner(nodes[end]) == key:
                end += 1
            self._call(nodes[at:end])
            at = end

    def _inner(self, node: Node) -> str | None:
        """Which call inside of this one a node is in."""
        stack = list(node.meta.get("nn_module_stack") or ())
        return stack[self.depth] if len(stack) > self.depth else None

    def _copy(self, node: Node) -> None:
        if node.op == "get_attr":  # a graph that an op takes
            inner = getattr(self.builder.program.graph_module, str(node.target))
            self.known[node] = self.graph.get_attr(str(node.target))
            module = self.builder.root if not self.fqn else self.builder._parent(self.fqn + ".x")[0]
            setattr(module, str(node.target), inner)
            return
        self.known[node] = self.graph.node_copy(node, self.value)

    def _call(self, nodes: list[Node]) -> None:
        stack = nodes[0].meta["nn_module_stack"]
        key = list(stack)[self.depth]
        fqn, kind = stack[key]
        inside = set(nodes)
        frame = _Frame(self.builder, fqn, self.depth + 1)
        signature = self.builder.kept.get(key.removeprefix("L__self__"))
        if signature is not None:
            self._call_kept(frame, nodes, signature, fqn, kind)
            return
        frame.run(nodes)
        outputs = [n for n in nodes if any(u not in inside for u in n.users)]
        values = tuple(frame.value(n) for n in outputs)
        frame.graph.output(values[0] if len(values) == 1 else values)
        call = self._call_module(frame, fqn, kind, tuple(map(self.value, frame.inputs)), {})
        if len(outputs) == 1:
            self.known[outputs[0]] = call
            call.meta.update(outputs[0].meta)
            return
        call.meta["val"] = tuple(n.meta.get("val") for n in outputs)
        for i, node in enumerate(outputs):
            item = self.known[node] = self.graph.call_function(operator.getitem, (call, i))
            item.meta.update(node.meta)

    def _call_module(self, frame: _Frame, fqn: str, kind: str, args: Any, kwargs: Any) -> Node:
        name = self.builder.module_at(fqn, frame.graph, kind)
        target = name.removeprefix(f"{self.fqn}." if self.fqn else "")
        return self.graph.call_module(target, args, kwargs)

    # ---- signatures that were preserved ----

    def _attribute(self, spec: Any, fqn: str) -> str:
        """A spec as an attribute of a module."""
        name = f"_spec_{self.builder.specs}"
        self.builder.specs += 1
        module = self.builder._parent(f"{fqn}.x" if fqn else "x")[0]
        setattr(module, name, spec)
        return name

    def _call_kept(
        self,
        frame: _Frame,
        nodes: list[Node],
        signature: ModuleCallSignature,
        fqn: str,
        kind: str,
    ) -> None:
        by_name = {n.name: n for n in self.builder.program.graph.nodes}
        self._inputs_kept(frame, signature, by_name, fqn)
        frame.run(nodes)
        returned = [_kept(a, by_name, frame.value) for a in signature.outputs]
        spec = frame.graph.get_attr(frame._attribute(signature.out_spec, fqn))
        put = frame.graph.call_function(pytree.tree_unflatten, (tuple(returned), spec))
        frame.graph.output(put)
        leaves = [_kept(a, by_name, self.value) for a in signature.inputs]
        args, kwargs = pytree.tree_unflatten(leaves, signature.in_spec)
        call = self._call_module(frame, fqn, kind, args, kwargs)
        out = self.graph.get_attr(self._attribute(signature.out_spec, self.fqn))
        flat = self.graph.call_function(fx_pytree.tree_flatten_spec, (call, out))
        for i, argument in enumerate(signature.outputs):
            if isinstance(argument, TensorArgument):
                node = by_name[argument.name]
                item = self.graph.call_function(operator.getitem, (flat, i))
                item.meta.update(node.meta)
                self.known[node] = item

    def _inputs_kept(
        self, frame: _Frame, signature: ModuleCallSignature, by_name: Any, fqn: str
    ) -> None:
        """Placeholders for the arguments as they were, and nodes that take them apart."""
        spec_args, spec_kwargs = signature.in_spec.children()
        count, names = len(spec_args.children()), list(spec_kwargs.context or ())
        given = [frame.graph.placeholder(f"_positional_arg_{i}") for i in range(count)]
        named = {name: frame.graph.placeholder(name) for name in names}
        spec = frame.graph.get_attr(frame._attribute(signature.in_spec, fqn))
        taken = (tuple(given), named)
        flat = frame.graph.call_function(fx_pytree.tree_flatten_spec, (taken, spec))
        for i, argument in enumerate(signature.inputs):
            if isinstance(argument, TensorArgument):
                item = frame.graph.call_function(operator.getitem, (flat, i))
                node = by_name[argument.name]
                item.meta.update(node.meta)
                frame.known[node] = item


def _text(graph: Graph) -> str:
    """What a graph does, whatever its nodes are called."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    rows = []
    for node in graph.nodes:
        args = map_arg((node.args, node.kwargs), lambda n: f"%{numbers[n]}")
        target = "" if node.op == "placeholder" else str(node.target)
        rows.append(f"{node.op} {target.partition('@')[0]} {args}")
    return "\n".join(rows)


def _kept(argument: Any, by_name: dict[str, Node], value: Any) -> Any:
    if isinstance(argument, ConstantArgument):
        return argument.value
    return value(by_name[argument.name])


class UnflattenedModule(nn.Module):
    """An exported program as a tree of modules, with copies of its tensors.

    Args:
        export_module: the program.
        flat_args_adapter: what takes arguments in other containers.

    Example:
        >>> program = torch.export.export(
        ...     torch.nn.Sequential(torch.nn.Linear(2, 1)), (torch.ones(3, 2),)
        ... )
        >>> net = torch.export.UnflattenedModule(program)
        >>> list(net.state_dict())
        ['0.weight', '0.bias']
    """

    def __init__(
        self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
    ) -> None:
        super().__init__()
        self.module_call_graph = export_module.module_call_graph
        self.flat_args_adapter = flat_args_adapter
        self.meta = dict(export_module.graph_module.meta)
        builder = _Builder(export_module, self)
        builder.state()
        self.graph = builder.build()
        self.graph.owning_module = self
        self.range_constraints = export_module.range_constraints
        self._spec = export_module.call_spec
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        vars(self)["_checks"] = GuardsFn(names, export_module._guards) if names else None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        in_spec = self._spec.in_spec
        names = list(in_spec.children()[1].context or ())
        if set(names) == set(kwargs):
            kwargs = {name: kwargs[name] for name in names}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified: the arguments are in the containers "
                    f"{spec}, but {in_spec} was exported"
                )
            leaves = self.flat_args_adapter.adapt(in_spec, spec, leaves, self.meta, self)
            if len(leaves) != in_spec.num_leaves:
                raise TypeError(
                    f"Flat args adapter did not adapt number of args correctly: it gave "
                    f"{len(leaves)}, expected {in_spec.num_leaves}"
                )
        checks = vars(self)["_checks"]
        if checks is not None:
            try:
                checks(*leaves)
            except AssertionError as error:
                raise RuntimeError(f"Expected input to be as it was exported: {error}") from error
        outputs = Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(list(outputs), self._spec.out_spec)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Print the code of the graph and of those of submodules."""
        code = GraphModule(self, self.graph, type(self).__name__)
        return code.print_readable(print_output, **options)


def unflatten(
    module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
) -> UnflattenedModule:
    """Make modules of an exported program, under the names and in the tree of the original ones.

    A module takes the tensors that its steps need and gives those that others need;
    `preserve_module_call_signature` of `export` keeps the arguments as they were, so that such a
    module can be replaced by the original or another one.

    Args:
        module: the program.
        flat_args_adapter: what takes arguments in other containers.

    Example:
        >>> program = torch.export.export(
        ...     torch.nn.Sequential(torch.nn.Linear(2, 1)), (torch.ones(3, 2),)
        ... )
        >>> net = torch.export.unflatten(program)
        >>> net(torch.zeros(3, 2)).shape
        torch.Size([3, 1])
    """
    return UnflattenedModule(module, flat_args_adapter)
