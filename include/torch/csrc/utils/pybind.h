// Conversions of tensors for pybind11, by libtorch's name.
#pragma once

#include <torch/extension.h>
