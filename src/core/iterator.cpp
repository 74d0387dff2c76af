// Promotion, broadcasting, allocation, overlap checks and the merging of dimensions for pointwise
// ops.
#include "core/inference.h"
#include "core/iterator.h"
#include "core/refusals.h"

#include <algorithm>
#include <cstring>

#include "core/op_support.h"
#include "core/region.h"
#include "core/times.h"

namespace rushlight {

// ---- promotion ----

namespace {

// bool < integers < real < complex: a number of a category not above a tensor's does not change the
// tensor's dtype.
int category(ScalarType t) { return t == kBool ? 0 : is_integral(t) ? 1 : is_floating(t) ? 2 : 3; }

ScalarType combine(ScalarType high, ScalarType low) {
  if (high == ScalarType::Undefined || low == ScalarType::Undefined) {
    return high == ScalarType::Undefined ? low : high;
  }
  if (is_complex(high)) {
    return high;
  }
  if (is_complex(low)) {
    return is_floating(high) ? to_complex(high) : low;
  }
  return category(low) > category(high) ? promote_types(high, low) : high;
}

// Fewer elements are computed faster than noted, but where they belong to what is noted already.
bool is_worth_noting(int64_t numel, const Tensor* const* inputs, int n) {
  return numel >= TensorIterator::least_noted ||
         std::any_of(inputs, inputs + n,
                     [](const Tensor* t) { return t != nullptr && is_pending_here(*t); });
}
}  // namespace

void TypePromotion::add_number(ScalarType t) {
  if (is_complex(t)) {
    t = to_complex(get_default_dtype());
  } else if (is_floating(t)) {
    t = get_default_dtype();
  }
  numbers = promote_types(numbers, t);
}

void TypePromotion::add(const Tensor& t) {
  if (t.impl()->is_wrapped_number()) {
    add_number(t.dtype());
  } else if (t.dim() > 0) {
    tensors = promote_types(tensors, t.dtype());
  } else {
    scalars = promote_types(scalars, t.dtype());
  }
}

ScalarType TypePromotion::result() const { return combine(tensors, combine(scalars, numbers)); }

ScalarType result_type(TensorList operands) {
  TypePromotion promotion;
  for (const Tensor& t : operands) {
    promotion.add(t);
  }
  return promotion.result();
}

namespace {

ScalarType result_of(Promote promote, ScalarType common) {
  switch (promote) {
    case Promote::Bool:
      return kBool;
    case Promote::Real:
      return to_real(common);
    default:
      return common;
  }
}

}  // namespace

void TensorIterator::resolve_dtypes(const PointwiseRule& rule, ScalarType common) {
  if (rule.promote == Promote::Float) {
    common = to_floating(common);
  }
  if (RL_UNLIKELY(!contains(rule.dtypes, common))) {
    dtype_not_implemented(op_, common);
  }
  common_dtype_ = common;
  result_dtype_ = result_of(rule.promote, common);
  RL_CHECK(result_dtype_ == common || rule.promote != Promote::Real ||
               is_input_number(num_outputs_) || !tensors_[0]->is_same(*tensors_[num_outputs_]),
           op_, "_ is not supported for complex tensors: the result is real");
}

void TensorIterator::promote(const PointwiseRule& rule) {
  if (rule.promote == Promote::None) {
    resolve_dtypes(rule, dtypes_[num_outputs_]);
    return;
  }
  TypePromotion promotion;
  for (int i = num_outputs_ + (rule.promote == Promote::Rest ? 1 : 0); i < num_operands_; i++) {
    if (is_input_number(i)) {
      promotion.add_number(dtypes_[i]);
    } else {
      promotion.add(*tensors_[i]);
    }
  }
  resolve_dtypes(rule, promotion.result());
}

// ---- operands ----

void TensorIterator::add_output(const Tensor& out, bool resize) {
  if (out.defined()) {
    check_inference_write(op_, out);
  }
  RL_CHECK(num_operands_ == num_outputs_ && num_outputs_ < max_outputs, op_, ": too many outputs");
  tensors_[num_operands_] = &out;
  dtypes_[num_operands_] = out.defined() ? out.dtype() : ScalarType::Undefined;
  resize_ |= resize;
  num_outputs_++;
  num_operands_++;
}

void TensorIterator::add_input(const Tensor& in) {
  RL_CHECK(num_operands_ < max_operands, op_, ": too many operands");
  RL_CHECK_TYPE(in.defined(), op_, ": expected a Tensor, but got None");
  tensors_[num_operands_] = &in;
  dtypes_[num_operands_] = in.dtype();
  num_operands_++;
}

void TensorIterator::add_number(const Scalar& number) {
  RL_CHECK(num_operands_ < max_operands, op_, ": too many operands");
  char* bytes = numbers_[num_operands_].bytes;
  tensors_[num_operands_] = nullptr;
  data_[num_operands_] = bytes;
  dtypes_[num_operands_] = number.dtype();
  store_scalar(bytes, number.dtype(), number);
  num_operands_++;
}

bool TensorIterator::is_scalar(int operand) const {
  for (int d = 0; d < ndim_; d++) {
    if (strides_[operand][d] != 0 && shape_[d] != 1) {
      return false;
    }
  }
  return true;
}

// ---- building ----

// One output; inputs contiguous, of one size, dtype and device (but for the dtype of a condition),
// or Python numbers that do not change the dtype.
bool TensorIterator::build_simple(const PointwiseRule& rule) {
  if (num_outputs_ != 1 || rule.promote == Promote::None) {
    return false;
  }
  const int first = rule.promote == Promote::Rest ? 2 : 1;
  const TensorImpl* like = nullptr;
  for (int i = first; i < num_operands_; i++) {
    const TensorImpl* in = is_input_number(i) ? nullptr : tensors_[i]->impl();
    if (in == nullptr || in->is_wrapped_number()) {
      continue;
    }
    if (like == nullptr) {
      like = in;
      if (!like->is_contiguous()) {
        return false;
      }
    } else if (in != like && (in->dtype() != like->dtype() || !in->is_contiguous() ||
                              in->device() != like->device() || !(in->sizes() == like->sizes()))) {
      return false;
    }
  }
  if (like == nullptr) {
    return false;
  }
  late_ = late_ &&
          is_worth_noting(like->numel(), tensors_ + num_outputs_, num_operands_ - num_outputs_);
  if (first == 2) {
    const TensorImpl* condition = is_input_number(1) ? nullptr : tensors_[1]->impl();
    if (condition == nullptr || !condition->is_contiguous() ||
        condition->device() != like->device() || !(condition->sizes() == like->sizes())) {
      return false;
    }
    take_address(1);
    strides_[1][0] = itemsize(condition->dtype());
  }
  const ScalarType dtype = like->dtype();
  const int64_t size = itemsize(dtype);
  for (int i = first; i < num_operands_; i++) {
    if (!is_input_number(i) && !tensors_[i]->impl()->is_wrapped_number()) {
      take_address(i);
      strides_[i][0] = size;
      continue;
    }
    if (category(dtypes_[i]) > category(dtype)) {
      return false;
    }
    strides_[i][0] = 0;
    if (!is_input_number(i)) {
      take_address(i);
    }
  }
  const Tensor& out = *tensors_[0];
  if (out.defined()) {
    const TensorImpl* o = out.impl();
    if (o->device() != like->device() || !o->is_contiguous() || !(o->sizes() == like->sizes())) {
      return false;
    }
    for (int i = 1; i < num_operands_; i++) {
      if (!is_input_number(i) && tensors_[i]->impl() != o &&
          tensors_[i]->storage() == out.storage()) {
        return false;
      }
    }
  }
  resolve_dtypes(rule, dtype);
  device_ = like->device();
  numel_ = like->numel();
  if (!out.defined()) {
    allocated_[0] = new_output(like->sizes(), {});
    tensors_[0] = &allocated_[0];
    dtypes_[0] = result_dtype_;
  } else if (!can_cast(result_dtype_, dtypes_[0])) {
    return false;  // the long way raises
  }
  take_address(0);
  strides_[0][0] = itemsize(dtypes_[0]);
  ndim_ = 1;
  shape_[0] = numel_;
  return true;
}

// Uninitialised memory, contiguous where there are no strides.
Tensor TensorIterator::new_output(IntArrayRef sizes, IntArrayRef strides) const {
  if (RL_UNLIKELY(late_) && device_.is_cpu()) {
    return make_empty_later(sizes, strides, result_dtype_);
  }
  return strides.empty() ? make_empty(sizes, result_dtype_, device_)
                         : make_empty_strided(sizes, strides, result_dtype_, device_);
}

void TensorIterator::take_addresses() const {
  late_ = false;
  for (int i = 0; i < num_operands_; i++) {
    if (!is_input_number(i)) {
      data_[i] = tensors_[i]->impl()->data();
    }
  }
}

void TensorIterator::build(const PointwiseRule& rule) {
  late_ = tls.notebook != nullptr;
  if (RL_LIKELY(build_simple(rule))) {
    return;
  }
  find_device();
  promote(rule);
  broadcast();
  order_dims();
  prepare_outputs();
  merge();
}

// 0-d tensors on the CPU may meet tensors of another device, but not by writing to it alone.
void TensorIterator::find_device() {
  bool found = false;
  const auto check = [&](Device device) {
    if (found) {
      check_same_device(op_, device_, device);
    }
    device_ = device;
    found = true;
  };
  bool only_small = false;
  for (int i = num_outputs_; i < num_operands_; i++) {
    if (is_input_number(i) || (tensors_[i]->dim() == 0 && tensors_[i]->is_cpu())) {
      only_small |= !is_input_number(i);
    } else {
      check(tensors_[i]->device());
    }
  }
  if (!found && only_small) {
    check(kCPU);
  }
  for (int i = 0; i < num_outputs_; i++) {
    if (tensors_[i]->defined()) {
      check(tensors_[i]->device());
    }
  }
}

// Sizes of the inputs' common shape, and strides of each input for it; outermost first.
void TensorIterator::broadcast() {
  int ndim = 0;
  for (int i = num_outputs_; i < num_operands_; i++) {
    ndim = is_input_number(i) ? ndim : std::max(ndim, static_cast<int>(tensors_[i]->dim()));
  }
  std::fill_n(shape_, ndim, 1);
  for (int i = num_outputs_; i < num_operands_; i++) {
    if (is_input_number(i)) {
      continue;
    }
    const IntArrayRef sizes = tensors_[i]->sizes();
    const int shift = ndim - static_cast<int>(sizes.size());
    for (int d = shift; d < ndim; d++) {
      const int64_t size = sizes[d - shift];
      RL_CHECK(size == shape_[d] || size == 1 || shape_[d] == 1, op_,
               ": shapes do not broadcast: tensor a (", shape_[d],
               ") must match the size of tensor b (", size, ") at non-singleton dimension ", d,
               "; unsqueeze() gives a tensor a dimension of size 1, which any size matches");
      shape_[d] = shape_[d] == 1 ? size : shape_[d];
    }
  }
  ndim_ = ndim;
  numel_ = product({shape_, static_cast<size_t>(ndim)});
  late_ = late_ && is_worth_noting(numel_, tensors_ + num_outputs_, num_operands_ - num_outputs_);
  for (int i = num_outputs_; i < num_operands_; i++) {
    expand_strides(i);
  }
}

void TensorIterator::expand_strides(int operand) {
  std::fill_n(strides_[operand], ndim_, 0);
  if (is_input_number(operand)) {
    return;
  }
  const Tensor& t = *tensors_[operand];
  const int64_t size = itemsize(dtypes_[operand]);
  const int shift = ndim_ - static_cast<int>(t.dim());
  for (int d = shift; d < ndim_; d++) {
    // Dimensions of size 1 that stay so have strides that put them in order.
    strides_[operand][d] =
        t.sizes()[d - shift] == 1 && shape_[d] != 1 ? 0 : times(t.strides()[d - shift], size);
  }
  take_address(operand);
}

void TensorIterator::build_to_output() {
  const IntArrayRef sizes = output().sizes();
  device_ = output().device();
  common_dtype_ = output().dtype();
  ndim_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape_);
  numel_ = output().numel();
  for (int i = 0; i < num_operands_; i++) {
    expand_strides(i);
  }
  order_dims();
  merge();
}

