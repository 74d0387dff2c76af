// Custom functions: `ctx`, which is also the grad_fn's Python object, and `apply`.
//
// A FunctionNode owns its ctx; where the graph drops the node and Python still has the ctx, the two
// change places. Outputs get their history as those of ops do, but for three cases:
// an input written in place (mark_dirty) has its history rewritten, an input returned as it is
// comes back as a view of itself, and what is marked non-differentiable leaves the graph.
#include <algorithm>

#include <rushlight/batching.h>
#include <rushlight/forward.h>
#include <rushlight/function.h>
#include <rushlight/ops.h>

#include "autograd/refusals.h"
#include "python/autograd.h"

namespace rushlight::python {

namespace {

struct FunctionObject {
  NodeObject base;
  PyObject* needs_input_grad;    // tuple of bools
  PyObject* to_save;             // what save_for_backward was given …
  PyObject* dirty;               // … mark_dirty …
  PyObject* non_differentiable;  // … mark_non_differentiable; tuples or null
  PyObject* saved_for_forward;
  PyObject* dict;
  PyObject* weak_references;
  bool materialize_grads;
};
FunctionObject* as_function(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

// ---- the node ----

constexpr NodeDescriptor function_descriptor = {"Function", nullptr, true};

class FunctionNode : public Node {
 public:
  FunctionNode(PyObject* context, std::string name, std::vector<bool> is_tensor_input)
      : Node(&function_descriptor),
        context_(Py_NewRef(context)),
        name_(std::move(name)),
        is_tensor_input_(std::move(is_tensor_input)) {
    note_tie();
  }
  ~FunctionNode() override {
    if (context_ != nullptr && Py_IsInitialized()) {
      const WithGil gil;
      as_function(context_)->base.node = nullptr;
      Py_DECREF(context_);
    }
  }
  const char* name() const override { return name_.c_str(); }
  PyObject* context() const { return context_; }
  bool owns_context() const { return context_ != nullptr && !as_function(context_)->base.owns; }
  bool stays() const {
    if (context_ == nullptr || !Py_IsInitialized()) {
      return false;
    }
    const WithGil gil;
    if (Py_REFCNT(context_) == 1) {
      return false;
    }
    retain();
    as_function(context_)->base.owns = true;
    Py_DECREF(context_);
    return true;
  }
  // The ctx, which owned the node, ends.
  void lose_context() { context_ = nullptr; }
  void apply(const Tensor* grads, Tensor* results) override {
    in_python([&] { apply_in_python(grads, results); });
  }

 private:
  void apply_in_python(const Tensor* grads, Tensor* results);

  PyObject* context_;  // owned, or the owner
  std::string name_;
  std::vector<bool> is_tensor_input_;  // of forward's arguments
};

FunctionNode* as_function_node(const Node& node) {
  return &node.descriptor() == &function_descriptor
             ? const_cast<FunctionNode*>(static_cast<const FunctionNode*>(&node))
             : nullptr;
}

// The class's static method, called as method(ctx, *arguments).
PyObject* call_with_context(PyObject* method, PyObject* context,
                            const std::vector<Object>& arguments) {
  std::vector<PyObject*> stack = {context};
  for (const Object& o : arguments) {
    stack.push_back(o.get());
  }
  return check(PyObject_Vectorcall(method, stack.data(), stack.size(), nullptr));
}

Object backward_method(PyObject* context) {
  const Object cls = Object::check(PyObject_GetAttrString(context, "_forward_cls"));
  return Object::check(PyObject_GetAttrString(cls.get(), "_backward_method"));
}

void FunctionNode::apply_in_python(const Tensor* grads, Tensor* results) {
  std::vector<Object> arguments;
  for (size_t i = 0; i < num_outputs(); i++) {
    Tensor grad = grads[i];
    const OutputInfo& info = output_info(i);
    if (!grad.defined() && as_function(context_)->materialize_grads &&
        info.dtype() != ScalarType::Undefined) {
      grad = zeros(info.sizes(), TensorOptions(info.dtype()).device(info.device()));
    }
    arguments.push_back(Object::check(wrap(std::move(grad))));
  }
  const Object method = backward_method(context_);
  Object returned = Object::check(call_with_context(method.get(), context_, arguments));
  if (!PyTuple_Check(returned.get())) {
    returned = Object::check(PyTuple_Pack(1, returned.get()));
  }
  const Py_ssize_t expected = static_cast<Py_ssize_t>(is_tensor_input_.size());
  Py_ssize_t given = PyTuple_GET_SIZE(returned.get());
  const Py_ssize_t returned_count = given;
  while (given > expected && PyTuple_GET_ITEM(returned.get(), given - 1) == Py_None) {
    given--;
  }
  RL_CHECK(given == expected, "function ", name_,
           " returned an incorrect number of gradients (expected ", expected, ", got ",
           returned_count, ")");
  size_t edge = 0;
  for (Py_ssize_t i = 0; i < given; i++) {
    PyObject* item = PyTuple_GET_ITEM(returned.get(), i);
    if (!is_tensor_input_[static_cast<size_t>(i)]) {
      RL_CHECK(item == Py_None, "function ", name_,
               " returned a gradient different than None at position ", i + 1,
               ", but the corresponding forward input was not a Variable");
      continue;
    }
    RL_CHECK(item == Py_None || is_tensor(item), "expected Variable or None (got ", type_name(item),
             ")");
    if (item != Py_None && edges()[edge].node) {
      results[edge] = unwrap(item);
    }
    edge++;
  }
}

// ---- apply ----

bool contains(PyObject* tuple, PyObject* item) {
  for (Py_ssize_t i = 0; tuple != nullptr && i < PyTuple_GET_SIZE(tuple); i++) {
    if (PyTuple_GET_ITEM(tuple, i) == item) {
      return true;
    }
  }
  return false;
}

Object tuple_of(PyObject* outputs) {
  return PyTuple_Check(outputs) ? Object::borrow(outputs) : Object::check(PyTuple_Pack(1, outputs));
}

void save_tensors(const FunctionObject& context, const Ref<Node>& node) {
  const Object list = Object::borrow(context.to_save);  // hooks of what is saved may change it
  for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(list.get()); i++) {
    PyObject* item = PyTuple_GET_ITEM(list.get(), i);
    if (item == Py_None) {
      node->save(Tensor());
      continue;
    }
    if (!is_tensor(item)) {
      raise(PyExc_TypeError, str("save_for_backward can only save variables, but argument ", i,
                                 " is of type ", type_name(item)));
    }
    const Tensor& t = unwrap(item);
    const AutogradMeta* meta = t.impl()->autograd();
    const bool is_output = meta != nullptr && meta->grad_fn == node;
    node->save(t, is_output ? node.get() : nullptr);
  }
}

PyObject* wrap_outputs(PyObject* context, PyObject* outputs, const std::vector<Tensor>& inputs,
                       const Ref<Node>& node) {
  const FunctionObject& function = *as_function(context);
  const bool is_tuple = PyTuple_Check(outputs);
  const Object list = tuple_of(outputs);
  const Py_ssize_t n = PyTuple_GET_SIZE(list.get());
  for (Py_ssize_t i = 0; function.dirty != nullptr && i < PyTuple_GET_SIZE(function.dirty); i++) {
    if (!contains(list.get(), PyTuple_GET_ITEM(function.dirty, i))) {
      refuse_unreturned_dirty();
    }
  }
  Object out = Object::check(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PyTuple_GET_ITEM(list.get(), i);
    if (!is_tensor(item)) {
      if (node) {
        clear_history(Tensor(), node);
      }
      PyTuple_SET_ITEM(out.get(), i, Py_NewRef(item));
      continue;
    }
    const Tensor t = unwrap(item);
    const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const Tensor& input) { return input.is_same(t); });
    PyTuple_SET_ITEM(
        out.get(), i,
        wrap(autograd::record_custom_output(t, node,
                                            {is_input, contains(function.dirty, item),
                                             contains(function.non_differentiable, item), n > 1})));
  }
  if (node) {
    save_tensors(function, node);
  }
  return is_tuple ? out.release() : Py_NewRef(PyTuple_GET_ITEM(out.get(), 0));
}

