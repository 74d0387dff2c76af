// Values of no fixed type from and to Python, and the Python type that objects of C++ classes have.
#include "python/ivalue.h"

#include <rushlight/custom_class.h>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/convert.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

// ---- objects of bound classes: _classes.py makes a subclass for each ----

struct ScriptObject {
  PyObject_HEAD IValue value;
};
IValue& value_of(PyObject* o) { return reinterpret_cast<ScriptObject*>(o)->value; }

PyObject* object_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const o = type->tp_alloc(type, 0);
  if (o != nullptr) {
    new (&value_of(o)) IValue();
  }
  return o;
}
void object_dealloc(PyObject* o) {
  value_of(o).~IValue();
  Py_TYPE(o)->tp_free(o);
}
// Two are equal where they stand for one object, as every call gives new ones.
PyObject* object_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, Py_TYPE(a)) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return guarded([&] {
    const bool same = value_of(a).object() == value_of(b).object();
    return PyBool_FromLong(same == (op == Py_EQ));
  });
}
Py_hash_t object_hash(PyObject* o) {
  return value_of(o).isObject() ? hash_pointer(value_of(o).object().get()) : hash_pointer(o);
}

PyTypeObject object_type = [] {
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "rushlight._C.ScriptObject";
  type.tp_doc = "An object of a C++ class (torch::class_).";
  type.tp_basicsize = sizeof(ScriptObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_new = object_new;
  type.tp_dealloc = object_dealloc;
  type.tp_richcompare = object_compare;
  type.tp_hash = object_hash;
  return type;
}();

bool is_object(PyObject* o) { return PyObject_TypeCheck(o, &object_type); }

PyObject* from_object(const IValue& value) {
  static PyObject* find = nullptr;
  const Object type = Object::check(PyObject_CallFunction(
      imported(find, "rushlight._classes", "class_of"), "s", value.class_name().c_str()));
  PyObject* const out =
      check(object_new(reinterpret_cast<PyTypeObject*>(type.get()), nullptr, nullptr));
  value_of(out) = value;
  return out;
}

// ---- from Python ----

[[noreturn]] void wrong(PyObject* o, const Type& type, const char* what) {
  raise(PyExc_TypeError,
        str(what, " expected a value of type '", type.str(), "' but got ", type_name(o)));
}

// A list whose items are all of one type that ops take lists of is that of ops.
IValue list_of(IValue::Items items) {
  const auto all = [&](auto is) {
    for (const IValue& item : items) {
      if (!is(item)) {
        return false;
      }
    }
    return !items.empty();
  };
  IValue out = IValue::list(std::make_shared<IValue::Items>(std::move(items)));
  items = *out.items();
  if (all([](const IValue& v) { return v.isTensor(); }) ||
      all([](const IValue& v) { return v.isInt(); }) ||
      all([](const IValue& v) { return v.isDouble(); })) {
    return out.flattened();
  }
  return out;
}

IValue::Items items_from(PyObject* o, const Type& type, const char* what) {
  IValue::Items out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
    out.push_back(to_ivalue(item.get(), type, what));
  }
  return out;
}

IValue from_dict(PyObject* o, const Type& key, const Type& value, const char* what) {
  auto out = std::make_shared<ivalue::DictItems>();
  Py_ssize_t place = 0;
  PyObject* k = nullptr;
  PyObject* v = nullptr;
  while (PyDict_Next(o, &place, &k, &v) != 0) {
    const Object kept_key = Object::borrow(k);
    const Object kept = Object::borrow(v);
    out->insert(to_ivalue(k, key, what), to_ivalue(v, value, what), true);
  }
  return IValue::dict(std::move(out));
}

IValue from_any(PyObject* o, const char* what) {
  static const Type any = {Type::Kind::Any};
  if (o == Py_None) {
    return {};
  }
  if (is_tensor(o)) {
    return unwrap(o);
  }
  if (is_object(o)) {
    return value_of(o);
  }
  if (PyUnicode_Check(o)) {
    return std::string(text_view(o));
  }
  if (PyDict_Check(o)) {
    return from_dict(o, any, any, what);
  }
  if (PyTuple_Check(o)) {
    return IValue::tuple(items_from(o, any, what));
  }
  if (PyList_Check(o)) {
    return list_of(items_from(o, any, what));
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
  wrong(o, any, what);
}

Value from_plain(PyObject* o, BaseType base, const char* what) {
  TypeInfo type;
  type.base = base;
  OpInfo named = {};
  named.space = "";
  named.name = what;
  named.overload = "";
  return to_value(o, named, type, "");
}

}  // namespace

