// DLPack: tensors handed to and taken from other libraries without copying, as capsules
// ("dltensor", and "dltensor_versioned" since version 1). python/rushlight/utils/dlpack.py is the
// protocol around them.
#include <cstring>

#include "core/dlpack.h"
#include "core/sparse.h"
#include "python/bindings.h"
#include "python/convert.h"
#include "python/tensor_type.h"

namespace rushlight::python {

namespace {

constexpr uint64_t flag_read_only = 1;
constexpr uint64_t flag_copied = 2;

// The names of capsules: fresh, and after somebody took the tensor over.
template <class M>
constexpr const char* fresh_name =
    std::is_same_v<M, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* used_name =
    std::is_same_v<M, DLManagedTensor> ? "used_dltensor" : "used_dltensor_versioned";

// ---- to a capsule ----

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
PyObject* capsule_of(const Tensor& t, uint64_t flags) {
  M* const m = dlpack::export_as<M>(t);
  if constexpr (std::is_same_v<M, DLManagedTensorVersioned>) {
    m->version = {1, 0};
    m->flags = flags;
  }
  PyObject* const capsule = PyCapsule_New(m, fresh_name<M>, drop_capsule<M>);
  if (capsule == nullptr) {
    m->deleter(m);
  }
  return check(capsule);
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
    return versioned != 0 ? capsule_of<DLManagedTensorVersioned>(t, copied != 0 ? flag_copied : 0)
                          : capsule_of<DLManagedTensor>(t, 0);
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

template <class M>
Tensor import_as(PyObject* capsule, bool may_copy) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, fresh_name<M>));
  bool read_only = false;
  if constexpr (std::is_same_v<M, DLManagedTensorVersioned>) {
    if (managed->version.major > 1) {
      raise(PyExc_BufferError,
            str("from_dlpack: a tensor of DLPack version ", managed->version.major, ".",
                managed->version.minor, "; 1 is the newest known"));
    }
    read_only = (managed->flags & flag_read_only) != 0;
    if (read_only && !may_copy) {
      raise(PyExc_BufferError, "from_dlpack: the memory may only be read, so it must be copied");
    }
  }
  const Tensor shared = dlpack::import_from(managed->dl_tensor, release_imported<M>, managed);
  check(PyCapsule_SetName(capsule, used_name<M>));
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
    if (PyCapsule_IsValid(capsule, fresh_name<DLManagedTensorVersioned>) != 0) {
      return wrap(import_as<DLManagedTensorVersioned>(capsule, may_copy != 0));
    }
    RL_CHECK(PyCapsule_IsValid(capsule, fresh_name<DLManagedTensor>) != 0,
             "from_dlpack received an invalid capsule: expected one that nobody has made a tensor "
             "of yet, named 'dltensor' or 'dltensor_versioned'");
    return wrap(import_as<DLManagedTensor>(capsule, may_copy != 0));
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
