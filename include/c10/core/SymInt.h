// Sizes that are never symbols here, by libtorch's name.
#pragma once

#include <torch/torch.h>
