// The names of tensors alone.
#pragma once

#include <torch/torch.h>
