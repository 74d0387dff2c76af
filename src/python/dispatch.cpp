// Python code that sees every op below autograd, in boxed form: TorchDispatchMode, and tensors
// whose class has __torch_dispatch__. The objects of ops that it is given are those of
// `rushlight.ops.aten`; python/rushlight/_ops.py makes them.
#include <algorithm>
#include <memory>
#include <vector>

#include <rushlight/autocast.h>
#include <rushlight/library.h>

#include "autograd/node.h"
#include "core/op_support.h"
#include "core/scoped_value.h"
#include "core/without_upper.h"
#include "python/autograd.h"
#include "python/bindings.h"
#include "python/boxed.h"
#include "python/parser.h"
#include "python/trace.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

// What Python code has entered on this thread, and what it has hidden from ops for a while.
thread_local std::vector<LowerMode*> entered;
thread_local std::vector<Mode*> hidden;

PyObject* dispatch_name() {
  static PyObject* name = check(PyUnicode_InternFromString("__torch_dispatch__"));
  return name;
}

// ---- tensors whose class has __torch_dispatch__ ----

PyObject* disabled_implementation;

// The class attribute, borrowed; null where there is none or where it is the disabled one.
PyObject* implementation(PyTypeObject* type) {
  PyObject* found = type == tensor_class ? nullptr : _PyType_Lookup(type, dispatch_name());
  return found == disabled_implementation ? nullptr : found;
}

class PythonSpecial final : public SpecialTensor {
 public:
  explicit PythonSpecial(bool has_memory) : has_memory_(has_memory) {}
  bool has_memory() const { return has_memory_; }
  uint8_t asked = 0;                // a set of Asked
  Layout layout = Layout::Strided;  // of what it stands for
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override;
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override;
  void check_has_memory() const override {
    RL_CHECK(has_memory_,
             "Cannot access data pointer of Tensor that doesn't have storage: it is a wrapper, "
             "whose class handles the ops");
  }

 private:
  bool has_memory_;
};

// The special tensors among arguments: one of each class, subclasses before their bases.
class Dispatched {
 public:
  explicit Dispatched(const std::vector<Value>& arguments) {
    for (const Value& v : arguments) {
      v.for_each_tensor([&](const Tensor& t) { collect(t); });
    }
  }
  const std::vector<Object>& objects() const { return objects_; }
  Object types() const {
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(objects_.size())));
    for (size_t i = 0; i < objects_.size(); i++) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       Py_NewRef(Py_TYPE(objects_[i].get())));
    }
    return out;
  }

 private:
  void collect(const Tensor& t) {
    if (!t.defined() || dynamic_cast<PythonSpecial*>(t.impl()->special()) == nullptr) {
      return;
    }
    Object o = Object::check(wrap(t));
    auto at = objects_.end();
    for (auto it = objects_.begin(); it != objects_.end(); ++it) {
      if (Py_TYPE(it->get()) == Py_TYPE(o.get())) {
        return;
      }
      if (at == objects_.end() && PyType_IsSubtype(Py_TYPE(o.get()), Py_TYPE(it->get())) != 0) {
        at = it;
      }
    }
    objects_.insert(at, std::move(o));
  }

  std::vector<Object> objects_;
};

// What a mode or a class says to a call: by its __torch_dispatch__, or by the rule that was
// registered for its class with an op of a library.
Object call_torch_dispatch(PyObject* whose, PyObject* type, const OpInfo& op, PyObject* types,
                           const PythonCall& called) {
  PyObject* const overload = overload_object(op);
  if (library::is_defined_by_library(op)) {
    const Object rule = Object::check(PyObject_CallMethod(overload, "dispatch_rule", "O", type));
    if (rule.get() != Py_None) {
      return Object::check(PyObject_CallFunctionObjArgs(
          rule.get(), whose, overload, types, called.args.get(), called.kwargs.get(), nullptr));
    }
  }
  return Object::check(PyObject_CallMethodObjArgs(whose, dispatch_name(), overload, types,
                                                  called.args.get(), called.kwargs.get(), nullptr));
}

