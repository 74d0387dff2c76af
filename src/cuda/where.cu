// `where` moves elements, whatever their dtype: its kernel is no loop over a formula.
#include "cuda/column.h"
#include "cuda/pointwise.cuh"

namespace rushlight {

namespace cuda {
namespace {

// where moves elements; operands of another dtype than the result's are converted on the way.
template <class T>
__global__ void __launch_bounds__(block_size)
    where_kernel(uint32_t n, StridedPorts<3> ports, Walk<4> walk, T yes, T no) {
  const uint32_t element = blockIdx.x * block_size + threadIdx.x;
  if (element >= n) {
    return;
  }
  int64_t at[4];
  walk.offsets(element, at);
  const bool condition = *reinterpret_cast<const uint8_t*>(ports.data[1] + at[1]) != 0;
  const int chosen = condition ? 2 : 3;
  const char* const p = ports.data[chosen];
  const T value =
      p == nullptr ? (condition ? yes : no) : load_as<T>(p + at[chosen], ports.dtype[chosen]);
  store_as<T>(ports.data[0] + at[0], ports.dtype[0], value);
}

template <class T>
void launch_where(const PointwiseWork& work, cudaStream_t stream) {
  StridedPorts<3> ports{};
  for (int i = 0; i < 4; i++) {
    ports.data[i] = work.data[i];
    ports.dtype[i] = work.dtype[i];
  }
  const T yes = work.data[2] == nullptr ? work.numbers[1].as<T>() : T();
  const T no = work.data[3] == nullptr ? work.numbers[2].as<T>() : T();
  where_kernel<T><<<blocks_for(work.numel), block_size, 0, stream>>>(
      static_cast<uint32_t>(work.numel), ports, walk_of<4>(work), yes, no);
}

}  // namespace
}  // namespace cuda

void cuda::where(const TensorIterator& it, const Scalar*) {
  const PointwiseWork work = describe(it);
  RL_CHECK(work.data[1] != nullptr, "where: the condition must lie on ", it.device());
  const Launch launch(it.device());
  visit_dtype<set_all>("where", it.common_dtype(), [&](auto tag) {
    for_each_part(work, [&](const PointwiseWork& part) {
      launch_where<typename decltype(tag)::type>(part, launch.stream());
    });
  });
  launch.done();
}

}  // namespace rushlight
