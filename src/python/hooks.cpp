// Hooks of Python on tensors, on leaves that have got a gradient, and on what is saved for
// backward.
#include <rushlight/ops.h>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/torch_function.h"

namespace rushlight::python {

bool call_if_overridden(PyObject* self, const char* name, PyObject* argument, PyObject** result) {
  if (RL_LIKELY(!mode_active() && !overrides(self))) {
    return false;
  }
  const Object method =
      Object::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), name));
  *result = check(
      call_torch_function(method.get(), self, &argument, argument != nullptr ? 1 : 0, nullptr));
  return true;
}

void check_hook_result(const Tensor& before, const Tensor& after) {
  RL_CHECK(after.dtype() == before.dtype(), "hook has changed the type of value (was torch.",
           before.dtype(), " got torch.", after.dtype(), ")");
  RL_CHECK(after.device() == before.device(), "hook has changed the device of value (was ",
           before.device(), " got ", after.device(), ")");
  RL_CHECK(after.sizes() == before.sizes(), "hook has changed the size of value (was ",
           before.sizes(), " got ", after.sizes(), ")");
}

namespace {

// ---- hooks of tensors ----

class PythonTensorHook : public TensorHook, public HoldsPython {
 public:
  explicit PythonTensorHook(Object hooks) : hooks_(std::move(hooks)) { note_tie(); }
  ~PythonTensorHook() override { drop_reference(hooks_.release()); }
  PyObject* dict() const { return hooks_.get(); }
  std::pair<PyObject*, PyObject*> python_objects() const override { return {dict(), nullptr}; }
  Tensor operator()(const Tensor& grad) override {
    return in_python([&] {
      const Object values = Object::check(PyObject_CallMethod(hooks_.get(), "values", nullptr));
      const Object list = Object::check(PySequence_List(values.get()));
      Tensor current = grad;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
        PyObject* hook = PyList_GET_ITEM(list.get(), i);
        const Object given =
            current.defined() ? Object::check(wrap(current)) : Object::borrow(Py_None);
        const Object result = Object::check(PyObject_CallOneArg(hook, given.get()));
        if (result.get() == Py_None) {
          continue;
        }
        if (!is_tensor(result.get())) {
          raise(PyExc_TypeError,
                str("expected Variable, but hook returned '", type_name(result.get()), "'"));
        }
        const Tensor& changed = unwrap(result.get());
        if (!current.defined()) {
          current = changed;
          continue;
        }
        check_hook_result(current, changed);
        current = changed;
      }
      return current;
    });
  }

 private:
  Object hooks_;  // OrderedDict
};

