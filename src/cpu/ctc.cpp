// Connectionist temporal classification: the sum over all alignments of a target with a sequence,
// by dynamic programming over (step, place in the target with blanks between its labels), in
// logarithms. Each sequence of the batch is one task.
#include <cmath>
#include <limits>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu {
namespace {

template <class T>
constexpr T nothing = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  const T top = std::max(a, b);
  return top == nothing<T> ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

// log(e^a + e^b + e^c)
template <class T>
T log_add(T a, T b, T c) {
  const T top = std::max(a, std::max(b, c));
  if (top == nothing<T>) {
    return top;
  }
  return top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}

struct Problem {
  int64_t steps;
  int64_t batch;
  int64_t classes;
  int64_t places;  // of the longest target
  int64_t blank;
  const int64_t* targets;
  int64_t target_step;  // between the targets of a batch; 0: one after the other
  IntArrayRef input_lengths;
  IntArrayRef target_lengths;

  Problem(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
          IntArrayRef target_lengths, const Tensor& log_alpha, int64_t blank)
      : steps(log_probs.size(0)),
        batch(log_probs.size(1)),
        classes(log_probs.size(2)),
        places(log_alpha.size(2)),
        blank(blank),
        targets(targets.data<int64_t>()),
        target_step(targets.dim() == 2 ? targets.size(1) : 0),
        input_lengths(input_lengths),
        target_lengths(target_lengths) {
    for (int64_t b = 0; b < batch; b++) {
      const int64_t* labels = target(b);
      for (int64_t i = 0; i < target_lengths[static_cast<size_t>(b)]; i++) {
        RL_CHECK(labels[i] >= 0 && labels[i] < classes, "ctc_loss: target ", labels[i],
                 " is out of bounds for ", classes, " classes");
      }
    }
  }
  const int64_t* target(int64_t b) const {
    int64_t at = target_step * b;
    for (int64_t i = 0; target_step == 0 && i < b; i++) {
      at += target_lengths[static_cast<size_t>(i)];
    }
    return targets + at;
  }
};

// The places of one target: blanks stand before, between and behind its labels.
struct Places {
  int64_t count;
  Scratch<int64_t> label;
  Scratch<char> skips;  // whether a path may come from two places before

  Places(const Problem& z, int64_t b)
      : count(2 * z.target_lengths[static_cast<size_t>(b)] + 1), label(count), skips(count) {
    const int64_t* target = z.target(b);
    for (int64_t s = 0; s < count; s++) {
      const bool blank = s % 2 == 0;
      label[s] = blank ? z.blank : target[s / 2];
      skips[s] = !blank && s >= 2 && target[s / 2] != target[s / 2 - 1] ? 1 : 0;
    }
  }
};

template <class T>
void forward(const Problem& z, const Tensor& loss, const Tensor& log_alpha,
             const Tensor& log_probs) {
  const T* probs = log_probs.data<T>();
  T* const alphas = log_alpha.data<T>();
  std::fill_n(alphas, log_alpha.numel(), nothing<T>);
  parallel_for(0, z.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const int64_t steps = z.input_lengths[static_cast<size_t>(b)];
      const Places p(z, b);
      const int64_t places = p.count;
      T* const alpha = alphas + b * z.steps * z.places;
      T* const result = loss.data<T>() + b;
      if (steps == 0) {
        *result = places == 1 ? T(0) : -nothing<T>;
        continue;
      }
      const auto prob = [&](int64_t t, int64_t place) {
        return probs[(t * z.batch + b) * z.classes + p.label[place]];
      };
      alpha[0] = prob(0, 0);
      if (places > 1) {
        alpha[1] = prob(0, 1);
      }
      for (int64_t t = 1; t < steps; t++) {
        const T* before = alpha + (t - 1) * z.places;
        for (int64_t s = 0; s < places; s++) {
          const T one = s > 0 ? before[s - 1] : nothing<T>;
          const T two = p.skips[s] != 0 ? before[s - 2] : nothing<T>;
          alpha[t * z.places + s] = log_add(before[s], one, two) + prob(t, s);
        }
      }
      const T* last = alpha + (steps - 1) * z.places;
      *result = -(places == 1 ? last[0] : log_add(last[places - 1], last[places - 2]));
    }
  });
}

template <class T>
void backward(const Problem& z, const Tensor& out, const Tensor& grad, const Tensor& log_probs,
              const Tensor& loss, const Tensor& log_alpha, bool zero_infinity) {
  const T* probs = log_probs.data<T>();
  T* const to = out.data<T>();
  parallel_for(0, z.batch, 1, [&](int64_t begin, int64_t end) {
    const Scratch<T> beta(2 * z.places);
    const Scratch<T> by_class(z.classes);
    for (int64_t b = begin; b < end; b++) {
      const int64_t steps = z.input_lengths[static_cast<size_t>(b)];
      const Places p(z, b);
      const int64_t places = p.count;
      const T nll = loss.data<T>()[b];
      const T g = grad.data<T>()[b];
      const bool skipped = zero_infinity && nll == -nothing<T>;
      for (int64_t t = skipped ? 0 : steps; t < z.steps; t++) {
        std::fill_n(to + (t * z.batch + b) * z.classes, z.classes, T(0));
      }
      if (skipped) {
        continue;
      }
      T* now = beta;
      T* after = beta + z.places;
      for (int64_t t = steps - 1; t >= 0; t--, std::swap(now, after)) {
        const T* row = probs + (t * z.batch + b) * z.classes;
        const T* alpha = log_alpha.data<T>() + (b * z.steps + t) * z.places;
        std::fill_n(by_class.data(), z.classes, nothing<T>);
        for (int64_t s = places - 1; s >= 0; s--) {
          T sum = nothing<T>;
          if (t == steps - 1) {
            sum = s >= places - 2 ? T(0) : sum;
          } else {
            const T one = s + 1 < places ? after[s + 1] : nothing<T>;
            const T two = s + 2 < places && p.skips[s + 2] != 0 ? after[s + 2] : nothing<T>;
            sum = log_add(after[s], one, two);
          }
          const int64_t label = p.label[s];
          now[s] = sum + row[label];
          by_class[label] = log_add(by_class[label], alpha[s] + now[s]);
        }
        T* const result = to + (t * z.batch + b) * z.classes;
        for (int64_t c = 0; c < z.classes; c++) {
          result[c] = (std::exp(row[c]) - std::exp(by_class[c] + nll - row[c])) * g;
        }
      }
    }
  });
}

}  // namespace

void _ctc_loss(const Tensor& neg_log_likelihood, const Tensor& log_alpha, const Tensor& log_probs,
               const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
               int64_t blank, bool) {
  const Problem problem(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  visit_dtype<set_floats>("ctc_loss", log_probs.dtype(), [&](auto tag) {
    forward<typename decltype(tag)::type>(problem, neg_log_likelihood, log_alpha, log_probs);
  });
}

void _ctc_loss_backward(const Tensor& out, const Tensor& grad, const Tensor& log_probs,
                        const Tensor& targets, IntArrayRef input_lengths,
                        IntArrayRef target_lengths, const Tensor& neg_log_likelihood,
                        const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const Problem problem(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  visit_dtype<set_floats>("ctc_loss", log_probs.dtype(), [&](auto tag) {
    backward<typename decltype(tag)::type>(problem, out, grad, log_probs, neg_log_likelihood,
                                           log_alpha, zero_infinity);
  });
}

}  // namespace rushlight::cpu
