// The kernel that a formula of src/kernels/reduce.h becomes: the op table names the formula, and
// the generator writes the call.
#pragma once

#include "core/op_support.h"
#include "cpu/chain.h"
#include "cpu/chain_source.h"
#include "cpu/isa/reduce/leaves.h"
#include "cpu/readable.h"

namespace rushlight::cpu::RL_ISA {

// Where one result of an output is written; `offset` is its place in the state.
struct Target {
  char* to;
  int64_t width;
  int64_t offset;
  ConvertRun write;
};
template <class R>
Target target(const char* name, const Tensor& out, int64_t offset) {
  return {static_cast<char*>(out.data_ptr()), out.element_size(), offset,
          writer<R>(name, out.dtype())};
}
template <class R>
std::array<Target, 1> targets(const char* name, InputList outs, const R*) {
  return {target<R>(name, *outs[0], 0)};
}
template <class A, class B>
std::array<Target, 2> targets(const char* name, InputList outs, const fold::Pair<A, B>*) {
  return {target<A>(name, *outs[0], 0), target<B>(name, *outs[1], fold::Pair<A, B>::offset)};
}

// What `finish` makes of states, one after the other where it calls functions, whose bits may not
// depend on neighbours.
template <class F, class R>
void finish_states(const F& formula, const typename F::State* s, int64_t count, R* to, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    to[i] = formula.finish(s[i], count);
    if constexpr (F::calls) {
      asm volatile("" ::: "memory");
    }
  }
}

// A fold of rows as programs of chains call it (cpu/program.h): one result of the input's type,
// which is the state itself where there is no `finish`.
template <class F>
constexpr bool finishes = requires(const F& f, typename F::State s) { f.finish(s, 1); };
template <class F>
constexpr bool folds_floats() {
  using S = typename F::State;
  if constexpr (!std::is_same_v<typename F::type, float> || F::over == fold::Over::Truth ||
                !std::is_trivially_copyable_v<F>) {
    return false;
  } else if constexpr (finishes<F>) {
    return std::is_same_v<decltype(std::declval<const F&>().finish(S(), 1)), float>;
  } else {
    return std::is_same_v<S, float>;
  }
}
template <class F>
void fold_rows(const void* bytes, const char* x, int64_t step, int64_t n, int64_t rows, char* to) {
  const F& formula = *static_cast<const F*>(bytes);
  const Leaf<F> leaf{{formula}};
  for (int64_t r = 0; r < rows; r++, x += step, to += sizeof(float)) {
    typename F::State state;
    leaf.row(reinterpret_cast<const float*>(x), std::min(n, row_leaf), 0, state);
    if (n > row_leaf) {  // the driver's tree
      ReducePlan plan;
      plan.count = n;
      plan.reduced.add(n, sizeof(float));
      reduce(leaf, plan, x, nullptr, true,
             [&](int64_t, const typename F::State* s, int64_t) { state = *s; });
    }
    if constexpr (finishes<F>) {
      finish_states(formula, &state, n, reinterpret_cast<float*>(to), 1);
    } else {
      std::memcpy(to, &state, sizeof state);
    }
  }
}
// Notes a fold of the last dimensions in a region.
template <class F>
bool note_fold(const F& formula, const Tensor& out, const Tensor& self, OptionalIntArrayRef dim) {
  if constexpr (folds_floats<F>()) {
    int64_t row = 1;
    const auto n = static_cast<int64_t>(dim.has_value() ? dim.value().size() : 0);
    for (int64_t i = 0; i < n; i++) {
      const int64_t d = self.dim() - 1 - i;
      if (d < 0 || !std::count(dim.value().begin(), dim.value().end(), d)) {
        return false;
      }
      row *= self.sizes()[d];
    }
    return n > 0 && self.dtype() == kFloat32 && out.dtype() == kFloat32 &&
           tls.notebook->note_fold(self, out, row, fold_rows<F>, &formula, sizeof formula);
  } else {
    return false;
  }
}

template <class F>
void run_formula(const F& formula, const char* name, InputList outs, const Tensor& given,
                 OptionalIntArrayRef dim) {
  using A = typename F::type;
  using S = typename F::State;
  constexpr bool truth = F::over == fold::Over::Truth;
  constexpr ScalarType wanted = truth ? kBool : dtype_of_v<A>;
  using Read = std::conditional_t<truth, bool, A>;
  if (RL_UNLIKELY(tls.notebook != nullptr) && note_fold(formula, *outs[0], given, dim)) {
    return;
  }
  const Tensor self = computable(
      given, !truth && is_complex(given.dtype()) ? compute_dtype(given.dtype()) : wanted);
  const ReducePlan plan = plan_reduction(self, dim, F::ordered);
  const bool direct = self.dtype() == wanted;
  const auto run = [&](const auto& emit) {
    const ChainSource source(direct ? self : Tensor());
    if (RL_UNLIKELY(source.is_there())) {
      reduce_elements(Leaf<F>{{formula}}, plan, emit, static_cast<const Source&>(source));
    } else {
      reduce(Leaf<F>{{formula}}, plan, self.data_ptr(), reader<Read>(name, self.dtype()), direct,
             emit);
    }
  };
  if constexpr (finishes<F>) {
    using R = decltype(formula.finish(S(), 1));
    const Tensor& out = *outs[0];
    char* const data = static_cast<char*>(out.data_ptr());
    const int64_t width = out.element_size();
    const bool written_directly = out.dtype() == dtype_of_v<R>;
    const ConvertRun write = written_directly ? nullptr : writer<R>(name, out.dtype());
    run([&](int64_t first, const S* s, int64_t n) {
      char* const to = data + first * width;
      if (written_directly) {
        return finish_states(formula, s, plan.count, reinterpret_cast<R*>(to), n);
      }
      constexpr int64_t batch = 64;
      R results[batch];
      for (int64_t done = 0; done < n; done += batch) {
        const int64_t m = std::min(batch, n - done);
        finish_states(formula, s + done, plan.count, results, m);
        write(to + done * width, results, sizeof(R), m);
      }
    });
  } else {
    const auto written = targets(name, outs, static_cast<const S*>(nullptr));
    run([&](int64_t first, const S* s, int64_t n) {
      for (const Target& t : written) {
        t.write(t.to + first * t.width, reinterpret_cast<const char*>(s) + t.offset, sizeof(S), n);
      }
    });
  }
}

// `Set`: the dtypes of what decides on the type to compute in.
template <template <class> class F, uint32_t Set, class... Attributes>
void reduce_by(const char* name, InputList outs, const Tensor& self, OptionalIntArrayRef dim,
               const Attributes&... attributes) {
  constexpr fold::Over over = F<float>::over;
  if constexpr (over == fold::Over::Truth) {
    run_formula(F<uint8_t>{attributes...}, name, outs, self, dim);
  } else {
    const ScalarType t = over == fold::Over::Result ? outs[0]->dtype() : self.dtype();
    visit_dtype<Set>(name, t, [&](auto tag) {
      using T = typename fold::computed_in<typename decltype(tag)::type, over>::type;
      run_formula(F<T>{attributes...}, name, outs, self, dim);
    });
  }
}

}  // namespace rushlight::cpu::RL_ISA
