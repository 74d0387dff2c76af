// Factories. They compute nothing that has a gradient, so they are written below the ops: allocate,
// then fill.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "generated/contracts.h"
#include "kernels/math.h"

#include <rushlight/ops.h>

namespace rushlight::composite {

namespace {

Tensor make_filled(IntArrayRef size, const Scalar& value, ScalarType dtype, Device device) {
  value.check_fits(dtype);
  Tensor t = make_empty(size, dtype, device);
  if (!device.is_meta()) {
    fill_raw(t, value);
  }
  return t;
}

Tensor like(const Tensor& self, const TensorOptions& options, std::optional<MemoryFormat> format) {
  const ScalarType dtype = options.dtype_opt().value_or(self.dtype());
  const Device device = options.device_opt().value_or(self.device());
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  if (wanted == MemoryFormat::Preserve) {
    return make_empty_strided(self.sizes(), preserved_strides(self), dtype, device);
  }
  return make_output({self.sizes(), dtype, {}, wanted}, device);
}

Tensor make_filled_like(const Tensor& self, const Scalar& value, const TensorOptions& options,
                        std::optional<MemoryFormat> format) {
  Tensor t = like(self, options, format);
  value.check_fits(t.dtype());
  if (!t.is_meta()) {
    fill_raw(t, value);
  }
  return t;
}

ScalarType dtype_of_fill(const Scalar& value, const TensorOptions& options) {
  if (options.dtype_opt().has_value()) {
    return *options.dtype_opt();
  }
  switch (value.kind()) {
    case Scalar::Kind::Bool:
      return kBool;
    case Scalar::Kind::Int:
      return kInt64;
    case Scalar::Kind::UInt:
      return kUInt64;
    case Scalar::Kind::Float:
      return get_default_dtype();
    default:
      return to_complex(get_default_dtype());
  }
}

ScalarType dtype_or(const TensorOptions& options, ScalarType other) {
  return options.dtype_opt().value_or(other);
}
Device device_or(const TensorOptions& options, Device other) {
  return options.device_opt().value_or(other);
}

// Writes f(i), computed in double, int64 or complex, for every index of a 1-d tensor.
template <class F>
void generate(const char* op, const Tensor& out, const F& f) {
  if (out.is_meta()) {
    return;
  }
  // Other devices get a copy of what the host makes.
  const Tensor here = out.is_cpu() ? out : make_empty(out.sizes(), out.dtype(), kCPU);
  visit_dtype<set_stored>(op, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = here.data<T>();
    parallel_for(0, here.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        to[i] = convert<T>(f(i));
      }
    });
  });
  copy_raw(out, here);
}

}  // namespace

Tensor empty(IntArrayRef size, const TensorOptions& options,
             std::optional<MemoryFormat> memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  RL_CHECK(format != MemoryFormat::Preserve, "empty: preserve_format has no tensor to follow");
  return mark_unwritten_if_asked(
      make_output({size, options.dtype(), {}, format}, options.device()));
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return mark_unwritten_if_asked(
      make_empty_strided(size, stride, options.dtype(), options.device()));
}
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, const TensorOptions& options) {
  const int64_t n = static_cast<int64_t>(size.size());
  RL_CHECK(physical_layout.size() == size.size(),
           "Number of dimensions in size does not match the ",
           "length of the physical_layout; i.e. len(size) = ", n,
           " is not equal to len(physical_layout) = ", physical_layout.size());
  DimVector strides(size.size(), 0);
  int64_t stride = 1;
  const DimVector order = [&] {
    DimVector wrapped;
    for (const int64_t d : physical_layout) {
      RL_CHECK(d >= 0 && d < n, "Dimension out of range: physical_layout takes 0 to ", n - 1,
               " and no negative dimensions, but got ", d);
      RL_CHECK(std::find(wrapped.begin(), wrapped.end(), d) == wrapped.end(),
               "Duplicate dim not allowed");
      wrapped.push_back(d);
    }
    return wrapped;
  }();
  for (size_t i = order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(order[i]);
    strides[d] = stride;
    stride = next_stride(stride, std::max<int64_t>(size[d], 1));
  }
  return rushlight::empty_strided(size, strides, options);
}

Tensor zeros(IntArrayRef size, const TensorOptions& options) {
  return make_filled(size, 0, options.dtype(), options.device());
}
Tensor ones(IntArrayRef size, const TensorOptions& options) {
  return make_filled(size, 1, options.dtype(), options.device());
}
Tensor full(IntArrayRef size, const Scalar& fill_value, const TensorOptions& options) {
  return make_filled(size, fill_value, dtype_of_fill(fill_value, options), options.device());
}
Tensor scalar_tensor(const Scalar& s, const TensorOptions& options) {
  return make_filled({}, s, options.dtype(), options.device());
}

