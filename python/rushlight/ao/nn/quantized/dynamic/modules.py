"""Layers with a weight of codes whose inputs and results are floats: each input is rounded to codes
of its own scale, products are of whole numbers."""

from __future__ import annotations

import functools
from typing import Any

import rushlight
from rushlight import _C, nn
from rushlight._quantized import quantize_per_tensor_dynamic
from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized import modules as quantized
from rushlight.ao.nn.quantized._weights import PackedWeight, integer_weight, steps_of

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]


def _product(x: Any, weight: Any, packed: Any, bias: Any, reduce_range: bool = True) -> Any:
    """x @ weight.T + bias, x rounded to codes of 7 bits, or of 8."""
    x = x.detach().float()
    if packed is not None:
        return _C.ops._int8_linear_dynamic(x, *packed, reduce_range, False, False)
    codes = quantize_per_tensor_dynamic(x, rushlight.quint8, reduce_range)
    whole = codes._codes.double() - codes.q_zero_point()
    sums = whole @ integer_weight(weight).t()
    out = sums.float() * (steps_of(weight)[0] * codes.q_scale())
    return out if bias is None else out + bias.detach()


class Linear(quantized.Linear):
    """A linear layer with a quantised weight and float inputs.

    Args:
        in_features: size of the inputs.
        out_features: size of the results.
        bias_: whether a bias is added.
        dtype: the dtype of the weight, `qint8`.

    Example:
        >>> from rushlight.ao.nn.quantized import dynamic
        >>> dynamic.Linear(4, 2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._qweight.dtype}, qscheme={self._qweight.qscheme()}"
        )

    def forward(self, x, reduce_range: bool = True):
        out = _product(x, self._qweight, self._packed, self._qbias, reduce_range)
        return out.to(x.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer with a `qconfig`."""
        qconfig = getattr(mod, "qconfig", None)
        observer = _weight_observer(qconfig)
        if isinstance(mod, intrinsic.modules._FusedModule):
            mod = mod[0]
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(
            quantized.quantized_weight(observer, mod.weight, use_precomputed_fake_quant),
            quantized._float_bias(mod.bias),
        )
        return made


def _weight_observer(qconfig: Any) -> Any:
    if qconfig is None or qconfig.weight is None:
        raise AssertionError("Input float module must have qconfig defined")
    observer = qconfig.weight()
    if observer.dtype != rushlight.qint8:
        raise RuntimeError(
            "Unsupported dtype specified for dynamic quantized Linear: weights are qint8"
        )
    return observer


# ---- recurrent layers ----


class _Weights(nn.Module):
    """Weights of codes by the float layer's names."""

    def __init__(self) -> None:
        super().__init__()
        self._codes: dict[str, Any] = {}
        self._packed: dict[str, PackedWeight | None] = {}

    def _take(self, mod: Any) -> None:
        for name, value in mod.named_parameters(recurse=False):
            if name.startswith("weight"):
                observer = _weight_observer(getattr(mod, "qconfig", None))
                self._codes[name] = quantized.quantized_weight(observer, value)
            else:
                self._codes[name] = value.detach()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self._codes.items():
            destination[prefix + name] = value

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, *others):
        self._packed.clear()
        for name in self._codes:
            if prefix + name in state_dict:
                self._codes[name] = state_dict.pop(prefix + name)
            elif strict:
                missing.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, *others)

    def _gates(self, x: Any, side: str, suffix: str = "") -> Any:
        """What inputs ("ih") or the state ("hh") give to the gates."""
        name = f"{side}{suffix}"
        weight, bias = self._codes[f"weight_{name}"], self._codes.get(f"bias_{name}")
        if name not in self._packed:
            self._packed[name] = PackedWeight.of(weight, bias)
        return _product(x, weight, self._packed[name], bias)


def _lstm(x: Any, hidden: Any, memory: Any) -> tuple[Any, Any]:
    kept, forgotten, new, out = (x + hidden).chunk(4, -1)
    memory = forgotten.sigmoid() * memory + kept.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


