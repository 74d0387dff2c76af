// ArrayRef: a borrowed run of elements, valid for the duration of a call. DimVector: a small owned
// list of sizes. Their elements are looked up without a test, but for builds that search for faults
// (RL_CHECK_BOUNDS: debug, guard, sanitizers), where one that is not there ends the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <rushlight/error.h>

#ifdef RL_CHECK_BOUNDS
#define RL_BOUND(index, size) ::rushlight::detail::check_bound(index, size)
#else
#define RL_BOUND(index, size) static_cast<void>(0)
#endif

namespace rushlight {

namespace detail {
[[noreturn]] RL_API void fail_bound(size_t index, size_t size);
[[gnu::always_inline]] constexpr void check_bound(size_t index, size_t size) {
  if (index >= size) {
    fail_bound(index, size);
  }
}
}  // namespace detail

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // lists live as long as the call
  constexpr ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop
  template <class A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& array) : data_(array.data()), size_(N) {}
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const {
    RL_BOUND(i, size_);
    return data_[i];
  }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size_ - 1]; }
  const T& at(size_t i) const {
    RL_CHECK_INDEX(i < size_, "ArrayRef: index ", i, " of ", size_, " elements");
    return data_[i];
  }
  ArrayRef slice(size_t begin, size_t n) const {
    RL_BOUND(begin, size_ + 1);
    RL_BOUND(n, size_ - begin + 1);
    return {data_ + begin, n};
  }
  ArrayRef slice(size_t begin) const { return slice(begin, size_ - begin); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) {
      return false;
    }
    for (size_t i = 0; i < a.size_; i++) {
      if (!(a.data_[i] == b.data_[i])) {
        return false;
      }
    }
    return true;
  }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !(a == b); }
  bool equals(ArrayRef other) const { return *this == other; }
  template <class A>
  operator std::vector<T, A>() const {
    return std::vector<T, A>(begin(), end());
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;

// As Python prints a list: [2, 3].
template <class T>
void append(std::string& out, ArrayRef<T> list) {
  out += '[';
  for (size_t i = 0; i < list.size(); i++) {
    if (i != 0) {
      out += ", ";
    }
    append(out, list[i]);
  }
  out += ']';
}

// Owned sizes, inline up to eight dimensions.
class DimVector {
 public:
  DimVector() {}  // NOLINT(modernize-use-equals-default): {} would fill it with zeros first
  explicit DimVector(size_t n, int64_t value = 0) { resize(n, value); }
  DimVector(IntArrayRef list) { assign(list); }
  DimVector(std::initializer_list<int64_t> list) { assign(IntArrayRef(list.begin(), list.size())); }
  DimVector(const DimVector& o) { assign(o); }
  DimVector(DimVector&& o) noexcept : size_(o.size_), capacity_(o.capacity_), heap_(o.heap_) {
    if (heap_ == nullptr) {
      copy(o.inline_, inline_, size_);
    }
    o.heap_ = nullptr;
    o.size_ = 0;
    o.capacity_ = inline_capacity;
  }
  DimVector& operator=(const DimVector& o) {
    if (this != &o) {
      assign(o);
    }
    return *this;
  }
  DimVector& operator=(DimVector&& o) noexcept {
    std::swap(size_, o.size_);
    std::swap(capacity_, o.capacity_);
    std::swap(heap_, o.heap_);
    for (size_t i = 0; i < inline_capacity; i++) {
      std::swap(inline_[i], o.inline_[i]);
    }
    return *this;
  }
  ~DimVector() { delete[] heap_; }
  int64_t* data() { return heap_ != nullptr ? heap_ : inline_; }
  const int64_t* data() const { return heap_ != nullptr ? heap_ : inline_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t& operator[](size_t i) {
    RL_BOUND(i, size_);
    return data()[i];
  }
  const int64_t& operator[](size_t i) const {
    RL_BOUND(i, size_);
    return data()[i];
  }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& back() { return (*this)[size_ - 1]; }
  operator IntArrayRef() const { return {data(), size_}; }
  void assign(IntArrayRef list) {
    resize_uninitialized(list.size());
    copy(list.data(), data(), size_);
  }
  void resize(size_t n, int64_t value = 0) {
    const size_t old = size_;
    resize_uninitialized(n);
    for (size_t i = old; i < n; i++) {
      data()[i] = value;
    }
  }
  void push_back(int64_t value) {
    resize_uninitialized(size_ + 1);
    back() = value;
  }
  void insert(size_t at, int64_t value) {
    RL_BOUND(at, size_ + 1);
    resize_uninitialized(size_ + 1);
    for (size_t i = size_ - 1; i > at; i--) {
      data()[i] = data()[i - 1];
    }
    data()[at] = value;
  }
  void erase(size_t at) {
    RL_BOUND(at, size_);
    for (size_t i = at; i + 1 < size_; i++) {
      data()[i] = data()[i + 1];
    }
    size_--;
  }
  void clear() { size_ = 0; }

 private:
  static constexpr size_t inline_capacity = 8;
  static void copy(const int64_t* from, int64_t* to, size_t n) {
    for (size_t i = 0; i < n; i++) {
      to[i] = from[i];
    }
  }
  void resize_uninitialized(size_t n) {
    if (n > capacity_) {
      const size_t bigger = n > 2 * capacity_ ? n : 2 * capacity_;
      int64_t* fresh = new int64_t[bigger];
      copy(data(), fresh, size_);
      delete[] heap_;
      heap_ = fresh;
      capacity_ = bigger;
    }
    size_ = n;
  }
  size_t size_ = 0;
  size_t capacity_ = inline_capacity;
  int64_t* heap_ = nullptr;
  int64_t inline_[inline_capacity];
};
inline void append(std::string& out, const DimVector& list) { append(out, IntArrayRef(list)); }

}  // namespace rushlight
