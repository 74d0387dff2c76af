// TorchDispatchMode: Python code that sees every op below autograd, in boxed form. The objects of
// ops that it is given are those of `rushlight.ops.aten`; python/rushlight/_ops.py makes them.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "python/autograd.h"
#include "python/bindings.h"
#include "python/boxed.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

// What Python code has entered on this thread, and what it has hidden from ops for a while.
thread_local std::vector<LowerMode*> entered;
thread_local std::vector<Mode*> hidden;

// The OpOverload of an op: borrowed, made once.
PyObject* overload_of(const OpInfo& op) {
  static std::unordered_map<const OpInfo*, PyObject*> made;
  PyObject*& found = made[&op];
  if (found == nullptr) {
    static PyObject* make = nullptr;
    found = check(PyObject_CallFunction(imported(make, "rushlight._ops", "_overload"), "ss",
                                        op.name, op.overload));
  }
  return found;
}

// The types of an op's results: the part of the schema after the arrow, without names.
std::vector<std::string_view> result_types(std::string_view schema) {
  std::string_view rest = schema.substr(schema.rfind("->") + 2);
  std::vector<std::string_view> out;
  while (!rest.empty()) {
    const size_t begin = rest.find_first_not_of(" (),");
    if (begin == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(begin);
    const size_t end = std::min(rest.find(','), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(end);
    const size_t stop = one.find_first_of(" )(");  // a name, or what an alias says
    const bool is_list = one.find("[]") != std::string_view::npos;
    one = one.substr(0, stop);
    out.push_back(is_list ? "Tensor[]" : one);
  }
  return out;
}

Value checked_result(PyObject* o, std::string_view type, const OpInfo& op) {
  RL_CHECK_TYPE(o != Py_None || !type.starts_with("Tensor"), "__torch_dispatch__ of ", op.name,
                " must return a ", type, ", but got None");
  return to_value(o, op, type, "result");
}

class PythonMode final : public LowerMode {
 public:
  explicit PythonMode(PyObject* mode) : mode_(Py_NewRef(mode)) {}
  ~PythonMode() override { drop_reference(mode_); }
  PyObject* object() const { return mode_; }

 private:
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments) override {
    return in_python([&] { return handle_in_python(op, arguments); });
  }
  std::vector<Value> handle_in_python(const OpInfo& op, const std::vector<Value>& arguments) {
    const Object boxed = Object::check(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
    for (size_t i = 0; i < arguments.size(); i++) {
      // Factories' options are the arguments that the op's object takes by keyword.
      const Value& value = arguments[i];
      PyObject* item =
          value.is<TensorOptions>() ? options(value.get<TensorOptions>()) : from_value(value);
      PyTuple_SET_ITEM(boxed.get(), static_cast<Py_ssize_t>(i), check(item));
    }
    static PyObject* dispatch = nullptr;
    const Object result = Object::check(
        PyObject_CallFunctionObjArgs(imported(dispatch, "rushlight._ops", "_dispatch"), mode_,
                                     overload_of(op), boxed.get(), nullptr));
    const std::vector<std::string_view> types = result_types(op.schema);
    if (types.empty()) {
      return {};
    }
    std::vector<Value> out;
    if (types.size() == 1) {
      out.push_back(checked_result(result.get(), types[0], op));
      return out;
    }
    const Object items = Object::check(PySequence_Tuple(result.get()));
    RL_CHECK_TYPE(static_cast<size_t>(PyTuple_GET_SIZE(items.get())) == types.size(),
                  "__torch_dispatch__ of ", op.name, " must return ", types.size(),
                  " results, but got ", PyTuple_GET_SIZE(items.get()));
    for (size_t i = 0; i < types.size(); i++) {
      out.push_back(
          checked_result(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)), types[i], op));
    }
    return out;
  }

  static PyObject* options(const TensorOptions& o) {
    const Object out = Object::check(PyDict_New());
    if (o.dtype_opt()) {
      check(PyDict_SetItemString(out.get(), "dtype", Object::check(wrap(*o.dtype_opt())).get()));
    }
    if (o.device_opt()) {
      check(PyDict_SetItemString(out.get(), "device", Object::check(wrap(*o.device_opt())).get()));
    }
    if (o.requires_grad()) {
      check(PyDict_SetItemString(out.get(), "requires_grad", Py_True));
    }
    return Py_NewRef(out.get());
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
  return guarded([&]() -> PyObject* {
    stack.modes.push_back(std::make_unique<PythonMode>(mode));
    stack.modes.back()->enter();
    Py_RETURN_NONE;
  });
}

// Leaves the innermost one that is this object.
PyObject* pop_mode(PyObject*, PyObject* mode) {
  return guarded([&]() -> PyObject* {
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
  return guarded([&] {
    Object out = Object::check(PyList_New(0));
    for (const auto& mode : stack.modes) {
      check(PyList_Append(out.get(), mode->object()));
    }
    return out.release();
  });
}

// Hides all modes of this thread, profilers too, until the matching call of show_modes.
PyObject* hide_modes(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    hidden.push_back(std::exchange(tls.lower, nullptr));
    Py_RETURN_NONE;
  });
}
PyObject* show_modes(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    RL_CHECK(!hidden.empty(), "no modes are hidden on this thread");
    tls.lower = hidden.back();
    hidden.pop_back();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_push_torch_dispatch_mode", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_mode", pop_mode, METH_O, nullptr},
    {"_torch_dispatch_modes", active_modes, METH_NOARGS, nullptr},
    {"_hide_dispatch_modes", hide_modes, METH_NOARGS, nullptr},
    {"_show_dispatch_modes", show_modes, METH_NOARGS, nullptr},
    {},
};

}  // namespace

LowerMode::~LowerMode() {
  if (entered_) {
    running_ = 0;
    leave();
  }
}

void LowerMode::enter() {
  below = tls.lower;
  tls.lower = this;
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
  forget(tls.lower);
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

void init_dispatch(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
