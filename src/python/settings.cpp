// Settings of the process and questions about dtypes and tensors that are no ops.
#include <rushlight/version.h>

#include <set>
#include <string>

#include <rushlight/batch_invariant.h>
#include "core/iterator.h"
#include "core/op_support.h"
#include "core/cuts.h"
#include "core/denormals.h"
#include "core/parallel.h"
#include "ops/tensor_text.h"
#include "cpu/conv.h"
#include "cpu/isa_level.h"
#include "cpu/lapack.h"
#include "cpu/onednn.h"
#include "python/bindings.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

// ---- dtypes ----

PyObject* default_dtype(PyObject*, PyObject*) { return wrap(get_default_dtype()); }

PyObject* change_default_dtype(PyObject*, PyObject* dtype) {
  return translate_errors([&]() -> PyObject* {
    if (Py_TYPE(dtype) != &dtype_type) {
      raise(PyExc_TypeError,
            str("invalid dtype object: expected a torch.dtype, but got ", type_name(dtype)));
    }
    const ScalarType t = *as_dtype(dtype);
    RL_CHECK_TYPE(is_floating(t), "only floating-point types are supported as the default type");
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}

RL_FUNCTION(promote_types, Param{"type1", Kind::Dtype}, Param{"type2", Kind::Dtype}) {
  return wrap(rushlight::promote_types(a.dtype(0), a.dtype(1)));
}
RL_FUNCTION(can_cast, Param{"from_", Kind::Dtype}, Param{"to", Kind::Dtype}) {
  return PyBool_FromLong(rushlight::can_cast(a.dtype(0), a.dtype(1)));
}
RL_FUNCTION(result_type, Param{"tensor1", Kind::TensorOrNumber},
            Param{"tensor2", Kind::TensorOrNumber}) {
  const Tensor both[] = {a.tensor_or_number(0), a.tensor_or_number(1)};
  return wrap(rushlight::result_type(both));
}

// _mark_unwritten(on): whether `empty` and its like fill what they give.
PyObject* change_marks(PyObject*, PyObject* on) {
  marks_unwritten.store(PyObject_IsTrue(on) == 1, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

// ---- tensors ----

constexpr Param input_param = {"self", Kind::Tensor};
RL_FUNCTION(numel, input_param) { return PyLong_FromLongLong(a.tensor(0).numel()); }
RL_FUNCTION(is_floating_point, input_param) {
  return PyBool_FromLong(a.tensor(0).is_floating_point());
}
RL_FUNCTION(is_complex, input_param) { return PyBool_FromLong(a.tensor(0).is_complex()); }
PyObject* is_tensor_function(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o)); }

// ---- threads, warnings ----

PyObject* num_threads(PyObject*, PyObject*) { return PyLong_FromLong(get_num_threads()); }
PyObject* change_num_threads(PyObject*, PyObject* n) {
  return translate_errors([&]() -> PyObject* {
    if (!PyLong_Check(n) || PyBool_Check(n)) {
      raise(PyExc_TypeError, str("set_num_threads expects an int, but got ", type_name(n)));
    }
    const int64_t count = to_int(n);
    RL_CHECK(count > 0 && count <= INT32_MAX, "set_num_threads expects a positive integer");
    set_num_threads(static_cast<int>(count));
    Py_RETURN_NONE;
  });
}
PyObject* force_convolution_way(PyObject*, PyObject* name) {
  return translate_errors([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) {
      return nullptr;
    }
    cpu::force_convolution(text);
    Py_RETURN_NONE;
  });
}

PyObject* watch_cuts_method(PyObject*, PyObject*) {
  watch_cuts();
  Py_RETURN_NONE;
}
PyObject* list_cuts(PyObject*, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    const std::vector<int64_t> found = recorded_cuts();
    PyObject* list = check(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); i++) {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(found[i]));
    }
    return list;
  });
}
PyObject* change_warn_always(PyObject*, PyObject* always) {
  return translate_errors([&]() -> PyObject* {
    if (!PyBool_Check(always)) {
      raise(PyExc_TypeError, str("setWarnOnlyOnce_ expects a bool, but got ", type_name(always)));
    }
    set_warn_always(always == Py_True);
    Py_RETURN_NONE;
  });
}
// _warn_once(message): once for each message, for functions in Python.
PyObject* warn_once_for(PyObject*, PyObject* message) {
  return translate_errors([&]() -> PyObject* {
    static std::set<std::string> given;
    if (!PyUnicode_Check(message)) {
      raise(PyExc_TypeError, "_warn_once(): the message must be str");
    }
    const std::string text(text_view(message));
    if (given.insert(text).second || is_warn_always()) {
      warn(text);
    }
    Py_RETURN_NONE;
  });
}
PyObject* is_warn_always_method(PyObject*, PyObject*) { return PyBool_FromLong(is_warn_always()); }

