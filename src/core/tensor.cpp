// TensorImpl: geometry and its derived flags, versions, the Python object; and Tensor's plain
// accessors.
#include <rushlight/tensor.h>

#include <algorithm>
#include <limits>
#include <new>

#include <rushlight/autograd.h>
#include <rushlight/mode.h>

#include "core/backend.h"
#include "core/op_support.h"
#include "core/refusals.h"
#include "core/small_blocks.h"
#include "core/times.h"
#include "core/without_upper.h"

namespace rushlight {

constinit thread_local ThreadState tls __attribute__((tls_model("initial-exec")));

namespace {
void (*python_release_hook)(_object*) = nullptr;
}  // namespace

void set_python_release_hook(void (*hook)(_object*)) { python_release_hook = hook; }

Ref<TensorImpl> TensorImpl::make(Storage storage, ScalarType dtype, Device device) {
  auto impl = Ref<TensorImpl>::steal(new (small_allocate(sizeof(TensorImpl))) TensorImpl());
  impl->storage_ = std::move(storage);
  impl->dtype_ = dtype;
  impl->device_ = resolve_device(device);
  impl->inference_ = tls.inference_mode;
  return impl;
}

void TensorImpl::release() const {
  // References are taken from references, but by a node that keeps the gradient and by an object
  // that this owns. Where there is neither, the last owner is alone and needs no atomic write.
  const bool alone = use_count() == 1 && autograd() == nullptr && !owns_python_;
  if (!alone && !drop()) {
    return;
  }
  if (owns_python_ && python_release_hook != nullptr) {
    python_release_hook(python_);
  } else {
    auto* const self = const_cast<TensorImpl*>(this);
    self->~TensorImpl();
    small_free(self, sizeof(TensorImpl));
  }
}

TensorImpl::~TensorImpl() {
  delete special_;
  delete autograd();
  const Ref<VersionCell> version =
      Ref<VersionCell>::steal(version_cell_.load(std::memory_order_relaxed));
  if (dims_ != inline_) {
    delete[] dims_;
  }
}

void TensorImpl::set_special(std::unique_ptr<SpecialTensor> special) {
  delete special_;
  special_ = special.release();
  refresh_asks();
}

void TensorImpl::check_has_memory() const { special_->check_has_memory(); }

AutogradMeta& TensorImpl::autograd_or_make() {
  AutogradMeta* meta = autograd();
  if (meta == nullptr) {
    auto fresh = std::make_unique<AutogradMeta>();
    if (autograd_.compare_exchange_strong(meta, fresh.get(), std::memory_order_acq_rel)) {
      meta = fresh.release();
    }
  }
  return *meta;
}

VersionCell& TensorImpl::share_version() {
  if (is_view()) {
    return view_.root->share_version();
  }
  VersionCell* cell = version_cell_.load(std::memory_order_acquire);
  if (cell == nullptr) {
    auto fresh = Ref<VersionCell>::steal(new VersionCell());
    fresh->value.store(version_, std::memory_order_relaxed);
    if (version_cell_.compare_exchange_strong(cell, fresh.get(), std::memory_order_acq_rel)) {
      cell = fresh.leak();
    }
  }
  return *cell;
}

void TensorImpl::set_version_cell(VersionCell& cell) {
  cell.retain();
  const Ref<VersionCell> before =
      Ref<VersionCell>::steal(version_cell_.exchange(&cell, std::memory_order_acq_rel));
}

namespace {
// Usually a few numbers: a call of memmove would cost more than they do.
void copy_dims(IntArrayRef from, int64_t* to) {
  for (size_t i = 0; i < from.size(); i++) {
    to[i] = from[i];
  }
}
}  // namespace

void TensorImpl::set_dims(IntArrayRef sizes) {
  RL_CHECK(sizes.size() <= 64, "only tensors with up to 64 dims are supported, got one of ",
           sizes.size());
  const auto n = static_cast<int32_t>(sizes.size());
  int64_t numel = 1;
  bool overflow = false;
  for (const int64_t size : sizes) {
    RL_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
    overflow |= __builtin_mul_overflow(numel, size, &numel);
  }
  int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(numel, itemsize(dtype_), &bytes);
  RL_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes);
  // Nothing has changed until here.
  if (n > inline_dims && (dims_ == inline_ || n > ndim_)) {
    int64_t* fresh = new int64_t[2 * n];
    if (dims_ != inline_) {
      delete[] dims_;
    }
    dims_ = fresh;
  }
  ndim_ = n;
  copy_dims(sizes, dims_);
  numel_ = numel;
}

