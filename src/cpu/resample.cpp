// Taps of resampled axes (resample.h). Weights and places are computed in the type of the image's
// arithmetic, so that they are the ones that PyTorch's formulas give.
#include "cpu/resample.h"

#include <algorithm>
#include <cmath>

namespace rushlight::cpu {

Filter filter_of(std::string_view mode) {
  if (mode == "nearest" || mode == "nearest-exact") {
    return mode == "nearest" ? Filter::Nearest : Filter::NearestExact;
  }
  return mode == "bicubic" ? Filter::Cubic : Filter::Linear;
}

namespace {

// Input positions per output position.
template <class T>
T scale_of(int64_t in, int64_t out, bool align_corners, std::optional<double> given) {
  if (align_corners) {
    return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  }
  return given.has_value() && *given > 0 ? static_cast<T>(1.0 / *given)
                                         : static_cast<T>(in) / static_cast<T>(out);
}

template <class T>
T cubic_near(T x, T a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class T>
T cubic_far(T x, T a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// The filter that an antialiased image is smoothed with.
template <class T>
T filter_value(Filter filter, T x) {
  x = std::abs(x);
  if (filter == Filter::Linear) {
    return x < T(1) ? T(1) - x : T(0);
  }
  constexpr T a = T(-0.5);
  return x < T(1) ? cubic_near(x, a) : x < T(2) ? cubic_far(x, a) : T(0);
}

template <class T>
void make_filter_taps(Axis<T>& axis, const How& how, T scale) {
  const T reach = how.filter == Filter::Linear ? T(1) : T(2);
  const T support = scale >= T(1) ? reach * scale : reach;
  const T inverse = scale >= T(1) ? T(1) / scale : T(1);
  // No output sees more inputs than there are, however far the filter reaches.
  const double most = std::min<double>(std::ceil(static_cast<double>(support)) * 2 + 1,
                                       static_cast<double>(axis.inputs));
  axis.taps = std::max<int64_t>(1, static_cast<int64_t>(most));
  axis.at.assign(axis.taps * axis.outputs, static_cast<int32_t>(axis.inputs));
  axis.weight.assign(axis.taps * axis.outputs, T(0));
  axis.absent = true;
  const auto clamp_index = [&](T x) {  // truncated, within the image whatever the scale
    const T most = static_cast<T>(axis.inputs);
    return x > T(0) ? static_cast<int64_t>(std::min(x, most)) : 0;  // 0 for NaN, too
  };
  for (int64_t i = 0; i < axis.outputs; i++) {
    const T centre = scale * (static_cast<T>(i) + T(0.5));
    const int64_t first = clamp_index(centre - support + T(0.5));
    const int64_t n =
        std::min(std::min(clamp_index(centre + support + T(0.5)), axis.inputs) - first, axis.taps);
    T total = 0;
    for (int64_t t = 0; t < n; t++) {
      const T w = filter_value(how.filter, (static_cast<T>(t + first) - centre + T(0.5)) * inverse);
      axis.at[t * axis.outputs + i] = static_cast<int32_t>(first + t);
      axis.weight[t * axis.outputs + i] = w;
      total += w;
    }
    for (int64_t t = 0; t < n && total != T(0); t++) {
      axis.weight[t * axis.outputs + i] /= total;
    }
  }
}

template <class T>
Axis<T> forward_taps(int64_t in, int64_t out, const How& how, std::optional<double> given) {
  Axis<T> axis;
  axis.inputs = in;
  axis.outputs = out;
  const int64_t last = in - 1;
  if (how.antialias) {
    make_filter_taps(axis, how, scale_of<T>(in, out, how.align_corners, given));
    return axis;
  }
  axis.taps = how.filter == Filter::Cubic ? 4 : how.filter == Filter::Linear ? 2 : 1;
  axis.at.resize(axis.taps * out);
  axis.weight.assign(axis.taps * out, T(1));
  // Places of the nearest element are found in single precision for every dtype.
  const bool nearest = axis.taps == 1;
  const float coarse = nearest ? scale_of<float>(in, out, false, given) : 0.0f;
  const T scale = nearest ? T(0) : scale_of<T>(in, out, how.align_corners, given);
  for (int64_t i = 0; i < out; i++) {
    if (nearest) {
      const float half = how.filter == Filter::NearestExact ? 0.5f : 0.0f;
      const float place = std::floor((static_cast<float>(i) + half) * coarse);
      axis.at[i] =
          static_cast<int32_t>(in == out                          ? i
                               : place < static_cast<float>(last) ? static_cast<int64_t>(place)
                                                                  : last);
      continue;
    }
    const bool cubic = how.filter == Filter::Cubic;
    T place = how.align_corners ? scale * static_cast<T>(i)
                                : scale * (static_cast<T>(i) + T(0.5)) - T(0.5);
    if (!cubic) {
      place = in == out ? static_cast<T>(i) : std::max(place, T(0));
    }
    place = std::clamp<T>(place, T(-2), static_cast<T>(in) + T(1));
    const int64_t low = static_cast<int64_t>(std::floor(place));
    if (!cubic) {
      const int64_t first = std::min(low, last);
      const T part = std::clamp<T>(place - static_cast<T>(first), T(0), T(1));
      axis.at[i] = static_cast<int32_t>(first);
      axis.at[out + i] = static_cast<int32_t>(std::min(first + 1, last));
      axis.weight[i] = T(1) - part;
      axis.weight[out + i] = part;
      continue;
    }
    const T part = place - static_cast<T>(low);
    constexpr T a = T(-0.75);
    const T weights[4] = {cubic_far(part + 1, a), cubic_near(part, a), cubic_near(1 - part, a),
                          cubic_far(2 - part, a)};
    for (int64_t t = 0; t < 4; t++) {
      axis.at[t * out + i] = static_cast<int32_t>(std::clamp<int64_t>(low - 1 + t, 0, last));
      axis.weight[t * out + i] = weights[t];
    }
  }
  return axis;
}

}  // namespace

template <class T>
Axis<T> transpose(const Axis<T>& from) {
  Axis<T> axis;
  axis.inputs = from.outputs;
  axis.outputs = from.inputs;
  std::vector<int64_t> uses(axis.outputs, 0);
  const auto each = [&](const auto& f) {
    for (int64_t i = 0; i < from.outputs; i++) {
      for (int64_t t = 0; t < from.taps; t++) {
        if (from.place(i, t) < from.inputs) {
          f(i, from.place(i, t), from.factor(i, t));
        }
      }
    }
  };
  each([&](int64_t, int64_t to, T) { uses[to]++; });
  axis.taps = std::max<int64_t>(1, *std::max_element(uses.begin(), uses.end()));
  axis.at.assign(axis.taps * axis.outputs, static_cast<int32_t>(axis.inputs));
  axis.weight.assign(axis.taps * axis.outputs, T(0));
  axis.absent = true;
  std::fill(uses.begin(), uses.end(), 0);
  each([&](int64_t i, int64_t to, T w) {
    const int64_t slot = uses[to]++ * axis.outputs + to;
    axis.at[slot] = static_cast<int32_t>(i);
    axis.weight[slot] = w;
  });
  return axis;
}

template <class T>
Axes<T> axes_of(IntArrayRef in, IntArrayRef out, const How& how,
                const std::optional<double> (&scales)[3], bool backward) {
  Axes<T> axes;
  for (size_t d = 0; d < in.size(); d++) {
    const size_t a = 3 - in.size() + d;
    axes.axis[a] = forward_taps<T>(in[d], out[d], how, scales[a]);
    if (backward) {
      axes.axis[a] = transpose(axes.axis[a]);
    }
  }
  return axes;
}

template RL_API Axis<float> transpose(const Axis<float>&);
template RL_API Axis<double> transpose(const Axis<double>&);
template RL_API Axes<float> axes_of(IntArrayRef, IntArrayRef, const How&,
                                    const std::optional<double> (&)[3], bool);
template RL_API Axes<double> axes_of(IntArrayRef, IntArrayRef, const How&,
                                     const std::optional<double> (&)[3], bool);

}  // namespace rushlight::cpu
