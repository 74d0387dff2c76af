// Recurrent layers. The hidden weights are packed once for all steps. A step is shared out by
// blocks of units: a task multiplies the hidden state with the rows of all gates of its units and
// applies the cell's formula while the sums are in the first-level cache. What it needs of other
// units is the state of the step before, so threads change no bit. Backward, the gradients of the
// gates go through time step by step; those of the weights are one product over all steps.
#include <cstring>
#include <string_view>

#include "core/parallel.h"
#include "cpu/gemm.h"
#include "cpu/isa/matmul/gemm_engine.h"
#include "generated/kernels.h"
#include "kernels/math.h"
#include "kernels/recurrent.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using recurrent::Cell;
using recurrent::Layer;

// Multiplications that are worth a thread's while.
constexpr int64_t least_work = int64_t{1} << 17;

template <class S, class T>
void read_run(T* to, const S* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    to[i] = static_cast<T>(from[i]);
  }
}
template <class S, class T>
void write_run(S* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    to[i] = S(from[i]);
  }
}

// At most nr values of a block of units.
template <class T>
inline void move_units(T* to, const T* from, int64_t n) {
  if (n == lanes<T>) {
    std::memcpy(to, from, lanes<T> * sizeof(T));
  } else {
    std::memcpy(to, from, n * sizeof(T));
  }
}

template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + math::exp(-x));
}

// Rows of A packed in panels times one panel of B: f(first row, rows, sums of rows x nr).
template <class T, class P, class F>
void each_row_panel(int64_t m, int64_t k, P* a, const F& f) {
  constexpr int64_t most = GemmBlocks<T>::max_rows;
  const int64_t panels = (m + most - 1) / most;
  int64_t i = 0;
  for (int64_t p = 0; p < panels; p++) {
    const int64_t rows = m * (p + 1) / panels - i;
    f(i, rows, a + i * k);
    i += rows;
  }
}

template <class T>
void panel_product(int64_t rows, int64_t k, const T* a, const T* b, T* c) {
  static constexpr auto kernels =
      micro_kernels<T>(std::make_index_sequence<GemmBlocks<T>::max_rows>());
  kernels[rows - 1](k, a, b, c, lanes<T>, false);
}

// to = from @ B for m rows, B in panels of nr columns: blocks of columns are tasks.
template <class T>
void times_panels(T* to, int64_t n, const T* a, int64_t m, int64_t k, const T* panels) {
  constexpr int64_t nr = lanes<T>;
  const int64_t grain = std::max<int64_t>(1, least_work / std::max<int64_t>(1, m * k * nr));
  parallel_for(0, (n + nr - 1) / nr, grain, [&](int64_t begin, int64_t end) {
    alignas(64) T sums[GemmBlocks<T>::max_rows * nr];
    for (int64_t j = begin; j < end; j++) {
      const int64_t columns = std::min(nr, n - j * nr);
      each_row_panel<T>(m, k, a, [&](int64_t i, int64_t rows, const T* packed) {
        panel_product(rows, k, packed, panels + j * nr * k, sums);
        for (int64_t r = 0; r < rows; r++) {
          std::copy(sums + r * nr, sums + r * nr + columns, to + (i + r) * n + j * nr);
        }
      });
    }
  });
}

template <class T>
void pack_state(T* to, const T* from, int64_t row, int64_t m, int64_t k) {
  const PackA<T, T> pack{from, row, 1, T(1)};
  each_row_panel<T>(m, k, to, [&](int64_t i, int64_t rows, T* at) { pack(at, i, rows, 0, k); });
}
template <class T>
int64_t packed_elements(int64_t m, int64_t k) {
  return m * k + Simd<T>::width;
}

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// ---- forward ----

template <class T, class F>
inline void apply_to_all(T* values, int64_t n, const F& f) {
#pragma GCC ivdep
  for (int64_t x = 0; x < n; x++) {
    values[x] = f(values[x]);
  }
}

