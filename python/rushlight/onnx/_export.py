"""`export`: from a module and sample arguments to an ONNX model."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any

import rushlight
from rushlight import nn
from rushlight._warnings import warn
from rushlight.export import save as export_save
from rushlight.onnx import OperatorExportTypes, TrainingMode
from rushlight.onnx._axes import OpenSizes, from_axes, from_shapes
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._graph import ExportedGraph, exported_graph
from rushlight.onnx._lowering import Lowering
from rushlight.onnx._model import OnnxGraph, rename
from rushlight.onnx._program import ONNXProgram
from rushlight.onnx._report import write_report
from rushlight.onnx._state import running
from rushlight.onnx._types import onnx_package
from rushlight.onnx.errors import OnnxExporterError, OnnxExporterWarning
from rushlight.utils import _pytree as pytree

__all__ = ["export"]

OLDEST_OPSET, DEFAULT_OPSET, NEWEST_OPSET = 18, 20, 23


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: dict[Any, Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[nn.Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Exports a module or function to ONNX.

    The program runs once on the sample arguments, and its ops are written as nodes of ONNX.

    Args:
        model: a module, or a function of tensors.
        args: sample arguments; a single tensor may stand for a tuple of it.
        f: the path, or the open file, to write the model to; None writes nothing.
        kwargs: sample keyword arguments.
        verbose: whether to print the program that was found.
        input_names, output_names: names in order of the flat arguments and results; those that are
            left out are named after the parameters of the program and after its ops.
        opset_version: of ONNX's ops, 18 to 23; 20 by default.
        dynamo: False: nothing is returned, weights stay in the model's file, and `training`
            applies, as of the exporter that PyTorch had before.
        external_data: whether weights go into a file beside the model, `f` + ".data".
        dynamic_shapes: which sizes of the arguments are symbols, in the form of `torch.export`:
            by parameter, or in order, `{dim: Dim or name}`.
        custom_translation_table: by op overload, functions `(builder, *arguments)` that are used
            before those of rushlight (docs/onnx.md).
        report: whether to write a report in Markdown into `artifacts_dir`.
        optimize, do_constant_folding: whether what depends on constants alone is computed now.
        verify: whether to run the model in onnxruntime and compare it with the program.
        export_params: False: parameters and buffers become inputs.
        keep_initializers_as_inputs: whether constants are inputs, too.
        dynamic_axes: which sizes are symbols, by the name of an input or output: `{dim: name}` or
            a list of dims.
        training: with dynamo=False, `TrainingMode.EVAL` exports the program as after `eval()`.
        custom_opsets: versions of other domains by name.
        profile: refused, but for the default.
        dump_exported_program: whether to write the program into `artifacts_dir`, too.
        artifacts_dir: the folder of reports and programs.
        operator_export_type: refused, but for the default.
        export_modules_as_functions: refused, but for the default.
        autograd_inlining: refused, but for the default.

    Returns:
        An `ONNXProgram`; None with dynamo=False.

    Raises:
        OnnxExporterError: the program cannot be exported. All ops that cannot go are named.
        ImportError: the package `onnx` is not installed.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> program = torch.onnx.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),), file)
    """
    if custom_opsets is not None and "" in custom_opsets:
        raise ValueError("custom_opsets are of other domains; opset_version is of ONNX itself")
    _refuse(
        operator_export_type=operator_export_type not in (None, OperatorExportTypes.ONNX),
        export_modules_as_functions=bool(export_modules_as_functions),
        profile=profile,
        autograd_inlining=not autograd_inlining,
    )
    onnx_package()
    args, kwargs = args if isinstance(args, tuple) else (args,), dict(kwargs or {})
    mode: Any = contextlib.nullcontext()
    if not dynamo:
        if f is None:
            raise TypeError("export() with dynamo=False needs f, the file to write to")
        if args and isinstance(args[-1], dict):
            args, kwargs = args[:-1], {**args[-1], **kwargs}
        mode = _in_mode(model, training)
    with mode, running(), rushlight.no_grad():
        open_sizes = _open_sizes(model, args, kwargs, dynamic_axes, dynamic_shapes, input_names)
        found = exported_graph(model, *open_sizes.example, open_sizes.shapes)
    if dump_exported_program:
        export_save(found.program, os.path.join(artifacts_dir, "onnx_export_program.pt2"))
    if verbose:
        print(found.program)
    opset, table = _opset(opset_version), custom_translation_table or {}
    program = _lowered(found, open_sizes, opset, table, input_names, output_names)
    program.model.opsets.update(custom_opsets or {})
    if optimize and do_constant_folding:
        program.optimize()
    program.check()
    if verify:
        _verify(program, model, args, kwargs)
    if report:
        write_report(program, os.path.join(artifacts_dir, "onnx_export_report.md"))
    if f is not None:
        program.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data if dynamo and isinstance(f, str | os.PathLike) else None,
        )
    return program if dynamo else None


def _refuse(**asked: bool) -> None:
    """Raises for arguments that ask for what this exporter does not do."""
    for name, value in asked.items():
        if value:
            raise NotImplementedError(f"export() does not support another {name} than its default")


