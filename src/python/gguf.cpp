// Reading and writing files of the GGUF format for python/rushlight/gguf.py.
#include <bit>
#include <cstring>

#include "core/op_support.h"
#include "python/bindings.h"
#include "python/common.h"
#include "python/files.h"
#include "python/tensor_type.h"
#include "serialize/gguf.h"

namespace rushlight::python {
namespace {

using namespace serialize;

// Bytes that are no UTF-8 become lone surrogates, as in names of files.
Object any_text(const std::string& s) {
  return Object::check(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape"));
}

PyObject* number(GgufType type, uint64_t bits) {
  switch (type) {
    case GgufType::Bool:
      return PyBool_FromLong(bits != 0);
    case GgufType::Int8:
      return PyLong_FromLong(gguf_bits_as<int8_t>(bits));
    case GgufType::Int16:
      return PyLong_FromLong(gguf_bits_as<int16_t>(bits));
    case GgufType::Int32:
      return PyLong_FromLong(gguf_bits_as<int32_t>(bits));
    case GgufType::Int64:
      return PyLong_FromLongLong(gguf_bits_as<int64_t>(bits));
    case GgufType::Float32:
      return PyFloat_FromDouble(gguf_bits_as<float>(bits));
    case GgufType::Float64:
      return PyFloat_FromDouble(gguf_bits_as<double>(bits));
    default:
      return PyLong_FromUnsignedLongLong(bits);
  }
}

Object value_object(const GgufReader& reader, const GgufValue& v) {
  if (!v.is_array) {
    return v.type == GgufType::String ? any_text(v.texts[0])
                                      : Object::check(number(v.type, v.bits));
  }
  if (v.type == GgufType::String) {
    Object list = Object::check(PyList_New(static_cast<Py_ssize_t>(v.texts.size())));
    for (size_t i = 0; i < v.texts.size(); i++) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), any_text(v.texts[i]).release());
    }
    return list;
  }
  return Object::check(wrap(reader.array(v)));
}

// _load_gguf(path or bytes, map): pairs of metadata, triples (name, tensor, name of its blocks or
// None).
PyObject* load(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* from = nullptr;
    int map = 0;
    if (!PyArg_ParseTuple(args, "Op:_load_gguf", &from, &map)) {
      throw PythonError();
    }
    const bool in_place = PyUnicode_Check(from) && map != 0;
    const std::shared_ptr<Source> source = source_from(from, map != 0);
    const GgufReader reader = [&] {
      const WithoutGil free;
      return GgufReader(source, in_place);
    }();
    const Object metadata = Object::check(PyList_New(0));
    for (const auto& [key, value] : reader.header().metadata) {
      const Object pair =
          Object::check(PyTuple_Pack(2, any_text(key).get(), value_object(reader, value).get()));
      check(PyList_Append(metadata.get(), pair.get()));
    }
    const Object tensors = Object::check(PyList_New(0));
    for (const GgufEntry& e : reader.header().entries) {
      const Object tensor = Object::check(wrap(reader.tensor(e)));
      const Object format = e.blocks == nullptr ? Object::borrow(Py_None) : text(e.blocks->name);
      const Object triple =
          Object::check(PyTuple_Pack(3, any_text(e.name).get(), tensor.get(), format.get()));
      check(PyList_Append(tensors.get(), triple.get()));
    }
    return check(PyTuple_Pack(2, metadata.get(), tensors.get()));
  });
}

// _save_gguf(path, header, tensors, alignment): the header, and the bytes of tensors, all aligned.
PyObject* save(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* path = nullptr;
    BufferView header;
    PyObject* list = nullptr;
    Py_ssize_t alignment = 0;
    if (!PyArg_ParseTuple(args, "Uy*O!n:_save_gguf", &path, &header.buffer, &PyList_Type, &list,
                          &alignment)) {
      throw PythonError();
    }
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
      tensors.push_back(expect_tensor(PyList_GET_ITEM(list, i), "save()").contiguous());
      RL_CHECK(tensors.back().is_cpu(), "gguf.save: tensors must be on the cpu");
    }
    RL_CHECK(alignment > 0, "gguf.save: the alignment must be positive");
    const Object name = Object::check(PyUnicode_EncodeFSDefault(path));
    const WithoutGil free;
    AtomicFile file(PyBytes_AS_STRING(name.get()));
    const std::string zeros(static_cast<size_t>(alignment), '\0');
    const auto write = [&](const void* data, size_t n) {
      file.write(data, n);
      const size_t beyond = n % zeros.size();
      file.write(zeros.data(), beyond == 0 ? 0 : zeros.size() - beyond);
    };
    write(header.bytes().data(), header.bytes().size());
    for (const Tensor& t : tensors) {
      write(t.data_ptr(), static_cast<size_t>(t.nbytes()));
    }
    file.commit();
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_load_gguf", load, METH_VARARGS, "_load_gguf(path or bytes, map)"},
    {"_save_gguf", save, METH_VARARGS, "_save_gguf(path, header, tensors, alignment)"},
    {},
};

}  // namespace

void init_gguf(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
