// std::optional<Tensor> where an op takes a tensor that may be undefined.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

namespace rushlight {

class Tensor;

template <class... T>
inline constexpr bool has_optional_tensor =
    (std::is_same_v<std::decay_t<T>, std::optional<Tensor>> || ...);

// The argument itself, or an undefined tensor for none.
template <class T>
decltype(auto) tensor_or_none(T&& value) {
  if constexpr (has_optional_tensor<T>) {
    return value.has_value() ? *value : typename std::decay_t<T>::value_type();
  } else {
    return static_cast<T&&>(value);
  }
}

}  // namespace rushlight

// An overload of all functions of a name. A template, so that no other call
// has another one to choose from.
#define RL_TAKE_OPTIONALS(name, qualifier)                                                 \
  template <class... A, std::enable_if_t<::rushlight::has_optional_tensor<A...>, int> = 0> \
  decltype(auto) name(A&&... arguments) qualifier {                                        \
    return name(::rushlight::tensor_or_none(std::forward<A>(arguments))...);               \
  }
