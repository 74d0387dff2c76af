// Tensors in extensions made with nanobind: nanobind's headers and its conversion of tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <rushlight/python.h>
#include <torch/torch.h>

namespace nanobind::detail {
template <>
struct type_caster<rushlight::Tensor> {
  NB_TYPE_CASTER(rushlight::Tensor, const_name("torch.Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return rushlight::bind::Converter<rushlight::Tensor>::load(source.ptr(), value);
  }
  static handle from_cpp(const rushlight::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return rushlight::bind::Converter<rushlight::Tensor>::give(t);
  }
};
}  // namespace nanobind::detail
