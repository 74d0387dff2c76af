// Lifetime of tensors' Python objects: allocation with a free list, resurrection, garbage
// collection, release off the GIL.
#include "python/tensor_type.h"

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include <rushlight/autograd.h>

#include "python/cycles.h"
#include "python/numpy.h"
#include "python/torch_function.h"

namespace rushlight::python {

PyTypeObject* tensor_class = &tensor_base_type;

namespace {

TensorObject* as_object(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// ---- allocation ----

constexpr int free_list_capacity = 256;
TensorObject*
    free_list[free_list_capacity];  // dead objects of the class Tensor, with their reference to it
int free_list_size = 0;

// ---- objects whose impl died while the GIL was not held ----

std::mutex dropped_mutex;
std::vector<PyObject*> dropped;
std::atomic<bool> any_dropped{false};

// The impl's last reference is gone: its object owns it again, and loses the impl's reference to
// itself.
void drop_object_of(PyObject* o) {
  TensorObject* object = as_object(o);
  TensorImpl* impl = object->lent;
  impl->retain();
  object->tensor = Tensor(Ref<TensorImpl>::steal(impl));
  object->lent = nullptr;
  impl->set_python(o, false);
  Py_DECREF(o);
}

void drop_queued() {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(dropped_mutex);
    objects.swap(dropped);
    any_dropped.store(false, std::memory_order_relaxed);
  }
  for (PyObject* o : objects) {
    drop_object_of(o);
  }
}

int drain_pending(void*) {
  drop_queued();
  return 0;
}

void release_hook(PyObject* o) {
  if (!Py_IsInitialized()) {
    return;  // at exit the memory goes with the process
  }
  if (PyGILState_Check()) {
    drop_object_of(o);
    return;
  }
  bool first;
  {
    const std::lock_guard lock(dropped_mutex);
    dropped.push_back(o);
    first = !any_dropped.exchange(true, std::memory_order_relaxed);
  }
  if (first) {
    // May fail when the queue is full: then the next allocation drains.
    (void)Py_AddPendingCall(drain_pending, nullptr);
  }
}

TensorObject* allocate(PyTypeObject* type) {
  if (RL_UNLIKELY(any_dropped.load(std::memory_order_relaxed))) {
    drop_queued();
  }
  if (type == tensor_class && free_list_size != 0) {
    TensorObject* object = free_list[--free_list_size];
    _Py_NewReference(reinterpret_cast<PyObject*>(object));
    PyObject_GC_Track(object);
    return object;
  }
  PyObject* o = type->tp_alloc(type, 0);
  if (o == nullptr) {
    throw PythonError();
  }
  return as_object(o);  // zero-filled: an undefined tensor, nothing lent
}

// ---- death and resurrection ----

// Called at a reference count of zero. True when the object lives on, owned by its impl. Python has
// by then run __del__ of a subclass and emptied its __slots__; the dict is whole.
bool resurrect(PyObject* o) {
  TensorObject* object = as_object(o);
  if (!object->tensor.defined() || object->tensor.use_count() == 1) {
    return false;
  }
  TensorImpl* impl = object->tensor.impl();
  const bool plain =
      Py_TYPE(o) == tensor_class && object->dict == nullptr && object->weak_references == nullptr;
  if (plain && impl->requires_grad()) {
    return false;  // a result that autograd saved: nobody can tell a new object from this one
  }
  note_tie();
  Py_SET_REFCNT(o, 2);  // the impl's and, for the moment, our own
  object->lent = impl;
  impl->set_python(o, true);
  object->tensor.reset();  // runs the release hook at once where C++ let go in the meantime
  Py_SET_REFCNT(o, Py_REFCNT(o) - 1);
  return Py_REFCNT(o) != 0;
}

void dealloc(PyObject* o) {
  if (resurrect(o)) {
    return;
  }
  TensorObject* object = as_object(o);
  PyObject_GC_UnTrack(o);
  Tensor tensor = std::move(object->tensor);
  if (tensor.defined() && tensor.impl()->python() == o) {
    tensor.impl()->set_python(nullptr, false);
  }
  if (object->weak_references != nullptr) {
    PyObject_ClearWeakRefs(o);
  }
  Py_CLEAR(object->dict);
  tensor.reset();
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_class && free_list_size < free_list_capacity) {
    free_list[free_list_size++] = object;
    return;
  }
  type->tp_free(o);
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    Py_DECREF(type);
  }
}

