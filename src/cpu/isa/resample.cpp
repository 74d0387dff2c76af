// Images at other sizes. Every output element is a weighted sum of a few elements along each axis,
// so an axis is a table of taps, and the gradient is the same sum with the tables transposed. A row
// is first resampled along the width; rows are then added up along the other axes. Where channels
// are innermost, each place of a row holds all of them. Output rows are independent: threads change
// no bit.
#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "cpu/isa/by_size.h"
#include "cpu/resample.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// ---- images ----

struct Images {
  int64_t count = 1;
  int64_t lanes = 1;  // channels side by side
  Images(const Tensor& t) {
    count = t.size(0) * t.size(1);
    if (!t.is_contiguous()) {
      lanes = t.size(1);
      count = t.size(0);
    }
  }
};

// Calls f(image, depth, first row, rows) for pieces of images, in parallel.
template <class F>
void for_pieces(int64_t count, int64_t depth, int64_t rows, int64_t work_per_row, const F& f) {
  const int64_t step = std::clamp<int64_t>(32768 / std::max<int64_t>(1, work_per_row), 1, rows);
  const int64_t pieces = (rows + step - 1) / step;
  const int64_t grain = std::max<int64_t>(1, 32768 / (std::max<int64_t>(1, work_per_row) * step));
  parallel_for(0, count * depth * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t first = task % pieces * step;
      f(task / pieces / depth, task / pieces % depth, first, std::min(step, rows - first));
    }
  });
}

// ---- nearest: bytes move ----

template <class B>
void copy_nearest(const Tensor& out, const Tensor& self, const Axes<float>& axes) {
  const Images images(self);
  const auto& [d, h, w] = axes.axis;
  const B* from = static_cast<const B*>(self.data_ptr());
  B* to = static_cast<B*>(out.data_ptr());
  const int64_t lanes = images.lanes;
  for_pieces(images.count, d.outputs, h.outputs, w.outputs * lanes,
             [&](int64_t image, int64_t z, int64_t first, int64_t rows) {
               const B* plane = from + (image * d.inputs + d.at[z]) * h.inputs * w.inputs * lanes;
               B* row = to + ((image * d.outputs + z) * h.outputs + first) * w.outputs * lanes;
               for (int64_t y = first; y < first + rows; y++, row += w.outputs * lanes) {
                 if (y > first && h.at[y] == h.at[y - 1]) {
                   std::memcpy(row, row - w.outputs * lanes, w.outputs * lanes * sizeof(B));
                   continue;
                 }
                 const B* source = plane + h.at[y] * w.inputs * lanes;
                 const int32_t* at = w.at.data();
                 if (lanes == 1) {
                   for (int64_t x = 0; x < w.outputs; x++) {
                     row[x] = source[at[x]];
                   }
                   continue;
                 }
                 for (int64_t x = 0; x < w.outputs; x++) {
                   std::memcpy(row + x * lanes, source + at[x] * lanes, lanes * sizeof(B));
                 }
               }
             });
}

// ---- weighted sums ----

template <class S, class T>
S stored(T x) {
  if constexpr (std::is_same_v<S, uint8_t>) {
    return static_cast<S>(std::clamp<T>(std::nearbyint(x), T(0), T(255)));
  } else {
    return S(x);
  }
}

// A row along the width, `lanes` elements at each place (known to the compiler where Fixed says how
// many). `from` has zeros behind its end where taps are absent.
template <int Fixed, class T>
void resample_places(const Axis<T>& axis, int64_t any_lanes, const T* __restrict from,
                     T* __restrict to) {
  const int64_t lanes = Fixed > 0 ? Fixed : any_lanes;
  const int64_t n = axis.outputs;
  const int32_t* __restrict at = axis.at.data();
  const T* __restrict w = axis.weight.data();
  if (axis.taps == 2) {
    for (int64_t i = 0; i < n; i++) {
      const T* __restrict p = from + at[i] * lanes;
      const T* __restrict q = from + at[n + i] * lanes;
      const T a = w[i];
      const T b = w[n + i];
      for (int64_t c = 0; c < lanes; c++) {
        to[i * lanes + c] = a * p[c] + b * q[c];
      }
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t c = 0; c < lanes; c++) {
      to[i * lanes + c] = w[i] * from[at[i] * lanes + c];
    }
  }
  for (int64_t t = 1; t < axis.taps; t++) {
    at += n;
    w += n;
    for (int64_t i = 0; i < n; i++) {
      for (int64_t c = 0; c < lanes; c++) {
        to[i * lanes + c] += w[i] * from[at[i] * lanes + c];
      }
    }
  }
}

