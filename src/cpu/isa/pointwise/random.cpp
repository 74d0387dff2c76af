// Random fills on the CPU. Numbers are drawn in order, by one thread, so a seed means the same
// numbers everywhere. The order is that of memory; tensors with gaps are filled by way of a copy.
#include "cpu/random.h"
#include "generated/kernels.h"
#include "kernels/random.h"

namespace rushlight::cpu::RL_ISA {

namespace {

namespace fills = rushlight::random::RL_ISA;

// Calls f(data as T*, numel, generator) for the elements of `out` in order.
template <uint32_t Set, class F>
void fill_in_order(const char* op, const Tensor& out, const Generator& generator, const F& f) {
  const FilledOutput target(out);
  const DrawLock draw(generator);
  visit_dtype<Set>(op, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    f(static_cast<T*>(target.data()), target.numel(), draw.state());
  });
  target.write_back();
}

// The same for functions of a number that is drawn one at a time, in double.
template <class Draw>
void fill_one_by_one(const char* op, const Tensor& out, const Generator& generator,
                     const Draw& draw_one) {
  fill_in_order<set_floating>(op, out, generator, [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
    for (int64_t i = 0; i < n; ++i) {
      x[i] = convert<T>(draw_one(g));
    }
  });
}

double unit(GeneratorImpl& g) {
  double u = 0;
  fills::unit(g.engine, &u, 1);
  return u;
}

}  // namespace

void uniform_(const Tensor& out, double from, double to, const Generator& generator) {
  if (is_complex(out.dtype())) {
    return uniform_(parts_of(out), from, to, generator);
  }
  fill_in_order<set_floating>(
      "uniform_", out, generator,
      [&]<class T>(T* x, int64_t n, GeneratorImpl& g) { fills::fill_uniform(x, n, from, to, g); });
}

void normal_(const Tensor& out, double mean, double std, const Generator& generator) {
  if (is_complex(out.dtype())) {  // each part has half of the variance
    return normal_(parts_of(out), mean, std * 0.70710678118654752440, generator);
  }
  const bool together = out.is_contiguous();
  fill_in_order<set_floating>("normal_", out, generator,
                              [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
                                if (together) {
                                  fills::fill_normal(x, n, mean, std, g);
                                } else {
                                  fills::fill_normal_serially(x, n, mean, std, g);
                                }
                              });
}

void random__from(const Tensor& out, int64_t from, std::optional<int64_t> to,
                  const Generator& generator) {
  const RandomRange range(out.dtype(), from, to);
  if (is_wide_unsigned(out.dtype())) {
    const Tensor numbers = make_empty_like(out, kInt64);
    fill_in_order<set_Long>("random_", numbers, generator,
                            [&](int64_t* x, int64_t n, GeneratorImpl& g) {
                              fills::fill_integers(x, n, range.size(), from, g);
                            });
    copy_raw(out, numbers);
    return;
  }
  fill_in_order<set_real | set_Bool>("random_", out, generator,
                                     [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
                                       if (range.all_bits()) {
                                         fills::fill_all_bits(x, n, g);
                                       } else {
                                         fills::fill_integers(x, n, range.size(), from, g);
                                       }
                                     });
}
void random__to(const Tensor& out, int64_t to, const Generator& generator) {
  random__from(out, 0, to, generator);
}
void random_(const Tensor& out, const Generator& generator) {
  fill_in_order<set_real | set_Bool>(
      "random_", out, generator,
      []<class T>(T* x, int64_t n, GeneratorImpl& g) { fills::fill_random(x, n, g); });
}

void bernoulli__float(const Tensor& out, double p, const Generator& generator) {
  fill_in_order<set_real | set_Bool>(
      "bernoulli_", out, generator,
      [&]<class T>(T* x, int64_t n, GeneratorImpl& g) { fills::fill_bernoulli(x, n, p, g); });
}
void bernoulli__Tensor(const Tensor& out, const Tensor& p, const Generator& generator) {
  const OrderedInput chances(p, out);
  fill_in_order<set_real | set_Bool>(
      "bernoulli_", out, generator, [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
        if (chances.dtype() == kFloat64) {
          fills::fill_bernoulli(x, static_cast<const double*>(chances.data()), n, g);
        } else {
          fills::fill_bernoulli(x, static_cast<const float*>(chances.data()), n, g);
        }
      });
}
void _scaled_bernoulli_(const Tensor& out, double p, double value) {
  fill_in_order<set_floating>("dropout", out, default_generator(),
                              [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
                                fills::fill_bernoulli(x, n, p, g);
                                const auto v = static_cast<compute_t<T>>(value);
                                for (int64_t i = 0; i < n; ++i) {
                                  x[i] = static_cast<T>(static_cast<compute_t<T>>(x[i]) * v);
                                }
                              });
}

void exponential_(const Tensor& out, double lambd, const Generator& generator) {
  fill_in_order<set_floating>(
      "exponential_", out, generator,
      [&]<class T>(T* x, int64_t n, GeneratorImpl& g) { fills::fill_exponential(x, n, lambd, g); });
}
void cauchy_(const Tensor& out, double median, double sigma, const Generator& generator) {
  fill_one_by_one("cauchy_", out, generator,
                  [&](GeneratorImpl& g) { return cauchy_from(unit(g), median, sigma); });
}
void log_normal_(const Tensor& out, double mean, double std, const Generator& generator) {
  fill_one_by_one("log_normal_", out, generator,
                  [&](GeneratorImpl& g) { return exp_of(random::next_normal(g) * std + mean); });
}
void geometric_(const Tensor& out, double p, const Generator& generator) {
  fill_in_order<set_real>("geometric_", out, generator,
                          [&]<class T>(T* x, int64_t n, GeneratorImpl& g) {
                            for (int64_t i = 0; i < n; ++i) {
                              x[i] = convert<T>(geometric_from(unit(g), p));
                            }
                          });
}

void _draw_from_cumulative(const Tensor& out, const Tensor& cumulative, int64_t num_samples,
                           const Generator& generator) {
  const DrawLock draw(generator);
  const int64_t choices = cumulative.size(-1);
  auto* chosen = out.data<int64_t>();
  visit_dtype<set_floating>("multinomial", cumulative.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* row = cumulative.data<T>();
    for (int64_t i = 0; i < out.numel(); i += num_samples, row += choices) {
      for (int64_t k = 0; k < num_samples; ++k) {
        const double u = unit(draw.state());
        int64_t low = 0;
        int64_t high = choices;
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          if (static_cast<double>(static_cast<compute_t<T>>(row[middle])) < u) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        chosen[i + k] = low < choices ? low : choices - 1;
      }
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
