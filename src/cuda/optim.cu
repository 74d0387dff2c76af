// The steps of the optimisers that most programs use; see optim.cuh, and optim_variants.cu for the
// rarer ones.
#include <cmath>

#include "cuda/column.h"
#include "cuda/optim.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class C>
struct Sgd {  // lists: parameter, gradient, momentum
  C minus_lr, momentum, share, decay;
  bool nesterov, maximize, first;
  __device__ void operator()(C* x, const double*) const {
    C g = gradient(x[1], x[0], decay, maximize);
    if (momentum != C(0)) {
      x[2] = first ? g : math::fused(share, g, x[2] * momentum);
      g = nesterov ? math::fused(momentum, x[2], g) : x[2];
    }
    x[0] = math::fused(minus_lr, g, x[0]);
  }
};

template <class C>
struct Adam {  // parameter, gradient, mean, mean of squares, its maximum; extra: step size, root
  C weight, beta2, share2, eps, decay, shrink;
  bool decoupled, amsgrad, maximize;
  __device__ void operator()(C* x, const double* extra) const {
    const C g = gradient(x[1], x[0], decoupled ? C(0) : decay, maximize);
    const C p = decoupled && decay != C(0) ? x[0] * shrink : x[0];
    const bool near = weight < C(0.5);
    x[2] = math::fused(near ? weight : weight - C(1), g - x[2], near ? x[2] : g);
    x[3] = math::fused(share2 * g, g, x[3] * beta2);
    C v = x[3];
    if (amsgrad) {
      v = math::maximum(x[4], v);
      x[4] = v;
    }
    const C denominator = math::sqrt(v) / static_cast<C>(extra[1]) + eps;
    x[0] = p + static_cast<C>(extra[0]) * x[2] / denominator;
  }
};

template <class C>
struct Rmsprop {  // parameter, gradient, mean of squares, momentum, mean
  C minus_lr, alpha, share, eps, decay, momentum;
  bool centered, maximize;
  __device__ void operator()(C* x, const double*) const {
    const C g = gradient(x[1], x[0], decay, maximize);
    C v = x[2] * alpha + share * g * g;
    x[2] = v;
    if (centered) {
      const C m0 = x[4];
      const C m = share < C(0.5) ? m0 + share * (g - m0) : g - (g - m0) * (C(1) - share);
      x[4] = m;
      v = v - m * m;
    }
    const C denominator = math::sqrt(v) + eps;
    if (momentum > C(0)) {
      x[3] = x[3] * momentum + g / denominator;
      x[0] = x[0] + minus_lr * x[3];
    } else {
      x[0] = x[0] + minus_lr * g / denominator;
    }
  }
};

template <class C>
struct Adagrad {  // parameter, gradient, sum of squares; extra: step size
  C eps, decay;
  bool maximize;
  __device__ void operator()(C* x, const double* extra) const {
    const C g = gradient(x[1], x[0], decay, maximize);
    x[2] = x[2] + g * g;
    x[0] = x[0] + static_cast<C>(extra[0]) * g / (math::sqrt(x[2]) + eps);
  }
};

template <class C>
struct Adadelta {  // parameter, gradient, mean of squares, mean of squared moves
  C minus_lr, rho, share, eps, decay;
  bool maximize;
  __device__ void operator()(C* x, const double*) const {
    const C g = gradient(x[1], x[0], decay, maximize);
    const C v = x[2] * rho + share * g * g;
    x[2] = v;
    const C delta = math::sqrt(x[3] + eps) / math::sqrt(v + eps) * g;
    x[3] = x[3] * rho + share * delta * delta;
    x[0] = x[0] + minus_lr * delta;
  }
};

}  // namespace

}  // namespace cuda

void cuda::sgd_step_(TensorList params, TensorList grads, TensorList momentum_buffers, double lr,
                     double momentum, double dampening, double weight_decay, bool nesterov,
                     bool maximize, bool first) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {momentum_buffers, true}});
  run_steps(
      "sgd_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Sgd<C>{static_cast<C>(-lr),
                      static_cast<C>(momentum),
                      static_cast<C>(1 - dampening),
                      static_cast<C>(weight_decay),
                      nesterov,
                      maximize,
                      first};
      },
      nothing);
}

void cuda::adam_step_(TensorList params, TensorList grads, TensorList exp_avgs,
                      TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList steps,
                      double lr, double beta1, double beta2, double eps, double weight_decay,
                      bool decoupled, bool amsgrad, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true},
                        {grads, false},
                        {exp_avgs, true},
                        {exp_avg_sqs, true},
                        {max_exp_avg_sqs, true}});
  const std::vector<double> counts = cpu::count_steps(steps);
  run_steps(
      "adam_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Adam<C>{static_cast<C>(1 - beta1),
                       static_cast<C>(beta2),
                       static_cast<C>(1 - beta2),
                       static_cast<C>(eps),
                       static_cast<C>(weight_decay),
                       static_cast<C>(1 - lr * weight_decay),
                       decoupled,
                       amsgrad,
                       maximize};
      },
      [&](size_t i, double (&extra)[max_extra]) {
        extra[0] = -(lr / (1 - ::pow(beta1, counts[i])));
        extra[1] = ::sqrt(1 - ::pow(beta2, counts[i]));
      });
}

void cuda::rmsprop_step_(TensorList params, TensorList grads, TensorList square_avgs,
                         TensorList momentum_buffers, TensorList grad_avgs, TensorList steps,
                         double lr, double alpha, double eps, double weight_decay, double momentum,
                         bool centered, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true},
                        {grads, false},
                        {square_avgs, true},
                        {momentum_buffers, true},
                        {grad_avgs, true}});
  (void)cpu::count_steps(steps);
  run_steps(
      "rmsprop_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Rmsprop<C>{static_cast<C>(-lr),
                          static_cast<C>(alpha),
                          static_cast<C>(1 - alpha),
                          static_cast<C>(eps),
                          static_cast<C>(weight_decay),
                          static_cast<C>(momentum),
                          centered,
                          maximize};
      },
      nothing);
}

void cuda::adagrad_step_(TensorList params, TensorList grads, TensorList state_sums,
                         TensorList steps, double lr, double lr_decay, double eps,
                         double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {state_sums, true}});
  const std::vector<double> counts = cpu::count_steps(steps);
  run_steps(
      "adagrad_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Adagrad<C>{static_cast<C>(eps), static_cast<C>(weight_decay), maximize};
      },
      [&](size_t i, double (&extra)[max_extra]) {
        extra[0] = -lr / (1 + (counts[i] - 1) * lr_decay);
        extra[1] = 0;
      });
}

void cuda::adadelta_step_(TensorList params, TensorList grads, TensorList square_avgs,
                          TensorList acc_deltas, TensorList steps, double lr, double rho,
                          double eps, double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  cpu::StepLists lists({{params, true}, {grads, false}, {square_avgs, true}, {acc_deltas, true}});
  (void)cpu::count_steps(steps);
  run_steps(
      "adadelta_step_", params[0], lists,
      [&](auto tag) {
        using C = typename decltype(tag)::type;
        return Adadelta<C>{static_cast<C>(-lr),          static_cast<C>(rho),
                           static_cast<C>(1 - rho),      static_cast<C>(eps),
                           static_cast<C>(weight_decay), maximize};
      },
      nothing);
}

}  // namespace rushlight
