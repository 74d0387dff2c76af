// Fourier transforms of lines of any length, by pocketfft: for float and double, which are
// sources of their own (pocket_float.cpp, pocket_double.cpp), for each takes long to compile.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

namespace rushlight::cpu::RL_ISA {

// The shape of the real or larger side, strides in bytes, and the dimension that is transformed.
struct PocketLines {
  std::vector<size_t> shape;
  std::vector<ptrdiff_t> strides_in;
  std::vector<ptrdiff_t> strides_out;
  size_t axis;
};

template <class R>
void pocket_c2c(const PocketLines& lines, bool forward, const std::complex<R>* in,
                std::complex<R>* out, R factor);
template <class R>
void pocket_r2c(const PocketLines& lines, const R* in, std::complex<R>* out, R factor);
template <class R>
void pocket_c2r(const PocketLines& lines, const std::complex<R>* in, R* out, R factor);

}  // namespace rushlight::cpu::RL_ISA
