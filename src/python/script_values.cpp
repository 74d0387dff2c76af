// Values of programs from and to Python.
#include "python/script_values.h"

#include <functional>

#include "core/nesting.h"
#include "python/convert.h"
#include "python/types.h"

namespace rushlight::python {

using ProgramObject = intrusive_ptr<rushlight::Object>;
using Kind = Type::Kind;

namespace {

[[noreturn]] void raise_wrong_type(PyObject* o, const Type& type, const std::string& what) {
  raise(PyExc_TypeError,
        str(what, " expected a value of type '", type.annotation(), "' but got ", type_name(o)));
}

IValue::Items items_of(PyObject* o, const std::function<const Type&(size_t)>& type,
                       const std::string& what) {
  IValue::Items out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
    out.push_back(to_script(item.get(), type(static_cast<size_t>(i)), what));
  }
  return out;
}

IValue dict_of(PyObject* o, const Type& key, const Type& value, const std::string& what) {
  auto out = make_intrusive<ivalue::DictItems>();
  Py_ssize_t place = 0;
  PyObject* k = nullptr;
  PyObject* v = nullptr;
  while (PyDict_Next(o, &place, &k, &v) != 0) {
    const Object kept_key = Object::borrow(k);
    const Object kept = Object::borrow(v);
    out->insert(to_script(k, key, what), to_script(v, value, what), true);
  }
  return IValue::dict(std::move(out));
}

// dtypes, layouts and memory formats are numbers in programs; nothing of other objects.
std::optional<int64_t> number_of(PyObject* o, const std::string& what) {
  if (const std::optional<ScalarType> dtype = as_dtype(o)) {
    return graph::number_of(*dtype);
  }
  const std::string_view name = type_name(o);
  if (name.ends_with("layout")) {
    return graph::number_of(to_value(o, Type{Kind::Layout}, what.c_str()).to<Layout>());
  }
  if (name.ends_with("memory_format")) {
    const IValue format = to_value(o, Type{Kind::MemoryFormat}, what.c_str());
    return static_cast<int64_t>(format.to<MemoryFormat>());
  }
  return {};
}

// What Python says a value is, where the program does not ask for a type.
IValue of_any(PyObject* o, const std::string& what) {
  static const Type any{Kind::Any};
  const Nesting deeper;
  const auto each = [](size_t) -> const Type& { return any; };
  if (PyList_Check(o)) {
    return IValue::list(items_of(o, each, what));
  }
  if (PyTuple_Check(o)) {
    return IValue::tuple(items_of(o, each, what));
  }
  if (PyDict_Check(o)) {
    return dict_of(o, any, any, what);
  }
  if (const ProgramObject object = unwrap_object(o)) {
    return object->value();
  }
  if (const std::optional<int64_t> number = number_of(o, what)) {
    return *number;
  }
  // What has an index alone would be that of a device.
  if (PyIndex_Check(o) != 0 && !is_number(o) && !is_tensor(o)) {
    raise_wrong_type(o, any, what);
  }
  return to_value(o, any, what.c_str());
}

// A member of an enum by its name, of whatever Python class.
IValue of_enum(PyObject* o, const Type& type, const std::string& what) {
  const Object name = Object::maybe(PyObject_GetAttrString(o, "name"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    raise_wrong_type(o, type, what);
  }
  const IValue* const member = type.definition->find_constant(text_view(name.get()));
  if (member == nullptr) {
    raise_wrong_type(o, type, what);
  }
  return *member;
}

// An object of a class of Python that has been compiled: its attributes are copied.
IValue of_python_object(PyObject* o, const Type& type, const std::string& what) {
  static PyObject* is_object = nullptr;
  const Object fits = Object::check(
      PyObject_CallFunction(import_attribute(is_object, "rushlight.jit._program", "_is_object_of"),
                            "Os", o, type.definition->name.c_str()));
  if (fits.get() != Py_True || type.definition->unit == nullptr) {
    raise_wrong_type(o, type, what);
  }
  const ProgramObject made = type.definition->unit->create(*type.definition);
  for (size_t i = 0; i < made->slots.size(); i++) {
    const ClassType::Attribute& attribute = type.definition->attributes[i];
    const Object value = Object::check(PyObject_GetAttrString(o, attribute.name.c_str()));
    made->slots[i] = to_script(value.get(), attribute.type, str("'", attribute.name, "'"));
  }
  return made->value();
}

// The first of several types that the value is of.
IValue one_of(PyObject* o, const Type& type, const std::string& what) {
  const IValue plain = of_any(o, what);
  for (const Type& member : type.members()) {
    if (is_of(plain, member)) {
      return to_script(o, member, what);
    }
  }
  for (const Type& member : type.members()) {
    try {
      return to_script(o, member, what);
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }
  raise_wrong_type(o, type, what);
}

// What a list or dict that Python and programs share holds (jit/_containers.py); null of others.
const IValue* shared_items(PyObject* o, const Type& type) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyDict_CheckExact(o)) {
    return nullptr;
  }
  const ProgramObject object = unwrap_object(o);
  const bool holds = object && object->slots.size() == 1 &&
                     object->type->attributes[0].name == "_shared_items" &&
                     object->type->attributes[0].type == type;
  return holds ? &object->slots[0] : nullptr;
}

}  // namespace

