// Borrowed memory as tensors, and C++ printing.
#include <rushlight/factories.h>

#include <ostream>

#include "core/op_support.h"

namespace rushlight {

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  RL_CHECK(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes but ",
           strides.size(), " strides");
  int64_t last = 0;
  bool empty = false;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); i++) {
    RL_CHECK(sizes[i] >= 0 && strides[i] >= 0, "from_blob: negative sizes or strides: ", sizes,
             ", ", strides);
    empty |= sizes[i] == 0;
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_mul_overflow(last + 1, itemsize(options.dtype()), &last);
  RL_CHECK(empty || !overflow, "from_blob: sizes ", sizes, " overflow");
  auto storage = StorageImpl::borrow(data, empty ? 0 : static_cast<size_t>(last), options.device(),
                                     nullptr, nullptr);
  auto impl = TensorImpl::make(std::move(storage), options.dtype(), options.device());
  impl->set_sizes_and_strides(sizes, strides);
  const Tensor t(std::move(impl));
  return options.requires_grad() ? t.requires_grad_() : t;
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), options);
}

namespace {

void print(std::string& text, const Tensor& t, int64_t depth) {
  if (t.dim() == 0) {
    append(text, t.item());
    return;
  }
  constexpr int64_t edge = 3;
  const int64_t n = t.size(0);
  text += '[';
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) {
      text += t.dim() == 1 ? ", " : ",\n" + std::string(static_cast<size_t>(depth) + 1, ' ');
    }
    if (n > 2 * edge && i == edge) {
      text += "...";
      i = n - edge - 1;
      continue;
    }
    print(text, t.select(0, i), depth + 1);
  }
  text += ']';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) {
    return out << "[ Tensor (undefined) ]";
  }
  std::string text;
  if (t.is_meta()) {
    text = "...";
  } else {
    print(text, t.detach(), 0);
  }
  text += "\n[ ";
  text += t.toString();
  append(text, t.sizes());
  return out << text << " ]";
}

}  // namespace rushlight
