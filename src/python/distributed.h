// What the bindings of `distributed` share: nanobind's view of tensors and stores.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/common.h"

namespace rushlight::python {

void init_stores(nanobind::module_& m);
void init_process_group(nanobind::module_& m);  // process_group.cpp

}  // namespace rushlight::python
