// Dimension arithmetic, making tensors below the ops, out= handling and overlap checks.
#include "core/inference.h"
#include "core/op_support.h"
#include "core/refusals.h"

#include <algorithm>

#include "core/sparse.h"

namespace rushlight {

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = std::max<int64_t>(ndim, 1);
  RL_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n,
                 ", ", n - 1, "], but got ", dim, "): it counts from 0, or from -1 at the end");
  return dim < 0 ? dim + n : dim;
}

int64_t existing_dim(int64_t dim, int64_t ndim) {
  RL_CHECK_INDEX(ndim != 0, "Dimension specified as ", dim,
                 " of a number: the tensor has no dimensions");
  return wrap_dim(dim, ndim);
}

DimVector wrap_dims(IntArrayRef dims, int64_t ndim, bool empty_is_all) {
  DimVector out;
  if (dims.empty() && empty_is_all) {
    for (int64_t d = 0; d < ndim; d++) {
      out.push_back(d);
    }
    return out;
  }
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim(dim, ndim);
    RL_CHECK(((seen >> d) & 1u) == 0, "dim ", d, " appears multiple times among ", dims);
    seen |= uint64_t(1) << d;
    if (ndim != 0) {
      out.push_back(d);
    }
  }
  return out;
}

int64_t next_stride(int64_t stride, int64_t size) {
  const bool overflow = __builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &stride);
  RL_CHECK(!overflow, "Stride calculation overflowed");
  return stride;
}

DimVector contiguous_strides(IntArrayRef sizes) {
  DimVector out(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    out[i - 1] = next_stride(out[i], sizes[i]);
  }
  return out;
}

DimVector channels_last_strides(IntArrayRef sizes, MemoryFormat format) {
  const bool volume = format == MemoryFormat::ChannelsLast3d;
  const size_t n = volume ? 5 : 4;
  RL_CHECK(sizes.size() == n, "required rank ", n, " tensor to use channels_last",
           volume ? "_3d" : "", " format, but the sizes are ", sizes);
  DimVector out(n);
  int64_t step = 1;
  const auto pass = [&step](int64_t size) { step = size == 0 ? 0 : next_stride(step, size); };
  out[1] = step;
  pass(sizes[1]);
  for (size_t i = n; i-- > 2;) {
    out[i] = step;
    pass(sizes[i]);
  }
  out[0] = step;
  return out;
}

namespace {

// Whether channels vary fastest and images slowest, with gaps or without.
bool channels_vary_fastest(const Tensor& t) {
  const IntArrayRef sizes = t.sizes();
  const IntArrayRef strides = t.strides();
  const size_t n = sizes.size();
  if (t.numel() == 0 || strides[1] == 0) {
    return false;
  }
  int64_t below = 0;
  for (size_t i = 0; i < n; i++) {  // channels, then the image from its last dimension, images
    const size_t d = i == 0 ? 1 : i == n - 1 ? 0 : n - i;
    // Of images of one place and one channel nobody can tell.
    if (strides[d] < below || (d == 0 && below == strides[1])) {
      return false;
    }
    below = strides[d] * sizes[d];
  }
  return true;
}

}  // namespace

MemoryFormat format_of(const Tensor& t) {
  if (t.is_contiguous() || (t.dim() != 4 && t.dim() != 5) || !channels_vary_fastest(t)) {
    return MemoryFormat::Contiguous;
  }
  return t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

DimVector broadcast_sizes(IntArrayRef a, IntArrayRef b) {
  const size_t n = std::max(a.size(), b.size());
  DimVector out(n);
  for (size_t i = 0; i < n; i++) {
    const int64_t x = i + a.size() >= n ? a[i + a.size() - n] : 1;
    const int64_t y = i + b.size() >= n ? b[i + b.size() - n] : 1;
    RL_CHECK(x == y || x == 1 || y == 1, a, " and ", b, " do not broadcast: tensor a (", x,
             ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

bool is_expandable_to(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) {
    return false;
  }
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] != 1 && from[i] != to[i + shift]) {
      return false;
    }
  }
  return true;
}