IValue to_script(PyObject* o, const Type& type, const std::string& what) {
  switch (type.kind) {
    case Kind::Any:
      return of_any(o, what);
    case Kind::None:
      if (o != Py_None) {
        raise_wrong_type(o, type, what);
      }
      return {};
    case Kind::Tensor:
      if (!is_tensor(o)) {  // a number is none in a program, as an op would take it
        raise_wrong_type(o, type, what);
      }
      return unwrap(o);
    case Kind::Optional:
      return o == Py_None ? IValue() : to_script(o, type.of[0], what);
    case Kind::Union:
      return one_of(o, type, what);
    case Kind::List: {
      if (const IValue* const shared = shared_items(o, type)) {
        return *shared;
      }
      const bool items = PySequence_Check(o) != 0 && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
                         !is_tensor(o) && !unwrap_object(o);
      if (!items) {
        raise_wrong_type(o, type, what);
      }
      const Object list = Object::check(PySequence_Fast(o, "a list"));
      const auto each = [&](size_t) -> const Type& { return type.of[0]; };
      return IValue::list(items_of(list.get(), each, what));
    }
    case Kind::Tuple:
    case Kind::NamedTuple: {
      if ((!PyTuple_Check(o) && !PyList_Check(o)) ||
          static_cast<size_t>(PySequence_Fast_GET_SIZE(o)) != type.of.size()) {
        raise_wrong_type(o, type, what);
      }
      const auto each = [&](size_t i) -> const Type& { return type.of[i]; };
      return IValue::tuple(items_of(o, each, what));
    }
    case Kind::Dict:
      if (const IValue* const shared = shared_items(o, type)) {
        return *shared;
      }
      if (!PyDict_Check(o)) {
        raise_wrong_type(o, type, what);
      }
      return dict_of(o, type.of[0], type.of[1], what);
    case Kind::Class:
    case Kind::Interface: {
      const ProgramObject object = unwrap_object(o);
      if (!object && type.is(Kind::Class) && type.definition->form == ClassType::Form::Class) {
        return of_python_object(o, type, what);
      }
      if (!object && type.is(Kind::Interface) && type.definition->unit != nullptr) {
        static PyObject* class_of = nullptr;
        const Object name = Object::check(PyObject_CallOneArg(
            import_attribute(class_of, "rushlight.jit._program", "_class_of"), o));
        ClassType* const found = type.definition->unit->find_class(text_view(name.get()));
        if (found != nullptr && Type::of_class(*found).is_subtype_of(type)) {
          return of_python_object(o, Type::of_class(*found), what);
        }
      }
      if (!object || !Type::of_class(*object->type).is_subtype_of(type)) {
        raise_wrong_type(o, type, what);
      }
      return object->value();
    }
    case Kind::Enum:
      return of_enum(o, type, what);
    case Kind::Int:
      if (const std::optional<int64_t> number = number_of(o, what)) {
        return *number;
      }
      return to_value(o, type, what.c_str());
    case Kind::Complex: {
      const IValue number = to_value(o, Type{Kind::Scalar}, what.c_str());
      return Scalar(number.toScalar().to<complex<double>>());
    }
    default:
      return to_value(o, type, what.c_str());
  }
}

