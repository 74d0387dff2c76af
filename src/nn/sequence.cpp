// Recurrent layers and their cells.
#include <rushlight/nn/sequence.h>

#include <cmath>
#include <ostream>

#include <rushlight/nn/init.h>
#include <rushlight/ops.h>

namespace torch::nn {

using utils::rnn::PackedSequence;

namespace {

std::string suffix_of(int64_t layer, bool reverse) {
  return "_l" + std::to_string(layer) + (reverse ? "_reverse" : "");
}

void draw(const std::vector<Tensor>& parameters, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& p : parameters) {
    init::uniform_(p, -bound, bound);
  }
}

Tensor reorder(const Tensor& state, const Tensor& order) {
  return order.defined() ? state.index_select(1, order) : state;
}

void print(std::ostream& stream, const RNNBase::Settings& s) {
  const auto word = [](bool b) { return b ? "true" : "false"; };
  stream << "torch::nn::" << s.name << "(input_size=" << s.input_size
         << ", hidden_size=" << s.hidden_size << ", num_layers=" << s.num_layers
         << ", bias=" << word(s.bias) << ", batch_first=" << word(s.batch_first)
         << ", dropout=" << s.dropout << ", bidirectional=" << word(s.bidirectional);
  if (s.proj_size > 0) {
    stream << ", proj_size=" << s.proj_size;
  }
  stream << ')';
}

// Zeros as a state: `width` numbers for each layer, direction and sequence.
Tensor zero_state(const RNNBase::Settings& s, int64_t batch, int64_t width, const Tensor& like) {
  return zeros({s.num_layers * (s.bidirectional ? 2 : 1), batch, width}, like.options());
}

void check_input(const RNNBase::Settings& s, const Tensor& input) {
  RL_CHECK(input.dim() == 2 || input.dim() == 3, s.name, ": Expected input to be 2D or 3D, got ",
           input.dim(), "D instead");
  RL_CHECK(input.size(-1) == s.input_size, "input.size(-1) must be equal to input_size. Expected ",
           s.input_size, ", got ", input.size(-1));
}

// What a layer does with a state of one tensor; `plain` and `packed` are the op's two forms.
template <class Plain>
std::tuple<Tensor, Tensor> run_one(const RNNBase::Settings& s, const Tensor& input,
                                   const std::optional<Tensor>& hx, const Plain& plain) {
  check_input(s, input);
  const bool batched = input.dim() == 3;
  const Tensor data = batched ? input : input.unsqueeze(s.batch_first ? 0 : 1);
  const int64_t batch = data.size(s.batch_first ? 0 : 1);
  const Tensor start = !hx || !hx->defined() ? zero_state(s, batch, s.hidden_size, data)
                       : batched             ? *hx
                                             : hx->unsqueeze(1);
  auto [output, state] = plain(data, start);
  if (!batched) {
    return {output.squeeze(s.batch_first ? 0 : 1), state.squeeze(1)};
  }
  return {output, state};
}

template <class Packed>
std::tuple<PackedSequence, Tensor> run_one(const RNNBase::Settings& s, const PackedSequence& input,
                                           const std::optional<Tensor>& hx, const Packed& packed) {
  const int64_t batch = input.batch_sizes()[0].item<int64_t>();
  const Tensor start = hx && hx->defined() ? reorder(*hx, input.sorted_indices())
                                           : zero_state(s, batch, s.hidden_size, input.data());
  auto [output, state] = packed(input.data(), input.batch_sizes(), start);
  return {
      PackedSequence(output, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),
      reorder(state, input.unsorted_indices())};
}

}  // namespace

void RNNBase::make(const Settings& s) {
  settings_ = s;
  RL_CHECK(s.dropout >= 0 && s.dropout <= 1, "dropout should be a number in range [0, 1], but is ",
           s.dropout);
  RL_CHECK(s.hidden_size > 0, "hidden_size must be greater than zero");
  RL_CHECK(s.num_layers > 0, "num_layers must be greater than zero");
  RL_CHECK(s.proj_size >= 0 && s.proj_size < s.hidden_size,
           "proj_size has to be smaller than hidden_size and not negative");
  const int64_t width = s.proj_size > 0 ? s.proj_size : s.hidden_size;
  const int64_t rows = s.gates * s.hidden_size;
  for (int64_t layer = 0; layer < s.num_layers; layer++) {
    const int64_t given = layer == 0 ? s.input_size : width * (s.bidirectional ? 2 : 1);
    for (const bool reverse : {false, true}) {
      if (reverse && !s.bidirectional) {
        continue;
      }
      const std::string suffix = suffix_of(layer, reverse);
      register_parameter("weight_ih" + suffix, empty({rows, given}));
      register_parameter("weight_hh" + suffix, empty({rows, width}));
      if (s.bias) {
        register_parameter("bias_ih" + suffix, empty({rows}));
        register_parameter("bias_hh" + suffix, empty({rows}));
      }
      if (s.proj_size > 0) {
        register_parameter("weight_hr" + suffix, empty({s.proj_size, s.hidden_size}));
      }
    }
  }
  reset_parameters();
}

