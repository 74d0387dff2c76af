// Attention of several heads, and the transformers that are made of it.
#pragma once

#include <functional>

#include <rushlight/nn/containers.h>
#include <rushlight/nn/layers.h>
#include <rushlight/nn/stateless.h>

namespace torch::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(int64_t, kdim);
  TORCH_ARG(int64_t, vdim);
  TORCH_ARG(bool, batch_first) = false;  // (batch, length, width), not (length, batch, width)
};
class RL_API MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_);
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads);
  void reset() override;
  void _reset_parameters();
  // The output and the weights (undefined unless needed). `is_causal`: attn_mask is the causal one.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true,
                                     bool is_causal = false);
  MultiheadAttentionOptions options;
  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight;
  Tensor in_proj_bias;
  Tensor bias_k;
  Tensor bias_v;
  Linear out_proj = nullptr;
  Tensor q_proj_weight;
  Tensor k_proj_weight;
  Tensor v_proj_weight;
  int64_t head_dim = 0;
};
RL_MODULE(MultiheadAttention);

// kReLU, kGELU or a function.
class Activation {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  Activation(enumtype::Word word) : word_(word) {}
  Activation(Function function) : function_(std::move(function)) {}
  template <class F, class = std::enable_if_t<std::is_invocable_r_v<Tensor, F, const Tensor&>>>
  Activation(F function) : function_(std::move(function)) {}
  RL_API Tensor operator()(const Tensor& input) const;

 private:
  Keyword word_ = "";
  Function function_;
};
using activation_t = Activation;

// What layers of encoders and decoders have in common.
#define RL_TRANSFORMER_LAYER(Name)                                                      \
  struct Name##Options {                                                                \
    Name##Options(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {} \
    TORCH_ARG(int64_t, d_model);                                                        \
    TORCH_ARG(int64_t, nhead);                                                          \
    TORCH_ARG(int64_t, dim_feedforward) = 2048;                                         \
    TORCH_ARG(double, dropout) = 0.1;                                                   \
    TORCH_ARG(Activation, activation) = kReLU;                                          \
    TORCH_ARG(double, layer_norm_eps) = 1e-5;                                           \
    TORCH_ARG(bool, batch_first) = false;                                               \
    TORCH_ARG(bool, norm_first) = false;                                                \
    TORCH_ARG(bool, bias) = true;                                                       \
  }
RL_TRANSFORMER_LAYER(TransformerEncoderLayer);
RL_TRANSFORMER_LAYER(TransformerDecoderLayer);
#undef RL_TRANSFORMER_LAYER

class RL_API TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);
  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  LayerNorm norm1 = nullptr;
  LayerNorm norm2 = nullptr;
  Dropout dropout1 = nullptr;
  Dropout dropout2 = nullptr;
};
RL_MODULE(TransformerEncoderLayer);

class RL_API TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_);
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false);
  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn = nullptr;
  MultiheadAttention multihead_attn = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  LayerNorm norm1 = nullptr;
  LayerNorm norm2 = nullptr;
  LayerNorm norm3 = nullptr;
  Dropout dropout1 = nullptr;
  Dropout dropout2 = nullptr;
  Dropout dropout3 = nullptr;
};
RL_MODULE(TransformerDecoderLayer);

struct TransformerEncoderOptions {
  RL_API TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers);
  RL_API TransformerEncoderOptions(const TransformerEncoderLayerOptions& layer, int64_t num_layers);
  TORCH_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};
// Copies of a layer, one after the other, then a norm if one is given.
class RL_API TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_);
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {});
  TransformerEncoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;
};
RL_MODULE(TransformerEncoder);

struct TransformerDecoderOptions {
  RL_API TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers);
  RL_API TransformerDecoderOptions(const TransformerDecoderLayerOptions& layer, int64_t num_layers);
  TORCH_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};
class RL_API TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_);
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  TransformerDecoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;
};
RL_MODULE(TransformerDecoder);

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers,
                     int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  TORCH_ARG(int64_t, d_model) = 512;
  TORCH_ARG(int64_t, nhead) = 8;
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  TORCH_ARG(int64_t, dim_feedforward) = 2048;
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(Activation, activation) = kReLU;
  TORCH_ARG(AnyModule, custom_encoder);
  TORCH_ARG(AnyModule, custom_decoder);
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(bool, norm_first) = false;
  TORCH_ARG(bool, bias) = true;
};
class RL_API TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options_);
  TransformerImpl();
  TransformerImpl(int64_t d_model, int64_t nhead);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  // (sz, sz): 0 on and below the diagonal, -inf above.
  static Tensor generate_square_subsequent_mask(int64_t sz);
  TransformerOptions options;
  AnyModule encoder;
  AnyModule decoder;
};
RL_MODULE(Transformer);

namespace functional {

struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
                                       Tensor bias_v, bool add_zero_attn, double dropout_p,
                                       Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(Tensor, in_proj_weight);
  TORCH_ARG(Tensor, in_proj_bias);
  TORCH_ARG(Tensor, bias_k);
  TORCH_ARG(Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(Tensor, out_proj_weight);
  TORCH_ARG(Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(Tensor, key_padding_mask);
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(Tensor, attn_mask);
  TORCH_ARG(bool, use_separate_proj_weight) = false;
  TORCH_ARG(Tensor, q_proj_weight);
  TORCH_ARG(Tensor, k_proj_weight);
  TORCH_ARG(Tensor, v_proj_weight);
  TORCH_ARG(Tensor, static_k);
  TORCH_ARG(Tensor, static_v);
  TORCH_ARG(bool, average_attn_weights) = true;
  TORCH_ARG(bool, is_causal) = false;
  TORCH_ARG(bool, batch_first) = false;
};
// Inputs are (length, batch, width), or as batch_first says, or (length, width). Returns the output
// and the weights (batch, length, keys), one for each head unless averaged, or undefined.
RL_API std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MultiheadAttentionForwardFuncOptions& options);

}  // namespace functional
}  // namespace torch::nn
