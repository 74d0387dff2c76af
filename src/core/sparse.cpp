// What sparse tensors answer for themselves, and the way of a call to the rule of its op.
#include "core/sparse.h"

#include <rushlight/schema.h>

namespace rushlight {

const char* layout_name(Layout layout) {
  static constexpr const char* names[num_layouts] = {
      "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return names[static_cast<int>(layout)];
}

const char* layout_text(Layout layout) {
  static constexpr const char* names[num_layouts] = {
      "Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  return names[static_cast<int>(layout)];
}

SparseTensor* find_sparse(const Tensor& t) {
  return t.defined() ? dynamic_cast<SparseTensor*>(t.impl()->special()) : nullptr;
}

std::vector<Value> SparseTensor::handle(const OpInfo& op, const std::vector<Value>& arguments) {
  return call(op, arguments);
}

Layout Tensor::layout() const { return layout_of(*this); }

void SparseTensor::check_has_memory() const {
  throw Error("Cannot access data pointer of Tensor that doesn't have storage: it is sparse");
}

}  // namespace rushlight
