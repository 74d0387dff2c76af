// Kernels that read or write elements at given positions: index, index_put, index_select,
// index_add, index_copy, index_fill, take and put_. Every index is checked before it becomes an
// address. Several writes to one place happen in the order of the index tensor whatever the
// number of threads: threads share out positions across the indexed dimension, never along it. An
// index for each element: scatter.cpp.
#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/isa/index/combine.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t width_of_index = sizeof(int64_t);

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

// ---- index and index_put: positions given by several index tensors ----

// The target seen as [outer][k][inner]: `offset` has the byte offset of each of the k positions.
struct Positions {
  Dims outer;
  Dims inner;
  Dims indexed;  // where the positions may lie
  int64_t k = 1;
  int64_t n_outer = 1;
  int64_t n_inner = 1;
};

// `indices`: for each dimension nothing, or int64, all of one shape (src/ops/index.cpp).
Positions positions_of(const Tensor& t, const std::vector<std::optional<Tensor>>& indices) {
  Positions p;
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
    Dims& dims = indices[d].has_value() ? p.indexed : together && d < first ? p.outer : p.inner;
    dims.add(t.sizes()[d], byte_stride(t, d));
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
  bool add = false;
  for (int64_t d = 0; d < t.dim(); d++) {
    if (!indices[d].has_value()) {
      continue;
    }
    Dims dims;
    for (int64_t e = indices[d]->dim() - 1; e >= 0; e--) {
      dims.add(indices[d]->sizes()[e], byte_stride(*indices[d], e));
    }
    const char* index = static_cast<const char*>(indices[d]->data_ptr());
    const int64_t size = t.sizes()[d];
    const int64_t step = byte_stride(t, d);
    parallel_for(0, k, work_per_task, [&](int64_t begin, int64_t end) {
      for_runs(dims, begin, end, [&](int64_t at, int64_t from, int64_t stride, int64_t n) {
        const char* run = index + from;
        const bool fine = stride == width_of_index
                              ? take_indices(run, width_of_index, n, size, step, add, offset + at)
                              : take_indices(run, stride, n, size, step, add, offset + at);
        for (int64_t i = 0; !fine && i < n; i++) {
          const int64_t wrong = *reinterpret_cast<const int64_t*>(run + i * stride);
          if (wrong >= size || wrong < -size) {
            raise_out_of_bounds(wrong, d, size);
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
template <class How, class T, class S>
void write_positions(char* to, const Positions& p, const int64_t* offset, const S* from) {
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
      const S* source = from + o * p.k * p.n_inner;
      if (p.n_inner == 1) {
        for (int64_t i = 0; i < p.k; i++) {
          How::apply(*reinterpret_cast<T*>(base + offset[i]), source[i]);
        }
        continue;
      }
      if (p.inner.n == 1) {
        const int64_t stride = p.inner.stride[0];
        for (int64_t i = 0; i < p.k; i++) {
          combine_run<How, T>(base + offset[i] + first * stride, stride,
                              source + i * p.n_inner + first, last - first);
        }
        continue;
      }
      for (int64_t i = 0; i < p.k; i++) {
        for_runs(p.inner, first, last,
                 [&](int64_t at, int64_t inner_offset, int64_t stride, int64_t n) {
                   combine_run<How, T>(base + offset[i] + inner_offset, stride,
                                       source + i * p.n_inner + at, n);
                 });
      }
    }
  });
}

// Positions that are as many as the places of a target that is a line of step `step`: the whole of
// it is widened, written to, and rounded.
template <class How, class T, class S>
void combine_in_wide_type(char* to, const Positions& p, const int64_t* offset, const S* from) {
  using C = compute_t<T>;
  constexpr int64_t width = sizeof(C);
  const int64_t size = p.indexed.size[0];
  const int64_t step = p.indexed.stride[0];
  const Dims all = join_dims(p.outer, size, step, p.inner);
  const Scratch<C> wide(all.numel());
  widen<C, T>(wide.data(), to, all);
  Positions in_wide = p;
  in_wide.outer = in_wide.inner = Dims();
  in_wide.outer.add(p.n_outer, size * p.n_inner * width);
  in_wide.inner.add(p.n_inner, width);
  const int64_t row = p.n_inner * width;
  const int64_t ratio = row % step == 0 ? row / step : 0;  // usually, which spares a division
  const Scratch<int64_t> moved(p.k);
  for (int64_t i = 0; i < p.k; i++) {
    moved[i] = ratio != 0 ? offset[i] * ratio : offset[i] / step * row;
  }
  write_positions<How, C>(reinterpret_cast<char*>(wide.data()), in_wide, moved, from);
  round_into<T>(to, all, wide.data());
}

// The places that k positions are at, in the order in which they come, so that sources are read in
// order: a number for each position, and where a place is.
class Places {
 public:
  Places(const Positions& p, const int64_t* offset) : number_(p.k), offset_(p.k) {
    const int64_t step = p.indexed.n == 1 ? p.indexed.stride[0] : 0;
    if (step > 0 && p.indexed.size[0] <= 8 * p.k) {
      const Scratch<int64_t> known(p.indexed.size[0]);
      std::fill_n(known.data(), p.indexed.size[0], int64_t{-1});
      const double share = 1 / static_cast<double>(step);
      for (int64_t i = 0; i < p.k; i++) {  // multiples of the step: the quotient is exact
        int64_t& number = known[static_cast<int64_t>(static_cast<double>(offset[i]) * share + 0.5)];
        if (number < 0) {
          number = count_;
          offset_[count_++] = offset[i];
        }
        number_[i] = number;
      }
      return;
    }
    Numbering numbering(p.k);
    for (int64_t i = 0; i < p.k; i++) {
      number_[i] = numbering(offset[i]);
    }
    count_ = numbering.count();
    std::copy_n(numbering.keys(), count_, offset_.data());
  }
  int64_t count() const { return count_; }
  const int64_t* number() const { return number_.data(); }
  int64_t offset(int64_t n) const { return offset_[n]; }

 private:
  Scratch<int64_t> number_;
  Scratch<int64_t> offset_;
  int64_t count_ = 0;
};

// One place after the other: what is written there is combined in the order of the positions.
template <class How, class T, class S>
void combine_by_place(char* to, const Positions& p, const int64_t* offset, const S* from) {
  using C = compute_t<T>;
  const Places places(p, offset);
  const int64_t m = places.count();
  const int64_t* const number = places.number();
  if (m == p.k) {  // none meet
    return write_positions<How, T>(to, p, offset, from);
  }
  const Scratch<int64_t> ends(m + 1);
  const Scratch<int64_t> uses(p.k);
  std::fill_n(ends.data(), m + 1, int64_t{0});
  for (int64_t i = 0; i < p.k; i++) {
    ends[number[i] + 1]++;
  }
  for (int64_t n = 0; n < m; n++) {
    ends[n + 1] += ends[n];
  }
  for (int64_t i = 0; i < p.k; i++) {
    uses[ends[number[i]]++] = i;
  }
  constexpr int64_t piece = 1024;
  const int64_t pieces = num_chunks(0, p.n_inner, piece);
  const int64_t work = std::min(piece, p.n_inner) * (p.k / m + 1);
  parallel_for(0, p.n_outer * m * pieces, std::max<int64_t>(1, work_per_task / work),
               [&](int64_t begin, int64_t end) {
                 alignas(64) C sums[piece];
                 for (int64_t task = begin; task < end; task++) {
                   const int64_t o = task / pieces / m;
                   const int64_t n = task / pieces % m;
                   const int64_t first = task % pieces * piece;
                   const int64_t last = std::min(first + piece, p.n_inner);
                   const int64_t start = n == 0 ? 0 : ends[n - 1];
                   char* const base = to + p.outer.offset(o) + places.offset(n);
                   const S* const source = from + o * p.k * p.n_inner;
                   const auto run = [&](int64_t at, int64_t offset, int64_t stride,
                                        int64_t length) {
                     if (ends[n] == start + 1) {
                       combine_run<How, T>(base + offset, stride,
                                           source + uses[start] * p.n_inner + at, length);
                       return;
                     }
                     convert_run<C, T>(sums, base + offset, stride, length);
                     for (int64_t u = start; u < ends[n]; u++) {
                       combine_run<How, C>(reinterpret_cast<char*>(sums), sizeof(C),
                                           source + uses[u] * p.n_inner + at, length);
                     }
                     combine_run<Assign, T>(base + offset, stride, sums, length);
                   };
                   if (p.inner.n <= 1) {
                     const int64_t stride = p.inner.n == 0 ? 0 : p.inner.stride[0];
                     run(first, first * stride, stride, last - first);
                   } else {
                     for_runs(p.inner, first, last, run);
                   }
                 }
               });
}

// Single elements, few against their target.
template <class How, class T, class S>
void combine_elements(char* to, int64_t k, const int64_t* offset, const S* from) {
  using C = compute_t<T>;
  Numbering number(k);
  const Scratch<C> sums(k);
  for (int64_t i = 0; i < k; i++) {
    const int64_t before = number.count();
    C& sum = sums[number(offset[i])];
    if (number.count() > before) {
      sum = static_cast<C>(*reinterpret_cast<const T*>(to + offset[i]));
    }
    How::apply(sum, from[i]);
  }
  for (int64_t n = 0; n < number.count(); n++) {
    *reinterpret_cast<T*>(to + number.keys()[n]) = static_cast<T>(sums[n]);
  }
}

// write_positions for elements that may meet.
template <class How, class T, class S>
void combine_positions(char* to, const Positions& p, const int64_t* offset, const S* from) {
  if constexpr (meets_wide<How, T>) {
    if (p.k > 1 && !overlaps(p.outer) && !overlaps(p.inner)) {
      constexpr int64_t row_of_its_own = 8;  // elements that are worth a look at their position
      const bool line = p.indexed.n == 1 && p.indexed.stride[0] > 0;
      if (line && p.indexed.size[0] <= (p.n_inner < row_of_its_own ? 4 * p.k : p.k)) {
        return combine_in_wide_type<How, T>(to, p, offset, from);
      }
      if (p.n_outer * p.n_inner == 1) {
        return combine_elements<How, T>(to, p.k, offset, from);
      }
      return combine_by_place<How, T>(to, p, offset, from);
    }
  }
  write_positions<How, T>(to, p, offset, from);
}

// One index of a vector per position along `dim` of t, as byte offsets. Negative ones count only
// where `wrap`.
void fill_line_offsets(const char* message, const Tensor& t, int64_t dim, const Tensor& index,
                       bool wrap, int64_t* offset) {
  const int64_t size = t.dim() == 0 ? 1 : t.sizes()[dim];
  const int64_t step = t.dim() == 0 ? 0 : byte_stride(t, dim);
  const ConvertRun read = reader<int64_t, set_Int | set_Long>("index", index.dtype());
  const int64_t stride = index.dim() == 0 ? 0 : byte_stride(index, 0);
  read(offset, index.data_ptr(), stride, index.numel());
  for (int64_t i = 0; i < index.numel(); i++) {
    int64_t at = offset[i];
    if (RL_UNLIKELY(at >= size || at < (wrap ? -size : 0))) {
      if (message != nullptr) {
        throw IndexError(message);
      }
      raise_out_of_bounds(at, dim, size);
    }
    at += at < 0 ? size : 0;
    offset[i] = at * step;
  }
}

Positions line_positions(const Tensor& t, int64_t dim, int64_t k) {
  Positions p;
  for (int64_t d = t.dim() - 1; d >= 0; d--) {
    Dims& dims = d == dim ? p.indexed : d < dim ? p.outer : p.inner;
    dims.add(t.sizes()[d], byte_stride(t, d));
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
  visit_dtype<set_all | set_ComplexHalf>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    combine_positions<How, T>(static_cast<char*>(out.data_ptr()), p, offset, source.data<T>());
  });
}

void put_bytes(const Tensor& out, const Positions& p, const int64_t* offset, const Tensor& source) {
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    write_positions<Assign, T>(static_cast<char*>(out.data_ptr()), p, offset,
                               static_cast<const T*>(source.data_ptr()));
  });
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
  visit_dtype<set_all | set_ComplexHalf>("index_add", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C factor = alpha.as<C>();
    const T* x = from.data<T>();
    using Product = std::conditional_t<meets_wide<Add, T>, C, T>;
    Scratch<Product> scaled(from.numel());
    for (int64_t i = 0; i < from.numel(); i++) {
      scaled[i] = static_cast<Product>(static_cast<C>(read_element(x + i)) * factor);
    }
    combine_positions<Add, T>(static_cast<char*>(out.data_ptr()), p, offset.data(), scaled.data());
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
  alignas(16) char number[16];
  store_scalar(number, out.dtype(), value);
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T filled = *reinterpret_cast<const T*>(number);
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

// ---- positions in the flattened tensor ----

namespace {

[[noreturn]] void out_of_range(int64_t at, int64_t numel) {
  throw IndexError(str("index ", at, " is out of range: a tensor of ", numel, " elements takes ",
                       -numel, " to ", numel - 1));
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
    dims.add(out.sizes()[d], byte_stride(out, d));
  }
  Positions p;
  p.indexed = dims;
  p.k = index.numel();
  Scratch<int64_t> offset(p.k);
  for (int64_t i = 0; i < p.k; i++) {
    offset[i] = dims.offset(at[i] + (at[i] < 0 ? size : 0));
  }
  const Tensor from = contiguous_raw(source);
  if (p.k == 0) {
    return;
  }
  if (accumulate) {
    visit_dtype<set_all>("put_", out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      combine_positions<Add, T>(static_cast<char*>(out.data_ptr()), p, offset, from.data<T>());
    });
  } else {
    put_bytes(out, p, offset.data(), from);
  }
}

}  // namespace rushlight::cpu::RL_ISA
