// A number, or a tensor that autograd records, by the operators and functions of formulas over
// elements: what is written for one element (kernels/optim.h, which comes behind this header) is
// then a program of ops.
#pragma once

#include <cmath>
#include <utility>

#include <rushlight/ops.h>

namespace rushlight {

class Recorded {
 public:
  Recorded() = default;
  explicit Recorded(double number) : number_(number) {}
  explicit Recorded(Tensor tensor) : tensor_(std::move(tensor)) {}

  const Tensor& tensor() const { return tensor_; }
  // Of a number, and of a comparison of numbers.
  explicit operator bool() const {
    RL_CHECK(!tensor_.defined(), "a tensor is no condition of a formula; choose by math::select");
    return number_ != 0;
  }

  // f of two numbers, or else of a tensor and a tensor or number.
  template <class F>
  static Recorded apply(const F& f, const Recorded& a, const Recorded& b) {
    if (a.tensor_.defined()) {
      return b.tensor_.defined() ? Recorded(f(a.tensor_, b.tensor_))
                                 : Recorded(f(a.tensor_, Scalar(b.number_)));
    }
    return b.tensor_.defined() ? Recorded(f(Scalar(a.number_), b.tensor_))
                               : Recorded(static_cast<double>(f(a.number_, b.number_)));
  }
  Recorded operator-() const {
    return tensor_.defined() ? Recorded(neg(tensor_)) : Recorded(-number_);
  }
  Recorded sqrt() const {
    return tensor_.defined() ? Recorded(tensor_.sqrt()) : Recorded(std::sqrt(number_));
  }
  static Recorded maximum(const Recorded& a, const Recorded& b) {
    if (!a.tensor_.defined() || !b.tensor_.defined()) {
      const Recorded& t = a.tensor_.defined() ? a : b;
      return Recorded(t.tensor_.clamp_min(Scalar((a.tensor_.defined() ? b : a).number_)));
    }
    return Recorded(rushlight::maximum(a.tensor_, b.tensor_));
  }
  static Recorded select(const Recorded& condition, const Recorded& a, const Recorded& b) {
    const Tensor& c = condition.tensor_;
    if (!c.defined()) {
      return condition ? a : b;
    }
    if (!a.tensor_.defined() && !b.tensor_.defined()) {
      return Recorded(where(c, Scalar(a.number_), Scalar(b.number_)));
    }
    const auto choose = [&](const auto& x, const auto& y) { return where(c, x, y); };
    return Recorded(!a.tensor_.defined()   ? choose(Scalar(a.number_), b.tensor_)
                    : !b.tensor_.defined() ? choose(a.tensor_, Scalar(b.number_))
                                           : choose(a.tensor_, b.tensor_));
  }

 private:
  double number_ = 0;
  Tensor tensor_;  // undefined: the number
};

#define RL_RECORDED(symbol)                                                 \
  inline Recorded operator symbol(const Recorded& a, const Recorded& b) {   \
    const auto f = [](const auto& x, const auto& y) { return x symbol y; }; \
    return Recorded::apply(f, a, b);                                        \
  }
RL_RECORDED(+)
RL_RECORDED(-)
RL_RECORDED(*)
RL_RECORDED(/)
RL_RECORDED(<)
RL_RECORDED(>)
RL_RECORDED(==)
RL_RECORDED(!=)
#undef RL_RECORDED

namespace math {
inline Recorded sqrt(const Recorded& x) { return x.sqrt(); }
inline Recorded maximum(const Recorded& x, const Recorded& y) { return Recorded::maximum(x, y); }
inline Recorded multiply_add(const Recorded& a, const Recorded& b, const Recorded& c) {
  return a * b + c;
}
inline Recorded select(const Recorded& condition, const Recorded& a, const Recorded& b) {
  return Recorded::select(condition, a, b);
}
}  // namespace math

}  // namespace rushlight
