// What extensions of Python use, by libtorch's name.
#pragma once

#include <torch/extension.h>