int64_t product(IntArrayRef sizes) {
  int64_t n = 1;
  bool empty = false;
  bool overflow = false;
  for (const int64_t s : sizes) {
    empty |= s == 0;
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  RL_CHECK(empty || !overflow, "numel: integer multiplication overflow for sizes ", sizes);
  return empty ? 0 : n;
}

DimVector reduced_sizes(IntArrayRef sizes, IntArrayRef wrapped_dims, bool keepdim) {
  uint64_t mask = 0;
  for (const int64_t d : wrapped_dims) {
    mask |= uint64_t(1) << d;
  }
  DimVector out;
  for (size_t i = 0; i < sizes.size(); i++) {
    const bool reduced = ((mask >> i) & 1u) != 0;
    if (!reduced) {
      out.push_back(sizes[i]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

// ---- making tensors ----

Tensor make_empty(IntArrayRef sizes, ScalarType dtype, Device device) {
  auto impl = TensorImpl::make(Storage(), dtype, device);
  impl->set_sizes_contiguous(sizes);
  impl->set_storage(
      StorageImpl::allocate(static_cast<size_t>(impl->numel() * itemsize(dtype)), device));
  return Tensor(std::move(impl));
}

namespace {

// Elements from the first to one past the last that this geometry reaches; negative reach is
// refused.
int64_t span_of(IntArrayRef sizes, IntArrayRef strides) {
  RL_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
           ") must match dimensionality of strides (", strides.size(), ")");
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] <= 0) {  // negative ones are refused where they are set
      return 0;
    }
    int64_t reach = 0;
    RL_CHECK(strides[i] >= 0,
             "as_strided: Negative strides are not supported, got strides: ", strides);
    const bool overflow = __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
                          __builtin_add_overflow(span, reach, &span);
    RL_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes,
             " and strides=", strides);
  }
  return span;
}

}  // namespace

Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device) {
  const int64_t span = span_of(sizes, strides);
  auto impl = TensorImpl::make(Storage(), dtype, device);
  impl->set_sizes_and_strides(sizes, strides);
  int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(span, itemsize(dtype), &bytes);
  RL_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes,
           " and strides=", strides);
  impl->set_storage(StorageImpl::allocate(static_cast<size_t>(bytes), device));
  return Tensor(std::move(impl));
}

Tensor make_empty_later(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  auto impl = TensorImpl::make(Storage(), dtype, kCPU);
  if (strides.empty()) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides);
  }
  impl->set_storage(
      StorageImpl::allocate_later(static_cast<size_t>(impl->numel() * itemsize(dtype))));
  return Tensor(std::move(impl));
}

namespace {
DimVector strides_of(const OutSpec& spec) {
  if (!spec.strides.empty() || spec.sizes.empty()) {
    return spec.strides;
  }
  return spec.format == MemoryFormat::Contiguous ? contiguous_strides(spec.sizes)
                                                 : channels_last_strides(spec.sizes, spec.format);
}
}  // namespace

Tensor make_output(const OutSpec& spec, Device device) {
  if (spec.strides.empty() && spec.format == MemoryFormat::Contiguous) {
    return make_empty(spec.sizes, spec.dtype, device);
  }
  return make_empty_strided(spec.sizes, strides_of(spec), spec.dtype, device);
}

