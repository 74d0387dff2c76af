// Scaled dot product attention, forward and backward, in blocks: the scores never exist as a whole.
//
// A panel is `nr` queries side by side in vector lanes. The scores of a block of keys stand as
// [key][lane]. That is what the micro-kernel of cpu/isa/matmul/gemm_engine.h writes for rows of K
// times a panel of Q, and it is the panel that the next product reads: nothing moves in between,
// and a softmax along keys is plain arithmetic in lanes. Keys come in blocks whose length depends
// on their number alone, in order, and every sum belongs to one task: threads change no bit.
//
// What is hidden from a query, by a mask of -inf or by causality, adds nothing to it, whatever
// numbers stand there. Products of panels multiply it by zero, so where it may be infinite or NaN
// queries are taken one by one, as they are where there are few.
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include <rushlight/batch_invariant.h>
#include "core/parallel.h"
#include "cpu/isa/nn/attention.h"
#include "cpu/isa/nn/attention_products.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace attention;

// to[lane][e] = from[e][lane] * factor[lane], for `rows` lanes and n elements each.
template <class S, class T>
void write_lanes(S* to, int64_t row, const T* from, const T* factor, int64_t rows, int64_t n) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  for (int64_t x = 0; x < rows; x += w) {
    for (int64_t e = 0; e < n; e += w) {
      const int64_t here = std::min(w, n - e);
      typename V::V square[w];
      load_transposed<T>(
          square, [&](int64_t i) { return from + (e + std::min(i, here - 1)) * lanes<T> + x; });
      for (int64_t i = 0; i < std::min(w, rows - x); i++) {
        store_some(to + (x + i) * row + e, V::mul(V::set1(factor[x + i]), square[i]), here);
      }
    }
  }
}

// ---- scores ----

// Scales the scores, adds the mask, and hides keys behind the query where causal. Scores of keys
// `first`.. and queries `query`..; `spare` has the size of the scores and a vector more.
template <class T>
void mask_scores(T* __restrict scores, T scale, const T* mask, int64_t mask_row, int64_t rows,
                 int64_t keys, bool causal, int64_t query, int64_t first, T* spare) {
  constexpr int64_t nr = lanes<T>;
  for (int64_t i = 0; scale != T(1) && i < keys * nr; i++) {
    scores[i] *= scale;
  }
  if (mask != nullptr) {
    pack_lanes(spare, mask, mask_row, rows, keys, T(1));
    for (int64_t i = 0; i < keys * nr; i++) {
      scores[i] = spare[i] == -math::infinity<T> ? spare[i] : scores[i] + spare[i];
    }
  }
  if (causal && first + keys - 1 > query) {
    for (int64_t k = std::max<int64_t>(0, query + 1 - first); k < keys; k++) {
      const int64_t hidden = std::min<int64_t>(first + k - query, nr);
      std::fill_n(scores + k * nr, hidden, -math::infinity<T>);
    }
  }
}

// One more block of keys: scores become weights relative to the new maxima, the sums grow by them,
// and `factor` says how what was added up before must shrink.
template <class T>
void softmax_step(T* __restrict scores, int64_t keys, T* __restrict top, T* __restrict sum,
                  T* __restrict factor) {
  constexpr int64_t nr = lanes<T>;
  alignas(64) T shift[nr];
  alignas(64) T total[nr] = {};
  std::copy(top, top + nr, shift);
  for (int64_t k = 0; k < keys; k++) {
    for (int64_t x = 0; x < nr; x++) {
      shift[x] = scores[k * nr + x] > shift[x] ? scores[k * nr + x] : shift[x];
    }
  }
  for (int64_t x = 0; x < nr; x++) {
    const T now = shift[x];
    shift[x] = now == -math::infinity<T> ? T(0) : now;  // no key yet
    factor[x] = math::exp(top[x] - shift[x]);
    top[x] = now;
  }
  for (int64_t k = 0; k < keys; k++) {
    for (int64_t x = 0; x < nr; x++) {
      const T weight = math::exp(scores[k * nr + x] - shift[x]);
      scores[k * nr + x] = weight;
      total[x] += weight;
    }
  }
  for (int64_t x = 0; x < nr; x++) {
    sum[x] = sum[x] * factor[x] + total[x];
  }
}

template <class T>
void shrink(T* __restrict rows, int64_t n, const T* __restrict factor) {
  constexpr int64_t nr = lanes<T>;
  if (std::all_of(factor, factor + nr, [](T f) { return f == T(1); })) {
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t x = 0; x < nr; x++) {
      rows[i * nr + x] *= factor[x];
    }
  }
}

