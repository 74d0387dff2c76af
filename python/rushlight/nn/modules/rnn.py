"""RNN, LSTM and GRU, and their cells. A layer's steps are one op (ops/recurrent.py)."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C, Tensor
from rushlight._table import ops
from rushlight._warnings import warn

from .._packed import PackedSequence
from ..parameter import new_parameter
from ._cells import GRUCell, LSTMCell, RNNCell, RNNCellBase, _draw_parameters
from .module import Module
from .utils import _settings_text

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim: int = 1):
    """Permute `tensor` along `dim`; deprecated."""
    warn(
        "`apply_permutation` is deprecated, please use "
        "`tensor.index_select(dim, permutation)` instead",
        FutureWarning,
    )
    return tensor.index_select(dim, permutation)


def _refuse(kind: str, others: dict) -> None:
    """Raise for keywords that a layer does not take."""
    if "proj_size" in others:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if others:
        raise TypeError(f"{kind}() got an unexpected keyword argument {next(iter(others))!r}")


def _check_dims_of_state(batched: bool, **states: Tensor) -> None:
    """RuntimeError for a state that is one of a batch where the input is not, or the reverse."""
    dims, kind = (3, "batched") if batched else (2, "unbatched")
    if any(state.dim() != dims for state in states.values()):
        found = ", ".join(f"{state.dim()}-D" for state in states.values())
        raise RuntimeError(
            f"For {kind} {dims}-D input, {' and '.join(states)} should be {dims}-D, not {found}"
        )


class RNNBase(Module):
    """The base of recurrent layers: parameters, and checks of hidden states.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size, hidden_size: widths of input and cell.
        num_layers: layers on top of each other.
        bias: whether the layers have biases.
        batch_first: inputs and outputs are (batch, length, width), not (length, batch, width).
        dropout: probability with which outputs of all layers but the last are zeroed in training.
        bidirectional: run each layer in both directions and join the outputs.
        proj_size: width that the hidden state is projected to (LSTM; 0: not at all).
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Parameters of layer k: `weight_ih_lk` (gates * hidden_size, width), `weight_hh_lk`,
    `bias_ih_lk`, `bias_hh_lk`, `weight_hr_lk`, and the same with `_reverse`; all from U(-k, k)
    with k = 1 / √hidden_size.

    Example:
        >>> torch.nn.modules.rnn.RNNBase("GRU", 3, 4).weight_ih_l0.shape
        torch.Size([12, 3])
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        width = proj_size if proj_size > 0 else hidden_size
        rows = _GATES[mode] * hidden_size
        self._flat_weights_names = []
        self._all_weights = []
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            given = input_size if layer == 0 else width * directions
            shapes: dict[str, tuple] = {"weight_ih": (rows, given), "weight_hh": (rows, width)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:directions]:
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    made = new_parameter(shape, device=device, dtype=dtype)
                    setattr(self, names[-1], made)
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_settings(self, dropout):
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        value: Any = dropout  # of which isinstance says no more than that it is a number
        if (
            not isinstance(dropout, numbers.Number)
            or isinstance(dropout, bool)
            or not 0 <= value <= 1
        ):
            raise ValueError(
                f"dropout should be a number in range [0, 1], a probability, but got {dropout}"
            )
        if value > 0 and self.num_layers == 1:
            warn(
                f"dropout={dropout} changes nothing: it is done between layers, and num_layers is "
                f"{self.num_layers}",
            )
        if not isinstance(self.hidden_size, int):
            raise TypeError(
                f"hidden_size should be of type int, got: {type(self.hidden_size).__name__}"
            )
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError(
                f"num_layers must be greater than zero: {self.mode} has at least a layer, not "
                f"{self.num_layers}"
            )
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero (no projection), not "
                f"{self.proj_size}"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError(
                f"proj_size has to be smaller than hidden_size, from which it is projected: "
                f"{self.proj_size} and {self.hidden_size}"
            )
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """A no-op: parameters are used where they are."""

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        _draw_parameters(self)

    def _states_shape(self, batch: int, width: int) -> tuple[int, int, int]:
        return (self.num_layers * (2 if self.bidirectional else 1), batch, width)

    def check_input(self, input, batch_sizes):
        """Raise ValueError or RuntimeError if the input does not fit."""
        dtype = self._flat_weights[0].dtype
        if dtype != input.dtype and not rushlight.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match that of the weights ({dtype}): "
                "convert one of them with `.to`"
            )
        dims, width = 3 if batch_sizes is None else 2, input.shape[-1]
        if dims != input.dim():
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if width != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size {self.input_size}, but is {width}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the hidden state for this input."""
        if batch_sizes is not None:
            # In a trace it stays a value of the program.
            batch = batch_sizes[0] if rushlight.jit.is_tracing() else int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self._states_shape(batch, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx, expected_hidden_size, msg: str = "Expected hidden size {}, got {}"
    ):
        """Raise RuntimeError if the state has another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check input and state together."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """Permute the sequences of a state (None: unchanged)."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _run(self, input, hx):
        """Output and states, as the subclass's op gives them: the common part of `forward`."""
        packed = isinstance(input, PackedSequence)
        if packed:
            data, batch_sizes, sorted_indices, unsorted_indices = input
            batched = True
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, or packed, but it is "
                    f"{input.dim()}D"
                )
            data, batch_sizes, sorted_indices, unsorted_indices = input, None, None, None
            batched = input.dim() == 3
            if not batched:
                data = input.unsqueeze(0 if self.batch_first else 1)
        hx = self._settle_state(data, hx, batched, batch_sizes, packed)
        hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        settings = (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        function = getattr(ops, self.mode.lower())
        if packed:
            rows, *states = function(data, batch_sizes, hx, *settings)
            output: Any = PackedSequence(rows, batch_sizes, sorted_indices, unsorted_indices)
        else:
            output, *states = function(data, hx, *settings, self.batch_first)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            states = [state.squeeze(1) for state in states]
        return output, states, unsorted_indices

    def _settle_state(
        self,
        data: Tensor,
        hx: Tensor | None,
        batched: bool,
        batch_sizes: Tensor | None,
        packed: bool,
    ) -> Tensor:
        """The state as a batch has it, zeros where none is given."""
        if hx is None:
            shape = self.get_expected_hidden_size(data, batch_sizes)
            return rushlight.zeros(shape, dtype=data.dtype, device=data.device)
        if not packed:
            _check_dims_of_state(batched, hx=hx)
        return hx if batched else hx.unsqueeze(1)

    def forward(self, input: Tensor | PackedSequence, hx=None):
        """The outputs of the last layer and the last hidden states of all.

        Args:
            input: (length, batch, input_size), or as `batch_first` says, or (length, input_size),
                or a `PackedSequence`.
            hx: (layers * directions, batch, width), zeros by default.
        """
        output, (hidden,), unsorted_indices = self._run(input, hx)
        return output, self.permute_hidden(hidden, unsorted_indices)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + _settings_text(
            self,
            proj_size=0,
            num_layers=1,
            bias=True,
            batch_first=False,
            dropout=0,
            bidirectional=False,
        )

    def __setstate__(self, state):
        state.pop("_flat_weights", None)
        state.pop("_flat_weight_refs", None)
        state.setdefault("proj_size", 0)
        super().__setstate__(state)


class RNN(RNNBase):
    """tanh(W_ih x + b_ih + W_hh h + b_hh) for each step, or relu with nonlinearity="relu".

    Args:
        input_size: width of the input.
        hidden_size: width of the state.
        num_layers: how many layers lie on top of each other.
        nonlinearity: "tanh" or "relu".
        bias: whether the layers have biases.
        batch_first: inputs and outputs are (batch, length, width), not (length, batch, width).
        dropout: probability with which outputs of all layers but the last are zeroed in training.
        bidirectional: run each layer in both directions and join the outputs.
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        others: nothing; `proj_size` is for LSTM.

    Shape: input (length, batch, input_size), state (layers * directions, batch, hidden_size),
    output (length, batch, directions * hidden_size); without a batch, this dimension is missing.

    Example:
        >>> layer = torch.nn.RNN(3, 4)
        >>> output, hidden = layer(torch.zeros(5, 2, 3))
        >>> output.shape, hidden.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
        **others: Any,
    ) -> None:
        _refuse("RNN", others)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class GRU(RNNBase):
    """Gated recurrent units.

    r = σ(W_ir x + W_hr h), z = σ(W_iz x + W_hz h), n = tanh(W_in x + r * (W_hn h)),
    h' = (1 - z) * n + z * h, with biases.

    Args:
        input_size: width of the input.
        hidden_size: width of the state.
        num_layers: how many layers lie on top of each other.
        bias: whether the layers have biases.
        batch_first: inputs and outputs are (batch, length, width), not (length, batch, width).
        dropout: probability with which outputs of all layers but the last are zeroed in training.
        bidirectional: run each layer in both directions and join the outputs.
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        others: nothing; `proj_size` is for LSTM.

    Shape: input (length, batch, input_size), state (layers * directions, batch, hidden_size),
    output (length, batch, directions * hidden_size); without a batch, this dimension is missing.

    Example:
        >>> layer = torch.nn.GRU(3, 4)
        >>> output, hidden = layer(torch.zeros(5, 2, 3))
        >>> output.shape, hidden.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
        **others: Any,
    ) -> None:
        _refuse("GRU", others)
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class LSTM(RNNBase):
    """Long short-term memory.

    i, f, o = σ(W x + U h), g = tanh(W x + U h), c' = f * c + i * g, h' = o * tanh(c'), with
    biases; with `proj_size`, h' is multiplied by `weight_hr`.

    Args:
        input_size: width of the input.
        hidden_size: width of the state.
        num_layers: how many layers lie on top of each other.
        bias: whether the layers have biases.
        batch_first: inputs and outputs are (batch, length, width), not (length, batch, width).
        dropout: probability with which outputs of all layers but the last are zeroed in training.
        bidirectional: run each layer in both directions and join the outputs.
        proj_size: width that the state is projected to; 0 leaves it as it is.
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: input (length, batch, input_size), state (layers * directions, batch, hidden_size),
    output (length, batch, directions * hidden_size); without a batch, this dimension is missing.

    Example:
        >>> layer = torch.nn.LSTM(3, 4)
        >>> output, (hidden, cell) = layer(torch.zeros(5, 2, 3))
        >>> output.shape, cell.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device=device,
            dtype=dtype,
        )

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cell state for this input."""
        batch = self.get_expected_hidden_size(input, batch_sizes)[1]
        return self._states_shape(batch, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _settle_state(self, data, hx, batched, batch_sizes, packed):
        if hx is None:
            shapes = (
                self.get_expected_hidden_size(data, batch_sizes),
                self.get_expected_cell_size(data, batch_sizes),
            )
            return tuple(rushlight.zeros(s, dtype=data.dtype, device=data.device) for s in shapes)
        if not packed:
            if isinstance(hx, Tensor) and len(hx) < 2:
                raise IndexError(
                    "LSTM has two states, (h, c): index 1 is out of bounds of one tensor; a GRU or "
                    "RNN has one"
                )
            _check_dims_of_state(batched, hx=hx[0], cx=hx[1])
        return hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    def forward(self, input: Tensor | PackedSequence, hx=None):
        """The outputs of the last layer and (hidden, cell) states of all; see `RNNBase.forward`."""
        output, states, unsorted_indices = self._run(input, hx)
        return output, self.permute_hidden(tuple(states), unsorted_indices)
