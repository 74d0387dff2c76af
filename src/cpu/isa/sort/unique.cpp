// unique, searchsorted, bincount, histc.
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/op_support.h"
#include "core/parallel.h"
#include "core/refusals.h"
#include "cpu/isa/sort/sort_keys.h"
#include "cpu/readable.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

// From `order`, positions in which equal elements are neighbours, and same(i), whether the element
// at order(i) equals the one before it: the positions at which runs begin, which run each position
// belongs to, and the runs' lengths.
struct Runs {
  std::vector<int64_t> first;
  Tensor inverse;
  Tensor counts;
};

template <class Order, class Same>
Runs find_runs(int64_t n, bool want_inverse, bool want_counts, const Order& order,
               const Same& same) {
  Runs runs;
  runs.inverse = make_empty(want_inverse ? n : 0, kInt64, kCPU);
  int64_t* inverse = want_inverse ? runs.inverse.data<int64_t>() : nullptr;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || !same(i)) {
      runs.first.push_back(order(i));
      starts.push_back(i);
    }
    if (inverse != nullptr) {
      inverse[order(i)] = static_cast<int64_t>(starts.size()) - 1;
    }
  }
  const auto k = static_cast<int64_t>(starts.size());
  runs.counts = make_empty(want_counts ? k : 0, kInt64, kCPU);
  if (want_counts) {
    int64_t* counts = runs.counts.data<int64_t>();
    for (int64_t i = 0; i < k; i++) {
      counts[i] = (i + 1 < k ? starts[i + 1] : n) - starts[i];
    }
  }
  return runs;
}

// Element (or slice) positions of `x` that are the first of their kind, in a new tensor.
template <class T>
Tensor gather_elements(const T* x, const std::vector<int64_t>& at, ScalarType dtype) {
  const Tensor out = make_empty(static_cast<int64_t>(at.size()), dtype, kCPU);
  T* to = out.data<T>();
  for (size_t i = 0; i < at.size(); i++) {
    to[i] = x[at[i]];
  }
  return out;
}

Tensor with_sizes(const Tensor& t, IntArrayRef sizes) {
  return make_view(t, {sizes, contiguous_strides(sizes), t.storage_offset()});
}

// Slices along `dim` as contiguous rows: [n][the rest].
Tensor slices_of(const char* op, const Tensor& t, int64_t dim) {
  RL_CHECK_INDEX(t.dim() > 0, op, ": a 0-d tensor has no dimension to be unique along");
  check_unique_slices(op, t.sizes()[dim], t.numel());
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  const int64_t size = sizes[dim];
  const int64_t stride = strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  sizes.insert(0, size);
  strides.insert(0, stride);
  return with_valid_bools(make_view(t, {sizes, strides, t.storage_offset()}));
}

// The rows at these positions, with the slices' dimension back in its place.
Tensor pick_slices(const Tensor& slices, const std::vector<int64_t>& at, int64_t dim) {
  DimVector sizes = slices.sizes();
  const int64_t row = slices.sizes()[0] == 0 ? 0 : slices.nbytes() / slices.sizes()[0];
  sizes[0] = static_cast<int64_t>(at.size());
  const Tensor picked = make_empty(sizes, slices.dtype(), kCPU);
  for (size_t i = 0; row > 0 && i < at.size(); i++) {
    std::memcpy(static_cast<char*>(picked.data_ptr()) + static_cast<int64_t>(i) * row,
                static_cast<const char*>(slices.data_ptr()) + at[i] * row, row);
  }
  DimVector strides = picked.strides();
  const int64_t size = sizes[0];
  const int64_t stride = strides[0];
  sizes.erase(0);
  strides.erase(0);
  sizes.insert(dim, size);
  strides.insert(dim, stride);
  return contiguous_raw(make_view(picked, {sizes, strides, 0}));
}

