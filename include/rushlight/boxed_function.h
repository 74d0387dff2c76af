// C++ functions as functions of a stack of values, with the types that they take and give: what ops
// (library.h) and bound classes (custom_class.h) are made of.
#pragma once

#include <rushlight/dispatch_key.h>
#include <rushlight/ivalue.h>

namespace rushlight {

template <>
struct TypeOf<OptionalIntArrayRef> : TypeOf<std::optional<DimVector>> {
  static IValue box(OptionalIntArrayRef v) { return Value(v); }
  static std::optional<DimVector> get(const IValue& v) {
    return v.isNone() ? std::nullopt : std::optional<DimVector>(IntArrayRef(v.toIntVector()));
  }
};

class OperatorHandle;

namespace library {

// Takes its arguments from the stack and leaves its results there. `op` is null in methods.
class RL_API Boxed {
 public:
  Boxed() = default;
  Boxed(const Boxed&) = delete;
  Boxed& operator=(const Boxed&) = delete;
  virtual ~Boxed();
  virtual void operator()(const OperatorHandle* op, Stack& stack) const = 0;
};
template <class F>
class BoxedAs : public Boxed {
 public:
  explicit BoxedAs(F function) : function_(std::move(function)) {}
  void operator()(const OperatorHandle* op, Stack& stack) const override { function_(op, stack); }

 private:
  mutable F function_;
};

struct Kernel {
  std::shared_ptr<const Boxed> function;  // null: there is none
  bool typed = true;                      // no: it was given as a function of a stack
  bool falls_through = false;             // passed over, as if it were not there
  std::vector<Type> arguments;
  std::vector<Type> results;
};
template <class F>
Kernel make_kernel(F function) {
  Kernel out;
  out.function = std::make_shared<BoxedAs<F>>(std::move(function));
  return out;
}

template <class T>
struct Results {
  static std::vector<Type> types() { return {TypeOf<T>::type()}; }
  static void push(Stack& stack, T&& value) { stack.push_back(IValue(std::move(value))); }
};
template <>
struct Results<void> {
  static std::vector<Type> types() { return {}; }
};
template <class... T>
struct Results<std::tuple<T...>> {
  static std::vector<Type> types() { return {TypeOf<std::decay_t<T>>::type()...}; }
  static void push(Stack& stack, std::tuple<T...>&& values) {
    std::apply([&](auto&&... v) { (stack.push_back(IValue(std::decay_t<T>(v))), ...); },
               std::move(values));
  }
};

template <class T>
using Held = std::decay_t<decltype(TypeOf<std::decay_t<T>>::get(std::declval<const IValue&>()))>;
// What a parameter is given: T itself where that is held, or T made from it.
template <class T, class H>
decltype(auto) convert_argument(H& held) {
  if constexpr (std::is_same_v<std::decay_t<T>, H>) {
    return (held);
  } else {
    return std::decay_t<T>(held);
  }
}

template <class F, class R, class... A, size_t... I>
Kernel kernel_with(F function, R (*)(A...), std::index_sequence<I...>) {
  auto call = [function = std::move(function)](const OperatorHandle*, Stack& stack) mutable {
    constexpr size_t n = sizeof...(A);
    RL_CHECK(stack.size() >= n, "expected ", n, " arguments, got ", stack.size());
    std::tuple<Held<A>...> all;
    {
      [[maybe_unused]] const IValue* const values = stack.data() + (stack.size() - n);
      all = std::tuple<Held<A>...>{TypeOf<std::decay_t<A>>::get(values[I])...};
    }
    stack.resize(stack.size() - n);
    if constexpr (std::is_void_v<R>) {
      function(static_cast<A>(convert_argument<A>(std::get<I>(all)))...);
    } else {
      Results<std::decay_t<R>>::push(
          stack,
          std::decay_t<R>(function(static_cast<A>(convert_argument<A>(std::get<I>(all)))...)));
    }
  };
  Kernel out = make_kernel(std::move(call));
  out.arguments = {TypeOf<std::decay_t<A>>::type()...};
  out.results = Results<std::decay_t<R>>::types();
  return out;
}
template <class F, class R, class... A>
Kernel kernel_as(F function, R (*signature)(A...)) {
  return kernel_with(std::move(function), signature, std::index_sequence_for<A...>());
}

template <class R, class... A>
Kernel kernel_of(R (*function)(A...)) {
  return kernel_as(function, function);
}
// One that is told the keys of the call.
template <class R, class... A>
Kernel kernel_of(R (*function)(DispatchKeySet, A...)) {
  R (*signature)(A...) = nullptr;
  return kernel_as(
      [function](A... a) -> R { return function(current_keys(), std::forward<A>(a)...); },
      signature);
}
template <class C, class R, class... A>
Kernel kernel_of(R (C::*method)(A...)) {
  R (*signature)(const intrusive_ptr<C>&, A...) = nullptr;
  return kernel_as([method](const intrusive_ptr<C>& self,
                            A... a) -> R { return (self.get()->*method)(std::forward<A>(a)...); },
                   signature);
}
template <class C, class R, class... A>
Kernel kernel_of(R (C::*method)(A...) const) {
  R (*signature)(const intrusive_ptr<C>&, A...) = nullptr;
  return kernel_as([method](const intrusive_ptr<C>& self,
                            A... a) -> R { return (self.get()->*method)(std::forward<A>(a)...); },
                   signature);
}
template <class M, class R, class... A>
R (*plain(R (M::*)(A...) const))(A...);
template <class M, class R, class... A>
R (*plain(R (M::*)(A...)))(A...);
// A lambda.
template <class F, class = decltype(&F::operator())>
Kernel kernel_of(F function) {
  decltype(plain(&F::operator())) signature = nullptr;
  return kernel_as(std::move(function), signature);
}
}  // namespace library
}  // namespace rushlight
