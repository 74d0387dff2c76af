// Files of the GGUF format, as llama.cpp and its kin read them: metadata and tensors by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <rushlight/tensor.h>

namespace rushlight::gguf {

// A value of the metadata: arrays of strings are vectors, those of numbers tensors.
using Value =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<std::string>, Tensor>;
using Metadata = std::map<std::string, Value>;

// Numbers as they are, or rows of blocks (..., bytes) of uint8.
struct Stored {
  Tensor tensor;
  std::string format;  // of blocks: Q8_0, Q4_0, Q4_K or Q6_K
};

struct File {
  Metadata metadata;
  std::map<std::string, Stored> tensors;
};

// Maps a file: tensors are read when they are used. Nothing that the file says is trusted;
// RuntimeError where it is damaged, or has tensors of a type that is not known.
RL_API File load(const std::string& path);

}  // namespace rushlight::gguf