template <class T>
void resample_row(const Axis<T>& axis, int64_t lanes, const T* from, T* to) {
  switch (lanes) {
    case 1:
      return resample_places<1>(axis, lanes, from, to);
    case 3:
      return resample_places<3>(axis, lanes, from, to);
    case 4:
      return resample_places<4>(axis, lanes, from, to);
    default:
      return resample_places<0>(axis, lanes, from, to);
  }
}

template <class T>
struct Term {
  T weight;
  const T* row;
};

template <class S, class T>
void add_rows(S* __restrict to, int64_t n, const Term<T>* terms, int64_t count,
              T* __restrict sums) {
  if (count == 2) {
    const auto [w0, r0] = terms[0];
    const auto [w1, r1] = terms[1];
    for (int64_t i = 0; i < n; i++) {
      to[i] = stored<S>(w0 * r0[i] + w1 * r1[i]);
    }
    return;
  }
  std::fill_n(sums, n, T(0));
  for (int64_t k = 0; k < count; k++) {
    const T w = terms[k].weight;
    const T* __restrict r = terms[k].row;
    for (int64_t i = 0; i < n; i++) {
      sums[i] += w * r[i];
    }
  }
  for (int64_t i = 0; i < n; i++) {
    to[i] = stored<S>(sums[i]);
  }
}

// Rows along the width first, each once for a piece of the output, then sums of whole rows.
template <class S, class T>
void resample_images(const Tensor& out, const Tensor& self, const Axes<T>& axes) {
  const auto& [d, h, w] = axes.axis;
  const Images images(self);
  const int64_t lanes = images.lanes;
  const int64_t wide = w.outputs * lanes;
  const S* from = self.data<S>();
  S* to = out.data<S>();
  const bool direct = std::is_same_v<S, T> && !w.absent;
  for_pieces(images.count, d.outputs, h.outputs, wide * (w.taps + d.taps * h.taps),
             [&](int64_t image, int64_t z, int64_t first, int64_t rows) {
               // The input rows that this piece needs.
               int64_t low = h.inputs;
               int64_t high = 0;
               for (int64_t y = first; y < first + rows; y++) {
                 for (int64_t t = 0; t < h.taps; t++) {
                   if (h.place(y, t) < h.inputs) {
                     low = std::min<int64_t>(low, h.place(y, t));
                     high = std::max<int64_t>(high, h.place(y, t) + 1);
                   }
                 }
               }
               const int64_t span = std::max<int64_t>(0, high - low);
               const Scratch<T> resampled(d.taps * span * wide);
               const Scratch<char> done(d.taps * span);
               const Scratch<T> row(direct ? 0 : (w.inputs + 1) * lanes);
               const Scratch<T> sums(wide);
               const Scratch<Term<T>> terms(d.taps * h.taps);
               std::fill_n(done.data(), d.taps * span, char(0));
               const auto along_width = [&](int64_t a, int64_t depth, int64_t y) -> const T* {
                 const int64_t slot = a * span + y - low;
                 T* const result = resampled + slot * wide;
                 if (done[slot] == 0) {
                   done[slot] = 1;
                   const S* source =
                       from + ((image * d.inputs + depth) * h.inputs + y) * w.inputs * lanes;
                   if constexpr (std::is_same_v<S, T>) {
                     if (direct) {
                       resample_row(w, lanes, source, result);
                       return result;
                     }
                   }
                   for (int64_t x = 0; x < w.inputs * lanes; x++) {
                     row[x] = static_cast<T>(source[x]);
                   }
                   std::fill_n(row + w.inputs * lanes, lanes, T(0));
                   resample_row(w, lanes, row.data(), result);
                 }
                 return result;
               };
               for (int64_t y = first; y < first + rows; y++) {
                 int64_t count = 0;
                 for (int64_t a = 0; a < d.taps; a++) {
                   for (int64_t b = 0; b < h.taps; b++) {
                     if (d.place(z, a) < d.inputs && h.place(y, b) < h.inputs) {
                       terms[count++] = {d.factor(z, a) * h.factor(y, b),
                                         along_width(a, d.place(z, a), h.place(y, b))};
                     }
                   }
                 }
                 add_rows(to + ((image * d.outputs + z) * h.outputs + y) * wide, wide, terms.data(),
                          count, sums.data());
               }
             });
}

