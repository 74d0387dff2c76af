// Values from and to Python: by the type that a schema says, or by one that is known at run time.
#include "python/values.h"

#include "python/bindings.h"
#include "python/convert.h"
#include "python/parser.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

// ---- by the type of a schema ----

// Nothing where the object is no value of the type.
std::optional<Value> plain_value(PyObject* o, BaseType base) {
  switch (base) {
    case BaseType::Tensor:
      // Numbers go to any op, for derivatives take logarithms of bases, and `from_value` shows
      // modes numbers.
      return is_tensor(o)   ? std::optional<Value>(unwrap(o))
             : is_number(o) ? std::optional<Value>(make_number(to_scalar(o)))
                            : std::nullopt;
    case BaseType::Int:
      return is_int(o) ? std::optional<Value>(to_int(o)) : std::nullopt;
    case BaseType::Float:
      return is_float(o) ? std::optional<Value>(to_float(o)) : std::nullopt;
    case BaseType::Bool:
      return is_bool(o) ? std::optional<Value>(to_scalar(o)) : std::nullopt;
    case BaseType::Scalar:
      return is_scalar(o) ? std::optional<Value>(to_scalar(o)) : std::nullopt;
    case BaseType::String:
      return PyUnicode_Check(o) ? std::optional<Value>(text_view(o)) : std::nullopt;
    case BaseType::ScalarType:
      return as_dtype(o);
    case BaseType::Device:
      return is_device(o) ? std::optional<Value>(as_device(o)) : std::nullopt;
    case BaseType::Layout:
      return as_layout(o);
    case BaseType::MemoryFormat:
      return as_memory_format(o);
    case BaseType::Generator:
      return is_generator(o) ? std::optional<Value>(unwrap_generator(o)) : std::nullopt;
    case BaseType::Options:
    case BaseType::Other:
      break;
  }
  return std::nullopt;
}

// An argument or a result of the schema.
struct Place {
  const OpInfo& op;
  const TypeInfo& type;
  const char* name;

  [[noreturn]] void raise_wrong_type(PyObject* o) const {
    raise(PyExc_TypeError,
          str(op.space, "::", op.name, "() expected a value of type '", type_text(type),
              "' for argument '", name, "' but got ", type_name(o)));
  }
};

template <class T, class F>
std::vector<T> list_of(PyObject* o, const Place& place, F convert) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) {
    place.raise_wrong_type(o);
  }
  std::vector<T> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
    out.push_back(convert(item.get()));
  }
  return out;
}

// What is beyond 64 bits is a RuntimeError of the registry's.
int64_t integer_of(PyObject* o, const Place& place) {
  try {
    return to_int(o);
  } catch (const ValueError& error) {
    RL_CHECK(false, place.op.space, "::", place.op.name, "(): argument '", place.name,
             "': ", error.what());
  }
}

Value to_list(PyObject* o, const Place& place) {
  const auto tensor = [&](PyObject* item) {
    return is_tensor(item) ? unwrap(item) : (place.raise_wrong_type(item), Tensor());
  };
  const auto integer = [&](PyObject* item) {
    return is_int(item) ? integer_of(item, place) : (place.raise_wrong_type(item), int64_t{0});
  };
  switch (place.type.base) {
    case BaseType::Tensor:
      if (place.type.element_optional) {
        return Value(list_of<std::optional<Tensor>>(o, place, [&](PyObject* item) {
          return item == Py_None ? std::nullopt : std::optional(tensor(item));
        }));
      }
      return Value(list_of<Tensor>(o, place, tensor));
    case BaseType::Int:
      return is_int(o) ? Value(DimVector({integer_of(o, place)}))
                       : Value(DimVector(list_of<int64_t>(o, place, integer)));
    case BaseType::Scalar:
      return Value(list_of<Scalar>(o, place, [&](PyObject* item) {
        return is_scalar(item) ? to_scalar(item) : (place.raise_wrong_type(item), Scalar());
      }));
    default:
      break;
  }
  return Value(list_of<double>(o, place, [&](PyObject* item) {
    return is_float(item) ? to_float(item) : (place.raise_wrong_type(item), 0.0);
  }));
}

}  // namespace

