// The Python object of a tensor. `rushlight._C.TensorBase` is the C type; `rushlight.Tensor` is the
// Python class over it (python/rushlight/_tensor.py) whose instances `wrap` makes.
//
// A tensor has at most one Python object, so `t.grad is t.grad`. As a rule the object owns the
// impl. When it would die while C++ still holds the impl (and it has an identity worth keeping),
// the two change places: the impl owns the object, which only borrows (`lent`) until it is seen
// again or the impl's last reference goes.
#pragma once

#include "python/common.h"

namespace rushlight::python {

struct TensorObject {
  PyObject_HEAD Tensor tensor;  // undefined while lent
  TensorImpl* lent;             // the impl that owns this object; null otherwise
  PyObject* dict;
  PyObject* weak_references;
};

extern PyTypeObject tensor_base_type;
extern PyTypeObject tensor_meta_type;
extern PyTypeObject*
    tensor_class;  // rushlight.Tensor; tensor_base_type until the package has made it

// None for an undefined tensor; the object that exists, or a new one of class Tensor.
PyObject* wrap(Tensor t);
// A new object of the class `type`; `t` has none yet.
PyObject* wrap_as(PyTypeObject* type, Tensor t);

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_class; }
inline bool is_tensor(PyObject* o) {
  return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), &tensor_base_type) != 0;
}

void take_back(TensorObject* o);
// The tensor of an object for which is_tensor holds.
inline const Tensor& unwrap(PyObject* o) {
  auto* t = reinterpret_cast<TensorObject*>(o);
  if (RL_UNLIKELY(!t->tensor.defined())) {
    take_back(t);
  }
  return t->tensor;
}
// TypeError where `o` is no tensor.
const Tensor& expect_tensor(PyObject* o, const char* what);

// What autograd keeps for a tensor in Python objects (hooks): set by the autograd bindings.
struct AutogradVisitor {
  int (*visit)(TensorImpl& impl, visitproc visit, void* arg);
  void (*clear)(TensorImpl& impl);
};
void set_autograd_visitor(AutogradVisitor visitor);

// Makes a tensor special where the class of its object has a __torch_dispatch__ (dispatch.cpp).
void attach_dispatch(PyTypeObject* type, const Tensor& t);

// The slots and methods of TensorBase come from the files that know them; called once, before the
// type is made ready.
void add_methods(const PyMethodDef* methods);  // an array that ends with a null name
void add_getset(const PyGetSetDef* getset);
void init_tensor_type(PyObject* module);

}  // namespace rushlight::python
