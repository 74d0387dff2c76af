// Autograd for Python: modes, backward and grad, hooks of tensors, saved-tensor hooks, anomaly
// mode.
#include <algorithm>

#include <rushlight/ops.h>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/torch_function.h"

namespace rushlight::python {

namespace {

// ---- arguments ----

// A fixed list of parameters, by position or name; missing ones are null.
template <size_t N>
struct Bound {
  PyObject* values[N] = {};
  PyObject* operator[](size_t i) const { return values[i]; }
  bool given(size_t i) const { return values[i] != nullptr && values[i] != Py_None; }
  bool truth(size_t i, bool otherwise) const {
    return given(i) ? check(PyObject_IsTrue(values[i])) != 0 : otherwise;
  }
};
template <size_t N>
Bound<N> bind(const char* function, const char* const (&names)[N], PyObject* const* args,
              Py_ssize_t nargs, PyObject* kwnames) {
  Bound<N> out;
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
  return guarded([&]() -> PyObject* {
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
  return guarded([&]() -> PyObject* {
    const bool enabled = check(PyObject_IsTrue(value)) != 0;
    PyObject* before = check(Py_BuildValue("(ii)", tls.grad_mode, tls.inference_mode));
    tls.inference_mode = enabled;
    tls.grad_mode = !enabled;
    return before;
  });
}
PyObject* leave_inference_mode(PyObject*, PyObject* before) {
  return guarded([&]() -> PyObject* {
    int grad;
    int inference;
    if (!PyArg_ParseTuple(before, "pp", &grad, &inference)) {
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
  return guarded([&]() -> PyObject* {
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
    const Object lines =
        Object::check(PyObject_CallNoArgs(imported(format_stack, "traceback", "format_stack")));
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
    RL_CHECK(results[i].defined(), "The differentiated Tensor at index ", i,
             " appears to not have been used in the graph. Set allow_unused=True if this is the "
             "desired behavior.");
  }
  return results;
}

// run_backward(tensors, gradients, retain_graph, create_graph, inputs, accumulate, allow_unused):
// gradients of inputs, or None with `accumulate`.
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
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
  return guarded([&]() -> PyObject* {
    if (RL_UNLIKELY(wants_torch_function(self, args, nargs, kwnames))) {
      const Object method = Object::check(
          PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), "backward"));
      return call_torch_function(method.get(), self, args, nargs, kwnames);
    }
    static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    const Bound<4> bound = bind("backward", names, args, nargs, kwnames);
    const Tensor root = unwrap(self);
    const Tensor gradient = bound.given(0) ? expect_tensor(bound[0], "gradient") : Tensor();
    const bool create_graph = bound.truth(2, false);
    const bool retain_graph = bound.truth(1, create_graph);
    Ends inputs = ends_of(bound[3], "inputs");
    RL_CHECK(!bound.given(3) || !inputs.tensors.empty(),
             "`inputs` argument to `backward()` cannot be empty.");
    const WithoutGil no_gil;
    if (RL_UNLIKELY(inputs.any_edge)) {
      Ends roots = {{root}, {{}}};
      run_between(roots, {gradient}, inputs, true, retain_graph, create_graph, true);
    } else {
      run_backward({root}, {gradient}, retain_graph, create_graph, inputs.tensors);
    }
    Py_RETURN_NONE;
  });
}

// ---- hooks of tensors ----

class PythonTensorHook : public TensorHook {
 public:
  explicit PythonTensorHook(Object hooks) : hooks_(std::move(hooks)) {}
  ~PythonTensorHook() override { drop_reference(hooks_.release()); }
  PyObject* dict() const { return hooks_.get(); }
  Tensor operator()(const Tensor& grad) override {
    return in_python([&] {
      const Object values = Object::check(PyObject_CallMethod(hooks_.get(), "values", nullptr));
      const Object list = Object::check(PySequence_List(values.get()));
      Tensor current = grad;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
        PyObject* hook = PyList_GET_ITEM(list.get(), i);
        const Object wrapped = Object::check(wrap(current));
        const Object result = Object::check(PyObject_CallOneArg(hook, wrapped.get()));
        if (result.get() == Py_None) {
          continue;
        }
        if (!is_tensor(result.get())) {
          raise(PyExc_TypeError,
                str("expected Variable, but hook returned '", type_name(result.get()), "'"));
        }
        const Tensor& changed = unwrap(result.get());
        RL_CHECK(changed.dtype() == current.dtype(),
                 "hook has changed the type of value (was torch.", current.dtype(), " got torch.",
                 changed.dtype(), ")");
        RL_CHECK(changed.device() == current.device(), "hook has changed the device of value (was ",
                 current.device(), " got ", changed.device(), ")");
        RL_CHECK(changed.sizes() == current.sizes(), "hook has changed the size of value (was ",
                 current.sizes(), " got ", changed.sizes(), ")");
        current = changed;
      }
      return current;
    });
  }

 private:
  Object hooks_;  // OrderedDict
};

class PythonAccumulateHook : public AccumulateHook {
 public:
  explicit PythonAccumulateHook(Object hooks) : hooks_(std::move(hooks)) {}
  ~PythonAccumulateHook() override { drop_reference(hooks_.release()); }
  PyObject* dict() const { return hooks_.get(); }
  void operator()(const Tensor& leaf) override {
    in_python([&] {
      const Object values = Object::check(PyObject_CallMethod(hooks_.get(), "values", nullptr));
      const Object list = Object::check(PySequence_List(values.get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
        const Object wrapped = Object::check(wrap(leaf));
        const Object result =
            Object::check(PyObject_CallOneArg(PyList_GET_ITEM(list.get(), i), wrapped.get()));
        RL_CHECK_TYPE(result.get() == Py_None,
                      "Tensor post accumulate grad hooks should return None.");
      }
    });
  }

 private:
  Object hooks_;
};

// The dict of this tensor's hooks: null where there is none and `make` is false. New reference
// otherwise.
PyObject* hooks_of(const Tensor& t, bool make) {
  if (const Ref<Node> grad_fn = t.grad_fn()) {
    if (grad_fn->extra() != nullptr) {
      for (const auto& [output_nr, hook] : grad_fn->extra()->output_hooks) {
        const auto* python_hook = dynamic_cast<const PythonTensorHook*>(hook.get());
        if (python_hook != nullptr && output_nr == t.output_nr()) {
          return Py_NewRef(python_hook->dict());
        }
      }
    }
  } else if (const AutogradMeta* meta = t.impl()->autograd();
             meta != nullptr && meta->hooks != nullptr) {
    for (const auto& hook : meta->hooks->tensor_hooks) {
      if (const auto* python_hook = dynamic_cast<const PythonTensorHook*>(hook.get())) {
        return Py_NewRef(python_hook->dict());
      }
    }
  }
  if (!make) {
    return nullptr;
  }
  auto hook = std::make_shared<PythonTensorHook>(Object::check(ordered_dict()));
  add_tensor_hook(t, hook);
  return Py_NewRef(hook->dict());
}

bool offer(PyObject* self, const char* name, PyObject* argument, PyObject** result) {
  if (RL_LIKELY(!mode_active() && !overrides(self))) {
    return false;
  }
  const Object method =
      Object::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), name));
  *result = check(
      call_torch_function(method.get(), self, &argument, argument != nullptr ? 1 : 0, nullptr));
  return true;
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&]() -> PyObject* {
    PyObject* result;
    if (offer(self, "register_hook", hook, &result)) {
      return result;
    }
    const Object dict = Object::check(hooks_of(unwrap(self), true));
    return add_hook(dict.get(), hook);
  });
}

