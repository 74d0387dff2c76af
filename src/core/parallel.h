// parallel_for is public.
#pragma once

#include <rushlight/parallel.h>
