// The Python object of a node: its class is named as the node is; names of saved tensors are looked
// up as attributes.
#include <string_view>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/refusals.h"
#include "python/autograd.h"
#include "python/types.h"

namespace rushlight::python {

PyObject* wrap_tuple(const Tensor* tensors, size_t n) {
  Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; i < n; i++) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  }
  return out.release();
}

std::vector<Tensor> unwrap_tuple(PyObject* o, const char* what) {
  std::vector<Tensor> out;
  const auto take = [&](PyObject* item) {
    if (item == Py_None) {
      out.emplace_back();
    } else if (is_tensor(item)) {
      out.push_back(unwrap(item));
    } else {
      raise(PyExc_TypeError, str(what, " must be Tensors or None, but got ", type_name(item)));
    }
  };
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    take(o);
    return out;
  }
  const Object items = Object::check(PySequence_Fast(o, what));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    take(PySequence_Fast_GET_ITEM(items.get(), i));
  }
  return out;
}

PyObject* ordered_dict() {
  static PyObject* type = nullptr;
  return check(PyObject_CallNoArgs(import_attribute(type, "collections", "OrderedDict")));
}

PyObject* add_hook(PyObject* hooks, PyObject* hook) {
  static PyObject* type = nullptr;
  Object handle = Object::check(PyObject_CallOneArg(
      import_attribute(type, "rushlight.utils.hooks", "RemovableHandle"), hooks));
  const Object id = Object::check(PyObject_GetAttrString(handle.get(), "id"));
  check(PyObject_SetItem(hooks, id.get(), hook));
  return handle.release();
}

namespace {

NodeObject* as_node(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

// ---- classes by name ----

PyTypeObject* class_named(const char* name) {
  static std::unordered_map<std::string_view, PyTypeObject*>
      classes;  // never shrinks: the names are constants
  const auto it = classes.find(name);
  if (it != classes.end()) {
    return it->second;
  }
  // "torch::autograd::CopySlices" has the class CopySlices.
  const std::string_view whole = name;
  const size_t colon = whole.rfind(':');
  const std::string full =
      str("rushlight._C._functions.", colon == whole.npos ? whole : whole.substr(colon + 1));
  PyType_Slot slots[] = {{0, nullptr}};
  PyType_Spec spec = {full.c_str(), sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(
      check(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&node_type))));
  classes.emplace(name, type);
  return type;
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  const NodeObject* object = as_node(o);
  const Shadow* shadow = showing_cycles && object->owns && object->node != nullptr
                             ? shadow_of(*object->node, o)
                             : nullptr;
  return shadow != nullptr ? visit_shadow(*shadow, visit, arg) : 0;
}

void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  NodeObject* object = as_node(o);
  if (object->node != nullptr) {
    object->node->extra()->python = nullptr;
    object->node->release();
  }
  // Called by the subclass's own deallocator, which drops the reference to the class.
  Py_TYPE(o)->tp_free(o);
}

// ---- saved tensors by name ----

// A word in "self other tensors[]": its place, and how many of the n things it names.
struct Found {
  size_t first = 0;
  size_t count = 0;
  bool is_list = false;
  bool found = false;
};
Found find_name(const char* names, std::string_view wanted, size_t n) {
  Found out;
  if (names == nullptr) {
    return out;
  }
  size_t words = 0;
  for (const char* c = names; *c != '\0'; c++) {
    words += c == names || c[-1] == ' ';
  }
  // At most one list is expected; it takes what the single names leave.
  const size_t list_length = n >= words - 1 ? n - (words - 1) : 0;
  std::string_view rest = names;
  size_t place = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool is_list = word.ends_with("[]");
    if (is_list) {
      word.remove_suffix(2);
    }
    const size_t count = is_list ? list_length : 1;
    if (word == wanted) {
      return {place, count, is_list, place + count <= n};
    }
    place += count;
  }
  return out;
}

PyObject* wrap_value(const Value& v) {
  if (v.is<Scalar>()) {
    return wrap_number(v.get<Scalar>());
  }
  if (v.is<DimVector>()) {
    return wrap_ints(v.get<DimVector>());
  }
  if (v.is<Tensor>()) {
    return wrap(v.get<Tensor>());
  }
  if (v.is<std::string>()) {
    return text(v.get<std::string>()).release();
  }
  if (v.is<ScalarType>()) {
    return wrap(v.get<ScalarType>());
  }
  if (v.is<std::vector<double>>()) {
    const auto list = v.get<std::vector<double>>();
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); i++) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(PyFloat_FromDouble(list[i])));
    }
    return out.release();
  }
  Py_RETURN_NONE;
}

