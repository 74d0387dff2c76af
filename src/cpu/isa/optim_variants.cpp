// Fused steps of the rarer optimisers; see optim.cpp. What depends on the count of steps alone is
// worked out in double precision before the loop over elements.
#include <cmath>

#include "cpu/isa/optim.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// A running mean: where the new share is small, from the old value, else from the new one.
template <class C>
inline C mean_with(C old, C value, C share) {
  const bool near = share < C(0.5);
  return near ? old + share * (value - old) : value - (value - old) * (C(1) - share);
}

struct AdamaxSettings {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool maximize;
};

template <class T>
void adamax_run(T* param, const T* grad, T* mean, T* largest, int64_t n, const AdamaxSettings& s,
                double count) {
  using C = compute_t<T>;
  const C share = static_cast<C>(1 - s.beta1);
  const C beta2 = static_cast<C>(s.beta2);
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.weight_decay);
  const C minus_step = static_cast<C>(-(s.lr / (1 - __builtin_pow(s.beta1, count))));
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]);
    const C g = math::fused(decay, p, sign * static_cast<C>(grad[i]));
    const C m = mean_with(static_cast<C>(mean[i]), g, share);
    const C v = math::maximum(static_cast<C>(largest[i]) * beta2, (g < C(0) ? -g : g) + eps);
    mean[i] = static_cast<T>(m);
    largest[i] = static_cast<T>(v);
    param[i] = static_cast<T>(p + minus_step * m / v);
  }
}

struct NadamSettings {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double momentum_decay;
  bool decoupled;
  bool maximize;
};

template <class T>
void nadam_run(T* param, const T* grad, T* mean, T* square, int64_t n, const NadamSettings& s,
               double count, double product) {
  using C = compute_t<T>;
  const auto momentum_at = [&](double t) {
    return s.beta1 * (1 - 0.5 * __builtin_pow(0.96, t * s.momentum_decay));
  };
  const double now = momentum_at(count);
  const double next = momentum_at(count + 1);
  const C by_grad = static_cast<C>(-s.lr * (1 - now) / (1 - product));
  const C by_mean = static_cast<C>(-s.lr * next / (1 - product * next));
  const C correction = static_cast<C>(1 - __builtin_pow(s.beta2, count));
  const C share = static_cast<C>(1 - s.beta1);
  const C beta2 = static_cast<C>(s.beta2);
  const C share2 = static_cast<C>(1 - s.beta2);
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.decoupled ? 0 : s.weight_decay);
  const C shrink = static_cast<C>(s.decoupled ? 1 - s.lr * s.weight_decay : 1);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]) * shrink;
    const C g = math::fused(decay, p, sign * static_cast<C>(grad[i]));
    const C m = mean_with(static_cast<C>(mean[i]), g, share);
    const C v = static_cast<C>(square[i]) * beta2 + share2 * g * g;
    mean[i] = static_cast<T>(m);
    square[i] = static_cast<T>(v);
    const C denominator = math::sqrt(v / correction) + eps;
    param[i] = static_cast<T>(p + by_grad * g / denominator + by_mean * m / denominator);
  }
}

struct RadamSettings {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool maximize;
};

template <class T>
void radam_run(T* param, const T* grad, T* mean, T* square, int64_t n, const RadamSettings& s,
               double count) {
  using C = compute_t<T>;
  const double power = __builtin_pow(s.beta2, count);
  const double correction2 = 1 - power;
  const double longest = 2 / (1 - s.beta2) - 1;
  const double length = longest - 2 * count * power / correction2;
  // The variance can be relied on once the averages are long enough.
  const bool adapts = length > 5;
  const double rectified =
      adapts
          ? ::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
          : 1;
  const C minus_step = static_cast<C>(-s.lr * rectified / (1 - __builtin_pow(s.beta1, count)));
  const C root = static_cast<C>(::sqrt(correction2));
  const C share = static_cast<C>(1 - s.beta1);
  const C beta2 = static_cast<C>(s.beta2);
  const C share2 = static_cast<C>(1 - s.beta2);
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.decoupled ? 0 : s.weight_decay);
  const C shrink = static_cast<C>(s.decoupled ? 1 - s.lr * s.weight_decay : 1);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]) * shrink;
    const C g = math::fused(decay, p, sign * static_cast<C>(grad[i]));
    const C m = mean_with(static_cast<C>(mean[i]), g, share);
    const C v = static_cast<C>(square[i]) * beta2 + share2 * g * g;
    mean[i] = static_cast<T>(m);
    square[i] = static_cast<T>(v);
    const C adapted = root / (math::sqrt(v) + eps);
    param[i] = static_cast<T>(p + minus_step * m * (adapts ? adapted : C(1)));
  }
}

struct RpropSettings {
  double eta_minus;
  double eta_plus;
  double smallest;
  double largest;
  bool maximize;
};