// Dimensions by growing stride: of the first operand that tells two dimensions apart. Outputs of
// the right shape decide first.
void TensorIterator::order_dims() {
  const auto strides_of = [&](int i) -> const int64_t* {
    if (i >= num_outputs_) {
      return is_input_number(i) ? nullptr : strides_[i];
    }
    const Tensor& out = *tensors_[i];
    const bool fits =
        out.defined() && out.sizes() == IntArrayRef(shape_, static_cast<size_t>(ndim_));
    return fits ? out.strides().data() : nullptr;
  };
  const int64_t* strides[max_operands];
  int known = 0;
  for (int i = 0; i < num_operands_; i++) {
    if (const int64_t* s = strides_of(i)) {
      strides[known++] = s;
    }
  }
  const auto is_outside = [&](int a, int b) {  // 1: a lies outside b, -1: inside, 0: unknown
    for (int i = 0; i < known; i++) {
      const int64_t sa = strides[i][a];
      const int64_t sb = strides[i][b];
      if (sa == 0 || sb == 0) {
        continue;
      }
      if (sa != sb) {
        return sa > sb ? 1 : -1;
      }
      if (shape_[a] > shape_[b]) {
        return 1;
      }
    }
    return 0;
  };
  for (int d = 0; d < ndim_; d++) {
    order_[d] = static_cast<int8_t>(ndim_ - 1 - d);
  }
  for (int i = 1; i < ndim_; i++) {
    int moved = i;
    for (int j = i - 1; j >= 0; j--) {
      const int outside = is_outside(order_[j], order_[moved]);
      if (outside < 0) {
        break;
      }
      if (outside > 0) {
        std::swap(order_[j], order_[moved]);
        moved = j;
      }
    }
  }
}

