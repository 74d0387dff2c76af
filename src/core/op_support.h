// What generated op wrappers and shape functions use: output specifications, making outputs, dimension checks.
// A shape function checks an op's contract and says what comes out:  OutSpec shape::softmax(const Tensor& self,
// int64_t& dim, ...). Non-tensor arguments arrive as mutable references, so it may normalise them for the kernel
// (wrap a negative dim, fill in a default); tensors arrive as `Tensor&` and may be replaced (`self = self.contiguous()`).
#pragma once

#include <array>

#include <rushlight/autograd.h>
#include <rushlight/mode.h>
#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>

namespace rushlight {

struct OutSpec {
  DimVector sizes;
  ScalarType dtype;
  DimVector strides = {};                              // empty: by format
  MemoryFormat format = MemoryFormat::Contiguous;      // Contiguous or ChannelsLast(3d)
};
template <size_t N>
using OutSpecs = std::array<OutSpec, N>;

// Geometry of a view: shares the storage of its base.
struct ViewSpec {
  DimVector sizes;
  DimVector strides;
  int64_t offset = 0;  // in elements of the result's dtype, absolute in the storage
  ScalarType dtype = ScalarType::Undefined;  // Undefined: that of the base
};

// -ndim..ndim-1 → 0..ndim-1; a 0-d tensor takes -1 and 0. IndexError: "Dimension out of range (expected to be in
// range of [-2, 1], but got 3)".
RL_API int64_t wrap_dim(int64_t dim, int64_t ndim);
// Wraps each; an empty list means all when `empty_is_all`; duplicates raise RuntimeError.
RL_API DimVector wrap_dims(IntArrayRef dims, int64_t ndim, bool empty_is_all = true);
RL_API DimVector contiguous_strides(IntArrayRef sizes);
RL_API DimVector channels_last_strides(IntArrayRef sizes);  // 4-d or 5-d
// "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1".
RL_API DimVector broadcast_sizes(IntArrayRef a, IntArrayRef b);
RL_API bool is_expandable_to(IntArrayRef from, IntArrayRef to);
RL_API int64_t product(IntArrayRef sizes);  // overflow raises
RL_API DimVector reduced_sizes(IntArrayRef sizes, IntArrayRef wrapped_dims, bool keepdim);

// Uninitialised tensor. No op, no autograd: what kernels and wrappers allocate with.
RL_API Tensor make_empty(IntArrayRef sizes, ScalarType dtype, Device device);
RL_API Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device);
RL_API Tensor make_output(const OutSpec& spec, Device device);
// Dense in the memory order of `like` (what preserve_format means), new dtype.
RL_API Tensor make_empty_like(const Tensor& like, ScalarType dtype);
RL_API Tensor make_view(const Tensor& base, const ViewSpec& spec);  // bounds-checked against the storage
RL_API Tensor make_number(const Scalar& value, Device device = kCPU);  // 0-d wrapped number

// out=: resizes `out` (warning when it was not empty), checks that the result can be cast to its dtype, and returns
// the tensor that the kernel writes into: `out` itself, or a temporary where dtype or strides differ or where `out`
// shares memory with an input. `finish_out` copies a temporary back.
RL_API Tensor begin_out(const char* op, const Tensor& out, const OutSpec& spec, TensorList inputs);
// New contiguous sizes; the storage grows when needed and keeps its contents.
RL_API void resize_raw(const Tensor& t, IntArrayRef sizes);
RL_API void finish_out(const Tensor& out, const Tensor& written);

enum class Overlap { No, Full, Partial };
RL_API Overlap memory_overlap(const Tensor& a, const Tensor& b);
RL_API bool has_internal_overlap(const Tensor& t);  // expanded
RL_API void check_no_internal_overlap(const char* op, const Tensor& t);
RL_API void check_no_partial_overlap(const char* op, const Tensor& out, const Tensor& in);

// All defined tensors on one device (0-d CPU tensors may meet others): RuntimeError "Expected all tensors to be on the
// same device, but found at least two devices, cuda:0 and cpu!".
RL_API Device common_device(const char* op, TensorList tensors);
[[noreturn]] RL_API void no_kernel(const char* op, Device device);  // NotImplementedError

// Copies between any two layouts and dtypes with broadcasting; below autograd and modes. (src/core/copy.cpp)
RL_API void copy_raw(const Tensor& to, const Tensor& from);
RL_API void fill_raw(const Tensor& to, const Scalar& value);
// Below autograd: `t` itself when it fits, else a copy.
RL_API Tensor cast_raw(const Tensor& t, ScalarType dtype);
RL_API Tensor contiguous_raw(const Tensor& t);

}  // namespace rushlight
