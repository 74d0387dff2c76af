// Programs of TorchScript: archives are loaded, methods are called, attributes are read and set.
// What a program looks like in Python is python/rushlight/jit/_program.py.
#include <rushlight/script.h>

#include "python/bindings.h"
#include "python/convert.h"
#include "python/files.h"
#include "python/graph.h"
#include "python/script_values.h"
#include "python/types.h"
#include "script/code_writer.h"
#include "script/export.h"
#include "script/import.h"

namespace rushlight::python {

namespace {

using Handle = intrusive_ptr<rushlight::Object>;

struct HandleObject {
  PyObject_HEAD Handle object;
};
rushlight::Object& object_at(PyObject* self) {
  return *reinterpret_cast<HandleObject*>(self)->object;
}
extern PyTypeObject handle_type;

void delete_handle(PyObject* self) {
  reinterpret_cast<HandleObject*>(self)->object.~Handle();
  Py_TYPE(self)->tp_free(self);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, &handle_type) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((&object_at(a) == &object_at(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return hash_pointer(&object_at(self)); }

// ---- what an object has ----

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(object_at(self).type->name.c_str());
}
PyObject* get_is_module(PyObject* self, void*) {
  return PyBool_FromLong(object_at(self).type->form == ClassType::Form::Module);
}

// [(name, "parameter", "buffer", "module" or "attribute", type)].
PyObject* attributes(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const rushlight::Object& object = object_at(self);
    const Object out = Object::check(PyList_New(0));
    for (size_t i = 0; i < object.type->attributes.size(); i++) {
      const ClassType::Attribute& attribute = object.type->attributes[i];
      const rushlight::Object* const inner = object_of(object.slots[i]);
      const bool module = inner != nullptr && inner->type->form == ClassType::Form::Module;
      const char* const kind = attribute.is_parameter ? "parameter"
                               : attribute.is_buffer  ? "buffer"
                               : module               ? "module"
                                                      : "attribute";
      const Object row = Object::check(Py_BuildValue("(sss)", attribute.name.c_str(), kind,
                                                     attribute.type.annotation().c_str()));
      check(PyList_Append(out.get(), row.get()));
    }
    return Py_NewRef(out.get());
  });
}

PyObject* constants(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Object out = Object::check(PyDict_New());
    for (const ClassType::Named& one : object_at(self).type->constants) {
      const Object value = Object::check(from_script(one.second, Type()));
      check(PyDict_SetItemString(out.get(), one.first.c_str(), value.get()));
    }
    return Py_NewRef(out.get());
  });
}

PyObject* methods(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Object out = Object::check(PyList_New(0));
    for (const graph::Function* const method : object_at(self).type->methods) {
      const Object name = Object::check(PyUnicode_FromString(method->base_name().c_str()));
      check(PyList_Append(out.get(), name.get()));
    }
    return Py_NewRef(out.get());
  });
}

void add_assigned_names(const graph::Block& block, PyObject* names) {
  for (const graph::Node* const node : block) {
    if (node->kind == graph::Kind::SetAttr) {
      const std::string name = node->attribute("name").toStringRef();
      const Object text = Object::check(PyUnicode_FromString(name.c_str()));
      check(PySet_Add(names, text.get()));
    }
    for (const graph::Block* const inner : node->blocks()) {
      add_assigned_names(*inner, names);
    }
  }
}

// The names of attributes that methods of the class assign.
PyObject* assigned_names(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Object out = Object::check(PySet_New(nullptr));
    for (graph::Function* const method : object_at(self).type->methods) {
      if (method->native() == nullptr && method->has_graph()) {
        add_assigned_names(method->graph().block(), out.get());
      }
    }
    return Py_NewRef(out.get());
  });
}

size_t place_of(const rushlight::Object& object, PyObject* name) {
  const size_t place = object.type->find_attribute(text_view(name));
  if (place == ClassType::npos) {
    raise(PyExc_AttributeError,
          str("'", object.type->base_name(), "' has no attribute '", text_view(name), "'"));
  }
  return place;
}

