// Checks of the random fills, and the ops that draw into new tensors: factories, dropout,
// multinomial.
#include <cmath>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "kernels/random.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

// ---- what the fills accept ----

namespace {

double largest_finite(ScalarType dtype) {
  double most = 0;
  visit_dtype<set_floating>("uniform_", to_real(dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    most = std::is_same_v<T, Half> ? 65504.0
           : std::is_same_v<T, BFloat16>
               ? 0x1.fep127
               : static_cast<double>(std::numeric_limits<compute_t<T>>::max());
  });
  return most;
}

}  // namespace

void shape::uniform_(Tensor& self, double& from, double& to, Generator&) {
  check_floating("check_uniform_bounds", self, true);
  const double most = largest_finite(self.dtype());
  RL_CHECK(from >= -most && from <= most, "from is out of bounds for ",
           dtype_info(self.dtype()).name);
  RL_CHECK(to >= -most && to <= most, "to is out of bounds for ", dtype_info(self.dtype()).name);
  RL_CHECK(from <= to, "uniform_ draws from [from, to), but found from=", from, " > to=", to);
  RL_CHECK(to - from <= most, "uniform_ expects to-from <= ", most, ", the largest ",
           dtype_info(self.dtype()).name, ", but found to=", to, " and from=", from);
}
void shape::normal_(Tensor& self, double&, double& std, Generator&) {
  check_floating("normal_kernel_cpu", self, true);
  RL_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
}
void shape::random__from(Tensor&, int64_t&, std::optional<int64_t>&, Generator&) {}
void shape::random__to(Tensor&, int64_t&, Generator&) {}
void shape::random_(Tensor&, Generator&) {}
void shape::bernoulli__Tensor(Tensor& self, Tensor& p, Generator&) {
  RL_CHECK_NOT_IMPLEMENTED(is_floating(p.dtype()),
                           "bernoulli: expected probabilities tensor to have floating type, got ",
                           enum_name(p.dtype()));
  RL_CHECK(is_expandable_to(p.sizes(), self.sizes()), "bernoulli_: probabilities of shape ",
           p.sizes(), " do not expand to ", self.sizes());
}
void shape::bernoulli__float(Tensor&, double& p, Generator&) {
  RL_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}
void shape::exponential_(Tensor& self, double& lambd, Generator&) {
  check_floating("exponential_", self);
  RL_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
}
void shape::cauchy_(Tensor& self, double&, double& sigma, Generator&) {
  check_floating("cauchy_", self);
  RL_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
}
void shape::log_normal_(Tensor& self, double&, double& std, Generator&) {
  check_floating("log_normal_", self);
  RL_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
}
void shape::geometric_(Tensor& self, double& p, Generator&) {
  if (!contains(set_real, self.dtype())) {
    dtype_not_implemented("geometric_", self.dtype());
  }
  RL_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}
void shape::_scaled_bernoulli_(Tensor& self, double&, double&) { check_floating("dropout", self); }

OutSpec shape::_draw_from_cumulative(Tensor& cumulative, int64_t& num_samples, Generator&) {
  RL_CHECK(cumulative.dim() > 0 && cumulative.size(-1) > 0,
           "_draw_from_cumulative: expected rows of at least one probability, but got a tensor of "
           "shape ",
           cumulative.sizes());
  cumulative = contiguous_raw(cumulative);
  DimVector sizes(cumulative.sizes());
  sizes[sizes.size() - 1] = num_samples;
  return {sizes, kInt64};
}

// ---- new tensors ----

OutSpec shape::poisson(Tensor& self, Generator&) {
  check_floating("poisson", self);
  return {self.sizes(), self.dtype()};
}

