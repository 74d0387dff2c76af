"""Recurrent networks: one op runs a layer over all its steps; layers, directions and dropout are
composed of it.

What the input gives to all steps is one product, made before by `linear`. The kernels stand in
src/cpu/isa/nn/recurrent.cpp; a sequence is either regular or packed (rows of step after step, as
many as `batch_sizes` says, which do not grow).
"""

from gen.table import composite, custom, op

op("_recurrent_layer(Tensor gates, Tensor hidden, Tensor? cell, Tensor weight_hh, Tensor? bias_hh, "
   "Tensor? weight_hr, "
   "int[] batch_sizes, str mode, bool reverse, bool batch_first, bool keep) -> (Tensor output, "
   "Tensor last_hidden, "
   "Tensor last_cell, Tensor kept_gates, Tensor kept_cells)", kernel=custom(), variants="",
   nondiff=("kept_gates", "kept_cells"),
   grad={"gates, hidden, cell, weight_hh, bias_hh, weight_hr":
         "recurrent_layer_backward(grad_output, grad_last_hidden, grad_last_cell, gates, hidden, "
         "cell, weight_hh, "
         "bias_hh, weight_hr, output, kept_gates, kept_cells, batch_sizes, mode, reverse, "
         "batch_first, keep, mask)"},
   doc="The steps of a layer of mode 'lstm', 'gru', 'tanh' or 'relu', given what its input gives "
       "to the gates. With `keep` the values of gates and cells are kept for backward, which "
       "computes them again without.", own=True,
   jvp="twice: its steps are one kernel",
   batch={"gates, hidden, cell":
          "batched_recurrent_layer(gates, hidden, cell, weight_hh, bias_hh, weight_hr, "
          "batch_sizes, mode, reverse, batch_first, keep, batch)",
          "": "slices: each slice has weights of its own"})
op("_recurrent_layer_backward(Tensor grad_output, Tensor grad_hidden, Tensor grad_cell, Tensor "
   "hidden, Tensor? cell, "
   "Tensor weight_hh, Tensor? bias_hh, Tensor? weight_hr, Tensor output, Tensor kept_gates, Tensor "
   "kept_cells, "
   "int[] batch_sizes, str mode, bool reverse, bool batch_first) -> (Tensor grad_gates, Tensor "
   "grad_first_hidden, "
   "Tensor grad_first_cell, Tensor grad_weight_hh, Tensor grad_bias_hh, Tensor grad_weight_hr)",
   kernel=custom(),
   variants="", grad="missing", doc="The gradients of `_recurrent_layer`, backwards through time.",
   own=True,
   batch="slices: each slice has gradients of the weights of its own")

_LAYERS = ("Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
           "bool bidirectional")
for _name, _hidden, _results, _doc in (
    ("lstm", "Tensor[] hx", "(Tensor, Tensor, Tensor)", "Long short-term memory"),
    ("gru", "Tensor hx", "(Tensor, Tensor)", "Gated recurrent units"),
    ("rnn_tanh", "Tensor hx", "(Tensor, Tensor)", "An Elman network with tanh"),
    ("rnn_relu", "Tensor hx", "(Tensor, Tensor)", "An Elman network with relu"),
):
    composite(f"{_name}.input(Tensor input, {_hidden}, {_LAYERS}, bool batch_first) -> {_results}",
              variants="function",
              doc=f"{_doc} over (length, batch, width): outputs and last states.",
              tags=("nondeterministic_seeded",))
    composite(f"{_name}.data(Tensor data, Tensor batch_sizes, {_hidden}, {_LAYERS}) -> {_results}",
              variants="function", doc=f"{_doc} over a packed sequence.",
              tags=("nondeterministic_seeded",))
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
composite(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", variants="function",
          doc="One step of `lstm`: hidden and cell state.")
for _name in ("gru", "rnn_tanh", "rnn_relu"):
    composite(f"{_name}_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", variants="function",
              doc=f"One step of `{_name}`.")
