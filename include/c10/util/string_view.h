// A part of libtorch's core, by its name.
#pragma once

#include <torch/torch.h>
