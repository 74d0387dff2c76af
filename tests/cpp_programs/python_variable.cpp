// A module of Python's C API that takes and gives tensors
// (tests/python/test_cpp_python_variable.py).
#include <torch/csrc/autograd/python_variable.h>

namespace {

PyObject* doubled(PyObject*, PyObject* object) {
  if (!THPVariable_Check(object)) {
    Py_RETURN_NONE;
  }
  return THPVariable_Wrap(THPVariable_Unpack(object) * 2);
}
PyObject* same(PyObject*, PyObject* object) { return THPVariable_Wrap(THPVariable_Unpack(object)); }
PyObject* refusal(PyObject*, PyObject* object) {
  try {
    THPVariable_Unpack(object);
  } catch (const torch::Error& error) {
    return PyUnicode_FromString(error.what());
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"doubled", doubled, METH_O, ""},
                         {"same", same, METH_O, ""},
                         {"refusal", refusal, METH_O, ""},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "python_variable", "", -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_python_variable() { return PyModule_Create(&module); }