def _opset(version: int | None) -> int:
    if version is None:
        return DEFAULT_OPSET
    if version < OLDEST_OPSET:
        warn(
            f"opset_version={version}: ops are written as of version {OLDEST_OPSET} or later, so "
            f"the model has version {OLDEST_OPSET}",
            OnnxExporterWarning,
        )
        return OLDEST_OPSET
    if version > NEWEST_OPSET:
        raise ValueError(f"opset_version={version}: the newest that is written is {NEWEST_OPSET}")
    return version


@contextlib.contextmanager
def _in_mode(model: Any, training: Any) -> Iterator[None]:
    """Inside, a module trains or does not, as `TrainingMode` says; by default it does not."""
    training = TrainingMode.EVAL if training is None else training
    if training is TrainingMode.PRESERVE or not isinstance(model, nn.Module):
        yield
        return
    before = {module: module.training for module in model.modules()}
    model.train(training is TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in before.items():
            module.training = mode


def _open_sizes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    axes: Mapping[str, Any] | None,
    shapes: Any,
    input_names: Sequence[str] | None,
) -> OpenSizes:
    """What `dynamic_axes` or `dynamic_shapes` says."""
    if not axes and not shapes:
        return OpenSizes((args, kwargs), None, [], {})
    if axes and shapes:
        raise ValueError("export() takes dynamic_axes or dynamic_shapes, not both")
    if not isinstance(model, nn.Module):
        raise ValueError("an ExportedProgram knows its open sizes: export it with dynamic_shapes")
    if axes:
        return from_axes(axes, model, args, kwargs, input_names)
    return from_shapes(shapes, model, args, kwargs)


def _lowered(
    found: ExportedGraph,
    open_sizes: OpenSizes,
    opset: int,
    table: dict[Any, Callable[..., Any]],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> ONNXProgram:
    """The program as a model, with names."""
    names = _renamed("input_names", found.names, input_names)
    lowering = Lowering(found, opset, table)
    values = lowering.run(names)
    g = lowering.g
    outputs = _named_outputs(g, values, output_names)
    open_sizes.learn(
        zip((i for i, taken in enumerate(found.leaves) if taken), found.inputs, strict=True)
    )
    unknown = set(open_sizes.of_results) - {v.name for v in outputs}
    if unknown:
        raise ValueError(
            f"dynamic_axes names {sorted(unknown)}, but the inputs are {names}, and the results "
            f"{[v.name for v in outputs]}"
        )
    of_results = open_sizes.of_results
    model = OnnxGraph(
        g.nodes,
        {v.name: (v.dtype, open_sizes.sizes(v.sizes)) for v in lowering.inputs},
        {v.name: (v.dtype, open_sizes.sizes(v.sizes, of_results.get(v.name))) for v in outputs},
        g.initializers,
        found.parameters,
        found.leaves,
        {"": opset, **g.domains},
    )
    return ONNXProgram(model, found.program)


def _renamed(argument: str, names: list[str], wanted: Sequence[str] | None) -> list[str]:
    """Names, of which the first are replaced by those that the caller gives."""
    wanted = list(wanted or ())
    if len(wanted) > len(names):
        raise ValueError(
            f"{argument} has {len(wanted)} names, but the program has {len(names)}: {names}"
        )
    return wanted + names[len(wanted) :]


def _named_outputs(g: Builder, values: list[Value], wanted: Sequence[str] | None) -> list[Value]:
    """The outputs under their names, each the result of a node and of no other output."""
    produced = {name for node in g.nodes for name in node.output}
    outputs: list[Value] = []
    for value in values:
        if value.name not in produced or value.name in {v.name for v in outputs}:
            copy = g.Identity(value)
            copy.shape = value.shape
            value = copy
        outputs.append(Value(value.name, value.dtype, value.shape))
    names = _renamed("output_names", [v.name for v in outputs], wanted)
    renamed = {v.name: name for v, name in zip(outputs, names, strict=True) if v.name != name}
    own = {v.name for v in outputs}
    for name in list(renamed.values()):
        if name in g.names and name not in own:
            if name not in produced:
                raise ValueError(f"output_names: {name!r} is the name of an input or a weight")
            renamed[name] = g.name(name)
    rename(g.nodes, renamed)
    for value, name in zip(outputs, names, strict=True):
        value.name = name
    return outputs


def _verify(program: ONNXProgram, model: Any, args: tuple[Any, ...], kwargs: Any) -> None:
    """Runs the model and the program, and compares."""
    # A copy, because a program may write into its buffers.
    run = copy.deepcopy(model) if isinstance(model, nn.Module) else model.module()
    with rushlight.no_grad():
        leaves = pytree.tree_leaves(run(*args, **kwargs))
    wanted = [rushlight.as_tensor(x) for x in leaves if x is not None]
    for name, ours, theirs in zip(
        program.model.outputs, program(*args, **kwargs), wanted, strict=True
    ):
        if not rushlight.allclose(
            ours, theirs.detach().cpu(), rtol=1e-3, atol=1e-4, equal_nan=True
        ):
            apart = (ours.double() - theirs.double()).abs().max().item()
            raise OnnxExporterError(
                f"verification failed: output {name!r} of the model differs from that of the "
                f"program by up to {apart:.3g}"
            )
