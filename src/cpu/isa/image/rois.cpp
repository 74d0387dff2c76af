// Bins of boxes: their means and their largest pixels. The weight of a pixel in a bin is a product
// of one for its row and one for its column, so that a bin of many samples reads each pixel once.
// Results belong to boxes, gradients to planes of the image: threads change no bit.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// What the bins of one axis read: bin b the pixels at[first[b]] .. at[first[b + 1]], by weight.
template <class T>
struct Axis {
  std::vector<int64_t> first;
  std::vector<int64_t> at;
  std::vector<T> weight;
  std::vector<T> count;  // samples of each bin
  int64_t low = 0;       // all pixels lie in low..high
  int64_t high = 0;

  void clear() {
    first.assign(1, 0);
    at.clear();
    weight.clear();
    count.clear();
  }
  void add(int64_t pixel, T share) {
    for (size_t i = at.size(); i > static_cast<size_t>(first.back()) && i + 2 > at.size(); i--) {
      if (at[i - 1] == pixel) {
        weight[i - 1] += share;
        return;
      }
    }
    at.push_back(pixel);
    weight.push_back(share);
  }
  void end_bin(T samples) {
    first.push_back(static_cast<int64_t>(at.size()));
    count.push_back(samples);
  }
  void end() {
    low = at.empty() ? 0 : *std::min_element(at.begin(), at.end());
    high = at.empty() ? 0 : *std::max_element(at.begin(), at.end()) + 1;
  }
};

struct How {
  double scale;
  int64_t height;
  int64_t width;
  int64_t sampling_ratio;
  bool aligned;
  std::string_view mode;
  bool has_channels_per_bin() const { return mode != "align"; }
};

