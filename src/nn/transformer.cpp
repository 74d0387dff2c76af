// Transformer, its encoder and decoder and their layers.
#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/nn/attention.h>
#include <rushlight/nn/init.h>
#include <rushlight/ops.h>

namespace torch::nn {

#define RL_MADE(Name)                                                             \
  template class Cloneable<Name##Impl>;                                           \
  Name##Impl::Name##Impl(Name##Options options_) : options(std::move(options_)) { \
    Name##Impl::reset();                                                          \
  }

Tensor Activation::operator()(const Tensor& input) const {
  if (function_) {
    return function_(input);
  }
  if (word_ == kReLU) {
    return input.relu();
  }
  RL_CHECK(word_ == kGELU, "activation should be relu/gelu, not ", word_);
  return gelu(input);
}

namespace {

template <class Options>
MultiheadAttention attention(const Options& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead())
                                .dropout(o.dropout())
                                .bias(o.bias())
                                .batch_first(o.batch_first()));
}
template <class Options>
LayerNorm layer_norm_of(const Options& o) {
  return LayerNorm(LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps()).bias(o.bias()));
}
Tensor attend_with(MultiheadAttention& attention, Dropout& dropout, const Tensor& x,
                   const Tensor& memory, const Tensor& mask, const Tensor& padding,
                   bool is_causal) {
  const Tensor out =
      std::get<0>(attention->forward(x, memory, memory, padding, false, mask, true, is_causal));
  // Masks are drawn in the order of memory, which in libtorch is that of time here.
  const bool drops = dropout->is_training() && dropout->options.p() > 0;
  return dropout(drops && attention->options.batch_first() && out.dim() == 3
                     ? out.transpose(0, 1).contiguous().transpose(0, 1)
                     : out);
}

// Whether a mask is the causal one for sequences of the input's length.
bool is_causal_mask(const Tensor& mask, const Tensor& input, bool batch_first) {
  if (!mask.defined() || mask.dim() != 2 || !mask.is_floating_point()) {
    return false;
  }
  const int64_t size = input.size(input.dim() == 3 && batch_first ? 1 : 0);
  if (mask.size(0) != size || mask.size(1) != size) {
    return false;
  }
  const Tensor causal = full({size, size}, -INFINITY, mask.options()).triu(1);
  return (mask == causal).all().item<bool>();
}

// Copies have the values of the layer that is copied, so that making them draws no random numbers.
template <class Layer>
ModuleList copies(const Layer& layer, int64_t count) {
  const std::vector<uint8_t> state = default_generator().state_bytes();
  ModuleList out;
  for (int64_t i = 0; i < count; i++) {
    out->push_back(layer->clone());
  }
  default_generator().set_state_bytes(state);
  return out;
}

}  // namespace

// ---- layers ----

RL_MADE(TransformerEncoderLayer)
TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
    : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
void TransformerEncoderLayerImpl::reset() {
  const auto& o = options;
  self_attn = register_module("self_attn", attention(o));
  linear1 = register_module("linear1",
                            Linear(LinearOptions(o.d_model(), o.dim_feedforward()).bias(o.bias())));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 = register_module("linear2",
                            Linear(LinearOptions(o.dim_feedforward(), o.d_model()).bias(o.bias())));
  norm1 = register_module("norm1", layer_norm_of(o));
  norm2 = register_module("norm2", layer_norm_of(o));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
}
void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}
Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& padding, bool is_causal) {
  const auto self_attention = [&](const Tensor& x) {
    return attend_with(self_attn, dropout1, x, x, src_mask, padding, is_causal);
  };
  const auto feed_forward = [&](const Tensor& x) {
    return dropout2(linear2(dropout(options.activation()(linear1(x)))));
  };
  if (options.norm_first()) {
    const Tensor x = src + self_attention(norm1(src));
    return x + feed_forward(norm2(x));
  }
  const Tensor x = norm1(src + self_attention(src));
  return norm2(x + feed_forward(x));
}

RL_MADE(TransformerDecoderLayer)
TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
    : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
void TransformerDecoderLayerImpl::reset() {
  const auto& o = options;
  self_attn = register_module("self_attn", attention(o));
  multihead_attn = register_module("multihead_attn", attention(o));
  linear1 = register_module("linear1",
                            Linear(LinearOptions(o.d_model(), o.dim_feedforward()).bias(o.bias())));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 = register_module("linear2",
                            Linear(LinearOptions(o.dim_feedforward(), o.d_model()).bias(o.bias())));
  norm1 = register_module("norm1", layer_norm_of(o));
  norm2 = register_module("norm2", layer_norm_of(o));
  norm3 = register_module("norm3", layer_norm_of(o));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
  dropout3 = register_module("dropout3", Dropout(o.dropout()));
}
void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  multihead_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
  norm3->reset_parameters();
}
Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_padding, const Tensor& memory_padding,
                                            bool tgt_is_causal) {
  const auto self_attention = [&](const Tensor& x) {
    return attend_with(self_attn, dropout1, x, x, tgt_mask, tgt_padding, tgt_is_causal);
  };
  const auto cross_attention = [&](const Tensor& x) {
    return attend_with(multihead_attn, dropout2, x, memory, memory_mask, memory_padding, false);
  };
  const auto feed_forward = [&](const Tensor& x) {
    return dropout3(linear2(dropout(options.activation()(linear1(x)))));
  };
  if (options.norm_first()) {
    Tensor x = tgt + self_attention(norm1(tgt));
    x = x + cross_attention(norm2(x));
    return x + feed_forward(norm3(x));
  }
  Tensor x = norm1(tgt + self_attention(tgt));
  x = norm2(x + cross_attention(x));
  return norm3(x + feed_forward(x));
}

