// Copies between devices, layouts and dtypes, and fills.
#include "core/backend.h"
#include "cuda/column.h"
#include "cuda/copy.h"
#include "cuda/each.cuh"
#include "cuda/memory.h"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
struct Convert {
  char* to;
  const char* from;
  ScalarType dtype;
  __device__ void operator()(const int64_t (&at)[2]) const {
    *reinterpret_cast<T*>(to + at[0]) = load_as<T>(from + at[1], dtype);
  }
};
template <class T>
struct Move {
  char* to;
  const char* from;
  __device__ void operator()(const int64_t (&at)[2]) const {
    *reinterpret_cast<T*>(to + at[0]) = *reinterpret_cast<const T*>(from + at[1]);
  }
};
template <class T>
struct Fill {
  char* to;
  T value;
  __device__ void operator()(const int64_t (&at)[1]) const {
    *reinterpret_cast<T*>(to + at[0]) = value;
  }
};

DimVector in_bytes(DimVector strides, int64_t size) {
  for (size_t i = 0; i < strides.size(); i++) {
    strides[i] *= size;
  }
  return strides;
}

// Dimensions in the order of the first operand's strides, outermost first, so that neighbouring
// threads write neighbouring elements.
template <int N>
void sort_dims(Space<N>& space) {
  for (size_t i = 1; i < space.sizes.size(); i++) {
    for (size_t j = i; j > 0 && space.strides[0][j] > space.strides[0][j - 1]; j--) {
      std::swap(space.sizes[j], space.sizes[j - 1]);
      for (DimVector& strides : space.strides) {
        std::swap(strides[j], strides[j - 1]);
      }
    }
  }
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         (a.is_contiguous()
              ? b.is_contiguous()
              : a.impl()->is_non_overlapping_and_dense() && a.strides() == b.strides());
}

void copy_on_device(const Tensor& to, const Tensor& from) {
  const Launch launch(to.device());
  if (same_layout(to, from)) {
    check(cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), static_cast<size_t>(to.nbytes()),
                          cudaMemcpyDeviceToDevice, launch.stream()));
    return;
  }
  Space<2> space{to.sizes(),
                 {in_bytes(to.strides(), to.element_size()),
                  in_bytes(strides_over(from, to.sizes()), from.element_size())}};
  sort_dims(space);
  char* const out = static_cast<char*>(to.data_ptr());
  const char* const in = static_cast<const char*>(from.data_ptr());
  if (to.dtype() == from.dtype()) {
    visit_size(to.element_size(),
               [&](auto tag) { each(launch, space, Move<typename decltype(tag)::type>{out, in}); });
    return;
  }
  visit_dtype<set_stored>("copy_", to.dtype(), [&](auto tag) {
    each(launch, space, Convert<typename decltype(tag)::type>{out, in, from.dtype()});
  });
}

// The stream on which device memory is reached waits for what another device has queued.
void wait_for(int device, cudaStream_t stream, int other) {
  cudaEvent_t event = nullptr;
  {
    const DeviceGuard guard(Device(kCUDA, static_cast<int8_t>(other)));
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, current_stream(other)));
  }
  const DeviceGuard guard(Device(kCUDA, static_cast<int8_t>(device)));
  check(cudaStreamWaitEvent(stream, event, 0));
  (void)cudaEventDestroy(event);
}

void copy_between_devices(const Tensor& to, const Tensor& from) {
  // What crosses is dense and has the dtype of the result.
  Tensor dense = cast_raw(from, to.dtype());
  if (!same_layout(to, dense)) {
    dense = contiguous_raw(dense);
  }
  const bool direct = same_layout(to, dense);
  const Tensor landed = direct ? to : make_empty(dense.sizes(), dense.dtype(), to.device());
  const int source = from.device().index();
  const int target = to.device().index();
  const cudaStream_t stream = current_stream(source);
  wait_for(source, stream, target);
  {
    const DeviceGuard guard(from.device());
    check(cudaMemcpyPeerAsync(landed.data_ptr(), target, dense.data_ptr(), source,
                              static_cast<size_t>(dense.nbytes()), stream));
  }
  wait_for(target, current_stream(target), source);
  if (!direct) {
    copy_on_device(to, landed);
  }
}