std::vector<Value> PythonSpecial::handle(const OpInfo& op, const std::vector<Value>& arguments) {
  return in_python([&]() -> std::vector<Value> {
    const Dispatched found(arguments);
    const PythonCall called = python_call(op, arguments);
    const Object types = found.types();
    std::string names;
    for (const Object& o : found.objects()) {
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o.get()));
      const Object result = call_torch_dispatch(type, type, op, types.get(), called);
      if (result.get() != Py_NotImplemented) {
        return returned_values(op, result.get(), "__torch_dispatch__ of");
      }
      names += str(names.empty() ? "" : ", ", Py_TYPE(o.get())->tp_name);
    }
    raise(PyExc_TypeError,
          str("Multiple dispatch failed for '", op.space, "::", op.name,
              "': __torch_dispatch__ of each of ", names, " returned NotImplemented"));
  });
}

// Whether the class of an object has rules for whole ops, as PyTorch's nested tensors have.
bool sees_whole_ops(PyObject* o) {
  static PyObject* const name = check(PyUnicode_InternFromString("_sees_whole_ops"));
  return _PyType_Lookup(Py_TYPE(o), name) == Py_True;
}
bool has_whole_op_rules(const Dispatched& found) {
  return std::any_of(found.objects().begin(), found.objects().end(),
                     [](const Object& o) { return sees_whole_ops(o.get()); });
}

// The results of an op that is no view, whatever it is made of.
std::vector<Value> results_of_parts(decltype(OpFunction::parts) parts,
                                    const std::vector<Value>& arguments) {
  std::vector<Value> results = parts(arguments);
  for (const Value& v : results) {
    v.for_each_tensor([](const Tensor& t) {
      if (t.is_view()) {
        become_own_root(t.impl());
      }
    });
  }
  return results;
}

std::vector<Value> PythonSpecial::take(const OpFunction& function, std::vector<Value> arguments) {
  if (const auto parts = function.parts) {
    const bool whole = in_python([&] { return has_whole_op_rules(Dispatched(arguments)); });
    if (!whole) {
      return results_of_parts(parts, arguments);
    }
  }
  return SpecialTensor::take(function, std::move(arguments));
}

PyObject* call_disabled(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *function, *types, *arguments = nullptr, *keywords = nullptr;
    if (!PyArg_ParseTuple(args, "OO|OO:_disabled_torch_dispatch_impl", &function, &types,
                          &arguments, &keywords)) {
      throw PythonError();
    }
    const WithoutSpecial plain;
    const Object tuple =
        Object::check(arguments != nullptr ? PySequence_Tuple(arguments) : PyTuple_New(0));
    PyObject* const named = expect_keywords(keywords, "_disabled_torch_dispatch_impl(): kwargs");
    return check(PyObject_Call(function, tuple.get(), named));
  });
}

// _swap_dispatch_disabled(bool): whether special tensors were taken as plain ones before.
PyObject* swap_dispatch_disabled(PyObject*, PyObject* wanted) {
  const int off = PyObject_IsTrue(wanted);
  if (off < 0) {
    return nullptr;
  }
  return PyBool_FromLong(!std::exchange(tls.see_special, off == 0));
}

