// Sorting along a dimension, and what follows from sorted rows: topk, kthvalue, median. Elements
// become unsigned numbers of the same order, NaN above all; CUB's radix sort, which is stable,
// sorts all rows at once by value and then by row. It is compiled for two kinds of keys only, for
// it takes the compiler long. Searching and counting stand here, too.
#undef NDEBUG
#include <cassert>

#include <cub/device/device_radix_sort.cuh>

#include "core/refusals.h"
#include "cuda/atomic.cuh"
#include "cuda/column.h"
#include "cuda/sort.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
struct MakeKeys {
  Key<T>* keys;
  uint32_t* places;
  const T* in;
  DimSplit split;
  bool descending;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t row = at[0] / split.n;
    const int64_t i = at[0] % split.n;
    keys[at[0]] = key_of(in[split.first(row) + i * split.inner], descending);
    places[at[0]] = static_cast<uint32_t>(at[0]);
  }
};
struct RowOf {
  uint32_t* rows;
  const uint32_t* places;
  uint32_t n;
  __device__ void operator()(const int64_t (&at)[1]) const { rows[at[0]] = places[at[0]] / n; }
};

template <class U>
void radix_sort(const Launch& launch, Device device, const U* keys, U* sorted_keys,
                const uint32_t* places, uint32_t* sorted, int64_t n, int bits) {
  const auto count = static_cast<uint32_t>(n);
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys, places, sorted, count, 0,
                                        bits, launch.stream()));
  const Scratch room(std::max<size_t>(bytes, 1), device);
  check(cub::DeviceRadixSort::SortPairs(room.as<void>(), bytes, keys, sorted_keys, places, sorted,
                                        count, 0, bits, launch.stream()));
}

int64_t sortable(const Tensor& self) {
  RL_CHECK(self.numel() <= 2147483647, "sorting more than 2^31 - 1 elements is not supported");
  return self.numel();
}

}  // namespace

void sort_pairs(const Launch& launch, Device device, const uint32_t* keys, uint32_t* sorted_keys,
                const uint32_t* places, uint32_t* sorted, int64_t n, int bits) {
  radix_sort(launch, device, keys, sorted_keys, places, sorted, n, bits);
}
void sort_pairs(const Launch& launch, Device device, const uint64_t* keys, uint64_t* sorted_keys,
                const uint32_t* places, uint32_t* sorted, int64_t n, int bits) {
  radix_sort(launch, device, keys, sorted_keys, places, sorted, n, bits);
}

SortedPlaces::SortedPlaces(const Tensor& self, const DimSplit& split, bool descending)
    : total_(sortable(self)), first_(bytes(), self.device()), second_(bytes(), self.device()) {
  if (total_ == 0) {
    return;
  }
  const Device device = self.device();
  const Space<1> elements{{total_}, {DimVector{1}}};
  const Launch launch(device);
  visit_dtype<set_real | set_Bool>("sort", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using K = Key<T>;
    const size_t key_bytes = static_cast<size_t>(total_) * sizeof(K);
    const Scratch keys(key_bytes, device);
    const Scratch sorted_keys(key_bytes, device);
    each(launch, elements,
         MakeKeys<T>{keys.as<K>(), unsorted(), self.data<T>(), split, descending});
    sort_pairs(launch, device, keys.as<K>(), sorted_keys.as<K>(), unsorted(), sorted_places(),
               total_, static_cast<int>(8 * sizeof(T)));
  });
  if (split.rows > 1) {
    const Scratch rows(bytes(), device);
    const Scratch sorted_rows(bytes(), device);
    each(launch, elements,
         RowOf{rows.as<uint32_t>(), sorted_places(), static_cast<uint32_t>(split.n)});
    int bits = 1;
    while (bits < 32 && (int64_t{1} << bits) < split.rows) {
      bits++;
    }
    sort_pairs(launch, device, rows.as<uint32_t>(), sorted_rows.as<uint32_t>(), sorted_places(),
               unsorted(), total_, bits);
    by_row_ = true;
  }
}

namespace {

// The first k of each row, in order.
template <class T>
struct WriteSorted {
  T* values;
  int64_t* indices;
  const T* in;
  const uint32_t* places;
  DimSplit from;
  DimSplit to;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t row = at[0] / to.n;
    const int64_t i = at[0] % to.n;
    const int64_t index = places[row * from.n + i] % from.n;
    const int64_t out = to.first(row) + i * to.inner;
    values[out] = in[from.first(row) + index * from.inner];
    indices[out] = index;
  }
};

void sort_into(const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim,
               bool descending) {
  if (values.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const DimSplit from = dim_split_of(self, dim);
  const SortedPlaces places(self, from, descending);
  const Launch launch(self.device());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<1>{{values.numel()}, {DimVector{1}}},
         WriteSorted<T>{static_cast<T*>(values.data_ptr()), indices.data<int64_t>(),
                        static_cast<const T*>(self.data_ptr()), places.get(), from,
                        dim_split_of(values, dim)});
  });
}