// The strides of inputs that all lie alike and without gaps; empty where they do not.
DimVector TensorIterator::shared_strides() const {
  const Tensor* like = nullptr;
  for (int i = num_outputs_; i < num_operands_; i++) {
    if (is_input_number(i) ||
        !(tensors_[i]->sizes() == IntArrayRef(shape_, static_cast<size_t>(ndim_))) ||
        !tensors_[i]->impl()->is_non_overlapping_and_dense() ||
        (like != nullptr && !(tensors_[i]->strides() == like->strides()))) {
      return {};
    }
    like = tensors_[i];
  }
  return like == nullptr || like->is_contiguous() ? DimVector() : DimVector(like->strides());
}

void TensorIterator::prepare_outputs() {
  const IntArrayRef sizes(shape_, static_cast<size_t>(ndim_));
  // Before an output is resized whoever shares its memory is refused, or copied.
  const auto keep_inputs = [this](const Tensor& out) {
    copies_.reserve(max_operands);  // their addresses stay
    for (int j = num_outputs_; j < num_operands_; j++) {
      if (is_input_number(j) || tensors_[j]->storage() != out.storage()) {
        continue;
      }
      check_no_partial_overlap(op_, memory_overlap(out, *tensors_[j]));
      copies_.push_back(make_empty_like(*tensors_[j], dtypes_[j]));
      copy_raw(copies_.back(), *tensors_[j]);
      tensors_[j] = &copies_.back();
      expand_strides(j);
    }
  };
  for (int i = 0; i < num_outputs_; i++) {
    if (!tensors_[i]->defined()) {
      DimVector strides = shared_strides();
      if (strides.empty()) {
        strides.resize(static_cast<size_t>(ndim_));
        int64_t step = 1;
        for (int d = 0; d < ndim_; d++) {
          strides[order_[d]] = step;
          step = d + 1 < ndim_ ? next_stride(step, shape_[order_[d]]) : step;
        }
      }
      allocated_[i] = new_output(sizes, strides);
      tensors_[i] = &allocated_[i];
      dtypes_[i] = result_dtype_;
    } else {
      const Tensor& out = *tensors_[i];
      RL_CHECK(can_cast(result_dtype_, out.dtype()), "result type ", enum_name(result_dtype_),
               " can't be cast to the output's ", enum_name(out.dtype()), ": convert it with to()");
      if (!(out.sizes() == sizes)) {
        bool is_input = false;
        for (int j = num_outputs_; j < num_operands_; j++) {
          is_input |= !is_input_number(j) && tensors_[j]->is_same(out);
        }
        RL_CHECK(resize_ && !is_input, "the output of shape ", out.sizes(),
                 " doesn't match the broadcast shape ", sizes);
        keep_inputs(out);
        resize_out(out, sizes);
      }
      check_no_internal_overlap(op_, out);
      separate_inputs(out);
    }
    expand_strides(i);
  }
}

