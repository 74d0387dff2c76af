// What only generated code uses: the wrappers of ops and their boxed forms. Functions here take
// tensors and lists of tensors alike, so that the generator need not tell them apart.
#pragma once

#include <algorithm>

#include "core/op_support.h"

namespace rushlight {

// ---- inputs ----

using Addresses = std::vector<const Tensor*>;

inline void add_address(Addresses& to, const Tensor& t) { to.push_back(&t); }
inline void add_address(Addresses& to, TensorList list) {
  for (const Tensor& t : list) {
    to.push_back(&t);
  }
}
inline void add_address(Addresses& to, const std::vector<std::optional<Tensor>>& list) {
  for (const std::optional<Tensor>& t : list) {
    to.push_back(t.has_value() ? &*t : nullptr);
  }
}
template <class... A>
Addresses addresses_of(const A&... arguments) {
  Addresses out;
  (add_address(out, arguments), ...);
  return out;
}

// ---- outputs ----

inline std::vector<Tensor> make_outputs(const std::vector<OutSpec>& specs, Device where) {
  std::vector<Tensor> out;
  out.reserve(specs.size());
  for (const OutSpec& spec : specs) {
    out.push_back(make_output(spec, where));
  }
  return out;
}
inline void finish_out(const Tensor* given, const Tensor& made) {
  if (given != nullptr) {
    finish_out(*given, made);
  }
}

// What an op that updates its input writes: the tensor that was given or a new one, with the values
// of self. `constant`: it writes one value everywhere, so expanded tensors are welcome.
inline Tensor start_update(const char* op, const Tensor* given, const Tensor& self, Device where,
                           bool constant) {
  Tensor out = given != nullptr ? *given : make_empty_like(self, self.dtype());
  if (where.is_meta()) {
    return out;
  }
  if (!out.is_same(self)) {
    copy_raw(out, self);
  } else if (!constant) {
    check_no_internal_overlap(op, out);
  }
  return out;
}
// Copies of the other inputs where they share memory with it.
inline void keep_apart(const char* op, const Tensor& out, Tensor& t, bool in_step) {
  t = apart_from(op, out, t, in_step);
}
inline void keep_apart(const char* op, const Tensor& out, std::vector<std::optional<Tensor>>& list,
                       bool in_step) {
  for (std::optional<Tensor>& t : list) {
    if (t.has_value()) {
      t = apart_from(op, out, *t, in_step);
    }
  }
}

// ---- history ----

inline void add_edges(Node& node, const Tensor& t) { node.add_edge(t); }
// The number of edges of a list is kept with the node's values.
inline void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) {
    node.add_edge(t);
  }
  node.keep(static_cast<int64_t>(list.size()));
}
inline bool grad_wanted(TensorList list) { return any_requires_grad(list); }
inline void set_history(const std::vector<Tensor>& list, const Ref<Node>& node) {
  for (const Tensor& t : list) {
    set_history(t, node);
  }
}
inline void count_write(const Tensor& t) {
  if (t.defined()) {
    t.impl()->bump_version();
  }
}
inline void count_write(TensorList list) {
  for (const Tensor& t : list) {
    count_write(t);
  }
}

// ---- boxed forms ----

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
RL_OWNER(std::string_view, std::string)
#undef RL_OWNER
template <>
struct OwnerOf<OptionalIntArrayRef> {
  using type = std::optional<DimVector>;
};

// Unboxes the arguments of `f`, calls it and boxes what it returns; of an in-place op that is self.
template <class R, class... P>
std::vector<Value> call_boxed(R (*f)(P...), const std::vector<Value>& a) {
  return [&]<size_t... I>(std::index_sequence<I...>) -> std::vector<Value> {
    if constexpr (std::is_void_v<R>) {
      f(a[I].template get<typename OwnerOf<P>::type>()...);
      return {};
    } else if constexpr (std::is_same_v<R, Tensor&>) {
      f(a[I].template get<typename OwnerOf<P>::type>()...);
      return {a[0]};
    } else {
      return box_results(f(a[I].template get<typename OwnerOf<P>::type>()...));
    }
  }(std::index_sequence_for<P...>());
}

}  // namespace rushlight
