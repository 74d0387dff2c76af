// The axes of a resampled image: which input elements make an output element, and with what
// weights. Built once for all instruction sets (resample.cpp), read by cpu/isa/image/resample.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <rushlight/array_ref.h>

namespace rushlight::cpu {

enum class Filter { Nearest, NearestExact, Linear, Cubic };
RL_API Filter filter_of(std::string_view mode);

struct How {
  Filter filter;
  bool align_corners;
  bool antialias;
};

// What output i of an axis is made of: at[t * outputs + i] and weight[...] for t < taps. Absent
// taps have weight 0 and the place `inputs`, one behind the end.
template <class T>
struct Axis {
  int64_t inputs = 1;
  int64_t outputs = 1;
  int64_t taps = 1;
  bool absent = false;
  std::vector<int32_t> at{0};
  std::vector<T> weight{T(1)};
  int32_t place(int64_t i, int64_t t) const { return at[t * outputs + i]; }
  T factor(int64_t i, int64_t t) const { return weight[t * outputs + i]; }
};

template <class T>
struct Axes {
  Axis<T> axis[3];  // depth, height, width
};

// Tables for images of one to three dimensions; a scale that is given replaces the ratio of sizes.
// `backward`: what each input contributed to. Of float and double.
template <class T>
RL_API Axes<T> axes_of(IntArrayRef in, IntArrayRef out, const How& how,
                       const std::optional<double> (&scales)[3], bool backward);
// The table of the adjoint: what each input contributed to.
template <class T>
RL_API Axis<T> transpose(const Axis<T>& from);

}  // namespace rushlight::cpu
