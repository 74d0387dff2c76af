// Calls of TorchSharp's native half, through the functions that .NET calls, with their numbers
// (tests/python/test_bindings.py, which builds it where TorchSharp's sources lie).
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "THSAutograd.h"
#include "THSJIT.h"
#include "THSNN.h"
#include "THSStorage.h"
#include "THSTensor.h"
#include "THSTorch.h"
#include "THSVision.h"
#include "check.h"

namespace {

// .NET knows dtypes and devices by these numbers.
constexpr int8_t byte_type = 0, int32_type = 3, int64_type = 4, float32_type = 6, float64_type = 7;
constexpr int8_t complex64_type = 9, bool_type = 11, bfloat16_type = 15;
constexpr int32_t cpu = 0;

// A result, which the caller owns; none after an error, which is raised here.
class Taken {
 public:
  Taken(Tensor tensor) : tensor_(tensor) {
    if (const char* const error = THSTorch_get_and_reset_last_err()) {
      throw std::runtime_error(error);
    }
  }
  Taken(Taken&& o) noexcept : tensor_(std::exchange(o.tensor_, nullptr)) {}
  ~Taken() {
    if (tensor_ != nullptr) {
      THSTensor_dispose(tensor_);
    }
  }
  operator Tensor() const { return tensor_; }
  const torch::Tensor& get() const { return *tensor_; }

 private:
  Tensor tensor_;
};
class Number {
 public:
  Number(double value) : scalar_(THSTorch_float64_to_scalar(value)) {}
  Number(int value) : scalar_(THSTorch_int64_to_scalar(value)) {}
  Number(const Number&) = delete;
  ~Number() { THSTorch_dispose_scalar(scalar_); }
  operator Scalar() const { return scalar_; }

