// Forward mode for Python: levels, duals, and the tangents of custom functions' results.
#include <rushlight/forward.h>

#include <set>

#include <rushlight/ops.h>

#include "python/autograd.h"
#include "python/bindings.h"

namespace rushlight::python {

namespace {

uint64_t level_from(PyObject* o) {
  const uint64_t level = PyLong_AsUnsignedLongLong(o);
  if (level == static_cast<uint64_t>(-1) && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return level;
}

PyObject* enter_level(PyObject*, PyObject*) {
  return translate_errors(
      [&] { return check(PyLong_FromUnsignedLongLong(forward::enter_level())); });
}
PyObject* exit_level(PyObject*, PyObject* level) {
  return translate_errors([&]() -> PyObject* {
    forward::exit_level(level_from(level));
    Py_RETURN_NONE;
  });
}

PyObject* get_limit(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(tls.forward_limit); }
PyObject* set_limit(PyObject*, PyObject* limit) {
  return translate_errors([&]() -> PyObject* {
    tls.forward_limit = level_from(limit);
    Py_RETURN_NONE;
  });
}

PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(tls.forward_limit != 0); }
PyObject* set_enabled(PyObject*, PyObject* enabled) {
  return translate_errors([&]() -> PyObject* {
    tls.forward_limit = check(PyObject_IsTrue(enabled)) != 0 ? UINT64_MAX : 0;
    Py_RETURN_NONE;
  });
}

PyObject* optional(Tensor t) { return t.defined() ? wrap(std::move(t)) : Py_NewRef(Py_None); }

// (primal, tangent, level)
PyObject* make_dual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return translate_errors([&]() -> PyObject* {
    RL_CHECK_TYPE(n == 3, "_make_dual() takes 3 arguments");
    return wrap(forward::make_dual(expect_tensor(args[0], "primal"),
                                   expect_tensor(args[1], "tangent"), level_from(args[2])));
  });
}
// (tensor, level)
template <Tensor (*f)(const Tensor&, uint64_t)>
PyObject* of_level(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return translate_errors([&]() -> PyObject* {
    RL_CHECK_TYPE(n == 2, "expected a tensor and a level");
    return optional(f(expect_tensor(args[0], "tensor"), level_from(args[1])));
  });
}
Tensor tangent_in_limit(const Tensor& t, uint64_t level) {
  return level <= tls.forward_limit ? forward::tangent(t, level) : Tensor();
}
PyObject* forward_level_of(PyObject*, PyObject* t) {
  return translate_errors([&] {
    return check(PyLong_FromUnsignedLongLong(forward::level_of(expect_tensor(t, "tensor"))));
  });
}
PyObject* leaf_of(PyObject*, PyObject* t) {
  return translate_errors([&] { return wrap(forward::leaf_of(expect_tensor(t, "tensor"))); });
}
// What `detach` gives, with its tangents.
PyObject* without_graph(PyObject*, PyObject* t) {
  return translate_errors([&] { return wrap(forward::data_of(expect_tensor(t, "tensor"))); });
}

PyMethodDef functions[] = {
    {"_enter_forward_level", enter_level, METH_NOARGS, nullptr},
    {"_exit_forward_level", exit_level, METH_O, nullptr},
    {"_forward_limit", get_limit, METH_NOARGS, nullptr},
    {"_set_forward_limit", set_limit, METH_O, nullptr},
    {"_is_fwd_grad_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_set_fwd_grad_enabled", set_enabled, METH_O, nullptr},
    {"_make_dual", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_dual)),
     METH_FASTCALL, nullptr},
    {"_primal_of",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(of_level<forward::primal_of>)),
     METH_FASTCALL, nullptr},
    {"_tangent_of",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(of_level<tangent_in_limit>)),
     METH_FASTCALL, nullptr},
    {"_forward_level_of", forward_level_of, METH_O, nullptr},
    {"_leaf_of", leaf_of, METH_O, nullptr},
    {"_without_graph", without_graph, METH_O, nullptr},
    {},
};

