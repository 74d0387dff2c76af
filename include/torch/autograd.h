// A part of <torch/torch.h>, and what functions of ops for autograd use, by libtorch's name.
#pragma once

#include <torch/library.h>
#include <torch/torch.h>
