// DLPack: tensors handed to and taken from other libraries without copying, as capsules
// ("dltensor", and "dltensor_versioned" since version 1). The structs are DLPack's binary
// interface; python/rushlight/utils/dlpack.py is the protocol around them.
#include <cstring>

#include "core/op_support.h"
#include "core/sparse.h"
#include "python/bindings.h"
#include "python/convert.h"
#include "python/tensor_type.h"

namespace rushlight::python {

namespace {

struct DLDevice {
  int32_t type;
  int32_t index;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null for contiguous
  uint64_t byte_offset;
};
struct Managed {
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

constexpr uint64_t flag_read_only = 1;
constexpr uint64_t flag_copied = 2;
constexpr int32_t device_cpu = 1;
constexpr int32_t device_cuda_host = 3;  // pinned memory: the CPU's as well

// The names of capsules: fresh, and after somebody took the tensor over.
template <class M>
constexpr const char* fresh_name = std::is_same_v<M, Managed> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* used_name =
    std::is_same_v<M, Managed> ? "used_dltensor" : "used_dltensor_versioned";

DLDataType dl_type(ScalarType t) {
  return {dtype_info(t).dlpack, static_cast<uint8_t>(8 * itemsize(t)), 1};
}

ScalarType dtype_of(DLDataType type) {
  for (const ScalarType t : all_dtypes) {
    const DLDataType ours = dl_type(t);
    if (ours.code == type.code && ours.bits == type.bits && type.lanes == 1) {
      return t;
    }
  }
  raise(PyExc_RuntimeError, str("Unsupported dtype in DLPack tensor: code ", int{type.code}, ", ",
                                int{type.bits}, " bits, ", type.lanes, " lanes"));
}

// ---- to a capsule ----

template <class M>
struct ExportedTensor {
  M managed = {};
  Storage storage;  // the memory as it is now, whatever becomes of the tensor
  DimVector sizes;
  DimVector strides;
};

template <class M>
void drop_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, fresh_name<M>) != 0) {  // nobody took it over
    auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, fresh_name<M>));
    if (managed->deleter != nullptr) {
      managed->deleter(managed);
    }
  }
}

template <class M>
PyObject* export_as(const Tensor& t, uint64_t flags) {
  auto exported = std::make_unique<ExportedTensor<M>>();
  exported->storage = t.storage();
  exported->sizes = DimVector(t.sizes());
  exported->strides = DimVector(t.strides());
  exported->storage->fix_size();  // the address stays while others hold it
  M& m = exported->managed;
  m.tensor = {t.data_ptr(),
              {device_cpu, 0},
              static_cast<int32_t>(t.dim()),
              dl_type(t.dtype()),
              exported->sizes.data(),
              exported->strides.data(),
              0};
  m.context = exported.get();
  m.deleter = [](M* managed) { delete static_cast<ExportedTensor<M>*>(managed->context); };
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    m.major = 1;
    m.minor = 0;
    m.flags = flags;
  }
  PyObject* capsule = check(PyCapsule_New(&m, fresh_name<M>, drop_capsule<M>));
  (void)exported.release();
  return capsule;
}

// _to_dlpack(tensor, versioned, copied)
PyObject* to_dlpack(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* o;
    int versioned;
    int copied;
    if (!PyArg_ParseTuple(args, "Opp:to_dlpack", &o, &versioned, &copied)) {
      throw PythonError();
    }
    const Tensor& t = expect_tensor(o, "to_dlpack(): argument 'tensor'");
    if (!t.is_cpu()) {
      raise(PyExc_BufferError, str("Cannot pack tensors on ", t.device()));
    }
    if (t.impl()->special() != nullptr) {
      try {
        t.impl()->special()->check_has_memory();
      } catch (const Error&) {
        raise(PyExc_BufferError,
              str("Can't export tensors with layout other than torch.strided, or whose class keeps "
                  "them otherwise: ",
                  type_name(o), " of layout ", layout_text(layout_of(t))));
      }
    }
    return versioned != 0 ? export_as<ManagedVersioned>(t, copied != 0 ? flag_copied : 0)
                          : export_as<Managed>(t, 0);
  });
}

// ---- from a capsule ----

template <class M>
void release_imported(void*, size_t, void* context) {
  auto* managed = static_cast<M*>(context);
  if (managed->deleter == nullptr) {
    return;
  }
  if (!Py_IsInitialized()) {
    return;  // its owner is gone
  }
  const WithGil gil;
  managed->deleter(managed);
}

