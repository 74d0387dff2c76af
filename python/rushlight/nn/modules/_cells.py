"""Cells of RNN, LSTM and GRU: one step of a layer.

Public in `rnn`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C, Tensor
from rushlight._table import ops

from .. import init
from ..parameter import new_parameter
from .module import Module

if TYPE_CHECKING:
    from rushlight.types import Device


def _draw_parameters(module: Module) -> None:
    """New values for all parameters of a layer or cell, from U(-k, k) with k = 1 / √hidden_size."""
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNCellBase(Module):
    """The base of recurrent cells: `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh`.

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        bias: whether there is a bias.
        num_chunks: how many gates a cell has.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Example:
        >>> torch.nn.modules.rnn.RNNCellBase(3, 4, bias=True, num_chunks=1).weight_hh.shape
        torch.Size([4, 4])
    """

    __module__ = "rushlight.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias,
        num_chunks,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        made = {"device": device, "dtype": dtype}
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter((rows, input_size), **made)
        self.weight_hh = new_parameter((rows, hidden_size), **made)
        self.register_parameter("bias_ih", new_parameter(rows, bias, **made))
        self.register_parameter("bias_hh", new_parameter(rows, bias, **made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        _draw_parameters(self)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _run(self, name, input, *states):
        """Input and states as batches, through the op; its results in the input's form."""
        for what, t in zip(("input", "hidden"), (input, *states), strict=False):
            if t is not None and t.dim() not in (1, 2):
                raise ValueError(
                    f"{type(self).__name__}: Expected {what} to be 1D or 2D, but it has "
                    f"{t.dim()} dimensions"
                )
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        settled = []
        for i, state in enumerate(states):
            if state is None:
                state = rushlight.zeros(
                    input.size(0), self.hidden_size, dtype=input.dtype, device=input.device
                )
            elif not batched:
                state = state.unsqueeze(0)
            if state.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size "
                    f"{state.size(0)}"
                )
            if state.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, expected "
                    f"{self.hidden_size}"
                )
            settled.append(state)
        hx = tuple(settled) if len(settled) > 1 else settled[0]
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        made = getattr(ops, name)(input, hx, *weights)
        if batched:
            return made
        return tuple(t.squeeze(0) for t in made) if len(settled) > 1 else made.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of `RNN`: (batch, input_size) and (batch, hidden_size) to the new hidden state.

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        bias: whether there is a bias.
        nonlinearity: "tanh" or "relu".
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: input (N, input_size) and hidden (N, hidden_size), or without N; to the new hidden
        state.

    Example:
        >>> torch.nn.RNNCell(3, 4)(torch.zeros(2, 3)).shape
        torch.Size([2, 4])
    """

    __module__ = "rushlight.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._run(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: an input and (hidden, cell) to the new (hidden, cell).

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        bias: whether there is a bias.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: input (N, input_size), hidden and cell (N, hidden_size), or without N; to the new hidden
        and cell.

    Example:
        >>> hidden, cell = torch.nn.LSTMCell(3, 4)(torch.zeros(2, 3))
        >>> hidden.shape, cell.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    __module__ = "rushlight.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx=None):
        if isinstance(hx, rushlight.Tensor):
            raise TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
        return self._run("lstm_cell", input, *((None, None) if hx is None else hx))


class GRUCell(RNNCellBase):
    """One step of `GRU`: (batch, input_size) and (batch, hidden_size) to the new hidden state.

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        bias: whether there is a bias.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: input (N, input_size) and hidden (N, hidden_size), or without N; to the new hidden
        state.

    Example:
        >>> torch.nn.GRUCell(3, 4)(torch.zeros(2, 3)).shape
        torch.Size([2, 4])
    """

    __module__ = "rushlight.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx=None):
        return self._run("gru_cell", input, hx)
