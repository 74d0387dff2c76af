// Fused optimiser steps: every parameter, gradient and state is read once and written once.
// Elements do not depend on each other and the arithmetic is rounded operation by operation, so
// bits depend neither on threads nor on the order.
#include "cpu/isa/optim.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

enum class Momentum { None, First, FirstNesterov, Plain, Nesterov };

struct SgdSettings {
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  bool maximize;
};

template <class T, Momentum M, bool Decay>
void sgd_run(T* param, const T* grad, T* buffer, int64_t n, const SgdSettings& s) {
  using C = compute_t<T>;
  const C minus_lr = static_cast<C>(-s.lr);
  const C momentum = static_cast<C>(s.momentum);
  const C share = static_cast<C>(1 - s.dampening);
  const C decay = static_cast<C>(s.weight_decay);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if constexpr (Decay) {
      g = math::fused(decay, p, g);
    }
    if constexpr (M != Momentum::None) {
      constexpr bool is_first = M == Momentum::First || M == Momentum::FirstNesterov;
      constexpr bool is_nesterov = M == Momentum::Nesterov || M == Momentum::FirstNesterov;
      const C b = is_first ? g : math::fused(share, g, static_cast<C>(buffer[i]) * momentum);
      buffer[i] = static_cast<T>(b);
      g = is_nesterov ? math::fused(momentum, b, g) : b;
    }
    param[i] = static_cast<T>(math::fused(minus_lr, g, p));
  }
}

struct AdamSettings {
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double lr;
  bool maximize;
};

enum class Decay { None, Coupled, Decoupled };

template <class T, Decay D, bool Amsgrad>
void adam_run(T* param, const T* grad, T* mean, T* square, T* largest, int64_t n,
              const AdamSettings& s, double correction1, double correction2) {
  using C = compute_t<T>;
  const C weight = static_cast<C>(1 - s.beta1);
  const bool near = weight < C(0.5);
  const C beta2 = static_cast<C>(s.beta2);
  const C share2 = static_cast<C>(1 - s.beta2);
  const C root = static_cast<C>(::sqrt(correction2));
  const C minus_step = static_cast<C>(-(s.lr / correction1));
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.weight_decay);
  const C shrink = static_cast<C>(1 - s.lr * s.weight_decay);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if constexpr (D == Decay::Coupled) {
      g = math::fused(decay, p, g);
    }
    if constexpr (D == Decay::Decoupled) {
      p = p * shrink;
    }
    const C m0 = static_cast<C>(mean[i]);
    const C m = math::fused(near ? weight : weight - C(1), g - m0, near ? m0 : g);
    C v = math::fused(share2 * g, g, static_cast<C>(square[i]) * beta2);
    mean[i] = static_cast<T>(m);
    square[i] = static_cast<T>(v);
    if constexpr (Amsgrad) {
      v = math::maximum(static_cast<C>(largest[i]), v);
      largest[i] = static_cast<T>(v);
    }
    const C denominator = math::sqrt(v) / root + eps;
    param[i] = static_cast<T>(p + minus_step * m / denominator);
  }
}

struct RmspropSettings {
  double lr;
  double alpha;
  double eps;
  double weight_decay;
  double momentum;
  bool maximize;
};

template <class T, bool Decays, bool Centered, bool Runs>
void rmsprop_run(T* param, const T* grad, T* square, T* buffer, T* mean, int64_t n,
                 const RmspropSettings& s) {
  using C = compute_t<T>;
  const C minus_lr = static_cast<C>(-s.lr);
  const C alpha = static_cast<C>(s.alpha);
  const C share = static_cast<C>(1 - s.alpha);
  const C rest = static_cast<C>(1) - share;
  const bool near = share < C(0.5);
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.weight_decay);
  const C momentum = static_cast<C>(s.momentum);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if constexpr (Decays) {
      g = math::fused(decay, p, g);
    }
    C v = static_cast<C>(square[i]) * alpha + share * g * g;
    square[i] = static_cast<T>(v);
    if constexpr (Centered) {
      const C m0 = static_cast<C>(mean[i]);
      const C m = near ? m0 + share * (g - m0) : g - (g - m0) * rest;
      mean[i] = static_cast<T>(m);
      v = v - m * m;
    }
    const C denominator = math::sqrt(v) + eps;
    if constexpr (Runs) {
      const C b = static_cast<C>(buffer[i]) * momentum + g / denominator;
      buffer[i] = static_cast<T>(b);
      param[i] = static_cast<T>(p + minus_lr * b);
    } else {
      param[i] = static_cast<T>(p + minus_lr * g / denominator);
    }
  }
}

