// The tensors of an optimiser step as runs of memory: list k of parameter i is `runs[i].data[k]`.
// Tensors whose memory is not in the order of their parameter's are copied to such, and back when
// they were written.
#pragma once

#include <vector>

#include <rushlight/tensor.h>

namespace rushlight::cpu {

class RL_API StepLists {  // other devices use it, too
 public:
  static constexpr int max_lists = 5;
  struct Run {
    char* data[max_lists];
    int64_t numel;
    ScalarType dtype;
  };
  // The first list is that of the parameters, the second of their gradients, which are only read;
  // those that are not used are empty.
  explicit StepLists(ArrayRef<TensorList> lists);
  ~StepLists();
  void write_back();

  const std::vector<Run>& runs() const { return runs_; }
  Device device() const { return device_; }  // of the parameters
  int64_t numel() const { return offsets_.back(); }

  // Calls f(run index, first element, last element) for the pieces of the range [begin, end) of all
  // elements.
  template <class F>
  void for_pieces(int64_t begin, int64_t end, const F& f) const {
    for (size_t i = find(begin); begin < end; i++) {
      const int64_t stop = end < offsets_[i + 1] ? end : offsets_[i + 1];
      if (begin < stop) {
        f(i, begin - offsets_[i], stop - offsets_[i]);
      }
      begin = stop;
    }
  }

 private:
  size_t find(int64_t element) const;

  std::vector<Run> runs_;
  Device device_ = kCPU;
  std::vector<int64_t> offsets_;  // of the runs, and the end
  struct Copy {
    Tensor original;
    Tensor ordered;
  };
  std::vector<Copy> kept_;
  std::vector<Copy> to_write_;
};

// Adds 1 to each counter and returns their values.
RL_API std::vector<double> count_steps(TensorList steps);
// Multiplies each number, one of float32 or float64, by its factor and returns the products.
RL_API std::vector<double> multiply_products(TensorList products,
                                             const std::vector<double>& factors);

}  // namespace rushlight::cpu
