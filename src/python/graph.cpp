// Graph and Block as Python types, and the passes.
#include "python/graph.h"

#include <algorithm>

#include <rushlight/executor.h>
#include <rushlight/graph_passes.h>

#include "python/bindings.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

extern PyTypeObject graph_type;
extern PyTypeObject block_type;

using graph::Block;
using graph::Graph;

Graph& self_graph(PyObject* self) { return object_of_handle<Graph>(self); }

// ---- what both are asked ----

// A function of the block of a Graph or a Block.
template <class T>
Block& block_of(PyObject* self) {
  if constexpr (std::is_same_v<T, Graph>) {
    return object_of_handle<Graph>(self).block();
  } else {
    return object_of_handle<Block>(self);
  }
}
template <class T>
PyObject* nodes(PyObject* self, PyObject*) {
  return translate_errors([&] {
    std::vector<graph::Node*> list;
    for (graph::Node* const node : block_of<T>(self)) {
      list.push_back(node);
    }
    return list_of_handles(graph_of<T>(self), list);
  });
}
template <class T>
PyObject* inputs(PyObject* self, PyObject*) {
  return translate_errors(
      [&] { return list_of_handles(graph_of<T>(self), block_of<T>(self).params()); });
}
template <class T>
PyObject* outputs(PyObject* self, PyObject*) {
  return translate_errors(
      [&] { return list_of_handles(graph_of<T>(self), block_of<T>(self).returns()); });
}
template <class T>
PyObject* param_node(PyObject* self, PyObject*) {
  return translate_errors([&] { return wrap(graph_of<T>(self), block_of<T>(self).param_node()); });
}
template <class T>
PyObject* return_node(PyObject* self, PyObject*) {
  return translate_errors([&] { return wrap(graph_of<T>(self), block_of<T>(self).return_node()); });
}
template <class T>
PyObject* register_output(PyObject* self, PyObject* value) {
  return translate_errors(
      [&] { return PyLong_FromSize_t(block_of<T>(self).add_return(unwrap_graph_value(value))); });
}
template <class T>
PyObject* find_node(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors(
      [&] { return find_nodes(graph_of<T>(self), block_of<T>(self), args, kwargs, false); });
}
template <class T>
PyObject* find_all_nodes(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors(
      [&] { return find_nodes(graph_of<T>(self), block_of<T>(self), args, kwargs, true); });
}

// ---- graphs ----

PyObject* new_graph(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    if (PyTuple_GET_SIZE(args) != 0 || (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0)) {
      raise(PyExc_TypeError, "Graph() takes no arguments");
    }
    const auto made = std::make_shared<Graph>();
    return make_handle(*type, made, made.get());
  });
}

PyObject* graph_str(PyObject* self) {
  return translate_errors([&] { return text_object(self_graph(self).str()).release(); });
}
PyObject* graph_text(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    static const char* const names[] = {"print_source_ranges", nullptr};
    int with_ranges = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:str", const_cast<char**>(names),
                                     &with_ranges)) {
      throw PythonError();
    }
    return text_object(self_graph(self).str(with_ranges != 0)).release();
  });
}

