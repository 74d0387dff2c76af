// Why functions of libtorch's names are not here.
#include <rushlight/absent_functions.h>

namespace rushlight::absent {

void refuse(const char* name, Why why) {
  constexpr const char* reasons[] = {
      "cuDNN's kernels have no names here; conv2d, lstm and others take them on a GPU",
      "there is no MIOpen here, nor are there AMD's devices",
      "there are no devices of Apple's here",
      "tensors in the layout of oneDNN do not exist here; conv2d and linear use oneDNN for strided ones",
      "there are no XLA devices here",
      "C++ has no nested tensors; those of Python are in torch.nested",
      "C++ has no quantised tensors; those of Python are in torch.ao.quantization",
      "a kernel of certain GPUs or packed weights that is not here",
      "levels of vmap and forward mode are entered by Python's torch.func",
      "Sobol sequences are Python's torch.quasirandom",
      "tensors have no named dimensions here",
      "it serves PyTorch's own tests",
      "nobody has written it yet",
  };
  throw NotImplementedError(str(name, ": ", reasons[static_cast<int>(why)]));
}

}  // namespace rushlight::absent
