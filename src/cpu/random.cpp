#include "cpu/random.h"

#include <cmath>
#include <limits>

#include "core/generator.h"
#include "core/op_support.h"
#include "generated/contracts.h"

namespace rushlight::cpu {

DrawLock::DrawLock(const Generator& generator) {
  owner_ = generator.defined() ? generator.ref() : default_generator(kCPU).ref();
  state_ = owner_.get();
  state_->mutex.lock();
}
DrawLock::~DrawLock() { state_->mutex.unlock(); }

OrderedOutput::OrderedOutput(const Tensor& out, const Tensor& memory)
    : out_(out), memory_(memory) {}
OrderedOutput::OrderedOutput(const Tensor& out)
    : OrderedOutput(
          out, out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype(), out.device())) {}
void OrderedOutput::write_back() const {
  if (!memory_.is_same(out_)) {
    copy_raw(out_, memory_);
  }
}
void* OrderedOutput::data() const { return memory_.data_ptr(); }
int64_t OrderedOutput::numel() const { return memory_.numel(); }

FilledOutput::FilledOutput(const Tensor& out)
    : OrderedOutput(out,
                    out.is_non_overlapping_and_dense() ? out : make_empty_like(out, out.dtype())) {}

OrderedInput::OrderedInput(const Tensor& in, const Tensor& out)
    : memory_(make_empty_like(out, in.dtype() == kFloat64 ? kFloat64 : kFloat32)) {
  copy_raw(memory_, in);
  bool valid = true;
  for (int64_t i = 0; i < memory_.numel(); i++) {
    const double p = in.dtype() == kFloat64 ? memory_.data<double>()[i] : memory_.data<float>()[i];
    valid = valid && p >= 0 && p <= 1;
  }
  RL_CHECK(valid,
           "Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities lie between 0 "
           "and 1");
}
const void* OrderedInput::data() const { return memory_.data_ptr(); }
ScalarType OrderedInput::dtype() const { return memory_.dtype(); }

namespace {

// Floats hold every integer up to `last` only.
void warn_inexact(const char* what, double bound, int64_t last, std::string_view dtype) {
  if (std::abs(bound) > static_cast<double>(last)) {
    warn(str(what, " is out of bounds [-", last, ", ", last, "]: of larger integers ", dtype,
             " holds some only, so that the draw is not uniform"));
  }
}

}  // namespace

RandomRange::RandomRange(ScalarType dtype, int64_t from, std::optional<int64_t> to) {
  // The largest and least integers of the dtype; of floats those up to which every integer has its
  // own number.
  double high = 0;
  int64_t last = 0;
  visit_dtype<set_real | set_Bool | set_wide_unsigned>("random_", dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      last = 1;
      high = 1;
    } else if constexpr (std::is_integral_v<T>) {
      last = static_cast<int64_t>(std::numeric_limits<T>::max());
      high = static_cast<double>(std::numeric_limits<T>::max());
    } else {
      last = int64_t{1} << (std::is_same_v<T, double>  ? 53
                            : std::is_same_v<T, float> ? 24
                            : std::is_same_v<T, Half>  ? 11
                                                       : 8);
      high = std::is_same_v<T, Half> ? 65504.0 : HUGE_VAL;
    }
  });
  const double low = !dtype_info(dtype).is_signed ? 0 : is_floating(dtype) ? -high : -high - 1;
  const auto name = dtype_info(dtype).name;
  RL_CHECK(static_cast<double>(from) >= low && static_cast<double>(from) <= high,
           "from is out of bounds for ", name);
  if (to.has_value()) {
    RL_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from,
             " >= to=", *to);
    const double top = static_cast<double>(*to - 1);
    RL_CHECK(top >= low && top <= high, "to - 1 is out of bounds for ", name);
    if (is_floating(dtype)) {
      warn_inexact("from", static_cast<double>(from), last, name);
      warn_inexact("to - 1", top, last, name);
    }
    size_ = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
    return;
  }
  size_ = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  all_bits_ = size_ == 0;
}

Tensor parts_of(const Tensor& complex_tensor) {
  return make_view(complex_tensor, views::view_as_real(complex_tensor));
}

double next_unit(GeneratorImpl& g) {
  const uint64_t high = next_32(g.engine);
  const uint64_t low = next_32(g.engine);
  return static_cast<double>((high & 0x1fffffu) << 32 | low) * 0x1p-53;
}

double cauchy_from(double u, double median, double sigma) {
  // Kept off the poles of the tangent.
  constexpr double edge = std::numeric_limits<float>::epsilon();
  u = u > 1 - edge ? 1 - edge : u < edge ? edge : u;
  return median + sigma * std::tan(M_PI * (u - 0.5));
}
double geometric_from(double u, double p) { return std::ceil(std::log(u) / std::log1p(-p)); }
double exp_of(double x) { return std::exp(x); }

}  // namespace rushlight::cpu