// The values, inverse and counts of sorted items of `x`; same(i): item i has the value of the one
// before it. Chunks first count the runs that begin in them.
template <class T, class Item, class Same>
Three runs_of_items(const Tensor& x, const Item* sorted, bool return_inverse, bool return_counts,
                    const Same& same) {
  constexpr int64_t chunk = 32768;
  const int64_t n = x.numel();
  const T* const from = x.data<T>();
  const int64_t chunks = num_chunks(0, n, chunk);
  const auto begins_run = [&](int64_t i) { return i == 0 || !same(i); };
  std::vector<int64_t> rank(static_cast<size_t>(chunks) + 1, 0);
  parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
    int64_t runs = 0;
    for (int64_t i = c * chunk; i < std::min(n, (c + 1) * chunk); i++) {
      runs += begins_run(i) ? 1 : 0;
    }
    rank[c + 1] = runs;
  });
  for (int64_t c = 0; c < chunks; c++) {
    rank[c + 1] += rank[c];
  }
  const int64_t found = rank[chunks];
  const Tensor values = make_empty(found, x.dtype(), kCPU);
  const Tensor inverse = make_empty(return_inverse ? n : 0, kInt64, kCPU);
  const Tensor counts = make_empty(return_counts ? found : 0, kInt64, kCPU);
  const Scratch<int64_t> start(return_counts ? found + 1 : 1);
  T* const value = values.data<T>();
  int64_t* const rank_of = inverse.data<int64_t>();
  parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
    int64_t at = rank[c] - 1;
    for (int64_t i = c * chunk; i < std::min(n, (c + 1) * chunk); i++) {
      if (begins_run(i)) {
        at++;
        value[at] = from[sorted[i].index()];
        if (return_counts) {
          start[at] = i;
        }
      }
      if (return_inverse) {
        rank_of[sorted[i].index()] = at;
      }
    }
  });
  if (return_counts) {
    start[found] = n;
    for (int64_t i = 0; i < found; i++) {
      counts.data<int64_t>()[i] = start[i + 1] - start[i];
    }
  }
  return {values, inverse, counts};
}

// Integers of a range not much larger than their number: a table counts each, and then has the rank
// of each.
template <class T>
Three unique_in_table(const Tensor& x, const IntegerRange<T>& range, bool return_inverse,
                      bool return_counts) {
  const T* from = x.data<T>();
  const int64_t n = x.numel();
  const auto size = static_cast<int64_t>(range.offset_from_least(range.greatest)) + 1;
  const Scratch<uint32_t> table(size);
  std::fill_n(table.data(), size, uint32_t(0));
  for (int64_t i = 0; i < n; i++) {
    table[range.offset_from_least(from[i])]++;
  }
  const int64_t found = size - std::count(table.data(), table + size, uint32_t(0));
  const Tensor values = make_empty(found, x.dtype(), kCPU);
  const Tensor inverse = make_empty(return_inverse ? n : 0, kInt64, kCPU);
  const Tensor counts = make_empty(return_counts ? found : 0, kInt64, kCPU);
  int64_t rank = 0;
  for (int64_t k = 0; k < size; k++) {
    if (table[k] != 0) {
      values.data<T>()[rank] = static_cast<T>(static_cast<uint64_t>(range.least) + k);
      if (return_counts) {
        counts.data<int64_t>()[rank] = table[k];
      }
      table[k] = static_cast<uint32_t>(rank++);
    }
  }
  if (return_inverse) {
    int64_t* const to = inverse.data<int64_t>();
    parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        to[i] = table[range.offset_from_least(from[i])];
      }
    });
  }
  return {values, inverse, counts};
}

