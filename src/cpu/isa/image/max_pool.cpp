// Max pooling. A row of outputs is computed tap by tap: each tap reads a row of the image at one
// stride, which vectorises. Rows run along the width, or along the channels where those are
// innermost. Planes are independent, so any number of threads gives the same bits, backward too.
#include <optional>

#include "cpu/isa/image/pool.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// best, at = those of n elements of a tap, where larger or NaN.
template <class S, class T, class I, int stride>
void take_larger(T* best, I* at, const S* from, int64_t any_stride, int64_t n, I first, I step) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const T value = static_cast<T>(from[i * s]);
    const bool larger = value > best[i] || value != value;
    best[i] = larger ? value : best[i];
    at[i] = larger ? first + static_cast<I>(i) * step : at[i];
  }
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
  } else {
    return -std::numeric_limits<T>::infinity();
  }
}

// Vectors of the compiler's own, which compare and choose lane by lane, and integers as wide.
template <class T>
struct LanesOf {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr int64_t width = Simd<T>::width;
  typedef T Elements __attribute__((vector_size(width * sizeof(T))));
  typedef Int Lanes __attribute__((vector_size(width * sizeof(T))));
  // 0, step, 2 * step, ...
  static Lanes steps(Int step) {
    Lanes v;
    for (int i = 0; i < width; i++) {
      v[i] = static_cast<Int>(i) * step;
    }
    return v;
  }
};

// The elements at even and at odd places of n, zeros behind them.
template <class T>
struct Pairs {
  typename LanesOf<T>::Elements even;
  typename LanesOf<T>::Elements odd;
};
template <class S>
inline __attribute__((always_inline)) Pairs<compute_t<S>> load_pairs(const S* from, int64_t n) {
  using T = compute_t<S>;
  using Elements = typename LanesOf<T>::Elements;
  constexpr int64_t w = Simd<T>::width;
  const auto a = reinterpret_cast<Elements>(load_some(from, std::min(w, n)));
  const auto b =
      n > w ? reinterpret_cast<Elements>(load_some(from + w, std::min(w, n - w))) : Elements{};
  const typename LanesOf<T>::Lanes low = LanesOf<T>::steps(2);
  return {__builtin_shuffle(a, b, low), __builtin_shuffle(a, b, low + 1)};
}

// even[i] = from[2 * i] and odd[i] = from[2 * i + 1] of n elements.
template <class T>
void split_pairs(const T* from, int64_t n, T* even, T* odd) {
  using V = typename Simd<T>::V;
  constexpr int64_t w = Simd<T>::width;
  for (int64_t i = 0; i < n; i += 2 * w) {
    const int64_t left = n - i;
    const Pairs<T> pairs = load_pairs(from + i, left);
    store_some(even + i / 2, reinterpret_cast<V>(pairs.even), std::min(w, (left + 1) / 2));
    store_some(odd + i / 2, reinterpret_cast<V>(pairs.odd), std::min(w, left / 2));
  }
}

// The first n of a vector of places.
template <class T>
inline __attribute__((always_inline)) void store_places(int64_t* to, typename LanesOf<T>::Lanes at,
                                                        int64_t n) {
  using V = Simd<double>;
  using Int = typename LanesOf<T>::Int;
  typedef Int Narrow __attribute__((vector_size(V::width * sizeof(Int))));
  typedef int64_t Wide __attribute__((vector_size(V::width * sizeof(int64_t))));
  alignas(64) Int places[LanesOf<T>::width];
  std::memcpy(places, &at, sizeof(places));
  for (int64_t i = 0; i < n; i += V::width) {
    Narrow some;
    std::memcpy(&some, places + i, sizeof(some));
    store_some(reinterpret_cast<double*>(to + i),
               reinterpret_cast<V::V>(__builtin_convertvector(some, Wide)),
               std::min(V::width, n - i));
  }
}

// Windows that are two columns wide and lie side by side: the usual pooling.
bool are_pairs(const PoolAxis& a, int64_t image, int64_t outputs) {
  return a.kernel == 2 && a.stride == 2 && a.padding == 0 && a.dilation == 1 &&
         2 * outputs <= image;
}

