// Non-maximum suppression: a box that is kept is compared with all behind it, a vector at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// The sides and areas of boxes, each in a row of its own.
template <class T>
struct Sides {
  explicit Sides(int64_t n)
      : memory(5 * n), x1(memory), y1(x1 + n), x2(y1 + n), y2(x2 + n), area(y2 + n) {}
  const Scratch<T> memory;
  T* const x1;
  T* const y1;
  T* const x2;
  T* const y2;
  T* const area;
};

// The largest number of type T that is not above the threshold: a quotient exceeds both or neither.
template <class T>
T round_down(double threshold) {
  const T rounded = static_cast<T>(threshold);
  return static_cast<double>(rounded) > threshold
             ? std::nextafter(rounded, -std::numeric_limits<T>::infinity())
             : rounded;
}

// gone[j] |= box i overlaps box j by more than the threshold, for all j from begin on.
template <class T, class I>
void suppress(const Sides<T>& s, int64_t i, int64_t begin, int64_t end, T threshold, I* gone) {
  const T left = s.x1[i];
  const T top = s.y1[i];
  const T right = s.x2[i];
  const T bottom = s.y2[i];
  const T area = s.area[i];
  const T* const x1 = s.x1;
  const T* const y1 = s.y1;
  const T* const x2 = s.x2;
  const T* const y2 = s.y2;
  const T* const areas = s.area;
#pragma GCC ivdep
  for (int64_t j = begin; j < end; j++) {
    const T l = left > x1[j] ? left : x1[j];
    const T t = top > y1[j] ? top : y1[j];
    const T r = right < x2[j] ? right : x2[j];
    const T b = bottom < y2[j] ? bottom : y2[j];
    const T width = r - l > T(0) ? r - l : T(0);
    const T height = b - t > T(0) ? b - t : T(0);
    const T common = width * height;
    gone[j] |= common / (area + areas[j] - common) > threshold ? I(1) : I(0);
  }
}

// The boxes that remain, as places in `order`, by falling scores. What is gone is left out of the
// rows from time to time.
template <class S>
std::vector<int64_t> suppress_boxes(const S* boxes, std::vector<int64_t> order,
                                    double iou_threshold) {
  using T = compute_t<S>;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr int64_t between = 64;  // kept boxes between two clearances
  int64_t n = static_cast<int64_t>(order.size());
  const Sides<T> s(n);
  const Scratch<I> gone(n);
  std::fill_n(gone.data(), n, I(0));
  for (int64_t i = 0; i < n; i++) {
    const S* box = boxes + order[static_cast<size_t>(i)] * 4;
    s.x1[i] = static_cast<T>(box[0]);
    s.y1[i] = static_cast<T>(box[1]);
    s.x2[i] = static_cast<T>(box[2]);
    s.y2[i] = static_cast<T>(box[3]);
    s.area[i] = (s.x2[i] - s.x1[i]) * (s.y2[i] - s.y1[i]);
  }
  const T threshold = round_down<T>(iou_threshold);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < n; i++) {
    if (gone[i] != 0) {
      continue;
    }
    kept.push_back(order[static_cast<size_t>(i)]);
    suppress<T, I>(s, i, i + 1, n, threshold, gone);
    if (kept.size() % between != 0) {
      continue;
    }
    int64_t to = i + 1;
    for (int64_t j = i + 1; j < n; j++) {
      if (gone[j] == 0) {
        s.x1[to] = s.x1[j];
        s.y1[to] = s.y1[j];
        s.x2[to] = s.x2[j];
        s.y2[to] = s.y2[j];
        s.area[to] = s.area[j];
        order[static_cast<size_t>(to++)] = order[static_cast<size_t>(j)];
      }
    }
    std::fill(gone + i + 1, gone + to, I(0));
    n = to;
  }
  return kept;
}

}  // namespace

Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold) {
  RL_CHECK(dets.dim() == 2, "boxes should be a 2d tensor, got ", dets.dim(), "D");
  RL_CHECK(dets.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", dets.size(1));
  RL_CHECK(scores.dim() == 1, "scores should be a 1d tensor, got ", scores.dim(), "D");
  RL_CHECK(dets.size(0) == scores.size(0),
           "nms: scores should have same number of elements as there are boxes, ", dets.size(0),
           ", but got ", scores.size(0));
  const Tensor boxes = contiguous_raw(dets);
  const Tensor by_score = contiguous_raw(scores);
  std::vector<int64_t> kept;
  visit_dtype<set_floating>("nms", boxes.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    RL_CHECK(dets.dtype() == scores.dtype(), "dets should have the same type as scores");
    const S* score = by_score.data<S>();
    std::vector<int64_t> order(static_cast<size_t>(boxes.size(0)));
    std::iota(order.begin(), order.end(), 0);
    // NaN counts as the largest.
    std::stable_sort(order.begin(), order.end(), [score](int64_t a, int64_t b) {
      const T x = static_cast<T>(score[a]);
      const T y = static_cast<T>(score[b]);
      return x > y || (x != x && y == y);
    });
    kept = suppress_boxes(boxes.data<S>(), std::move(order), iou_threshold);
  });
  const Tensor out = make_empty({static_cast<int64_t>(kept.size())}, kInt64, boxes.device());
  std::copy(kept.begin(), kept.end(), out.data<int64_t>());
  return out;
}

}  // namespace rushlight::cpu::RL_ISA
