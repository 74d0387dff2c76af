// Tensors and their ops, by libtorch's name.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include <rushlight/checks.h>
#include <torch/torch.h>
