// Ref<T>: an owning handle on an object that counts its own references (T::retain, T::release).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace rushlight {

template <class T>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p_ != nullptr) {
      p_->retain();
    }
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ != nullptr) {
      p_->release();
    }
  }
  // Takes over a reference that the caller owns.
  static Ref steal(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  // Gives the reference to the caller.
  T* leak() { return std::exchange(p_, nullptr); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  void reset() { *this = Ref(); }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend bool operator!=(const Ref& a, const Ref& b) { return a.p_ != b.p_; }

 private:
  T* p_ = nullptr;
};

// The count itself. Objects start with one reference, owned by their maker (Ref::steal).
class RefCounted {
 public:
  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // True when the caller held the last reference and must destroy the object.
  bool drop() const { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  int32_t use_count() const { return refs_.load(std::memory_order_acquire); }
  // Takes a reference only if somebody else still holds one (for weak pointers under a lock).
  bool try_retain() const {
    int32_t n = refs_.load(std::memory_order_relaxed);
    while (n != 0) {
      if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) {
        return true;
      }
    }
    return false;
  }

 private:
  mutable std::atomic<int32_t> refs_{1};
};

}  // namespace rushlight
