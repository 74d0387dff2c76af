// Composites over views, which themselves stand in views.cpp; conversions; geometry in place.
#include <algorithm>
#include <utility>

#include <rushlight/batching.h>

#include "autograd/node.h"
#include "core/inference.h"
#include "core/refusals.h"
#include "core/sparse.h"
#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/geometry.h"

namespace rushlight {

namespace composite {

Tensor reshape(const Tensor& self, IntArrayRef shape) {
  if (self.is_contiguous()) {
    return self.view(shape);
  }
  const DimVector size = infer_size(shape, self.numel());
  DimVector strides;
  if (view_strides(self, size, strides)) {
    return self.view(size);
  }
  return own(self.clone(MemoryFormat::Contiguous).view(size));
}
Tensor reshape_as(const Tensor& self, const Tensor& other) { return self.reshape(other.sizes()); }
Tensor view_as(const Tensor& self, const Tensor& other) { return self.view(other.sizes()); }
Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  return dtype == self.dtype() ? rushlight::alias(self) : rushlight::view_dtype(self, dtype);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t start = wrap_dim(start_dim, self.dim());
  const int64_t end = wrap_dim(end_dim, self.dim());
  RL_CHECK(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) {
    return self.reshape({1});
  }
  if (start == end) {
    return self;
  }
  DimVector size;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (d <= start || d > end) {
      size.push_back(self.sizes()[d]);
    } else {
      size.back() = checked_product("flatten", size.back(), self.sizes()[d]);
    }
  }
  return self.reshape(size);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  RL_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  int64_t known = 1;
  int64_t unknown = 0;
  bool fits = true;
  for (const int64_t s : sizes) {
    unknown += s == -1;
    fits &= !__builtin_mul_overflow(known, s == -1 ? 1 : s, &known);
  }
  const int64_t length = self.size(d);
  fits &= unknown == 1 ? known > 0 && length % known == 0 : unknown == 0 && known == length;
  RL_CHECK(fits, "unflatten: the product of the sizes ", sizes, " is not ", length,
           ", the size of dimension ", d);
  DimVector shape;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != d) {
      shape.push_back(self.sizes()[i]);
      continue;
    }
    for (const int64_t s : sizes) {
      shape.push_back(s == -1 ? length / known : s);
    }
  }
  return self.view(shape);
}

Tensor ravel(const Tensor& self) { return self.contiguous().view({-1}); }

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  RL_CHECK(memory_format != MemoryFormat::Preserve,
           "preserve memory format is unsupported by the contiguous operator");
  const bool already =
      is_sparse(self) ? sparse_is_contiguous(self) : self.is_contiguous(memory_format);
  return already ? self : self.clone(memory_format);
}