void RNNBase::reset_parameters() { draw(parameters(), settings_.hidden_size); }
std::vector<Tensor> RNNBase::flat_weights() const { return parameters_.values(); }
template class Cloneable2<RNNImpl, RNNBase>;
template class Cloneable2<LSTMImpl, RNNBase>;
template class Cloneable2<GRUImpl, RNNBase>;

#define RL_ARGUMENTS                                                                      \
  flat_weights(), options.bias(), options.num_layers(), options.dropout(), is_training(), \
      options.bidirectional()
#define RL_SETTINGS(name, gates, proj)                                                         \
  {name, gates,          options.input_size(),  options.hidden_size(),   options.num_layers(), \
   proj, options.bias(), options.batch_first(), options.bidirectional(), options.dropout()}

RNNImpl::RNNImpl(RNNOptions options_) : options(std::move(options_)) { RNNImpl::reset(); }
void RNNImpl::reset() {
  RL_CHECK(options.nonlinearity() == "tanh" || options.nonlinearity() == "relu",
           "Unknown nonlinearity '", options.nonlinearity().text(), "'");
  make(RL_SETTINGS("RNN", 1, 0));
}
void RNNImpl::pretty_print(std::ostream& stream) const { print(stream, settings_); }
std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, std::optional<Tensor> hx) {
  return run_one(settings_, input, hx, [&](const Tensor& data, const Tensor& start) {
    return options.nonlinearity() == "relu"
               ? rnn_relu(data, start, RL_ARGUMENTS, options.batch_first())
               : rnn_tanh(data, start, RL_ARGUMENTS, options.batch_first());
  });
}
std::tuple<PackedSequence, Tensor> RNNImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      std::optional<Tensor> hx) {
  return run_one(
      settings_, input, hx, [&](const Tensor& data, const Tensor& sizes, const Tensor& start) {
        return options.nonlinearity() == "relu" ? rnn_relu(data, sizes, start, RL_ARGUMENTS)
                                                : rnn_tanh(data, sizes, start, RL_ARGUMENTS);
      });
}

GRUImpl::GRUImpl(GRUOptions options_) : options(std::move(options_)) { GRUImpl::reset(); }
void GRUImpl::reset() { make(RL_SETTINGS("GRU", 3, 0)); }
void GRUImpl::pretty_print(std::ostream& stream) const { print(stream, settings_); }
std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, std::optional<Tensor> hx) {
  return run_one(settings_, input, hx, [&](const Tensor& data, const Tensor& start) {
    return gru(data, start, RL_ARGUMENTS, options.batch_first());
  });
}
std::tuple<PackedSequence, Tensor> GRUImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      std::optional<Tensor> hx) {
  return run_one(settings_, input, hx,
                 [&](const Tensor& data, const Tensor& sizes, const Tensor& start) {
                   return gru(data, sizes, start, RL_ARGUMENTS);
                 });
}