DimVector preserved_strides(const Tensor& like) {
  if (like.is_contiguous() || like.impl()->is_non_overlapping_and_dense()) {
    return like.strides();
  }
  // Keep the order of the strides, closing gaps, as TensorIterator orders dimensions; expanded
  // dimensions stay where they are among their neighbours. From the innermost dimension.
  const int64_t n = like.dim();
  DimVector order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) {
    order[i] = n - 1 - i;
  }
  const IntArrayRef strides = like.strides();
  const IntArrayRef sizes = like.sizes();
  const auto is_outside = [&](int64_t a,
                              int64_t b) {  // 1: a lies outside b, -1: inside, 0: unknown
    if (strides[a] == 0 || strides[b] == 0) {
      return 0;
    }
    if (strides[a] != strides[b]) {
      return strides[a] > strides[b] ? 1 : -1;
    }
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  for (int64_t i = 1; i < n; i++) {
    int64_t moved = i;
    for (int64_t j = i; j-- > 0;) {
      const int outside = is_outside(order[j], order[moved]);
      if (outside < 0) {
        break;
      }
      if (outside > 0) {
        std::swap(order[j], order[moved]);
        moved = j;
      }
    }
  }
  DimVector fresh(static_cast<size_t>(n));
  int64_t step = 1;
  for (int64_t i = 0; i < n; i++) {
    fresh[order[i]] = step;
    step = i + 1 < n ? next_stride(step, sizes[order[i]]) : step;
  }
  return fresh;
}

Tensor make_empty_like(const Tensor& like, ScalarType dtype) {
  if (like.is_contiguous()) {
    return make_empty(like.sizes(), dtype, like.device());
  }
  return make_empty_strided(like.sizes(), preserved_strides(like), dtype, like.device());
}

Tensor make_view(const Tensor& base, const ViewSpec& spec) {
  const ScalarType dtype = spec.dtype == ScalarType::Undefined ? base.dtype() : spec.dtype;
  auto impl = TensorImpl::make(base.storage(), dtype, base.device());
  RL_CHECK(spec.offset >= 0, "Tensor: invalid storage offset ", spec.offset);
  impl->set_storage_offset(spec.offset);
  int64_t span = 0;  // elements from the first to the last
  if (spec.contiguous) {
    impl->set_sizes_contiguous(spec.sizes);
    span = impl->numel();
  } else {
    span = span_of(spec.sizes, spec.strides);
    impl->set_sizes_and_strides(spec.sizes, spec.strides);
  }
  int64_t bytes = 0;
  const bool overflow = __builtin_add_overflow(span, spec.offset, &bytes) ||
                        __builtin_mul_overflow(bytes, itemsize(dtype), &bytes);
  const bool inside = span == 0 || static_cast<uint64_t>(bytes) <= base.storage()->nbytes();
  RL_CHECK(!overflow && inside, "setStorage: a view of sizes ", spec.sizes, ", strides ",
           spec.strides, " and storage offset ", spec.offset, " with ", itemsize(dtype),
           " bytes an element ends at byte ", bytes, ", out of bounds for storage of size ",
           base.storage()->nbytes());
  impl->set_inference(base.impl()->is_inference());
  return Tensor(std::move(impl));
}

Tensor make_number(const Scalar& value, Device device) {
  Tensor t = make_empty({}, value.dtype(), device);
  t.impl()->set_wrapped_number(true);
  if (device.is_cpu()) {
    store_scalar(t.data_ptr(), value.dtype(), value);
  } else {
    fill_raw(t, value);
  }
  return t;
}

Tensor as_leaf(const Tensor& made, bool requires_grad) {
  if (!requires_grad) {
    return made;
  }
  RL_CHECK(
      is_differentiable(made.dtype()),
      "Only Tensors of floating point and complex dtype can require gradients, but this one is ",
      made.dtype(), ": make it of floats");
  return made.requires_grad_();
}

TensorOptions without_format(const TensorOptions& options) {
  return options.memory_format(std::nullopt).requires_grad(false);
}

std::optional<MemoryFormat> format_of(const TensorOptions& options,
                                      std::optional<MemoryFormat> memory_format) {
  RL_CHECK(!(memory_format && options.has_memory_format()),
           "Cannot set memory_format both in TensorOptions and explicit argument; say it in one "
           "place");
  return memory_format ? memory_format : options.memory_format_opt();
}

