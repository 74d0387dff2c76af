// libFuzzer target of the GGUF reader: any bytes as a file. What the header says of values and
// tensors must be what making them relies on. It builds alone, with clang:
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
//   tests/fuzz/gguf.cpp src/serialize/{file,gguf_header}.cpp src/core/{dtype,error}.cpp
//   -o /tmp/fuzz-gguf
//   mkdir -p /tmp/corpus && /tmp/fuzz-gguf -max_len=1024 -max_total_time=300 /tmp/corpus
//
// A small file that `gguf.save` wrote is a good start.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "serialize/gguf_header.h"

using namespace rushlight;
using namespace rushlight::serialize;

namespace {

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

void check_value(const GgufValue& v, size_t size) {
  if (v.type == GgufType::String) {
    require(v.is_array ? v.texts.size() == v.count : v.texts.size() == 1);
  } else if (v.is_array) {
    const auto unit = static_cast<uint64_t>(itemsize(gguf_dtype(v.type)));
    require(v.count <= size / unit && v.offset <= size - v.count * unit);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const GgufHeader header = read_gguf_header(*memory_source(data, size, nullptr));
    for (const auto& [key, value] : header.metadata) {
      check_value(value, size);
    }
    for (const GgufEntry& e : header.entries) {
      require(e.bytes <= size && e.begin <= size - e.bytes);
      require((e.blocks == nullptr) == (e.dtype != ScalarType::Undefined));
      uint64_t numbers = 1;
      for (const int64_t n : e.shape) {
        require(n >= 0);
        numbers *= static_cast<uint64_t>(n);
      }
      require(e.blocks == nullptr ? e.bytes == numbers * static_cast<uint64_t>(itemsize(e.dtype))
                                  : e.bytes * static_cast<uint64_t>(e.blocks->numbers) ==
                                        numbers * static_cast<uint64_t>(e.blocks->bytes()));
    }
  } catch (const Error&) {}
  return 0;
}
