// Node as a Python type.
#include "python/graph.h"

#include <algorithm>

#include "python/types.h"

namespace rushlight::python {

namespace {

using graph::Node;
using GraphValue = graph::Value;

extern PyTypeObject node_type;

Node& node_of(PyObject* self) { return object_of_handle<Node>(self); }
size_t place_in(PyObject* o, size_t size, const char* what) {
  const Py_ssize_t place = PyNumber_AsSsize_t(o, PyExc_IndexError);
  if (place == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  RL_CHECK_INDEX(place >= 0 && static_cast<size_t>(place) < size, "the node has ", size, " ", what,
                 ", and none at place ", place);
  return static_cast<size_t>(place);
}
PyObject* single_value(PyObject* self, const std::vector<GraphValue*>& values, const char* what) {
  RL_CHECK(values.size() == 1, node_of(self).kind_name(), " has ", values.size(), " ", what,
           ", not one");
  return wrap(graph_of<Node>(self), values[0]);
}

// ---- what a node is asked ----

PyObject* kind(PyObject* self) { return text_result(node_of(self).kind_name()); }
PyObject* schema(PyObject* self) {
  const std::string text = node_of(self).schema();
  return text_result(text.empty() ? "(no schema)" : text);
}
PyObject* scope_name(PyObject* self) { return text_result(node_of(self).scope); }
PyObject* source_range(PyObject* self) { return text_result(node_of(self).range.place()); }
PyObject* inputs(PyObject* self) {
  return list_of_handles(graph_of<Node>(self), node_of(self).inputs());
}
PyObject* outputs(PyObject* self) {
  return list_of_handles(graph_of<Node>(self), node_of(self).outputs());
}
PyObject* blocks(PyObject* self) {
  return list_of_handles(graph_of<Node>(self), node_of(self).blocks());
}
PyObject* input(PyObject* self) { return single_value(self, node_of(self).inputs(), "inputs"); }
PyObject* output(PyObject* self) { return single_value(self, node_of(self).outputs(), "outputs"); }
PyObject* inputs_size(PyObject* self) { return PyLong_FromSize_t(node_of(self).inputs().size()); }
PyObject* outputs_size(PyObject* self) { return PyLong_FromSize_t(node_of(self).outputs().size()); }
PyObject* inputs_at(PyObject* self, PyObject* place) {
  const auto& all = node_of(self).inputs();
  return wrap(graph_of<Node>(self), all[place_in(place, all.size(), "inputs")]);
}
PyObject* outputs_at(PyObject* self, PyObject* place) {
  const auto& all = node_of(self).outputs();
  return wrap(graph_of<Node>(self), all[place_in(place, all.size(), "outputs")]);
}
// The names that the schema gives to inputs.
PyObject* named_input(PyObject* self, PyObject* name) {
  const Node& node = node_of(self);
  const graph::Schema* const of = node.op != nullptr        ? &graph::schema_of(*node.op)
                                  : node.builtin != nullptr ? &node.builtin->schema
                                                            : nullptr;
  RL_CHECK(of != nullptr, node.kind_name(), " has no schema that names its inputs");
  for (size_t i = 0; i < of->arguments.size(); i++) {
    if (of->arguments[i].name == text_view(name)) {
      return wrap(graph_of<Node>(self), node.input(i));
    }
  }
  throw Error(str(of->str(), " has no argument '", text_view(name), "'"));
}
PyObject* owning_graph(PyObject* self) { return wrap_graph(graph_of<Node>(self)); }
PyObject* owning_block(PyObject* self) { return wrap(graph_of<Node>(self), node_of(self).block()); }
PyObject* has_uses(PyObject* self) {
  for (const GraphValue* const value : node_of(self).outputs()) {
    if (value->is_used()) {
      Py_RETURN_TRUE;
    }
  }
  Py_RETURN_FALSE;
}
PyObject* must_be_none(PyObject* self) {
  const Node& node = node_of(self);
  const IValue* const constant =
      node.kind == graph::Kind::Constant ? node.output()->constant() : nullptr;
  return PyBool_FromLong(constant != nullptr && constant->isNone());
}
PyObject* node_repr(PyObject* self) {
  return translate_errors([&] {
    std::string text = node_of(self).str();
    return text_result(text);
  });
}

// ---- attributes ----

// None is no attribute where a node has one of that value: a constant None.
const IValue* attribute_of(const Node& node, std::string_view name) {
  const IValue* const found = node.find_attribute(name);
  return found == nullptr || found->isNone() ? nullptr : found;
}
PyObject* attribute_names(PyObject* self) {
  Object out = Object::check(PyList_New(0));
  for (const graph::Attribute& one : node_of(self).attributes) {
    if (!one.value.isNone()) {
      const Object name = text_object(one.name);
      check(PyList_Append(out.get(), name.get()));
    }
  }
  return out.release();
}
PyObject* has_attributes(PyObject* self) {
  const Object names = Object::check(attribute_names(self));
  return PyBool_FromLong(PyList_GET_SIZE(names.get()) != 0);
}
PyObject* has_attribute(PyObject* self, PyObject* name) {
  return PyBool_FromLong(attribute_of(node_of(self), text_view(name)) != nullptr);
}
PyObject* get_attribute(PyObject* self, PyObject* name) {
  const IValue* const found = attribute_of(node_of(self), text_view(name));
  RL_CHECK(found != nullptr, node_of(self).kind_name(), ": required keyword attribute '",
           text_view(name), "' is undefined");
  return from_value(*found);
}
PyObject* kind_of_attribute(PyObject* self, PyObject* name) {
  const IValue* const found = attribute_of(node_of(self), text_view(name));
  RL_CHECK(found != nullptr, "required keyword attribute '", text_view(name), "' is undefined");
  const bool is_list = found->isList();
  const IValue one =
      is_list ? (found->toListRef().empty() ? IValue(0) : found->toListRef()[0]) : *found;
  std::string out = one.isTensor()   ? "t"
                    : one.isString() ? "s"
                    : one.isDouble() ? "f"
                    : one.isScalar() ? "i"
                                     : "ival";
  return text_result(out == "ival" || !is_list ? out : out + "s");
}
PyObject* set_attribute(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char* name = nullptr;
    PyObject* value = nullptr;
    if (!PyArg_ParseTuple(args, "sO", &name, &value)) {
      throw PythonError();
    }
    node_of(self).set_attribute(name, constant_from(value));
    return Py_NewRef(self);
  });
}
PyObject* remove_attribute(PyObject* self, PyObject* name) {
  auto& all = node_of(self).attributes;
  const auto found = std::find_if(all.begin(), all.end(), [&](const graph::Attribute& one) {
    return one.name == text_view(name);
  });
  RL_CHECK(found != all.end(), "required keyword attribute '", text_view(name), "' is undefined");
  all.erase(found);
  return Py_NewRef(self);
}
PyObject* set_scope(PyObject* self, PyObject* name) {
  node_of(self).scope = std::string(text_view(name));
  Py_RETURN_NONE;
}

// _set_place(file, number of the line, the line itself)
PyObject* set_place(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char* file = nullptr;
    Py_ssize_t line = 0;
    const char* text = nullptr;
    if (!PyArg_ParseTuple(args, "sns:_set_place", &file, &line, &text)) {
      throw PythonError();
    }
    const std::string_view whole = text;
    const size_t begin = std::min(whole.find_first_not_of(' '), whole.size());
    node_of(self).range = {std::make_shared<const graph::Source>(
                               graph::Source{std::string(whole), file, static_cast<size_t>(line)}),
                           begin, whole.size()};
    Py_RETURN_NONE;
  });
}

