// Checks of arguments as extensions write them (<ATen/TensorUtils.h>), and tensors that may be
// borrowed.
#pragma once

#include <initializer_list>

#include <rushlight/libtorch.h>

namespace rushlight {

// An argument with its name and its place in the call, for messages.
struct TensorArg {
  const Tensor& tensor;
  const char* name;
  int pos;
  TensorArg(const Tensor& tensor, const char* name, int pos)
      : tensor(tensor), name(name), pos(pos) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
using CheckedFrom = const char*;
inline void append(std::string& out, const TensorArg& t) {
  out += str("argument #", t.pos, " '", t.name, "'");
}

inline void checkDim(CheckedFrom c, const TensorArg& t, int64_t dim) {
  RL_CHECK(t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(),
           "-dimensional tensor for ", t, " (while checking arguments for ", c, ")");
}
inline void checkDim(CheckedFrom c, const Tensor& t, const char* name, int pos, int64_t dim) {
  checkDim(c, TensorArg(t, name, pos), dim);
}
// At least `from` and fewer than `to` dimensions.
inline void checkDimRange(CheckedFrom c, const TensorArg& t, int64_t from, int64_t to) {
  RL_CHECK(t->dim() >= from && t->dim() < to, "Expected ", from, " to ", to - 1,
           " dimensions, but got ", t->dim(), "-dimensional tensor for ", t,
           " (while checking arguments for ", c, ")");
}
inline void checkSize(CheckedFrom c, const TensorArg& t, IntArrayRef sizes) {
  checkDim(c, t, static_cast<int64_t>(sizes.size()));
  RL_CHECK(t->sizes() == sizes, "Expected tensor of size ", sizes, ", but got tensor of size ",
           t->sizes(), " for ", t, " (while checking arguments for ", c, ")");
}
inline void checkSize(CheckedFrom c, const TensorArg& t, int64_t dim, int64_t size) {
  RL_CHECK(t->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim,
           ", but got size ", t->size(dim), " for ", t, " (while checking arguments for ", c, ")");
}
inline void checkNumel(CheckedFrom c, const TensorArg& t, int64_t numel) {
  RL_CHECK(t->numel() == numel, "Expected tensor for ", t, " to have ", numel,
           " elements; but it actually has ", t->numel(),
           " elements (while checking arguments for ", c, ")");
}
inline void checkContiguous(CheckedFrom c, const TensorArg& t) {
  RL_CHECK(t->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ", t,
           " (while checking arguments for ", c, ")");
}
inline void checkDefined(CheckedFrom c, const TensorArg& t) {
  RL_CHECK(t->defined(), "Expected tensor for ", t,
           " to be non-null, but it was undefined (while checking arguments for ", c, ")");
}
inline void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkDefined(c, t);
  }
}
inline void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkContiguous(c, t);
  }
}
inline void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType dtype) {
  RL_CHECK(t->scalar_type() == dtype, "Expected tensor for ", t, " to have scalar type ", dtype,
           "; but got ", t->scalar_type(), " instead (while checking arguments for ", c, ")");
}
inline void checkScalarTypes(CheckedFrom c, const TensorArg& t, ArrayRef<ScalarType> dtypes) {
  bool found = false;
  for (const ScalarType dtype : dtypes) {
    found = found || t->scalar_type() == dtype;
  }
  RL_CHECK(found, "Expected tensor for ", t, " to have one of other scalar types; but got ",
           t->scalar_type(), " instead (while checking arguments for ", c, ")");
}
inline void checkSameDim(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  RL_CHECK(a->dim() == b->dim(), "Expected tensor for ", a, " to have the same dimension as ", b,
           "; but ", a->dim(), " does not equal ", b->dim(), " (while checking arguments for ", c,
           ")");
}
inline void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  RL_CHECK(a->sizes() == b->sizes(), "Expected tensor for ", a, " to have same size as tensor for ",
           b, "; but ", a->sizes(), " does not equal ", b->sizes(),
           " (while checking arguments for ", c, ")");
}
inline void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  RL_CHECK(a->scalar_type() == b->scalar_type(), "Expected tensor for ", a,
           " to have the same type as tensor for ", b, "; but type ", a->scalar_type(),
           " does not equal ", b->scalar_type(), " (while checking arguments for ", c, ")");
}
inline void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkSameType(c, tensors[0], t);
  }
}
inline void checkAllSameSize(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkSameSize(c, tensors[0], t);
  }
}

inline void checkSameNumel(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  RL_CHECK(a->numel() == b->numel(), "Expected tensor for ", a,
           " to have same number of elements as tensor for ", b, "; but ", a->numel(),
           " does not equal ", b->numel(), " (while checking arguments for ", c, ")");
}
inline void checkAllSameNumel(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkSameNumel(c, tensors[0], t);
  }
}
// Both on one GPU.
inline void checkSameGPU(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  RL_CHECK(a->is_cuda() && b->is_cuda(), "Tensor for ", a, " is on ", a->device(), ", Tensor for ",
           b, " is on ", b->device(), ", but expected it to be on GPU",
           " (while checking arguments for ", c, ")");
  RL_CHECK(a->get_device() == b->get_device(), "Expected tensor for ", a,
           " to have the same device as tensor for ", b, "; but device ", a->get_device(),
           " does not equal ", b->get_device(), " (while checking arguments for ", c, ")");
}
inline void checkAllSameGPU(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    checkSameGPU(c, tensors[0], t);
  }
}
inline void checkDeviceType(CheckedFrom c, TensorList tensors, DeviceType type) {
  for (const Tensor& t : tensors) {
    RL_CHECK(!t.defined() || t.device().type() == type, "Expected tensor to have ", type,
             " DeviceType, but got tensor with ", t.device().type(),
             " DeviceType (while checking arguments for ", c, ")");
  }
}
inline void checkLayout(CheckedFrom c, TensorList tensors, Layout layout) {
  for (const Tensor& t : tensors) {
    RL_CHECK(!t.defined() || t.layout() == layout, "Expected tensor to have ", layout,
             " Layout, but got tensor with ", t.layout(), " Layout (while checking arguments for ",
             c, ")");
  }
}
inline void checkLayout(CheckedFrom c, const Tensor& t, Layout layout) {
  checkLayout(c, TensorList(&t, 1), layout);
}
inline void check_dim_size(const Tensor& t, int64_t dims, int64_t dim, int64_t size) {
  RL_CHECK(t.dim() == dims && t.size(dim) == size, "Expected a tensor of dimension ", dims,
           " and tensor.size[", dim, "] == ", size, " but got: dimension ", t.dim(), " and sizes ",
           t.sizes());
}

// A value that is held or only pointed to.
template <class T>
class MaybeOwned {
 public:
  static MaybeOwned borrowed(const T& value) { return MaybeOwned(value); }
  template <class... A>
  static MaybeOwned owned(A&&... arguments) {
    return MaybeOwned(T(std::forward<A>(arguments)...));
  }
  const T& operator*() const { return held_; }
  const T* operator->() const { return &held_; }

 private:
  explicit MaybeOwned(T value) : held_(std::move(value)) {}
  T held_;  // a handle, which is counted
};
class OptionalTensorRef {
 public:
  OptionalTensorRef() = default;
  OptionalTensorRef(const Tensor& t) : tensor_(t) {}
  bool has_value() const { return tensor_.defined(); }
  explicit operator bool() const { return has_value(); }
  const Tensor& operator*() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

 private:
  Tensor tensor_;
};

}  // namespace rushlight
