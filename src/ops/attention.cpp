// Attention above its kernel: the contract, the choice between the fused kernel and ordinary ops,
// and the derivative that has derivatives.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rushlight/batch_invariant.h>
#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"

namespace rushlight {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Rows must be contiguous; the other strides may be anything.
void make_rows_contiguous(Tensor& t) {
  if (t.size(-1) > 1 && t.stride(-1) != 1) {
    t = contiguous_raw(t);
  }
}

void check_operands(const Tensor& query, const Tensor& key, const Tensor& value, Tensor& mask) {
  RL_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
           "attention: expected query, key and value of 4 dimensions, got ", query.sizes(), ", ",
           key.sizes(), " and ", value.sizes());
  RL_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
           "attention: expected query, key and value of the same dtype, got ", query.dtype(), ", ",
           key.dtype(), " and ", value.dtype());
  check_floating("scaled_dot_product_attention", query);
  RL_CHECK(query.size(0) == key.size(0) && query.size(0) == value.size(0) &&
               key.size(1) == value.size(1) && key.size(2) == value.size(2) &&
               query.size(3) == key.size(3),
           "attention: the shapes of query ", query.sizes(), ", key ", key.sizes(), " and value ",
           value.sizes(), " do not fit each other");
  RL_CHECK(key.size(1) == 0 ? query.size(1) == 0 : query.size(1) % key.size(1) == 0,
           "attention: the number of heads of key (", key.size(1),
           ") must divide the number of heads of query (", query.size(1), ")");
  if (mask.defined()) {
    const DimVector scores = {query.size(0), query.size(1), query.size(2), key.size(2)};
    RL_CHECK(mask.sizes() == IntArrayRef(scores), "attention: expected attn_mask of shape ",
             IntArrayRef(scores), ", got ", mask.sizes());
    mask = cast_raw(mask, accumulation_dtype(query));
    make_rows_contiguous(mask);
  }
}

// (batch, heads, rows, width) that lies in memory as (batch, rows, heads, width): what layers that
// split and join heads read without a copy.
DimVector strides_rows_before_heads(IntArrayRef sizes) {
  const auto least = [](int64_t n) { return std::max<int64_t>(n, 1); };
  const int64_t row = least(sizes[1]) * least(sizes[3]);
  return {row * least(sizes[2]), least(sizes[3]), row, 1};
}

OutSpec like_operand(const Tensor& t) {
  const bool heads_inside = t.stride(1) < t.stride(2);
  return {t.sizes(), t.dtype(), heads_inside ? strides_rows_before_heads(t.sizes()) : DimVector()};
}

}  // namespace

namespace shape {

OutSpecs<2> _attention(Tensor& query, Tensor& key, Tensor& value, Tensor& attn_mask, bool&,
                       double&) {
  check_operands(query, key, value, attn_mask);
  make_rows_contiguous(query);
  make_rows_contiguous(key);
  make_rows_contiguous(value);
  const DimVector sizes = {query.size(0), query.size(1), query.size(2), value.size(3)};
  return {OutSpec{sizes, query.dtype(), strides_rows_before_heads(sizes)},
          OutSpec{{query.size(0), query.size(1), query.size(2)}, accumulation_dtype(query)}};
}

OutSpecs<3> _attention_backward(Tensor& grad_output, Tensor& query, Tensor& key, Tensor& value,
                                Tensor& attn_mask, bool&, double&, Tensor& output,
                                Tensor& logsumexp) {
  check_operands(query, key, value, attn_mask);
  const DimVector sizes = {query.size(0), query.size(1), query.size(2), value.size(3)};
  RL_CHECK(grad_output.sizes() == IntArrayRef(sizes) && output.sizes() == IntArrayRef(sizes) &&
               grad_output.dtype() == query.dtype() && output.dtype() == query.dtype(),
           "attention backward: output and its gradient must have the shape ", IntArrayRef(sizes),
           " and the dtype of query");
  RL_CHECK(logsumexp.sizes() == IntArrayRef(sizes).slice(0, 3) &&
               logsumexp.dtype() == accumulation_dtype(query),
           "attention backward: wrong shape or dtype of logsumexp");
  const OutSpecs<3> specs = {like_operand(query), like_operand(key), like_operand(value)};
  for (Tensor* t : {&grad_output, &query, &key, &value, &output}) {
    make_rows_contiguous(*t);
  }
  logsumexp = contiguous_raw(logsumexp);
  return specs;
}

}  // namespace shape

