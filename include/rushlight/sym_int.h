// Sizes by libtorch's names for those that may be symbols: here they are numbers.
#pragma once

#include <optional>

#include <rushlight/array_ref.h>

namespace rushlight {

class SymInt {
 public:
  constexpr SymInt(int64_t value = 0) : value_(value) {}
  constexpr operator int64_t() const { return value_; }
  constexpr int64_t expect_int() const { return value_; }
  constexpr int64_t guard_int(const char* /*file*/, int64_t /*line*/) const { return value_; }
  constexpr int64_t as_int_unchecked() const { return value_; }
  std::optional<int64_t> maybe_as_int() const { return value_; }
  constexpr bool is_symbolic() const { return false; }

 private:
  int64_t value_;
};
static_assert(sizeof(SymInt) == sizeof(int64_t));

// A list of sizes, which is at the same time one of numbers.
class SymIntArrayRef : public ArrayRef<SymInt> {
 public:
  using ArrayRef<SymInt>::ArrayRef;
  SymIntArrayRef(ArrayRef<SymInt> list) : ArrayRef<SymInt>(list) {}
  SymIntArrayRef(IntArrayRef list)
      : ArrayRef<SymInt>(reinterpret_cast<const SymInt*>(list.data()), list.size()) {}
  operator IntArrayRef() const { return {reinterpret_cast<const int64_t*>(data()), size()}; }
};
inline SymIntArrayRef fromIntArrayRefSlow(IntArrayRef list) { return list; }
inline IntArrayRef asIntArrayRefUnchecked(SymIntArrayRef list) { return list; }

}  // namespace rushlight

#define C10_AS_INTARRAYREF_SLOW(list) static_cast<::rushlight::IntArrayRef>(list)
