// Classes of C++ for Python and for schemas.
#pragma once

#include <rushlight/custom_class.h>
#include <torch/torch.h>
