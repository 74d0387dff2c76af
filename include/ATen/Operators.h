// Ops by name, by libtorch's name.
#pragma once

#include <torch/library.h>
