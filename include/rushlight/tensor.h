// Tensor: a counted handle on a TensorImpl, which is a window (sizes, strides, offset) on a
// Storage, with a dtype, a device, a version and what autograd knows of it. Everything computed is
// an op; the op methods are generated.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <rushlight/array_ref.h>
#include <rushlight/asks.h>
#include <rushlight/device.h>
#include <rushlight/generator.h>
#include <rushlight/optional_int_array_ref.h>
#include <rushlight/optional_tensor.h>
#include <rushlight/dtype.h>
#include <rushlight/ref.h>
#include <rushlight/scalar.h>
#include <rushlight/storage.h>
#include <rushlight/sym_int.h>
#include <rushlight/type_meta.h>

struct _object;  // PyObject

namespace rushlight {

class Tensor;
class TensorImpl;
class Node;
struct AutogradMeta;
struct SpecialTensor;
class DeprecatedTypeProperties;  // compat.h
using TensorList = ArrayRef<Tensor>;

// How often a tensor was written. Inline in its tensor, or in its root's where it is a view, until
// it is shared: what `detach` gives and saved outputs count together with their source, so the
// first of them moves the counter into a cell of its own.
struct VersionCell : RefCounted {
  std::atomic<uint32_t> value{0};
  std::unique_ptr<std::string> last_write;  // where, in anomaly mode
  void release() const {
    if (drop()) {
      delete this;
    }
  }
};

enum class ViewKind : uint8_t { Normal, MultiOutput, NoGrad, Custom, Inference };

// What a view knows of where it was taken: it counts writes together with its root.
struct ViewInfo {
  Ref<TensorImpl> root;  // null for what is no view; never itself a view
  // How to take it again; null where as_strided of the root does it.
  Tensor (*replay)(const Tensor& root, const Tensor& view) = nullptr;
  uint32_t grad_fn_version = 0;  // at which its grad_fn was made; a stale one is made again
  ViewKind kind = ViewKind::Normal;
};

class RL_API TensorImpl : public RefCounted {
 public:
  static constexpr int inline_dims = 5;
  // A tensor on this storage whose geometry is still to be set (set_sizes_and_strides).
  static Ref<TensorImpl> make(Storage storage, ScalarType dtype, Device device);
  void release() const;

  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t dim() const { return ndim_; }
  int64_t numel() const { return numel_; }
  IntArrayRef sizes() const { return {dims_, static_cast<size_t>(ndim_)}; }
  IntArrayRef strides() const { return {dims_ + ndim_, static_cast<size_t>(ndim_)}; }
  int64_t storage_offset() const { return offset_; }  // in elements
  const Storage& storage() const { return storage_; }
  char* data() const {  // address of the first element; null for an empty storage
    if (RL_UNLIKELY(special_ != nullptr)) {
      check_has_memory();
    }
    return static_cast<char*>(storage_->data()) + offset_ * itemsize(dtype_);
  }
  bool is_contiguous() const { return contiguous_; }
  bool is_channels_last() const { return channels_last_; }  // 4-d, NHWC in memory
  bool is_channels_last_3d() const { return channels_last_3d_; }
  // Elements fill one gapless block, each once, in some order of dimensions.
  bool is_non_overlapping_and_dense() const { return dense_; }
  bool is_wrapped_number() const {
    return wrapped_number_;
  }  // a Python number on its way into an op
  bool is_inference() const { return inference_; }

  // The only ways to change geometry; both recompute the layout flags. Sizes are not negative;
  // numel and the bytes spanned must not overflow (RuntimeError). Bounds against the storage are
  // the caller's to check.
  void set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides);
  void set_sizes_contiguous(IntArrayRef sizes);
  void set_storage_offset(int64_t offset) { offset_ = offset; }
  void set_storage(Storage storage) { storage_ = std::move(storage); }
  bool storage_initialized() const {  // whether its elements have memory
    return storage_ && !device_.is_meta() && (storage_->nbytes() != 0 || numel() == 0);
  }
  void set_dtype(ScalarType t) { dtype_ = t; }
  void set_device(Device d) { device_ = d; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }
  void set_inference(bool v) { inference_ = v; }