// Inputs that share the storage of a given output: resizing may have moved it, and those that may
// overlap the output, but not element by element, are copied.
void TensorIterator::separate_inputs(const Tensor& out) {
  for (int j = num_outputs_; j < num_operands_; j++) {
    if (is_input_number(j) || tensors_[j]->storage() != out.storage()) {
      continue;
    }
    const Overlap overlap = memory_overlap(out, *tensors_[j]);
    check_no_partial_overlap(op_, overlap);
    if (overlap == Overlap::Perhaps) {
      copies_.reserve(max_operands);  // their addresses stay
      copies_.push_back(copy_if_overlapping(op_, out, *tensors_[j]));
      tensors_[j] = &copies_.back();
    }
    expand_strides(j);
  }
}

// Puts dimensions in order, innermost first, drops those of size 1 and joins those that lie
// seamlessly in all operands.
void TensorIterator::merge() {
  int64_t shape[max_dims];
  int64_t column[max_dims];
  for (int d = 0; d < ndim_; d++) {
    shape[d] = shape_[order_[d]];
  }
  for (int i = 0; i < num_operands_; i++) {
    for (int d = 0; d < ndim_; d++) {
      column[d] = strides_[i][order_[d]];
    }
    std::copy_n(column, ndim_, strides_[i]);
  }
  int last = -1;
  for (int d = 0; d < ndim_; d++) {
    if (shape[d] == 1) {
      continue;
    }
    bool joins = last >= 0;
    for (int i = 0; i < num_operands_ && joins; i++) {
      joins = strides_[i][d] == times(strides_[i][last], shape_[last]);
    }
    if (joins) {
      shape_[last] = times(shape_[last], shape[d]);
      continue;
    }
    last++;
    shape_[last] = shape[d];
    for (int i = 0; i < num_operands_; i++) {
      strides_[i][last] = strides_[i][d];
    }
  }
  if (last < 0) {
    last = 0;
    shape_[0] = 1;
    for (int i = 0; i < num_operands_; i++) {
      strides_[i][0] = 0;
    }
  }
  ndim_ = last + 1;
}

