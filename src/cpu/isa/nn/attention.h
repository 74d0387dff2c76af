// What the ways of attention share, and the plain one: queries one by one, reading keys and values
// where they are. A key that is hidden from a query is not looked at.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA::attention {

inline int64_t blocks_of(int64_t n, int64_t step) { return (n + step - 1) / step; }

struct Sizes {
  int64_t batches;
  int64_t heads;
  int64_t key_heads;
  int64_t queries;
  int64_t keys;
  int64_t width;
  int64_t value_width;
  bool causal;
  int64_t blocks;  // of keys
  int64_t block;   // keys in each but the last

  // `key_block`: keys that a block has at most.
  Sizes(const Tensor& query, const Tensor& key, const Tensor& value, bool is_causal,
        int64_t key_block)
      : batches(query.size(0)),
        heads(query.size(1)),
        key_heads(key.size(1)),
        queries(query.size(2)),
        keys(key.size(2)),
        width(query.size(3)),
        value_width(value.size(3)),
        causal(is_causal),
        blocks(blocks_of(keys, key_block)),
        block(blocks == 0 ? 0 : blocks_of(keys, blocks)) {}

  int64_t keys_in(int64_t b) const { return std::clamp<int64_t>(keys - b * block, 0, block); }
  int64_t group() const { return heads / key_heads; }
};

// A (batch, heads, rows, width) tensor with contiguous rows.
template <class S>
struct Heads {
  S* data;
  int64_t batch;
  int64_t head;
  int64_t row;
  explicit Heads(const Tensor& t)
      : data(t.defined() ? t.data<std::remove_const_t<S>>() : nullptr),
        batch(t.defined() ? t.stride(0) : 0),
        head(t.defined() ? t.stride(1) : 0),
        row(t.defined() ? t.stride(2) : 0) {}
  S* at(int64_t b, int64_t h, int64_t i) const { return data + b * batch + h * head + i * row; }
};

// ---- queries one by one ----

// Fewer queries than this are not worth the packing of keys.
inline constexpr int64_t few_queries = 4;
// Keys that a task of the forward pass reads.
inline constexpr int64_t key_chunk = 1024;

template <class T, class A, class B>
T dot(const A* a, const B* b, int64_t n) {
  return sums_over<T, 1>(n, [&](int64_t i, int64_t m) {
    return Vectors<T, 1>{{Simd<T>::mul(load_some(a + i, m), load_some(b + i, m))}};
  })[0];
}

// to += factor * from
template <class T, class S>
void add_scaled(T* to, const S* from, T factor, int64_t n) {
  const typename Simd<T>::V f = Simd<T>::set1(factor);
  for_vectors<T>(n, [&](int64_t i, int64_t m) {
    store_some(to + i, Simd<T>::fma(load_some(from + i, m), f, load_some(to + i, m)), m);
  });
}

template <class S>
bool all_finite(const S* rows, int64_t row, int64_t n, int64_t width) {
  using T = compute_t<S>;
  using V = Simd<T>;
  typename V::V zeros = V::zero();  // not finite times zero is not zero
  for (int64_t i = 0; i < n; i++) {
    for_vectors<T>(width, [&](int64_t e, int64_t m) {
      zeros = V::add(zeros, V::mul(load_some(rows + i * row + e, m), V::zero()));
    });
  }
  return !V::any(V::unordered(zeros, zeros));
}

// One query of one head: what it is, and which keys it sees.
template <class S>
struct OneQuery {
  using T = compute_t<S>;
  const T* query;  // scaled
  const T* mask;   // null: none
  int64_t keys;    // behind these all are hidden
  int64_t width;

  OneQuery(T* memory, const S* from, const Sizes& z, int64_t i, const T* mask, T scale)
      : query(memory),
        mask(mask),
        keys(z.causal ? std::min(z.keys, i + 1) : z.keys),
        width(z.width) {
    for (int64_t e = 0; e < z.width; e++) {
      memory[e] = static_cast<T>(from[e]) * scale;
    }
  }
  bool attends_to(int64_t k) const {
    return k < keys && (mask == nullptr || mask[k] != -math::infinity<T>);
  }
  T score(int64_t k, const S* key) const {
    return dot<T>(query, key, width) + (mask == nullptr ? T(0) : mask[k]);
  }
};

// Queries that read keys and values together.
inline constexpr int64_t queries_together = 4;

