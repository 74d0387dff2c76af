// Value: any argument or result of any op, for boxed calls, modes and what nodes keep; and lists,
// tuples, dicts and objects of C++ classes besides, for scripts, custom functions and pickles.
// libtorch's name of it is IValue. Sixteen bytes: a kind and a number, a tensor or a pointer.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <rushlight/generator.h>
#include <rushlight/intrusive_ptr.h>
#include <rushlight/tensor.h>
#include <rushlight/tensor_meta.h>

namespace rushlight {

class Value;
template <class T>
class List;
template <class K, class V>
class Dict;
// For each type of C++ that a value may be and no op takes: type(), box(T), get(Value) (type_of.h).
template <class T, class = void>
struct TypeOf;

namespace ivalue {
struct ListItems;
struct Tuple;
struct DictItems;
struct ConstantString;
}  // namespace ivalue
namespace jit {
class Module;
class ObjectRef;
}  // namespace jit
namespace script_types {
struct Type;
}  // namespace script_types

// The name of a class whose objects are values, "__torch__.torch.classes.space.Name", as a number.
struct RL_API ClassName {
  explicit ClassName(const std::string& name);
  // Of a class that is bound (custom_class.h); RuntimeError where it is not.
  explicit ClassName(const std::type_info& type);
  explicit ClassName(uint32_t number) : number(number) {}
  const std::string& text() const;
  uint32_t number;
};
// Names a class that is bound; RuntimeError where it has a name already.
RL_API void name_class(const std::type_info& type, const std::string& name);

// What is in a value beside numbers and tensors: the type, and the kind that it makes.
#define RL_FOR_EACH_VALUE_IN_PLACE(F) \
  F(ScalarType, Dtype)                \
  F(Layout, Layout)                   \
  F(MemoryFormat, MemoryFormat)       \
  F(Device, Device)
#define RL_FOR_EACH_COUNTED_VALUE(F)                     \
  F(std::string, String)                                 \
  F(Generator, Generator)                                \
  F(DimVector, Ints)                                     \
  F(std::vector<double>, Floats)                         \
  F(std::vector<Scalar>, Scalars)                        \
  F(std::vector<Tensor>, Tensors)                        \
  F(std::vector<std::optional<Tensor>>, OptionalTensors) \
  F(TensorMeta, Meta)                                    \
  F(std::vector<TensorMeta>, Metas)                      \
  F(TensorOptions, Options)

// Whether values are made of it without TypeOf.
template <class T>
inline constexpr bool is_value_of_ops = std::is_arithmetic_v<T>;
#define RL_OF_OPS(T, ...) \
  template <>             \
  inline constexpr bool is_value_of_ops<T> = true;
RL_OF_OPS(Value)
RL_OF_OPS(Tensor)
RL_OF_OPS(Scalar)
RL_OF_OPS(TensorList)
RL_OF_OPS(IntArrayRef)
RL_OF_OPS(OptionalIntArrayRef)
RL_OF_OPS(ArrayRef<Scalar>)
RL_OF_OPS(ArrayRef<double>)
RL_OF_OPS(std::string_view)
RL_OF_OPS(caffe2::TypeMeta)
RL_FOR_EACH_VALUE_IN_PLACE(RL_OF_OPS)
RL_FOR_EACH_COUNTED_VALUE(RL_OF_OPS)
#undef RL_OF_OPS
template <class T>
inline constexpr bool is_value_of_ops<std::optional<T>> = true;

class RL_API Value {
 public:
  // Those from Tensor on own what they point to. Lists of ops (Ints to OptionalTensors) are copied
  // by who takes them; a List is one object for all who hold it.
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    UInt,
    Float,
    Dtype,
    Layout,
    MemoryFormat,
    Device,
    Tensor,
    Complex,
    String,
    Generator,
    Ints,
    Floats,
    Scalars,
    Tensors,
    OptionalTensors,
    Meta,
    Metas,
    Options,
    List,
    Tuple,
    Dict,
    Object,
  };
  using Items = std::vector<Value>;

  Value() noexcept = default;
  Value(std::nullopt_t) noexcept {}
  Value(const Value& o);
  Value(Value&& o) noexcept { take(o); }
  Value& operator=(const Value& o) { return *this = Value(o); }
  Value& operator=(Value&& o) noexcept {
    if (this != &o) {
      destroy();
      take(o);
    }
    return *this;
  }
  ~Value() { destroy(); }