// `args` has n positional arguments, then those that kwnames names.
PyObject* run_forward(PyObject* cls, PyObject* context, PyObject* const* args, Py_ssize_t n,
                      PyObject* kwnames) {
  const NoGradGuard no_grad;
  const forward::Below no_tangents(1);
  const Object forward = Object::check(PyObject_GetAttrString(cls, "forward"));
  const Object separate = Object::check(PyObject_GetAttrString(cls, "_has_setup_context"));
  if (separate.get() != Py_True) {
    std::vector<PyObject*> stack = {context};
    const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
    stack.insert(stack.end(), args, args + n + named);
    return check(
        PyObject_Vectorcall(forward.get(), stack.data(), static_cast<size_t>(n) + 1, kwnames));
  }
  Object outputs =
      Object::check(PyObject_Vectorcall(forward.get(), args, static_cast<size_t>(n), nullptr));
  const Object inputs = Object::check(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(args[i]));
  }
  const Object setup = Object::check(PyObject_GetAttrString(cls, "setup_context"));
  Py_DECREF(check(
      PyObject_CallFunctionObjArgs(setup.get(), context, inputs.get(), outputs.get(), nullptr)));
  return outputs.release();
}

// `returned` by forward, `wrapped` as outputs with their history.
void give_tangents(PyObject* cls, PyObject* context, PyObject* returned, PyObject* wrapped,
                   const std::vector<Tensor>& inputs, const std::vector<bool>& is_tensor_input) {
  const FunctionObject& function = *as_function(context);
  const Object jvp = Object::check(PyObject_GetAttrString(cls, "jvp"));
  const Object before = tuple_of(returned);
  const Object after = tuple_of(wrapped);
  JvpCall call = {.name = reinterpret_cast<PyTypeObject*>(cls)->tp_name,
                  .inputs = inputs,
                  .is_tensor = is_tensor_input,
                  .outputs = {},
                  .materialize = function.materialize_grads,
                  .jvp = jvp.get(),
                  .context = context};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(after.get()); i++) {
    PyObject* item = PyTuple_GET_ITEM(after.get(), i);
    PyObject* given = PyTuple_GET_ITEM(before.get(), i);
    const bool constant = contains(function.non_differentiable, given);
    call.outputs.push_back(
        {is_tensor(item) ? unwrap(item) : Tensor(), contains(function.dirty, given), constant});
  }
  run_jvp(call);
}

