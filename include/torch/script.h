// Of libtorch's header for scripts what is there: ops of one's own.
#pragma once

#include <torch/library.h>