// Integers of any range whose positions nobody asks for: keys alone are sorted.
template <class T>
Three unique_values(const Tensor& x, bool return_counts) {
  const T* from = x.data<T>();
  const int64_t n = x.numel();
  const Scratch<BareKey> a(n);
  const Scratch<BareKey> b(n);
  parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      a[i] = {key_of<T>::get(from[i])};
    }
  });
  const BareKey* sorted = radix_sort(a.data(), b.data(), n, sizeof(T));
  const auto starts_run = [&](int64_t i) { return i == 0 || sorted[i].word != sorted[i - 1].word; };
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    found += starts_run(i) ? 1 : 0;
  }
  const Tensor values = make_empty(found, x.dtype(), kCPU);
  const Tensor counts = make_empty(return_counts ? found : 0, kInt64, kCPU);
  T* const to = values.data<T>();
  const Key<T> zero =
      key_of<T>::get(T(0));  // of integers, flipping these bits gives back the value
  int64_t run = -1;
  int64_t start = 0;
  for (int64_t i = 0; i <= n; i++) {
    if (i < n && !starts_run(i)) {
      continue;
    }
    if (run >= 0 && return_counts) {
      counts.data<int64_t>()[run] = i - start;
    }
    if (i < n) {
      to[++run] = static_cast<T>(static_cast<Key<T>>(sorted[i].word) ^ zero);
      start = i;
    }
  }
  return {values, make_empty(0, kInt64, kCPU), counts};
}

}  // namespace

Three _unique2(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  if (!contains(set_all, self.dtype())) {
    auto [values, inverse, counts] =
        _unique2(comparable(self), sorted, return_inverse, return_counts);
    return {from_comparable(values, self.dtype()), inverse, counts};
  }
  const Tensor x = with_valid_bools(self);
  const int64_t n = x.numel();
  RL_CHECK(n < (int64_t(1) << 32), "unique: tensors of 2^32 elements and more are not supported");
  return visit_dtype<set_real | set_Bool>("unique", x.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    constexpr bool is_integer = std::is_integral_v<T>;
    if constexpr (is_integer) {
      if (n != 0) {
        const IntegerRange<T> range = integer_range(from, n);
        constexpr uint64_t small_table = 1 << 16;
        if (range.offset_from_least(range.greatest) <
            std::max(small_table, 4 * static_cast<uint64_t>(n))) {
          const auto [values, inverse, counts] =
              unique_in_table(x, range, return_inverse, return_counts);
          return {values, return_inverse ? with_sizes(inverse, self.sizes()) : inverse, counts};
        }
        if (!return_inverse) {
          return unique_values<T>(x, return_counts);
        }
      }
    }
    Three result;
    const auto sort_items = [&](auto zero, int bytes, const auto& key) {
      using Item = decltype(zero);
      Scratch<Item> a(n);
      Scratch<Item> b(n);
      parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          a[i] = Item::make(key(from[i]), i);
        }
      });
      const Item* sorted = n == 0 ? a.data() : radix_sort(a.data(), b.data(), n, bytes);
      result = runs_of_items<T>(x, sorted, return_inverse, return_counts, [&](int64_t i) {
        const uint64_t k = sorted[i].key();
        // NaNs have one key, and none equals another.
        return k == sorted[i - 1].key() && (is_integer || k != static_cast<Key<T>>(~Key<T>(0)));
      });
    };
    if constexpr (sizeof(T) == 8 && is_integer) {
      const IntegerRange<T> range = n == 0 ? IntegerRange<T>() : integer_range(from, n);
      if (range.fits_word()) {
        sort_items(Item8(), range.key_bytes(), [&](T v) { return range.offset_from_least(v); });
      } else {
        sort_items(Item16(), sizeof(T), [](T v) { return key_of<T>::get(v); });
      }
    } else {
      using Item = std::conditional_t<sizeof(T) <= 4, Item8, Item16>;
      sort_items(Item(), sizeof(T), [](T v) { return key_of<T>::get(v); });
    }
    auto& [values, inverse, counts] = result;
    return {values, return_inverse ? with_sizes(inverse, self.sizes()) : inverse, counts};
  });
}

