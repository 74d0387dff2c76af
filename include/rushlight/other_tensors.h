// Kinds of tensors that C++ has none of, by libtorch's names: with names of dimensions, quantised
// ones (those of Python are in torch.ao.quantization). What needs one raises.
#pragma once

#include <string>
#include <vector>

#include <rushlight/ops.h>

namespace rushlight {

class Symbol {
 public:
  static Symbol dimname(const std::string& name) { return Symbol(name); }
  static Symbol fromQualString(const std::string& name) { return Symbol(name); }
  // Without what stands before "::".
  RL_API std::string toUnqualString() const;
  const std::string& toQualString() const { return text_; }
  bool operator==(const Symbol& other) const { return text_ == other.text_; }
  bool operator!=(const Symbol& other) const { return !(*this == other); }

 private:
  explicit Symbol(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

class Dimname {
 public:
  static Dimname fromSymbol(const Symbol& name) { return Dimname(name); }
  static Dimname wildcard() { return Dimname(Symbol::dimname("*")); }
  const Symbol& symbol() const { return symbol_; }
  bool isWildcard() const { return symbol_.toUnqualString() == "*"; }
  bool operator==(const Dimname& other) const { return symbol_ == other.symbol_; }
  bool operator!=(const Dimname& other) const { return !(*this == other); }

 private:
  explicit Dimname(Symbol symbol) : symbol_(std::move(symbol)) {}
  Symbol symbol_;
};
using DimnameList = ArrayRef<Dimname>;

[[noreturn]] RL_API void refuse_names(const char* method);
// None takes names off, and there are none.
inline Tensor Tensor::rename(std::nullopt_t) const { return alias(*this); }
inline const Tensor& Tensor::rename_(std::nullopt_t) const { return *this; }
inline Tensor Tensor::rename(ArrayRef<Dimname>) const { refuse_names("rename"); }
inline const Tensor& Tensor::rename_(ArrayRef<Dimname>) const { refuse_names("rename_"); }
inline Tensor Tensor::refine_names(ArrayRef<Dimname>) const { refuse_names("refine_names"); }
inline Tensor Tensor::align_to(ArrayRef<Dimname>) const { refuse_names("align_to"); }
inline Tensor Tensor::align_to(ArrayRef<Dimname>, int64_t) const { refuse_names("align_to"); }
inline Tensor Tensor::align_as(const Tensor&) const { refuse_names("align_as"); }
inline Tensor Tensor::flatten(ArrayRef<Dimname>, const Dimname&) const { refuse_names("flatten"); }
inline Tensor Tensor::unflatten(const Dimname&, IntArrayRef, ArrayRef<Dimname>) const {
  refuse_names("unflatten");
}

// The numbers of dtypes that no tensor of C++ has, for programs that ask for them.
inline constexpr ScalarType kQInt8 = static_cast<ScalarType>(12);
inline constexpr ScalarType kQUInt8 = static_cast<ScalarType>(13);
inline constexpr ScalarType kQInt32 = static_cast<ScalarType>(14);
inline constexpr ScalarType kQUInt4x2 = static_cast<ScalarType>(16);
inline constexpr ScalarType kQUInt2x4 = static_cast<ScalarType>(17);
inline constexpr bool isQIntType(ScalarType t) {
  return t == kQInt8 || t == kQUInt8 || t == kQInt32 || t == kQUInt4x2 || t == kQUInt2x4;
}
inline constexpr ScalarType toUnderlying(ScalarType t) {
  return t == kQInt8 ? kChar : t == kQInt32 ? kInt : isQIntType(t) ? kByte : t;
}

enum class QScheme : uint8_t {
  PER_TENSOR_AFFINE,
  PER_CHANNEL_AFFINE,
  PER_TENSOR_SYMMETRIC,
  PER_CHANNEL_SYMMETRIC,
  PER_CHANNEL_AFFINE_FLOAT_QPARAMS,
  COMPILE_TIME_NUM_QSCHEMES,
};
inline constexpr QScheme kPerTensorAffine = QScheme::PER_TENSOR_AFFINE;
inline constexpr QScheme kPerChannelAffine = QScheme::PER_CHANNEL_AFFINE;
inline constexpr QScheme kPerTensorSymmetric = QScheme::PER_TENSOR_SYMMETRIC;
inline constexpr QScheme kPerChannelSymmetric = QScheme::PER_CHANNEL_SYMMETRIC;
inline constexpr QScheme kPerChannelAffineFloatQParams = QScheme::PER_CHANNEL_AFFINE_FLOAT_QPARAMS;

[[noreturn]] RL_API void refuse_quantized(const char* name);
inline Tensor quantize_per_tensor(const Tensor&, double, int64_t, ScalarType) {
  refuse_quantized("quantize_per_tensor");
}
inline Tensor quantize_per_channel(const Tensor&, const Tensor&, const Tensor&, int64_t,
                                   ScalarType) {
  refuse_quantized("quantize_per_channel");
}
// Of numbers that are not quantised: themselves, as float.
inline Tensor Tensor::dequantize() const { return to(kFloat); }
inline Tensor dequantize(const Tensor& self) { return self.dequantize(); }
RL_API std::vector<Tensor> dequantize(TensorList tensors);
RL_API Tensor& dequantize_out(const Tensor& out, const Tensor& self);
RL_API void dequantize_out(TensorList out, TensorList tensors);
inline Tensor quantize_per_tensor(const Tensor&, const Tensor&, const Tensor&, ScalarType) {
  refuse_quantized("quantize_per_tensor");
}
inline std::vector<Tensor> quantize_per_tensor(TensorList, const Tensor&, const Tensor&,
                                               ScalarType) {
  refuse_quantized("quantize_per_tensor");
}
#define RL_OF_QUANTIZED(type, name) \
  inline type Tensor::name() const { refuse_quantized(#name); }
RL_OF_QUANTIZED(double, q_scale)
RL_OF_QUANTIZED(int64_t, q_zero_point)
RL_OF_QUANTIZED(Tensor, int_repr)
RL_OF_QUANTIZED(Tensor, q_per_channel_scales)
RL_OF_QUANTIZED(Tensor, q_per_channel_zero_points)
RL_OF_QUANTIZED(int64_t, q_per_channel_axis)
#undef RL_OF_QUANTIZED

}  // namespace rushlight
