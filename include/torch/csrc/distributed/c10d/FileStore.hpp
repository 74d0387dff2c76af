// A part of libtorch's process groups, by its name.
#pragma once

#include <rushlight/distributed/c10d.h>
