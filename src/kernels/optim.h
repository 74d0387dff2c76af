// The steps of all optimisers. A rule holds an optimiser's settings; its Step does one element:
// x[k] is the element's value in list k (the parameter first, then its gradient, then what the rule
// keeps) and is changed in place. What differs from parameter to parameter, with the count of its
// steps, is worked out in double precision beforehand: `extra`. Nothing depends on how the elements
// are shared out; bits are those of every processor with fused multiplications
// (math::multiply_add).
//
// C is float or double, or Recorded (ops/recorded.h), by which the same rule is a program that
// autograd records: what depends on elements is chosen by math::select, not by branches.
//
// To add one: a rule here and an entry in ops/optim.py.
#pragma once

#include <cmath>

#include "kernels/steps.h"

namespace rushlight::rules {

// Each rule has visit<C>(f), which calls f with the Step for a compute type, and
// prepare_factors(count, to) where something differs by parameter. Each Step has `lists`, a bit for
// every list that it touches.

struct Sgd {  // keeps the momentum
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;

  template <class C, bool Moves>
  struct Step {
    static constexpr unsigned lists = Moves ? 0b111 : 0b011;
    C minus_lr, momentum, share, decay, sign;
    bool nesterov, first;
    RL_INLINE void operator()(C* x, const double*) const {
      C g = add_weight_decay(decay, x[0], sign * x[1]);
      if constexpr (Moves) {
        x[2] = first ? g : math::multiply_add(share, g, x[2] * momentum);
        g = nesterov ? math::multiply_add(momentum, x[2], g) : x[2];
      }
      x[0] = math::multiply_add(minus_lr, g, x[0]);
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    with_flag(momentum != 0, [&]<bool Moves>() {
      f(Step<C, Moves>{C(-lr), C(momentum), C(1 - dampening), C(weight_decay), C(maximize ? -1 : 1),
                       nesterov, first});
    });
  }
};

struct Adam {  // keeps the mean, the mean of squares and, with amsgrad, its maximum
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, amsgrad, maximize;

  template <class C, bool Amsgrad>
  struct Step {
    static constexpr unsigned lists = Amsgrad ? 0b11111 : 0b01111;
    C share, beta2, share2, eps, decay, shrink, sign;
    RL_INLINE void operator()(C* x, const double* extra) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      const C p = x[0] * shrink;
      const bool near{share < C(0.5)};
      x[2] = math::multiply_add(near ? share : share - C(1), g - x[2], near ? x[2] : g);
      x[3] = math::multiply_add(share2 * g, g, x[3] * beta2);
      C v = x[3];
      if constexpr (Amsgrad) {
        v = math::maximum(x[4], v);
        x[4] = v;
      }
      const C denominator = math::sqrt(v) / static_cast<C>(extra[1]) + eps;
      x[0] = p + static_cast<C>(extra[0]) * x[2] / denominator;
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    with_flag(amsgrad, [&]<bool Amsgrad>() { f(with_moments<Step<C, Amsgrad>, C>(*this)); });
  }
  // The step's size, the root of the correction.
  RL_INLINE void prepare_factors(double count, double* to) const {
    to[0] = -(lr / (1 - ::pow(beta1, count)));
    to[1] = ::sqrt(1 - ::pow(beta2, count));
  }
};

struct Rmsprop {  // keeps the mean of squares, the momentum, the mean
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;

  template <class C, bool Moves, bool Centered>
  struct Step {
    static constexpr unsigned lists = 0b00111 | (Moves ? 0b01000 : 0) | (Centered ? 0b10000 : 0);
    C minus_lr, alpha, share, eps, decay, momentum, sign;
    RL_INLINE void operator()(C* x, const double*) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      x[2] = x[2] * alpha + share * g * g;
      C v = x[2];
      if constexpr (Centered) {
        x[4] = mean_with(x[4], g, share);
        // A variance is not negative, but for rounding; that of squares that overflow is infinite.
        v = math::select(v == C(math::infinity<double>), v, math::maximum(v - x[4] * x[4], C(0)));
      }
      const C denominator = math::sqrt(v) + eps;
      if constexpr (Moves) {
        x[3] = x[3] * momentum + g / denominator;
        x[0] = x[0] + minus_lr * x[3];
      } else {
        x[0] = x[0] + minus_lr * g / denominator;
      }
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    with_flag(momentum > 0, [&]<bool Moves>() {
      with_flag(centered, [&]<bool Centered>() {
        f(Step<C, Moves, Centered>{C(-lr), C(alpha), C(1 - alpha), C(eps), C(weight_decay),
                                   C(momentum), C(maximize ? -1 : 1)});
      });
    });
  }
};

struct Adagrad {  // keeps the sum of squares
  double lr, lr_decay, eps, weight_decay;
  bool maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b111;
    C eps, decay, sign;
    RL_INLINE void operator()(C* x, const double* extra) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      x[2] = x[2] + g * g;
      x[0] = x[0] + static_cast<C>(extra[0]) * g / (math::sqrt(x[2]) + eps);
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(Step<C>{C(eps), C(weight_decay), C(maximize ? -1 : 1)});
  }
  RL_INLINE void prepare_factors(double count, double* to) const {
    to[0] = -lr / (1 + (count - 1) * lr_decay);
  }
};

struct Adadelta {  // keeps the mean of squares and that of squared moves
  double lr, rho, eps, weight_decay;
  bool maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b1111;
    C minus_lr, rho, share, eps, decay, sign;
    RL_INLINE void operator()(C* x, const double*) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      x[2] = x[2] * rho + share * g * g;
      const C delta = math::sqrt(x[3] + eps) / math::sqrt(x[2] + eps) * g;
      x[3] = x[3] * rho + share * delta * delta;
      x[0] = x[0] + minus_lr * delta;
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(Step<C>{C(-lr), C(rho), C(1 - rho), C(eps), C(weight_decay), C(maximize ? -1 : 1)});
  }
};

