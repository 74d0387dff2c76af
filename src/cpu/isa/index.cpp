// Kernels that read or write elements at given positions: index, index_put, index_select,
// index_add, index_copy, index_fill, gather, take, put_ and the scatters. Every index is checked
// before it becomes an address. Where several writes meet, they happen in the order of the index
// tensor whatever the number of threads: threads share out positions across the indexed dimension,
// never along it.
#include <algorithm>
#include <bit>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/isa/convert_run.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t work_per_task = 16384;  // elements
inline constexpr int64_t width_of_index = sizeof(int64_t);

// How an element meets the one that is there.
struct Assign {
  template <class T>
  static void apply(T& to, T from) {
    to = from;
  }
};
struct Add {
  template <class T>
  static void apply(T& to, T from) {
    using C = compute_t<T>;
    to = static_cast<T>(math::add(static_cast<C>(to), static_cast<C>(from)));
  }
};
struct Multiply {
  template <class T>
  static void apply(T& to, T from) {
    using C = compute_t<T>;
    to = static_cast<T>(math::mul(static_cast<C>(to), static_cast<C>(from)));
  }
};
struct Larger {
  template <class T>
  static void apply(T& to, T from) {
    to = (to > from) | (to != to) ? to : from;
  }
};
struct Smaller {
  template <class T>
  static void apply(T& to, T from) {
    to = (to < from) | (to != to) ? to : from;
  }
};

// to[i * stride] meets from[i]. `stride` in bytes.
template <class How, class T>
void meet_run(char* to, int64_t stride, const T* from, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; i++) {
      How::apply(out[i], from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      How::apply(*reinterpret_cast<T*>(to + i * stride), from[i]);
    }
  }
}

template <class T>
void read_run(T* to, const char* from, int64_t stride, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    std::copy_n(reinterpret_cast<const T*>(from), n, to);
  } else {
    for (int64_t i = 0; i < n; i++) {
      to[i] = *reinterpret_cast<const T*>(from + i * stride);
    }
  }
}

[[noreturn]] void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw IndexError(
      str("index ", index, " is out of bounds for dimension ", dim, " with size ", size));
}

// ---- index and index_put: positions given by several index tensors ----

// The target seen as [outer][k][inner]: `offset` has the byte offset of each of the k positions.
struct Positions {
  Dims outer;
  Dims inner;
  int64_t k = 1;
  int64_t n_outer = 1;
  int64_t n_inner = 1;
};

// `indices`: for each dimension nothing, or int64, all of one shape (src/ops/index.cpp).
Positions positions_of(const Tensor& t, const std::vector<std::optional<Tensor>>& indices) {
  Positions p;
  const int64_t width = t.element_size();
  int64_t first = -1;
  int64_t last = -1;
  bool together = true;
  for (int64_t d = 0; d < t.dim(); d++) {
    if (indices[d].has_value()) {
      together &= last < 0 || last == d - 1;
      first = first < 0 ? d : first;
      last = d;
      p.k = indices[d]->numel();
    }
  }
  for (int64_t d = t.dim() - 1; d >= 0; d--) {
    if (!indices[d].has_value()) {
      (together && d < first ? p.outer : p.inner).add(t.sizes()[d], t.strides()[d] * width);
    }
  }
  p.n_outer = p.outer.numel();
  p.n_inner = p.inner.numel();
  return p;
}

// offset[i] (`add`: adds to it) is index[i] times `step`, with indices counted from the end where
// they are negative. False if one is out of bounds.
RL_INLINE bool take_indices(const char* index, int64_t stride, int64_t n, int64_t size,
                            int64_t step, bool add, int64_t* __restrict offset) {
  int64_t outside = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = *reinterpret_cast<const int64_t*>(index + i * stride);
    at += at < 0 ? size : 0;
    outside |= at >= size || at < 0 ? 1 : 0;
    // Wraps where the index is wrong.
    const uint64_t bytes = static_cast<uint64_t>(at) * static_cast<uint64_t>(step);
    offset[i] = static_cast<int64_t>(static_cast<uint64_t>(add ? offset[i] : 0) + bytes);
  }
  return outside == 0;
}