// The cell's formula for n units, nr of every sequence of a panel: loops as long as that, so that a
// function's steps for one vector wait for none of another's. gates[g]: what the input and the
// hidden state give (of the gru's last one apart: the hidden state's share in gates[3]). Updates
// hidden (and cell), fills what is kept.
template <class T>
void apply_cell(Cell kind, int64_t n, T* __restrict first, T* __restrict second,
                T* __restrict third, T* __restrict fourth, T* __restrict hidden,
                T* __restrict cell) {
  switch (kind) {
    case Cell::Lstm:
      // A function at a time: short loops stay in registers.
      apply_to_all(first, n, [](T v) { return sigmoid(v); });
      apply_to_all(second, n, [](T v) { return sigmoid(v); });
      apply_to_all(third, n, [](T v) { return math::tanh(v); });
      apply_to_all(fourth, n, [](T v) { return sigmoid(v); });
      for (int64_t x = 0; x < n; x++) {
        cell[x] = second[x] * cell[x] + first[x] * third[x];
        hidden[x] = cell[x];
      }
      apply_to_all(hidden, n, [](T v) { return math::tanh(v); });
      for (int64_t x = 0; x < n; x++) {
        hidden[x] *= fourth[x];
      }
      return;
    case Cell::Gru:
      apply_to_all(first, n, [](T v) { return sigmoid(v); });
      apply_to_all(second, n, [](T v) { return sigmoid(v); });
      for (int64_t x = 0; x < n; x++) {
        third[x] += first[x] * fourth[x];
      }
      apply_to_all(third, n, [](T v) { return math::tanh(v); });
      for (int64_t x = 0; x < n; x++) {
        hidden[x] = third[x] + second[x] * (hidden[x] - third[x]);
      }
      return;
    case Cell::Tanh:
      std::copy_n(first, n, hidden);
      apply_to_all(hidden, n, [](T v) { return math::tanh(v); });
      return;
    case Cell::Relu:
      for (int64_t x = 0; x < n; x++) {
        hidden[x] = math::maximum(first[x], T(0));
      }
      return;
  }
}

// gate = what the hidden state gives (sums and bias; it stays in `sums` where that is another
// place) and what the input gives, for n of nr units.
template <class S, class T>
inline void add_gate(T* gate, T* sums, const T* __restrict bias, const S* __restrict given,
                     int64_t n) {
  const auto add = [&](auto count) __attribute__((always_inline)) {
    if (gate == sums) {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; j++) {
        sums[j] = static_cast<T>(given[j]) + (sums[j] + bias[j]);
      }
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; j++) {
        sums[j] += bias[j];
        gate[j] = static_cast<T>(given[j]);
      }
    }
  };
  // Loops of a known length have no ends to be looked for.
  n == lanes<T> ? add(std::integral_constant<int64_t, lanes<T>>()) : add(n);
}

// weight_hh as panels: [block of units][gate][hidden][nr].
template <class S, class T>
void pack_hidden_weights(T* to, const S* weight, const Layer& z) {
  constexpr int64_t nr = lanes<T>;
  for (int64_t u = 0; u < z.units; u += nr) {
    for (int64_t g = 0; g < z.gates; g++) {
      pack_lanes(to, weight + (g * z.units + u) * z.hidden, z.hidden, z.units - u, z.hidden, T(1));
      to += z.hidden * nr;
    }
  }
}

