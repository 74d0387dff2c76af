// A pending result that is read once, by a reduction, without being written: its elements are
// computed as they are read.
#pragma once

#include <memory>
#include <mutex>

#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>

#include "cpu/program.h"
#include "cpu/reduce_driver.h"

namespace rushlight::cpu {

// There is one where the tensor is a large contiguous pending result of this thread that light
// steps give (jit.h): to compute those once more is cheaper than to write what they give and read
// it again. It stays pending. While the source lives nothing of the notebook may be completed.
class ChainSource final : public Source {
 public:
  explicit ChainSource(const Tensor& t) {
    if (RL_UNLIKELY(tls.notebook != nullptr) && t.defined()) {
      find(t);
    }
  }
  bool is_there() const { return run_ != nullptr; }
  void read(int64_t first, int64_t n, char* to) const override;

 private:
  void find(const Tensor& t);

  std::unique_lock<std::mutex> lock_;
  void (*run_)(const Program&, int64_t first, int64_t n, char* to) = nullptr;
  std::unique_ptr<Program> program_;
};

}  // namespace rushlight::cpu