// ---- walking ----

void TensorIterator::run(Loop loop, void* context, int64_t grain) const {
  if (numel_ == 0) {
    return;
  }
  if (RL_UNLIKELY(late_)) {
    take_addresses();
  }
  const auto walk = [&](int64_t begin, int64_t end) {
    int64_t at[max_dims];
    char* data[max_operands];
    int64_t inner[max_operands];
    int64_t rest = begin;
    std::copy_n(data_, num_operands_, data);
    for (int d = 0; d < ndim_; d++) {
      at[d] = rest % shape_[d];
      rest /= shape_[d];
      for (int i = 0; i < num_operands_; i++) {
        data[i] += at[d] * strides_[i][d];
      }
    }
    for (int i = 0; i < num_operands_; i++) {
      inner[i] = strides_[i][0];
    }
    while (begin < end) {
      const int64_t n = std::min(shape_[0] - at[0], end - begin);
      char* row[max_operands];
      std::copy_n(data, num_operands_, row);
      loop(context, row, inner, n);
      begin += n;
      for (int i = 0; i < num_operands_; i++) {
        data[i] -= at[0] * inner[i];
      }
      at[0] = 0;
      for (int d = 1; d < ndim_ && begin < end; d++) {
        const bool carry = ++at[d] == shape_[d];
        for (int i = 0; i < num_operands_; i++) {
          data[i] += carry ? -(shape_[d] - 1) * strides_[i][d] : strides_[i][d];
        }
        if (!carry) {
          break;
        }
        at[d] = 0;
      }
    }
  };
  parallel_for(0, numel_, grain, walk);
}

}  // namespace rushlight
