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

#include <rushlight/batch_invariant.h>
#include "core/parallel.h"
#include "cpu/isa/matmul/gemm_engine.h"
#include "cpu/isa/nn/attention.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace attention;

// Panels of queries that meet a block of keys while it is in the second-level cache.
constexpr int64_t panels_together = 4;

// ---- operands in panels ----

// Panels of A that hold columns of memory: A[i, p] = from[p * row + i].
template <class S, class T>
struct PackColumns {
  const S* from;
  int64_t row;
  int64_t width;  // of a row: nothing behind it is read
  void operator()(T* dst, int64_t i, int64_t rows, int64_t p, int64_t k) const {
    constexpr int64_t w = Simd<T>::width;
    for (int64_t q = 0; q < k; q++) {
      const S* x = from + (p + q) * row + i;
      T* to = dst + q * rows;
      int64_t r = 0;
      for (; r < rows && i + r + w <= width; r += w) {
        Simd<T>::store(to + r, Simd<T>::load(x + r));  // too far: overwritten by the next row
      }
      for (; r < rows; r++) {
        to[r] = static_cast<T>(x[r]);
      }
    }
  }
};

// c[m x nr] = (accumulate ? c : 0) + A @ panel, for the row panels that begin before `used`. A was
// packed with m rows and `packed` columns, of which the first k count.
template <class T>
void times_panel(int64_t m, int64_t used, int64_t packed, int64_t k, const T* a, const T* panel,
                 T* c, bool accumulate) {
  using B = GemmBlocks<T>;
  static constexpr auto kernels = micro_kernels<T>(std::make_index_sequence<B::max_rows>());
  const int64_t panels = (m + B::max_rows - 1) / B::max_rows;
  int64_t i = 0;
  for (int64_t p = 0; p < panels && i < used; p++) {
    const int64_t rows = m * (p + 1) / panels - i;
    kernels[rows - 1](k, a + i * packed, panel, c + i * B::nr, B::nr, accumulate);
    i += rows;
  }
}

// All blocks of keys of one head as panels of A, each with a vector behind it.
template <class T>
struct Packed {
  int64_t step;  // elements of a block
  T* data;
  T* block(int64_t b) const { return data + b * step; }
  static int64_t elements(int64_t rows, int64_t k) { return rows * k + Simd<T>::width; }
};

// to[lane][e] = from[e][lane] * factor[lane], for `rows` lanes and n elements each.
template <class S, class T>
void write_lanes(S* to, int64_t row, const T* from, const T* factor, int64_t rows, int64_t n) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  for (int64_t x = 0; x < rows; x += w) {
    const typename V::V factors = V::load(factor + x);
    for (int64_t e = 0; e < n; e += w) {
      const int64_t here = std::min(w, n - e);
      typename V::V square[w];
      for (int64_t i = 0; i < w; i++) {
        square[i] = i < here ? V::mul(factors, V::load(from + (e + i) * lanes<T> + x)) : V::zero();
      }
      transpose<T>(square);
      for (int64_t i = 0; i < std::min(w, rows - x); i++) {
        store_some(to + (x + i) * row + e, square[i], here);
      }
    }
  }
}

// ---- scores ----

