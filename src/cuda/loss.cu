// nll_loss and cross_entropy with classes as targets, and their backward. A target out of bounds
// stops the kernel by an assertion.
#undef NDEBUG
#include <rushlight/reduction.h>

#include <cassert>

#include "cuda/column.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

int64_t class_dim(const Tensor& logits) { return logits.dim() == 1 ? 0 : 1; }

// The classes of samples and how much each sample counts.
template <class A>
struct Targets {
  const int64_t* classes;
  const A* weight;  // by class; null: 1
  int64_t ignored;
  int64_t count;  // classes there are
  __device__ bool counts(int64_t sample) const { return classes[sample] != ignored; }
  __device__ int64_t class_of(int64_t sample) const {
    const int64_t c = classes[sample];
    assert(c >= 0 && c < count && "target out of bounds");
    return c;
  }
  __device__ A class_weight(int64_t c) const { return weight != nullptr ? weight[c] : A(1); }
};

// Label smoothing: `keep` of the target's own loss, `spread` of that of each class.
template <class A>
struct Smoothing {
  A keep;
  A spread;
};

// Holds what Targets points to.
template <class A>
struct Held {
  Tensor classes;
  Tensor weight;
  Targets<A> targets;
  Held(const Tensor& target, const Tensor& class_weight, int64_t ignored, int64_t count)
      : classes(contiguous_raw(cast_raw(target, kInt64))),
        weight(class_weight.defined() ? contiguous_raw(cast_raw(class_weight, dtype_of_v<A>))
                                      : Tensor()),
        targets{classes.data<int64_t>(), weight.defined() ? weight.data<A>() : nullptr, ignored,
                count} {}
};

// ---- losses and weights of samples ----

template <class T>
struct NllLosses {
  using A = compute_t<T>;
  A* losses;
  A* weights;
  const T* in;
  DimSplit split;
  Targets<A> targets;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t i = at[0];
    A weight = 0;
    A loss = 0;
    if (targets.counts(i)) {
      const int64_t c = targets.class_of(i);
      weight = targets.class_weight(c);
      loss = -weight * widen(in[split.first(i) + c * split.inner]);
    }
    losses[i] = loss;
    weights[i] = weight;
  }
};

template <class T>
struct CrossEntropyLosses {
  using A = compute_t<T>;
  A* losses;
  A* weights;
  A* bases;
  A* log_sums;  // of exp(logit - base)
  const T* in;
  DimSplit split;
  Targets<A> targets;
  Smoothing<A> smoothing;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    const int64_t first = split.first(row);
    const auto load = [&](int64_t c) -> A { return widen(in[first + c * split.inner]); };
    A top = -math::infinity<A>;
    for (int64_t c = team.rank(); c < split.n; c += team.size()) {
      top = math::maximum(top, load(c));
    }
    top = team.template all<MaxOf>(top);
    const A base = top - top == A(0) ? top : A(0);
    A sum = 0;
    A weighted = 0;
    A all_weights = 0;
    for (int64_t c = team.rank(); c < split.n; c += team.size()) {
      const A x = load(c);
      sum += math::exp(x - base);
      weighted += targets.class_weight(c) * (x - base);
      all_weights += targets.class_weight(c);
    }
    sum = team.template all<SumOf>(sum);
    weighted = team.template all<SumOf>(weighted);
    all_weights = team.template all<SumOf>(all_weights);
    if (team.rank() != 0) {
      return;
    }
    const A log_sum = math::log(sum);
    bases[row] = base;
    log_sums[row] = log_sum;
    A weight = 0;
    A loss = 0;
    if (targets.counts(row)) {
      const int64_t c = targets.class_of(row);
      weight = targets.class_weight(c);
      loss = smoothing.keep * weight * (log_sum - (load(c) - base));
      if (smoothing.spread != A(0)) {
        loss += smoothing.spread * (log_sum * all_weights - weighted);
      }
    }
    losses[row] = loss;
    weights[row] = weight;
  }
};

