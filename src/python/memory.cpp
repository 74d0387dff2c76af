// The CPU allocator's statistics and settings, for python/rushlight/cpu.
#include "core/allocator.h"
#include "python/bindings.h"
#include "python/common.h"

namespace rushlight::python {
namespace {

PyObject* stats(PyObject*, PyObject*) {
  return translate_errors([] {
    Object list = Object::check(PyList_New(0));
    for (const auto& [name, value] : memory_stats()) {
      const Object row =
          Object::check(Py_BuildValue("(sL)", name.c_str(), static_cast<long long>(value)));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

PyObject* reset(PyObject*, PyObject* peaks) {
  return translate_errors([&] {
    if (check(PyObject_IsTrue(peaks)) != 0) {
      reset_peak_memory_stats();
    } else {
      reset_accumulated_memory_stats();
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* empty(PyObject*, PyObject*) {
  return translate_errors([] {
    {
      const WithoutGil free;
      empty_cache();
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* set_limit(PyObject*, PyObject* bytes) {
  return translate_errors([&] {
    const size_t n = PyLong_AsSize_t(bytes);
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    set_cache_limit(n);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_memory_stats", stats, METH_NOARGS, "Pairs of names and counts."},
    {"_reset_memory_stats", reset, METH_O, "_reset_memory_stats(peaks): else the totals."},
    {"_empty_cache", empty, METH_NOARGS, "Gives cached memory back to the system."},
    {"_set_cache_limit", set_limit, METH_O, "_set_cache_limit(bytes)"},
    {},
};

}  // namespace

void init_memory(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