Tensor in_format(const Tensor& made, const TensorOptions& options) {
  const MemoryFormat format = options.memory_format_opt().value_or(MemoryFormat::Preserve);
  const bool kept = format == MemoryFormat::Preserve;
  return as_leaf(kept ? made : made.contiguous(format), options.requires_grad());
}

// ---- out= ----

void resize_out(const Tensor& out, IntArrayRef sizes) {
  if (out.sizes() == sizes) {
    return;
  }
  if (out.numel() != 0) {
    warn(str("An output with one or more elements was resized: it had shape ", out.sizes(),
             ", and the result has ", sizes,
             ". That is deprecated: give an output of this shape, or one without elements."));
  }
  resize_raw(out, sizes);
}

void check_out_dtype(const char* op, std::optional<ScalarType> dtype, const Tensor& out) {
  RL_CHECK(dtype.value_or(out.dtype()) == out.dtype(), op, ": Expected out tensor to have dtype ",
           enum_name(*dtype), ", but got ", enum_name(out.dtype()), " instead");
}

Tensor begin_out(const char* op, const Tensor& out, const OutSpec& spec, Device device,
                 InputList inputs) {
  check_inference_write(op, out);
  RL_CHECK(out.device() == device, op, ": Expected out tensor to have device ", device,
           ", but got ", out.device(), " instead");
  RL_CHECK(can_cast(spec.dtype, out.dtype()), "result type ", enum_name(spec.dtype),
           " can't be cast to the output's ", enum_name(out.dtype()), ": convert it with to()");
  const bool fits = out.sizes() == IntArrayRef(spec.sizes);
  bool apart = true;
  for (const Tensor* in : inputs) {
    if (in == nullptr || !in->defined() || in->storage() != out.storage()) {
      continue;
    }
    RL_CHECK(fits || !out.is_same(*in), "the output of shape ", out.sizes(),
             " doesn't match the broadcast shape ", spec.sizes, ", and ", op,
             " cannot resize it, for it is an input, too");
    const Overlap overlap = memory_overlap(out, *in);
    check_no_partial_overlap(op, overlap);
    apart = apart && fits && overlap == Overlap::No;
  }
  if (!fits && !apart) {
    return make_output(spec, device);  // inputs are read before the common storage is resized
  }
  resize_out(out, spec.sizes);
  check_no_internal_overlap(op, out);
  const bool direct =
      apart && out.dtype() == spec.dtype && IntArrayRef(strides_of(spec)) == out.strides();
  return direct ? out : make_output(spec, device);
}

void finish_out(const Tensor& out, const Tensor& written) {
  if (!out.is_same(written)) {
    resize_out(out, written.sizes());
    copy_raw(out, written);
  }
  out.impl()->bump_version();
}

void check_outputs_apart(const char* op, InputList outputs) {
  for (size_t i = 0; i < outputs.size(); i++) {
    for (size_t j = 0; j < i; j++) {
      const Tensor* a = outputs[i];
      const Tensor* b = outputs[j];
      RL_CHECK(a == nullptr || b == nullptr ||
                   (!a->is_same(*b) && memory_overlap(*a, *b) == Overlap::No),
               op, ": unsupported operation: two of the output tensors share memory");
    }
  }
}

std::atomic<bool> marks_unwritten{false};

void mark_unwritten(const Tensor& t) {
  if (t.is_meta() || t.numel() == 0) {
    return;
  }
  visit_dtype<set_stored>("empty", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      fill_raw(t, true);
    } else if constexpr (std::is_integral_v<T>) {
      fill_raw(t, std::numeric_limits<T>::max());
    } else if constexpr (is_complex_v<T>) {
      fill_raw(t, complex<double>(std::numeric_limits<double>::quiet_NaN(), 0));
    } else {
      fill_raw(t, std::numeric_limits<double>::quiet_NaN());
    }
  });
}

