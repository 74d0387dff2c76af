// TensorIterator for extensions, by libtorch's name: operands that are broadcast together, and
// loops over their elements. (What the library's own kernels use is src/core/iterator.h.)
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include <rushlight/libtorch.h>
#include <rushlight/ops.h>

namespace rushlight {

// A namespace of their own in what the linker sees: the library has a class of this name.
inline namespace extension {

class TensorIteratorConfig;

class TensorIterator {
 public:
  int ntensors() const { return static_cast<int>(operands_.size()); }
  int noutputs() const { return noutputs_; }
  int ninputs() const { return ntensors() - noutputs_; }
  const Tensor& tensor(int i) const { return operands_.at(static_cast<size_t>(i)).given; }
  const Tensor& output(int i = 0) const { return tensor(i); }
  const Tensor& input(int i = 0) const { return tensor(noutputs_ + i); }
  // What loops see: an operand may be computed in another dtype than it has.
  ScalarType dtype(int i = 0) const { return seen(i).scalar_type(); }
  ScalarType input_dtype(int i = 0) const { return dtype(noutputs_ + i); }
  ScalarType common_dtype() const { return common_; }
  Device device(int i = 0) const { return tensor(i).device(); }
  DeviceType device_type(int i = 0) const { return device(i).type(); }
  IntArrayRef shape() const { return shape_; }
  int ndim() const { return static_cast<int>(shape_.size()); }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t size : shape_) {
      n *= size;
    }
    return n;
  }
  bool is_contiguous() const { return flat_; }
  void* data_ptr(int i) const { return seen(i).data_ptr(); }
  IntArrayRef strides(int i) const {
    return operands_.at(static_cast<size_t>(i)).strides;
  }  // bytes
  bool is_scalar(int i) const { return tensor(i).numel() == 1; }
  template <class T>
  T scalar_value(int i) const {
    return seen(i).item().template to<T>();
  }

  // Calls loop(data, strides, n) on runs of elements: an address and a stride in bytes for each
  // operand. Chunks are of `grain` elements, whatever the number of threads.
  template <class Loop>
  void for_each(const Loop& loop, int64_t grain = internal::GRAIN_SIZE) const {
    const int64_t all = numel();
    parallel_for(0, all, grain, [&](int64_t begin, int64_t end) { run(loop, begin, end, all); });
    cast_outputs();
  }
  template <class Loop>
  void serial_for_each(const Loop& loop) const {
    run(loop, 0, numel(), numel());
    cast_outputs();
  }
  void cast_outputs() const {
    for (int i = 0; i < noutputs_; i++) {
      if (!seen(i).is_same(tensor(i))) {
        const NoGradGuard no_grad;
        tensor(i).copy_(seen(i).reshape(tensor(i).sizes()));
      }
    }
  }

  static TensorIterator nullary_op(Tensor& out);
  static TensorIterator unary_op(Tensor& out, const Tensor& a);
  static TensorIterator binary_op(Tensor& out, const Tensor& a, const Tensor& b);
  static TensorIterator comparison_op(Tensor& out, const Tensor& a, const Tensor& b);

 private:
  friend class TensorIteratorConfig;
  struct Operand {
    Tensor given;
    Tensor seen;  // in the dtype that is computed in, expanded
    std::vector<int64_t> strides = {};
  };
  const Tensor& seen(int i) const { return operands_.at(static_cast<size_t>(i)).seen; }

  template <class Loop>
  void run(const Loop& loop, int64_t begin, int64_t end, int64_t all) const {
    if (begin >= end) {
      return;
    }
    const size_t n = operands_.size();
    const int64_t inner = flat_ ? all : shape_.empty() ? 1 : shape_.back();
    std::vector<int64_t> steps(n);
    for (size_t k = 0; k < n; k++) {
      steps[k] = flat_            ? itemsize(operands_[k].seen.scalar_type())
                 : shape_.empty() ? 0
                                  : operands_[k].strides.back();
    }
    std::vector<char*> data(n);
    for (int64_t at = begin; at < end;) {
      const int64_t in_row = at % inner;
      for (size_t k = 0; k < n; k++) {
        data[k] = static_cast<char*>(operands_[k].seen.data_ptr()) + in_row * steps[k];
        int64_t row = at / inner;
        for (size_t d = flat_ || shape_.empty() ? 0 : shape_.size() - 1; d-- > 0;) {
          data[k] += row % shape_[d] * operands_[k].strides[d];
          row /= shape_[d];
        }
      }
      const int64_t count = std::min(inner - in_row, end - at);
      loop(data.data(), steps.data(), count);
      at += count;
    }
  }

  std::vector<Operand> operands_;
  std::vector<int64_t> shape_;
  int noutputs_ = 0;
  ScalarType common_ = ScalarType::Undefined;
  bool flat_ = false;  // all operands lie contiguously in one shape
};
using TensorIteratorBase = TensorIterator;

