// nll_loss and cross_entropy over (N, C, d1, ...): one read of the logits forwards, one read and
// one write backwards. The loss of each sample is computed apart; their sum is taken in a fixed
// tree.
#include <rushlight/reduction.h>

#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/norm/exp_rows.h"
#include "cpu/scratch.h"
#include "cpu/dim_split.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t column_tile = 128;
inline constexpr int64_t work_per_task = 16384;

// The classes of all samples as int64, and how much each counts: 0 for ignored ones.
template <class A>
struct Targets {
  Tensor classes;
  Scratch<A> weight;
  A total = 0;

  Targets(const Tensor& target, const Tensor& class_weight, int64_t ignore_index,
          int64_t num_classes)
      : classes(contiguous_raw(cast_raw(target, kInt64))), weight(target.numel()) {
    const int64_t* t = classes.data<int64_t>();
    const Tensor weights =
        class_weight.defined() ? contiguous_raw(cast_raw(class_weight, dtype_of_v<A>)) : Tensor();
    const A* w = weights.defined() ? weights.data<A>() : nullptr;
    const int64_t n = classes.numel();
    for (int64_t i = 0; i < n; i++) {
      if (t[i] == ignore_index) {
        weight[i] = 0;
        continue;
      }
      RL_CHECK_INDEX(t[i] >= 0 && t[i] < num_classes, "Target ", t[i],
                     " is out of bounds. Labels of ", num_classes, " classes go from 0 to ",
                     num_classes - 1);
      weight[i] = w != nullptr ? w[t[i]] : A(1);
    }
    total = sum(weight.data(), n);
  }

  static A sum(const A* x, int64_t n) {
    if (n <= row_leaf) {
      return n == 0 ? A(0) : fold_row<fold::Sum<A>>(x, n);
    }
    const int64_t half = (n / 2 + row_leaf - 1) / row_leaf * row_leaf;
    return sum(x, half) + sum(x + half, n - half);
  }
};

// Writes the losses of samples, or their sum or mean, and the weights' sum.
template <class A>
void write_losses(const Tensor& loss, const Tensor& total_weight, const Targets<A>& targets,
                  const A* losses, int64_t reduction) {
  const char* name = "nll_loss";
  const int64_t n = targets.classes.numel();
  const ConvertRun write = writer<A, set_floating>(name, loss.dtype());
  const ConvertRun write_total = writer<A, set_floating>(name, total_weight.dtype());
  write_total(total_weight.data_ptr(), &targets.total, sizeof(A), 1);
  if (reduction == Reduction::None) {
    write(loss.data_ptr(), losses, sizeof(A), n);
    return;
  }
  A sum = Targets<A>::sum(losses, n);
  if (reduction == Reduction::Mean) {
    sum /= targets.total;
  }
  write(loss.data_ptr(), &sum, sizeof(A), 1);
}

// What the derivative of the result with regard to each sample's loss is.
template <class A>
void sample_gradients(const Tensor& grad_output, const Tensor& total_weight, int64_t reduction,
                      int64_t n, A* gradients) {
  const Tensor grad = contiguous_raw(cast_raw(grad_output, dtype_of_v<A>));
  if (reduction == Reduction::None) {
    std::copy_n(grad.data<A>(), n, gradients);
    return;
  }
  A g = *grad.data<A>();
  if (reduction == Reduction::Mean) {
    g /= *cast_raw(total_weight, dtype_of_v<A>).template data<A>();
  }
  std::fill(gradients, gradients + n, g);
}

int64_t class_dim(const Tensor& logits) { return logits.dim() == 1 ? 0 : 1; }

}  // namespace

