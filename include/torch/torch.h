// For programs written against libtorch: its names, as those of rushlight.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>

#include <rushlight/archive.h>
#include <rushlight/chunks.h>
#include <rushlight/compat.h>
#include <rushlight/data.h>
#include <rushlight/libtorch.h>
#include <rushlight/nn.h>
#include <rushlight/optim.h>
#include <rushlight/rushlight.h>

// Each has all that rushlight has, and what programs add to it; as libtorch has it, torch sees what
// is added to at, and at what is added to c10.
namespace c10 {
using namespace rushlight;
}
namespace at {
using namespace c10;
namespace native {
using namespace rushlight::native;
}
}  // namespace at
namespace torch {
using namespace at;
}
