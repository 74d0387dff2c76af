// Checks of arguments, and tensors that may be borrowed, by libtorch's name.
#pragma once

#include <rushlight/checks.h>
#include <torch/torch.h>
