// Who gets a call of an op before it runs (rushlight/asks.h, src/core/intercept.cpp).
#pragma once

#include <rushlight/mode.h>

#include "core/op_support.h"

namespace rushlight {

// The interceptor that takes a call, or null: the asks of the call are `asked`, `tensors` those
// among its arguments, null where there is none.
RL_API Dispatch find_interceptor(const OpFunction& function, Asks asked,
                                 ArrayRef<const Tensor*> tensors);
// RuntimeError that names the first tensor that a call lacks, of those that it must have: a bit for
// each tensor and list of tensors among the arguments.
[[noreturn]] RL_API void refuse_undefined(const OpFunction& function, uint64_t undefined);

// The same as dispatch_lower for an out= form: what was written is counted.
RL_API std::vector<Value> dispatch_lower_out(const OpFunction& function,
                                             std::vector<Value> arguments);

// An argument that need not be there.
struct MaybeUndefined {
  const Tensor& tensor;
};
inline bool is_special(MaybeUndefined t) { return is_special(t.tensor); }

inline Asks asks_of(const Tensor& t) { return t.asks(); }
inline Asks asks_of(MaybeUndefined t) { return t.tensor.defined() ? t.tensor.asks() : 0; }
inline Asks asks_of(TensorList list) {
  Asks out = 0;
  for (const Tensor& t : list) {
    out |= t.asks();
  }
  return out;
}
inline Asks asks_of(const std::vector<std::optional<Tensor>>& list) {
  Asks out = 0;
  for (const std::optional<Tensor>& t : list) {
    out |= t.has_value() && t->defined() ? t->asks() : 0;
  }
  return out;
}
// All asks of a call.
template <class... T>
Asks asks_of_call(const T&... tensors) {
  return tls.asks() | process_asks.load(std::memory_order_relaxed) |
         (Asks{0} | ... | asks_of(tensors));
}

// Whether a gradient may be recorded: wrappers ask the tensors that it would be of then.
inline bool may_record_grad(Asks asked) { return (asked & ask::grad) != 0 && tls.grad_mode; }
// Whether a mode below autograd or a special tensor answers in the place of the kernel.
template <class... T>
bool asks_handler_below(Asks asked, const T&... tensors) {
  return RL_UNLIKELY((asked & ask::below) != 0) && has_handler_below(tensors...);
}

inline void add_tensors(std::vector<const Tensor*>& to, const Tensor& t) { to.push_back(&t); }
inline void add_tensors(std::vector<const Tensor*>& to, MaybeUndefined t) {
  to.push_back(&t.tensor);
}
inline void add_tensors(std::vector<const Tensor*>& to, TensorList list) {
  for (const Tensor& t : list) {
    to.push_back(&t);
  }
}
inline void add_tensors(std::vector<const Tensor*>& to,
                        const std::vector<std::optional<Tensor>>& list) {
  for (const std::optional<Tensor>& t : list) {
    to.push_back(t.has_value() ? &*t : nullptr);
  }
}
// The interceptor of a call with these tensors, in the order of the function's arguments.
template <class... T>
[[gnu::noinline]] Dispatch interceptor(const OpFunction& function, Asks asked,
                                       const T&... tensors) {
  if ((asked & ask::undefined) != 0) {
    uint64_t undefined = 0;
    int i = 0;
    ((undefined |= uint64_t{(asks_of(tensors) & ask::undefined) != 0} << i++), ...);
    refuse_undefined(function, undefined);
  }
  std::vector<const Tensor*> found;
  (add_tensors(found, tensors), ...);
  return find_interceptor(function, asked, found);
}
// The same where anything but gradients may be asked for; else null.
template <class... T>
[[gnu::always_inline]] inline Dispatch interceptor_if_asked(const OpFunction& function, Asks asked,
                                                            const T&... tensors) {
  return RL_UNLIKELY(asked > ask::grad) ? interceptor(function, asked, tensors...) : nullptr;
}
template <class... T>
[[gnu::always_inline]] inline Dispatch interceptor_of_call(const OpFunction& function,
                                                           const T&... tensors) {
  return interceptor_if_asked(function, asks_of_call(tensors...), tensors...);
}

// The tensors that a form returns because it was given them: its first arguments.
template <class R>
struct Given {
  static constexpr size_t count = 0;
};
template <>
struct Given<Tensor&> {
  static constexpr size_t count = 1;
  template <class... A>
  static Tensor& first_of(const Tensor& t, const A&...) {
    return const_cast<Tensor&>(t);
  }
};
template <class... T>
struct Given<std::tuple<Tensor&, T...>> {
  static constexpr size_t count = sizeof...(T) + 1;
  template <class... A>
  static std::tuple<Tensor&, T...> first_of(const A&... arguments) {
    return [&]<size_t... I>(std::index_sequence<I...>) -> std::tuple<Tensor&, T...> {
      const auto all = std::tie(arguments...);
      return {const_cast<Tensor&>(std::get<I>(all))...};
    }(std::make_index_sequence<count>());
  }
};
// The call of a form in boxed form, handed to who takes it.
template <class R, class... A>
[[gnu::noinline]] R dispatch_boxed(Dispatch via, const OpFunction& function,
                                   const A&... arguments) {
  if constexpr (Given<R>::count != 0) {
    via(function, std::vector<Value>{Value(arguments)...});
    return Given<R>::first_of(arguments...);
  } else {
    return unbox_results<R>(via(function, std::vector<Value>{Value(arguments)...}));
  }
}

}  // namespace rushlight
