// The scale and the zero point under which codes cover a range of numbers, as
// torch.ao.quantization chooses them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <rushlight/error.h>

namespace rushlight {

struct Qparams {
  double scale;
  int64_t zero_point;
};

struct QparamsChoice {
  int64_t first;              // the first code
  int64_t last;               // the last one
  bool symmetric = false;     // 0 gets the middle code if there are numbers on both sides of it
  bool reduce_range = false;  // one bit of the codes is left unused
  bool single = false;        // the scale is rounded to float before the zero point is chosen
};

inline constexpr double smallest_scale = 6.0999998822808266e-05;  // of float

// 0 is one of the numbers that codes stand for. RuntimeError where low > high or either is NaN.
inline Qparams choose_qparams(double low, double high, QparamsChoice choice) {
  RL_CHECK(low <= high,
           "In ChooseQuantizationParams, min should be less than or equal to max, not ", low,
           " and ", high);
  const int64_t divisor = choice.reduce_range ? 2 : 1;
  const auto first = static_cast<double>(choice.first / divisor);
  const auto last = static_cast<double>(choice.last / divisor);
  const double codes = last - first;
  const bool centred = choice.symmetric && low < 0 && 0 < high;
  if (centred) {
    const double above = std::floor(codes / 2);
    const double below = above + 1;
    const double widest = std::max(-low / below, high / above);
    low = -widest * below;
    high = widest * above;
  }
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  double scale = (high - low) / codes;
  const auto rounded = static_cast<float>(scale);
  if (rounded == 0 || 1 / rounded == std::numeric_limits<float>::infinity()) {
    scale = 0.1;
  } else if (choice.single) {
    scale = rounded;
  }
  if (scale < smallest_scale) {
    const double wider = smallest_scale / scale;
    if (low == 0 || high == 0) {
      low = low == 0 ? 0 : -smallest_scale * codes;
      high = high == 0 ? 0 : smallest_scale * codes;
    } else {
      low *= wider;
      high *= wider;
    }
    scale = smallest_scale;
  }
  if (centred) {
    return {scale, static_cast<int64_t>(std::nearbyint((first + last) / 2))};
  }
  // From the end whose code is the smaller number, where less is lost.
  const double to_low = low / scale;
  const double to_high = high / scale;
  const bool from_low = std::abs(first) - std::abs(to_low) < std::abs(last) - std::abs(to_high);
  const double zero = from_low ? first - to_low : last - to_high;
  // NaN, where numbers are infinite, becomes the last code.
  const double nearest = zero < last ? std::max(zero, first) : last;
  return {scale, static_cast<int64_t>(std::nearbyint(nearest))};
}

}  // namespace rushlight