PyObject* add_input(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    static const char* const names[] = {"name", nullptr};
    const char* name = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s:addInput", const_cast<char**>(names),
                                     &name)) {
      throw PythonError();
    }
    return wrap(graph_of<Graph>(self), self_graph(self).add_input({Type::Kind::Tensor}, name));
  });
}
size_t place_from(PyObject* o) {
  const Py_ssize_t place = PyNumber_AsSsize_t(o, PyExc_IndexError);
  if (place == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  RL_CHECK_INDEX(place >= 0, "expected a place of at least 0, got ", place);
  return static_cast<size_t>(place);
}
PyObject* erase_input(PyObject* self, PyObject* place) {
  return translate_errors([&]() -> PyObject* {
    const size_t at = place_from(place);
    RL_CHECK_INDEX(at < self_graph(self).inputs().size(), "the graph has no input ", at);
    self_graph(self).block().param_node()->remove_output(at);
    Py_RETURN_NONE;
  });
}
PyObject* erase_output(PyObject* self, PyObject* place) {
  return translate_errors([&]() -> PyObject* {
    const size_t at = place_from(place);
    RL_CHECK_INDEX(at < self_graph(self).outputs().size(), "the graph has no output ", at);
    self_graph(self).block().return_node()->remove_input(at);
    Py_RETURN_NONE;
  });
}

// create(kind, inputs=[], outputs=1) or create(kind, outputs)
PyObject* create(PyObject* self, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    static const char* const names[] = {"kind", "inputs", "outputs", nullptr};
    const char* kind = nullptr;
    PyObject* given = nullptr;
    Py_ssize_t count = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|On:create", const_cast<char**>(names), &kind,
                                     &given, &count)) {
      throw PythonError();
    }
    std::vector<graph::Value*> values;
    if (given != nullptr && PyLong_Check(given)) {
      count = static_cast<Py_ssize_t>(place_from(given));
    } else if (given != nullptr) {
      values = values_from(given);
    }
    RL_CHECK_VALUE(count >= 0, "create(): a node has at least 0 outputs, not ", count);
    return wrap(graph_of<Graph>(self),
                self_graph(self).create(kind, values, static_cast<size_t>(count)));
  });
}
// The very overload that is named, "aten::add.Tensor"; what is unknown has so many outputs.
PyObject* create_op(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    const char* name = nullptr;
    PyObject* given = nullptr;
    Py_ssize_t count = 0;
    if (!PyArg_ParseTuple(args, "sOn:_create_op", &name, &given, &count)) {
      throw PythonError();
    }
    const std::vector<graph::Value*> values = values_from(given);
    const OpInfo* const op = find_op_named(name);
    if (op != nullptr && op->arguments.size() == values.size()) {
      return wrap(graph_of<Graph>(self), self_graph(self).create(*op, values));
    }
    const std::string_view whole = name;
    const std::string_view kind = whole.substr(0, whole.find('.'));
    return wrap(
        graph_of<Graph>(self),
        self_graph(self).create(kind, values, static_cast<size_t>(std::max<Py_ssize_t>(count, 0))));
  });
}
// Where `where` says, and returned.
template <class F>
PyObject* put(PyObject* self, PyObject* node, F where) {
  return translate_errors([&]() -> PyObject* {
    graph::Node* const it = unwrap_graph_node(node);
    RL_CHECK(&it->graph() == &self_graph(self), "the node is of another graph");
    where(it);
    return Py_NewRef(node);
  });
}
PyObject* append_node(PyObject* self, PyObject* node) {
  return put(self, node,
             [&](graph::Node* it) { it->insert_before(self_graph(self).block().return_node()); });
}
PyObject* prepend_node(PyObject* self, PyObject* node) {
  return put(self, node,
             [&](graph::Node* it) { it->insert_before(self_graph(self).block().first()); });
}
PyObject* insert_node(PyObject* self, PyObject* node) {
  return put(self, node, [&](graph::Node* it) { self_graph(self).insert(it); });
}
// Before a node, or at the end of a block.
PyObject* set_insert_point(PyObject* self, PyObject* where) {
  return translate_errors([&]() -> PyObject* {
    Graph& it = self_graph(self);
    graph::Node* before = nullptr;
    if (Py_TYPE(where) == &block_type) {
      before = object_of_handle<Block>(where).return_node();
    } else {
      before = unwrap_graph_node(where);
    }
    RL_CHECK(&before->graph() == &it && before->block() != nullptr,
             "setInsertPoint(): expected a node or block of this graph");
    it.set_insert_point(before);
    Py_RETURN_NONE;
  });
}
PyObject* insert_constant(PyObject* self, PyObject* value) {
  return translate_errors(
      [&] { return wrap(graph_of<Graph>(self), self_graph(self).constant(constant_from(value))); });
}

PyObject* copy(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const GraphRef made = self_graph(self).clone();
    return wrap_graph(keep_with_unit(made, graph_of<Graph>(self)));
  });
}
PyObject* lint(PyObject* self, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    self_graph(self).verify();
    Py_RETURN_NONE;
  });
}
PyObject* run(PyObject* self, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    std::vector<IValue> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
      values.push_back(constant_from(PyTuple_GET_ITEM(args, i)));
    }
    self_graph(self).verify();
    const graph::Program program(self_graph(self), "graph");
    std::vector<IValue> results;
    {
      const WithoutGil no_gil;
      results = program.run(std::move(values));
    }
    return from_results(results);
  });
}