OutSpec shape::binomial(Tensor& count, Tensor& prob, Generator&) {
  RL_CHECK_VALUE(is_floating(count.dtype()), "binomial: count must be floating-point, not ",
                 enum_name(count.dtype()));
  RL_CHECK_VALUE(is_floating(prob.dtype()), "binomial: prob must be floating-point, not ",
                 enum_name(prob.dtype()));
  RL_CHECK(count.dtype() == prob.dtype(), "Found dtype ", enum_name(prob.dtype()), " but expected ",
           enum_name(count.dtype()));
  const DimVector sizes = broadcast_sizes(count.sizes(), prob.sizes());
  count = expand_raw(count, sizes);
  prob = expand_raw(prob, sizes);
  return {sizes, count.dtype()};
}

OutSpec shape::_standard_gamma(Tensor& self, Generator&) { return {self.sizes(), self.dtype()}; }
OutSpec shape::_sample_dirichlet(Tensor& self, Generator&) { return {self.sizes(), self.dtype()}; }

namespace composite {

namespace {

Tensor empty_of(IntArrayRef size, const TensorOptions& options, ScalarType dtype) {
  return make_empty(size, options.dtype_opt().value_or(dtype), options.device());
}

// These ops draw in the order of elements, wherever their argument's lie.
Tensor contiguous_like(const Tensor& self) {
  return rushlight::empty_like(self.detach(), TensorOptions(), MemoryFormat::Contiguous);
}

Tensor new_leaf_like(const Tensor& self, const TensorOptions& options,
                     std::optional<MemoryFormat> format) {
  // What is drawn into is no leaf yet.
  return rushlight::empty_like(self.detach(), TensorOptions(options).requires_grad(false), format);
}

// What was drawn, with a gradient of zeros for a parameter that wants one.
Tensor record_pathwise(const Tensor& drawn, const Tensor& parameter) {
  if (!tls.grad_mode || !parameter.requires_grad()) {
    return drawn;
  }
  const Tensor all = rushlight::ones_like(parameter.detach(), TensorOptions(kBool));
  return drawn + parameter.masked_fill(all, Scalar(0));
}

// A new tensor has version 0, drawn into or not. Batches of vmap stay what they are.
Tensor reset_version(const Tensor& drawn) {
  return drawn.impl()->special() == nullptr ? drawn.variable_data() : drawn;
}

}  // namespace

Tensor rand(IntArrayRef size, const Generator& generator, const TensorOptions& options) {
  return reset_version(empty_of(size, options, get_default_dtype()).uniform_(0, 1, generator));
}
Tensor randn(IntArrayRef size, const Generator& generator, const TensorOptions& options) {
  return reset_version(empty_of(size, options, get_default_dtype()).normal_(0, 1, generator));
}
Tensor rand_like(const Tensor& self, const Generator& generator, const TensorOptions& options,
                 std::optional<MemoryFormat> memory_format) {
  return reset_version(new_leaf_like(self, options, memory_format).uniform_(0, 1, generator));
}
Tensor randn_like(const Tensor& self, const Generator& generator, const TensorOptions& options,
                  std::optional<MemoryFormat> memory_format) {
  return reset_version(new_leaf_like(self, options, memory_format).normal_(0, 1, generator));
}
Tensor randint_low(int64_t low, int64_t high, IntArrayRef size, const Generator& generator,
                   const TensorOptions& options) {
  RL_CHECK(low < high, "randint draws from low to below high, but got from=", low, " >= to=", high);
  return reset_version(empty_of(size, options, kInt64).random_(low, high, generator));
}
Tensor randint(int64_t high, IntArrayRef size, const Generator& generator,
               const TensorOptions& options) {
  return randint_low(0, high, size, generator, options);
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, const Generator& generator,
                        const TensorOptions& options, std::optional<MemoryFormat> memory_format) {
  return reset_version(new_leaf_like(self, options, memory_format).random_(low, high, generator));
}
Tensor randint_like(const Tensor& self, int64_t high, const Generator& generator,
                    const TensorOptions& options, std::optional<MemoryFormat> memory_format) {
  return randint_like_low(self, 0, high, generator, options, memory_format);
}
Tensor randint_like_Tensor(const Tensor& self, const Tensor& high, const Generator& generator,
                           const TensorOptions& options,
                           std::optional<MemoryFormat> memory_format) {
  RL_CHECK(high.numel() == 1 && high.is_cpu(),
           "randint_like: high as a tensor is a number on the CPU");
  return randint_like_low(self, 0, high.item<int64_t>(), generator, options, memory_format);
}

Tensor randperm(int64_t n, const Generator& generator, const TensorOptions& options) {
  const Tensor t = empty_of({n}, options, kInt64);
  if (n > 1) {
    Scalar(n - 1).check_fits(t.dtype());
  }
  if (t.is_meta()) {
    return t;
  }
  const Generator& g = generator.defined() ? generator : default_generator(t.device());
  std::lock_guard<std::mutex> lock(g->mutex);
  // Other devices get a copy of what the host draws, from a seed that their generator gives.
  const Tensor here = t.is_cpu() ? t : make_empty(t.sizes(), t.dtype(), kCPU);
  std::optional<GeneratorImpl> drawn;
  if (!g.device().is_cpu()) {
    drawn.emplace(random::take_seed(*g));
  }
  visit_dtype<set_real>("randperm", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    random::RL_ISA::fill_permutation(here.data<T>(), n, drawn.has_value() ? *drawn : *g);
  });
  copy_raw(t, here);
  return t;
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  return record_pathwise(reset_version(contiguous_like(self).bernoulli_(self.detach(), generator)),
                         self);
}
Tensor bernoulli_Tensor(const Tensor& self, const Tensor& p, const Generator& generator) {
  const Tensor drawn = contiguous_like(self).bernoulli_(p.detach(), generator);
  return record_pathwise(record_pathwise(reset_version(drawn), self), p);
}
Tensor bernoulli_p(const Tensor& self, double p, const Generator& generator) {
  return record_pathwise(reset_version(contiguous_like(self).bernoulli_(p, generator)), self);
}