// One row of outputs of such windows, all in registers. `rows` are where the windows' image rows
// begin in the plane.
template <class S>
void largest_of_pairs(const S* plane, const int64_t* rows, int64_t count, int64_t outputs, S* y,
                      int64_t* z) {
  using T = compute_t<S>;
  using L = LanesOf<T>;
  using Int = typename L::Int;
  constexpr int64_t w = L::width;
  for (int64_t i = 0; i < outputs; i += w) {
    const int64_t n = std::min(w, outputs - i);
    typename L::Elements best = typename L::Elements{} + lowest<T>();
    // A window of nothing but the lowest value reports its first element.
    typename L::Lanes at = L::steps(2) + static_cast<Int>(rows[0] + 2 * i);
    for (int64_t r = 0; r < count; r++) {
      const Pairs<T> pairs = load_pairs(plane + rows[r] + 2 * i, 2 * n);
      const typename L::Lanes place = L::steps(2) + static_cast<Int>(rows[r] + 2 * i);
      const auto take = [&](typename L::Elements value, typename L::Lanes where)
                            __attribute__((always_inline)) {
                              const typename L::Lanes larger = (value > best) | (value != value);
                              best = larger ? value : best;
                              at = larger ? where : at;
                            };
      take(pairs.even, place);
      take(pairs.odd, place + 1);
    }
    store_some(y + i, reinterpret_cast<typename Simd<T>::V>(best), n);
    store_places<T>(z + i, at, n);
  }
}

// An image row split into one part for each residue of the stride, the lowest value before and
// behind it, so that a tap of neighbouring outputs reads neighbours; long enough for whole vectors
// of outputs.
template <class T>
class SplitRow {
 public:
  static constexpr int64_t granule = 16;
  static constexpr int64_t most_stride = 4;

  SplitRow(const PoolAxis& axis, int64_t image, int64_t outputs)
      : room((outputs + granule - 1) / granule * granule),
        a_(axis),
        width_(image),
        length_(std::max(a_.padding + width_,
                         (room - 1) * a_.stride + (a_.kernel - 1) * a_.dilation + 1) /
                    a_.stride +
                1),
        parts_(a_.stride * length_) {
    std::fill_n(parts_.data(), a_.stride * length_, lowest<T>());
  }
  template <class S>
  void read(const S* row) {
    if constexpr (std::is_same_v<S, T> && is_real_float_v<T>) {
      if (a_.stride == 2) {
        const auto column = [&](int64_t x) {
          return parts_ + (x + a_.padding) % 2 * length_ + (x + a_.padding) / 2;
        };
        split_pairs<T>(row, width_, column(0), column(1));
        return;
      }
    }
    for (int64_t f = 0; f < a_.stride; f++) {
      // Element j of this part is image column j * stride + f - padding.
      const int64_t first = (std::max<int64_t>(a_.padding - f, 0) + a_.stride - 1) / a_.stride;
      T* part = parts_ + f * length_;
      const int64_t shift = f - a_.padding;
      for (int64_t j = first; j * a_.stride + shift < width_; j++) {
        part[j] = static_cast<T>(row[j * a_.stride + shift]);
      }
    }
  }
  // What tap k of each output reads: `room` elements.
  const T* tap(int64_t k) const {
    const int64_t at = k * a_.dilation;
    return parts_ + at % a_.stride * length_ + at / a_.stride;
  }

  const int64_t room;  // outputs

 private:
  const PoolAxis& a_;
  const int64_t width_;
  const int64_t length_;  // of a part
  const Scratch<T> parts_;
};

// The largest of windows along the width, from image rows, or what stands for them outside of the
// image.
template <class T, class I>
class Lines {
 public:
  Lines(const PoolAxis& axis, int64_t image, int64_t outputs, int64_t taps)
      : a_(axis), row_(axis, image, outputs), best_(row_.room), tap_(row_.room), places_(taps) {}
  void start() {
    std::fill_n(best_.data(), row_.room, lowest<T>());
    std::fill_n(tap_.data(), row_.room, -1);
    taken_ = 0;
  }
  // The taps of an image row that begins at `offset` of its plane.
  template <class S>
  void take(const S* row, int64_t offset) {
    row_.read(row);
    for (int64_t k = 0; k < a_.kernel; k++) {
      compare(row_.tap(k), static_cast<int32_t>(taken_));
      places_[taken_++] = static_cast<I>(offset + k * a_.dilation - a_.padding);
    }
  }
  T best(int64_t i) const { return best_[i]; }
  // Where it lies; `otherwise` where nothing is larger than the lowest.
  I place(int64_t i, I otherwise) const {
    return tap_[i] < 0 ? otherwise : places_[tap_[i]] + static_cast<I>(i * a_.stride);
  }