struct AdagradSettings {
  double lr;
  double lr_decay;
  double eps;
  double weight_decay;
  bool maximize;
};

template <class T, bool Decays>
void adagrad_run(T* param, const T* grad, T* sum, int64_t n, const AdagradSettings& s,
                 double count) {
  using C = compute_t<T>;
  const C minus_lr = static_cast<C>(-s.lr / (1 + (count - 1) * s.lr_decay));
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.weight_decay);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if constexpr (Decays) {
      g = math::fused(decay, p, g);
    }
    const C v = static_cast<C>(sum[i]) + g * g;
    sum[i] = static_cast<T>(v);
    param[i] = static_cast<T>(p + minus_lr * g / (math::sqrt(v) + eps));
  }
}

struct AdadeltaSettings {
  double lr;
  double rho;
  double eps;
  double weight_decay;
  bool maximize;
};

template <class T, bool Decays>
void adadelta_run(T* param, const T* grad, T* square, T* moved, int64_t n,
                  const AdadeltaSettings& s) {
  using C = compute_t<T>;
  const C minus_lr = static_cast<C>(-s.lr);
  const C rho = static_cast<C>(s.rho);
  const C share = static_cast<C>(1 - s.rho);
  const C eps = static_cast<C>(s.eps);
  const C decay = static_cast<C>(s.weight_decay);
  const C sign = s.maximize ? C(-1) : C(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if constexpr (Decays) {
      g = math::fused(decay, p, g);
    }
    const C v = static_cast<C>(square[i]) * rho + share * g * g;
    square[i] = static_cast<T>(v);
    const C a = static_cast<C>(moved[i]);
    const C delta = math::sqrt(a + eps) / math::sqrt(v + eps) * g;
    moved[i] = static_cast<T>(a * rho + share * delta * delta);
    param[i] = static_cast<T>(p + minus_lr * delta);
  }
}

template <Momentum M>
void sgd_all(StepLists& lists, const SgdSettings& s) {
  for_all("sgd_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t) {
    using T = typename decltype(tag)::type;
    if (s.weight_decay != 0) {
      sgd_run<T, M, true>(at(0), at(1), at(2), n, s);
    } else {
      sgd_run<T, M, false>(at(0), at(1), at(2), n, s);
    }
  });
}

template <Decay D, bool Amsgrad>
void adam_all(StepLists& lists, const AdamSettings& s, const std::vector<double>& counts) {
  for_all("adam_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t i) {
    using T = typename decltype(tag)::type;
    const double correction1 = 1 - __builtin_pow(s.beta1, counts[i]);
    const double correction2 = 1 - __builtin_pow(s.beta2, counts[i]);
    adam_run<T, D, Amsgrad>(at(0), at(1), at(2), at(3), at(4), n, s, correction1, correction2);
  });
}

template <bool Decays, bool Centered, bool Runs>
void rmsprop_all(StepLists& lists, const RmspropSettings& s) {
  for_all("rmsprop_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t) {
    using T = typename decltype(tag)::type;
    rmsprop_run<T, Decays, Centered, Runs>(at(0), at(1), at(2), at(3), at(4), n, s);
  });
}

}  // namespace

