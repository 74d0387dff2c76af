// Autograd's Python objects: nodes (grad_fn), hooks, custom functions.
//
// A node of an op has at most one Python object while somebody holds it; that of a custom function
// is its `ctx`, which the node owns, or which owns the node. Hooks are OrderedDicts, so that
// `RemovableHandle` can take one out; the C++ hook calls all in the dict.
#pragma once

#include "autograd/node.h"
#include "python/common.h"
#include "python/cycles.h"
#include "python/tensor_type.h"

namespace rushlight::python {

struct NodeObject {
  PyObject_HEAD Node* node;  // null where there was none, or it is gone
  bool owns;                 // it, which of custom functions is so once the graph has dropped them

  // Null where the node is gone, or on its way: nodes wait for their end, and meanwhile others run.
  Ref<Node> alive() const {
    return node != nullptr && node->try_retain() ? Ref<Node>::steal(node) : Ref<Node>();
  }
};

extern PyTypeObject node_type;      // _C._Node
extern PyTypeObject function_type;  // _C._FunctionBase: what ctx is

// None for no node.
PyObject* wrap_node(const Ref<Node>& node);
// The object of the node of a custom function, borrowed; null for other nodes.
PyObject* context_of(const Node& node);
PyObject* owned_context_of(const Node& node);  // null where the ctx owns the node, too
inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, &node_type) != 0; }
// TypeError for what is no node, RuntimeError for the ctx of a function that was not recorded.
Ref<Node> unwrap_node(PyObject* o);

// Runs Python code from the engine, on whatever thread. Python's error leaves as a CarriedError.
template <class F>
auto in_python(F&& f) {
  const WithGil gil;
  try {
    return f();
  } catch (const PythonError&) {
    throw CarriedError::take();
  }
}

// A list of tensors as a tuple, None for undefined ones, and back (a single tensor or a tuple or
// list of them).
PyObject* wrap_tuple(const Tensor* tensors, size_t n);
std::vector<Tensor> unwrap_tuple(PyObject* o, const char* what);

// The pair of functions of saved_tensors_hooks.
class PythonSavedHooks : public SavedTensorHooks {
 public:
  PythonSavedHooks(Object pack, Object unpack)
      : pack_(std::move(pack)), unpack_(std::move(unpack)) {}
  std::unique_ptr<PackedTensor> pack(const Tensor& t) override;

 private:
  Object pack_;
  Object unpack_;
};

// Drops a reference from any thread; does nothing once the interpreter is gone.
inline void drop_reference(PyObject* o) {
  if (o != nullptr && Py_IsInitialized()) {
    const WithGil gil;
    Py_DECREF(o);
  }
}

// What a hook gave in the place of a gradient. RuntimeError.
void check_hook_result(const Tensor& before, const Tensor& after);

PyObject* ordered_dict();
// Adds a hook to an OrderedDict; returns its RemovableHandle.
PyObject* add_hook(PyObject* hooks, PyObject* hook);

// Offers a call of a method of Tensor to modes and subclasses; true where one has answered.
bool call_if_overridden(PyObject* self, const char* name, PyObject* argument, PyObject** result);

void add_hooks();  // hooks.cpp: methods of TensorBase
void init_hooks(PyObject* module);
void init_nodes(PyObject* module);      // node.cpp
void init_functions(PyObject* module);  // function.cpp
void init_forward(PyObject* module);    // forward.cpp

// What a custom function's `jvp` is asked for once its forward has run.
struct JvpCall {
  struct Output {
    Tensor value;  // undefined where it is no tensor
    bool dirty;
    bool constant;  // marked as not differentiable
  };
  const char* name;
  const std::vector<Tensor>& inputs;   // the tensors among the arguments of forward …
  const std::vector<bool>& is_tensor;  // … and which arguments these are
  std::vector<Output> outputs;
  bool materialize;  // zeros rather than None where an input has no tangent
  PyObject* jvp;
  PyObject* context;
};
// Gives the outputs their tangents, level by level.
void run_jvp(const JvpCall& call);

}  // namespace rushlight::python