Three unique_dim(const Tensor& self, int64_t dim, bool sorted, bool return_inverse,
                 bool return_counts) {
  if (!contains(set_all, self.dtype())) {
    auto [values, inverse, counts] =
        unique_dim(comparable(self), dim, sorted, return_inverse, return_counts);
    return {from_comparable(values, self.dtype()), inverse, counts};
  }
  dim = wrap_dim(dim, self.dim());
  const Tensor slices = slices_of("unique_dim", self, dim);
  const int64_t n = slices.sizes()[0];
  const int64_t length = n == 0 ? 0 : slices.numel() / n;
  return visit_dtype<set_real | set_Bool>("unique_dim", self.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    const T* x = slices.data<T>();
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      for (int64_t i = 0; i < length; i++) {
        const auto a = key_of<T>::get(x[p * length + i]);
        const auto b = key_of<T>::get(x[q * length + i]);
        if (a != b) {
          return a < b;
        }
      }
      return false;
    });
    const Runs runs = find_runs(
        n, return_inverse, return_counts, [&](int64_t i) { return order[i]; },
        [&](int64_t i) {
          const T* slice = x + order[i] * length;
          return std::equal(slice, slice + length, x + order[i - 1] * length);
        });
    return {pick_slices(slices, runs.first, dim), runs.inverse, runs.counts};
  });
}

Three unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  if (!contains(set_all, self.dtype())) {
    auto [values, inverse, counts] =
        unique_consecutive(comparable(self), return_inverse, return_counts, dim);
    return {from_comparable(values, self.dtype()), inverse, counts};
  }
  const int64_t d = dim.has_value() ? wrap_dim(*dim, self.dim()) : 0;
  const Tensor slices =
      dim.has_value() ? slices_of("unique_consecutive", self, d) : with_valid_bools(self);
  const int64_t n = dim.has_value() ? slices.sizes()[0] : slices.numel();
  const int64_t length = n == 0 ? 0 : slices.numel() / n;
  return visit_dtype<set_all>("unique_consecutive", self.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    const T* x = slices.data<T>();
    const Runs runs = find_runs(
        n, return_inverse, return_counts, [](int64_t i) { return i; },
        [&](int64_t i) {
          const T* slice = x + i * length;
          return std::equal(slice, slice + length, slice - length);
        });
    if (dim.has_value()) {
      return {pick_slices(slices, runs.first, d), runs.inverse, runs.counts};
    }
    const Tensor inverse = return_inverse ? with_sizes(runs.inverse, self.sizes()) : runs.inverse;
    return {gather_elements(x, runs.first, self.dtype()), inverse, runs.counts};
  });
}

namespace {

// How many elements of the sequence come before v: those less than it, and equal ones too where
// `right`.
template <class T>
int64_t insertion_point(const T* x, int64_t n, T v, bool right) {
  int64_t low = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const T middle = x[low + half];
    const bool behind = right ? !(middle > v) : !(middle >= v);
    low = behind ? low + half + 1 : low;
    n = behind ? n - half - 1 : half;
  }
  return low;
}

}  // namespace