Tensor normal(const Tensor& mean, const Tensor& std, const Generator& generator) {
  RL_CHECK(std.numel() == 0 || std.is_meta() ||
               batching::all_of(std.detach().ge(0)).all().item().toBool(),
           "normal expects all elements of std >= 0.0");
  const Tensor z = make_empty(broadcast_sizes(mean.sizes(), std.sizes()),
                              promote_types(mean.dtype(), std.dtype()), mean.device());
  z.normal_(0, 1, generator);
  return record_pathwise(
      record_pathwise(reset_version(z.mul_(std.detach()).add_(mean.detach())), mean), std);
}
Tensor normal_Tensor_float(const Tensor& mean, double std, const Generator& generator) {
  RL_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  const Tensor x = contiguous_like(mean).normal_(0, std, generator);
  return record_pathwise(reset_version(x.add_(mean.detach())), mean);
}
Tensor normal_float_Tensor(double mean, const Tensor& std, const Generator& generator) {
  return composite::normal(rushlight::full_like(std.detach(), mean), std, generator);
}
Tensor normal_float_float(double mean, double std, IntArrayRef size, const Generator& generator,
                          const TensorOptions& options) {
  return reset_version(empty_of(size, options, get_default_dtype()).normal_(mean, std, generator));
}

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement,
                   const Generator& generator) {
  RL_CHECK(is_floating(self.dtype()), "multinomial: weights must be floating-point, not ",
           enum_name(self.dtype()));
  RL_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  RL_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
  RL_CHECK(replacement || num_samples <= self.size(-1),
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const NoGradGuard guard;
  return rushlight::_multinomial(self.detach(), num_samples, replacement, generator);
}

Tensor _multinomial(const Tensor& p, int64_t num_samples, bool replacement,
                    const Generator& generator) {
  if (p.numel() == 0) {
    DimVector sizes(p.sizes());
    sizes[sizes.size() - 1] = num_samples;
    const Tensor none = make_empty(sizes, kInt64, p.device());
    RL_CHECK(
        none.numel() == 0,
        "invalid multinomial distribution (sum of probabilities <= 0): it has no probabilities");
    return none;
  }
  RL_CHECK(p.is_meta() || p.isfinite().logical_and(p.ge(0)).all().item().toBool(),
           "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor total = p.sum(-1, true);
  RL_CHECK(p.is_meta() || total.ne(0).all().item().toBool(),
           "invalid multinomial distribution (sum of probabilities <= 0)");
  if (!replacement || num_samples == 1) {
    // The smallest of exponential waiting times of rates p: each wins with its probability.
    const Tensor race = p / rushlight::empty_like(p).exponential_(1, generator);
    return num_samples == 1 ? race.argmax(-1, true) : std::get<1>(race.topk(num_samples, -1));
  }
  return rushlight::_draw_from_cumulative(p.cumsum(-1) / total, num_samples, generator);
}

// ---- dropout ----

namespace {

void check_p(double p) {
  RL_CHECK(p >= 0 && p <= 1, "dropout: p has to be between 0 and 1, not ", p);
}

// What the input is multiplied with: 0 or 1 / (1 - p), of the shape of the input or of its first
// two dimensions.
Tensor noise_for(const Tensor& input, double p, bool whole_channels, double value) {
  DimVector sizes(input.sizes());
  if (whole_channels) {
    RL_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions, but the input has ",
             input.dim());
    std::fill(sizes.begin() + 2, sizes.end(), 1);
  }
  return rushlight::_dropout_noise(input, sizes, 1 - p, value);
}

bool is_identity(const Tensor& input, double p, bool train) {
  return p == 0 || !train || input.numel() == 0;
}

void check_vectors_of_channels(const Tensor& input) {
  RL_CHECK(input.dim() == 2 || input.dim() == 3,
           "dropout1d: Expected 2D or 3D input, but received a ", input.dim(),
           "D input: (N, C, L) or (C, L)");
}

Tensor drop(const Tensor& input, double p, bool train, bool whole_channels) {
  check_p(p);
  if (is_identity(input, p, train)) {
    return input;
  }
  return p == 1 ? input * rushlight::zeros({}, input.options())
                : input * noise_for(input, p, whole_channels, 1 / (1 - p));
}

Tensor& drop_(const Tensor& self, double p, bool train, bool whole_channels) {
  check_p(p);
  if (is_identity(self, p, train)) {
    return const_cast<Tensor&>(self);
  }
  return p == 1 ? self.mul_(rushlight::zeros({}, self.options()))
                : self.mul_(noise_for(self, p, whole_channels, 1 / (1 - p)));
}

// Dropped elements take selu's limit at minus infinity; then scale and shift restore mean 0 and
// variance 1.
struct AlphaDropout {
  Tensor noise;
  Tensor shift;
};
AlphaDropout alpha_noise(const Tensor& input, double p, bool whole_channels) {
  constexpr double limit = 1.7580993408473766;
  const double a = 1 / std::sqrt((limit * limit * p + 1) * (1 - p));
  const Tensor kept = noise_for(input, p, whole_channels, 1);
  return {kept * a, (kept - 1) * (limit * a) + limit * a * p};
}

Tensor alpha_drop(const Tensor& input, double p, bool train, bool whole_channels) {
  check_p(p);
  if (is_identity(input, p, train)) {
    return input;
  }
  if (p == 1) {
    return input * rushlight::zeros({}, input.options());
  }
  const AlphaDropout d = alpha_noise(input, p, whole_channels);
  return input * d.noise + d.shift;
}

Tensor& alpha_drop_(const Tensor& self, double p, bool train, bool whole_channels) {
  check_p(p);
  if (is_identity(self, p, train)) {
    return const_cast<Tensor&>(self);
  }
  if (p == 1) {
    return self.mul_(rushlight::zeros({}, self.options()));
  }
  const AlphaDropout d = alpha_noise(self, p, whole_channels);
  return self.mul_(d.noise).add_(d.shift);
}

}  // namespace

Tensor _dropout_noise(const Tensor& self, IntArrayRef size, double p, double value) {
  const bool alike = self.sizes() == size;
  const Tensor noise =
      alike ? make_empty_like(self, self.dtype()) : make_empty(size, self.dtype(), self.device());
  return noise._scaled_bernoulli_(p, value);
}

Tensor dropout(const Tensor& input, double p, bool train) { return drop(input, p, train, false); }
Tensor& dropout_(const Tensor& self, double p, bool train) { return drop_(self, p, train, false); }
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  if (!train.value_or(true) || input.numel() == 0) {
    return {input.clone(), rushlight::ones_like(input, TensorOptions(kBool))};
  }
  check_p(p);
  RL_CHECK(is_differentiable(input.dtype()), "native_dropout: expected a tensor of floats, got ",
           input.dtype());
  const Tensor mask = noise_for(input, p, false, 1).to(kBool);
  return {input.mul(mask).mul(p == 1 ? 0 : 1 / (1 - p)), mask};
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, true);
}
Tensor& feature_dropout_(const Tensor& self, double p, bool train) {
  return drop_(self, p, train, true);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha_drop(input, p, train, false);
}
Tensor& alpha_dropout_(const Tensor& self, double p, bool train) {
  return alpha_drop_(self, p, train, false);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha_drop(input, p, train, true);
}
Tensor& feature_alpha_dropout_(const Tensor& self, double p, bool train) {
  return alpha_drop_(self, p, train, true);
}

