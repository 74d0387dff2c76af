// Modules of TorchScript, by libtorch's name, and ops of one's own.
#pragma once

#include <rushlight/jit.h>
#include <rushlight/ordered_map.h>
#include <rushlight/script.h>
#include <torch/library.h>