// ---- bytes ----

// An axis with weights in fixed point: whole numbers over 1 << bits, each below 1 << 15. The taps
// of an output lie together, the present ones first.
struct ByteAxis {
  const Axis<double>& axis;
  int bits = 0;
  Scratch<int32_t> weight;
  Scratch<int32_t> at;
  Scratch<int32_t> count;

  explicit ByteAxis(const Axis<double>& given)
      : axis(given),
        weight(given.taps * given.outputs),
        at(given.taps * given.outputs),
        count(given.outputs) {
    const Scratch<double> joined(given.taps * given.outputs);
    double largest = 0;
    for (int64_t i = 0; i < given.outputs; i++) {
      double* const mine = joined + i * given.taps;
      int32_t* const places = at + i * given.taps;
      int32_t n = 0;
      for (int64_t t = 0; t < given.taps; t++) {
        const int32_t place = given.place(i, t);
        if (place == given.inputs) {
          continue;
        }
        // Taps that the edge brings to one place are one.
        int32_t same = 0;
        while (same < n && places[same] != place) {
          same++;
        }
        if (same < n) {
          mine[same] += given.factor(i, t);
          continue;
        }
        places[n] = place;
        mine[n] = given.factor(i, t);
        n++;
      }
      count[i] = n;
      for (int32_t t = 0; t < n; t++) {
        largest = std::max(largest, mine[t]);
      }
    }
    while (bits < 22 && largest * (1 << (bits + 1)) + 0.5 < (1 << 15)) {
      bits++;
    }
    for (int64_t i = 0; i < given.outputs; i++) {
      for (int64_t t = i * given.taps; t < i * given.taps + count[i]; t++) {
        const double scaled = joined[t] * (1 << bits);
        weight[t] = static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
      }
    }
  }
};

inline uint8_t from_fixed(int32_t sum, int bits) {
  return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255));
}

// One row of `lanes` bytes at each place; taps of a place lie together in `at` and `weight`.
template <int Fixed>
void narrow_row(const ByteAxis& w, int64_t any_lanes, const uint8_t* __restrict from,
                uint8_t* __restrict to, int32_t* __restrict sums) {
  const int64_t lanes = Fixed > 0 ? Fixed : any_lanes;
  const int32_t half = w.bits > 0 ? 1 << (w.bits - 1) : 0;
  const int64_t taps = w.axis.taps;
  int32_t kept[Fixed > 0 ? Fixed : 1];
  int32_t* const sum = Fixed > 0 ? kept : sums;
  for (int64_t x = 0; x < w.axis.outputs; x++, to += lanes) {
    for (int64_t c = 0; c < lanes; c++) {
      sum[c] = half;
    }
    for (int64_t t = x * taps; t < x * taps + w.count[x]; t++) {
      const uint8_t* p = from + w.at[t] * lanes;
      for (int64_t c = 0; c < lanes; c++) {
        sum[c] += w.weight[t] * p[c];
      }
    }
    for (int64_t c = 0; c < lanes; c++) {
      to[c] = from_fixed(sum[c], w.bits);
    }
  }
}