void fill_offsets(const Tensor& t, const std::vector<std::optional<Tensor>>& indices, int64_t k,
                  int64_t* offset) {
  const int64_t width = t.element_size();
  bool add = false;
  for (int64_t d = 0; d < t.dim(); d++) {
    if (!indices[d].has_value()) {
      continue;
    }
    Dims dims;
    for (int64_t e = indices[d]->dim() - 1; e >= 0; e--) {
      dims.add(indices[d]->sizes()[e], indices[d]->strides()[e] * indices[d]->element_size());
    }
    const char* index = static_cast<const char*>(indices[d]->data_ptr());
    const int64_t size = t.sizes()[d];
    const int64_t step = t.strides()[d] * width;
    parallel_for(0, k, work_per_task, [&](int64_t begin, int64_t end) {
      for_runs(dims, begin, end, [&](int64_t at, int64_t from, int64_t stride, int64_t n) {
        const char* run = index + from;
        const bool fine = stride == width_of_index
                              ? take_indices(run, width_of_index, n, size, step, add, offset + at)
                              : take_indices(run, stride, n, size, step, add, offset + at);
        for (int64_t i = 0; !fine && i < n; i++) {
          const int64_t wrong = *reinterpret_cast<const int64_t*>(run + i * stride);
          if (wrong >= size || wrong < -size) {
            out_of_bounds(wrong, d, size);
          }
        }
      });
    });
    add = true;
  }
  if (!add) {
    std::fill_n(offset, k, 0);
  }
}

// Writes `from` ([outer][k][inner], contiguous) to the positions.
template <class How, class T>
void write_positions(char* to, const Positions& p, const int64_t* offset, const T* from) {
  // Pieces of the inner dimensions are independent of each other, and so are outer positions.
  const int64_t piece = std::max<int64_t>(128, (p.n_inner + 7) / 8);
  const int64_t pieces = num_chunks(0, p.n_inner, piece);
  const int64_t grain =
      std::max<int64_t>(1, work_per_task / (p.k * std::min(piece, p.n_inner) + 1));
  parallel_for(0, p.n_outer * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t o = task / pieces;
      const int64_t first = task % pieces * piece;
      const int64_t last = std::min(first + piece, p.n_inner);
      char* base = to + p.outer.offset(o);
      const T* source = from + o * p.k * p.n_inner;
      if (p.n_inner == 1) {
        for (int64_t i = 0; i < p.k; i++) {
          How::apply(*reinterpret_cast<T*>(base + offset[i]), source[i]);
        }
        continue;
      }
      if (p.inner.n == 1) {
        const int64_t stride = p.inner.stride[0];
        for (int64_t i = 0; i < p.k; i++) {
          meet_run<How>(base + offset[i] + first * stride, stride, source + i * p.n_inner + first,
                        last - first);
        }
        continue;
      }
      for (int64_t i = 0; i < p.k; i++) {
        for_runs(p.inner, first, last,
                 [&](int64_t at, int64_t inner_offset, int64_t stride, int64_t n) {
                   meet_run<How>(base + offset[i] + inner_offset, stride,
                                 source + i * p.n_inner + at, n);
                 });
      }
    }
  });
}

// One index of a vector per position along `dim` of t, as byte offsets. Negative ones count only
// where `wrap`.
void fill_line_offsets(const char* message, const Tensor& t, int64_t dim, const Tensor& index,
                       bool wrap, int64_t* offset) {
  const int64_t size = t.dim() == 0 ? 1 : t.sizes()[dim];
  const int64_t step = t.dim() == 0 ? 0 : t.strides()[dim] * t.element_size();
  const ConvertRun read = reader<int64_t, set_Int | set_Long>("index", index.dtype());
  const int64_t stride = index.dim() == 0 ? 0 : index.strides()[0] * index.element_size();
  read(offset, index.data_ptr(), stride, index.numel());
  for (int64_t i = 0; i < index.numel(); i++) {
    int64_t at = offset[i];
    if (RL_UNLIKELY(at >= size || at < (wrap ? -size : 0))) {
      if (message != nullptr) {
        throw IndexError(message);
      }
      out_of_bounds(at, dim, size);
    }
    at += at < 0 ? size : 0;
    offset[i] = at * step;
  }
}

Positions line_positions(const Tensor& t, int64_t dim, int64_t k) {
  Positions p;
  for (int64_t d = t.dim() - 1; d >= 0; d--) {
    if (d != dim) {
      (d < dim ? p.outer : p.inner).add(t.sizes()[d], t.strides()[d] * t.element_size());
    }
  }
  p.k = k;
  p.n_outer = p.outer.numel();
  p.n_inner = p.inner.numel();
  return p;
}

