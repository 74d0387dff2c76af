// Recurrent networks above the kernel of a layer: the contract, the derivative that has
// derivatives, and layers, directions, dropout and single steps.
#include <string>

#include <rushlight/autocast.h>
#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/integers_in.h"

namespace rushlight {

namespace {

int64_t gates_of(std::string_view mode) {
  RL_CHECK_VALUE(mode == "lstm" || mode == "gru" || mode == "tanh" || mode == "relu",
                 "recurrent layer: unknown mode '", mode, "'");
  return mode == "lstm" ? 4 : mode == "gru" ? 3 : 1;
}

struct LayerSizes {
  int64_t rows;
  int64_t batch;
  int64_t units;
  int64_t hidden;
  int64_t gates;
};

void check_parameter(const char* name, const Tensor& t, ScalarType dtype,
                     std::initializer_list<int64_t> sizes) {
  const DimVector wanted = sizes;
  RL_CHECK(t.sizes() == IntArrayRef(wanted), "recurrent layer: expected ", name, " of shape ",
           IntArrayRef(wanted), ", got ", t.sizes());
  RL_CHECK(t.dtype() == dtype, "recurrent layer: expected ", name, " of dtype ", dtype, ", got ",
           t.dtype());
}

LayerSizes check_layer(ScalarType dtype, const Tensor& hidden, const Tensor& cell,
                       const Tensor& weight_hh, const Tensor& bias_hh, const Tensor& weight_hr,
                       IntArrayRef batch_sizes, std::string_view mode, bool batch_first) {
  if (!is_floating(dtype)) {
    dtype_not_implemented("recurrent layer", dtype);
  }
  LayerSizes z{};
  z.gates = gates_of(mode);
  RL_CHECK(!batch_sizes.empty(), "a recurrent layer needs a sequence length larger than 0");
  z.batch = batch_sizes[0];
  int64_t last = z.batch;
  for (const int64_t n : batch_sizes) {
    RL_CHECK(n >= 0 && n <= last, "recurrent layer: batch_sizes must not grow, got ", batch_sizes);
    RL_CHECK(!batch_first || n == last, "recurrent layer: batch_first expects batches of one size");
    last = n;
    RL_CHECK(!__builtin_add_overflow(z.rows, n, &z.rows),
             "recurrent layer: the sum of batch_sizes overflows, got ", batch_sizes);
  }
  RL_CHECK(hidden.dim() == 2 && weight_hh.dim() == 2 && weight_hh.size(0) % z.gates == 0,
           "recurrent layer: expected matrices, got a hidden state of shape ", hidden.sizes(),
           " and weights of shape ", weight_hh.sizes());
  z.units = weight_hh.size(0) / z.gates;
  z.hidden = weight_hh.size(1);
  const bool lstm = mode == "lstm";
  RL_CHECK(weight_hr.defined() ? lstm : z.hidden == z.units, "recurrent layer: weight_hh of shape ",
           weight_hh.sizes(), " does not fit mode '", mode, "'");
  RL_CHECK(cell.defined() == lstm, "recurrent layer: a cell state belongs to the lstm alone");
  check_parameter("hidden state", hidden, dtype, {z.batch, z.hidden});
  check_parameter("weight_hh", weight_hh, dtype, {z.gates * z.units, z.hidden});
  if (lstm) {
    check_parameter("cell state", cell, dtype, {z.batch, z.units});
  }
  if (bias_hh.defined()) {
    check_parameter("bias_hh", bias_hh, dtype, {z.gates * z.units});
  }
  if (weight_hr.defined()) {
    check_parameter("weight_hr", weight_hr, dtype, {z.hidden, z.units});
  }
  return z;
}

DimVector saved_gate_sizes(const LayerSizes& z, bool keep) {
  return {keep && z.gates > 1 ? z.rows : 0, 4, z.units};
}

}  // namespace

namespace shape {

OutSpecs<5> _recurrent_layer(Tensor& gates, Tensor& hidden, Tensor& cell, Tensor& weight_hh,
                             Tensor& bias_hh, Tensor& weight_hr, DimVector& batch_sizes,
                             std::string& mode, bool&, bool& batch_first, bool& keep) {
  const ScalarType dtype = gates.dtype();
  const LayerSizes z = check_layer(dtype, hidden, cell, weight_hh, bias_hh, weight_hr, batch_sizes,
                                   mode, batch_first);
  check_parameter("gates", gates, dtype, {z.rows, z.gates * z.units});
  for (Tensor* t : {&gates, &hidden, &cell, &weight_hh, &bias_hh, &weight_hr}) {
    *t = t->defined() ? contiguous_raw(*t) : *t;
  }
  const ScalarType kept = accumulation_dtype(gates);
  const bool lstm = mode == "lstm";
  return {OutSpec{{z.rows, z.hidden}, dtype}, OutSpec{{z.batch, z.hidden}, dtype},
          OutSpec{{lstm ? z.batch : 0, z.units}, dtype}, OutSpec{saved_gate_sizes(z, keep), kept},
          OutSpec{{lstm && keep ? z.rows : 0, z.units}, kept}};
}

OutSpecs<6> _recurrent_layer_backward(Tensor& grad_output, Tensor& grad_hidden, Tensor& grad_cell,
                                      Tensor& hidden, Tensor& cell, Tensor& weight_hh,
                                      Tensor& bias_hh, Tensor& weight_hr, Tensor& output,
                                      Tensor& kept_gates, Tensor& kept_cells,
                                      DimVector& batch_sizes, std::string& mode, bool&,
                                      bool& batch_first) {
  const ScalarType dtype = output.dtype();
  const LayerSizes z = check_layer(dtype, hidden, cell, weight_hh, bias_hh, weight_hr, batch_sizes,
                                   mode, batch_first);
  const bool lstm = mode == "lstm";
  check_parameter("output", output, dtype, {z.rows, z.hidden});
  check_parameter("grad_output", grad_output, dtype, {z.rows, z.hidden});
  check_parameter("grad_hidden", grad_hidden, dtype, {z.batch, z.hidden});
  check_parameter("grad_cell", grad_cell, dtype, {lstm ? z.batch : 0, z.units});
  const DimVector kept = saved_gate_sizes(z, true);
  check_parameter("kept_gates", kept_gates, accumulation_dtype(output),
                  {kept[0], kept[1], kept[2]});
  check_parameter("kept_cells", kept_cells, accumulation_dtype(output),
                  {lstm ? z.rows : 0, z.units});
  for (Tensor* t : {&grad_output, &grad_hidden, &grad_cell, &hidden, &cell, &weight_hh, &weight_hr,
                    &output, &kept_gates, &kept_cells}) {
    *t = t->defined() ? contiguous_raw(*t) : *t;
  }
  const DimVector projection = weight_hr.defined() ? DimVector{z.hidden, z.units} : DimVector{0};
  return {OutSpec{{z.rows, z.gates * z.units}, dtype},   OutSpec{hidden.sizes(), dtype},
          OutSpec{{lstm ? z.batch : 0, z.units}, dtype}, OutSpec{weight_hh.sizes(), dtype},
          OutSpec{{z.gates * z.units}, dtype},           OutSpec{projection, dtype}};
}

}  // namespace shape

namespace {

// One step over ordinary ops: the new hidden state, and the cell state of the lstm.
std::pair<Tensor, Tensor> step_by_ops(const Tensor& gates, const Tensor& hidden, const Tensor& cell,
                                      const Tensor& weight_hh, const Tensor& bias_hh,
                                      const Tensor& weight_hr, std::string_view mode) {
  const Tensor given = rushlight::linear(hidden, weight_hh, bias_hh);
  if (mode == "tanh" || mode == "relu") {
    const Tensor sum = gates.add(given);
    return {mode == "tanh" ? sum.tanh() : sum.relu(), Tensor()};
  }
  if (mode == "gru") {
    const std::vector<Tensor> x = gates.chunk(3, 1);
    const std::vector<Tensor> h = given.chunk(3, 1);
    const Tensor reset = x[0].add(h[0]).sigmoid();
    const Tensor update = x[1].add(h[1]).sigmoid();
    const Tensor fresh = x[2].add(reset.mul(h[2])).tanh();
    return {fresh.add(update.mul(hidden.sub(fresh))), Tensor()};
  }
  const std::vector<Tensor> g = gates.add(given).chunk(4, 1);
  const Tensor next = g[1].sigmoid().mul(cell).add(g[0].sigmoid().mul(g[2].tanh()));
  const Tensor made = g[3].sigmoid().mul(next.tanh());
  return {weight_hr.defined() ? rushlight::linear(made, weight_hr) : made, next};
}

bool has_batched(TensorList tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& t) { return t.defined() && batching::level_of(t) > 0; });
}

