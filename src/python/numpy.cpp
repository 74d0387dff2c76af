// numpy arrays to tensors and back, sharing memory.
#include "python/numpy.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/op_support.h"
#include "core/recording.h"
#include "core/times.h"
#include "python/convert.h"
#include "python/tensor_type.h"

namespace rushlight::python {

namespace {

// ---- making arrays ----

// numpy's table of functions: places and types are fixed by its C ABI, which 1.x and 2.x share.
using NewArray = PyObject* (*)(PyTypeObject* type, int ndim, const Py_ssize_t* sizes, int dtype,
                               const Py_ssize_t* strides, void* data, int itemsize, int flags,
                               PyObject* object);
using SetBase = int (*)(PyObject* array, PyObject* base);
constexpr int place_array_type = 2;
constexpr int place_new_array = 93;
constexpr int place_set_base = 282;
constexpr int flag_contiguous = 0x0001;
constexpr int flag_writeable = 0x0400;
constexpr int flag_aligned = 0x0100;

struct NumpyApi {
  PyTypeObject* array_type;
  NewArray new_array;
  SetBase set_base;
};

const NumpyApi& numpy_api() {
  static NumpyApi api = {};
  if (api.new_array == nullptr) {
    Object module = Object::maybe(PyImport_ImportModule("numpy._core._multiarray_umath"));
    if (!module) {
      PyErr_Clear();  // numpy 1.x
      module = Object::maybe(PyImport_ImportModule("numpy.core._multiarray_umath"));
    }
    if (!module) {
      PyErr_Clear();
      raise(PyExc_RuntimeError, "Numpy is not available");
    }
    const Object capsule = Object::check(PyObject_GetAttrString(module.get(), "_ARRAY_API"));
    void** table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
    if (table == nullptr) {
      throw PythonError();
    }
    api.array_type = static_cast<PyTypeObject*>(table[place_array_type]);
    api.set_base = reinterpret_cast<SetBase>(table[place_set_base]);
    api.new_array = reinterpret_cast<NewArray>(table[place_new_array]);
  }
  return api;
}

void release_storage(PyObject* capsule) {
  Storage::steal(static_cast<StorageImpl*>(PyCapsule_GetPointer(capsule, nullptr)));
}

// ---- reading them ----

// The dtype of a buffer's format; Undefined where there is none. `swapped`: of the other byte
// order.
ScalarType dtype_of_format(const char* format, Py_ssize_t itemsize, bool& swapped) {
  swapped = *format == '>' || *format == '!';
  if (std::strchr("@=<>!^", *format) != nullptr && *format != '\0') {
    format++;
  }
  const bool is_complex = *format == 'Z';
  format += is_complex;
  if (*format == '\0' || format[1] != '\0') {
    return ScalarType::Undefined;
  }
  const char c = *format;
  if (is_complex) {
    return c == 'f' ? kComplexFloat : c == 'd' ? kComplexDouble : ScalarType::Undefined;
  }
  if (c == '?') {
    return kBool;
  }
  if (c == 'e' || c == 'f' || c == 'd') {
    return c == 'e' ? kFloat16 : c == 'f' ? kFloat32 : kFloat64;
  }
  if (std::strchr("bhilqn", c) != nullptr) {
    return itemsize == 1 ? kInt8 : itemsize == 2 ? kInt16 : itemsize == 4 ? kInt32 : kInt64;
  }
  if (std::strchr("BHILQN", c) != nullptr) {
    return itemsize == 1 ? kUInt8 : itemsize == 2 ? kUInt16 : itemsize == 4 ? kUInt32 : kUInt64;
  }
  return ScalarType::Undefined;
}

// A buffer as long as a storage lies on it, and that storage where the buffer's owner may refer
// back.
struct Buffer {
  Py_buffer view;
  const StorageImpl* storage = nullptr;
};

// Owners that Python's collector knows, by storage; behind the GIL.
std::unordered_map<const StorageImpl*, PyObject*> owners;

void release_buffer(void*, size_t, void* context) {
  const std::unique_ptr<Buffer> buffer(static_cast<Buffer*>(context));
  if (Py_IsInitialized()) {
    const WithGil gil;
    if (buffer->storage != nullptr) {
      owners.erase(buffer->storage);
    }
    PyBuffer_Release(&buffer->view);
  }
}

Storage storage_on(Buffer* buffer, size_t nbytes) {
  Storage storage = StorageImpl::borrow(buffer->view.buf, nbytes, kCPU, release_buffer, buffer);
  PyObject* const owner = buffer->view.obj;
  if (owner != nullptr && PyObject_IS_GC(owner)) {
    buffer->storage = storage.get();
    owners.emplace(storage.get(), owner);
  }
  return storage;
}

std::string dtype_name(PyObject* array) {
  const Object dtype = Object::maybe(PyObject_GetAttrString(array, "dtype"));
  if (!dtype) {
    PyErr_Clear();
    return type_name(array);
  }
  const Object name = Object::check(PyObject_Str(dtype.get()));
  return std::string(text_view(name.get()));
}

[[noreturn]] void unsupported_dtype(PyObject* array) {
  const Object type = Object::maybe(PyObject_GetAttrString(array, "dtype"));
  PyErr_Clear();
  const Object kind = Object::maybe(type ? PyObject_GetAttrString(type.get(), "type") : nullptr);
  PyErr_Clear();
  const std::string name =
      kind && PyType_Check(kind.get())
          ? std::string("numpy.") + reinterpret_cast<PyTypeObject*>(kind.get())->tp_name
          : dtype_name(array);
  const size_t dot = name.rfind("numpy.numpy.");
  refuse_numpy_type(dot == std::string::npos ? name : name.substr(6));
}

// `buffer` is filled and becomes the tensor's.
Tensor from_view(Buffer* buffer, PyObject* object) {
  const Py_buffer* const view = &buffer->view;
  bool swapped = false;
  const ScalarType t =
      dtype_of_format(view->format != nullptr ? view->format : "B", view->itemsize, swapped);
  const auto fail = [&](PyObject* type, const char* message) {
    release_buffer(nullptr, 0, buffer);
    raise(type, message);
  };
  if (t == ScalarType::Undefined) {
    release_buffer(nullptr, 0, buffer);
    unsupported_dtype(object);
  }
  if (swapped && view->itemsize > 1) {
    fail(PyExc_ValueError,
         "the given numpy array has a byte order that is not this machine's: "
         "array.astype(array.dtype.newbyteorder('=')) has this one.");
  }
  DimVector sizes;
  DimVector strides;
  int64_t last = 0;  // of the bytes, the offset of the last element
  for (int i = 0; i < view->ndim; i++) {
    const int64_t size = view->shape[i];
    const int64_t step = view->strides[i];
    sizes.push_back(size);
    if (step < 0) {
      fail(PyExc_ValueError,
           "the given numpy array has negative strides, and a tensor has none: array.copy() has "
           "positive ones.");
    }
    if (step % view->itemsize != 0) {
      fail(PyExc_ValueError,
           "the given numpy array has strides not a multiple of the size of its elements: "
           "array.copy() has such strides.");
    }
    strides.push_back(step / view->itemsize);
    last += size > 0 ? (size - 1) * step : 0;
  }
  if (view->ndim > 64) {
    fail(PyExc_ValueError, "only tensors with up to 64 dims are supported");
  }
  const bool empty = product(sizes) == 0;
  const size_t nbytes = empty ? 0 : static_cast<size_t>(last + view->itemsize);
  auto impl = TensorImpl::make(storage_on(buffer, nbytes), t, kCPU);
  impl->set_sizes_and_strides(sizes, strides);
  return Tensor(std::move(impl));
}

// The head of numpy's objects, as its C ABI fixes it.
struct ArrayFields {
  PyObject_HEAD char* data;
  int ndim;
  int64_t* sizes;
  int64_t* strides;
  PyObject* base;
  PyObject* descr;
  int flags;
};
struct DescrFields {
  PyObject_HEAD PyTypeObject* type;
  char kind;
  char letter;
  char byteorder;
  char former_flags;
  int number;
};
static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));

