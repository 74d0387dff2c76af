// Graphs of programs as Python types. Each handle keeps the graph, so that no node dangles.
#pragma once

#include <rushlight/graph_function.h>

#include "python/convert.h"
#include "python/values.h"

namespace rushlight::python {

// A graph with what its types and functions need to live (the unit that they are of).
using GraphRef = std::shared_ptr<graph::Graph>;
GraphRef keep_with_unit(GraphRef graph, std::shared_ptr<const void> unit);

// New references; None of null.
PyObject* wrap_graph(GraphRef graph);
PyObject* wrap(const GraphRef& graph, graph::Node* node);
PyObject* wrap(const GraphRef& graph, graph::Value* value);
PyObject* wrap(const GraphRef& graph, graph::Block* block);
// A type, which `owner` keeps alive where it is of a class.
PyObject* wrap_type(Type type, std::shared_ptr<const void> owner,
                    std::shared_ptr<const graph::TensorFacts> facts = nullptr);

bool is_graph_value(PyObject* o);
// TypeError where `o` is of another type.
const GraphRef& unwrap_graph(PyObject* o);
graph::Node* unwrap_graph_node(PyObject* o);
graph::Value* unwrap_graph_value(PyObject* o);
graph::Block* unwrap_block(PyObject* o);
const Type& unwrap_type(PyObject* o);
// What keeps the classes of a type alive: its unit, or a graph of that.
std::shared_ptr<const void> unit_of_type(PyObject* o);

// ---- for the files that bind them ----

template <class T>
struct GraphHandle {
  PyObject_HEAD GraphRef graph;
  T* it;
};
template <class T>
T& object_of_handle(PyObject* self) {
  return *reinterpret_cast<GraphHandle<T>*>(self)->it;
}
template <class T>
const GraphRef& graph_of(PyObject* self) {
  return reinterpret_cast<GraphHandle<T>*>(self)->graph;
}
template <class T>
PyObject* make_handle(PyTypeObject& type, const GraphRef& graph, T* it) {
  if (it == nullptr) {
    Py_RETURN_NONE;
  }
  PyObject* const out = check(type.tp_alloc(&type, 0));
  auto* const handle = reinterpret_cast<GraphHandle<T>*>(out);
  new (&handle->graph) GraphRef(graph);
  handle->it = it;
  return out;
}
template <class T>
void delete_handle_of(PyObject* self) {
  reinterpret_cast<GraphHandle<T>*>(self)->graph.~GraphRef();
  Py_TYPE(self)->tp_free(self);
}
// Two handles of one node are equal.
template <class T>
PyObject* compare_handles(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((&object_of_handle<T>(a) == &object_of_handle<T>(b)) == (op == Py_EQ));
}
template <class T>
Py_hash_t hash_handle(PyObject* self) {
  return hash_pointer(&object_of_handle<T>(self));
}

template <class List>
PyObject* list_of_handles(const GraphRef& graph, const List& list) {
  Object out = Object::check(PyList_New(0));
  for (auto* const one : list) {
    const Object item = Object::check(wrap(graph, one));
    check(PyList_Append(out.get(), item.get()));
  }
  return out.release();
}
std::vector<graph::Value*> values_from(PyObject* sequence);
// What a Python value is in programs: dtypes, layouts and memory formats are numbers.
IValue constant_from(PyObject* o);
// The first node of that kind in a block, or all of them; in blocks within it too, if `recurse`.
PyObject* find_nodes(const GraphRef& graph, const graph::Block& block, PyObject* args,
                     PyObject* kwargs, bool all);
inline Object text_object(const std::string& s) {
  return Object::check(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}
inline PyObject* text_result(const std::string& s) { return text_object(s).release(); }
// A method f(self), and a method f(self, argument), as Python wants them.
template <auto f>
PyObject* call_without_argument(PyObject* self, PyObject*) {
  return translate_errors([&] { return f(self); });
}
template <auto f>
PyObject* call_with_argument(PyObject* self, PyObject* argument) {
  return translate_errors([&] { return f(self, argument); });
}
inline PyCFunction with_keywords(PyCFunctionWithKeywords f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

void init_graph_nodes(PyObject* module);   // graph_node.cpp: Node
void init_graph_values(PyObject* module);  // graph_value.cpp: Value, Use
void init_graph_types(PyObject* module);   // graph_type.cpp: Type

}  // namespace rushlight::python