namespace {

// Row i sees columns up to i.
Tensor causal_bias(int64_t rows, int64_t columns, Device device) {
  return ones({rows, columns}, TensorOptions(kBool).device(device)).tril().logical_not();
}

Tensor repeat_heads(const Tensor& t, int64_t heads) {
  return t.size(-3) == heads ? t : t.repeat_interleave(heads / t.size(-3), -3);
}

Tensor in_compute_type(const Tensor& t) { return t.to(compute_dtype(t.dtype())); }

// Where a mask hides keys from queries.
Tensor bias_of_mask(const Tensor& mask) {
  return mask.dtype() == kBool ? mask.logical_not() : mask.eq(-infinity);
}

// Whether what is hidden may be no number, which must not reach anybody by way of zeros: looked at
// in the host's memory alone.
bool may_hide_nan(const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal) {
  constexpr Sizes any_number = {0, std::numeric_limits<double>::max()};
  return (mask.defined() || is_causal) && key.device() == kCPU &&
         !(are_moderate(key, any_number) && are_moderate(value, any_number));
}

// With zeros in the place of rows that are not finite.
Tensor finite_rows(const Tensor& t) {
  return t.masked_fill(t.isfinite().all(-1, true).logical_not(), 0);
}

// a @ b.T, of which columns by rows of b that are not finite have no gradient.
Tensor product_with_rows(const Tensor& a, const Tensor& b) {
  const Tensor plain = a.detach().matmul(b.detach().transpose(-2, -1));
  const Tensor finite = b.isfinite().all(-1, true).transpose(-2, -1);
  return where(finite, a.matmul(finite_rows(b).transpose(-2, -1)), plain);
}

// weights @ value, where a value that is hidden counts for nothing, whatever it is.
Tensor weighted_sum_of_values(const Tensor& weights, const Tensor& value, const Tensor& mask,
                              bool is_causal) {
  const Tensor strange = value.isfinite().logical_not();
  Tensor seen = is_causal ? causal_bias(weights.size(-2), value.size(-2), value.device())
                          : bias_of_mask(mask);
  seen = seen.logical_not().to(weights.dtype());
  const Tensor reached = seen.matmul(strange.to(weights.dtype())).gt(0);
  const Tensor plain = weights.detach().matmul(value.detach());
  return where(reached, plain, weights.matmul(value.masked_fill(strange, 0)));
}

// softmax(query @ key.T * scale + mask); rows without any key are zero. A score that is hidden may
// be NaN; `strange`: keys may be no numbers.
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask, bool is_causal,
                         double scale, bool strange) {
  const Tensor scaled = query.mul(scale);
  Tensor scores = strange ? product_with_rows(scaled, key) : scaled.matmul(key.transpose(-2, -1));
  if (is_causal) {
    scores = scores.masked_fill(causal_bias(scores.size(-2), scores.size(-1), scores.device()),
                                -infinity);
  }
  if (!mask.defined()) {
    return scores.softmax(-1);
  }
  scores = (mask.dtype() == kBool ? scores : scores.add(mask.to(scores.dtype())))
               .masked_fill(bias_of_mask(mask), -infinity);
  const Tensor nothing = scores.detach().eq(-infinity).all(-1, true);
  return scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& attn_mask, const Tensor& output,
                                                      const Tensor& logsumexp, bool is_causal,
                                                      double scale, std::array<bool, 3> mask) {
  Tensor grad_query;
  Tensor grad_key;
  Tensor grad_value;
  if (!forward::is_differentiated(grad, query, key, value, attn_mask)) {
    std::tie(grad_query, grad_key, grad_value) = _attention_backward(
        grad, query, key, value, attn_mask, is_causal, scale, output, logsumexp);
  } else {
    const int64_t heads = query.size(1);
    const Tensor queries = in_compute_type(query);
    const Tensor keys = repeat_heads(in_compute_type(key), heads);
    const Tensor values = repeat_heads(in_compute_type(value), heads);
    const Tensor given = in_compute_type(grad);
    const bool strange = may_hide_nan(key, value, attn_mask, is_causal);
    const Tensor weights = attention_weights(queries, keys, attn_mask, is_causal, scale, strange);
    Tensor reached = given.matmul((strange ? finite_rows(values) : values).transpose(-2, -1));
    if (strange) {  // NaN where a value that is none is seen
      const Tensor plain = given.detach().matmul(values.detach().transpose(-2, -1));
      reached = where(weights.eq(0), reached, plain + (reached - reached.detach()));
    }
    const Tensor moved =
        weights.mul(reached.sub(reached.mul(weights).sum(DimVector{-1}, true))).mul(scale);
    // Heads of query that share one of key add up.
    const auto sum_groups = [&](const Tensor& t) {
      const bool alone = key.size(1) == heads;
      return (alone ? t : t.unflatten(1, {key.size(1), -1}).sum(DimVector{2})).to(key.dtype());
    };
    grad_query = moved.matmul(strange ? finite_rows(keys) : keys).to(query.dtype());
    grad_key = sum_groups(moved.transpose(-2, -1).matmul(queries));
    grad_value = sum_groups(weights.transpose(-2, -1).matmul(given));
  }
  return {mask[0] ? grad_query : Tensor(), mask[1] ? grad_key : Tensor(),
          mask[2] ? grad_value : Tensor()};
}