// ---- forward ----

template <class Products>
void forward(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
             const Tensor& value, const Tensor& attn_mask, bool is_causal, double scale) {
  using S = typename Products::S;
  using T = typename Products::T;
  using Element = typename Products::Element;
  constexpr int64_t nr = lanes<T>;
  const Heads<const S> q(query);
  const Heads<const S> k(key);
  const Heads<const S> v(value);
  const Heads<const T> mask(attn_mask);
  const Heads<S> o(out);
  const Sizes z(query, key, value, is_causal, Products::key_block);
  const T of_queries = Products::scales_queries ? static_cast<T>(scale) : T(1);
  const T of_scores = Products::scales_queries ? T(1) : static_cast<T>(scale);
  const int64_t heads = z.batches * z.key_heads;
  if (z.queries < few_queries && !is_batch_invariant()) {
    std::vector<int64_t> all(static_cast<size_t>(heads));
    std::iota(all.begin(), all.end(), 0);
    forward_by_query<S>(out, logsumexp, query, key, value, attn_mask, z, scale, all);
    return;
  }
  const bool wants_finite = z.causal || attn_mask.defined() || Products::wants_finite_values;
  std::vector<char> plain(static_cast<size_t>(heads * z.blocks), 1);
  const int64_t key_step = Products::a_elements(z.block, z.width);
  const int64_t value_step = Products::a_elements(z.value_width, z.block);
  const Scratch<Element> all_keys(heads * z.blocks * key_step);
  const Scratch<Element> all_values(heads * z.blocks * value_step);
  parallel_for(0, heads * z.blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t first = task % z.blocks * z.block;
      const int64_t n = z.keys_in(task % z.blocks);
      const int64_t batch = task / z.blocks / z.key_heads;
      const int64_t head = task / z.blocks % z.key_heads;
      Products::put_rows(all_keys + task * key_step, k.at(batch, head, first), k.row, n, z.width);
      Products::put_columns(all_values + task * value_step, v.at(batch, head, first), v.row,
                            z.value_width, n);
      if (wants_finite) {
        plain[static_cast<size_t>(task)] =
            all_finite(v.at(batch, head, first), v.row, n, z.value_width);
      }
    }
  });
  std::vector<int64_t> strange;
  for (int64_t h = 0; h < heads; h++) {
    const auto from = plain.begin() + h * z.blocks;
    if (std::find(from, from + z.blocks, 0) != from + z.blocks) {
      strange.push_back(h);
    }
  }

  const int64_t panels = blocks_of(z.queries, nr);
  const int64_t groups = blocks_of(panels, panels_together);
  T* const sums_out = logsumexp.data<T>();
  parallel_for(0, z.batches * z.heads * groups, 1, [&](int64_t begin, int64_t end) {
    Products products(z.block);
    const int64_t panel_step = Products::panel_elements(z.width);
    const Scratch<Element> queries(panels_together * panel_step + nr);
    const Scratch<T> result(panels_together * z.value_width * nr);
    const Scratch<T> scores(z.block * nr + nr);
    const Scratch<T> spare(attn_mask.defined() ? z.block * nr + nr : 0);
    alignas(64) T top[panels_together][nr];
    alignas(64) T sum[panels_together][nr];
    alignas(64) T factor[nr];
    for (int64_t task = begin; task < end; task++) {
      const int64_t first_panel = task % groups * panels_together;
      const int64_t count = std::min(panels_together, panels - first_panel);
      const int64_t batch = task / groups / z.heads;
      const int64_t head = task / groups % z.heads;
      const int64_t packed = (batch * z.key_heads + head / z.group()) * z.blocks;
      std::fill_n(result.data(), count * z.value_width * nr, T(0));
      for (int64_t p = 0; p < count; p++) {
        const int64_t i = (first_panel + p) * nr;
        Products::put_lanes(queries + p * panel_step, q.at(batch, head, i), q.row, z.queries - i,
                            z.width, of_queries);
        std::fill_n(top[p], nr, -math::infinity<T>);
        std::fill_n(sum[p], nr, T(0));
      }
      for (int64_t b = 0; b < z.blocks; b++) {
        const int64_t first = b * z.block;
        const int64_t n = z.keys_in(b);
        for (int64_t p = 0; p < count; p++) {
          const int64_t i = (first_panel + p) * nr;
          const int64_t seen = z.causal ? std::min(n, i + nr - first) : n;
          if (seen <= 0) {
            continue;
          }
          products.multiply(n, seen, z.width, all_keys + (packed + b) * key_step,
                            queries + p * panel_step, scores.data());
          const T* here =
              attn_mask.defined() ? mask.at(batch, head, i) + first : static_cast<T*>(nullptr);
          mask_scores(scores.data(), of_scores, here, mask.row, z.queries - i, seen, z.causal, i,
                      first, spare.data());
          softmax_step(scores.data(), seen, top[p], sum[p], factor);
          T* const sums = result + p * z.value_width * nr;
          shrink(sums, z.value_width, factor);
          products.add_weighted(z.value_width, n, seen, all_values + (packed + b) * value_step,
                                scores.data(), sums);
        }
      }
      for (int64_t p = 0; p < count; p++) {
        const int64_t i = (first_panel + p) * nr;
        const int64_t rows = std::min(nr, z.queries - i);
        for (int64_t x = 0; x < nr; x++) {
          factor[x] = sum[p][x] == T(0) ? T(0) : 1 / sum[p][x];
        }
        write_lanes(o.at(batch, head, i), o.row, result + p * z.value_width * nr, factor, rows,
                    z.value_width);
        T* const to = sums_out + (batch * z.heads + head) * z.queries + i;
        for (int64_t x = 0; x < rows; x++) {
          to[x] = top[p][x] + std::log(sum[p][x]);
        }
      }
    }
  });
  if (!strange.empty()) {
    forward_by_query<S>(out, logsumexp, query, key, value, attn_mask, z, scale, strange);
  }
}