Tensor empty_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> memory_format) {
  return mark_unwritten_if_asked(like(self, options, memory_format));
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> memory_format) {
  return make_filled_like(self, 0, options, memory_format);
}
Tensor ones_like(const Tensor& self, const TensorOptions& options,
                 std::optional<MemoryFormat> memory_format) {
  return make_filled_like(self, 1, options, memory_format);
}
Tensor full_like(const Tensor& self, const Scalar& fill_value, const TensorOptions& options,
                 std::optional<MemoryFormat> memory_format) {
  return make_filled_like(self, fill_value, options, memory_format);
}

Tensor new_empty(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return mark_unwritten_if_asked(
      make_empty(size, dtype_or(options, self.dtype()), device_or(options, self.device())));
}
Tensor new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                         const TensorOptions& options) {
  return mark_unwritten_if_asked(make_empty_strided(size, stride, dtype_or(options, self.dtype()),
                                                    device_or(options, self.device())));
}
Tensor new_zeros(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return make_filled(size, 0, dtype_or(options, self.dtype()), device_or(options, self.device()));
}
Tensor new_ones(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return make_filled(size, 1, dtype_or(options, self.dtype()), device_or(options, self.device()));
}
Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& fill_value,
                const TensorOptions& options) {
  return make_filled(size, fill_value, dtype_or(options, self.dtype()),
                     device_or(options, self.device()));
}

// ---- ranges ----

namespace {

Tensor arithmetic_range(const char* op, const Scalar& start, const Scalar& end, const Scalar& step,
                        bool with_end, ScalarType dtype, Device device) {
  RL_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(), op,
           ": complex bounds are not supported");
  // Integers cut the bounds first; but `arange` of less than 64 bits counts before.
  const bool integral =
      is_integral(dtype) &&
      (with_end || dtype == kInt64 ||
       (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)));
  const double from = start.as<double>();
  const double to = end.as<double>();
  const double by = step.as<double>();
  RL_CHECK(by != 0 && (!integral || step.as<int64_t>() != 0), "step must be nonzero");
  RL_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  RL_CHECK((by > 0 && to >= from) || (by < 0 && to <= from), "a step of ", by,
           " does not lead from ", from, " to ", to, ": its sign is inconsistent with the bounds");
  double count = 0;
  if (integral) {
    const auto wide = [](const Scalar& s) { return static_cast<__int128>(s.as<int64_t>()); };
    const __int128 span = wide(end) - wide(start);
    const __int128 s = wide(step);
    const __int128 steps = with_end ? span / s + 1 : (span + s + (s > 0 ? -1 : 1)) / s;
    count = static_cast<double>(steps);
  } else {
    count = with_end ? std::floor((to - from) / by + 1) : std::ceil((to - from) / by);
  }
  RL_CHECK(count < 9.2e18, "invalid size, possible overflow?");
  Tensor t = make_empty({static_cast<int64_t>(count)}, dtype, device);
  if (integral) {
    const auto a = static_cast<uint64_t>(start.as<int64_t>());
    const auto s = static_cast<uint64_t>(step.as<int64_t>());
    generate(op, t,
             [=](int64_t i) { return static_cast<int64_t>(a + s * static_cast<uint64_t>(i)); });
  } else if (is_integral(dtype)) {
    const int64_t a = start.as<int64_t>();
    const int64_t s = step.as<int64_t>();
    generate(op, t, [=](int64_t i) { return a + s * i; });
  } else if (dtype == kFloat32) {
    // float32 ranges are computed as PyTorch computes them: start + step * i in double.
    generate(op, t,
             [=](int64_t i) { return static_cast<float>(from + by * static_cast<double>(i)); });
  } else {
    generate(op, t, [=](int64_t i) { return from + by * static_cast<double>(i); });
  }
  return t;
}

ScalarType dtype_of_range(std::initializer_list<const Scalar*> bounds,
                          const TensorOptions& options) {
  if (options.dtype_opt().has_value()) {
    return *options.dtype_opt();
  }
  return std::all_of(bounds.begin(), bounds.end(),
                     [](const Scalar* s) { return s->is_integral(true); })
             ? kInt64
             : get_default_dtype();
}

}  // namespace

