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

// The methods of tensors that have a form for such sizes: of numbers, and with a list first.
#define RL_FOR_EACH_SYMINT_METHOD(F) \
  F(kthvalue)                        \
  F(multinomial)                     \
  F(narrow)                          \
  F(narrow_copy)                     \
  F(nonzero_static)                  \
  F(repeat_interleave)               \
  F(select)                          \
  F(select_scatter)                  \
  F(slice)                           \
  F(slice_scatter)                   \
  F(split)                           \
  F(topk)                            \
  F(tril)                            \
  F(triu)                            \
  F(unsafe_split)
#define RL_FOR_EACH_SYMINT_LIST_METHOD(F) \
  F(as_strided)                           \
  F(broadcast_to)                         \
  F(expand)                               \
  F(new_empty)                            \
  F(new_empty_strided)                    \
  F(new_full)                             \
  F(new_ones)                             \
  F(new_zeros)                            \
  F(repeat)                               \
  F(reshape)                              \
  F(split_with_sizes)                     \
  F(sum_to_size)                          \
  F(tile)                                 \
  F(unsafe_split_with_sizes)              \
  F(view)

#define C10_AS_INTARRAYREF_SLOW(list) static_cast<::rushlight::IntArrayRef>(list)