void read_positions(const Tensor& out, const Tensor& self, const Positions& p,
                    const int64_t* offset) {
  const char* from = static_cast<const char*>(self.data_ptr());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, p.n_outer * p.k, std::max<int64_t>(1, work_per_task / p.n_inner),
                 [&](int64_t begin, int64_t end) {
                   int64_t o = begin / p.k;
                   int64_t i = begin % p.k;
                   for (int64_t row = begin; row < end; o++, i = 0) {
                     const char* base = from + p.outer.offset(o);
                     const int64_t stop = std::min(end, (o + 1) * p.k);
                     if (p.n_inner == 1) {
                       for (; row < stop; row++, i++) {
                         to[row] = *reinterpret_cast<const T*>(base + offset[i]);
                       }
                     } else if (p.inner.n == 1) {
                       for (; row < stop; row++, i++) {
                         read_run(to + row * p.n_inner, base + offset[i], p.inner.stride[0],
                                  p.n_inner);
                       }
                     } else {
                       for (; row < stop; row++, i++) {
                         for_runs(p.inner, 0, p.n_inner,
                                  [&](int64_t at, int64_t inner_offset, int64_t stride, int64_t n) {
                                    read_run(to + row * p.n_inner + at,
                                             base + offset[i] + inner_offset, stride, n);
                                  });
                       }
                     }
                   }
                 });
  });
}

template <class How>
void put_numbers(const char* name, const Tensor& out, const Positions& p, const int64_t* offset,
                 const Tensor& source) {
  visit_dtype<set_all>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    write_positions<How>(static_cast<char*>(out.data_ptr()), p, offset, source.data<T>());
  });
}

void put_bytes(const Tensor& out, const Positions& p, const int64_t* offset, const Tensor& source) {
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    write_positions<Assign>(static_cast<char*>(out.data_ptr()), p, offset,
                            static_cast<const T*>(source.data_ptr()));
  });
}

Tensor contiguous_expanded(const Tensor& t, IntArrayRef sizes) {
  return contiguous_raw(t.sizes() == sizes ? t : make_view(t, views::expand(t, sizes, false)));
}

}  // namespace

void index(const Tensor& out, const Tensor& self,
           const std::vector<std::optional<Tensor>>& indices) {
  const Positions p = positions_of(self, indices);
  Scratch<int64_t> offset(p.k);
  fill_offsets(self, indices, p.k, offset.data());
  if (out.numel() != 0) {
    read_positions(out, self, p, offset.data());
  }
}

void index_put(const Tensor& out, const std::vector<std::optional<Tensor>>& indices,
               const Tensor& values, bool accumulate) {
  const Positions p = positions_of(out, indices);
  Scratch<int64_t> offset(p.k);
  fill_offsets(out, indices, p.k, offset.data());
  if (p.n_outer * p.k * p.n_inner == 0) {
    return;
  }
  const Tensor source = contiguous_raw(values);  // the shape function has expanded it
  if (accumulate) {
    put_numbers<Add>("index_put", out, p, offset.data(), source);
  } else {
    put_bytes(out, p, offset.data(), source);
  }
}

// ---- one vector of indices along a dimension ----

void index_select(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  const Positions p = line_positions(self, dim, index.numel());
  Scratch<int64_t> offset(p.k);
  fill_line_offsets("index out of range in self", self, dim, index, false, offset.data());
  if (out.numel() != 0) {
    read_positions(out, self, p, offset.data());
  }
}

void index_add(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha) {
  const Positions p = line_positions(out, dim, index.numel());
  Scratch<int64_t> offset(p.k);
  fill_line_offsets(nullptr, out, dim, index, false, offset.data());
  if (source.numel() == 0) {
    return;
  }
  const Tensor from = contiguous_raw(source);
  if (alpha.equal(1)) {
    return put_numbers<Add>("index_add", out, p, offset.data(), from);
  }
  visit_dtype<set_all>("index_add", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C factor = alpha.as<C>();
    const T* x = from.data<T>();
    Scratch<T> scaled(from.numel());
    for (int64_t i = 0; i < from.numel(); i++) {
      scaled[i] = static_cast<T>(static_cast<C>(x[i]) * factor);
    }
    write_positions<Add>(static_cast<char*>(out.data_ptr()), p, offset.data(), scaled.data());
  });
}