Value to_value(PyObject* o, const OpInfo& op, const TypeInfo& type, const char* name) {
  const Place place{op, type, name};
  if (type.of != nullptr) {
    return to_value(o, *type.of, str(op.space, "::", op.name, "() argument '", name, "'").c_str());
  }
  if (o == Py_None && type.optional) {
    return {};
  }
  if (type.is_list) {
    return to_list(o, place);
  }
  if (type.base == BaseType::Int && is_int(o)) {
    return integer_of(o, place);
  }
  if (std::optional<Value> out = plain_value(o, type.base)) {
    return *std::move(out);
  }
  place.raise_wrong_type(o);
}

namespace {

// ---- by a type that is known at run time ----

[[noreturn]] void raise_wrong_type(PyObject* o, const Type& type, const char* what) {
  raise(PyExc_TypeError,
        str(what, " expected a value of type '", type.str(), "' but got ", type_name(o)));
}

Value::Items items_from(PyObject* o, const Type& type, const char* what) {
  Value::Items out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
    out.push_back(to_value(item.get(), type, what));
  }
  return out;
}

Value from_dict(PyObject* o, const Type& key, const Type& value, const char* what) {
  auto out = make_intrusive<ivalue::DictItems>();
  Py_ssize_t place = 0;
  PyObject* k = nullptr;
  PyObject* v = nullptr;
  while (PyDict_Next(o, &place, &k, &v) != 0) {
    const Object kept_key = Object::borrow(k);
    const Object kept = Object::borrow(v);
    out->insert(to_value(k, key, what), to_value(v, value, what), true);
  }
  return Value::dict(std::move(out));
}

Value from_any(PyObject* o, const char* what) {
  static const Type any = {Type::Kind::Any};
  if (o == Py_None) {
    return {};
  }
  if (is_tensor(o)) {
    return unwrap(o);
  }
  if (const Value* const object = object_value(o)) {
    return *object;
  }
  if (PyUnicode_Check(o)) {
    return std::string(text_view(o));
  }
  if (PyDict_Check(o)) {
    return from_dict(o, any, any, what);
  }
  if (PyTuple_Check(o)) {
    return Value::tuple(items_from(o, any, what));
  }
  if (PyList_Check(o)) {
    return Value::list(items_from(o, any, what));
  }
  if (const std::optional<ScalarType> t = as_dtype(o)) {
    return *t;
  }
  if (is_number(o)) {
    return to_scalar(o);
  }
  if (is_device(o)) {
    return as_device(o);
  }
  return python_object(o);
}

// The type that a schema has for a kind; nothing for containers and objects.
std::optional<BaseType> base_of(Type::Kind kind) {
  constexpr std::pair<Type::Kind, BaseType> rows[] = {
      {Type::Kind::Tensor, BaseType::Tensor},
      {Type::Kind::Int, BaseType::Int},
      {Type::Kind::Float, BaseType::Float},
      {Type::Kind::Bool, BaseType::Bool},
      {Type::Kind::Scalar, BaseType::Scalar},
      {Type::Kind::String, BaseType::String},
      {Type::Kind::ScalarType, BaseType::ScalarType},
      {Type::Kind::Device, BaseType::Device},
      {Type::Kind::Layout, BaseType::Layout},
      {Type::Kind::MemoryFormat, BaseType::MemoryFormat},
      {Type::Kind::Generator, BaseType::Generator},
  };
  for (const auto& [of, base] : rows) {
    if (of == kind) {
      return base;
    }
  }
  return std::nullopt;
}

}  // namespace

