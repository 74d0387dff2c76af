// Versions of tensors, by libtorch's name.
#pragma once

#include <torch/torch.h>