Tensor arange(const Scalar& end, const TensorOptions& options) {
  return arithmetic_range("arange", 0, end, 1, false, dtype_of_range({&end}, options),
                          options.device());
}
Tensor arange_start(const Scalar& start, const Scalar& end, const Scalar& step,
                    const TensorOptions& options) {
  return arithmetic_range("arange", start, end, step, false,
                          dtype_of_range({&start, &end, &step}, options), options.device());
}
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step,
             const TensorOptions& options) {
  warn(
      "torch.range is deprecated: it includes the end, unlike Python's range; torch.arange does "
      "not.");
  return arithmetic_range("range", start, end, step, true, options.dtype(), options.device());
}

namespace {

ScalarType dtype_of_space(const char* op, const Scalar& start, const Scalar& end,
                          const TensorOptions& options) {
  if (options.dtype_opt().has_value()) {
    start.check_fits(options.dtype());
    end.check_fits(options.dtype());
    if (options.dtype() == kBool) {
      dtype_not_implemented(op, kBool);
    }
    return *options.dtype_opt();
  }
  return start.is_complex() || end.is_complex() ? to_complex(get_default_dtype())
                                                : get_default_dtype();
}

// from + step * count; of real numbers rounded once, as PyTorch's are.
template <class C>
C value_at_step(C from, C step, C count) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::fma(step, count, from);
  } else {
    return from + step * count;
  }
}

// Both halves are computed from their own end, so that the last value is exact.
template <class C, class F>
void generate_space(const char* op, const Tensor& t, const Scalar& start, const Scalar& end,
                    const F& f) {
  const int64_t n = t.numel();
  const C a = start.as<C>();
  const C b = end.as<C>();
  const C step = n > 1 ? (b - a) / C(static_cast<real_t<C>>(n - 1)) : C(0);
  generate(op, t, [=](int64_t i) {
    return f(i < n / 2 || n == 1 ? value_at_step(a, step, C(static_cast<real_t<C>>(i)))
                                 : value_at_step(b, -step, C(static_cast<real_t<C>>(n - 1 - i))));
  });
}

}  // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                const TensorOptions& options) {
  RL_CHECK(steps >= 0, "number of steps must be non-negative");
  Tensor t =
      make_empty({steps}, dtype_of_space("linspace_cpu", start, end, options), options.device());
  if (is_integral(t.dtype())) {  // whose ends are integers, too
    generate_space<double>("linspace", t, start.as<int64_t>(), end.as<int64_t>(),
                           [](double v) { return v; });
  } else if (t.is_complex()) {
    generate_space<complex<double>>("linspace", t, start, end, [](complex<double> v) { return v; });
  } else if (t.dtype() == kFloat32) {
    generate_space<float>("linspace", t, start, end, [](float v) { return v; });
  } else {
    generate_space<double>("linspace", t, start, end, [](double v) { return v; });
  }
  return t;
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& options) {
  RL_CHECK(steps >= 0, "number of steps must be non-negative");
  Tensor t =
      make_empty({steps}, dtype_of_space("logspace_cpu", start, end, options), options.device());
  if (t.is_complex()) {
    generate_space<complex<double>>("logspace", t, start, end, [base](complex<double> v) {
      return math::pow(complex<double>(base), v);
    });
  } else {
    generate_space<double>("logspace", t, start, end,
                           [base](double v) { return std::pow(base, v); });
  }
  return t;
}

namespace {

void check_ends(const char* op, int64_t start_dims, int64_t end_dims) {
  RL_CHECK(start_dims == 0 && end_dims == 0, op,
           " only supports 0-dimensional start and end, but start has ", start_dims,
           " dimensions and end ", end_dims);
}

int64_t dims_of(const Tensor& end) { return end.dim(); }
int64_t dims_of(const Scalar&) { return 0; }
Scalar number_of(const Tensor& end) { return end.is_meta() ? Scalar(0.0) : end.item(); }
Scalar number_of(const Scalar& end) { return end; }
bool is_unknown(const Tensor& end) { return end.is_meta(); }
bool is_unknown(const Scalar&) { return false; }
// Between ends without a value the numbers have none.
template <class Start, class End>
TensorOptions space_options(const Start& start, const End& end, const TensorOptions& options) {
  return is_unknown(start) || is_unknown(end) ? options.device(Device(kMeta)) : options;
}

template <class Start, class End>
Tensor linspace_of(const Start& start, const End& end, int64_t steps,
                   const TensorOptions& options) {
  check_ends("linspace", dims_of(start), dims_of(end));
  return composite::linspace(number_of(start), number_of(end), steps,
                             space_options(start, end, options));
}
template <class Start, class End>
Tensor logspace_of(const Start& start, const End& end, int64_t steps, double base,
                   const TensorOptions& options) {
  check_ends("logspace", dims_of(start), dims_of(end));
  return composite::logspace(number_of(start), number_of(end), steps, base,
                             space_options(start, end, options));
}

}  // namespace