PyObject* get(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    const rushlight::Object& object = object_at(self);
    const size_t place = place_of(object, name);
    const IValue& value = object.slots[place];
    rushlight::Object* const inner = object_of(value);
    if (inner != nullptr && inner->type->form == ClassType::Form::Module) {
      return wrap_object(Handle(inner));
    }
    return from_script(value, object.type->attributes[place].type);
  });
}

PyObject* set(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    if (!PyArg_ParseTuple(args, "UO:set", &name, &value)) {
      throw PythonError();
    }
    rushlight::Object& object = object_at(self);
    const size_t place = place_of(object, name);
    object.slots[place] =
        to_argument(value, object.type->attributes[place].type, str("'", text_view(name), "'"));
    return Py_NewRef(Py_None);
  });
}

// ---- methods ----

graph::Function& method_of(PyObject* self, PyObject* name) {
  graph::Function* const method = object_at(self).type->find_method(text_view(name));
  if (method == nullptr) {
    raise(PyExc_AttributeError,
          str("'", object_at(self).type->base_name(), "' has no method '", text_view(name), "'"));
  }
  return *method;
}

// call(name, args, kwargs).
PyObject* call(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* name = nullptr;
    PyObject* positional = nullptr;
    PyObject* named = nullptr;
    if (!PyArg_ParseTuple(args, "UO!O!:call", &name, &PyTuple_Type, &positional, &PyDict_Type,
                          &named)) {
      throw PythonError();
    }
    return run_function(method_of(self, name), {object_at(self).value()}, positional, named);
  });
}

PyObject* code_text(PyObject* self, PyObject* name) {
  return translate_errors([&] { return code_and_constants(method_of(self, name)); });
}

PyObject* graph_of_method(PyObject* self, PyObject* name) {
  return translate_errors([&] {
    return wrap_graph(keep_with_unit(method_of(self, name).shared_graph(), object_at(self).owner));
  });
}

PyObject* schema_text(PyObject* self, PyObject* name) {
  return translate_errors(
      [&] { return PyUnicode_FromString(method_of(self, name).schema.str().c_str()); });
}

// clone(all): a copy with copies of all values, or with the same ones.
PyObject* clone(PyObject* self, PyObject* all) {
  return translate_errors([&] {
    const jit::Module module(reinterpret_cast<HandleObject*>(self)->object);
    return wrap_object((all == Py_True ? module.deepcopy() : module.copy()).object());
  });
}

// ([name], [name]): the methods that a call runs before and behind `forward`.
PyObject* hooks(PyObject* self) {
  const auto list = [](const std::vector<std::string>& names) {
    Object out = Object::check(PyList_New(0));
    for (const std::string& name : names) {
      check(PyList_Append(out.get(), text_object(name).get()));
    }
    return out;
  };
  const ClassType& type = *object_at(self).type;
  return check(PyTuple_Pack(2, list(type.pre_hooks).get(), list(type.hooks).get()));
}
PyObject* get_type(PyObject* self) {
  return wrap_type(Type::of_class(*object_at(self).type), object_at(self).owner);
}

PyObject* has_method(PyObject* self, PyObject* name) {
  return PyBool_FromLong(object_at(self).type->find_method(text_view(name)) != nullptr);
}