template <class S>
void forward(const Layer& z, const Tensor& output, const Tensor& last_hidden,
             const Tensor& last_cell, const Tensor& kept_gates, const Tensor& kept_cells,
             const Tensor& gates_in, const Tensor& first_hidden, const Tensor& first_cell,
             const Tensor& weight_hh, const Tensor& bias_hh, const Tensor& weight_hr, bool keep) {
  using T = compute_t<S>;
  constexpr int64_t nr = lanes<T>;
  const bool projected = weight_hr.defined();
  const int64_t blocks = (z.units + nr - 1) / nr;
  const Scratch<T> weights(blocks * z.gates * z.hidden * nr + nr);
  pack_hidden_weights(weights.data(), weight_hh.data<S>(), z);
  const Scratch<T> projection(projected ? round_up(z.hidden, nr) * z.units + nr : 0);
  if (projected) {
    for (int64_t j = 0; j < z.hidden; j += nr) {
      pack_lanes(projection + j * z.units, weight_hr.data<S>() + j * z.units, z.units, z.hidden - j,
                 z.units, T(1));
    }
  }
  const Scratch<T> bias(z.gates * z.units);
  std::fill_n(bias.data(), z.gates * z.units, T(0));
  if (bias_hh.defined()) {
    read_run(bias.data(), bias_hh.data<S>(), z.gates * z.units);
  }
  const Scratch<T> hidden(z.batch * z.hidden);
  const Scratch<T> made(projected ? z.batch * z.units : 0);  // before the projection
  const Scratch<T> cell(first_cell.defined() ? z.batch * z.units : 0);
  const Scratch<T> packed(packed_elements<T>(z.batch, std::max(z.hidden, z.units)));
  read_run(hidden.data(), first_hidden.data<S>(), z.batch * z.hidden);
  if (first_cell.defined()) {
    read_run(cell.data(), first_cell.data<S>(), z.batch * z.units);
  }
  T* const state = projected ? made.data() : hidden.data();
  const S* const given = gates_in.data<S>();
  S* const out = output.data<S>();
  const bool lstm = z.cell == Cell::Lstm;
  const int64_t kept = keep ? z.kept : 0;
  T* const keep_gates = kept > 0 ? kept_gates.data<T>() : nullptr;
  T* const keep_cells = keep && lstm ? kept_cells.data<T>() : nullptr;
  for (int64_t step = 0; step < z.steps; step++) {
    const int64_t t = z.step(step);
    const int64_t m = z.sizes[t];
    pack_state(packed.data(), hidden.data(), z.hidden, m, z.hidden);
    const int64_t work = m * z.gates * z.hidden * nr;
    parallel_for(
        0, blocks, std::max<int64_t>(1, least_work / std::max<int64_t>(1, work)),
        [&](int64_t begin, int64_t end) {
          constexpr int64_t panel = GemmBlocks<T>::max_rows * nr;
          alignas(64) T sums[4][panel];
          alignas(64) T h[panel];
          alignas(64) T c[panel];
          const int64_t used = std::min(m, GemmBlocks<T>::max_rows) * nr;
          for (T* units : {sums[2], sums[3], h, c}) {
            std::fill_n(units, used, T(0));  // units behind the last one are computed, too
          }
          const bool gru = z.cell == Cell::Gru;
          T* const gates[4] = {sums[0], sums[1], sums[gru ? 3 : 2], sums[gru ? 2 : 3]};
          for (int64_t block = begin; block < end; block++) {
            const int64_t u = block * nr;
            const int64_t n = std::min(nr, z.units - u);
            each_row_panel<T>(m, z.hidden, packed.data(), [&](int64_t i, int64_t rows, const T* a) {
              // What the input gives to these rows lies far apart: it is on its way while the
              // products run.
              for (int64_t r = 0; r < rows * z.gates; r++) {
                const S* x =
                    given + (z.row(t, i + r / z.gates) * z.gates + r % z.gates) * z.units + u;
                __builtin_prefetch(x);
                __builtin_prefetch(x + n - 1);
              }
              for (int64_t g = 0; g < z.gates; g++) {
                panel_product(rows, z.hidden, a, weights + (block * z.gates + g) * z.hidden * nr,
                              sums[g]);
              }
              for (int64_t r = 0; r < rows; r++) {
                const int64_t b = i + r;
                const S* x = given + z.row(t, b) * z.gates * z.units + u;
                for (int64_t g = 0; g < z.gates; g++) {
                  add_gate(gates[g] + r * nr, sums[g] + r * nr, bias + g * z.units + u,
                           x + g * z.units, n);
                }
                if (gru) {
                  move_units<T>(h + r * nr, state + b * z.units + u, n);
                }
                if (lstm) {
                  move_units<T>(c + r * nr, cell + b * z.units + u, n);
                }
              }
              apply_cell<T>(z.cell, rows * nr, gates[0], gates[1], gates[2], gates[3], h, c);
              for (int64_t r = 0; r < rows; r++) {
                const int64_t b = i + r;
                const int64_t own_row = z.row_of_step(t, b);
                for (int64_t g = 0; g < kept; g++) {
                  move_units<T>(keep_gates + (own_row * kept + g) * z.units + u, gates[g] + r * nr,
                                n);
                }
                if (lstm) {
                  move_units<T>(cell + b * z.units + u, c + r * nr, n);
                }
                if (keep_cells != nullptr) {
                  move_units<T>(keep_cells + own_row * z.units + u, c + r * nr, n);
                }
                T* const hidden_row = state + b * z.units + u;
                if (projected) {
                  move_units<T>(hidden_row, h + r * nr, n);
                  continue;
                }
                S* const to = out + z.row(t, b) * z.hidden + u;
#pragma GCC ivdep
                for (int64_t j = 0; j < n; j++) {
                  const S shown = S(h[r * nr + j]);
                  to[j] = shown;
                  hidden_row[j] = static_cast<T>(shown);  // the state is what the output shows
                }
              }
            });
          }
        });
    if (projected) {
      pack_state(packed.data(), made.data(), z.units, m, z.units);
      times_panels(hidden.data(), z.hidden, packed.data(), m, z.units, projection.data());
      for (int64_t b = 0; b < m; b++) {
        S* const to = out + z.row(t, b) * z.hidden;
        for (int64_t j = 0; j < z.hidden; j++) {
          to[j] = S(hidden[b * z.hidden + j]);
          hidden[b * z.hidden + j] = static_cast<T>(to[j]);
        }
      }
    }
  }
  write_run(last_hidden.data<S>(), hidden.data(), z.batch * z.hidden);
  if (lstm) {
    write_run(last_cell.data<S>(), cell.data(), z.batch * z.units);
  }
}

