// Connectionist temporal classification, as in src/cpu/ctc.cpp: dynamic programming over (step,
// place in the target with blanks between its labels), in logarithms. A block of threads does a
// sequence; its threads are places, and wait for each other after every step.
#include "cuda/checked.cuh"
#include "cuda/column.h"
#include "cuda/each.cuh"
#include "cuda/memory.h"
#include "cuda/tables.h"
#include "kernels/math.h"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
__device__ T log_add(T a, T b) {
  const T top = a < b ? b : a;
  const T low = a < b ? a : b;
  return top == -math::infinity<T> ? top : top + ::log1p(::exp(low - top));
}
// log(e^a + e^b + e^c)
template <class T>
__device__ T log_add(T a, T b, T c) {
  const T most = a < b ? b : a;
  const T top = most < c ? c : most;
  if (top == -math::infinity<T>) {
    return top;
  }
  return top + ::log(::exp(a - top) + ::exp(b - top) + ::exp(c - top));
}

struct Problem {
  int64_t steps;
  int64_t batch;
  int64_t classes;
  int64_t places;  // of the longest target
  int64_t blank;
  const int64_t* targets;
  const int64_t* first;  // of each sequence's target
  const int64_t* input_lengths;
  const int64_t* target_lengths;
};

// Holds what Problem points to.
struct CtcBuffers {
  Tensor first;
  Tensor input_lengths;
  Tensor target_lengths;
  Problem problem;
  CtcBuffers(const Tensor& log_probs, const Tensor& targets, IntArrayRef inputs,
             IntArrayRef lengths, const Tensor& log_alpha, int64_t blank) {
    std::vector<int64_t> starts;
    int64_t at = 0;
    for (const int64_t n : lengths) {
      starts.push_back(targets.dim() == 2 ? static_cast<int64_t>(starts.size()) * targets.size(1)
                                          : at);
      at += n;
    }
    const Device device = log_probs.device();
    first = on_gpu(starts, device);
    input_lengths = on_gpu(std::vector<int64_t>(inputs.begin(), inputs.end()), device);
    target_lengths = on_gpu(std::vector<int64_t>(lengths.begin(), lengths.end()), device);
    problem = {log_probs.size(0),
               log_probs.size(1),
               log_probs.size(2),
               log_alpha.size(2),
               blank,
               targets.data<int64_t>(),
               first.data<int64_t>(),
               input_lengths.data<int64_t>(),
               target_lengths.data<int64_t>()};
  }
};

// The places of one target: blanks stand before, between and behind its labels.
struct Places {
  const int64_t* target;
  int64_t count;
  int64_t blank;
  int64_t classes;
  __device__ Places(const Problem& z, int64_t b)
      : target(z.targets + z.first[b]),
        count(2 * z.target_lengths[b] + 1),
        blank(z.blank),
        classes(z.classes) {}
  __device__ int64_t label(int64_t s) const {
    return s % 2 == 0 ? blank : checked_index(target[s / 2], classes);
  }
  // Whether a path may come from two places before.
  __device__ bool skips(int64_t s) const {
    return s % 2 != 0 && s >= 2 && target[s / 2] != target[s / 2 - 1];
  }
  // Whether no place before has the same label.
  __device__ bool leads(int64_t s) const {
    if (s % 2 == 0) {
      return s == 0;
    }
    for (int64_t i = 1; i < s; i += 2) {
      if (label(i) == label(s)) {
        return false;
      }
    }
    return label(s) != blank;
  }
};