// A saved tensor itself, for `register_hooks`.
struct RawSavedObject {
  PyObject_HEAD PyObject* owner;  // keeps the node
  size_t index;
};
extern PyTypeObject raw_saved_type;

PyObject* raw_saved(PyObject* owner, size_t index) {
  auto* o = reinterpret_cast<RawSavedObject*>(check(raw_saved_type.tp_alloc(&raw_saved_type, 0)));
  o->owner = Py_NewRef(owner);
  o->index = index;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* saved_attribute(PyObject* o, std::string_view name) {
  const Ref<Node> node = unwrap_node(o);
  const NodeDescriptor& d = node->descriptor();
  const bool raw = name.starts_with("_raw_saved_");
  name.remove_prefix(raw ? 11 : 7);
  if (node->released() && find_name(d.saved, name, SIZE_MAX).found) {
    node->check_not_released();
  }
  const Found tensors = find_name(d.saved, name, node->num_saved());
  if (tensors.found) {
    const auto get = [&](size_t i) {
      return raw ? raw_saved(o, i) : wrap(node->saved_with_history(i));
    };
    if (!tensors.is_list) {
      return get(tensors.first);
    }
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(tensors.count)));
    for (size_t i = 0; i < tensors.count; i++) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), get(tensors.first + i));
    }
    return out.release();
  }
  const Found values = find_name(d.values, name, node->num_values());
  return !raw && values.found ? wrap_value(node->value(values.first)) : nullptr;
}

PyObject* getattro(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return found;
  }
  PyObject* type;
  PyObject* value;
  PyObject* trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* out = translate_errors([&]() -> PyObject* {
    const std::string_view text = text_view(name);
    if (text == "variable" &&
        unwrap_node(o)->descriptor().name == accumulate_grad_descriptor().name) {
      return wrap(leaf_of_accumulator(*unwrap_node(o)));
    }
    return text.starts_with("_saved_") || text.starts_with("_raw_saved_") ? saved_attribute(o, text)
                                                                          : nullptr;
  });
  if (out == nullptr && !PyErr_Occurred()) {
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return out;
}

// ---- attributes ----

PyObject* next_functions(PyObject* o, void*) {
  return translate_errors([&] {
    const Ref<Node> node = unwrap_node(o);
    const ArrayRef<Edge> edges = node->edges();
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); i++) {
      const Object next = Object::check(wrap_node(edges[i].node));
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       check(Py_BuildValue("(OI)", next.get(), edges[i].input_nr)));
    }
    return out.release();
  });
}

void drop_object(void* o) { drop_reference(static_cast<PyObject*>(o)); }

PyObject* metadata(PyObject* o, void*) {
  return translate_errors([&] {
    Node::Extra& extra = unwrap_node(o)->extra_or_make();
    if (extra.metadata == nullptr) {
      extra.metadata = check(PyDict_New());
      note_tie();
      extra.drop_metadata = drop_object;
    }
    return Py_NewRef(static_cast<PyObject*>(extra.metadata));
  });
}

PyObject* requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }

PyTypeObject* metadata_type() {
  static PyStructSequence_Field fields[] = {{"shape", nullptr},
                                            {"dtype", nullptr},
                                            {"device", nullptr},
                                            {"is_nested_tensor", nullptr},
                                            {"is_cpp_nested_tensor", nullptr},
                                            {}};
  static PyStructSequence_Desc description = {"rushlight._C._InputMetadata", nullptr, fields, 5};
  static PyTypeObject* type = PyStructSequence_NewType(&description);
  return type;
}

PyObject* input_metadata(PyObject* o, void*) {
  return translate_errors([&] {
    const Ref<Node> node = unwrap_node(o);
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(node->num_outputs())));
    for (size_t i = 0; i < node->num_outputs(); i++) {
      const OutputInfo& info = node->output_info(i);
      const Object shape = Object::check(wrap_size(info.sizes()));
      // What is no tensor has neither.
      const bool is_tensor = info.dtype() != ScalarType::Undefined;
      const Object dtype = is_tensor ? Object::check(wrap(info.dtype())) : Object::borrow(Py_None);
      const Object device =
          is_tensor ? Object::check(wrap(info.device())) : Object::borrow(Py_None);
      PyObject* item = check(PyStructSequence_New(metadata_type()));
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
      PyStructSequence_SetItem(item, 0, Py_NewRef(shape.get()));
      PyStructSequence_SetItem(item, 1, Py_NewRef(dtype.get()));
      PyStructSequence_SetItem(item, 2, Py_NewRef(device.get()));
      PyStructSequence_SetItem(item, 3, Py_NewRef(Py_False));
      PyStructSequence_SetItem(item, 4, Py_NewRef(Py_False));
    }
    return out.release();
  });
}