  uint32_t version() const {
    const TensorImpl& counts = is_view() ? *view_.root : *this;
    const VersionCell* cell = counts.version_cell_.load(std::memory_order_acquire);
    return cell != nullptr ? cell->value.load(std::memory_order_relaxed) : counts.version_;
  }
  void bump_version() {
    TensorImpl& counts = is_view() ? *view_.root : *this;
    if (VersionCell* cell = counts.version_cell_.load(std::memory_order_acquire)) {
      cell->value.fetch_add(1, std::memory_order_relaxed);
    } else {
      counts.version_++;
    }
  }
  VersionCell& share_version();  // moves the counter out on first use; threads may race
  void set_version_cell(VersionCell& cell);

  bool is_view() const { return static_cast<bool>(view_.root); }
  ViewInfo& view() { return view_; }
  const ViewInfo& view() const { return view_; }

  // Who may want to see calls that this tensor takes part in (asks.h).
  Asks asks() const { return asks_; }

  // True for a leaf that wants a gradient and for every recorded result. Kept here so that ops test
  // one bit.
  bool requires_grad() const {
    return requires_grad_ || (late_view_ && view_.root->requires_grad());
  }
  // Null until needed. Threads may race to make it for a view that they share.
  AutogradMeta* autograd() const { return autograd_.load(std::memory_order_acquire); }
  AutogradMeta& autograd_or_make();
  // Maintained by src/autograd alone.
  void set_requires_grad_flag(bool v) {
    requires_grad_ = v;
    refresh_asks();
  }
  // A view without a grad_fn of its own: follows its root.
  void set_late_view(bool v) {
    late_view_ = v;
    refresh_asks();
  }

  // A special tensor brings its own handling of ops (mode.h); usually null, and owned.
  SpecialTensor* special() const { return special_; }
  void set_special(std::unique_ptr<SpecialTensor> special);

  // The one Python object of this tensor. Python usually owns the impl; when its object would die
  // while C++ still holds the impl, the object is resurrected and owned by the impl
  // (owns_python()).
  _object* python() const { return python_; }
  bool owns_python() const { return owns_python_; }
  void set_python(_object* object, bool owned) {
    python_ = object;
    owns_python_ = owned;
  }

 private:
  TensorImpl()
      : contiguous_(true),
        channels_last_(false),
        channels_last_3d_(false),
        dense_(true),
        wrapped_number_(false),
        inference_(false),
        requires_grad_(false),
        late_view_(false) {}
  ~TensorImpl();
  void set_dims(IntArrayRef sizes);
  void refresh_flags();
  void refresh_asks() {
    asks_ = static_cast<uint8_t>((requires_grad_ || late_view_ ? ask::grad : 0) |
                                 (special_ != nullptr ? ask::special : 0));
  }
  void check_has_memory() const;

  Storage storage_;
  int64_t numel_ = 0;
  int64_t offset_ = 0;
  int64_t* dims_ = inline_;  // ndim sizes, then ndim strides
  int32_t ndim_ = 0;
  uint32_t version_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
  bool contiguous_ : 1;
  bool channels_last_ : 1;
  bool channels_last_3d_ : 1;
  bool dense_ : 1;
  bool wrapped_number_ : 1;
  bool inference_ : 1;
  bool requires_grad_ : 1;
  bool late_view_ : 1;
  uint8_t asks_ = 0;
  // A byte of its own: who holds the GIL writes it while others read those above.
  bool owns_python_ = false;
  std::atomic<VersionCell*> version_cell_{nullptr};  // owned
  std::atomic<AutogradMeta*> autograd_{nullptr};     // owned
  ViewInfo view_;
  _object* python_ = nullptr;
  SpecialTensor* special_ = nullptr;
  int64_t inline_[2 * inline_dims];
};

// Set by the Python extension. Called instead of destroying an impl whose last reference went while
// it owned its Python object: the object takes the impl over again (count zero) and is dropped, now
// or when the GIL is next held.
RL_API void set_python_release_hook(void (*hook)(_object*));

