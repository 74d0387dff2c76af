// Attention of several heads: masks, projections, heads; the module with its parameters.
#include <rushlight/nn/attention.h>

#include <cmath>

#include <rushlight/autocast.h>
#include <rushlight/factories.h>
#include <rushlight/nn/init.h>
#include <rushlight/ops.h>

namespace torch::nn {

namespace functional {

namespace {

using Options = MultiheadAttentionForwardFuncOptions;

// A mask as numbers to be added: -inf where a boolean one is true.
Tensor to_additive_mask(const Tensor& mask, const char* name, ScalarType dtype) {
  if (!mask.defined() || mask.is_floating_point()) {
    return mask;
  }
  RL_CHECK(mask.scalar_type() == kBool, "only bool and floating types of ", name, " are supported");
  return zeros_like(mask, dtype).masked_fill_(mask, -INFINITY);
}

// The softmax of scores plus a mask; rows that see no key are zeros.
Tensor masked_softmax(const Tensor& scores, const Tensor& mask) {
  const Tensor nothing = mask.detach().eq(-INFINITY).all(-1, true);
  return (scores + mask.masked_fill(nothing, 0)).softmax(-1).masked_fill(nothing, 0);
}

// What the values of seen keys add up to, and the weights of all keys.
std::pair<Tensor, Tensor> attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& mask, double dropout) {
  const double scale = std::sqrt(1.0 / static_cast<double>(q.size(-1)));
  const Tensor scores = (q * scale).matmul(k.transpose(-2, -1));
  Tensor weights = mask.defined() ? masked_softmax(scores, mask) : scores.softmax(-1);
  if (dropout > 0) {
    weights = rushlight::dropout(weights, dropout, true);
  }
  return {weights.matmul(v), weights};
}

// The same of 16 bits, whose scores are not rounded before their softmax is taken.
std::pair<Tensor, Tensor> attend_in_float32(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& mask, double dropout) {
  struct WithoutAutocast {
    explicit WithoutAutocast(DeviceType d) : device(d), before(autocast::is_enabled(d)) {
      autocast::set_enabled(device, false);
    }
    ~WithoutAutocast() { autocast::set_enabled(device, before); }
    DeviceType device;
    bool before;
  };
  const WithoutAutocast without(q.device().type());
  const auto [joined, weights] =
      attend(q.to(kFloat32), k.to(kFloat32), v.to(kFloat32), mask, dropout);
  return {joined.to(q.scalar_type()), without.before ? weights : weights.to(q.scalar_type())};
}

// True for a batch.
bool check_dims(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  const int64_t n = query.dim();
  RL_CHECK(n == 2 || n == 3,
           "multi_head_attention: query should be unbatched 2D or batched 3D, but is ", n, "D");
  const auto kind = str(n == 3 ? "For batched (" : "For unbatched (", n, "-D) `query`, expected ");
  RL_CHECK(key.dim() == n && value.dim() == n, kind, "`key` and `value` to be ", n, "-D but found ",
           key.dim(), "-D and ", value.dim(), "-D tensors respectively");
  RL_CHECK(!o.key_padding_mask().defined() || o.key_padding_mask().dim() == n - 1, kind,
           "`key_padding_mask` to be ", n - 1, "-D");
  const Tensor& mask = o.attn_mask();
  RL_CHECK(!mask.defined() || mask.dim() == 2 || mask.dim() == 3, kind,
           "`attn_mask` to be 2-D or 3-D");
  return n == 3;
}

// The three inputs through their weights.
std::vector<Tensor> project(const Tensor& query, const Tensor& key, const Tensor& value,
                            const Options& o) {
  const Tensor& bias = o.in_proj_bias();
  const auto each = [&](const std::vector<Tensor>& weights) {
    const std::vector<Tensor> biases = bias.defined() ? bias.chunk(3) : std::vector<Tensor>(3);
    return std::vector<Tensor>{rushlight::linear(query, weights[0], biases[0]),
                               rushlight::linear(key, weights[1], biases[1]),
                               rushlight::linear(value, weights[2], biases[2])};
  };
  if (o.use_separate_proj_weight()) {
    RL_CHECK(
        o.q_proj_weight().defined() && o.k_proj_weight().defined() && o.v_proj_weight().defined(),
        "use_separate_proj_weight is true but a projection is undefined");
    RL_CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1),
             "key's sequence and batch dims ", key.sizes().slice(0, 2), " do not match value's ",
             value.sizes().slice(0, 2));
    return each({o.q_proj_weight(), o.k_proj_weight(), o.v_proj_weight()});
  }
  const Tensor& weight = o.in_proj_weight();
  RL_CHECK(weight.defined(), "use_separate_proj_weight is false but in_proj_weight is undefined");
  RL_CHECK(key.sizes() == value.sizes(), "key shape ", key.sizes(), " does not match value shape ",
           value.sizes());
  // One product where inputs are the same.
  if (!key.is_same(value)) {
    return each(weight.chunk(3));
  }
  if (query.is_same(key)) {
    return rushlight::linear(query, weight, bias).chunk(3, -1);
  }
  const int64_t width = query.size(-1);
  const int64_t rows = weight.size(0);
  const auto part = [&](int64_t from, int64_t to) {
    return bias.defined() ? bias.slice(0, from, to) : Tensor();
  };
  std::vector<Tensor> out{rushlight::linear(query, weight.slice(0, 0, width), part(0, width))};
  for (Tensor& t :
       rushlight::linear(key, weight.slice(0, width, rows), part(width, rows)).chunk(2, -1)) {
    out.push_back(std::move(t));
  }
  return out;
}