// The sum of losses, divided by that of the weights for the mean.
template <class T, class A>
struct Reduced {
  T* loss;
  const A* sum;
  const A* total_weight;
  bool mean;
  __device__ void operator()(const int64_t (&)[1]) const {
    *loss = narrow<T>(mean ? *sum / *total_weight : *sum);
  }
};

template <class T, class A>
void write_losses(const Launch& launch, const Tensor& loss, const Tensor& total_weight,
                  const Tensor& losses, const Tensor& weights, int64_t reduction) {
  cuda::sum(total_weight, weights, {}, false, {});
  if (reduction == Reduction::None) {
    copy_raw(loss, make_view(losses, {loss.sizes(), contiguous_strides(loss.sizes()), 0}));
    return;
  }
  const Tensor sum = make_empty({}, losses.dtype(), losses.device());
  cuda::sum(sum, losses, {}, false, {});
  each(launch, Space<1>{{1}, {DimVector{0}}},
       Reduced<T, A>{loss.data<T>(), sum.data<A>(), total_weight.data<A>(),
                     reduction == Reduction::Mean});
}

// ---- gradients ----

// What the derivative of the result with regard to a sample's loss is.
template <class A>
struct SampleGradient {
  const A* grad;
  const A* total_weight;  // null: not divided
  bool each;
  __device__ A at(int64_t i) const {
    return each ? grad[i] : total_weight != nullptr ? *grad / *total_weight : *grad;
  }
};
template <class A>
struct HeldGradient {
  Tensor grad;
  Tensor total;
  SampleGradient<A> of;
  HeldGradient(const Tensor& grad_output, const Tensor& total_weight, int64_t reduction)
      : grad(contiguous_raw(cast_raw(grad_output, dtype_of_v<A>))),
        total(cast_raw(total_weight, dtype_of_v<A>)),
        of{grad.data<A>(), reduction == Reduction::Mean ? total.data<A>() : nullptr,
           reduction == Reduction::None} {}
};

template <class T>
struct NllGradient {
  using A = compute_t<T>;
  T* out;
  DimSplit split;
  Targets<A> targets;
  SampleGradient<A> gradient;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t i = at[0];
    if (targets.counts(i)) {
      const int64_t c = targets.class_of(i);
      out[split.first(i) + c * split.inner] = narrow<T>(-targets.class_weight(c) * gradient.at(i));
    }
  }
};

template <class T>
struct CrossEntropyGradient {
  using A = compute_t<T>;
  T* out;
  const T* in;
  const A* bases;
  const A* log_sums;
  DimSplit split;
  Targets<A> targets;
  SampleGradient<A> gradient;
  Smoothing<A> smoothing;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    const int64_t first = split.first(row);
    if (!targets.counts(row)) {
      for (int64_t c = team.rank(); c < split.n; c += team.size()) {
        out[first + c * split.inner] = narrow<T>(A(0));
      }
      return;
    }
    A all_weights = 0;
    if (smoothing.spread != A(0)) {
      for (int64_t c = team.rank(); c < split.n; c += team.size()) {
        all_weights += targets.class_weight(c);
      }
      all_weights = team.template all<SumOf>(all_weights);
    }
    const int64_t target = targets.class_of(row);
    const A own = smoothing.keep * targets.class_weight(target);
    const A scale = own + smoothing.spread * all_weights;
    const A g = gradient.at(row);
    for (int64_t c = team.rank(); c < split.n; c += team.size()) {
      const int64_t at = first + c * split.inner;
      A d = scale * math::exp(widen(in[at]) - bases[row] - log_sums[row]);
      d -= smoothing.spread * targets.class_weight(c);
      d -= c == target ? own : A(0);
      out[at] = narrow<T>(g * d);
    }
  }
};