  Value(const Tensor& t);
  Value(Tensor&& t) noexcept;
  Value(TensorList list);
  Value(const Scalar& s);
  Value(IntArrayRef list);
  Value(OptionalIntArrayRef list);
  Value(ArrayRef<Scalar> list);
  Value(ArrayRef<double> list);
  Value(const char* text);
  Value(std::string_view text);
  Value(caffe2::TypeMeta type) : Value(type.toScalarType()) {}
#define RL_VALUE(T, kind) Value(T v);
  RL_FOR_EACH_VALUE_IN_PLACE(RL_VALUE)
  RL_FOR_EACH_COUNTED_VALUE(RL_VALUE)
#undef RL_VALUE
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Value(T number) : Value(Scalar(number)) {}
  template <class T>
  Value(const std::optional<T>& value) : Value(value.has_value() ? Value(*value) : Value()) {}
  // What only type_of.h knows: maps, tuples, lists of lists, objects of bound classes.
  template <class T, std::enable_if_t<!is_value_of_ops<std::decay_t<T>>,
                                      decltype(TypeOf<std::decay_t<T>>::type, 0)> = 0>
  Value(T&& v) : Value(TypeOf<std::decay_t<T>>::box(std::forward<T>(v))) {}
  static Value list(Items items);
  static Value list(intrusive_ptr<ivalue::ListItems> items);
  static Value tuple(Items items);
  static Value tuple(intrusive_ptr<ivalue::Tuple> items);
  static Value dict(intrusive_ptr<ivalue::DictItems> items);
  static Value object(intrusive_ptr<CustomClassHolder> object, ClassName name);

  Kind kind() const { return kind_; }
  const char* kind_name() const;
  std::string tagKind() const { return kind_name(); }
  // is<T> for each T that ops take; is<Scalar> for every number.
  template <class T>
  bool is() const {
    if constexpr (std::is_same_v<T, Scalar>) {
      return isScalar();
    } else {
      return kind_ == kind_of(static_cast<const T*>(nullptr));
    }
  }
  bool is_none() const { return kind_ == Kind::None; }
  bool isNone() const { return is_none(); }
  bool isTensor() const { return kind_ == Kind::Tensor; }
  bool isScalar() const {
    return (kind_ >= Kind::Bool && kind_ <= Kind::Float) || kind_ == Kind::Complex;
  }
  bool isInt() const { return kind_ == Kind::Int || kind_ == Kind::UInt; }
  bool isDouble() const { return kind_ == Kind::Float; }
  bool isComplexDouble() const { return kind_ == Kind::Complex; }
  bool isBool() const { return kind_ == Kind::Bool; }
  bool isString() const { return kind_ == Kind::String; }
  bool isDevice() const { return kind_ == Kind::Device; }
  bool isGenerator() const { return kind_ == Kind::Generator; }
  bool isIntList() const { return kind_ == Kind::Ints || is_list_of(&Value::isInt); }
  bool isDoubleList() const { return kind_ == Kind::Floats || is_list_of(&Value::isDouble); }
  bool isBoolList() const { return is_list_of(&Value::isBool); }
  bool isTensorList() const { return kind_ == Kind::Tensors || is_list_of(&Value::isTensor); }
  bool isList() const {
    return kind_ == Kind::List || (kind_ >= Kind::Ints && kind_ <= Kind::OptionalTensors);
  }
  bool isTuple() const { return kind_ == Kind::Tuple; }
  bool isGenericDict() const { return kind_ == Kind::Dict; }
  bool isObject() const { return kind_ == Kind::Object; }
  bool isCustomClass() const { return isObject(); }
  bool isModule() const;  // an object whose class is a TorchScript module's
  bool isEnum() const;
  bool isLayout() const { return kind_ == Kind::Layout; }
  bool isMemoryFormat() const { return kind_ == Kind::MemoryFormat; }
  // What it is as a program's type says it: "int", "List[Tensor]" (script_types.h).
  std::shared_ptr<script_types::Type> type() const;