// ---- stacks ----

RL_MADE(TransformerEncoder)
TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t num_layers)
    : TransformerEncoderImpl(TransformerEncoderOptions(std::move(layer), num_layers)) {}
TransformerEncoderOptions::TransformerEncoderOptions(TransformerEncoderLayer layer,
                                                     int64_t num_layers)
    : encoder_layer_(std::move(layer)), num_layers_(num_layers) {}
TransformerEncoderOptions::TransformerEncoderOptions(const TransformerEncoderLayerOptions& layer,
                                                     int64_t num_layers)
    : encoder_layer_(layer), num_layers_(num_layers) {}
void TransformerEncoderImpl::reset() {
  layers = register_module("layers", copies(options.encoder_layer(), options.num_layers()));
  if (!options.norm().is_empty()) {
    norm = options.norm().clone();
    register_module("norm", norm.ptr());
  }
}
void TransformerEncoderImpl::reset_parameters() {
  for (const auto& layer : *layers) {
    layer->as<TransformerEncoderLayer>()->reset_parameters();
  }
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask) {
  const bool causal = is_causal_mask(src_mask, src, options.encoder_layer()->options.batch_first());
  Tensor x = src;
  for (const auto& layer : *layers) {
    x = layer->as<TransformerEncoderLayer>()->forward(x, src_mask, src_key_padding_mask, causal);
  }
  return norm.is_empty() ? x : norm.forward(x);
}

RL_MADE(TransformerDecoder)
TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t num_layers)
    : TransformerDecoderImpl(TransformerDecoderOptions(std::move(layer), num_layers)) {}
TransformerDecoderOptions::TransformerDecoderOptions(TransformerDecoderLayer layer,
                                                     int64_t num_layers)
    : decoder_layer_(std::move(layer)), num_layers_(num_layers) {}
TransformerDecoderOptions::TransformerDecoderOptions(const TransformerDecoderLayerOptions& layer,
                                                     int64_t num_layers)
    : decoder_layer_(layer), num_layers_(num_layers) {}
void TransformerDecoderImpl::reset() {
  layers = register_module("layers", copies(options.decoder_layer(), options.num_layers()));
  if (!options.norm().is_empty()) {
    norm = options.norm().clone();
    register_module("norm", norm.ptr());
  }
}
void TransformerDecoderImpl::reset_parameters() {
  for (const auto& layer : *layers) {
    layer->as<TransformerDecoderLayer>()->reset_parameters();
  }
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  const bool causal = is_causal_mask(tgt_mask, tgt, options.decoder_layer()->options.batch_first());
  Tensor x = tgt;
  for (const auto& layer : *layers) {
    x = layer->as<TransformerDecoderLayer>()->forward(
        x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal);
  }
  return norm.is_empty() ? x : norm.forward(x);
}

// ---- both ----

namespace {
template <class Layer>
Layer layer_options(const TransformerOptions& o) {
  return Layer(o.d_model(), o.nhead())
      .dim_feedforward(o.dim_feedforward())
      .dropout(o.dropout())
      .activation(o.activation())
      .layer_norm_eps(o.layer_norm_eps())
      .batch_first(o.batch_first())
      .norm_first(o.norm_first())
      .bias(o.bias());
}
}  // namespace

RL_MADE(Transformer)
TransformerImpl::TransformerImpl() : TransformerImpl(TransformerOptions()) {}
TransformerImpl::TransformerImpl(int64_t d_model, int64_t nhead)
    : TransformerImpl(TransformerOptions(d_model, nhead)) {}
void TransformerImpl::reset() {
  const auto& o = options;
  if (o.custom_encoder().is_empty()) {
    encoder = AnyModule(TransformerEncoder(
        TransformerEncoderOptions(layer_options<TransformerEncoderLayerOptions>(o),
                                  o.num_encoder_layers())
            .norm(AnyModule(layer_norm_of(o)))));
  } else {
    encoder = o.custom_encoder().clone();
  }
  register_module("encoder", encoder.ptr());
  if (o.custom_decoder().is_empty()) {
    decoder = AnyModule(TransformerDecoder(
        TransformerDecoderOptions(layer_options<TransformerDecoderLayerOptions>(o),
                                  o.num_decoder_layers())
            .norm(AnyModule(layer_norm_of(o)))));
  } else {
    decoder = o.custom_decoder().clone();
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& p : parameters()) {
    if (p.dim() > 1) {
      init::xavier_uniform_(p);
    }
  }
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  RL_CHECK((src.dim() == 2 || src.dim() == 3) && src.dim() == tgt.dim(),
           "src and tgt should have 2 or 3 dimensions each, but have ", src.dim(), " and ",
           tgt.dim());
  const int64_t batch_dim = options.batch_first() ? 0 : 1;
  RL_CHECK(src.dim() != 3 || src.size(batch_dim) == tgt.size(batch_dim),
           "the batch number of src and tgt must be equal");
  RL_CHECK(src.size(-1) == options.d_model() && tgt.size(-1) == options.d_model(),
           "Transformer: the feature number of src and tgt must be d_model, ", options.d_model(),
           ", but they have ", src.size(-1), " and ", tgt.size(-1));
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                         memory_key_padding_mask);
}
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz) {
  return full({sz, sz}, -INFINITY).triu(1);
}

}  // namespace torch::nn
