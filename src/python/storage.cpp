// The class below torch.UntypedStorage (storage.py): bytes, where they lie and how many.
#include "python/storage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <rushlight/ops.h>

#include "core/backend.h"
#include "core/op_support.h"
#include "core/weak_storage.h"
#include "python/bindings.h"
#include "python/convert.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

extern PyTypeObject storage_type;

struct StorageObject {
  PyObject_HEAD Storage value;
};
const Storage& storage_of(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->value; }

PyObject* make(PyTypeObject* type, Storage storage) {
  PyObject* o = check(type->tp_alloc(type, 0));
  new (&reinterpret_cast<StorageObject*>(o)->value) Storage(std::move(storage));
  return o;
}

// What `wrap_storage` makes.
PyTypeObject* storage_class() {
  static PyObject* found = nullptr;
  return reinterpret_cast<PyTypeObject*>(
      import_attribute(found, "rushlight.storage", "UntypedStorage"));
}
bool is_storage(PyObject* o) { return PyObject_TypeCheck(o, &storage_type); }

void destroy(PyObject* self) {
  reinterpret_cast<StorageObject*>(self)->value.~Storage();
  Py_TYPE(self)->tp_free(self);
}

PyObject* nbytes(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(storage_of(self)->nbytes());
}
PyObject* address(PyObject* self, PyObject*) {
  storage_of(self)->expose();
  return PyLong_FromVoidPtr(storage_of(self)->data());
}
// sys.getsizeof counts the bytes below.
PyObject* size_of(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(static_cast<size_t>(Py_TYPE(self)->tp_basicsize) +
                           storage_of(self)->nbytes());
}
PyObject* resizable(PyObject* self, PyObject*) {
  return PyBool_FromLong(storage_of(self)->resizable());
}
PyObject* device(PyObject* self, void*) {
  return translate_errors([&] { return wrap(storage_of(self)->device()); });
}
PyObject* identity(PyObject* self, void*) { return PyLong_FromVoidPtr(storage_of(self).get()); }

// Weak references are numbers, which their owners give back.
uint64_t weak_number(PyObject* number) {
  const uint64_t value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return value;
}
PyObject* weak_ref(PyObject* self, PyObject*) {
  return translate_errors(
      [&] { return PyLong_FromUnsignedLongLong(weak_storage::watch(storage_of(self))); });
}
PyObject* is_freed(PyObject*, PyObject* number) {
  return translate_errors(
      [&] { return PyBool_FromLong(weak_storage::is_freed(weak_number(number))); });
}
PyObject* free_weak_ref(PyObject*, PyObject* number) {
  return translate_errors([&]() -> PyObject* {
    weak_storage::remove_watcher(weak_number(number));
    Py_RETURN_NONE;
  });
}

PyObject* resize(PyObject* self, PyObject* size) {
  return translate_errors([&] {
    if (!is_int(size)) {
      raise(PyExc_TypeError, str("resize_(): argument 'size' must be int, not ", type_name(size)));
    }
    const int64_t n = to_int(size);
    RL_CHECK(n >= 0, "Storage size must not be negative, but got ", n);
    // Tensors check their bounds when they are made: memory below them must not shrink.
    RL_CHECK(
        static_cast<size_t>(n) >= storage_of(self)->nbytes() || storage_of(self)->use_count() == 1,
        "resize_() would cut memory that tensors still use");
    storage_of(self)->resize(static_cast<size_t>(n));
    return Py_NewRef(self);
  });
}

// Tensors on it see the other storage's memory from now on.
PyObject* move_to(PyObject* self, PyObject* place) {
  return translate_errors([&]() -> PyObject* {
    storage_of(self)->move_to(unwrap_storage(place));
    Py_RETURN_NONE;
  });
}

PyObject* tolist(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Storage& s = storage_of(self);
    RL_CHECK_NOT_IMPLEMENTED(!s->device().is_meta(), "Not available for 'meta' device type");
    const auto* bytes = static_cast<const uint8_t*>(s->data());
    Object list = Object::check(PyList_New(static_cast<Py_ssize_t>(s->nbytes())));
    for (size_t i = 0; i < s->nbytes(); i++) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(bytes[i]));
    }
    return list.release();
  });
}

// The bytes as a tensor of one dimension.
Tensor bytes_of(const Storage& s) {
  auto impl = TensorImpl::make(s, kByte, s->device());
  impl->set_sizes_contiguous({static_cast<int64_t>(s->nbytes())});
  return Tensor(std::move(impl));
}

