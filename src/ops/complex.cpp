// Complex tensors and their parts: views between complex numbers and pairs, and making complex
// numbers from parts.
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

// The real parts of a complex tensor; the imaginary ones lie one element further.
ViewSpec real_parts(const Tensor& self) {
  ViewSpec spec;
  spec.sizes = self.sizes();
  for (const int64_t stride : self.strides()) {
    spec.strides.push_back(2 * stride);
  }
  spec.offset = 2 * self.storage_offset();
  spec.dtype = to_real(self.dtype());
  return spec;
}

}  // namespace

ViewSpec views::view_as_real(const Tensor& self) {
  RL_CHECK(is_complex(self.dtype()), "view_as_real is only supported for complex tensors");
  ViewSpec spec = real_parts(self);
  spec.sizes.push_back(2);
  spec.strides.push_back(1);
  return spec;
}

ViewSpec views::view_as_complex(const Tensor& self) {
  RL_CHECK(
      contains(set_floats | set_Half, self.dtype()),
      "view_as_complex is only supported for floating tensors, Half, Float or Double, not for ",
      enum_name(self.dtype()));
  RL_CHECK(self.dim() > 0, "view_as_complex: a number has no last dimension of size 2");
  RL_CHECK(
      self.size(-1) == 2,
      "view_as_complex: the last dimension must have size 2, for real and imaginary part, but has ",
      self.size(-1));
  RL_CHECK(self.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  RL_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  ViewSpec spec;
  for (int64_t d = 0; d + 1 < self.dim(); d++) {
    RL_CHECK(self.strides()[d] % 2 == 0 || self.numel() == 0,
             "view_as_complex: Tensor must have a stride divisible by 2 in dimension ", d,
             ", but it is ", self.strides()[d], ". contiguous() makes one");
    spec.sizes.push_back(self.sizes()[d]);
    spec.strides.push_back(self.strides()[d] / 2);
  }
  spec.offset = self.storage_offset() / 2;
  spec.dtype = to_complex(self.dtype());
  return spec;
}

namespace {

// The two numbers of which a complex one is made are floats of one dtype.
void check_parts(const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    RL_CHECK(contains(set_floats | set_Half, t->dtype()),
             "Expected two parts of a complex number that are Half, Float or Double, but got ",
             enum_name(a.dtype()), " and ", enum_name(b.dtype()));
  }
  RL_CHECK(a.dtype() == b.dtype(),
           "both parts must have one dtype: Expected object of scalar type ", enum_name(a.dtype()),
           ", as the first is, not ", enum_name(b.dtype()));
}

}  // namespace

OutSpec shape::_complex(Tensor& real, Tensor& imag) {
  check_parts(real, imag);
  return {broadcast_sizes(real.sizes(), imag.sizes()), to_complex(real.dtype())};
}

namespace cpu {

void _complex(const Tensor& out, const Tensor& real, const Tensor& imag) {
  ViewSpec part = real_parts(out);
  copy_raw(make_view(out, part), real);
  part.offset++;
  copy_raw(make_view(out, part), imag);
}

}  // namespace cpu

namespace composite {

Tensor real(const Tensor& self) {
  return is_complex(self.dtype()) ? view_as_real(self).select(-1, 0) : self;
}
Tensor imag(const Tensor& self) {
  RL_CHECK(
      is_complex(self.dtype()),
      "imag is not implemented for real tensors: it would be a view of zeros that have no memory");
  return view_as_real(self).select(-1, 1);
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  check_parts(abs, angle);
  return rushlight::_complex(abs * angle.cos(), abs * angle.sin());
}
Tensor resolve_conj(const Tensor& self) { return self; }
Tensor resolve_neg(const Tensor& self) { return self; }
bool is_conj(const Tensor&) { return false; }
bool is_neg(const Tensor&) { return false; }

}  // namespace composite

}  // namespace rushlight