void resize_raw(const Tensor& t, IntArrayRef sizes) {
  const auto negative = std::find_if(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; });
  RL_CHECK(negative == sizes.end(), "Trying to resize a tensor to a negative dimension: ", sizes);
  int64_t bytes = 0;
  const bool overflow = __builtin_add_overflow(product(sizes), t.storage_offset(), &bytes) ||
                        __builtin_mul_overflow(bytes, t.element_size(), &bytes);
  RL_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes);
  if (static_cast<uint64_t>(bytes) > t.storage()->nbytes()) {
    const auto item = static_cast<size_t>(t.element_size());
    const auto begin = static_cast<int64_t>((t.storage()->nbytes() + item - 1) / item);
    t.storage()->resize(static_cast<size_t>(bytes));
    if (RL_UNLIKELY(marks_unwritten.load(std::memory_order_relaxed))) {
      auto added = TensorImpl::make(t.storage(), t.dtype(), t.device());
      added->set_storage_offset(begin);
      added->set_sizes_contiguous({bytes / t.element_size() - begin});
      mark_unwritten(Tensor(std::move(added)));
    }
  }
  t.impl()->set_sizes_contiguous(sizes);
}

void refuse_undefined(const char* op, const char* name) {
  throw Error(str(op, "(): expected a tensor as argument '", name, "', got an undefined tensor"));
}

DimVector repeat_to(size_t n, const char* name, IntArrayRef list) {
  if (list.size() == 1) {
    return DimVector(n, list[0]);
  }
  RL_CHECK(list.size() == n || list.empty(), "expected ", name,
           " to be a single integer value or a list of ", n, " values, but got ", name, "=", list);
  return list;
}

Tensor copy_if_overlapping(const char* op, const Tensor& out, const Tensor& t, bool in_step) {
  if (!t.defined() || t.storage() != out.storage()) {
    return t;
  }
  const Overlap overlap = memory_overlap(out, t);
  check_no_partial_overlap(op, overlap);
  if (overlap == Overlap::No || (in_step && overlap == Overlap::Full)) {
    return t;
  }
  Tensor copy = make_empty_like(t, t.dtype());
  copy_raw(copy, t);
  return copy;
}

void assign_out(const char* op, const Tensor& out, const Tensor& value) {
  const Tensor written =
      begin_out(op, out, {value.sizes(), value.dtype()}, value.device(), {&value});
  copy_raw(written, value);
  finish_out(out, written);
}

TensorOptions options_of(const Tensor& out, const TensorOptions& given) {
  RL_CHECK(given.dtype_opt().value_or(out.dtype()) == out.dtype(), "dtype ",
           enum_name(given.dtype()), " does not match dtype of out parameter (",
           enum_name(out.dtype()), ")");
  RL_CHECK(given.layout_opt().value_or(out.layout()) == out.layout(), "layout ",
           layout_text(given.layout()), " does not match layout of out parameter (",
           layout_text(out.layout()), ")");
  RL_CHECK(given.device_opt().value_or(out.device()) == out.device(), "device type ",
           given.device(), " does not match device type of out parameter (", out.device(), ")");
  return out.options();
}

void fill_out(const char* op, const Tensor& out, const Tensor& made, bool any_shape,
              bool requires_grad) {
  check_no_internal_overlap(op, out);
  Tensor values = made;
  if (any_shape && out.numel() == made.numel()) {
    values = make_view(made, {.sizes = out.sizes(), .strides = {}, .contiguous = true});
  } else if (any_shape) {
    resize_out(out, made.sizes());
  } else if (out.sizes() != made.sizes()) {
    resize_raw(out, made.sizes());
  }
  if (!out.is_meta()) {
    copy_raw(out, values);
  }
  out.impl()->bump_version();
  if (requires_grad) {
    out.requires_grad_(true);
  }
}