// ---- backward ----

// The gradients of nr units of one sequence. `grad` is that of the hidden state and becomes what
// passes to the one before beside the weights; `grad_cell` likewise. `gates` are the kept values
// and become the gradients of what entered them, `inner` that of the gru's inner sum.
template <class T>
void cell_backward(Cell kind, T (*__restrict gates)[lanes<T>], T* __restrict inner,
                   const T* __restrict hidden, const T* __restrict hidden_before,
                   const T* __restrict cell, const T* __restrict cell_before, T* __restrict grad,
                   T* __restrict grad_cell) {
  constexpr int64_t nr = lanes<T>;
  switch (kind) {
    case Cell::Lstm:
      for (int64_t x = 0; x < nr; x++) {
        const T i = gates[0][x];
        const T f = gates[1][x];
        const T g = gates[2][x];
        const T o = gates[3][x];
        const T bent = math::tanh(cell[x]);
        const T dc = grad_cell[x] + grad[x] * o * (T(1) - bent * bent);
        gates[0][x] = dc * g * i * (T(1) - i);
        gates[1][x] = dc * cell_before[x] * f * (T(1) - f);
        gates[2][x] = dc * i * (T(1) - g * g);
        gates[3][x] = grad[x] * bent * o * (T(1) - o);
        grad_cell[x] = dc * f;
        grad[x] = 0;
      }
      return;
    case Cell::Gru:
      for (int64_t x = 0; x < nr; x++) {
        const T r = gates[0][x];
        const T z = gates[1][x];
        const T n = gates[2][x];
        const T dn = grad[x] * (T(1) - z) * (T(1) - n * n);
        const T dr = dn * gates[3][x];
        gates[0][x] = dr * r * (T(1) - r);
        gates[1][x] = grad[x] * (hidden_before[x] - n) * z * (T(1) - z);
        gates[2][x] = dn;
        inner[x] = dn * r;
        grad[x] = grad[x] * z;
      }
      return;
    case Cell::Tanh:
      for (int64_t x = 0; x < nr; x++) {
        gates[0][x] = grad[x] * (T(1) - hidden[x] * hidden[x]);
        grad[x] = 0;
      }
      return;
    case Cell::Relu:
      for (int64_t x = 0; x < nr; x++) {
        gates[0][x] = hidden[x] > T(0) ? grad[x] : T(0);
        grad[x] = 0;
      }
      return;
  }
}