struct Adamax {  // keeps the mean and the largest gradient, which fades
  double lr, beta1, beta2, eps, weight_decay;
  bool maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b1111;
    C share, beta2, eps, decay, sign;
    RL_INLINE void operator()(C* x, const double* extra) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      x[2] = mean_with(x[2], g, share);
      x[3] = math::maximum(x[3] * beta2, math::select(g < C(0), -g, g) + eps);
      x[0] = x[0] + static_cast<C>(extra[0]) * x[2] / x[3];
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(Step<C>{C(1 - beta1), C(beta2), C(eps), C(weight_decay), C(maximize ? -1 : 1)});
  }
  RL_INLINE void prepare_factors(double count, double* to) const {
    to[0] = -(lr / (1 - ::pow(beta1, count)));
  }
};

struct Nadam {  // keeps the mean and the mean of squares
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  bool decoupled, maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b1111;
    C share, beta2, share2, eps, decay, shrink, sign;
    RL_INLINE void operator()(C* x, const double* extra) const {
      const C p = x[0] * shrink;
      const C g = add_weight_decay(decay, p, sign * x[1]);
      x[2] = mean_with(x[2], g, share);
      x[3] = x[3] * beta2 + share2 * g * g;
      const C denominator = math::sqrt(x[3] / static_cast<C>(extra[2])) + eps;
      x[0] = p + static_cast<C>(extra[0]) * g / denominator +
             static_cast<C>(extra[1]) * x[2] / denominator;
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(with_moments<Step<C>, C>(*this));
  }
  RL_INLINE double momentum_at(double count) const {
    return beta1 * (1 - 0.5 * ::pow(0.96, count * momentum_decay));
  }
  // Factors of the gradient and of the mean, the correction; `product` of all momenta so far.
  RL_INLINE void prepare_factors(double count, double product, double* to) const {
    const double next = momentum_at(count + 1);
    to[0] = -lr * (1 - momentum_at(count)) / (1 - product);
    to[1] = -lr * next / (1 - product * next);
    to[2] = 1 - ::pow(beta2, count);
  }
};

struct Radam {  // keeps the mean and the mean of squares
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b1111;
    C share, beta2, share2, eps, decay, shrink, sign;
    RL_INLINE void operator()(C* x, const double* extra) const {
      const C p = x[0] * shrink;
      const C g = add_weight_decay(decay, p, sign * x[1]);
      x[2] = mean_with(x[2], g, share);
      x[3] = x[3] * beta2 + share2 * g * g;
      const C adapted = static_cast<C>(extra[1]) / (math::sqrt(x[3]) + eps);
      x[0] = p + static_cast<C>(extra[0]) * x[2] * (extra[1] != 0 ? adapted : C(1));
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(with_moments<Step<C>, C>(*this));
  }
  // The step's size; the root of the correction, or 0 while the averages are too short for their
  // variance to be relied on.
  RL_INLINE void prepare_factors(double count, double* to) const {
    const double power = ::pow(beta2, count);
    const double longest = 2 / (1 - beta2) - 1;
    const double length = longest - 2 * count * power / (1 - power);
    const bool adapts = length > 5;
    const double rectified = adapts ? ::sqrt((length - 4) * (length - 2) * longest /
                                             ((longest - 4) * (longest - 2) * length))
                                    : 1;
    to[0] = -lr * rectified / (1 - ::pow(beta1, count));
    to[1] = adapts ? ::sqrt(1 - power) : 0;
  }
};

struct Rprop {  // keeps the gradient before and the step's length
  double eta_minus, eta_plus, step_size_min, step_size_max;
  bool maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b1111;
    C minus, plus, smallest, largest, sign;
    RL_INLINE void operator()(C* x, const double*) const {
      const C g = sign * x[1];
      const C agreement = g * x[2];
      const C shorter = math::select(agreement < C(0), x[3] * minus, x[3]);
      const C length = math::select(agreement > C(0), x[3] * plus, shorter);
      const C bounded = math::select(length < smallest, smallest, length);
      x[3] = math::select(bounded > largest, largest, bounded);
      x[2] = math::select(agreement < C(0), C(0), g);
      const C direction = math::select(x[2] < C(0), C(-1), C(0));
      x[0] = x[0] - math::select(x[2] > C(0), C(1), direction) * x[3];
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(Step<C>{C(eta_minus), C(eta_plus), C(step_size_min), C(step_size_max), C(maximize ? -1 : 1)});
  }
};

struct Asgd {  // keeps the average of the parameter
  double lambd, eta, mu, weight_decay;
  bool maximize;

  template <class C>
  struct Step {
    static constexpr unsigned lists = 0b111;
    C decay, shrink, minus_eta, mu, sign;
    RL_INLINE void operator()(C* x, const double*) const {
      const C g = add_weight_decay(decay, x[0], sign * x[1]);
      x[0] = math::multiply_add(minus_eta, g, x[0] * shrink);
      x[2] = mu == C(1) ? x[0] : x[2] + (x[0] - x[2]) * mu;
    }
  };
  template <class C, class F>
  void visit(const F& f) const {
    f(Step<C>{C(weight_decay), C(1 - lambd * eta), C(-eta), C(mu), C(maximize ? -1 : 1)});
  }
};

}  // namespace rushlight::rules