PyObject* change_batch_invariant(PyObject*, PyObject* on) {
  return translate_errors([&]() -> PyObject* {
    if (!PyBool_Check(on)) {
      raise(PyExc_TypeError,
            str("use_batch_invariant(): the mode must be bool, not ", type_name(on)));
    }
    use_batch_invariant(on == Py_True);
    Py_RETURN_NONE;
  });
}
PyObject* batch_invariant(PyObject*, PyObject*) { return PyBool_FromLong(is_batch_invariant()); }

PyObject* change_flush_denormal(PyObject*, PyObject* on) {
  return translate_errors([&] {
    if (!PyBool_Check(on)) {
      raise(PyExc_TypeError,
            str("set_flush_denormal(): argument 'mode' must be bool, not ", type_name(on)));
    }
    return PyBool_FromLong(set_flush_denormal(on == Py_True));
  });
}

PyObject* contents_text_method(PyObject*, PyObject* arguments) {
  return translate_errors([&]() -> PyObject* {
    PyObject* tensor = nullptr;
    PyObject* scientific = nullptr;
    long long indent = 0;
    long long edge_items = 0;
    double line_width = 0;
    TextOptions options;
    if (PyArg_ParseTuple(arguments, "OLidLdO", &tensor, &indent, &options.precision,
                         &options.threshold, &edge_items, &line_width, &scientific) == 0) {
      throw PythonError();
    }
    RL_CHECK_VALUE(edge_items >= 0 && options.precision >= 0,
                   "printing: edgeitems and precision are not negative");
    options.edge_items = edge_items;
    options.line_width = line_width >= 1 ? static_cast<int64_t>(std::min(line_width, 1e9)) : 1;
    if (scientific != Py_None) {
      options.scientific = check(PyObject_IsTrue(scientific)) != 0;
    }
    const std::string text =
        contents_text(expect_tensor(tensor, "_contents_text()"), indent, options);
    return check(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  });
}

#define ROW(name, doc) RL_FAST_ROW(#name, name##_function, doc)
PyMethodDef functions[] = {
    ROW(promote_types,
        "promote_types(type1, type2)\n--\n\n"
        "The dtype that two dtypes are promoted to."
        "\n"
        "\n"
        "Args:\n"
        "    type1: a dtype.\n"
        "    type2: a dtype.\n"
        "\n"
        "Example:\n"
        "    >>> torch.promote_types(torch.int32, torch.float16)\n"
        "    torch.float16"),
    ROW(can_cast,
        "can_cast(from_, to)\n--\n\n"
        "Whether promotion allows a conversion."
        "\n"
        "\n"
        "Args:\n"
        "    from_: the dtype to convert from.\n"
        "    to: the dtype to convert to.\n"
        "\n"
        "Example:\n"
        "    >>> torch.can_cast(torch.float32, torch.int64)\n"
        "    False"),
    ROW(result_type,
        "result_type(tensor1, tensor2)\n--\n\n"
        "The dtype of an arithmetic result of two tensors or numbers."
        "\n"
        "\n"
        "Args:\n"
        "    tensor1: a tensor or a number.\n"
        "    tensor2: a tensor or a number.\n"
        "\n"
        "Example:\n"
        "    >>> torch.result_type(torch.tensor([1, 2]), 1.5)\n"
        "    torch.float32"),
    ROW(numel,
        "numel(input)\n--\n\n"
        "The number of elements."
        "\n"
        "\n"
        "Args:\n"
        "    input: a tensor.\n"
        "\n"
        "Example:\n"
        "    >>> torch.numel(torch.zeros(2, 3))\n"
        "    6"),
    ROW(is_floating_point,
        "is_floating_point(input)\n--\n\n"
        "Whether it holds real floating-point numbers."
        "\n"
        "\n"
        "Args:\n"
        "    input: a tensor.\n"
        "\n"
        "Example:\n"
        "    >>> torch.is_floating_point(torch.tensor([1.0]))\n"
        "    True"),
    ROW(is_complex,
        "is_complex(input)\n--\n\n"
        "Whether it holds complex numbers."
        "\n"
        "\n"
        "Args:\n"
        "    input: a tensor.\n"
        "\n"
        "Example:\n"
        "    >>> torch.is_complex(torch.tensor([1j]))\n"
        "    True"),
    {"is_tensor", is_tensor_function, METH_O,
     "is_tensor(obj, /)\n--\n\n"
     "Whether an object is a Tensor."
     "\n"
     "\n"
     "Args:\n"
     "    obj: anything.\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_tensor([1, 2])\n"
     "    False"},
    {"get_default_dtype", default_dtype, METH_NOARGS,
     "get_default_dtype()\n--\n\n"
     "The dtype of new floating-point tensors."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.get_default_dtype()\n"
     "    torch.float32"},
    {"set_default_dtype", change_default_dtype, METH_O,
     "set_default_dtype(d, /)\n--\n\n"
     "Changes the dtype of new floating-point tensors."
     "\n"
     "\n"
     "Args:\n"
     "    d: a floating-point dtype.\n"
     "\n"
     "Example:\n"
     "    >>> torch.set_default_dtype(torch.float64)\n"
     "    >>> torch.tensor([1.5]).dtype\n"
     "    torch.float64\n"
     "    >>> torch.set_default_dtype(torch.float32)"},
    {"get_num_threads", num_threads, METH_NOARGS,
     "get_num_threads()\n--\n\n"
     "How many threads an op may use.\n"
     "\n"
     "At first what `OMP_NUM_THREADS` says; without it the processors that this process may run "
     "on, and\n"
     "at most the share of their time that its container has (the quota of its control groups, "
     "rounded\n"
     "up).\n"
     "\n"
     "Example:\n"
     "    >>> torch.get_num_threads() >= 1\n"
     "    True"},
    {"set_num_threads", change_num_threads, METH_O,
     "set_num_threads(int, /)\n--\n\n"
     "Changes how many threads an op may use."
     "\n"
     "\n"
     "Args:\n"
     "    int: the number, from 1 on.\n"
     "\n"
     "Example:\n"
     "    >>> torch.set_num_threads(torch.get_num_threads())"},
    {"use_batch_invariant", change_batch_invariant, METH_O,
     "use_batch_invariant(mode, /)\n--\n\n"
     "Whether a row's bits may not depend on the other rows.\n\n"
     "With True, products of floats, attention, norms and softmax compute each row in one way,\n"
     "whatever the number of rows beside it. This holds for the whole process.\n\n"
     "Args:\n"
     "    mode: a bool.\n\n"
     "Example:\n"
     "    >>> torch.use_batch_invariant(True)\n"
     "    >>> x, weight = torch.randn(7, 100), torch.randn(5, 100)\n"
     "    >>> whole = torch.nn.functional.linear(x, weight)\n"
     "    >>> torch.equal(whole[:1], torch.nn.functional.linear(x[:1], weight))\n"
     "    True\n"
     "    >>> torch.use_batch_invariant(False)"},
    {"is_batch_invariant", batch_invariant, METH_NOARGS,
     "is_batch_invariant()\n--\n\n"
     "Whether `use_batch_invariant` is on.\n\n"
     "Example:\n"
     "    >>> torch.is_batch_invariant()\n"
     "    False"},
    {"set_flush_denormal", change_flush_denormal, METH_O,
     "set_flush_denormal(mode, /)\n--\n\n"
     "Whether numbers too small to be normal count as zero, on this thread and on those that "
     "compute for it. Gives False where the processor cannot do that."
     "\n"
     "\n"
     "Args:\n"
     "    mode: whether they do.\n"
     "\n"
     "Example:\n"
     "    >>> isinstance(torch.set_flush_denormal(False), bool)\n"
     "    True"},
    {"_force_convolution", force_convolution_way, METH_O,
     "For tests: convolutions go this way alone; an empty name ends that."},
    {"_watch_cuts", watch_cuts_method, METH_NOARGS,
     "Begins to write down into how many pieces work is cut."},
    {"_cuts", list_cuts, METH_NOARGS, "Ends that: the pieces of each loop that had several."},
    {"set_warn_always", change_warn_always, METH_O,
     "set_warn_always(b, /)\n--\n\n"
     "Whether warnings given once in a process are repeated."
     "\n"
     "\n"
     "Args:\n"
     "    b: whether they are.\n"
     "\n"
     "Example:\n"
     "    >>> torch.set_warn_always(False)"},
    {"is_warn_always_enabled", is_warn_always_method, METH_NOARGS,
     "is_warn_always_enabled()\n--\n\n"
     "Whether warnings given once in a process are repeated."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_warn_always_enabled()\n"
     "    False"},
    {},
};
#undef ROW
// "v2", "v3" or "v4" of x86-64, or "neon": which kernels run.
PyObject* cpu_level(PyObject*, PyObject*) {
  return PyUnicode_FromString(cpu::name_of(cpu::isa_level()));
}
// Those that this build has kernels for, with commas between them.
PyObject* compiled_levels(PyObject*, PyObject*) {
  return PyUnicode_FromString(cpu::compiled_levels());
}
// What the build has of libraries: name → what it says of itself, None where it is absent.
PyObject* libraries(PyObject*, PyObject*) {
  return translate_errors([&] {
    Object dict = Object::check(PyDict_New());
    const auto put = [&](const char* name, const std::string& about) {
      const Object value = about.empty() ? Object::borrow(Py_None) : text(about);
      check(PyDict_SetItemString(dict.get(), name, value.get()));
    };
#ifdef __clang__
    put("compiler", __VERSION__);
#else
    put("compiler", "GCC " __VERSION__);
#endif
    put("oneDNN", cpu::onednn::version());
    put("OpenBLAS", cpu::lapack::config());
    return dict.release();
  });
}

PyMethodDef module_functions[] = {
    {"_mark_unwritten", change_marks, METH_O, nullptr},
    {"_cpu_level", cpu_level, METH_NOARGS, nullptr},
    {"_built_levels", compiled_levels, METH_NOARGS, nullptr},
    {"_libraries", libraries, METH_NOARGS, nullptr},
    {"_warn_once", warn_once_for, METH_O, nullptr},
    {"_contents_text", contents_text_method, METH_VARARGS,
     "The text of the values of a tensor: (tensor, indent, precision, threshold, edgeitems, "
     "linewidth, sci_mode)."},
    {},
};

}  // namespace

void init_settings(PyObject* module) {
  check(PyModule_AddFunctions(ops_owner, functions));
  check(PyModule_AddFunctions(module, module_functions));
  check(PyModule_AddStringConstant(module, "_version", RUSHLIGHT_VERSION));
}

}  // namespace rushlight::python