// ---- garbage collection ----

AutogradVisitor autograd_visitor = {nullptr, nullptr};

// An object that would be resurrected is no garbage, whatever refers to it.
bool sole_owner(const TensorObject* object) {
  return object->lent == nullptr && (!object->tensor.defined() || object->tensor.use_count() == 1);
}

// In a collection that goes through C++: what the object is the holder of is seen as it is.
const Shadow* shadow_behind(PyObject* o) {
  const Tensor& t = as_object(o)->tensor;
  return showing_cycles && t.defined() ? shadow_of(*t.impl(), o) : nullptr;
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  TensorObject* object = as_object(o);
  const Shadow* shadow = shadow_behind(o);
  if (shadow != nullptr || (showing_cycles && object->lent != nullptr)) {
    Py_VISIT(object->dict);
    return shadow != nullptr ? visit_shadow(*shadow, visit, arg) : 0;
  }
  if (!sole_owner(object)) {
    return 0;
  }
  Py_VISIT(object->dict);
  if (!object->tensor.defined()) {
    return 0;
  }
  TensorImpl& impl = *object->tensor.impl();
  Py_VISIT(buffer_owner(impl));
  AutogradMeta* meta = impl.autograd();
  if (meta == nullptr) {
    return 0;
  }
  if (meta->grad.defined() && meta->grad.use_count() == 1 && meta->grad.impl()->owns_python()) {
    Py_VISIT(meta->grad.impl()->python());
  }
  return autograd_visitor.visit != nullptr ? autograd_visitor.visit(impl, visit, arg) : 0;
}

int clear(PyObject* o) {
  TensorObject* object = as_object(o);
  if (shadow_behind(o) != nullptr || (showing_cycles && object->lent != nullptr)) {
    Py_CLEAR(object->dict);  // the shadow clears the rest
    return 0;
  }
  if (!sole_owner(object)) {
    return 0;
  }
  Py_CLEAR(object->dict);
  if (object->tensor.defined() && object->tensor.impl()->autograd() != nullptr &&
      autograd_visitor.clear != nullptr) {
    autograd_visitor.clear(*object->tensor.impl());
  }
  return 0;
}

// ---- registration ----

std::vector<PyMethodDef> methods;
std::vector<PyGetSetDef> getset;

PyGetSetDef own_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

// _C._set_tensor_class(cls): the package tells which class `wrap` makes.
PyObject* set_tensor_class(PyObject*, PyObject* cls) {
  return translate_errors([&]() -> PyObject* {
    if (!PyType_Check(cls) || reinterpret_cast<PyTypeObject*>(cls)->tp_base != &tensor_base_type) {
      raise(PyExc_TypeError, "_set_tensor_class(): expected a class derived from TensorBase");
    }
    if (tensor_class != &tensor_base_type) {
      raise(PyExc_RuntimeError, "_set_tensor_class(): the class is set already");
    }
    auto* type = reinterpret_cast<PyTypeObject*>(Py_NewRef(cls));
    type->tp_dealloc = dealloc;  // Python's own would walk the bases for each object
    tensor_class = type;
    Py_RETURN_NONE;
  });
}

// Exchanges what two objects are windows on; their identity stays.
PyObject* swap_tensors(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* objects[2];
    if (!PyArg_ParseTuple(args, "OO:swap_tensors", &objects[0], &objects[1])) {
      throw PythonError();
    }
    for (PyObject* o : objects) {
      expect_tensor(o, "swap_tensors(): argument");
    }
    TensorObject* a = as_object(objects[0]);
    TensorObject* b = as_object(objects[1]);
    if (a != b) {
      std::swap(a->tensor, b->tensor);
      a->tensor.impl()->set_python(objects[0], false);
      b->tensor.impl()->set_python(objects[1], false);
      std::swap(a->dict, b->dict);
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef module_functions[] = {
    {"_swap_tensors", swap_tensors, METH_VARARGS, nullptr},
    {"_set_tensor_class", set_tensor_class, METH_O, nullptr},
    {},
};

}  // namespace

namespace {

PyObject* dir_function;  // rushlight._names.listed.dir_of_class

PyObject* dir_of_class(PyObject* cls, PyObject*) {
  return translate_errors([&] {
    const Object all = Object::check(
        PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyType_Type), "__dir__", "O", cls));
    PyObject* const shown = import_attribute(dir_function, "rushlight._names.listed", "dir_of_class");
    return check(PyObject_CallFunctionObjArgs(shown, cls, all.get(), nullptr));
  });
}

