#include "cpu/step_lists.h"

#include <algorithm>

#include "core/op_support.h"

namespace rushlight::cpu {

StepLists::StepLists(ArrayRef<TensorList> lists) {
  const TensorList params = lists.front();
  runs_.resize(params.size());
  offsets_.resize(params.size() + 1);
  device_ = params.empty() ? device_ : params[0].device();
  for (size_t i = 0; i < params.size(); i++) {
    const Tensor& p = params[i];
    const bool dense = p.impl()->is_non_overlapping_and_dense();
    runs_[i].numel = p.numel();
    runs_[i].dtype = p.dtype();
    offsets_[i + 1] = offsets_[i] + p.numel();
    for (size_t k = 0; k < lists.size(); k++) {
      char*& data = runs_[i].data[k];
      data = nullptr;
      if (lists[k].empty()) {
        continue;
      }
      const Tensor& t = lists[k][i];
      if (dense ? t.strides() == p.strides() || (t.is_contiguous() && p.is_contiguous())
                : t.is_contiguous()) {
        data = static_cast<char*>(t.data_ptr());
        continue;
      }
      Tensor ordered = dense ? make_empty_strided(p.sizes(), p.strides(), p.dtype(), p.device())
                             : make_empty(p.sizes(), p.dtype(), p.device());
      copy_raw(ordered, t);
      data = static_cast<char*>(ordered.data_ptr());
      (k == 1 ? kept_ : to_write_).push_back({t, ordered});
    }
  }
}

StepLists::~StepLists() = default;

void StepLists::write_back() {
  for (const Copy& c : to_write_) {
    copy_raw(c.original, c.ordered);
  }
}

size_t StepLists::find(int64_t element) const {
  return static_cast<size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), element) -
                             offsets_.begin()) -
         1;
}

std::vector<double> count_steps(TensorList steps) {
  std::vector<double> counts(steps.size());
  for (size_t i = 0; i < steps.size(); i++) {
    float& count = *steps[i].data<float>();
    count += 1;
    counts[i] = count;
  }
  return counts;
}

std::vector<double> multiply_products(TensorList products, const std::vector<double>& factors) {
  std::vector<double> values(products.size());
  for (size_t i = 0; i < products.size(); i++) {
    if (products[i].dtype() == kFloat32) {
      values[i] = *products[i].data<float>() *= static_cast<float>(factors[i]);
    } else {
      values[i] = *products[i].data<double>() *= factors[i];
    }
  }
  return values;
}

}  // namespace rushlight::cpu
