// Views: geometry only. One more is an entry `view(…)` in ops/shape.py and a function in namespace
// views here, which says sizes, strides and offset; the wrapper makes the tensor and checks that it
// lies in its storage.
#include <algorithm>
#include <tuple>

#include "core/times.h"
#include "generated/contracts.h"
#include "ops/geometry.h"

namespace rushlight {

void check_pieces(const char* op, int64_t pieces) {
  constexpr int64_t most = 1 << 24;
  RL_CHECK(pieces <= most, op, ": expected at most ", most, " pieces, but this would make ",
           pieces);
}

int64_t checked_product(const char* op, int64_t a, int64_t b) {
  int64_t out = 0;
  RL_CHECK(!__builtin_mul_overflow(a, b, &out), op, ": integer multiplication overflow: ", a,
           " times ", b, " is more than a size of a tensor can be");
  return out;
}

void check_order(IntArrayRef dims, int64_t ndim) {
  RL_CHECK(static_cast<int64_t>(dims.size()) == ndim,
           "permute(): number of dimensions of the tensor (", ndim,
           ") does not match the length of the order, ", dims.size());
}

DimVector infer_size(IntArrayRef shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1;
  int64_t unknown = -1;
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] == -1) {
      RL_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
    } else {
      RL_CHECK(shape[i] >= 0, "invalid shape dimension ", shape[i]);
      overflow |= __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  const bool fits = !overflow && (unknown < 0 ? known == numel : known > 0 && numel % known == 0);
  if (!fits && unknown >= 0 && known == 0 && numel == 0) {
    throw Error(str("cannot reshape tensor of 0 elements into shape ", shape,
                    " because the unspecified dimension size -1 can be any value: say which"));
  }
  RL_CHECK(fits, "shape '", shape, "' is invalid for input of size ", numel,
           ": a reshape keeps the number of elements, and gives -1 the size that is left");
  if (unknown >= 0) {
    out[unknown] = numel / known;
  }
  return out;
}

static void move_by(ViewSpec& spec, int64_t steps, int64_t stride) {
  std::ignore = __builtin_add_overflow(spec.offset, times(steps, stride), &spec.offset);
}

bool view_strides(const Tensor& t, IntArrayRef shape, DimVector& out) {
  out.resize(shape.size());
  if (t.is_contiguous() || t.numel() == 0) {
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      out[d] = stride;
      stride = d > 0 ? next_stride(stride, shape[d]) : stride;
    }
    return true;
  }
  const IntArrayRef sizes = t.sizes();
  const IntArrayRef strides = t.strides();
  int64_t at = static_cast<int64_t>(shape.size()) - 1;
  // Runs of old dimensions that lie in memory as one, innermost first, are cut into new dimensions.
  int64_t run = 1;
  int64_t base = sizes.empty() ? 1 : strides.back();
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; d--) {
    run *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != times(run, base));
    if (ends) {
      int64_t filled = 1;
      while (at >= 0 && (filled < run || shape[at] == 1)) {
        out[at] = times(filled, base);
        filled *= shape[at];
        at--;
      }
      if (filled != run) {
        return false;
      }
      if (d > 0) {
        base = strides[d - 1];
        run = 1;
      }
    }
  }
  while (at >= 0 && shape[at] == 1) {
    out[at] = 1;
    at--;
  }
  return at < 0;
}

namespace {
ViewSpec same(const Tensor& t) { return {t.sizes(), t.strides(), t.storage_offset()}; }
}  // namespace

namespace views {

ViewSpec view(const Tensor& self, IntArrayRef size) {
  ViewSpec spec = {infer_size(size, self.numel()), {}, self.storage_offset()};
  spec.contiguous = self.is_contiguous();
  RL_CHECK(
      spec.contiguous || view_strides(self, spec.sizes, spec.strides),
      "view size is not compatible with this tensor's size and stride: a dimension of the view "
      "would go over elements that do not lie in step. .reshape(...) copies where it must.");
  return spec;
}

ViewSpec transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim());
  const int64_t b = wrap_dim(dim1, self.dim());
  ViewSpec spec = same(self);
  if (self.dim() > 0) {
    std::swap(spec.sizes[a], spec.sizes[b]);
    std::swap(spec.strides[a], spec.strides[b]);
  }
  return spec;
}

ViewSpec t(const Tensor& self) {
  RL_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(),
           "D: transpose() names the two to exchange");
  return self.dim() < 2 ? same(self) : views::transpose(self, 0, 1);
}

ViewSpec permute(const Tensor& self, IntArrayRef dims) {
  check_order(dims, self.dim());
  ViewSpec spec{DimVector(dims.size()), DimVector(dims.size()), self.storage_offset()};
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); i++) {
    const int64_t d = wrap_dim(dims[i], self.dim());
    RL_CHECK(((seen >> d) & 1u) == 0, "permute(): duplicate dims are not allowed.");
    seen |= uint64_t(1) << d;
    spec.sizes[i] = self.sizes()[d];
    spec.strides[i] = self.strides()[d];
  }
  return spec;
}