int init_class(PyObject* cls, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(cls, args, kwargs) < 0) {
    return -1;
  }
  return translate_errors_to_status(
      [&] { set_torch_function(reinterpret_cast<PyTypeObject*>(cls)); });
}

PyMethodDef meta_methods[] = {
    {"__dir__", dir_of_class, METH_NOARGS, "What is public of it."},
    {},
};

}  // namespace

PyTypeObject tensor_meta_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._TensorMeta",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_TYPE_SUBCLASS,
    .tp_doc = "The metaclass of Tensor.",
    .tp_methods = meta_methods,
    .tp_base = &PyType_Type,
    .tp_init = init_class,
};

PyTypeObject tensor_base_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.TensorBase",
    .tp_basicsize = sizeof(TensorObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "TensorBase(*data, device=None)\n--\n\nThe C part of Tensor.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(TensorObject, weak_references),
    .tp_dictoffset = offsetof(TensorObject, dict),
};

PyObject* wrap_as(PyTypeObject* type, Tensor t) {
  // What handles the op that was to make a new one may have given back one that is there.
  RL_CHECK(t.impl()->python() == nullptr, "Creating a new Tensor subclass ", type->tp_name,
           " of what has a Python object already, of class ", type_name(t.impl()->python()));
  if (type != tensor_class) {
    attach_dispatch(type, t);
  }
  TensorObject* object = allocate(type);
  t.impl()->set_python(reinterpret_cast<PyObject*>(object), false);
  object->tensor = std::move(t);
  return reinterpret_cast<PyObject*>(object);
}

PyObject* wrap(Tensor t) {
  if (!t.defined()) {
    Py_RETURN_NONE;
  }
  TensorImpl* impl = t.impl();
  PyObject* o = impl->python();
  if (o == nullptr) {
    return wrap_as(tensor_class, std::move(t));
  }
  if (!impl->owns_python()) {
    return Py_NewRef(o);
  }
  // The impl's reference to the object becomes the caller's.
  TensorObject* object = as_object(o);
  object->tensor = std::move(t);
  object->lent = nullptr;
  impl->set_python(o, false);
  return o;
}

// Somebody holds an object that its impl owns (through a weak reference, say): the object becomes
// the owner.
void take_back(TensorObject* object) {
  while (object->lent != nullptr) {
    TensorImpl* impl = object->lent;
    if (impl->try_retain()) {
      object->tensor = Tensor(Ref<TensorImpl>::steal(impl));
      object->lent = nullptr;
      impl->set_python(reinterpret_cast<PyObject*>(object), false);
      Py_DECREF(object);
      return;
    }
    // Another thread took the last reference and is about to queue the object.
    drop_queued();
    if (object->lent != nullptr) {
      const WithoutGil no_gil;
      sched_yield();
    }
  }
  if (!object->tensor.defined()) {
    raise(PyExc_RuntimeError,
          "this Tensor object holds no tensor: it was made without calling Tensor.__new__");
  }
}

const Tensor& expect_tensor(PyObject* o, const char* what) {
  if (!is_tensor(o)) {
    raise(PyExc_TypeError, str(what, " must be Tensor, not ", type_name(o)));
  }
  return unwrap(o);
}

void set_autograd_visitor(AutogradVisitor visitor) { autograd_visitor = visitor; }

void add_methods(const PyMethodDef* more) {
  for (; more->ml_name != nullptr; more++) {
    methods.push_back(*more);
  }
}

void add_getset(const PyGetSetDef* more) {
  for (; more->name != nullptr; more++) {
    getset.push_back(*more);
  }
}

void init_tensor_type(PyObject* module) {
  add_getset(own_getset);
  methods.push_back({});
  getset.push_back({});
  tensor_base_type.tp_methods = methods.data();
  tensor_base_type.tp_getset = getset.data();
  ready(tensor_meta_type);
  Py_SET_TYPE(&tensor_base_type, &tensor_meta_type);
  ready(tensor_base_type);
  add(module, "_TensorMeta", reinterpret_cast<PyObject*>(&tensor_meta_type));
  add(module, "TensorBase", reinterpret_cast<PyObject*>(&tensor_base_type));
  check(PyModule_AddFunctions(module, module_functions));
  set_python_release_hook(release_hook);
}

}  // namespace rushlight::python