// _take_geometry(tensor, of): a wrapper without memory follows what it wraps; nothing for others,
// and where they agree.
PyObject* take_geometry(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *tensor, *of;
    if (!PyArg_ParseTuple(args, "OO:_take_geometry", &tensor, &of)) {
      throw PythonError();
    }
    TensorImpl& impl = *expect_tensor(tensor, "_take_geometry(): argument 'tensor'").impl();
    const TensorImpl& model = *expect_tensor(of, "_take_geometry(): argument 'of'").impl();
    const auto* special = dynamic_cast<const PythonSpecial*>(impl.special());
    const bool same = impl.sizes() == model.sizes() && impl.strides() == model.strides() &&
                      impl.storage_offset() == model.storage_offset();
    if (special != nullptr && !special->has_memory() && !same) {
      impl.set_sizes_and_strides(model.sizes(), model.strides());
      impl.set_storage_offset(model.storage_offset());
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* wrapper_subclass(const Arguments& a) {
  PyObject* cls = a.object(0);
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  RL_CHECK_TYPE(PyType_Check(cls) && PyType_IsSubtype(type, &tensor_base_type) != 0,
                "_make_wrapper_subclass(): cls must be a class derived from Tensor");
  RL_CHECK(implementation(type) != nullptr, "_make_wrapper_subclass(): ", type->tp_name,
           " must define a __torch_dispatch__");
  RL_CHECK(!a.boolean(8, false), "_make_wrapper_subclass(): there is no memory to pin");
  const uint8_t asked =
      question_bits(a.optional_string(10), a.boolean(11, false), a.boolean(12, false));
  const Tensor t = make_empty({0}, a.optional_dtype(5).value_or(get_default_dtype()), kCPU);
  TensorImpl& impl = *t.impl();
  const auto sizes = a.ints(1);
  const auto strides = a.optional_ints(2);
  const MemoryFormat format = a.optional_memory_format(4).value_or(MemoryFormat::Contiguous);
  if (strides.has_value()) {
    impl.set_sizes_and_strides(sizes, *strides);
  } else if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    impl.set_sizes_and_strides(sizes, channels_last_strides(sizes, format));
  } else {
    impl.set_sizes_contiguous(sizes);
  }
  impl.set_storage_offset(a.optional_integer(3).value_or(0));
  if (const std::optional<Device> device = a.optional_device(7)) {
    impl.set_device(*device);
  }
  auto special = std::make_unique<PythonSpecial>(false);
  special->asked = asked;
  special->layout = a.layout(6, Layout::Strided);
  impl.set_special(std::move(special));
  return wrap_as(type, as_leaf(t, a.boolean(9, false)));
}

const Param wrapper_params[] = {
    {"cls", Kind::Object},
    {"size", Kind::IntList},
    {"strides", Kind::IntList, true, false, false, "None"},
    {"storage_offset", Kind::Int, true, false, false, "None"},
    {"memory_format", Kind::MemoryFormat, true, false, false, "None"},
    {"dtype", Kind::Dtype, true, false, false, "None"},
    {"layout", Kind::Layout, true, false, false, "torch.strided"},
    {"device", Kind::Device, true, false, false, "None"},
    {"pin_memory", Kind::Bool, true, false, false, "False"},
    {"requires_grad", Kind::Bool, true, false, false, "False"},
    {"dispatch_sizes_strides_policy", Kind::String, true, false, false, "None"},
    {"dispatch_device", Kind::Bool, true, false, false, "False"},
    {"dispatch_layout", Kind::Bool, true, false, false, "False"}};
const Signature wrapper_signatures[] = {{wrapper_params, FunctionForm, -1, false}};
// It has no owner: modes are not shown it.
const Parser wrapper_parser = {"_make_wrapper_subclass", wrapper_signatures, 1, wrapper_subclass,
                               nullptr};
PyObject* make_wrapper_subclass(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                                PyObject* names) {
  return wrapper_parser.call(FunctionForm, nullptr, args, nargs, names);
}

PyMethodDef tensor_methods[] = {
    {"_make_wrapper_subclass", as_function(make_wrapper_subclass),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "A tensor of a subclass without memory of its own, whose __torch_dispatch__ handles the ops."},
    {},
};

// ---- modes ----

class PythonMode final : public LowerMode {
 public:
  explicit PythonMode(PyObject* mode) : mode_(Py_NewRef(mode)) {}
  ~PythonMode() override { drop_reference(mode_); }
  PyObject* object() const { return mode_; }

  // Parts of an op are seen one by one: the mode is back on the stack for them.
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    const auto parts = function.parts;
    if (parts == nullptr || in_python([&] {
          return sees_whole_ops(mode_) || has_whole_op_rules(Dispatched(arguments));
        })) {
      return LowerMode::take(function, std::move(arguments));
    }
    const ModeScope scope(*this, ModeScope::Level::Lower);
    return results_of_parts(parts, arguments);
  }

 private:
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments) override {
    return in_python([&]() -> std::vector<Value> {
      const PythonCall called = python_call(op, arguments);
      const Object types = Dispatched(arguments).types();
      const Object result = call_torch_dispatch(mode_, reinterpret_cast<PyObject*>(Py_TYPE(mode_)),
                                                op, types.get(), called);
      if (result.get() == Py_NotImplemented) {
        return below(op, arguments, types.get());
      }
      return returned_values(op, result.get(), "__torch_dispatch__ of");
    });
  }

  // A mode that knows nothing of the classes among the arguments leaves the call to them.
  std::vector<Value> below(const OpInfo& op, const std::vector<Value>& arguments,
                           PyObject* types) const {
    if (PyTuple_GET_SIZE(types) == 0) {
      raise(PyExc_TypeError, str("Multiple dispatch failed for '", op.space, "::", op.name,
                                 "': __torch_dispatch__ of the mode ", Py_TYPE(mode_)->tp_name,
                                 " returned NotImplemented, and no tensor has one"));
    }
    const WithoutGil no_gil;
    return call(op, arguments);
  }

  PyObject* mode_;
};

