// Poisson and binomial numbers, computed in double precision whatever the dtype: their formulas are
// long, and compiled once.
#undef NDEBUG
#include <cassert>

#include "cuda/column.h"
#include "cuda/draw.h"
#include "cuda/each.cuh"
#include "kernels/counts.h"
#include "kernels/philox.h"

namespace rushlight {

namespace cuda {

namespace {

// A count needs an unknown number of draws: they come from streams of their own, numbered above the
// elements.
struct ManyNumbers {
  Draw draw;
  uint64_t element;
  mutable uint64_t drawn = 0;
  __device__ double operator()() const {
    drawn++;
    const philox::Numbers r = philox::numbers(draw.seed, element | drawn << 44, draw.offset);
    return philox::unit_double(r.at[0], r.at[1]);
  }
};

struct Poisson {
  double* out;
  const double* rates;
  Draw draw;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const double rate = rates[at[0]];
    assert(rate >= 0 && "invalid Poisson rate, expected rate to be non-negative");
    out[at[0]] = counts::poisson_one(rate, ManyNumbers{draw, static_cast<uint64_t>(at[0])});
  }
};
struct Binomial {
  double* out;
  const double* trials;
  const double* p;
  Draw draw;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const double n = trials[at[0]];
    assert(n != HUGE_VAL && "binomial: expected a finite number of trials");
    out[at[0]] =
        counts::binomial_one(::floor(n), p[at[0]], ManyNumbers{draw, static_cast<uint64_t>(at[0])});
  }
};

void check_floating(const char* op, const Tensor& out) {
  if (!is_floating(out.dtype())) {
    dtype_not_implemented(op, out.dtype());
  }
}
Tensor in_double(const Tensor& t) { return contiguous_raw(cast_raw(t, kFloat64)); }

}  // namespace

}  // namespace cuda

void cuda::poisson(const Tensor& out, const Tensor& self, const Generator& generator) {
  check_floating("poisson", out);
  const Draw draw = draw_from(generator, out.device());
  const Tensor rates = in_double(self);
  const Tensor numbers = make_empty(out.sizes(), kFloat64, out.device());
  each(Launch(out.device()), Space<1>{{out.numel()}, {DimVector{1}}},
       Poisson{numbers.data<double>(), rates.data<double>(), draw});
  copy_raw(out, numbers);
}

void cuda::binomial(const Tensor& out, const Tensor& count, const Tensor& prob,
                    const Generator& generator) {
  check_floating("binomial_cuda", out);
  const Draw draw = draw_from(generator, out.device());
  const Tensor trials = in_double(count);
  const Tensor p = in_double(prob);
  const Tensor numbers = make_empty(out.sizes(), kFloat64, out.device());
  each(Launch(out.device()), Space<1>{{out.numel()}, {DimVector{1}}},
       Binomial{numbers.data<double>(), trials.data<double>(), p.data<double>(), draw});
  copy_raw(out, numbers);
}

}  // namespace rushlight
