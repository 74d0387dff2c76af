"""Runs a module on fake tensors and writes the graph of what it calls."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor, compiler, nn
from rushlight._library.registry import CustomOverload
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from rushlight._sym import SymBool
from rushlight._transforms import reverse
from rushlight.export.exported_program import ModuleCallSignature
from rushlight.export.graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from rushlight.fx._symbolic_trace import _Patcher
from rushlight.fx.experimental._control import ControlTracer
from rushlight.fx.experimental._key_tracer import autocast_state, fake_of
from rushlight.fx.experimental._op_forms import lift_fresh_copy
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from rushlight.fx.node import Node, _as_torch
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import (
    _disable_current_modes,
    call_wrapper,
    is_traceable_wrapper_subclass,
    wrappers_in,
)

__all__ = ["Traced", "trace"]

_PACKAGE = os.path.dirname(rushlight.__file__) + os.sep
_LAYERS = os.path.join(_PACKAGE, "nn", "modules") + os.sep
_VISION = os.path.join(_PACKAGE, "vision", "models") + os.sep


def program_frames() -> list[tuple[str, int, str]]:
    """File, line and function of the frames of the program that is exported, outermost first."""
    frames, frame = [], sys._getframe(1)
    while frame is not None and frame.f_code is not Tracer.run.__code__:
        code = frame.f_code
        own = code.co_filename.startswith(_PACKAGE)
        layer = code.co_filename.startswith((_LAYERS, _VISION)) and not code.co_name.startswith("_")
        if not own or layer:
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return [f for f in reversed(frames) if not f[0].startswith("<frozen")]


def format_frames(frames: list[tuple[str, int, str]]) -> str:
    """Frames as a traceback shows them."""
    lines = []
    for name, line, function in frames:
        text = linecache.getline(name, line).strip()
        lines.append(f'  File "{name}", line {line}, in {function}\n    {text}')
    return "\n".join(lines).strip()


class _State:
    """Fake tensors in the place of a module's parameters and buffers, until it is restored."""

    def __init__(self, mod: nn.Module, mode: FakeTensorMode) -> None:
        self.mod = mod
        self._attributes = [(m, dict(vars(m))) for m in mod.modules()]
        self._spaces = []
        self.fakes: dict[str, Tensor] = {}
        for module in mod.modules():
            for space in (module._parameters, module._buffers):
                self._spaces.append((space, dict(space)))
                for name, tensor in space.items():
                    if tensor is not None and not is_traceable_wrapper_subclass(tensor):
                        space[name] = mode.from_tensor(tensor)
        for name, tensor in (*_named(mod, "_parameters"), *_named(mod, "_buffers")):
            self.fakes[name] = tensor

    def replaced_buffers(self) -> list[tuple[str, Tensor]]:
        """Buffers that the program has replaced by other tensors."""
        now = dict(_named(self.mod, "_buffers"))
        return [(name, t) for name, t in now.items() if self.fakes.get(name) is not t]

    def restore(self) -> None:
        """Put everything back as it was before."""
        for module, attributes in self._attributes:
            vars(module).clear()
            vars(module).update(attributes)
        for space, before in self._spaces:
            space.clear()
            space.update(before)


def _named(mod: nn.Module, kind: str) -> list[tuple[str, Tensor]]:
    """All parameters or buffers under each of their names."""
    found = []
    for prefix, module in mod.named_modules(remove_duplicate=False):
        for name, tensor in getattr(module, kind).items():
            if tensor is not None:
                found.append((f"{prefix}.{name}" if prefix else name, tensor))
    return found


def _identifier(name: str) -> str:
    """A dotted name as one of Python; layers may have any name ("block1-0")."""
    return re.sub(r"\W", "_", name)


def _kind_of(module: nn.Module) -> str:
    """The class of a module by PyTorch's name."""
    return f"{_as_torch(type(module).__module__)}.{type(module).__qualname__}"


