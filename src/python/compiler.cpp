// Regions in which formulas are noted (cpu/chain.h): what `compile` and `compiler.disable` call.
#include "core/region.h"
#include "cpu/chain.h"
#include "python/bindings.h"

namespace rushlight::python {

namespace {

// What f returns for the arguments behind it, called while a scope lives that `finish` ends.
template <class Scope, class F>
PyObject* call_within(PyObject* const* args, Py_ssize_t n, PyObject* names, F finish) {
  return translate_errors([&]() -> PyObject* {
    if (n == 0) {
      PyErr_SetString(PyExc_TypeError, "expected a function to call, but got no argument");
      return nullptr;
    }
    Scope scope;
    Object result =
        Object::check(PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(n - 1), names));
    finish(scope);
    return result.release();
  });
}

// _call_noted(f, *args, **kwargs): its pointwise ops are completed together.
PyObject* call_noted(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_within<Region>(args, n, names, [](Region& region) { region.close(); });
}
// _call_now(f, *args, **kwargs): its ops run at once.
PyObject* call_now(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_within<RunNow>(args, n, names, [](RunNow&) {});
}

// _chain_counts(): passes, steps, results never written, bytes of those; of this thread, ever.
PyObject* chain_counts(PyObject*, PyObject*) {
  Notebook* const notebook = Notebook::of_thread();
  const ChainCounts counts = notebook != nullptr ? notebook->counts() : ChainCounts();
  return Py_BuildValue("(LLLL)", static_cast<long long>(counts.chains),
                       static_cast<long long>(counts.steps), static_cast<long long>(counts.unseen),
                       static_cast<long long>(counts.bytes_left));
}

// _regions_note(on=None): whether calls are noted at all, as it was; changes it where on is given.
PyObject* regions_note(PyObject*, PyObject* args) {
  PyObject* on = nullptr;
  if (PyArg_ParseTuple(args, "|O!:_regions_note", &PyBool_Type, &on) == 0) {
    return nullptr;
  }
  const bool before = rushlight::regions_note();
  if (on != nullptr) {
    set_regions_note(on == Py_True);
  }
  return PyBool_FromLong(before);
}
// _forget_code(): what has been made for chains.
PyObject* forget_code(PyObject*, PyObject*) {
  cpu::clear_jit_cache();
  Py_RETURN_NONE;
}
// _code_count(): how many runs of formulas are known.
PyObject* code_count(PyObject*, PyObject*) { return PyLong_FromLongLong(cpu::jit_cache_size()); }

PyCFunction with_names(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef module_functions[] = {
    {"_call_noted", with_names(call_noted), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_call_now", with_names(call_now), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_chain_counts", chain_counts, METH_NOARGS, nullptr},
    {"_regions_note", regions_note, METH_VARARGS, nullptr},
    {"_forget_code", forget_code, METH_NOARGS, nullptr},
    {"_code_count", code_count, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_compiler(PyObject* module) { check(PyModule_AddFunctions(module, module_functions)); }

}  // namespace rushlight::python