// The layer over ordinary ops: output, last hidden and last cell state.
std::vector<Tensor> layer_by_ops(const Tensor& gates, const Tensor& hidden, const Tensor& cell,
                                 const Tensor& weight_hh, const Tensor& bias_hh,
                                 const Tensor& weight_hr, IntArrayRef batch_sizes,
                                 std::string_view mode, bool reverse, bool batch_first) {
  const int64_t steps = static_cast<int64_t>(batch_sizes.size());
  const bool lstm = mode == "lstm";
  std::vector<Tensor> given;
  if (batch_first) {
    given = gates.unflatten(0, {batch_sizes[0], steps}).unbind(1);
  } else {
    given = gates.split_with_sizes(batch_sizes, 0);
  }
  // States of all sequences; those that have ended keep their last one.
  Tensor h = hidden;
  Tensor c = cell;
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t step = 0; step < steps; step++) {
    const size_t t = static_cast<size_t>(reverse ? steps - 1 - step : step);
    const int64_t n = batch_sizes[t];
    const auto first = [&](const Tensor& s) { return s.defined() ? s.narrow(0, 0, n) : s; };
    const auto append_rest = [&](const Tensor& made, const Tensor& before) {
      const int64_t rest = before.size(0) - n;
      return rest == 0 ? made : rushlight::cat({made, before.narrow(0, n, rest)}, 0);
    };
    const auto [made, next] =
        step_by_ops(given[t], first(h), first(c), weight_hh, bias_hh, weight_hr, mode);
    outputs[t] = made;
    h = append_rest(made, h);
    c = lstm ? append_rest(next, c) : c;
  }
  const Tensor output =
      batch_first ? rushlight::stack(outputs, 1).flatten(0, 1) : rushlight::cat(outputs, 0);
  return {output, h, lstm ? c : Tensor()};
}

}  // namespace

using SixTensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

SixTensors recurrent_layer_backward(const Tensor& grad_output, const Tensor& grad_hidden,
                                    const Tensor& grad_cell, const Tensor& gates,
                                    const Tensor& hidden, const Tensor& cell,
                                    const Tensor& weight_hh, const Tensor& bias_hh,
                                    const Tensor& weight_hr, const Tensor& output,
                                    const Tensor& kept_gates, const Tensor& kept_cells,
                                    IntArrayRef batch_sizes, std::string_view mode, bool reverse,
                                    bool batch_first, bool keep, std::array<bool, 6> mask) {
  std::array<Tensor, 6> result;
  // Under vmap each slice has gradients of the weights of its own, which the kernel would add up.
  if (!forward::is_differentiated(grad_output, grad_hidden, grad_cell, gates, hidden, cell,
                                  weight_hh, bias_hh, weight_hr) &&
      !has_batched({grad_output, grad_hidden, grad_cell, gates, hidden, cell, weight_hh, bias_hh,
                    weight_hr})) {
    std::pair<Tensor, Tensor> kept = {kept_gates, kept_cells};
    if (!keep) {
      auto again = _recurrent_layer(gates, hidden, cell, weight_hh, bias_hh, weight_hr, batch_sizes,
                                    mode, reverse, batch_first, true);
      kept = {std::get<3>(again), std::get<4>(again)};
    }
    auto [g, h, c, w, b, r] = _recurrent_layer_backward(
        grad_output, grad_hidden, grad_cell, hidden, cell, weight_hh, bias_hh, weight_hr, output,
        kept.first, kept.second, batch_sizes, mode, reverse, batch_first);
    result = {g, h, c, w, b, r};
  } else {
    // The same once more over ops that have second derivatives.
    // Each input under a new name: one may depend on another, and what passes there is not ours.
    const bool recorded = grad_enabled();
    const GradMode recording(true);
    std::array<Tensor, 6> inputs = {gates, hidden, cell, weight_hh, bias_hh, weight_hr};
    for (Tensor& t : inputs) {
      if (t.defined()) {
        t = begin_transform(t);
      }
    }
    std::vector<Tensor> outputs =
        layer_by_ops(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], batch_sizes,
                     mode, reverse, batch_first);
    std::vector<Tensor> grads = {grad_output, grad_hidden};
    if (mode == "lstm") {
      grads.push_back(grad_cell);
    } else {
      outputs.pop_back();
    }
    std::vector<Tensor> wanted;
    for (size_t i = 0; i < inputs.size(); i++) {
      if (mask[i]) {
        wanted.push_back(inputs[i]);
      }
    }
    const std::vector<Tensor> made =
        autograd::grad(outputs, wanted, grads, /*retain_graph=*/true, /*create_graph=*/recorded,
                       /*allow_unused=*/true);
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); i++) {
      if (mask[i]) {
        result[i] = made[next++];
      }
    }
  }
  for (size_t i = 0; i < result.size(); i++) {
    result[i] = mask[i] ? result[i] : Tensor();
  }
  return {result[0], result[1], result[2], result[3], result[4], result[5]};
}

