// Value as a Python type, and what Python's values are in graphs.
#include "python/graph.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

using GraphValue = graph::Value;
extern PyTypeObject value_type;

GraphValue& value_of_handle(PyObject* self) { return object_of_handle<GraphValue>(self); }

PyObject* debug_name(PyObject* self) { return text_result(value_of_handle(self).name()); }
PyObject* set_debug_name(PyObject* self, PyObject* name) {
  value_of_handle(self).set_name(text_view(name));
  return Py_NewRef(self);
}
PyObject* unique(PyObject* self) { return PyLong_FromSize_t(value_of_handle(self).number()); }
PyObject* offset(PyObject* self) { return PyLong_FromSize_t(value_of_handle(self).place()); }
PyObject* value_node(PyObject* self) {
  return wrap(graph_of<GraphValue>(self), value_of_handle(self).node());
}
PyObject* value_type_of(PyObject* self) {
  return wrap_type(value_of_handle(self).type, graph_of<GraphValue>(self),
                   value_of_handle(self).facts);
}
PyObject* set_type(PyObject* self, PyObject* type) {
  value_of_handle(self).type = unwrap_type(type);
  value_of_handle(self).facts = nullptr;
  return Py_NewRef(self);
}
PyTypeObject* use_type;
PyStructSequence_Field use_fields[] = {{"user", "The node."}, {"offset", "Which input."}, {}};
PyStructSequence_Desc use_desc = {"rushlight._C.Use",
                                  "Where a value is taken.\n"
                                  "\n"
                                  "Args:\n"
                                  "    iterable: the node, and which of its inputs it is.\n"
                                  "\n"
                                  "For an example see `Graph`.",
                                  use_fields, 2};
PyObject* uses(PyObject* self) {
  Object out = Object::check(PyList_New(0));
  for (const graph::Use& use : value_of_handle(self).uses()) {
    const Object item = Object::check(PyStructSequence_New(use_type));
    PyStructSequence_SetItem(item.get(), 0, check(wrap(graph_of<GraphValue>(self), use.node)));
    PyStructSequence_SetItem(item.get(), 1, check(PyLong_FromSize_t(use.place)));
    check(PyList_Append(out.get(), item.get()));
  }
  return out.release();
}
PyObject* replace_all_uses(PyObject* self, PyObject* by) {
  value_of_handle(self).replace_all_uses(unwrap_graph_value(by));
  Py_RETURN_NONE;
}
PyObject* replace_uses_after(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* node = nullptr;
    PyObject* by = nullptr;
    if (!PyArg_ParseTuple(args, "OO:replaceAllUsesAfterNodeWith", &node, &by)) {
      throw PythonError();
    }
    value_of_handle(self).replace_uses_after(unwrap_graph_node(node), unwrap_graph_value(by));
    Py_RETURN_NONE;
  });
}
PyObject* requires_grad(PyObject* self) {
  const auto& facts = value_of_handle(self).facts;
  return PyBool_FromLong(facts != nullptr && facts->requires_grad.value_or(false));
}
PyObject* is_complete_tensor(PyObject* self) {
  const auto& facts = value_of_handle(self).facts;
  return PyBool_FromLong(facts != nullptr && facts->dtype && facts->sizes && facts->strides &&
                         facts->device);
}
PyObject* to_value(PyObject* self) {
  const IValue* const constant = value_of_handle(self).constant();
  return constant == nullptr ? Py_NewRef(Py_None) : from_value(*constant);
}
PyObject* infer_type_from(PyObject* self, PyObject* tensor) {
  if (!is_tensor(tensor)) {
    raise(PyExc_TypeError, str("inferTypeFrom(): expected a tensor, got ", type_name(tensor)));
  }
  const Tensor& t = unwrap(tensor);
  auto facts = std::make_shared<graph::TensorFacts>();
  facts->dtype = t.dtype();
  facts->sizes = DimVector(t.sizes());
  if (t.layout() == kStrided) {
    facts->strides = DimVector(t.strides());
  }
  facts->requires_grad = t.requires_grad();
  facts->device = t.device();
  value_of_handle(self).type = {Type::Kind::Tensor};
  value_of_handle(self).facts = std::move(facts);
  Py_RETURN_NONE;
}
PyObject* value_repr(PyObject* self) {
  return translate_errors([&] {
    const GraphValue& value = value_of_handle(self);
    return text_result(value.name() + " defined in (" + value.node()->str() + ")");
  });
}

