// Calls of tch-rs's native half, through the functions that Rust calls, with their numbers
// (tests/python/test_bindings.py, which builds it where tch-rs's sources lie).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "torch_api.h"
#include "torch_api_generated.h"
#include "check.h"

// ---- streams, which Rust has on its side ----

namespace {
struct Bytes {
  std::string text;
  size_t at = 0;
};
Bytes& bytes(void* stream) { return *static_cast<Bytes*>(stream); }
}  // namespace

extern "C" {
bool tch_write_stream_destructor(void*) { return true; }
bool tch_write_stream_write(void* stream, const uint8_t* from, size_t size, size_t* written) {
  bytes(stream).text.append(reinterpret_cast<const char*>(from), size);
  *written = size;
  return true;
}
bool tch_read_stream_destructor(void*) { return true; }
bool tch_read_stream_stream_position(void* stream, uint64_t* at) {
  *at = bytes(stream).at;
  return true;
}
bool tch_read_stream_seek_start(void* stream, uint64_t to, uint64_t* at) {
  *at = bytes(stream).at = to;
  return true;
}
bool tch_read_stream_seek_end(void* stream, int64_t back, uint64_t* at) {
  *at = bytes(stream).at = bytes(stream).text.size() + static_cast<size_t>(back);
  return true;
}
bool tch_read_stream_read(void* stream, uint8_t* into, size_t size, size_t* read) {
  Bytes& from = bytes(stream);
  *read = std::min(size, from.text.size() - from.at);
  std::memcpy(into, from.text.data() + from.at, *read);
  from.at += *read;
  return true;
}
}

namespace {

// Rust knows dtypes and devices by these numbers, and reductions of losses.
constexpr int int64_type = 4, float32_type = 6, float64_type = 7, cpu = -1;
constexpr int64_t mean_reduction = 1;
const tensor no_tensor = nullptr;

// The error of the last call, as Rust takes it.
void raise_last_error() {
  if (char* const text = get_and_reset_last_err()) {
    const std::string error = text;
    std::free(text);
    throw std::runtime_error(error);
  }
}
bool raises(const char* part, const std::function<void()>& call) {
  call();
  char* const text = get_and_reset_last_err();
  const bool found = text != nullptr && std::strstr(text, part) != nullptr;
  std::free(text);
  return found;
}

// A result, which the caller owns.
class Taken {
 public:
  Taken(tensor t) : tensor_(t) { raise_last_error(); }
  Taken(Taken&& o) noexcept : tensor_(std::exchange(o.tensor_, nullptr)) {}
  ~Taken() {
    if (tensor_ != nullptr) {
      at_free(tensor_);
    }
  }
  operator tensor() const { return tensor_; }

 private:
  tensor tensor_;
};
// The results of a function that puts them where it is told.
template <size_t n, class... P, class... A>
std::vector<Taken> all_of(void (*function)(tensor*, P...), A... arguments) {
  tensor out[n] = {};
  function(out, arguments...);
  raise_last_error();
  std::vector<Taken> taken;
  for (const tensor t : out) {
    taken.emplace_back(t);
  }
  return taken;
}
template <class... P, class... A>
Taken one_of(void (*function)(tensor*, P...), A... arguments) {
  tensor out = nullptr;
  function(&out, arguments...);
  return out;
}
class Number {
 public:
  Number(double value) : scalar_(ats_float(value)) {}
  Number(int value) : scalar_(ats_int(value)) {}
  Number(const Number&) = delete;
  ~Number() { ats_free(scalar_); }
  operator scalar() const { return scalar_; }