Tensor expand_as(const Tensor& self, const Tensor& other) { return self.expand(other.sizes()); }
Tensor broadcast_to(const Tensor& self, IntArrayRef size) { return self.expand(size); }

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  DimVector size;
  for (const Tensor& t : tensors) {
    size = broadcast_sizes(size, t.sizes());
  }
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    out.push_back(t.expand(size));
  }
  return out;
}

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  if (self.sizes() == size) {
    return self;
  }
  RL_CHECK(is_expandable_to(size, self.sizes()), "size {", size, "} is not expandable to size {",
           self.sizes(), "}.");
  const size_t lead = static_cast<size_t>(self.dim()) - size.size();
  DimVector dims;
  for (size_t i = 0; i < static_cast<size_t>(self.dim()); i++) {
    if (i < lead || (size[i - lead] == 1 && self.sizes()[i] != 1)) {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  const Tensor sum = dims.empty() ? self : self.sum(dims, true);
  return lead == 0 ? sum : sum.view(size);
}

Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return self.transpose(axis0, axis1);
}
Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose(dim0, dim1);
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  RL_CHECK(source.size() == destination.size(),
           "movedim: source and destination name as many dimensions, not ", source, " and ",
           destination);
  const DimVector from = wrap_dims(source, self.dim(), false);
  const DimVector to = wrap_dims(destination, self.dim(), false);
  if (self.dim() == 0) {
    return rushlight::alias(self);
  }
  DimVector order(static_cast<size_t>(self.dim()), -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < from.size(); i++) {
    order[to[i]] = from[i];
    moved |= uint64_t(1) << from[i];
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d < 0) {
      while (((moved >> next) & 1u) != 0) {
        next++;
      }
      d = next++;
    }
  }
  return self.permute(order);
}
Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return rushlight::movedim(self, source, destination);
}
Tensor adjoint(const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "adjoint() takes matrices or batches of them, not a tensor of ",
           self.dim(), " dimensions");
  const Tensor swapped = self.transpose(-2, -1);
  return self.is_complex() ? swapped.conj() : swapped;
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  RL_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  RL_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t size = self.size(dim);
  RL_CHECK_INDEX(start >= -size && start <= size, "narrow: start out of range: ", start,
                 " is not from ", -size, " to ", size);
  const int64_t from = start < 0 ? start + size : start;
  RL_CHECK(from <= size - length, "start (", from, ") + length (", length,
           ") exceeds dimension size (", size, ").");
  return self.slice(dim, from, from + length, 1);
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  RL_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  RL_CHECK(split_size >= 0,
           "split expects split_size be non-negative, but got split_size=", split_size);
  const int64_t size = self.size(dim);
  RL_CHECK(split_size > 0 || size == 0,
           "split: split_size can only be 0 where there is nothing to split, but the dimension has "
           "size ",
           size);
  check_pieces("split", split_size > 0 ? size / split_size : 1);
  DimVector sizes;
  for (int64_t start = 0; start < size; start += split_size) {
    sizes.push_back(std::min(split_size, size - start));
    if (size - start <= split_size) {
      break;
    }
  }
  if (sizes.empty()) {
    sizes.push_back(0);
  }
  return rushlight::split(self, IntArrayRef(sizes), dim);
}
std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return rushlight::split(self, split_sizes, dim);
}
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  RL_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  RL_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = self.size(dim);
  const int64_t each = size / chunks + (size % chunks != 0 ? 1 : 0);
  if (each == 0) {
    check_pieces("chunk", chunks);
    return rushlight::split(self, IntArrayRef(DimVector(static_cast<size_t>(chunks), 0)), dim);
  }
  return rushlight::split(self, each, dim);
}
namespace {
void check_splits(const Tensor& self) {
  RL_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, not one number");
}
}  // namespace
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  check_splits(self);
  RL_CHECK(sections > 0, "tensor_split: sections must be larger than 0, not ", sections);
  const int64_t size = self.size(dim);
  check_pieces("tensor_split", sections);
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; i++) {
    const int64_t end = start + size / sections + (i < size % sections ? 1 : 0);
    out.push_back(self.slice(dim, start, end, 1));
    start = end;
  }
  return out;
}
std::vector<Tensor> tensor_split_indices(const Tensor& self, IntArrayRef indices, int64_t dim) {
  check_splits(self);
  std::vector<Tensor> out;
  int64_t start = 0;
  for (const int64_t end : indices) {
    out.push_back(self.slice(dim, start, end, 1));
    start = end;
  }
  out.push_back(self.slice(dim, start, std::nullopt, 1));
  return out;
}

namespace {

// Whether strides are already those of the format, which where sizes of 1 leave it open they tell.
bool has_format(const Tensor& t, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Preserve:
      return true;
    case MemoryFormat::ChannelsLast:
      return t.impl()->is_channels_last();
    case MemoryFormat::ChannelsLast3d:
      return t.impl()->is_channels_last_3d();
    case MemoryFormat::Contiguous:
      return !t.impl()->is_channels_last() && !t.impl()->is_channels_last_3d();
  }
  return false;
}

Tensor convert_tensor(const Tensor& self, ScalarType dtype, Device device, bool non_blocking,
                      bool copy, std::optional<MemoryFormat> memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  const bool fits = dtype == self.dtype() && device.type() == self.device().type() &&
                    (!device.has_index() || device == self.device()) && has_format(self, format);
  if (fits && !copy) {
    return self;
  }
  // To meta nothing is copied. With a gradient it would be recorded, which `_to_copy` refuses
  // between devices.
  if (device.is_meta() && !self.is_meta() && !is_special(self) &&
      !(tls.grad_mode && self.requires_grad())) {
    Tensor source = self;
    OutSpec spec = shape::clone(source, memory_format);
    spec.dtype = dtype;
    return make_output(spec, device);
  }
  RL_CHECK_NOT_IMPLEMENTED(device.is_meta() || !self.is_meta(),
                           "Cannot copy out of meta tensor; no data!");
  return rushlight::_to_copy(self, dtype, device, non_blocking, memory_format);
}
}  // namespace

