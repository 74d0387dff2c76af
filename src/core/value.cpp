// Values: boxing and unboxing. `get` is instantiated here for every type that the op table can ask
// for; a new one is a row of RL_FOR_EACH_COUNTED_VALUE.
#include <rushlight/ivalue.h>

#include <algorithm>

#include "core/small_blocks.h"

namespace rushlight {

CustomClassHolder::~CustomClassHolder() = default;

std::vector<TensorMeta> metas_of(TensorList list) {
  std::vector<TensorMeta> out;
  out.reserve(list.size());
  for (const Tensor& t : list) {
    out.emplace_back(t);
  }
  return out;
}

namespace {

// What values of the table's counted types point to. Nobody changes it while it is shared.
template <class T>
struct Box final : CustomClassHolder {
  explicit Box(T of) : value(std::move(of)) {}
  static void* operator new(size_t size) { return small_allocate(size); }
  static void operator delete(void* p, size_t size) { small_free(p, size); }
  T value;
};

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;

}  // namespace

// ---- making, copying, freeing ----

template <class T>
Value Value::box(Kind kind, T v) {
  return {kind, new Box<T>(std::move(v))};
}
template <class T>
const T& Value::unbox() const {
  return static_cast<const Box<T>*>(payload_.counted)->value;
}

Value::Value(const Value& o) : class_(o.class_), kind_(o.kind_) {
  if (kind_ == Kind::Tensor) {
    new (&payload_.tensor) Tensor(o.payload_.tensor);
    return;
  }
  std::memcpy(static_cast<void*>(&payload_), &o.payload_, sizeof payload_);
  if (kind_ > Kind::Tensor) {
    payload_.counted->retain();
  }
}

namespace {
// Values within values are freed from the outside in, each by the one around it. Those that lie
// deeper than this wait until the outermost has been freed, so that no chain overflows the stack.
constexpr int most_nested = 100;
thread_local int nested __attribute__((tls_model("initial-exec"))) = 0;
thread_local std::vector<CustomClassHolder*>* waiting __attribute__((tls_model("initial-exec"))) =
    nullptr;

void release_nested(CustomClassHolder* counted) noexcept {
  nested++;
  counted->release();
  nested--;
}
void release_counted(CustomClassHolder* counted) noexcept {
  if (nested >= most_nested) {
    if (waiting == nullptr) {
      waiting = new std::vector<CustomClassHolder*>();
    }
    waiting->push_back(counted);
    return;
  }
  release_nested(counted);
  while (nested == 0 && waiting != nullptr) {
    const std::unique_ptr<const std::vector<CustomClassHolder*>> late(
        std::exchange(waiting, nullptr));
    for (CustomClassHolder* const one : *late) {
      release_nested(one);
    }
  }
}
}  // namespace

void Value::release() noexcept {
  if (kind_ == Kind::Tensor) {
    payload_.tensor.~Tensor();
  } else if (kind_ >= Kind::List) {
    release_counted(payload_.counted);
  } else {
    payload_.counted->release();
  }
}

Value::Value(const Tensor& t) : kind_(Kind::Tensor) { new (&payload_.tensor) Tensor(t); }
Value::Value(Tensor&& t) noexcept : kind_(Kind::Tensor) {
  new (&payload_.tensor) Tensor(std::move(t));
}
Value::Value(const Scalar& s) {
  constexpr Kind kinds[] = {Kind::Bool, Kind::Int, Kind::UInt, Kind::Float, Kind::Complex};
  if (s.is_complex()) {
    *this = box(Kind::Complex, s.as<complex<double>>());
    return;
  }
  kind_ = kinds[static_cast<size_t>(s.kind())];
  if (s.is_floating_point()) {
    payload_.number = s.as<double>();
  } else {
    payload_.integer = s.as<int64_t>();
  }
}
Value::Value(ScalarType dtype) : kind_(Kind::Dtype) { payload_.integer = static_cast<int>(dtype); }
Value::Value(Layout layout) : kind_(Kind::Layout) { payload_.integer = static_cast<int>(layout); }
Value::Value(MemoryFormat format) : kind_(Kind::MemoryFormat) {
  payload_.integer = static_cast<int>(format);
}
Value::Value(Device device) : kind_(Kind::Device) { payload_.device = device; }
#define RL_COUNTED(T, kind) \
  Value::Value(T v) : Value(box(Kind::kind, std::move(v))) {}
RL_FOR_EACH_COUNTED_VALUE(RL_COUNTED)
#undef RL_COUNTED
Value::Value(TensorList list) : Value(list.vec()) {}
Value::Value(IntArrayRef list) : Value(DimVector(list)) {}
Value::Value(OptionalIntArrayRef list) {
  if (list.has_value()) {
    *this = Value(DimVector(*list));
  }
}
Value::Value(ArrayRef<Scalar> list) : Value(list.vec()) {}
Value::Value(ArrayRef<double> list) : Value(list.vec()) {}
Value::Value(const char* text) : Value(std::string(text)) {}
Value::Value(std::string_view text) : Value(std::string(text)) {}

Value Value::list(Items items) { return list(make_intrusive<ivalue::ListItems>(std::move(items))); }
Value Value::list(intrusive_ptr<ivalue::ListItems> items) { return {Kind::List, items.leak()}; }
Value Value::tuple(Items items) { return tuple(make_intrusive<ivalue::Tuple>(std::move(items))); }
Value Value::tuple(intrusive_ptr<ivalue::Tuple> items) { return {Kind::Tuple, items.leak()}; }
Value Value::dict(intrusive_ptr<ivalue::DictItems> items) { return {Kind::Dict, items.leak()}; }
Value Value::object(intrusive_ptr<CustomClassHolder> object, ClassName name) {
  Value out(Kind::Object, object.leak());
  out.class_ = name.number;
  return out;
}

// ---- reading ----

namespace {
constexpr const char* kind_names[] = {"None",
                                      "bool",
                                      "int",
                                      "int",
                                      "float",
                                      "dtype",
                                      "layout",
                                      "memory_format",
                                      "device",
                                      "Tensor",
                                      "complex",
                                      "str",
                                      "Generator",
                                      "list of int",
                                      "list of float",
                                      "list of number",
                                      "list of Tensor",
                                      "list of optional Tensor",
                                      "geometry",
                                      "list of geometry",
                                      "TensorOptions",
                                      "list",
                                      "tuple",
                                      "dict",
                                      "object"};
static_assert(std::size(kind_names) == static_cast<size_t>(Value::Kind::Object) + 1);
}  // namespace

const char* Value::kind_name() const { return kind_names[static_cast<size_t>(kind_)]; }
void Value::refuse(const char* wanted) const {
  throw Error(str("a value of type ", kind_name(), " was read as ", wanted));
}
template <class T>
void Value::expect() const {
  if (!is<T>()) {
    refuse(kind_names[static_cast<size_t>(kind_of(static_cast<const T*>(nullptr)))]);
  }
}

bool Value::is_list_of(bool (Value::*is)() const) const {
  if (kind_ != Kind::List || items().empty()) {
    return false;
  }
  for (const Value& item : items()) {
    if (!(item.*is)()) {
      return false;
    }
  }
  return true;
}

template <class T>
std::vector<T> Value::items_as() const {
  std::vector<T> out;
  out.reserve(items().size());
  for (const Value& item : items()) {
    out.push_back(item.get<T>());
  }
  return out;
}

const Tensor& Value::toTensor() const& {
  static const Tensor& undefined = *new Tensor;
  if (kind_ != Kind::Tensor && kind_ != Kind::None) {
    refuse("a Tensor");
  }
  return kind_ == Kind::None ? undefined : payload_.tensor;
}
const std::string& Value::toStringRef() const {
  if (kind_ != Kind::String) {
    refuse("a str");
  }
  return unbox<std::string>();
}

intrusive_ptr<ivalue::ConstantString> Value::toString() const {
  return ivalue::ConstantString::create(toStringRef());
}
std::nullopt_t Value::toNone() const {
  if (!is_none()) {
    refuse("None");
  }
  return std::nullopt;
}

template <class T>
T Value::get() const {
  if constexpr (is_optional<T>) {
    return is_none() ? T() : T(get<typename T::value_type>());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return isScalar() ? make_number(get<Scalar>()) : toTensor();
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return scalar();
  } else if constexpr (std::is_same_v<T, bool>) {
    return scalar().toBool();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return kind_ == Kind::Int ? payload_.integer : scalar().toLong();
  } else if constexpr (std::is_same_v<T, double>) {
    return kind_ == Kind::Float ? payload_.number : scalar().toDouble();
  } else if constexpr (std::is_same_v<T, Device>) {
    expect<T>();
    return payload_.device;
  } else if constexpr (std::is_enum_v<T>) {
    expect<T>();
    return static_cast<T>(payload_.integer);
  } else {
    return get_pointer<T>();
  }
}

Scalar Value::scalar() const {
  switch (kind_) {
    case Kind::Bool:
      return payload_.integer != 0;
    case Kind::Int:
      return payload_.integer;
    case Kind::UInt:
      return static_cast<uint64_t>(payload_.integer);
    case Kind::Float:
      return payload_.number;
    case Kind::Complex:
      return unbox<complex<double>>();
    default:
      refuse("a number");
  }
}

template <class T>
T Value::get_pointer() const {
  const bool many = kind_ == Kind::List || kind_ == Kind::Tuple;
  if constexpr (std::is_same_v<T, Generator>) {
    if (is_none()) {
      return {};
    }
  } else if constexpr (std::is_same_v<T, DimVector>) {
    if (isScalar()) {
      return DimVector({get<int64_t>()});
    }
    if (many) {
      return IntArrayRef(items_as<int64_t>());
    }
  } else if constexpr (is_vector<T>) {
    if constexpr (!std::is_same_v<T, std::vector<TensorMeta>>) {
      if (many) {
        return items_as<typename T::value_type>();
      }
    }
    if constexpr (std::is_same_v<T, std::vector<std::optional<Tensor>>>) {
      if (kind_ == Kind::Tensors) {
        const auto& tensors = unbox<std::vector<Tensor>>();
        return {tensors.begin(), tensors.end()};
      }
    }
  }
  expect<T>();
  return unbox<T>();
}

#define RL_GET(T, ...)                     \
  template RL_API T Value::get<T>() const; \
  template RL_API std::optional<T> Value::get<std::optional<T>>() const;
RL_GET(Tensor)
RL_GET(Scalar)
RL_GET(bool)
RL_GET(int64_t)
RL_GET(double)
RL_FOR_EACH_VALUE_IN_PLACE(RL_GET)
RL_FOR_EACH_COUNTED_VALUE(RL_GET)
#undef RL_GET

// ---- tensors in values ----

void Value::visit(void (*f)(const Tensor&, const void*), const void* with) const {
  if (kind_ == Kind::Tensors) {
    for (const Tensor& t : unbox<std::vector<Tensor>>()) {
      f(t, with);
    }
  } else if (kind_ == Kind::OptionalTensors) {
    for (const std::optional<Tensor>& t : unbox<std::vector<std::optional<Tensor>>>()) {
      f(t ? *t : Tensor(), with);
    }
  } else if (kind_ == Kind::List || kind_ == Kind::Tuple) {
    for (const Value& item : items()) {
      item.for_each_tensor([&](const Tensor& t) { f(t, with); });
    }
  }
}

void Value::change(Tensor (*f)(const Tensor&, const void*), const void* with) {
  const auto change_tensor = [&](Tensor& t) {
    if (t.defined()) {
      t = f(std::as_const(t), with);
    }
  };
  if (kind_ == Kind::Tensor) {
    change_tensor(payload_.tensor);
  } else if (kind_ == Kind::Tensors) {
    auto list = get<std::vector<Tensor>>();
    std::for_each(list.begin(), list.end(), change_tensor);
    *this = Value(std::move(list));
  } else if (kind_ == Kind::OptionalTensors) {
    auto list = get<std::vector<std::optional<Tensor>>>();
    for (std::optional<Tensor>& t : list) {
      if (t) {
        change_tensor(*t);
      }
    }
    *this = Value(std::move(list));
  }
}

// ---- lists, tuples, dicts, objects ----

Value::Items& Value::items() const {
  if (kind_ == Kind::List) {
    return static_cast<ivalue::ListItems*>(payload_.counted)->items;
  }
  if (kind_ != Kind::Tuple) {
    refuse("a list or a tuple");
  }
  return static_cast<ivalue::Tuple*>(payload_.counted)->items;
}
intrusive_ptr<ivalue::ListItems> Value::list_items() const {
  if (kind_ != Kind::List) {
    refuse("a list");
  }
  return intrusive_ptr<ivalue::ListItems>(static_cast<ivalue::ListItems*>(payload_.counted));
}
intrusive_ptr<ivalue::DictItems> Value::dict_items() const {
  if (kind_ != Kind::Dict) {
    refuse("a dict");
  }
  return intrusive_ptr<ivalue::DictItems>(static_cast<ivalue::DictItems*>(payload_.counted));
}
intrusive_ptr<CustomClassHolder> Value::object() const {
  if (kind_ != Kind::Object) {
    refuse("an object");
  }
  return intrusive_ptr<CustomClassHolder>(payload_.counted);
}
const std::string& Value::class_name() const {
  if (kind_ != Kind::Object) {
    refuse("an object");
  }
  return ClassName(class_).text();
}
intrusive_ptr<ivalue::Tuple> Value::toTuple() const {
  if (kind_ != Kind::Tuple) {
    refuse("a tuple");
  }
  return intrusive_ptr<ivalue::Tuple>(static_cast<ivalue::Tuple*>(payload_.counted));
}

const ivalue::Tuple& Value::toTupleRef() const { return *toTuple(); }

namespace {
template <class L>
Value::Items items_of(const L& list) {
  return {list.begin(), list.end()};
}
}  // namespace

Value::Items Value::toListRef() const {
  switch (kind_) {
    case Kind::Ints:
      return items_of(unbox<DimVector>());
    case Kind::Floats:
      return items_of(unbox<std::vector<double>>());
    case Kind::Scalars:
      return items_of(unbox<std::vector<Scalar>>());
    case Kind::Tensors:
      return items_of(unbox<std::vector<Tensor>>());
    case Kind::OptionalTensors:
      return items_of(unbox<std::vector<std::optional<Tensor>>>());
    case Kind::List:
      return items();
    default:
      refuse("a list");
  }
}
std::vector<int64_t> Value::toIntVector() const {
  const auto v = get<DimVector>();
  return {v.begin(), v.end()};
}
List<Tensor> Value::toTensorList() const { return to<List<Tensor>>(); }
List<double> Value::toDoubleList() const { return to<List<double>>(); }
List<int64_t> Value::toIntList() const { return to<List<int64_t>>(); }
List<bool> Value::toBoolList() const { return to<List<bool>>(); }
List<Value> Value::toList() const { return to<List<Value>>(); }

}  // namespace rushlight
