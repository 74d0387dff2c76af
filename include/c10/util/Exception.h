// Checks and errors, by libtorch's name.
#pragma once

#include <torch/torch.h>