void index_copy(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source) {
  const Positions p = line_positions(out, dim, index.numel());
  Scratch<int64_t> offset(p.k);
  fill_line_offsets(nullptr, out, dim, index, false, offset.data());
  if (source.numel() != 0) {
    put_bytes(out, p, offset.data(), contiguous_raw(source));
  }
}

void index_fill_value(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value) {
  const Positions p = line_positions(out, dim, index.numel());
  Scratch<int64_t> offset(p.k);
  fill_line_offsets(nullptr, out, dim, index, true, offset.data());
  visit_dtype<set_all>("index_fill", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T filled = convert<T>(value.as<compute_t<T>>());
    char* to = static_cast<char*>(out.data_ptr());
    for (int64_t o = 0; o < p.n_outer; o++) {
      char* base = to + p.outer.offset(o);
      for (int64_t i = 0; i < p.k; i++) {
        for_runs(p.inner, 0, p.n_inner,
                 [&](int64_t, int64_t inner_offset, int64_t stride, int64_t n) {
                   for (int64_t j = 0; j < n; j++) {
                     *reinterpret_cast<T*>(base + offset[i] + inner_offset + j * stride) = filled;
                   }
                 });
      }
    }
  });
}

// ---- an index for each element: gather and the scatters ----

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
    l.stride = target.dim() == 0 ? 0 : target.strides()[0] * target.element_size();
    return l;
  }
  for (int64_t d = static_cast<int64_t>(index_sizes.size()) - 1; d >= 0; d--) {
    const int64_t step = target.strides()[d] * target.element_size();
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

RL_INLINE int64_t checked(int64_t at, const Lines& l) {
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
    checked(at[i], l);
  }
}

Tensor as_int64(const Tensor& index) { return contiguous_raw(cast_raw(index, kInt64)); }

// Every index element meets its target: f(target, position in the index). Tasks never share a
// target.
template <class T, class F>
void for_targets(char* to, const Lines& l, const int64_t* index, const F& f) {
  const int64_t piece = std::max<int64_t>(16, (l.n_inner + 7) / 8);
  const int64_t pieces = num_chunks(0, l.n_inner, piece);
  const int64_t grain =
      std::max<int64_t>(1, work_per_task / (l.n * std::min(piece, l.n_inner) + 1));
  parallel_for(0, l.n_outer * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t o = task / pieces;
      const int64_t first = task % pieces * piece;
      const int64_t last = std::min(first + piece, l.n_inner);
      char* base = to + l.outer.offset(o);
      if (l.n_inner == 1) {
        const int64_t start = o * l.n;
        for_line(reinterpret_cast<T*>(base), index + start, l.n, l,
                 [&](int64_t i, T* target) { f(*target, start + i); });
        continue;
      }
      for (int64_t j = 0; j < l.n; j++) {
        const int64_t row = (o * l.n + j) * l.n_inner;
        for_runs(l.inner, first, last, [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
          for (int64_t i = 0; i < n; i++) {
            f(*reinterpret_cast<T*>(base + offset + i * stride + checked(index[row + at + i], l)),
              row + at + i);
          }
        });
      }
    }
  });
}

// `step`: 1 for a source of the index's shape, 0 for one value.
template <class How, uint32_t Set>
void scatter_numbers(const char* name, const Tensor& out, const Lines& l, const int64_t* index,
                     const void* source, int64_t step) {
  visit_dtype<Set>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(source);
    for_targets<T>(static_cast<char*>(out.data_ptr()), l, index,
                   [from, step](T& target, int64_t i) { How::apply(target, from[i * step]); });
  });
}

enum class Meeting { Assign, Add, Multiply, Larger, Smaller };

void scatter_with(const char* name, Meeting how, const Tensor& out, int64_t dim,
                  const Tensor& index, const void* source, int64_t step) {
  if (index.numel() == 0) {
    return;
  }
  const Lines l = lines_of(out, dim, index.sizes());
  const Tensor positions = as_int64(index);
  const int64_t* at = positions.data<int64_t>();
  switch (how) {
    case Meeting::Assign:
      visit_size(out.element_size(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = static_cast<const T*>(source);
        for_targets<T>(static_cast<char*>(out.data_ptr()), l, at,
                       [from, step](T& target, int64_t i) { target = from[i * step]; });
      });
      break;
    case Meeting::Add:
      scatter_numbers<Add, set_all>(name, out, l, at, source, step);
      break;
    case Meeting::Multiply:
      scatter_numbers<Multiply, set_all>(name, out, l, at, source, step);
      break;
    case Meeting::Larger:
      scatter_numbers<Larger, set_real | set_Bool>(name, out, l, at, source, step);
      break;
    case Meeting::Smaller:
      scatter_numbers<Smaller, set_real | set_Bool>(name, out, l, at, source, step);
      break;
  }
}