PyObject* clone(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const NoGradGuard no_grad;
    return make(Py_TYPE(self), rushlight::clone(bytes_of(storage_of(self))).storage());
  });
}

PyObject* copy_from(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"source", "non_blocking", nullptr};
    PyObject* source;
    int non_blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p:copy_", const_cast<char**>(names),
                                     &storage_type, &source, &non_blocking)) {
      throw PythonError();
    }
    const Storage& from = storage_of(source);
    RL_CHECK(from->nbytes() == storage_of(self)->nbytes(), "size does not match, self was ",
             storage_of(self)->nbytes(), " bytes, source ", from->nbytes());
    const NoGradGuard no_grad;
    bytes_of(storage_of(self)).copy_(bytes_of(from), non_blocking != 0);
    return Py_NewRef(self);
  });
}

uint8_t to_byte(PyObject* o) {
  RL_CHECK_TYPE(is_int(o), "a byte is an int, not ", type_name(o));
  const int64_t value = to_int(o);
  RL_CHECK_VALUE(value >= 0 && value < 256, "a byte is from 0 to 255, not ", value);
  return static_cast<uint8_t>(value);
}

PyObject* fill(PyObject* self, PyObject* value) {
  return translate_errors([&] {
    const Scalar byte(static_cast<int64_t>(to_byte(value)));
    const NoGradGuard no_grad;
    bytes_of(storage_of(self)).fill_(byte);
    return Py_NewRef(self);
  });
}

PyObject* on_device(PyObject* self, Device device, bool non_blocking) {
  const Storage& s = storage_of(self);
  if (resolve_device(device) == s->device()) {
    return Py_NewRef(self);
  }
  const NoGradGuard no_grad;
  return make(Py_TYPE(self),
              rushlight::to(bytes_of(s), device, std::nullopt, non_blocking, false).storage());
}
// UntypedStorage(size or bytes, device=None)
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"size", "device", nullptr};
    PyObject* content = nullptr;
    PyObject* place = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                     &content, &place)) {
      throw PythonError();
    }
    const Device device = resolve_device(place == Py_None ? kCPU : as_device(place));
    if (content == nullptr || is_int(content)) {
      const int64_t size = content == nullptr ? 0 : to_int(content);
      RL_CHECK(size >= 0, "Storage size must not be negative, but got ", size);
      return make(type, StorageImpl::allocate(static_cast<size_t>(size), device));
    }
    RL_CHECK_TYPE(PySequence_Check(content), "UntypedStorage(): expected a size or bytes, not ",
                  type_name(content));
    const Py_ssize_t n = PySequence_Size(content);
    Storage storage = StorageImpl::allocate(static_cast<size_t>(n), kCPU);
    for (Py_ssize_t i = 0; i < n; i++) {
      const Object byte = Object::check(PySequence_GetItem(content, i));
      static_cast<uint8_t*>(storage->data())[i] = to_byte(byte.get());
    }
    const Object bytes = Object::check(make(type, std::move(storage)));
    return on_device(bytes.get(), device, false);
  });
}