// to = a.T @ b over all rows, in the tensor's dtype: of 16-bit floats, too, where the processor
// multiplies them.
template <class S, class T>
void sum_over_rows(const Tensor& to, const T* a, int64_t m, const T* b, int64_t n, int64_t rows) {
  Gemm g{.dtype = dtype_of_v<T>, .m = m, .n = n, .k = rows, .a = {}, .b = {}, .c = {}};
  g.a = {const_cast<T*>(a), 1, m};
  g.b = {const_cast<T*>(b), n, 1};
  if constexpr (std::is_same_v<S, T>) {
    g.c = {to.data<T>(), n, 1};
    gemm(g);
  } else {
    Gemm narrow = g;
    narrow.dtype = dtype_of_v<S>;
    narrow.c = {to.data<S>(), n, 1};
    if (uses_own_gemm(narrow)) {
      const Scratch<S> narrow_a(rows * m);
      const Scratch<S> narrow_b(rows * n);
      write_run(narrow_a.data(), a, rows * m);
      write_run(narrow_b.data(), b, rows * n);
      narrow.a.data = narrow_a.data();
      narrow.b.data = narrow_b.data();
      gemm(narrow);
      return;
    }
    const Scratch<T> sums(m * n);
    g.c = {sums.data(), n, 1};
    gemm(g);
    write_run(to.data<S>(), sums.data(), m * n);
  }
}

