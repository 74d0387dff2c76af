"""Styles of tensor parallelism, which `parallelize_module` applies to modules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import rushlight
from rushlight import nn
from rushlight.distributed.tensor._dtensor import DTensor, distribute_module, distribute_tensor
from rushlight.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(ABC):
    """The base of styles; subclasses define `_apply`.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh) -> nn.Module: ...


def _to_placements(value, mesh, given, wanted):
    """A tensor that lies as `given`, or a distributed one, brought to `wanted`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, given, run_check=False)
    return _redistribute(value, wanted)


def _redistribute(value, wanted):
    target = tuple(
        Shard(p.dim % value.ndim) if isinstance(p, Shard) and p.dim < 0 else p for p in wanted
    )
    return value if value.placements == target else value.redistribute(placements=target)


def _cut(module, mesh, ways, source):
    """Distributes the parameters of a module itself, each in its way."""
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            way = ways.get(name, Replicate())
            whole = distribute_tensor(parameter.detach(), mesh, [way], src_data_rank=source)
            module.register_parameter(name, nn.Parameter(whole, parameter.requires_grad))


class _Layer(ParallelStyle):
    """A linear layer or an embedding whose weights are cut."""

    def __init__(self, given, output, use_local_output):
        super().__init__()
        self.input_layouts: tuple[Placement, ...] = (given,)
        self.output_layouts: tuple[Placement, ...] = (output,)
        self.use_local_output = use_local_output

    _linear: dict[str, Placement]
    _embedding: dict[str, Placement]
    _inner: Placement  # how a linear layer takes its input

    def _apply(self, module, device_mesh):
        if isinstance(module, nn.Linear):
            ways, inner = self._linear, self._inner
        elif isinstance(module, nn.Embedding):
            ways, inner = self._embedding, Replicate()
        else:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )

        def partition(name, part, mesh):
            _cut(part, mesh, ways, self.src_data_rank)

        def enter(part, inputs, mesh):
            return (_to_placements(inputs[0], mesh, self.input_layouts, (inner,)), *inputs[1:])

        def leave(part, output, mesh):
            output = _redistribute(output, self.output_layouts)
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, enter, leave)


class ColwiseParallel(_Layer):
    """Shards a linear layer by its outputs, or an embedding by its features.

    Args:
        input_layouts: the placement of an input that is a plain tensor; `Replicate()` by default.
        output_layouts: the placement of the output; `Shard(-1)` by default.
        use_local_output: whether the output is this process's piece as a plain tensor.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    _linear = {"weight": Shard(0), "bias": Shard(0)}  # noqa: RUF012
    _embedding = {"weight": Shard(1)}  # noqa: RUF012
    _inner = Replicate()

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        super().__init__(
            input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output
        )


class RowwiseParallel(_Layer):
    """Shards a linear layer by its inputs, or an embedding by its rows.

    Args:
        input_layouts: the placement of an input that is a plain tensor; `Shard(-1)` by default.
        output_layouts: the placement of the output; `Replicate()` by default.
        use_local_output: whether the output is this process's piece as a plain tensor.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    _linear = {"weight": Shard(1), "bias": Replicate()}  # noqa: RUF012
    _embedding = {"weight": Shard(0)}  # noqa: RUF012
    _inner = Shard(-1)

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        super().__init__(
            input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output
        )


class SequenceParallel(ParallelStyle):
    """Replicates the parameters of a module, and shards its input along the sequence.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: whether the output is this process's piece as a plain tensor.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        def partition(name, part, mesh):
            _cut(part, mesh, {}, self.src_data_rank)

        def enter(part, inputs, mesh):
            if not isinstance(inputs[0], rushlight.Tensor):
                raise ValueError(
                    f"expecting input of {part} to be a Tensor or DTensor, but got {inputs[0]!r}"
                )
            way = self.sequence_sharding
            return (_to_placements(inputs[0], mesh, way, way), *inputs[1:])

        def leave(part, outputs, mesh):
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, partition, enter, leave)


def _layouts(value):
    return None if value is None else (value if isinstance(value, tuple) else (value,))


def _check_as_many(name, given, wanted):
    if wanted is None or len(given) != len(wanted):
        raise AssertionError(
            f"{name} and desired_{name} should have same length, but are {given} and {wanted}"
        )


class PrepareModuleInput(ParallelStyle):
    """Converts the inputs of a module to given placements.

    Args:
        input_layouts: the placements of inputs that are plain tensors, one for each; None for
            inputs that are not changed.
        desired_input_layouts: the placements that they get.
        input_kwarg_layouts: the same of inputs by keyword.
        desired_input_kwarg_layouts: the placements that those get.
        use_local_output: whether the module gets pieces as plain tensors.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ):
        self.use_local_output = use_local_output
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_layouts = _layouts(input_layouts)
        self.desired_input_layouts = _layouts(desired_input_layouts)
        if self.input_layouts is not None:
            _check_as_many("input_layouts", self.input_layouts, self.desired_input_layouts)
        self.input_kwarg_layouts = given = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = wanted = desired_input_kwarg_layouts or {}
        _check_as_many("input_kwarg_layouts", given, wanted)

    def _prepare_value(self, value, mesh, given, wanted):
        if given is None and not isinstance(value, DTensor):
            return value
        if wanted is None:
            return value
        value = _to_placements(value, mesh, (given,), (wanted,))
        return value.to_local() if self.use_local_output else value

    def _inputs(self, inputs, mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        wanted = self.desired_input_layouts or ()
        return tuple(
            self._prepare_value(v, mesh, a, b)
            for v, a, b in zip(inputs, self.input_layouts, wanted, strict=True)
        )

    def _kwargs(self, kwargs, mesh):
        return {
            key: self._prepare_value(
                value,
                mesh,
                self.input_kwarg_layouts.get(key),
                self.desired_input_kwarg_layouts.get(key),
            )
            for key, value in kwargs.items()
        }

    def _apply(self, module, device_mesh):
        module.register_forward_pre_hook(
            lambda _, inputs, kwargs: (
                self._inputs(inputs, device_mesh),
                self._kwargs(kwargs, device_mesh),
            ),
            with_kwargs=True,
        )
        return module


class PrepareModuleOutput(ParallelStyle):
    """Converts the outputs of a module to given placements.

    Args:
        output_layouts: the placements of outputs that are plain tensors, one for each; None for
            outputs that are not changed.
        desired_output_layouts: the placements that they get.
        use_local_output: whether the outputs are pieces as plain tensors.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ):
        self.output_layouts = _layouts(output_layouts) or ()
        self.desired_output_layouts = _layouts(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError(
                "output_layouts and desired_output_layouts should have same length!"
            )

    def _outputs(self, outputs, mesh):
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(listed) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for value, given, wanted in zip(
            listed, self.output_layouts, self.desired_output_layouts, strict=True
        ):
            if given is not None or isinstance(value, DTensor):
                value = _to_placements(value, mesh, (given,), (wanted,))
                value = value.to_local() if self.use_local_output else value
            made.append(value)
        return tuple(made) if isinstance(outputs, tuple) else made[0]

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda _, __, outputs: self._outputs(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` together, with the arguments of both.

    `use_local_input` is the former's `use_local_output`.

    It has the arguments of `PrepareModuleInput` and the arguments of `PrepareModuleOutput`.

    Args:
        use_local_input: whether the module gets pieces as plain tensors.
        use_local_output: whether the outputs are pieces as plain tensors.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
