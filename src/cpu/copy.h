// The copying kernels, as src/cpu/copy.cpp reaches them.
#pragma once

#include "core/iterator.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu {

struct CopyKernels {
  void (*copy)(const TensorIterator& it);                     // one output, one input, any dtypes
  void (*copy_bytes)(char* to, const char* from, int64_t n);  // in parallel; the ranges lie apart
  void (*fill)(const TensorIterator& it,
               const char* value);  // one output; `value` is an element of its dtype
};

RL_DECLARE_ISA_TABLE(CopyKernels, copy_kernels)
inline const CopyKernels& copy_kernels() { return RL_ISA_TABLE(copy_kernels); }

}  // namespace rushlight::cpu