class TensorIteratorConfig {
 public:
#define RL_ADD(name, list)                      \
  TensorIteratorConfig& name(const Tensor& t) { \
    list.push_back(t);                          \
    return *this;                               \
  }
  RL_ADD(add_output, outputs_)
  RL_ADD(add_owned_output, outputs_)
  RL_ADD(add_borrowed_output, outputs_)
  RL_ADD(add_input, inputs_)
  RL_ADD(add_owned_input, inputs_)
  RL_ADD(add_borrowed_input, inputs_)
  RL_ADD(add_const_input, inputs_)
  RL_ADD(add_owned_const_input, inputs_)
  RL_ADD(add_borrowed_const_input, inputs_)
#undef RL_ADD
#define RL_SAY(name, field)                \
  TensorIteratorConfig& name(bool value) { \
    field = value;                         \
    return *this;                          \
  }
  RL_SAY(check_all_same_dtype, same_dtype_)
  RL_SAY(check_all_same_device, same_device_)
  RL_SAY(resize_outputs, resize_)
  RL_SAY(set_check_mem_overlap, check_overlap_)
#undef RL_SAY
  TensorIteratorConfig& promote_inputs_to_common_dtype(bool value) {
    promote_ = value;
    same_dtype_ = same_dtype_ && !value;
    return *this;
  }
  TensorIteratorConfig& promote_integer_inputs_to_float(bool value) {
    to_float_ = value;
    return *this;
  }
  TensorIteratorConfig& cast_common_dtype_to_outputs(bool value) {
    cast_outputs_ = value;
    same_dtype_ = same_dtype_ && !value;
    return *this;
  }
  TensorIteratorConfig& enforce_safe_casting_to_output(bool value) {
    safe_ = value;
    return *this;
  }
  TensorIteratorConfig& declare_static_dtype(ScalarType dtype) {
    static_dtype_ = dtype;
    return *this;
  }
  TensorIteratorConfig& declare_static_dtype_and_device(ScalarType dtype, Device) {
    return declare_static_dtype(dtype);
  }
  TensorIteratorConfig& declare_static_shape(IntArrayRef shape) {
    static_shape_ = shape.vec();
    return *this;
  }

  TensorIterator build() const {
    const NoGradGuard no_grad;
    TensorIterator it;
    it.noutputs_ = static_cast<int>(outputs_.size());
    it.common_ = common_dtype();
    it.shape_ = shape();
    check(it.common_);
    for (const Tensor& out : outputs_) {
      it.operands_.push_back(output(out, it));
    }
    for (const Tensor& in : inputs_) {
      const Tensor seen = promote_ ? in.detach().to(it.common_) : in.detach();
      it.operands_.push_back({in, seen.expand(it.shape_)});
    }
    it.flat_ = true;
    for (TensorIterator::Operand& operand : it.operands_) {
      it.flat_ = it.flat_ && operand.seen.is_contiguous();
      for (const int64_t stride : operand.seen.strides()) {
        operand.strides.push_back(stride * itemsize(operand.seen.scalar_type()));
      }
    }
    return it;
  }

 private:
  ScalarType common_dtype() const {
    ScalarType common = ScalarType::Undefined;
    if (!inputs_.empty()) {
      common = promote_ ? result_type(TensorList(inputs_)) : inputs_[0].scalar_type();
    } else if (!outputs_.empty() && outputs_[0].defined()) {
      common = outputs_[0].scalar_type();
    }
    return to_float_ && is_integral_or_bool(common) ? get_default_dtype() : common;
  }
  static bool is_integral_or_bool(ScalarType t) { return is_integral(t) || t == kBool; }
  std::vector<int64_t> shape() const {
    if (!static_shape_.empty()) {
      return static_shape_;
    }
    std::vector<int64_t> sizes;
    bool first = true;
    for (const std::vector<Tensor>* list : {&inputs_, &outputs_}) {
      for (const Tensor& t : *list) {
        if (list == &outputs_ && (!t.defined() || (resize_ && !inputs_.empty()))) {
          continue;
        }
        sizes = first ? t.sizes().vec() : infer_size(sizes, t.sizes());
        first = false;
      }
    }
    return sizes;
  }
  void check(ScalarType common) const {
    for (const Tensor& in : inputs_) {
      RL_CHECK(in.defined() && (!same_device_ || in.device() == inputs_[0].device()),
               "Expected all tensors to be on the same device: an input is undefined, or lies "
               "elsewhere than the first. Move the inputs with .to()");
      RL_CHECK(!same_dtype_ || in.scalar_type() == common, "Found dtype ", in.scalar_type(),
               " but expected ", common);
    }
    for (const Tensor& out : outputs_) {
      RL_CHECK(!out.defined() || !same_dtype_ || inputs_.empty() || out.scalar_type() == common,
               "Found dtype ", out.defined() ? out.scalar_type() : common, " but expected ",
               common);
      RL_CHECK(!out.defined() || !safe_ || can_cast(common, out.scalar_type()), "result type ",
               common, " can't be cast to the output's ",
               out.defined() ? out.scalar_type() : common);
    }
  }
  TensorIterator::Operand output(Tensor out, const TensorIterator& it) const {
    if (!out.defined()) {
      const Device where = inputs_.empty() ? Device(kCPU) : inputs_[0].device();
      const ScalarType dtype = static_dtype_.value_or(it.common_);
      RL_CHECK(dtype != ScalarType::Undefined, "an output without inputs needs a static dtype");
      out = empty(it.shape_, TensorOptions(dtype).device(where));
      return {out, out};
    }
    if (out.sizes() != IntArrayRef(it.shape_)) {
      RL_CHECK(resize_, "the output has another shape than the inputs, broadcast");
      out.resize_(it.shape_);
    }
    for (const Tensor& in : inputs_) {  // all of one element, or in step
      RL_CHECK(!check_overlap_ || in.storage().get() != out.storage().get() || in.is_same(out) ||
                   (in.data_ptr() == out.data_ptr() && in.sizes() == out.sizes() &&
                    in.strides() == out.strides()),
               "unsupported operation: elements of an input and of the written-to tensor are a "
               "single memory location. Write to a clone() of it");
    }
    if (cast_outputs_ && out.scalar_type() != it.common_) {
      return {out, empty(it.shape_, TensorOptions(it.common_).device(out.device()))};
    }
    return {out, out};
  }

