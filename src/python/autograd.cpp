// Autograd for Python: modes, backward and grad, anomaly mode. Hooks stand in hooks.cpp.
#include <algorithm>

#include <rushlight/ops.h>

#include "autograd/refusals.h"
#include "core/inference.h"
#include "python/autograd.h"
#include "python/bindings.h"
#include "python/torch_function.h"

namespace rushlight::python {

namespace {

// ---- arguments ----

// A fixed list of parameters, by position or name; missing ones are null.
template <size_t N>
struct RunArguments {
  PyObject* values[N] = {};
  PyObject* operator[](size_t i) const { return values[i]; }
  bool is_given(size_t i) const { return values[i] != nullptr && values[i] != Py_None; }
  bool truth(size_t i, bool otherwise) const {
    return is_given(i) ? check(PyObject_IsTrue(values[i])) != 0 : otherwise;
  }
};
template <size_t N>
RunArguments<N> bind(const char* function, const char* const (&names)[N], PyObject* const* args,
                     Py_ssize_t nargs, PyObject* kwnames) {
  RunArguments<N> out;
  if (nargs > static_cast<Py_ssize_t>(N)) {
    raise(PyExc_TypeError, str(function, "() takes at most ", N, " arguments (", nargs, " given)"));
  }
  std::copy_n(args, nargs, out.values);
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t k = 0; k < named; k++) {
    const std::string_view name = text_view(PyTuple_GET_ITEM(kwnames, k));
    size_t i = 0;
    while (i < N && name != names[i]) {
      i++;
    }
    if (i == N) {
      raise(PyExc_TypeError, str(function, "() got an unexpected keyword argument '", name, "'"));
    }
    if (out.values[i] != nullptr) {
      raise(PyExc_TypeError, str(function, "() got multiple values for argument '", name, "'"));
    }
    out.values[i] = args[nargs + k];
  }
  return out;
}

// ---- modes ----

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(tls.grad_mode); }
PyObject* set_grad_enabled(PyObject*, PyObject* value) {
  return translate_errors([&]() -> PyObject* {
    if (!PyBool_Check(value)) {
      raise(PyExc_TypeError,
            str("set_grad_enabled(): argument 'enabled' must be bool, not ", type_name(value)));
    }
    tls.grad_mode = value == Py_True;
    Py_RETURN_NONE;
  });
}
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(tls.inference_mode);
}
// Returns what was set before, for leave_inference_mode.
PyObject* enter_inference_mode(PyObject*, PyObject* value) {
  return translate_errors([&]() -> PyObject* {
    const bool enabled = check(PyObject_IsTrue(value)) != 0;
    PyObject* before = check(Py_BuildValue("(ii)", tls.grad_mode, tls.inference_mode));
    tls.inference_mode = enabled;
    tls.grad_mode = !enabled;
    return before;
  });
}
PyObject* leave_inference_mode(PyObject*, PyObject* before) {
  return translate_errors([&]() -> PyObject* {
    int grad;
    int inference;
    if (!PyArg_ParseTuple(expect_tuple(before, "_leave_inference_mode(): argument"), "pp", &grad,
                          &inference)) {
      throw PythonError();
    }
    tls.grad_mode = grad != 0;
    tls.inference_mode = inference != 0;
    Py_RETURN_NONE;
  });
}

PyObject* is_anomaly_enabled(PyObject*, PyObject*) { return PyBool_FromLong(tls.anomaly_mode); }
PyObject* is_anomaly_check_nan_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(tls.anomaly_check_nan);
}
PyObject* set_anomaly_enabled(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    int enabled;
    int check_nan = 1;
    if (!PyArg_ParseTuple(args, "p|p:set_anomaly_enabled", &enabled, &check_nan)) {
      throw PythonError();
    }
    tls.anomaly_mode = enabled != 0;
    tls.anomaly_check_nan = check_nan != 0;
    Py_RETURN_NONE;
  });
}

// The Python stack as text, for anomaly mode; empty on threads that Python does not know.
std::string python_traceback() {
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) {
    return {};
  }
  const WithGil gil;
  PyObject* type;
  PyObject* value;
  PyObject* trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string out;
  try {
    static PyObject* format_stack = nullptr;
    const Object lines = Object::check(
        PyObject_CallNoArgs(import_attribute(format_stack, "traceback", "format_stack")));
    const Object empty = text("");
    const Object joined = Object::check(PyUnicode_Join(empty.get(), lines.get()));
    out = text_view(joined.get());
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
  return out;
}