template <class S>
void backward(const Layer& z, const Tensor& grad_gates, const Tensor& grad_first_hidden,
              const Tensor& grad_first_cell, const Tensor& grad_weight_hh,
              const Tensor& grad_bias_hh, const Tensor& grad_weight_hr, const Tensor& grad_output,
              const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& first_hidden,
              const Tensor& first_cell, const Tensor& weight_hh, const Tensor& weight_hr,
              const Tensor& output, const Tensor& kept_gates, const Tensor& kept_cells,
              bool biased) {
  using T = compute_t<S>;
  constexpr int64_t nr = lanes<T>;
  const bool projected = weight_hr.defined();
  const bool lstm = z.cell == Cell::Lstm;
  const int64_t wide = z.gates * z.units;
  const int64_t blocks = (z.units + nr - 1) / nr;
  // dG @ weight_hh, and where projected dh @ weight_hr.
  const Scratch<T> weights(round_up(z.hidden, nr) * wide);
  pack_rows_of_b(weights.data(), weight_hh.data<S>(), z.hidden, wide, wide, z.hidden, T(1));
  const Scratch<T> projection(projected ? blocks * nr * z.hidden : 0);
  if (projected) {
    pack_rows_of_b(projection.data(), weight_hr.data<S>(), z.units, z.hidden, z.hidden, z.units,
                   T(1));
  }
  const Scratch<T> hidden_before(z.rows * z.hidden);
  const Scratch<T> projected_grads(projected ? z.rows * z.hidden : 0);
  const Scratch<T> made(projected ? z.rows * z.units : 0);
  const Scratch<T> grad(z.batch * z.hidden);
  const Scratch<T> grad_made(projected ? z.batch * z.units : 0);
  const Scratch<T> grad_c(lstm ? z.batch * z.units : 0);
  const Scratch<T> through(z.batch * z.hidden);
  const Scratch<T> packed(packed_elements<T>(z.batch, std::max(wide, z.hidden)));
  const S* const shown = output.data<S>();
  const S* const grads = grad_output.data<S>();
  S* const to = grad_gates.data<S>();
  // The gradients of what the hidden state gives: for most cells those of what the input gives.
  const bool apart = z.cell == Cell::Gru || !std::is_same_v<S, T>;
  const Scratch<T> inner_memory(apart ? z.rows * wide : 0);
  T* inner_grads = inner_memory;
  if constexpr (std::is_same_v<S, T>) {
    inner_grads = apart ? inner_grads : to;
  }
  const T* const keep = z.kept > 0 ? kept_gates.data<T>() : nullptr;
  const T* const keep_cells = lstm ? kept_cells.data<T>() : nullptr;
  read_run(grad.data(), grad_hidden.data<S>(), z.batch * z.hidden);
  if (lstm) {
    read_run(grad_c.data(), grad_cell.data<S>(), z.batch * z.units);
  }
  for (int64_t t = 0; t < z.steps; t++) {
    const int64_t came = z.sequences_from_before(t);
    for (int64_t b = 0; b < z.sizes[t]; b++) {
      const S* from = b < came ? shown + z.row(z.before(t), b) * z.hidden
                               : first_hidden.data<S>() + b * z.hidden;
      read_run(hidden_before + z.row(t, b) * z.hidden, from, z.hidden);
    }
  }
  for (int64_t step = 0; step < z.steps; step++) {
    const int64_t t = z.step(z.steps - 1 - step);
    const int64_t m = z.sizes[t];
    const int64_t came = z.sequences_from_before(t);
    for (int64_t b = 0; b < m; b++) {
      const S* from = grads + z.row(t, b) * z.hidden;
      for (int64_t j = 0; j < z.hidden; j++) {
        grad[b * z.hidden + j] += static_cast<T>(from[j]);
      }
    }
    if (projected) {
      std::copy(grad.data(), grad + m * z.hidden, projected_grads + z.row_of_step(t, 0) * z.hidden);
      pack_state(packed.data(), grad.data(), z.hidden, m, z.hidden);
      times_panels(grad_made.data(), z.units, packed.data(), m, z.hidden, projection.data());
    }
    T* const unit_grads = projected ? grad_made.data() : grad.data();
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, m * z.gates * nr));
    parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      alignas(64) T gates[4][nr] = {};
      alignas(64) T inner[nr] = {};
      alignas(64) T d[nr] = {};
      alignas(64) T dc[nr] = {};
      alignas(64) T h[nr] = {};
      alignas(64) T h0[nr] = {};
      alignas(64) T c[nr] = {};
      alignas(64) T c0[nr] = {};
      for (int64_t block = begin; block < end; block++) {
        const int64_t u = block * nr;
        const int64_t n = std::min(nr, z.units - u);
        for (int64_t b = 0; b < m; b++) {
          const int64_t own = z.row_of_step(t, b);
          const int64_t row = z.row(t, b);
          for (int64_t g = 0; g < z.kept; g++) {
            const T* from = keep + (own * z.kept + g) * z.units + u;
            move_units<T>(gates[g], from, n);
          }
          move_units<T>(d, unit_grads + b * z.units + u, n);
          if (lstm) {
            move_units<T>(dc, grad_c + b * z.units + u, n);
            move_units<T>(c, keep_cells + own * z.units + u, n);
            if (b < came) {
              const T* from = keep_cells + z.row_of_step(z.before(t), b) * z.units + u;
              move_units<T>(c0, from, n);
            } else {
              read_run(c0, first_cell.data<S>() + b * z.units + u, n);
            }
            if (projected) {
              for (int64_t j = 0; j < n; j++) {
                h[j] = c[j];
              }
              for (int64_t j = 0; j < nr; j++) {
                h[j] = gates[3][j] * math::tanh(h[j]);
              }
              move_units<T>(made + own * z.units + u, h, n);
            }
          } else {
            read_run(h, shown + row * z.hidden + u, n);
            move_units<T>(h0, hidden_before + row * z.hidden + u, n);
          }
          cell_backward<T>(z.cell, gates, inner, h, h0, c, c0, d, dc);
          for (int64_t g = 0; g < z.gates; g++) {
            const T* const from_hidden = z.cell == Cell::Gru && g == 2 ? inner : gates[g];
            move_units<T>(inner_grads + row * wide + g * z.units + u, from_hidden, n);
            if (apart) {
              write_run(to + row * wide + g * z.units + u, gates[g], n);
            }
          }
          if (lstm) {
            move_units<T>(grad_c + b * z.units + u, dc, n);
          }
          if (!projected) {
            move_units<T>(unit_grads + b * z.units + u, d, n);
          }
        }
      }
    });
    pack_state(packed.data(), inner_grads + z.row(t, 0) * wide, z.row_step() * wide, m, wide);
    times_panels(through.data(), z.hidden, packed.data(), m, wide, weights.data());
    for (int64_t i = 0; i < m * z.hidden; i++) {
      grad[i] = projected ? through[i] : grad[i] + through[i];
    }
  }
  write_run(grad_first_hidden.data<S>(), grad.data(), z.batch * z.hidden);
  if (lstm) {
    write_run(grad_first_cell.data<S>(), grad_c.data(), z.batch * z.units);
  }
  sum_over_rows<S, T>(grad_weight_hh, inner_grads, wide, hidden_before.data(), z.hidden, z.rows);
  if (projected) {
    sum_over_rows<S, T>(grad_weight_hr, projected_grads.data(), z.hidden, made.data(), z.units,
                        z.rows);
  }
  const Scratch<T> bias(wide);
  std::fill_n(bias.data(), wide, T(0));
  for (int64_t i = 0; i < (biased ? z.rows : 0); i++) {
    for (int64_t j = 0; j < wide; j++) {
      bias[j] += inner_grads[i * wide + j];
    }
  }
  write_run(grad_bias_hh.data<S>(), bias.data(), wide);
}

}  // namespace

