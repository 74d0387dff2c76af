// IValue: a value of no fixed type, by libtorch's name: what ops take, and lists, tuples, dicts and
// objects of C++ classes besides. What boxed functions, custom functions and pickles hold.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>

#include <rushlight/type.h>
#include <rushlight/value.h>

namespace rushlight {

// ---- counted objects ----

// What intrusive_ptr points to, and what classes are bound from (custom_class.h).
struct RL_API CustomClassHolder : RefCounted {
  CustomClassHolder() = default;
  CustomClassHolder(const CustomClassHolder&) : RefCounted() {}
  CustomClassHolder& operator=(const CustomClassHolder&) { return *this; }
  virtual ~CustomClassHolder();
  void release() const {
    if (drop()) {
      delete this;
    }
  }
};
using intrusive_ptr_target = CustomClassHolder;

template <class T>
class intrusive_ptr : public Ref<T> {
 public:
  using element_type = T;
  using Ref<T>::Ref;
  intrusive_ptr() = default;
  intrusive_ptr(Ref<T> ref) : Ref<T>(std::move(ref)) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
  intrusive_ptr(const intrusive_ptr<U>& other) : Ref<T>(static_cast<T*>(other.get())) {}
  bool defined() const { return this->get() != nullptr; }
  size_t use_count() const {
    return defined() ? static_cast<size_t>(this->get()->RefCounted::use_count()) : 0;
  }
  template <class... A>
  static intrusive_ptr make(A&&... arguments) {
    return Ref<T>::steal(new T(std::forward<A>(arguments)...));
  }
};
template <class T, class... A>
intrusive_ptr<T> make_intrusive(A&&... arguments) {
  return intrusive_ptr<T>::make(std::forward<A>(arguments)...);
}

// ---- classes ----

// Names a class that is bound; RuntimeError where it has a name already.
RL_API void name_class(const std::type_info& type, const std::string& name);
// The name of a bound class, "__torch__.torch.classes.space.Name"; RuntimeError where it is not.
RL_API const std::string& class_name_of(const std::type_info& type);

// ---- the value ----

class IValue;
template <class T>
class List;
template <class K, class V>
class Dict;
// For each type of C++ that a value may be: type(), box(T), get(IValue).
template <class T, class = void>
struct TypeOf;

namespace ivalue {
struct Tuple;
struct DictItems;
}  // namespace ivalue

class RL_API IValue {
 public:
  enum class Kind : uint8_t { Plain, List, Tuple, Dict, Object };
  using Items = std::vector<IValue>;
  IValue() = default;
  IValue(Value plain) : value_(std::move(plain)) {}
  IValue(const char* text) : value_(text) {}
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, IValue> &&
                                          !std::is_same_v<std::decay_t<T>, Value> &&
                                          !std::is_array_v<std::remove_reference_t<T>>,
                                      decltype(TypeOf<std::decay_t<T>>::type, 0)> = 0>
  IValue(T&& v) : IValue(TypeOf<std::decay_t<T>>::box(std::forward<T>(v))) {}
  static IValue list(std::shared_ptr<Items> items);
  static IValue tuple(Items items);
  static IValue dict(std::shared_ptr<ivalue::DictItems> items);
  static IValue object(intrusive_ptr<CustomClassHolder> object, const std::type_info& type);

  Kind kind() const { return kind_; }
  bool isNone() const { return is_plain() && value_.is_none(); }
  bool isTensor() const { return is_plain() && value_.is<Tensor>(); }
  bool isScalar() const { return is_plain() && value_.is<Scalar>(); }
  bool isInt() const { return isScalar() && value_.get<Scalar>().is_integral(); }
  bool isDouble() const { return isScalar() && value_.get<Scalar>().is_floating_point(); }
  bool isBool() const { return isScalar() && value_.get<Scalar>().is_bool(); }
  bool isString() const { return is_plain() && value_.is<std::string>(); }
  bool isDevice() const { return is_plain() && value_.is<Device>(); }
  bool isIntList() const { return is_plain() && value_.is<DimVector>(); }
  bool isDoubleList() const { return is_plain() && value_.is<std::vector<double>>(); }
  bool isTensorList() const { return is_plain() && value_.is<std::vector<Tensor>>(); }
  bool isList() const {
    return kind_ == Kind::List || isIntList() || isDoubleList() || isTensorList();
  }
  bool isTuple() const { return kind_ == Kind::Tuple; }
  bool isGenericDict() const { return kind_ == Kind::Dict; }
  bool isObject() const { return kind_ == Kind::Object; }
  bool isCustomClass() const { return isObject(); }

