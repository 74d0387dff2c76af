// Objects of quantised layers in programs.
#pragma once

#include "python/common.h"

namespace rushlight::python {

void init_packed_layers(PyObject* module);

}  // namespace rushlight::python
