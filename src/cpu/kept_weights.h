// Weights that stay as they are, and the forms of them that convolutions made, kept for the next
// time: those of networks that are optimised for inference.
#pragma once

#include <array>
#include <list>
#include <mutex>

#include <rushlight/tensor.h>

#include "cpu/scratch.h"

namespace rushlight::cpu {

class KeptWeight {
 public:
  // Which part of the weight, in bytes, and what wants it in which layout.
  struct Key {
    int64_t offset;
    std::array<int64_t, 40> layout;
    bool operator==(const Key&) const = default;
  };

  explicit KeptWeight(int64_t bytes) : data_(bytes) {}
  char* data() const { return data_.data(); }
  // The form of this key, which `make(memory)` writes the first time; null where there are too
  // many.
  template <class Make>
  const char* form(const Key& key, int64_t bytes, const Make& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Form& form : forms_) {
      if (form.key == key) {
        return form.memory.data();
      }
    }
    if (forms_.size() == most_forms) {
      return nullptr;
    }
    forms_.emplace_back(key, bytes);
    make(forms_.back().memory.data());
    return forms_.back().memory.data();
  }

 private:
  static constexpr size_t most_forms = 16;

  struct Form {
    Form(const Key& of, int64_t bytes) : key(of), memory(bytes) {}
    Key key;
    Scratch<char> memory;
  };

  Scratch<char> data_;
  std::mutex mutex_;
  std::list<Form> forms_;
};

// A copy of a dense weight of which forms are kept as long as it lives.
Tensor keep_weight(const Tensor& weight);
// What is kept of such a copy; null for other tensors, and once it was written.
KeptWeight* find_kept_weight(const Tensor& weight);

}  // namespace rushlight::cpu