PyMethodDef handle_methods[] = {
    {"_has_method", call_with_argument<has_method>, METH_O,
     "Whether it has a method of that name."},
    {"_method_names", methods, METH_NOARGS, "The names of the methods."},
    {"hooks", call_without_argument<hooks>, METH_NOARGS,
     "The names of methods before and behind forward."},
    {"_type", call_without_argument<get_type>, METH_NOARGS, "The type of the object."},
    {"attributes", attributes, METH_NOARGS, "[(name, kind, type)], in their order."},
    {"constants", constants, METH_NOARGS, "The constants of the class, by name."},
    {"methods", methods, METH_NOARGS, "The names of the methods."},
    {"assigned", assigned_names, METH_NOARGS, "The names of attributes that methods assign."},
    {"get", get, METH_O, "An attribute; of modules their handle."},
    {"set", set, METH_VARARGS, "set(name, value)"},
    {"call", call, METH_VARARGS, "call(method, args, kwargs)"},
    {"graph", graph_of_method, METH_O, "The graph of a method."},
    {"code", code_text, METH_O, "A method as text, and the constants that it names."},
    {"schema", schema_text, METH_O, "The schema of a method, as text."},
    {"clone", clone, METH_O, "clone(all): a copy, of all values or with the same ones."},
    {},
};
PyObject* type_property(PyObject* self, void*) {
  return translate_errors([&] { return get_type(self); });
}
PyGetSetDef handle_properties[] = {
    {"type", type_property, nullptr, "The type of the object, as values of graphs have it.",
     nullptr},
    {"name", get_name, nullptr, "The qualified name of the class.", nullptr},
    {"is_module", get_is_module, nullptr, "Whether the class is a module's.", nullptr},
    {},
};
PyTypeObject handle_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._ProgramObject",
    .tp_basicsize = sizeof(HandleObject),
    .tp_dealloc = delete_handle,
    .tp_hash = hash,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "An object of a program of TorchScript.",
    .tp_richcompare = compare,
    .tp_methods = handle_methods,
    .tp_getset = handle_properties,
};

// ---- archives ----

// Calls write(bytes) of a Python object.
class CallSink : public serialize::Sink {
 public:
  explicit CallSink(PyObject* write) : write_(Object::borrow(write)) {}
  void write(const void* data, size_t n) override {
    const Object bytes = Object::check(
        PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(n)));
    const Object done = Object::check(PyObject_CallOneArg(write_.get(), bytes.get()));
  }

 private:
  Object write_;
};

// _load_archive(path or bytes, device or None, names of extra files): the module's handle and what
// the files hold, by name.
PyObject* load_archive(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* from = nullptr;
    PyObject* device = nullptr;
    PyObject* extra = nullptr;
    if (!PyArg_ParseTuple(args, "OOO!:_load_archive", &from, &device, &PyList_Type, &extra)) {
      throw PythonError();
    }
    const std::shared_ptr<serialize::Source> source = source_from(from);
    std::optional<Device> where;
    if (device != Py_None) {
      where = as_device(device);
    }
    jit::ExtraFilesMap files;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(extra); i++) {
      files[string_of(PyList_GET_ITEM(extra, i))] = "";
    }
    jit::Module module;
    {
      const WithoutGil free;
      module = script::load_module(source, where, files);
    }
    const Object contents = Object::check(PyDict_New());
    for (const auto& [name, bytes] : files) {
      const Object value = Object::check(
          PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
      check(PyDict_SetItemString(contents.get(), name.c_str(), value.get()));
    }
    const Object handle = Object::check(wrap_object(module.object()));
    return check(Py_BuildValue("(OO)", handle.get(), contents.get()));
  });
}

// _save_archive(handle, path or write, archive's name, extra files).
PyObject* save_archive(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* handle = nullptr;
    PyObject* to = nullptr;
    const char* archive = nullptr;
    PyObject* extra = nullptr;
    if (!PyArg_ParseTuple(args, "OOsO!:_save_archive", &handle, &to, &archive, &PyDict_Type,
                          &extra)) {
      throw PythonError();
    }
    jit::ExtraFilesMap files;
    Py_ssize_t at = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(extra, &at, &key, &value) != 0) {
      const Object bytes = PyUnicode_Check(value) ? Object::check(PyUnicode_AsUTF8String(value))
                                                  : Object::check(PyBytes_FromObject(value));
      files[string_of(key)] = std::string(PyBytes_AS_STRING(bytes.get()),
                                          static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
    }
    const jit::Module module(unwrap_object(handle));
    if (PyUnicode_Check(to)) {
      const Object path = Object::check(PyUnicode_EncodeFSDefault(to));
      serialize::AtomicFile file(PyBytes_AS_STRING(path.get()));
      script::write_module(module, file, archive, files);
      file.commit();
    } else {
      CallSink sink(to);
      script::write_module(module, sink, archive, files);
    }
    return Py_NewRef(Py_None);
  });
}

