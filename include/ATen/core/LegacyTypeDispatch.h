// Ops by name and their boxed forms, by libtorch's name.
#pragma once

#include <torch/library.h>