// ---- changes ----

PyObject* add_input(PyObject* self, PyObject* value) {
  return wrap(graph_of<Node>(self), node_of(self).add_input(unwrap_graph_value(value)));
}
PyObject* add_output(PyObject* self) {
  return wrap(graph_of<Node>(self), node_of(self).add_output({Type::Kind::Tensor}));
}
PyObject* add_block(PyObject* self) {
  return wrap(graph_of<Node>(self), node_of(self).add_block());
}
PyObject* replace_input(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* place = nullptr;
    PyObject* value = nullptr;
    if (!PyArg_ParseTuple(args, "OO:replaceInput", &place, &value)) {
      throw PythonError();
    }
    node_of(self).set_input(place_in(place, node_of(self).inputs().size(), "inputs"),
                            unwrap_graph_value(value));
    Py_RETURN_NONE;
  });
}
PyObject* replace_input_with(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject* from = nullptr;
    PyObject* to = nullptr;
    if (!PyArg_ParseTuple(args, "OO:replaceInputWith", &from, &to)) {
      throw PythonError();
    }
    Node& node = node_of(self);
    const GraphValue* const old = unwrap_graph_value(from);
    for (size_t i = 0; i < node.inputs().size(); i++) {
      if (node.input(i) == old) {
        node.set_input(i, unwrap_graph_value(to));
      }
    }
    Py_RETURN_NONE;
  });
}
PyObject* remove_input(PyObject* self, PyObject* place) {
  node_of(self).remove_input(place_in(place, node_of(self).inputs().size(), "inputs"));
  Py_RETURN_NONE;
}
PyObject* remove_all_inputs(PyObject* self) {
  node_of(self).remove_all_inputs();
  Py_RETURN_NONE;
}
PyObject* erase_output(PyObject* self, PyObject* place) {
  node_of(self).remove_output(place_in(place, node_of(self).outputs().size(), "outputs"));
  Py_RETURN_NONE;
}
bool is_end(const Node& node) {
  return node.kind == graph::Kind::Param || node.kind == graph::Kind::Return;
}
PyObject* destroy(PyObject* self) {
  RL_CHECK(!is_end(node_of(self)), node_of(self).kind_name(), " cannot be taken out of its block");
  node_of(self).erase();
  Py_RETURN_NONE;
}
// insertBefore and its like: places beside another node of the graph.
template <Node* (Node::*place)(Node*)>
PyObject* insert(PyObject* self, PyObject* other) {
  Node& node = node_of(self);
  Node* const beside = unwrap_graph_node(other);
  RL_CHECK(&beside->graph() == &node.graph() && beside->block() != nullptr && !is_end(node),
           "the node can only be put beside one that is in a block of its own graph");
  (node.*place)(beside);
  return Py_NewRef(self);
}
template <void (Node::*place)(Node*)>
PyObject* move(PyObject* self, PyObject* other) {
  Node& node = node_of(self);
  Node* const beside = unwrap_graph_node(other);
  RL_CHECK(&beside->graph() == &node.graph() && beside->block() != nullptr &&
               node.block() != nullptr && !is_end(node) && !is_end(*beside),
           "a node can only be moved beside one that is in a block of its own graph");
  (node.*place)(beside);
  Py_RETURN_NONE;
}
PyObject* is_before(PyObject* self, PyObject* other) {
  return PyBool_FromLong(node_of(self).is_before(unwrap_graph_node(other)));
}

