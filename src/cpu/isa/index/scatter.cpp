// Kernels with an index for each element: gather and the scatters. Every index is checked before it
// becomes an address. Several writes to one place happen in the order of the index tensor
// whatever the number of threads: threads share out positions across the indexed dimension, never
// along it.
#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/isa/index/combine.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// A target as [outer][size][inner], of which the index tensor's sizes are used outside of `dim`.
struct Lines {
  Dims outer;
  Dims inner;
  int64_t n_outer = 1;
  int64_t n_inner = 1;
  int64_t n = 1;       // of the index, along dim
  int64_t size = 1;    // of the target, along dim
  int64_t stride = 0;  // bytes
  int64_t dim = 0;
};

Lines lines_of(const Tensor& target, int64_t dim, IntArrayRef index_sizes) {
  Lines l;
  l.dim = dim;
  if (target.dim() == 0 || index_sizes.empty()) {  // a 0-d tensor counts as one element along dim 0
    l.n = index_sizes.empty() ? 1 : index_sizes[0];
    l.size = target.numel();
    l.stride = target.dim() == 0 ? 0 : byte_stride(target, 0);
    return l;
  }
  for (int64_t d = static_cast<int64_t>(index_sizes.size()) - 1; d >= 0; d--) {
    const int64_t step = byte_stride(target, d);
    if (d == dim) {
      l.n = index_sizes[d];
      l.size = target.sizes()[d];
      l.stride = step;
    } else {
      (d < dim ? l.outer : l.inner).add(index_sizes[d], step);
    }
  }
  l.n_outer = l.outer.numel();
  l.n_inner = l.inner.numel();
  return l;
}

RL_INLINE int64_t checked_offset(int64_t at, const Lines& l) {
  if (RL_UNLIKELY(static_cast<uint64_t>(at) >= static_cast<uint64_t>(l.size))) {
    throw Error(
        str("index ", at, " is out of bounds for dimension ", l.dim, " with size ", l.size));
  }
  return at * l.stride;
}

// Calls f(i, address) for the indices at[i] of one line. What the loop reads stands in registers.
template <class T, class F>
RL_INLINE void for_line(T* base, const int64_t* __restrict at, int64_t n, const Lines& l,
                        const F& f) {
  const auto size = static_cast<uint64_t>(l.size);
  constexpr int64_t width = sizeof(T);
  const bool together = l.stride == width;
  int64_t i = 0;
  if (together) {
    for (; i < n && RL_LIKELY(static_cast<uint64_t>(at[i]) < size); i++) {
      f(i, base + at[i]);
    }
  } else {
    const int64_t step = l.stride / width;
    for (; i < n && RL_LIKELY(static_cast<uint64_t>(at[i]) < size); i++) {
      f(i, base + at[i] * step);
    }
  }
  if (RL_UNLIKELY(i < n)) {
    checked_offset(at[i], l);
  }
}

Tensor as_int64(const Tensor& index) { return contiguous_raw(cast_raw(index, kInt64)); }

// Calls for every index element and its target: f(target, position in the index). Tasks never share
// a target.
template <class T, class F>
void for_targets(char* to, const Lines& l, const int64_t* index, const F& f) {
  const int64_t piece = std::max<int64_t>(16, (l.n_inner + 7) / 8);
  const int64_t pieces = num_chunks(0, l.n_inner, piece);
  const int64_t grain =
      std::max<int64_t>(1, work_per_task / (l.n * std::min(piece, l.n_inner) + 1));
  if (l.n_inner == 1) {
    parallel_for(0, l.n_outer, grain, [&](int64_t begin, int64_t end) {
      Walk outer(l.outer, begin);
      for (int64_t o = begin; o < end; o++, outer.advance(1)) {
        const int64_t start = o * l.n;
        for_line(reinterpret_cast<T*>(to + outer.offset()), index + start, l.n, l,
                 [&](int64_t i, T* target) { f(*target, start + i); });
      }
    });
    return;
  }
  parallel_for(0, l.n_outer * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t o = task / pieces;
      const int64_t first = task % pieces * piece;
      const int64_t last = std::min(first + piece, l.n_inner);
      char* base = to + l.outer.offset(o);
      for (int64_t j = 0; j < l.n; j++) {
        const int64_t row = (o * l.n + j) * l.n_inner;
        for_runs(l.inner, first, last, [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
          for (int64_t i = 0; i < n; i++) {
            f(*reinterpret_cast<T*>(base + offset + i * stride +
                                    checked_offset(index[row + at + i], l)),
              row + at + i);
          }
        });
      }
    }
  });
}