// ---- overlap ----

bool has_internal_overlap(const Tensor& t) {
  if (t.impl()->is_non_overlapping_and_dense()) {
    return false;
  }
  for (int64_t d = 0; d < t.dim(); d++) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) {
      return true;
    }
  }
  return false;
}

namespace {
[[noreturn]] void refuse_overlap(const char* op, const char* which, const std::string& about = "") {
  throw Error(
      str(op, ": ", which, " a single memory location", about, ": write to a clone() of it"));
}
}  // namespace

void check_no_internal_overlap(const char* op, const Tensor& t) {
  if (has_internal_overlap(t)) {
    refuse_overlap(op, "more than one element of the written-to tensor refers to",
                   str(" (shape ", t.sizes(), ", strides ", t.strides(), ")"));
  }
}

Overlap memory_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || a.is_meta() || b.is_meta()) {
    return Overlap::No;
  }
  if (a.is_same(b)) {
    return Overlap::Full;
  }
  const auto* const a_begin = static_cast<const char*>(a.data_ptr());
  const auto* const b_begin = static_cast<const char*>(b.data_ptr());
  const char* const a_end = a_begin + span_of(a.sizes(), a.strides()) * a.element_size();
  const char* const b_end = b_begin + span_of(b.sizes(), b.strides()) * b.element_size();
  if (a_end <= b_begin || b_end <= a_begin) {
    return Overlap::No;
  }
  if (a_begin == b_begin && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
      a.strides() == b.strides()) {
    return Overlap::Full;
  }
  // Interleaved columns of one matrix do not overlap though their spans do.
  if (a.dtype() == b.dtype() && a.dim() == b.dim() && a.strides() == b.strides() &&
      a.sizes() == b.sizes()) {
    const int64_t shift = (b_begin - a_begin) / a.element_size();
    const int64_t distance = shift < 0 ? -shift : shift;
    for (int64_t d = 0; d < a.dim(); d++) {
      const int64_t stride = a.strides()[d];
      if (a.sizes()[d] > 1 && distance < stride) {
        int64_t inner = 0;
        for (int64_t e = 0; e < a.dim(); e++) {
          if (a.strides()[e] < stride) {
            inner += (a.sizes()[e] - 1) * a.strides()[e];
          }
        }
        if (distance > inner && distance + inner < stride) {
          return Overlap::No;
        }
      }
    }
  }
  const bool dense =
      a.impl()->is_non_overlapping_and_dense() && b.impl()->is_non_overlapping_and_dense();
  return dense ? Overlap::Partial : Overlap::Perhaps;
}

void check_no_partial_overlap(const char* op, Overlap overlap) {
  if (overlap == Overlap::Partial) {
    refuse_overlap(op, "some elements of an input and of the written-to tensor lie at");
  }
}

// ---- devices ----

Device common_device(const char* op, InputList tensors) {
  Device device = kCPU;
  bool found = false;
  for (const Tensor* t : tensors) {
    if (t == nullptr || !t->defined() || (t->dim() == 0 && t->is_cpu())) {
      continue;
    }
    if (found) {
      check_same_device(op, device, t->device());
    }
    device = t->device();
    found = true;
  }
  return device;
}

void move_numbers_to(const char* op, Device where, const Tensor* written,
                     std::initializer_list<Tensor*> operands) {
  if (where.is_meta()) {
    return;
  }
  if (written != nullptr) {
    check_same_device(op, where, written->device());
  }
  for (Tensor* t : operands) {
    if (t->defined() && t->is_cpu()) {
      const Tensor moved = make_empty(t->sizes(), t->dtype(), where);
      copy_raw(moved, *t);
      *t = moved;
    }
  }
}

void no_kernel(const char* op, Device device) {
  throw NotImplementedError(
      str("Could not run '", op, "' on device ", device, ": it has no kernel there"));
}

}  // namespace rushlight
