// Where the elements of an image padded by its own elements come from: a table for each dimension.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include <rushlight/array_ref.h>

namespace rushlight::cpu {

// One dimension of n elements, padded.
struct Edges {
  int64_t n = 1;
  int64_t first = 0;  // of the part that is copied as it is
  int64_t count = 1;
  std::vector<int64_t> places = {0};  // where each element comes from

  Edges() = default;
  Edges(int64_t size, int64_t before, int64_t after, std::string_view mode)
      : n(size),
        first(std::max<int64_t>(before, 0)),
        count(size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0)),
        places(static_cast<size_t>(size + before + after)) {
    for (int64_t i = 0; i < total(); i++) {
      int64_t at = i - before;
      if (mode == "reflect") {
        at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
      } else if (mode == "replicate") {
        at = std::clamp<int64_t>(at, 0, n - 1);
      } else {  // what cropping leaves goes round
        const int64_t low = std::max<int64_t>(0, -before);
        const int64_t high = n - std::max<int64_t>(0, -after);
        at = at < low ? at + (high - low) : at >= high ? at - (high - low) : at;
      }
      places[static_cast<size_t>(i)] = at;
    }
    if (count <= 0) {  // all of it is edges
      first = 0;
      count = 0;
    }
  }
  int64_t total() const { return static_cast<int64_t>(places.size()); }
  int64_t operator[](int64_t i) const { return places[static_cast<size_t>(i)]; }
};

// Images of three dimensions, of which the first may be missing.
struct EdgesOfImage {
  Edges depth;
  Edges height;
  Edges width;
  int64_t images = 1;
  int64_t rows() const { return depth.total() * height.total(); }
  int64_t area() const { return depth.n * height.n * width.n; }
  // Of the input, for a row of an image's output.
  int64_t source(int64_t row) const {
    return (depth[row / height.total()] * height.n + height[row % height.total()]) * width.n;
  }

  EdgesOfImage(IntArrayRef size, IntArrayRef pad, std::string_view mode) {
    Edges* dims[] = {&width, &height, &depth};
    const size_t last = size.size() - 1;
    for (size_t i = 0; i < pad.size() / 2; i++) {
      *dims[i] = Edges(size[last - i], pad[2 * i], pad[2 * i + 1], mode);
    }
    for (size_t d = 0; d + pad.size() / 2 < size.size(); d++) {
      images *= size[d];
    }
  }
};

}  // namespace rushlight::cpu
