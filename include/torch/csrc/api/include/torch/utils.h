// A part of <torch/torch.h>, by libtorch's name.
#pragma once

#include <torch/torch.h>
