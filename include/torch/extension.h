// For extensions of Python: <torch/torch.h> and what makes functions of a module; with pybind11,
// where it is installed, its conversions of tensors.
#pragma once

#include <rushlight/library.h>
#include <rushlight/python_variable.h>
#include <torch/torch.h>

#if !defined(RL_NO_PYBIND11) && __has_include(<pybind11/pybind11.h>)
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;

namespace pybind11::detail {
template <>
struct type_caster<rushlight::Tensor> {
  PYBIND11_TYPE_CASTER(rushlight::Tensor, const_name("torch.Tensor"));
  bool load(handle source, bool) {
    return rushlight::bind::Converter<rushlight::Tensor>::load(source.ptr(), value);
  }
  static handle cast(const rushlight::Tensor& t, return_value_policy, handle) {
    return rushlight::bind::Converter<rushlight::Tensor>::give(t);
  }
};
}  // namespace pybind11::detail
#endif
