// What options of modules are made of: builders, sizes that expand, words.
#pragma once

#include <array>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <rushlight/nn/namespace.h>
#include <rushlight/tensor.h>

// An option: a setter that can be chained, getters, and the value (behind this: `= default;`).
#define TORCH_ARG(T, name)                   \
 public:                                     \
  auto name(T value) -> decltype(*this) {    \
    this->name##_ = static_cast<T&&>(value); \
    return *this;                            \
  }                                          \
  const T& name() const { return name##_; }  \
  T& name() { return name##_; }              \
                                             \
 private:                                    \
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
  ExpandingArrayWithOptionalElem(ArrayRef<T> list)
      : ExpandingArray<D, std::optional<T>>(
            std::vector<std::optional<T>>(list.begin(), list.end())) {}
  ExpandingArrayWithOptionalElem(const std::vector<T>& list)
      : ExpandingArray<D, std::optional<T>>(
            std::vector<std::optional<T>>(list.begin(), list.end())) {}
};
// One number is printed as such, several as a list.
RL_API std::ostream& print_sizes(std::ostream& out, ArrayRef<std::optional<int64_t>> sizes);
template <size_t D>
std::ostream& operator<<(std::ostream& out, const ExpandingArray<D>& list) {
  const std::vector<std::optional<int64_t>> sizes(list->begin(), list->end());
  return print_sizes(out, sizes);
}
template <size_t D>
std::ostream& operator<<(std::ostream& out, const ExpandingArrayWithOptionalElem<D>& list) {
  return print_sizes(out, list);
}

// Words that options take: torch::kMean is the word "mean".
namespace enumtype {
struct Word {
  const char* text;
};
}  // namespace enumtype
class Keyword {
 public:
  Keyword() = default;  // none yet, in a map of programs
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
// An option that is a word, and the name of its type: `mode_t` of `mode`.
#define RL_KEYWORD_ARG(name) \
 public:                     \
  using name##_t = Keyword;  \
  TORCH_ARG(Keyword, name)

#define RL_FOR_EACH_WORD(F)               \
  F(kNone, "none")                        \
  F(kMean, "mean")                        \
  F(kSum, "sum")                          \
  F(kMax, "max")                          \
  F(kBatchMean, "batchmean")              \
  F(kLinear, "linear")                    \
  F(kConv1D, "conv1d")                    \
  F(kConv2D, "conv2d")                    \
  F(kConv3D, "conv3d")                    \
  F(kConvTranspose1D, "conv_transpose1d") \
  F(kConvTranspose2D, "conv_transpose2d") \
  F(kConvTranspose3D, "conv_transpose3d") \
  F(kSigmoid, "sigmoid")                  \
  F(kTanh, "tanh")                        \
  F(kReLU, "relu")                        \
  F(kGELU, "gelu")                        \
  F(kSiLU, "silu")                        \
  F(kMish, "mish")                        \
  F(kLeakyReLU, "leaky_relu")             \
  F(kFanIn, "fan_in")                     \
  F(kFanOut, "fan_out")                   \
  F(kConstant, "constant")                \
  F(kReflect, "reflect")                  \
  F(kReplicate, "replicate")              \
  F(kCircular, "circular")                \
  F(kZeros, "zeros")                      \
  F(kBorder, "border")                    \
  F(kReflection, "reflection")            \
  F(kNearest, "nearest")                  \
  F(kNearestExact, "nearest-exact")       \
  F(kBilinear, "bilinear")                \
  F(kBicubic, "bicubic")                  \
  F(kTrilinear, "trilinear")              \
  F(kArea, "area")                        \
  F(kSame, "same")                        \
  F(kValid, "valid")
#define RL_WORD(name, text) inline constexpr enumtype::Word name{text};
RL_FOR_EACH_WORD(RL_WORD)
#undef RL_WORD

// The constant's name of a word, "kMean" of "mean"; the word itself where it has none.
RL_API std::string constant_of(const Keyword& word);
// "none", "mean" and "sum" as the numbers that losses take; ValueError for other words.
RL_API int64_t reduction_of(std::string_view word);

}  // namespace rushlight