 private:
  scalar scalar_;
};

std::vector<double> numbers(tensor t) {
  const Taken wide = one_of(atg_to_dtype, t, float64_type, 0, 1);
  size_t n = 1;
  std::vector<int64_t> sizes(at_dim(wide));
  at_shape(wide, sizes.data());
  for (const int64_t size : sizes) {
    n *= static_cast<size_t>(size);
  }
  std::vector<double> out(n);
  at_copy_data(wide, out.data(), n, sizeof(double));
  raise_last_error();
  return out;
}
bool near(tensor t, const std::vector<double>& wanted, double tolerance = 1e-6) {
  const std::vector<double> found = numbers(t);
  bool good = found.size() == wanted.size();
  for (size_t i = 0; good && i < found.size(); i++) {
    good = found[i] == wanted[i] ||
           std::abs(found[i] - wanted[i]) <= tolerance * (1 + std::abs(wanted[i]));
  }
  return good;
}
std::vector<int64_t> sizes_of(tensor t) {
  std::vector<int64_t> out(at_dim(t));
  at_shape(t, out.data());
  return out;
}
Taken made(std::vector<double> values, std::vector<int64_t> sizes) {
  return at_tensor_of_data(values.data(), sizes.data(), sizes.size(), sizeof(double), float64_type);
}
Taken vector_of(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return made(std::move(values), {n});
}
Taken whole(std::vector<int64_t> values, std::vector<int64_t> sizes) {
  return at_tensor_of_data(values.data(), sizes.data(), sizes.size(), sizeof(int64_t), int64_type);
}
Taken leaf(std::vector<double> values, std::vector<int64_t> sizes) {
  return one_of(atg_set_requires_grad, made(std::move(values), std::move(sizes)), 1);
}

// ---- elements ----

struct Unary {
  const char* name;
  void (*function)(tensor*, tensor);
  void (*in_place)(tensor*, tensor);
  double (*wanted)(double);
};
#define UNARY(name, expression) \
  {#name, atg_##name, atg_##name##_, [](double x) -> double { return expression; }}

RL_TEST(functions_of_one_tensor) {
  const Unary all[] = {
      UNARY(abs, std::abs(x)),
      UNARY(acos, std::acos(x)),
      UNARY(asin, std::asin(x)),
      UNARY(asinh, std::asinh(x)),
      UNARY(atan, std::atan(x)),
      UNARY(atanh, std::atanh(x)),
      UNARY(ceil, std::ceil(x)),
      UNARY(cos, std::cos(x)),
      UNARY(cosh, std::cosh(x)),
      UNARY(deg2rad, x * std::acos(-1.0) / 180),
      UNARY(erf, std::erf(x)),
      UNARY(erfc, std::erfc(x)),
      UNARY(exp, std::exp(x)),
      UNARY(exp2, std::exp2(x)),
      UNARY(expm1, std::expm1(x)),
      UNARY(floor, std::floor(x)),
      UNARY(frac, x - std::trunc(x)),
      UNARY(hardsigmoid, x / 6 + 0.5),
      UNARY(hardswish, x * (x + 3) / 6),
      UNARY(lgamma, std::lgamma(x)),
      UNARY(log, std::log(x)),
      UNARY(log10, std::log10(x)),
      UNARY(log1p, std::log1p(x)),
      UNARY(log2, std::log2(x)),
      UNARY(mish, x * std::tanh(std::log1p(std::exp(x)))),
      UNARY(neg, -x),
      UNARY(rad2deg, x * 180 / std::acos(-1.0)),
      UNARY(reciprocal, 1 / x),
      UNARY(relu, x),
      UNARY(round, std::nearbyint(x)),
      UNARY(rsqrt, 1 / std::sqrt(x)),
      UNARY(sigmoid, 1 / (1 + std::exp(-x))),
      UNARY(sign, 1),
      UNARY(silu, x / (1 + std::exp(-x))),
      UNARY(sin, std::sin(x)),
      UNARY(sinh, std::sinh(x)),
      UNARY(sqrt, std::sqrt(x)),
      UNARY(square, x * x),
      UNARY(tan, std::tan(x)),
      UNARY(tanh, std::tanh(x)),
      UNARY(trunc, std::trunc(x)),
      UNARY(zero, 0),
  };
#undef UNARY
  const std::vector<double> xs = {0.25, 0.75, 0.9};
  for (const Unary& one : all) {
    std::vector<double> wanted;
    for (const double x : xs) {
      wanted.push_back(one.wanted(x));
    }
    const Taken x = vector_of(xs);
    bool good = near(one_of(one.function, tensor(x)), wanted) && near(x, xs);
    const Taken same = one_of(one.in_place, tensor(x));
    good = good && near(x, wanted) && near(same, wanted);
    if (!good) {
      std::printf("%s\n", one.name);
    }
    CHECK(good);
  }
}

struct Binary {
  const char* name;
  void (*function)(tensor*, tensor, tensor);
  double (*wanted)(double, double);
};
#define BINARY(name, op, expression) \
  {#name, atg_##name, [](double x, double y) -> double { return expression; }}

RL_TEST(functions_of_two_tensors) {
  const Binary all[] = {
      BINARY(add, add, x + y),
      BINARY(sub, sub, x - y),
      BINARY(mul, mul, x * y),
      BINARY(div, div, x / y),
      BINARY(pow, pow, std::pow(x, y)),
      BINARY(atan2, atan2, std::atan2(x, y)),
      BINARY(maximum, maximum, x > y ? x : y),
      BINARY(minimum, minimum, x < y ? x : y),
      BINARY(fmax, fmax, x > y ? x : y),
      BINARY(fmin, fmin, x < y ? x : y),
      BINARY(hypot, hypot, std::hypot(x, y)),
      BINARY(logaddexp, logaddexp, std::log(std::exp(x) + std::exp(y))),
      BINARY(eq_tensor, eq, x == y),
      BINARY(ne_tensor, ne, x != y),
      BINARY(lt_tensor, lt, x < y),
      BINARY(le_tensor, le, x <= y),
      BINARY(gt_tensor, gt, x > y),
      BINARY(ge_tensor, ge, x >= y),
      BINARY(xlogy, xlogy, x * std::log(y)),
      BINARY(copysign, copysign, std::copysign(x, y)),
      BINARY(logical_and, logical_and, x != 0 && y != 0),
  };
#undef BINARY
  const std::vector<double> xs = {0.5, 2, 3}, ys = {2, 2, 0.25};
  const Taken x = vector_of(xs), y = vector_of(ys);
  for (const Binary& one : all) {
    std::vector<double> wanted;
    for (size_t i = 0; i < xs.size(); i++) {
      wanted.push_back(one.wanted(xs[i], ys[i]));
    }
    const bool good = near(one_of(one.function, tensor(x), tensor(y)), wanted);
    if (!good) {
      std::printf("%s\n", one.name);
    }
    CHECK(good);
  }
  CHECK(near(one_of(atg_add_scalar, tensor(x), scalar(Number(1))), {1.5, 3, 4}));
  CHECK(near(one_of(atg_mul_scalar, tensor(x), scalar(Number(0.5))), {0.25, 1, 1.5}));
  CHECK(near(one_of(atg_pow_tensor_scalar, tensor(x), scalar(Number(2))), {0.25, 4, 9}));
  CHECK(near(one_of(atg_clamp, tensor(x), scalar(Number(1.0)), scalar(Number(2.5))), {1, 2, 2.5}));
  CHECK(near(one_of(atg_lt, tensor(x), scalar(Number(2))), {1, 0, 0}));
}

// ---- what tensors are ----

RL_TEST(tensors_and_their_memory) {
  const Taken none = at_new_tensor();
  CHECK(at_defined(none) == 0);
  const Taken x = made({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(at_defined(x) == 1 && at_dim(x) == 2 && at_scalar_type(x) == float64_type);
  CHECK(at_device(x) == cpu && at_is_contiguous(x) == 1 && at_is_sparse(x) == 0);
  CHECK(at_is_mkldnn(x) == 0 && at_requires_grad(x) == 0 && at_data_ptr(x) != nullptr);
  int64_t strides[2];
  at_stride(x, strides);
  CHECK(strides[0] == 3 && strides[1] == 1);
  int64_t place[] = {1, 2};
  int narrow_place[] = {1, 2};
  CHECK(at_double_value_at_indexes(x, place, 2) == 6);
  CHECK(at_int64_value_at_indexes(x, place, 2) == 6);
  at_set_double_value_at_indexes(x, narrow_place, 2, 7.5);
  CHECK(at_double_value_at_indexes(x, place, 2) == 7.5);
  at_set_int64_value_at_indexes(x, narrow_place, 2, 8);
  CHECK(near(at_get(x, 1), {4, 5, 8}));
  const Taken same = at_shallow_clone(x);
  at_fill_double(same, 0.5);
  CHECK(near(x, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}));
  at_fill_int64(same, 2);
  at_copy_(same, one_of(atg_neg, tensor(x)));
  CHECK(near(x, {-2, -2, -2, -2, -2, -2}));
  float memory[] = {1, 2, 3, 4};
  int64_t sizes[] = {2, 2}, turned[] = {1, 2};
  const Taken blob = at_tensor_of_blob(memory, sizes, 2, turned, 2, float32_type, cpu);
  CHECK(near(blob, {1, 3, 2, 4}));
  memory[0] = 9;
  CHECK(near(blob, {9, 3, 2, 4}));
  char* const text = at_to_string(blob, 80);
  CHECK(text != nullptr && std::strstr(text, "9") != nullptr);
  std::free(text);
  CHECK(raises("element sizes", [&] { at_copy_data(x, memory, 4, sizeof(float)); }));
  CHECK(raises("out of range", [&] { at_get(x, 5); }));
}

RL_TEST(scalars) {
  CHECK(ats_to_int(Number(3)) == 3 && ats_to_float(Number(2.5)) == 2.5);
  char* const text = ats_to_string(Number(3));
  CHECK(std::string(text) == "3");
  std::free(text);
}

RL_TEST(factories) {
  std::vector<int64_t> sizes = {2, 2};
  const int n = 2;
  CHECK(near(one_of(atg_zeros, sizes.data(), n, float32_type, cpu), {0, 0, 0, 0}));
  CHECK(near(one_of(atg_ones, sizes.data(), n, int64_type, cpu), {1, 1, 1, 1}));
  CHECK(near(one_of(atg_full, sizes.data(), n, scalar(Number(2.5)), float64_type, cpu),
             {2.5, 2.5, 2.5, 2.5}));
  CHECK(near(one_of(atg_arange, scalar(Number(3)), int64_type, cpu), {0, 1, 2}));
  CHECK(near(one_of(atg_eye, int64_t(2), float32_type, cpu), {1, 0, 0, 1}));
  at_manual_seed(3);
  const Taken a = one_of(atg_rand, sizes.data(), n, float32_type, cpu);
  at_manual_seed(3);
  const Taken b = one_of(atg_rand, sizes.data(), n, float32_type, cpu);
  CHECK(numbers(a) == numbers(b));
  std::vector<double> order = numbers(one_of(atg_randperm, int64_t(4), int64_type, cpu));
  std::sort(order.begin(), order.end());
  CHECK(order == std::vector<double>({0, 1, 2, 3}));
  CHECK(near(one_of(atg_bernoulli, tensor(vector_of({0, 1}))), {0, 1}));
  CHECK(near(one_of(atg_multinomial, tensor(vector_of({0, 1})), int64_t(1), 0), {1}));
}

// ---- forms ----

RL_TEST(forms) {
  const Taken x = made({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto turned = one_of(atg_transpose, tensor(x), int64_t(0), int64_t(1));
  CHECK(near(turned, {1, 4, 2, 5, 3, 6}) && at_is_contiguous(turned) == 0);
  std::vector<int64_t> sizes = {3, 2}, order = {1, 0}, twice = {2, 1}, one = {1}, last = {1};
  CHECK(sizes_of(one_of(atg_reshape, tensor(x), sizes.data(), 2)) == sizes);
  CHECK(sizes_of(one_of(atg_view, tensor(x), sizes.data(), 2)) == sizes);
  CHECK(sizes_of(one_of(atg_permute, tensor(x), order.data(), 2)) == sizes);
  CHECK(sizes_of(one_of(atg_flatten, tensor(x), int64_t(0), int64_t(-1)))[0] == 6);
  const Taken wide = one_of(atg_unsqueeze, tensor(x), int64_t(0));
  CHECK(at_dim(wide) == 3 && at_dim(one_of(atg_squeeze_dim, tensor(wide), int64_t(0))) == 2);
  CHECK(near(one_of(atg_narrow, tensor(x), int64_t(1), int64_t(1), int64_t(2)), {2, 3, 5, 6}));
  CHECK(near(one_of(atg_repeat, tensor(vector_of({1, 2})), twice.data(), 2), {1, 2, 1, 2}));
  CHECK(near(one_of(atg_roll, tensor(x), one.data(), 1, last.data(), 1), {3, 1, 2, 6, 4, 5}));
  CHECK(near(one_of(atg_flip, tensor(x), last.data(), 1), {3, 2, 1, 6, 5, 4}));
  CHECK(near(one_of(atg_tril, tensor(x), int64_t(0)), {1, 0, 0, 4, 5, 0}));
  CHECK(near(one_of(atg_triu, tensor(x), int64_t(0)), {1, 2, 3, 0, 5, 6}));
  CHECK(near(one_of(atg_unfold, tensor(vector_of({1, 2, 3})), int64_t(0), int64_t(2), int64_t(1)),
             {1, 2, 2, 3}));
  tensor both[] = {x, x};
  CHECK(sizes_of(one_of(atg_cat, both, 2, int64_t(0)))[0] == 4);
  CHECK(at_dim(one_of(atg_stack, both, 2, int64_t(0))) == 3);
  for (tensor* const parts : {atg_split(x, 2, 1), atg_chunk(x, 2, 1)}) {
    raise_last_error();
    const Taken first = parts[0], second = parts[1];
    CHECK(near(first, {1, 2, 4, 5}) && near(second, {3, 6}) && parts[2] == nullptr);
    std::free(parts);
  }
}

RL_TEST(indices) {
  const Taken x = made({1, 2, 3, 4, 5, 6}, {2, 3});
  const Taken at = whole({2, 0}, {2}), rows = whole({1, 0}, {2}), within = whole({2, 0}, {2, 1});
  CHECK(near(one_of(atg_index_select, tensor(x), int64_t(1), tensor(at)), {3, 1, 6, 4}));
  CHECK(near(one_of(atg_gather, tensor(x), int64_t(1), tensor(within), 0), {3, 4}));
  CHECK(
      near(one_of(atg_scatter, tensor(x), int64_t(1), tensor(within), tensor(made({7, 8}, {2, 1}))),
           {1, 2, 7, 8, 5, 6}));
  tensor pair[] = {rows, at};
  CHECK(near(one_of(atg_index, tensor(x), pair, 2), {6, 1}));
  CHECK(near(one_of(atg_index_put, tensor(x), pair, 2, tensor(vector_of({8, 9})), 0),
             {9, 2, 3, 4, 5, 8}));
  const Taken large = one_of(atg_gt, tensor(x), scalar(Number(3)));
  CHECK(near(one_of(atg_masked_fill, tensor(x), tensor(large), scalar(Number(0))),
             {1, 2, 3, 0, 0, 0}));
  CHECK(near(one_of(atg_masked_select, tensor(x), tensor(large)), {4, 5, 6}));
  CHECK(near(one_of(atg_where_self, tensor(large), tensor(x), tensor(one_of(atg_neg, tensor(x)))),
             {-1, -2, -3, 4, 5, 6}));
  CHECK(near(one_of(atg_one_hot, tensor(at), int64_t(3)), {0, 0, 1, 1, 0, 0}));
  CHECK(sizes_of(one_of(atg_nonzero, tensor(large)))[0] == 3);
  const auto top = all_of<2>(atg_topk, tensor(x), int64_t(2), int64_t(1), 1, 1);
  CHECK(near(top[0], {3, 2, 6, 5}) && near(top[1], {2, 1, 2, 1}));
  const auto sorted = all_of<2>(atg_sort, tensor(vector_of({2, 3, 1})), int64_t(0), 0);
  CHECK(near(sorted[0], {1, 2, 3}) && near(sorted[1], {2, 0, 1}));
}

// ---- sums, matrices ----

RL_TEST(sums) {
  const Taken x = made({1, 2, 3, 4, 5, 6}, {2, 3});
  std::vector<int64_t> dim = {1};
  CHECK(near(one_of(atg_sum, tensor(x), float64_type), {21}));
  CHECK(near(one_of(atg_sum_dim_intlist, tensor(x), dim.data(), 1, 0, float64_type), {6, 15}));
  CHECK(near(one_of(atg_mean, tensor(x), float64_type), {3.5}));
  CHECK(near(one_of(atg_var, tensor(x), 1), {3.5}));
  CHECK(near(one_of(atg_std, tensor(x), 1), {std::sqrt(3.5)}));
  CHECK(near(one_of(atg_norm, tensor(vector_of({3, 4}))), {5}));
  CHECK(near(one_of(atg_cumsum, tensor(x), int64_t(1), float64_type), {1, 3, 6, 4, 9, 15}));
  CHECK(near(one_of(atg_argmax, tensor(x), int64_t(1), uint8_t(0), 0), {2, 2}));
  CHECK(near(one_of(atg_argmin, tensor(x), int64_t(0), uint8_t(1), 0), {0}));
  const auto greatest = all_of<2>(atg_max_dim, tensor(x), int64_t(0), 0);
  const auto least = all_of<2>(atg_min_dim, tensor(x), int64_t(1), 1);
  CHECK(near(greatest[0], {4, 5, 6}) && near(greatest[1], {1, 1, 1}));
  CHECK(near(least[0], {1, 4}) && sizes_of(least[1]) == std::vector<int64_t>({2, 1}));
  const double e = std::exp(1.0);
  const Taken row = vector_of({0, 1});
  CHECK(
      near(one_of(atg_softmax, tensor(row), int64_t(0), float64_type), {1 / (1 + e), e / (1 + e)}));
  CHECK(near(one_of(atg_log_softmax, tensor(row), int64_t(0), float64_type),
             {-std::log(1 + e), 1 - std::log(1 + e)}));
}

RL_TEST(matrices) {
  const Taken a = made({2, 0, 1, 4}, {2, 2});
  CHECK(near(one_of(atg_matmul, tensor(a), tensor(a)), {4, 0, 6, 16}));
  CHECK(near(one_of(atg_mm, tensor(a), tensor(a)), {4, 0, 6, 16}));
  CHECK(near(one_of(atg_linalg_inv, tensor(a)), {0.5, 0, -0.125, 0.25}));
  CHECK(near(one_of(atg_linalg_det, tensor(a)), {8}));
  const Taken spd = made({4, 2, 2, 5}, {2, 2});
  CHECK(near(one_of(atg_linalg_cholesky, tensor(spd), 0), {2, 0, 1, 2}));
  char mode[] = "reduced", none[] = "";
  const auto qr = all_of<2>(atg_linalg_qr, tensor(a), static_cast<char*>(mode), 7);
  CHECK(near(one_of(atg_matmul, tensor(qr[0]), tensor(qr[1])), {2, 0, 1, 4}));
  char equation[] = "ij,kj->ik";
  tensor both[] = {a, a};
  CHECK(near(one_of(atg_einsum, static_cast<char*>(equation), 9, both, 2,
                    static_cast<int64_t*>(nullptr), 0),
             {4, 2, 2, 17}));
  const Taken wave = vector_of({1, 2, 3, 4});
  const Taken spectrum = one_of(atg_fft_fft, tensor(wave), int64_t(0), uint8_t(1), int64_t(-1),
                                static_cast<char*>(none), 0);
  const Taken back = one_of(atg_fft_ifft, tensor(spectrum), int64_t(0), uint8_t(1), int64_t(-1),
                            static_cast<char*>(none), 0);
  CHECK(near(one_of(atg_real, tensor(back)), {1, 2, 3, 4}));
  CHECK(raises("singular", [&] {
    tensor out = nullptr;
    atg_linalg_inv(&out, made({1, 1, 1, 1}, {2, 2}));
  }));
}

// ---- layers and losses ----

RL_TEST(layers) {
  const Taken x = made({1, 2}, {1, 2}), w = made({1, 0, 1, 1}, {2, 2}), b = vector_of({0.5, -1});
  CHECK(near(one_of(atg_linear, tensor(x), tensor(w), tensor(b)), {1.5, 2}));
  const Taken image = made({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}),
              k = made({1, 0, 0, 1}, {1, 1, 2, 2});
  std::vector<int64_t> ones = {1, 1}, zeros = {0, 0}, twos = {2, 2}, last = {2};
  CHECK(near(one_of(atg_conv2d, tensor(image), tensor(k), no_tensor, ones.data(), 2, zeros.data(),
                    2, ones.data(), 2, int64_t(1)),
             {6, 8, 12, 14}));
  CHECK(near(one_of(atg_max_pool2d, tensor(image), twos.data(), 2, ones.data(), 2, zeros.data(), 2,
                    ones.data(), 2, 0),
             {5, 6, 8, 9}));
  CHECK(near(one_of(atg_avg_pool2d, tensor(image), twos.data(), 2, ones.data(), 2, zeros.data(), 2,
                    0, 1, int64_t(0), uint8_t(1)),
             {3, 4, 6, 7}));
  CHECK(near(one_of(atg_layer_norm, tensor(x), last.data(), 1, no_tensor, no_tensor, 0.0, 1),
             {-1, 1}));
  const Taken table = made({1, 2, 3, 4}, {2, 2});
  CHECK(near(one_of(atg_embedding, tensor(table), tensor(whole({1, 0}, {2})), int64_t(-1), 0, 0),
             {3, 4, 1, 2}));
  CHECK(near(one_of(atg_dropout, tensor(x), 0.5, 0), {1, 2}));
  CHECK(near(one_of(atg_leaky_relu, tensor(vector_of({-1, 2}))), {-0.01, 2}));
  const Taken mean = vector_of({1, 1}), variance = vector_of({4, 1});
  CHECK(near(one_of(atg_batch_norm, tensor(x), no_tensor, no_tensor, tensor(mean), tensor(variance),
                    0, 0.1, 0.0, 1),
             {0, 1}));
  const Taken target = made({0, 4}, {1, 2});
  CHECK(near(one_of(atg_mse_loss, tensor(x), tensor(target), mean_reduction), {2.5}));
  CHECK(near(one_of(atg_smooth_l1_loss, tensor(x), tensor(target), mean_reduction, 1.0), {1}));
  const Taken label = whole({1}, {1});
  CHECK(
      near(one_of(atg_nll_loss, tensor(x), tensor(label), no_tensor, mean_reduction, int64_t(-100)),
           {-2}));
  CHECK(near(one_of(atg_cross_entropy_loss, tensor(x), tensor(label), no_tensor, mean_reduction,
                    int64_t(-100), 0.0),
             {std::log(1 + std::exp(-1.0))}));
  CHECK(near(one_of(atg_binary_cross_entropy, tensor(vector_of({0.5})), tensor(vector_of({1})),
                    no_tensor, mean_reduction),
             {std::log(2.0)}));
}

// ---- gradients and steps ----

RL_TEST(gradients) {
  const Taken x = leaf({1, 2, 3}, {3});
  const Taken y = one_of(atg_sum, tensor(one_of(atg_square, tensor(x))), float64_type);
  at_backward(y, 0, 0);
  raise_last_error();
  CHECK(near(one_of(atg_grad, tensor(x)), {2, 4, 6}));
  CHECK(raises("backward", [&] { at_backward(y, 0, 0); }));
  const Taken z = one_of(atg_sum, tensor(one_of(atg_exp, tensor(x))), float64_type);
  tensor of[] = {z}, by[] = {x}, out[1] = {};
  at_run_backward(of, 1, by, 1, out, 0, 0);
  raise_last_error();
  CHECK(near(Taken(out[0]), {std::exp(1.0), std::exp(2.0), std::exp(3.0)}));
  const int before = at_grad_set_enabled(0);
  CHECK(before == 1 && at_requires_grad(one_of(atg_square, tensor(x))) == 0);
  CHECK(at_grad_set_enabled(1) == 0);
  CHECK(at_requires_grad(one_of(atg_square, tensor(x))) == 1);
  CHECK(at_requires_grad(one_of(atg_detach, tensor(x))) == 0);
}

RL_TEST(optimizers) {
  const auto lowers = [](optimizer steps) {
    raise_last_error();
    const Taken w = leaf({2, -3}, {2});
    ato_add_parameters(steps, w, 0);
    ato_set_learning_rate(steps, 0.05);
    ato_set_learning_rate_group(steps, 0, 0.1);
    ato_set_weight_decay(steps, 0);
    raise_last_error();
    double first = 0, last = 0;
    for (int i = 0; i < 50; i++) {
      const Taken loss = one_of(atg_sum, tensor(one_of(atg_square, tensor(w))), float64_type);
      last = numbers(loss)[0];
      first = i == 0 ? last : first;
      ato_zero_grad(steps);
      at_backward(loss, 0, 0);
      ato_step(steps);
      raise_last_error();
    }
    ato_free(steps);
    return first == 13 && last < 1;
  };
  CHECK(lowers(ato_sgd(0.1, 0, 0, 0, 0)));
  CHECK(lowers(ato_adam(0.1, 0.9, 0.999, 0, 1e-8, false)));
  CHECK(lowers(ato_adamw(0.1, 0.9, 0.999, 0, 1e-8, true)));
  CHECK(lowers(ato_rms_prop(0.1, 0.99, 1e-8, 0, 0, 0)));
}

// ---- files, values, the process ----

RL_TEST(files_and_streams) {
  const Taken x = made({1, 2, 3}, {3}), y = whole({4, 5}, {2});
  std::string folder = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp";
  std::string one = folder + "/one.pt", several = folder + "/several.pt";
  at_save(x, one.data());
  raise_last_error();
  CHECK(near(Taken(at_load(one.data())), {1, 2, 3}));
  tensor both[] = {x, y}, loaded[2] = {};
  std::string first = "first", second = "second";
  char* names[] = {first.data(), second.data()};
  at_save_multi(both, names, 2, several.data());
  raise_last_error();
  at_load_multi(loaded, names, 2, several.data());
  raise_last_error();
  const Taken a = loaded[0], b = loaded[1];
  CHECK(near(a, {1, 2, 3}) && near(b, {4, 5}) && at_scalar_type(b) == int64_type);
  std::vector<std::string> seen;
  at_load_callback(several.data(), &seen, [](void* data, char* name, tensor t) {
    static_cast<std::vector<std::string>*>(data)->push_back(name);
    at_free(t);
  });
  raise_last_error();
  CHECK(seen == std::vector<std::string>({"first", "second"}));
  Bytes stream;
  at_save_to_stream(x, &stream);
  raise_last_error();
  CHECK(!stream.text.empty() && near(Taken(at_load_from_stream(&stream)), {1, 2, 3}));
  std::string missing = folder + "/missing.pt";
  CHECK(raises("missing.pt", [&] { at_load(missing.data()); }));
}

RL_TEST(values) {
  const Taken x = vector_of({1, 2});
  const ivalue items[] = {ati_int(3), ati_double(2.5), ati_bool(1), ati_tensor(x)};
  CHECK(ati_to_int(items[0]) == 3 && ati_to_double(items[1]) == 2.5 && ati_to_bool(items[2]) == 1);
  CHECK(near(Taken(ati_to_tensor(items[3])), {1, 2}));
  const ivalue tuple = ati_tuple(const_cast<ivalue*>(items), 4);
  CHECK(ati_tuple_length(tuple) == 4);
  std::string text = "words";
  const ivalue words = ati_string(text.data());
  char* const read = ati_to_string(words);
  CHECK(std::string(read) == "words");
  std::free(read);
  std::vector<int64_t> counts = {1, 2, 3};
  const ivalue list = ati_int_list(counts.data(), 3);
  std::vector<int64_t> back(3);
  ati_to_int_list(list, back.data(), 3);
  CHECK(ati_length(list) == 3 && back == counts);
  const ivalue none = ati_none(), same = ati_clone(list);
  CHECK(ati_length(same) == 3 && ati_tag(none) != ati_tag(list));
  raise_last_error();
  CHECK(raises("", [&] { ati_to_int(words); }));
  for (const ivalue v : {items[0], items[1], items[2], items[3], tuple, words, list, none, same}) {
    ati_free(v);
  }
}

RL_TEST(process) {
  const int threads = at_get_num_threads();
  at_set_num_threads(2);
  CHECK(at_get_num_threads() == 2 && at_get_num_interop_threads() >= 1);
  at_set_num_threads(threads);
  CHECK(atc_cuda_is_available() == (atc_cuda_device_count() > 0));
  CHECK(!at_context_has_ipu() && !at_context_has_xla());
  const bool before = at_autocast_set_enabled(true);
  CHECK(!before && at_autocast_is_enabled());
  at_autocast_set_enabled(before);
  at_autocast_increment_nesting();
  CHECK(at_autocast_decrement_nesting() == 0);
  at_autocast_clear_cache();
  raise_last_error();
}

}  // namespace

RL_TEST_MAIN()