 private:
  void compare(const T* from, int32_t t) {
    T* best = best_;
    int32_t* tap = tap_;
#pragma GCC ivdep
    for (int64_t i = 0; i < row_.room; i++) {
      const bool larger = from[i] > best[i] || from[i] != from[i];
      best[i] = larger ? from[i] : best[i];
      tap[i] = larger ? t : tap[i];
    }
  }

  const PoolAxis& a_;
  SplitRow<T> row_;
  const Scratch<T> best_;
  const Scratch<int32_t> tap_;
  const Scratch<I> places_;  // of each tap, for the first output
  int64_t taken_ = 0;
};

// The taps of one image row for outputs of any stride, or of several channels side by side.
template <class S, class T, class I>
void take_row(T* best, I* at, const S* plane, int64_t offset, const PoolAxis& a, const Planes& in,
              int64_t outputs) {
  for (int64_t k = 0; k < a.kernel; k++) {
    const Span span = outputs_inside(a, k, in.size[2], outputs);
    const int64_t start = offset + span.begin * a.stride - a.padding + k * a.dilation;
    if (in.lanes == 1) {
      take_larger<S, T, I, 0>(best + span.begin, at + span.begin, plane + start, a.stride,
                              span.end - span.begin, static_cast<I>(start),
                              static_cast<I>(a.stride));
      continue;
    }
    for (int64_t w = span.begin; w < span.end; w++) {
      const int64_t place = start + (w - span.begin) * a.stride;
      take_larger<S, T, I, 1>(best + w * in.lanes, at + w * in.lanes, plane + place * in.lanes, 1,
                              in.lanes, static_cast<I>(place), I(0));
    }
  }
}

template <class S, class I>
void max_pool_typed(const Tensor& values, const Tensor& indices, const Tensor& self,
                    const PoolAxes& axes, int64_t dims) {
  using T = compute_t<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(values, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const PoolAxis aw = clip_windows(axes.axis[2], in.size[2], out.size[2]);
  // Places of floats are counted in 32 bits there.
  const bool by_pairs = is_real_float_v<S> && sizeof(I) == 4 && in.lanes == 1 &&
                        are_pairs(aw, in.size[2], out.size[2]);
  const bool by_lines = !by_pairs && in.lanes == 1 && aw.stride <= SplitRow<T>::most_stride;
  const int64_t row = out.size[2] * in.lanes;
  const S* x = self.data<S>();
  S* y = values.data<S>();
  int64_t* z = indices.data<int64_t>();
  const int64_t taps = most_rows(axes, in) * aw.kernel;
  const auto planes = [&](int64_t begin, int64_t end) {
    std::optional<Lines<T, I>> lines;
    if (by_lines) {
      lines.emplace(aw, in.size[2], out.size[2], taps);
    }
    const Scratch<int64_t> image_rows(most_rows(axes, in));
    const Scratch<T> best(by_lines ? 0 : row);
    const Scratch<I> at(row);
    // A window of nothing but the lowest value reports its first element, one that passes by the
    // image -1.
    const Scratch<I> firsts(row);
    for (int64_t w = 0; w < out.size[2]; w++) {
      int64_t start = w * aw.stride - aw.padding;
      start += start < 0 ? (-start + aw.dilation - 1) / aw.dilation * aw.dilation : 0;
      std::fill_n(firsts + w * in.lanes, in.lanes, static_cast<I>(start < in.size[2] ? start : -1));
    }
    const auto first_of = [&](int64_t i, int64_t first_row) {
      return firsts[i] < 0 ? I(-1) : static_cast<I>(firsts[i] + first_row);
    };
    for (int64_t p = begin; p < end; p++) {
      const S* plane = x + p * in.area() * in.lanes;
      for (int64_t r = 0, d = 0, h = 0; r < out.size[0] * out.size[1]; r++, h++) {
        if (h == out.size[1]) {
          h = 0;
          d++;
        }
        const int64_t to = (p * out.area() + r * out.size[2]) * in.lanes;
        if (!has_row_taps(axes, in, d, h)) {
          std::fill_n(y + to, row, S(lowest<T>()));
          std::fill_n(z + to, row, -1);
          continue;
        }
        if constexpr (is_real_float_v<S>) {
          if (by_pairs) {
            int64_t count = 0;
            for_row_taps(axes, in, d, h, [&](int64_t offset) { image_rows[count++] = offset; });
            largest_of_pairs(plane, image_rows.data(), count, out.size[2], y + to, z + to);
            continue;
          }
        }
        int64_t first_row = -1;
        if (by_lines) {
          lines->start();
          for_row_taps(axes, in, d, h, [&](int64_t offset) {
            first_row = first_row < 0 ? offset : first_row;
            lines->take(plane + offset, offset);
          });
          for (int64_t i = 0; i < row; i++) {
            y[to + i] = S(lines->best(i));
            z[to + i] = lines->place(i, first_of(i, first_row));
          }
          continue;
        }
        std::fill_n(best.data(), row, lowest<T>());
        for_row_taps(axes, in, d, h, [&](int64_t offset) {
          for (int64_t i = 0; i < row && first_row < 0; i++) {
            at[i] = first_of(i, offset);
          }
          first_row = offset;
          take_row<S, T, I>(best.data(), at.data(), plane, offset, aw, in, out.size[2]);
        });
        for (int64_t i = 0; i < row; i++) {
          y[to + i] = S(best[i]);
          z[to + i] = at[i];
        }
      }
    }
  };
  parallel_for(0, in.count, plane_grain(out.area() * in.lanes * taps), planes);
}

// ---- values alone ----

// best = the larger of both, from NaN on NaN.
template <class S, class T>
void keep_larger(T* best, const S* from, int64_t stride, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const T value = static_cast<T>(from[i * stride]);
    best[i] = value > best[i] || value != value ? value : best[i];
  }
}

