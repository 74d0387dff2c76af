"""Recurrent layers as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


class RNNBase:
    def _expected(self, batch: int, width: int) -> List[int]:
        directions = 2 if self.bidirectional else 1
        return [self.num_layers * directions, batch, width]

    def _check_input(self, input: Tensor) -> None:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"the input has {input.dim()} dimensions, neither 2 nor 3")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def _batch_dim(self) -> int:
        return 0 if self.batch_first else 1

    def _batched(self, input: Tensor) -> Tensor:
        self._check_input(input)
        return input if input.dim() == 3 else input.unsqueeze(self._batch_dim())

    def _zeros(self, data: Tensor, batch: int, width: int) -> Tensor:
        return torch.zeros(self._expected(batch, width), dtype=data.dtype, device=data.device)

    def _state(self, hx: Optional[Tensor], input: Tensor, data: Tensor, width: int) -> Tensor:
        batch = data.size(self._batch_dim())
        if hx is None:
            return self._zeros(data, batch, width)
        state = hx if input.dim() == 3 else hx.unsqueeze(1)
        expected = self._expected(batch, width)
        if state.size() != expected:
            raise RuntimeError(f"Expected hidden size {expected}, got {state.size()}")
        return state

    def _packed_state(
        self, hx: Optional[Tensor], data: Tensor, batch: int, width: int, order: Optional[Tensor]
    ) -> Tensor:
        return self._zeros(data, batch, width) if hx is None else self._permuted(hx, order)

    def _permuted(self, state: Tensor, order: Optional[Tensor]) -> Tensor:
        return state if order is None else state.index_select(1, order)


class RNN:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        data = self._batched(input)
        state = self._state(hx, input, data, self.hidden_size)
        if self.mode == "RNN_TANH":
            output, hidden = torch.rnn_tanh(
                data,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, hidden = torch.rnn_relu(
                data,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        if input.dim() == 2:
            return output.squeeze(self._batch_dim()), hidden.squeeze(1)
        return output, hidden

    def forward__1(
        self, input: PackedSequence, hx: Optional[Tensor] = None
    ) -> Tuple[PackedSequence, Tensor]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        self._check_input(data)
        batch = int(batch_sizes[0])
        state = self._packed_state(hx, data, batch, self.hidden_size, sorted_indices)
        if self.mode == "RNN_TANH":
            rows, hidden = torch.rnn_tanh(
                data,
                batch_sizes,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
            )
        else:
            rows, hidden = torch.rnn_relu(
                data,
                batch_sizes,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
            )
        output = PackedSequence(rows, batch_sizes, sorted_indices, unsorted_indices)
        return output, self._permuted(hidden, unsorted_indices)


class GRU:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        data = self._batched(input)
        state = self._state(hx, input, data, self.hidden_size)
        output, hidden = torch.gru(
            data,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if input.dim() == 2:
            return output.squeeze(self._batch_dim()), hidden.squeeze(1)
        return output, hidden

    def forward__1(
        self, input: PackedSequence, hx: Optional[Tensor] = None
    ) -> Tuple[PackedSequence, Tensor]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        self._check_input(data)
        batch = int(batch_sizes[0])
        state = self._packed_state(hx, data, batch, self.hidden_size, sorted_indices)
        rows, hidden = torch.gru(
            data,
            batch_sizes,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        output = PackedSequence(rows, batch_sizes, sorted_indices, unsorted_indices)
        return output, self._permuted(hidden, unsorted_indices)


class LSTM:
    def _state_width(self) -> int:
        return self.proj_size if self.proj_size > 0 else self.hidden_size

    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        data = self._batched(input)
        first = None if hx is None else hx[0]
        second = None if hx is None else hx[1]
        state = self._state(first, input, data, self._state_width())
        cell = self._state(second, input, data, self.hidden_size)
        output, hidden, last = torch.lstm(
            data,
            [state, cell],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if input.dim() == 2:
            return output.squeeze(self._batch_dim()), (hidden.squeeze(1), last.squeeze(1))
        return output, (hidden, last)

    def forward__1(
        self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        self._check_input(data)
        batch = int(batch_sizes[0])
        width = self._state_width()
        first = None if hx is None else hx[0]
        second = None if hx is None else hx[1]
        state = self._packed_state(first, data, batch, width, sorted_indices)
        cell = self._packed_state(second, data, batch, self.hidden_size, sorted_indices)
        rows, hidden, last = torch.lstm(
            data,
            batch_sizes,
            [state, cell],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        output = PackedSequence(rows, batch_sizes, sorted_indices, unsorted_indices)
        return output, (
            self._permuted(hidden, unsorted_indices),
            self._permuted(last, unsorted_indices),
        )


class RNNCellBase:
    def _batch(self, input: Tensor) -> Tensor:
        if input.dim() != 1 and input.dim() != 2:
            raise ValueError(f"the input has {input.dim()} dimensions, neither 1 nor 2")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(-1)} expected "
                f"{self.input_size}"
            )
        return input if input.dim() == 2 else input.unsqueeze(0)

    def _state(self, data: Tensor, hx: Optional[Tensor]) -> Tensor:
        if hx is None:
            return torch.zeros(
                [data.size(0), self.hidden_size], dtype=data.dtype, device=data.device
            )
        return hx if hx.dim() == 2 else hx.unsqueeze(0)


class RNNCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        data = self._batch(input)
        state = self._state(data, hx)
        if self.nonlinearity == "tanh":
            out = torch.rnn_tanh_cell(
                data, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
            )
        else:
            out = torch.rnn_relu_cell(
                data, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
            )
        return out if input.dim() == 2 else out.squeeze(0)


class GRUCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        data = self._batch(input)
        state = self._state(data, hx)
        out = torch.gru_cell(
            data, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        return out if input.dim() == 2 else out.squeeze(0)


class LSTMCell:
    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tensor]:
        data = self._batch(input)
        if hx is None:
            state = self._state(data, None)
            cell = state
        else:
            state = self._state(data, hx[0])
            cell = self._state(data, hx[1])
        hidden, last = torch.lstm_cell(
            data, [state, cell], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        if input.dim() == 2:
            return hidden, last
        return hidden.squeeze(0), last.squeeze(0)
