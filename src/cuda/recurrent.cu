// Recurrent layers: for each step a product with the hidden weights and one kernel for the cell's
// formula, as in src/cpu/isa/nn/recurrent.cpp. Backward, the gradients of the gates go through time
// step by step; those of the weights are one product over all steps.
#include "cuda/column.h"
#include "cuda/matmul.h"
#include "cuda/rows.cuh"
#include "kernels/recurrent.h"

namespace rushlight {

namespace cuda {

namespace {

using recurrent::Cell;

struct Layer : recurrent::Layer {
  using recurrent::Layer::Layer;
  // Rows of sequences begin … end of step t: as tensors have them, and in the order of the steps.
  Tensor rows_of(const Tensor& t, int64_t at, int64_t begin, int64_t end) const {
    const int64_t width = t.size(1);
    return make_view(t, {{end - begin, width},
                         {row_step() * width, 1},
                         t.storage_offset() + row(at, begin) * width});
  }
  Tensor rows_of_step(const Tensor& t, int64_t at) const {
    const int64_t width = t.numel() / std::max<int64_t>(rows, 1);
    return make_view(
        t, {{sizes[at], width}, {width, 1}, t.storage_offset() + row_of_step(at, 0) * width});
  }
};

Tensor first_rows(const Tensor& t, int64_t n) {
  return make_view(t, {{n, t.size(1)}, {t.size(1), 1}, t.storage_offset()});
}
Tensor transpose_matrix(const Tensor& t) {
  return make_view(t,
                   {{t.size(1), t.size(0)}, {t.strides()[1], t.strides()[0]}, t.storage_offset()});
}
// The sequences and units of a step: f is told sequence and unit.
Space<2> cells_of(int64_t sequences, int64_t units) {
  return {{sequences, units}, {DimVector{1, 0}, DimVector{0, 1}}};
}

template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + math::exp(-x));
}

// H: dtype of what the cell makes, the hidden state's where no projection follows.
template <class S, class H>
struct Step {
  using T = compute_t<S>;
  Cell kind;
  int64_t units;
  int64_t gates;
  int64_t row_step;  // between the rows of sequences in `given` and `output`
  const S* given;    // what the input gives to the gates
  const T* sums;     // what the hidden state gives
  const S* bias;     // null: none
  H* hidden;         // of which the gru reads the units that it writes
  T* cell;
  T* kept_gates;  // null where nothing is kept
  T* kept_cells;
  __device__ void operator()(const int64_t (&at)[2]) const {
    const int64_t b = at[0];
    const int64_t u = at[1];
    const int64_t wide = gates * units;
    T x[4];
    T inner = 0;
    for (int64_t g = 0; g < gates; g++) {
      const int64_t column = g * units + u;
      const T from_input = widen(given[b * row_step * wide + column]);
      inner = sums[b * wide + column] + (bias != nullptr ? widen(bias[column]) : T(0));
      x[g] = kind == Cell::Gru && g == 2 ? from_input : from_input + inner;
    }
    T h;
    if (kind == Cell::Lstm) {
      x[0] = sigmoid(x[0]);
      x[1] = sigmoid(x[1]);
      x[2] = math::tanh(x[2]);
      x[3] = sigmoid(x[3]);
      const T c = x[1] * cell[b * units + u] + x[0] * x[2];
      cell[b * units + u] = c;
      if (kept_cells != nullptr) {
        kept_cells[b * units + u] = c;
      }
      h = math::tanh(c) * x[3];
    } else if (kind == Cell::Gru) {
      x[0] = sigmoid(x[0]);
      x[1] = sigmoid(x[1]);
      x[2] = math::tanh(x[2] + x[0] * inner);
      x[3] = inner;
      h = x[2] + x[1] * (widen(hidden[b * units + u]) - x[2]);
    } else {
      h = kind == Cell::Tanh ? math::tanh(x[0]) : math::maximum(x[0], T(0));
    }
    if (kept_gates != nullptr) {
      for (int64_t g = 0; g < 4; g++) {
        kept_gates[(b * 4 + g) * units + u] = x[g];
      }
    }
    hidden[b * units + u] = narrow<H>(h);
  }
};

template <class S>
struct StepBackward {
  using T = compute_t<S>;
  Cell kind;
  int64_t units;
  int64_t gates;
  int64_t row_step;     // between the rows of sequences in the tensors
  const T* grad;        // of what the cell made
  T* passed;            // what passes to the hidden state before, beside the weights; or null
  T* grad_cell;         // becomes that of the cell before
  const T* kept_gates;  // null where nothing is kept
  const T* cell;
  const T* cell_before;  // of sequences below `came`
  const S* first_cell;   // of the others
  int64_t came;
  const S* output;  // null where it is not what the cell made
  const T* hidden_before;
  T* made;        // what the cell made, for the weight of a projection; or null
  S* grad_gates;  // of what the input gave
  T* grad_inner;  // of what the hidden state gave
  __device__ void operator()(const int64_t (&at)[2]) const {
    const int64_t b = at[0];
    const int64_t u = at[1];
    const int64_t here = b * units + u;
    const int64_t wide = gates * units;
    const T d = grad[here];
    T x[4] = {};
    for (int64_t g = 0; g < 4 && kept_gates != nullptr; g++) {
      x[g] = kept_gates[(b * 4 + g) * units + u];
    }
    T inner = 0;
    T rest = 0;
    if (kind == Cell::Lstm) {
      const T before = b < came ? cell_before[here] : static_cast<T>(widen(first_cell[here]));
      const T bent = math::tanh(cell[here]);
      const T dc = grad_cell[here] + d * x[3] * (T(1) - bent * bent);
      if (made != nullptr) {
        made[here] = x[3] * bent;
      }
      const T i = x[0];
      const T f = x[1];
      const T g = x[2];
      const T o = x[3];
      x[0] = dc * g * i * (T(1) - i);
      x[1] = dc * before * f * (T(1) - f);
      x[2] = dc * i * (T(1) - g * g);
      x[3] = d * bent * o * (T(1) - o);
      grad_cell[here] = dc * f;
    } else if (kind == Cell::Gru) {
      const T r = x[0];
      const T z = x[1];
      const T n = x[2];
      const T dn = d * (T(1) - z) * (T(1) - n * n);
      x[0] = dn * x[3] * r * (T(1) - r);
      x[1] = d * (hidden_before[b * row_step * units + u] - n) * z * (T(1) - z);
      x[2] = dn;
      inner = dn * r;
      rest = d * z;
    } else {
      const T h = widen(output[b * row_step * units + u]);
      x[0] = kind == Cell::Tanh ? d * (T(1) - h * h) : h > T(0) ? d : T(0);
    }
    for (int64_t g = 0; g < gates; g++) {
      const int64_t place = b * row_step * wide + g * units + u;
      grad_gates[place] = narrow<S>(x[g]);
      grad_inner[place] = kind == Cell::Gru && g == 2 ? inner : x[g];
    }
    if (passed != nullptr) {
      passed[here] = rest;
    }
  }
};

template <class T>
struct AddRows {
  T* sums;
  const T* terms;
  __device__ void operator()(const int64_t (&at)[2]) const { sums[at[0]] += terms[at[1]]; }
};

template <class T>
T* data_or_null(const Tensor& t) {
  return t.defined() && t.numel() != 0 ? t.data<T>() : nullptr;
}

template <class S>
void forward(const Layer& z, const Tensor& output, const Tensor& last_hidden,
             const Tensor& last_cell, const Tensor& kept_gates, const Tensor& kept_cells,
             const Tensor& given, const Tensor& first_hidden, const Tensor& first_cell,
             const Tensor& weight_hh, const Tensor& bias_hh, const Tensor& weight_hr, bool keep) {
  using T = compute_t<S>;
  const Device device = output.device();
  const Launch launch(device);
  const bool projected = weight_hr.defined();
  const bool lstm = z.cell == Cell::Lstm;
  const int64_t wide = z.gates * z.units;
  const auto room = [&](int64_t rows, int64_t width, ScalarType dtype) {
    return make_empty({rows, width}, dtype, device);
  };
  const Tensor hidden = room(z.batch, z.hidden, dtype_of_v<S>);
  copy_raw(hidden, first_hidden);
  // What cells make before a projection is not rounded to 16 bits.
  const Tensor made = projected ? room(z.batch, z.units, dtype_of_v<T>) : hidden;
  const Tensor shown = projected ? room(z.batch, z.hidden, dtype_of_v<T>) : hidden;
  const Tensor projection = projected ? cast_raw(weight_hr, dtype_of_v<T>) : Tensor();
  const Tensor cell = room(lstm ? z.batch : 0, z.units, dtype_of_v<T>);
  if (lstm) {
    copy_raw(cell, first_cell);
  }
  const Tensor sums = room(z.batch, wide, dtype_of_v<T>);
  for (int64_t i = 0; i < z.steps; i++) {
    const int64_t t = z.step(i);
    const int64_t m = z.sizes[t];
    if (m == 0) {
      continue;
    }
    multiply("recurrent layer", first_rows(sums, m), first_rows(hidden, m),
             transpose_matrix(weight_hh), 0, 1);
    const auto step = [&](auto tag) {
      using H = typename decltype(tag)::type;
      each(launch, cells_of(m, z.units),
           Step<S, H>{
               z.cell, z.units, z.gates, z.row_step(), z.rows_of(given, t, 0, m).template data<S>(),
               sums.data<T>(), bias_hh.defined() ? bias_hh.data<S>() : nullptr, made.data<H>(),
               data_or_null<T>(cell),
               keep && z.kept > 0 ? z.rows_of_step(kept_gates, t).template data<T>() : nullptr,
               keep && lstm ? z.rows_of_step(kept_cells, t).template data<T>() : nullptr});
    };
    if (projected) {
      step(TypeTag<T>{});
      multiply("recurrent layer", first_rows(shown, m), first_rows(made, m),
               transpose_matrix(projection), 0, 1);
      copy_raw(first_rows(hidden, m), first_rows(shown, m));
    } else {
      step(TypeTag<S>{});
    }
    copy_raw(z.rows_of(output, t, 0, m), first_rows(hidden, m));
  }
  copy_raw(last_hidden, hidden);
  if (lstm) {
    copy_raw(last_cell, cell);
  }
}

struct Gradients {
  const Tensor& gates;
  const Tensor& first_hidden;
  const Tensor& first_cell;
  const Tensor& weight_hh;
  const Tensor& bias_hh;
  const Tensor& weight_hr;
};

template <class S>
void backward(const Layer& z, const Gradients& to, const Tensor& grad_output,
              const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& first_hidden,
              const Tensor& first_cell, const Tensor& weight_hh, const Tensor& weight_hr,
              const Tensor& output, const Tensor& kept_gates, const Tensor& kept_cells,
              bool biased) {
  using T = compute_t<S>;
  const Device device = output.device();
  const Launch launch(device);
  const bool projected = weight_hr.defined();
  const bool lstm = z.cell == Cell::Lstm;
  const int64_t wide = z.gates * z.units;
  const auto room = [&](int64_t rows, int64_t width) {
    return make_empty({rows, width}, dtype_of_v<T>, device);
  };
  const Tensor weights = cast_raw(weight_hh, dtype_of_v<T>);
  const Tensor projection = projected ? cast_raw(weight_hr, dtype_of_v<T>) : Tensor();
  const Tensor hidden_before = room(z.rows, z.hidden);
  const Tensor inner = room(z.rows, wide);
  const Tensor made = room(projected ? z.rows : 0, z.units);
  const Tensor projected_grads = room(projected ? z.rows : 0, z.hidden);
  const Tensor grad_made = room(z.batch, z.units);
  const Tensor grad = room(z.batch, z.hidden);
  copy_raw(grad, grad_hidden);
  const Tensor through_cell = room(lstm ? z.batch : 0, z.units);
  if (lstm) {
    copy_raw(through_cell, grad_cell);
  }
  const Tensor terms = cast_raw(grad_output, dtype_of_v<T>);
  for (int64_t i = z.steps; i-- > 0;) {
    const int64_t t = z.step(i);
    const int64_t m = z.sizes[t];
    const int64_t came = z.sequences_from_before(t);
    if (m == 0) {
      continue;
    }
    const Tensor before = z.rows_of(hidden_before, t, 0, m);
    if (came > 0) {
      copy_raw(z.rows_of(hidden_before, t, 0, came), z.rows_of(output, z.before(t), 0, came));
    }
    if (came < m) {
      copy_raw(z.rows_of(hidden_before, t, came, m),
               make_view(first_hidden, {{m - came, z.hidden},
                                        {z.hidden, 1},
                                        first_hidden.storage_offset() + came * z.hidden}));
    }
    const Tensor mine = first_rows(grad, m);
    const Tensor added = z.rows_of(terms, t, 0, m);
    each(launch, Space<2>{mine.sizes(), {mine.strides(), added.strides()}},
         AddRows<T>{mine.data<T>(), added.data<T>()});
    const Tensor units_grad = first_rows(grad_made, m);
    if (projected) {
      copy_raw(z.rows_of_step(projected_grads, t), mine);
      multiply("recurrent layer", units_grad, mine, projection, 0, 1);
    } else {
      copy_raw(units_grad, mine);
    }
    const Tensor gates_here = z.rows_of(inner, t, 0, m);
    each(
        launch, cells_of(m, z.units),
        StepBackward<S>{
            z.cell, z.units, z.gates, z.row_step(), units_grad.data<T>(),
            projected ? nullptr : mine.data<T>(), data_or_null<T>(through_cell),
            z.kept > 0 ? z.rows_of_step(kept_gates, t).template data<T>() : nullptr,
            lstm ? z.rows_of_step(kept_cells, t).template data<T>() : nullptr,
            lstm && came > 0 ? z.rows_of_step(kept_cells, z.before(t)).template data<T>() : nullptr,
            lstm ? first_cell.data<S>() : nullptr, came,
            projected ? nullptr : z.rows_of(output, t, 0, m).template data<S>(),
            projected ? nullptr : before.data<T>(),
            projected ? z.rows_of_step(made, t).template data<T>() : nullptr,
            z.rows_of(to.gates, t, 0, m).template data<S>(), gates_here.data<T>()});
    multiply("recurrent layer", mine, gates_here, weights, projected ? 0 : 1, 1);
  }
  copy_raw(to.first_hidden, grad);
  if (lstm) {
    copy_raw(to.first_cell, through_cell);
  }
  const auto product = [&](const Tensor& out, const Tensor& a, const Tensor& b) {
    const Tensor sums = room(a.size(1), b.size(1));
    multiply("recurrent layer", sums, transpose_matrix(a), b, 0, 1);
    copy_raw(out, sums);
  };
  product(to.weight_hh, inner, hidden_before);
  if (projected) {
    product(to.weight_hr, projected_grads, made);
  }
  if (biased) {
    const Tensor sums = make_empty({wide}, dtype_of_v<T>, device);
    cuda::sum(sums, inner, IntArrayRef({0}), false, {});
    copy_raw(to.bias_hh, sums);
  } else {
    fill_raw(to.bias_hh, 0);
  }
}

}  // namespace

}  // namespace cuda