// The part of a source that an index of these sizes reaches, contiguous.
Tensor reached(const Tensor& source, const Tensor& index) {
  if (index.dim() == 0 || source.dim() == 0 || source.sizes() == index.sizes()) {
    return contiguous_raw(source);
  }
  return contiguous_raw(
      make_view(source, {index.sizes(), source.strides(), source.storage_offset()}));
}

void scatter_value_with(const char* name, Meeting how, const Tensor& out, int64_t dim,
                        const Tensor& index, const Scalar& value) {
  visit_dtype<set_all>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = convert<T>(value.as<compute_t<T>>());
    scatter_with(name, how, out, dim, index, &one, 0);
  });
}

Meeting meeting_of(std::string_view reduce) {
  return reduce == "add" || reduce == "sum" || reduce == "mean" ? Meeting::Add
         : reduce == "multiply" || reduce == "prod"             ? Meeting::Multiply
         : reduce == "amax"                                     ? Meeting::Larger
                                                                : Meeting::Smaller;
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
    parallel_for(0, l.n_outer * l.n, std::max<int64_t>(1, work_per_task / l.n_inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end;) {
                     const int64_t o = row / l.n;
                     const char* base = from + l.outer.offset(o);
                     const int64_t stop = std::min(end, (o + 1) * l.n);
                     if (l.n_inner == 1) {
                       T* __restrict line = to + row;
                       for_line(reinterpret_cast<const T*>(base), at + row, stop - row, l,
                                [&](int64_t i, const T* x) { line[i] = *x; });
                       row = stop;
                       continue;
                     }
                     for (; row < stop; row++) {
                       const int64_t first = row * l.n_inner;
                       for_runs(l.inner, 0, l.n_inner,
                                [&](int64_t p, int64_t offset, int64_t stride, int64_t n) {
                                  for (int64_t i = 0; i < n; i++) {
                                    to[first + p + i] = *reinterpret_cast<const T*>(
                                        base + offset + i * stride + checked(at[first + p + i], l));
                                  }
                                });
                     }
                   }
                 });
  });
}

void scatter_src(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter", Meeting::Assign, out, dim, index, reached(src, index).data_ptr(), 1);
}

void scatter_value(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value) {
  scatter_value_with("scatter", Meeting::Assign, out, dim, index, value);
}

void scatter_src_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce) {
  scatter_with("scatter", meeting_of(reduce), out, dim, index, reached(src, index).data_ptr(), 1);
}

void scatter_value_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value,
                          std::string_view reduce) {
  scatter_value_with("scatter", meeting_of(reduce), out, dim, index, value);
}

void scatter_add(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter_add", Meeting::Add, out, dim, index, reached(src, index).data_ptr(), 1);
}

void scatter_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                    std::string_view reduce, bool include_self) {
  if (index.numel() == 0) {
    return;
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
      scatter_with("scatter_reduce", Meeting::Assign, out, dim, index, &start, 0);
    });
  }
  scatter_with("scatter_reduce", meeting_of(reduce), out, dim, index,
               reached(src, index).data_ptr(), 1);
  if (reduce != "mean") {
    return;
  }
  // How many met at each element; then the sum is divided.
  const Tensor count = make_empty(out.sizes(), kInt64, out.device());
  fill_raw(count, Scalar(1));
  const int64_t zero = 0;
  const int64_t one = 1;
  if (!include_self) {
    scatter_with("scatter_reduce", Meeting::Assign, count, dim, index, &zero, 0);
  }
  scatter_with("scatter_reduce", Meeting::Add, count, dim, index, &one, 0);
  const int64_t* n = count.data<int64_t>();
  visit_dtype<set_numbers>("scatter_reduce", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Dims dims;
    for (int64_t d = out.dim() - 1; d >= 0; d--) {
      dims.add(out.sizes()[d], out.strides()[d] * out.element_size());
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

// ---- positions in the flattened tensor ----

namespace {

[[noreturn]] void out_of_range(int64_t at, int64_t numel) {
  throw IndexError(
      str("out of range: tried to access index ", at, " on a tensor of ", numel, " elements."));
}

}  // namespace

void take(const Tensor& out, const Tensor& self, const Tensor& index) {
  const Tensor flat = contiguous_raw(self);
  const Tensor positions = contiguous_raw(index);
  const int64_t* at = positions.data<int64_t>();
  const int64_t size = self.numel();
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(flat.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, out.numel(), work_per_task, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        if (RL_UNLIKELY(at[i] >= size || at[i] < -size)) {
          out_of_range(at[i], size);
        }
        to[i] = from[at[i] + (at[i] < 0 ? size : 0)];
      }
    });
  });
}

