// What only the generated wrappers of views use: views that are recorded, and modes below autograd
// that answer for them.
#pragma once

#include "core/sparse.h"

namespace rushlight {

// The view of a geometry, or the views of several.
inline Tensor recorded_view(const Tensor& self, const ViewSpec& spec, ViewKind kind,
                            const Ref<Node>& node) {
  Tensor result = make_view(self, spec);
  record_view(result, self, kind, node);
  return result;
}
inline std::vector<Tensor> recorded_view(const Tensor& self, const std::vector<ViewSpec>& specs,
                                         ViewKind kind, const Ref<Node>& node) {
  std::vector<Tensor> result;
  result.reserve(specs.size());
  for (const ViewSpec& spec : specs) {
    result.push_back(recorded_view(self, spec, kind, node));
  }
  return result;
}

// What a mode or a special tensor answered for a view of `self`, recorded in a tensor of its own:
// as a view where it lies in the same memory (of special tensors only their handlers know), else as
// an ordinary result.
inline Tensor record_answer(const Tensor& answer, const Tensor& self, ViewKind kind,
                            const Ref<Node>& node) {
  if (is_special(self) && any_sparse(answer, self)) {
    return answer;
  }
  const bool special = is_special(answer) && is_special(self);
  Tensor out = special && !answer.is_same(self) ? answer : answer.tensor_data();
  if (special || out.storage() == self.storage()) {
    record_view(out, self, kind, node);
  } else if (node) {
    set_history(out, node);
  }
  return out;
}
inline std::vector<Tensor> record_answer(std::vector<Tensor> answers, const Tensor& self,
                                         ViewKind kind, const Ref<Node>& node) {
  for (Tensor& t : answers) {
    t = record_answer(t, self, kind, node);
  }
  return answers;
}

}  // namespace rushlight