template <class T>
void rprop_run(T* param, const T* grad, T* before, T* step, int64_t n, const RpropSettings& s) {
  using C = compute_t<T>;
  const C minus = static_cast<C>(s.eta_minus);
  const C plus = static_cast<C>(s.eta_plus);
  const C smallest = static_cast<C>(s.smallest);
  const C largest = static_cast<C>(s.largest);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = sign * static_cast<C>(grad[i]);
    const C agreement = g * static_cast<C>(before[i]);
    const C factor = agreement > C(0) ? plus : agreement < C(0) ? minus : C(1);
    C length = static_cast<C>(step[i]) * factor;
    length = length < smallest ? smallest : length > largest ? largest : length;
    g = agreement < C(0) ? C(0) : g;
    const C direction = g > C(0) ? C(1) : g < C(0) ? C(-1) : C(0);
    step[i] = static_cast<T>(length);
    before[i] = static_cast<T>(g);
    param[i] = static_cast<T>(static_cast<C>(param[i]) - direction * length);
  }
}

struct AsgdSettings {
  double lambd;
  double eta;
  double mu;
  double weight_decay;
  bool maximize;
};

template <class T>
void asgd_run(T* param, const T* grad, T* average, int64_t n, const AsgdSettings& s) {
  using C = compute_t<T>;
  const C decay = static_cast<C>(s.weight_decay);
  const C shrink = static_cast<C>(1 - s.lambd * s.eta);
  const C minus_eta = static_cast<C>(-s.eta);
  const C mu = static_cast<C>(s.mu);
  const bool starts = s.mu == 1;
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p0 = static_cast<C>(param[i]);
    const C g = math::fused(decay, p0, sign * static_cast<C>(grad[i]));
    const C p = math::fused(minus_eta, g, p0 * shrink);
    const C a = static_cast<C>(average[i]);
    param[i] = static_cast<T>(p);
    average[i] = static_cast<T>(starts ? p : a + (p - a) * mu);
  }
}

}  // namespace

void adamax_step_(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_infs,
                  TensorList steps, double lr, double beta1, double beta2, double eps,
                  double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  const AdamaxSettings settings{lr, beta1, beta2, eps, weight_decay, maximize};
  StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_infs, true}});
  const std::vector<double> counts = count_steps(steps);
  for_all("adamax_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t i) {
    adamax_run<typename decltype(tag)::type>(at(0), at(1), at(2), at(3), n, settings, counts[i]);
  });
  lists.write_back();
}

void nadam_step_(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                 TensorList mu_products, TensorList steps, double lr, double beta1, double beta2,
                 double eps, double weight_decay, double momentum_decay, bool decoupled,
                 bool maximize) {
  if (params.empty()) {
    return;
  }
  const NadamSettings settings{lr,           beta1,          beta2,     eps,
                               weight_decay, momentum_decay, decoupled, maximize};
  StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_avg_sqs, true}});
  const std::vector<double> counts = count_steps(steps);
  std::vector<double> momenta(counts.size());
  for (size_t i = 0; i < counts.size(); i++) {
    momenta[i] = beta1 * (1 - 0.5 * __builtin_pow(0.96, counts[i] * momentum_decay));
  }
  const std::vector<double> products = multiply_products(mu_products, momenta);
  for_all("nadam_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t i) {
    nadam_run<typename decltype(tag)::type>(at(0), at(1), at(2), at(3), n, settings, counts[i],
                                            products[i]);
  });
  lists.write_back();
}

void radam_step_(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                 TensorList steps, double lr, double beta1, double beta2, double eps,
                 double weight_decay, bool decoupled, bool maximize) {
  if (params.empty()) {
    return;
  }
  const RadamSettings settings{lr, beta1, beta2, eps, weight_decay, decoupled, maximize};
  StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_avg_sqs, true}});
  const std::vector<double> counts = count_steps(steps);
  for_all("radam_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t i) {
    radam_run<typename decltype(tag)::type>(at(0), at(1), at(2), at(3), n, settings, counts[i]);
  });
  lists.write_back();
}

void rprop_step_(TensorList params, TensorList grads, TensorList prevs, TensorList step_sizes,
                 TensorList steps, double eta_minus, double eta_plus, double smallest,
                 double largest, bool maximize) {
  if (params.empty()) {
    return;
  }
  const RpropSettings settings{eta_minus, eta_plus, smallest, largest, maximize};
  StepLists lists({{params, true}, {grads, false}, {prevs, true}, {step_sizes, true}});
  count_steps(steps);
  for_all("rprop_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t) {
    rprop_run<typename decltype(tag)::type>(at(0), at(1), at(2), at(3), n, settings);
  });
  lists.write_back();
}

void asgd_step_(TensorList params, TensorList grads, TensorList averages, double lambd, double eta,
                double mu, double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  const AsgdSettings settings{lambd, eta, mu, weight_decay, maximize};
  StepLists lists({{params, true}, {grads, false}, {averages, true}});
  for_all("asgd_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t) {
    asgd_run<typename decltype(tag)::type>(at(0), at(1), at(2), n, settings);
  });
  lists.write_back();
}

}  // namespace rushlight::cpu::RL_ISA