void sgd_step_(TensorList params, TensorList grads, TensorList momentum_buffers, double lr,
               double momentum, double dampening, double weight_decay, bool nesterov, bool maximize,
               bool first) {
  if (params.empty()) {
    return;
  }
  const SgdSettings settings{lr, momentum, dampening, weight_decay, maximize};
  StepLists lists({{params, true}, {grads, false}, {momentum_buffers, true}});
  if (momentum == 0) {
    sgd_all<Momentum::None>(lists, settings);
  } else if (first && nesterov) {
    sgd_all<Momentum::FirstNesterov>(lists, settings);
  } else if (first) {
    sgd_all<Momentum::First>(lists, settings);
  } else if (nesterov) {
    sgd_all<Momentum::Nesterov>(lists, settings);
  } else {
    sgd_all<Momentum::Plain>(lists, settings);
  }
  lists.write_back();
}

void adam_step_(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
                double eps, double weight_decay, bool decoupled, bool amsgrad, bool maximize) {
  if (params.empty()) {
    return;
  }
  const AdamSettings settings{beta1, beta2, eps, weight_decay, lr, maximize};
  StepLists lists({{params, true},
                   {grads, false},
                   {exp_avgs, true},
                   {exp_avg_sqs, true},
                   {max_exp_avg_sqs, true}});
  const std::vector<double> counts = count_steps(steps);
  const Decay decay = weight_decay == 0 ? Decay::None
                      : decoupled       ? Decay::Decoupled
                                        : Decay::Coupled;
  const auto run = [&]<Decay D>() {
    if (amsgrad) {
      adam_all<D, true>(lists, settings, counts);
    } else {
      adam_all<D, false>(lists, settings, counts);
    }
  };
  switch (decay) {
    case Decay::None:
      run.template operator()<Decay::None>();
      break;
    case Decay::Coupled:
      run.template operator()<Decay::Coupled>();
      break;
    case Decay::Decoupled:
      run.template operator()<Decay::Decoupled>();
      break;
  }
  lists.write_back();
}

void rmsprop_step_(TensorList params, TensorList grads, TensorList square_avgs,
                   TensorList momentum_buffers, TensorList grad_avgs, TensorList steps, double lr,
                   double alpha, double eps, double weight_decay, double momentum, bool centered,
                   bool maximize) {
  if (params.empty()) {
    return;
  }
  const RmspropSettings settings{lr, alpha, eps, weight_decay, momentum, maximize};
  StepLists lists({{params, true},
                   {grads, false},
                   {square_avgs, true},
                   {momentum_buffers, true},
                   {grad_avgs, true}});
  count_steps(steps);
  with_flag(weight_decay != 0, [&]<bool Decays>() {
    with_flag(centered, [&]<bool Centered>() {
      with_flag(momentum > 0,
                [&]<bool Runs>() { rmsprop_all<Decays, Centered, Runs>(lists, settings); });
    });
  });
  lists.write_back();
}

void adagrad_step_(TensorList params, TensorList grads, TensorList state_sums, TensorList steps,
                   double lr, double lr_decay, double eps, double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  const AdagradSettings settings{lr, lr_decay, eps, weight_decay, maximize};
  StepLists lists({{params, true}, {grads, false}, {state_sums, true}});
  const std::vector<double> counts = count_steps(steps);
  with_flag(weight_decay != 0, [&]<bool Decays>() {
    for_all("adagrad_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t i) {
      adagrad_run<typename decltype(tag)::type, Decays>(at(0), at(1), at(2), n, settings,
                                                        counts[i]);
    });
  });
  lists.write_back();
}

void adadelta_step_(TensorList params, TensorList grads, TensorList square_avgs,
                    TensorList acc_deltas, TensorList steps, double lr, double rho, double eps,
                    double weight_decay, bool maximize) {
  if (params.empty()) {
    return;
  }
  const AdadeltaSettings settings{lr, rho, eps, weight_decay, maximize};
  StepLists lists({{params, true}, {grads, false}, {square_avgs, true}, {acc_deltas, true}});
  count_steps(steps);
  with_flag(weight_decay != 0, [&]<bool Decays>() {
    for_all("adadelta_step_", lists, [&](auto tag, const auto& at, int64_t n, size_t) {
      adadelta_run<typename decltype(tag)::type, Decays>(at(0), at(1), at(2), at(3), n, settings);
    });
  });
  lists.write_back();
}

}  // namespace rushlight::cpu::RL_ISA