PyMethodDef graph_methods[] = {
    {"nodes", nodes<Graph>, METH_NOARGS, "All nodes, in order."},
    {"inputs", inputs<Graph>, METH_NOARGS, "The values that come in."},
    {"outputs", outputs<Graph>, METH_NOARGS, "The values that go out."},
    {"param_node", param_node<Graph>, METH_NOARGS, "The node whose outputs are what comes in."},
    {"return_node", return_node<Graph>, METH_NOARGS, "The node whose inputs are what goes out."},
    {"findNode", with_keywords(find_node<Graph>), METH_VARARGS | METH_KEYWORDS,
     "findNode(kind, recurse=True): the first node of a kind, or None."},
    {"findAllNodes", with_keywords(find_all_nodes<Graph>), METH_VARARGS | METH_KEYWORDS,
     "findAllNodes(kind, recurse=True): the nodes of a kind."},
    {"addInput", with_keywords(add_input), METH_VARARGS | METH_KEYWORDS,
     "addInput(name=''): one more value that comes in, a tensor until setType says otherwise."},
    {"registerOutput", register_output<Graph>, METH_O, "One more value that goes out; its place."},
    {"eraseInput", erase_input, METH_O, "Takes out an input that nobody uses."},
    {"eraseOutput", erase_output, METH_O, "Takes out an output."},
    {"create", with_keywords(create), METH_VARARGS | METH_KEYWORDS,
     "create(kind, inputs=[], outputs=1): a node that is in no block yet."},
    {"_create_op", create_op, METH_VARARGS,
     "_create_op(name with overload, inputs, outputs): a call of that very overload."},
    {"appendNode", append_node, METH_O, "Puts a node at the end."},
    {"prependNode", prepend_node, METH_O, "Puts a node at the beginning."},
    {"insertNode", insert_node, METH_O, "Puts a node at the insert point."},
    {"setInsertPoint", set_insert_point, METH_O, "Before a node, or at the end of a block."},
    {"insertConstant", insert_constant, METH_O, "The value of a constant at the insert point."},
    {"copy", copy, METH_NOARGS, "A copy."},
    {"lint", lint, METH_NOARGS, "Raises RuntimeError where the graph is not well formed."},
    {"str", with_keywords(graph_text), METH_VARARGS | METH_KEYWORDS,
     "str(print_source_ranges=True): as text."},
    {"_run", run, METH_VARARGS, "Runs it as it is; what goes out."},
    {},
};

PyMethodDef block_methods[] = {
    {"nodes", nodes<Block>, METH_NOARGS, "All nodes, in order."},
    {"inputs", inputs<Block>, METH_NOARGS, "The values that come in."},
    {"outputs", outputs<Block>, METH_NOARGS, "The values that go out."},
    {"paramNode", param_node<Block>, METH_NOARGS, "The node whose outputs are what comes in."},
    {"returnNode", return_node<Block>, METH_NOARGS, "The node whose inputs are what goes out."},
    {"registerOutput", register_output<Block>, METH_O, "One more value that goes out; its place."},
    {"findNode", with_keywords(find_node<Block>), METH_VARARGS | METH_KEYWORDS,
     "findNode(kind, recurse=True): the first node of a kind, or None."},
    {"findAllNodes", with_keywords(find_all_nodes<Block>), METH_VARARGS | METH_KEYWORDS,
     "findAllNodes(kind, recurse=True): the nodes of a kind."},
    {"addInputToBlock",
     [](PyObject* self, PyObject*) {
       return translate_errors([&] {
         return wrap(graph_of<Block>(self),
                     object_of_handle<Block>(self).add_param({Type::Kind::Tensor}));
       });
     },
     METH_NOARGS, "One more value that comes in, a tensor until setType says otherwise."},
    {"owningNode",
     [](PyObject* self, PyObject*) {
       return translate_errors(
           [&] { return wrap(graph_of<Block>(self), object_of_handle<Block>(self).owner()); });
     },
     METH_NOARGS, "The node that it is of; None of a graph's own."},
    {},
};

PyTypeObject graph_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Graph",
    .tp_basicsize = sizeof(GraphHandle<Graph>),
    .tp_dealloc = delete_handle_of<Graph>,
    .tp_repr = graph_str,
    .tp_hash = hash_handle<Graph>,
    .tp_str = graph_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "Graph()\n--\n\nA program as nodes and the values between them.\n\n"
        "Example:\n"
        "    >>> graph = torch.jit.trace(lambda x: x.relu() + 1, torch.ones(2)).graph\n"
        "    >>> [node.kind() for node in graph.nodes()]\n"
        "    ['aten::relu', 'prim::Constant', 'prim::Constant', 'aten::add']\n"
        "    >>> [str(value.type()) for value in graph.inputs()]\n"
        "    ['Tensor']",
    .tp_richcompare = compare_handles<Graph>,
    .tp_methods = graph_methods,
    .tp_new = new_graph,
};
PyTypeObject block_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Block",
    .tp_basicsize = sizeof(GraphHandle<Block>),
    .tp_dealloc = delete_handle_of<Block>,
    .tp_hash = hash_handle<Block>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "Nodes within a node: a branch, or the body of a loop.\n"
        "\n"
        "For an example see `Graph`.",
    .tp_richcompare = compare_handles<Block>,
    .tp_methods = block_methods,
};

