// Copies, the ops that scatter the gradients of views back, and the longer derivatives of both.
#include <algorithm>

#include <rushlight/batching.h>
#include <rushlight/thread_state.h>

#include "core/refusals.h"
#include "core/region.h"
#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/geometry.h"
#include "ops/wrappers.h"

namespace rushlight {

namespace {

bool has_zero(IntArrayRef sizes) { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

}  // namespace

// ---- kernels of the copies and of the views' gradients ----

namespace shape {

OutSpec clone(Tensor& self, std::optional<MemoryFormat>& memory_format) {
  if (memory_format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve) {
    return {self.sizes(), self.dtype(), preserved_strides(self)};
  }
  return {self.sizes(), self.dtype(), {}, *memory_format};
}

OutSpec _to_copy(Tensor& self, std::optional<ScalarType>& dtype, std::optional<Device>&, bool&,
                 std::optional<MemoryFormat>& memory_format) {
  OutSpec spec = clone(self, memory_format);
  spec.dtype = dtype.value_or(self.dtype());
  if (!self.is_meta()) {
    warn_of_lost_parts(self.dtype(), spec.dtype);
  }
  return spec;
}

void copy_(Tensor& self, Tensor& src, bool&) {
  RL_CHECK_NOT_IMPLEMENTED(self.is_meta() || !src.is_meta(),
                           "Cannot copy out of meta tensor; no data!");
  RL_CHECK(is_expandable_to(src.sizes(), self.sizes()), "the output of shape ", self.sizes(),
           " doesn't match the broadcast shape ", broadcast_sizes(self.sizes(), src.sizes()));
  warn_of_lost_parts(src.dtype(), self.dtype());
}

OutSpec select_backward(Tensor& grad, DimVector& input_sizes, int64_t&, int64_t&) {
  return {input_sizes, grad.dtype()};
}
OutSpec slice_backward(Tensor& grad, DimVector& input_sizes, int64_t&, int64_t&, int64_t&,
                       int64_t&) {
  return {input_sizes, grad.dtype()};
}
OutSpec diagonal_backward(Tensor& grad, DimVector& input_sizes, int64_t&, int64_t&, int64_t&) {
  return {input_sizes, grad.dtype()};
}
OutSpec unfold_backward(Tensor& grad, DimVector& input_sizes, int64_t& dim, int64_t& size,
                        int64_t& step) {
  const Tensor input = make_empty(input_sizes, grad.dtype(), Device(kMeta));
  const DimVector windows = views::unfold(input, dim, size, step).sizes;
  RL_CHECK(grad.sizes() == IntArrayRef(windows), "unfold_backward: expected a gradient of sizes ",
           IntArrayRef(windows), ", got ", grad.sizes());
  return {input_sizes, grad.dtype()};
}

}  // namespace shape

namespace anywhere {

namespace {
void copy_or_note(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (RL_LIKELY(tls.notebook == nullptr) || !note_copy(to, from)) {
    copy_raw(to, from, non_blocking);
  }
}
}  // namespace

void clone(const Tensor& out, const Tensor& self, std::optional<MemoryFormat>) {
  copy_or_note(out, self, false);
}
void _to_copy(const Tensor& out, const Tensor& self, std::optional<ScalarType>,
              std::optional<Device>, bool non_blocking, std::optional<MemoryFormat>) {
  copy_or_note(out, self, non_blocking);
}
void copy_(const Tensor& out, const Tensor& src, bool non_blocking) {
  copy_or_note(out, src, non_blocking);
}

void select_backward(const Tensor& out, const Tensor& grad, IntArrayRef, int64_t dim,
                     int64_t index) {
  fill_raw(out, 0);
  copy_raw(make_view(out, views::select(out, dim, index)), grad);
}
void slice_backward(const Tensor& out, const Tensor& grad, IntArrayRef, int64_t dim, int64_t start,
                    int64_t end, int64_t step) {
  fill_raw(out, 0);
  copy_raw(make_view(out, views::slice(out, dim, start, end, step)), grad);
}
void diagonal_backward(const Tensor& out, const Tensor& grad, IntArrayRef, int64_t offset,
                       int64_t dim1, int64_t dim2) {
  fill_raw(out, 0);
  copy_raw(make_view(out, views::diagonal(out, offset, dim1, dim2)), grad);
}
void unfold_backward(const Tensor& out, const Tensor& grad, IntArrayRef, int64_t dim, int64_t size,
                     int64_t step) {
  fill_raw(out, 0);
  if (out.dim() == 0) {
    if (size == 1) {
      copy_raw(out, make_view(grad, views::select(grad, 0, 0)));
    }
    return;
  }
  // Windows may overlap: each position within a window is a strided slice of the sums, added in
  // order.
  const ScalarType wide = compute_dtype(out.dtype());
  const Tensor sums =
      size <= step || wide == out.dtype() ? out : make_empty(out.sizes(), wide, out.device());
  if (!sums.is_same(out)) {
    fill_raw(sums, 0);
  }
  const int64_t d = wrap_dim(dim, out.dim());
  const int64_t windows = grad.sizes()[d];
  for (int64_t k = 0; k < size; k++) {
    const Tensor part =
        make_view(sums, views::slice(sums, d, k, k + (windows - 1) * step + 1, step));
    const Tensor from = make_view(grad, views::select(grad, grad.dim() - 1, k));
    const NoGradGuard no_grad;
    part.add_(from);
  }
  if (!sums.is_same(out)) {
    copy_raw(out, sums);
  }
}

}  // namespace anywhere

// ---- longer derivatives ----

// A mode may have answered the op, whose own checks did not run then: lists are checked again where
// they are indexed.

Tensor permute_backward(const Tensor& grad, IntArrayRef dims) {
  RL_CHECK(static_cast<int64_t>(dims.size()) == grad.dim(), "permute: ", dims.size(),
           " dims for a gradient with ", grad.dim(), " dimensions");
  DimVector inverse(dims.size());
  for (size_t i = 0; i < dims.size(); i++) {
    inverse[wrap_dim(dims[i], grad.dim())] = static_cast<int64_t>(i);
  }
  return grad.permute(inverse);
}

Tensor split_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options,
                      IntArrayRef sizes, int64_t dim) {
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(self_sizes.size()));
  RL_CHECK(grads.size() == sizes.size(), "split: ", sizes.size(), " sizes for ", grads.size(),
           " parts");
  std::vector<Tensor> parts;
  for (size_t i = 0; i < grads.size(); i++) {
    DimVector part(self_sizes);
    part[d] = sizes[i];
    parts.push_back(grads[i].defined() ? grads[i] : zeros(part, options));
  }
  return cat(parts, d);
}

