// What options of modules are made of: builders, sizes that expand, words.
#pragma once

#include <array>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <rushlight/tensor.h>

// An option: a setter that can be chained, getters, and the value (behind this: `= default;`).
#define TORCH_ARG(T, name)                  \
 public:                                    \
  auto name(T value) -> decltype(*this) {   \
    this->name##_ = std::move(value);       \
    return *this;                           \
  }                                         \
  const T& name() const { return name##_; } \
  T& name() { return name##_; }             \
                                            \
 private:                                   \
  T name##_

namespace rushlight {

// `D` numbers, of which one stands for all: kernel_size 3, or {3, 5}.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(const std::vector<T>& list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(ArrayRef<T> list) {
    RL_CHECK(list.size() == D, "Expected ", D, " values, but instead got ", list.size());
    for (size_t i = 0; i < D; i++) {
      values_[i] = list[i];
    }
  }
  ExpandingArray(T one) { values_.fill(one); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}
  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return {values_.data(), D}; }
  size_t size() const { return D; }

 private:
  std::array<T, D> values_;
};
// The same, where a number may be left open (nullopt).
template <size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
 public:
  using ExpandingArray<D, std::optional<T>>::ExpandingArray;
  ExpandingArrayWithOptionalElem(T one)
      : ExpandingArray<D, std::optional<T>>(std::optional<T>(one)) {}
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list)
      : ExpandingArray<D, std::optional<T>>(
            std::vector<std::optional<T>>(list.begin(), list.end())) {}
};
template <size_t D>
std::ostream& operator<<(std::ostream& out, const ExpandingArray<D>& list) {
  return out << str(ArrayRef<int64_t>(list));
}
template <size_t D>
std::ostream& operator<<(std::ostream& out, const ExpandingArrayWithOptionalElem<D>& list) {
  for (size_t i = 0; i < D; i++) {
    const std::optional<int64_t> n = (*list)[i];
    out << (i == 0 ? "[" : ", ") << (n ? std::to_string(*n) : std::string("None"));
  }
  return out << ']';
}

// Words that options take: torch::kMean is the word "mean".
namespace enumtype {
struct Word {
  const char* text;
};
}  // namespace enumtype
class Keyword {
 public:
  Keyword(enumtype::Word word) : text_(word.text) {}
  Keyword(const char* text) : text_(text) {}
  Keyword(std::string text) : text_(std::move(text)) {}
  operator std::string_view() const { return text_; }
  const std::string& text() const { return text_; }
  friend bool operator==(const Keyword& a, std::string_view b) { return a.text_ == b; }
  friend bool operator!=(const Keyword& a, std::string_view b) { return a.text_ != b; }
  friend bool operator==(const Keyword& a, enumtype::Word b) { return a.text_ == b.text; }
  friend std::ostream& operator<<(std::ostream& out, const Keyword& k) { return out << k.text_; }

 private:
  std::string text_;
};

#define RL_WORD(name, text) inline constexpr enumtype::Word name{text};
RL_WORD(kNone, "none")
RL_WORD(kMean, "mean")
RL_WORD(kSum, "sum")
RL_WORD(kMax, "max")
RL_WORD(kBatchMean, "batchmean")
RL_WORD(kLinear, "linear")
RL_WORD(kConv1D, "conv1d")
RL_WORD(kConv2D, "conv2d")
RL_WORD(kConv3D, "conv3d")
RL_WORD(kConvTranspose1D, "conv_transpose1d")
RL_WORD(kConvTranspose2D, "conv_transpose2d")
RL_WORD(kConvTranspose3D, "conv_transpose3d")
RL_WORD(kSigmoid, "sigmoid")
RL_WORD(kTanh, "tanh")
RL_WORD(kReLU, "relu")
RL_WORD(kGELU, "gelu")
RL_WORD(kSiLU, "silu")
RL_WORD(kMish, "mish")
RL_WORD(kLeakyReLU, "leaky_relu")
RL_WORD(kFanIn, "fan_in")
RL_WORD(kFanOut, "fan_out")
RL_WORD(kConstant, "constant")
RL_WORD(kReflect, "reflect")
RL_WORD(kReplicate, "replicate")
RL_WORD(kCircular, "circular")
RL_WORD(kZeros, "zeros")
RL_WORD(kBorder, "border")
RL_WORD(kReflection, "reflection")
RL_WORD(kNearest, "nearest")
RL_WORD(kNearestExact, "nearest-exact")
RL_WORD(kBilinear, "bilinear")
RL_WORD(kBicubic, "bicubic")
RL_WORD(kTrilinear, "trilinear")
RL_WORD(kArea, "area")
RL_WORD(kSame, "same")
RL_WORD(kValid, "valid")
#undef RL_WORD

// "none", "mean" and "sum" as the numbers that losses take; ValueError for other words.
RL_API int64_t reduction_of(std::string_view word);

}  // namespace rushlight