void TensorImpl::set_sizes_contiguous(IntArrayRef sizes) {
  if (sizes.data() == dims_) {  // what is read would be written meanwhile
    set_sizes_contiguous(DimVector(sizes));
    return;
  }
  int64_t step = 1;
  if (RL_UNLIKELY(std::find(sizes.begin(), sizes.end(), 0) != sizes.end())) {
    // With a 0 among them the strides can overflow where the number of elements does not.
    for (size_t i = sizes.size(); i-- > 1;) {
      step = next_stride(step, sizes[i]);  // raises before anything changes
    }
    step = 1;
  }
  set_dims(sizes);
  for (int32_t i = ndim_ - 1; i > 0; i--) {
    dims_[ndim_ + i] = step;
    step *= std::max<int64_t>(dims_[i], 1);
  }
  if (ndim_ > 0) {
    dims_[ndim_] = step;
  }
  contiguous_ = true;
  dense_ = true;
  if (ndim_ >= 4) {
    refresh_flags();
  } else {
    channels_last_ = false;
    channels_last_3d_ = false;
  }
}

void TensorImpl::set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides) {
  RL_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape: ", sizes,
           " and ", strides);
  const auto is_own = [&](IntArrayRef list) {
    return list.data() >= dims_ && list.data() < dims_ + 2 * ndim_;
  };
  if (is_own(sizes) || is_own(strides)) {  // what is read would be written meanwhile
    set_sizes_and_strides(DimVector(sizes), DimVector(strides));
    return;
  }
  set_dims(sizes);
  copy_dims(strides, dims_ + ndim_);
  refresh_flags();
}

namespace {

// Whether the strides tell this order, and no other: where sizes of 1 leave it open, they decide,
// and what they leave open too is contiguous as usual.
bool has_strides_of_order(IntArrayRef sizes, IntArrayRef strides, IntArrayRef order) {
  int64_t expected = 1;
  int64_t least = 0;
  for (const int64_t d : order) {
    if (sizes[d] == 0) {
      return false;
    }
    if (strides[d] < least) {
      return false;
    }
    if (d == 0 && least == strides[1]) {  // N1HW ambiguity: prefer contiguous
      return false;
    }
    least = strides[d];
    if (sizes[d] > 1 && __builtin_mul_overflow(least, sizes[d], &least)) {
      return false;
    }
    if (sizes[d] != 1 && strides[d] != expected) {
      return false;
    }
    expected *= sizes[d];
  }
  return true;
}

}  // namespace

void TensorImpl::refresh_flags() {
  const IntArrayRef size = sizes();
  const IntArrayRef stride = strides();
  if (ndim_ <= 1) {
    contiguous_ = numel_ <= 1 || stride[0] == 1;
    dense_ = contiguous_;
    channels_last_ = false;
    channels_last_3d_ = false;
    return;
  }
  contiguous_ = true;
  int64_t expected = 1;
  for (int32_t i = ndim_ - 1; i >= 0 && numel_ != 0; i--) {
    if (size[i] != 1 && stride[i] != expected) {
      contiguous_ = false;
      break;
    }
    expected *= size[i];
  }
  channels_last_ = ndim_ == 4 && numel_ != 0 && has_strides_of_order(size, stride, {1, 3, 2, 0});
  channels_last_3d_ =
      ndim_ == 5 && numel_ != 0 && has_strides_of_order(size, stride, {1, 4, 3, 2, 0});
  dense_ = contiguous_ || channels_last_ || channels_last_3d_;
  if (!dense_) {
    int64_t order[64];
    int n = 0;
    for (int32_t i = 0; i < ndim_; i++) {
      if (size[i] != 1) {
        order[n++] = i;
      }
    }
    std::sort(order, order + n, [&](int64_t a, int64_t b) { return stride[a] < stride[b]; });
    dense_ = true;
    expected = 1;
    for (int i = 0; i < n && numel_ != 0; i++) {
      if (stride[order[i]] != expected) {
        dense_ = false;
        break;
      }
      expected *= size[order[i]];
    }
  }
}

// ---- Tensor ----

int64_t Tensor::size(int64_t d) const { return sizes()[existing_dim(d, dim())]; }
int64_t Tensor::stride(int64_t d) const { return strides()[existing_dim(d, dim())]; }

namespace {

// Whether the elements lie together in this order of dimensions, innermost first. Strides of
// dimensions of size 1 do not matter: a grey image is contiguous in every format.
bool has_strides_of_order(const Tensor& t, IntArrayRef order) {
  const IntArrayRef sizes = t.sizes();
  const IntArrayRef strides = t.strides();
  int64_t expected = 1;
  return sizes.size() == order.size() && std::all_of(order.begin(), order.end(), [&](int64_t d) {
           const bool fits = sizes[d] == 1 || strides[d] == expected;
           expected = times(expected, sizes[d]);
           return fits;
         });
}

}  // namespace