PyObject* register_accumulate_hook(PyObject* self, PyObject* hook) {
  return guarded([&]() -> PyObject* {
    PyObject* result;
    if (offer(self, "register_post_accumulate_grad_hook", hook, &result)) {
      return result;
    }
    const Tensor& t = unwrap(self);
    const AutogradMeta* meta = t.impl()->autograd();
    if (meta != nullptr && meta->hooks != nullptr) {
      for (const auto& existing : meta->hooks->accumulate_hooks) {
        if (const auto* python_hook = dynamic_cast<const PythonAccumulateHook*>(existing.get())) {
          return add_hook(python_hook->dict(), hook);
        }
      }
    }
    auto made = std::make_shared<PythonAccumulateHook>(Object::check(ordered_dict()));
    add_accumulate_hook(t, made);
    return add_hook(made->dict(), hook);
  });
}

PyObject* backward_hooks(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    PyObject* hooks = hooks_of(unwrap(self), false);
    return hooks != nullptr ? hooks : Py_NewRef(Py_None);
  });
}

// What refers to Python objects from a leaf, for the garbage collector.
int visit_hooks(TensorImpl& impl, visitproc visit, void* arg) {
  const AutogradMeta* meta = impl.autograd();
  if (meta == nullptr || meta->hooks == nullptr) {
    return 0;
  }
  for (const auto& hook : meta->hooks->tensor_hooks) {
    const auto* python_hook = dynamic_cast<const PythonTensorHook*>(hook.get());
    if (python_hook != nullptr && hook.use_count() == 1) {
      Py_VISIT(python_hook->dict());
    }
  }
  for (const auto& hook : meta->hooks->accumulate_hooks) {
    const auto* python_hook = dynamic_cast<const PythonAccumulateHook*>(hook.get());
    if (python_hook != nullptr && hook.use_count() == 1) {
      Py_VISIT(python_hook->dict());
    }
  }
  return 0;
}
void clear_hooks(TensorImpl& impl) {
  if (impl.autograd() != nullptr && impl.autograd()->hooks != nullptr) {
    const auto tensor_hooks = std::move(impl.autograd()->hooks->tensor_hooks);
    const auto accumulate_hooks = std::move(impl.autograd()->hooks->accumulate_hooks);
  }
}

