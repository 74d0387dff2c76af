"""Samples of recurrent layers: layers, directions, projections, no biases, packed and single steps.

The batch of the layouts' test is the middle dimension, so inputs that are lists of tensors stay as they are.
"""


def _parameters(gates, inputs, hidden, layers=1, directions=1, biases=True, projection=0):
    made = []
    width = projection or hidden
    for layer in range(layers):
        given = inputs if layer == 0 else width * directions
        for _ in range(directions):
            made += [f"x({gates * hidden}, {given})", f"x({gates * hidden}, {width})"]
            made += [f"x({gates * hidden})"] * 2 if biases else []
            made += [f"x({projection}, {hidden})"] if projection else []
    return "[" + ", ".join(made) + "]"


def _layer(gates, state, inputs=2, hidden=2, length=3, batch=2, layers=1, directions=1, biases=True, projection=0,
           batch_first=False):
    image = f"x({batch}, {length}, {inputs})" if batch_first else f"x({length}, {batch}, {inputs})"
    states = layers * directions
    hx = f"x({states}, {batch}, {projection or hidden})"
    if state == "cell":
        hx = f"[{hx}, x({states}, {batch}, {hidden})]"
    params = _parameters(gates, inputs, hidden, layers, directions, biases, projection)
    return f"{image}, {hx}, {params}, {biases}, {layers}, 0.0, False, {directions == 2}, {batch_first}"


def _packed(gates, state, inputs=2, hidden=2, directions=1):
    hx = f"x({directions}, 3, {hidden})"
    if state == "cell":
        hx = f"[{hx}, x({directions}, 3, {hidden})]"
    params = _parameters(gates, inputs, hidden, 1, directions)
    return f"x(6, {inputs}), m.tensor([3, 2, 1], device='cpu'), {hx}, {params}, True, 1, 0.0, False, {directions == 2}"


def _layers(gates, state):
    return [
        _layer(gates, state, inputs=1, hidden=1, length=2, batch=1),
        _layer(gates, state, biases=False, length=2, batch=1, inputs=1),
        _layer(gates, state, layers=2, directions=2),
        _layer(gates, state, batch_first=True),
        _layer(gates, state, hidden=37, batch=33, inputs=5),
        _layer(gates, state, hidden=64, batch=3, length=2, directions=2),
    ]


def _cells(gates):
    return [
        f"x(2, 3), x(2, 2), x({gates * 2}, 3), x({gates * 2}, 2), x({gates * 2}), x({gates * 2})",
        f"x(1, 1), x(1, 1), x({gates}, 1), x({gates}, 1)",
        f"x(3, 4), x(3, 40), x({gates * 40}, 4), x({gates * 40}, 40)",
    ]


SAMPLES = {
    "lstm.input": [
        *_layers(4, "cell"),
        _layer(4, "cell", hidden=3, projection=2),
        _layer(4, "cell", hidden=2, projection=1, inputs=1, batch=1, length=2, biases=False),
        _layer(4, "cell", hidden=40, projection=35, batch=2),
    ],
    "gru.input": _layers(3, "hidden"),
    "rnn_tanh.input": _layers(1, "hidden"),
    "rnn_relu.input": _layers(1, "hidden"),
    "lstm.data": [_packed(4, "cell"), _packed(4, "cell", directions=2), _packed(4, "cell", hidden=1, inputs=1)],
    "gru.data": [_packed(3, "hidden"), _packed(3, "hidden", directions=2), _packed(3, "hidden", hidden=1, inputs=1)],
    "rnn_tanh.data": [_packed(1, "hidden"), _packed(1, "hidden", directions=2)],
    "rnn_relu.data": [_packed(1, "hidden", directions=2)],
    "lstm_cell": [
        "x(2, 3), [x(2, 2), x(2, 2)], x(8, 3), x(8, 2), x(8), x(8)",
        "x(1, 1), [x(1, 1), x(1, 1)], x(4, 1), x(4, 1)",
    ],
    "gru_cell": _cells(3),
    "rnn_tanh_cell": _cells(1),
    "rnn_relu_cell": _cells(1),
}
DTYPES = dict.fromkeys(SAMPLES, "floating")
LOOSER = {name: 10 for name in SAMPLES if not name.endswith("cell")}  # each step rounds what the next one takes
_MODES = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "tanh", "rnn_relu": "relu"}
_PARAMETERS = "hx, params, has_biases, num_layers, bidirectional"
REFERENCES = {
    **{f"{name}.input": f"recurrent_input({mode!r}, input, {_PARAMETERS}, batch_first)" for name, mode in _MODES.items()},
    **{f"{name}.data": f"recurrent_data({mode!r}, data, batch_sizes, {_PARAMETERS})" for name, mode in _MODES.items()},
    **{f"{name}_cell": f"cell({mode!r}, input, hx, w_ih, w_hh, b_ih, b_hh)" for name, mode in _MODES.items()},
}
ERRORS = {
    "lstm.input": [
        ("x(3, 2, 2), [x(1, 2, 2)], [x(8, 2), x(8, 2)], False, 1, 0.0, False, False, False", RuntimeError, "expects two hidden states"),
        ("x(3, 2, 2), [x(1, 2, 2), x(1, 2, 2)], [x(8, 2)], False, 1, 0.0, False, False, False", RuntimeError, "incorrect number of RNN parameters"),
        ("x(0, 2, 2), [x(1, 2, 2), x(1, 2, 2)], [x(8, 2), x(8, 2)], False, 1, 0.0, False, False, False", RuntimeError, "sequence length larger than 0"),
        ("x(3, 2, 2), [x(1, 2, 3), x(1, 2, 2)], [x(8, 2), x(8, 2)], False, 1, 0.0, False, False, False", RuntimeError, "expected hidden state"),
        ("x(3, 2, 2), [x(1, 2, 2), x(1, 2, 2)], [x(7, 2), x(7, 2)], False, 1, 0.0, False, False, False", RuntimeError, "expected matrices"),
    ],
    "gru.data": [
        ("x(3, 2), m.tensor([1, 2], device='cpu'), x(1, 1, 2), [x(6, 2), x(6, 2)], False, 1, 0.0, False, False", RuntimeError, "must not grow"),
        ("x(3, 2), m.tensor([2, 2], device='cpu'), x(1, 2, 2), [x(6, 2), x(6, 2)], False, 1, 0.0, False, False", RuntimeError, "expected gates"),
    ],
    "gru_cell": [("x(2, 3), x(2, 2), x(6, 4), x(6, 2)", RuntimeError, "inconsistent input_size: got 3 expected 4")],
}
SKIPS = {(name, "meta"): "the sizes of a packed batch are read from a tensor" for name in SAMPLES if name.endswith(".data")}
SKIPS |= {(f"rnn_{name}.input", "device"): "rounding grows from step to step" for name in ("tanh", "relu")}
SKIPS |= {
    (name, "parity"): "PyTorch rounds each sum to 16 bits; tests/parity/test_layers.py compares in float64"
    for name in SAMPLES
    if name.endswith(".input")
}