// (batch, heads, length, width of a head), as it lies.
Tensor split(const Tensor& x, int64_t heads, bool batch_first) {
  const Tensor parts = x.unflatten(-1, {heads, x.size(-1) / heads});
  return batch_first ? parts.transpose(1, 2) : parts.permute({1, 2, 0, 3});
}

// A key or value that was projected before, with a dimension for heads.
Tensor split_projected(const char* name, const Tensor& x, int64_t batch, int64_t heads,
                       int64_t width) {
  RL_CHECK(x.dim() == 3 && x.size(0) == batch * heads && x.size(2) == width, "expecting ", name,
           " of shape (", batch * heads, ", *, ", width, "), but got ", x.sizes());
  return x.unflatten(0, {batch, heads});
}

// Both masks as one that is added to scores (batch, heads, queries, keys), or undefined.
Tensor merge_masks(Tensor mask, const Tensor& padding, int64_t batch, int64_t heads, int64_t keys) {
  if (mask.defined() && mask.dim() == 3) {
    mask = mask.unflatten(0, {batch, heads});
  }
  if (!padding.defined()) {
    return mask;
  }
  RL_CHECK(padding.size(0) == batch && padding.size(1) == keys,
           "expecting key_padding_mask shape of [", batch, ", ", keys, "], but got ",
           padding.sizes());
  const Tensor wide = padding.unsqueeze(1).unsqueeze(1);
  return mask.defined() ? mask + wide : wide;
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query_, const Tensor& key_,
                                                        const Tensor& value_, const Options& o) {
  const bool batched = check_dims(query_, key_, value_, o);
  const bool batch_first = o.batch_first();
  const int64_t batch_dim = batch_first ? 0 : 1;
  const int64_t length_dim = 1 - batch_dim;
  Tensor query = query_;
  Tensor key = key_;
  Tensor value = value_;
  Tensor key_padding_mask = o.key_padding_mask();
  if (!batched) {
    query = query_.unsqueeze(batch_dim);
    key = key_.is_same(query_) ? query : key_.unsqueeze(batch_dim);
    value = value_.is_same(key_) ? key : value_.unsqueeze(batch_dim);
    if (key_padding_mask.defined()) {
      key_padding_mask = key_padding_mask.unsqueeze(0);
    }
  }
  const int64_t batch = query.size(batch_dim);
  const int64_t length = query.size(length_dim);
  const int64_t width = query.size(-1);
  const int64_t heads = o.num_heads();
  RL_CHECK(width == o.embed_dim_to_check(), "was expecting embedding dimension of ",
           o.embed_dim_to_check(), ", but got ", width);
  const int64_t head_dim = width / heads;
  RL_CHECK(head_dim * heads == width, "embed_dim ", width, " not divisible by num_heads ", heads);

  const ScalarType dtype = query.scalar_type();
  Tensor padding = to_additive_mask(key_padding_mask, "key_padding_mask", dtype);
  bool is_causal = o.is_causal();
  RL_CHECK(!is_causal || o.attn_mask().defined(),
           "Need attn_mask if specifying the is_causal hint.");
  Tensor mask;
  if (!is_causal || padding.defined() || o.need_weights()) {  // else the kernel knows it
    mask = to_additive_mask(o.attn_mask(), "attn_mask", dtype);
    is_causal = false;
  }

  std::vector<Tensor> qkv = project(query, key, value, o);
  if (mask.defined()) {
    const int64_t keys = key.size(length_dim);
    RL_CHECK(mask.size(-2) == length && mask.size(-1) == keys &&
                 (mask.dim() == 2 || mask.size(0) == batch * heads),
             "The shape of the ", mask.dim(), "D attn_mask is ", mask.sizes(), ", but should be [",
             mask.dim() == 3 ? str(batch * heads, ", ") : std::string(), length, ", ", keys, "].");
  }
  const auto append_key = [&] {  // for one that every query may see
    for (Tensor* m : {&mask, &padding}) {
      *m = m->defined() ? rushlight::pad(*m, {0, 1}) : *m;
    }
  };
  RL_CHECK(o.bias_k().defined() == o.bias_v().defined(),
           "bias_k and bias_v must be given together");
  if (o.bias_k().defined()) {
    RL_CHECK(!o.static_k().defined() && !o.static_v().defined(),
             "bias cannot be added to static key or value.");
    const DimVector one = batch_first ? DimVector{batch, 1, width} : DimVector{1, batch, width};
    qkv[1] = cat({qkv[1], o.bias_k().expand(one)}, length_dim);
    qkv[2] = cat({qkv[2], o.bias_v().expand(one)}, length_dim);
    append_key();
  }
  const Tensor q = split(qkv[0], heads, batch_first);
  Tensor k = o.static_k().defined()
                 ? split_projected("static_k", o.static_k(), batch, heads, head_dim)
                 : split(qkv[1], heads, batch_first);
  Tensor v = o.static_v().defined()
                 ? split_projected("static_v", o.static_v(), batch, heads, head_dim)
                 : split(qkv[2], heads, batch_first);
  if (o.add_zero_attn()) {
    const Tensor nothing = k.new_zeros({batch, heads, 1, head_dim});
    k = cat({k, nothing}, 2);
    v = cat({v, nothing}, 2);
    append_key();
  }
  mask = merge_masks(mask, padding, batch, heads, k.size(2));
  const double dropout = o.training() ? o.dropout_p() : 0;
  Tensor weights;
  Tensor out;
  if (o.need_weights()) {
    if (padding.defined()) {  // what it hides may be no number
      const Tensor unseen =
          padding.detach().eq(-INFINITY).reshape({padding.size(0), 1, padding.size(1), 1});
      k = k.masked_fill(unseen, 0);
      v = v.masked_fill(unseen, 0);
    }
    const bool narrow = q.element_size() == 2;
    std::tie(out, weights) = (narrow ? attend_in_float32 : attend)(q, k, v, mask, dropout);
    out = out.transpose(1, 2);
    if (o.average_attn_weights()) {
      weights = weights.mean(1);
    }
  } else {
    out = scaled_dot_product_attention(q, k, v, mask, dropout, is_causal).transpose(1, 2);
  }
  if (!batch_first) {
    out = out.transpose(0, 1);
  }
  out = rushlight::linear(out.flatten(2), o.out_proj_weight(), o.out_proj_bias());
  if (!batched) {
    out = out.squeeze(batch_dim);
    weights = weights.defined() ? weights.squeeze(0) : weights;
  }
  return {out, weights};
}

}  // namespace functional