  // As the C++ argument type: get<Tensor>(), get<int64_t>(), get<std::optional<Scalar>>(),
  // get<std::vector<Tensor>>()…, lists of every kind as the type says. RuntimeError where the value
  // is of another kind.
  template <class T>
  T get() const;
  // The same for every type of type_of.h.
  template <class T>
  T to() const {
    return TypeOf<T>::get(*this);
  }
  int64_t toInt() const { return get<int64_t>(); }
  double toDouble() const { return get<double>(); }
  bool toBool() const { return get<bool>(); }
  Scalar toScalar() const { return get<Scalar>(); }
  const Tensor& toTensor() const&;
  Tensor toTensor() && { return static_cast<const Value&>(*this).toTensor(); }
  const std::string& toStringRef() const;
  std::string_view toStringView() const { return toStringRef(); }
  intrusive_ptr<ivalue::ConstantString> toString() const;
  jit::Module toModule() const;  // RuntimeError where it is none; by <rushlight/script.h>
  jit::ObjectRef toObjectRef() const;  // the same of any object of a class of programs
  jit::ObjectRef toObject() const;
  const Value& toIValue() const { return *this; }
  std::nullopt_t toNone() const;
  complex<double> toComplexDouble() const { return toScalar().toComplexDouble(); }
  Generator toGenerator() const { return get<Generator>(); }
  Layout toLayout() const { return get<Layout>(); }
  MemoryFormat toMemoryFormat() const { return get<MemoryFormat>(); }
  template <class T>
  std::optional<T> toOptional() const {
    return is_none() ? std::nullopt : std::optional<T>(to<T>());
  }
  ScalarType toScalarType() const { return get<ScalarType>(); }
  Device toDevice() const { return get<Device>(); }
  std::vector<Tensor> toTensorVector() const { return get<std::vector<Tensor>>(); }
  std::vector<double> toDoubleVector() const { return get<std::vector<double>>(); }
  std::vector<int64_t> toIntVector() const;
  Items toListRef() const;  // the items of any list
  List<Tensor> toTensorList() const;
  List<double> toDoubleList() const;
  List<int64_t> toIntList() const;
  List<bool> toBoolList() const;
  List<Value> toList() const;
  Dict<Value, Value> toGenericDict() const;
  intrusive_ptr<ivalue::Tuple> toTuple() const;
  const ivalue::Tuple& toTupleRef() const;
  // The items of a List or a tuple, where they are.
  Items& items() const;
  intrusive_ptr<ivalue::ListItems> list_items() const;
  intrusive_ptr<ivalue::DictItems> dict_items() const;
  intrusive_ptr<CustomClassHolder> object() const;
  const std::string& class_name() const;
  template <class T>
  intrusive_ptr<T> toCustomClass() const {
    T* const found = dynamic_cast<T*>(object().get());
    RL_CHECK(found != nullptr, "the object is a ", class_name());
    return intrusive_ptr<T>(found);
  }

  // Calls f(tensor) for each tensor in it, also for undefined ones; in lists and tuples, too.
  template <class F>
  void for_each_tensor(const F& f) const {
    if (kind_ == Kind::Tensor) {
      f(std::as_const(payload_.tensor));
    } else if (kind_ > Kind::Tensor) {
      visit([](const Tensor& t, const void* with) { (*static_cast<const F*>(with))(t); }, &f);
    }
  }
  // Puts f(tensor) in the place of each tensor of an op's argument that is defined.
  template <class F>
  void change_tensors(const F& f) {
    change([](const Tensor& t, const void* with) { return (*static_cast<const F*>(with))(t); }, &f);
  }

 private:
#define RL_KIND(T, kind) \
  static constexpr Kind kind_of(const T*) { return Kind::kind; }
  RL_KIND(Tensor, Tensor)
  RL_FOR_EACH_VALUE_IN_PLACE(RL_KIND)
  RL_FOR_EACH_COUNTED_VALUE(RL_KIND)
#undef RL_KIND
  Value(Kind kind, CustomClassHolder* counted) : kind_(kind) { payload_.counted = counted; }
  template <class T>
  static Value box(Kind kind, T v);
  template <class T>
  const T& unbox() const;
  template <class T>
  std::vector<T> items_as() const;
  template <class T>
  T get_pointer() const;
  Scalar scalar() const;
  template <class T>
  void expect() const;
  [[noreturn]] void refuse(const char* wanted) const;
  bool is_list_of(bool (Value::*is)() const) const;
  void visit(void (*f)(const Tensor&, const void*), const void* with) const;
  void change(Tensor (*f)(const Tensor&, const void*), const void* with);
  void take(Value& o) noexcept {
    std::memcpy(static_cast<void*>(&payload_), &o.payload_, sizeof payload_);
    class_ = o.class_;
    kind_ = std::exchange(o.kind_, Kind::None);
  }
  void destroy() noexcept {
    if (kind_ >= Kind::Tensor) {
      release();
    }
  }
  void release() noexcept;

  union Payload {
    Payload() : integer(0) {}
    ~Payload() {}
    int64_t integer;  // of dtypes, layouts and memory formats, too
    double number;
    Device device;
    Tensor tensor;
    CustomClassHolder* counted;
  };
  Payload payload_;
  uint32_t class_ = 0;  // of an object: the number of its class
  Kind kind_ = Kind::None;
};
static_assert(sizeof(Value) == 16);
using IValue = Value;

}  // namespace rushlight
