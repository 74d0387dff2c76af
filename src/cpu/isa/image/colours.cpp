// Colours of pictures of bytes, channels innermost, bit for bit as Pillow makes them: what it
// blends is float32, what it turns around the circle of hues partly float64. Loops are without
// branches, so that they become vector code.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/parallel.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

struct Colour {
  int32_t red;
  int32_t green;
  int32_t blue;
};

// What a pixel is in memory: red in the lowest byte; the highest is unused and stays as it is.
inline Colour colour_of(uint32_t pixel) {
  const auto byte = [pixel](int shift) { return static_cast<int32_t>(pixel >> shift & 255); };
  return {byte(0), byte(8), byte(16)};
}

inline uint32_t with_colour(uint32_t pixel, Colour c) {
  const auto at = [](int32_t byte, int shift) { return static_cast<uint32_t>(byte) << shift; };
  return (pixel & 0xff000000u) | at(c.red, 0) | at(c.green, 8) | at(c.blue, 16);
}

inline int32_t grey_of(Colour c) {
  return (c.red * 19595 + c.green * 38470 + c.blue * 7471 + (1 << 15)) >> 16;
}

// From one byte (factor 0) to another (factor 1), or beyond.
inline int32_t blend(int32_t from, int32_t to, float factor) {
  const float v = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<int32_t>(v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f);
}

inline Colour blend(int32_t from, Colour to, float factor) {
  return {blend(from, to.red, factor), blend(from, to.green, factor), blend(from, to.blue, factor)};
}

// One of two by a mask, which compilers leave without a branch.
inline int32_t select_if(bool which, int32_t yes, int32_t no) {
  return no ^ ((yes ^ no) & -static_cast<int32_t>(which));
}

// The hue moved by so many of the 256 steps of the circle; hue and saturation are bytes in between.
inline Colour rotate_hue(Colour c, int32_t steps) {
  const int32_t most = std::max(c.red, std::max(c.green, c.blue));
  const int32_t range = most - std::min(c.red, std::min(c.green, c.blue));
  // The hue is what the two other colours lack to the strongest, from the strongest one's place.
  const bool red = c.red == most;
  const bool green = c.green == most;
  const int32_t after = most - select_if(red, c.blue, select_if(green, c.red, c.green));
  const int32_t before = most - select_if(red, c.green, select_if(green, c.blue, c.red));
  const auto width = static_cast<float>(std::max(range, 1));
  const auto start = static_cast<double>(select_if(red, 0, select_if(green, 2, 4)));
  const auto hue = static_cast<float>(start + double(static_cast<float>(after) / width) -
                                      double(static_cast<float>(before) / width));
  const double share = double(hue) / 6.0 + 1.0;
  const auto circle = static_cast<float>(share >= 1.0 ? share - 1.0 : share);
  const int32_t place = (static_cast<int32_t>(double(circle) * 255.0) + steps) & 255;
  const float strength = static_cast<float>(range) / static_cast<float>(std::max(most, 1));
  const auto saturation = static_cast<int32_t>(double(strength) * 255.0);

  const int32_t turns = place * 6 / 255;
  const auto part = static_cast<float>(double(place) * 6.0 / 255.0 - double(turns));
  const int32_t sector = select_if(turns == 6, 0, turns);
  const float s = static_cast<float>(saturation) / 255.0f;
  const auto less = [most](double lost) {
    return static_cast<int32_t>(double(most) * (1.0 - lost) + 0.5);
  };
  const int32_t low = less(double(s));
  const int32_t falling = less(double(s * part));
  const int32_t rising = less(double(s) * (1.0 - double(part)));
  // A colour is strongest in two sectors, then falls, is low in two, and rises.
  const auto in = [=](int32_t sectors_later) {
    const int32_t at = sector + sectors_later;
    const int32_t of = select_if(at >= 6, at - 6, at);
    return select_if(of <= 1, most, select_if(of == 2, falling, select_if(of == 5, rising, low)));
  };
  return {in(1), in(5), in(3)};
}

constexpr int64_t grain = 16384;

template <class T, class Change>
void change_all(const T* from, T* to, int64_t n, Change change) {
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      to[i] = change(from[i]);
    }
  });
}

template <class T, class Grey>
int32_t mean_of(const T* from, int64_t n, Grey grey) {
  std::atomic<int64_t> sum = 0;
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    int32_t part = 0;
    for (int64_t i = begin; i < end; i++) {
      part += grey(from[i]);
    }
    sum += part;
  });
  return static_cast<int32_t>(static_cast<double>(sum) / static_cast<double>(n) + 0.5);
}

}  // namespace

void _adjust_pixels(const Tensor& out, const Tensor& self, std::string_view change, double factor) {
  const int64_t n = self.size(0) * self.size(1);
  const auto share = static_cast<float>(factor);
  if (n == 0) {
    return;
  }
  if (self.size(2) == 1) {
    const uint8_t* const from = self.data<uint8_t>();
    uint8_t* const to = out.data<uint8_t>();
    if (change == "saturation" || change == "hue") {
      std::copy_n(from, n, to);
      return;
    }
    const int32_t start =
        change == "brightness" ? 0 : mean_of(from, n, [](uint8_t v) { return int32_t{v}; });
    change_all(from, to, n,
               [=](uint8_t v) { return static_cast<uint8_t>(blend(start, v, share)); });
    return;
  }
  const auto* const from = reinterpret_cast<const uint32_t*>(self.data<uint8_t>());
  auto* const to = reinterpret_cast<uint32_t*>(out.data<uint8_t>());
  const auto change_colours = [&](auto changed) {
    change_all(from, to, n, [=](uint32_t p) { return with_colour(p, changed(colour_of(p))); });
  };
  if (change == "saturation") {
    change_colours([=](Colour c) { return blend(grey_of(c), c, share); });
  } else if (change == "hue") {
    const auto steps = static_cast<int32_t>(factor * 255);
    change_colours([=](Colour c) { return rotate_hue(c, steps); });
  } else {
    const int32_t start = change == "brightness"
                              ? 0
                              : mean_of(from, n, [](uint32_t p) { return grey_of(colour_of(p)); });
    change_colours([=](Colour c) { return blend(start, c, share); });
  }
}

}  // namespace rushlight::cpu::RL_ISA