// One element of each sorted row: a fixed rank, or the middle.
enum class Rank { Fixed, Median, NanMedian };
template <class T>
struct Pick {
  T* values;
  int64_t* indices;
  const T* in;
  const uint32_t* places;
  DimSplit split;
  Rank rank;
  int64_t fixed;
  __device__ bool is_nan(int64_t row, int64_t i) const {
    const auto x = widen(in[at(row, i)]);
    return x != x;
  }
  __device__ int64_t at(int64_t row, int64_t i) const {
    return split.first(row) + places[row * split.n + i] % split.n * split.inner;
  }
  __device__ void operator()(const int64_t (&row_at)[1]) const {
    const int64_t row = row_at[0];
    int64_t chosen = fixed;
    if (rank != Rank::Fixed) {
      int64_t numbers = 0;  // before the first NaN
      int64_t high = split.n;
      while (numbers < high) {
        const int64_t middle = numbers + (high - numbers) / 2;
        if (is_nan(row, middle)) {
          high = middle;
        } else {
          numbers = middle + 1;
        }
      }
      if (rank == Rank::Median) {
        chosen = numbers < split.n ? numbers : (split.n - 1) / 2;
      } else {
        chosen = numbers == 0 ? 0 : (numbers - 1) / 2;
      }
    }
    values[row] = in[at(row, chosen)];
    indices[row] = places[row * split.n + chosen] % split.n;
  }
};

void select_by_rank(const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim,
                    Rank rank, int64_t fixed) {
  if (values.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const DimSplit split = dim_split_of(self, dim);
  const SortedPlaces places(self, split, false);
  const Launch launch(self.device());
  visit_dtype<set_real | set_Bool>("sort", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<1>{{split.rows}, {DimVector{1}}},
         Pick<T>{values.data<T>(), indices.data<int64_t>(), self.data<T>(), places.get(), split,
                 rank, fixed});
  });
}

// The most frequent element of each sorted row, the smallest of several, where it last stands.
template <class T>
struct Mode {
  T* values;
  int64_t* indices;
  const T* in;
  const uint32_t* places;
  DimSplit split;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t row = at[0];
    const uint32_t* const mine = places + row * split.n;
    const auto element = [&](int64_t i) {
      return in[split.first(row) + mine[i] % split.n * split.inner];
    };
    int64_t longest = 0;
    int64_t best = 0;
    for (int64_t i = 0; i < split.n;) {
      int64_t stop = i + 1;
      while (stop < split.n && key_of(element(stop), false) == key_of(element(i), false)) {
        stop++;
      }
      best = stop - i > longest ? stop - 1 : best;
      longest = stop - i > longest ? stop - i : longest;
      i = stop;
    }
    values[row] = element(best);
    indices[row] = mine[best] % split.n;
  }
};

// ---- searching and counting ----

// Where a value would be put into a sorted row.
template <class T, class R>
struct Search {
  R* out;
  const T* sorted;
  const T* values;
  const int64_t* sorter;  // may be null
  int64_t n;              // of a row
  int64_t per_row;        // values that belong to a row; 0: all to the only one
  bool right;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t row = per_row == 0 ? 0 : at[0] / per_row * n;
    const auto value = widen(values[at[0]]);
    int64_t low = 0;
    int64_t high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      int64_t place = middle;
      if (sorter != nullptr) {
        place = sorter[row + middle];
        assert(place >= 0 && place < n && "sorter index out of range");
      }
      const auto x = widen(sorted[row + place]);
      const bool before = right ? !(x > value) : !(x >= value);
      if (before) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    out[at[0]] = static_cast<R>(low);
  }
};

template <class T>
struct CountBins {
  unsigned long long* counts;
  const T* values;
  int64_t bins;
  compute_t<T> low;
  compute_t<T> high;
  __device__ void operator()(const int64_t (&at)[1]) const {
    using C = compute_t<T>;
    const C v = widen(values[at[0]]);
    if (v >= low && v <= high) {
      const auto bin = static_cast<int64_t>((v - low) / (high - low) * static_cast<C>(bins));
      atomicAdd(counts + (bin < 0 ? 0 : bin >= bins ? bins - 1 : bin), 1ULL);
    }
  }
};

template <class W>
struct CountInto {
  W* counts;
  const int64_t* values;
  const W* weights;  // null: 1
  int64_t bins;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t bin = values[at[0]];
    assert(bin >= 0 && bin < bins && "bincount only supports 1-d non-negative integral inputs.");
    atomic_combine<Add>(counts + bin, weights != nullptr ? weights[at[0]] : W(1));
  }
};

}  // namespace

}  // namespace cuda

void cuda::sort_stable(const Tensor& values, const Tensor& indices, const Tensor& self,
                       std::optional<bool>, int64_t dim, bool descending) {
  sort_into(values, indices, self, dim, descending);
}
void cuda::topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t,
                int64_t dim, bool largest, bool) {
  sort_into(values, indices, self, dim, largest);
}
void cuda::kthvalue(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k,
                    int64_t dim, bool) {
  select_by_rank(values, indices, self, dim, Rank::Fixed, k - 1);
}
void cuda::median_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                      bool) {
  select_by_rank(values, indices, self, dim, Rank::Median, 0);
}
void cuda::nanmedian_dim(const Tensor& values, const Tensor& indices, const Tensor& self,
                         int64_t dim, bool) {
  select_by_rank(values, indices, self, dim, Rank::NanMedian, 0);
}