// _freeze_program(handle, preserved names, whether batch norms are folded, whether weights are kept
// as kernels want them): a new module's handle.
PyObject* freeze_program(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* handle = nullptr;
    PyObject* names = nullptr;
    int folds = 0;
    int keeps = 0;
    if (!PyArg_ParseTuple(args, "OO!pp:_freeze_program", &handle, &PyList_Type, &names, &folds,
                          &keeps)) {
      throw PythonError();
    }
    std::vector<std::string> preserved;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
      preserved.push_back(string_of(PyList_GET_ITEM(names, i)));
    }
    const jit::Module module(unwrap_object(handle));
    return wrap_object((keeps != 0 ? jit::optimize_for_inference(module, preserved)
                                   : jit::freeze(module, preserved, folds != 0))
                           .object());
  });
}

PyMethodDef functions[] = {
    {"_freeze_program", freeze_program, METH_VARARGS,
     "_freeze_program(handle, preserved names, whether batch norms are folded, whether weights are "
     "kept as kernels want them)"},
    {"_save_archive", save_archive, METH_VARARGS,
     "_save_archive(handle, path or write, name, extra files)"},
    {"_load_archive", load_archive, METH_VARARGS,
     "_load_archive(path or bytes, device, names): a module's handle, and extra files."},
    {},
};

}  // namespace

PyObject* run_function(graph::Function& function, std::vector<IValue> first, PyObject* positional,
                       PyObject* named) {
  static const Type any{Type::Kind::Any};
  const graph::Schema& schema = function.schema;
  const auto type_at = [&](size_t place) -> const Type& {
    return place < schema.arguments.size() ? schema.arguments[place].type : any;
  };
  const auto describe = [&](const std::string& argument) {
    return str(function.base_name(), "(): argument '", argument, "'");
  };
  std::vector<IValue> values = std::move(first);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); i++) {
    const size_t place = values.size();
    const std::string argument =
        place < schema.arguments.size() ? schema.arguments[place].name : std::to_string(place);
    values.push_back(
        to_argument(PyTuple_GET_ITEM(positional, i), type_at(place), describe(argument)));
  }
  std::vector<std::pair<std::string, IValue>> by_name;
  Py_ssize_t at = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(named, &at, &key, &value) != 0) {
    const std::string argument(text_view(key));
    size_t place = 0;
    while (place < schema.arguments.size() && schema.arguments[place].name != argument) {
      place++;
    }
    by_name.emplace_back(argument, to_argument(value, type_at(place), describe(argument)));
  }
  IValue result;
  {
    const WithoutGil free;
    result = function(std::move(values), std::move(by_name));
  }
  return from_script(result, schema.results.empty() ? Type() : schema.results[0].type);
}

PyObject* code_and_constants(graph::Function& function) {
  script::Mentions mentions;
  const std::string text = script::function_text(function, mentions);
  const Object constants = Object::check(PyList_New(0));
  for (const IValue& value : mentions.constants) {
    const Object constant = Object::check(from_script(value, rushlight::type_of(value)));
    check(PyList_Append(constants.get(), constant.get()));
  }
  return check(
      Py_BuildValue("(s#O)", text.data(), static_cast<Py_ssize_t>(text.size()), constants.get()));
}

PyObject* wrap_object(intrusive_ptr<rushlight::Object> object) {
  PyObject* const self = check(handle_type.tp_alloc(&handle_type, 0));
  new (&reinterpret_cast<HandleObject*>(self)->object) Handle(std::move(object));
  return self;
}

intrusive_ptr<rushlight::Object> unwrap_object(PyObject* o) {
  if (PyObject_TypeCheck(o, &handle_type)) {
    return reinterpret_cast<HandleObject*>(o)->object;
  }
  const Object inner = Object::maybe(PyObject_GetAttrString(o, "_c"));
  if (!inner) {
    PyErr_Clear();
    return {};
  }
  return PyObject_TypeCheck(inner.get(), &handle_type)
             ? reinterpret_cast<HandleObject*>(inner.get())->object
             : Handle();
}

void init_script(PyObject* module) {
  ready(handle_type);
  add(module, "_ProgramObject", reinterpret_cast<PyObject*>(&handle_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
