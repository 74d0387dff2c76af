// Scaled dot product attention by its definition: scores by a product of matrices, a softmax over
// rows, another product. The scores of all heads exist as a whole, in the compute type, so memory
// grows with the square of the sequence.
#include "cuda/column.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

// [batch, heads, queries, keys]: where a row's mask is, and which keys it sees.
template <class A>
struct Scores {
  A* scores;
  const A* mask;  // null: none
  int64_t heads;
  int64_t queries;
  int64_t keys;
  int64_t mask_strides[3];  // batch, head, query; keys are contiguous
  bool causal;
  A scale;
  __device__ A at(int64_t row, int64_t k) const {
    const int64_t query = row % queries;
    if (causal && k > query) {
      return -math::infinity<A>;
    }
    const A x = scores[row * keys + k] * scale;
    if (mask == nullptr) {
      return x;
    }
    const int64_t head = row / queries % heads;
    const int64_t batch = row / queries / heads;
    const A m =
        mask[batch * mask_strides[0] + head * mask_strides[1] + query * mask_strides[2] + k];
    return m == -math::infinity<A> ? m : x + m;
  }
};

// Scores become weights, in place.
template <class A>
struct Weigh {
  Scores<A> in;
  A* logsumexp;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    A top = -math::infinity<A>;
    for (int64_t k = team.rank(); k < in.keys; k += team.size()) {
      top = math::maximum(top, in.at(row, k));
    }
    top = team.template all<MaxOf>(top);
    const A base = top == -math::infinity<A> ? A(0) : top;
    A sum = 0;
    for (int64_t k = team.rank(); k < in.keys; k += team.size()) {
      sum += math::exp(in.at(row, k) - base);
    }
    sum = team.template all<SumOf>(sum);
    for (int64_t k = team.rank(); k < in.keys; k += team.size()) {
      const A weight = math::exp(in.at(row, k) - base);
      in.scores[row * in.keys + k] = sum == A(0) ? A(0) : weight / sum;
    }
    if (team.rank() == 0) {  // infinite where no key is seen: all weights are 0
      logsumexp[row] = sum == A(0) ? math::infinity<A> : math::log(sum) + base;
    }
  }
};

// Weights again, from the scores and what the forward pass kept.
template <class A>
struct WeighAgain {
  Scores<A> in;
  const A* logsumexp;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    for (int64_t k = team.rank(); k < in.keys; k += team.size()) {
      in.scores[row * in.keys + k] = math::exp(in.at(row, k) - logsumexp[row]);
    }
  }
};

// The gradient of the weights becomes that of the scores: w * (g - sum(w g)) * scale.
template <class A>
struct ThroughSoftmax {
  A* grads;
  const A* weights;
  int64_t keys;
  A scale;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    const int64_t first = row * keys;
    A dot = 0;
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      dot += weights[first + k] * grads[first + k];
    }
    dot = team.template all<SumOf>(dot);
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      grads[first + k] = weights[first + k] * (grads[first + k] - dot) * scale;
    }
  }
};

ScalarType accumulation_dtype(const Tensor& t) {
  return t.dtype() == kFloat64 ? kFloat64 : kFloat32;
}

Tensor transpose_matrices(const Tensor& t) {
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  std::swap(sizes[2], sizes[3]);
  std::swap(strides[2], strides[3]);
  return make_view(t, {sizes, strides, t.storage_offset()});
}

// Keys or values for every head of the queries: heads of a group share one.
Tensor for_heads(const Tensor& t, int64_t heads) {
  const int64_t groups = t.sizes()[1];
  if (groups == heads) {
    return t;
  }
  const IntArrayRef n = t.sizes();
  const IntArrayRef s = t.strides();
  const Tensor view = make_view(t, {{n[0], groups, heads / groups, n[2], n[3]},
                                    {s[0], s[1], 0, s[2], s[3]},
                                    t.storage_offset()});
  const Tensor dense = make_empty(view.sizes(), t.dtype(), t.device());
  copy_raw(dense, view);
  return make_view(dense,
                   {{n[0], heads, n[2], n[3]}, contiguous_strides({n[0], heads, n[2], n[3]}), 0});
}

// The sum over the heads of each group, for a gradient of all heads.
void sum_heads(const Tensor& out, const Tensor& all) {
  const int64_t groups = out.sizes()[1];
  const int64_t heads = all.sizes()[1];
  if (groups == heads) {
    return copy_raw(out, all);
  }
  const IntArrayRef n = all.sizes();
  const DimVector split = {n[0], groups, heads / groups, n[2], n[3]};
  const Tensor sums = make_empty({n[0], groups, n[2], n[3]}, all.dtype(), all.device());
  cuda::sum(sums, make_view(all, {split, contiguous_strides(split), 0}), IntArrayRef({2}), false,
            {});
  copy_raw(out, sums);
}

