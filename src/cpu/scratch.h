// Uninitialised working memory for the duration of a scope: on the stack while small, else from the
// caching allocator.
#pragma once

#include "core/allocator.h"
#include "cpu/dims.h"

namespace rushlight::cpu {

class Bytes {
 public:
  RL_ALWAYS_INLINE explicit Bytes(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = bytes_ <= sizeof(inline_) ? inline_ : static_cast<char*>(allocate(bytes_));
  }
  RL_ALWAYS_INLINE ~Bytes() {
    if (data_ != inline_) {
      deallocate(data_, bytes_);
    }
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  RL_ALWAYS_INLINE char* data() const { return data_; }

 private:
  size_t bytes_;
  char* data_;
  alignas(64) char inline_[2048];
};

// Elements of plain data.
template <class T>
class Scratch {
 public:
  RL_ALWAYS_INLINE explicit Scratch(int64_t n) : bytes_(n * static_cast<int64_t>(sizeof(T))) {}
  RL_ALWAYS_INLINE T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  RL_ALWAYS_INLINE operator T*() const { return data(); }

 private:
  Bytes bytes_;
};

}  // namespace rushlight::cpu
