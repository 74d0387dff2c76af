// libtorch's namespaces: each has all that rushlight has, and what programs add to it; as libtorch
// has it, torch sees what is added to at, and at what is added to c10.
//
// Modules and datasets live in torch, so that programs can add to torch::nn and torch::data: a
// namespace of that name elsewhere would be hidden by the program's. The namespace between keeps
// their symbols apart from libtorch's, where both are loaded.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/factories.h>
#include <rushlight/serialize.h>

namespace c10 {
using namespace rushlight;
}
namespace at {
using namespace c10;
using rushlight::Tensor;  // a program may have another one outside
}  // namespace at
namespace torch {
using namespace at;
using rushlight::Tensor;
inline namespace of_rushlight {
// What headers say here unqualified: a program may have classes of these names before it includes
// them, or be using a namespace that has (cv::Scalar).
using rushlight::ArrayRef;
using rushlight::Device;
using rushlight::Error;
using rushlight::IntArrayRef;
using rushlight::kCPU;
using rushlight::NoGradGuard;
using rushlight::Scalar;
using rushlight::ScalarType;
using rushlight::StateDict;
using rushlight::TensorOptions;
namespace nn {}
namespace data {}
}  // namespace of_rushlight
}  // namespace torch

namespace rushlight {
namespace nn = ::torch::nn;
namespace data = ::torch::data;
}  // namespace rushlight