// ---- layers and directions ----

namespace {

struct Stack {
  std::string_view mode;
  TensorList params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool batch_first;  // of the rows

  bool lstm() const { return mode == "lstm"; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct Parameters {
  Tensor weight_ih;
  Tensor weight_hh;
  Tensor bias_ih;
  Tensor bias_hh;
  Tensor weight_hr;
};

// Parameters of one direction of one layer.
Parameters parameters_at(const Stack& s, int64_t cell) {
  const size_t all = static_cast<size_t>(s.layers * s.directions());
  const size_t each = s.params.size() / all;
  const TensorList mine = s.params.slice(static_cast<size_t>(cell) * each, each);
  Parameters p{mine[0], mine[1], {}, {}, {}};
  if (s.has_biases) {
    p.bias_ih = mine[2];
    p.bias_hh = mine[3];
  }
  if (each == (s.has_biases ? 5u : 3u)) {
    p.weight_hr = mine[each - 1];
  }
  return p;
}

void check_stack(const char* op, const Stack& s, const Tensor& input, const Tensor& hidden,
                 const Tensor& cell, int64_t batch) {
  RL_CHECK(s.layers > 0, op, ": num_layers must be positive, got ", s.layers);
  const int64_t each = (s.has_biases ? 4 : 2);
  const int64_t given = static_cast<int64_t>(s.params.size());
  // More layers than parameters cannot fit, and their product might overflow.
  const int64_t cells = std::min(s.layers, given + 1) * s.directions();
  RL_CHECK(given == cells * each || (s.lstm() && given == cells * (each + 1)), op,
           ": got an incorrect number of RNN parameters: ", given, " for ", s.layers, " layers of ",
           s.directions(), " directions");
  for (const Tensor& t : s.params) {
    RL_CHECK(t.defined(), op, ": a parameter is None");
  }
  RL_CHECK(input.dtype() == s.params[0].dtype() || autocast::is_enabled(input.device().type()), op,
           ": input and parameter tensors are not the same dtype, found input tensor with ",
           input.dtype(), " and parameter tensor with ", s.params[0].dtype());
  const auto check_state = [&](const char* name, const Tensor& t) {
    RL_CHECK(t.dim() == 3 && t.size(0) == cells && t.size(1) == batch, op, ": expected ", name,
             " of shape (", cells, ", ", batch, ", *), got ", t.sizes());
  };
  check_state("hidden state", hidden);
  if (s.lstm()) {
    check_state("cell state", cell);
  }
  RL_CHECK(s.params[0].dim() == 2 && input.size(-1) == s.params[0].size(1), op,
           ": input.size(-1) must be equal to input_size. Expected ", s.params[0].size(-1),
           ", got ", input.size(-1));
}

// Whether there may be a backward, for which values are kept.
bool is_recorded(std::initializer_list<Tensor> inputs) {
  return grad_enabled() && any_requires_grad(TensorList(inputs.begin(), inputs.size()));
}

// All layers over rows: the last one's output and the last states.
struct States {
  Tensor output;
  Tensor hidden;
  Tensor cell;
};

// Of a layer: output, last hidden and last cell state. Weights of each slice of a vmap are factors
// of ordinary ops; within autocast all is of the dtype.
std::tuple<Tensor, Tensor, Tensor> run_layer(const Tensor& gates, const Tensor& hidden,
                                             const Tensor& cell, const Tensor& weight_hh,
                                             const Tensor& bias_hh, const Tensor& weight_hr,
                                             IntArrayRef batch_sizes, std::string_view mode,
                                             bool reverse, bool batch_first, ScalarType dtype) {
  if (RL_UNLIKELY(has_batched({weight_hh, bias_hh, weight_hr}))) {
    const std::vector<Tensor> made =
        layer_by_ops(gates, hidden, cell, weight_hh, bias_hh, weight_hr, batch_sizes, mode, reverse,
                     batch_first);
    return {made[0], made[1], made[2]};
  }
  std::array<Tensor, 6> t = {gates, hidden, cell, weight_hh, bias_hh, weight_hr};
  if (RL_UNLIKELY(autocast::is_enabled(gates.device().type()))) {
    for (Tensor& each : t) {
      each = autocast::cached_cast(dtype, each, gates.device().type());
    }
  }
  auto [output, last_hidden, last_cell, kept_gates, kept_cells] = rushlight::_recurrent_layer(
      t[0], t[1], t[2], t[3], t[4], t[5], batch_sizes, mode, reverse, batch_first,
      is_recorded({gates, hidden, cell, weight_hh, bias_hh, weight_hr}));
  return {output, last_hidden, last_cell};
}

// What autocast makes of a layer: its products are of the lower dtype, as the gates are. States of
// steps that are composed of ops are sums with the state before, in the dtype that both have.
ScalarType cast_dtype(const Tensor& gates, const Tensor& state, bool composed) {
  const bool wider = composed && gates.is_cpu() && state.dtype() != kFloat64;
  return wider ? promote_types(gates.dtype(), state.dtype()) : gates.dtype();
}

// Masks are drawn in the order of time even where each batch's rows lie together: PyTorch's order.
Tensor drop_rows(const Stack& s, const Tensor& rows, IntArrayRef batch_sizes) {
  if (!s.batch_first || s.dropout >= 1 || rows.numel() == 0) {
    return rushlight::dropout(rows, s.dropout, true);
  }
  const DimVector by_time{static_cast<int64_t>(batch_sizes.size()), batch_sizes[0], rows.size(1)};
  const double kept = 1 - s.dropout;
  const Tensor noise = rushlight::_dropout_noise(rows, by_time, kept, 1 / kept);
  return rows * noise.transpose(0, 1).reshape(rows.sizes());
}

States run_stack(const Stack& s, Tensor rows, const Tensor& hidden, const Tensor& cell,
                 IntArrayRef batch_sizes) {
  const std::vector<Tensor> first_hidden = hidden.unbind(0);
  const std::vector<Tensor> first_cell = s.lstm() ? cell.unbind(0) : std::vector<Tensor>();
  std::vector<Tensor> last_hidden;
  std::vector<Tensor> last_cell;
  for (int64_t layer = 0; layer < s.layers; layer++) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < s.directions(); d++) {
      const int64_t at = layer * s.directions() + d;
      const Parameters p = parameters_at(s, at);
      // The gru multiplies one of its hidden sums: there the bias stays with them.
      const bool joined = s.has_biases && s.mode != "gru";
      const Tensor bias = joined ? p.bias_ih.add(p.bias_hh) : p.bias_ih;
      const Tensor gates = rushlight::linear(rows, p.weight_ih, bias);
      const Tensor first = first_hidden[static_cast<size_t>(at)];
      const Tensor first_c = s.lstm() ? first_cell[static_cast<size_t>(at)] : Tensor();
      const Tensor bias_hh = joined ? Tensor() : p.bias_hh;
      auto [output, h, c] =
          run_layer(gates, first, first_c, p.weight_hh, bias_hh, p.weight_hr, batch_sizes, s.mode,
                    d == 1, s.batch_first, cast_dtype(gates, first, s.mode == "gru"));
      outputs.push_back(output);
      last_hidden.push_back(h);
      last_cell.push_back(c);
    }
    rows = outputs.size() == 1 ? outputs[0] : rushlight::cat(outputs, 1);
    if (s.dropout > 0 && s.train && layer + 1 < s.layers) {
      rows = drop_rows(s, rows, batch_sizes);
    }
  }
  return {rows, rushlight::stack(last_hidden, 0),
          s.lstm() ? rushlight::stack(last_cell, 0) : Tensor()};
}

States run_regular(const char* op, const Stack& s, const Tensor& input, const Tensor& hidden,
                   const Tensor& cell) {
  RL_CHECK(input.dim() == 3, op, ": expected an input of 3 dimensions, got ", input.sizes());
  const int64_t steps = input.size(s.batch_first ? 1 : 0);
  const int64_t batch = input.size(s.batch_first ? 0 : 1);
  RL_CHECK(steps > 0, "a recurrent layer needs a sequence length larger than 0");
  check_stack(op, s, input, hidden, cell, batch);
  const DimVector batch_sizes(static_cast<size_t>(steps), batch);
  States states = run_stack(s, input.flatten(0, 1), hidden, cell, batch_sizes);
  states.output = states.output.reshape({input.size(0), input.size(1), states.output.size(1)});
  return states;
}

States run_packed(const char* op, const Stack& s, const Tensor& data, const Tensor& batch_sizes,
                  const Tensor& hidden, const Tensor& cell) {
  RL_CHECK(data.dim() == 2, op, ": expected packed data of 2 dimensions, got ", data.sizes());
  RL_CHECK(batch_sizes.dim() == 1 && batch_sizes.dtype() == kInt64 && batch_sizes.is_cpu(), op,
           ": batch_sizes must be a vector of int64 on the cpu");
  RL_CHECK(batch_sizes.numel() > 0, "a recurrent layer needs a sequence length larger than 0");
  const DimVector list = integers_in(batch_sizes);
  check_stack(op, s, data, hidden, cell, list[0]);
  return run_stack(s, data, hidden, cell, list);
}

std::pair<Tensor, Tensor> states_of(const char* op, TensorList hx) {
  RL_CHECK(hx.size() == 2, op, " expects two hidden states");
  return {hx[0], hx[1]};
}

// One step of a cell: a layer of one step.
std::tuple<Tensor, Tensor> run_cell(const char* op, std::string_view mode, const Tensor& input,
                                    const Tensor& hidden, const Tensor& cell, const Tensor& w_ih,
                                    const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  RL_CHECK(input.dim() == 2 && hidden.dim() == 2, op,
           ": expected an input and a hidden state of 2 dimensions, got ", input.sizes(), " and ",
           hidden.sizes());
  RL_CHECK(w_ih.dim() == 2 && input.size(1) == w_ih.size(1), op,
           ": input has inconsistent input_size: got ", input.size(1), " expected ", w_ih.size(-1));
  const Tensor gates = rushlight::linear(input, w_ih, b_ih);
  auto [output, last_hidden, last_cell] =
      run_layer(gates, hidden, cell, w_hh, b_hh, {}, DimVector{input.size(0)}, mode, false, false,
                cast_dtype(gates, cell.defined() ? cell : hidden, mode == "gru" || mode == "lstm"));
  return {output, last_cell};
}

}  // namespace

