// Everything, under another of libtorch's names.
#pragma once

#include <torch/torch.h>