ViewSpec expand(const Tensor& self, IntArrayRef size, bool) {
  RL_CHECK(static_cast<int64_t>(size.size()) >= self.dim(),
           "expand: the number of sizes provided, ", size.size(), ", is too small for a tensor of ",
           self.dim(), " dimensions: ", self.sizes(), " cannot become ", size);
  const size_t lead = size.size() - static_cast<size_t>(self.dim());
  ViewSpec spec{DimVector(size.size()), DimVector(size.size()), self.storage_offset()};
  for (size_t i = size.size(); i-- > 0;) {
    if (i < lead) {
      RL_CHECK(size[i] >= 0, "expand: ", size[i],
               " is no size for a leading, non-existing dimension, ", i);
      spec.sizes[i] = size[i];
      // What the dimension would have were it of size 1 keeps single rows contiguous.
      spec.strides[i] = size[i] != 1          ? 0
                        : i + 1 < size.size() ? times(spec.sizes[i + 1], spec.strides[i + 1])
                                              : 1;
      continue;
    }
    const int64_t old = self.sizes()[i - lead];
    const int64_t wanted = size[i] == -1 ? old : size[i];
    RL_CHECK(wanted >= 0 && (old == wanted || old == 1), "expand: ", self.sizes(),
             " cannot become ", size, ": the expanded size of the tensor (", wanted,
             ") must match the existing size (", old, ") at non-singleton dimension ", i);
    spec.sizes[i] = wanted;
    spec.strides[i] = old == wanted ? self.strides()[i - lead] : 0;
  }
  return spec;
}

namespace {
ViewSpec squeeze_where(const Tensor& self, uint64_t dims) {
  ViewSpec spec{{}, {}, self.storage_offset()};
  for (int64_t d = 0; d < self.dim(); d++) {
    if (self.sizes()[d] != 1 || ((dims >> d) & 1u) == 0) {
      spec.sizes.push_back(self.sizes()[d]);
      spec.strides.push_back(self.strides()[d]);
    }
  }
  return spec;
}
}  // namespace

ViewSpec squeeze(const Tensor& self) { return squeeze_where(self, ~uint64_t(0)); }
ViewSpec squeeze_dim(const Tensor& self, int64_t dim) {
  return squeeze_where(self, uint64_t(1) << wrap_dim(dim, self.dim()));
}
ViewSpec squeeze_dims(const Tensor& self, IntArrayRef dim) {
  uint64_t mask = 0;
  for (const int64_t d : wrap_dims(dim, self.dim(), false)) {
    mask |= uint64_t(1) << d;
  }
  return squeeze_where(self, mask);
}

ViewSpec unsqueeze(const Tensor& self, int64_t dim) {
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim() + 1));
  ViewSpec spec = same(self);
  const int64_t stride = d < spec.sizes.size() ? times(spec.sizes[d], spec.strides[d]) : 1;
  spec.sizes.insert(d, 1);
  spec.strides.insert(d, stride);
  return spec;
}

ViewSpec select(const Tensor& self, int64_t dim, int64_t index) {
  RL_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.sizes()[d];
  RL_CHECK_INDEX(index >= -size && index < size, "select(): index ", index,
                 " out of range: dimension ", d, " of a tensor of shape ", self.sizes(), " takes ",
                 -size, " to ", size - 1);
  const int64_t* const sizes = self.sizes().data();
  const int64_t* const strides = self.strides().data();
  ViewSpec spec;
  spec.offset = self.storage_offset();
  move_by(spec, index < 0 ? index + size : index, strides[d]);
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != d) {
      spec.sizes.push_back(sizes[i]);
      spec.strides.push_back(strides[i]);
    }
  }
  return spec;
}

ViewSpec slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
               std::optional<int64_t> end, int64_t step) {
  RL_CHECK(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  RL_CHECK_VALUE(step > 0, "slice step must be positive");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.sizes()[d];
  const auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t from = clamp(start.value_or(0));
  const int64_t to = std::max(from, clamp(end.value_or(size)));
  ViewSpec spec = same(self);
  move_by(spec, from, spec.strides[d]);
  spec.sizes[d] = (to - from) / step + ((to - from) % step != 0 ? 1 : 0);
  int64_t stride = 0;
  if (spec.sizes[d] <= 1 || __builtin_mul_overflow(spec.strides[d], step, &stride)) {
    stride = times(std::min(step, std::max<int64_t>(size, 1)), spec.strides[d]);
  }
  spec.strides[d] = stride;
  return spec;
}

ViewSpec unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.sizes()[d];
  RL_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  RL_CHECK(size <= length, "unfold: windows of ", size, " are longer than dimension ", d,
           ", whose maximum size is ", length);
  RL_CHECK(step > 0, "step is ", step, " but must be > 0");
  ViewSpec spec = same(self);
  spec.sizes.push_back(size);
  spec.strides.push_back(self.dim() == 0 ? 1 : self.strides()[d]);
  if (self.dim() > 0) {
    spec.sizes[d] = (length - size) / step + 1;
    spec.strides[d] = spec.sizes[d] <= 1 ? self.strides()[d] : times(step, self.strides()[d]);
  }
  return spec;
}

