// What only the generated wrappers of views use: modes below autograd that answer for them.
#pragma once

#include <rushlight/autograd.h>

namespace rushlight {

// What a mode answered for a view of `self`, recorded in a tensor of its own: as a view where it
// lies in the same memory, else as an ordinary result.
inline Tensor record_answer(const Tensor& answer, const Tensor& self, ViewKind kind,
                            const Ref<Node>& node) {
  Tensor out = answer.tensor_data();
  if (out.storage() == self.storage()) {
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