namespace composite {

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, TensorList hx, TensorList params,
                                              bool has_biases, int64_t num_layers, double dropout,
                                              bool train, bool bidirectional, bool batch_first) {
  const auto [hidden, cell] = states_of("lstm", hx);
  const Stack s{"lstm", params, has_biases, num_layers, dropout, train, bidirectional, batch_first};
  States made = run_regular("lstm", s, input, hidden, cell);
  return {made.output, made.hidden, made.cell};
}

std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes,
                                             TensorList hx, TensorList params, bool has_biases,
                                             int64_t num_layers, double dropout, bool train,
                                             bool bidirectional) {
  const auto [hidden, cell] = states_of("lstm", hx);
  const Stack s{"lstm", params, has_biases, num_layers, dropout, train, bidirectional, false};
  States made = run_packed("lstm", s, data, batch_sizes, hidden, cell);
  return {made.output, made.hidden, made.cell};
}

#define RL_RECURRENT(name, mode)                                                               \
  std::tuple<Tensor, Tensor> name##_input(                                                     \
      const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,               \
      int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {  \
    const Stack s{                                                                             \
        mode, params, has_biases, num_layers, dropout, train, bidirectional, batch_first};     \
    States made = run_regular(#name, s, input, hx, {});                                        \
    return {made.output, made.hidden};                                                         \
  }                                                                                            \
  std::tuple<Tensor, Tensor> name##_data(                                                      \
      const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params,      \
      bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {   \
    const Stack s{mode, params, has_biases, num_layers, dropout, train, bidirectional, false}; \
    States made = run_packed(#name, s, data, batch_sizes, hx, {});                             \
    return {made.output, made.hidden};                                                         \
  }                                                                                            \
  Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,                \
                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {             \
    return std::get<0>(run_cell(#name "_cell", mode, input, hx, {}, w_ih, w_hh, b_ih, b_hh));  \
  }
RL_RECURRENT(gru, "gru")
RL_RECURRENT(rnn_tanh, "tanh")
RL_RECURRENT(rnn_relu, "relu")
#undef RL_RECURRENT

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  const auto [hidden, cell] = states_of("lstm_cell", hx);
  return run_cell("lstm_cell", "lstm", input, hidden, cell, w_ih, w_hh, b_ih, b_hh);
}

}  // namespace composite
}  // namespace rushlight
