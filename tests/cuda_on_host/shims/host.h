// What the CUDA compiler gives a kernel, for a processor: src/cuda is compiled as C++ with this in
// front (build.py), so that its kernels run where there is no GPU. Threads of a block run one after
// the other and change places where they wait (host.cpp). Add what a new kernel calls here.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __noinline__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ inline
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)

namespace on_host {

struct Index {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};
extern Index thread_index;
extern Index block_index;
extern Index grid_size;

void run(dim3 grid, unsigned block, void (*thread)(void*), void* kernel);
void wait_for_block();
void wait_for_warp();
// Ends the kernel; the next question about errors is told.
[[noreturn]] void fail(const char* what);

inline constexpr unsigned most_threads = 1024;
inline constexpr unsigned warp = 32;
extern unsigned char exchanged[most_threads][64];

// `kernel` calls the kernel with its arguments, for the thread that thread_index says.
template <class F>
void launch(dim3 grid, unsigned block, F kernel) {
  run(grid, block, [](void* p) { (*static_cast<F*>(p))(); }, &kernel);
}

// x of another lane of the warp, or the own one where there is no such lane.
template <class T>
T exchange(T x, unsigned lane) {
  static_assert(sizeof(T) <= sizeof exchanged[0]);
  const unsigned thread = thread_index.x;
  std::memcpy(exchanged[thread], &x, sizeof x);
  wait_for_warp();
  if (lane < warp) {
    std::memcpy(&x, exchanged[thread / warp * warp + lane], sizeof x);
  }
  wait_for_warp();
  return x;
}

}  // namespace on_host

#define threadIdx ::on_host::thread_index
#define blockIdx ::on_host::block_index
#define gridDim ::on_host::grid_size
#define RL_DEVICE_ASSERT(condition) ((condition) ? void() : ::on_host::fail(#condition))

inline void __syncthreads() { on_host::wait_for_block(); }
template <class T>
T __shfl_down_sync(unsigned, T x, int step) {
  return on_host::exchange(x, threadIdx.x % on_host::warp + static_cast<unsigned>(step));
}
template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return on_host::exchange(x, static_cast<unsigned>(lane));
}
template <class T>
T atomicAdd(T* p, T x) {
  return std::exchange(*p, *p + x);
}
template <class T>
T atomicCAS(T* p, T expected, T x) {
  return *p == expected ? std::exchange(*p, x) : *p;
}
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