MemoryFormat Tensor::suggest_memory_format(bool exactly) const {
  const TensorImpl& t = checked_impl();
  // From the channels outwards over the pixels to the images, each step at least as long as what
  // the one before spans.
  const auto follows = [&](std::initializer_list<size_t> order) {
    int64_t least = 0;
    for (const size_t d : order) {
      if (t.strides()[d] < least || t.sizes()[d] == 0 || t.strides()[d] == 0) {
        return false;
      }
      // Plain strides of images of one channel look like this, too.
      if (d == 0 && least == t.strides()[1]) {
        return false;
      }
      least = t.strides()[d] * std::max<int64_t>(t.sizes()[d], 1);
    }
    return true;
  };
  const bool plain = layout() == kStrided;
  if (plain && t.dim() == 4 && follows({1, 3, 2, 0}) && (!exactly || t.is_channels_last())) {
    return MemoryFormat::ChannelsLast;
  }
  if (plain && t.dim() == 5 && follows({1, 4, 3, 2, 0}) && (!exactly || t.is_channels_last_3d())) {
    return MemoryFormat::ChannelsLast3d;
  }
  return MemoryFormat::Contiguous;
}

bool Tensor::is_pinned(std::optional<Device>) const { return rushlight::is_pinned(*this); }
Tensor Tensor::pin_memory(std::optional<Device>) const { return rushlight::pin_memory(*this); }

bool Tensor::is_contiguous(MemoryFormat format) const {
  switch (format) {
    case MemoryFormat::ChannelsLast:
      return has_strides_of_order(*this, {1, 3, 2, 0});
    case MemoryFormat::ChannelsLast3d:
      return has_strides_of_order(*this, {1, 4, 3, 2, 0});
    default:
      return checked_impl().is_contiguous();
  }
}

const std::string& Tensor::name() const {
  static const std::string& none = *new std::string;  // never destroyed
  checked_impl();
  return none;
}

void Tensor::refuse_undefined() {
  throw Error("this Tensor is undefined: it was declared, but never given a value");
}

void Tensor::check_dtype(ScalarType wanted) const {
  RL_CHECK(dtype() == wanted, "expected scalar type ", wanted, " but found ", dtype());
}

Scalar read_number(const Tensor& t) {
  check_one_element(t);
  RL_CHECK(!t.is_meta(), "Tensor.item() cannot be called on meta tensors");
  if (!t.is_cpu()) {
    const Tensor here = make_empty({}, t.dtype(), kCPU);
    copy_raw(here, make_view(t, {{}, {}, t.storage_offset()}));
    return read_number(here);
  }
  if (t.dtype() == kBool) {
    return *t.data<uint8_t>() != 0;  // the byte of memory that nobody wrote may be any
  }
  return visit_dtype<set_stored>("item", t.dtype(), [&](auto tag) -> Scalar {
    return *t.data<typename decltype(tag)::type>();
  });
}

Scalar _local_scalar_dense(const Tensor& self);  // the op, which src/core does not see

Scalar Tensor::item() const {
  check_one_element(*this);
  // A number is no tensor in boxed form, so that nobody below could be asked for it.
  return RL_UNLIKELY(has_handler_below(*this)) && !impl()->is_wrapped_number()
             ? _local_scalar_dense(*this)
             : read_number(*this);
}

std::string Tensor::toString() const {  // as libtorch names types: CPUFloatType
  if (!defined()) {
    return "UndefinedType";
  }
  std::string device = this->device().str();
  for (char& c : device) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return device.substr(0, device.find(':')) + enum_name(dtype()) + "Type";
}

// The memory of a special tensor is its own affair: what shares it is what its `detach` gives.
TensorOptions TensorOptions::pinned_memory(bool wanted) const {
  RL_CHECK(!wanted, "Cannot access accelerator device when none is available: pinned_memory(true)");
  return *this;
}

Tensor detach(const Tensor& self);  // the op

Tensor SpecialTensor::alias(const Tensor& self) const { return rushlight::detach(self); }

namespace {

// What a special tensor gives as an alias, which is no call of a program: modes above see none.
Tensor alias_of_special(const Tensor& t) {
  const WithoutUpperModes unseen;
  return t.impl()->special()->alias(t);
}

// A tensor of the same geometry on the same memory, outside the graph.
Tensor window_on(const Tensor& t, bool share_version) {
  if (RL_UNLIKELY(is_special(t))) {
    if (tls.see_special) {
      Tensor alias = alias_of_special(t);
      if (share_version && !alias.is_view()) {
        alias.impl()->set_version_cell(t.impl()->share_version());
      }
      return alias;
    }
    t.impl()->special()->check_has_memory();  // a plain window would be on memory that is not there
  }
  auto impl = TensorImpl::make(t.storage(), t.dtype(), t.device());
  impl->set_storage_offset(t.storage_offset());
  impl->set_sizes_and_strides(t.sizes(), t.strides());
  impl->set_inference(t.impl()->is_inference());
  if (share_version) {
    impl->set_version_cell(t.impl()->share_version());
  }
  return Tensor(std::move(impl));
}

}  // namespace

Tensor Tensor::tensor_data() const { return window_on(*this, /*share_version=*/true); }
Tensor Tensor::variable_data() const { return window_on(*this, /*share_version=*/false); }

}  // namespace rushlight