void cuda::_recurrent_layer(const Tensor& output, const Tensor& last_hidden,
                            const Tensor& last_cell, const Tensor& kept_gates,
                            const Tensor& kept_cells, const Tensor& gates, const Tensor& hidden,
                            const Tensor& cell, const Tensor& weight_hh, const Tensor& bias_hh,
                            const Tensor& weight_hr, IntArrayRef batch_sizes, std::string_view mode,
                            bool reverse, bool batch_first, bool keep) {
  const Layer layer(hidden, weight_hh, batch_sizes, mode, reverse, batch_first);
  visit_dtype<set_floating>("recurrent layer", gates.dtype(), [&](auto tag) {
    forward<typename decltype(tag)::type>(layer, output, last_hidden, last_cell, kept_gates,
                                          kept_cells, gates, hidden, cell, weight_hh, bias_hh,
                                          weight_hr, keep);
  });
}

void cuda::_recurrent_layer_backward(const Tensor& grad_gates, const Tensor& grad_first_hidden,
                                     const Tensor& grad_first_cell, const Tensor& grad_weight_hh,
                                     const Tensor& grad_bias_hh, const Tensor& grad_weight_hr,
                                     const Tensor& grad_output, const Tensor& grad_hidden,
                                     const Tensor& grad_cell, const Tensor& hidden,
                                     const Tensor& cell, const Tensor& weight_hh,
                                     const Tensor& bias_hh, const Tensor& weight_hr,
                                     const Tensor& output, const Tensor& kept_gates,
                                     const Tensor& kept_cells, IntArrayRef batch_sizes,
                                     std::string_view mode, bool reverse, bool batch_first) {
  const Layer layer(hidden, weight_hh, batch_sizes, mode, reverse, batch_first);
  const Gradients to{grad_gates,     grad_first_hidden, grad_first_cell,
                     grad_weight_hh, grad_bias_hh,      grad_weight_hr};
  visit_dtype<set_floating>("recurrent layer", output.dtype(), [&](auto tag) {
    backward<typename decltype(tag)::type>(layer, to, grad_output, grad_hidden, grad_cell, hidden,
                                           cell, weight_hh, weight_hr, output, kept_gates,
                                           kept_cells, bias_hh.defined());
  });
}

}  // namespace rushlight