// Where setup_context is separate, it gets the defaults of forward's arguments too: whether some
// are left out, and the call with all of them.
bool misses_defaults(PyObject* cls, Py_ssize_t n, PyObject* kwnames) {
  const Object most = Object::check(PyObject_GetAttrString(cls, "_num_forward_arguments"));
  const Py_ssize_t count = PyLong_AsSsize_t(most.get());
  return count >= 0 && (n < count || kwnames != nullptr);
}

PyObject* apply(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);

PyObject* apply_with_defaults(PyObject* cls, PyObject* const* args, Py_ssize_t n,
                              PyObject* kwnames) {
  const Object bind = Object::check(PyObject_GetAttrString(cls, "_bind_forward"));
  const Object all =
      Object::check(PyObject_Vectorcall(bind.get(), args, static_cast<size_t>(n), kwnames));
  const Object items = Object::check(PySequence_Tuple(all.get()));
  return check(
      apply(cls, PySequence_Fast_ITEMS(items.get()), PyTuple_GET_SIZE(items.get()), nullptr));
}

// In vmap a function may bring its own rule: null where it goes through the function itself.
PyObject* apply_in_vmap(PyObject* cls, PyObject* const* args, Py_ssize_t n) {
  static PyObject* apply_function = nullptr;
  const Object tuple = Object::check(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  }
  PyObject* result = check(PyObject_CallFunctionObjArgs(
      import_attribute(apply_function, "rushlight._transforms.vmap", "apply_function"), cls,
      tuple.get(), nullptr));
  if (result == Py_NotImplemented) {
    Py_DECREF(result);
    return nullptr;
  }
  return result;
}

PyObject* apply(PyObject* cls, PyObject* const* args, Py_ssize_t n_positional, PyObject* kwnames) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(misses_defaults(cls, n_positional, kwnames))) {
      return apply_with_defaults(cls, args, n_positional, kwnames);
    }
    if (RL_UNLIKELY(batching::current_level() != 0)) {
      if (PyObject* result = apply_in_vmap(cls, args, n_positional)) {
        return result;
      }
    }
    const Py_ssize_t n = n_positional + (kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames));
    std::vector<Tensor> inputs;
    std::vector<bool> is_tensor_input;
    const Object needs = Object::check(PyTuple_New(n));
    bool wanted = false;
    for (Py_ssize_t i = 0; i < n; i++) {
      const bool tensor = is_tensor(args[i]);
      is_tensor_input.push_back(tensor);
      bool needed = false;
      if (tensor) {
        inputs.push_back(unwrap(args[i]));
        needed = inputs.back().requires_grad();
        wanted |= needed;
      }
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(needed));
    }
    const Object context_class = Object::check(PyObject_GetAttrString(cls, "_backward_cls"));
    const Object context = Object::check(PyObject_CallNoArgs(context_class.get()));
    RL_CHECK_TYPE(PyObject_TypeCheck(context.get(), &function_type),
                  "the class of a Function's context must derive from BackwardCFunction, but it "
                  "made an object of ",
                  type_name(context.get()));
    RL_CHECK(as_function(context.get())->base.node == nullptr,
             "the class of a Function's context gave a context that another call has");
    as_function(context.get())->needs_input_grad = Py_NewRef(needs.get());
    const bool dual = forward::active() && forward::has_tangent(TensorList(inputs));
    const std::vector<bool> is_tensor_argument = is_tensor_input;
    Ref<Node> node;
    if (wanted && tls.grad_mode) {
      node = Ref<Node>::steal(new FunctionNode(context.get(), Py_TYPE(context.get())->tp_name,
                                               std::move(is_tensor_input)));
      for (const Tensor& t : inputs) {
        node->add_edge(t);  // before forward may write to it
      }
      as_function(context.get())->base.node = node.get();
    }
    const Object outputs =
        Object::check(run_forward(cls, context.get(), args, n_positional, kwnames));
    Object out = Object::check(wrap_outputs(context.get(), outputs.get(), inputs, node));
    FunctionObject* f = as_function(context.get());
    if (RL_UNLIKELY(dual)) {
      give_tangents(cls, context.get(), outputs.get(), out.get(), inputs, is_tensor_argument);
    }
    Py_CLEAR(f->to_save);
    Py_CLEAR(f->dirty);
    Py_CLEAR(f->non_differentiable);
    Py_CLEAR(f->saved_for_forward);
    return out.release();
  });
}