class PythonAccumulateHook : public AccumulateHook, public HoldsPython {
 public:
  explicit PythonAccumulateHook(Object hooks) : hooks_(std::move(hooks)) { note_tie(); }
  ~PythonAccumulateHook() override { drop_reference(hooks_.release()); }
  PyObject* dict() const { return hooks_.get(); }
  std::pair<PyObject*, PyObject*> python_objects() const override { return {dict(), nullptr}; }
  void operator()(const Tensor& leaf) override {
    in_python([&] {
      const Object values = Object::check(PyObject_CallMethod(hooks_.get(), "values", nullptr));
      const Object list = Object::check(PySequence_List(values.get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
        const Object wrapped = Object::check(wrap(leaf));
        const Object result =
            Object::check(PyObject_CallOneArg(PyList_GET_ITEM(list.get(), i), wrapped.get()));
        if (result.get() == Py_None || result.get() == wrapped.get()) {
          continue;
        }
        RL_CHECK_TYPE(is_tensor(result.get()), "expected Variable, but hook returned '",
                      type_name(result.get()), "'");
        throw Error("Tensor post accumulate grad hooks should return None.");
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

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return translate_errors([&]() -> PyObject* {
    PyObject* result;
    if (call_if_overridden(self, "register_hook", hook, &result)) {
      return result;
    }
    const Object dict = Object::check(hooks_of(unwrap(self), true));
    return add_hook(dict.get(), hook);
  });
}

// The dict of a tensor's hooks behind its gradient; null without one.
PyObject* accumulate_hooks_of(const Tensor& t) {
  const AutogradMeta* meta = t.impl()->autograd();
  if (meta != nullptr && meta->hooks != nullptr) {
    for (const auto& hook : meta->hooks->accumulate_hooks) {
      if (const auto* python_hook = dynamic_cast<const PythonAccumulateHook*>(hook.get())) {
        return python_hook->dict();
      }
    }
  }
  return nullptr;
}

PyObject* register_accumulate_hook(PyObject* self, PyObject* hook) {
  return translate_errors([&]() -> PyObject* {
    PyObject* result;
    if (call_if_overridden(self, "register_post_accumulate_grad_hook", hook, &result)) {
      return result;
    }
    const Tensor& t = unwrap(self);
    if (PyObject* const hooks = accumulate_hooks_of(t)) {
      return add_hook(hooks, hook);
    }
    auto made = std::make_shared<PythonAccumulateHook>(Object::check(ordered_dict()));
    add_accumulate_hook(t, made);
    return add_hook(made->dict(), hook);
  });
}

PyObject* backward_hooks(PyObject* self, void*) {
  return translate_errors([&]() -> PyObject* {
    PyObject* hooks = hooks_of(unwrap(self), false);
    return hooks != nullptr ? hooks : Py_NewRef(Py_None);
  });
}

PyObject* post_accumulate_grad_hooks(PyObject* self, void*) {
  return translate_errors([&]() -> PyObject* {
    PyObject* const hooks = accumulate_hooks_of(unwrap(self));
    return Py_NewRef(hooks != nullptr ? hooks : Py_None);
  });
}

// `t._backward_hooks = hooks`: a dict in place of the one that register_hook makes, or None.
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  return translate_errors_to_status([&] {
    RL_CHECK_TYPE(value != nullptr && (value == Py_None || PyDict_Check(value)),
                  "_backward_hooks must be a dict or None");
    const Tensor& t = unwrap(self);
    std::shared_ptr<PythonTensorHook> hook;
    if (value != Py_None) {
      hook = std::make_shared<PythonTensorHook>(Object::borrow(value));
    }
    if (const Ref<Node> grad_fn = t.grad_fn()) {
      auto& hooks = grad_fn->extra_or_make().output_hooks;
      const auto number = static_cast<uint32_t>(t.output_nr());
      std::erase_if(hooks, [&](const auto& row) {
        return row.output_nr == number &&
               dynamic_cast<const PythonTensorHook*>(row.hook.get()) != nullptr;
      });
      if (hook != nullptr) {
        hooks.push_back({number, std::move(hook)});
      }
      return;
    }
    AutogradMeta& meta = t.impl()->autograd_or_make();
    if (meta.hooks == nullptr) {
      meta.hooks = std::make_unique<AutogradMeta::Hooks>();
    }
    std::erase_if(meta.hooks->tensor_hooks, [](const auto& row) {
      return dynamic_cast<const PythonTensorHook*>(row.get()) != nullptr;
    });
    if (hook != nullptr) {
      meta.hooks->tensor_hooks.push_back(std::move(hook));
    }
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

// ---- saved-tensor hooks ----

class PythonPacked : public PackedTensor, public HoldsPython {
 public:
  PythonPacked(Object packed, Object unpack)
      : packed_(std::move(packed)), unpack_(std::move(unpack)) {
    note_tie();
  }
  ~PythonPacked() override {
    drop_reference(packed_.release());
    drop_reference(unpack_.release());
  }
  std::pair<PyObject*, PyObject*> python_objects() const override {
    return {packed_.get(), unpack_.get()};
  }
  Tensor unpack() override {
    return in_python([&] {
      const Object t = Object::check(PyObject_CallOneArg(unpack_.get(), packed_.get()));
      if (!is_tensor(t.get())) {
        raise(PyExc_TypeError, str("Output of unpack_hook expected to be a Tensor, but is of type ",
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
      (void)h.release();  // the thread ended inside a `with`: its Python references go with it
    }
  }
};
thread_local HookStack hook_stack;
thread_local std::string saved_hooks_disabled;  // the reason, when they are

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
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
  return translate_errors([&]() -> PyObject* {
    RL_CHECK(!hook_stack.hooks.empty(), "no saved tensors hooks are pushed");
    hook_stack.hooks.pop_back();
    tls.saved_hooks = hook_stack.hooks.empty() ? nullptr : hook_stack.hooks.back().get();
    Py_RETURN_NONE;
  });
}

// The message of the errors that pushing raises; None allows hooks again. Returns what was set
// before.
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return translate_errors([&]() -> PyObject* {
    const std::string before = saved_hooks_disabled;
    RL_CHECK(message == Py_None || hook_stack.hooks.empty(), text_view(message));
    saved_hooks_disabled = message == Py_None ? std::string() : std::string(text_view(message));
    return before.empty() ? Py_NewRef(Py_None) : text(before).release();
  });
}

// ---- tables ----

const PyMethodDef tensor_methods[] = {
    {"register_hook", register_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Call hook(grad) whenever the gradient of this tensor is computed; a result replaces it. "
     "Returns a handle."},
    {"register_post_accumulate_grad_hook", register_accumulate_hook, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\n"
     "Call hook(leaf) after a gradient was added to this leaf. Returns a handle."},
    {},
};

const PyGetSetDef tensor_getset[] = {
    {"_backward_hooks", backward_hooks, set_backward_hooks, nullptr, nullptr},
    {"_post_accumulate_grad_hooks", post_accumulate_grad_hooks, nullptr, nullptr, nullptr},
    {},
};

PyMethodDef functions[] = {
    {"_push_saved_tensors_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_saved_hooks, METH_O, nullptr},
    {},
};

}  // namespace

std::unique_ptr<PackedTensor> PythonSavedHooks::pack(const Tensor& t) {
  return in_python([&] {
    // References of its own: the function may leave the context that it belongs to.
    const Object function = pack_;
    Object unpack = unpack_;
    const Object wrapped = Object::check(wrap(t));
    return std::make_unique<PythonPacked>(
        Object::check(PyObject_CallOneArg(function.get(), wrapped.get())), std::move(unpack));
  });
}

void add_hooks() {
  add_methods(tensor_methods);
  add_getset(tensor_getset);
}

void init_hooks(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  set_autograd_visitor({visit_hooks, clear_hooks});
}

}  // namespace rushlight::python
