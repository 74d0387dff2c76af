// What only generated forward functions use: the tangents of an op's results, by its rule, from
// those of its arguments.
#pragma once

#include <rushlight/forward.h>
#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight::forward {

// Trying to differentiate what has no rule: NotImplementedError.
[[noreturn]] void refuse(const char* op);
[[noreturn]] void refuse(const char* op, const char* argument);
// An op without a derivative: refused where a result could have one.
void refuse_results(const char* op, const Tensor& result);
inline void refuse_results(const char* op, const std::vector<Tensor>& results) {
  for (const Tensor& t : results) {
    refuse_results(op, t);
  }
}
template <class... T>
void refuse_results(const char* op, const std::tuple<T...>& results) {
  std::apply([&](const T&... each) { (refuse_results(op, each), ...); }, results);
}
template <class T>
void refuse_results(const char*, const T&) {}

// One op on arguments with tangents: the latest of their levels is hidden while the pass lives.
class Pass {
 public:
  template <class... T>
  explicit Pass(const T&... arguments) : level_(latest(arguments...)), below_(level_) {}

  Tensor of(const Tensor& argument) const;
  std::vector<Tensor> of(TensorList arguments) const;
  // Of what is written in place: its values (`always` copied, where a formula is computed behind
  // the op), and its tangent. Both are copied where they may be kept for backward.
  Tensor values(const Tensor& self, bool always) const {
    return always || tls.grad_mode ? self.clone() : self;
  }
  Tensor before(const Tensor& self) const;

  // A kernel's new result gets memory of its own for its tangent, a view's is a view.
  void set_tangents(const Tensor& result, const Tensor& tangent) const {
    set_result_tangent(result, tangent, false);
  }
  void set_view_tangent(const Tensor& view, const Tensor& tangent) const {
    set_result_tangent(view, tangent, true);
  }
  void set_tangents(const std::vector<Tensor>& results, const std::vector<Tensor>& tangents) const;
  void set_view_tangent(const std::vector<Tensor>& views,
                        const std::vector<Tensor>& tangents) const;
  // After `self` was written in place.
  void write(const Tensor& self, const Tensor& tangent) const;

 private:
  template <class... T>
  static uint64_t latest(const T&... arguments) {
    uint64_t level = 0;
    ((level = std::max(level, level_of(arguments))), ...);
    return level;
  }
  void set_result_tangent(const Tensor& result, const Tensor& tangent, bool is_view) const;

  uint64_t level_;
  Below below_;
  mutable std::vector<Tensor> given_;
};

// ---- parts of rules ----

inline Tensor conjugate(const Tensor& t) { return t.is_complex() ? t.conj() : t; }
// A tangent in a gradient's place: as the result is, conjugated.
Tensor in_place_of_gradient(const Tensor& tangent, const Tensor& result);
inline void add(Tensor& total, const Tensor& part) {
  total = total.defined() ? total + part : part;
}
// The tangent of an argument, zeros where there is none.
inline Tensor or_zeros(const Tensor& tangent, const Tensor& argument) {
  return tangent.defined() || !argument.defined() ? tangent : zeros_like(argument);
}
std::vector<Tensor> or_zeros(const std::vector<Tensor>& tangents, TensorList arguments);
bool any_defined(const std::vector<Tensor>& tangents);
// Slopes of a reduction's result times a tangent, summed up as the reduction does.
Tensor reduce_tangent(const Tensor& slope, const Tensor& tangent, const Tensor& result,
                      OptionalIntArrayRef dim, bool keepdim);
inline Tensor reduce_tangent(const Tensor& slope, const Tensor& tangent, const Tensor& result,
                             std::optional<int64_t> dim, bool keepdim) {
  return dim.has_value()
             ? reduce_tangent(slope, tangent, result, OptionalIntArrayRef(DimVector{*dim}), keepdim)
             : reduce_tangent(slope, tangent, result, OptionalIntArrayRef(), keepdim);
}
// An argument in place: what it was, where it is the tensor that is written.
inline const Tensor& value_before_write(const Tensor& argument, const Tensor& self,
                                        const Tensor& before) {
  return argument.is_same(self) ? before : argument;
}
// The results of one op that are differentiable, as a list.
using Results = std::vector<Tensor>;
// An op on other arguments: its differentiable results.
struct Rerun {
  virtual ~Rerun() = default;
  virtual Results run(const std::vector<Tensor>& arguments) const = 0;
};
// The derivative of the gradient, which is linear in what is given to it, by that: for ops without
// a better rule.
Results derivative_of_backward(const std::vector<Tensor>& arguments,
                               const std::vector<Tensor>& tangents, const Rerun& op);
template <class F>
Results derivative_of_backward(const std::vector<Tensor>& arguments,
                               const std::vector<Tensor>& tangents, const F& f) {
  struct Call : Rerun {
    explicit Call(const F& function) : f(function) {}
    Results run(const std::vector<Tensor>& given) const override { return f(given); }
    const F& f;
  };
  return derivative_of_backward(arguments, tangents, static_cast<const Rerun&>(Call(f)));
}

}  // namespace rushlight::forward