// What factories take: libtorch's options. Unset fields mean the defaults.
class RL_API TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(caffe2::TypeMeta t) : dtype_(t.toScalarType()) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(DeviceType d) : device_(Device(d)) {}
  TensorOptions(Layout l) : layout_(l) {}
  TensorOptions dtype(ScalarType t) const {
    auto o = *this;
    o.dtype_ = t;
    return o;
  }
  TensorOptions device(Device d) const {
    auto o = *this;
    o.device_ = d;
    return o;
  }
  TensorOptions device(DeviceType d, int8_t index = -1) const { return device(Device(d, index)); }
  TensorOptions device(const char* d) const { return device(Device(d)); }
  TensorOptions layout(Layout l) const {
    auto o = *this;
    o.layout_ = l;
    return o;
  }
  // Error where it is wanted: factories lock no pages.
  TensorOptions pinned_memory(bool wanted) const;
  bool pinned_memory() const { return false; }
  Layout layout() const { return layout_.value_or(kStrided); }
  TensorOptions requires_grad(std::optional<bool> v) const {
    auto o = *this;
    o.requires_grad_ = v.value_or(false);
    return o;
  }
  // Order of the dimensions in memory; an error where an argument says one, too.
  TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    auto o = *this;
    o.memory_format_ = f;
    return o;
  }
  // A device of the kind that most programs count.
  TensorOptions device_index(int8_t index) const { return device(kCUDA, index); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(dtype_of_v<T>);
  }
  // What `other` says, and where it says nothing, what this does.
  TensorOptions merge_in(const TensorOptions& other) const {
    auto o = *this;
    o.dtype_ = other.dtype_ ? other.dtype_ : dtype_;
    o.device_ = other.device_ ? other.device_ : device_;
    o.layout_ = other.layout_ ? other.layout_ : layout_;
    o.memory_format_ = other.memory_format_ ? other.memory_format_ : memory_format_;
    o.requires_grad_ = requires_grad_ || other.requires_grad_;
    return o;
  }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_memory_format() const { return memory_format_.has_value(); }
  bool is_sparse() const { return layout() == kSparse; }
  // Whether both make tensors of one dtype, device and layout.
  bool type_equal(const TensorOptions& other) const {
    return dtype() == other.dtype() && device() == other.device() && layout() == other.layout();
  }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(dtype_.value_or(get_default_dtype())); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  int32_t device_index() const { return device().index(); }
  bool requires_grad() const { return requires_grad_; }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<MemoryFormat> memory_format_;
  bool requires_grad_ = false;
};

// How accessors hold their address.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict;
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;
namespace indexing {
class TensorIndex;  // indexing.h
}
class Dimname;  // other_tensors.h
template <class T>
inline constexpr bool is_dtype_argument =
    std::is_same_v<T, ScalarType> || std::is_same_v<T, std::optional<ScalarType>> ||
    std::is_same_v<T, caffe2::TypeMeta>;

