// All of rushlight's C++ API.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/factories.h>
#include <rushlight/function.h>
#include <rushlight/indexing.h>
#include <rushlight/mode.h>
#include <rushlight/ops.h>
#include <rushlight/parallel.h>
#include <rushlight/reduction.h>
#include <rushlight/serialize.h>
#include <rushlight/stream.h>
#include <rushlight/thread_state.h>