template <class T>
inline __attribute__((always_inline)) T larger_of(T best, T value) {
  return (value > best) | (value != value) ? value : best;
}

// to = the largest of n elements of each of some rows, at least one.
template <class T>
void largest_of_rows(const T* const* rows, int64_t count, T* to, int64_t n) {
  if constexpr (is_real_float_v<T>) {
    using Elements = typename LanesOf<T>::Elements;
    using V = typename Simd<T>::V;
    constexpr int64_t w = LanesOf<T>::width;
    for (int64_t i = 0; i < n; i += w) {
      const int64_t some = std::min(w, n - i);
      auto best = reinterpret_cast<Elements>(load_some(rows[0] + i, some));
      for (int64_t r = 1; r < count; r++) {
        const auto value = reinterpret_cast<Elements>(load_some(rows[r] + i, some));
        best = larger_of(best, value);
      }
      store_some(to + i, reinterpret_cast<V>(best), some);
    }
  } else {
    std::copy_n(rows[0], n, to);
    for (int64_t r = 1; r < count; r++) {
      keep_larger(to, rows[r], 1, n);
    }
  }
}

// Of one plane: the largest of each window along the width, for the image rows that are asked for.
// A row is computed once for all windows that it is in, as long as those follow each other.
template <class S>
class LargestAlongRows {
 public:
  using T = compute_t<S>;
  // `span`: from the first image row to behind the last one of an output row.
  LargestAlongRows(const PoolAxis& axis, const Planes& in, int64_t outputs, int64_t span)
      : a_(axis),
        in_(in),
        outputs_(outputs),
        span_(span),
        pairs_(is_real_float_v<S> && are_pairs(axis, in.size[2], outputs)),
        split_(!pairs_ && a_.stride <= SplitRow<T>::most_stride),
        row_(split_ ? a_ : PoolAxis{}, split_ ? in.size[2] : 1, split_ ? outputs : 1),
        room_(split_ ? row_.room : outputs),
        taps_(a_.kernel),
        rows_(span * room_),
        known_(span) {
    for (int64_t k = 0; split_ && k < a_.kernel; k++) {
      taps_[k] = row_.tap(k);
    }
  }
  void start(const S* plane) {
    plane_ = plane;
    std::fill_n(known_.data(), span_, int64_t{-1});
  }
  const T* row(int64_t offset) {
    const int64_t index = offset / in_.size[2];
    T* const best = rows_ + index % span_ * room_;
    if (known_[index % span_] != index) {
      known_[index % span_] = index;
      read(best, plane_ + offset);
    }
    return best;
  }