void copy_to_device(const Tensor& to, const Tensor& from, bool non_blocking) {
  Tensor source = from;
  if (!same_layout(to, from)) {
    source = contiguous_raw(from);
  }
  const bool direct = same_layout(to, source);
  const Tensor landed = direct ? to : make_empty(source.sizes(), source.dtype(), to.device());
  const Launch launch(to.device());
  check(cudaMemcpyAsync(landed.data_ptr(), source.data_ptr(), static_cast<size_t>(source.nbytes()),
                        cudaMemcpyHostToDevice, launch.stream()));
  if (is_pinned(source.storage()->data())) {
    if (non_blocking) {
      record_pinned_use(source.storage()->data(), to.device().index(), launch.stream());
    } else {
      check(cudaStreamSynchronize(launch.stream()));
    }
  }
  if (!direct) {
    copy_on_device(to, landed);
  }
}

void copy_to_host(const Tensor& to, const Tensor& from, bool non_blocking) {
  Tensor source = cast_raw(from, to.dtype());
  if (!same_layout(to, source)) {
    source = contiguous_raw(source);
  }
  const bool direct = same_layout(to, source);
  const Tensor landed = direct ? to : make_empty(source.sizes(), source.dtype(), kCPU);
  const Launch launch(from.device());
  check(cudaMemcpyAsync(landed.data_ptr(), source.data_ptr(), static_cast<size_t>(source.nbytes()),
                        cudaMemcpyDeviceToHost, launch.stream()));
  if (direct && non_blocking && is_pinned(to.storage()->data())) {
    record_pinned_use(to.storage()->data(), from.device().index(), launch.stream());
    return;
  }
  check(cudaStreamSynchronize(launch.stream()));
  if (!direct) {
    copy_raw(to, landed);
  }
}

}  // namespace

void copy(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.numel() == 0) {
    return;
  }
  if (to.is_cpu()) {
    copy_to_host(to, from, non_blocking);
  } else if (from.is_cpu()) {
    copy_to_device(to, from, non_blocking);
  } else if (to.device() == from.device()) {
    copy_on_device(to, from);
  } else {
    copy_between_devices(to, from);
  }
}

void fill(const Tensor& to, const Scalar& value) {
  if (to.numel() == 0) {
    return;
  }
  const Launch launch(to.device());
  alignas(16) char element[16] = {};
  store_scalar(element, to.dtype(), value);
  bool same_bytes = to.impl()->is_non_overlapping_and_dense();
  for (int64_t i = 1; i < to.element_size(); i++) {
    same_bytes = same_bytes && element[i] == element[0];
  }
  if (same_bytes) {
    check(cudaMemsetAsync(to.data_ptr(), element[0], static_cast<size_t>(to.nbytes()),
                          launch.stream()));
    return;
  }
  Space<1> space{to.sizes(), {in_bytes(to.strides(), to.element_size())}};
  sort_dims(space);
  visit_size(to.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T bits;
    std::memcpy(&bits, element, sizeof bits);
    each(launch, space, Fill<T>{static_cast<char*>(to.data_ptr()), bits});
  });
}

}  // namespace cuda

void cuda::fill_(const Tensor& out, const Tensor& value) { copy_raw(out, value); }
void cuda::zero_(const Tensor& out) { fill_raw(out, 0); }

// Its parts are two copies, into every second number.
void cuda::_complex(const Tensor& out, const Tensor& real, const Tensor& imag) {
  DimVector strides = out.strides();
  for (size_t i = 0; i < strides.size(); i++) {
    strides[i] *= 2;
  }
  const ScalarType part = to_real(out.dtype());
  copy_raw(make_view(out, {out.sizes(), strides, 2 * out.storage_offset(), part}), real);
  copy_raw(make_view(out, {out.sizes(), strides, 2 * out.storage_offset() + 1, part}), imag);
}

void cuda::cat(const Tensor& out, TensorList tensors, int64_t dim) {
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.dim() == 1 && t.numel() == 0 && out.dim() != 1) {
      continue;  // a legacy empty tensor
    }
    ViewSpec place{out.sizes(), out.strides(), out.storage_offset() + at * out.strides()[dim]};
    place.sizes[dim] = t.sizes()[dim];
    at += t.sizes()[dim];
    if (t.numel() != 0) {
      copy_raw(make_view(out, place), t);
    }
  }
}

}  // namespace rushlight