PyObject* name(PyObject* o, PyObject*) {
  return translate_errors([&] { return text(unwrap_node(o)->name()).release(); });
}
PyObject* sequence_nr(PyObject* o, PyObject*) {
  return translate_errors(
      [&] { return check(PyLong_FromUnsignedLongLong(unwrap_node(o)->sequence())); });
}
PyObject* set_sequence_nr(PyObject* o, PyObject* number) {
  return translate_errors([&]() -> PyObject* {
    const unsigned long long n = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    unwrap_node(o)->set_sequence(n);
    Py_RETURN_NONE;
  });
}

PyObject* repr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>", type_name(o), static_cast<void*>(o));
}

// ---- hooks before and after a node ----

class PythonNodeHook : public NodeHook, public HoldsPython {
 public:
  PythonNodeHook(Object hooks, bool before) : hooks_(std::move(hooks)), before_(before) {
    note_tie();
  }
  ~PythonNodeHook() override { drop_reference(hooks_.release()); }
  PyObject* dict() const { return hooks_.get(); }
  std::pair<PyObject*, PyObject*> python_objects() const override { return {dict(), nullptr}; }

  void operator()(std::vector<Tensor>& changed, const std::vector<Tensor>& other) override {
    in_python([&] {
      const Object hooks = Object::check(PyObject_CallMethod(hooks_.get(), "values", nullptr));
      const Object list = Object::check(PySequence_List(hooks.get()));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
        PyObject* hook = PyList_GET_ITEM(list.get(), i);
        const Object first = Object::check(wrap_tuple(changed.data(), changed.size()));
        const Object second = Object::check(wrap_tuple(other.data(), other.size()));
        const Object result = Object::check(
            before_ ? PyObject_CallOneArg(hook, first.get())
                    : PyObject_CallFunctionObjArgs(hook, first.get(), second.get(), nullptr));
        if (result.get() != Py_None) {
          const Object list_of_it = PyTuple_Check(result.get()) || PyList_Check(result.get())
                                        ? Object::check(PySequence_Tuple(result.get()))
                                        : Object::check(PyTuple_Pack(1, result.get()));
          for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(list_of_it.get()); k++) {
            PyObject* item = PyTuple_GET_ITEM(list_of_it.get(), k);
            RL_CHECK_TYPE(item == Py_None || is_tensor(item),
                          "expected Variable, but hook returned '", type_name(item), "'");
          }
          std::vector<Tensor> replaced = unwrap_tuple(list_of_it.get(), "gradients");
          RL_CHECK(replaced.size() == changed.size(), "hook '", name_of(hook),
                   "' has returned an incorrect number of values (got ", replaced.size(),
                   ", but expected ", changed.size(), ")");
          for (size_t k = 0; k < changed.size(); k++) {
            if (replaced[k].defined() && changed[k].defined()) {
              check_hook_result(changed[k], replaced[k]);
            }
          }
          changed = std::move(replaced);
        }
      }
    });
  }

 private:
  static std::string name_of(PyObject* hook) {
    const Object name = Object::maybe(PyObject_GetAttrString(hook, "__name__"));
    if (!name || !PyUnicode_Check(name.get())) {
      PyErr_Clear();
      return "<unknown>";
    }
    return std::string(text_view(name.get()));
  }

  Object hooks_;  // OrderedDict
  bool before_;
};

PyObject* add_node_hook(PyObject* o, PyObject* hook, bool before) {
  return translate_errors([&]() -> PyObject* {
    const Ref<Node> node = unwrap_node(o);
    Node::Extra& extra = node->extra_or_make();
    auto& list = before ? extra.pre_hooks : extra.post_hooks;
    for (const auto& existing : list) {
      if (const auto* python_hook = dynamic_cast<PythonNodeHook*>(existing.get())) {
        return add_hook(python_hook->dict(), hook);
      }
    }
    auto made = std::make_shared<PythonNodeHook>(Object::check(ordered_dict()), before);
    Object handle = Object::check(add_hook(made->dict(), hook));
    list.push_back(std::move(made));
    return handle.release();
  });
}
PyObject* register_hook(PyObject* o, PyObject* hook) { return add_node_hook(o, hook, false); }
PyObject* register_prehook(PyObject* o, PyObject* hook) { return add_node_hook(o, hook, true); }

PyGetSetDef getset[] = {
    {"next_functions", next_functions, nullptr,
     "Pairs of the nodes that gradients go to and the input number there.", nullptr},
    {"metadata", metadata, nullptr, "A dict for whatever the user keeps with the node.", nullptr},
    {"requires_grad", requires_grad, nullptr, "True.", nullptr},
    {"_input_metadata", input_metadata, nullptr,
     "Shape, dtype and device of each result of the op.", nullptr},
    {},
};

