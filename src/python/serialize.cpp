// What python/rushlight/serialization.py is built on: .pt containers to read and to write, and
// pickles made into Python objects with every global and every call decided by functions that the
// caller gives.
#include <memory>
#include <string>
#include <vector>

#include "python/bindings.h"
#include "python/common.h"
#include "python/files.h"
#include "python/storage.h"
#include "python/types.h"
#include "serialize/checkpoint.h"

namespace rushlight::python {
namespace {

using namespace serialize;
using Kind = PickleNode::Kind;

std::string to_string(PyObject* o) {
  RL_CHECK_TYPE(PyUnicode_Check(o), "expected str, but got ", type_name(o));
  return std::string(text_view(o));
}

// ---- pickles ----

// Walks over the steps of a pickle and makes the objects.
class Builder {
 public:
  // The functions: find(module, name), call(function, arguments, new), persistent(id),
  // build(object, state), old_string(bytes).
  Builder(const Pickle& pickle, PyObject* const functions[5])
      : p_(pickle), f_(functions), objects_(p_.nodes.size()) {}

  Object run() {
    p_.replay([&](uint32_t id) { objects_[id] = make(p_.nodes[id]); },
              [&](const PickleStep& step) { fill(objects_[step.node].get(), step); });
    return objects_[p_.root];
  }

 private:
  static void expect(bool good, const char* what, PyObject* object) {
    if (!good) {
      throw UnpicklingError(str(what, ", not ", type_name(object)));
    }
  }
  void fill(PyObject* target, const PickleStep& step) const {
    switch (step.kind) {
      case PickleStep::Kind::Append:
        expect(PyList_CheckExact(target), "only lists can be appended to", target);
        for (uint32_t i = 0; i < step.count; i++) {
          check(PyList_Append(target, item(step, i)));
        }
        break;
      case PickleStep::Kind::SetItems:
        expect(PyDict_Check(target), "only dicts can be given items", target);
        for (uint32_t i = 0; i < step.count; i += 2) {
          check(PyObject_SetItem(target, item(step, i), item(step, i + 1)));
        }
        break;
      case PickleStep::Kind::Add:
        expect(PySet_CheckExact(target), "only sets can be added to", target);
        for (uint32_t i = 0; i < step.count; i++) {
          check(PySet_Add(target, item(step, i)));
        }
        break;
      case PickleStep::Kind::Build: {
        const Object done =
            Object::check(PyObject_CallFunctionObjArgs(f_[3], target, item(step, 0), nullptr));
        break;
      }
    }
  }
  PyObject* item(const PickleStep& step, uint32_t i) const {
    return objects_[p_.items[step.first + i]].get();
  }
  PyObject* item(const PickleNode& node, uint32_t i) const {
    return objects_[p_.items[node.value.items.first + i]].get();
  }
  static Object unicode(std::string_view s) {
    return Object::check(
        PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogatepass"));
  }

  Object make(const PickleNode& n) const {
    const std::string_view bytes = n.bytes();
    const char* data = bytes.data();
    const auto size = static_cast<Py_ssize_t>(bytes.size());
    switch (n.kind) {
      case Kind::None:
        return Object::borrow(Py_None);
      case Kind::Bool:
        return Object::borrow(n.value.i != 0 ? Py_True : Py_False);
      case Kind::Int:
        return Object::check(PyLong_FromLongLong(n.value.i));
      case Kind::BigInt: {
        const auto* digits = reinterpret_cast<const unsigned char*>(data);
        return Object::check(_PyLong_FromByteArray(digits, bytes.size(), 1, 1));
      }
      case Kind::Float:
        return Object::check(PyFloat_FromDouble(n.value.d));
      case Kind::String:
        return unicode(bytes);
      case Kind::OldString: {
        const Object text = Object::check(PyBytes_FromStringAndSize(data, size));
        return Object::check(PyObject_CallOneArg(f_[4], text.get()));
      }
      case Kind::Bytes:
        return Object::check(PyBytes_FromStringAndSize(data, size));
      case Kind::ByteArray:
        return Object::check(PyByteArray_FromStringAndSize(data, size));
      case Kind::List:
        return Object::check(PyList_New(0));
      case Kind::Dict:
        return Object::check(PyDict_New());
      case Kind::Set:
        return Object::check(PySet_New(nullptr));
      case Kind::Tuple: {
        Object tuple = Object::check(PyTuple_New(n.value.items.count));
        for (uint32_t i = 0; i < n.value.items.count; i++) {
          PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(item(n, i)));
        }
        return tuple;
      }
      case Kind::Global: {
        const size_t line = bytes.find('\n');
        const Object module = unicode(bytes.substr(0, line));
        const Object name = unicode(bytes.substr(line + 1));
        return Object::check(
            PyObject_CallFunctionObjArgs(f_[0], module.get(), name.get(), nullptr));
      }
      case Kind::Call:
      case Kind::New:
        return Object::check(PyObject_CallFunctionObjArgs(
            f_[1], item(n, 0), item(n, 1), n.kind == Kind::New ? Py_True : Py_False, nullptr));
      case Kind::Persistent:
        return Object::check(PyObject_CallOneArg(f_[2], item(n, 0)));
    }
    return Object::borrow(Py_None);
  }

