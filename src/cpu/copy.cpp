// Copies, fills and conversions below the ops: any dtype to any dtype, any layout, broadcasting.
#include "cpu/copy.h"

#include "core/backend.h"
#include "core/iterator.h"
#include "core/op_support.h"
#include "generated/contracts.h"

namespace rushlight {

void copy_raw(const Tensor& to, const Tensor& from, bool non_blocking) {
  RL_CHECK(is_expandable_to(from.sizes(), to.sizes()), "the output of shape ", to.sizes(),
           " doesn't match the broadcast shape ", broadcast_sizes(to.sizes(), from.sizes()));
  if (to.numel() == 0 || to.is_meta() || from.is_meta() || to.is_same(from)) {
    return;
  }
  const Overlap overlap = memory_overlap(to, from);
  if (overlap == Overlap::Full) {
    return;
  }
  if (overlap != Overlap::No) {
    Tensor apart = make_empty_like(from, from.dtype());
    copy_raw(apart, from);
    copy_raw(to, apart);
    return;
  }
  if (!to.is_cpu() || !from.is_cpu()) {
    const Device device = to.is_cpu() ? from.device() : to.device();
    return backend_of(device.type()).copy(to, from, non_blocking);
  }
  const bool together = to.dtype() == from.dtype() && to.sizes() == from.sizes() &&
                        (to.is_contiguous() ? from.is_contiguous()
                                            : to.impl()->is_non_overlapping_and_dense() &&
                                                  to.strides() == from.strides());
  if (together) {
    cpu::copy_kernels().copy_bytes(static_cast<char*>(to.data_ptr()),
                                   static_cast<const char*>(from.data_ptr()), to.nbytes());
    return;
  }
  TensorIterator it("copy_");
  it.add_output(to);
  it.add_input(from);
  it.build_to_output();
  cpu::copy_kernels().copy(it);
}

void fill_raw(const Tensor& to, const Scalar& value) {
  if (to.numel() == 0 || to.is_meta()) {
    return;
  }
  if (!to.is_cpu()) {
    return backend_of(to.device().type()).fill(to, value);
  }
  alignas(16) char element[16];
  store_scalar(element, to.dtype(), value);
  TensorIterator it("fill_");
  it.add_output(to);
  it.add_number(value);
  it.build_to_output();
  cpu::copy_kernels().fill(it, element);
}

Tensor expand_raw(const Tensor& t, IntArrayRef sizes) {
  return t.sizes() == sizes ? t : make_view(t, views::expand(t, sizes, false));
}

Tensor cast_raw(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) {
    return t;
  }
  Tensor out = make_empty_like(t, dtype);
  copy_raw(out, t);
  return out;
}

Tensor contiguous_raw(const Tensor& t, MemoryFormat format) {
  if (t.is_contiguous(format)) {
    return t;
  }
  Tensor out = make_output({t.sizes(), t.dtype(), {}, format}, t.device());
  copy_raw(out, t);
  return out;
}

}  // namespace rushlight