LSTMImpl::LSTMImpl(LSTMOptions options_) : options(std::move(options_)) { LSTMImpl::reset(); }
void LSTMImpl::reset() { make(RL_SETTINGS("LSTM", 4, options.proj_size())); }
void LSTMImpl::pretty_print(std::ostream& stream) const { print(stream, settings_); }
std::tuple<Tensor, LSTMState> LSTMImpl::forward(const Tensor& input, std::optional<LSTMState> hx) {
  const RNNBase::Settings& s = settings_;
  check_input(s, input);
  const bool batched = input.dim() == 3;
  const Tensor data = batched ? input : input.unsqueeze(s.batch_first ? 0 : 1);
  const int64_t batch = data.size(s.batch_first ? 0 : 1);
  std::vector<Tensor> start;
  if (!hx) {
    start = {zero_state(s, batch, s.proj_size > 0 ? s.proj_size : s.hidden_size, data),
             zero_state(s, batch, s.hidden_size, data)};
  } else {
    start = {std::get<0>(*hx), std::get<1>(*hx)};
    for (Tensor& t : start) {
      t = batched ? t : t.unsqueeze(1);
    }
  }
  auto [output, hidden, cell] = lstm(data, start, RL_ARGUMENTS, options.batch_first());
  if (!batched) {
    return {output.squeeze(s.batch_first ? 0 : 1), {hidden.squeeze(1), cell.squeeze(1)}};
  }
  return {output, {hidden, cell}};
}
std::tuple<PackedSequence, LSTMState> LSTMImpl::forward_with_packed_input(
    const PackedSequence& input, std::optional<LSTMState> hx) {
  const RNNBase::Settings& s = settings_;
  const int64_t batch = input.batch_sizes()[0].item<int64_t>();
  const Tensor& order = input.sorted_indices();
  const std::vector<Tensor> start =
      hx ? std::vector<Tensor>{reorder(std::get<0>(*hx), order), reorder(std::get<1>(*hx), order)}
         : std::vector<Tensor>{
               zero_state(s, batch, s.proj_size > 0 ? s.proj_size : s.hidden_size, input.data()),
               zero_state(s, batch, s.hidden_size, input.data())};
  auto [output, hidden, cell] = lstm(input.data(), input.batch_sizes(), start, RL_ARGUMENTS);
  return {PackedSequence(output, input.batch_sizes(), order, input.unsorted_indices()),
          {reorder(hidden, input.unsorted_indices()), reorder(cell, input.unsorted_indices())}};
}

// ---- cells ----

namespace {
Tensor state_or_zeros(const Tensor& state, const Tensor& input, int64_t hidden_size) {
  return state.defined()    ? state
         : input.dim() == 1 ? zeros({hidden_size}, input.options())
                            : zeros({input.size(0), hidden_size}, input.options());
}
Tensor with_batch(const Tensor& t) { return t.dim() == 1 ? t.unsqueeze(0) : t; }
Tensor match_input_dims(const Tensor& t, const Tensor& input) {
  return input.dim() == 1 ? t.squeeze(0) : t;
}
}  // namespace

#define RL_CELL(Name, gates)                                                                   \
  template class Cloneable<Name##Impl>;                                                        \
  Name##Impl::Name##Impl(Name##Options options_) : options(std::move(options_)) {              \
    Name##Impl::reset();                                                                       \
  }                                                                                            \
  void Name##Impl::reset() {                                                                   \
    const int64_t rows = (gates) * options.hidden_size();                                      \
    weight_ih = register_parameter("weight_ih", empty({rows, options.input_size()}));          \
    weight_hh = register_parameter("weight_hh", empty({rows, options.hidden_size()}));         \
    bias_ih = register_parameter("bias_ih", options.bias() ? empty({rows}) : Tensor());        \
    bias_hh = register_parameter("bias_hh", options.bias() ? empty({rows}) : Tensor());        \
    reset_parameters();                                                                        \
  }                                                                                            \
  void Name##Impl::reset_parameters() { draw(parameters(), options.hidden_size()); }           \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                  \
    stream << "torch::nn::" #Name "(" << options.input_size() << ", " << options.hidden_size() \
           << (options.bias() ? ")" : ", bias=false)");                                        \
  }
RL_CELL(RNNCell, 1)
RL_CELL(LSTMCell, 4)
RL_CELL(GRUCell, 3)

Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const Tensor start = with_batch(state_or_zeros(hx, input, options.hidden_size()));
  const Tensor x = with_batch(input);
  const bool is_relu = options.nonlinearity() == "relu";
  return match_input_dims(is_relu ? rnn_relu_cell(x, start, weight_ih, weight_hh, bias_ih, bias_hh)
                                  : rnn_tanh_cell(x, start, weight_ih, weight_hh, bias_ih, bias_hh),
                          input);
}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const Tensor start = with_batch(state_or_zeros(hx, input, options.hidden_size()));
  return match_input_dims(
      gru_cell(with_batch(input), start, weight_ih, weight_hh, bias_ih, bias_hh), input);
}
LSTMState LSTMCellImpl::forward(const Tensor& input, std::optional<LSTMState> hx) {
  const LSTMState given = hx.value_or(LSTMState());
  const std::vector<Tensor> start = {
      with_batch(state_or_zeros(std::get<0>(given), input, options.hidden_size())),
      with_batch(state_or_zeros(std::get<1>(given), input, options.hidden_size()))};
  auto [hidden, cell] = lstm_cell(with_batch(input), start, weight_ih, weight_hh, bias_ih, bias_hh);
  return {match_input_dims(hidden, input), match_input_dims(cell, input)};
}

}  // namespace torch::nn