Tensor unbind_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options,
                       int64_t dim) {
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(self_sizes.size()));
  DimVector part(self_sizes);
  part.erase(static_cast<size_t>(d));
  std::vector<Tensor> parts;
  for (const Tensor& g : grads) {
    parts.push_back(g.defined() ? g : zeros(part, options));
  }
  return parts.empty() ? zeros(self_sizes, options) : stack(parts, d);
}

namespace {

// Whether two places of a window may be the same element.
bool may_overlap(IntArrayRef sizes, IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == 0) {
      return false;
    }
    if (sizes[i] != 1) {
      dims.emplace_back(strides[i], sizes[i]);
    }
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) {
      return true;
    }
    reach += (size - 1) * stride;
  }
  return false;
}

}  // namespace

// Adds the window's gradient to a flat image of the storage that both windows lie in, then reads
// the input's window. Elements that the window visits several times add up; those that the input
// itself visits several times share.
Tensor as_strided_backward(const Tensor& grad, IntArrayRef self_sizes, IntArrayRef self_strides,
                           int64_t self_offset, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> storage_offset) {
  RL_CHECK(size.size() == stride.size(), "as_strided: ", size.size(), " sizes for ",
           stride.size(), " strides");
  const int64_t offset = storage_offset.value_or(self_offset);
  const TensorOptions options = grad.options();
  if (grad.numel() == 0 || has_zero(self_sizes)) {
    return grad.new_zeros(self_sizes, options);
  }
  const auto reach = [](IntArrayRef sizes, IntArrayRef strides, int64_t from) {
    int64_t last = from;
    for (size_t i = 0; i < sizes.size(); i++) {
      last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
  };
  const int64_t self_high = reach(self_sizes, self_strides, self_offset);
  int64_t low = std::min(offset, self_offset);
  int64_t high = std::max(reach(size, stride, offset), self_high);
  const bool overlapping_input = may_overlap(self_sizes, self_strides);
  // A window may lie far from self, in memory that both are views of.
  const bool far = (high - low) / 2 > self_high - self_offset + grad.numel();
  if (far) {
    low = self_offset;
    high = self_high;
  }
  Tensor image = grad.new_zeros({high - low}, options);
  if (!overlapping_input && !far && !may_overlap(size, stride)) {
    image.as_strided(size, stride, offset - low).copy_(grad);
    return image.as_strided(self_sizes, self_strides, self_offset - low);
  }
  const TensorOptions index_options = TensorOptions(kInt64).device(grad.device());
  const auto positions = [&](IntArrayRef sizes, IntArrayRef strides, int64_t from) {
    Tensor index = full({}, from - low, index_options);
    for (size_t i = 0; i < sizes.size(); i++) {
      index = index.unsqueeze(-1) + arange(sizes[i], index_options) * strides[i];
    }
    return index.reshape({-1});
  };
  const Tensor from = positions(size, stride, offset);
  const Tensor to = positions(self_sizes, self_strides, self_offset);
  const Tensor beside = from.lt(0).logical_or(from.ge(high - low));
  image =
      image.index_add(0, from.masked_fill(beside, 0), grad.reshape({-1}).masked_fill(beside, 0));
  if (overlapping_input) {
    const TensorOptions counted = options.dtype(compute_dtype(to_real(grad.dtype())));
    const Tensor visits =
        zeros({high - low}, counted).index_add(0, to, ones({to.numel()}, counted));
    image = (image / visits.clamp_min(1)).to(grad.dtype());
  }
  return image.index_select(0, to).reshape(self_sizes);
}

// ---- bodies of the table's composites ----

Tensor copy_of(const Tensor& view) { return view.clone(MemoryFormat::Contiguous); }

std::vector<Tensor> copy_of(const std::vector<Tensor>& views) {
  std::vector<Tensor> out;
  out.reserve(views.size());
  for (const Tensor& view : views) {
    out.push_back(copy_of(view));
  }
  return out;
}

Tensor clone_for_batches(const Tensor& self, const Tensor& src) {
  if (RL_LIKELY(batching::level_of(src) == 0)) {
    return self.clone();
  }
  // A copy with the batches of both.
  const TensorOptions options = self.options();
  const Tensor whole = [&] {
    const NoGradGuard guard;
    return self.detach().new_zeros(self.sizes(), options) +
           src.detach().new_zeros(self.sizes(), options);
  }();
  return whole.copy_(self);
}

Tensor copy_into_view(const Tensor& whole, const Tensor& view, const Tensor& src) {
  RL_CHECK(view.sizes() == src.sizes(), "src must have the shape of the slice that it fills, ",
           view.sizes(), ", but got ", src.sizes());
  view.copy_(src);
  return whole;
}

}  // namespace rushlight