void _nll_loss(const Tensor& loss, const Tensor& total_weight, const Tensor& self,
               const Tensor& target, const Tensor& weight, int64_t reduction,
               int64_t ignore_index) {
  visit_dtype<set_floating>("nll_loss", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const Tensor x = contiguous_raw(self);
    const DimSplit s = dim_split_of(x, class_dim(x));
    const Targets<A> targets(target, weight, ignore_index, s.n);
    const int64_t* t = targets.classes.template data<int64_t>();
    const T* logits = x.data<T>();
    const int64_t n = targets.classes.numel();
    Scratch<A> losses(n);
    for (int64_t i = 0; i < n; i++) {
      const bool counts = t[i] != ignore_index;
      const int64_t at = counts ? (i / s.inner * s.n + t[i]) * s.inner + i % s.inner : 0;
      losses[i] = counts ? -targets.weight[i] * static_cast<A>(logits[at]) : A(0);
    }
    write_losses<A>(loss, total_weight, targets, losses.data(), reduction);
  });
}

void _nll_loss_backward(const Tensor& out, const Tensor& grad_output, const Tensor& target,
                        const Tensor& weight, const Tensor& total_weight, IntArrayRef,
                        int64_t reduction, int64_t ignore_index) {
  fill_raw(out, Scalar(0));
  visit_dtype<set_floating>("nll_loss_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const DimSplit s = dim_split_of(out, class_dim(out));
    const Targets<A> targets(target, weight, ignore_index, s.n);
    const int64_t* t = targets.classes.template data<int64_t>();
    const int64_t n = targets.classes.numel();
    Scratch<A> g(n);
    sample_gradients(grad_output, total_weight, reduction, n, g.data());
    T* to = out.data<T>();
    for (int64_t i = 0; i < n; i++) {
      if (t[i] != ignore_index) {
        to[(i / s.inner * s.n + t[i]) * s.inner + i % s.inner] =
            static_cast<T>(-targets.weight[i] * g[i]);
      }
    }
  });
}

namespace {

// Constants of label smoothing: a sample's loss is
//   keep * w[t] * (log_sum - x[t]) + spread * (log_sum * all_weights - sum_c w[c] * x[c])
// for logits that are counted from the sample's largest, so that digits of large ones stay.
template <class A>
struct Smoothing {
  A keep;
  A spread;
  A all_weights;
  Tensor class_weights;  // undefined: all 1
  const A* weight;

  Smoothing(double amount, int64_t classes, const Tensor& given)
      : keep(static_cast<A>(1 - amount)),
        spread(static_cast<A>(amount / static_cast<double>(classes))),
        all_weights(static_cast<A>(classes)),
        class_weights(given.defined() ? contiguous_raw(cast_raw(given, dtype_of_v<A>)) : Tensor()),
        weight(given.defined() ? class_weights.data<A>() : nullptr) {
    if (weight != nullptr) {
      all_weights = Targets<A>::sum(weight, classes);
    }
  }
  // sum_c w[c] * (x[c] - base)
  A weighted_sum(const A* x, int64_t n, A base) const {
    Scratch<A> terms(n);
    for (int64_t c = 0; c < n; c++) {
      terms[c] = (weight != nullptr ? weight[c] : A(1)) * (x[c] - base);
    }
    return Targets<A>::sum(terms.data(), n);
  }
};

// exp(x - base - shift), in whole vectors; y has room for a whole last granule.
template <class A>
RL_INLINE void exp_minus(const A* x, A* y, int64_t n, A base, A shift) {
  for (int64_t i = 0; i < n; i++) {
    y[i] = x[i] - base - shift;
  }
  const int64_t whole = round_up_to_granule(n);
  std::fill(y + n, y + whole, A(0));
  for (int64_t i = 0; i < whole; i++) {
    y[i] = math::exp(y[i]);
  }
}

// What is subtracted before exp: infinities are not.
template <class A>
RL_INLINE A base_of(A top) {
  return top - top == 0 ? top : A(0);
}

}  // namespace