PyObject* to_device(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"device", "non_blocking", nullptr};
    PyObject* device = nullptr;
    int non_blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$Op:to", const_cast<char**>(names), &device,
                                     &non_blocking)) {
      throw PythonError();
    }
    RL_CHECK_TYPE(device != nullptr, "to() missing the keyword argument 'device'");
    return on_device(self, as_device(device), non_blocking != 0);
  });
}
PyObject* to_cpu(PyObject* self, PyObject*) {
  return translate_errors([&] { return on_device(self, kCPU, false); });
}
PyObject* return_self(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* return_one(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* is_cuda(PyObject* self, void*) {
  return PyBool_FromLong(storage_of(self)->device().is_cuda());
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(storage_of(self)->nbytes()); }
PyObject* item(PyObject* self, Py_ssize_t i) {
  const Storage& s = storage_of(self);
  if (s->device().is_meta()) {
    PyErr_SetString(PyExc_NotImplementedError, "Not available for 'meta' device type");
    return nullptr;
  }
  if (i < 0 || static_cast<size_t>(i) >= s->nbytes() || s->data() == nullptr) {
    PyErr_SetString(PyExc_IndexError, "storage index out of range");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<const uint8_t*>(s->data())[i]);
}

int set_item(PyObject* self, Py_ssize_t i, PyObject* value) {
  return translate_errors_to_status([&] {
    const Storage& s = storage_of(self);
    RL_CHECK_TYPE(value != nullptr, "the bytes of a storage cannot be deleted");
    RL_CHECK_INDEX(i >= 0 && static_cast<size_t>(i) < s->nbytes(), "storage index out of range");
    RL_CHECK(s->device().is_cpu(), "single bytes are written in main memory, not on ", s->device());
    static_cast<uint8_t*>(s->data())[i] = to_byte(value);
  });
}

// storage[i], and storage[i:j], which lies in the same memory.
PyObject* subscript(PyObject* self, PyObject* key) {
  return translate_errors([&]() -> PyObject* {
    const Storage& s = storage_of(self);
    if (!PySlice_Check(key)) {
      Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
      if (i == -1 && PyErr_Occurred() != nullptr) {
        throw PythonError();
      }
      return item(self, i < 0 ? i + length(self) : i);
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) {
      throw PythonError();
    }
    RL_CHECK(step == 1, "Trying to slice with a step of ", static_cast<int64_t>(step),
             ", but only a step of 1 is supported");
    const Py_ssize_t n = PySlice_AdjustIndices(length(self), &start, &stop, step);
    RL_CHECK(s->data() != nullptr || n == 0, "storage without memory has no parts");
    char* const first = static_cast<char*>(s->data()) + (n == 0 ? 0 : start);
    const auto release = [](void*, size_t, void* whole) { delete static_cast<Storage*>(whole); };
    s->fix_size();
    return make(Py_TYPE(self), StorageImpl::borrow(first, static_cast<size_t>(n), s->device(),
                                                   release, new Storage(s)));
  });
}

// from_file(filename, shared=False, nbytes=0): a file as memory.
PyObject* from_file(PyObject* cls, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"filename", "shared", "nbytes", nullptr};
    PyObject* filename = nullptr;
    int shared = 0;
    Py_ssize_t n = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|pn:from_file", const_cast<char**>(names),
                                     PyUnicode_FSConverter, &filename, &shared, &n)) {
      throw PythonError();
    }
    const Object held = Object::check(filename);
    return make(reinterpret_cast<PyTypeObject*>(cls),
                map_file(PyBytes_AS_STRING(filename), shared != 0, n));
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!is_storage(a) || !is_storage(b) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return hash_pointer(storage_of(self).get()); }

// Pickle and copy: the bytes, and what makes a storage of them.
PyObject* from_bytes(PyObject* cls, PyObject* bytes) {
  return translate_errors([&] {
    if (!PyBytes_Check(bytes)) {
      raise(PyExc_TypeError, str("_from_bytes(): expected bytes, but got ", type_name(bytes)));
    }
    const auto n = static_cast<size_t>(PyBytes_GET_SIZE(bytes));
    Storage storage = StorageImpl::allocate(n, kCPU);
    if (n != 0) {
      std::memcpy(storage->data(), PyBytes_AS_STRING(bytes), n);
    }
    return make(reinterpret_cast<PyTypeObject*>(cls), std::move(storage));
  });
}
PyObject* reduce(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Storage& s = storage_of(self);
    if (!s->device().is_cpu()) {  // it goes through main memory, and back to the same device
      const Object memory = Object::check(PyObject_CallMethod(self, "cpu", nullptr));
      static PyObject* back = nullptr;
      return check(Py_BuildValue("O(Os)", import_attribute(back, "rushlight._utils", "_storage_on"),
                                 memory.get(), s->device().str().c_str()));
    }
    const Object rebuild = Object::check(PyObject_GetAttrString(self, "_from_bytes"));
    const Object bytes = Object::check(PyBytes_FromStringAndSize(
        static_cast<const char*>(s->data()), static_cast<Py_ssize_t>(s->nbytes())));
    return check(Py_BuildValue("O(O)", rebuild.get(), bytes.get()));
  });
}

// _tensor_on(storage, dtype, offset, size, stride): a window, checked against the storage.
PyObject* tensor_on(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *storage, *dtype, *size, *stride;
    long long offset;
    if (!PyArg_ParseTuple(args, "O!O!LO!O!:_tensor_on", &storage_type, &storage, &dtype_type,
                          &dtype, &offset, &PyTuple_Type, &size, &PyTuple_Type, &stride)) {
      throw PythonError();
    }
    const auto ints = [](PyObject* tuple) {
      DimVector out;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        RL_CHECK_TYPE(is_int(PyTuple_GET_ITEM(tuple, i)), "_tensor_on(): expected a tuple of ints");
        out.push_back(to_int(PyTuple_GET_ITEM(tuple, i)));
      }
      return out;
    };
    const DimVector sizes = ints(size);
    const DimVector strides = ints(stride);
    const ScalarType t = *as_dtype(dtype);
    auto impl = TensorImpl::make(storage_of(storage), t, storage_of(storage)->device());
    impl->set_sizes_contiguous({0});
    const Tensor base(std::move(impl));
    return wrap(make_view(base, {sizes, strides, offset, t}));
  });
}
PyMethodDef module_functions[] = {{"_tensor_on", tensor_on, METH_VARARGS, nullptr}, {}};

