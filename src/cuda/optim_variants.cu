// The steps of the rarer optimisers; see optim.cuh. What depends on the count of steps alone is
// worked out in double precision on the host.
#include <cmath>

#include "cuda/column.h"
#include "cuda/optim.cuh"

namespace rushlight {

namespace cuda {

namespace {

// A running mean: where the new share is small, from the old value, else from the new one.
template <class C>
__device__ C mean_with(C old, C value, C share) {
  const bool near = share < C(0.5);
  return near ? old + share * (value - old) : value - (value - old) * (C(1) - share);
}

template <class C>
struct Adamax {  // parameter, gradient, mean, largest; extra: step size
  C share, beta2, eps, decay, sign;
  __device__ void operator()(C* x, const double* extra) const {
    const C g = math::fused(decay, x[0], sign * x[1]);
    x[2] = mean_with(x[2], g, share);
    x[3] = math::maximum(x[3] * beta2, (g < C(0) ? -g : g) + eps);
    x[0] = x[0] + static_cast<C>(extra[0]) * x[2] / x[3];
  }
};

template <class C>
struct Nadam {  // parameter, gradient, mean, mean of squares; extra: factors of gradient and mean
  C share, beta2, share2, eps, decay, shrink, sign;
  __device__ void operator()(C* x, const double* extra) const {
    const C p = x[0] * shrink;
    const C g = math::fused(decay, p, sign * x[1]);
    x[2] = mean_with(x[2], g, share);
    x[3] = x[3] * beta2 + share2 * g * g;
    const C denominator = math::sqrt(x[3] / static_cast<C>(extra[2])) + eps;
    x[0] = p + static_cast<C>(extra[0]) * g / denominator +
           static_cast<C>(extra[1]) * x[2] / denominator;
  }
};

template <class C>
struct Radam {  // parameter, gradient, mean, mean of squares; extra: step size, root or 0
  C share, beta2, share2, eps, decay, shrink, sign;
  __device__ void operator()(C* x, const double* extra) const {
    const C p = x[0] * shrink;
    const C g = math::fused(decay, p, sign * x[1]);
    x[2] = mean_with(x[2], g, share);
    x[3] = x[3] * beta2 + share2 * g * g;
    const C adapted = static_cast<C>(extra[1]) / (math::sqrt(x[3]) + eps);
    x[0] = p + static_cast<C>(extra[0]) * x[2] * (extra[1] != 0 ? adapted : C(1));
  }
};

template <class C>
struct Rprop {  // parameter, gradient, the gradient before, step
  C minus, plus, smallest, largest, sign;
  __device__ void operator()(C* x, const double*) const {
    const C g = sign * x[1];
    const C agreement = g * x[2];
    const C length = x[3] * (agreement > C(0) ? plus : agreement < C(0) ? minus : C(1));
    x[3] = length < smallest ? smallest : length > largest ? largest : length;
    x[2] = agreement < C(0) ? C(0) : g;
    const C direction = x[2] > C(0) ? C(1) : x[2] < C(0) ? C(-1) : C(0);
    x[0] = x[0] - direction * x[3];
  }
};

template <class C>
struct Asgd {  // parameter, gradient, average
  C decay, shrink, minus_eta, mu, sign;
  bool starts;
  __device__ void operator()(C* x, const double*) const {
    const C g = math::fused(decay, x[0], sign * x[1]);
    x[0] = math::fused(minus_eta, g, x[0] * shrink);
    x[2] = starts ? x[0] : x[2] + (x[0] - x[2]) * mu;
  }
};

}  // namespace

}  // namespace cuda

void cuda::adamax_step_(TensorList params, TensorList grads, TensorList exp_avgs,
                        TensorList exp_infs, TensorList steps, double lr, double beta1,
                        double beta2, double eps, double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_infs, true}});
  const std::vector<double> counts = cpu::count_steps(steps);
  run_steps(
      "adamax_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Adamax<C>{static_cast<C>(1 - beta1), static_cast<C>(beta2), static_cast<C>(eps),
                         static_cast<C>(weight_decay), C(maximize ? -1 : 1)};
      },
      [&](size_t i, double (&extra)[max_extra]) {
        extra[0] = -(lr / (1 - ::pow(beta1, counts[i])));
      });
}