// ---- ctx ----

template <PyObject* FunctionObject::* field>
PyObject* remember(PyObject* o, PyObject* args) {
  Py_XSETREF(as_function(o)->*field, Py_NewRef(args));
  Py_RETURN_NONE;
}

template <PyObject* FunctionObject::* field>
PyObject* get_field(PyObject* o, void*) {
  PyObject* value = as_function(o)->*field;
  return value != nullptr ? Py_NewRef(value) : Py_NewRef(Py_None);
}
// Deleting it means None.
template <PyObject* FunctionObject::* field>
int set_field(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(as_function(o)->*field, value == Py_None ? nullptr : Py_XNewRef(value));
  return 0;
}
template <PyObject* FunctionObject::* field>
int set_tuple(PyObject* o, PyObject* value, void* name) {
  return translate_errors_to_status([&] {
    RL_CHECK(value == nullptr || value == Py_None || PyTuple_Check(value),
             static_cast<const char*>(name), " attribute is expected to be a tuple but is ",
             type_name(value), ": the methods of ctx set it");
    check(set_field<field>(o, value, nullptr));
  });
}

PyObject* set_materialize_grads(PyObject* o, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) {
    return nullptr;
  }
  as_function(o)->materialize_grads = truth != 0;
  Py_RETURN_NONE;
}
PyObject* materialize_grads(PyObject* o, void*) {
  return PyBool_FromLong(as_function(o)->materialize_grads);
}
int write_materialize_grads(PyObject* o, PyObject* value, void*) {
  return translate_errors_to_status([&] {
    RL_CHECK_TYPE(value != nullptr && PyBool_Check(value), "materialize_grads must be a bool");
    as_function(o)->materialize_grads = value == Py_True;
  });
}

PyObject* saved_tensors(PyObject* o, void*) {
  return translate_errors([&]() -> PyObject* {
    if (PyObject* saved = as_function(o)->saved_for_forward) {  // within jvp
      return Py_NewRef(saved);
    }
    const Ref<Node> node = as_function(o)->base.alive();
    if (!node) {
      return check(PyTuple_New(0));
    }
    node->check_not_released();
    const size_t n = node->num_saved();
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(n)));
    for (size_t i = 0; i < n; i++) {  // unpacking may run anything
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), wrap(node->saved_with_history(i)));
    }
    return out.release();
  });
}

PyObject* saved_variables(PyObject* o, void*) {
  return translate_errors([&] {
    warn_program(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'");
    return saved_tensors(o, nullptr);
  });
}

PyObject* clear_saved_tensors(PyObject* o, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    if (const Ref<Node> node = as_function(o)->base.alive()) {
      node->release_saved();
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"save_for_backward", remember<&FunctionObject::to_save>, METH_VARARGS,
     "Keep tensors (or None) for backward, where `saved_tensors` returns them. Once, in forward."},
    {"save_for_forward", remember<&FunctionObject::saved_for_forward>, METH_VARARGS,
     "Keep tensors for jvp."},
    {"mark_dirty", remember<&FunctionObject::dirty>, METH_VARARGS,
     "Tell which inputs forward wrote in place."},
    {"mark_non_differentiable", remember<&FunctionObject::non_differentiable>, METH_VARARGS,
     "Tell which outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether backward gets zeros (the default) or None where no gradient arrived."},
    {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply)),
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS, "Run forward and record it."},
    {"maybe_clear_saved_tensors", clear_saved_tensors, METH_NOARGS,
     "Free what was saved for backward."},
    {},
};