// ---- backward and grad ----

// Tensors, or pairs (node, output number) as GradientEdge is.
struct Ends {
  std::vector<Tensor> tensors;
  std::vector<Edge> edges;
  bool any_edge = false;
};
Ends ends_of(PyObject* o, const char* what) {
  Ends out;
  if (o == nullptr || o == Py_None) {
    return out;
  }
  const Object items =
      is_tensor(o) ? Object::check(PyTuple_Pack(1, o)) : Object::check(PySequence_Tuple(o));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (is_tensor(item)) {
      out.tensors.push_back(unwrap(item));
      out.edges.push_back({});
    } else if (PyTuple_Check(item) && PyTuple_GET_SIZE(item) >= 2 &&
               is_node(PyTuple_GET_ITEM(item, 0))) {
      const long number = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
      if (number == -1 && PyErr_Occurred() != nullptr) {
        throw PythonError();
      }
      Edge edge = {unwrap_node(PyTuple_GET_ITEM(item, 0)), static_cast<uint32_t>(number)};
      RL_CHECK_INDEX(number >= 0 && static_cast<size_t>(number) < edge.node->num_outputs(), "node ",
                     edge.node->name(), " has ", edge.node->num_outputs(),
                     " outputs, but the edge is for number ", number);
      out.tensors.emplace_back();
      out.edges.push_back(std::move(edge));
      out.any_edge = true;
    } else {
      raise(PyExc_TypeError,
            str(what, " must be Tensors or GradientEdges, but got ", type_name(item)));
    }
  }
  return out;
}

void fill_edges(Ends& ends) {
  for (size_t i = 0; i < ends.edges.size(); i++) {
    if (!ends.edges[i].node) {
      ends.edges[i] = gradient_edge(ends.tensors[i]);
    }
  }
}

// One run to inputs of either kind: their gradients, or nothing with `accumulate`.
std::vector<Tensor> run_between(Ends& roots, std::vector<Tensor> gradients, Ends& inputs,
                                bool accumulate, bool retain_graph, bool create_graph,
                                bool allow_unused) {
  if (!roots.any_edge && !inputs.any_edge) {
    if (!accumulate) {
      return run_grad(roots.tensors, inputs.tensors, gradients, retain_graph, create_graph,
                      allow_unused);
    }
    run_backward(roots.tensors, gradients, retain_graph, create_graph, inputs.tensors);
    return {};
  }
  for (const Tensor& t : inputs.tensors) {
    if (accumulate && t.defined()) {
      t.retain_grad();  // nothing for a leaf
    }
  }
  fill_edges(roots);
  fill_edges(inputs);
  gradients.resize(roots.edges.size());
  std::vector<Tensor> results =
      run_edges(roots.edges, gradients, inputs.edges, accumulate, retain_graph, create_graph);
  for (size_t i = 0; !accumulate && !allow_unused && i < results.size(); i++) {
    check_used(results[i], i);
  }
  return results;
}

// run_backward(tensors, gradients, retain_graph, create_graph, inputs, accumulate, allow_unused):
// gradients of inputs, or None with `accumulate`.
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return translate_errors([&]() -> PyObject* {
    if (n != 7) {
      raise(PyExc_TypeError, "run_backward() takes 7 arguments");
    }
    Ends roots = ends_of(args[0], "outputs");
    std::vector<Tensor> gradients =
        args[1] == Py_None ? std::vector<Tensor>() : unwrap_tuple(args[1], "gradients");
    const bool retain_graph = check(PyObject_IsTrue(args[2])) != 0;
    const bool create_graph = check(PyObject_IsTrue(args[3])) != 0;
    Ends inputs = ends_of(args[4], "inputs");
    const bool accumulate = check(PyObject_IsTrue(args[5])) != 0;
    const bool allow_unused = check(PyObject_IsTrue(args[6])) != 0;
    RL_CHECK(gradients.empty() || gradients.size() == roots.tensors.size(), "got ",
             roots.tensors.size(), " tensors and ", gradients.size(), " gradients");
    std::vector<Tensor> results;
    {
      const WithoutGil no_gil;
      results = run_between(roots, std::move(gradients), inputs, accumulate, retain_graph,
                            create_graph, allow_unused);
    }
    if (accumulate) {
      Py_RETURN_NONE;
    }
    return wrap_tuple(results.data(), results.size());
  });
}

