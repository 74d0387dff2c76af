// Products of small blocks of a matrix, by libtorch's names (<ATen/native/CPUBlas.h>): plain loops,
// for kernels of programs that ask first whether packing pays (could_pack: no). Products of tensors
// are the library's.
#pragma once

#include <cstdint>
#include <type_traits>

#include <rushlight/compat.h>

namespace rushlight::native::cpublas {

inline bool could_pack(ScalarType) { return false; }

// How many rows of a block of B lie side by side where it is packed: as many as fill four bytes.
template <class T>
inline constexpr int64_t packed_rows = sizeof(T) >= 4 ? 1 : static_cast<int64_t>(4 / sizeof(T));

// C = A B, or C += A B: A of M rows, B of K rows, C of M rows. Leads count elements.
template <class A, class B, class C>
void brgemm(int64_t M, int64_t N, int64_t K, int64_t ld_a, int64_t ld_b, int64_t ld_c, bool add_C,
            const A* a, const B* b, C* c, bool is_vnni = true) {
  const int64_t side = is_vnni ? packed_rows<B> : 1;
  using Sum = std::conditional_t<std::is_integral_v<C>, int64_t, C>;
  for (int64_t m = 0; m < M; m++) {
    for (int64_t n = 0; n < N; n++) {
      Sum sum = add_C ? static_cast<Sum>(c[m * ld_c + n]) : Sum(0);
      for (int64_t k = 0; k < K; k++) {
        const B right = b[(k / side) * ld_b * side + n * side + k % side];
        sum += static_cast<Sum>(a[m * ld_a + k]) * static_cast<Sum>(right);
      }
      c[m * ld_c + n] = static_cast<C>(sum);
    }
  }
}
inline void brgemm_release(bool = true) {}

// Rows of a block side by side, as brgemm takes them.
inline void pack(int64_t K, int64_t N, int64_t ld_in, int64_t ld_out, ScalarType dt_in,
                 ScalarType dt_out, const void* in, void* out) {
  RL_CHECK(dt_in == dt_out, "pack: a block of ", dt_in, " is not packed as ", dt_out);
  const int64_t size = itemsize(dt_in), side = size >= 4 ? 1 : 4 / size;
  const char* const from = static_cast<const char*>(in);
  char* const to = static_cast<char*>(out);
  for (int64_t k = 0; k < K; k++) {
    for (int64_t n = 0; n < N; n++) {
      const char* const element = from + (k * ld_in + n) * size;
      char* const place = to + ((k / side) * ld_out * side + n * side + k % side) * size;
      for (int64_t byte = 0; byte < size; byte++) {
        place[byte] = element[byte];
      }
    }
  }
}

}  // namespace rushlight::native::cpublas