 private:
  Scalar scalar_;
};
// What functions put tensors into, whose number they say.
std::vector<Tensor> allocated;
Tensor* allocate(size_t n) {
  allocated.assign(n, nullptr);
  return allocated.data();
}
std::vector<Taken> take_all() {
  std::vector<Taken> out;
  for (const Tensor t : allocated) {
    out.emplace_back(t);
  }
  return out;
}
void keep(void*) {}

std::vector<double> numbers(const Taken& t) {
  const torch::Tensor flat = t.get().detach().to(torch::kDouble).contiguous().reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
bool near(const Taken& t, const std::vector<double>& wanted, double tolerance = 1e-6) {
  const std::vector<double> found = numbers(t);
  bool good = found.size() == wanted.size();
  for (size_t i = 0; good && i < found.size(); i++) {
    good = std::isnan(wanted[i])
               ? std::isnan(found[i])
               : found[i] == wanted[i] ||
                     std::abs(found[i] - wanted[i]) <= tolerance * (1 + std::abs(wanted[i]));
  }
  return good;
}
// A tensor of its own memory, with these sizes.
Taken made(std::vector<double> values, std::vector<int64_t> sizes, int8_t type = float64_type) {
  const Taken view =
      THSTensor_new(values.data(), &keep, sizes.data(), static_cast<int32_t>(sizes.size()),
                    float64_type, float64_type, cpu, 0, false);
  return THSTensor_to_type(view, type, true, false);
}
Taken vector_of(std::vector<double> values, int8_t type = float64_type) {
  const auto n = static_cast<int64_t>(values.size());
  return made(std::move(values), {n}, type);
}

// ---- elements ----

struct Unary {
  const char* name;
  Tensor (*function)(const Tensor);
  void (*in_place)(const Tensor);  // or null
  double (*wanted)(double);
};
#define UNARY(name, expression) \
  {#name, THSTensor_##name, THSTensor_##name##_, [](double x) -> double { return expression; }}
#define UNARY_ONLY(name, expression) \
  {#name, THSTensor_##name, nullptr, [](double x) -> double { return expression; }}

RL_TEST(functions_of_one_tensor) {
  const Unary all[] = {
      UNARY(abs, std::abs(x)),
      UNARY(acos, std::acos(x)),
      UNARY(asin, std::asin(x)),
      UNARY(atan, std::atan(x)),
      UNARY(arcsinh, std::asinh(x)),
      UNARY(arctanh, std::atanh(x)),
      UNARY(ceil, std::ceil(x)),
      UNARY(cos, std::cos(x)),
      UNARY(cosh, std::cosh(x)),
      UNARY(deg2rad, x * std::acos(-1.0) / 180),
      UNARY(digamma, x == 0.5    ? -1.9635100260214235
                     : x == 0.25 ? -4.227453533376266
                                 : -1.0858608797864922),
      UNARY(erf, std::erf(x)),
      UNARY(erfc, std::erfc(x)),
      UNARY(exp2, std::exp2(x)),
      UNARY(expm1, std::expm1(x)),
      UNARY(frac, x - std::trunc(x)),
      UNARY(hardsigmoid, x / 6 + 0.5),
      UNARY(hardswish, x * (x + 3) / 6),
      UNARY(i0, std::cyl_bessel_i(0, x)),
      UNARY(lgamma, std::lgamma(x)),
      UNARY(log, std::log(x)),
      UNARY(log10, std::log10(x)),
      UNARY(log1p, std::log1p(x)),
      UNARY(log2, std::log2(x)),
      UNARY(neg, -x),
      UNARY(rad2deg, x * 180 / std::acos(-1.0)),
      UNARY(reciprocal, 1 / x),
      UNARY(relu, x),
      UNARY(relu6, x),
      UNARY(rsqrt, 1 / std::sqrt(x)),
      UNARY(selu, 1.0507009873554805 * x),
      UNARY(sgn, 1),
      UNARY(sigmoid, 1 / (1 + std::exp(-x))),
      UNARY(silu, x / (1 + std::exp(-x))),
      UNARY(sinc, std::sin(std::acos(-1.0) * x) / (std::acos(-1.0) * x)),
      UNARY(sinh, std::sinh(x)),
      UNARY(sqrt, std::sqrt(x)),
      UNARY(tanh, std::tanh(x)),
      UNARY(trunc, std::trunc(x)),
      UNARY_ONLY(exp, std::exp(x)),
      UNARY_ONLY(floor, std::floor(x)),
      UNARY_ONLY(gelu, x / 2 * std::erfc(-x / std::sqrt(2.0))),
      UNARY_ONLY(isfinite, 1),
      UNARY_ONLY(isinf, 0),
      UNARY_ONLY(isnan, 0),
      UNARY_ONLY(log_sigmoid, -std::log1p(std::exp(-x))),
      UNARY_ONLY(positive, x),
      UNARY_ONLY(sign, 1),
      UNARY_ONLY(sin, std::sin(x)),
      UNARY_ONLY(tan, std::tan(x)),
  };
  const std::vector<double> xs = {0.25, 0.5, 0.75};
  const Taken x = vector_of(xs);
  for (const Unary& one : all) {
    std::vector<double> wanted;
    for (const double v : xs) {
      wanted.push_back(one.wanted(v));
    }
    const bool good = near(one.function(x), wanted);
    const Taken y = THSTensor_clone(x);
    if (one.in_place != nullptr) {
      one.in_place(y);
    }
    const bool in_place = one.in_place == nullptr || near(y, wanted);
    if (!good || !in_place) {
      std::printf("%s\n", one.name);
    }
    CHECK(good && in_place);
  }
  CHECK(near(THSTensor_arccosh(vector_of({1, 2})), {0, std::acosh(2)}));
  CHECK(near(THSTensor_erfinv(vector_of({0, std::erf(0.3)})), {0, 0.3}));
  CHECK(near(THSTensor_round(vector_of({0.126, -2.5}), 2), {0.13, -2.5}));
  CHECK(near(THSTensor_celu(vector_of({-1, 2}), Number(1.0)), {std::expm1(-1), 2}));
  CHECK(near(THSTensor_elu(vector_of({-1, 2}), Number(2.0), Number(1.0), Number(1.0)),
             {2 * std::expm1(-1), 2}));
  CHECK(near(THSTensor_leaky_relu(vector_of({-1, 2}), Number(0.1)), {-0.1, 2}));
  CHECK(near(THSTensor_hardtanh(vector_of({-3, 0, 3}), Number(-1), Number(2)), {-1, 0, 2}));
  CHECK(near(THSTensor_softplus(vector_of({0}), Number(1), Number(20)), {std::log(2)}));
  CHECK(near(THSTensor_logical_not(vector_of({0, 2})), {1, 0}));
  CHECK(near(THSTensor_bitwise_not(vector_of({5}, int32_type)), {-6}));
}

struct Binary {
  const char* name;
  Tensor (*function)(const Tensor, const Tensor);
  double (*wanted)(double, double);
};
#define BINARY(name, expression) \
  {#name, THSTensor_##name, [](double x, double y) -> double { return expression; }}

RL_TEST(functions_of_two_tensors) {
  const Binary all[] = {
      BINARY(atan2, std::atan2(x, y)),
      BINARY(copysign, std::copysign(x, y)),
      BINARY(eq, x == y),
      BINARY(float_power, std::pow(x, y)),
      BINARY(floor_divide, std::floor(x / y)),
      BINARY(fmax, std::fmax(x, y)),
      BINARY(fmin, std::fmin(x, y)),
      BINARY(fmod, std::fmod(x, y)),
      BINARY(ge, x >= y),
      BINARY(gt, x > y),
      BINARY(hypot, std::hypot(x, y)),
      BINARY(ldexp, x * std::exp2(y)),
      BINARY(le, x <= y),
      BINARY(logaddexp, std::log(std::exp(x) + std::exp(y))),
      BINARY(logaddexp2, std::log2(std::exp2(x) + std::exp2(y))),
      BINARY(logical_and, x != 0 && y != 0),
      BINARY(logical_or, x != 0 || y != 0),
      BINARY(logical_xor, (x != 0) != (y != 0)),
      BINARY(lt, x < y),
      BINARY(max_elementwise, std::fmax(x, y)),
      BINARY(min_elementwise, std::fmin(x, y)),
      BINARY(mul, x * y),
      BINARY(ne, x != y),
      BINARY(nextafter, std::nextafter(x, y)),
      BINARY(pow, std::pow(x, y)),
      BINARY(remainder, x - y * std::floor(x / y)),
      BINARY(sub, x - y),
      BINARY(true_divide, x / y),
      BINARY(xlogy, x * std::log(y)),
  };
  const std::vector<double> xs = {0.5, 2, 7}, ys = {1.5, 2, 3};
  const Taken x = vector_of(xs), y = vector_of(ys);
  for (const Binary& one : all) {
    std::vector<double> wanted;
    for (size_t i = 0; i < xs.size(); i++) {
      wanted.push_back(one.wanted(xs[i], ys[i]));
    }
    const bool good = near(one.function(x, y), wanted);
    if (!good) {
      std::printf("%s\n", one.name);
    }
    CHECK(good);
  }
  CHECK(near(THSTensor_add(x, y, Number(2)), {3.5, 6, 13}));
  CHECK(near(THSTensor_add_scalar(x, Number(1), Number(3)), {3.5, 5, 10}));
  CHECK(near(THSTensor_sub_scalar(x, Number(1)), {-0.5, 1, 6}));
  CHECK(near(THSTensor_mul_scalar(x, Number(0.5)), {0.25, 1, 3.5}));
  CHECK(near(THSTensor_div(x, y, nullptr), {0.5 / 1.5, 1, 7.0 / 3}));
  CHECK(near(THSTensor_div(x, y, "floor"), {0, 1, 2}));
  CHECK(near(THSTensor_div_scalar(x, Number(2), "trunc"), {0, 1, 3}));
  CHECK(near(THSTensor_pow_scalar(x, Number(2)), {0.25, 4, 49}));
  CHECK(near(THSTensor_remainder_scalar(x, Number(2)), {0.5, 0, 1}));
  CHECK(near(THSTensor_fmod_scalar(x, Number(2)), {0.5, 0, 1}));
  CHECK(near(THSTensor_ge_scalar(x, Number(2)), {0, 1, 1}));
  CHECK(near(THSTensor_lt_scalar(x, Number(2)), {1, 0, 0}));
  CHECK(near(THSTensor_gcd(vector_of({12, 9}, int64_type), vector_of({8, 6}, int64_type)), {4, 3}));
  CHECK(
      near(THSTensor_lcm(vector_of({12, 9}, int64_type), vector_of({8, 6}, int64_type)), {24, 18}));
  CHECK(near(THSTensor_bitwise_and(vector_of({6}, int32_type), vector_of({3}, int32_type)), {2}));
  CHECK(near(THSTensor_bitwise_xor(vector_of({6}, int32_type), vector_of({3}, int32_type)), {5}));
  CHECK(near(THSTensor_heaviside(vector_of({-1, 0, 1}), vector_of({9, 9, 9})), {0, 9, 1}));
  CHECK(near(THSTensor_lerp(x, y, vector_of({0, 0.5, 1})), {0.5, 2, 3}));
  CHECK(near(THSTensor_addcmul(x, x, y, Number(2)), {2, 10, 49}));
  CHECK(near(THSTensor_addcdiv(x, x, y, Number(3)), {1.5, 5, 14}));
  CHECK(near(THSTensor_clamp(x, Number(1), Number(5)), {1, 2, 5}));
  CHECK(near(THSTensor_clamp_min(x, Number(1)), {1, 2, 7}));
  CHECK(near(THSTensor_clamp_max(x, Number(1)), {0.5, 1, 1}));
  CHECK(THSTensor_allclose(x, x, 1e-5, 1e-8, false) &&
        !THSTensor_allclose(x, y, 1e-5, 1e-8, false));
  CHECK(near(THSTensor_isclose(x, y, 1e-5, 1e-8, false), {0, 1, 0}));
  CHECK(near(THSTensor_where(THSTensor_gt(y, x), x, y), {0.5, 2, 3}));
}

// ---- shapes ----

RL_TEST(dtypes_have_numbers) {
  const int64_t sizes[] = {2, 3};
  for (const int8_t type : {byte_type, int32_type, int64_type, float32_type, float64_type,
                            complex64_type, bool_type, bfloat16_type}) {
    const Taken zeros = THSTensor_zeros(sizes, 2, type, cpu, 0, false);
    CHECK(THSTensor_type(zeros) == type);
    CHECK(THSTensor_type(Taken(THSTensor_ones_like(zeros, type, cpu, 0, false))) == type);
  }
  CHECK(THSTensor_element_size(Taken(THSTensor_ones(sizes, 2, bool_type, cpu, 0, false))) == 1);
  CHECK(THSTorch_promote_types(bool_type, bfloat16_type) == bfloat16_type);
  CHECK(THSTorch_promote_types(int64_type, complex64_type) == complex64_type);
  CHECK(THSTorch_can_cast(bool_type, int32_type) == 1);
  CHECK(THSTorch_can_cast(complex64_type, float32_type) == 0);
  const Taken truth = THSTensor_newBoolScalar(true, cpu, 0, false);
  CHECK(THSTensor_type(truth) == bool_type && THSTensor_is_nonzero(truth));
}

RL_TEST(what_tensors_are_made_of) {
  const Taken x = THSTensor_arange(Number(0), Number(6), Number(1), float64_type, cpu, 0, false);
  const int64_t shape[] = {2, 3};
  const Taken m = THSTensor_reshape(x, shape, 2);
  CHECK(THSTensor_ndimension(m) == 2 && THSTensor_numel(m) == 6 && THSTensor_size(m, 1) == 3);
  CHECK(THSTensor_stride(m, 0) == 3 && THSTensor_is_contiguous(m));
  static std::vector<int64_t> read;
  THSTensor_sizes(m, [](size_t n) {
    read.resize(n);
    return read.data();
  });
  CHECK((read == std::vector<int64_t>{2, 3}));
  CHECK(THSTensor_data(m) == THSTensor_data(x) && THSStorage_nbytes(m) == 48);
  CHECK(THSTensor_device_type(m) == cpu && !THSTensor_is_sparse(m));
  const Taken t = THSTensor_transpose(m, 0, 1);
  CHECK(near(t, {0, 3, 1, 4, 2, 5}) && !THSTensor_is_contiguous(t));
  CHECK(near(THSTensor_view(m, std::vector<int64_t>{6}.data(), 1), {0, 1, 2, 3, 4, 5}));
  CHECK(near(THSTensor_permute(m, std::vector<int64_t>{1, 0}.data(), 2), {0, 3, 1, 4, 2, 5}));
  CHECK(near(THSTensor_flip(m, std::vector<int64_t>{1}.data(), 1), {2, 1, 0, 5, 4, 3}));
  CHECK(
      near(THSTensor_roll(x, std::vector<int64_t>{1}.data(), 1, std::vector<int64_t>{0}.data(), 1),
           {5, 0, 1, 2, 3, 4}));
  CHECK(near(THSTensor_select(m, 0, 1), {3, 4, 5}));
  CHECK(near(THSTensor_slice(x, 0, 1, 6, 2), {1, 3, 5}));
  CHECK(near(THSTensor_narrow(m, 1, 1, 2), {1, 2, 4, 5}));
  CHECK(near(THSTensor_get2(m, 1, 2), {5}));
  CHECK(near(THSTensor_index_select(m, 1, vector_of({2, 0}, int64_type)), {2, 0, 5, 3}));
  CHECK(near(THSTensor_gather(m, 1, made({2, 0}, {2, 1}, int64_type)), {2, 3}));
  CHECK(near(THSTensor_take(m, vector_of({4, 1}, int64_type)), {4, 1}));
  CHECK(near(THSTensor_masked_select(m, THSTensor_gt_scalar(m, Number(3))), {4, 5}));
  CHECK(near(THSTensor_masked_fill(m, THSTensor_gt_scalar(m, Number(3)), Number(-1)),
             {0, 1, 2, 3, -1, -1}));
  CHECK(near(THSTensor_repeat(vector_of({1, 2}), std::vector<int64_t>{2}.data(), 1), {1, 2, 1, 2}));
  CHECK(near(THSTensor_tril(m, 0, false), {0, 0, 0, 3, 4, 0}));
  CHECK(near(THSTensor_triu(m, 1, false), {0, 1, 2, 0, 0, 5}));
  CHECK(near(THSTensor_diagonal(m, 0, 0, 1), {0, 4}));
  CHECK(near(THSTensor_diag(vector_of({1, 2}), 0), {1, 0, 0, 2}));
  CHECK(near(THSTensor_rot90(m, 1, 0, 1), {2, 5, 1, 4, 0, 3}));
  CHECK(near(THSTensor_nonzero(vector_of({0, 3, 4})), {1, 2}));
  CHECK(THSTensor_ndimension(Taken(THSTensor_unsqueeze(m, 0))) == 3);
  CHECK(THSTensor_ndimension(Taken(THSTensor_squeeze_no_dim(Taken(THSTensor_unsqueeze(x, 0))))) ==
        1);
  const Tensor two[] = {m, m};
  CHECK(near(THSTensor_cat(two, 2, 1), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  CHECK(near(THSTensor_stack(two, 2, 0), {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  THSTensor_unbind(m, &allocate, 0);
  const std::vector<Taken> rows = take_all();
  CHECK(rows.size() == 2 && near(rows[1], {3, 4, 5}));
  THSTensor_chunk(x, &allocate, 4, 0);
  CHECK(take_all().size() == 3);
  THSTensor_split_with_size(x, &allocate, 4, 0);
  CHECK(take_all().size() == 2);
  THSTensor_where_list(THSTensor_gt_scalar(m, Number(3)), &allocate);
  const std::vector<Taken> places = take_all();
  CHECK(places.size() == 2 && near(places[1], {1, 2}));
  CHECK(near(THSTensor_eye(2, 3, float64_type, cpu, 0, false), {1, 0, 0, 0, 1, 0}));
  CHECK(near(THSTensor_full(shape, 2, Number(7), int64_type, cpu, 0, false), {7, 7, 7, 7, 7, 7}));
  CHECK(near(THSTensor_linspace(0, 1, 5, float64_type, cpu, 0, false), {0, 0.25, 0.5, 0.75, 1}));
  CHECK(near(THSTensor_logspace(0, 2, 3, 10, float64_type, cpu, 0, false), {1, 10, 100}));
}

// ---- reductions and products ----

RL_TEST(reductions) {
  const Taken m = made({3, 1, 2, 6, 5, 4}, {2, 3});
  const int64_t last[] = {1};
  CHECK(near(THSTensor_sum(m, false, 0), {21}));
  CHECK(THSTensor_type(Taken(THSTensor_sum(m, true, float32_type))) == float32_type);
  CHECK(near(THSTensor_sum_along_dimensions(m, last, 1, false, false, 0), {6, 15}));
  CHECK(near(THSTensor_mean(m), {3.5}));
  CHECK(near(THSTensor_mean_along_dimensions(m, last, 1, true, false, 0), {2, 5}));
  CHECK(near(THSTensor_prod(m, false, 0), {720}));
  CHECK(near(THSTensor_max(m), {6}) && near(THSTensor_min(m), {1}));
  CHECK(near(THSTensor_amax(m, last, 1, false), {3, 6}));
  CHECK(near(THSTensor_amin(m, last, 1, false), {1, 4}));
  CHECK(near(THSTensor_argmax(m), {3}));
  CHECK(near(THSTensor_argmin_along_dimension(m, 1, false), {1, 2}));
  CHECK(near(THSTensor_median(m), {3}));
  CHECK(near(THSTensor_var(m), {3.5}) && near(THSTensor_std(m, false), {std::sqrt(17.5 / 6)}));
  CHECK(near(THSTensor_norm(m, 2), {std::sqrt(91)}));
  CHECK(near(THSTensor_all(m), {1}) && near(THSTensor_any(m), {1}));
  CHECK(near(THSTensor_logsumexp(vector_of({0, 0}), 0, false), {std::log(2)}));
  CHECK(near(THSTensor_cumsum(m, 1, false, 0), {3, 4, 6, 6, 11, 15}));
  CHECK(near(THSTensor_count_nonzero(m, last, 1), {3, 3}));
  CHECK(near(THSTensor_nansum(vector_of({1, std::nan(""), 2})), {3}));
  CHECK(near(THSTensor_trace(made({1, 2, 3, 4}, {2, 2})), {5}));
  CHECK(near(THSTensor_quantile(vector_of({0, 1, 2, 3}), vector_of({0.5}), 0, false), {1.5}));
  THSTensor_topk(m, &allocate, 2, 1, true, true);
  CHECK(near(take_all()[0], {3, 2, 6, 5}));
  Tensor indices = nullptr;
  CHECK(near(THSTensor_sort(m, 1, true, false, &indices), {3, 2, 1, 6, 5, 4}));
  CHECK(near(indices, {0, 2, 1, 0, 1, 2}));
  Tensor inverse = nullptr, counts = nullptr;
  CHECK(near(THSTensor_unique(vector_of({2, 1, 2}), true, true, true, &inverse, &counts), {1, 2}));
  CHECK(near(inverse, {1, 0, 1}) && near(counts, {1, 2}));
  CHECK(near(THSTensor_bincount(vector_of({1, 1, 3}, int64_type), nullptr, 0), {0, 2, 0, 1}));
  CHECK(near(THSTensor_histc(vector_of({0, 1, 1, 2}), 2, 0, 2), {1, 3}));
  Taken hist = vector_of({0}), edges = vector_of({0});
  Tensor hist_at = hist, edges_at = edges, edges_given = nullptr;
  const double range[] = {0, 2};
  CHECK(near(THSTensor_histogram_out_i(vector_of({0, 1, 1, 2}), 2, range, 2, nullptr, false,
                                       &hist_at, &edges_at, &edges_given),
             {1, 3}));
  CHECK(near(edges_given, {0, 1, 2}) && near(hist, {1, 3}));
}

RL_TEST(products_and_solutions) {
  const Taken a = made({1, 2, 3, 4}, {2, 2}), b = made({5, 6, 7, 8}, {2, 2}), v = vector_of({1, 2});
  CHECK(near(THSTensor_mm(a, b), {19, 22, 43, 50}));
  CHECK(near(THSTensor_matmul(a, v), {5, 11}) && near(THSTensor_mv(a, v), {5, 11}));
  CHECK(near(THSTensor_dot(v, v), {5}) && near(THSTensor_inner(v, v), {5}));
  CHECK(near(THSTensor_addmm(a, a, b, 1, 2), {39, 46, 89, 104}));
  CHECK(near(THSTensor_kron(v, v), {1, 2, 2, 4}));
  CHECK(near(THSTensor_inverse(a), {-2, 1, 1.5, -0.5}));
  const Tensor both[] = {a, b};
  CHECK(near(THSTensor_einsum("ij,ij->i", both, 2), {17, 53}));
  CHECK(near(THSLinalg_det(a), {-2}) && near(THSLinalg_inv(a), {-2, 1, 1.5, -0.5}));
  CHECK(near(THSLinalg_matrix_power(a, 2), {7, 10, 15, 22}));
  CHECK(near(THSLinalg_multi_dot(both, 2), {19, 22, 43, 50}));
  CHECK(near(THSLinalg_cholesky(made({4, 2, 2, 5}, {2, 2})), {2, 0, 1, 2}));
  CHECK(near(THSLinalg_eigvalsh(made({2, 1, 1, 2}, {2, 2}), 'L'), {1, 3}));
  Tensor vectors = nullptr;
  CHECK(near(THSLinalg_eigh(made({2, 0, 0, 3}, {2, 2}), 'L', &vectors), {2, 3}));
  CHECK(near(THSTensor_abs(Taken(vectors)), {1, 0, 0, 1}));
  CHECK(near(THSLinalg_vector_norm(v, Number(1), nullptr, 0, false), {3}));
  CHECK(near(THSTensor_cross(vector_of({1, 0, 0}), vector_of({0, 1, 0}), 0), {0, 0, 1}));
  CHECK(near(THSSpecial_bessel_j0(vector_of({0, 1})), {1, std::cyl_bessel_j(0, 1.0)}));
  CHECK(near(THSSpecial_softmax(v, 0, float64_type),
             {1 / (1 + std::exp(1)), 1 / (1 + std::exp(-1))}));
}

// ---- gradients, modules, optimisers ----

RL_TEST(gradients) {
  const Taken x = vector_of({1, 2, 3});
  THSTensor_set_requires_grad(x, true);
  CHECK(THSTensor_requires_grad(x) && THSTensor_is_leaf(x));
  const Taken y = THSTensor_sum(Taken(THSTensor_mul(x, x)), false, 0);
  THSTensor_backward(y);
  CHECK(near(THSTensor_grad(x), {2, 4, 6}));
  Taken z = THSTensor_sum(Taken(THSTensor_exp(x)), false, 0);
  Tensor outputs[] = {z}, inputs[] = {x};
  THSAutograd_grad(outputs, 1, inputs, 1, nullptr, 0, false, false, false, &allocate);
  CHECK(near(take_all()[0], {std::exp(1), std::exp(2), std::exp(3)}));
  CHECK(THSAutograd_isGradEnabled());
  THSAutograd_setGrad(false);
  CHECK(!THSTensor_requires_grad(Taken(THSTensor_neg(x))));
  THSAutograd_setGrad(true);
  CHECK(THSTensor_clip_grad_norm_(inputs, 1, 1.0, 2.0) == std::sqrt(56));
}

RL_TEST(modules_and_optimisers) {
  NNAnyModule any = nullptr;
  THSTorch_manual_seed(1);
  const NNModule cell = THSNN_RNNCell_ctor(2, 3, 1, true, &any);
  const Taken state = THSNN_RNNCell_forward(cell, made({1, 2}, {1, 2}, float32_type), nullptr);
  CHECK(THSTensor_size(state, 1) == 3);
  static std::vector<const char*> names;
  THSNN_Module_get_named_parameters(cell, &allocate, [](size_t n) {
    names.resize(n);
    return names.data();
  });
  CHECK(take_all().size() == 4 && std::string(names[0]) == "weight_ih");
  CHECK(THSNN_Module_is_training(cell));
  THSNN_Module_train(cell, false);
  CHECK(!THSNN_Module_is_training(cell));
  THSNN_AnyModule_dispose(any);
  THSNN_Module_dispose(cell);

  const NNModule twice = THSNN_custom_module(
      "Twice", [](Tensor x) -> Tensor { return new torch::Tensor(*x * 2); }, &any);
  const NNModule chain = THSNN_Sequential_ctor();
  THSNN_Sequential_push_back(chain, "first", any);
  CHECK(near(THSNN_Sequential_forward(chain, Taken(vector_of({1, 2}))), {2, 4}));
  CHECK(THSNN_Module_children_size(chain) == 1);
  THSNN_AnyModule_dispose(any);
  THSNN_Module_dispose(twice);
  THSNN_Module_dispose(chain);

  const Taken x = vector_of({1, 2}), target = vector_of({0, 0});
  CHECK(near(THSNN_mse_loss(x, target, 1), {2.5}));
  CHECK(near(THSNN_l1_loss(x, target, 2), {3}));
  CHECK(near(THSNN_smooth_l1_loss(x, target, 0, 1.0), {0.5, 1.5}));
  CHECK(near(THSNN_huber_loss(x, target, 1.0, 0), {0.5, 1.5}));
  CHECK(near(THSNN_cross_entropy(made({0, 0}, {1, 2}), vector_of({1}, int64_type), nullptr, -100,
                                 true, 1, 0.0),
             {std::log(2)}));
  CHECK(near(THSNN_nll_loss(made({-1, -2}, {1, 2}), vector_of({1}, int64_type), nullptr, 1), {2}));
  CHECK(near(THSNN_one_hot(vector_of({1}, int64_type), 3), {0, 1, 0}));
  CHECK(near(THSNN_functional_linear(made({1, 2}, {1, 2}), made({1, 1}, {1, 2}), vector_of({3})),
             {6}));
  CHECK(near(THSNN_pad(x, std::vector<int64_t>{1, 2}.data(), 2, 0, 9), {9, 1, 2, 9, 9}));
  CHECK(near(
      THSNN_layer_norm(vector_of({-1, 1}), std::vector<int64_t>{2}.data(), 1, nullptr, nullptr, 0),
      {-1, 1}));
  CHECK(near(THSNN_dropout(x, 0.5, false, false), {1, 2}));

  const Taken w = vector_of({1, -1});
  THSTensor_set_requires_grad(w, true);
  const Tensor parameters[] = {w};
  const Optimizer sgd = THSNN_SGD_ctor(parameters, 1, 0.5, 0, 0, 0, false);
  THSTensor_backward(Taken(THSTensor_sum(Taken(THSTensor_mul(w, w)), false, 0)));
  THSNN_SGD_set_lr(sgd, 0.25);
  THSNN_Optimizer_step(sgd, nullptr);
  CHECK(near(w, {0.5, -0.5}));
  THSNN_Optimizer_zero_grad(sgd);
  THSNN_Optimizer_dispose(sgd);
  const Optimizer adam = THSNN_Adam_ctor(parameters, 1, 0.1, 0.9, 0.999, 1e-8, 0, false);
  THSTensor_backward(Taken(THSTensor_sum(w, false, 0)));
  THSNN_Optimizer_step(adam, nullptr);
  CHECK(near(w, {0.4, -0.6}));
  THSNN_Optimizer_dispose(adam);
}

RL_TEST(convolution_and_pooling) {
  const int64_t one[] = {1, 1}, none[] = {0, 0}, two[] = {2, 2};
  const Taken x = made({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}),
              w = made({1, 0, 0, 1}, {1, 1, 2, 2});
  CHECK(near(THSTensor_conv2d(x, w, nullptr, one, 2, none, 2, one, 2, 1), {6, 8, 12, 14}));
  CHECK(near(THSTensor_max_pool2d(x, two, 2, one, 2, none, 2, one, 2, false), {5, 6, 8, 9}));
  CHECK(near(THSTensor_avg_pool2d(x, two, 2, one, 2, none, 2, false, true, 0), {3, 4, 6, 7}));
  CHECK(near(THSTensor_adaptive_avg_pool2d(x, one, 2), {5}));
}

// ---- generators, files, scripts, errors ----

RL_TEST(generators) {
  const Generator g = THSGenerator_manual_seed(7);
  const int64_t sizes[] = {4};
  const Taken first = THSTensor_rand(g, sizes, 1, float64_type, cpu, 0, false);
  THSGenerator_gen_manual_seed(g, 7);
  CHECK(THSGenerator_initial_seed(g) == 7);
  CHECK(torch::equal(Taken(THSTensor_rand(g, sizes, 1, float64_type, cpu, 0, false)).get(),
                     first.get()));
  const Taken state = THSGenerator_get_rng_state(g);
  const Taken normal = THSTensor_randn(g, sizes, 1, float64_type, cpu, 0, false);
  THSGenerator_set_rng_state(g, state);
  CHECK(torch::equal(Taken(THSTensor_randn(g, sizes, 1, float64_type, cpu, 0, false)).get(),
                     normal.get()));
  CHECK(near(THSTensor_sum(Taken(THSTensor_randperm(g, 5, int64_type, cpu, 0, false)), false, 0),
             {10}));
  THSGenerator_dispose(g);
}

RL_TEST(scripts) {
  const JITCompilationUnit unit = THSJIT_compile("def twice(x):\n  return x + x\n");
  const char* const error = THSTorch_get_and_reset_last_err();
  CHECK(error == nullptr && unit != nullptr);
  TensorOrScalar* const arguments = THSJIT_AllocateTensorOrScalarArray(1);
  const Taken x = vector_of({1, 2});
  THSJIT_SetTensorOrScalar(arguments, 0, 0, 0, reinterpret_cast<ptrdiff_t>(static_cast<Tensor>(x)));
  static std::vector<TensorOrScalar> results;
  int8_t code = 0;
  THSJIT_CompilationUnit_Invoke(
      unit, "twice", arguments, 1,
      [](int32_t, size_t n) {
        results.resize(n);
        return results.data();
      },
      &code, 0);
  CHECK(THSTorch_get_and_reset_last_err() == nullptr && results.size() == 1);
  CHECK(near(reinterpret_cast<Tensor>(results.at(0).Handle), {2, 4}));
  THSJIT_FreeTensorOrScalarArray(arguments);
  THSJIT_CompilationUnit_dispose(unit);
}

RL_TEST(numbers_and_errors) {
  CHECK(THSTorch_scalar_to_int64(Number(3)) == 3 && THSTorch_scalar_to_float64(Number(0.5)) == 0.5);
  CHECK(THSTorch_scalar_type(Number(3)) == int64_type &&
        THSTorch_scalar_type(Number(0.5)) == float64_type);
  const Scalar truth = THSTorch_bool_to_scalar(true);
  CHECK(THSTorch_scalar_to_bool(truth) && THSTorch_scalar_type(truth) == bool_type);
  THSTorch_dispose_scalar(truth);
  const Scalar item = THSTensor_item(Taken(vector_of({2.5})));
  CHECK(THSTorch_scalar_to_float64(item) == 2.5);
  THSTorch_dispose_scalar(item);
  CHECK_THROWS(std::runtime_error, "mat1 and mat2 shapes cannot be multiplied",
               Taken(THSTensor_mm(made({1, 2}, {1, 2}), made({1, 2}, {1, 2}))));
  CHECK(THSTorch_get_and_reset_last_err() == nullptr);
}

}  // namespace

RL_TEST_MAIN()
