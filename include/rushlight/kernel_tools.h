// Small things that kernels of extensions are written with, by libtorch's names: loops that are
// unrolled, positions in arrays of several dimensions, bits, and the geometry of a tensor.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include <rushlight/libtorch.h>

namespace rushlight {

// f(std::integral_constant<int, 0>(), …) to n - 1.
template <int n>
struct ForcedUnroll {
  template <class F, class... A>
  void operator()(const F& f, A... arguments) const {
    call(f, std::make_integer_sequence<int, n>(), arguments...);
  }

 private:
  template <class F, int... i, class... A>
  static void call(const F& f, std::integer_sequence<int, i...>, A... arguments) {
    (f(std::integral_constant<int, i>(), arguments...), ...);
  }
};

template <class To, class From>
std::enable_if_t<sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                     std::is_trivially_copyable_v<From>,
                 To>
bit_cast(const From& from) {
  To out;
  std::memcpy(&out, &from, sizeof out);
  return out;
}

namespace llvm {
template <class T>
unsigned countLeadingZeros(T x) {
  constexpr int bits = 8 * sizeof(T);
  return x == 0 ? bits : static_cast<unsigned>(__builtin_clzll(x) - (64 - bits));
}
template <class T>
unsigned countTrailingZeros(T x) {
  return x == 0 ? 8 * sizeof(T) : static_cast<unsigned>(__builtin_ctzll(x));
}
inline unsigned countPopulation(uint64_t x) {
  return static_cast<unsigned>(__builtin_popcountll(x));
}
constexpr bool isPowerOf2_64(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }
constexpr bool isPowerOf2_32(uint32_t x) { return isPowerOf2_64(x); }
inline unsigned Log2_64(uint64_t x) { return 63 - countLeadingZeros(x); }
inline unsigned Log2_32(uint32_t x) { return 31 - countLeadingZeros(x); }
inline unsigned Log2_64_Ceil(uint64_t x) { return 64 - countLeadingZeros(x - 1); }
inline unsigned Log2_32_Ceil(uint32_t x) { return 32 - countLeadingZeros(x - 1); }
// The smallest one above x, and the smallest one that is no less.
inline uint64_t NextPowerOf2(uint64_t x) { return uint64_t{1} << Log2_64_Ceil(x + 1); }
inline uint64_t PowerOf2Ceil(uint64_t x) { return x == 0 ? 0 : uint64_t{1} << Log2_64_Ceil(x); }
}  // namespace llvm

namespace native {
// The position of the n-th element, as data_index_init(n, i, size_of_i, j, size_of_j, …) puts it
// into i, j, …; the rest of n behind all sizes.
template <class T>
T data_index_init(T n) {
  return n;
}
template <class T, class... A>
T data_index_init(T n, T& i, const T& size, A&&... others) {
  n = data_index_init(n, std::forward<A>(others)...);
  i = n % size;
  return n / size;
}
// The next position; true once it is the first again.
inline bool data_index_step() { return true; }
template <class T, class... A>
bool data_index_step(T& i, const T& size, A&&... others) {
  if (!data_index_step(std::forward<A>(others)...)) {
    return false;
  }
  i = i + 1 == size ? T(0) : i + 1;
  return i == 0;
}
}  // namespace native

// Sizes, strides and offset of a tensor, without its memory.
class TensorGeometry {
 public:
  TensorGeometry() = default;
  explicit TensorGeometry(IntArrayRef sizes)
      : sizes_(sizes), strides_(detail::contiguous_strides_of(sizes)) {}
  explicit TensorGeometry(const Tensor& t)
      : sizes_(t.sizes()), strides_(t.strides()), offset_(t.storage_offset()) {}
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  IntArrayRef sizes() const { return sizes_; }
  int64_t size(int64_t dim) const { return sizes()[index_of(dim)]; }
  IntArrayRef strides() const { return strides_; }
  int64_t stride(int64_t dim) const { return strides()[index_of(dim)]; }
  int64_t storage_offset() const { return offset_; }
  int64_t numel() const { return multiply_integers(sizes()); }
  bool is_contiguous() const {
    const DimVector wanted = detail::contiguous_strides_of(sizes());
    for (size_t d = 0; d < sizes_.size(); d++) {
      if (sizes()[d] != 1 && strides()[d] != wanted.data()[d] && numel() != 0) {
        return false;
      }
    }
    return true;
  }
  TensorGeometry transpose(int64_t a, int64_t b) const {
    TensorGeometry out = *this;
    std::swap(out.sizes_[index_of(a)], out.sizes_[index_of(b)]);
    std::swap(out.strides_[index_of(a)], out.strides_[index_of(b)]);
    return out;
  }

 private:
  size_t index_of(int64_t d) const {
    RL_CHECK_INDEX(d >= -dim() && d < dim(), "Dimension out of range (expected to be in range of [",
                   -dim(), ", ", dim() - 1, "], but got ", d, ")");
    return static_cast<size_t>(d < 0 ? d + dim() : d);
  }
  DimVector sizes_;
  DimVector strides_;
  int64_t offset_ = 0;
};

}  // namespace rushlight