PyMethodDef value_methods[] = {
    {"debugName", call_without_argument<debug_name>, METH_NOARGS, "Its name in what is printed."},
    {"setDebugName", call_with_argument<set_debug_name>, METH_O,
     "Names it; a taken name gets a number."},
    {"unique", call_without_argument<unique>, METH_NOARGS, "Its number in the graph."},
    {"offset", call_without_argument<offset>, METH_NOARGS, "Which output of its node it is."},
    {"node", call_without_argument<value_node>, METH_NOARGS, "The node that makes it."},
    {"type", call_without_argument<value_type_of>, METH_NOARGS, "Its type."},
    {"setType", call_with_argument<set_type>, METH_O, "Sets its type."},
    {"inferTypeFrom", call_with_argument<infer_type_from>, METH_O, "It is a tensor like this one."},
    {"uses", call_without_argument<uses>, METH_NOARGS,
     "The nodes that take it, and as which of their inputs."},
    {"replaceAllUsesWith", call_with_argument<replace_all_uses>, METH_O,
     "Who takes it takes another."},
    {"replaceAllUsesAfterNodeWith", replace_uses_after, METH_VARARGS,
     "replaceAllUsesAfterNodeWith(node, value): who takes it behind a node takes another."},
    {"requires_grad", call_without_argument<requires_grad>, METH_NOARGS,
     "Whether it wanted a gradient."},
    {"isCompleteTensor", call_without_argument<is_complete_tensor>, METH_NOARGS,
     "Whether its dtype, sizes, strides and device are known."},
    {"toIValue", call_without_argument<to_value>, METH_NOARGS,
     "What a constant is; None for all others."},
    {},
};

PyTypeObject value_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Value",
    .tp_basicsize = sizeof(GraphHandle<GraphValue>),
    .tp_dealloc = delete_handle_of<GraphValue>,
    .tp_repr = value_repr,
    .tp_hash = hash_handle<GraphValue>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "What a node makes and others take.\n"
        "\n"
        "For an example see `Graph`.",
    .tp_richcompare = compare_handles<GraphValue>,
    .tp_methods = value_methods,
};

}  // namespace

PyObject* wrap(const GraphRef& graph, graph::Value* value) {
  return make_handle(value_type, graph, value);
}
bool is_graph_value(PyObject* o) { return Py_TYPE(o) == &value_type; }
graph::Value* unwrap_graph_value(PyObject* o) {
  if (!is_graph_value(o)) {
    raise(PyExc_TypeError, str("expected a Value, got ", type_name(o)));
  }
  return &value_of_handle(o);
}
std::vector<graph::Value*> values_from(PyObject* sequence) {
  const Object items =
      Object::check(PySequence_Fast(sequence, "expected a list of values of a graph"));
  std::vector<graph::Value*> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    out.push_back(unwrap_graph_value(PySequence_Fast_GET_ITEM(items.get(), i)));
  }
  return out;
}

IValue constant_from(PyObject* o) {
  if (!PyType_Check(o)) {
    if (const std::optional<ScalarType> dtype = as_dtype(o)) {
      return IValue(graph::number_of(*dtype));
    }
  }
  if (const std::optional<Layout> layout = as_layout(o)) {
    return IValue(graph::number_of(*layout));
  }
  if (const std::optional<MemoryFormat> format = as_memory_format(o)) {
    return IValue(static_cast<int64_t>(*format));
  }
  return to_value(o, {Type::Kind::Any}, "a value of a graph");
}

void init_graph_values(PyObject* module) {
  add_type(module, value_type);
  use_type = PyStructSequence_NewType(&use_desc);
  add(module, "Use", check(reinterpret_cast<PyObject*>(use_type)));
}

}  // namespace rushlight::python