void _cross_entropy(const Tensor& loss, const Tensor& log_sum, const Tensor& total_weight,
                    const Tensor& self, const Tensor& target, const Tensor& weight,
                    int64_t reduction, int64_t ignore_index, double label_smoothing) {
  visit_dtype<set_floating>("cross_entropy", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const Tensor x = contiguous_raw(self);
    const DimSplit s = dim_split_of(x, class_dim(x));
    const Targets<A> targets(target, weight, ignore_index, s.n);
    const Smoothing<A> smoothing(label_smoothing, s.n, weight);
    const int64_t* t = targets.classes.template data<int64_t>();
    const T* logits = x.data<T>();
    const int64_t n = targets.classes.numel();
    A* bases = log_sum.data<A>();
    A* sums = bases + n;
    Scratch<A> losses(n);
    // `at_target` and `weighted` are of logits less the sample's base.
    const auto finish = [&](int64_t i, A at_target, A weighted) {
      if (t[i] == ignore_index) {
        losses[i] = 0;
        return;
      }
      losses[i] = smoothing.keep * targets.weight[i] * (sums[i] - at_target);
      if (smoothing.spread != 0) {
        losses[i] += smoothing.spread * (sums[i] * smoothing.all_weights - weighted);
      }
    };
    if (n == 0 || s.n == 0) {
      return write_losses<A>(loss, total_weight, targets, losses.data(), reduction);
    }
    // Neighbouring samples side by side: `tile` holds one place of `ld` of them after the other,
    // whole granules.
    const auto tile_losses = [&](const A* __restrict tile, int64_t ld, int64_t first,
                                 int64_t cols) {
      alignas(64) A top[column_tile];
      alignas(64) A total[column_tile] = {};
      alignas(64) A weighted[column_tile] = {};
      fold_columns<fold::Max<A>>(tile, ld, s.n, ld, top);
      for (int64_t j = 0; j < ld; j++) {
        top[j] = base_of(top[j]);
      }
      for (int64_t c = 0; c < s.n; c++) {
        const A* __restrict row = tile + c * ld;
        for (int64_t j = 0; j < ld; j++) {
          total[j] += math::exp(row[j] - top[j]);
        }
      }
      for (int64_t j = 0; j < ld; j++) {
        total[j] = math::log(total[j]);
      }
      for (int64_t c = 0; smoothing.spread != 0 && c < s.n; c++) {
        const A w = smoothing.weight != nullptr ? smoothing.weight[c] : A(1);
        for (int64_t j = 0; j < cols; j++) {
          weighted[j] += w * (tile[c * ld + j] - top[j]);
        }
      }
      for (int64_t j = 0; j < cols; j++) {
        const int64_t i = first + j;
        bases[i] = top[j];
        sums[i] = total[j];
        finish(i, t[i] == ignore_index ? A(0) : tile[t[i] * ld + j] - top[j], weighted[j]);
      }
    };
    const ConvertRun read = std::is_same_v<T, A> ? nullptr : convert_run<A, T>;
    if (s.inner == 1 && s.n <= short_exp_row) {
      const auto block = [&](TurnedRows<A>& turned, int64_t first, int64_t rows) {
        const int64_t ld =
            turned.load(reinterpret_cast<const char*>(logits + first * s.n), rows, read, sizeof(T));
        tile_losses(turned.tile(), ld, first, rows);
      };
      for_transposed_rows<A>(n, s.n, std::min(column_tile, rows_to_transpose<A>(s.n)), block);
    } else if (s.inner == 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, work_per_task / s.n),
                   [&](int64_t begin, int64_t end) {
                     Scratch<A> buffer(std::is_same_v<T, A> ? 0 : s.n);
                     alignas(64) A at_target[granule];
                     alignas(64) A weighted[granule] = {};
                     for (int64_t first = begin; first < end; first += granule) {
                       const int64_t rows = std::min(granule, end - first);
                       for (int64_t k = 0; k < rows; k++) {
                         const int64_t i = first + k;
                         const A* row;
                         if constexpr (std::is_same_v<T, A>) {
                           row = logits + i * s.n;
                         } else {
                           convert_run<A, T>(buffer.data(), logits + i * s.n, sizeof(T), s.n);
                           row = buffer.data();
                         }
                         bases[i] = base_of(fold_row<fold::Max<A>>(row, s.n));
                         sums[i] = exp_row<false, A>(row, nullptr, s.n, bases[i]);
                         at_target[k] = t[i] == ignore_index ? A(0) : row[t[i]] - bases[i];
                         if (smoothing.spread != 0) {
                           weighted[k] = smoothing.weighted_sum(row, s.n, bases[i]);
                         }
                       }
                       for (int64_t k = 0; k < rows; k++) {
                         sums[first + k] = math::log(sums[first + k]);
                       }
                       for (int64_t k = 0; k < rows; k++) {
                         finish(first + k, at_target[k], weighted[k]);
                       }
                     }
                   });
    } else {
      const int64_t tiles = num_chunks(0, s.inner, column_tile);
      const int64_t grain = std::max<int64_t>(1, work_per_task / (s.n * column_tile));
      parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
        const int64_t ld = round_up_to_granule(std::min(column_tile, s.inner));
        Scratch<A> tile(s.n * ld);
        std::fill(tile.data(), tile.data() + s.n * ld, A(0));
        for (int64_t task = begin; task < end; task++) {
          const int64_t o = task / tiles;
          const int64_t col = task % tiles * column_tile;
          const int64_t cols = std::min(column_tile, s.inner - col);
          for (int64_t c = 0; c < s.n; c++) {
            convert_run<A, T>(tile.data() + c * ld, logits + (o * s.n + c) * s.inner + col,
                              sizeof(T), cols);
          }
          tile_losses(tile.data(), ld, o * s.inner + col, cols);
        }
      });
    }
    write_losses<A>(loss, total_weight, targets, losses.data(), reduction);
  });
}

