"""`export`: from a module and example arguments to an `ExportedProgram`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rushlight import Tensor, nn
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.export._dynamic import Solver
from rushlight.export._guards import range_guards, static_guards
from rushlight.export._inputs import check_arguments, forward_names, leaf_names
from rushlight.export._open_sizes import OpenSizes
from rushlight.export._trace import Traced, trace
from rushlight.export.dynamic_shapes import leaf_specs
from rushlight.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from rushlight.export.graph_signature import ExportGraphSignature, InputKind
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["export"]


def export(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Record the graph of what a module computes, for all arguments of the same shapes.

    The module runs once, on tensors without values: Python code that depends on shapes, flags and
    numbers is decided then, code that depends on the values of tensors raises. The graph holds
    the ops as the program calls them, with their writes in place.

    Args:
        mod: the module.
        args: example arguments, a tuple.
        kwargs: example keyword arguments.
        dynamic_shapes: by argument, which sizes stay open.
        strict: False; True takes the same way, because nothing here analyses bytecode.
        preserve_module_call_signature: dotted names of submodules whose calls are described in
            `module_call_graph`, so that `unflatten` gives them their own signatures.
        prefer_deferred_runtime_asserts_over_guards: False.

    Raises:
        ValueError: `mod` is no module, or an argument is of a type that graphs do not hold.
        torch._dynamo.exc.UserError: `args` is no tuple, or a size is not as it was said to be.
        GuardOnDataDependentSymNode: the program needs the values of tensors.

    Example:
        >>> class Scale(torch.nn.Module):
        ...     def forward(self, picture):
        ...         return picture * 3
        >>> rows = torch.export.Dim("rows")
        >>> program = torch.export.export(Scale(), (torch.ones(2, 4),), dynamic_shapes=({0: rows},))
        >>> program.module()(torch.ones(5, 4)).shape
        torch.Size([5, 4])
    """
    kwargs = check_arguments(mod, args, kwargs)
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError(
            "export: prefer_deferred_runtime_asserts_over_guards=True is not supported; what "
            "sizes must fulfil is checked before the graph runs"
        )
    preserved = tuple(preserve_module_call_signature)
    names = leaf_names(forward_names(mod, args, kwargs), args, kwargs)
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    specs = leaf_specs(mod, args, kwargs, dynamic_shapes)
    if not any(specs):
        try:
            return _static(mod, args, kwargs, names, leaves, in_spec, preserved)
        except GuardOnDataDependentSymNode:
            pass  # what depends on values becomes symbols
    solver = Solver(mod, names, leaves, in_spec, specs, preserved)
    sizes = OpenSizes(solver, solver.solve())
    return _program(mod, args, kwargs, sizes.join(), sizes)


def _static(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: list[str],
    leaves: list[Any],
    in_spec: Any,
    preserved: tuple[str, ...],
) -> ExportedProgram:
    """The program of one run, where no size is open."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, export=True)
    fakes = [mode.from_tensor(v) if isinstance(v, Tensor) else v for v in leaves]
    traced = trace(mod, names, fakes, in_spec, mode, preserved)
    return _program(mod, args, kwargs, traced, None)


def _program(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    traced: Traced,
    sizes: OpenSizes | None,
) -> ExportedProgram:
    tracer = traced.tracer
    ranges = {} if sizes is None else sizes.ranges
    state = mod.state_dict(keep_vars=True)
    for name in [n for n, t in state.items() if is_traceable_wrapper_subclass(t)]:
        del state[name]  # their inner tensors are constants
    constants = dict(tracer.constants)
    for spec in tracer.specs:
        if spec.kind is InputKind.BUFFER and spec.persistent is False:
            path, _, name = str(spec.target).rpartition(".")
            constants[str(spec.target)] = mod.get_submodule(path)._buffers[name]
    inputs = [n for n in tracer.graph.nodes if n.op == "placeholder"]
    kinds = zip(inputs, tracer.specs, strict=True)
    users = [n for n, spec in kinds if spec.kind is InputKind.USER_INPUT]
    guards = [g for n in users for g in static_guards(n.name, n.meta["val"])]
    if sizes is not None:
        guards += range_guards(users, ranges) + sizes.guards(users)
    return ExportedProgram(
        tracer.root,
        tracer.graph,
        ExportGraphSignature(tracer.specs, traced.outputs),
        dict(state),
        ranges,
        _module_calls(mod, args, kwargs, traced),
        (args, kwargs),
        constants,
        guards=guards,
    )


def _module_calls(
    mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], traced: Traced
) -> list[ModuleCallEntry]:
    """An entry for the whole and one for each submodule."""
    names = forward_names(mod, args, kwargs)
    whole = ModuleCallSignature([], [], traced.in_spec, traced.out_spec, names)
    entries = [ModuleCallEntry("", whole)]
    calls = traced.tracer.calls
    for name, _ in mod.named_modules():
        if name:
            entries.append(ModuleCallEntry(name, calls.get(name)))
    return entries + [ModuleCallEntry(name, calls[name]) for name in calls if "@" in name]
