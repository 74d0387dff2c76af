// Exported programs (.pt2) that run in C++: loaded, called, described.
#include <rushlight/exported.h>

#include "exported/facts.h"
#include "exported/program.h"
#include "python/bindings.h"
#include "python/files.h"
#include "python/script_values.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

using exported::Program;

constexpr const char* capsule_name = "rushlight._C.ExportedProgram";

const Program& program_in(PyObject* capsule) {
  void* const program = PyCapsule_GetPointer(capsule, capsule_name);
  if (program == nullptr) {
    throw PythonError();
  }
  return *static_cast<const Program*>(program);
}

void delete_program(PyObject* capsule) {
  delete static_cast<Program*>(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject* load_exported(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* from = nullptr;
    PyObject* device = nullptr;
    const char* model = nullptr;
    if (!PyArg_ParseTuple(args, "OOs:_load_exported", &from, &device, &model)) {
      throw PythonError();
    }
    const std::shared_ptr<serialize::Source> source = source_from(from);
    const std::optional<Device> where =
        device == Py_None ? std::nullopt : std::optional(as_device(device));
    std::unique_ptr<Program> program;
    {
      const WithoutGil free;
      program = std::make_unique<Program>(exported::load_source(source, where, model));
    }
    PyObject* const capsule = check(PyCapsule_New(program.get(), capsule_name, delete_program));
    program.release();
    return capsule;
  });
}

PyObject* run_exported(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* capsule = nullptr;
    PyObject* positional = nullptr;
    PyObject* named = nullptr;
    if (!PyArg_ParseTuple(args, "OO!O!:_run_exported", &capsule, &PyTuple_Type, &positional,
                          &PyDict_Type, &named)) {
      throw PythonError();
    }
    const Program& program = program_in(capsule);
    const Type any{Type::Kind::Any};
    std::vector<IValue> arguments;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); i++) {
      arguments.push_back(to_script(PyTuple_GET_ITEM(positional, i), any, str("argument ", i)));
    }
    exported::Kwargs by_name;
    Py_ssize_t at = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(named, &at, &key, &value) != 0) {
      const std::string name = string_of(key);
      by_name[name] = to_script(value, any, str("argument '", name, "'"));
    }
    IValue result;
    {
      const WithoutGil free;
      result = program.run(std::move(arguments), by_name);
    }
    return from_script(result, any);
  });
}

PyObject* describe_exported(PyObject*, PyObject* capsule) {
  return translate_errors(
      [&] { return PyUnicode_FromString(program_in(capsule).graph_text().c_str()); });
}

PyObject* dtype_numbers(PyObject*, PyObject*) {
  return translate_errors([&] {
    const Object out = Object::check(PyDict_New());
    for (const exported::DtypeNumber& row : exported::dtype_numbers()) {
      const Object dtype = Object::check(wrap(row.dtype));
      const Object number = Object::check(PyLong_FromLongLong(row.number));
      check(PyDict_SetItem(out.get(), dtype.get(), number.get()));
    }
    return Py_NewRef(out.get());
  });
}

PyMethodDef functions[] = {
    {"_load_exported", load_exported, METH_VARARGS,
     "_load_exported(path or bytes, device or None, model): a program, for the others of these."},
    {"_run_exported", run_exported, METH_VARARGS, "_run_exported(program, args, kwargs)"},
    {"_describe_exported", describe_exported, METH_O, "The graph of a program, as text."},
    {"_exported_dtypes", dtype_numbers, METH_NOARGS, "The numbers of dtypes in .pt2 files."},
    {},
};

}  // namespace

void init_exported(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
