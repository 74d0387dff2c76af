// torch.UntypedStorage: the memory below tensors as a Python object.
#pragma once

#include "python/common.h"

namespace rushlight::python {

PyObject* wrap_storage(Storage storage);
// TypeError where `o` is no storage.
const Storage& unwrap_storage(PyObject* o);

}  // namespace rushlight::python
