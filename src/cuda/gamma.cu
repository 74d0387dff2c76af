// Gamma and Dirichlet numbers, computed in double precision whatever the dtype.
#include "kernels/gamma_random.h"

#include <limits>

#include "cuda/column.h"
#include "cuda/draw.h"
#include "cuda/each.cuh"
#include "kernels/philox.h"

namespace rushlight {

namespace cuda {

namespace {

// A gamma number needs an unknown number of draws: they come from streams of their own, numbered
// above the elements.
struct GammaNumber {
  double* out;
  const double* shapes;
  double least;
  bool or_log;  // for rows that are divided by their sums
  Draw draw;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const uint64_t element = static_cast<uint64_t>(at[0]);
    uint64_t drawn = 0;
    const auto next = [&] {
      drawn++;
      return philox::numbers(draw.seed, element | drawn << 44, draw.offset);
    };
    const auto unit = [&] {
      const philox::Numbers r = next();
      return philox::unit_double(r.at[0], r.at[1]);
    };
    const auto normal = [&] {
      const philox::Numbers r = next();
      const double u = 1 - philox::unit_double(r.at[0], r.at[1]);
      return ::sqrt(-2 * ::log(u)) * ::cospi(2 * philox::unit_double(r.at[2], r.at[3]));
    };
    if (or_log) {
      out[at[0]] = gamma::gamma_or_log(shapes[at[0]], unit, normal);
      return;
    }
    const double x = gamma::standard_gamma(shapes[at[0]], unit, normal);
    out[at[0]] = x < least ? least : x;
  }
};

// Shares of the sum of a row.
struct Shares {
  double* numbers;
  int64_t row;
  double least;
  double most;
  __device__ void operator()(const int64_t (&at)[1]) const {
    gamma::divide_by_sum(numbers + at[0] * row, row, least, most);
  }
};

Tensor gamma_numbers(const Tensor& self, double least, bool or_log, const Generator& generator) {
  const Draw draw = draw_from(generator, self.device());
  const Tensor shapes = contiguous_raw(cast_raw(self, kFloat64));
  const Tensor numbers = make_empty(self.sizes(), kFloat64, self.device());
  each(Launch(self.device()), Space<1>{{self.numel()}, {DimVector{1}}},
       GammaNumber{numbers.data<double>(), shapes.data<double>(), least, or_log, draw});
  return numbers;
}

}  // namespace

}  // namespace cuda

void cuda::_standard_gamma(const Tensor& out, const Tensor& self, const Generator& generator) {
  visit_dtype<set_floats>("gamma_cuda", out.dtype(), [&](auto tag) {
    constexpr double least = std::numeric_limits<typename decltype(tag)::type>::min();
    copy_raw(out, gamma_numbers(self, least, false, generator));
  });
}

void cuda::_sample_dirichlet(const Tensor& out, const Tensor& self, const Generator& generator) {
  visit_dtype<set_floats>("dirichlet_cuda", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr double least = std::numeric_limits<T>::min();
    constexpr double most = 1 - std::numeric_limits<T>::epsilon() / 2;
    const Tensor numbers = gamma_numbers(self, 0, true, generator);
    const int64_t row = out.dim() == 0 ? 1 : out.size(-1);
    const int64_t rows = row == 0 ? 0 : out.numel() / row;
    each(Launch(out.device()), Space<1>{{rows}, {DimVector{1}}},
         Shares{numbers.data<double>(), row, least, most});
    copy_raw(out, numbers);
  });
}

}  // namespace rushlight