IValue to_ivalue(PyObject* o, const Type& type, const char* what) {
  switch (type.kind) {
    case Type::Kind::Any:
      return from_any(o, what);
    case Type::Kind::Optional:
      return o == Py_None ? IValue() : to_ivalue(o, type.of[0], what);
    case Type::Kind::List: {
      const Type& item = type.of[0];
      if (item.kind == Type::Kind::Int && is_int(o)) {
        return std::vector<int64_t>{to_int(o)};
      }
      if (!PyList_Check(o) && !PyTuple_Check(o)) {
        wrong(o, type, what);
      }
      return IValue::list(std::make_shared<IValue::Items>(items_from(o, item, what)));
    }
    case Type::Kind::Tuple: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) {
        wrong(o, type, what);
      }
      IValue::Items out;
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      if (!type.of.empty() && static_cast<size_t>(n) != type.of.size()) {
        wrong(o, type, what);
      }
      for (Py_ssize_t i = 0; i < n; i++) {
        const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
        out.push_back(to_ivalue(item.get(),
                                type.of.empty() ? Type() : type.of[static_cast<size_t>(i)], what));
      }
      return IValue::tuple(std::move(out));
    }
    case Type::Kind::Dict:
      if (!PyDict_Check(o)) {
        wrong(o, type, what);
      }
      return from_dict(o, type.of[0], type.of[1], what);
    case Type::Kind::Object:
      if (!is_object(o) || !value_of(o).isObject() || value_of(o).class_name() != type.name) {
        wrong(o, type, what);
      }
      return value_of(o);
    case Type::Kind::Tensor:
      return from_plain(o, BaseType::Tensor, what);
    case Type::Kind::Int:
      return from_plain(o, BaseType::Int, what);
    case Type::Kind::Float:
      return from_plain(o, BaseType::Float, what);
    case Type::Kind::Bool:
      return from_plain(o, BaseType::Bool, what);
    case Type::Kind::Scalar:
      return from_plain(o, BaseType::Scalar, what);
    case Type::Kind::String:
      return from_plain(o, BaseType::String, what);
    case Type::Kind::ScalarType:
      return from_plain(o, BaseType::ScalarType, what);
    case Type::Kind::Device:
      return from_plain(o, BaseType::Device, what);
    case Type::Kind::Layout:
      return from_plain(o, BaseType::Layout, what);
    case Type::Kind::MemoryFormat:
      return from_plain(o, BaseType::MemoryFormat, what);
    case Type::Kind::Generator:
      return from_plain(o, BaseType::Generator, what);
    default:  // of programs of graphs alone
      wrong(o, type, what);
  }
}

// ---- to Python ----

PyObject* from_ivalue(const IValue& value) {
  if (value.isGenericDict()) {
    Object out = Object::check(PyDict_New());
    for (const auto& [key, item] : value.dict_items()->pairs) {
      const Object k = Object::check(from_ivalue(key));
      const Object v = Object::check(from_ivalue(item));
      check(PyDict_SetItem(out.get(), k.get(), v.get()));
    }
    return out.release();
  }
  if (value.isList()) {
    const IValue::Items items = value.toListRef();
    Object out = Object::check(PyList_New(0));
    for (const IValue& item : items) {
      const Object v = Object::check(from_ivalue(item));
      check(PyList_Append(out.get(), v.get()));
    }
    return out.release();
  }
  if (value.isTuple()) {
    const IValue::Items& items = *value.items();
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; i < items.size(); i++) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(from_ivalue(items[i])));
    }
    return out.release();
  }
  if (value.isTensor() && !value.toTensor().defined()) {
    Py_RETURN_NONE;
  }
  return value.isObject() ? from_object(value) : from_value(value.value());
}