class RL_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // What has no name is written into: x[0] = y, x.index({...}) = 3.
  Tensor& operator=(const Tensor& values) &&;
  Tensor& operator=(const Scalar& value) &&;

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  void reset() { impl_.reset(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  TensorImpl* impl() const { return impl_.get(); }
  Asks asks() const { return impl_ ? impl_->asks() : ask::undefined; }
  const Ref<TensorImpl>& ref() const { return impl_; }
  int32_t use_count() const { return impl_ ? impl_->use_count() : 0; }

  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(checked_impl().dtype()); }
  ScalarType scalar_type() const { return checked_impl().dtype(); }
  Device device() const { return checked_impl().device(); }
  Layout layout() const;
  TensorOptions options() const {
    return TensorOptions(scalar_type()).device(device()).layout(layout());
  }
  int64_t dim() const { return checked_impl().dim(); }
  int64_t ndimension() const { return checked_impl().dim(); }
  int64_t numel() const { return checked_impl().numel(); }
  int64_t element_size() const { return rushlight::itemsize(dtype()); }
  size_t itemsize() const { return static_cast<size_t>(element_size()); }
  int64_t get_device() const { return device().index(); }
  TensorImpl* unsafeGetTensorImpl() const { return impl_.get(); }
  bool has_storage() const { return defined() && static_cast<bool>(checked_impl().storage()); }
  bool is_inference() const { return checked_impl().is_inference(); }
  int64_t nbytes() const { return numel() * element_size(); }
  IntArrayRef sizes() const { return checked_impl().sizes(); }
  IntArrayRef strides() const { return checked_impl().strides(); }
  int64_t size(int64_t d) const;  // d counts from the end when negative; IndexError
  int64_t stride(int64_t d) const;
  int64_t storage_offset() const { return checked_impl().storage_offset(); }
  const Storage& storage() const { return checked_impl().storage(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const {
    return checked_impl().is_non_overlapping_and_dense();
  }
  // The format whose order the strides follow, contiguous where they follow none; `exactly`: that
  // the tensor is contiguous in.
  MemoryFormat suggest_memory_format(bool exactly = false) const;
  bool is_alias_of(const Tensor& other) const { return storage() == other.storage(); }
  bool is_set_to(const Tensor& other) const {  // the same window on the same storage
    return is_alias_of(other) && storage_offset() == other.storage_offset() &&
           sizes() == other.sizes() && strides() == other.strides();
  }
  bool is_pinned(std::optional<Device> device = {}) const;
  // A copy in memory that a device reads by itself; RuntimeError where there is no device.
  Tensor pin_memory(std::optional<Device> device = {}) const;
  SymIntArrayRef sym_sizes() const { return sizes(); }
  SymIntArrayRef sym_strides() const { return strides(); }
  SymInt sym_size(int64_t d) const { return size(d); }
  SymInt sym_stride(int64_t d) const { return stride(d); }
  SymInt sym_numel() const { return numel(); }
  SymInt sym_storage_offset() const { return storage_offset(); }
  DeprecatedTypeProperties type() const;  // compat.h
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return layout() == kSparse; }
  bool is_sparse_csr() const { return layout() == kSparseCsr; }
  // Of the kinds that follow there are no tensors here.
  bool is_quantized() const { return false; }
  bool is_mkldnn() const { return false; }
  bool is_hip() const { return false; }
  bool is_xpu() const { return false; }
  bool is_xla() const { return false; }
  bool is_mps() const { return false; }
  bool is_hpu() const { return false; }
  bool is_mtia() const { return false; }
  bool is_vulkan() const { return false; }
  bool is_lazy() const { return false; }
  bool is_privateuseone() const { return false; }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return rushlight::is_complex(dtype()); }
  bool is_signed() const { return dtype_info(dtype()).is_signed; }
  void* data_ptr() const { return checked_impl().data(); }
  // Typed address; RuntimeError where T is not the dtype.
  template <class T>
  T* data_ptr() const {
    check_dtype(dtype_of_v<T>);
    return reinterpret_cast<T*>(checked_impl().data());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  Tensor data() const { return variable_data(); }
  // For kernels, whose contract has checked the dtype.
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(checked_impl().data());
  }
  template <class T>
  T item() const {
    return item().template to<T>();
  }
  Scalar item() const;  // RuntimeError unless numel is 1
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const;
  // The same, holding sizes and strides itself.
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    return generic_packed_accessor<T, N, Traits, int32_t>();
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    return generic_packed_accessor<T, N, Traits, int64_t>();
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    return generic_packed_accessor<T, N, Traits, Index>();
  }
  // The addressed part: index({Slice(1, None), "...", 3, mask}), by <rushlight/indexing.h>.
  Tensor index(std::initializer_list<indexing::TensorIndex> at) const;
  Tensor index(ArrayRef<indexing::TensorIndex> at) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> at, const Tensor& values) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> at, const Scalar& value) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> at, const Tensor& values) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> at, const Scalar& value) const;
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor operator[](const Tensor& at) const;
  // What options say of dtype and device.
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const;
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
  Tensor to(DeviceType type, bool non_blocking = false, bool copy = false) const {
    return to(Device(type), non_blocking, copy);
  }
  Tensor to(const char* device, bool non_blocking = false, bool copy = false) const {
    return to(Device(device), non_blocking, copy);
  }
  // A TypeMeta is both a dtype and options.
  Tensor to(caffe2::TypeMeta type, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const {
    return to(type.toScalarType(), non_blocking, copy, format);
  }
  Tensor toType(ScalarType type) const { return to(type); }
  // Transposed views: of all dimensions, and of the last two (mT, mH) or of a matrix alone; H is
  // conjugate.
  Tensor numpy_T() const;
  Tensor matrix_H() const;
  Tensor mT() const;
  Tensor mH() const;
  Tensor cpu() const { return to(kCPU); }
  Tensor cuda() const { return to(kCUDA); }
  void print() const;  // to the standard output
  std::string toString() const;

  // Autograd (defined in src/autograd).
  bool requires_grad() const { return defined() && impl_->requires_grad(); }
  const Tensor& requires_grad_(bool requires_grad = true) const;
  const Tensor& set_requires_grad(bool requires_grad) const {
    return requires_grad_(requires_grad);
  }
  bool is_leaf() const;
  const Tensor& grad() const;  // undefined when there is none
  Tensor& mutable_grad() const;
  Ref<Node> grad_fn() const;
  int64_t output_nr() const;
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {},
                bool create_graph = false, const std::vector<Tensor>& inputs = {}) const;
  void retain_grad() const;
  // hook(grad) is called when this tensor's gradient is computed; what it returns, if anything,
  // replaces it. The number is for remove_hook. (Defined in autograd.h.)
  template <class F>
  unsigned register_hook(F hook) const;
  void remove_hook(unsigned number) const;
  bool retains_grad() const;
  bool is_view() const;
  Tensor _base() const;
  uint32_t _version() const { return checked_impl().version(); }
  Tensor tensor_data()
      const;  // a new tensor on the same storage, apart from autograd, sharing the version
  Tensor variable_data() const;  // the same with a version of its own (Python's .data)
  void set_data(const Tensor& other) const;
  // Becomes another window, in place: on the memory of a tensor of its dtype, on all of a storage,
  // or on a part of one, which grows where it is too short; without a source it has no elements.
  Tensor& set_() const;
  Tensor& set_(const Tensor& source) const;
  Tensor& set_(const Storage& source) const;
  Tensor& set_(const Storage& source, int64_t storage_offset, IntArrayRef size,
               IntArrayRef stride = {}) const;
  Tensor& set_(const Tensor& source, int64_t storage_offset, IntArrayRef size,
               IntArrayRef stride = {}) const {
    return set_(source.storage(), storage_offset, size, stride);
  }

