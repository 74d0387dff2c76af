// An op by one of its overloads, as a type: what libtorch's at::_ops is made of (gen/overloads.py).
#pragma once

#include <rushlight/ivalue.h>

namespace rushlight {

class DispatchKeySet;

// What an overload gives for all its arguments; `row`: its place in all_ops() (schema.h).
RL_API std::vector<Value> call_overload(int row, const std::vector<Value>& arguments);
// The same, below autograd where the keys have none of its keys.
RL_API std::vector<Value> call_overload(int row, const DispatchKeySet& keys,
                                        std::vector<Value> arguments);
// "aten::add" and "Tensor".
struct OverloadName {
  const char* name;
  const char* overload_name;
};
RL_API OverloadName name_of_overload(int row);

// The result of a call in C++, out of its boxed results and its arguments: what is written is the
// argument itself, which is the first one in place, and else among the last ones.
template <class T>
struct GivenBack {
  template <class... A>
  static T of(const std::vector<Value>& found, A&...) {
    return found.at(0).to<T>();
  }
};
template <>
struct GivenBack<void> {
  template <class... A>
  static void of(const std::vector<Value>&, A&...) {}
};
template <class... T>
struct GivenBack<std::tuple<T...>> {
  template <class... A>
  static std::tuple<T...> of(const std::vector<Value>& found, A&...) {
    return Value::tuple(found).template to<std::tuple<T...>>();
  }
};
template <>
struct GivenBack<Tensor&> {
  template <class First, class... A>
  static Tensor& of(const std::vector<Value>&, First& first, A&... a) {
    if constexpr (std::is_same_v<First, Tensor>) {
      return first;
    } else {
      return std::get<sizeof...(A) - 1>(std::tie(a...));
    }
  }
};
template <class... T>
struct GivenBack<std::tuple<Tensor&, T...>> {
  template <class... A>
  static auto of(const std::vector<Value>&, A&... a) {
    return last(std::tie(a...), std::index_sequence_for<Tensor, T...>());
  }

 private:
  template <class All, size_t... I>
  static std::tuple<Tensor&, T...> last(const All& all, std::index_sequence<I...>) {
    return {std::get<std::tuple_size_v<All> - sizeof...(I) + I>(all)...};
  }
};

template <int row, class Signature>
struct Overload;
template <int row, class R, class... A>
struct Overload<row, R(A...)> {
  using schema = R(A...);
  using ptr_schema = R (*)(A...);
  inline static const char* const name = name_of_overload(row).name;
  inline static const char* const overload_name = name_of_overload(row).overload_name;

  static R call(A... a) { return GivenBack<R>::of(call_overload(row, {Value(a)...}), a...); }
  static R redispatch(const DispatchKeySet& keys, A... a) {
    return GivenBack<R>::of(call_overload(row, keys, {Value(a)...}), a...);
  }
};

// An op's out= forms, called with their outputs last.
template <class O, class = typename O::schema>
struct OutForm;
template <class O, class R, class... A>
struct OutForm<O, R(A...)> {
  R operator()(A... a) const { return O::call(std::forward<A>(a)...); }
};
template <class... O>
struct OutForms : OutForm<O>... {
  using OutForm<O>::operator()...;
};

}  // namespace rushlight
