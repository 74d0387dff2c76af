// Modules and datasets live in torch, so that programs can add to torch::nn and to torch::data: a
// namespace of that name elsewhere would be hidden by the program's. The namespace between keeps
// the symbols apart from libtorch's, where both are loaded.
#pragma once

namespace rushlight {}

namespace torch {
inline namespace of_rushlight {
using namespace ::rushlight;
namespace nn {}
namespace data {}
}  // namespace of_rushlight
}  // namespace torch

namespace rushlight {
namespace nn = ::torch::nn;
namespace data = ::torch::data;
}  // namespace rushlight
