// Tensors and their ops, by libtorch's name.
#pragma once

#include <rushlight/checks.h>
#include <torch/torch.h>
