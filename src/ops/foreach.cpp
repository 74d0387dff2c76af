// Ops on every tensor of lists. Each place of the lists is one call of the op, whose derivative,
// checks and promotion are the op's own.
#include <rushlight/ops.h>

#include "core/op_support.h"
#include "generated/contracts.h"

namespace rushlight {

namespace {

template <class... Lists>
void check_lists(const char* op, TensorList self, const Lists&... others) {
  RL_CHECK(!self.empty(), op, ": the list must have at least one tensor");
  for (const size_t n : {self.size(), others.size()...}) {
    RL_CHECK(n == self.size(), op, ": all lists must have as many tensors, but have ", self.size(),
             " and ", n);
  }
}
void check_numbers(const char* op, TensorList self, size_t numbers) {
  RL_CHECK(numbers == self.size(), op, ": a list of ", self.size(),
           " tensors needs as many numbers, not ", numbers,
           ": the scalar list must have same number of elements");
}
void check_number(const char* op, const Tensor& number) {
  RL_CHECK(number.dim() == 0 && number.numel() == 1, op,
           ": a number is expected to be 0 dim, but the tensor has shape ", number.sizes());
}

// f(place) of every tensor.
template <class F>
std::vector<Tensor> each(TensorList self, const F& f) {
  std::vector<Tensor> results;
  results.reserve(self.size());
  for (size_t i = 0; i < self.size(); i++) {
    results.push_back(f(i));
  }
  return results;
}

// The numbers of a tensor, one for each tensor of the list.
std::vector<Scalar> numbers_of(const char* op, TensorList self, const Tensor& scalars) {
  RL_CHECK(scalars.dim() == 1, op,
           ": the numbers are a vector: Expected packed scalar Tensor to be of one dimension, not ",
           scalars.dim());
  check_numbers(op, self, static_cast<size_t>(scalars.size(0)));
  std::vector<Scalar> numbers;
  const Tensor here = scalars.to(kCPU);
  for (int64_t i = 0; i < here.size(0); i++) {
    numbers.push_back(here.select(0, i).item());
  }
  return numbers;
}

Tensor power_sum(const Tensor& t, const Scalar& ord, std::optional<ScalarType> dtype) {
  return t.abs().pow(ord).sum({}, false, dtype);
}

}  // namespace

namespace composite {

// ---- one list ----

#define RL_UNARY(name)                                                     \
  std::vector<Tensor> _foreach_##name(TensorList self) {                   \
    check_lists("_foreach_" #name, self);                                  \
    return each(self, [&](size_t i) { return rushlight::name(self[i]); }); \
  }                                                                        \
  void _foreach_##name##_(TensorList self) {                               \
    check_lists("_foreach_" #name "_", self);                              \
    for (const Tensor& t : self) {                                         \
      t.name##_();                                                         \
    }                                                                      \
  }
RL_UNARY(abs)
RL_UNARY(acos)
RL_UNARY(asin)
RL_UNARY(atan)
RL_UNARY(ceil)
RL_UNARY(cos)
RL_UNARY(cosh)
RL_UNARY(erf)
RL_UNARY(erfc)
RL_UNARY(exp)
RL_UNARY(expm1)
RL_UNARY(floor)
RL_UNARY(frac)
RL_UNARY(lgamma)
RL_UNARY(log)
RL_UNARY(log10)
RL_UNARY(log1p)
RL_UNARY(log2)
RL_UNARY(neg)
RL_UNARY(reciprocal)
RL_UNARY(round)
RL_UNARY(rsqrt)
RL_UNARY(sigmoid)
RL_UNARY(sign)
RL_UNARY(sin)
RL_UNARY(sinh)
RL_UNARY(sqrt)
RL_UNARY(tan)
RL_UNARY(tanh)
RL_UNARY(trunc)
#undef RL_UNARY

void _foreach_zero_(TensorList self) {
  check_lists("_foreach_zero_", self);
  for (const Tensor& t : self) {
    t.zero_();
  }
}
std::vector<Tensor> _foreach_clone(TensorList self, std::optional<MemoryFormat> format) {
  check_lists("_foreach_clone", self);
  return each(self, [&](size_t i) { return self[i].clone(format); });
}
std::vector<Tensor> _foreach_max(TensorList self) {
  check_lists("_foreach_max", self);
  return each(self, [&](size_t i) { return self[i].max(); });
}
std::vector<Tensor> _foreach_norm_Scalar(TensorList self, const Scalar& ord,
                                         std::optional<ScalarType> dtype) {
  check_lists("_foreach_norm", self);
  return each(self, [&](size_t i) { return linalg_vector_norm(self[i], ord, {}, false, dtype); });
}
std::vector<Tensor> _foreach_powsum_Scalar(TensorList self, const Scalar& ord,
                                           std::optional<ScalarType> dtype) {
  check_lists("_foreach_powsum", self);
  return each(self, [&](size_t i) { return power_sum(self[i], ord, dtype); });
}

// ---- a list, and a list or a number ----

void _foreach_copy_(TensorList self, TensorList src, bool non_blocking) {
  check_lists("_foreach_copy_", self, src);
  for (size_t i = 0; i < self.size(); i++) {
    self[i].copy_(src[i], non_blocking);
  }
}
std::vector<Tensor> _foreach_mm(TensorList self, TensorList mat2) {
  check_lists("_foreach_mm", self, mat2);
  return each(self, [&](size_t i) { return rushlight::mm(self[i], mat2[i]); });
}
std::vector<Tensor> _foreach_pow_ScalarAndTensor(const Scalar& self, TensorList exponent) {
  check_lists("_foreach_pow", exponent);
  return each(exponent, [&](size_t i) { return rushlight::pow(self, exponent[i]); });
}

// Both forms of an overload. `check` and `operand`, which may use i, are those of one call.
#define RL_EACH(name, overload, parameters, check, ...)                                   \
  std::vector<Tensor> _foreach_##name##_##overload(TensorList self, RL_LIST parameters) { \
    const char* const op = "_foreach_" #name;                                             \
    check_lists(op, self);                                                                \
    check;                                                                                \
    return each(self, [&](size_t i) { return rushlight::name(self[i], __VA_ARGS__); });   \
  }                                                                                       \
  void _foreach_##name##__##overload(TensorList self, RL_LIST parameters) {               \
    const char* const op = "_foreach_" #name "_";                                         \
    check_lists(op, self);                                                                \
    check;                                                                                \
    for (size_t i = 0; i < self.size(); i++) {                                            \
      self[i].name##_(__VA_ARGS__);                                                       \
    }                                                                                     \
  }
