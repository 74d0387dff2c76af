// The header of a safetensors file: which tensors there are, and where their bytes lie. It knows
// dtypes and shapes but no tensors, so that its fuzzer (tests/fuzz/safetensors.cpp) builds alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rushlight/dtype.h>
#include <rushlight/array_ref.h>

#include "serialize/file.h"

namespace rushlight::serialize {

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  ScalarType dtype = ScalarType::Undefined;
  DimVector shape;
  uint64_t begin = 0;  // bytes from the header's end on; end - begin is what dtype and shape need
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the file; they cover it without overlap
  Metadata metadata;
  uint64_t size = 0;  // bytes before the data, those of the length among them
};

constexpr uint64_t max_safetensors_header = 100'000'000;  // as the format's own library has it

// RuntimeError for a damaged file.
SafetensorsHeader read_safetensors_header(const Source& source);
// The format's name of a dtype, or null.
const char* safetensors_name(ScalarType dtype);

}  // namespace rushlight::serialize