// What R queries make of n keys from the one at `first` on. Each part becomes the largest score,
// the sum of the weights relative to it, and that of the weighted values.
template <int R, class S, class T = compute_t<S>>
void attend(const OneQuery<S>* one, T* const* part, const S* keys, int64_t key_row, const S* values,
            int64_t value_row, int64_t first, int64_t n, int64_t value_width, T* scores) {
  using V = Simd<T>;
  constexpr int64_t room = key_chunk;
  for (int64_t j = 0; j < n; j++) {
    const S* const key = keys + (first + j) * key_row;
    const auto sums = sums_over<T, R>(one[0].width, [&](int64_t e, int64_t m) {
      const typename V::V x = load_some(key + e, m);
      Vectors<T, R> terms;
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        terms.v[r] = V::mul(load_some(one[r].query + e, m), x);
      }
      return terms;
    });
    for (int r = 0; r < R; r++) {
      const T added = one[r].mask == nullptr ? T(0) : one[r].mask[first + j];
      scores[r * room + j] = one[r].attends_to(first + j) ? sums[r] + added : -math::infinity<T>;
    }
  }
  const int64_t whole = (n + V::width - 1) / V::width * V::width;
  for (int r = 0; r < R; r++) {
    T* const mine = scores + r * room;
    T top = -math::infinity<T>;
    for (int64_t j = 0; j < n; j++) {
      top = mine[j] > top ? mine[j] : top;
    }
    const T base = top == -math::infinity<T> ? T(0) : top;
    std::fill(mine + n, mine + whole, -math::infinity<T>);
    for (int64_t j = 0; j < whole; j++) {  // in whole vectors
      mine[j] = math::exp(mine[j] - base);
    }
    std::fill_n(part[r], value_width + 2, T(0));
    part[r][0] = top;
    part[r][1] = sums_over<T, 1>(
        whole, [&](int64_t j, int64_t m) { return Vectors<T, 1>{{load_some(mine + j, m)}}; })[0];
  }
  for (int64_t j = 0; j < n; j++) {
    const S* const value = values + (first + j) * value_row;
    for (int r = 0; r < R; r++) {
      if (one[r].attends_to(first + j)) {
        add_scaled(part[r] + 2, value, scores[r * room + j], value_width);
      }
    }
  }
}