  std::vector<Tensor> outputs_;
  std::vector<Tensor> inputs_;
  std::vector<int64_t> static_shape_;
  std::optional<ScalarType> static_dtype_;
  bool same_dtype_ = true;
  bool same_device_ = true;
  bool resize_ = true;
  bool check_overlap_ = true;
  bool promote_ = false;
  bool to_float_ = false;
  bool cast_outputs_ = false;
  bool safe_ = false;
};

inline TensorIterator TensorIterator::nullary_op(Tensor& out) {
  return TensorIteratorConfig().check_all_same_dtype(false).add_output(out).build();
}
inline TensorIterator TensorIterator::unary_op(Tensor& out, const Tensor& a) {
  TensorIterator it = TensorIteratorConfig()
                          .add_output(out)
                          .add_input(a)
                          .promote_inputs_to_common_dtype(true)
                          .cast_common_dtype_to_outputs(true)
                          .enforce_safe_casting_to_output(true)
                          .build();
  out = it.output();
  return it;
}
inline TensorIterator TensorIterator::binary_op(Tensor& out, const Tensor& a, const Tensor& b) {
  TensorIterator it = TensorIteratorConfig()
                          .add_output(out)
                          .add_input(a)
                          .add_input(b)
                          .promote_inputs_to_common_dtype(true)
                          .cast_common_dtype_to_outputs(true)
                          .enforce_safe_casting_to_output(true)
                          .build();
  out = it.output();
  return it;
}
inline TensorIterator TensorIterator::comparison_op(Tensor& out, const Tensor& a, const Tensor& b) {
  TensorIterator it = TensorIteratorConfig()
                          .add_output(out)
                          .add_input(a)
                          .add_input(b)
                          .promote_inputs_to_common_dtype(true)
                          .declare_static_dtype(kBool)
                          .build();
  out = it.output();
  return it;
}

}  // namespace extension

namespace native {

template <class F>
struct KernelOf : KernelOf<decltype(&F::operator())> {};
template <class R, class... A>
struct KernelOf<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::decay_t<A>...>;
};
template <class C, class R, class... A>
struct KernelOf<R (C::*)(A...) const> : KernelOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct KernelOf<R (C::*)(A...)> : KernelOf<R (*)(A...)> {};

template <class F, size_t... I>
void kernel_loop(TensorIterator& iter, F& f, int64_t grain, std::index_sequence<I...>) {
  using Result = typename KernelOf<F>::Result;
  using Arguments = typename KernelOf<F>::Arguments;
  RL_CHECK(iter.ninputs() == static_cast<int>(sizeof...(I)) && iter.noutputs() == 1,
           "cpu_kernel: a function of ", sizeof...(I), " inputs for ", iter.ninputs());
  RL_CHECK(
      iter.dtype() == dtype_of_v<Result> && ((iter.input_dtype(static_cast<int>(I)) ==
                                              dtype_of_v<std::tuple_element_t<I, Arguments>>) &&
                                             ...),
      "cpu_kernel: the function is of other types than the operands");
  iter.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; i++) {
          *reinterpret_cast<Result*>(data[0] + i * strides[0]) =
              f(*reinterpret_cast<std::tuple_element_t<I, Arguments>*>(data[I + 1] +
                                                                       i * strides[I + 1])...);
        }
      },
      grain);
}
// out[i] = f(in0[i], in1[i], …); the function may run on several threads.
template <class F>
void cpu_kernel(TensorIterator& iter, F f, int64_t grain = internal::GRAIN_SIZE) {
  constexpr size_t n = std::tuple_size_v<typename KernelOf<F>::Arguments>;
  kernel_loop(iter, f, grain, std::make_index_sequence<n>());
}
template <class F>
void cpu_serial_kernel(TensorIterator& iter, F f) {
  cpu_kernel(iter, std::move(f), iter.numel() + 1);
}

}  // namespace native

}  // namespace rushlight
