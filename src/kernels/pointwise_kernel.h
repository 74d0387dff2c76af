// What the pointwise kernels of every device share beside the formulas: the type that a formula
// gives, parameters for attributes, and the formulas between which hand-written kernels choose
// (ops/pointwise.py marks these manual=("kernel",); each device has a file that looks at operands
// and chooses).
#pragma once

#include "core/iterator.h"

namespace rushlight {

// What a formula gives for operands of type T.
template <class T, Promote P>
struct result_of {
  using type = T;
};
template <class T>
struct result_of<T, Promote::Bool> {
  using type = bool;
};
template <class T>
struct result_of<T, Promote::Real> {
  using type = real_t<T>;
};

}  // namespace rushlight

// The attributes a0, a1 … of a kernel as parameters, and as the start of a list of pointers.
#define RL_SCALAR_PARAMS_0
#define RL_SCALAR_PARAMS_1 , const Scalar& a0
#define RL_SCALAR_PARAMS_2 RL_SCALAR_PARAMS_1, const Scalar& a1
#define RL_SCALAR_PARAMS_3 RL_SCALAR_PARAMS_2, const Scalar& a2
#define RL_SCALAR_PARAMS_4 RL_SCALAR_PARAMS_3, const Scalar& a3
#define RL_SCALAR_ARGS_0
#define RL_SCALAR_ARGS_1 &a0,
#define RL_SCALAR_ARGS_2 RL_SCALAR_ARGS_1 &a1,
#define RL_SCALAR_ARGS_3 RL_SCALAR_ARGS_2 &a2,
#define RL_SCALAR_ARGS_4 RL_SCALAR_ARGS_3 &a3,

// _(name, inputs, attributes, dtypes)
#define RL_FOR_EACH_CHOICE(_)                           \
  _(add, 2, 0, set_all)                                 \
  _(add_scaled, 2, 1, set_all)                          \
  _(sub, 2, 0, set_numbers)                             \
  _(sub_scaled, 2, 1, set_numbers)                      \
  _(rsub, 2, 0, set_numbers)                            \
  _(rsub_scaled, 2, 1, set_numbers)                     \
  _(neg, 1, 0, set_numbers)                             \
  _(addcmul, 3, 1, set_all)                             \
  _(addcmul_plain, 3, 0, set_all)                       \
  _(addcdiv, 3, 1, set_floating | set_complexes)        \
  _(addcdiv_plain, 3, 0, set_floating | set_complexes)  \
  _(lerp, 3, 0, set_floating | set_complexes)           \
  _(clamp, 3, 0, set_real)                              \
  _(div_trunc, 2, 0, set_real)                          \
  _(floor_divide, 2, 0, set_real)                       \
  _(remainder, 2, 0, set_real)                          \
  _(fmod, 2, 0, set_real)                               \
  _(pow, 2, 0, set_numbers)                             \
  _(square, 1, 0, set_numbers)                          \
  _(cube, 1, 0, set_numbers)                            \
  _(sqrt, 1, 0, set_floating)                           \
  _(rsqrt, 1, 0, set_floating)                          \
  _(reciprocal, 1, 0, set_floating | set_complexes)     \
  _(inverse_square, 1, 0, set_floating | set_complexes) \
  _(nextafter, 2, 0, set_floats)                        \
  _(next_half, 2, 0, set_Half)                          \
  _(next_bfloat16, 2, 0, set_BFloat16)                  \
  _(round, 1, 0, set_real)                              \
  _(round_decimals, 1, 1, set_floating)                 \
  _(round_tens, 1, 1, set_floating)                     \
  _(gelu_erf, 1, 0, set_floating)                       \
  _(gelu_tanh, 1, 0, set_floating)                      \
  _(gelu_erf_backward, 2, 0, set_floating)              \
  _(gelu_tanh_backward, 2, 0, set_floating)             \
  _(nan_to_num, 1, 3, set_floating)
