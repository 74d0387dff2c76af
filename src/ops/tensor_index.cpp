// What class Tensor has beside its ops: indices as Python's, writing into what has no name,
// options.
#include <rushlight/factories.h>
#include <rushlight/indexing.h>

#include <cstdio>
#include <ostream>

#include "core/op_support.h"
#include "core/refusals.h"

namespace rushlight {

namespace indexing {

std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  return out << slice.start() << ':' << slice.stop() << ':' << slice.step();
}

std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  switch (index.kind()) {
    case TensorIndex::Kind::None:
      return out << "None";
    case TensorIndex::Kind::Ellipsis:
      return out << "...";
    case TensorIndex::Kind::Integer:
      return out << index.integer();
    case TensorIndex::Kind::Boolean:
      return out << (index.boolean() ? "true" : "false");
    case TensorIndex::Kind::Slice:
      return out << index.slice();
    case TensorIndex::Kind::Tensor:
      return out << index.tensor();
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << '(';
  for (size_t i = 0; i < indices.size(); i++) {
    out << (i == 0 ? "" : ", ") << indices[i];
  }
  return out << ')';
}

}  // namespace indexing

using indexing::TensorIndex;
using Kind = TensorIndex::Kind;

indexing::TensorIndex::TensorIndex(const char* dots) : kind_(Kind::Ellipsis) {
  RL_CHECK_VALUE(std::string_view(dots) == "...",
                 "Expected \"...\" to represent an ellipsis index, but got \"", dots, '"');
}

namespace {

struct Address {
  Tensor view;
  std::vector<std::optional<Tensor>> tensors;  // by dimension; empty where views say it all
};

int64_t dims_covered(const TensorIndex& at) {
  switch (at.kind()) {
    case Kind::Integer:
    case Kind::Slice:
      return 1;
    case Kind::Tensor:
      return at.tensor().dtype() == kBool || at.tensor().dtype() == kByte ? at.tensor().dim() : 1;
    default:
      return 0;
  }
}

Address address(const Tensor& self, ArrayRef<TensorIndex> list) {
  int64_t named = 0;
  for (const TensorIndex& at : list) {
    named += dims_covered(at);
  }
  RL_CHECK_INDEX(named <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  Address out{self, {}};
  int64_t dim = 0;
  int64_t rest = self.dim() - named;  // what the first ellipsis stands for
  const auto put = [&](const Tensor& t) {
    out.tensors.resize(static_cast<size_t>(dim));
    out.tensors.emplace_back(t);
  };
  for (const TensorIndex& at : list) {
    switch (at.kind()) {
      case Kind::None:
        out.view = out.view.unsqueeze(dim++);
        break;
      case Kind::Ellipsis:
        dim += std::exchange(rest, 0);
        break;
      case Kind::Integer:
        out.view = out.view.select(dim, at.integer());
        break;
      case Kind::Slice: {
        const indexing::Slice& s = at.slice();
        RL_CHECK_VALUE(s.step() > 0, "step must be greater than zero");
        if (s.start() != 0 || s.stop() != indexing::INDEX_MAX || s.step() != 1) {
          out.view = out.view.slice(dim, s.start(), s.stop(), s.step());
        }
        dim++;
        break;
      }
      case Kind::Boolean:
        out.view = out.view.unsqueeze(dim);
        put(at.boolean() ? zeros({1}, kInt64) : zeros({0}, kInt64));
        dim++;
        break;
      case Kind::Tensor: {
        const Tensor& t = at.tensor();
        if (!t.defined() || (!is_integral(t.dtype()) && t.dtype() != kBool)) {
          refuse_index(t);
        }
        if (t.dim() == 0 && dims_covered(at) == 0) {  // a mask of one element
          out.view = out.view.unsqueeze(dim);
          put(t.reshape({1}).to(kBool));
          dim++;
        } else {
          put(t);
          dim += dims_covered(at);
        }
        break;
      }
    }
  }
  return out;
}

void write(const Tensor& view, const Tensor& values) {
  // Leading ones of the values are no dimensions of the view, as in Python.
  int64_t extra = values.dim() - view.dim();
  Tensor fitting = values;
  while (extra-- > 0 && fitting.size(0) == 1) {
    fitting = fitting.squeeze(0);
  }
  view.copy_(fitting);
}

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> at) const {
  const Address found = address(*this, at);
  return found.tensors.empty() ? found.view : found.view.index(found.tensors);
}

Tensor Tensor::index(std::initializer_list<TensorIndex> at) const {
  return index(ArrayRef<TensorIndex>(at));
}

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> at, const Tensor& values) const {
  const Address found = address(*this, at);
  if (found.tensors.empty()) {
    write(found.view, values);
  } else {
    found.view.index_put_(found.tensors, values.dtype() == dtype() ? values : values.to(dtype()));
  }
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> at, const Tensor& values) const {
  return index_put_(ArrayRef<TensorIndex>(at), values);
}

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> at, const Scalar& value) const {
  return index_put_(at, full({}, value, options()));
}

Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> at, const Scalar& value) const {
  return index_put_(ArrayRef<TensorIndex>(at), value);
}

Tensor Tensor::operator[](const Tensor& at) const {
  return index(ArrayRef<TensorIndex>(TensorIndex(at)));
}

Tensor& Tensor::operator=(const Tensor& values) && {
  copy_(values);
  return *this;
}

Tensor& Tensor::operator=(const Scalar& value) && {
  fill_(value);
  return *this;
}

Tensor Tensor::numpy_T() const {
  DimVector dims(static_cast<size_t>(dim()));
  for (int64_t i = 0; i < dim(); i++) {
    dims[static_cast<size_t>(i)] = dim() - 1 - i;
  }
  return permute(dims);
}

namespace {
Tensor matrix_transpose(const Tensor& t, const char* name) {
  RL_CHECK(t.dim() >= 2 || t.dim() == 0, name, " takes matrices or batches of them, not a vector");
  return t.dim() == 0 ? t : t.transpose(-2, -1);
}
}  // namespace

Tensor Tensor::mT() const { return matrix_transpose(*this, "mT"); }

Tensor Tensor::mH() const {
  const Tensor swapped = matrix_transpose(*this, "mH");
  return is_complex() ? adjoint() : swapped;
}

Tensor Tensor::matrix_H() const {
  RL_CHECK(dim() == 2 || dim() == 0, "H is only supported on matrices, not on a tensor of ", dim(),
           " dimensions: mH transposes batches");
  return mH();
}

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return to(options.device_opt(), options.dtype_opt(), non_blocking, copy,
            format_of(options, format));
}

Tensor Tensor::to(Device device, bool non_blocking, bool copy) const {
  return to(std::optional(device), std::optional<ScalarType>(), non_blocking, copy);
}

void Tensor::print() const {
  std::string text = defined() ? str('[', toString(), ' ', sizes(), "]\n") : "[UndefinedTensor]\n";
  std::fputs(text.c_str(), stdout);
}

}  // namespace rushlight