#define RL_LIST(...) __VA_ARGS__

#define RL_WITH_ALPHA(name)                                                                      \
  RL_EACH(name, List, (TensorList other, const Scalar& alpha), check_lists(op, self, other),     \
          other[i], alpha)                                                                       \
  RL_EACH(name, ScalarList, (ArrayRef<Scalar> scalars), check_numbers(op, self, scalars.size()), \
          scalars[i])                                                                            \
  RL_EACH(name, Scalar, (const Scalar& scalar), {}, scalar)
RL_WITH_ALPHA(add)
RL_WITH_ALPHA(sub)
RL_EACH(add, Tensor, (const Tensor& other, const Scalar& alpha), check_number(op, other), other,
        alpha)
#undef RL_WITH_ALPHA

#define RL_PLAIN(name)                                                                           \
  RL_EACH(name, List, (TensorList other), check_lists(op, self, other), other[i])                \
  RL_EACH(name, ScalarList, (ArrayRef<Scalar> scalars), check_numbers(op, self, scalars.size()), \
          scalars[i])                                                                            \
  RL_EACH(name, Scalar, (const Scalar& scalar), {}, scalar)
RL_PLAIN(mul)
RL_PLAIN(div)
RL_PLAIN(pow)
RL_PLAIN(clamp_max)
RL_PLAIN(clamp_min)
RL_EACH(mul, Tensor, (const Tensor& other), check_number(op, other), other)
RL_EACH(div, Tensor, (const Tensor& other), check_number(op, other), other)
#undef RL_PLAIN

// The larger or smaller one of each element and its partner. There is no maximum_.
#define RL_EXTREME(name, with)                                                                  \
  std::vector<Tensor> _foreach_##name##_List(TensorList self, TensorList other) {               \
    return _foreach_##with##_List(self, other);                                                 \
  }                                                                                             \
  std::vector<Tensor> _foreach_##name##_ScalarList(TensorList self, ArrayRef<Scalar> scalars) { \
    return _foreach_##with##_ScalarList(self, scalars);                                         \
  }                                                                                             \
  std::vector<Tensor> _foreach_##name##_Scalar(TensorList self, const Scalar& scalar) {         \
    return _foreach_##with##_Scalar(self, scalar);                                              \
  }                                                                                             \
  void _foreach_##name##__List(TensorList self, TensorList other) {                             \
    _foreach_##with##__List(self, other);                                                       \
  }                                                                                             \
  void _foreach_##name##__ScalarList(TensorList self, ArrayRef<Scalar> scalars) {               \
    _foreach_##with##__ScalarList(self, scalars);                                               \
  }                                                                                             \
  void _foreach_##name##__Scalar(TensorList self, const Scalar& scalar) {                       \
    _foreach_##with##__Scalar(self, scalar);                                                    \
  }
RL_EXTREME(maximum, clamp_min)
RL_EXTREME(minimum, clamp_max)
#undef RL_EXTREME

// ---- three lists ----

RL_EACH(lerp, List, (TensorList tensors1, TensorList weights),
        check_lists(op, self, tensors1, weights), tensors1[i], weights[i])
RL_EACH(lerp, ScalarList, (TensorList tensors1, ArrayRef<Scalar> weight),
        (check_lists(op, self, tensors1), check_numbers(op, self, weight.size())), tensors1[i],
        weight[i])
RL_EACH(lerp, Scalar, (TensorList tensors1, const Scalar& weight), check_lists(op, self, tensors1),
        tensors1[i], weight)

#define RL_FUSED(name)                                                                          \
  RL_EACH(name, Tensor, (TensorList tensor1, TensorList tensor2, const Tensor& scalars),        \
          check_lists(op, self, tensor1, tensor2);                                              \
          const std::vector<Scalar> numbers = numbers_of(op, self, scalars), tensor1[i],        \
          tensor2[i], numbers[i])                                                               \
  RL_EACH(name, ScalarList, (TensorList tensor1, TensorList tensor2, ArrayRef<Scalar> scalars), \
          (check_lists(op, self, tensor1, tensor2), check_numbers(op, self, scalars.size())),   \
          tensor1[i], tensor2[i], scalars[i])                                                   \
  RL_EACH(name, Scalar, (TensorList tensor1, TensorList tensor2, const Scalar& value),          \
          check_lists(op, self, tensor1, tensor2), tensor1[i], tensor2[i], value)
RL_FUSED(addcmul)
RL_FUSED(addcdiv)

}  // namespace composite
}  // namespace rushlight