// ---- custom functions ----

// One result of forward: it gets the tangent that jvp gives for it.
void give_result(const char* name, const Tensor& out, bool dirty, const Tensor& value,
                 uint64_t level, const std::vector<Tensor>& inputs,
                 const std::vector<Tensor>& tangents) {
  RL_CHECK(out.sizes() == value.sizes(), name, ": jvp returned a forward gradient of size ",
           value.sizes(), " for an output of size ", out.sizes());
  if (dirty) {
    const Tensor held = forward::tangent(out, level);
    RL_CHECK(
        !held.defined() || held.is_same(value), name,
        ": jvp gave another tensor instead of modifying the forward mode gradients inplace, as "
        "forward modifies the input. Let it write to the gradient of that input, and return it.");
    forward::write_tangent(out, level, value);
    return;
  }
  bool shared = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool view = inputs[i].storage() == out.storage();
    const bool same = tangents[i].defined() && tangents[i].storage() == value.storage();
    RL_CHECK(!view || same || !tangents[i].defined(), name,
             ": forward returned a view of an input, or the input itself, but jvp no view of its "
             "gradient.");
    shared |= same && !view;
  }
  forward::give_tangent(out, level, shared ? value.clone() : value);
}

}  // namespace

void run_jvp(const JvpCall& call) {
  std::set<uint64_t> levels;
  for (const Tensor& t : call.inputs) {
    for (uint64_t level = forward::level_of(t); level != 0;) {
      levels.insert(level);
      const forward::Below below(level);
      level = forward::level_of(t);
    }
  }
  for (const uint64_t level : levels) {
    const forward::Below below(level);
    std::vector<Tensor> tangents;
    std::vector<Object> arguments;
    size_t next = 0;
    for (const bool is_tensor : call.is_tensor) {
      if (!is_tensor) {
        arguments.push_back(Object::borrow(Py_None));
        continue;
      }
      const Tensor& input = call.inputs[next++];
      Tensor t = forward::tangent(input, level);
      tangents.push_back(t);
      if (!t.defined() && call.materialize && is_differentiable(input.dtype())) {
        t = zeros_like(input);
      }
      arguments.push_back(Object::check(optional(std::move(t))));
    }
    std::vector<PyObject*> stack = {call.context};
    for (const Object& o : arguments) {
      stack.push_back(o.get());
    }
    Object returned =
        Object::check(PyObject_Vectorcall(call.jvp, stack.data(), stack.size(), nullptr));
    if (!PyTuple_Check(returned.get())) {
      returned = Object::check(PyTuple_Pack(1, returned.get()));
    }
    const auto given = static_cast<size_t>(PyTuple_GET_SIZE(returned.get()));
    RL_CHECK(given == call.outputs.size(), call.name,
             "'s jvp returned an invalid number of forward gradients (expected ",
             call.outputs.size(), " but got ", given, ")");
    for (size_t i = 0; i < given; i++) {
      PyObject* item = PyTuple_GET_ITEM(returned.get(), static_cast<Py_ssize_t>(i));
      const JvpCall::Output& out = call.outputs[i];
      if (item == Py_None || !out.value.defined()) {
        RL_CHECK(item == Py_None, call.name, "'s jvp returned a forward gradient at position ", i,
                 ", but the corresponding forward output is not a differentiable Tensor.");
        continue;
      }
      RL_CHECK(is_tensor(item), call.name, "'s jvp must return Tensors or None, but got ",
               type_name(item));
      RL_CHECK(!out.constant, call.name, "'s jvp returned a forward gradient at position ", i,
               ", but the corresponding forward output is not a differentiable Tensor.");
      give_result(call.name, out.value, out.dirty, unwrap(item), level, call.inputs, tangents);
      forward::pass_tangent_to_node(out.value);
    }
  }
}

void init_forward(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