// ---- passes ----

template <bool (*pass)(Graph&)>
PyObject* run_pass(PyObject*, PyObject* graph) {
  return translate_errors([&] {
    unwrap_graph(graph)->verify();
    return PyBool_FromLong(pass(*unwrap_graph(graph)));
  });
}
bool propagate(Graph& graph) { return graph::propagate_constants(graph); }
bool check_form(Graph& graph) {
  graph.verify();
  return false;
}
PyMethodDef passes[] = {
    {"_jit_pass_dce", run_pass<graph::remove_dead_code>, METH_O, "Takes out what nobody uses."},
    {"_jit_pass_cse", run_pass<graph::merge_common_nodes>, METH_O, "Merges equal nodes."},
    {"_jit_pass_constant_propagation", run_pass<propagate>, METH_O, "Computes what is known."},
    {"_jit_pass_constant_pooling", run_pass<graph::pool_constants>, METH_O,
     "Merges equal constants."},
    {"_jit_pass_inline", run_pass<graph::inline_calls>, METH_O, "Calls become what they call."},
    {"_jit_pass_peephole", run_pass<graph::simplify>, METH_O, "Small rewritings."},
    {"_jit_pass_fold_convbn", run_pass<graph::fold_batch_norms>, METH_O,
     "Batch norms of constants become part of convolutions."},
    {"_jit_pass_lint", run_pass<check_form>, METH_O,
     "Raises RuntimeError where the graph is not well formed."},
    {},
};

// Programs print where Python does.
void print_in_python(const std::string& line) {
  if (!Py_IsInitialized()) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    return;
  }
  const WithGil gil;
  PyObject* const out = PySys_GetObject("stdout");
  if (out == nullptr || out == Py_None) {
    return;
  }
  try {
    const Object shown = text_object(line);
    check(PyFile_WriteObject(shown.get(), out, Py_PRINT_RAW));
  } catch (const PythonError&) {
    throw CarriedError::take();
  }
}

}  // namespace

GraphRef keep_with_unit(GraphRef graph, std::shared_ptr<const void> unit) {
  graph::Graph* const it = graph.get();
  return GraphRef(it, [graph = std::move(graph), unit = std::move(unit)](graph::Graph*) {});
}

PyObject* wrap_graph(GraphRef graph) { return make_handle(graph_type, graph, graph.get()); }
PyObject* wrap(const GraphRef& graph, graph::Block* block) {
  return make_handle(block_type, graph, block);
}
const GraphRef& unwrap_graph(PyObject* o) {
  if (Py_TYPE(o) != &graph_type) {
    raise(PyExc_TypeError, str("expected a Graph, got ", type_name(o)));
  }
  return graph_of<Graph>(o);
}
graph::Block* unwrap_block(PyObject* o) {
  if (Py_TYPE(o) != &block_type) {
    raise(PyExc_TypeError, str("expected a Block, got ", type_name(o)));
  }
  return &object_of_handle<Block>(o);
}

namespace {
void collect(const graph::Block& block, std::string_view kind, bool recurse, bool all,
             std::vector<graph::Node*>& out) {
  for (graph::Node* const node : block) {
    if (!all && !out.empty()) {
      return;
    }
    if (node->kind_name() == kind) {
      out.push_back(node);
    }
    for (const graph::Block* const inner : node->blocks()) {
      if (recurse) {
        collect(*inner, kind, recurse, all, out);
      }
    }
  }
}
}  // namespace

PyObject* find_nodes(const GraphRef& graph, const graph::Block& block, PyObject* args,
                     PyObject* kwargs, bool all) {
  static const char* const names[] = {"kind", "recurse", nullptr};
  const char* kind = nullptr;
  int recurse = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|p", const_cast<char**>(names), &kind,
                                   &recurse)) {
    throw PythonError();
  }
  std::vector<graph::Node*> found;
  collect(block, kind, recurse != 0, all, found);
  if (all) {
    return list_of_handles(graph, found);
  }
  return wrap(graph, found.empty() ? nullptr : found[0]);
}

void init_graph(PyObject* module) {
  add_type(module, graph_type);
  add_type(module, block_type);
  init_graph_nodes(module);
  init_graph_values(module);
  init_graph_types(module);
  check(PyModule_AddFunctions(module, passes));
  graph::set_printer(print_in_python);
}

}  // namespace rushlight::python
