// Loops over broadcast operands, by libtorch's name.
#pragma once

#include <rushlight/tensor_iterator.h>
#include <torch/torch.h>