void put(const Tensor& out, const Tensor& index, const Tensor& source, bool accumulate) {
  const Tensor positions = contiguous_raw(index);
  const int64_t* at = positions.data<int64_t>();
  const int64_t size = out.numel();
  for (int64_t i = 0; i < index.numel(); i++) {
    if (RL_UNLIKELY(at[i] >= size || at[i] < -size)) {
      out_of_range(at[i], size);
    }
  }
  Dims dims;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    dims.add(out.sizes()[d], out.strides()[d] * out.element_size());
  }
  const Tensor from = contiguous_raw(source);
  visit_dtype<set_all>("put_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = from.data<T>();
    for (int64_t i = 0; i < index.numel(); i++) {
      T& to = *reinterpret_cast<T*>(static_cast<char*>(out.data_ptr()) +
                                    dims.offset(at[i] + (at[i] < 0 ? size : 0)));
      accumulate ? Add::apply(to, x[i]) : Assign::apply(to, x[i]);
    }
  });
}

// ---- masks ----

namespace {

// Chosen by bits where T has a word, and the mask read as bytes, for the sake of the vectoriser.
template <class T>
void fill_where(T* x, const bool* mask, int64_t n, T value) {
  const auto* where = reinterpret_cast<const uint8_t*>(mask);
  if constexpr (sizeof(T) <= 8) {
    using Word __attribute__((may_alias)) = typename unsigned_of<sizeof(T)>::type;
    auto* __restrict word = reinterpret_cast<Word*>(x);
    const auto filled = std::bit_cast<typename unsigned_of<sizeof(T)>::type>(value);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      const auto chosen = static_cast<Word>(-static_cast<Word>(where[i]));
      word[i] = static_cast<Word>((word[i] & ~chosen) | (filled & chosen));
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      x[i] = where[i] != 0 ? value : x[i];
    }
  }
}

}  // namespace

void masked_fill_value(const Tensor& out, const Tensor& mask, const Scalar& value) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor where = contiguous_expanded(mask, out.sizes());
  const bool* m = where.data<bool>();
  Dims dims;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    dims.add(out.sizes()[d], out.strides()[d] * out.element_size());
  }
  visit_dtype<set_all>("masked_fill", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T filled = convert<T>(value.as<compute_t<T>>());
    parallel_for(0, out.numel(), 2 * work_per_task, [&](int64_t begin, int64_t end) {
      for_runs(dims, begin, end, [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
        char* to = static_cast<char*>(out.data_ptr()) + offset;
        if (stride == static_cast<int64_t>(sizeof(T))) {
          fill_where(reinterpret_cast<T*>(to), m + at, n, filled);
        } else {
          for (int64_t i = 0; i < n; i++) {
            T& x = *reinterpret_cast<T*>(to + i * stride);
            x = m[at + i] ? filled : x;
          }
        }
      });
    });
  });
}

void masked_scatter(const Tensor& out, const Tensor& mask, const Tensor& source) {
  const Tensor where = contiguous_expanded(mask, out.sizes());
  const bool* m = where.data<bool>();
  int64_t wanted = 0;
  for (int64_t i = 0; i < where.numel(); i++) {
    wanted += m[i];
  }
  RL_CHECK(wanted <= source.numel(), "Number of elements of source < number of ones in mask");
  const Tensor from = contiguous_raw(source);
  Dims dims;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    dims.add(out.sizes()[d], out.strides()[d] * out.element_size());
  }
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* next = static_cast<const T*>(from.data_ptr());
    for_runs(dims, 0, out.numel(), [&](int64_t at, int64_t offset, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; i++) {
        if (m[at + i]) {
          *reinterpret_cast<T*>(static_cast<char*>(out.data_ptr()) + offset + i * stride) = *next++;
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
