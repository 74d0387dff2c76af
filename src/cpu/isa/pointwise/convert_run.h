// Runs of elements brought into a kernel's compute type and back: contiguous loops that vectorise,
// or strided ones.
#pragma once

#include <rushlight/dtype.h>

#include "kernels/read_element.h"
#include "cpu/reduce_driver.h"

namespace rushlight::cpu::RL_ISA {

template <class To, class From>
void convert_run(void* to, const void* from, int64_t stride, int64_t n) {
  To* __restrict out = static_cast<To*>(to);
  if (stride == static_cast<int64_t>(sizeof(From))) {
    const From* __restrict in = static_cast<const From*>(from);
    for (int64_t i = 0; i < n; i++) {
      out[i] = convert<To>(read_element(in + i));
    }
    return;
  }
  const char* in = static_cast<const char*>(from);
  for (int64_t i = 0; i < n; i++) {
    out[i] = convert<To>(read_element(reinterpret_cast<const From*>(in + i * stride)));
  }
}

// The function that reads dtypes of the set as To.
template <class To, uint32_t From = set_all>
ConvertRun reader(const char* op, ScalarType from) {
  return visit_dtype<From>(op, from, [](auto tag) -> ConvertRun {
    return convert_run<To, typename decltype(tag)::type>;
  });
}

// The function that stores values of From in a dtype of the set.
template <class From, uint32_t To = set_all>
ConvertRun writer(const char* op, ScalarType to) {
  return visit_dtype<To>(op, to, [](auto tag) -> ConvertRun {
    return convert_run<typename decltype(tag)::type, From>;
  });
}

}  // namespace rushlight::cpu::RL_ISA