// Adds the mask, and hides keys behind the query where causal. Scores of keys `first`.. and queries
// `query`..; `spare` has the size of the scores and a vector more.
template <class T>
void mask_scores(T* scores, const T* mask, int64_t mask_row, int64_t rows, int64_t keys,
                 bool causal, int64_t query, int64_t first, T* spare) {
  constexpr int64_t nr = lanes<T>;
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

template <class S>
void forward(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
             const Tensor& value, const Tensor& attn_mask, const Sizes& z, double scale) {
  using T = compute_t<S>;
  constexpr int64_t nr = lanes<T>;
  const Heads<const S> q(query);
  const Heads<const S> k(key);
  const Heads<const S> v(value);
  const Heads<const T> mask(attn_mask);
  const Heads<S> o(out);
  const int64_t heads = z.batches * z.key_heads;
  if (z.queries < few_queries && !is_batch_invariant()) {
    std::vector<int64_t> all(static_cast<size_t>(heads));
    std::iota(all.begin(), all.end(), 0);
    forward_by_query<S>(out, logsumexp, query, key, value, attn_mask, z, scale, all);
    return;
  }
  const bool hides = z.causal || attn_mask.defined();
  std::vector<char> plain(static_cast<size_t>(heads * z.blocks), 1);
  const int64_t key_step = Packed<T>::elements(z.block, z.width);
  const int64_t value_step = Packed<T>::elements(z.block, z.value_width);
  const Scratch<T> memory(heads * z.blocks * (key_step + value_step));
  const Packed<T> all_keys{key_step, memory};
  const Packed<T> all_values{value_step, memory + heads * z.blocks * key_step};
  parallel_for(0, heads * z.blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t first = task % z.blocks * z.block;
      const int64_t n = z.keys_in(task % z.blocks);
      const int64_t batch = task / z.blocks / z.key_heads;
      const int64_t head = task / z.blocks % z.key_heads;
      pack_rows(all_keys.block(task), 0, n, 0, z.width,
                PackA<S, T>{k.at(batch, head, first), k.row, 1, T(1)});
      pack_rows(all_values.block(task), 0, z.value_width, 0, n,
                PackColumns<S, T>{v.at(batch, head, first), v.row, z.value_width});
      if (hides) {
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
    const Scratch<T> queries(panels_together * z.width * nr + nr);
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
        pack_lanes(queries + p * z.width * nr, q.at(batch, head, i), q.row, z.queries - i, z.width,
                   static_cast<T>(scale));
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
          times_panel(n, seen, z.width, z.width, all_keys.block(packed + b),
                      queries + p * z.width * nr, scores.data(), false);
          const T* here =
              attn_mask.defined() ? mask.at(batch, head, i) + first : static_cast<T*>(nullptr);
          mask_scores(scores.data(), here, mask.row, z.queries - i, seen, z.causal, i, first,
                      spare.data());
          softmax_step(scores.data(), seen, top[p], sum[p], factor);
          T* const sums = result + p * z.value_width * nr;
          shrink(sums, z.value_width, factor);
          times_panel(z.value_width, z.value_width, n, seen, all_values.block(packed + b),
                      scores.data(), sums, true);
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
template <class T>
struct HeadOperands {
  int64_t panels;
  Scratch<T> query_lanes;  // scaled; [panel][element][lane]
  Scratch<T> grad_lanes;   // of the output
  Scratch<T> query_rows;   // scaled; [group of panels][columns][query]
  Scratch<T> grad_rows;    //
  Scratch<T> grad_query;   // sums; [panel][element][lane]
  Scratch<T> logsumexp;    // infinite where there is no query or no key
  Scratch<T> delta;        // the sum of output * gradient of each query

  static int64_t columns(int64_t n) { return blocks_of(n, lanes<T>) * lanes<T>; }
  HeadOperands(const Sizes& z, int64_t panels)
      : panels(panels),
        query_lanes(panels * z.width * lanes<T> + lanes<T>),
        grad_lanes(panels * z.value_width * lanes<T> + lanes<T>),
        query_rows(panels * lanes<T> * columns(z.width)),
        grad_rows(panels * lanes<T> * columns(z.value_width)),
        grad_query(panels * z.width * lanes<T>),
        logsumexp(panels * lanes<T>),
        delta(panels * lanes<T>) {}
};

template <class S, class T>
void load_operands(const HeadOperands<T>& to, const Sizes& z, const S* query, int64_t query_row,
                   const S* grad, int64_t grad_row, const S* output, int64_t output_row,
                   const T* logsumexp, T scale) {
  constexpr int64_t nr = lanes<T>;
  std::fill_n(to.grad_query.data(), to.panels * z.width * nr, T(0));
  for (int64_t p = 0; p < to.panels; p++) {
    const int64_t i = p * nr;
    pack_lanes(to.query_lanes + i * z.width, query + i * query_row, query_row, z.queries - i,
               z.width, scale);
    pack_lanes(to.grad_lanes + i * z.value_width, grad + i * grad_row, grad_row, z.queries - i,
               z.value_width, T(1));
  }
  for (int64_t p = 0; p < to.panels; p += panels_together) {
    const int64_t i = p * nr;
    const int64_t depth = std::min(panels_together, to.panels - p) * nr;
    const int64_t rows = std::min(depth, z.queries - i);
    pack_rows_of_b(to.query_rows + i * to.columns(z.width), query + i * query_row, query_row, rows,
                   depth, z.width, scale);
    pack_rows_of_b(to.grad_rows + i * to.columns(z.value_width), grad + i * grad_row, grad_row,
                   rows, depth, z.value_width, T(1));
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

// Panels of A whose columns are the lanes of `count` panels: A[key, p * nr + lane].
template <class T>
struct PackPanels {
  const T* from;
  int64_t step;  // from one panel to the next
  void operator()(T* dst, int64_t i, int64_t rows, int64_t, int64_t k) const {
    for (int64_t p = 0; p * lanes<T> < k; p++) {
      const PackA<T, T> one{from + p * step, lanes<T>, 1, T(1)};
      one(dst + p * lanes<T> * rows, i, rows, 0, lanes<T>);
    }
  }
};

template <class S>
void backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
              const Tensor& grad_output, const Tensor& query, const Tensor& key,
              const Tensor& value, const Tensor& attn_mask, const Tensor& output,
              const Tensor& logsumexp, const Sizes& z, double scale) {
  using T = compute_t<S>;
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
  const bool hides = z.causal || attn_mask.defined();
  const int64_t panels = blocks_of(z.queries, nr);
  const int64_t key_step = Packed<T>::elements(z.block, z.width);
  const int64_t value_step = Packed<T>::elements(z.block, z.value_width);
  parallel_for(0, z.batches * z.key_heads, 1, [&](int64_t begin, int64_t end) {
    const Scratch<T> memory(z.blocks * (2 * key_step + value_step));
    const Packed<T> key_rows{key_step, memory};
    const Packed<T> key_columns{key_step, memory + z.blocks * key_step};
    const Packed<T> value_rows{value_step, memory + 2 * z.blocks * key_step};
    const HeadOperands<T> head(z, panels);
    const Scratch<T> key_sums(z.keys * z.width);
    const Scratch<T> value_sums(z.keys * z.value_width);
    const int64_t panel_step = z.block * nr;
    const Scratch<T> scores(panels_together * panel_step + nr);
    const Scratch<T> reached(panels_together * panel_step + nr);
    const Scratch<T> transposed(z.block * panels_together * nr + nr);
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
          pack_rows(key_rows.block(b), 0, n, 0, z.width, PackA<S, T>{rows, k.row, 1, T(1)});
          pack_rows(key_columns.block(b), 0, z.width, 0, n,
                    PackColumns<S, T>{rows, k.row, z.width});
          pack_rows(value_rows.block(b), 0, n, 0, z.value_width,
                    PackA<S, T>{v.at(batch, key_head, b * z.block), v.row, 1, T(1)});
        }
        for (int64_t h = key_head * z.group(); h < (key_head + 1) * z.group(); h++) {
          load_operands<S, T>(
              head, z, q.at(batch, h, 0), q.row, g.at(batch, h, 0), g.row, o.at(batch, h, 0), o.row,
              logsumexp.data<T>() + (batch * z.heads + h) * z.queries, static_cast<T>(scale));
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
                times_panel(n, n, z.width, z.width, key_rows.block(b),
                            head.query_lanes + i * z.width, s, false);
                const T* here =
                    attn_mask.defined() ? mask.at(batch, h, i) + first : static_cast<T*>(nullptr);
                mask_scores(s, here, mask.row, z.queries - i, n, z.causal, i, first, spare.data());
                times_panel(n, n, z.value_width, z.value_width, value_rows.block(b),
                            head.grad_lanes + i * z.value_width, r, false);
                weights_backward(s, r, n, head.logsumexp + i, head.delta + i);
                times_panel(z.width, z.width, n, n, key_columns.block(b), r,
                            head.grad_query + i * z.width, true);
              }
              const int64_t depth = count * nr;
              pack_rows(transposed.data(), 0, n, 0, depth, PackPanels<T>{scores, panel_step});
              multiply_panels<T>(n, z.value_width, depth, transposed,
                                 head.grad_rows + p0 * nr * head.columns(z.value_width),
                                 value_sums + first * z.value_width, z.value_width, true);
              pack_rows(transposed.data(), 0, n, 0, depth, PackPanels<T>{reached, panel_step});
              multiply_panels<T>(n, z.width, depth, transposed,
                                 head.query_rows + p0 * nr * head.columns(z.width),
                                 key_sums + first * z.width, z.width, true);
            }
          }
          for (int64_t p = 0; p < panels; p++) {
            write_lanes(to_query.at(batch, h, p * nr), to_query.row,
                        head.grad_query + p * nr * z.width, scales,
                        std::min(nr, z.queries - p * nr), z.width);
          }
        }
      }
      for (int64_t i = 0; i < z.keys; i++) {
        for_vectors<T>(z.width, [&](int64_t e, int64_t n) {
          store_some(to_key.at(batch, key_head, i) + e, load_some(key_sums + i * z.width + e, n),
                     n);
        });
        for_vectors<T>(z.value_width, [&](int64_t e, int64_t n) {
          store_some(to_value.at(batch, key_head, i) + e,
                     load_some(value_sums + i * z.value_width + e, n), n);
        });
      }
    }
  });
}

}  // namespace

void _attention(const Tensor& output, const Tensor& logsumexp, const Tensor& query,
                const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool is_causal,
                double scale) {
  if (logsumexp.numel() == 0) {
    return;
  }
  const Sizes sizes(query, key, value, is_causal);
  visit_dtype<set_floating>("scaled_dot_product_attention", query.dtype(), [&](auto tag) {
    forward<typename decltype(tag)::type>(output, logsumexp, query, key, value, attn_mask, sizes,
                                          scale);
  });
}

void _attention_backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
                         const Tensor& grad_output, const Tensor& query, const Tensor& key,
                         const Tensor& value, const Tensor& attn_mask, bool is_causal, double scale,
                         const Tensor& output, const Tensor& logsumexp) {
  const Sizes sizes(query, key, value, is_causal);
  if (sizes.batches * sizes.key_heads == 0) {
    return;
  }
  visit_dtype<set_floating>("scaled_dot_product_attention", query.dtype(), [&](auto tag) {
    backward<typename decltype(tag)::type>(grad_query, grad_key, grad_value, grad_output, query,
                                           key, value, attn_mask, output, logsumexp, sizes, scale);
  });
}

}  // namespace rushlight::cpu::RL_ISA