def _gru(x: Any, gates: Any, hidden: Any) -> Any:
    reset_x, update_x, new_x = x.chunk(3, -1)
    reset_h, update_h, new_h = gates.chunk(3, -1)
    update = (update_x + update_h).sigmoid()
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return (1 - update) * new + update * hidden


def _direction(
    inputs: Any, sizes: list[int], first: Any, gates: Any, is_lstm: bool, backwards: bool
) -> tuple[Any, Any]:
    """All steps of one direction: the states of each step, and the last ones.

    Args:
        inputs: what the inputs give to the gates, (rows of all steps, …).
        sizes: the rows of each step, which do not grow.
        first: the states at the beginning, (rows of the first step, …) each.
        gates: what a state gives to the gates.
    """
    parts, steps = inputs.split(sizes), range(len(sizes))
    out: list[Any] = [None] * len(sizes)
    ended: list[Any] = []  # states of rows that have come to their end
    now: Any = tuple(s[: sizes[-1]] for s in first) if backwards else first
    for t in reversed(steps) if backwards else steps:
        size, have = sizes[t], len(now[0])
        if size < have:
            ended.append(tuple(s[size:] for s in now))
            now = tuple(s[:size] for s in now)
        elif size > have:
            more = zip(now, first, strict=True)
            now = tuple(rushlight.cat((s, begin[have:size])) for s, begin in more)
        given = parts[t], gates(now[0])
        now = _lstm(*given, now[1]) if is_lstm else (_gru(*given, now[0]),)
        out[t] = now[0]
    ended.append(now)
    last = tuple(rushlight.cat(each) for each in zip(*reversed(ended), strict=True))
    return rushlight.cat(out), last


def recurrent(
    x: Any,
    sizes: list[int],
    begin: list[Any],
    cells: list[Any],
    bidirectional: bool,
    dropout: float,
) -> tuple[Any, list[Any]]:
    """Layers one above the other: the states of the last one, and the last states of all.

    Args:
        x: inputs, (rows of all steps, size).
        sizes: the rows of each step, which do not grow.
        begin: states (layers and directions, rows, hidden size): of an LSTM two, else one.
        cells: for each layer and direction, what inputs and what a state give to the gates.
        bidirectional: whether each layer goes both ways.
        dropout: the share of zeros between layers.
    """
    ways, ends = 1 + bidirectional, []
    for at in range(0, len(cells), ways):
        outs = []
        for way in range(ways):
            of_inputs, of_state = cells[at + way]
            first = tuple(h[at + way] for h in begin)
            is_lstm = len(begin) == 2
            out, last = _direction(of_inputs(x), sizes, first, of_state, is_lstm, bool(way))
            outs.append(out)
            ends.append(last)
        x = rushlight.cat(outs, -1)
        if dropout and at + ways < len(cells):
            x = nn.functional.dropout(x, dropout, True)
    return x, [rushlight.stack(parts) for parts in zip(*ends, strict=True)]


_SIZES = (
    "input_size",
    "hidden_size",
    "num_layers",
    "bias",
    "batch_first",
    "dropout",
    "bidirectional",
)