PyObject* from_stack(const Stack& stack) {
  if (stack.empty()) {
    Py_RETURN_NONE;
  }
  return from_ivalue(stack.size() == 1 ? stack[0] : IValue::tuple(stack));
}

// ---- classes ----

namespace {

const library::ClassRecord& class_at(PyObject* name) {
  const library::ClassRecord* const found = library::find_class(std::string(text_view(name)));
  RL_CHECK(found != nullptr, "there is no C++ class '", text_view(name), "'");
  return *found;
}

PyObject* default_of(const arg& argument) {
  const Object value = argument.fallback_ ? Object::check(from_ivalue(*argument.fallback_))
                                          : Object::borrow(Py_Ellipsis);
  return Py_BuildValue("(sO)", argument.name_.c_str(), value.get());
}

// ([(method, doc, is static, [(parameter, default or ...)])], [(property, may be written)]) of a
// class; None where there is no such class.
PyObject* class_members(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const library::ClassRecord* const found = library::find_class(std::string(text_view(name)));
    if (found == nullptr) {
      Py_RETURN_NONE;
    }
    const Object methods = Object::check(PyList_New(0));
    for (const auto& method : found->methods) {
      const Object arguments = Object::check(PyList_New(0));
      for (const arg& argument : method->arguments) {
        const Object row = Object::check(default_of(argument));
        check(PyList_Append(arguments.get(), row.get()));
      }
      const Object row =
          Object::check(Py_BuildValue("(ssOO)", method->name.c_str(), method->doc.c_str(),
                                      method->is_static ? Py_True : Py_False, arguments.get()));
      check(PyList_Append(methods.get(), row.get()));
    }
    const Object properties = Object::check(PyList_New(0));
    for (const auto& property : found->properties) {
      const bool written = property->set.function != nullptr;
      const Object row = Object::check(
          Py_BuildValue("(sO)", property->name.c_str(), written ? Py_True : Py_False));
      check(PyList_Append(properties.get(), row.get()));
    }
    return Py_BuildValue("(OO)", methods.get(), properties.get());
  });
}

PyObject* run_kernel(const library::Kernel& kernel, const std::string& what, PyObject* values) {
  const size_t n = kernel.arguments.size();
  if (static_cast<size_t>(PyTuple_GET_SIZE(values)) != n) {
    raise(PyExc_TypeError,
          str(what, "() takes ", n, " arguments but ", PyTuple_GET_SIZE(values), " were given"));
  }
  Stack stack;
  for (size_t i = 0; i < n; i++) {
    stack.push_back(to_ivalue(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)),
                              kernel.arguments[i], what.c_str()));
  }
  {
    const WithoutGil no_gil;
    (*kernel.function)(nullptr, stack);
  }
  return from_stack(stack);
}

// _class_call(class, number of the method, arguments)
PyObject* class_call(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* name;
    PyObject* values;
    Py_ssize_t place;
    if (!PyArg_ParseTuple(args, "UnO!:_class_call", &name, &place, &PyTuple_Type, &values)) {
      throw PythonError();
    }
    const auto method = class_at(name).methods.at(static_cast<size_t>(place));
    return run_kernel(method->kernel, method->name, values);
  });
}

// _class_property(class, number of the property, (object,) or (object, value to set))
PyObject* class_property(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* name;
    PyObject* values;
    Py_ssize_t place;
    if (!PyArg_ParseTuple(args, "UnO!:_class_property", &name, &place, &PyTuple_Type, &values)) {
      throw PythonError();
    }
    const auto property = class_at(name).properties.at(static_cast<size_t>(place));
    return run_kernel(PyTuple_GET_SIZE(values) == 1 ? property->get : property->set, property->name,
                      values);
  });
}

PyMethodDef functions[] = {
    {"_class_members", class_members, METH_O, "What a C++ class has."},
    {"_class_call", class_call, METH_VARARGS, "Calls a method of a C++ class."},
    {"_class_property", class_property, METH_VARARGS, "Gets or sets a property."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_classes(PyObject* module) {
  ready(object_type);
  add(module, "ScriptObject", reinterpret_cast<PyObject*>(&object_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