// ---- backward ----

// What the gradients of one head read, in the forms in which they read it.
template <class Products>
struct HeadOperands {
  using T = typename Products::T;
  using Element = typename Products::Element;
  int64_t panels;
  Scratch<Element> query_lanes;  // [panel][element][lane]
  Scratch<Element> grad_lanes;   // of the output
  Scratch<Element> query_rows;   // [group of panels][columns][query]
  Scratch<Element> grad_rows;
  Scratch<T> grad_query;  // sums; [panel][element][lane]
  Scratch<T> logsumexp;   // infinite where there is no query or no key
  Scratch<T> delta;       // the sum of output * gradient of each query

  // Where the rows of a group of panels begin.
  static int64_t rows_before(int64_t panel, int64_t n) {
    return Products::b_elements(panel * lanes<T>, n);
  }
  HeadOperands(const Sizes& z, int64_t panels)
      : panels(panels),
        query_lanes(panels * Products::panel_elements(z.width) + lanes<T>),
        grad_lanes(panels * Products::panel_elements(z.value_width) + lanes<T>),
        query_rows(rows_before(panels, z.width)),
        grad_rows(rows_before(panels, z.value_width)),
        grad_query(panels * z.width * lanes<T>),
        logsumexp(panels * lanes<T>),
        delta(panels * lanes<T>) {}
};

template <class Products, class S = typename Products::S, class T = typename Products::T>
void load_operands(const HeadOperands<Products>& to, const Sizes& z, const S* query,
                   int64_t query_row, const S* grad, int64_t grad_row, const S* output,
                   int64_t output_row, const T* logsumexp, T scale) {
  constexpr int64_t nr = lanes<T>;
  std::fill_n(to.grad_query.data(), to.panels * z.width * nr, T(0));
  for (int64_t p = 0; p < to.panels; p++) {
    const int64_t i = p * nr;
    Products::put_lanes(to.query_lanes + p * Products::panel_elements(z.width),
                        query + i * query_row, query_row, z.queries - i, z.width, scale);
    Products::put_lanes(to.grad_lanes + p * Products::panel_elements(z.value_width),
                        grad + i * grad_row, grad_row, z.queries - i, z.value_width, T(1));
  }
  for (int64_t p = 0; p < to.panels; p += panels_together) {
    const int64_t i = p * nr;
    const int64_t depth = std::min(panels_together, to.panels - p) * nr;
    const int64_t rows = std::min(depth, z.queries - i);
    Products::put_panels(to.query_rows + to.rows_before(p, z.width), query + i * query_row,
                         query_row, rows, depth, z.width, scale);
    Products::put_panels(to.grad_rows + to.rows_before(p, z.value_width), grad + i * grad_row,
                         grad_row, rows, depth, z.value_width, T(1));
  }
  for (int64_t i = 0; i < to.panels * nr; i++) {
    const bool there = i < z.queries;
    const T kept = there ? logsumexp[i] : -math::infinity<T>;
    to.logsumexp[i] = kept == -math::infinity<T> ? math::infinity<T> : kept;
    to.delta[i] = 0;
    if (there) {
      using V = Simd<T>;
      const S* a = output + i * output_row;
      const S* b = grad + i * grad_row;
      to.delta[i] = sums_over<T, 1>(z.value_width, [&](int64_t e, int64_t n) {
        return Vectors<T, 1>{{V::mul(load_some(a + e, n), load_some(b + e, n))}};
      })[0];
    }
  }
}