 private:
  void read(T* best, const S* image) {
    if constexpr (is_real_float_v<S>) {
      if (pairs_) {
        read_pairs(best, image);
        return;
      }
    }
    if (split_) {
      row_.read(image);
      largest_of_rows(taps_.data(), a_.kernel, best, room_);
      return;
    }
    std::fill_n(best, room_, lowest<T>());
    for (int64_t k = 0; k < a_.kernel; k++) {
      const Span inside = outputs_inside(a_, k, in_.size[2], outputs_);
      keep_larger(best + inside.begin,
                  image + inside.begin * a_.stride - a_.padding + k * a_.dilation, a_.stride,
                  inside.end - inside.begin);
    }
  }

  void read_pairs(T* best, const S* image) {
    constexpr int64_t w = LanesOf<T>::width;
    for (int64_t i = 0; i < outputs_; i += w) {
      const int64_t n = std::min(w, outputs_ - i);
      const Pairs<T> pairs = load_pairs(image + 2 * i, 2 * n);
      store_some(best + i, reinterpret_cast<typename Simd<T>::V>(larger_of(pairs.even, pairs.odd)),
                 n);
    }
  }

  const PoolAxis& a_;
  const Planes& in_;
  const int64_t outputs_;
  const int64_t span_;
  const bool pairs_;
  const bool split_;
  SplitRow<T> row_;
  const int64_t room_;
  const Scratch<const T*> taps_;
  const Scratch<T> rows_;
  const Scratch<int64_t> known_;  // which image row lies in each place
  const S* plane_ = nullptr;
};

// Channels side by side: each tap of an output is a row of them.
template <class S, class T>
void take_lanes(T* best, const S* plane, int64_t offset, const PoolAxis& a, const Planes& in,
                int64_t outputs) {
  for (int64_t w = 0; w < outputs; w++) {
    const int64_t start = w * a.stride - a.padding;
    const Span taps = taps_inside(a, start, in.size[2]);
    for (int64_t k = taps.begin; k < taps.end; k++) {
      keep_larger(best + w * in.lanes, plane + (offset + start + k * a.dilation) * in.lanes, 1,
                  in.lanes);
    }
  }
}

template <class S>
void max_pool_values_typed(const Tensor& values, const Tensor& self, const PoolAxes& axes,
                           int64_t dims) {
  using T = compute_t<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(values, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const PoolAxis aw = clip_windows(axes.axis[2], in.size[2], out.size[2]);
  const PoolAxis ah = clip_windows(axes.axis[1], in.size[1], out.size[1]);
  const PoolAxis ad = clip_windows(axes.axis[0], in.size[0], out.size[0]);
  const int64_t span = std::min((ad.kernel - 1) * ad.dilation, in.size[0] - 1) * in.size[1] +
                       std::min((ah.kernel - 1) * ah.dilation + 1, in.size[1]);
  const int64_t row = out.size[2] * in.lanes;
  const S* x = self.data<S>();
  S* y = values.data<S>();
  const auto planes = [&](int64_t begin, int64_t end) {
    const Scratch<T> memory(std::is_same_v<S, T> ? 0 : row);
    const Scratch<const T*> found(most_rows(axes, in));
    std::optional<LargestAlongRows<S>> rows;
    if (in.lanes == 1) {
      rows.emplace(aw, in, out.size[2], span);
    }
    for (int64_t p = begin; p < end; p++) {
      const S* plane = x + p * in.area() * in.lanes;
      if (rows) {
        rows->start(plane);
      }
      for (int64_t r = 0; r < out.size[0] * out.size[1]; r++) {
        S* const to = y + p * out.area() * in.lanes + r * row;
        T* best;
        if constexpr (std::is_same_v<S, T>) {
          best = to;
        } else {
          best = memory;
        }
        int64_t count = 0;
        if (!rows) {
          std::fill_n(best, row, lowest<T>());
        }
        for_row_taps(axes, in, r / out.size[1], r % out.size[1], [&](int64_t offset) {
          if (rows) {
            found[count++] = rows->row(offset);
          } else {
            take_lanes(best, plane, offset, aw, in, out.size[2]);
          }
        });
        if (count > 0) {
          largest_of_rows(found.data(), count, best, row);
        } else if (rows) {
          std::fill_n(best, row, lowest<T>());
        }
        if constexpr (!std::is_same_v<S, T>) {
          for (int64_t i = 0; i < row; i++) {
            to[i] = S(best[i]);
          }
        }
      }
    }
  };
  parallel_for(0, in.count, plane_grain(out.area() * in.lanes * (most_rows(axes, in) + aw.kernel)),
               planes);
}

template <class S>
void adaptive_max_pool_typed(const Tensor& values, const Tensor& indices, const Tensor& self,
                             int64_t dims) {
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(values, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const S* x = self.data<S>();
  for_adaptive(in, out, [&](int64_t p, int64_t place, const Span(&windows)[3]) {
    for (int64_t c = 0; c < in.lanes; c++) {
      const S* plane = x + p * in.area() * in.lanes + c;
      compute_t<S> best = lowest<compute_t<S>>();
      int64_t at =
          (windows[0].begin * in.size[1] + windows[1].begin) * in.size[2] + windows[2].begin;
      for_window_rows(in, windows, [&](int64_t offset, int64_t length) {
        for (int64_t i = offset; i < offset + length; i++) {
          const auto value = static_cast<compute_t<S>>(plane[i * in.lanes]);
          if (value > best || value != value) {
            best = value;
            at = i;
          }
        }
      });
      values.data<S>()[(p * out.area() + place) * in.lanes + c] = S(best);
      indices.data<int64_t>()[(p * out.area() + place) * in.lanes + c] = at;
    }
  });
}

}  // namespace

void _max_pool(const Tensor& out_values, const Tensor& out_indices, const Tensor& self,
               IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation, bool) {
  const auto dims = static_cast<int64_t>(kernel_size.size());
  const PoolAxes axes(kernel_size, stride, padding, dilation);
  const bool small = planes_of(self, dims).area() < INT32_MAX;
  visit_dtype<set_real>("max_pool", self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    if (small) {
      max_pool_typed<S, int32_t>(out_values, out_indices, self, axes, dims);
    } else {
      max_pool_typed<S, int64_t>(out_values, out_indices, self, axes, dims);
    }
  });
}