// The geometry, checked; the tensor has no storage yet. Sets the number of bytes that it spans.
Ref<TensorImpl> wrap_dltensor(const DLTensor& dl, size_t& nbytes) {
  RL_CHECK(dl.device.type == device_cpu || dl.device.type == device_cuda_host,
           "from_dlpack: the tensor lies on a device of DLPack's type ", dl.device.type,
           ", which this build cannot read");
  RL_CHECK(dl.ndim >= 0 && dl.ndim <= 64 && (dl.ndim == 0 || dl.shape != nullptr),
           "from_dlpack: a tensor with ", dl.ndim, " dimensions");
  const ScalarType t = dtype_of(dl.dtype);
  const DimVector sizes(IntArrayRef(dl.shape, static_cast<size_t>(dl.ndim)));
  auto impl = TensorImpl::make(StorageImpl::borrow(nullptr, 0, kCPU, nullptr, nullptr), t, kCPU);
  impl->set_sizes_contiguous(sizes);
  if (dl.strides != nullptr && dl.ndim != 0) {
    const DimVector strides(IntArrayRef(dl.strides, static_cast<size_t>(dl.ndim)));
    for (const int64_t s : strides) {
      RL_CHECK_AS(ValueError, s >= 0,
                  "from_dlpack: tensors with negative strides are not supported; copy the array "
                  "first");
    }
    impl->set_sizes_and_strides(sizes, strides);
  }
  nbytes = 0;
  if (impl->numel() != 0) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); d++) {
      last += (sizes[d] - 1) * impl->strides()[d];
    }
    nbytes = static_cast<size_t>(last + 1) * static_cast<size_t>(itemsize(t));
    const auto address = reinterpret_cast<uintptr_t>(dl.data) + dl.byte_offset;
    RL_CHECK(dl.data != nullptr, "from_dlpack: a tensor with elements but without memory");
    RL_CHECK(address % static_cast<uintptr_t>(std::min<int64_t>(itemsize(t), 8)) == 0,
             "from_dlpack: the memory is not aligned for ", t);
  }
  return impl;
}

template <class M>
Tensor import_as(PyObject* capsule, bool may_copy) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, fresh_name<M>));
  bool read_only = false;
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    if (managed->major > 1) {
      raise(PyExc_BufferError, str("from_dlpack: a tensor of DLPack version ", managed->major, ".",
                                   managed->minor, "; 1 is the newest known"));
    }
    read_only = (managed->flags & flag_read_only) != 0;
    if (read_only && !may_copy) {
      raise(PyExc_BufferError, "from_dlpack: the memory may only be read, so it must be copied");
    }
  }
  size_t nbytes;
  Ref<TensorImpl> impl = wrap_dltensor(managed->tensor, nbytes);
  char* data = static_cast<char*>(managed->tensor.data) + managed->tensor.byte_offset;
  check(PyCapsule_SetName(capsule, used_name<M>));
  impl->set_storage(StorageImpl::borrow(nbytes != 0 ? data : nullptr, nbytes, kCPU,
                                        release_imported<M>, managed));
  const Tensor shared(std::move(impl));
  if (!read_only) {
    return shared;
  }
  // Writing through the tensor could reach memory that may not be written.
  Tensor copy = make_empty(shared.sizes(), shared.dtype(), kCPU);
  copy_raw(copy, shared);
  return copy;
}

// _from_dlpack(capsule, may_copy)
PyObject* from_dlpack(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* capsule;
    int may_copy;
    if (!PyArg_ParseTuple(args, "Op:from_dlpack", &capsule, &may_copy)) {
      throw PythonError();
    }
    if (PyCapsule_IsValid(capsule, fresh_name<ManagedVersioned>) != 0) {
      return wrap(import_as<ManagedVersioned>(capsule, may_copy != 0));
    }
    RL_CHECK(PyCapsule_IsValid(capsule, fresh_name<Managed>) != 0,
             "from_dlpack received an invalid capsule: expected one that nobody has made a tensor "
             "of yet, named 'dltensor' or 'dltensor_versioned'");
    return wrap(import_as<Managed>(capsule, may_copy != 0));
  });
}

PyMethodDef functions[] = {
    {"_to_dlpack", to_dlpack, METH_VARARGS, nullptr},
    {"_from_dlpack", from_dlpack, METH_VARARGS, nullptr},
    {},
};

}  // namespace

void init_dlpack(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