PyMethodDef methods[] = {
    {"_from_bytes", from_bytes, METH_O | METH_CLASS, nullptr},
    {"from_file", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_file)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "A file as memory."},
    {"_weak_ref", weak_ref, METH_NOARGS, "A number that stands for it, without keeping it."},
    {"_expired", is_freed, METH_O | METH_STATIC, "Whether the storage of a number is gone."},
    {"_free_weak_ref", free_weak_ref, METH_O | METH_STATIC, "Gives a number back."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"nbytes", nbytes, METH_NOARGS, "The number of bytes."},
    {"size", nbytes, METH_NOARGS, "The number of bytes."},
    {"data_ptr", address, METH_NOARGS, "The address of the first byte."},
    {"__sizeof__", size_of, METH_NOARGS, "The size of the object and of its bytes."},
    {"resizable", resizable, METH_NOARGS, "Whether resize_ works."},
    {"resize_", resize, METH_O, "Grows the memory, keeping what it holds."},
    {"_move_to", move_to, METH_O, nullptr},
    {"tolist", tolist, METH_NOARGS, "The bytes as a list of ints."},
    {"clone", clone, METH_NOARGS, "A copy."},
    {"copy_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(copy_from)),
     METH_VARARGS | METH_KEYWORDS, "Takes the bytes of another storage of the same size."},
    {"fill_", fill, METH_O, "Gives all bytes one value."},
    {"to", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_device)),
     METH_VARARGS | METH_KEYWORDS, "A copy on a device; itself where it lies there."},
    {"cpu", to_cpu, METH_NOARGS, "A copy in main memory; itself where it lies there."},
    {"untyped", return_self, METH_NOARGS, "Itself."},
    {"element_size", return_one, METH_NOARGS, "1: its elements are bytes."},
    {},
};
PyGetSetDef getset[] = {
    {"device", device, nullptr, "Where it lies.", nullptr},
    {"is_cuda", is_cuda, nullptr, "Whether it lies on a GPU.", nullptr},
    {"_cdata", identity, nullptr, "Its identity as an int.", nullptr},
    {},
};
PySequenceMethods sequence = {.sq_length = length, .sq_item = item, .sq_ass_item = set_item};

PyMappingMethods mapping = {.mp_length = length, .mp_subscript = subscript};

PyTypeObject storage_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.StorageBase",
    .tp_basicsize = sizeof(StorageObject),
    .tp_dealloc = destroy,
    .tp_as_sequence = &sequence,
    .tp_as_mapping = &mapping,
    .tp_hash = hash,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "The memory below tensors; see UntypedStorage.\n"
        "\n"
        "For an example see `UntypedStorage`.",
    .tp_richcompare = compare,
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_new = construct,
};

}  // namespace

PyObject* wrap_storage(Storage storage) { return make(storage_class(), std::move(storage)); }

const Storage& unwrap_storage(PyObject* o) {
  RL_CHECK_TYPE(is_storage(o), "expected an UntypedStorage, but got ", type_name(o));
  return storage_of(o);
}

bool is_any_storage(PyObject* o) {
  return is_storage(o) || std::string_view(Py_TYPE(o)->tp_name) == "TypedStorage";
}

Tensor elements_of_storage(PyObject* storage, ScalarType dtype) {
  Object untyped = Object::borrow(storage);
  if (!is_storage(storage)) {
    const Object type = Object::check(PyObject_GetAttrString(storage, "dtype"));
    untyped = Object::check(PyObject_CallMethod(storage, "untyped", nullptr));
    RL_CHECK(as_dtype(type.get()) == dtype, "Expected a Storage of type ", dtype,
             " or an UntypedStorage, but got type ", *as_dtype(type.get()));
  }
  const Storage& bytes = unwrap_storage(untyped.get());
  auto impl = TensorImpl::make(bytes, dtype, bytes->device());
  impl->set_sizes_contiguous({static_cast<int64_t>(bytes->nbytes()) / itemsize(dtype)});
  return Tensor(std::move(impl));
}

void init_storage(PyObject* module) {
  ready(storage_type);
  add(module, "StorageBase", reinterpret_cast<PyObject*>(&storage_type));
  check(PyModule_AddFunctions(module, module_functions));
}

}  // namespace rushlight::python
