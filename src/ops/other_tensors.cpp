// What says that there are no tensors of a kind.
#include <rushlight/other_tensors.h>

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

}  // namespace rushlight