IValue to_argument(PyObject* o, const Type& type, const std::string& what) {
  try {
    return to_script(o, type, what);
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
      throw;
    }
  }
  PyObject* kind = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&kind, &value, &trace);
  const Object kept[] = {Object::maybe(kind), Object::maybe(value), Object::maybe(trace)};
  const Object text = Object::check(PyObject_Str(value));
  throw Error(string_of(text.get()));
}

// ---- to Python ----

namespace {

PyObject* list_from(const IValue& value, const Type& item) {
  const IValue::Items items = value.toListRef();
  Object out = Object::check(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); i++) {
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(from_script(items[i], item)));
  }
  return out.release();
}

PyObject* tuple_from(const IValue& value, const Type& type) {
  const IValue::Items& items = value.items();
  const bool typed = type.is_tuple() && type.of.size() == items.size();
  Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); i++) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     check(from_script(items[i], typed ? type.of[i] : Type())));
  }
  if (!typed || !type.is(Kind::NamedTuple)) {
    return out.release();
  }
  static PyObject* make = nullptr;
  Object names = Object::check(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); i++) {
    const std::string& name = type.definition->attributes[i].name;
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i),
                     check(PyUnicode_FromString(name.c_str())));
  }
  return check(
      PyObject_CallFunction(import_attribute(make, "rushlight.jit._program", "_named_tuple"), "sOO",
                            type.definition->name.c_str(), names.get(), out.get()));
}

PyObject* dict_from(const IValue& value, const Type& type) {
  const bool typed = type.is(Kind::Dict);
  Object out = Object::check(PyDict_New());
  for (const auto& [key, item] : value.dict_items()->pairs) {
    const Object k = Object::check(from_script(key, typed ? type.of[0] : Type()));
    const Object v = Object::check(from_script(item, typed ? type.of[1] : Type()));
    check(PyDict_SetItem(out.get(), k.get(), v.get()));
  }
  return out.release();
}

PyObject* enum_from(const rushlight::Object& member) {
  static PyObject* make = nullptr;
  const ClassType& type = *member.type;
  Object members = Object::check(PyList_New(0));
  for (const ClassType::Named& one : type.constants) {
    const rushlight::Object* const object = object_of(one.second);
    const Object value = Object::check(from_script(object->slots.at(1), Type()));
    const Object row = Object::check(Py_BuildValue("(sO)", one.first.c_str(), value.get()));
    check(PyList_Append(members.get(), row.get()));
  }
  const std::string name = member.slots.at(0).toStringRef();
  return check(
      PyObject_CallFunction(import_attribute(make, "rushlight.jit._program", "_enum_member"), "sOs",
                            type.name.c_str(), members.get(), name.c_str()));
}

// The type of a tuple among those that a value may be of.
const Type& member_type_of(const IValue& value, const Type& type) {
  if (type.is(Kind::Optional) || type.is(Kind::Union)) {
    for (const Type& member : type.of) {
      if (!member.is(Kind::None) && is_of(value, member)) {
        return member;
      }
    }
  }
  return type;
}

}  // namespace

PyObject* from_script(const IValue& value, const Type& declared) {
  const Nesting deeper;
  const Type& type = member_type_of(value, declared);
  if (value.isTuple()) {
    return tuple_from(value, type);
  }
  if (value.isList()) {
    return list_from(value, type.is(Kind::List) ? type.of[0] : Type());
  }
  if (value.isGenericDict()) {
    return dict_from(value, type);
  }
  if (rushlight::Object* const object = object_of(value)) {
    if (object->type->form == ClassType::Form::Enum) {
      return enum_from(*object);
    }
    static PyObject* make = nullptr;
    const Object handle = Object::check(wrap_object(ProgramObject(object)));
    return check(PyObject_CallOneArg(
        import_attribute(make, "rushlight.jit._program", "_object_from"), handle.get()));
  }
  return from_value(value);
}

}  // namespace rushlight::python