// A target no larger than the work: all of it is widened.
template <class How, class T>
void scatter_in_wide_type(char* to, const Lines& l, const int64_t* index, const T* from,
                          int64_t step) {
  using C = compute_t<T>;
  constexpr int64_t width = sizeof(C);
  const Dims all = join_dims(l.outer, l.size, l.stride, l.inner);
  const Scratch<C> wide(all.numel());
  widen<C, T>(wide.data(), to, all);
  Lines in_wide = l;
  in_wide.outer = in_wide.inner = Dims();
  in_wide.inner.add(l.n_inner, width);
  in_wide.stride = l.n_inner * width;
  in_wide.outer.add(l.n_outer, l.size * in_wide.stride);
  for_targets<C>(reinterpret_cast<char*>(wide.data()), in_wide, index,
                 [from, step](C& target, int64_t i) { How::apply(target, from[i * step]); });
  round_into<T>(to, all, wide.data());
}

// Whether a few indices all differ.
bool all_differ(const int64_t* at, int64_t n) {
  bool meet = false;
  for (int64_t i = 1; i < n; i++) {
    for (int64_t j = 0; j < i; j++) {
      meet |= at[i] == at[j];
    }
  }
  return !meet;
}

// Few indices of a line: where some are equal, a place takes all of its own at the first of them.
template <class How, class T>
void scatter_few(char* base, const Lines& l, const int64_t* at, const T* from, int64_t step) {
  using C = compute_t<T>;
  if (all_differ(at, l.n)) {
    return for_line(reinterpret_cast<T*>(base), at, l.n, l,
                    [&](int64_t i, T* target) { How::apply(*target, from[i * step]); });
  }
  for (int64_t i = 0; i < l.n; i++) {
    T& target = *reinterpret_cast<T*>(base + checked_offset(at[i], l));
    bool met = false;
    for (int64_t j = 0; j < i; j++) {
      met |= at[j] == at[i];
    }
    if (met) {
      continue;
    }
    auto sum = static_cast<C>(target);
    for (int64_t j = i; j < l.n; j++) {
      if (at[j] == at[i]) {
        How::apply(sum, from[j * step]);
      }
    }
    target = static_cast<T>(sum);
  }
}

// A large target: the places that some columns of the index write are numbered.
template <class How, class T>
void scatter_by_number(char* to, const Lines& l, const int64_t* index, const T* from,
                       int64_t step) {
  using C = compute_t<T>;
  const int64_t columns = std::clamp<int64_t>(4096 / l.n, 1, l.n_inner);
  const int64_t pieces = num_chunks(0, l.n_inner, columns);
  const int64_t most = l.n * columns;
  parallel_for(0, l.n_outer * pieces, std::max<int64_t>(1, work_per_task / most),
               [&](int64_t begin, int64_t end) {
                 Numbering number(most);
                 const Scratch<C> sums(most);
                 for (int64_t task = begin; task < end; task++) {
                   const int64_t o = task / pieces;
                   const int64_t first = task % pieces * columns;
                   const int64_t last = std::min(first + columns, l.n_inner);
                   char* const base = to + l.outer.offset(o);
                   if (l.n_inner == 1 && l.n <= 16) {
                     scatter_few<How>(base, l, index + o * l.n, from + o * l.n * step, step);
                     continue;
                   }
                   number.clear();
                   for (int64_t j = 0; j < l.n; j++) {
                     const int64_t row = (o * l.n + j) * l.n_inner;
                     for_runs(l.inner, first, last,
                              [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
                                for (int64_t i = 0; i < n; i++) {
                                  const int64_t place =
                                      offset + i * stride + checked_offset(index[row + at + i], l);
                                  const int64_t before = number.count();
                                  C& sum = sums[number(place)];
                                  if (number.count() > before) {
                                    sum = static_cast<C>(*reinterpret_cast<const T*>(base + place));
                                  }
                                  How::apply(sum, from[(row + at + i) * step]);
                                }
                              });
                   }
                   for (int64_t i = 0; i < number.count(); i++) {
                     *reinterpret_cast<T*>(base + number.keys()[i]) = static_cast<T>(sums[i]);
                   }
                 }
               });
}