Value to_value(PyObject* o, const Type& type, const char* what) {
  switch (type.kind) {
    case Type::Kind::Any:
      return from_any(o, what);
    case Type::Kind::Optional:
      return o == Py_None ? Value() : to_value(o, type.of[0], what);
    case Type::Kind::List: {
      const Type& item = type.of[0];
      if (item.kind == Type::Kind::Int && is_int(o)) {
        return std::vector<int64_t>{to_int(o)};
      }
      if (!PyList_Check(o) && !PyTuple_Check(o)) {
        raise_wrong_type(o, type, what);
      }
      return Value::list(items_from(o, item, what));
    }
    case Type::Kind::Tuple: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) {
        raise_wrong_type(o, type, what);
      }
      Value::Items out;
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      if (!type.of.empty() && static_cast<size_t>(n) != type.of.size()) {
        raise_wrong_type(o, type, what);
      }
      for (Py_ssize_t i = 0; i < n; i++) {
        const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
        out.push_back(
            to_value(item.get(), type.of.empty() ? Type() : type.of[static_cast<size_t>(i)], what));
      }
      return Value::tuple(std::move(out));
    }
    case Type::Kind::Dict:
      if (!PyDict_Check(o)) {
        raise_wrong_type(o, type, what);
      }
      return from_dict(o, type.of[0], type.of[1], what);
    case Type::Kind::Object: {
      const Value* const object = object_value(o);
      if (object == nullptr || !object->isObject() || object->class_name() != type.name) {
        raise_wrong_type(o, type, what);
      }
      return *object;
    }
    default:
      break;
  }
  const std::optional<BaseType> base = base_of(type.kind);
  if (!base) {  // of what only functions of Python know
    return from_any(o, what);
  }
  if (std::optional<Value> out = plain_value(o, *base)) {
    return *std::move(out);
  }
  raise_wrong_type(o, type, what);
}

// ---- to Python ----

namespace {

template <class T, class F>
PyObject* list_from(const T& list, const F& convert) {
  Object out = Object::check(PyList_New(0));
  for (const auto& item : list) {
    check(PyList_Append(out.get(), Object::check(convert(item)).get()));
  }
  return out.release();
}

PyObject* dict_from(const ivalue::DictItems& items) {
  Object out = Object::check(PyDict_New());
  for (const auto& [key, item] : items.pairs) {
    const Object k = Object::check(from_value(key));
    const Object v = Object::check(from_value(item));
    check(PyDict_SetItem(out.get(), k.get(), v.get()));
  }
  return out.release();
}

PyObject* from_tensor(const Tensor& t) {
  return t.defined() && t.impl()->is_wrapped_number() ? wrap_number(t.item()) : wrap(t);
}

}  // namespace

PyObject* from_value(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::None:
      Py_RETURN_NONE;
    case Value::Kind::Bool:
    case Value::Kind::Int:
    case Value::Kind::UInt:
    case Value::Kind::Float:
    case Value::Kind::Complex:
      return wrap_number(value.toScalar());
    case Value::Kind::Dtype:
      return wrap(value.get<ScalarType>());
    case Value::Kind::Layout:
      return wrap(value.get<Layout>());
    case Value::Kind::MemoryFormat:
      return wrap(value.get<MemoryFormat>());
    case Value::Kind::Device:
      return wrap(value.get<Device>());
    case Value::Kind::Tensor:
      return from_tensor(value.toTensor());
    case Value::Kind::String:
      return text(value.toStringRef()).release();
    case Value::Kind::Generator:
      return wrap(value.get<Generator>());
    case Value::Kind::Ints:
    case Value::Kind::Floats:
    case Value::Kind::Scalars:
    case Value::Kind::Tensors:
    case Value::Kind::OptionalTensors:
    case Value::Kind::List:
      return list_from(value.toListRef(), from_value);
    case Value::Kind::Tuple:
      return tuple_from(value.items());
    case Value::Kind::Dict:
      return dict_from(*value.dict_items());
    case Value::Kind::Object:
      return from_object(value);
    case Value::Kind::Meta:
    case Value::Kind::Metas:
    case Value::Kind::Options:
      break;
  }
  raise(PyExc_TypeError, str("a ", value.kind_name(), " has no form in Python"));
}

PyObject* tuple_from(const std::vector<Value>& values) {
  Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); i++) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(from_value(values[i])));
  }
  return out.release();
}

PyObject* from_results(const std::vector<Value>& results) {
  if (results.empty()) {
    Py_RETURN_NONE;
  }
  return results.size() == 1 ? from_value(results[0]) : tuple_from(results);
}

}  // namespace rushlight::python