// Samples between the pixels, each shared by its two neighbours.
template <class T>
void add_sampled_bins(Axis<T>& axis, T start, T end, int64_t bins, int64_t size, const How& how) {
  T length = end - start;
  if (!how.has_channels_per_bin() && !how.aligned) {
    length = length > T(1) ? length : T(1);
  }
  const T bin = length / static_cast<T>(bins);
  const T wanted = how.sampling_ratio > 0 ? static_cast<T>(how.sampling_ratio) : std::ceil(bin);
  const bool finite = std::isfinite(start) && std::isfinite(bin) && wanted < T(1 << 30);
  const int64_t samples = finite && wanted > T(0) ? static_cast<int64_t>(wanted) : 0;
  for (int64_t b = 0; b < bins; b++) {
    const T corner = start + static_cast<T>(b) * bin;
    // Only samples near the image are looked at, however many a bin has.
    const double step = samples > 0 ? static_cast<double>(bin) / static_cast<double>(samples) : 0;
    double from = 0;
    double to = static_cast<double>(samples);
    if (step > 0) {
      from = std::clamp((-2 - static_cast<double>(corner)) / step - 2, 0.0, to);
      to = std::clamp((static_cast<double>(size) + 1 - static_cast<double>(corner)) / step + 2,
                      from, to);
    }
    for (auto i = static_cast<int64_t>(from); i < static_cast<int64_t>(to); i++) {
      T at = corner + (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(samples);
      if (!(at >= T(-1) && at <= static_cast<T>(size)) || size == 0) {
        continue;
      }
      at = at > T(0) ? at : T(0);
      const int64_t low = std::min(static_cast<int64_t>(at), size - 1);
      const T share = low < size - 1 ? at - static_cast<T>(low) : T(0);
      axis.add(low, T(1) - share);
      if (share > T(0)) {
        axis.add(low + 1, share);
      }
    }
    axis.end_bin(static_cast<T>(samples));
  }
}

struct Pixels {
  int64_t begin;
  int64_t end;
};
// Whole pixels of bin b of a box that begins at `start`, cut off at `most`.
template <class T>
Pixels pixels_of(int64_t b, T start, T bin, int64_t most) {
  const T begin = std::floor(static_cast<T>(b) * bin) + start;
  const T end = std::ceil(static_cast<T>(b + 1) * bin) + start;
  const T limit = static_cast<T>(most);
  // A comparison with NaN is false: such a bin is empty.
  return {begin > T(0) ? static_cast<int64_t>(std::min(begin, limit)) : 0,
          end > T(0) ? static_cast<int64_t>(std::min(end, limit)) : 0};
}
template <class T>
T bin_of(T start, T end, T least, int64_t bins) {
  const T length = end - start + (T(1) - least);
  return (length > T(1) ? length : T(1)) / static_cast<T>(bins);
}

template <class T>
void add_pooled_bins(Axis<T>& axis, T start, T end, int64_t bins, int64_t size) {
  const T first = std::round(start);
  const T bin = bin_of(first, std::round(end), T(1), bins);
  for (int64_t b = 0; b < bins; b++) {
    const Pixels p = pixels_of(b, first, bin, std::max<int64_t>(size - 1, 0));
    for (int64_t i = p.begin; i < p.end; i++) {
      axis.add(i, T(1));
    }
    axis.end_bin(static_cast<T>(std::max<int64_t>(p.end - p.begin, 0)));
  }
}

template <class T, class S>
T side(const S* box, int k, const How& how) {
  const T shift = how.mode == "ps_align" || (how.mode == "align" && how.aligned) ? T(0.5) : T(0);
  return static_cast<T>(box[k]) * static_cast<T>(how.scale) - shift;
}

template <class T, class S>
void find_axes(Axis<T>& rows, Axis<T>& columns, const S* box, int64_t height, int64_t width,
               const How& how) {
  rows.clear();
  columns.clear();
  const T left = side<T>(box, 1, how);
  const T top = side<T>(box, 2, how);
  const T right = side<T>(box, 3, how);
  const T bottom = side<T>(box, 4, how);
  if (how.mode == "ps_pool") {
    add_pooled_bins(rows, top, bottom, how.height, height);
    add_pooled_bins(columns, left, right, how.width, width);
  } else {
    add_sampled_bins(rows, top, bottom, how.height, height, how);
    add_sampled_bins(columns, left, right, how.width, width, how);
  }
  rows.end();
  columns.end();
}

// How many samples each bin has; without any, the mean is 0.
template <class T>
void find_divisors(std::vector<T>& divisors, const Axis<T>& rows, const Axis<T>& columns) {
  divisors.clear();
  for (const T high : rows.count) {
    for (const T wide : columns.count) {
      divisors.push_back(high * wide > T(0) ? high * wide : T(1));
    }
  }
}

// The images that boxes name.
template <class S>
std::vector<int64_t> images_of(const S* rois, int64_t count, int64_t images) {
  std::vector<int64_t> found(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; k++) {
    const double image = static_cast<double>(static_cast<compute_t<S>>(rois[k * 5]));
    if (!(image > -1 && image < static_cast<double>(images))) {
      raise_error("rois: a box names an image that is not in the batch");
    }
    found[static_cast<size_t>(k)] = static_cast<int64_t>(image);
  }
  return found;
}

// Whether rows are added up from the first to the last column before any column is weighted: not
// where columns lie far apart.
template <class T>
bool dense(const Axis<T>& columns) {
  return columns.high - columns.low <= 16 * static_cast<int64_t>(columns.at.size());
}

// Calls f(pixel, weight) for what bin b reads.
template <class T, class F>
inline __attribute__((always_inline)) void for_pixels(const Axis<T>& axis, int64_t b, const F& f) {
  const int64_t* at = axis.at.data();
  const T* weight = axis.weight.data();
  for (int64_t i = axis.first[static_cast<size_t>(b)]; i < axis.first[static_cast<size_t>(b) + 1];
       i++) {
    f(at[i], weight[i]);
  }
}

// One plane's bins of a box, row of bins by row of bins: pixels are added up along columns, then
// weighted by column. Where bins are few against the columns that they read, every column is
// weighted for every bin, most by zero: the sums have the same order and bits, but for what is not
// finite, which only the bins that read it may see.
template <class T>
class Lines {
 public:
  explicit Lines(int64_t width) : line_(round_up_to_vector(width)) {}

  // Called once a box.
  void set(const Axis<T>& rows, const Axis<T>& columns, const std::vector<T>& divisors) {
    rows_ = &rows;
    columns_ = &columns;
    divisors_ = divisors.data();
    length_ = columns.high - columns.low;
    const auto bins = static_cast<int64_t>(columns.count.size());
    stride_ = round_up_to_vector(bins);
    every_ = length_ * stride_ <= 16 * static_cast<int64_t>(columns.at.size());
    if (every_) {
      weights_.assign(static_cast<size_t>(length_ * stride_), T(0));
      for (int64_t w = 0; w < bins; w++) {
        for_pixels(columns, w, [&](int64_t x, T weight) {
          weights_[static_cast<size_t>((x - columns.low) * stride_ + w)] += weight;
        });
      }
    }
  }

  template <class S>
  void average(S* to, const S* plane, int64_t width) {
    const auto high = static_cast<int64_t>(rows_->count.size());
    const auto wide = static_cast<int64_t>(columns_->count.size());
    const T* const line = line_.data();
    for (int64_t h = 0; h < high; h++) {
      const bool finite = add_up(plane + columns_->low, width, h);
      const T* divisors = divisors_ + h * wide;
      S* const row = to + h * wide;
      if (!every_ || !finite) {
        for (int64_t w = 0; w < wide; w++) {
          T sum = 0;
          for_pixels(*columns_, w,
                     [&](int64_t x, T weight) { sum += weight * line[x - columns_->low]; });
          row[w] = S(sum / divisors[w]);
        }
        continue;
      }
      for_vectors<T>(wide, [&](int64_t w, int64_t n) {
        typename V::V sum = V::zero();
        const T* weights = weights_.data() + w;
        for (int64_t x = 0; x < length_; x++) {
          sum = V::add(sum, V::mul(V::load(weights + x * stride_), V::set1(line[x])));
        }
        T sums[V::width];
        V::store(sums, sum);
        for (int64_t i = 0; i < n; i++) {
          row[w + i] = S(sums[i] / divisors[w + i]);
        }
      });
    }
  }

 private:
  using V = Simd<T>;
  static int64_t round_up_to_vector(int64_t n) { return (n + V::width - 1) / V::width * V::width; }

  // The sums of the columns over the rows of bin h; whether all are finite.
  template <class S>
  bool add_up(const S* from, int64_t width, int64_t h) {
    typename V::V zeros = V::zero();  // not finite times zero is not zero
    T* const line = line_.data();
    for_vectors<T>(length_, [&](int64_t x, int64_t n) {
      typename V::V sum = V::zero();
      for_pixels(*rows_, h, [&](int64_t y, T weight) {
        sum = V::add(sum, V::mul(V::set1(weight), load_some(from + y * width + x, n)));
      });
      V::store(line + x, sum);
      zeros = V::add(zeros, V::mul(sum, V::zero()));
    });
    return !V::any(V::unordered(zeros, zeros));
  }

  const Axis<T>* rows_ = nullptr;
  const Axis<T>* columns_ = nullptr;
  const T* divisors_ = nullptr;
  int64_t length_ = 0;
  int64_t stride_ = 0;
  bool every_ = false;
  std::vector<T> weights_;  // of each column for each bin
  Scratch<T> line_;
};

template <class S>
void average(const Tensor& out, const Tensor& input, const Tensor& rois, const How& how) {
  using T = compute_t<S>;
  const int64_t channels = out.size(1);
  const int64_t height = input.size(2);
  const int64_t width = input.size(3);
  const int64_t bins = how.height * how.width;
  // Channels of a task: all of them where there are boxes for every thread.
  const int64_t some = rois.size(0) >= 64 ? std::max<int64_t>(channels, 1) : 32;
  const int64_t tasks = (channels + some - 1) / some;
  const S* const boxes = rois.data<S>();
  const std::vector<int64_t> image = images_of(boxes, rois.size(0), input.size(0));
  parallel_for(0, rois.size(0) * tasks, 1, [&](int64_t begin, int64_t end) {
    Axis<T> rows;
    Axis<T> columns;
    std::vector<T> divisors;
    Lines<T> lines(width);
    for (int64_t task = begin; task < end; task++) {
      const int64_t k = task / tasks;
      find_axes(rows, columns, boxes + k * 5, height, width, how);
      find_divisors(divisors, rows, columns);
      const bool by_lines = !how.has_channels_per_bin() && dense(columns);
      if (by_lines) {
        lines.set(rows, columns, divisors);
      }
      const S* const planes =
          input.data<S>() + image[static_cast<size_t>(k)] * input.size(1) * height * width;
      for (int64_t c = task % tasks * some; c < std::min(channels, task % tasks * some + some);
           c++) {
        S* const to = out.data<S>() + (k * channels + c) * bins;
        if (by_lines) {
          lines.average(to, planes + c * height * width, width);
          continue;
        }
        for (int64_t bin = 0; bin < bins; bin++) {
          const int64_t channel = how.has_channels_per_bin() ? c * bins + bin : c;
          T sum = 0;
          for_pixels(rows, bin / how.width, [&](int64_t y, T row_weight) {
            const S* from = planes + (channel * height + y) * width;
            T row = 0;
            for_pixels(columns, bin % how.width,
                       [&](int64_t x, T weight) { row += weight * static_cast<T>(from[x]); });
            sum += row_weight * row;
          });
          to[bin] = S(sum / divisors[static_cast<size_t>(bin)]);
        }
      }
    }
  });
}

// Sums of gradients for `planes` planes at a time, each of which one task owns; those of 16-bit
// floats are kept in floats. f(first plane, end, sums).
template <class S, class F>
void for_planes(const Tensor& out, int64_t in_group, const F& f) {
  using T = compute_t<S>;
  const int64_t area = out.size(2) * out.size(3);
  const int64_t channels = out.size(1);
  const int64_t groups = in_group > 0 ? (channels + in_group - 1) / in_group : 0;
  parallel_for(0, out.size(0) * groups, 1, [&](int64_t begin, int64_t end) {
    const Scratch<T> memory(std::is_same_v<S, T> ? 0 : in_group * area);
    for (int64_t task = begin; task < end; task++) {
      const int64_t image = task / groups;
      const int64_t first = task % groups * in_group;
      const int64_t last = std::min(channels, first + in_group);
      S* const to = out.data<S>() + (image * channels + first) * area;
      T* sums;
      if constexpr (std::is_same_v<S, T>) {
        sums = to;
      } else {
        sums = memory;
      }
      std::fill_n(sums, (last - first) * area, T(0));
      f(image, first, last, sums);
      if constexpr (!std::is_same_v<S, T>) {
        for (int64_t i = 0; i < (last - first) * area; i++) {
          to[i] = S(sums[i]);
        }
      }
    }
  });
}

template <class S>
void average_backward(const Tensor& out, const Tensor& grad, const Tensor& rois, const How& how) {
  using T = compute_t<S>;
  const int64_t channels = grad.size(1);
  const int64_t height = out.size(2);
  const int64_t width = out.size(3);
  const int64_t bins = how.height * how.width;
  const S* const boxes = rois.data<S>();
  const std::vector<int64_t> images = images_of(boxes, rois.size(0), out.size(0));
  for_planes<S>(out, 16, [&](int64_t image, int64_t first, int64_t last, T* sums) {
    Axis<T> rows;
    Axis<T> columns;
    std::vector<T> divisors;
    const Scratch<T> line(width);
    const bool own_channels = how.has_channels_per_bin();
    for (int64_t k = 0; k < rois.size(0); k++) {
      if (images[static_cast<size_t>(k)] != image) {
        continue;
      }
      find_axes(rows, columns, boxes + k * 5, height, width, how);
      find_divisors(divisors, rows, columns);
      for (int64_t plane = first; plane < last; plane++) {
        T* const to = sums + (plane - first) * height * width;
        const int64_t c = own_channels ? plane / bins : plane;
        const S* const from = grad.data<S>() + (k * channels + c) * bins;
        if (own_channels || !dense(columns)) {
          for (int64_t bin = 0; bin < bins; bin++) {
            if (own_channels && bin != plane % bins) {
              continue;
            }
            const int64_t h = bin / how.width;
            const int64_t w = bin % how.width;
            const T g = static_cast<T>(from[bin]) / divisors[static_cast<size_t>(bin)];
            for_pixels(rows, h, [&](int64_t y, T row_weight) {
              for_pixels(columns, w, [&](int64_t x, T weight) {
                to[y * width + x] += row_weight * weight * g;
              });
            });
          }
          continue;
        }
        const int64_t low = columns.low;
        const int64_t length = columns.high - low;
        for (int64_t h = 0; h < how.height; h++) {
          std::fill_n(line.data(), length, T(0));
          for (int64_t w = 0; w < how.width; w++) {
            const int64_t bin = h * how.width + w;
            const T g = static_cast<T>(from[bin]) / divisors[static_cast<size_t>(bin)];
            for_pixels(columns, w, [&](int64_t x, T weight) { line[x - low] += weight * g; });
          }
          for_pixels(rows, h, [&](int64_t y, T weight) {
            T* sum = to + y * width + low;
            const T* add = line;
#pragma GCC ivdep
            for (int64_t x = 0; x < length; x++) {
              sum[x] += weight * add[x];
            }
          });
        }
      }
    }
  });
}

template <class S>
void max_in_rois(const Tensor& values, const Tensor& indices, const Tensor& input,
                 const Tensor& rois, double scale) {
  using T = compute_t<S>;
  const int64_t channels = input.size(1);
  const int64_t height = input.size(2);
  const int64_t width = input.size(3);
  const int64_t bins_high = values.size(2);
  const int64_t bins_wide = values.size(3);
  const S* const boxes = rois.data<S>();
  const std::vector<int64_t> image = images_of(boxes, rois.size(0), input.size(0));
  parallel_for(0, rois.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      T sides[4];
      for (int i = 0; i < 4; i++) {
        sides[i] = std::round(static_cast<T>(boxes[k * 5 + 1 + i]) * static_cast<T>(scale));
      }
      const T bin_height = bin_of(sides[1], sides[3], T(0), bins_high);
      const T bin_width = bin_of(sides[0], sides[2], T(0), bins_wide);
      for (int64_t c = 0; c < channels; c++) {
        const S* const plane =
            input.data<S>() + (image[static_cast<size_t>(k)] * channels + c) * height * width;
        for (int64_t h = 0; h < bins_high; h++) {
          const Pixels rows = pixels_of(h, sides[1], bin_height, height);
          for (int64_t w = 0; w < bins_wide; w++) {
            const Pixels columns = pixels_of(w, sides[0], bin_width, width);
            int64_t at = -1;
            T best = 0;
            for (int64_t y = rows.begin; y < rows.end; y++) {
              for (int64_t x = columns.begin; x < columns.end; x++) {
                const T value = static_cast<T>(plane[y * width + x]);
                if (at < 0 || value > best || (value != value && best == best)) {
                  best = value;
                  at = y * width + x;
                }
              }
            }
            const int64_t to = ((k * channels + c) * bins_high + h) * bins_wide + w;
            values.data<S>()[to] = S(best);
            indices.data<int64_t>()[to] = at;
          }
        }
      }
    }
  });
}

}  // namespace