// Tensor.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
PyObject* backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(wants_torch_function(self, args, nargs, kwnames))) {
      const Object method = Object::check(
          PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), "backward"));
      return call_torch_function(method.get(), self, args, nargs, kwnames);
    }
    static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    const RunArguments<4> bound = bind("backward", names, args, nargs, kwnames);
    const Tensor root = unwrap(self);
    const Tensor gradient = bound.is_given(0) ? expect_tensor(bound[0], "gradient") : Tensor();
    const bool create_graph = bound.truth(2, false);
    const bool retain_graph = bound.truth(1, create_graph);
    Ends inputs = ends_of(bound[3], "inputs");
    RL_CHECK(!bound.is_given(3) || !inputs.tensors.empty(),
             "`inputs` argument to `backward()` cannot be empty.");
    {
      const WithoutGil no_gil;
      if (RL_UNLIKELY(inputs.any_edge)) {
        Ends roots = {{root}, {{}}};
        run_between(roots, {gradient}, inputs, true, retain_graph, create_graph, true);
      } else {
        run_backward({root}, {gradient}, retain_graph, create_graph, inputs.tensors);
      }
    }
    Py_RETURN_NONE;
  });
}

// ---- the rest of Tensor ----

PyObject* retain_grad(PyObject* self, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    PyObject* result;
    if (call_if_overridden(self, "retain_grad", nullptr, &result)) {
      return result;
    }
    unwrap(self).retain_grad();
    Py_RETURN_NONE;
  });
}

PyObject* is_inference(PyObject* self, PyObject*) {
  return translate_errors([&] { return PyBool_FromLong(unwrap(self).impl()->is_inference()); });
}

const PyMethodDef tensor_methods[] = {
    {"backward", as_function(backward), METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Add the gradients of this tensor to the leaves' .grad.\n\n"
     "Args:\n"
     "    gradient: the gradient of this tensor, of its shape; 1 where it has one element.\n"
     "    retain_graph: keep what the graph saved for another backward.\n"
     "    create_graph: record backward itself, for derivatives of derivatives.\n"
     "    inputs: the only tensors whose .grad is filled.\n\n"
     "Raises:\n"
     "    RuntimeError: it needs no gradient, or the graph was used up.\n\n"
     "Example:\n"
     "    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)\n"
     "    >>> x.square().sum().backward()\n"
     "    >>> x.grad\n"
     "    tensor([2., 4.])"},
    {"retain_grad", retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\n"
     "Let backward fill in .grad though this is no leaf.\n\n"
     "Example:\n"
     "    >>> x = torch.tensor([1.0], requires_grad=True)\n"
     "    >>> y = x * 2\n"
     "    >>> y.retain_grad()\n"
     "    >>> y.sum().backward()\n"
     "    >>> y.grad\n"
     "    tensor([1.])"},
    {"is_inference", is_inference, METH_NOARGS,
     "is_inference($self)\n--\n\n"
     "Whether it was made in inference mode."},
    {},
};

// ---- other functions ----

PyObject* with_error(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* t;
    const char* message;
    if (!PyArg_ParseTuple(args, "Os:with_backward_error", &t, &message)) {
      throw PythonError();
    }
    return wrap(with_backward_error(expect_tensor(t, "argument"), message));
  });
}

PyObject* edge_of(PyObject*, PyObject* o) {
  return translate_errors([&]() -> PyObject* {
    const Edge edge = gradient_edge(expect_tensor(o, "get_gradient_edge(): argument 'tensor'"));
    RL_CHECK(edge.node,
             "get_gradient_edge(): this Tensor has no gradient edge, for it does not require "
             "gradients. Call requires_grad_() on it");
    const Object node = Object::check(wrap_node(edge.node));
    return check(Py_BuildValue("(OI)", node.get(), edge.input_nr));
  });
}

PyObject* running_node(PyObject*, PyObject*) {
  return translate_errors([&] { return wrap_node(Ref<Node>(current_node())); });
}

