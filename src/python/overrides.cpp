// Functions of Python in the place of ops of the table: Library("aten", "IMPL").impl.
#include <rushlight/library.h>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/boxed.h"
#include "python/convert.h"

namespace rushlight::python {

namespace {

class PythonOverride final : public library::Override {
 public:
  PythonOverride(PyObject* function, bool with_keys)
      : function_(Py_NewRef(function)), with_keys_(with_keys) {}
  ~PythonOverride() override { drop_reference(function_); }
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments,
                         DispatchKeySet keys) const override {
    return in_python([&] {
      PythonCall called = python_call(op, arguments);
      if (with_keys_) {
        called.args = with_keys(keys, called.args);
      }
      const Object result =
          Object::check(PyObject_Call(function_, called.args.get(), called.kwargs.get()));
      return dispatch_results(op, result.get());
    });
  }

 private:
  static Object with_keys(DispatchKeySet keys, const Object& args) {
    static PyObject* make = nullptr;
    const Object set = Object::check(
        PyObject_CallFunction(imported(make, "rushlight._library.keys", "from_raw_repr"), "K",
                              static_cast<unsigned long long>(keys.raw_repr())));
    const Object first = Object::check(PyTuple_Pack(1, set.get()));
    return Object::check(PySequence_Concat(first.get(), args.get()));
  }
  PyObject* function_;
  bool with_keys_;
};

// _override_op(index, key, function, with_keys): a number for _take_back_override.
PyObject* override_op(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t index;
    const char* name;
    PyObject* function;
    int with_keys;
    if (!PyArg_ParseTuple(args, "nsOp:_override_op", &index, &name, &function, &with_keys)) {
      throw PythonError();
    }
    const OpInfo& op = op_at(index);
    const std::optional<DispatchKey> key = library::key_named(name);
    RL_CHECK(key.has_value(), "could not parse dispatch key: ", name);
    RL_CHECK_NOT_IMPLEMENTED(library::may_override(*key), "impl(\"", op.name,
                             "\"): an op of the table has no function of its own for ", name);
    return PyLong_FromUnsignedLongLong(
        library::override_op(op, *key, std::make_shared<PythonOverride>(function, with_keys != 0)));
  });
}

PyObject* take_back(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    library::take_back(static_cast<uint64_t>(to_int(number)));
    Py_RETURN_NONE;
  });
}

// _below_autograd(by): goes so many levels below autograd, or comes back.
PyObject* below_autograd(PyObject*, PyObject* by) {
  return guarded([&]() -> PyObject* {
    library::enter_below_autograd(static_cast<int>(to_int(by)));
    Py_RETURN_NONE;
  });
}
PyObject* is_below_autograd(PyObject*, PyObject*) {
  return PyBool_FromLong(library::is_below_autograd());
}

// All dispatch keys, in the order of their numbers.
PyObject* dispatch_key_names(PyObject*, PyObject*) {
  return guarded([&] {
    Object out = Object::check(PyList_New(0));
#define RL_KEY(name) \
  check(PyList_Append(out.get(), Object::check(PyUnicode_FromString(#name)).get()));
    RL_FOR_EACH_DISPATCH_KEY(RL_KEY)
#undef RL_KEY
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"_override_op", override_op, METH_VARARGS, "Puts a function in the place of an op."},
    {"_take_back_override", take_back, METH_O, "Takes it back."},
    {"_below_autograd", below_autograd, METH_O, nullptr},
    {"_is_below_autograd", is_below_autograd, METH_NOARGS, nullptr},
    {"_dispatch_key_names", dispatch_key_names, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_overrides(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