// `step`: 1 for a source of the index's shape, 0 for one value.
template <class How, class T>
void scatter_numbers(char* to, const Lines& l, const int64_t* index, const T* from, int64_t step) {
  if constexpr (meets_wide<How, T>) {
    if (l.n > 1 && (l.size == 1 || l.stride > 0) && !overlaps(l.outer) && !overlaps(l.inner)) {
      return l.size <= 4 * l.n ? scatter_in_wide_type<How>(to, l, index, from, step)
                               : scatter_by_number<How>(to, l, index, from, step);
    }
  }
  for_targets<T>(to, l, index,
                 [from, step](T& target, int64_t i) { How::apply(target, from[i * step]); });
}
template <class How, uint32_t Set>
void scatter_numbers(const char* name, const Tensor& out, const Lines& l, const int64_t* index,
                     const void* source, int64_t step) {
  visit_dtype<Set>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    scatter_numbers<How, T>(static_cast<char*>(out.data_ptr()), l, index,
                            static_cast<const T*>(source), step);
  });
}

enum class ScatterReduce { Assign, Add, Multiply, Larger, Smaller };

void scatter_with(const char* name, ScatterReduce how, const Tensor& out, int64_t dim,
                  const Tensor& index, const void* source, int64_t step) {
  if (index.numel() == 0) {
    return;
  }
  const Lines l = lines_of(out, dim, index.sizes());
  const Tensor positions = as_int64(index);
  const int64_t* at = positions.data<int64_t>();
  switch (how) {
    case ScatterReduce::Assign:
      visit_size(out.element_size(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = static_cast<const T*>(source);
        for_targets<T>(static_cast<char*>(out.data_ptr()), l, at,
                       [from, step](T& target, int64_t i) { target = from[i * step]; });
      });
      break;
    case ScatterReduce::Add:
      scatter_numbers<Add, set_all>(name, out, l, at, source, step);
      break;
    case ScatterReduce::Multiply:
      scatter_numbers<Multiply, set_all>(name, out, l, at, source, step);
      break;
    case ScatterReduce::Larger:
      scatter_numbers<Larger, set_real | set_Bool>(name, out, l, at, source, step);
      break;
    case ScatterReduce::Smaller:
      scatter_numbers<Smaller, set_real | set_Bool>(name, out, l, at, source, step);
      break;
  }
}

// The part of a source that an index of these sizes reaches, contiguous. An index without elements
// may have any number of dimensions.
Tensor part_reached_by(const Tensor& source, const Tensor& index) {
  if (index.numel() == 0 || index.dim() == 0 || source.dim() == 0 ||
      source.sizes() == index.sizes()) {
    return contiguous_raw(source);
  }
  return contiguous_raw(
      make_view(source, {index.sizes(), source.strides(), source.storage_offset()}));
}

void scatter_value_with(const char* name, ScatterReduce how, const Tensor& out, int64_t dim,
                        const Tensor& index, const Scalar& value) {
  visit_dtype<set_all>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = convert<T>(value.as<compute_t<T>>());
    scatter_with(name, how, out, dim, index, &one, 0);
  });
}

ScatterReduce scatter_reduce_of(std::string_view reduce) {
  return reduce == "add" || reduce == "sum" || reduce == "mean" ? ScatterReduce::Add
         : reduce == "multiply" || reduce == "prod"             ? ScatterReduce::Multiply
         : reduce == "amax"                                     ? ScatterReduce::Larger
                                                                : ScatterReduce::Smaller;
}

}  // namespace

void gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  if (out.numel() == 0) {
    return;
  }
  const Lines l = lines_of(self, dim, index.sizes());
  const Tensor positions = as_int64(index);
  const int64_t* at = positions.data<int64_t>();
  const char* from = static_cast<const char*>(self.data_ptr());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data_ptr());
    if (l.n_inner == 1) {
      // Pieces of lines: `stop` is where the one that `row` is in ends.
      parallel_for(0, l.n_outer * l.n, work_per_task, [&](int64_t begin, int64_t end) {
        Walk outer(l.outer, begin / l.n);
        int64_t stop = (begin / l.n + 1) * l.n;
        for (int64_t row = begin; row < end; row = stop, stop += l.n, outer.advance(1)) {
          T* __restrict line = to + row;
          for_line(reinterpret_cast<const T*>(from + outer.offset()), at + row,
                   std::min(end, stop) - row, l, [&](int64_t i, const T* x) { line[i] = *x; });
        }
      });
      return;
    }
    parallel_for(
        0, l.n_outer * l.n, std::max<int64_t>(1, work_per_task / l.n_inner),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end;) {
            const int64_t o = row / l.n;
            const char* base = from + l.outer.offset(o);
            const int64_t stop = std::min(end, (o + 1) * l.n);
            for (; row < stop; row++) {
              const int64_t first = row * l.n_inner;
              for_runs(l.inner, 0, l.n_inner,
                       [&](int64_t p, int64_t offset, int64_t stride, int64_t n) {
                         for (int64_t i = 0; i < n; i++) {
                           to[first + p + i] = *reinterpret_cast<const T*>(
                               base + offset + i * stride + checked_offset(at[first + p + i], l));
                         }
                       });
            }
          }
        });
  });
}