// scores become weights, `reached` (the gradient of the weights) that of the scores.
template <class T>
void weights_backward(T* __restrict scores, T* __restrict reached, int64_t keys,
                      const T* __restrict logsumexp, const T* __restrict delta) {
  constexpr int64_t nr = lanes<T>;
  for (int64_t k = 0; k < keys; k++) {
    for (int64_t x = 0; x < nr; x++) {
      const T weight = math::exp(scores[k * nr + x] - logsumexp[x]);
      scores[k * nr + x] = weight;
      reached[k * nr + x] = weight * (reached[k * nr + x] - delta[x]);
    }
  }
}

template <class Products>
void backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
              const Tensor& grad_output, const Tensor& query, const Tensor& key,
              const Tensor& value, const Tensor& attn_mask, const Tensor& output,
              const Tensor& logsumexp, bool is_causal, double scale) {
  using S = typename Products::S;
  using T = typename Products::T;
  using Element = typename Products::Element;
  constexpr int64_t nr = lanes<T>;
  const Heads<const S> q(query);
  const Heads<const S> k(key);
  const Heads<const S> v(value);
  const Heads<const S> g(grad_output);
  const Heads<const S> o(output);
  const Heads<const T> mask(attn_mask);
  const Heads<S> to_query(grad_query);
  const Heads<S> to_key(grad_key);
  const Heads<S> to_value(grad_value);
  const Sizes z(query, key, value, is_causal, Products::key_block);
  if (z.batches * z.key_heads == 0) {
    return;
  }
  const T of_queries = Products::scales_queries ? static_cast<T>(scale) : T(1);
  const T of_scores = Products::scales_queries ? T(1) : static_cast<T>(scale);
  const bool hides = z.causal || attn_mask.defined();
  const int64_t panels = blocks_of(z.queries, nr);
  const int64_t key_step = Products::a_elements(z.block, z.width);
  const int64_t column_step = Products::a_elements(z.width, z.block);
  const int64_t value_step = Products::a_elements(z.block, z.value_width);
  parallel_for(0, z.batches * z.key_heads, 1, [&](int64_t begin, int64_t end) {
    Products products(z.block);
    const Scratch<Element> key_rows(z.blocks * key_step);
    const Scratch<Element> key_columns(z.blocks * column_step);
    const Scratch<Element> value_rows(z.blocks * value_step);
    const HeadOperands<Products> head(z, panels);
    const Scratch<T> key_sums(z.keys * z.width);
    const Scratch<T> value_sums(z.keys * z.value_width);
    const int64_t panel_step = z.block * nr;
    const Scratch<T> scores(panels_together * panel_step + nr);
    const Scratch<T> reached(panels_together * panel_step + nr);
    const Scratch<T> spare(attn_mask.defined() ? panel_step + nr : 0);
    alignas(64) T scales[nr];
    std::fill_n(scales, nr, static_cast<T>(scale));
    for (int64_t task = begin; task < end; task++) {
      const int64_t batch = task / z.key_heads;
      const int64_t key_head = task % z.key_heads;
      std::fill_n(key_sums.data(), z.keys * z.width, T(0));
      std::fill_n(value_sums.data(), z.keys * z.value_width, T(0));
      const bool one_by_one =
          z.queries < few_queries ||
          (hides && !(all_finite(k.at(batch, key_head, 0), k.row, z.keys, z.width) &&
                      all_finite(v.at(batch, key_head, 0), v.row, z.keys, z.value_width)));
      if (one_by_one) {
        backward_by_query<S>(z, batch, key_head, to_query, key_sums.data(), value_sums.data(), g, q,
                             k, v, mask, o, logsumexp.data<T>(), static_cast<T>(scale));
      } else {
        for (int64_t b = 0; b < z.blocks; b++) {
          const int64_t n = z.keys_in(b);
          const S* rows = k.at(batch, key_head, b * z.block);
          Products::put_rows(key_rows + b * key_step, rows, k.row, n, z.width);
          Products::put_columns(key_columns + b * column_step, rows, k.row, z.width, n);
          Products::put_rows(value_rows + b * value_step, v.at(batch, key_head, b * z.block), v.row,
                             n, z.value_width);
        }
        for (int64_t h = key_head * z.group(); h < (key_head + 1) * z.group(); h++) {
          load_operands<Products>(
              head, z, q.at(batch, h, 0), q.row, g.at(batch, h, 0), g.row, o.at(batch, h, 0), o.row,
              logsumexp.data<T>() + (batch * z.heads + h) * z.queries, of_queries);
          for (int64_t b = 0; b < z.blocks; b++) {
            const int64_t first = b * z.block;
            const int64_t n = z.keys_in(b);
            const int64_t begins = z.causal ? first / nr : 0;  // panels before see nothing of this
            for (int64_t p0 = begins / panels_together * panels_together; p0 < panels;
                 p0 += panels_together) {
              const int64_t count = std::min(panels_together, panels - p0);
              for (int64_t p = 0; p < count; p++) {
                T* const s = scores + p * panel_step;
                T* const r = reached + p * panel_step;
                if (p0 + p < begins) {
                  std::fill_n(s, n * nr, T(0));
                  std::fill_n(r, n * nr, T(0));
                  continue;
                }
                const int64_t i = (p0 + p) * nr;
                products.multiply(n, n, z.width, key_rows + b * key_step,
                                  head.query_lanes + (p0 + p) * Products::panel_elements(z.width),
                                  s);
                const T* here =
                    attn_mask.defined() ? mask.at(batch, h, i) + first : static_cast<T*>(nullptr);
                mask_scores(s, of_scores, here, mask.row, z.queries - i, n, z.causal, i, first,
                            spare.data());
                products.multiply(
                    n, n, z.value_width, value_rows + b * value_step,
                    head.grad_lanes + (p0 + p) * Products::panel_elements(z.value_width), r);
                weights_backward(s, r, n, head.logsumexp + i, head.delta + i);
                products.add_weighted(z.width, n, n, key_columns + b * column_step, r,
                                      head.grad_query + i * z.width);
              }
              products.add_of_lanes(n, z.value_width, count, scores.data(), panel_step,
                                    head.grad_rows + head.rows_before(p0, z.value_width),
                                    value_sums + first * z.value_width);
              products.add_of_lanes(n, z.width, count, reached.data(), panel_step,
                                    head.query_rows + head.rows_before(p0, z.width),
                                    key_sums + first * z.width);
            }
          }
          for (int64_t p = 0; p < panels; p++) {
            write_lanes(to_query.at(batch, h, p * nr), to_query.row,
                        head.grad_query + p * nr * z.width, scales,
                        std::min(nr, z.queries - p * nr), z.width);
          }
        }
      }
      using V = Simd<T>;
      const typename V::V of_keys = V::set1(one_by_one ? T(1) : of_scores);
      for (int64_t i = 0; i < z.keys; i++) {
        for_vectors<T>(z.width, [&](int64_t e, int64_t n) {
          store_some(to_key.at(batch, key_head, i) + e,
                     V::mul(of_keys, load_some(key_sums + i * z.width + e, n)), n);
        });
        for_vectors<T>(z.value_width, [&](int64_t e, int64_t n) {
          store_some(to_value.at(batch, key_head, i) + e,
                     load_some(value_sums + i * z.value_width + e, n), n);
        });
      }
    }
  });
}