ViewSpec as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset) {
  RL_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  return {size, stride, storage_offset.value_or(self.storage_offset())};
}

ViewSpec diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim());
  const int64_t b = wrap_dim(dim2, self.dim());
  RL_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t rows = self.sizes()[a];
  const int64_t columns = self.sizes()[b];
  const int64_t down = offset < 0 ? -std::max(-rows, offset) : 0;
  const int64_t right = offset > 0 ? std::min(columns, offset) : 0;
  const int64_t length = std::max<int64_t>(std::min(rows - down, columns - right), 0);
  ViewSpec spec = same(self);
  if (length > 0) {
    move_by(spec, down, spec.strides[a]);
    move_by(spec, right, spec.strides[b]);
  }
  int64_t stride = 0;
  std::ignore = __builtin_add_overflow(spec.strides[a], spec.strides[b], &stride);
  const auto high = static_cast<size_t>(std::max(a, b));
  const auto low = static_cast<size_t>(std::min(a, b));
  for (const size_t d : {high, low}) {
    spec.sizes.erase(d);
    spec.strides.erase(d);
  }
  spec.sizes.push_back(length);
  spec.strides.push_back(stride);
  return spec;
}

ViewSpec alias(const Tensor& self) { return same(self); }

ViewSpec view_dtype(const Tensor& self, ScalarType dtype) {
  ViewSpec spec = same(self);
  spec.dtype = dtype;
  const int64_t from = self.element_size();
  const int64_t to = itemsize(dtype);
  if (from == to) {
    return spec;
  }
  RL_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view ", self.dtype(), " as ", dtype,
           " (different element sizes)");
  RL_CHECK(self.strides().back() == 1, "self.stride(-1) must be 1 to view ", self.dtype(), " as ",
           dtype, " (different element sizes), but got ", self.strides().back());
  const size_t last = spec.sizes.size() - 1;
  if (from > to) {
    const int64_t ratio = from / to;
    spec.sizes[last] = checked_product("view", spec.sizes[last], ratio);
    spec.offset = checked_product("view", spec.offset, ratio);
    for (size_t i = 0; i < last; i++) {
      spec.strides[i] = checked_product("view", spec.strides[i], ratio);
    }
    return spec;
  }
  const int64_t ratio = to / from;
  RL_CHECK(spec.sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, " to view ",
           self.dtype(), " as ", dtype, " (different element sizes), but got ", spec.sizes[last]);
  RL_CHECK(spec.offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio,
           " to view ", self.dtype(), " as ", dtype, " (different element sizes), but got ",
           spec.offset);
  spec.sizes[last] /= ratio;
  spec.offset /= ratio;
  for (size_t i = 0; i < last; i++) {
    RL_CHECK(spec.strides[i] % ratio == 0, "self.stride(", i, ") must be divisible by ", ratio,
             " to view ", self.dtype(), " as ", dtype, " (different element sizes), but got ",
             spec.strides[i]);
    spec.strides[i] /= ratio;
  }
  return spec;
}

std::vector<ViewSpec> split_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  RL_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  int64_t total = 0;
  for (const int64_t n : split_sizes) {
    RL_CHECK(n >= 0 && !__builtin_add_overflow(total, n, &total),
             "split_with_sizes: lengths must not be negative, but split_sizes=", split_sizes);
  }
  RL_CHECK(total == self.sizes()[d], "split_with_sizes expects split_sizes to sum exactly to ",
           self.sizes()[d], ", which dimension ", d, " has, but they are ", split_sizes);
  std::vector<ViewSpec> specs;
  int64_t start = 0;
  for (const int64_t n : split_sizes) {
    specs.push_back(same(self));
    specs.back().sizes[d] = n;
    move_by(specs.back(), start, self.strides()[d]);
    start += n;
  }
  return specs;
}

std::vector<ViewSpec> unbind(const Tensor& self, int64_t dim) {
  const int64_t d = existing_dim(dim, self.dim());
  check_pieces("unbind", self.sizes()[d]);
  std::vector<ViewSpec> specs;
  for (int64_t i = 0; i < self.sizes()[d]; i++) {
    specs.push_back(views::select(self, d, i));
  }
  return specs;
}

}  // namespace views

}  // namespace rushlight