PyObject* running_backward(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(current_run());
}
class PythonCallback : public FinalCallback {
 public:
  explicit PythonCallback(Object function) : function_(std::move(function)) {}
  ~PythonCallback() override { drop_reference(function_.release()); }
  void operator()() override {
    in_python([&] { Object::check(PyObject_CallNoArgs(function_.get())); });
  }

 private:
  Object function_;
};

PyObject* queue_python_callback(PyObject*, PyObject* function) {
  return translate_errors([&]() -> PyObject* {
    if (PyCallable_Check(function) == 0) {
      raise(PyExc_TypeError,
            str("queue_callback(): expected a function, but got ", type_name(function)));
    }
    queue_callback(std::make_unique<PythonCallback>(Object::borrow(function)));
    Py_RETURN_NONE;
  });
}
PyObject* reaches_all_leaves(PyObject*, PyObject*) {
  return PyBool_FromLong(run_reaches_all_leaves());
}

PyObject* will_run_node(PyObject*, PyObject* o) {
  return translate_errors([&]() -> PyObject* {
    if (!is_node(o)) {
      raise(PyExc_TypeError, str("expected a node, but got ", type_name(o)));
    }
    return PyBool_FromLong(will_run(*unwrap_node(o)));
  });
}

// _check_inplace(op, tensor): what an in-place op checks before it changes a tensor. Forward mode
// does not follow what is written beside the ops.
PyObject* check_write(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char* op;
    PyObject* o;
    if (!PyArg_ParseTuple(args, "sO:_check_inplace", &op, &o)) {
      throw PythonError();
    }
    const Tensor& t = expect_tensor(o, "argument");
    check_inplace(op, t, grad_enabled() && t.requires_grad());
    RL_CHECK_NOT_IMPLEMENTED(!forward::active() || !forward::has_tangent(t), op,
                             ": forward AD does not follow it: the tensor has a tangent");
    Py_RETURN_NONE;
  });
}

PyObject* increment_version(PyObject*, PyObject* o) {
  return translate_errors([&]() -> PyObject* {
    const Tensor& t = expect_tensor(o, "argument");
    check_inference_write("set_", t);  // graph.increment_version leaves such tensors out
    t.impl()->bump_version();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_check_inplace", check_write, METH_VARARGS, nullptr},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\n"
     "Whether ops on this thread are recorded."
     "\n"
     "\n"
     "Example:\n"
     "    >>> with torch.no_grad():\n"
     "    ...     torch.is_grad_enabled()\n"
     "    False"},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "is_inference_mode_enabled()\n--\n\n"
     "Whether inference mode is on."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_inference_mode_enabled()\n"
     "    False"},
    {"_enter_inference_mode", enter_inference_mode, METH_O, nullptr},
    {"_leave_inference_mode", leave_inference_mode, METH_O, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS,
     "is_anomaly_enabled()\n--\n\n"
     "Whether anomaly mode is on."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_anomaly_enabled()\n"
     "    False"},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS,
     "is_anomaly_check_nan_enabled()\n--\n\n"
     "Whether anomaly mode looks for nan."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_anomaly_check_nan_enabled()\n"
     "    True"},
    {"_set_anomaly_enabled", set_anomaly_enabled, METH_VARARGS, nullptr},
    {"_run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
     METH_FASTCALL, nullptr},
    {"_with_backward_error", with_error, METH_VARARGS, nullptr},
    {"_gradient_edge", edge_of, METH_O, nullptr},
    {"_backward_run", running_backward, METH_NOARGS, nullptr},
    {"_will_run", will_run_node, METH_O, nullptr},
    {"_queue_callback", queue_python_callback, METH_O, nullptr},
    {"_reaches_all_leaves", reaches_all_leaves, METH_NOARGS, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_current_autograd_node", running_node, METH_NOARGS,
     "The node whose backward runs; None outside of backward."},
    {},
};

}  // namespace

void add_autograd() {
  add_methods(tensor_methods);
  add_hooks();
}

void init_autograd(PyObject* module) {
  init_cycles();
  init_nodes(module);
  init_functions(module);
  init_forward(module);
  init_hooks(module);
  check(PyModule_AddFunctions(module, functions));
  set_traceback_provider(python_traceback);
}

}  // namespace rushlight::python
