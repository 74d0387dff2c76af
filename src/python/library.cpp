// Ops and functions of programs (rushlight/library.h) from Python: definitions, functions by
// dispatch key, and the state of a thread below autograd.
#include <rushlight/library.h>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/boxed.h"
#include "python/convert.h"

namespace rushlight::python {

namespace {

// A function of Python. What it takes first beside the arguments: the keys of the call, or the op.
class PythonFunction final : public library::Boxed {
 public:
  enum class First : uint8_t { Nothing, Keys, Op, KeysAndOp };
  PythonFunction(PyObject* function, First first) : function_(Py_NewRef(function)), first_(first) {}
  ~PythonFunction() override { drop_reference(function_); }
  PythonFunction(const PythonFunction&) = delete;
  PythonFunction& operator=(const PythonFunction&) = delete;
  PyObject* function() const { return function_; }

  void operator()(const OperatorHandle* handle, Stack& stack) const override {
    const OpInfo& op = handle->op();
    stack = in_python([&] {
      const PythonCall called = python_call(op, stack);
      const Object before = first(op);
      const Object args = Object::check(PySequence_Concat(before.get(), called.args.get()));
      const Object result =
          Object::check(PyObject_Call(function_, args.get(), called.kwargs.get()));
      return returned_values(op, result.get(), "a function registered for");
    });
  }

 private:
  Object first(const OpInfo& op) const {
    Object out = Object::check(PyList_New(0));
    if (first_ == First::Keys || first_ == First::KeysAndOp) {
      static PyObject* make = nullptr;
      const Object set = Object::check(PyObject_CallFunction(
          import_attribute(make, "rushlight._library.keys", "from_raw_repr"), "K",
          static_cast<unsigned long long>(library::current_keys().raw_repr())));
      check(PyList_Append(out.get(), set.get()));
    }
    if (first_ == First::Op || first_ == First::KeysAndOp) {
      check(PyList_Append(out.get(), overload_object(op)));
    }
    return Object::check(PyList_AsTuple(out.get()));
  }

  PyObject* function_;
  First first_;
};

DispatchKey key_of(const char* name) {
  const std::optional<DispatchKey> key = library::key_named(name);
  RL_CHECK(key.has_value(), "could not parse dispatch key: ", name);
  return *key;
}

// _library_define(namespace, schema, tags, Python module): the number of the op.
PyObject* define(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char *space, *schema, *module;
    unsigned int tags;
    if (!PyArg_ParseTuple(args, "ssIs:_library_define", &space, &schema, &tags, &module)) {
      throw PythonError();
    }
    return PyLong_FromSize_t(number_of_op(library::define(space, schema, tags, module)));
  });
}

PyObject* undefine(PyObject*, PyObject* number) {
  return translate_errors([&]() -> PyObject* {
    library::undefine(op_at(to_int(number)));
    Py_RETURN_NONE;
  });
}

// _library_implement(full name of the op, key, function, with_keys, with_op): a number for
// _library_take_back. None as the function falls through.
PyObject* implement(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char *name, *key;
    PyObject* function;
    int with_keys, with_op;
    if (!PyArg_ParseTuple(args, "ssOpp:_library_implement", &name, &key, &function, &with_keys,
                          &with_op)) {
      throw PythonError();
    }
    library::Kernel kernel;
    kernel.typed = false;
    kernel.falls_through = function == Py_None;
    if (!kernel.falls_through) {
      const auto first =
          static_cast<PythonFunction::First>((with_keys != 0 ? 1 : 0) + (with_op != 0 ? 2 : 0));
      kernel.function = std::make_shared<PythonFunction>(function, first);
    }
    return PyLong_FromUnsignedLongLong(library::implement(name, key_of(key), std::move(kernel)));
  });
}

PyObject* take_back(PyObject*, PyObject* number) {
  return translate_errors([&]() -> PyObject* {
    library::take_back(static_cast<uint64_t>(to_int(number)));
    Py_RETURN_NONE;
  });
}

// _library_run(number of an op, key, values): the function that is registered for the key.
PyObject* run(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    Py_ssize_t number;
    const char* key;
    PyObject* values;
    if (!PyArg_ParseTuple(args, "nsO!:_library_run", &number, &key, &PyTuple_Type, &values)) {
      throw PythonError();
    }
    const OpInfo& op = op_at(number);
    const auto kernel = library::function_of(op, key_of(key));
    RL_CHECK(kernel != nullptr && kernel->function != nullptr, op.name, " has no function for ",
             key);
    Stack stack = values_of(op, values);
    {
      const WithoutGil no_gil;
      const OperatorHandle handle(op);
      (*kernel->function)(&handle, stack);
    }
    return from_results(stack);
  });
}

// _library_function(number of an op, key): the function of Python that is registered for the key;
// True for one of C++, False for one that falls through, None where there is none.
PyObject* function_of(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    Py_ssize_t number;
    const char* key;
    if (!PyArg_ParseTuple(args, "ns:_library_function", &number, &key)) {
      throw PythonError();
    }
    const auto kernel = library::function_of(op_at(number), key_of(key));
    if (kernel == nullptr) {
      Py_RETURN_NONE;
    }
    const auto* of_python = dynamic_cast<const PythonFunction*>(kernel->function.get());
    return of_python != nullptr ? Py_NewRef(of_python->function())
                                : PyBool_FromLong(kernel->function != nullptr);
  });
}

// _below_autograd(by): goes so many levels below autograd, or comes back.
PyObject* below_autograd(PyObject*, PyObject* by) {
  return translate_errors([&]() -> PyObject* {
    library::enter_below_autograd(static_cast<int>(to_int(by)));
    Py_RETURN_NONE;
  });
}
PyObject* is_below_autograd(PyObject*, PyObject*) {
  return PyBool_FromLong(library::is_below_autograd());
}

// All dispatch keys, in the order of their numbers.
PyObject* dispatch_key_names(PyObject*, PyObject*) {
  return translate_errors([&] {
    Object out = Object::check(PyList_New(0));
#define RL_KEY(name) \
  check(PyList_Append(out.get(), Object::check(PyUnicode_FromString(#name)).get()));
    RL_FOR_EACH_DISPATCH_KEY(RL_KEY)
#undef RL_KEY
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"_library_define", define, METH_VARARGS, "Defines an op."},
    {"_library_undefine", undefine, METH_O, "Takes an op back."},
    {"_library_implement", implement, METH_VARARGS, "Registers a function of an op."},
    {"_library_take_back", take_back, METH_O, "Takes a function back."},
    {"_library_run", run, METH_VARARGS, "Runs the function of an op for a key."},
    {"_library_function", function_of, METH_VARARGS, "The function of an op for a key."},
    {"_below_autograd", below_autograd, METH_O, nullptr},
    {"_is_below_autograd", is_below_autograd, METH_NOARGS, nullptr},
    {"_dispatch_key_names", dispatch_key_names, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_library(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
