// The header of a GGUF file: its metadata, and which tensors there are and where their bytes lie.
// Nothing that a file says is believed before it is checked against the size of the file. No
// tensors are made here, so that the fuzzer (tests/fuzz/gguf.cpp) builds alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rushlight/array_ref.h>
#include <rushlight/dtype.h>

#include "kernels/gguf_blocks.h"
#include "serialize/file.h"

namespace rushlight::serialize {

// The types of values, by their numbers in files.
enum class GgufType : uint32_t {
  UInt8,
  Int8,
  UInt16,
  Int16,
  UInt32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  UInt64,
  Int64,
  Float64,
};

// The dtype of numbers and bools; Undefined for strings and arrays.
RL_API ScalarType gguf_dtype(GgufType type);

struct GgufValue {
  GgufType type = GgufType::Bool;  // of the value, or of the elements of an array
  bool is_array = false;
  uint64_t bits = 0;               // a number, in as many bytes as its type has
  std::vector<std::string> texts;  // a string alone, or those of an array
  uint64_t count = 0;              // numbers of an array: where they are in the file
  uint64_t offset = 0;
};

struct GgufEntry {
  std::string name;
  ScalarType dtype = ScalarType::Undefined;  // of plain numbers
  const GgufBlock* blocks = nullptr;         // or what numbers are packed in
  DimVector shape;                           // the last dimension lies side by side in memory
  uint64_t begin = 0;                        // in the file
  uint64_t bytes = 0;
};

struct GgufHeader {
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufEntry> entries;  // in the order of the file; no two overlap
};

// Limits of headers, far above what files have.
constexpr uint64_t max_gguf_header = 128U << 20U;
constexpr uint64_t max_gguf_values = 1U << 16U;
constexpr uint64_t max_gguf_tensors = 1U << 18U;
constexpr uint64_t max_gguf_name = 65535;

// RuntimeError for a damaged file, and for one with tensors of types that are not known here.
RL_API GgufHeader read_gguf_header(const Source& source);

}  // namespace rushlight::serialize