  // RuntimeError where the value is of another kind.
  int64_t toInt() const { return value().get<int64_t>(); }
  double toDouble() const { return value().get<double>(); }
  bool toBool() const { return value().get<bool>(); }
  Scalar toScalar() const { return value().get<Scalar>(); }
  Tensor toTensor() const { return value().get<Tensor>(); }
  std::string toStringRef() const { return value().get<std::string>(); }
  ScalarType toScalarType() const { return value().get<ScalarType>(); }
  Device toDevice() const { return value().get<Device>(); }
  std::vector<Tensor> toTensorVector() const;
  std::vector<double> toDoubleVector() const;
  std::vector<int64_t> toIntVector() const;
  Items toListRef() const;  // the items of any list
  List<Tensor> toTensorList() const;
  List<double> toDoubleList() const;
  List<int64_t> toIntList() const;
  List<bool> toBoolList() const;
  List<IValue> toList() const;
  Dict<IValue, IValue> toGenericDict() const;
  intrusive_ptr<ivalue::Tuple> toTuple() const;
  const std::shared_ptr<Items>& items() const;  // of a list or tuple that is not plain
  const std::shared_ptr<ivalue::DictItems>& dict_items() const;
  const intrusive_ptr<CustomClassHolder>& object() const;
  const std::string& class_name() const;
  template <class T>
  intrusive_ptr<T> toCustomClass() const {
    T* const found = dynamic_cast<T*>(object().get());
    RL_CHECK(found != nullptr, "the object is a ", class_name());
    return intrusive_ptr<T>(found);
  }
  template <class T>
  T to() const {
    return TypeOf<T>::get(*this);
  }
  // What ops take; lists of tensors and of numbers too, however they are held.
  const Value& value() const {
    RL_CHECK(is_plain(), "a ", kind_name(), " was read as another kind of value");
    return value_;
  }
  Value flattened() const;
  const char* kind_name() const;

 private:
  bool is_plain() const { return kind_ == Kind::Plain; }
  Kind kind_ = Kind::Plain;
  Value value_;
  std::shared_ptr<Items> items_;  // of a list or a tuple
  std::shared_ptr<ivalue::DictItems> dict_;
  intrusive_ptr<CustomClassHolder> object_;
  const std::string* class_name_ = nullptr;
};
using Stack = std::vector<IValue>;

namespace ivalue {
struct RL_API Tuple : CustomClassHolder {
  explicit Tuple(IValue::Items items) : items_(std::move(items)) {}
  const IValue::Items& elements() const { return items_; }
  size_t size() const { return items_.size(); }
  static intrusive_ptr<Tuple> create(IValue::Items items) {
    return make_intrusive<Tuple>(std::move(items));
  }

 private:
  IValue::Items items_;
};
// The pairs of a dict in the order in which they came in.
struct RL_API DictItems {
  std::vector<std::pair<IValue, IValue>> pairs;
  size_t find(const IValue& key) const;  // pairs.size() where there is none
  // Whether the key is new.
  bool insert(IValue key, IValue value, bool replace);
  size_t erase(const IValue& key);
  DictItems();
  ~DictItems();
  DictItems(const DictItems&) = delete;
  DictItems& operator=(const DictItems&) = delete;

 private:
  struct Places;
  std::unique_ptr<Places> places_;
};
}  // namespace ivalue

// ---- lists and dicts, which share what they hold ----

template <class T>
class List {
 public:
  List() : items_(std::make_shared<IValue::Items>()) {}
  List(std::initializer_list<T> items) : List() {
    for (const T& item : items) {
      push_back(item);
    }
  }
  explicit List(std::shared_ptr<IValue::Items> items) : items_(std::move(items)) {}
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  void reserve(size_t n) { items_->reserve(n); }
  void push_back(T item) const { items_->push_back(IValue(std::move(item))); }
  T get(size_t i) const { return items_->at(i).template to<T>(); }
  T operator[](size_t i) const { return get(i); }
  void set(size_t i, T item) const { items_->at(i) = IValue(std::move(item)); }
  void clear() const { items_->clear(); }
  std::vector<T> vec() const {
    std::vector<T> out;
    for (size_t i = 0; i < size(); i++) {
      out.push_back(get(i));
    }
    return out;
  }
  class iterator {
   public:
    iterator(const List* list, size_t i) : list_(list), i_(i) {}
    T operator*() const { return list_->get(i_); }
    iterator& operator++() {
      i_++;
      return *this;
    }
    bool operator!=(const iterator& o) const { return i_ != o.i_; }

   private:
    const List* list_;
    size_t i_;
  };
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, size()}; }
  const std::shared_ptr<IValue::Items>& items() const { return items_; }

 private:
  std::shared_ptr<IValue::Items> items_;
};