// The modes of this thread, the innermost last.
struct ModeStack {
  std::vector<std::unique_ptr<PythonMode>> modes;
  ~ModeStack() {
    for (auto& m : modes) {
      (void)m.release();  // the thread ended inside a `with`: its Python references go with it
    }
  }
};
thread_local ModeStack stack;

PyObject* push_mode(PyObject*, PyObject* mode) {
  return translate_errors([&]() -> PyObject* {
    stack.modes.push_back(std::make_unique<PythonMode>(mode));
    stack.modes.back()->enter();
    Py_RETURN_NONE;
  });
}

// Leaves the innermost one that is this object.
PyObject* pop_mode(PyObject*, PyObject* mode) {
  return translate_errors([&]() -> PyObject* {
    auto& modes = stack.modes;
    const auto found = std::find_if(modes.rbegin(), modes.rend(),
                                    [&](const auto& m) { return m->object() == mode; });
    RL_CHECK(found != modes.rend(), "this dispatch mode is not active on this thread");
    (*found)->leave();
    const std::unique_ptr<PythonMode> left = std::move(*found);
    modes.erase(std::next(found).base());
    Py_RETURN_NONE;
  });
}

PyObject* active_modes(PyObject*, PyObject*) {
  return translate_errors([&] {
    Object out = Object::check(PyList_New(0));
    for (const auto& mode : stack.modes) {
      check(PyList_Append(out.get(), mode->object()));
    }
    return out.release();
  });
}

// What sees calls before autograd does, as the program wrote them: a function of the overload, its
// arguments and its keywords, which runs the op.
class PythonWatcher final : public Mode {
 public:
  // `casts`: that autocast's casts are calls of their own.
  PythonWatcher(PyObject* function, bool casts) : function_(function), casts_(casts) {}
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    if (casts_ && casting_ != &function && autocast::applies(function)) {
      const ModeScope scope(*this, ModeScope::Level::Upper);
      const ScopedValue<const OpFunction*> once(casting_, &function);
      return autocast::dispatch(function, std::move(arguments));
    }
    if (const auto parts = function.traced) {
      const ModeScope scope(*this, ModeScope::Level::Upper);
      return parts(arguments);
    }
    return Mode::take(function, std::move(arguments));
  }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    return in_python([&] {
      const ScopedValue<PyObject*> untraced(current_trace, nullptr);
      const PythonCall called = python_call(op, arguments);
      const Object result = Object::check(PyObject_CallFunctionObjArgs(
          function_, overload_object(op), called.args.get(), called.kwargs.get(), nullptr));
      return returned_values(op, result.get(), "__torch_dispatch__ of");
    });
  }

 private:
  PyObject* function_;  // borrowed: it watches while watch_ops runs
  bool casts_;
  const OpFunction* casting_ = nullptr;  // that autocast has been asked for already
};

// _watch_ops(function, watched, is_trace=False): calls `watched()`, whose ops go to `function`
// first. A trace is also shown what autocast does, and what only Python sees (trace.h).
PyObject* watch_ops(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *function, *watched;
    int is_trace = 0;
    if (!PyArg_ParseTuple(args, "OO|p:_watch_ops", &function, &watched, &is_trace)) {
      throw PythonError();
    }
    PythonWatcher watcher(function, is_trace != 0);
    const ScopedValue<PyObject*> traced(current_trace, is_trace != 0 ? function : nullptr);
    const ModeScope scope(watcher, ModeScope::Level::Upper);
    return check(PyObject_CallNoArgs(watched));
  });
}

// _unwatched(f): calls `f()`, whose ops nobody watches.
PyObject* unwatched(PyObject*, PyObject* f) {
  return translate_errors([&] {
    const WithoutUpperModes unseen;
    const ScopedValue<PyObject*> untraced(current_trace, nullptr);
    return check(PyObject_CallNoArgs(f));
  });
}

