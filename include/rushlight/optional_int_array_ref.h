// An optional list of ints that also takes one int: sum(x, 0), sum(x, {0, 1}). Holds the single int
// itself.
#pragma once

#include <optional>

#include <rushlight/array_ref.h>

namespace rushlight {

class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  OptionalIntArrayRef(T one) : kind_(Kind::One), one_(one) {}
  OptionalIntArrayRef(IntArrayRef list) : kind_(Kind::List), list_(list) {}
  OptionalIntArrayRef(std::initializer_list<int64_t> list)
      : OptionalIntArrayRef(IntArrayRef(list)) {}
  template <size_t n>
  OptionalIntArrayRef(const int64_t (&list)[n]) : OptionalIntArrayRef(IntArrayRef(list, n)) {}
  OptionalIntArrayRef(const DimVector& list) : OptionalIntArrayRef(IntArrayRef(list)) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : OptionalIntArrayRef(IntArrayRef(list)) {}
  // Of a list or of one int.
  template <class T>
  OptionalIntArrayRef(const std::optional<T>& list) {
    if (list.has_value()) {
      *this = OptionalIntArrayRef(*list);
    }
  }
  bool has_value() const { return kind_ != Kind::None; }
  explicit operator bool() const { return has_value(); }
  IntArrayRef value() const { return kind_ == Kind::One ? IntArrayRef(&one_, 1) : list_; }
  IntArrayRef operator*() const { return value(); }
  IntArrayRef value_or(IntArrayRef other) const { return has_value() ? value() : other; }
  std::optional<DimVector> vec() const {
    return has_value() ? std::optional(DimVector(value())) : std::nullopt;
  }

 private:
  enum class Kind : uint8_t { None, One, List } kind_ = Kind::None;
  int64_t one_ = 0;
  IntArrayRef list_;
};

}  // namespace rushlight