template <class K, class V>
class Dict {
 public:
  Dict() : items_(std::make_shared<ivalue::DictItems>()) {}
  explicit Dict(std::shared_ptr<ivalue::DictItems> items) : items_(std::move(items)) {}
  size_t size() const { return items_->pairs.size(); }
  bool empty() const { return size() == 0; }
  bool contains(const K& key) const { return items_->find(IValue(key)) != size(); }
  V at(const K& key) const {
    const size_t place = items_->find(IValue(key));
    RL_CHECK_INDEX(place != size(), "Argument passed to at() was not in the map.");
    return items_->pairs[place].second.template to<V>();
  }
  bool insert(K key, V value) const {
    return items_->insert(IValue(std::move(key)), IValue(std::move(value)), false);
  }
  bool insert_or_assign(K key, V value) const {
    return items_->insert(IValue(std::move(key)), IValue(std::move(value)), true);
  }
  size_t erase(const K& key) const { return items_->erase(IValue(key)); }
  class Entry {
   public:
    explicit Entry(const std::pair<IValue, IValue>* pair) : pair_(pair) {}
    K key() const { return pair_->first.template to<K>(); }
    V value() const { return pair_->second.template to<V>(); }

   private:
    const std::pair<IValue, IValue>* pair_;
  };
  class iterator {
   public:
    explicit iterator(const std::pair<IValue, IValue>* at) : entry_(at), at_(at) {}
    const Entry& operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }
    iterator& operator++() {
      entry_ = Entry(++at_);
      return *this;
    }
    bool operator==(const iterator& o) const { return at_ == o.at_; }
    bool operator!=(const iterator& o) const { return at_ != o.at_; }

   private:
    Entry entry_;
    const std::pair<IValue, IValue>* at_;
  };
  iterator begin() const { return iterator(items_->pairs.data()); }
  iterator end() const { return iterator(items_->pairs.data() + size()); }
  iterator find(const K& key) const {
    return iterator(items_->pairs.data() + items_->find(IValue(key)));
  }
  const std::shared_ptr<ivalue::DictItems>& items() const { return items_; }

 private:
  std::shared_ptr<ivalue::DictItems> items_;
};
inline Dict<IValue, IValue> IValue::toGenericDict() const {
  return Dict<IValue, IValue>(dict_items());
}
namespace impl {
using GenericList = List<IValue>;
using GenericDict = Dict<IValue, IValue>;
}  // namespace impl

// ---- which types of C++ are values ----

template <>
struct TypeOf<IValue> {
  static Type type() { return {Type::Kind::Any}; }
  static IValue box(IValue v) { return v; }
  static IValue get(const IValue& v) { return v; }
};
#define RL_TYPE(T, Held, type_kind)                                    \
  template <>                                                          \
  struct TypeOf<T> {                                                   \
    static Type type() { return {Type::Kind::type_kind}; }             \
    static IValue box(T v) { return Value(std::move(v)); }             \
    static Held get(const IValue& v) { return v.value().get<Held>(); } \
  };