PyMethodDef node_methods[] = {
    {"kind", call_without_argument<kind>, METH_NOARGS,
     "The name of what it does, such as aten::add."},
    {"schema", call_without_argument<schema>, METH_NOARGS,
     "The schema of its op; (no schema) where it has none."},
    {"scopeName", call_without_argument<scope_name>, METH_NOARGS,
     "The scopes that it was recorded in."},
    {"setScope", call_with_argument<set_scope>, METH_O, nullptr},
    {"sourceRange", call_without_argument<source_range>, METH_NOARGS,
     "The line of the program that it is of."},
    {"_set_place", set_place, METH_VARARGS, "_set_place(file, number of the line, the line)"},
    {"inputs", call_without_argument<inputs>, METH_NOARGS, "The values that it takes."},
    {"outputs", call_without_argument<outputs>, METH_NOARGS, "The values that it makes."},
    {"blocks", call_without_argument<blocks>, METH_NOARGS, "The blocks within it."},
    {"input", call_without_argument<input>, METH_NOARGS, "The only value that it takes."},
    {"output", call_without_argument<output>, METH_NOARGS, "The only value that it makes."},
    {"inputsSize", call_without_argument<inputs_size>, METH_NOARGS, "How many values it takes."},
    {"outputsSize", call_without_argument<outputs_size>, METH_NOARGS, "How many values it makes."},
    {"inputsAt", call_with_argument<inputs_at>, METH_O, "One of the values that it takes."},
    {"outputsAt", call_with_argument<outputs_at>, METH_O, "One of the values that it makes."},
    {"namedInput", call_with_argument<named_input>, METH_O,
     "The value that is the argument of that name."},
    {"owningGraph", call_without_argument<owning_graph>, METH_NOARGS, "The graph that it is in."},
    {"owningBlock", call_without_argument<owning_block>, METH_NOARGS,
     "The block that it is in, or None."},
    {"hasUses", call_without_argument<has_uses>, METH_NOARGS,
     "Whether anybody takes what it makes."},
    {"mustBeNone", call_without_argument<must_be_none>, METH_NOARGS,
     "Whether it is the constant None."},
    {"attributeNames", call_without_argument<attribute_names>, METH_NOARGS,
     "The names of its attributes."},
    {"hasAttributes", call_without_argument<has_attributes>, METH_NOARGS, "Whether it has any."},
    {"hasAttribute", call_with_argument<has_attribute>, METH_O, "Whether it has one of that name."},
    {"kindOf", call_with_argument<kind_of_attribute>, METH_O,
     "i, f, s or t of an attribute; is … of lists."},
    {"removeAttribute", call_with_argument<remove_attribute>, METH_O, "Takes an attribute out."},
    {"addInput", call_with_argument<add_input>, METH_O, "Takes one more value."},
    {"addOutput", call_without_argument<add_output>, METH_NOARGS,
     "Makes one more value, a tensor at first."},
    {"addBlock", call_without_argument<add_block>, METH_NOARGS, "One more block, which is empty."},
    {"replaceInput", replace_input, METH_VARARGS, "replaceInput(place, value)"},
    {"replaceInputWith", replace_input_with, METH_VARARGS, "replaceInputWith(old, new)"},
    {"removeInput", call_with_argument<remove_input>, METH_O,
     "Takes no longer what is at that place."},
    {"removeAllInputs", call_without_argument<remove_all_inputs>, METH_NOARGS,
     "Takes nothing any longer."},
    {"eraseOutput", call_with_argument<erase_output>, METH_O, "Makes no longer what nobody uses."},
    {"destroy", call_without_argument<destroy>, METH_NOARGS,
     "Takes it out of the graph; nobody may use it."},
    {"insertBefore", call_with_argument<insert<&Node::insert_before>>, METH_O,
     "Puts it before another."},
    {"insertAfter", call_with_argument<insert<&Node::insert_after>>, METH_O,
     "Puts it behind another."},
    {"moveBefore", call_with_argument<move<&Node::move_before>>, METH_O,
     "Moves it before another."},
    {"moveAfter", call_with_argument<move<&Node::move_after>>, METH_O, "Moves it behind another."},
    {"isBefore", call_with_argument<is_before>, METH_O, "Whether it runs before another."},
    {"i", call_with_argument<get_attribute>, METH_O, "An attribute that is an int."},
    {"f", call_with_argument<get_attribute>, METH_O, "An attribute that is a float."},
    {"s", call_with_argument<get_attribute>, METH_O, "An attribute that is a str."},
    {"t", call_with_argument<get_attribute>, METH_O, "An attribute that is a tensor."},
    {"is", call_with_argument<get_attribute>, METH_O, "An attribute that is a list of ints."},
    {"fs", call_with_argument<get_attribute>, METH_O, "An attribute that is a list of floats."},
    {"ss", call_with_argument<get_attribute>, METH_O, "An attribute that is a list of strs."},
    {"ts", call_with_argument<get_attribute>, METH_O, "An attribute that is a list of tensors."},
    {"ival", call_with_argument<get_attribute>, METH_O, "An attribute of any kind."},
    {"i_", set_attribute, METH_VARARGS, "i_(name, value): sets an attribute; the node."},
    {"f_", set_attribute, METH_VARARGS, "f_(name, value): sets an attribute; the node."},
    {"s_", set_attribute, METH_VARARGS, "s_(name, value): sets an attribute; the node."},
    {"t_", set_attribute, METH_VARARGS, "t_(name, value): sets an attribute; the node."},
    {"is_", set_attribute, METH_VARARGS, "is_(name, value): sets an attribute; the node."},
    {"fs_", set_attribute, METH_VARARGS, "fs_(name, value): sets an attribute; the node."},
    {"ss_", set_attribute, METH_VARARGS, "ss_(name, value): sets an attribute; the node."},
    {"ts_", set_attribute, METH_VARARGS, "ts_(name, value): sets an attribute; the node."},
    {"ival_", set_attribute, METH_VARARGS, "ival_(name, value): sets an attribute; the node."},
    {},
};

PyTypeObject node_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Node",
    .tp_basicsize = sizeof(GraphHandle<Node>),
    .tp_dealloc = delete_handle_of<Node>,
    .tp_repr = node_repr,
    .tp_hash = hash_handle<Node>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "What a graph does at one place: a call, a constant, a branch, a loop.\n"
        "\n"
        "For an example see `Graph`.",
    .tp_richcompare = compare_handles<Node>,
    .tp_methods = node_methods,
};
}  // namespace

PyObject* wrap(const GraphRef& graph, graph::Node* node) {
  return make_handle(node_type, graph, node);
}
graph::Node* unwrap_graph_node(PyObject* o) {
  if (Py_TYPE(o) != &node_type) {
    raise(PyExc_TypeError, str("expected a Node, got ", type_name(o)));
  }
  return &node_of(o);
}

void init_graph_nodes(PyObject* module) { add_type(module, node_type); }

}  // namespace rushlight::python