void scatter_src(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter", ScatterReduce::Assign, out, dim, index,
               part_reached_by(src, index).data_ptr(), 1);
}

void scatter_value(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value) {
  scatter_value_with("scatter", ScatterReduce::Assign, out, dim, index, value);
}

void scatter_src_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce) {
  scatter_with("scatter", scatter_reduce_of(reduce), out, dim, index,
               part_reached_by(src, index).data_ptr(), 1);
}

void scatter_value_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value,
                          std::string_view reduce) {
  scatter_value_with("scatter", scatter_reduce_of(reduce), out, dim, index, value);
}

void scatter_add(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter_add", ScatterReduce::Add, out, dim, index,
               part_reached_by(src, index).data_ptr(), 1);
}

void scatter_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                    std::string_view reduce, bool include_self) {
  if (index.numel() == 0) {
    return;
  }
  if (reduce == "mean" &&
      contains(set_Half | set_BFloat16, out.dtype())) {  // the sum is not rounded
    const Tensor wide = cast_raw(out, kFloat32);
    scatter_reduce(wide, dim, index, cast_raw(part_reached_by(src, index), kFloat32), reduce,
                   include_self);
    return copy_raw(out, wide);
  }
  if (!include_self) {
    const double neutral = reduce == "prod" ? 1 : 0;
    const bool extreme = reduce == "amax" || reduce == "amin";
    visit_dtype<set_all>("scatter_reduce", out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T start = convert<T>(neutral);
      if constexpr (!is_complex_v<T>) {
        using Limits = std::numeric_limits<compute_t<T>>;
        if (extreme) {
          const auto low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
          const auto high = Limits::has_infinity ? Limits::infinity() : Limits::max();
          start = static_cast<T>(reduce == "amax" ? low : high);
        }
      }
      scatter_with("scatter_reduce", ScatterReduce::Assign, out, dim, index, &start, 0);
    });
  }
  scatter_with("scatter_reduce", scatter_reduce_of(reduce), out, dim, index,
               part_reached_by(src, index).data_ptr(), 1);
  if (reduce != "mean") {
    return;
  }
  // How many were combined at each element; then the sum is divided.
  const Tensor count = make_empty(out.sizes(), kInt64, out.device());
  fill_raw(count, Scalar(1));
  const int64_t zero = 0;
  const int64_t one = 1;
  if (!include_self) {
    scatter_with("scatter_reduce", ScatterReduce::Assign, count, dim, index, &zero, 0);
  }
  scatter_with("scatter_reduce", ScatterReduce::Add, count, dim, index, &one, 0);
  const int64_t* n = count.data<int64_t>();
  visit_dtype<set_numbers>("scatter_reduce", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Dims dims;
    for (int64_t d = out.dim() - 1; d >= 0; d--) {
      dims.add(out.sizes()[d], byte_stride(out, d));
    }
    char* base = static_cast<char*>(out.data_ptr());
    for_runs(dims, 0, out.numel(), [&](int64_t at, int64_t offset, int64_t stride, int64_t length) {
      for (int64_t i = 0; i < length; i++) {
        T& x = *reinterpret_cast<T*>(base + offset + i * stride);
        if constexpr (std::is_integral_v<T>) {  // rounds down, as a floor division
          const T d = static_cast<T>(n[at + i]);
          const T q = d == 0 ? T(0) : static_cast<T>(x / d);
          x = d != 0 && (x % d != 0) && ((x < 0) != (d < 0)) ? static_cast<T>(q - 1) : q;
        } else {
          x = static_cast<T>(static_cast<C>(x) / C(static_cast<real_t<C>>(n[at + i])));
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
