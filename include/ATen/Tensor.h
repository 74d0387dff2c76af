// Tensors and their ops, by libtorch's name.
#pragma once

#include <torch/torch.h>