// Calls f(std::type_identity of what multiplies numbers of a dtype).
template <class F>
void visit_products(ScalarType dtype, const F& f) {
#if defined(__AVX512F__)
  if (dtype == kBFloat16 && has_amx()) {
    f(std::type_identity<PairProducts>());
    return;
  }
#endif
  visit_dtype<set_floating>("scaled_dot_product_attention", dtype, [&](auto tag) {
    f(std::type_identity<FloatProducts<typename decltype(tag)::type>>());
  });
}

}  // namespace

void _attention(const Tensor& output, const Tensor& logsumexp, const Tensor& query,
                const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool is_causal,
                double scale) {
  if (logsumexp.numel() == 0) {
    return;
  }
  visit_products(query.dtype(), [&](auto products) {
    forward<typename decltype(products)::type>(output, logsumexp, query, key, value, attn_mask,
                                               is_causal, scale);
  });
}

void _attention_backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
                         const Tensor& grad_output, const Tensor& query, const Tensor& key,
                         const Tensor& value, const Tensor& attn_mask, bool is_causal, double scale,
                         const Tensor& output, const Tensor& logsumexp) {
  visit_products(query.dtype(), [&](auto products) {
    backward<typename decltype(products)::type>(grad_query, grad_key, grad_value, grad_output,
                                                query, key, value, attn_mask, output, logsumexp,
                                                is_causal, scale);
  });
}

}  // namespace rushlight::cpu::RL_ISA
