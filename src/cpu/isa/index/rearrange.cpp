// Kernels that compress or reverse: nonzero, masked_select, flip.
#include <algorithm>
#include <vector>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t chunk = 32768;

int64_t count_true(const uint8_t* m, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i += 128) {  // in bytes first, which vectorise
    uint8_t part = 0;
    const int64_t stop = std::min(n, i + 128);
    for (int64_t j = i; j < stop; j++) {
      part = static_cast<uint8_t>(part + (m[j] != 0));
    }
    total += part;
  }
  return total;
}

// For each chunk of the mask, how many are true before it; the last entry is the total.
std::vector<int64_t> chunk_starts(const uint8_t* m, int64_t n) {
  const int64_t chunks = num_chunks(0, n, chunk);
  std::vector<int64_t> start(chunks + 1, 0);
  parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
      start[c + 1] = count_true(m + c * chunk, std::min(chunk, n - c * chunk));
    }
  });
  for (int64_t c = 0; c < chunks; c++) {
    start[c + 1] += start[c];
  }
  return start;
}

// Writes first, first + 1, ... where m is true. Room for what is true is all that `to` need have.
void write_true_positions(const uint8_t* m, int64_t first, int64_t n, int64_t* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  __m512i position =
      _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
  const __m512i step = _mm512_set1_epi64(8);
  for (; i + 8 <= n; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(m + i));
    const auto mask = static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
    _mm512_mask_compressstoreu_epi64(to, mask, position);
    to += __builtin_popcount(mask);
    position = _mm512_add_epi64(position, step);
  }
#endif
  for (; i < n; i++) {
    if (m[i] != 0) {
      *to++ = first + i;
    }
  }
}

// Moves the elements of x where m is true together.
template <class T>
void compress(const uint8_t* m, const T* x, int64_t n, T* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    for (; i + 16 <= n; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(m + i));
      const __mmask16 mask = _mm_test_epi8_mask(bytes, bytes);
      // Compressing in a register and storing the front is faster than a compressing store on some
      // processors, but would write past the end.
      _mm512_mask_compressstoreu_epi32(to, mask, _mm512_loadu_si512(x + i));
      to += __builtin_popcount(mask);
    }
  } else if constexpr (sizeof(T) == 8) {
    for (; i + 8 <= n; i += 8) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(m + i));
      const auto mask = static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
      _mm512_mask_compressstoreu_epi64(to, mask, _mm512_loadu_si512(x + i));
      to += __builtin_popcount(mask);
    }
  }
#endif
  for (; i < n; i++) {
    if (m[i] != 0) {
      *to++ = x[i];
    }
  }
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  const Tensor x = contiguous_raw(self);
  const Tensor mask = cast_raw(x, kBool);
  const uint8_t* m = mask.data<uint8_t>();
  const int64_t n = x.numel();
  const std::vector<int64_t> start = chunk_starts(m, n);
  const int64_t ndim = x.dim();
  const Tensor out = make_empty({start.back(), ndim}, kInt64, x.device());
  if (start.back() == 0 || ndim == 0) {
    return out;
  }
  int64_t* to = out.data<int64_t>();
  parallel_for(0, static_cast<int64_t>(start.size()) - 1, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
      const int64_t found = start[c + 1] - start[c];
      const int64_t first = c * chunk;
      const int64_t length = std::min(chunk, n - first);
      if (ndim == 1) {
        write_true_positions(m + first, first, length, to + start[c]);
        continue;
      }
      Scratch<int64_t> flat(found);
      write_true_positions(m + first, first, length, flat.data());
      // Coordinates advance with the position; a division happens once a row of the last dimension.
      const int64_t last = x.sizes()[ndim - 1];
      int64_t* row = to + start[c] * ndim;
      int64_t line = -1;
      int64_t head[Dims::max];
      for (int64_t i = 0; i < found; i++, row += ndim) {
        int64_t column = flat[i] - line * last;
        if (line < 0 || column >= last) {
          line = flat[i] / last;
          column = flat[i] - line * last;
          int64_t rest = line;
          for (int64_t d = ndim - 2; d >= 0; d--) {
            head[d] = rest % x.sizes()[d];
            rest /= x.sizes()[d];
          }
        }
        for (int64_t d = 0; d < ndim - 1; d++) {
          row[d] = head[d];
        }
        row[ndim - 1] = column;
      }
    }
  });
  return out;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  RL_CHECK(mask.dtype() == kBool, "masked_select: expected BoolTensor for mask");
  const DimVector sizes = broadcast_sizes(self.sizes(), mask.sizes());
  const Tensor x = contiguous_raw(expand_raw(self, sizes));
  const Tensor where = contiguous_raw(expand_raw(mask, sizes));
  const uint8_t* m = where.data<uint8_t>();
  const int64_t n = x.numel();
  const std::vector<int64_t> start = chunk_starts(m, n);
  const Tensor out = make_empty(start.back(), x.dtype(), x.device());
  visit_size(x.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, static_cast<int64_t>(start.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        compress(m + c * chunk, from + c * chunk, std::min(chunk, n - c * chunk), to + start[c]);
      }
    });
  });
  return out;
}

void flip(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  if (out.numel() == 0) {
    return;
  }
  bool reversed[Dims::max] = {};
  for (int64_t d : dims) {
    if (d < self.dim()) {
      reversed[d] = true;
    }
  }
  Dims from;
  int64_t start = 0;
  for (int64_t d = self.dim() - 1; d >= 0; d--) {
    const int64_t step = byte_stride(self, d);
    from.add(self.sizes()[d], reversed[d] ? -step : step);
    start += reversed[d] ? (self.sizes()[d] - 1) * step : 0;
  }
  const char* base = static_cast<const char*>(self.data_ptr()) + start;
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data_ptr());
    constexpr int64_t width = sizeof(T);
    parallel_for(0, out.numel(), chunk, [&](int64_t begin, int64_t end) {
      for_runs(from, begin, end, [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
        T* __restrict y = to + at;
        const T* x = reinterpret_cast<const T*>(base + offset);
        if (stride == width) {
          std::copy_n(x, n, y);
        } else if (stride == -width) {
          for (int64_t i = 0; i < n; i++) {
            y[i] = x[-i];
          }
        } else {
          for (int64_t i = 0; i < n; i++) {
            y[i] = *reinterpret_cast<const T*>(base + offset + i * stride);
          }
        }
      });
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