void cuda::mode(const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim,
                bool) {
  if (values.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const DimSplit split = dim_split_of(self, dim);
  const SortedPlaces places(self, split, false);
  const Launch launch(self.device());
  visit_dtype<set_real | set_Bool>("mode", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<1>{{split.rows}, {DimVector{1}}},
         Mode<T>{values.data<T>(), indices.data<int64_t>(), self.data<T>(), places.get(), split});
  });
}

void cuda::searchsorted(const Tensor& out, const Tensor& sorted_sequence, const Tensor& self, bool,
                        bool right, std::optional<std::string_view>, const Tensor& sorter) {
  if (self.numel() == 0) {
    return;
  }
  const ScalarType common = promote_types(sorted_sequence.dtype(), self.dtype());
  const Tensor sorted = contiguous_raw(cast_raw(sorted_sequence, common));
  const Tensor values = contiguous_raw(on_device(cast_raw(self, common), sorted));
  const Tensor order = sorter.defined() ? contiguous_raw(sorter) : Tensor();
  const int64_t n = sorted.sizes()[sorted.sizes().size() - 1];
  const int64_t rows = n == 0 ? 1 : sorted.numel() / n;
  const int64_t per_row = sorted.dim() == 1 ? 0 : std::max<int64_t>(values.numel() / rows, 1);
  const Launch launch(out.device());
  visit_dtype<set_real | set_Bool>("searchsorted", common, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto result) {
      using R = typename decltype(result)::type;
      each(launch, Space<1>{{values.numel()}, {DimVector{1}}},
           Search<T, R>{out.data<R>(), sorted.data<T>(), values.data<T>(),
                        order.defined() ? order.data<int64_t>() : nullptr, n, per_row, right});
    };
    if (out.dtype() == kInt32) {
      run(TypeTag<int32_t>{});
    } else {
      run(TypeTag<int64_t>{});
    }
  });
}

void cuda::histc(const Tensor& out, const Tensor& self, int64_t bins, const Scalar& min,
                 const Scalar& max) {
  const Tensor values = contiguous_raw(self);
  const Tensor counts = make_empty({bins}, kInt64, self.device());
  fill_raw(counts, 0);
  visit_dtype<set_floating>("histc", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    C low = min.as<C>();
    C high = max.as<C>();
    if (low == high && values.numel() > 0) {  // the range of the values
      const Tensor extreme = make_empty({}, self.dtype(), self.device());
      cuda::min(extreme, values);
      low = extreme.item().as<C>();
      cuda::max(extreme, values);
      high = extreme.item().as<C>();
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    RL_CHECK(low - low == 0 && high - high == 0, "range of [", low, ", ", high, "] is not finite");
    RL_CHECK(low < high, "max must be larger than min");
    each(Launch(self.device()), Space<1>{{values.numel()}, {DimVector{1}}},
         CountBins<T>{reinterpret_cast<unsigned long long*>(counts.data<int64_t>()),
                      values.data<T>(), bins, low, high});
  });
  copy_raw(out, counts);
}

Tensor cuda::bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const char* const message = "bincount only supports 1-d non-negative integral inputs.";
  RL_CHECK(minlength >= 0, "minlength should be >= 0");
  RL_CHECK(self.dim() == 1 || self.numel() == 0, message);
  if (!is_integral(self.dtype())) {
    dtype_not_implemented("bincount", self.dtype());
  }
  check_bin_weights(self, weights);
  const ScalarType dtype = !weights.defined()            ? kInt64
                           : weights.dtype() == kFloat32 ? kFloat32
                                                         : kFloat64;
  const Tensor values = contiguous_raw(cast_raw(self, kInt64));
  int64_t bins = minlength;
  if (self.numel() != 0) {
    const Tensor extreme = make_empty({}, kInt64, self.device());
    cuda::min(extreme, values);
    RL_CHECK(extreme.item().as<int64_t>() >= 0, message);
    cuda::max(extreme, values);
    const int64_t high = extreme.item().as<int64_t>();
    RL_CHECK(high < INT64_MAX, "bincount(): number too large");
    bins = std::max(bins, high + 1);
  }
  const Tensor out = make_empty({bins}, dtype, self.device());
  fill_raw(out, 0);
  if (self.numel() == 0) {
    return out;
  }
  const Tensor w = weights.defined() ? contiguous_raw(cast_raw(weights, dtype)) : Tensor();
  const Launch launch(self.device());
  visit_dtype<set_Long | set_floats>("bincount", dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    each(launch, Space<1>{{values.numel()}, {DimVector{1}}},
         CountInto<W>{out.data<W>(), values.data<int64_t>(), w.defined() ? w.data<W>() : nullptr,
                      bins});
  });
  return out;
}

}  // namespace rushlight