  const Pickle& p_;
  PyObject* const* f_;
  std::vector<Object> objects_;
};

PyObject* unpickle(PyObject*, PyObject* args) {
  return translate_errors([&] {
    BufferView view;
    PyObject* functions[5];
    if (!PyArg_ParseTuple(args, "y*OOOOO:_unpickle", &view.buffer, &functions[0], &functions[1],
                          &functions[2], &functions[3], &functions[4])) {
      throw PythonError();
    }
    const Pickle pickle = read_pickle(view.bytes());
    const Object result = Builder(pickle, functions).run();
    return check(Py_BuildValue("On", result.get(), static_cast<Py_ssize_t>(pickle.end)));
  });
}

PyObject* rename(PyObject*, PyObject* args) {
  return translate_errors([&] {
    const char* data = nullptr;
    Py_ssize_t size = 0;
    PyObject* pairs = nullptr;
    if (!PyArg_ParseTuple(args, "y#O!:_rename_globals", &data, &size, &PyTuple_Type, &pairs)) {
      throw PythonError();
    }
    Renames renames;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
      const char* from = nullptr;
      const char* to = nullptr;
      if (!PyArg_ParseTuple(expect_tuple(PyTuple_GET_ITEM(pairs, i), "_rename_globals(): a pair"),
                            "ss", &from, &to)) {
        throw PythonError();
      }
      renames.emplace_back(from, to);
    }
    const std::string out = rename_globals({data, static_cast<size_t>(size)}, renames);
    return check(PyBytes_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size())));
  });
}

// ---- reading ----

struct ReaderObject {
  PyObject_HEAD CheckpointReader* reader;
};
CheckpointReader& reader_of(PyObject* self) {
  return *reinterpret_cast<ReaderObject*>(self)->reader;
}

PyObject* new_reader(PyTypeObject* type, PyObject* args, PyObject*) {
  return translate_file_errors([&] {
    PyObject* from = nullptr;
    int map = 0;
    int shared = 0;
    int big_endian = 0;
    if (!PyArg_ParseTuple(args, "Op|pp:_CheckpointReader", &from, &map, &shared, &big_endian)) {
      throw PythonError();
    }
    const bool in_place = map != 0 && PyUnicode_Check(from);  // a buffer may not be written to
    auto reader = std::make_unique<CheckpointReader>(source_from(from, map != 0, shared != 0),
                                                     in_place, big_endian != 0);
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<ReaderObject*>(self)->reader = reader.release();
    return self;
  });
}

void delete_reader(PyObject* self) {
  delete reinterpret_cast<ReaderObject*>(self)->reader;
  Py_TYPE(self)->tp_free(self);
}