void cuda::nadam_step_(TensorList params, TensorList grads, TensorList exp_avgs,
                       TensorList exp_avg_sqs, TensorList mu_products, TensorList steps, double lr,
                       double beta1, double beta2, double eps, double weight_decay,
                       double momentum_decay, bool decoupled, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_avg_sqs, true}});
  const std::vector<double> counts = cpu::count_steps(steps);
  const auto momentum_at = [&](double t) {
    return beta1 * (1 - 0.5 * ::pow(0.96, t * momentum_decay));
  };
  std::vector<double> momenta(counts.size());
  for (size_t i = 0; i < counts.size(); i++) {
    momenta[i] = momentum_at(counts[i]);
  }
  const std::vector<double> products = cpu::multiply_products(mu_products, momenta);
  run_steps(
      "nadam_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Nadam<C>{static_cast<C>(1 - beta1),
                        static_cast<C>(beta2),
                        static_cast<C>(1 - beta2),
                        static_cast<C>(eps),
                        static_cast<C>(decoupled ? 0 : weight_decay),
                        static_cast<C>(decoupled ? 1 - lr * weight_decay : 1),
                        C(maximize ? -1 : 1)};
      },
      [&](size_t i, double (&extra)[max_extra]) {
        const double next = momentum_at(counts[i] + 1);
        extra[0] = -lr * (1 - momentum_at(counts[i])) / (1 - products[i]);
        extra[1] = -lr * next / (1 - products[i] * next);
        extra[2] = 1 - ::pow(beta2, counts[i]);
      });
}

void cuda::radam_step_(TensorList params, TensorList grads, TensorList exp_avgs,
                       TensorList exp_avg_sqs, TensorList steps, double lr, double beta1,
                       double beta2, double eps, double weight_decay, bool decoupled,
                       bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {exp_avgs, true}, {exp_avg_sqs, true}});
  const std::vector<double> counts = cpu::count_steps(steps);
  run_steps(
      "radam_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Radam<C>{static_cast<C>(1 - beta1),
                        static_cast<C>(beta2),
                        static_cast<C>(1 - beta2),
                        static_cast<C>(eps),
                        static_cast<C>(decoupled ? 0 : weight_decay),
                        static_cast<C>(decoupled ? 1 - lr * weight_decay : 1),
                        C(maximize ? -1 : 1)};
      },
      [&](size_t i, double (&extra)[max_extra]) {
        const double power = ::pow(beta2, counts[i]);
        const double longest = 2 / (1 - beta2) - 1;
        const double length = longest - 2 * counts[i] * power / (1 - power);
        // The variance can be relied on once the averages are long enough.
        const bool adapts = length > 5;
        const double rectified = adapts ? ::sqrt((length - 4) * (length - 2) * longest /
                                                 ((longest - 4) * (longest - 2) * length))
                                        : 1;
        extra[0] = -lr * rectified / (1 - ::pow(beta1, counts[i]));
        extra[1] = adapts ? ::sqrt(1 - power) : 0;
      });
}

void cuda::rprop_step_(TensorList params, TensorList grads, TensorList prevs, TensorList step_sizes,
                       TensorList steps, double eta_minus, double eta_plus, double smallest,
                       double largest, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {prevs, true}, {step_sizes, true}});
  (void)cpu::count_steps(steps);
  run_steps(
      "rprop_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Rprop<C>{static_cast<C>(eta_minus), static_cast<C>(eta_plus),
                        static_cast<C>(smallest), static_cast<C>(largest), C(maximize ? -1 : 1)};
      },
      nothing);
}

void cuda::asgd_step_(TensorList params, TensorList grads, TensorList averages, double lambd,
                      double eta, double mu, double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {averages, true}});
  run_steps(
      "asgd_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Asgd<C>{static_cast<C>(weight_decay), static_cast<C>(1 - lambd * eta),
                       static_cast<C>(-eta),         static_cast<C>(mu),
                       C(maximize ? -1 : 1),         mu == 1};
      },
      nothing);
}

}  // namespace rushlight