// log_alpha holds -inf everywhere.
template <class T>
__global__ void __launch_bounds__(block_size)
    ctc_forward(Problem z, T* loss, T* log_alpha, const T* probs) {
  const int64_t b = blockIdx.x;
  const int64_t steps = z.input_lengths[b];
  const Places p(z, b);
  if (steps == 0) {
    if (threadIdx.x == 0) {
      loss[b] = p.count == 1 ? T(0) : math::infinity<T>;
    }
    return;
  }
  T* const alpha = log_alpha + b * z.steps * z.places;
  for (int64_t t = 0; t < steps; t++) {
    const T* const row = probs + (t * z.batch + b) * z.classes;
    const T* const before = alpha + (t - 1) * z.places;
    for (int64_t s = threadIdx.x; s < p.count; s += block_size) {
      if (t == 0) {
        if (s < 2) {
          alpha[s] = row[p.label(s)];
        }
        continue;
      }
      const T one = s > 0 ? before[s - 1] : -math::infinity<T>;
      const T two = p.skips(s) ? before[s - 2] : -math::infinity<T>;
      alpha[t * z.places + s] = log_add(before[s], one, two) + row[p.label(s)];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const T* const last = alpha + (steps - 1) * z.places;
    loss[b] = -(p.count == 1 ? last[0] : log_add(last[p.count - 1], last[p.count - 2]));
  }
}

// `out` holds zeros; beta has room for two steps of each sequence.
template <class T>
__global__ void __launch_bounds__(block_size)
    ctc_backward(Problem z, T* out, const T* grad, const T* probs, const T* loss,
                 const T* log_alpha, bool zero_infinity, T* beta) {
  const int64_t b = blockIdx.x;
  const T nll = loss[b];
  if (zero_infinity && nll == math::infinity<T>) {
    return;
  }
  const Places p(z, b);
  const int64_t steps = z.input_lengths[b];
  for (int64_t t = steps - 1; t >= 0; t--) {
    T* const now = beta + (2 * b + t % 2) * z.places;
    const T* const after = beta + (2 * b + 1 - t % 2) * z.places;
    const T* const row = probs + (t * z.batch + b) * z.classes;
    const T* const alpha = log_alpha + (b * z.steps + t) * z.places;
    T* const result = out + (t * z.batch + b) * z.classes;
    for (int64_t s = threadIdx.x; s < p.count; s += block_size) {
      T sum = -math::infinity<T>;
      if (t == steps - 1) {
        sum = s >= p.count - 2 ? T(0) : sum;
      } else {
        const T one = s + 1 < p.count ? after[s + 1] : -math::infinity<T>;
        const T two = s + 2 < p.count && p.skips(s + 2) ? after[s + 2] : -math::infinity<T>;
        sum = log_add(after[s], one, two);
      }
      now[s] = sum + row[p.label(s)];
    }
    for (int64_t c = threadIdx.x; c < z.classes; c += block_size) {
      result[c] = ::exp(row[c]) * grad[b];
    }
    __syncthreads();
    // Places of one label add up in the thread of the first.
    for (int64_t s = threadIdx.x; s < p.count; s += block_size) {
      if (!p.leads(s)) {
        continue;
      }
      const int64_t c = p.label(s);
      T sum = -math::infinity<T>;
      for (int64_t i = p.count - 1; i >= s; i--) {
        sum = p.label(i) == c ? log_add(sum, alpha[i] + now[i]) : sum;
      }
      result[c] = (::exp(row[c]) - ::exp(sum + nll - row[c])) * grad[b];
    }
    __syncthreads();
  }
}

}  // namespace

}  // namespace cuda

void cuda::_ctc_loss(const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                     const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                     IntArrayRef target_lengths, int64_t blank, bool) {
  const CtcBuffers held(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  fill_raw(log_alpha, Scalar(-math::infinity<double>));
  if (held.problem.batch == 0) {
    return;
  }
  const Launch launch(log_probs.device());
  visit_dtype<set_floats>("ctc_loss", log_probs.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ctc_forward<T><<<blocks_for(held.problem.batch, 1), block_size, 0, launch.stream()>>>(
        held.problem, neg_log_likelihood.data<T>(), log_alpha.data<T>(), log_probs.data<T>());
  });
  launch.done();
}

void cuda::_ctc_loss_backward(const Tensor& out, const Tensor& grad, const Tensor& log_probs,
                              const Tensor& targets, IntArrayRef input_lengths,
                              IntArrayRef target_lengths, const Tensor& neg_log_likelihood,
                              const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const CtcBuffers held(log_probs, targets, input_lengths, target_lengths, log_alpha, blank);
  fill_raw(out, 0);
  const Problem& z = held.problem;
  if (out.numel() == 0) {
    return;
  }
  const Launch launch(log_probs.device());
  visit_dtype<set_floats>("ctc_loss", log_probs.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Scratch beta(static_cast<size_t>(2 * z.batch * z.places) * sizeof(T), out.device());
    ctc_backward<T><<<blocks_for(z.batch, 1), block_size, 0, launch.stream()>>>(
        z, out.data<T>(), grad.data<T>(), log_probs.data<T>(), neg_log_likelihood.data<T>(),
        log_alpha.data<T>(), zero_infinity, beta.as<T>());
  });
  launch.done();
}

}  // namespace rushlight