// node(*grads): the gradients of the inputs for those of the outputs.
PyObject* call(PyObject* o, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    const Ref<Node> held = unwrap_node(o);
    Node& node = *held;
    const auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
    if ((kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) || given != node.num_outputs()) {
      raise(PyExc_TypeError,
            str("expected ", node.num_outputs(), " arguments, got ", given, " instead"));
    }
    std::vector<Tensor> grads = unwrap_tuple(args, "gradients");
    node.check_not_released();
    std::vector<Tensor> results(node.edges().size());
    {
      const WithoutGil released;
      fit_gradients(node, grads.data());
      run_backward_of(node, grads.data(), results.data());
    }
    return results.size() == 1 ? wrap(results[0]) : wrap_tuple(results.data(), results.size());
  });
}

PyMethodDef methods[] = {
    {"name", name, METH_NOARGS, "The node's name."},
    {"register_hook", register_hook, METH_O,
     "Call hook(grad_inputs, grad_outputs) after the node ran; what it returns replaces "
     "grad_inputs. Returns a handle."},
    {"register_prehook", register_prehook, METH_O,
     "Call hook(grad_outputs) before the node runs; what it returns replaces grad_outputs. Returns "
     "a handle."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, nullptr},
    {"_set_sequence_nr", set_sequence_nr, METH_O, nullptr},
    {},
};

// ---- a saved tensor's own hooks ----

int traverse_raw(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<RawSavedObject*>(o)->owner);
  return 0;
}
void dealloc_raw(PyObject* o) {
  PyObject_GC_UnTrack(o);
  Py_XDECREF(reinterpret_cast<RawSavedObject*>(o)->owner);
  Py_TYPE(o)->tp_free(o);
}

PyObject* register_hooks(PyObject* o, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* pack;
    PyObject* unpack;
    if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) {
      throw PythonError();
    }
    const auto* raw = reinterpret_cast<RawSavedObject*>(o);
    PythonSavedHooks hooks(Object::borrow(pack), Object::borrow(unpack));
    const Ref<Node> node = unwrap_node(raw->owner);
    SavedTensor packed = node->saved_tensor(raw->index);
    packed.pack(hooks);  // which may run this node's backward, or hook this tensor itself
    SavedTensor& place = node->saved_tensor(raw->index);
    SavedSearch now;
    place.pack(now);
    if (now.tensor == nullptr) {
      refuse_second_hooks();
    }
    place = std::move(packed);
    Py_RETURN_NONE;
  });
}

PyMethodDef raw_methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS,
     "Pack the saved tensor with one function, unpack it with the other."},
    {},
};

PyTypeObject raw_saved_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._SavedTensor",
    .tp_basicsize = sizeof(RawSavedObject),
    .tp_dealloc = dealloc_raw,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = traverse_raw,
    .tp_methods = raw_methods,
};

}  // namespace

PyTypeObject node_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._Node",
    .tp_basicsize = sizeof(NodeObject),
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_call = call,
    .tp_getattro = getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc =
        "An operation that backward goes through.\n"
        "\n"
        "Example:\n"
        "    >>> x = torch.ones(2, requires_grad=True)\n"
        "    >>> node = (x * 3).grad_fn\n"
        "    >>> node.name(), isinstance(node, torch.autograd.graph.Node)\n"
        "    ('MulBackward0', True)",
    .tp_traverse = traverse,
    .tp_methods = methods,
    .tp_getset = getset,
};

PyObject* wrap_node(const Ref<Node>& node) {
  if (!node) {
    Py_RETURN_NONE;
  }
  if (PyObject* context = context_of(*node)) {
    return Py_NewRef(context);
  }
  Node::Extra& extra = node->extra_or_make();
  if (extra.python != nullptr) {
    return Py_NewRef(static_cast<PyObject*>(extra.python));
  }
  PyTypeObject* type = class_named(node->descriptor().name);
  auto* object = reinterpret_cast<NodeObject*>(check(type->tp_alloc(type, 0)));
  object->node = Ref<Node>(node).leak();
  object->owns = true;
  extra.python = object;
  return reinterpret_cast<PyObject*>(object);
}

Ref<Node> unwrap_node(PyObject* o) {
  RL_CHECK_TYPE(is_node(o), "expected a node of the graph, but got ", type_name(o));
  Ref<Node> node = as_node(o)->alive();
  RL_CHECK(node, "this autograd function was not recorded, or its graph is gone");
  return node;
}

void init_nodes(PyObject* module) {
  ready(node_type);
  ready(raw_saved_type);
  add(module, "_Node", reinterpret_cast<PyObject*>(&node_type));
}

}  // namespace rushlight::python