void _max_pool_values(const Tensor& out, const Tensor& self, IntArrayRef kernel_size,
                      IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool) {
  if (out.numel() == 0) {
    return;
  }
  const PoolAxes axes(kernel_size, stride, padding, dilation);
  visit_dtype<set_real>("max_pool", self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    if (self.numel() == 0) {  // padding alone
      std::fill_n(out.data<S>(), out.numel(), S(lowest<compute_t<S>>()));
      return;
    }
    max_pool_values_typed<S>(out, self, axes, static_cast<int64_t>(kernel_size.size()));
  });
}

void _max_pool_backward(const Tensor& out, const Tensor& grad_output, const Tensor& indices,
                        IntArrayRef, int64_t dims) {
  const Planes pooled = planes_of(grad_output, dims);
  const int64_t area = planes_of(out, dims).area();
  const int64_t lanes = pooled.lanes;
  const int64_t* at = indices.data<int64_t>();
  visit_dtype<set_floating>("max_pool_backward", out.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const S* g = grad_output.data<S>();
    S* dx = out.data<S>();
    parallel_for(0, pooled.count, plane_grain(area * lanes), [&](int64_t begin, int64_t end) {
      // Sums of 16-bit floats are kept in floats.
      const Scratch<T> memory(std::is_same_v<S, T> ? 0 : area * lanes);
      for (int64_t p = begin; p < end; p++) {
        T* sums;
        if constexpr (std::is_same_v<S, T>) {
          sums = dx + p * area * lanes;
        } else {
          sums = memory;
        }
        std::fill_n(sums, area * lanes, T(0));
        for (int64_t i = p * pooled.area() * lanes; i < (p + 1) * pooled.area() * lanes; i++) {
          if (at[i] == -1) {
            continue;  // a window that passed by the image
          }
          if (at[i] < 0 || at[i] >= area) {
            raise_error("max pooling backward: an index is outside of the image");
          }
          sums[at[i] * lanes + (lanes == 1 ? 0 : i % lanes)] += static_cast<T>(g[i]);
        }
        if constexpr (!std::is_same_v<S, T>) {
          for (int64_t i = 0; i < area * lanes; i++) {
            dx[p * area * lanes + i] = S(sums[i]);
          }
        }
      }
    });
  });
}

void _adaptive_max_pool(const Tensor& out_values, const Tensor& out_indices, const Tensor& self,
                        IntArrayRef output_size) {
  visit_dtype<set_real>("adaptive_max_pool", self.dtype(), [&](auto tag) {
    adaptive_max_pool_typed<typename decltype(tag)::type>(out_values, out_indices, self,
                                                          static_cast<int64_t>(output_size.size()));
  });
}

}  // namespace rushlight::cpu::RL_ISA
