// The C++ functions of ops as functions of boxed values.
#pragma once

#include "core/op_support.h"

namespace rushlight {

// What owns the value of a parameter of type T.
template <class T>
struct OwnerOf {
  using type = std::remove_cvref_t<T>;
};
#define RL_OWNER(T, Owner)             \
  template <>                          \
  struct OwnerOf<T> {                  \
    using type = Owner;                \
  };                                   \
  template <>                          \
  struct OwnerOf<std::optional<T>> {   \
    using type = std::optional<Owner>; \
  };
RL_OWNER(TensorList, std::vector<Tensor>)
RL_OWNER(IntArrayRef, DimVector)
RL_OWNER(ArrayRef<double>, std::vector<double>)
RL_OWNER(ArrayRef<Scalar>, std::vector<Scalar>)
RL_OWNER(std::string_view, std::string)
#undef RL_OWNER
template <>
struct OwnerOf<OptionalIntArrayRef> {
  using type = std::optional<DimVector>;
};
// A copy that shape functions may change.
template <class T>
typename OwnerOf<T>::type owning_copy(const T& value) {
  using Owner = typename OwnerOf<T>::type;
  if constexpr (std::is_constructible_v<Owner, const T&>) {
    return Owner(value);
  } else {
    return value.vec();
  }
}

template <class R>
constexpr bool is_tuple = false;
template <class... T>
constexpr bool is_tuple<std::tuple<T...>> = true;

// Unboxes the arguments of `f`, calls it and boxes what it returns; of a form that writes into its
// first arguments that is those.
template <class R, class... P>
std::vector<Value> call_boxed(R (*f)(P...), const std::vector<Value>& a) {
  return [&]<size_t... I>(std::index_sequence<I...>) -> std::vector<Value> {
    if constexpr (std::is_void_v<R>) {
      f(a[I].template get<typename OwnerOf<P>::type>()...);
      return {};
    } else if constexpr (std::is_same_v<R, Tensor&>) {
      f(a[I].template get<typename OwnerOf<P>::type>()...);
      return {a[0]};
    } else if constexpr (is_tuple<R>) {
      if constexpr (std::is_reference_v<std::tuple_element_t<0, R>>) {
        f(a[I].template get<typename OwnerOf<P>::type>()...);
        return {a.begin(), a.begin() + std::tuple_size_v<R>};
      } else {
        return box_results(f(a[I].template get<typename OwnerOf<P>::type>()...));
      }
    } else {
      return box_results(f(a[I].template get<typename OwnerOf<P>::type>()...));
    }
  }(std::index_sequence_for<P...>());
}
template <auto f>
std::vector<Value> boxed(const std::vector<Value>& arguments) {
  return call_boxed(f, arguments);
}
template <class F, F* f>
std::vector<Value> run_boxed(const OpFunction&, const std::vector<Value>& arguments) {
  return call_boxed(f, arguments);
}

}  // namespace rushlight