Tensor linspace_Tensor_Tensor(const Tensor& start, const Tensor& end, int64_t steps,
                              const TensorOptions& options) {
  return linspace_of(start, end, steps, options);
}
Tensor linspace_Tensor_Scalar(const Tensor& start, const Scalar& end, int64_t steps,
                              const TensorOptions& options) {
  return linspace_of(start, end, steps, options);
}
Tensor linspace_Scalar_Tensor(const Scalar& start, const Tensor& end, int64_t steps,
                              const TensorOptions& options) {
  return linspace_of(start, end, steps, options);
}
Tensor logspace_Tensor_Tensor(const Tensor& start, const Tensor& end, int64_t steps, double base,
                              const TensorOptions& options) {
  return logspace_of(start, end, steps, base, options);
}
Tensor logspace_Tensor_Scalar(const Tensor& start, const Scalar& end, int64_t steps, double base,
                              const TensorOptions& options) {
  return logspace_of(start, end, steps, base, options);
}
Tensor logspace_Scalar_Tensor(const Scalar& start, const Tensor& end, int64_t steps, double base,
                              const TensorOptions& options) {
  return logspace_of(start, end, steps, base, options);
}
#undef RL_PASS_BASE
#undef RL_NOTHING

Tensor eye(int64_t n, std::optional<int64_t> m, const TensorOptions& options) {
  RL_CHECK(n >= 0, "eye: n must not be negative, but is ", n);
  const int64_t columns = m.value_or(n);
  RL_CHECK(columns >= 0, "eye: m must not be negative, but is ", columns);
  Tensor t = make_filled({n, columns}, 0, options.dtype(), options.device());
  if (!t.is_meta()) {
    fill_raw(make_view(t, views::diagonal(t, 0, 0, 1)), 1);
  }
  return t;
}

namespace {

using Wide = __int128;  // of sums and differences of any arguments

// The positions of a triangle in row-major order. `columns_of(row)` is the half-open range of its
// columns in a row; rows without any lie outside [first, last), so that the work is in what comes
// out.
template <class F>
Tensor triangle(const TensorOptions& options, Wide count, int64_t first, int64_t last,
                const F& columns_of) {
  RL_CHECK(count <= INT64_MAX / 2, "numel: integer multiplication overflow");
  const auto n = static_cast<int64_t>(count);
  Tensor t = make_empty({2, n}, dtype_or(options, kInt64), options.device());
  if (t.is_meta()) {
    return t;
  }
  std::vector<int64_t> positions(static_cast<size_t>(2 * n));
  int64_t at = 0;
  for (int64_t i = first; i < last; i++) {
    const auto [begin, end] = columns_of(i);
    for (int64_t j = begin; j < end; j++, at++) {
      positions[at] = i;
      positions[n + at] = j;
    }
  }
  generate("triangle_indices", t, [&](int64_t i) { return positions[i]; });
  return t;
}

void check_triangle(int64_t rows, int64_t columns) {
  RL_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  RL_CHECK(columns >= 0, "col must be non-negative, got ", columns);
}

int64_t clamp_to(Wide value, int64_t low, int64_t high) {
  return static_cast<int64_t>(std::clamp<Wide>(value, low, high));
}

// Elements with column - row <= offset.
Wide count_below(int64_t rows, int64_t columns, Wide offset) {
  const int64_t first = clamp_to(-offset, 0, rows);
  const int64_t full = clamp_to(columns - 1 - offset, first, rows);  // from here on all columns
  const Wide widths = (Wide(first) + full - 1 + 2 * (offset + 1)) * (full - first) / 2;
  return widths + Wide(rows - full) * columns;
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  check_triangle(row, col);
  return triangle(options, count_below(row, col, offset), clamp_to(-Wide(offset), 0, row),
                  col == 0 ? 0 : row, [=](int64_t i) {
                    return std::pair<int64_t, int64_t>(0, clamp_to(Wide(i) + offset + 1, 0, col));
                  });
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  check_triangle(row, col);
  return triangle(options, Wide(row) * col - count_below(row, col, Wide(offset) - 1), 0,
                  col == 0 ? 0 : clamp_to(Wide(col) - offset, 0, row), [=](int64_t i) {
                    return std::pair<int64_t, int64_t>(clamp_to(Wide(i) + offset, 0, col), col);
                  });
}

}  // namespace rushlight::composite
