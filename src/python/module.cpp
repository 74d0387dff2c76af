// The extension module rushlight._C: puts its parts together, in the order that they need each
// other.
#include <nanobind/nanobind.h>

#include "cpu/isa_level.h"
#include "python/bindings.h"
#include "python/packed_layers.h"
#include "python/trace.h"
#include "python/parser.h"
#include "python/tensor_type.h"
#include "python/torch_function.h"
#include "python/types.h"

namespace rushlight::python {

PyObject* ops_owner;
PyObject* nn_owner;
PyObject* functional_owner;
PyObject* listed_owner;
PyObject* wrapped_owner;

namespace {

// A namespace inside _C; its functions say that they are of the module `name`.
PyObject* make_namespace(PyObject* module, const char* attribute, const char* name) {
  PyObject* space = check(PyModule_New(name));
  add(module, attribute, space);
  return space;
}

void add_generated() {
  for (const Bindings* b = Bindings::first; b != nullptr; b = b->next) {
    for (Binding& row : b->rows) {
      if (row.owner == nullptr) {
        const PyMethodDef method[] = {row.definition, {}};
        add_methods(method);
        continue;
      }
      const Object name = Object::check(PyModule_GetNameObject(*row.owner));
      const Object function =
          Object::check(PyCFunction_NewEx(&row.definition, *row.owner, name.get()));
      check(PyObject_SetAttrString(*row.owner, row.definition.ml_name, function.get()));
      if (row.also != nullptr) {
        check(PyObject_SetAttrString(*row.also, row.definition.ml_name, function.get()));
      }
    }
  }
}

void init(PyObject* module) {
  // Tensors' objects, types and free lists are the process's, not an interpreter's.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    raise(PyExc_ImportError, "rushlight does not support sub-interpreters");
  }
  if (!cpu::is_supported_here()) {
    raise(PyExc_ImportError,
          str("rushlight was built here for the instruction sets ", cpu::compiled_levels(),
              " alone, which this processor does not run: build with RUSHLIGHT_ISA=native for this "
              "one, with RUSHLIGHT_ISA=all for every one"));
  }
  ops_owner = make_namespace(module, "ops", "rushlight");
  nn_owner = make_namespace(module, "_nn", "rushlight.nn.functional");
  functional_owner = make_namespace(module, "_functional", "rushlight.nn.functional");
  listed_owner = make_namespace(module, "_listed", "rushlight.functional");
  wrapped_owner = make_namespace(module, "_wrapped", "rushlight");
  init_errors(module);
  init_torch_function(module);
  init_types(module);
  init_results(module);
  init_storage(module);
  init_factories(module);
  init_ending();
  init_extension_api(module);
  init_settings(module);
  init_compiler(module);
  init_capture(module);
  init_snapshot(module);
  init_autocast(module);
  init_calls(module);
  init_library(module);
  init_exported(module);
  init_interrupt(module);
  init_script(module);
  init_script_compile(module);
  init_packed_layers(module);
  init_trace(module);
  init_classes(module);
  init_graph(module);
  init_dispatch(module);
  init_batching(module);
  init_profiler(module);
  init_dlpack(module);
  init_arrow(module);
  init_jpeg(module);
  init_nn_module(module);
  add_generated();
  add_operators();
  add_indexing();
  add_properties();
  add_tensor_methods();
  add_dispatch_methods();
  add_constructor();
  add_autograd();
  init_tensor_type(module);
  init_autograd(module);
  init_serialize(module);
  init_memory(module);
  init_backend(module);
  init_streams(module);
  init_safetensors(module);
  init_gguf(module);
  init_distributed(module);
}

}  // namespace

}  // namespace rushlight::python

NB_MODULE(_C, m) {  // NOLINT(performance-unnecessary-value-param): nanobind passes it so
  try {
    rushlight::python::init(m.ptr());
  } catch (...) {
    rushlight::python::set_error_from_exception();
    throw nanobind::python_error();
  }
}
