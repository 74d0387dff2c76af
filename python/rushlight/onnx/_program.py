"""`ONNXProgram`: an exported program as an ONNX model, which can be saved and run."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.onnx._model import OnnxGraph
from rushlight.onnx._optimize import optimize
from rushlight.onnx._types import element_type, onnx_package, raw_bytes, tensor_proto
from rushlight.onnx.errors import OnnxExporterError
from rushlight.utils import _pytree as pytree

__all__ = ["ONNXProgram"]

# protobuf's limit for one message, less what the graph itself may take.
_LARGEST = 2**31 - 2**24
# External data is mapped into memory by pages.
_PAGE = 4096


def _described(named: Mapping[str, tuple[rushlight.dtype, Sequence[int | str]]]) -> Iterator[Any]:
    make = onnx_package().helper.make_tensor_value_info
    for name, (dtype, sizes) in named.items():
        yield make(name, element_type(dtype), list(sizes))


class _Weights:
    """Where the elements of initializers go: into the model, or behind each other into a file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path, self._end = path, 0

    def proto(self, name: str, tensor: Tensor) -> Any:
        """The `TensorProto` of a tensor."""
        size = tensor.numel() * tensor.element_size()
        if self.path is None or size < 1024:
            return tensor_proto(name, tensor)
        onnx = onnx_package()
        proto = onnx.TensorProto(name=name, data_type=element_type(tensor.dtype))
        proto.dims.extend(tensor.shape)
        proto.data_location = onnx.TensorProto.EXTERNAL
        begin = -(-self._end // _PAGE) * _PAGE
        with open(self.path, "r+b" if self._end else "wb") as file:
            file.seek(begin)
            file.write(raw_bytes(tensor))
        self._end = begin + size
        for key, value in (("location", self.path.name), ("offset", begin), ("length", size)):
            proto.external_data.add(key=key, value=str(value))
        return proto


class ONNXProgram:
    """A program as an ONNX model.

    Args:
        model: the parts of the model.
        exported_program: what it was made of.

    Example:
        >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> [node.op_type for node in program.model_proto.graph.node]
        ['Relu']
    """

    def __init__(self, model: OnnxGraph, exported_program: Any = None) -> None:
        self.model = model
        self.exported_program = exported_program
        self._session: Any = None

    def __repr__(self) -> str:
        lines = [f"ONNXProgram of {len(self.model.nodes)} nodes"]
        for kind, named in (("inputs", self.model.inputs), ("outputs", self.model.outputs)):
            shown = ", ".join(f"{n}: {d}{list(s)}" for n, (d, s) in named.items())
            lines.append(f"  {kind}: {shown}")
        return "\n".join(lines)

    # ---- the model ----

    def _proto(
        self, weights: _Weights, include_initializers: bool = True, as_inputs: bool = False
    ) -> Any:
        onnx, model = onnx_package(), self.model
        helper = onnx.helper
        constants = model.initializers
        left_out = set() if include_initializers else model.parameters & set(constants)
        more = {
            name: (tensor.dtype, list(tensor.shape))
            for name, tensor in constants.items()
            if name in left_out or as_inputs
        }
        graph = helper.make_graph(
            model.nodes,
            "main_graph",
            list(_described({**model.inputs, **more})),
            list(_described(model.outputs)),
            [weights.proto(n, t) for n, t in constants.items() if n not in left_out],
        )
        opsets = [helper.make_opsetid(domain, v) for domain, v in model.opsets.items()]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
            producer_name="rushlight",
            producer_version=rushlight.__version__,
        )

    def _size(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.model.initializers.values())

    @property
    def model_proto(self) -> Any:
        """The whole model as an `onnx.ModelProto`, with its weights.

        Raises:
            ValueError: the weights are larger than 2 GB, which protobuf cannot hold.
        """
        if self._size() > _LARGEST:
            raise ValueError(
                f"the weights take {self._size():,} bytes, and a ModelProto holds 2 GB: save() can "
                "put them into a file beside the model"
            )
        return self._proto(_Weights())

    def save(
        self,
        destination: str | os.PathLike[str] | Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a file.

        Args:
            destination: a path, or a binary file that is open for writing.
            include_initializers: False: parameters and buffers become inputs, without values.
            keep_initializers_as_inputs: all constants are inputs, too, which have these values
                unless the caller gives others.
            external_data: whether weights go into a file of their own, `destination` + ".data". By
                default that is done where the model would be larger than 2 GB.
        """
        if external_data is None:
            external_data = include_initializers and self._size() > _LARGEST
        if not isinstance(destination, str | os.PathLike):
            if external_data:
                raise ValueError("weights go into a file of their own only beside a path")
            proto = self._proto(_Weights(), include_initializers, keep_initializers_as_inputs)
            destination.write(proto.SerializeToString())
            return
        path = Path(destination)
        beside = path.with_name(path.name + ".data") if external_data else None
        weights = _Weights(beside)
        proto = self._proto(weights, include_initializers, keep_initializers_as_inputs)
        path.write_bytes(proto.SerializeToString())

    def check(self) -> None:
        """Lets the `onnx` package check the model, whose large weights are left out for that.

        Raises:
            OnnxExporterError: it is wrong: an op has no form for a dtype, for instance.
        """
        onnx, model = onnx_package(), self.model
        large = {n: t for n, t in model.initializers.items() if t.numel() > 256}
        small = {n: t for n, t in model.initializers.items() if n not in large}
        inputs = {**model.inputs, **{n: (t.dtype, list(t.shape)) for n, t in large.items()}}
        light = OnnxGraph(model.nodes, inputs, model.outputs, small, opsets=model.opsets)
        proto = ONNXProgram(light)._proto(_Weights())
        wrong = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
        try:
            onnx.checker.check_model(proto, full_check=True)
        except wrong as error:
            raise OnnxExporterError(f"the onnx package refuses the model: {error}") from error

    def optimize(self) -> None:
        """Computes what depends on constants alone, and drops what nothing needs."""
        optimize(self.model)

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replaces parameters and buffers by others of the same names.

        Raises:
            ValueError: a name, shape or dtype is not one of the model's.
        """
        for name, tensor in state_dict.items():
            known = self.model.initializers.get(name)
            if known is None:
                raise ValueError(f"the model has no parameter or buffer {name!r}")
            if (known.shape, known.dtype) != (tensor.shape, tensor.dtype):
                raise ValueError(
                    f"{name} is {known.dtype} {tuple(known.shape)} in the model, but got "
                    f"{tensor.dtype} {tuple(tensor.shape)}"
                )
            self.model.initializers[name] = tensor.detach()
        self.release()

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Renames symbols of sizes, by their names."""
        for named in (self.model.inputs, self.model.outputs):
            for name, (dtype, sizes) in named.items():
                new = [rename_mapping.get(s, s) if isinstance(s, str) else s for s in sizes]
                named[name] = dtype, new

    # ---- running ----

    def initialize_inference_session(
        self, initializer: Callable[[str | bytes], Any] | None = None
    ) -> None:
        """Makes the session that calls run in.

        Args:
            initializer: from the model, as bytes or as the path of a file, to a session; by default
                one of onnxruntime on the CPU.
        """
        make = initializer or _ort_session
        if self._size() <= _LARGEST:
            self._session = make(self.model_proto.SerializeToString())
            return
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path, external_data=True)
            self._session = make(path)

    def release(self) -> None:
        """Lets the session go; the next call makes another one."""
        self._session = None

    def _feed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        leaves = pytree.tree_leaves((args, dict(kwargs)))
        if len(leaves) == len(self.model.leaves):
            leaves = [x for x, taken in zip(leaves, self.model.leaves, strict=True) if taken]
        else:
            leaves = [x for x in leaves if isinstance(x, Tensor)]
        if len(leaves) != len(self.model.inputs):
            raise ValueError(
                f"the model has the inputs {list(self.model.inputs)}, but got {len(leaves)} tensors"
            )
        return {
            name: rushlight.as_tensor(x).detach().cpu().contiguous().numpy()
            for name, x in zip(self.model.inputs, leaves, strict=True)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Runs the model in onnxruntime; returns all of its outputs.

        Raises:
            ValueError: there are more or fewer tensors than inputs.
        """
        if self._session is None:
            self.initialize_inference_session()
        session: Any = self._session
        found = session.run(list(self.model.outputs), self._feed(args, kwargs))
        return tuple(rushlight.as_tensor(value) for value in found)

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Runs the model in the evaluator of the `onnx` package, op by op in NumPy."""
        reference = importlib.import_module("onnx.reference")
        found = reference.ReferenceEvaluator(self.model_proto).run(None, self._feed(args, kwargs))
        return tuple(rushlight.as_tensor(value) for value in found)

    def compute_values(
        self, value_names: Sequence[str], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Sequence[Tensor]:
        """Runs the model in onnxruntime, and returns these values of the graph instead."""
        proto = self.model_proto
        del proto.graph.output[:]
        proto.graph.output.extend(onnx_package().ValueInfoProto(name=n) for n in value_names)
        session = _ort_session(proto.SerializeToString())
        found = session.run(list(value_names), self._feed(args, kwargs or {}))
        return tuple(rushlight.as_tensor(value) for value in found)


def _ort_session(model: str | bytes) -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ImportError(
            "to run an ONNXProgram needs the package `onnxruntime`, which is not installed: "
            "pip install onnxruntime"
        ) from error
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