void _roi_average(const Tensor& out, const Tensor& input, const Tensor& rois, double scale,
                  int64_t height, int64_t width, int64_t sampling_ratio, bool aligned,
                  std::string_view mode) {
  visit_dtype<set_floating>("roi_align", input.dtype(), [&](auto tag) {
    average<typename decltype(tag)::type>(out, input, rois,
                                          {scale, height, width, sampling_ratio, aligned, mode});
  });
}

void _roi_average_backward(const Tensor& out, const Tensor& grad, const Tensor& rois, IntArrayRef,
                           double scale, int64_t height, int64_t width, int64_t sampling_ratio,
                           bool aligned, std::string_view mode) {
  visit_dtype<set_floating>("roi_align_backward", grad.dtype(), [&](auto tag) {
    average_backward<typename decltype(tag)::type>(
        out, grad, rois, {scale, height, width, sampling_ratio, aligned, mode});
  });
}

void _roi_max(const Tensor& values, const Tensor& indices, const Tensor& input, const Tensor& rois,
              double scale, int64_t, int64_t) {
  visit_dtype<set_floating>("roi_pool", input.dtype(), [&](auto tag) {
    max_in_rois<typename decltype(tag)::type>(values, indices, input, rois, scale);
  });
}

void _roi_max_backward(const Tensor& out, const Tensor& grad, const Tensor& rois,
                       const Tensor& indices, IntArrayRef) {
  const int64_t area = out.size(2) * out.size(3);
  const int64_t bins = grad.size(2) * grad.size(3);
  visit_dtype<set_floating>("roi_pool_backward", grad.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const std::vector<int64_t> images = images_of(rois.data<S>(), rois.size(0), out.size(0));
    for_planes<S>(out, 16, [&](int64_t image, int64_t first, int64_t last, T* sums) {
      for (int64_t k = 0; k < rois.size(0); k++) {
        if (images[static_cast<size_t>(k)] != image) {
          continue;
        }
        for (int64_t c = first; c < last; c++) {
          const int64_t from = (k * out.size(1) + c) * bins;
          for (int64_t i = from; i < from + bins; i++) {
            const int64_t at = indices.data<int64_t>()[i];
            if (at >= area) {
              raise_error("roi_pool backward: an index is outside of the image");
            }
            if (at >= 0) {
              sums[(c - first) * area + at] += static_cast<T>(grad.data<S>()[i]);
            }
          }
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
