// Sparse tensors: special tensors that hold the indices and the values of their specified elements,
// and the way of a call to what the op's entry says of them.
#pragma once

#include <rushlight/mode.h>

#include "core/op_support.h"

namespace rushlight {

inline constexpr int num_layouts = 7;
// The tensors of this one are a class of Python's (rushlight.nested); nothing here makes them.
inline constexpr Layout kJagged = static_cast<Layout>(num_layouts - 1);
RL_API const char* layout_name(Layout layout);  // as Python's attribute: "sparse_coo"
RL_API const char* layout_text(Layout layout);  // as messages say it: "SparseCsr"

// What the op's entry says of sparse tensors, recorded where that is on; where it says nothing,
// NotImplementedError.
RL_API std::vector<Value> dispatch_sparse(const OpFunction& function, std::vector<Value> arguments);

class RL_API SparseTensor final : public SpecialTensor {
 public:
  SparseTensor(Layout layout, Tensor first, Tensor second, Tensor values, bool coalesced)
      : layout_(layout),
        first_(std::move(first)),
        second_(std::move(second)),
        values_(std::move(values)),
        coalesced_(coalesced) {}
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override;
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    return dispatch_sparse(function, std::move(arguments));
  }
  void check_has_memory() const override;

  Layout layout() const { return layout_; }
  // COO: indices (sparse dimensions, entries), int64. Compressed: (batch…, rows + 1).
  const Tensor& first() const { return first_; }
  // Compressed: plain indices (batch…, entries); COO: undefined.
  const Tensor& second() const { return second_; }
  // COO: (entries, dense…). Compressed: (batch…, entries, block…, dense…).
  const Tensor& values() const { return values_; }
  bool coalesced() const { return coalesced_; }  // COO: indices are sorted, and each is there once
  void set_coalesced(bool v) { coalesced_ = v; }

 private:
  Layout layout_;
  Tensor first_;
  Tensor second_;
  Tensor values_;
  bool coalesced_;
};

// Null for tensors that are not sparse.
RL_API SparseTensor* find_sparse(const Tensor& t);
inline bool is_sparse(const Tensor& t) {
  return RL_UNLIKELY(is_special(t)) && find_sparse(t) != nullptr;
}
inline bool is_sparse(TensorList list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& t) { return is_sparse(t); });
}
inline bool is_sparse(const TensorOptions& options) {  // asked for
  return RL_UNLIKELY(options.layout() != kStrided);
}
template <class... T>
bool any_sparse(const T&... tensors) {
  return (is_sparse(tensors) || ...);
}
inline Layout layout_of(const Tensor& t) {
  return is_sparse(t) ? find_sparse(t)->layout() : kStrided;
}

}  // namespace rushlight
