"""Lowerings of recurrent layers and cells."""

from __future__ import annotations

from typing import Any

from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops

# Of each kind: the op, how many gates there are, and which of PyTorch's is at each place of ONNX's.
_KINDS: dict[str, tuple[str, list[int], dict[str, Any]]] = {
    "lstm": ("LSTM", [0, 3, 1, 2], {}),
    "gru": ("GRU", [1, 0, 2], {"linear_before_reset": 1}),
    "rnn_tanh": ("RNN", [0], {"activation": "Tanh"}),
    "rnn_relu": ("RNN", [0], {"activation": "Relu"}),
}


def _ordered(g: Builder, weight: Value, order: list[int]) -> Value:
    """A weight or bias with its gates in ONNX's order."""
    if len(order) == 1:
        return weight
    gates = g.Split(weight, axis=0, num_outputs=len(order), outputs=len(order))
    return g.Concat(*(gates[i] for i in order), axis=0)


def _stacked(g: Builder, values: list[Value]) -> Value:
    parts = [g.unsqueeze(v, 0) for v in values]
    return g.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]


def _layer(
    g: Builder, kind: str, x: Value, params: list[list[Value]], states: list[Value]
) -> tuple[Value, list[Value]]:
    """One layer in one or both directions; returns its output and its last states."""
    name, order, attributes = _KINDS[kind]
    attributes = dict(attributes)
    directions = len(params)
    activation = attributes.pop("activation", None)
    if activation is not None:
        attributes["activations"] = [activation] * directions
    weights = [_stacked(g, [_ordered(g, p[i], order) for p in params]) for i in (0, 1)]
    bias = None
    if len(params[0]) > 2:
        joined = [g.Concat(*(_ordered(g, b, order) for b in p[2:4]), axis=0) for p in params]
        bias = _stacked(g, joined)
    hidden = params[0][1].sizes[1]
    made = g.op(
        name,
        x,
        *weights,
        bias,
        None,
        *states,
        outputs=1 + len(states),
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
        **attributes,
    )
    # Steps, directions, batch, features: the directions become features.
    out, last = made[0], list(made[1:])
    if directions == 1:
        return g.squeeze(out, 1), last
    out = g.Transpose(out, perm=[0, 2, 1, 3])
    return g.Reshape(out, [0, 0, directions * hidden]), last


def _recurrent(
    g: Builder,
    input: Value,
    states: list[Value],
    params: list[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Value]:
    kind = g.overload.split(".")[1]
    directions = 2 if bidirectional else 1
    per = 4 if has_biases else 2
    if len(params) != per * num_layers * directions:
        raise Unsupported("proj_size: ONNX's LSTM has no projections")
    if train and dropout and num_layers > 1:
        raise Unsupported("dropout between the layers in training mode")
    alone = input.rank == 2
    x = g.unsqueeze(input, 0 if batch_first else 1) if alone else input
    if alone:
        states = [g.unsqueeze(s, 1) for s in states]
    if batch_first:
        x = g.Transpose(x, perm=[1, 0, 2])
    groups = [params[i : i + per] for i in range(0, len(params), per)]
    lasts: list[list[Value]] = []
    for layer in range(num_layers):
        first = layer * directions
        own = [_states_of(g, s, first, directions, num_layers) for s in states]
        x, last = _layer(g, kind, x, groups[first : first + directions], own)
        lasts.append(last)
    if batch_first:
        x = g.Transpose(x, perm=[1, 0, 2])
    ends = [
        g.Concat(*parts, axis=0) if num_layers > 1 else parts[0]
        for parts in zip(*lasts, strict=True)
    ]
    if alone:
        x, ends = g.squeeze(x, 0 if batch_first else 1), [g.squeeze(e, 1) for e in ends]
    return [x, *ends]


def _states_of(g: Builder, state: Value, first: int, directions: int, num_layers: int) -> Value:
    return state if num_layers == 1 else g.slice(state, 0, first, first + directions)


@lowers("aten.lstm.input")
def lstm(g: Builder, input: Value, hx: list[Value], *rest: Any) -> list[Value]:
    return _recurrent(g, input, list(hx), *rest)


@lowers("aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def gru(g: Builder, input: Value, hx: Value, *rest: Any) -> list[Value]:
    return _recurrent(g, input, [hx], *rest)


# ---- cells ----


def _gates(g: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    out = g.MatMul(x, g.swap(weight, 0, 1))
    return out if bias is None else g.Add(out, bias)


@lowers("aten.lstm_cell.default")
def lstm_cell(
    g: Builder,
    input: Value,
    hx: list[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
) -> tuple[Value, Value]:
    hidden, cell = hx
    gates = g.Add(_gates(g, input, w_ih, b_ih), _gates(g, hidden, w_hh, b_hh))
    i, f, c, o = g.Split(gates, axis=-1, num_outputs=4, outputs=4)
    cell = g.Add(g.Mul(g.Sigmoid(f), cell), g.Mul(g.Sigmoid(i), g.Tanh(c)))
    return g.Mul(g.Sigmoid(o), g.Tanh(cell)), cell


@lowers("aten.gru_cell.default")
def gru_cell(
    g: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
) -> Value:
    ir, iz, inew = g.Split(_gates(g, input, w_ih, b_ih), axis=-1, num_outputs=3, outputs=3)
    hr, hz, hnew = g.Split(_gates(g, hx, w_hh, b_hh), axis=-1, num_outputs=3, outputs=3)
    reset, update = g.Sigmoid(g.Add(ir, hr)), g.Sigmoid(g.Add(iz, hz))
    new = g.Tanh(g.Add(inew, g.Mul(reset, hnew)))
    return g.Add(new, g.Mul(update, g.Sub(hx, new)))


@lowers("aten.rnn_tanh_cell.default", "aten.rnn_relu_cell.default")
def rnn_cell(
    g: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
) -> Value:
    total = g.Add(_gates(g, input, w_ih, b_ih), _gates(g, hx, w_hh, b_hh))
    return g.Tanh(total) if "tanh" in g.overload else g.Relu(total)
