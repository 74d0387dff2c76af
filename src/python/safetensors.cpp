// The safetensors format for python/rushlight/safetensors.py.
#include "serialize/safetensors.h"

#include "python/bindings.h"
#include "python/common.h"
#include "python/files.h"
#include "python/tensor_type.h"

namespace rushlight::python {
namespace {

using namespace serialize;

// _load_safetensors(path or bytes, map): pairs of names and tensors, pairs of metadata.
PyObject* load(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* from = nullptr;
    int map = 0;
    if (!PyArg_ParseTuple(args, "Op:_load_safetensors", &from, &map)) {
      throw PythonError();
    }
    const bool is_path = PyUnicode_Check(from);
    const std::shared_ptr<Source> source = source_from(from, map != 0);
    Metadata metadata;
    StateDict state;
    {
      const WithoutGil free;
      state = read_safetensors(source, is_path && map != 0, &metadata);
    }
    const Object tensors = Object::check(PyList_New(0));
    for (auto& [name, t] : state) {
      const Object tensor = Object::check(wrap(std::move(t)));
      const Object pair = Object::check(PyTuple_Pack(2, text(name).get(), tensor.get()));
      check(PyList_Append(tensors.get(), pair.get()));
    }
    const Object notes = Object::check(PyList_New(0));
    for (const auto& [key, value] : metadata) {
      const Object pair = Object::check(PyTuple_Pack(2, text(key).get(), text(value).get()));
      check(PyList_Append(notes.get(), pair.get()));
    }
    return check(PyTuple_Pack(2, tensors.get(), notes.get()));
  });
}

class BytesSink : public Sink {
 public:
  void write(const void* data, size_t n) override {
    bytes.append(static_cast<const char*>(data), n);
  }
  std::string bytes;
};

// _save_safetensors(pairs of tensors, pairs of metadata, path or None): the bytes where there is no
// path.
PyObject* save(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* tensors = nullptr;
    PyObject* notes = nullptr;
    PyObject* path = nullptr;
    if (!PyArg_ParseTuple(args, "O!O!O:_save_safetensors", &PyList_Type, &tensors, &PyList_Type,
                          &notes, &path)) {
      throw PythonError();
    }
    StateDict state;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); i++) {
      const char* name = nullptr;
      PyObject* t = nullptr;
      if (!PyArg_ParseTuple(expect_tuple(PyList_GET_ITEM(tensors, i), "save_file(): a tensor"),
                            "sO", &name, &t)) {
        throw PythonError();
      }
      state.emplace_back(name, expect_tensor(t, "save_file()"));
    }
    Metadata metadata;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(notes); i++) {
      const char* key = nullptr;
      const char* value = nullptr;
      if (!PyArg_ParseTuple(expect_tuple(PyList_GET_ITEM(notes, i), "save_file(): a note"), "ss",
                            &key, &value)) {
        throw PythonError();
      }
      metadata.emplace_back(key, value);
    }
    if (path == Py_None) {
      BytesSink out;
      {
        const WithoutGil free;
        write_safetensors(state, metadata, out);
      }
      return check(
          PyBytes_FromStringAndSize(out.bytes.data(), static_cast<Py_ssize_t>(out.bytes.size())));
    }
    const Object name = Object::check(PyUnicode_EncodeFSDefault(path));
    {
      const WithoutGil free;
      AtomicFile file(PyBytes_AS_STRING(name.get()));
      write_safetensors(state, metadata, file);
      file.commit();
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_load_safetensors", load, METH_VARARGS, "_load_safetensors(path or bytes, map)"},
    {"_save_safetensors", save, METH_VARARGS, "_save_safetensors(tensors, metadata, path or None)"},
    {},
};

}  // namespace

void init_safetensors(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
