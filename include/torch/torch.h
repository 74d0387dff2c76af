// For programs written against libtorch: its names, as those of rushlight.
#pragma once

#include <cstdlib>
#include <iostream>

#include <rushlight/rushlight.h>

namespace torch = rushlight;
namespace at = rushlight;
namespace c10 = rushlight;

#define TORCH_CHECK(...) RL_CHECK(__VA_ARGS__)
#define TORCH_WARN(...) ::rushlight::warn(::rushlight::str(__VA_ARGS__))