#include <rushlight/tensor_methods.inc>

  // Without padding at the ends.
  Tensor stft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
              const Tensor& window, bool normalized, std::optional<bool> onesided,
              std::optional<bool> return_complex = {}) const {
    return stft(n_fft, hop_length, win_length, window, false, "reflect", normalized, onesided,
                return_complex);
  }
  // Tensors have no names: "".
  const std::string& name() const;
  // By names of dimensions, which no tensor has (other_tensors.h): NotImplementedError.
  bool has_names() const { return false; }
  std::vector<Dimname> names() const;
  Tensor rename(ArrayRef<Dimname> names) const;
  Tensor rename(std::nullopt_t) const;
  const Tensor& rename_(ArrayRef<Dimname> names) const;
  const Tensor& rename_(std::nullopt_t) const;
  Tensor refine_names(ArrayRef<Dimname> names) const;
  Tensor align_to(ArrayRef<Dimname> names) const;
  Tensor align_to(ArrayRef<Dimname> order, int64_t ellipsis) const;
  Tensor align_as(const Tensor& other) const;
  Tensor flatten(ArrayRef<Dimname> dims, const Dimname& out) const;
  Tensor unflatten(const Dimname& dim, IntArrayRef sizes, ArrayRef<Dimname> names) const;

  // Of quantised tensors, which there are none of either.
  Tensor dequantize() const;
  double q_scale() const;
  int64_t q_zero_point() const;
  Tensor int_repr() const;
  Tensor q_per_channel_scales() const;
  Tensor q_per_channel_zero_points() const;
  int64_t q_per_channel_axis() const;

  // By libtorch's inner names (internal_functions.h).
#define RL_WRITES_BITS(name, op)                \
  template <class T>                            \
  Tensor& __i##name##__(const T& other) const { \
    return bitwise_##op##_(other);              \
  }
  RL_WRITES_BITS(and, and)
  RL_WRITES_BITS(or, or)
  RL_WRITES_BITS(xor, xor)
  RL_WRITES_BITS(lshift, left_shift)
  RL_WRITES_BITS(rshift, right_shift)
#undef RL_WRITES_BITS
  Tensor chalf(std::optional<MemoryFormat> format = {}) const;
  Tensor meta() const { return to(kMeta); }
  bool is_nested() const { return false; }
  bool is_distributed() const { return false; }
  bool _is_zerotensor() const { return false; }
  bool is_uniquely_owned() const { return use_count() == 1; }
  Tensor _fw_primal(int64_t level) const;
  // To float from 16 bits, and back, where autocast is said to be on for the tensor's device.
  Tensor _autocast_to_full_precision(bool cuda_enabled, bool cpu_enabled) const;
  Tensor _autocast_to_reduced_precision(bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype,
                                        ScalarType cpu_dtype) const;
  Tensor _to_dense(std::optional<ScalarType> dtype = {},
                   std::optional<bool> masked_grad = {}) const;
  Tensor _to_sparse(int64_t sparse_dim) const;
  Tensor _to_sparse(std::optional<Layout> layout = {}, OptionalIntArrayRef blocksize = {},
                    std::optional<int64_t> dense_dim = {}) const;
  Tensor _to_sparse_csr(std::optional<int64_t> dense_dim = {}) const;
  Tensor _to_sparse_csc(std::optional<int64_t> dense_dim = {}) const;
  Tensor _to_sparse_bsr(IntArrayRef blocksize, std::optional<int64_t> dense_dim = {}) const;
  Tensor _to_sparse_bsc(IntArrayRef blocksize, std::optional<int64_t> dense_dim = {}) const;
  // These raise (absent_functions.h).
  Tensor _sparse_mask_projection(const Tensor& mask, bool accumulate_matches = false) const;
  Tensor to_mkldnn(std::optional<ScalarType> dtype = {}) const;
  Tensor to_padded_tensor(double padding, OptionalIntArrayRef output_size = {}) const;

  // Of all elements, with a dtype alone: x.sum(kFloat64).