// ---- the rest of Tensor ----

PyObject* grad_fn(PyObject* self, void*) {
  return guarded([&] { return wrap_node(unwrap(self).grad_fn()); });
}

PyObject* retain_grad(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* result;
    if (offer(self, "retain_grad", nullptr, &result)) {
      return result;
    }
    unwrap(self).retain_grad();
    Py_RETURN_NONE;
  });
}

PyObject* detach_(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* result;
    if (offer(self, "detach_", nullptr, &result)) {
      return result;
    }
    detach_in_place(unwrap(self));
    return Py_NewRef(self);
  });
}

PyObject* is_inference(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(unwrap(self).impl()->is_inference()); });
}

const PyMethodDef tensor_methods[] = {
    {"backward", as_function(backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None): add the "
     "gradients of this tensor to "
     "the leaves' .grad."},
    {"register_hook", register_hook, METH_O,
     "Call hook(grad) whenever the gradient of this tensor is computed; a result replaces it. "
     "Returns a handle."},
    {"register_post_accumulate_grad_hook", register_accumulate_hook, METH_O,
     "Call hook(leaf) after a gradient was added to this leaf. Returns a handle."},
    {"retain_grad", retain_grad, METH_NOARGS, "Let backward fill in .grad though this is no leaf."},
    {"detach_", detach_, METH_NOARGS, "Take this tensor out of the graph, in place."},
    {"is_inference", is_inference, METH_NOARGS, "Whether it was made in inference mode."},
    {},
};

const PyGetSetDef tensor_getset[] = {
    {"grad_fn", grad_fn, nullptr, "The node of the op that made this tensor; None for leaves.",
     nullptr},
    {"_backward_hooks", backward_hooks, nullptr, nullptr, nullptr},
    {},
};

// ---- saved-tensor hooks ----

class PythonPacked : public PackedTensor {
 public:
  PythonPacked(Object packed, Object unpack)
      : packed_(std::move(packed)), unpack_(std::move(unpack)) {}
  ~PythonPacked() override {
    drop_reference(packed_.release());
    drop_reference(unpack_.release());
  }
  Tensor unpack() override {
    return in_python([&] {
      const Object t = Object::check(PyObject_CallOneArg(unpack_.get(), packed_.get()));
      if (!is_tensor(t.get())) {
        raise(PyExc_TypeError, str("Output of saved tensor unpack_hook expected to be a Tensor but "
                                   "got result of type ",
                                   type_name(t.get())));
      }
      return unwrap(t.get());
    });
  }

 private:
  Object packed_;
  Object unpack_;
};