void _cross_entropy_backward(const Tensor& out, const Tensor& grad_output, const Tensor& self,
                             const Tensor& target, const Tensor& weight, const Tensor& log_sum,
                             const Tensor& total_weight, int64_t reduction, int64_t ignore_index,
                             double label_smoothing) {
  if (out.numel() == 0) {
    return;
  }
  visit_dtype<set_floating>("cross_entropy_backward", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const Tensor x = contiguous_raw(self);
    const Tensor known_sums = contiguous_raw(log_sum);
    const DimSplit s = dim_split_of(x, class_dim(x));
    const Targets<A> targets(target, weight, ignore_index, s.n);
    const Smoothing<A> smoothing(label_smoothing, s.n, weight);
    const int64_t* t = targets.classes.template data<int64_t>();
    const T* logits = x.data<T>();
    T* to = out.data<T>();
    const int64_t n = targets.classes.numel();
    const A* bases = known_sums.data<A>();
    const A* sums = bases + n;
    Scratch<A> g(n);
    sample_gradients(grad_output, total_weight, reduction, n, g.data());
    // The gradient is scale * softmax - spread * w - [c == t] * keep * w[t], times g.
    const auto scale = [&](int64_t i) {
      return t[i] == ignore_index ? A(0)
                                  : g[i] * (smoothing.keep * targets.weight[i] +
                                            smoothing.spread * smoothing.all_weights);
    };
    const auto class_weight = [&](int64_t c) {
      return smoothing.weight != nullptr ? smoothing.weight[c] : A(1);
    };
    // What neighbouring samples take of the gradient, and the gradient of their logits of class c,
    // in place of these.
    struct Factors {
      alignas(64) A factor[column_tile] = {};
      alignas(64) A spread[column_tile] = {};
      alignas(64) A bases[column_tile] = {};
      alignas(64) A sums[column_tile] = {};
    };
    const auto factors_of = [&](Factors& f, int64_t first, int64_t cols) {
      for (int64_t j = 0; j < cols; j++) {
        f.factor[j] = scale(first + j);
        f.spread[j] = t[first + j] == ignore_index ? A(0) : g[first + j] * smoothing.spread;
        f.bases[j] = bases[first + j];
        f.sums[j] = sums[first + j];
      }
    };
    const auto gradients = [&](const Factors& f, A* __restrict p, int64_t c, int64_t ld) {
      const A w = class_weight(c);
      for (int64_t j = 0; j < ld; j++) {
        p[j] = math::exp(p[j] - f.bases[j] - f.sums[j]) * f.factor[j] - f.spread[j] * w;
      }
    };
    const auto at_target = [&](int64_t i) { return g[i] * smoothing.keep * targets.weight[i]; };
    const ConvertRun read = std::is_same_v<T, A> ? nullptr : convert_run<A, T>;
    const ConvertRun write = std::is_same_v<T, A> ? nullptr : convert_run<T, A>;
    if (s.inner == 1 && s.n <= short_exp_row) {
      const auto block = [&](TurnedRows<A>& turned, int64_t first, int64_t rows) {
        const int64_t ld =
            turned.load(reinterpret_cast<const char*>(logits + first * s.n), rows, read, sizeof(T));
        Factors f;
        factors_of(f, first, rows);
        for (int64_t c = 0; c < s.n; c++) {
          gradients(f, turned.tile() + c * ld, c, ld);
        }
        for (int64_t j = 0; j < rows; j++) {
          const int64_t i = first + j;
          if (t[i] == ignore_index) {
            for (int64_t c = 0; c < s.n; c++) {
              turned.tile()[c * ld + j] = A(0);
            }
          } else {
            turned.tile()[t[i] * ld + j] -= at_target(i);
          }
        }
        turned.store(reinterpret_cast<char*>(to + first * s.n), rows, write);
      };
      for_transposed_rows<A>(n, s.n, std::min(column_tile, rows_to_transpose<A>(s.n)), block);
      return;
    }
    if (s.inner == 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, work_per_task / s.n),
                   [&](int64_t begin, int64_t end) {
                     alignas(64) A p[row_leaf];
                     for (int64_t i = begin; i < end; i++) {
                       if (t[i] == ignore_index) {
                         std::fill_n(to + i * s.n, s.n, T(0));
                         continue;
                       }
                       const A factor = scale(i);
                       for (int64_t c = 0; c < s.n; c += row_leaf) {
                         const int64_t m = std::min(row_leaf, s.n - c);
                         const int64_t at = i * s.n + c;
                         if constexpr (std::is_same_v<T, A>) {
                           exp_minus(logits + at, p, m, bases[i], sums[i]);
                         } else {
                           convert_run<A, T>(p, logits + at, sizeof(T), m);
                           exp_minus(p, p, m, bases[i], sums[i]);
                         }
                         if (smoothing.spread != 0) {
                           for (int64_t j = 0; j < m; j++) {
                             p[j] = p[j] * factor - g[i] * smoothing.spread * class_weight(c + j);
                           }
                         } else {
                           for (int64_t j = 0; j < m; j++) {
                             p[j] *= factor;
                           }
                         }
                         if (t[i] >= c && t[i] < c + m) {
                           p[t[i] - c] -= g[i] * smoothing.keep * targets.weight[i];
                         }
                         convert_run<T, A>(to + at, p, sizeof(A), m);
                       }
                     }
                   });
      return;
    }
    const int64_t tiles = num_chunks(0, s.inner, column_tile);
    const int64_t grain = std::max<int64_t>(1, work_per_task / (s.n * column_tile));
    parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
      alignas(64) A p[column_tile] = {};
      Factors f;
      for (int64_t task = begin; task < end; task++) {
        const int64_t o = task / tiles;
        const int64_t col = task % tiles * column_tile;
        const int64_t cols = std::min(column_tile, s.inner - col);
        const int64_t first = o * s.inner + col;
        factors_of(f, first, cols);
        for (int64_t c = 0; c < s.n; c++) {
          const int64_t at = (o * s.n + c) * s.inner + col;
          convert_run<A, T>(p, logits + at, sizeof(T), cols);
          gradients(f, p, c, round_up_to_granule(cols));
          for (int64_t j = 0; j < cols; j++) {
            const bool ignored = t[first + j] == ignore_index;
            const A target = c == t[first + j] ? at_target(first + j) : A(0);
            p[j] = ignored ? A(0) : p[j] - target;
          }
          convert_run<T, A>(to + at, p, sizeof(A), cols);
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