// The forward pass of the heads that `chosen` names, by batch and head of the keys.
template <class S>
void forward_by_query(const Tensor& out, const Tensor& logsumexp, const Tensor& query,
                      const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                      const Sizes& z, double scale, const std::vector<int64_t>& chosen) {
  using T = compute_t<S>;
  const Heads<const S> q(query);
  const Heads<const S> k(key);
  const Heads<const S> v(value);
  const Heads<const T> mask(attn_mask);
  const Heads<S> o(out);
  const int64_t of_head = z.group() * z.queries;
  const int64_t rows = static_cast<int64_t>(chosen.size()) * of_head;
  const auto place = [&](int64_t row) {
    const int64_t at = chosen[static_cast<size_t>(row / of_head)];
    return std::array<int64_t, 4>{at / z.key_heads, at % z.key_heads,
                                  at % z.key_heads * z.group() + row % of_head / z.queries,
                                  row % z.queries};
  };
  const int64_t chunks = std::max<int64_t>(1, blocks_of(z.keys, key_chunk));
  const int64_t step = z.value_width + 2;
  const Scratch<T> parts(rows * chunks * step);
  const int64_t together = blocks_of(of_head, queries_together);  // groups of a head
  const int64_t work =
      std::min(z.keys, key_chunk) * (z.width + z.value_width) * std::min(of_head, queries_together);
  parallel_for(
      0, static_cast<int64_t>(chosen.size()) * together * chunks,
      std::max<int64_t>(1, 16384 / (work + 1)), [&](int64_t begin, int64_t end) {
        const Scratch<T> memory(queries_together * z.width);
        const Scratch<T> scores(queries_together * key_chunk);
        for (int64_t task = begin; task < end; task++) {
          const int64_t c = task % chunks;
          const int64_t group = task / chunks % together;
          const int64_t row = task / chunks / together * of_head + group * queries_together;
          const int64_t count = std::min(queries_together, of_head - group * queries_together);
          std::vector<OneQuery<S>> one;
          std::array<T*, queries_together> part{};
          int64_t last = 0;
          for (int64_t r = 0; r < count; r++) {
            const auto [batch, key_head, head, i] = place(row + r);
            one.emplace_back(memory + r * z.width, q.at(batch, head, i), z, i,
                             mask.data == nullptr ? nullptr : mask.at(batch, head, i),
                             static_cast<T>(scale));
            part[static_cast<size_t>(r)] = parts + ((row + r) * chunks + c) * step;
            last = std::max(last, one.back().keys);
          }
          const int64_t first = c * key_chunk;
          const int64_t n = std::clamp<int64_t>(last - first, 0, key_chunk);
          const auto [batch, key_head, head, i] = place(row);
          const auto run = [&](auto queries) {
            attend<decltype(queries)::value>(one.data(), part.data(), k.at(batch, key_head, 0),
                                             k.row, v.at(batch, key_head, 0), v.row, first, n,
                                             z.value_width, scores.data());
          };
          switch (count) {
            case 1:
              run(std::integral_constant<int, 1>());
              break;
            case 2:
              run(std::integral_constant<int, 2>());
              break;
            case 3:
              run(std::integral_constant<int, 3>());
              break;
            default:
              run(std::integral_constant<int, 4>());
          }
        }
      });
  parallel_for(
      0, rows, std::max<int64_t>(1, 16384 / (chunks * step)), [&](int64_t begin, int64_t end) {
        const Scratch<T> sums(step);
        for (int64_t row = begin; row < end; row++) {
          const auto [batch, key_head, head, i] = place(row);
          const T* const from = parts + row * chunks * step;
          T top = -math::infinity<T>;
          for (int64_t c = 0; c < chunks; c++) {
            top = from[c * step] > top ? from[c * step] : top;
          }
          const T base = top == -math::infinity<T> ? T(0) : top;
          std::fill_n(sums.data(), step, T(0));
          for (int64_t c = 0; c < chunks; c++) {
            const T* const part = from + c * step;
            if (part[1] != T(0)) {
              add_scaled(sums + 1, part + 1, math::exp(part[0] - base), step - 1);
            }
          }
          const T factor = sums[1] == T(0) ? T(0) : 1 / sums[1];
          S* const to = o.at(batch, head, i);
          for (int64_t e = 0; e < z.value_width; e++) {
            to[e] = static_cast<S>(sums[2 + e] * factor);
          }
          logsumexp.data<T>()[(batch * z.heads + head) * z.queries + i] = top + std::log(sums[1]);
        }
      });
}

// The gradients of one head of the keys: sums for keys and values, the queries' at once.
template <class S, class T = compute_t<S>>
void backward_by_query(const Sizes& z, int64_t batch, int64_t key_head, const Heads<S>& to_query,
                       T* key_sums, T* value_sums, const Heads<const S>& grad,
                       const Heads<const S>& query, const Heads<const S>& key,
                       const Heads<const S>& value, const Heads<const T>& mask,
                       const Heads<const S>& output, const T* logsumexp, T scale) {
  const Scratch<T> memory(z.width);
  const Scratch<T> query_sums(z.width);
  for (int64_t row = 0; row < z.group() * z.queries; row++) {
    const int64_t head = key_head * z.group() + row / z.queries;
    const int64_t i = row % z.queries;
    const S* const g = grad.at(batch, head, i);
    const T shift = logsumexp[(batch * z.heads + head) * z.queries + i];
    const T delta = dot<T>(output.at(batch, head, i), g, z.value_width);
    const OneQuery<S> one(memory, query.at(batch, head, i), z, i,
                          mask.data == nullptr ? nullptr : mask.at(batch, head, i), scale);
    std::fill_n(query_sums.data(), z.width, T(0));
    for (int64_t j = 0; j < one.keys; j++) {
      if (!one.attends_to(j)) {
        continue;
      }
      const S* const k = key.at(batch, key_head, j);
      const T weight = math::exp(one.score(j, k) - shift);
      const T reached = dot<T>(g, value.at(batch, key_head, j), z.value_width);
      const T slope = weight * (reached - delta);
      add_scaled(query_sums.data(), k, slope, z.width);
      add_scaled(key_sums + j * z.width, one.query, slope, z.width);
      add_scaled(value_sums + j * z.value_width, g, weight, z.value_width);
    }
    for (int64_t e = 0; e < z.width; e++) {
      to_query.at(batch, head, i)[e] = static_cast<S>(query_sums[e] * scale);
    }
  }
}

}  // namespace rushlight::cpu::RL_ISA::attention