// The stack of hooks that Python pushed, per thread; the topmost is in ThreadState.
struct HookStack {
  std::vector<std::unique_ptr<PythonSavedHooks>> hooks;
  ~HookStack() {
    for (auto& h : hooks) {
      h.release();  // the thread ended inside a `with`: its Python references go with it
    }
  }
};
thread_local HookStack hook_stack;
thread_local std::string saved_hooks_disabled;  // the reason, when they are

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* pack;
    PyObject* unpack;
    if (!PyArg_ParseTuple(args, "OO:push_saved_tensors_hooks", &pack, &unpack)) {
      throw PythonError();
    }
    for (PyObject* hook : {pack, unpack}) {
      if (PyCallable_Check(hook) == 0) {
        raise(PyExc_TypeError,
              str("saved_tensors_hooks(): the hooks must be callable, but got ", type_name(hook)));
      }
    }
    RL_CHECK(saved_hooks_disabled.empty(), saved_hooks_disabled);
    hook_stack.hooks.push_back(
        std::make_unique<PythonSavedHooks>(Object::borrow(pack), Object::borrow(unpack)));
    tls.saved_hooks = hook_stack.hooks.back().get();
    Py_RETURN_NONE;
  });
}

PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(!hook_stack.hooks.empty(), "no saved tensors hooks are pushed");
    hook_stack.hooks.pop_back();
    tls.saved_hooks = hook_stack.hooks.empty() ? nullptr : hook_stack.hooks.back().get();
    Py_RETURN_NONE;
  });
}

// The message of the errors that pushing raises; None allows hooks again. Returns what was set
// before.
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    const std::string before = saved_hooks_disabled;
    RL_CHECK(message == Py_None || hook_stack.hooks.empty(), text_view(message));
    saved_hooks_disabled = message == Py_None ? std::string() : std::string(text_view(message));
    return before.empty() ? Py_NewRef(Py_None) : text(before).release();
  });
}

// ---- other functions ----

PyObject* with_error(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* t;
    const char* message;
    if (!PyArg_ParseTuple(args, "Os:with_backward_error", &t, &message)) {
      throw PythonError();
    }
    return wrap(with_backward_error(expect_tensor(t, "argument"), message));
  });
}

PyObject* edge_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Edge edge = gradient_edge(expect_tensor(o, "get_gradient_edge(): argument 'tensor'"));
    RL_CHECK(
        edge.node,
        "It is not possible to get the gradient edge for a Tensor that does not require gradients");
    const Object node = Object::check(wrap_node(edge.node));
    return check(Py_BuildValue("(OI)", node.get(), edge.input_nr));
  });
}

PyObject* running_node(PyObject*, PyObject*) {
  return guarded([&] { return wrap_node(Ref<Node>(current_node())); });
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
  return guarded([&]() -> PyObject* {
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
  return guarded([&]() -> PyObject* {
    if (!is_node(o)) {
      raise(PyExc_TypeError, str("expected a node, but got ", type_name(o)));
    }
    return PyBool_FromLong(will_run(*unwrap_node(o)));
  });
}

PyObject* increment_version(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = expect_tensor(o, "argument");
    RL_CHECK(!t.impl()->is_inference(), "Inference tensors do not track version counter.");
    t.impl()->bump_version();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether ops on this thread are recorded."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "Whether inference mode is on."},
    {"_enter_inference_mode", enter_inference_mode, METH_O, nullptr},
    {"_leave_inference_mode", leave_inference_mode, METH_O, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS, nullptr},
    {"_set_anomaly_enabled", set_anomaly_enabled, METH_VARARGS, nullptr},
    {"_run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
     METH_FASTCALL, nullptr},
    {"_push_saved_tensors_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_saved_hooks, METH_O, nullptr},
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

std::unique_ptr<PackedTensor> PythonSavedHooks::pack(const Tensor& t) {
  return in_python([&] {
    const Object wrapped = Object::check(wrap(t));
    return std::make_unique<PythonPacked>(
        Object::check(PyObject_CallOneArg(pack_.get(), wrapped.get())), unpack_);
  });
}

void add_autograd() {
  add_methods(tensor_methods);
  add_getset(tensor_getset);
}

void init_autograd(PyObject* module) {
  init_nodes(module);
  init_functions(module);
  check(PyModule_AddFunctions(module, functions));
  set_autograd_visitor({visit_hooks, clear_hooks});
  set_traceback_provider(python_traceback);
}

}  // namespace rushlight::python