class Tracer(ControlTracer):
    """Writes the graph of one run.

    Args:
        mod: the module.
        mode: the mode of the fake tensors.
        preserved: dotted names of submodules whose calls are to be described.
    """

    def __init__(self, mod: nn.Module, mode: FakeTensorMode, preserved: tuple[str, ...]) -> None:
        super().__init__()
        self.mod, self.fake_mode, self.preserved = mod, mode, preserved
        self.makes_fakes = True
        self.specs: list[InputSpec] = []
        self.constants: dict[str, Tensor] = {}
        self.calls: dict[str, ModuleCallSignature] = {}
        self._first_input: Node | None = None
        self._names = {id(m): name for name, m in reversed(list(mod.named_modules()))}
        self._counts: dict[str, int] = {}
        self._attributes: dict[int, list[str]] = {}
        for prefix, module in mod.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    names = self._attributes.setdefault(id(value), [])
                    names.append(f"{prefix}.{name}" if prefix else name)
        self._lifted = 0
        self._autocast, self._records = autocast_state(), rushlight.is_grad_enabled()

    # ---- inputs ----

    def placeholder(self, name: str, value: Any, kind: InputKind, target: str | None) -> Node:
        """One more input of the graph."""
        node = self.graph.create_node("placeholder", name)
        node.target = node.name
        if isinstance(value, Tensor):
            self.track(value, node)
            arg: ArgumentSpec = TensorArgument(node.name)
        else:
            node.meta["val"] = value
            arg = ConstantArgument(node.name, value)
        persistent = None
        if kind is InputKind.BUFFER and target is not None:
            path, _, leaf = target.rpartition(".")
            persistent = leaf not in self.mod.get_submodule(path)._non_persistent_buffers_set
        self.specs.append(InputSpec(kind, arg, target, persistent))
        return node

    def constant(self, a: Tensor) -> Node:
        """An input for a tensor that is neither an argument nor part of the state."""
        names = self._attributes.get(id(a))
        if not names or names[0] in self.constants:
            names, self._lifted = [f"lifted_tensor_{self._lifted}"], self._lifted + 1
        name = names[0]
        before = self._first_input
        place = self.graph.inserting_before(before) if before else self.graph.inserting_after()
        with place:
            node = self.graph.create_node("placeholder", "c_" + _identifier(name))
        node.meta["val"] = self._untraced(lambda: fake_of(self.fake_mode, a))
        self.constants.update(dict.fromkeys(names, a))
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name)
        at = next(
            (i for i, s in enumerate(self.specs) if s.kind is InputKind.USER_INPUT), len(self.specs)
        )
        self.specs.insert(at, spec)
        return node

    def state(self) -> None:
        """Inputs for parameters and buffers. Of wrappers the inner tensors are constants."""
        for space, kind in (("_parameters", InputKind.PARAMETER), ("_buffers", InputKind.BUFFER)):
            for name, tensor in _named(self.mod, space):
                if is_traceable_wrapper_subclass(tensor):
                    for part in tensor.__tensor_flatten__()[0]:
                        self._attributes[id(getattr(tensor, part))] = [f"{name}.{part}"]
                else:
                    self.placeholder(f"{space[1]}_{_identifier(name)}", tensor, kind, name)

    def arguments(self, names: list[str], leaves: list[Any]) -> None:
        """Inputs for the leaves of the arguments."""
        for name, value in zip(names, leaves, strict=True):
            node = self.placeholder(name, value, InputKind.USER_INPUT, None)
            self._first_input = self._first_input or node

    # ---- steps ----

    def create_node(self, kind: str, target: Any, *rest: Any, **named: Any) -> Node:
        node = super().create_node(kind, target, *rest, **named)
        if kind not in ("placeholder", "output"):
            trace = format_frames(program_frames())
            if trace:
                node.meta["stack_trace"] = trace
        return node

    def __call__(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Record a call of an op and run it. Of an op that is made of others those are recorded."""
        if self.paused:
            return func(*args, **kwargs)
        if autocast_state() != self._autocast:
            raise compiler.Unsupported(
                f"the program turns autocast on or off and calls {func}, and an exported program "
                "has no mode of its own: convert with to(dtype) there, or export within autocast",
            )
        if isinstance(func, CustomOverload) and func.is_composed((args, kwargs)):
            composite = func.composite
            if composite is not None:
                return _C._watch_ops(self, lambda: composite(*args, **kwargs))
        wrappers = wrappers_in((args, kwargs))
        if wrappers:
            return _C._watch_ops(self, lambda: call_wrapper(func, args, kwargs, wrappers))
        if func is rushlight.ops.aten.lift_fresh.default:
            return self.lift(args[0])
        if func is rushlight.ops.aten._local_scalar_dense.default:
            func = rushlight.ops.aten.item.default  # its name in programs
        if func is rushlight.ops.aten.contiguous.default:
            result = func(*args, **kwargs)
            if result is args[0]:
                return result
        result = self.record(func, args, kwargs)
        if self._records and not rushlight.is_grad_enabled():
            self._cut_history(result, args, kwargs)
        return result

    def _cut_history(self, result: Any, args: Any, kwargs: Any) -> None:
        """What is computed under no_grad has no history where the program runs, either."""
        given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        if not any(t.requires_grad for t in given):
            return
        for made in pytree.tree_leaves(result):
            if isinstance(made, Tensor) and all(made is not t for t in given):
                detached = rushlight.ops.aten.detach.default
                while _C._functorch.is_batchedtensor(made):
                    made = _C._functorch.get_unwrapped(made)
                node = self.node_of(made)
                self.track(made, self.create_node("call_function", detached, (node,), {}))

    def track(self, value: Any, node: Node) -> None:
        super().track(value, node)
        number = getattr(self.fake_mode, "number", None)
        if isinstance(value, bool) and isinstance(number, SymBool):
            node.meta["val"] = number  # which of the unknown truth values it is

    def run_op(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is rushlight.ops.aten.item.default:
            func = rushlight.ops.aten._local_scalar_dense.default
        if func in self.fake_mode.whole:
            with _disable_current_modes():  # as where a mode is called
                return self.fake_mode.__torch_dispatch__(func, (), args, kwargs)
        return super().run_op(func, args, kwargs)

    def lift(self, made: Tensor) -> Tensor:
        """A tensor that the program wrote down."""
        result = rushlight.ops.aten.lift_fresh.default(made)
        source = self.node_of(made)
        copy = self.create_node(
            "call_function", lift_fresh_copy(), (source,), {}, name="lift_fresh_copy"
        )
        self.track(result, copy)
        detached = rushlight.ops.aten.detach_.default
        self.track(result, self.create_node("call_function", detached, (copy,), {}, name="detach_"))
        return result

    def call_of(self, module: nn.Module, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Called for each call of a module: steps inside know where they are."""
        name = self._names.get(id(module))
        if name is None:
            return call(module, *args, **kwargs)
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        entry = f"{name}@{count}" if count else name
        kind = _kind_of(module)
        key = f"L__self__{entry}"
        self.module_stack[key] = (name, kind)
        given = self.describe((args, kwargs)) if name in self.preserved else None
        try:
            result = call(module, *args, **kwargs)
        finally:
            del self.module_stack[key]
        if given is not None:
            (inputs, in_spec), (outputs, out_spec) = given, self.describe(result)
            self.calls[entry] = ModuleCallSignature(inputs, outputs, in_spec, out_spec)
        return result

    def describe(self, tree: Any) -> tuple[list[ArgumentSpec], Any]:
        """What the leaves of arguments or results are, and their containers."""
        leaves, spec = pytree.tree_flatten(tree)
        arguments: list[ArgumentSpec] = [
            TensorArgument(self.node_of(v).name)
            if isinstance(v, Tensor)
            else ConstantArgument("", v)
            for v in leaves
        ]
        return arguments, spec

    def run(self, f: Callable[[], Any]) -> Any:
        """What a program gives, while its ops and calls of modules are recorded."""
        call = nn.Module.__call__

        def module_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.call_of(module, call, args, kwargs)

        before = compiler._exporting, reverse.records_all
        with _Patcher() as patcher, self.fake_mode, self.batches, self.active():
            patcher.patch_method(nn.Module, "__call__", module_call, deduplicate=False)
            compiler._exporting = reverse.records_all = True
            try:
                return _C._watch_ops(self, f)
            except (DataDependentOutputException, DynamicOutputShapeException) as error:
                raise _data_dependent(error) from error
            finally:
                compiler._exporting, reverse.records_all = before

    def write_back(self, state: _State) -> None:
        """Buffers that the program has replaced get the new values at the end."""
        holders = {s.target: s.arg.name for s in self.specs if s.kind is InputKind.BUFFER}
        nodes = {n.name: n for n in self.graph.nodes if n.op == "placeholder"}
        copy = rushlight.ops.aten.copy_.default
        for name, tensor in state.replaced_buffers():
            if name not in holders:
                continue
            args = (nodes[holders[name]], self.node_of(tensor))
            node = self.create_node("call_function", copy, args, {}, name="copy__default")
            node.meta["val"] = args[0].meta["val"]
            node.meta["nn_module_stack"] = {"L__self__": ("", _kind_of(self.mod))}

    def set_output(self, leaves: list[Any]) -> list[OutputSpec]:
        """The output of the graph, and what it is."""
        values, specs = [], []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                node = self.node_of(leaf)
                values.append(node)
                arg: ArgumentSpec = TensorArgument(node.name)
            elif leaf is None or isinstance(leaf, (bool, int, float, str, SymBool)):
                values.append(leaf)
                arg = ConstantArgument("", leaf)
            else:
                raise RuntimeError(
                    f"Found {type(leaf)} in output, which is not a known type: a program that is "
                    "exported returns tensors, numbers, texts and containers of them that pytree "
                    "knows (torch.utils._pytree.register_pytree_node)"
                )
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        self.graph.output(tuple(values))
        return specs


def _data_dependent(error: Exception) -> Exception:
    """The error of a program that needs the values of tensors, with its line."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<"):
            frames.append((name, trace.tb_lineno, trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    place = format_frames(frames[-1:]) or "(outside of the program)"
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression: {error}. The graph cannot hold a number, "
        "a branch or a size that depends on the values of tensors; use torch.cond, torch.where or "
        f"masks instead.\n\nThe following call raised this error:\n  {place}"
    )


class Traced:
    """What one run has given."""

    def __init__(self, tracer: Tracer, outputs: list[OutputSpec], in_spec: Any, out_spec: Any):
        self.tracer, self.outputs = tracer, outputs
        self.in_spec, self.out_spec = in_spec, out_spec


def trace(
    mod: nn.Module,
    names: list[str],
    leaves: list[Any],
    in_spec: Any,
    mode: FakeTensorMode,
    preserved: tuple[str, ...] = (),
) -> Traced:
    """Run a module on fake tensors and record its ops. The module is as before afterwards.

    Args:
        mod: the module.
        names: of the leaves of its arguments.
        leaves: fake tensors, numbers and texts.
        in_spec: the containers of the leaves, as (args, kwargs).
        mode: of the fake tensors.
        preserved: dotted names of submodules whose calls are described.
    """
    args, kwargs = pytree.tree_unflatten(leaves, in_spec)
    state = _State(mod, mode)
    tracer = Tracer(mod, mode, preserved)
    try:
        tracer.state()
        tracer.arguments(names, leaves)
        result = tracer.run(lambda: mod(*args, **kwargs))
        tracer.write_back(state)
    finally:
        state.restore()
    flat, out_spec = pytree.tree_flatten(result)
    return Traced(tracer, tracer.set_output(flat), in_spec, out_spec)
