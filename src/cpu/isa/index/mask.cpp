// Kernels that write elements where a mask says so: masked_fill and masked_scatter.
#include <bit>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/isa/index/combine.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// Chosen by bits where T has a word, for the sake of the vectoriser.
template <class T>
void fill_where(T* x, const uint8_t* where, int64_t n, T value) {
  if constexpr (sizeof(T) <= 8) {
    using Word __attribute__((may_alias)) = typename unsigned_of<sizeof(T)>::type;
    auto* __restrict word = reinterpret_cast<Word*>(x);
    const auto filled = std::bit_cast<typename unsigned_of<sizeof(T)>::type>(value);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      const auto chosen = static_cast<Word>(-static_cast<Word>(where[i] != 0));
      word[i] = static_cast<Word>((word[i] & ~chosen) | (filled & chosen));
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      x[i] = where[i] != 0 ? value : x[i];
    }
  }
}

}  // namespace

void masked_fill_value(const Tensor& out, const Tensor& mask, const Scalar& value) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor where = contiguous_raw(expand_raw(mask, out.sizes()));
  const auto* m = where.data<uint8_t>();
  Dims dims;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    dims.add(out.sizes()[d], byte_stride(out, d));
  }
  alignas(16) char number[16];
  store_scalar(number, out.dtype(), value);
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T filled = *reinterpret_cast<const T*>(number);
    parallel_for(0, out.numel(), 2 * work_per_task, [&](int64_t begin, int64_t end) {
      for_runs(dims, begin, end, [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
        char* to = static_cast<char*>(out.data_ptr()) + offset;
        if (stride == static_cast<int64_t>(sizeof(T))) {
          fill_where(reinterpret_cast<T*>(to), m + at, n, filled);
        } else {
          for (int64_t i = 0; i < n; i++) {
            if (m[at + i] != 0) {
              *reinterpret_cast<T*>(to + i * stride) = filled;
            }
          }
        }
      });
    });
  });
}

void masked_scatter(const Tensor& out, const Tensor& mask, const Tensor& source) {
  const Tensor where = contiguous_raw(expand_raw(mask, out.sizes()));
  const auto* m = where.data<uint8_t>();
  int64_t wanted = 0;
  for (int64_t i = 0; i < where.numel(); i++) {
    wanted += m[i] != 0;
  }
  RL_CHECK(wanted <= source.numel(), "masked_scatter: the mask has ", wanted,
           " true elements, but source only ", source.numel());
  const Tensor from = contiguous_raw(source);
  Dims dims;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    dims.add(out.sizes()[d], byte_stride(out, d));
  }
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* next = static_cast<const T*>(from.data_ptr());
    for_runs(dims, 0, out.numel(), [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; i++) {
        if (m[at + i] != 0) {
          *reinterpret_cast<T*>(static_cast<char*>(out.data_ptr()) + offset + i * stride) = *next++;
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