#define RL_WITH_DTYPE(op)                                             \
  template <class T, std::enable_if_t<is_dtype_argument<T>, int> = 0> \
  Tensor op(T dtype) const {                                          \
    return op(OptionalIntArrayRef(), false, dtype);                   \
  }
  RL_WITH_DTYPE(sum)
  RL_WITH_DTYPE(nansum)
  RL_WITH_DTYPE(mean)
  RL_WITH_DTYPE(prod)
#undef RL_WITH_DTYPE

  // What libtorch calls with sizes that may be symbols: here they are numbers.
#define RL_SYMINT(name)                             \
  template <class... A>                             \
  auto name##_symint(const A&... arguments) const { \
    return name(arguments...);                      \
  }
  RL_FOR_EACH_SYMINT_METHOD(RL_SYMINT)
#undef RL_SYMINT
#define RL_SYMINT(name)                                                  \
  template <class... A>                                                  \
  auto name##_symint(SymIntArrayRef list, const A&... arguments) const { \
    return name(IntArrayRef(list), arguments...);                        \
  }
  RL_FOR_EACH_SYMINT_LIST_METHOD(RL_SYMINT)
#undef RL_SYMINT

 private:
  // What accessors read; RuntimeError where the tensor is undefined.
  TensorImpl& checked_impl() const {
    if (RL_UNLIKELY(!impl_)) {
      refuse_undefined();
    }
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void refuse_undefined();
  void check_dtype(ScalarType wanted) const;
  Ref<TensorImpl> impl_;
};

// A Python number on its way into an op: a 0-d tensor marked as wrapped.
RL_API Tensor make_number(const Scalar& value, Device device = kCPU);

// Plain indexing of a tensor's elements from C++. The bases hold what accessors of programs, which
// index in their own way, derive from.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessorBase {
 public:
  using PtrType = typename Traits<T>::PtrType;
  TensorAccessorBase(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  Index size(Index d) const { return sizes_[d]; }
  Index stride(Index d) const { return strides_[d]; }
  ArrayRef<Index> sizes() const { return {sizes_, N}; }
  ArrayRef<Index> strides() const { return {strides_, N}; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};
template <class T, size_t N, template <class> class Traits, class Index>
class TensorAccessor : public TensorAccessorBase<T, N, Traits, Index> {
 public:
  using TensorAccessorBase<T, N, Traits, Index>::TensorAccessorBase;
  decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(this->data_[i * this->strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(this->data_ + i * this->strides_[0],
                                                     this->sizes_ + 1, this->strides_ + 1);
    }
  }
};
template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  RL_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ",
           dim());
  return {data_ptr<T>(), sizes().data(), strides().data()};
}

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessorBase {
 public:
  using PtrType = typename Traits<T>::PtrType;
  template <class Size>
  GenericPackedTensorAccessorBase(PtrType data, const Size* sizes, const Size* strides)
      : data_(data) {
    for (size_t i = 0; i < N; i++) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  Index size(Index d) const { return sizes_[d]; }
  Index stride(Index d) const { return strides_[d]; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};
template <class T, size_t N, template <class> class Traits, class Index>
class GenericPackedTensorAccessor : public GenericPackedTensorAccessorBase<T, N, Traits, Index> {
 public:
  using GenericPackedTensorAccessorBase<T, N, Traits, Index>::GenericPackedTensorAccessorBase;
  decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(this->data_, this->sizes_, this->strides_)[i];
  }
};
template <class T, size_t N, template <class> class Traits, class Index>
GenericPackedTensorAccessor<T, N, Traits, Index> Tensor::generic_packed_accessor() const {
  RL_CHECK(sizeof(Index) > 4 || numel() <= INT32_MAX,
           "packed_accessor32: numel needs to be smaller than 2^31");
  const auto plain = accessor<T, N>();
  return {plain.data(), plain.sizes().data(), plain.strides().data()};
}

}  // namespace rushlight