Tensor to_dtype(const Tensor& self, ScalarType dtype, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return convert_tensor(self, dtype, self.device(), non_blocking, copy, memory_format);
}
Tensor to_device(const Tensor& self, std::optional<Device> device, std::optional<ScalarType> dtype,
                 bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) {
  return convert_tensor(self, dtype.value_or(self.dtype()), device.value_or(self.device()),
                        non_blocking, copy, memory_format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return convert_tensor(self, other.dtype(), other.device(), non_blocking, copy, memory_format);
}
Tensor type_as(const Tensor& self, const Tensor& other) { return self.to(other); }

Tensor detach(const Tensor& self) {
  const WithoutSpecial plain;
  return self.tensor_data();
}
Tensor& detach_(const Tensor& self) {
  detach_in_place(self);
  return const_cast<Tensor&>(self);
}
Tensor lift_fresh(const Tensor& self) { return self; }
Scalar _local_scalar_dense(const Tensor& self) { return read_number(self); }

Tensor narrow_Tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  RL_CHECK(start.dim() == 0 && is_integral(start.dtype()),
           "narrow: start must be a 0-dim integral tensor, but got one of sizes ", start.sizes(),
           " and dtype ", start.dtype());
  return self.narrow(dim, start.item<int64_t>(), length);
}

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor atleast_2d(const Tensor& self) {
  return self.dim() == 0 ? self.reshape({1, 1}) : self.dim() == 1 ? self.unsqueeze(0) : self;
}
Tensor atleast_3d(const Tensor& self) {
  switch (self.dim()) {
    case 0:
      return self.reshape({1, 1, 1});
    case 1:
      return self.unsqueeze(0).unsqueeze(-1);
    case 2:
      return self.unsqueeze(-1);
    default:
      return self;
  }
}

namespace {
std::vector<Tensor> each(TensorList tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    out.push_back(f(t));
  }
  return out;
}
}  // namespace
std::vector<Tensor> atleast_1d_Sequence(TensorList tensors) {
  return each(tensors, rushlight::atleast_1d);
}
std::vector<Tensor> atleast_2d_Sequence(TensorList tensors) {
  return each(tensors, rushlight::atleast_2d);
}
std::vector<Tensor> atleast_3d_Sequence(TensorList tensors) {
  return each(tensors, rushlight::atleast_3d);
}

// ---- questions ----

bool is_nonzero(const Tensor& self) {
  batching::refuse_control_flow(self);
  RL_CHECK(self.numel() != 0, "Boolean value of Tensor without elements is ambiguous");
  RL_CHECK(self.numel() == 1, "Boolean value of Tensor of shape ", self.sizes(), " is ambiguous");
  return self.item().toBool();
}
bool is_same_size(const Tensor& self, const Tensor& other) { return self.sizes() == other.sizes(); }
bool is_signed(const Tensor& self) { return self.is_signed(); }
bool is_inference(const Tensor& self) { return self.impl()->is_inference(); }
int64_t get_device(const Tensor& self) { return self.device().index(); }

// ---- geometry in place ----

namespace {

void take_history(const Tensor& self, const Tensor& view) {
  const Ref<Node> node = view.grad_fn();
  if (node && !self.is_view()) {  // a view's history is taken again from its root
    AutogradMeta& meta = self.impl()->autograd_or_make();
    meta.grad_fn = node;
    meta.output_nr = static_cast<uint32_t>(view.output_nr());
  }
}

// The geometry and the place in the graph of a tensor, without its memory and its handler.
Tensor meta_copy(const Tensor& self) {
  int64_t end = self.storage_offset() + 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    end += std::max<int64_t>(self.sizes()[d] - 1, 0) * self.strides()[d];
  }
  auto impl = TensorImpl::make(
      StorageImpl::allocate(static_cast<size_t>(end * self.element_size()), Device(kMeta)),
      self.dtype(), self.device());
  impl->set_storage_offset(self.storage_offset());
  impl->set_sizes_and_strides(self.sizes(), self.strides());
  if (self.requires_grad()) {
    const Edge edge = gradient_edge(self);
    AutogradMeta& meta = impl->autograd_or_make();
    meta.grad_fn = edge.node;
    meta.output_nr = edge.input_nr;
    impl->set_requires_grad_flag(true);
  }
  return Tensor(std::move(impl));
}

