// torch.UntypedStorage: the memory below tensors as a Python object.
#pragma once

#include "python/common.h"

namespace rushlight::python {

PyObject* wrap_storage(Storage storage);
// TypeError where `o` is no storage.
const Storage& unwrap_storage(PyObject* o);
// An UntypedStorage or a TypedStorage; and all its elements, on its memory. RuntimeError where it
// has a dtype, which is another one.
bool is_any_storage(PyObject* o);
Tensor elements_of_storage(PyObject* storage, ScalarType dtype);

}  // namespace rushlight::python