void searchsorted(const Tensor& out, const Tensor& sorted_sequence, const Tensor& self,
                  bool out_int32, bool right, std::optional<std::string_view>,
                  const Tensor& sorter) {
  if (out.numel() == 0) {
    return;
  }
  const ScalarType common = promote_types(sorted_sequence.dtype(), self.dtype());
  const Tensor sequence = with_valid_bools(comparable(cast_raw(sorted_sequence, common)));
  const Tensor values = with_valid_bools(comparable(cast_raw(self, common)));
  const Tensor order = sorter.defined() ? contiguous_raw(sorter) : Tensor();
  const int64_t n = sequence.sizes()[sequence.dim() - 1];
  const int64_t per_row = sequence.dim() == 1 ? values.numel() : values.sizes()[values.dim() - 1];
  visit_dtype<set_real | set_Bool>("searchsorted", sequence.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = sequence.data<T>();
    const T* v = values.data<T>();
    parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) {
      Scratch<T> ordered(order.defined() ? n : 0);
      int64_t ordered_row = -1;
      for (int64_t i = begin; i < end; i++) {
        const int64_t row = sequence.dim() == 1 ? 0 : i / per_row;
        const T* line = x + row * n;
        if (order.defined()) {
          if (ordered_row != row) {
            const int64_t* at = order.data<int64_t>() + row * n;
            for (int64_t j = 0; j < n; j++) {
              RL_CHECK(at[j] >= 0 && at[j] < n, "torch.searchsorted(): sorter index out of range");
              ordered[j] = line[at[j]];
            }
            ordered_row = row;
          }
          line = ordered.data();
        }
        const int64_t place = insertion_point(line, n, v[i], right);
        if (out_int32) {
          out.data<int32_t>()[i] = static_cast<int32_t>(place);
        } else {
          out.data<int64_t>()[i] = place;
        }
      }
    });
  });
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  RL_CHECK(minlength >= 0, "minlength should be >= 0");
  const char* message = "bincount only supports 1-d non-negative integral inputs.";
  if (!is_integral(self.dtype())) {
    dtype_not_implemented("bincount_cpu", self.dtype());
  }
  RL_CHECK(self.dim() == 1 || self.numel() == 0, message);
  check_bin_weights(self, weights);
  const Tensor numbers = contiguous_raw(cast_raw(self, kInt64));
  const int64_t* x = numbers.data<int64_t>();
  int64_t low = 0;
  int64_t high = -1;
  for (int64_t i = 0; i < self.numel(); i++) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  RL_CHECK(low >= 0, message);
  RL_CHECK(high < INT64_MAX, "bincount(): number too large");
  const int64_t bins = std::max(high + 1, minlength);
  if (!weights.defined()) {
    const Tensor out = make_empty(bins, kInt64, kCPU);
    int64_t* count = out.data<int64_t>();
    std::fill(count, count + bins, 0);
    for (int64_t i = 0; i < self.numel(); i++) {
      count[x[i]]++;
    }
    return out;
  }
  const ScalarType dtype = weights.dtype() == kFloat32 ? kFloat32 : kFloat64;
  const Tensor out = make_empty(bins, dtype, kCPU);
  const Tensor share = contiguous_raw(cast_raw(weights, dtype));
  visit_dtype<set_floats>("bincount", dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* total = out.data<T>();
    const T* w = share.data<T>();
    std::fill(total, total + bins, T(0));
    for (int64_t i = 0; i < self.numel(); i++) {
      total[x[i]] += w[i];
    }
  });
  return out;
}

void histc(const Tensor& out, const Tensor& self, int64_t bins, const Scalar& min,
           const Scalar& max) {
  const Tensor values = contiguous_raw(self);
  visit_dtype<set_floating>("histc", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* x = values.data<T>();
    T* to = out.data<T>();
    const int64_t n = values.numel();
    C low = min.as<C>();
    C high = max.as<C>();
    if (low == high && n > 0) {  // the range of the values
      low = math::infinity<C>;
      high = -math::infinity<C>;
      for (int64_t i = 0; i < n; i++) {
        low = std::min(low, static_cast<C>(x[i]));
        high = std::max(high, static_cast<C>(x[i]));
      }
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    RL_CHECK(low - low == 0 && high - high == 0, "range of [", low, ", ", high, "] is not finite");
    RL_CHECK(low < high, "max must be larger than min");
    std::vector<int64_t> count(bins, 0);
    for (int64_t i = 0; i < n; i++) {
      const C v = static_cast<C>(x[i]);
      if (v >= low && v <= high) {
        const auto bin = static_cast<int64_t>((v - low) / (high - low) * static_cast<C>(bins));
        count[std::clamp<int64_t>(bin, 0, bins - 1)]++;
      }
    }
    for (int64_t i = 0; i < bins; i++) {
      to[i] = static_cast<T>(static_cast<C>(count[i]));
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
