// The angles that positions turn heads by, and how those are scaled for longer texts; what it means
// stands in python/rushlight/language/positions.py.
#pragma once

#include <rushlight/gguf.h>

#include <string>

namespace rushlight::language {

struct Scaling {
  std::string kind = "none";
  double factor = 1;
  double original = 1;
  double attention = 1;
  double fast = 32;
  double slow = 1;
  double share = 1;

  static Scaling of(const gguf::Metadata& metadata, int64_t context);
  double size() const;                               // what cosines and sines are multiplied by
  Tensor angles(int64_t turned, double base) const;  // from a position to the next, of float64
};

}  // namespace rushlight::language