// `self` becomes what view(self) is: geometry, and the graph that made it. Where a level or a
// special tensor sees the call, they change the tensor and this function records it.
template <class View, class... A>
Tensor& replace_with_view(const char* op, const char* overload, const Tensor& self,
                          const View& view, const A&... arguments) {
  check_inplace(op, self, grad_enabled() && needs_grad(self));
  TensorImpl& impl = *self.impl();
  const uint32_t version = impl.version();
  const bool dual = RL_UNLIKELY(forward::active()) && forward::has_tangent(self);
  const Tensor with_tangents = dual ? view(self) : Tensor();
  if (RL_UNLIKELY(batching::level_of(self) != 0)) {
    const Tensor made = view(self);
    batching::take_value(self, made);
    take_history(self, made);
  } else if (RL_UNLIKELY(has_handler_below(self))) {
    Tensor recorded;
    if (grad_enabled() && needs_grad(self)) {
      struct Lower {
        Mode* before = tls.exchange_lower(nullptr);
        ~Lower() { tls.exchange_lower(before); }
      } const hidden;
      recorded = view(meta_copy(self));
    }
    dispatch_lower(*find_op(op, overload)->function, {Value(self), Value(arguments)...});
    if (recorded.defined()) {
      take_history(self, recorded);
    }
  } else {
    const Tensor made = view(self);
    impl.set_storage_offset(made.storage_offset());
    impl.set_sizes_and_strides(made.sizes(), made.strides());
    take_history(self, made);
  }
  if (with_tangents.defined()) {
    forward::copy_tangents(with_tangents, self);
  }
  if (impl.version() == version) {
    impl.bump_version();
  }
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  const auto view = [&](const Tensor& t) { return t.transpose(dim0, dim1); };
  return replace_with_view("transpose_", "", self, view, dim0, dim1);
}
Tensor& t_(const Tensor& self) {
  return replace_with_view("t_", "", self, [](const Tensor& t) { return t.t(); });
}
Tensor& swapaxes_(const Tensor& self, int64_t axis0, int64_t axis1) {
  return self.transpose_(axis0, axis1);
}
Tensor& swapdims_(const Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose_(dim0, dim1);
}
Tensor& squeeze_(const Tensor& self) {
  return replace_with_view("squeeze_", "", self, [](const Tensor& t) { return t.squeeze(); });
}
Tensor& squeeze__dims(const Tensor& self, IntArrayRef dim) {
  const auto view = [&](const Tensor& t) { return t.squeeze(dim); };
  return replace_with_view("squeeze_", "dims", self, view, dim);
}
Tensor& squeeze__dim(const Tensor& self, int64_t dim) {
  const auto view = [&](const Tensor& t) { return t.squeeze(dim); };
  return replace_with_view("squeeze_", "dim", self, view, dim);
}
Tensor& unsqueeze_(const Tensor& self, int64_t dim) {
  const auto view = [&](const Tensor& t) { return t.unsqueeze(dim); };
  return replace_with_view("unsqueeze_", "", self, view, dim);
}
Tensor& as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset) {
  const auto view = [&](const Tensor& t) { return t.as_strided(size, stride, storage_offset); };
  return replace_with_view("as_strided_", "", self, view, size, stride, storage_offset);
}
Tensor& resize_(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  RL_CHECK(!self.requires_grad() || tls.inference_mode,
           "cannot resize variables that require grad");
  RL_CHECK(!forward::active() || !forward::has_tangent(self),
           "cannot resize variables that has a forward grad");
  check_inplace("resize_", self, /*needs_grad=*/false);
  if (RL_UNLIKELY(has_handler_below(self))) {
    const uint32_t version = self.impl()->version();
    dispatch_lower(*find_op("resize_", "")->function,
                   {Value(self), Value(size), Value(memory_format)});
    if (self.impl()->version() == version) {
      self.impl()->bump_version();
    }
    return const_cast<Tensor&>(self);
  }
  RL_CHECK(memory_format != MemoryFormat::Preserve,
           "resize_(): Unsupported memory format: preserve_format has no tensor to follow");
  DimVector strides;  // known to be right before anything is changed
  if (memory_format) {
    strides = *memory_format == MemoryFormat::Contiguous
                  ? contiguous_strides(size)
                  : channels_last_strides(size, *memory_format);
  }
  const bool grows = !(self.sizes() == size);
  if (grows) {
    resize_raw(self, size);
  }
  if (memory_format) {
    self.impl()->set_sizes_and_strides(size, strides);
  }
  if (grows || memory_format) {
    self.impl()->bump_version();
  }
  return const_cast<Tensor&>(self);
}
Tensor& resize_as_(const Tensor& self, const Tensor& the_template,
                   std::optional<MemoryFormat> memory_format) {
  if (memory_format == MemoryFormat::Preserve) {
    memory_format = the_template.suggest_memory_format();
  }
  return self.resize_(the_template.sizes(), memory_format);
}

}  // namespace composite

}  // namespace rushlight