struct Problem {
  Tensor query, key, value;
  DimVector sizes;  // of the scores
  ScalarType dtype;
  bool empty() const { return product(sizes) == 0; }
  int64_t rows() const { return sizes[0] * sizes[1] * sizes[2]; }
};
Problem problem_of(const Tensor& query, const Tensor& key, const Tensor& value) {
  const int64_t heads = query.sizes()[1];
  return {query,
          for_heads(key, heads),
          for_heads(value, heads),
          {query.sizes()[0], heads, query.sizes()[2], key.sizes()[2]},
          accumulation_dtype(query)};
}

template <class A>
Scores<A> scores_of(const Tensor& scores, const Tensor& mask, bool causal, double scale) {
  Scores<A> s{scores.data<A>(),
              mask.defined() ? mask.data<A>() : nullptr,
              scores.sizes()[1],
              scores.sizes()[2],
              scores.sizes()[3],
              {},
              causal,
              static_cast<A>(scale)};
  for (int d = 0; d < 3 && mask.defined(); d++) {
    s.mask_strides[d] = mask.strides()[static_cast<size_t>(d)];
  }
  return s;
}

Tensor raw_scores(const Problem& p) {
  const Tensor scores = make_empty(p.sizes, p.dtype, p.query.device());
  cuda::_matmul(scores, p.query, transpose_matrices(p.key));
  return scores;
}

}  // namespace

}  // namespace cuda

void cuda::_attention(const Tensor& output, const Tensor& logsumexp, const Tensor& query,
                      const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                      bool is_causal, double scale) {
  const Problem p = problem_of(query, key, value);
  if (p.empty()) {
    fill_raw(output, 0);
    fill_raw(logsumexp, Scalar(math::infinity<double>));
    return;
  }
  const Tensor scores = raw_scores(p);
  {
    const Launch launch(output.device());
    visit_dtype<set_floats>("scaled_dot_product_attention", p.dtype, [&](auto tag) {
      using A = typename decltype(tag)::type;
      for_rows(launch, p.rows(), p.sizes[3], 1,
               Weigh<A>{scores_of<A>(scores, attn_mask, is_causal, scale), logsumexp.data<A>()});
    });
  }
  cuda::_matmul(output, cast_raw(scores, query.dtype()), p.value);
}

void cuda::_attention_backward(const Tensor& grad_query, const Tensor& grad_key,
                               const Tensor& grad_value, const Tensor& grad_output,
                               const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& attn_mask, bool is_causal, double scale, const Tensor&,
                               const Tensor& logsumexp) {
  const Problem p = problem_of(query, key, value);
  if (p.empty()) {
    for (const Tensor* t : {&grad_query, &grad_key, &grad_value}) {
      fill_raw(*t, 0);
    }
    return;
  }
  const Tensor weights = raw_scores(p);
  const Tensor grads = make_empty(p.sizes, p.dtype, query.device());
  cuda::_matmul(grads, grad_output, transpose_matrices(p.value));
  {
    const Launch launch(grad_query.device());
    visit_dtype<set_floats>("scaled_dot_product_attention", p.dtype, [&](auto tag) {
      using A = typename decltype(tag)::type;
      for_rows(
          launch, p.rows(), p.sizes[3], 1,
          WeighAgain<A>{scores_of<A>(weights, attn_mask, is_causal, scale), logsumexp.data<A>()});
      for_rows(
          launch, p.rows(), p.sizes[3], 1,
          ThroughSoftmax<A>{grads.data<A>(), weights.data<A>(), p.sizes[3], static_cast<A>(scale)});
    });
  }
  const Tensor w = cast_raw(weights, query.dtype());
  const Tensor g = cast_raw(grads, query.dtype());
  const auto dense = [&](const Tensor& like) {
    return make_empty(like.sizes(), query.dtype(), query.device());
  };
  const Tensor all_queries = dense(query);
  const Tensor all_keys = dense(p.key);
  const Tensor all_values = dense(p.value);
  cuda::_matmul(all_queries, g, p.key);
  cuda::_matmul(all_keys, transpose_matrices(g), query);
  cuda::_matmul(all_values, transpose_matrices(w), grad_output);
  copy_raw(grad_query, all_queries);
  sum_heads(grad_key, all_keys);
  sum_heads(grad_value, all_values);
}

}  // namespace rushlight