class _Layers(_Weights):
    """Layers one above the other, forwards and backwards; sizes as those of the float module."""

    _FLOAT_MODULE: Any
    _lstm: bool

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layers of a float module with a `qconfig`."""
        made = cls()
        for name in _SIZES:
            setattr(made, name, getattr(mod, name))
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError("quantized layers have no projections")
        made._take(mod)
        return made.train(mod.training)

    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        for name in ("batch_first", "bidirectional"):
            if getattr(self, name):
                text += f", {name}=True"
        return text

    def _cells(self):
        ends = ["", "_reverse"][: 1 + self.bidirectional]
        names = [f"_l{layer}{end}" for layer in range(self.num_layers) for end in ends]
        return [
            (
                functools.partial(self._gates, side="ih", suffix=name),
                functools.partial(self._gates, side="hh", suffix=name),
            )
            for name in names
        ]

    def _states(self, x, rows: int, hx: Any) -> list[Any]:
        """The states to begin with, (layers and directions, rows, hidden size) each."""
        if hx is None:
            zeros = x.new_zeros(self.num_layers * (1 + self.bidirectional), rows, self.hidden_size)
            return [zeros] * (1 + self._lstm)
        return list(hx) if self._lstm else [hx]

    def _all(self, x, sizes: list[int], begin: list[Any]) -> tuple[Any, list[Any]]:
        dropout = self.dropout if self.training else 0.0
        return recurrent(x, sizes, begin, self._cells(), self.bidirectional, dropout)

    def _packed_sequence(self, input, hx):
        data, sizes, order, back = input
        begin = self._states(data, int(sizes[0]), hx)
        if order is not None:
            begin = [h.index_select(1, order) for h in begin]
        out, last = self._all(data, sizes.tolist(), begin)
        if back is not None:
            last = [h.index_select(1, back) for h in last]
        made = nn.utils.rnn.PackedSequence(out, sizes, order, back)
        return made, (tuple(last) if self._lstm else last[0])

    def forward(self, input, hx=None):
        if isinstance(input, nn.utils.rnn.PackedSequence):
            return self._packed_sequence(input, hx)
        single = input.dim() == 2
        x = input.unsqueeze(0 if self.batch_first else 1) if single else input
        x = x.transpose(0, 1) if self.batch_first else x
        steps, rows = x.shape[:2]
        begin = self._states(x, rows, hx)
        if single and hx is not None:
            begin = [h.unsqueeze(1) for h in begin]
        out, last = self._all(x.flatten(0, 1), [rows] * steps, begin)
        last = [h.squeeze(1) if single else h for h in last]
        x = out.unflatten(0, (steps, rows))
        x = x.transpose(0, 1) if self.batch_first else x
        x = x.squeeze(0 if self.batch_first else 1) if single else x
        return x, (tuple(last) if self._lstm else last[0])


class LSTM(_Layers):
    """`nn.LSTM` with quantised weights; made by `from_float`.

    For an example see `ao.quantization.quantize_dynamic`.
    """

    _FLOAT_MODULE = nn.LSTM
    _lstm = True


class GRU(_Layers):
    """`nn.GRU` with quantised weights; made by `from_float`.

    For an example see `ao.quantization.quantize_dynamic`.
    """

    _FLOAT_MODULE = nn.GRU
    _lstm = False


class _Cell(_Weights):
    input_size: int
    hidden_size: int

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The cell of a float one with a `qconfig`."""
        made = cls()
        made.input_size, made.hidden_size = mod.input_size, mod.hidden_size
        made.nonlinearity = getattr(mod, "nonlinearity", "tanh")
        made._take(mod)
        return made

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"

    def _zeros(self, input):
        return input.new_zeros(input.shape[0], self.hidden_size)


class LSTMCell(_Cell):
    """`nn.LSTMCell` with quantised weights; made by `from_float`.

    For an example see `ao.quantization.quantize_dynamic`.
    """

    def forward(self, input, hx=None):
        hidden, memory = hx if hx is not None else (self._zeros(input),) * 2
        return _lstm(self._gates(input, "ih"), self._gates(hidden, "hh"), memory)


class GRUCell(_Cell):
    """`nn.GRUCell` with quantised weights; made by `from_float`.

    For an example see `ao.quantization.quantize_dynamic`.
    """

    def forward(self, input, hx=None):
        hidden = self._zeros(input) if hx is None else hx
        return _gru(self._gates(input, "ih"), self._gates(hidden, "hh"), hidden)


class RNNCell(_Cell):
    """`nn.RNNCell` with quantised weights; made by `from_float`.

    For an example see `ao.quantization.quantize_dynamic`.
    """

    nonlinearity: str

    def forward(self, input, hx=None):
        hidden = self._zeros(input) if hx is None else hx
        total = self._gates(input, "ih") + self._gates(hidden, "hh")
        return total.tanh() if self.nonlinearity == "tanh" else total.relu()