Tensor dropout1d(const Tensor& input, double p, bool train) {
  check_vectors_of_channels(input);
  return input.dim() == 3 ? composite::feature_dropout(input, p, train)
                          : composite::feature_dropout(input.unsqueeze(0), p, train).squeeze(0);
}
Tensor& dropout1d_(const Tensor& self, double p, bool train) {
  check_vectors_of_channels(self);
  composite::feature_dropout_(self.dim() == 3 ? self : self.unsqueeze(0), p, train);
  return const_cast<Tensor&>(self);
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  const Tensor noise = contiguous_like(logits).exponential_().log().neg();
  const Tensor soft = ((logits + noise) / tau).softmax(dim);
  if (!hard) {
    return soft;
  }
  const Tensor one_hot =
      rushlight::zeros_like(logits).scatter(dim, soft.argmax(dim, true), Scalar(1));
  return one_hot - soft.detach() + soft;
}

// ---- random slopes ----

namespace {

// What the input is multiplied with. Slopes are drawn for elements that are not positive, in order.
Tensor slopes_for(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                  const Generator& generator) {
  const double low = lower.to<double>();
  const double high = upper.to<double>();
  RL_CHECK(low <= high, "rrelu: lower must be less than or equal to upper, but they are ", low,
           " and ", high);
  RL_CHECK(std::isfinite(low) && std::isfinite(high), "rrelu: lower and upper must be finite");
  const NoGradGuard no_grad;
  const Tensor ones = rushlight::ones_like(self);
  const Tensor falls = self.le(Scalar(0));
  if (!training) {
    return ones.masked_fill(falls, Scalar((low + high) / 2));
  }
  if (self.is_meta()) {
    return ones;
  }
  if (has_handler_below(self)) {  // a fake tensor, of which nobody can count
    const Tensor drawn = ones.to(kFloat64).uniform_(low, high, generator);
    return where(falls, drawn.to(self.dtype()), ones);
  }
  const int64_t count = falls.sum().item<int64_t>();
  const Tensor drawn = rushlight::empty({count}, TensorOptions(kFloat64).device(self.device()));
  drawn.uniform_(low, high, generator);
  return ones.masked_scatter(falls, drawn.to(self.dtype()));
}

}  // namespace

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             const Generator& generator) {
  return self.mul(slopes_for(self, lower, upper, training, generator));
}

Tensor& rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
               const Generator& generator) {
  return const_cast<Tensor&>(self.mul_(slopes_for(self, lower, upper, training, generator)));
}

}  // namespace composite
}  // namespace rushlight