template class Cloneable<MultiheadAttentionImpl>;
MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options_)
    : Cloneable("torch::nn::MultiheadAttention"), options(std::move(options_)) {
  MultiheadAttentionImpl::reset();
}

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
    : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  RL_CHECK_VALUE(width > 0 && options.num_heads() > 0,
                 "embed_dim and num_heads must be greater than 0, got embed_dim=", width,
                 " and num_heads=", options.num_heads(), " instead");
  _qkv_same_embed_dim = options.kdim() == width && options.vdim() == width;
  head_dim = width / options.num_heads();
  RL_CHECK(head_dim * options.num_heads() == width, "embed_dim must be divisible by num_heads");
  const bool same = _qkv_same_embed_dim;
  const auto empty_if = [&](bool wanted, IntArrayRef sizes) {
    return wanted ? empty(sizes) : Tensor();
  };
  in_proj_weight = register_parameter("in_proj_weight", empty_if(same, {3 * width, width}));
  q_proj_weight = register_parameter("q_proj_weight", empty_if(!same, {width, width}));
  k_proj_weight = register_parameter("k_proj_weight", empty_if(!same, {width, options.kdim()}));
  v_proj_weight = register_parameter("v_proj_weight", empty_if(!same, {width, options.vdim()}));
  in_proj_bias = register_parameter("in_proj_bias", empty_if(options.bias(), {3 * width}));
  out_proj = register_module("out_proj", Linear(LinearOptions(width, width).bias(options.bias())));
  bias_k = register_parameter("bias_k", empty_if(options.add_bias_kv(), {1, 1, width}));
  bias_v = register_parameter("bias_v", empty_if(options.add_bias_kv(), {1, 1, width}));
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (weight.defined()) {
      init::xavier_uniform_(weight);
    }
  }
  if (in_proj_bias.defined()) {
    init::constant_(in_proj_bias, 0);
    init::constant_(out_proj->bias, 0);
  }
  if (bias_k.defined()) {
    init::xavier_normal_(bias_k);
    init::xavier_normal_(bias_v);
  }
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& key_padding_mask,
    bool need_weights, const Tensor& attn_mask, bool average_attn_weights, bool is_causal) {
  return functional::multi_head_attention_forward(
      query, key, value,
      functional::MultiheadAttentionForwardFuncOptions(
          options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k, bias_v,
          options.add_zero_attn(), options.dropout(), out_proj->weight, out_proj->bias)
          .training(is_training())
          .key_padding_mask(key_padding_mask)
          .need_weights(need_weights)
          .attn_mask(attn_mask)
          .use_separate_proj_weight(!_qkv_same_embed_dim)
          .q_proj_weight(q_proj_weight)
          .k_proj_weight(k_proj_weight)
          .v_proj_weight(v_proj_weight)
          .average_attn_weights(average_attn_weights)
          .is_causal(is_causal)
          .batch_first(options.batch_first()));
}

}  // namespace torch::nn
