// How the library was built, by libtorch's name.
#pragma once

#include <torch/torch.h>

#define AT_MKL_ENABLED() 0
#define AT_MKLDNN_ENABLED() 0
#define AT_PARALLEL_NATIVE 0
