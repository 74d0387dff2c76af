// Products of matrices of integers, which cuBLASLt lacks: a thread for each element of the result.
#include "cuda/each.cuh"
#include "cuda/matmul.h"

namespace rushlight::cuda {

namespace {

template <class T>
struct Product {
  T* out;
  const T* left;
  const T* right;
  int64_t depth;
  int64_t left_stride;
  int64_t right_stride;
  T alpha;
  T beta;                                                     // 0: what stands in `out` is not read
  __device__ void operator()(const int64_t (&at)[3]) const {  // out, row of left, column of right
    T sum = 0;
    for (int64_t k = 0; k < depth; k++) {
      const T x = left[at[1] + k * left_stride];
      const T y = right[at[2] + k * right_stride];
      sum = static_cast<T>(sum + x * y);
    }
    const T kept = beta == T(0) ? T(0) : static_cast<T>(beta * out[at[0]]);
    out[at[0]] = static_cast<T>(kept + alpha * sum);
  }
};

}  // namespace

void multiply_integers(const char* op, const Tensor& out, const Tensor& left, const Tensor& right,
                       const Scalar& beta, const Scalar& alpha) {
  const auto batch_stride = [](const Tensor& t) { return t.size(0) == 1 ? 0 : t.strides()[0]; };
  const Space<3> space{out.sizes(),
                       {out.strides(), DimVector{batch_stride(left), left.strides()[1], 0},
                        DimVector{batch_stride(right), 0, right.strides()[2]}}};
  const Launch launch(out.device());
  visit_dtype<set_integers>(op, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, space,
         Product<T>{out.data<T>(), left.data<T>(), right.data<T>(), left.size(2), left.strides()[2],
                    right.strides()[1], alpha.as<T>(), beta.as<T>()});
  });
}

}  // namespace rushlight::cuda