// Images of bytes, as image libraries do it: a pass along the width and one along the height, each
// in fixed point and rounded to bytes.
void resample_bytes(const Tensor& out, const Tensor& self, const Axes<double>& axes) {
  const Images images(self);
  const int64_t lanes = images.lanes;
  const ByteAxis w(axes.axis[2]);
  const ByteAxis h(axes.axis[1]);
  const int64_t rows = h.axis.inputs;
  const int64_t wide = w.axis.outputs * lanes;
  const Scratch<uint8_t> narrowed(rows * wide);
  for (int64_t image = 0; image < images.count; image++) {
    const uint8_t* from = self.data<uint8_t>() + image * rows * w.axis.inputs * lanes;
    uint8_t* to = out.data<uint8_t>() + image * h.axis.outputs * wide;
    const int64_t row_work = wide * w.axis.taps;
    parallel_for(0, rows, std::max<int64_t>(1, 65536 / row_work), [&](int64_t begin, int64_t end) {
      const Scratch<int32_t> sums(lanes);
      for (int64_t y = begin; y < end; y++) {
        const uint8_t* source = from + y * w.axis.inputs * lanes;
        if (lanes == 1) {
          narrow_row<1>(w, lanes, source, narrowed + y * wide, sums);
        } else if (lanes == 3) {
          narrow_row<3>(w, lanes, source, narrowed + y * wide, sums);
        } else {
          narrow_row<0>(w, lanes, source, narrowed + y * wide, sums);
        }
      }
    });
    const int64_t grain = std::max<int64_t>(1, 65536 / (wide * h.axis.taps));
    parallel_for(0, h.axis.outputs, grain, [&](int64_t begin, int64_t end) {
      const Scratch<int32_t> memory(wide);
      int32_t* const __restrict sum = memory;
      for (int64_t y = begin; y < end; y++) {
        std::fill_n(sum, wide, h.bits > 0 ? 1 << (h.bits - 1) : 0);
        for (int64_t t = y * h.axis.taps; t < y * h.axis.taps + h.count[y]; t++) {
          const int32_t factor = h.weight[t];
          const uint8_t* __restrict row = narrowed + h.at[t] * wide;
          for (int64_t i = 0; i < wide; i++) {
            sum[i] += factor * row[i];
          }
        }
        for (int64_t i = 0; i < wide; i++) {
          to[y * wide + i] = from_fixed(sum[i], h.bits);
        }
      }
    });
  }
}

void resample(const char* name, const Tensor& out, const Tensor& self, IntArrayRef in,
              IntArrayRef image, const How& how, const std::optional<double> (&scales)[3],
              bool backward) {
  if (out.numel() == 0) {
    return;
  }
  if (!backward && (how.filter == Filter::Nearest || how.filter == Filter::NearestExact)) {
    const Axes<float> axes = axes_of<float>(in, image, how, scales, false);
    visit_size(self.element_size(),
               [&](auto tag) { copy_nearest<typename decltype(tag)::type>(out, self, axes); });
    return;
  }
  if (self.dtype() == kUInt8 && in.size() == 2) {
    resample_bytes(out, self, axes_of<double>(in, image, how, scales, false));
    return;
  }
  visit_dtype<set_floating | set_Byte>(name, self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = std::conditional_t<std::is_same_v<S, uint8_t>, float, compute_t<S>>;
    const Axes<T> axes = axes_of<T>(in, image, how, scales, backward);
    resample_images<S, T>(out, self, axes);
  });
}

}  // namespace

void _interpolate(const Tensor& out, const Tensor& self, IntArrayRef output_size,
                  std::string_view mode, bool align_corners, bool antialias,
                  std::optional<double> scale_d, std::optional<double> scale_h,
                  std::optional<double> scale_w) {
  resample("interpolate", out, self, self.sizes().slice(2, output_size.size()), output_size,
           {filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, false);
}

void _interpolate_backward(const Tensor& out, const Tensor& grad, IntArrayRef input_size,
                           int64_t dims, std::string_view mode, bool align_corners, bool antialias,
                           std::optional<double> scale_d, std::optional<double> scale_h,
                           std::optional<double> scale_w) {
  const size_t n = static_cast<size_t>(dims);
  resample("interpolate_backward", out, grad, input_size.slice(2, n), grad.sizes().slice(2, n),
           {filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, true);
}

}  // namespace rushlight::cpu::RL_ISA