ScalarType dtype_of_number(int number) {
  if (number == 9 || number == 10) {
    return number == 9 ? kInt64 : kUInt64;  // long long
  }
  for (const ScalarType t : all_dtypes) {
    if (dtype_info(t).numpy == number) {
      return t;
    }
  }
  return ScalarType::Undefined;
}

}  // namespace

bool view_array(PyObject* o, ArrayView& view) {
  if (!is_numpy_array(o)) {
    return false;
  }
  const auto* a = reinterpret_cast<const ArrayFields*>(o);
  const auto* d = reinterpret_cast<const DescrFields*>(a->descr);
  const auto n = static_cast<size_t>(a->ndim);
  const bool plain = d->byteorder != '>' && (a->flags & flag_aligned) != 0;
  view = {a->data, IntArrayRef(a->sizes, n), IntArrayRef(a->strides, n),
          plain ? dtype_of_number(d->number) : ScalarType::Undefined,
          (a->flags & flag_contiguous) != 0};
  return true;
}

void refuse_numpy_type(std::string_view type) {
  raise(PyExc_TypeError,
        str("can't convert np.ndarray of type ", type,
            ": a tensor holds bools, integers of 1 to 8 bytes, floats of 2, 4 or 8, and complex "
            "numbers of 8 or 16. array.astype() makes some of its elements."));
}

