// Where the generated bindings (gen/python.py) and the hand-written files meet: lists of functions
// and methods.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "python/common.h"

namespace rushlight::python {

struct Binding {
  PyObject** owner;  // the module that it is a function of; null: a method of tensors
  PyObject** also;   // another module that has it; null: none
  PyMethodDef definition;
};
// What one generated file adds; by being made it joins the list of all.
struct Bindings {
  explicit Bindings(std::span<Binding> rows) : rows(rows), next(first) { first = this; }
  std::span<Binding> rows;
  const Bindings* next;
  inline static const Bindings* first = nullptr;
};

extern PyObject* ops_owner;  // _C.ops: every function of the op table
extern PyObject* nn_owner;   // _C._nn: those that are not torch.NAME
extern PyObject*
    functional_owner;            // _C._functional: those of nn.functional, whatever else they are
extern PyObject* listed_owner;   // _C._listed: those that rushlight.functional has beside its own
extern PyObject* wrapped_owner;  // _C._wrapped: those that a function of the package stands before

// ---- calls of modules (nn_module.cpp) ----

// One who is told of the calls of modules on the thread where it is set.
struct ModuleWatcher {
  virtual void begin_module(PyObject* module) = 0;
  virtual void end_module() = 0;

 protected:
  ~ModuleWatcher() = default;
};
extern constinit thread_local ModuleWatcher* module_watcher;

// ---- tensors whose class has __torch_dispatch__ (dispatch.cpp) ----

// What _make_wrapper_subclass and _make_subclass can be told to ask the class for.
enum class Asked : uint8_t { Sizes = 1, Strides = 2, Device = 4, Layout = 8 };
// The answer of a tensor's class to a question such as "aten::sym_size"; null where it is not
// asked, and where it answers None: what is stored counts.
Object ask_class(const Tensor& t, Asked what, const char* question, PyObject* more = nullptr);
template <class F>
PyObject* ask_class_or(const Tensor& t, Asked what, const char* question, F stored) {
  if (t.impl()->special() != nullptr) {
    if (Object answer = ask_class(t, what, question)) {
      return answer.release();
    }
  }
  return stored();
}
// What a call asks for: `policy` is "sizes", "strides" or nothing.
uint8_t question_bits(std::optional<std::string_view> policy, bool device, bool layout);
// From now on; the class has __torch_dispatch__.
void set_class_questions(const Tensor& t, uint8_t asked);

// ---- the parts of TensorBase; each adds its methods, getters and slots before the type is made
// ready ----

void add_operators();       // operators.cpp: numbers and comparisons
void add_indexing();        // indexing.cpp: t[…], t[…] = …
void add_properties();      // properties.cpp: shape, dtype, grad …
void add_tensor_methods();  // methods.cpp: item, tolist, size, numpy …
void add_constructor();     // factory.cpp: Tensor(…)

void init_factories(PyObject* module);  // factory.cpp: tensor, as_tensor, from_numpy …
void init_ending();                     // ending.cpp: threads that compute while Python ends
void init_settings(PyObject* module);   // settings.cpp: default dtype, threads, finfo …
void init_compiler(PyObject* module);   // compiler.cpp: calls whose formulas are noted
void init_capture(PyObject* module);    // capture.cpp: recordings of steps
void init_snapshot(PyObject* module);   // snapshot.cpp: what a step depends on
void init_autocast(PyObject* module);   // autocast.cpp: for which devices it is on, and its dtypes
void init_extension_api(PyObject* module);   // extension_api.cpp: what extensions are given
void init_storage(PyObject* module);         // storage.cpp: UntypedStorage
void init_nn_module(PyObject* module);       // nn_module.cpp: the base class of nn.Module
void init_library(PyObject* module);         // library.cpp: ops that C++ programs define
void init_exported(PyObject* module);        // exported.cpp: programs of .pt2 files
void init_interrupt(PyObject* module);       // interrupt.cpp: Ctrl-C ends long work
void init_script(PyObject* module);          // script.cpp: archives of TorchScript
void init_script_compile(PyObject* module);  // script_unit.cpp: programs of text and of Python
void init_graph(PyObject* module);           // graph.cpp: Graph, Node, Value, Block, Type
void init_classes(PyObject* module);         // classes.cpp: objects of C++ classes
void init_calls(PyObject* module);           // calls.cpp: the boxed form
void init_profiler(PyObject* module);        // profiler.cpp
void init_dlpack(PyObject* module);          // dlpack.cpp
void init_arrow(PyObject* module);           // arrow.cpp
void init_jpeg(PyObject* module);            // jpeg.cpp
void add_dispatch_methods();                 // dispatch.cpp: _make_wrapper_subclass
void init_dispatch(PyObject* module);        // dispatch.cpp: TorchDispatchMode
void init_batching(PyObject* module);        // batching.cpp: levels of vmap and of gradients

// Bindings that live with what they bind.
void add_autograd();  // autograd.cpp: methods of TensorBase
void init_autograd(PyObject* module);
void init_serialize(PyObject* module);    // serialize.cpp
void init_memory(PyObject* module);       // memory.cpp
void init_backend(PyObject* module);      // backend.cpp
void init_streams(PyObject* module);      // streams.cpp: Stream, Event
void init_safetensors(PyObject* module);  // safetensors.cpp
void init_gguf(PyObject* module);         // gguf.cpp
void init_distributed(PyObject* module);  // distributed.cpp: its types come on demand

}  // namespace rushlight::python
