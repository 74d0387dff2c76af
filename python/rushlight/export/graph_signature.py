"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight import SymBool

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclass
class TensorArgument:
    """A tensor, by the name of its node.

    Args:
        name: of its node.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str


@dataclass
class TokenArgument:
    """A token that orders effects; rushlight's own graphs have none.

    Args:
        name: of its node.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str


@dataclass
class SymIntArgument:
    """An int that depends on sizes.

    Args:
        name: of its node.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str


@dataclass
class SymFloatArgument:
    """A float that depends on sizes.

    Args:
        name: of its node.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str


@dataclass
class SymBoolArgument:
    """A bool that depends on sizes.

    Args:
        name: of its node.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str


@dataclass
class CustomObjArgument:
    """An object of a bound class.

    Args:
        name: of its placeholder or output.
        class_fqn: the dotted name of its class.
        fake_val: what stands for it while a program is exported.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A value that is no tensor: a number, a bool, a text, None.

    Args:
        name: of its placeholder or output.
        value: the value.

    For an example see `export.graph_signature.InputSpec`.
    """

    name: str
    value: int | float | bool | SymBool | str | None


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(enum.Enum):
    """What a placeholder stands for.

    Example:
        >>> torch.export.graph_signature.InputKind.PARAMETER.name
        'PARAMETER'
    """

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What a value that the graph returns is for.

    Example:
        >>> torch.export.graph_signature.OutputKind.USER_OUTPUT.name
        'USER_OUTPUT'
    """

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


def _line(spec: Any) -> str:
    target = "" if spec.target is None else f" target='{spec.target}'"
    persistent = getattr(spec, "persistent", None)
    told = "" if persistent is None else f" persistent={persistent}"
    return f"{spec.arg.name}: {spec.kind.name}{target}{told}"


@dataclass
class InputSpec:
    """One input: its kind, its placeholder, and the name of what it stands for in the module.

    Args:
        kind: what the placeholder stands for.
        arg: the placeholder.
        target: the dotted name of a parameter, buffer or constant; None of an argument.
        persistent: of a buffer, whether it belongs to the state dict.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> spec = program.graph_signature.input_specs[0]
        >>> spec.kind.name, spec.arg.name, spec.target
        ('PARAMETER', 'p_weight', 'weight')
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        return _line(self)


@dataclass
class OutputSpec:
    """One output: its kind, its value, and the name of what it changes.

    Args:
        kind: what the value is for.
        arg: the value.
        target: the dotted name of what it changes; None of a result.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> program.graph_signature.output_specs[0].kind.name
        'USER_OUTPUT'
    """

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        return _line(self)


@dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, of a graph that has a backward pass.

    Args:
        gradients_to_parameters: by the name of an output, the parameter that it is the gradient of.
        gradients_to_user_inputs: by the name of an output, the input that it is the gradient of.
        loss_output: the name of the loss among the outputs.

    Example:
        >>> signature = torch.export.ExportBackwardSignature({"grad": "weight"}, {}, "loss")
        >>> signature.loss_output
        'loss'
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


_VALUES = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, CustomObjArgument)


@dataclass
class ExportGraphSignature:
    """All inputs and outputs of a graph, in order, and questions about them.

    Args:
        input_specs: what each input is: a parameter, a buffer, an argument …
        output_specs: what each output is.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> program.graph_signature.parameters, program.graph_signature.user_inputs
        (('weight', 'bias'), ('input_1',))
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        """Names of placeholders and what they stand for."""
        return {s.arg.name: str(s.target) for s in self.input_specs if s.kind is kind}

    def _outputs(self, *kinds: OutputKind) -> Mapping[str, str]:
        found = {s.arg.name: str(s.target) for s in self.output_specs if s.kind in kinds}
        return MappingProxyType(found)

    @property
    def parameters(self) -> Collection[str]:
        """The dotted names of parameters."""
        return tuple(self._inputs(InputKind.PARAMETER).values())

    @property
    def buffers(self) -> Collection[str]:
        """The dotted names of buffers."""
        return tuple(self._inputs(InputKind.BUFFER).values())

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        """The dotted names of buffers that are not in the state."""
        specs = (s for s in self.input_specs if s.kind is InputKind.BUFFER)
        return tuple(str(s.target) for s in specs if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """The names of constant tensors."""
        return tuple(self._inputs(InputKind.CONSTANT_TENSOR).values())

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        """The names of objects of bound classes."""
        return tuple(self._inputs(InputKind.CUSTOM_OBJ).values())

    @property
    def user_inputs(self) -> Collection[Any]:
        """Names of the placeholders of the program's arguments; of others than tensors, values."""
        return tuple(
            s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name
            for s in self.input_specs
            if s.kind is InputKind.USER_INPUT
        )

    @property
    def user_outputs(self) -> Collection[Any]:
        """Names of the nodes that are returned to the program; of others than tensors, values."""
        return tuple(
            s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name
            for s in self.output_specs
            if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        )

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """By placeholder, the parameter."""
        return MappingProxyType(self._inputs(InputKind.PARAMETER))

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """By placeholder, the buffer."""
        return MappingProxyType(self._inputs(InputKind.BUFFER))

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """By placeholder, the constant."""
        return MappingProxyType(self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """By placeholder, the object of a bound class."""
        return MappingProxyType(self._inputs(InputKind.CUSTOM_OBJ))

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """By output, the buffer that it is written into."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """By output, the parameter that it is written into."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """By output, the placeholder of the argument that it is written into."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Which outputs are gradients; None of a graph without a loss."""
        losses = [s for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            dict(self._outputs(OutputKind.GRADIENT_TO_PARAMETER)),
            dict(self._outputs(OutputKind.GRADIENT_TO_USER_INPUT)),
            losses[0].arg.name,
        )

    @property
    def assertion_dep_token(self) -> None:
        """None: no effects are ordered by tokens."""
        return None

    @property
    def input_tokens(self) -> Collection[str]:
        """The names of inputs that order effects."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> Collection[str]:
        """The names of outputs that order effects."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Give a node another name in the whole signature.

        Args:
            old: its name.
            new: the name from now on.
        """
        for spec in (*self.input_specs, *self.output_specs):
            if isinstance(spec.arg, _VALUES) and spec.arg.name == old:
                spec.arg.name = new
            if getattr(spec, "kind", None) is OutputKind.USER_INPUT_MUTATION and spec.target == old:
                spec.target = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Callable[[Any, str, Any], None]:
        """A hook for `GraphModule._register_replace_node_hook` that keeps the outputs right.

        Args:
            replace_inputs: the inputs, too.
        """

        def hook(old: Any, new: str, user: Any) -> None:
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