template <class A>
Smoothing<A> smoothing_of(double amount, int64_t classes) {
  return {static_cast<A>(1 - amount),
          classes == 0 ? A(0) : static_cast<A>(amount / static_cast<double>(classes))};
}

Space<1> samples(int64_t n) { return {{n}, {DimVector{1}}}; }

}  // namespace

}  // namespace cuda

void cuda::_nll_loss(const Tensor& loss, const Tensor& total_weight, const Tensor& self,
                     const Tensor& target, const Tensor& weight, int64_t reduction,
                     int64_t ignore_index) {
  const Tensor x = contiguous_raw(self);
  const Launch launch(loss.device());
  visit_dtype<set_floating>("nll_loss", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const DimSplit split = dim_split_of(x, class_dim(x));
    const Held<A> held(target, weight, ignore_index, split.n);
    const int64_t n = target.numel();
    const Tensor losses = make_empty({n}, dtype_of_v<A>, x.device());
    const Tensor weights = make_empty({n}, dtype_of_v<A>, x.device());
    each(launch, samples(n),
         NllLosses<T>{losses.data<A>(), weights.data<A>(), x.data<T>(), split, held.targets});
    write_losses<T, A>(launch, loss, total_weight, losses, weights, reduction);
  });
}

void cuda::_nll_loss_backward(const Tensor& out, const Tensor& grad_output, const Tensor& target,
                              const Tensor& weight, const Tensor& total_weight, IntArrayRef,
                              int64_t reduction, int64_t ignore_index) {
  fill_raw(out, 0);
  const Launch launch(out.device());
  visit_dtype<set_floating>("nll_loss_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const DimSplit split = dim_split_of(out, class_dim(out));
    const Held<A> held(target, weight, ignore_index, split.n);
    const HeldGradient<A> gradient(grad_output, total_weight, reduction);
    each(launch, samples(target.numel()),
         NllGradient<T>{out.data<T>(), split, held.targets, gradient.of});
  });
}

void cuda::_cross_entropy(const Tensor& loss, const Tensor& log_sum, const Tensor& total_weight,
                          const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing) {
  const Tensor x = contiguous_raw(self);
  const Launch launch(loss.device());
  visit_dtype<set_floating>("cross_entropy", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const DimSplit split = dim_split_of(x, class_dim(x));
    const Held<A> held(target, weight, ignore_index, split.n);
    const int64_t n = target.numel();
    const Tensor losses = make_empty({n}, dtype_of_v<A>, x.device());
    const Tensor weights = make_empty({n}, dtype_of_v<A>, x.device());
    for_rows(launch, n, split.n, split.inner,
             CrossEntropyLosses<T>{losses.data<A>(), weights.data<A>(), log_sum.data<A>(),
                                   log_sum.data<A>() + n, x.data<T>(), split, held.targets,
                                   smoothing_of<A>(label_smoothing, split.n)});
    write_losses<T, A>(launch, loss, total_weight, losses, weights, reduction);
  });
}

void cuda::_cross_entropy_backward(const Tensor& out, const Tensor& grad_output, const Tensor& self,
                                   const Tensor& target, const Tensor& weight,
                                   const Tensor& log_sum, const Tensor& total_weight,
                                   int64_t reduction, int64_t ignore_index,
                                   double label_smoothing) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor x = contiguous_raw(self);
  const Tensor sums = contiguous_raw(log_sum);
  const Launch launch(out.device());
  visit_dtype<set_floating>("cross_entropy_backward", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const DimSplit split = dim_split_of(x, class_dim(x));
    const Held<A> held(target, weight, ignore_index, split.n);
    const HeldGradient<A> gradient(grad_output, total_weight, reduction);
    for_rows(launch, split.rows, split.n, split.inner,
             CrossEntropyGradient<T>{out.data<T>(), x.data<T>(), sums.data<A>(),
                                     sums.data<A>() + split.rows, split, held.targets, gradient.of,
                                     smoothing_of<A>(label_smoothing, split.n)});
  });
}

}  // namespace rushlight
