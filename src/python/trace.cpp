// Calls of programs in the graph of a trace.
#include "python/bindings.h"
#include "python/graph.h"
#include "python/script_unit.h"
#include "python/trace.h"

namespace rushlight::python {

namespace {

// A value of the graph as it is; anything else as a constant of the argument's type.
graph::Value* argument_value(graph::Graph& graph, PyObject* given,
                             const graph::Argument& argument) {
  if (is_graph_value(given)) {
    return unwrap_graph_value(given);
  }
  return graph.constant(to_script(given, argument.type, str("'", argument.name, "'")),
                        argument.type);
}

// call_node(graph, unit or object, name, self or None, args, kwargs): a call of a function of the
// unit, or of a method of the object, which is the value `self`. Arguments are values of the graph
// or constants; the node is in no block yet.
PyObject* call_node(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *into, *owner, *self, *positional, *named;
    const char* name = nullptr;
    if (!PyArg_ParseTuple(args, "OOsOO!O!:_call_node", &into, &owner, &name, &self, &PyTuple_Type,
                          &positional, &PyDict_Type, &named)) {
      throw PythonError();
    }
    const GraphRef& graph = unwrap_graph(into);
    std::vector<graph::Value*> inputs;
    graph::Function* function = nullptr;
    if (self == Py_None) {
      function = &function_named(unit_of(owner), name);
    } else {
      function = unwrap_object(owner)->type->find_method(name);
      RL_CHECK(function != nullptr, "the module has no method '", name, "'");
      inputs.push_back(unwrap_graph_value(self));
    }
    const graph::Schema& schema = function->schema;
    const size_t first = inputs.size();
    for (size_t i = first; i < schema.arguments.size(); i++) {
      const graph::Argument& argument = schema.arguments[i];
      const auto place = static_cast<Py_ssize_t>(i - first);
      PyObject* const by_name = PyDict_GetItemString(named, argument.name.c_str());
      if (place < PyTuple_GET_SIZE(positional)) {
        inputs.push_back(argument_value(*graph, PyTuple_GET_ITEM(positional, place), argument));
      } else if (by_name != nullptr) {
        inputs.push_back(argument_value(*graph, by_name, argument));
      } else {
        RL_CHECK(argument.fallback.has_value(), schema.name, "(): missing value for argument '",
                 argument.name, "'");
        inputs.push_back(graph->constant(*argument.fallback, argument.type));
      }
    }
    graph::Node* const node = graph->create(
        self == Py_None ? graph::Kind::CallFunction : graph::Kind::CallMethod, inputs, 1);
    if (self == Py_None) {
      node->function = function;
    } else {
      node->set_attribute("name", std::string(name));
    }
    node->output()->type = schema.results.at(0).type;
    return wrap(graph, node);
  });
}

PyMethodDef functions[] = {
    {"_call_node", call_node, METH_VARARGS, nullptr},
    {},
};

}  // namespace

void init_trace(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
