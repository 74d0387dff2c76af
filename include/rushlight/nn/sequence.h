// Layers over sequences: recurrent ones and their cells.
#pragma once

#include <rushlight/nn/layers.h>
#include <rushlight/nn/utils.h>

namespace torch::nn {

// What RNN, LSTM and GRU have in common: a weight and a bias for each gate, layer and direction.
class RL_API RNNBase : public Module {
 public:
  struct Settings {
    const char* name;
    int64_t gates;
    int64_t input_size, hidden_size, num_layers, proj_size;
    bool bias, batch_first, bidirectional;
    double dropout;
  };
  std::vector<Tensor> flat_weights() const;
  // [layer and direction][weight_ih, weight_hh, bias_ih, bias_hh (, weight_hr)]
  std::vector<Tensor> all_weights() const { return flat_weights(); }
  void flatten_parameters() {}  // they are packed when they are used
  void reset_parameters();

 protected:
  // Registers the parameters and draws them.
  void make(const Settings& settings);
  Settings settings_{};
};

struct RNNOptions {
  RNNOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers) = 1;
  RL_KEYWORD_ARG(nonlinearity) = kTanh;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bidirectional) = false;
};
struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bidirectional) = false;
  TORCH_ARG(int64_t, proj_size) = 0;
};
struct GRUOptions {
  GRUOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bidirectional) = false;
};

#define RL_RECURRENT(Name, State)                                                         \
  class RL_API Name##Impl : public Cloneable2<Name##Impl, RNNBase> {                      \
   public:                                                                                \
    Name##Impl(int64_t input_size, int64_t hidden_size)                                   \
        : Name##Impl(Name##Options(input_size, hidden_size)) {}                           \
    explicit Name##Impl(Name##Options options_);                                          \
    void reset() override;                                                                \
    void pretty_print(std::ostream& stream) const override;                               \
    std::tuple<Tensor, State> forward(const Tensor& input, std::optional<State> hx = {}); \
    std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(              \
        const utils::rnn::PackedSequence& input, std::optional<State> hx = {});           \
    Name##Options options;                                                                \
  };                                                                                      \
  extern template class Cloneable2<Name##Impl, RNNBase>;                                  \
  TORCH_MODULE(Name)

// Cloneable for modules with another base than Module.
template <class Derived, class Base>
class RL_API Cloneable2 : public Base {
 public:
  using Base::Base;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override {
    const NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this).options);
    copy->copy_values_from(const_cast<Cloneable2&>(*this), device);
    return copy;
  }

 private:
  void copy_values_from(Module& other, const std::optional<Device>& device) {
    Module::clone_(other, device);
  }
  void clone_(Module& other, const std::optional<Device>& device) final {
    Module::clone_(other, device);
  }
};

using LSTMState = std::tuple<Tensor, Tensor>;  // hidden and cell
RL_RECURRENT(RNN, Tensor);
RL_RECURRENT(LSTM, LSTMState);
RL_RECURRENT(GRU, Tensor);
#undef RL_RECURRENT

// ---- cells ----

struct RNNCellOptions {
  RNNCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(bool, bias) = true;
  RL_KEYWORD_ARG(nonlinearity) = kTanh;
};
struct LSTMCellOptions {
  LSTMCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(bool, bias) = true;
};
struct GRUCellOptions {
  GRUCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(bool, bias) = true;
};
#define RL_CELL(Name, State, Given)                             \
  class RL_API Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                      \
    RL_LAYER(Name);                                             \
    Name##Impl(int64_t input_size, int64_t hidden_size)         \
        : Name##Impl(Name##Options(input_size, hidden_size)) {} \
    State forward(const Tensor& input, Given hx = {});          \
    void reset_parameters();                                    \
    Tensor weight_ih;                                           \
    Tensor weight_hh;                                           \
    Tensor bias_ih;                                             \
    Tensor bias_hh;                                             \
  };                                                            \
  RL_MODULE(Name)
RL_CELL(RNNCell, Tensor, const Tensor&);
RL_CELL(LSTMCell, LSTMState, std::optional<LSTMState>);
RL_CELL(GRUCell, Tensor, const Tensor&);
#undef RL_CELL

}  // namespace torch::nn