void _recurrent_layer(const Tensor& output, const Tensor& last_hidden, const Tensor& last_cell,
                      const Tensor& kept_gates, const Tensor& kept_cells, const Tensor& gates,
                      const Tensor& hidden, const Tensor& cell, const Tensor& weight_hh,
                      const Tensor& bias_hh, const Tensor& weight_hr, IntArrayRef batch_sizes,
                      std::string_view mode, bool reverse, bool batch_first, bool keep) {
  const Layer layer(hidden, weight_hh, batch_sizes, mode, reverse, batch_first);
  visit_dtype<set_floating>("recurrent layer", gates.dtype(), [&](auto tag) {
    forward<typename decltype(tag)::type>(layer, output, last_hidden, last_cell, kept_gates,
                                          kept_cells, gates, hidden, cell, weight_hh, bias_hh,
                                          weight_hr, keep);
  });
}

void _recurrent_layer_backward(const Tensor& grad_gates, const Tensor& grad_first_hidden,
                               const Tensor& grad_first_cell, const Tensor& grad_weight_hh,
                               const Tensor& grad_bias_hh, const Tensor& grad_weight_hr,
                               const Tensor& grad_output, const Tensor& grad_hidden,
                               const Tensor& grad_cell, const Tensor& hidden, const Tensor& cell,
                               const Tensor& weight_hh, const Tensor& bias_hh,
                               const Tensor& weight_hr, const Tensor& output,
                               const Tensor& kept_gates, const Tensor& kept_cells,
                               IntArrayRef batch_sizes, std::string_view mode, bool reverse,
                               bool batch_first) {
  const Layer layer(hidden, weight_hh, batch_sizes, mode, reverse, batch_first);
  visit_dtype<set_floating>("recurrent layer", output.dtype(), [&](auto tag) {
    backward<typename decltype(tag)::type>(
        layer, grad_gates, grad_first_hidden, grad_first_cell, grad_weight_hh, grad_bias_hh,
        grad_weight_hr, grad_output, grad_hidden, grad_cell, hidden, cell, weight_hh, weight_hr,
        output, kept_gates, kept_cells, bias_hh.defined());
  });
}

}  // namespace rushlight::cpu::RL_ISA