PyObject* to_numpy(const Tensor& t) {
  refuse_in_recording("looks at a tensor as a NumPy array");
  RL_CHECK_TYPE(t.layout() == kStrided,
                "can't convert a sparse tensor to numpy. Use Tensor.to_dense() first.");
  RL_CHECK_TYPE(
      t.is_cpu(), "can't convert ", t.device(),
      " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  const int type = dtype_info(t.dtype()).numpy;
  RL_CHECK_TYPE(type >= 0, "Got unsupported ScalarType ", enum_name(t.dtype()));
  const NumpyApi& api = numpy_api();
  Py_ssize_t sizes[64];
  Py_ssize_t strides[64];
  for (int64_t i = 0; i < t.dim(); i++) {
    sizes[i] = t.sizes()[static_cast<size_t>(i)];
    strides[i] = times(t.strides()[static_cast<size_t>(i)], t.element_size());
  }
  static char nothing[16];
  void* data = t.numel() != 0 ? t.data_ptr() : nothing;
  Object array =
      Object::check(api.new_array(api.array_type, static_cast<int>(t.dim()), sizes, type, strides,
                                  data, 0, flag_writeable | flag_aligned, nullptr));
  // The memory stays where it is while the array lives, whatever becomes of the tensor.
  t.storage()->fix_size();
  Storage storage = t.storage();
  PyObject* keeper = check(PyCapsule_New(storage.get(), nullptr, release_storage));
  (void)storage.leak();
  check(api.set_base(array.get(), keeper));  // takes the keeper over
  return array.release();
}

Tensor from_buffer(PyObject* object, bool& read_only) {
  read_only = false;
  if (!PyObject_CheckBuffer(object)) {
    return Tensor();
  }
  auto buffer = std::make_unique<Buffer>();
  if (PyObject_GetBuffer(object, &buffer->view, PyBUF_RECORDS) < 0) {
    PyErr_Clear();
    read_only = true;
    if (PyObject_GetBuffer(object, &buffer->view, PyBUF_RECORDS_RO) < 0) {
      PyErr_Clear();
      unsupported_dtype(object);
    }
  }
  return from_view(buffer.release(), object);
}

namespace {
// Whether objects of a type keep their memory when the collector clears them: a memoryview lets go
// of it, and an array of ctypes frees it, whoever still reads it. Classes in Python clear their
// attributes alone.
bool keeps_memory(const PyTypeObject* type) {
  const inquiry clears_attributes = tensor_class->tp_clear;
  for (; type != nullptr; type = type->tp_base) {
    if (type->tp_clear != nullptr && type->tp_clear != clears_attributes) {
      return false;
    }
  }
  return true;
}
}  // namespace

PyObject* buffer_owner(const TensorImpl& impl) {
  if (owners.empty() || !impl.storage() || impl.storage()->use_count() != 1) {
    return nullptr;
  }
  const auto found = owners.find(impl.storage().get());
  return found != owners.end() && keeps_memory(Py_TYPE(found->second)) ? found->second : nullptr;
}

Tensor from_numpy(PyObject* array, bool warns) {
  if (!is_numpy_array(array)) {
    raise(PyExc_TypeError,
          str("from_numpy(): expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")"));
  }
  bool read_only;
  const Tensor shared = from_buffer(array, read_only);
  if (!read_only) {
    return shared;
  }
  if (warns) {
    warn(
        "The given NumPy array is not writable, and a tensor is: this one is a copy. In PyTorch it "
        "lies in the array, and writing to it is undefined.");
  }
  // Writing through the tensor could reach memory that may not be written (a file mapped to be
  // read).
  Tensor copy = make_empty(shared.sizes(), shared.dtype(), kCPU);
  copy_raw(copy, shared);
  return copy;
}

Tensor of_buffer(PyObject* buffer, ScalarType t, int64_t count, int64_t offset) {
  auto held = std::make_unique<Buffer>();
  const Py_buffer* const view = &held->view;
  // Read-only memory is copied: nothing may write it.
  bool read_only = false;
  if (PyObject_GetBuffer(buffer, &held->view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    read_only = true;
    if (PyObject_GetBuffer(buffer, &held->view, PyBUF_SIMPLE) < 0) {
      PyErr_Clear();
      throw ValueError("object does not implement Python buffer protocol.");
    }
  }
  const Storage storage = storage_on(held.release(), static_cast<size_t>(view->len));
  const int64_t size = itemsize(t);
  RL_CHECK_VALUE(view->len > 0 && count != 0, "both buffer length (",
                 static_cast<int64_t>(view->len), ") and count (", count, ") must not be 0");
  RL_CHECK_VALUE(offset >= 0 && offset < view->len, "offset (", offset,
                 " bytes) must be non-negative and no greater than ", "buffer length (",
                 static_cast<int64_t>(view->len), " bytes) minus 1");
  const int64_t available = view->len - offset;
  RL_CHECK_VALUE(count > 0 || available % size == 0, "buffer length (", available,
                 " bytes) after offset (", offset, " bytes) must be a multiple of element size (",
                 size, ")");
  const int64_t n = count < 0 ? available / size : count;
  RL_CHECK_VALUE(n <= available / size, "requested buffer length (", n, " * ", size,
                 " bytes) after offset (", offset,
                 " bytes) must not be greater than actual buffer length (",
                 static_cast<int64_t>(view->len), " bytes)");
  const bool aligned = reinterpret_cast<uintptr_t>(static_cast<char*>(view->buf) + offset) %
                               static_cast<uintptr_t>(size) ==
                           0 &&
                       offset % size == 0;
  if (read_only) {
    warn(
        "The given buffer is not writable, and a tensor is: this one is a copy. In PyTorch it lies "
        "in the buffer, and writing to it is undefined.");
  }
  if (!aligned || read_only) {
    Tensor copy = make_empty({n}, t, kCPU);
    std::copy_n(static_cast<const char*>(view->buf) + offset, n * size,
                static_cast<char*>(copy.data_ptr()));
    return copy;
  }
  auto impl = TensorImpl::make(storage, t, kCPU);
  impl->set_sizes_contiguous({n});
  impl->set_storage_offset(offset / size);
  return Tensor(std::move(impl));
}

}  // namespace rushlight::python