PyObject* reader_records(PyObject* self, PyObject*) {
  return translate_file_errors([&] {
    Object list = Object::check(PyList_New(0));
    for (const std::string& name : reader_of(self).records()) {
      const Object entry = Object::check(
          PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}

PyObject* reader_has_record(PyObject* self, PyObject* name) {
  return translate_file_errors(
      [&] { return PyBool_FromLong(reader_of(self).has_record(to_string(name))); });
}

PyObject* reader_record(PyObject* self, PyObject* name) {
  return translate_file_errors([&] {
    const std::string bytes = reader_of(self).record(to_string(name));
    return check(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
  });
}

PyObject* reader_storage(PyObject* self, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* key = nullptr;
    PyObject* dtype = nullptr;
    long long numel = 0;
    if (!PyArg_ParseTuple(args, "UO!L:storage", &key, &dtype_type, &dtype, &numel)) {
      throw PythonError();
    }
    const std::string name = to_string(key);
    Storage storage;
    {
      const WithoutGil free;
      storage = reader_of(self).storage(name, *as_dtype(dtype), numel);
    }
    return wrap_storage(std::move(storage));
  });
}

PyMethodDef reader_methods[] = {
    {"records", reader_records, METH_NOARGS, "The names of the records."},
    {"has_record", reader_has_record, METH_O, "Whether there is a record of this name."},
    {"record", reader_record, METH_O, "The bytes of a record."},
    {"storage", reader_storage, METH_VARARGS,
     "storage(key, dtype, numel): the storage of that name."},
    {},
};
PyTypeObject reader_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._CheckpointReader",
    .tp_basicsize = sizeof(ReaderObject),
    .tp_dealloc = delete_reader,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_CheckpointReader(path or bytes, map, shared, big_endian): a .pt container.",
    .tp_methods = reader_methods,
    .tp_new = new_reader,
};

// ---- writing ----

// Calls write(bytes) of a Python object.
class PythonSink : public Sink {
 public:
  explicit PythonSink(PyObject* write) : write_(Object::borrow(write)) {}
  void write(const void* data, size_t n) override {
    if (n == 0) {
      return;
    }
    // A copy: the other side may keep what it is given.
    const Object bytes = Object::check(
        PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(n)));
    const Object done = Object::check(PyObject_CallOneArg(write_.get(), bytes.get()));
  }

 private:
  Object write_;
};

struct Writer {
  std::unique_ptr<AtomicFile> file;  // one of the two
  std::unique_ptr<PythonSink> sink;
  std::unique_ptr<CheckpointWriter> writer;
};
struct WriterObject {
  PyObject_HEAD Writer* writer;
};
Writer& writer_of(PyObject* self) {
  Writer* w = reinterpret_cast<WriterObject*>(self)->writer;
  RL_CHECK(w != nullptr, "this file has been finished");
  return *w;
}

PyObject* new_writer(PyTypeObject* type, PyObject* args, PyObject*) {
  return translate_file_errors([&] {
    PyObject* to = nullptr;
    const char* archive = nullptr;
    if (!PyArg_ParseTuple(args, "Os:_CheckpointWriter", &to, &archive)) {
      throw PythonError();
    }
    auto w = std::make_unique<Writer>();
    if (PyUnicode_Check(to)) {
      const Object path = Object::check(PyUnicode_EncodeFSDefault(to));
      w->file = std::make_unique<AtomicFile>(PyBytes_AS_STRING(path.get()));
    } else {
      w->sink = std::make_unique<PythonSink>(to);
    }
    Sink& sink = w->file ? static_cast<Sink&>(*w->file) : *w->sink;
    w->writer = std::make_unique<CheckpointWriter>(sink, archive);
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<WriterObject*>(self)->writer = w.release();
    return self;
  });
}

void delete_writer(PyObject* self) {
  delete reinterpret_cast<WriterObject*>(self)->writer;
  Py_TYPE(self)->tp_free(self);
}

PyObject* writer_objects(PyObject* self, PyObject* pickle) {
  return translate_file_errors([&] {
    RL_CHECK_TYPE(PyBytes_Check(pickle), "add_objects(): expected bytes, but got ",
                  type_name(pickle));
    writer_of(self).writer->add_objects(
        {PyBytes_AS_STRING(pickle), static_cast<size_t>(PyBytes_GET_SIZE(pickle))});
    return Py_NewRef(Py_None);
  });
}

PyObject* writer_storage(PyObject* self, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* key = nullptr;
    PyObject* object = nullptr;
    int checked = 1;
    if (!PyArg_ParseTuple(args, "UO|p:add_storage", &key, &object, &checked)) {
      throw PythonError();
    }
    const Storage storage = unwrap_storage(object);
    const std::string name = to_string(key);
    Writer& w = writer_of(self);
    {
      const WithoutGil free(w.file != nullptr);
      w.writer->add_storage(name, storage, checked != 0);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* writer_finish(PyObject* self, PyObject*) {
  return translate_file_errors([&] {
    Writer& w = writer_of(self);
    {
      const WithoutGil free(w.file != nullptr);
      w.writer->finish();
      if (w.file) {
        w.file->commit();
      }
    }
    delete std::exchange(reinterpret_cast<WriterObject*>(self)->writer, nullptr);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef writer_methods[] = {
    {"add_objects", writer_objects, METH_O, "Writes the pickle; comes first."},
    {"add_storage", writer_storage, METH_VARARGS, "add_storage(key, storage, checked=True)"},
    {"finish", writer_finish, METH_NOARGS, "Writes the directory; a file then takes its place."},
    {},
};
PyTypeObject writer_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._CheckpointWriter",
    .tp_basicsize = sizeof(WriterObject),
    .tp_dealloc = delete_writer,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "_CheckpointWriter(path or write, archive): a .pt container; without finish() no file "
        "appears.",
    .tp_methods = writer_methods,
    .tp_new = new_writer,
};

// ---- storages ----

PyObject* meta_storage(PyObject*, PyObject* size) {
  return translate_errors([&] {
    const size_t n = PyLong_AsSize_t(size);
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    return wrap_storage(StorageImpl::allocate(n, Device(kMeta)));
  });
}

PyObject* storage_bytes(PyObject*, PyObject* object) {
  return translate_errors([&] {
    const Storage& s = unwrap_storage(object);
    RL_CHECK(s->device().is_cpu(), "storages on ", s->device(), " have no bytes here");
    return check(PyBytes_FromStringAndSize(static_cast<const char*>(s->data()),
                                           static_cast<Py_ssize_t>(s->nbytes())));
  });
}

PyObject* fill_storage(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* object = nullptr;
    BufferView view;
    if (!PyArg_ParseTuple(args, "Oy*:_fill_storage", &object, &view.buffer)) {
      throw PythonError();
    }
    fill(unwrap_storage(object), view.buffer.buf, view.bytes().size());
    return Py_NewRef(Py_None);
  });
}

PyObject* replace_file(PyObject*, PyObject* args) {
  return translate_file_errors([&] {
    PyObject* path = nullptr;
    const char* data = nullptr;
    Py_ssize_t size = 0;
    if (!PyArg_ParseTuple(args, "O&y#:_replace_file", PyUnicode_FSConverter, &path, &data, &size)) {
      throw PythonError();
    }
    const Object name = Object::check(path);
    AtomicFile file(PyBytes_AS_STRING(name.get()));
    file.write(data, static_cast<size_t>(size));
    file.commit();
    return Py_NewRef(Py_None);
  });
}

PyMethodDef module_functions[] = {
    {"_meta_storage", meta_storage, METH_O, "_meta_storage(nbytes): a storage without memory."},
    {"_storage_bytes", storage_bytes, METH_O, "The bytes of a storage."},
    {"_fill_storage", fill_storage, METH_VARARGS,
     "_fill_storage(storage, bytes): as many as it has."},
    {"_replace_file", replace_file, METH_VARARGS,
     "_replace_file(path, bytes): writes a file in one step."},
    {"_unpickle", unpickle, METH_VARARGS,
     "_unpickle(bytes, find, call, persistent, build, old_string): the object and how many bytes "
     "it took."},
    {"_rename_globals", rename, METH_VARARGS,
     "_rename_globals(pickle, ((old, new), ...)): the changed pickle."},
    {},
};

}  // namespace

void init_serialize(PyObject* module) {
  ready(reader_type);
  ready(writer_type);
  add(module, "_CheckpointReader", reinterpret_cast<PyObject*>(&reader_type));
  add(module, "_CheckpointWriter", reinterpret_cast<PyObject*>(&writer_type));
  check(PyModule_AddFunctions(module, module_functions));
}

}  // namespace rushlight::python
