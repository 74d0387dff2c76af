// libFuzzer target of the safetensors reader: any bytes as a file. What the header says of tensors
// must be what making them relies on. It builds alone, with clang:
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
//   tests/fuzz/safetensors.cpp src/serialize/{file,json,safetensors_header}.cpp
//   src/core/{dtype,error}.cpp -o /tmp/fuzz-safetensors
//   mkdir -p /tmp/corpus && /tmp/fuzz-safetensors -max_len=1024 -max_total_time=300 /tmp/corpus
//
// A small file that `save_file` wrote is a good start.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "serialize/safetensors_header.h"

using namespace rushlight;
using namespace rushlight::serialize;

namespace {
void require(bool good) {
  if (!good) {
    std::abort();
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    SafetensorsHeader header = read_safetensors_header(*memory_source(data, size, nullptr));
    require(header.size <= size);
    uint64_t total = 0;
    for (const SafetensorsEntry& e : header.entries) {
      require(e.begin <= e.end && e.end <= size - header.size);
      require(safetensors_name(e.dtype) != nullptr);
      uint64_t bytes = static_cast<uint64_t>(itemsize(e.dtype));
      for (const int64_t n : e.shape) {
        require(n >= 0);
        bytes *= static_cast<uint64_t>(n);
      }
      require(bytes == e.end - e.begin);
      total += bytes;
    }
    require(total == size - header.size);
  } catch (const Error&) {}
  return 0;
}
