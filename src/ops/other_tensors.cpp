// What says that there are no tensors of a kind.
#include <rushlight/other_tensors.h>
#include <rushlight/out_functions.h>

namespace rushlight {

std::string Symbol::toUnqualString() const {
  const size_t colon = text_.rfind("::");
  return colon == std::string::npos ? text_ : text_.substr(colon + 2);
}

std::vector<Dimname> Tensor::names() const {
  return {static_cast<size_t>(dim()), Dimname::wildcard()};
}

void refuse_names(const char* method) {
  throw NotImplementedError(
      str(method, ": tensors have no named dimensions here; use their positions"));
}

void refuse_quantized(const char* name) {
  throw NotImplementedError(str(name,
                                ": C++ has no quantised tensors; those of Python are in "
                                "torch.ao.quantization"));
}

std::vector<Tensor> dequantize(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    out.push_back(t.dequantize());
  }
  return out;
}
Tensor& dequantize_out(const Tensor& out, const Tensor& self) {
  return write_result(out, self.dequantize());
}
void dequantize_out(TensorList out, TensorList tensors) {
  write_results(out, dequantize(tensors));
}

}  // namespace rushlight
