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

namespace torch = rushlight;
namespace at = rushlight;
namespace c10 = rushlight;
