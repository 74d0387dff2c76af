// The windows of a convolution in a slab: what conv.cpp and conv/weight.cpp share. A tile of work
// is a part of the output of one group. It first copies what it needs of the input into a padded
// slab in which every window lies at a fixed offset, whatever the padding, dilation, dtype or
// layout of the tensors; a stride in width is undone by splitting rows into phases, so that
// neighbouring outputs always read neighbouring elements.
#pragma once

#include <memory>
#include <vector>

#include "cpu/isa/conv/axes.h"
#include "cpu/isa/conv/rows.h"
#include "cpu/isa/matmul/gemm_engine.h"

namespace rushlight::cpu::RL_ISA {

// A part of the output: images n0..n1, rows r0..r1 along the outermost dimension that is not 1.
struct Part {
  int64_t group;
  int64_t n0;
  int64_t n1;
  int64_t r0;
  int64_t r1;
};

// The windows of one part, in a slab of T.
template <class T>
struct Windows {
  const T* slab = nullptr;
  std::vector<int64_t> offsets;  // of (channel, tap), channels outermost
  int64_t rows_d = 0;            // of one image
  int64_t rows_h = 0;
  int64_t width = 0;
  std::vector<int64_t> row_starts;  // in the slab, of the rows of all images
  int64_t rows() const { return static_cast<int64_t>(row_starts.size()); }
  // Calls f(at, offset, n) for the runs of neighbouring pixels among `columns` from pixel j on.
  template <class F>
  void for_runs(int64_t j, int64_t columns, const F& f) const {
    int64_t at = 0;
    while (at < columns) {
      const int64_t row = (j + at) / width;
      const int64_t x = (j + at) % width;
      const int64_t n = std::min(columns - at, width - x);
      f(at, row_starts[static_cast<size_t>(row)] + x, n);
      at += n;
    }
  }
};

// Slab coordinates of one dimension that a part needs.
struct Range {
  int64_t from;
  int64_t size;
};

inline Range range_of(const ConvAxis& a, int64_t r0, int64_t r1) {
  int64_t low = INT64_MAX;
  int64_t high = 0;
  for (const int64_t o : a.offsets) {
    low = std::min(low, o);
    high = std::max(high, o);
  }
  if (a.offsets.empty()) {
    low = 0;
  }
  return {a.base + r0 * a.stride + low, (r1 - 1 - r0) * a.stride + high - low + 1};
}

// Copies channels c0..c1 of the part's images into a slab and describes its windows. `memory` is
// replaced.
template <class S, class T>
class Slab {
 public:
  Slab(const Conv& c, const std::array<const ConvAxis*, 3>& axes, const Part& part, int64_t c0,
       int64_t c1) {
    const int split = axes[0]->count > 1 ? 0 : 1;
    std::array<Range, 3> ranges;
    for (int d = 0; d < 3; d++) {
      ranges[d] =
          d == split ? range_of(*axes[d], part.r0, part.r1) : range_of(*axes[d], 0, axes[d]->count);
    }
    const int64_t phases = axes[2]->stride;  // of a row
    const int64_t phase_size = (ranges[2].size + phases - 1) / phases;
    const int64_t row = phases * phase_size;
    const int64_t plane = ranges[1].size * row;
    const int64_t channel = ranges[0].size * plane;
    windows.rows_d = split == 0 ? part.r1 - part.r0 : axes[0]->count;
    windows.rows_h = split == 1 ? part.r1 - part.r0 : axes[1]->count;
    windows.width = axes[2]->count;
    const int64_t image = (c1 - c0) * channel;
    const int64_t elements = (part.n1 - part.n0) * image;
    for (int64_t n = part.n0; n < part.n1; n++) {
      for (int64_t d = 0; d < windows.rows_d; d++) {
        for (int64_t h = 0; h < windows.rows_h; h++) {
          windows.row_starts.push_back((n - part.n0) * image + d * axes[0]->stride * plane +
                                       h * axes[1]->stride * row);
        }
      }
    }
    // Vectors may be read past the end of the last row.
    memory_ = std::make_unique<Scratch<T>>(elements + 4 * Simd<T>::width);
    std::fill_n(memory_->data() + elements, 4 * Simd<T>::width, T(0));
    windows.slab = memory_->data();
    const auto& s = c.input.strides;
    for (int64_t n = part.n0; n < part.n1; n++) {
      for (int64_t ch = c0; ch < c1; ch++) {
        for (int64_t d = 0; d < ranges[0].size; d++) {
          for (int64_t h = 0; h < ranges[1].size; h++) {
            T* to =
                memory_->data() + (n - part.n0) * image + (ch - c0) * channel + d * plane + h * row;
            const int64_t in_d = ranges[0].from + d - axes[0]->low;
            const int64_t in_h = ranges[1].from + h - axes[1]->low;
            if (in_d < 0 || in_d >= c.in[0] || in_h < 0 || in_h >= c.in[1]) {
              std::fill_n(to, row, T(0));
              continue;
            }
            const S* from = static_cast<const S*>(c.input.data) + n * s[0] +
                            (part.group * c.in_channels + ch) * s[1] + in_d * s[2] + in_h * s[3];
            for (int64_t f = 0; f < phases; f++) {
              // Element j of this phase is input column j * phases + shift.
              const int64_t shift = ranges[2].from + f - axes[2]->low;
              const int64_t first = shift >= 0 ? 0 : (-shift + phases - 1) / phases;
              const int64_t end =
                  shift >= c.in[2] ? 0 : std::min(phase_size, (c.in[2] - 1 - shift) / phases + 1);
              T* part_of_row = to + f * phase_size;
              const int64_t begin = std::min(first, phase_size);
              const int64_t stop = std::max(begin, end);
              std::fill_n(part_of_row, begin, T(0));
              copy_row(part_of_row + begin, from + (begin * phases + shift) * s[4], phases * s[4],
                       stop - begin);
              std::fill_n(part_of_row + stop, phase_size - stop, T(0));
            }
          }
        }
      }
    }
    const auto offset = [&](int d, int64_t tap) {
      const int64_t low =
          ranges[d].from - axes[d]->base - (d == split ? part.r0 * axes[d]->stride : 0);
      return axes[d]->offsets[static_cast<size_t>(tap)] - low;
    };
    for (int64_t ch = 0; ch < c1 - c0; ch++) {
      for (int64_t d = 0; d < static_cast<int64_t>(axes[0]->taps.size()); d++) {
        for (int64_t h = 0; h < static_cast<int64_t>(axes[1]->taps.size()); h++) {
          for (int64_t w = 0; w < static_cast<int64_t>(axes[2]->taps.size()); w++) {
            const int64_t x = offset(2, w);
            windows.offsets.push_back(ch * channel + offset(0, d) * plane + offset(1, h) * row +
                                      x % phases * phase_size + x / phases);
          }
        }
      }
    }
  }
  Windows<T> windows;

 private:
  std::unique_ptr<Scratch<T>> memory_;
};

void windows_weight_backward(const Conv& c);

}  // namespace rushlight::cpu::RL_ISA