Tensor composite::scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                               const Tensor& value, const Tensor& attn_mask,
                                               double dropout_p, bool is_causal,
                                               std::optional<double> scale, bool enable_gqa) {
  RL_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
           "scaled_dot_product_attention: query, key and value must have the same dtype, "
           "but have ",
           query.dtype(), ", ", key.dtype(), " and ", value.dtype());
  const int64_t least = std::min({query.dim(), key.dim(), value.dim()});
  RL_CHECK(least >= 2,
           "scaled_dot_product_attention: Expected query, key, and value to be at least 2 "
           "dimensional, but they have ",
           query.dim(), ", ", key.dim(), " and ", value.dim(), " dimensions");
  RL_CHECK(!attn_mask.defined() || !is_causal,
           "scaled_dot_product_attention: Explicit attn_mask should not be set when "
           "is_causal=True");
  RL_CHECK(
      !attn_mask.defined() || attn_mask.dtype() == kBool || attn_mask.dtype() == query.dtype() ||
          attn_mask.dtype() == kFloat32,
      "scaled_dot_product_attention: Expected attn_mask dtype to be bool or float, or query's, ",
      query.dtype(), ", but got ", attn_mask.defined() ? attn_mask.dtype() : kBool);
  RL_CHECK(!enable_gqa || least >= 3,
           "scaled_dot_product_attention: enable_gqa expects inputs of at least 3 dimensions");
  if (enable_gqa) {
    const int64_t heads = query.size(-3);
    RL_CHECK(key.size(-3) == value.size(-3) &&
                 (key.size(-3) == 0 ? heads == 0 : heads % key.size(-3) == 0),
             "scaled_dot_product_attention: enable_gqa shares heads in equal groups, but key has ",
             key.size(-3), " heads, value ", value.size(-3), " and query ", heads);
  }
  const int64_t width = std::max<int64_t>(query.size(-1), 1);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  const int64_t rows = query.size(-2);
  // A few queries that see all keys: products are fast, and mean the same.
  const bool plain = !is_batch_invariant() && rows < 4 && !attn_mask.defined() && !is_causal &&
                     query.dtype() == compute_dtype(query.dtype());
  const bool fused = !plain && dropout_p == 0 && is_floating(query.dtype()) &&
                     !forward::is_differentiated(attn_mask) && query.size(-1) == key.size(-1) &&
                     key.size(-2) == value.size(-2);
  if (!fused) {
    const auto for_queries = [&](const Tensor& t) {
      return in_compute_type(enable_gqa ? repeat_heads(t, query.size(-3)) : t);
    };
    const Tensor keys = for_queries(key);
    const Tensor values = for_queries(value);
    const bool strange = may_hide_nan(key, value, attn_mask, is_causal);
    Tensor weights =
        attention_weights(in_compute_type(query), keys, attn_mask, is_causal, factor, strange);
    if (dropout_p > 0) {
      weights = rushlight::dropout(weights, dropout_p, true);
    }
    const Tensor result = strange ? weighted_sum_of_values(weights, values, attn_mask, is_causal)
                                  : weights.matmul(values);
    return result.to(query.dtype());
  }
  // Every dimension before the rows, of query and of what it meets.
  const int64_t kept = enable_gqa ? 3 : 2;
  const auto before = [&](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - kept));
  };
  const DimVector batch =
      broadcast_sizes(broadcast_sizes(before(query), before(key)), before(value));
  // As (batch, heads, rows, width).
  const auto prepare = [&](const Tensor& t) {
    if (t.dim() == 4 && before(t) == IntArrayRef(batch)) {
      return t;
    }
    DimVector sizes = batch;
    for (int64_t d = -kept; d < 0; d++) {
      sizes.push_back(t.size(d));
    }
    const int64_t heads = sizes.size() > 2 ? sizes[sizes.size() - 3] : 1;
    const DimVector leading(IntArrayRef(sizes).slice(0, sizes.size() > 3 ? sizes.size() - 3 : 0));
    return t.expand(sizes).reshape({product(leading), heads, t.size(-2), t.size(-1)});
  };
  const Tensor q = prepare(query);
  Tensor mask = attn_mask;
  if (mask.defined()) {
    if (mask.dtype() == kBool) {
      mask = rushlight::zeros(mask.sizes(),
                              TensorOptions(accumulation_dtype(query)).device(mask.device()))
                 .masked_fill(mask.logical_not(), -infinity);
    }
    DimVector scores = batch;
    if (enable_gqa) {
      scores.push_back(query.size(-3));
    }
    scores.push_back(rows);
    scores.push_back(key.size(-2));
    mask = mask.expand(scores).reshape({q.size(0), q.size(1), rows, key.size(-2)});
  }
  const Tensor result =
      std::get<0>(_attention(q, prepare(key), prepare(value), mask, is_causal, factor));
  if (query.dim() == 4 && q.is_same(query)) {
    return result;
  }
  DimVector sizes = batch;
  if (enable_gqa) {
    sizes.push_back(query.size(-3));
  }
  sizes.push_back(rows);
  sizes.push_back(value.size(-1));
  return result.reshape(sizes);
}

}  // namespace rushlight
