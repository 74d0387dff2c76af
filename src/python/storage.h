// torch.UntypedStorage: the memory below tensors as a Python object.
#pragma once

#include "python/common.h"

namespace rushlight::python {

PyObject* wrap_storage(const Tensor& t);

}  // namespace rushlight::python
