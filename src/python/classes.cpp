// Objects of C++ classes (torch::class_) in Python: their type, members and calls.

#include <rushlight/custom_class.h>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/values.h"

namespace rushlight::python {

namespace {

// ---- objects of bound classes: _library/classes.py makes a subclass for each ----

struct ScriptObject {
  PyObject_HEAD Value value;
};
Value& value_of(PyObject* o) { return reinterpret_cast<ScriptObject*>(o)->value; }

PyObject* object_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const o = type->tp_alloc(type, 0);
  if (o != nullptr) {
    new (&value_of(o)) Value();
  }
  return o;
}
void object_dealloc(PyObject* o) {
  value_of(o).~Value();
  Py_TYPE(o)->tp_free(o);
}
// Two are equal where they stand for one object, as every call gives new ones.
PyObject* object_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, Py_TYPE(a)) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return translate_errors([&] {
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
  type.tp_doc =
      "An object of a C++ class (torch::class_).\n"
      "\n"
      "For an example see `classes`.";
  type.tp_basicsize = sizeof(ScriptObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_new = object_new;
  type.tp_dealloc = object_dealloc;
  type.tp_richcompare = object_compare;
  type.tp_hash = object_hash;
  return type;
}();

}  // namespace

namespace {
struct PythonObject final : CustomClassHolder {
  explicit PythonObject(PyObject* o) : object(Py_NewRef(o)) {}
  ~PythonObject() override { drop_reference(object); }
  PyObject* object;
};
ClassName name_of_python_objects() {
  static const ClassName name("PyObject");
  return name;
}
}  // namespace

Value python_object(PyObject* o) {
  return Value::object(make_intrusive<PythonObject>(o), name_of_python_objects());
}

const Value* object_value(PyObject* o) {
  return PyObject_TypeCheck(o, &object_type) ? &value_of(o) : nullptr;
}
PyObject* from_object(const Value& value) {
  if (const auto* of_python = dynamic_cast<const PythonObject*>(value.object().get())) {
    return Py_NewRef(of_python->object);
  }
  static PyObject* find = nullptr;
  const Object type = Object::check(
      PyObject_CallFunction(import_attribute(find, "rushlight._library.classes", "class_of"), "s",
                            value.class_name().c_str()));
  PyObject* const out =
      check(object_new(reinterpret_cast<PyTypeObject*>(type.get()), nullptr, nullptr));
  value_of(out) = value;
  return out;
}

// ---- members ----

namespace {

const library::ClassRecord& class_at(PyObject* name) {
  const library::ClassRecord* const found = library::find_class(std::string(text_view(name)));
  RL_CHECK(found != nullptr, "there is no C++ class '", text_view(name), "'");
  return *found;
}

PyObject* default_of(const arg& argument) {
  const Object value = argument.fallback_ ? Object::check(from_value(*argument.fallback_))
                                          : Object::borrow(Py_Ellipsis);
  return Py_BuildValue("(sO)", argument.name_.c_str(), value.get());
}

// ([(method, doc, is static, [(parameter, default or ...)])], [(property, may be written)]) of a
// class; None where there is no such class.
PyObject* class_members(PyObject*, PyObject* name) {
  return translate_errors([&]() -> PyObject* {
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
    stack.push_back(to_value(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)),
                             kernel.arguments[i], what.c_str()));
  }
  {
    const WithoutGil no_gil;
    (*kernel.function)(nullptr, stack);
  }
  return from_results(stack);
}

// _class_call(class, number of the method, arguments)
PyObject* class_call(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
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
  return translate_errors([&]() -> PyObject* {
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