PyGetSetDef getset[] = {
    {"saved_tensors", saved_tensors, nullptr, "What save_for_backward was given.", nullptr},
    {"saved_variables", saved_variables, nullptr, "saved_tensors by its old name.", nullptr},
    {"needs_input_grad", get_field<&FunctionObject::needs_input_grad>,
     set_field<&FunctionObject::needs_input_grad>,
     "For each input of forward whether its gradient is wanted.", nullptr},
    {"to_save", get_field<&FunctionObject::to_save>, set_tuple<&FunctionObject::to_save>, nullptr,
     const_cast<char*>("to_save")},
    {"dirty_tensors", get_field<&FunctionObject::dirty>, set_tuple<&FunctionObject::dirty>, nullptr,
     const_cast<char*>("dirty_tensors")},
    {"non_differentiable", get_field<&FunctionObject::non_differentiable>,
     set_tuple<&FunctionObject::non_differentiable>, nullptr,
     const_cast<char*>("non_differentiable")},
    {"saved_for_forward", get_field<&FunctionObject::saved_for_forward>,
     set_tuple<&FunctionObject::saved_for_forward>, nullptr,
     const_cast<char*>("saved_for_forward")},
    {"materialize_grads", materialize_grads, write_materialize_grads, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o != nullptr) {
    as_function(o)->materialize_grads = true;
  }
  return o;
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  const FunctionObject* f = as_function(o);
  if (const int status = node_type.tp_traverse(o, visit, arg)) {
    return status;
  }
  Py_VISIT(f->dict);
  Py_VISIT(f->needs_input_grad);
  Py_VISIT(f->to_save);
  Py_VISIT(f->dirty);
  Py_VISIT(f->non_differentiable);
  Py_VISIT(f->saved_for_forward);
  return 0;
}

int clear(PyObject* o) {
  FunctionObject* f = as_function(o);
  Py_CLEAR(f->dict);
  Py_CLEAR(f->needs_input_grad);
  Py_CLEAR(f->to_save);
  Py_CLEAR(f->dirty);
  Py_CLEAR(f->non_differentiable);
  Py_CLEAR(f->saved_for_forward);
  return 0;
}

// Called at a reference count of zero, after Python has run __del__ and emptied __slots__. True
// where the graph has got the node back, as by a saved output: then the node owns the ctx again.
bool resurrect(PyObject* o) {
  NodeObject& base = as_function(o)->base;
  if (!base.owns || base.node->use_count() == 1) {
    return false;
  }
  Py_SET_REFCNT(o, 2);  // the node's and, for the moment, our own
  base.owns = false;
  base.node->release();  // the ctx becomes the owner at once where the graph let go meanwhile
  Py_SET_REFCNT(o, Py_REFCNT(o) - 1);
  if (Py_REFCNT(o) == 0) {
    return false;
  }
  if ((Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
    Py_INCREF(Py_TYPE(o));  // whose deallocator, which called us, drops the object's reference
  }
  return true;
}

void dealloc(PyObject* o) {
  if (resurrect(o)) {
    return;
  }
  PyObject_GC_UnTrack(o);
  FunctionObject* f = as_function(o);
  if (f->weak_references != nullptr) {
    PyObject_ClearWeakRefs(o);
  }
  if (Node* node = f->base.owns ? std::exchange(f->base.node, nullptr) : nullptr) {
    f->base.owns = false;
    as_function_node(*node)->lose_context();
    node->release();
  }
  clear(o);
  Py_TYPE(o)->tp_free(o);
}

}  // namespace

PyTypeObject function_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._FunctionBase",
    .tp_basicsize = sizeof(FunctionObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What custom functions and their contexts derive from.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(FunctionObject, weak_references),
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_base = &node_type,
    .tp_dictoffset = offsetof(FunctionObject, dict),
    .tp_new = make,
};

PyObject* context_of(const Node& node) {
  const FunctionNode* function = as_function_node(node);
  return function == nullptr ? nullptr : function->context();
}
PyObject* owned_context_of(const Node& node) {
  const FunctionNode* function = as_function_node(node);
  return function != nullptr && function->owns_context() ? function->context() : nullptr;
}

void init_functions(PyObject* module) {
  stays_in_python = [](const Node& node) {
    const FunctionNode* function = as_function_node(node);
    return function != nullptr && function->stays();
  };
  ready(function_type);
  add(module, "_FunctionBase", reinterpret_cast<PyObject*>(&function_type));
}

}  // namespace rushlight::python
