// Tensors and arrays of files of the GGUF format.
#pragma once

#include <memory>

#include "core/op_support.h"
#include "serialize/gguf_header.h"

namespace rushlight::serialize {

class RL_API GgufReader {
 public:
  // `in_place`: tensors use the memory of a mapped source.
  GgufReader(std::shared_ptr<Source> source, bool in_place);

  const GgufHeader& header() const { return header_; }
  // The numbers of a tensor, or the bytes of its blocks.
  Tensor tensor(const GgufEntry& entry) const;
  // An array of numbers.
  Tensor array(const GgufValue& value) const;

 private:
  Tensor copied(uint64_t offset, ScalarType dtype, IntArrayRef shape, uint64_t bytes) const;

  std::shared_ptr<Source> source_;
  GgufHeader header_;
  Storage whole_;  // the file, where it is mapped
};

// The number whose bits a value has.
template <class T>
T gguf_bits_as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(value));  // the lower bytes come first
  return value;
}

}  // namespace rushlight::serialize
