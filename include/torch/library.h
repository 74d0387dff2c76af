// TORCH_LIBRARY and what belongs to it.
#pragma once

#include <rushlight/library.h>
#include <rushlight/custom_class.h>
#include <torch/torch.h>