RL_TYPE(Tensor, Tensor, Tensor)
RL_TYPE(Scalar, Scalar, Scalar)
RL_TYPE(int64_t, int64_t, Int)
RL_TYPE(double, double, Float)
RL_TYPE(bool, bool, Bool)
RL_TYPE(std::string, std::string, String)
RL_TYPE(std::string_view, std::string, String)
RL_TYPE(ScalarType, ScalarType, ScalarType)
RL_TYPE(Device, Device, Device)
RL_TYPE(Layout, Layout, Layout)
RL_TYPE(MemoryFormat, MemoryFormat, MemoryFormat)
RL_TYPE(Generator, Generator, Generator)
#undef RL_TYPE
// Numbers that are stored as int64_t and double.
template <class T>
struct TypeOf<T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, int64_t> &&
                                  !std::is_same_v<T, double> && !std::is_same_v<T, bool>>> {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static Type type() { return TypeOf<Wide>::type(); }
  static IValue box(T v) { return Value(static_cast<Wide>(v)); }
  static T get(const IValue& v) { return static_cast<T>(v.value().get<Wide>()); }
};
template <class T>
struct TypeOf<std::optional<T>> {
  static Type type() { return {Type::Kind::Optional, {TypeOf<T>::type()}}; }
  static IValue box(std::optional<T> v) { return v ? IValue(std::move(*v)) : IValue(); }
  static auto get(const IValue& v) {
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
  static IValue box(const std::vector<T>& v) {
    if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, double>) {
      return Value(v);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return Value(DimVector(IntArrayRef(v)));
    } else {
      auto items = std::make_shared<IValue::Items>();
      for (const auto& item : v) {
        items->push_back(IValue(T(item)));
      }
      return IValue::list(std::move(items));
    }
  }
  static std::vector<T> get(const IValue& v) {
    if constexpr (std::is_same_v<T, Tensor>) {
      return v.toTensorVector();
    } else if constexpr (std::is_same_v<T, double>) {
      return v.toDoubleVector();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return v.toIntVector();
    } else {
      std::vector<T> out;
      for (const IValue& item : v.toListRef()) {
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
  static IValue box(SymIntArrayRef v) { return Value(DimVector(IntArrayRef(v))); }
};
template <class T>
struct TypeOf<ArrayRef<T>> : TypeOf<std::vector<T>> {
  static IValue box(ArrayRef<T> v) { return TypeOf<std::vector<T>>::box(v.vec()); }
};
template <>
struct TypeOf<DimVector> : TypeOf<std::vector<int64_t>> {
  static IValue box(DimVector v) { return Value(std::move(v)); }
};
template <class T>
struct TypeOf<List<T>> {
  static Type type() { return {Type::Kind::List, {TypeOf<T>::type()}}; }
  static IValue box(const List<T>& v) { return IValue::list(v.items()); }
  static List<T> get(const IValue& v) {
    return List<T>(v.kind() == IValue::Kind::List ? v.items()
                                                  : std::make_shared<IValue::Items>(v.toListRef()));
  }
};
template <class K, class V>
struct TypeOf<Dict<K, V>> {
  static Type type() { return {Type::Kind::Dict, {TypeOf<K>::type(), TypeOf<V>::type()}}; }
  static IValue box(const Dict<K, V>& v) { return IValue::dict(v.items()); }
  static Dict<K, V> get(const IValue& v) { return Dict<K, V>(v.dict_items()); }
};
// std::map, std::unordered_map and their like.
template <class M>
struct TypeOf<M, std::void_t<typename M::mapped_type>> {
  using Key = typename M::key_type;
  using Mapped = typename M::mapped_type;
  static Type type() { return TypeOf<Dict<Key, Mapped>>::type(); }
  static IValue box(const M& map) {
    const Dict<Key, Mapped> out;
    for (const auto& [key, value] : map) {
      out.insert(key, value);
    }
    return IValue::dict(out.items());
  }
  static M get(const IValue& v) {
    M out;
    for (const std::pair<IValue, IValue>& pair : v.dict_items()->pairs) {
      out.emplace(pair.first.to<Key>(), pair.second.to<Mapped>());
    }
    return out;
  }
};
template <class... T>
struct TypeOf<std::tuple<T...>> {
  static Type type() { return {Type::Kind::Tuple, {TypeOf<std::decay_t<T>>::type()...}}; }
  static IValue box(std::tuple<T...> v) {
    return std::apply(
        [](auto&&... part) { return IValue::tuple({IValue(std::decay_t<T>(part))...}); },
        std::move(v));
  }
  static std::tuple<std::decay_t<T>...> get(const IValue& v) {
    return get(v, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static std::tuple<std::decay_t<T>...> get(const IValue& v, std::index_sequence<I...>) {
    RL_CHECK(v.isTuple() && v.items()->size() == sizeof...(T), "expected a tuple of ", sizeof...(T),
             " values, got a ", v.kind_name());
    return {(*v.items())[I].template to<std::decay_t<T>>()...};
  }
};
template <class A, class B>
struct TypeOf<std::pair<A, B>> {
  static Type type() { return TypeOf<std::tuple<A, B>>::type(); }
  static IValue box(std::pair<A, B> v) {
    return IValue::tuple({IValue(v.first), IValue(v.second)});
  }
  static std::pair<A, B> get(const IValue& v) {
    std::tuple<A, B> both = TypeOf<std::tuple<A, B>>::get(v);
    return {std::get<0>(std::move(both)), std::get<1>(std::move(both))};
  }
};
template <class T>
struct TypeOf<intrusive_ptr<T>> {
  static Type type() { return {Type::Kind::Object, {}, class_name_of(typeid(T))}; }
  static IValue box(intrusive_ptr<T> v) {
    return v.defined() ? IValue::object(std::move(v), typeid(T)) : IValue();
  }
  static intrusive_ptr<T> get(const IValue& v) { return v.toCustomClass<T>(); }
};
template <>
struct TypeOf<intrusive_ptr<ivalue::Tuple>> {
  static Type type() { return {Type::Kind::Tuple}; }
  static IValue box(const intrusive_ptr<ivalue::Tuple>& v) { return IValue::tuple(v->elements()); }
  static intrusive_ptr<ivalue::Tuple> get(const IValue& v) { return v.toTuple(); }
};

}  // namespace rushlight
