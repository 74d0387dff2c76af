// What python/rushlight/func.py is made of: levels of vmap, and what transforms differentiate by.
#include <rushlight/batching.h>

#include "python/autograd.h"
#include "python/bindings.h"

namespace rushlight::python {

namespace {

template <class... T>
void take(PyObject* args, const char* format, T*... to) {
  if (!PyArg_ParseTuple(args, format, to...)) {
    throw PythonError();
  }
}

const Tensor& tensor_of(PyObject* o) {
  RL_CHECK_TYPE(is_tensor(o), "expected a Tensor, got ", type_name(o));
  return unwrap(o);
}

// _vmap_increment_nesting(batch, randomness) → level
PyObject* enter(PyObject*, PyObject* args) {
  return translate_errors([&] {
    long long batch;
    const char* name;
    take(args, "Ls", &batch, &name);
    const std::string_view randomness = name;
    return PyLong_FromLongLong(
        batching::enter(batch, randomness == "same"        ? batching::Randomness::Same
                               : randomness == "different" ? batching::Randomness::Different
                                                           : batching::Randomness::Error));
  });
}
// Leaves the innermost level: returns how many there were.
PyObject* leave(PyObject*, PyObject*) {
  return translate_errors([&] {
    const int64_t level = batching::current_level();
    RL_CHECK(level != 0, "vmap: there is no level to leave");
    const int64_t depth = batching::depth_of(level);
    batching::leave(level);
    return PyLong_FromLongLong(depth);
  });
}
// _add_batch_dim(tensor, dim, level)
PyObject* add_batch(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* t;
    long long dim;
    long long level;
    take(args, "OLL", &t, &dim, &level);
    return wrap(batching::add_batch(tensor_of(t), dim, level));
  });
}
// _remove_batch_dim(tensor, level, batch, dim)
PyObject* remove_batch(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* t;
    long long level;
    long long batch;
    long long dim;
    take(args, "OLLL", &t, &level, &batch, &dim);
    return wrap(batching::remove_batch(tensor_of(t), level, batch, dim));
  });
}
PyObject* has_batch(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* t;
    long long level;
    take(args, "OL", &t, &level);
    return PyBool_FromLong(batching::has_batch(tensor_of(t), level));
  });
}
// The innermost level that a tensor has a batch of, 0 for none.
PyObject* batch_level(PyObject*, PyObject* t) {
  return translate_errors(
      [&] { return PyLong_FromLongLong(is_tensor(t) ? batching::level_of(unwrap(t)) : 0); });
}
PyObject* batch_value(PyObject*, PyObject* t) {
  return translate_errors([&]() -> PyObject* {
    const Tensor& tensor = tensor_of(t);
    return wrap(batching::level_of(tensor) == 0 ? tensor : batching::value_of(tensor));
  });
}
PyObject* level_depth(PyObject*, PyObject* level) {
  return translate_errors(
      [&] { return PyLong_FromLongLong(batching::depth_of(PyLong_AsLongLong(level))); });
}
PyObject* current_level(PyObject*, PyObject*) {
  return PyLong_FromLongLong(batching::current_level());
}

PyObject* begin(PyObject*, PyObject* t) {
  return translate_errors([&] { return wrap(begin_transform(tensor_of(t))); });
}
// _depends_on_others(tensors, nodes)
PyObject* others(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject* tensors;
    PyObject* nodes;
    take(args, "OO!", &tensors, &PyTuple_Type, &nodes);
    std::vector<Ref<Node>> own;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(nodes); i++) {
      own.push_back(unwrap_node(PyTuple_GET_ITEM(nodes, i)));
    }
    return PyBool_FromLong(depends_on_others(unwrap_tuple(tensors, "tensors"), own));
  });
}

// _call_transformed(function, args, kwargs, leaves): leaves are what the arguments consist of.
PyObject* call_transformed(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* function;
    PyObject* positional;
    PyObject* keywords;
    PyObject* leaves;
    take(args, "OO!O!O!", &function, &PyTuple_Type, &positional, &PyDict_Type, &keywords,
         &PyList_Type, &leaves);
    const TransformScope scope;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); i++) {
      if (PyObject* const leaf = PyList_GET_ITEM(leaves, i); is_tensor(leaf)) {
        scope.adopt_storage(unwrap(leaf));
      }
    }
    return PyObject_Call(function, positional, keywords);
  });
}
PyObject* is_transforming(PyObject*, PyObject*) { return PyBool_FromLong(tls.transforming); }

PyObject* is_batched(PyObject*, PyObject* t) {
  return translate_errors(
      [&] { return PyBool_FromLong(is_tensor(t) && batching::level_of(unwrap(t)) != 0); });
}
// Where the batch stands in what a tensor is made of: in front; -1 where there is none.
PyObject* batch_dim(PyObject*, PyObject* t) {
  return translate_errors(
      [&] { return PyLong_FromLong(batching::level_of(tensor_of(t)) != 0 ? 0 : -1); });
}

template <bool batching::Fallback::* field>
PyObject* get_fallback(PyObject*, PyObject*) {
  return PyBool_FromLong(batching::fallback().*field);
}
template <bool batching::Fallback::* field>
PyObject* set_fallback(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) {
    return nullptr;
  }
  batching::fallback().*field = truth != 0;
  Py_RETURN_NONE;
}
using batching::Fallback;

// PyTorch's names of what vmap is made of.
PyMethodDef parts[] = {
    {"_vmap_increment_nesting", enter, METH_VARARGS, nullptr},
    {"_vmap_decrement_nesting", leave, METH_NOARGS, nullptr},
    {"_add_batch_dim", add_batch, METH_VARARGS, nullptr},
    {"_remove_batch_dim", remove_batch, METH_VARARGS, nullptr},
    {"is_batchedtensor", is_batched, METH_O, nullptr},
    {"maybe_get_bdim", batch_dim, METH_O, nullptr},
    {"get_unwrapped", batch_value, METH_O, nullptr},
    {"_is_vmap_fallback_enabled", get_fallback<&Fallback::enabled>, METH_NOARGS, nullptr},
    {"_set_vmap_fallback_enabled", set_fallback<&Fallback::enabled>, METH_O, nullptr},
    {},
};

PyMethodDef functions[] = {
    {"_debug_only_are_vmap_fallback_warnings_enabled", get_fallback<&Fallback::warns_always>,
     METH_NOARGS, nullptr},
    {"_debug_only_display_vmap_fallback_warnings", set_fallback<&Fallback::warns_always>, METH_O,
     nullptr},
    {"_has_batch", has_batch, METH_VARARGS, nullptr},
    {"_batch_level", batch_level, METH_O, nullptr},
    {"_batch_value", batch_value, METH_O, nullptr},
    {"_level_depth", level_depth, METH_O, nullptr},
    {"_current_level", current_level, METH_NOARGS, nullptr},
    {"_begin_transform", begin, METH_O, nullptr},
    {"_call_transformed", call_transformed, METH_VARARGS, nullptr},
    {"_is_transforming", is_transforming, METH_NOARGS, nullptr},
    {"_depends_on_others", others, METH_VARARGS, nullptr},
    {},
};

}  // namespace

void init_batching(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  const char* name = "rushlight._C._functorch";
  const Object space = Object::check(PyModule_New(name));
  check(PyModule_AddFunctions(space.get(), parts));
  check(PyDict_SetItemString(PyImport_GetModuleDict(), name, space.get()));
  check(PyModule_AddObjectRef(module, "_functorch", space.get()));
}

}  // namespace rushlight::python