// Hides all modes of this thread, profilers too, until the matching call of show_modes.
PyObject* hide_modes(PyObject*, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    hidden.push_back(tls.exchange_lower(nullptr));
    Py_RETURN_NONE;
  });
}
PyObject* show_modes(PyObject*, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    RL_CHECK(!hidden.empty(), "no modes are hidden on this thread");
    tls.exchange_lower(hidden.back());
    hidden.pop_back();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_push_torch_dispatch_mode", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_mode", pop_mode, METH_O, nullptr},
    {"_torch_dispatch_modes", active_modes, METH_NOARGS, nullptr},
    {"_watch_ops", watch_ops, METH_VARARGS, nullptr},
    {"_unwatched", unwatched, METH_O, nullptr},
    {"_hide_dispatch_modes", hide_modes, METH_NOARGS, nullptr},
    {"_show_dispatch_modes", show_modes, METH_NOARGS, nullptr},
    {"_disabled_torch_dispatch_impl", call_disabled, METH_VARARGS, nullptr},
    {"_swap_dispatch_disabled", swap_dispatch_disabled, METH_O, nullptr},
    {"_take_geometry", take_geometry, METH_VARARGS, nullptr},
    {},
};

}  // namespace

thread_local PyObject* current_trace = nullptr;

void tell_trace_of_iteration(PyObject* tensor) {
  PyObject* const told = current_trace;
  const ScopedValue<PyObject*> untraced(current_trace, nullptr);
  const Object done = Object::check(PyObject_CallMethod(told, "iterates", "O", tensor));
}

LowerMode::~LowerMode() {
  if (entered_) {
    running_ = 0;
    leave();
  }
}

void LowerMode::enter() {
  below = tls.exchange_lower(this);
  entered.push_back(this);
  entered_ = true;
}

// Takes it out wherever it is: others may have been entered since, or be running.
void LowerMode::leave() {
  RL_CHECK(running_ == 0, "a dispatch mode cannot be left while it runs");
  const auto forget = [&](Mode*& m) {
    if (m == this) {
      m = below;
    }
  };
  if (tls.lower() == this) {
    tls.exchange_lower(below);
  }
  std::for_each(hidden.begin(), hidden.end(), forget);
  std::erase(entered, this);
  for (LowerMode* m : entered) {
    forget(m->below);
  }
  entered_ = false;
}

std::vector<Value> LowerMode::handle(const OpInfo& op, const std::vector<Value>& arguments) {
  struct Running {
    int& count;
    explicit Running(int& c) : count(c) { count++; }
    ~Running() { count--; }
  } running(running_);
  return run(op, arguments);
}

void attach_dispatch(PyTypeObject* type, const Tensor& t) {
  if (t.impl()->special() == nullptr && implementation(type) != nullptr) {
    t.impl()->set_special(std::make_unique<PythonSpecial>(true));
  }
}

uint8_t question_bits(std::optional<std::string_view> policy, bool device, bool layout) {
  RL_CHECK_VALUE(!policy || *policy == "sizes" || *policy == "strides",
                 "Unknown sizes_strides_policy: ", *policy, "; expected 'strides' or 'sizes'");
  const auto bit = [](bool on, Asked what) { return on ? static_cast<int>(what) : 0; };
  return static_cast<uint8_t>(bit(policy == "sizes", Asked::Sizes) |
                              bit(policy.has_value(), Asked::Strides) | bit(device, Asked::Device) |
                              bit(layout, Asked::Layout));
}

void set_class_questions(const Tensor& t, uint8_t asked) {
  auto* special = dynamic_cast<PythonSpecial*>(t.impl()->special());
  RL_CHECK(
      special != nullptr || asked == 0,
      "only a class with a __torch_dispatch__ can be asked for sizes, strides, device or layout");
  if (special != nullptr) {
    special->asked = asked;
  }
}

Object ask_class(const Tensor& t, Asked what, const char* question, PyObject* more) {
  const auto* special = dynamic_cast<const PythonSpecial*>(t.impl()->special());
  if (special == nullptr) {
    return {};
  }
  if (!tls.see_special || (special->asked & static_cast<uint8_t>(what)) == 0) {
    const bool of_another = what == Asked::Layout && special->layout != Layout::Strided;
    return of_another ? Object::check(wrap(special->layout)) : Object();
  }
  static PyObject* tell = nullptr;
  const Object self = Object::check(wrap(t));
  const Object name = Object::check(PyUnicode_FromString(question));
  Object answer = Object::check(PyObject_CallFunctionObjArgs(
      import_attribute(tell, "rushlight._ops", "_tell"), self.get(), name.get(), more, nullptr));
  return answer.get() == Py_None ? Object() : answer;
}

void add_dispatch_methods() { add_methods(tensor_methods); }

void init_dispatch(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  disabled_implementation = check(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
}

}  // namespace rushlight::python
