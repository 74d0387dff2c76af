// Which types of C++ are values: how each is boxed, read, and what schemas call it.
#pragma once

#include <tuple>

#include <rushlight/collections.h>
#include <rushlight/type.h>

namespace rushlight {

template <>
struct TypeOf<Value> {
  static Type type() { return {Type::Kind::Any}; }
  static Value box(Value v) { return v; }
  static Value get(const Value& v) { return v; }
};
// T, what is read from a value, and the kind. Compiled once (src/core/type_of.cpp): programs would
// pay for the choice among a Value's constructors.
#define RL_FOR_EACH_PLAIN_TYPE(F)             \
  F(Tensor, Tensor, Tensor)                   \
  F(Scalar, Scalar, Scalar)                   \
  F(int64_t, int64_t, Int)                    \
  F(double, double, Float)                    \
  F(bool, bool, Bool)                         \
  F(std::string, std::string, String)         \
  F(std::string_view, std::string, String)    \
  F(ScalarType, ScalarType, ScalarType)       \
  F(Device, Device, Device)                   \
  F(Layout, Layout, Layout)                   \
  F(MemoryFormat, MemoryFormat, MemoryFormat) \
  F(Generator, Generator, Generator)
#define RL_TYPE(T, Held, kind)         \
  template <>                          \
  struct RL_API TypeOf<T> {            \
    static Type type();                \
    static Value box(T v);             \
    static Held get(const Value& v);   \
  };
RL_FOR_EACH_PLAIN_TYPE(RL_TYPE)
#undef RL_TYPE
// Numbers that are stored as int64_t and double.
template <class T>
struct TypeOf<T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, int64_t> &&
                                  !std::is_same_v<T, double> && !std::is_same_v<T, bool>>> {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static Type type() { return TypeOf<Wide>::type(); }
  static Value box(T v) { return Value(static_cast<Wide>(v)); }
  static T get(const Value& v) { return static_cast<T>(v.get<Wide>()); }
};
template <class T>
struct TypeOf<std::optional<T>> {
  static Type type() { return {Type::Kind::Optional, {TypeOf<T>::type()}}; }
  static Value box(std::optional<T> v) { return v ? Value(std::move(*v)) : Value(); }
  static auto get(const Value& v) {
    using Held = std::optional<decltype(TypeOf<T>::get(v))>;
    if constexpr (std::is_same_v<T, Tensor>) {
      if (v.isTensor() && !v.toTensor().defined()) {
        return Held();
      }
    }
    return v.isNone() ? Held() : Held(TypeOf<T>::get(v));
  }
};
template <class T>
struct TypeOf<std::vector<T>> {
  static Type type() { return {Type::Kind::List, {TypeOf<T>::type()}}; }
  static Value box(const std::vector<T>& v) {
    if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, double>) {
      return Value(v);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return Value(DimVector(IntArrayRef(v)));
    } else {
      Value::Items items;
      for (const auto& item : v) {
        items.push_back(Value(T(item)));
      }
      return Value::list(std::move(items));
    }
  }
  static std::vector<T> get(const Value& v) {
    if constexpr (std::is_same_v<T, Tensor>) {
      return v.toTensorVector();
    } else if constexpr (std::is_same_v<T, double>) {
      return v.toDoubleVector();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return v.toIntVector();
    } else {
      std::vector<T> out;
      for (const Value& item : v.toListRef()) {
        out.push_back(T(TypeOf<T>::get(item)));
      }
      return out;
    }
  }
};
template <>
struct TypeOf<SymInt> : TypeOf<int64_t> {};
template <>
struct TypeOf<SymIntArrayRef> : TypeOf<std::vector<int64_t>> {
  static Value box(SymIntArrayRef v) { return Value(DimVector(IntArrayRef(v))); }
};
template <class T>
struct TypeOf<ArrayRef<T>> : TypeOf<std::vector<T>> {
  static Value box(ArrayRef<T> v) { return TypeOf<std::vector<T>>::box(v.vec()); }
};
template <>
struct TypeOf<DimVector> : TypeOf<std::vector<int64_t>> {
  static Value box(DimVector v) { return Value(std::move(v)); }
};
template <class T>
struct TypeOf<List<T>> {
  static Type type() { return {Type::Kind::List, {TypeOf<T>::type()}}; }
  static Value box(const List<T>& v) { return Value::list(v.items()); }
  static List<T> get(const Value& v) {
    return List<T>(v.kind() == Value::Kind::List
                       ? v.list_items()
                       : make_intrusive<ivalue::ListItems>(v.toListRef()));
  }
};
template <class K, class V>
struct TypeOf<Dict<K, V>> {
  static Type type() { return {Type::Kind::Dict, {TypeOf<K>::type(), TypeOf<V>::type()}}; }
  static Value box(const Dict<K, V>& v) { return Value::dict(v.items()); }
  static Dict<K, V> get(const Value& v) { return Dict<K, V>(v.dict_items()); }
};
// std::map, std::unordered_map and their like.
template <class M>
struct TypeOf<M, std::void_t<typename M::mapped_type>> {
  using Key = typename M::key_type;
  using Mapped = typename M::mapped_type;
  static Type type() { return TypeOf<Dict<Key, Mapped>>::type(); }
  static Value box(const M& map) {
    const Dict<Key, Mapped> out;
    for (const auto& [key, value] : map) {
      out.insert(key, value);
    }
    return Value::dict(out.items());
  }
  static M get(const Value& v) {
    M out;
    for (const std::pair<Value, Value>& pair : v.dict_items()->pairs) {
      out.emplace(pair.first.to<Key>(), pair.second.to<Mapped>());
    }
    return out;
  }
};
template <class... T>
struct TypeOf<std::tuple<T...>> {
  static Type type() { return {Type::Kind::Tuple, {TypeOf<std::decay_t<T>>::type()...}}; }
  static Value box(std::tuple<T...> v) {
    return std::apply(
        [](auto&&... part) { return Value::tuple({Value(std::decay_t<T>(part))...}); },
        std::move(v));
  }
  static std::tuple<std::decay_t<T>...> get(const Value& v) {
    return get(v, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static std::tuple<std::decay_t<T>...> get(const Value& v, std::index_sequence<I...>) {
    RL_CHECK(v.isTuple() && v.items().size() == sizeof...(T), "expected a tuple of ", sizeof...(T),
             " values, got a ", v.kind_name());
    return {v.items()[I].template to<std::decay_t<T>>()...};
  }
};
template <class A, class B>
struct TypeOf<std::pair<A, B>> {
  static Type type() { return TypeOf<std::tuple<A, B>>::type(); }
  static Value box(std::pair<A, B> v) { return Value::tuple({Value(v.first), Value(v.second)}); }
  static std::pair<A, B> get(const Value& v) {
    std::tuple<A, B> both = TypeOf<std::tuple<A, B>>::get(v);
    return {std::get<0>(std::move(both)), std::get<1>(std::move(both))};
  }
};
template <class T>
struct TypeOf<intrusive_ptr<T>> {
  static Type type() { return {Type::Kind::Object, {}, ClassName(typeid(T)).text()}; }
  static Value box(intrusive_ptr<T> v) {
    return v.defined() ? Value::object(std::move(v), ClassName(typeid(T))) : Value();
  }
  static intrusive_ptr<T> get(const Value& v) { return v.toCustomClass<T>(); }
};
template <>
struct TypeOf<intrusive_ptr<ivalue::Tuple>> {
  static Type type() { return {Type::Kind::Tuple}; }
  static Value box(intrusive_ptr<ivalue::Tuple> v) { return Value::tuple(std::move(v)); }
  static intrusive_ptr<ivalue::Tuple> get(const Value& v) { return v.toTuple(); }
};

}  // namespace rushlight
