// Uninitialised working memory for the duration of a scope, from the caching allocator.
#pragma once

#include "core/allocator.h"

namespace rushlight::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(T)), data_(static_cast<T*>(allocate(bytes_))) {}
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }
  operator T*() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace rushlight::cpu
