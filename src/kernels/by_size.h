// For kernels that move or order elements by their bits alone: one instantiation per size instead
// of one per dtype.
#pragma once

#include <rushlight/dtype.h>

namespace rushlight {

// Plain bytes of an element, by its size.
struct Bytes16 {
  uint64_t low;
  uint64_t high;
};

// Calls f(TypeTag<U>{}) with the type of plain bytes that has `size`.
template <class F>
constexpr void visit_size(int64_t size, const F& f) {
  switch (size) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    case 8:
      return f(TypeTag<uint64_t>{});
    default:
      return f(TypeTag<Bytes16>{});
  }
}

// The unsigned integer of a size.
template <int Size>
struct unsigned_of;
template <>
struct unsigned_of<1> {
  using type = uint8_t;
};
template <>
struct unsigned_of<2> {
  using type = uint16_t;
};
template <>
struct unsigned_of<4> {
  using type = uint32_t;
};
template <>
struct unsigned_of<8> {
  using type = uint64_t;
};

}  // namespace rushlight
