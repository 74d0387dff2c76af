// The small Python types: dtype, device, layout, memory_format, Size, Generator. dtypes, layouts
// and memory formats are singletons, compared with `is`.
#pragma once

#include <optional>

#include "python/common.h"

namespace rushlight::python {

extern PyTypeObject dtype_type, device_type, layout_type, memory_format_type, size_type,
    generator_type;

PyObject* wrap(ScalarType t);  // new references, here and below
PyObject* wrap(Device d);
PyObject* wrap(Layout l);
PyObject* wrap(MemoryFormat f);
PyObject* wrap(const Generator& g);
PyObject* wrap_size(IntArrayRef sizes);
PyObject* size_of(PyObject* ints);        // a torch.Size of a sequence
PyObject* wrap_ints(IntArrayRef values);  // a plain tuple
PyObject* wrap_number(const Scalar& s);

// Nothing where `o` is none of these. A dtype may also be Python's float, int, bool or complex.
std::optional<ScalarType> as_dtype(PyObject* o);
std::optional<Layout> as_layout(PyObject* o);
std::optional<MemoryFormat> as_memory_format(PyObject* o);
bool is_device(PyObject* o);    // device, str or int
Device as_device(PyObject* o);  // RuntimeError for an unknown string
inline bool is_generator(PyObject* o) { return Py_TYPE(o) == &generator_type; }
const Generator& unwrap_generator(PyObject* o);

// torch.set_default_device; unset is the CPU.
std::optional<Device> default_device();

void add_type(PyObject* module, PyTypeObject& type);  // ready, under its own name
void init_types(PyObject* module);
void init_generator(PyObject* module);  // by init_types: generator_type.cpp

}  // namespace rushlight::python
