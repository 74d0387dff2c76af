// Sorting along a dimension, and what follows from sorted rows: topk, kthvalue, median. Elements
// become unsigned numbers of the same order, NaN above all; CUB's radix sort, which is stable,
// sorts all rows at once by value and then by row. Searching and counting stand here, too.
#undef NDEBUG
#include <cassert>

#include <cub/device/device_radix_sort.cuh>

#include "cuda/atomic.cuh"
#include "cuda/memory.h"
#include "cuda/rows.cuh"
#include "generated/column.h"

namespace rushlight {

namespace cuda {

namespace {

template <int Size>
struct unsigned_of;
template <>
struct unsigned_of<1> {
  using type = uint8_t;
};
template <>
struct unsigned_of<2> {
  using type = uint16_t;
};
template <>
struct unsigned_of<4> {
  using type = uint32_t;
};
template <>
struct unsigned_of<8> {
  using type = uint64_t;
};
template <class T>
using Key = typename unsigned_of<sizeof(T)>::type;

// In the order of keys: -inf … -0 = 0 … inf, NaN.
template <class T>
__device__ Key<T> key_of(T x) {
  using U = Key<T>;
  constexpr U top = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<U>(x);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(x) ^ top);
  } else {
    const auto wide = widen(x);
    if (wide != wide) {
      return static_cast<U>(~U(0));
    }
    const U bits = wide == 0 ? U(0) : std::bit_cast<U>(x);
    return static_cast<U>((bits & top) != 0 ? ~bits : bits | top);
  }
}

template <class T>
struct MakeKeys {
  Key<T>* keys;
  int64_t* places;
  const T* in;
  Strip strip;
  bool descending;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t row = at[0] / strip.n;
    const int64_t i = at[0] % strip.n;
    const Key<T> key = key_of(in[strip.first(row) + i * strip.inner]);
    keys[at[0]] = descending ? static_cast<Key<T>>(~key) : key;
    places[at[0]] = at[0];
  }
};
struct RowOf {
  uint32_t* rows;
  const int64_t* places;
  int64_t n;
  __device__ void operator()(const int64_t (&at)[1]) const {
    rows[at[0]] = static_cast<uint32_t>(places[at[0]] / n);
  }
};

template <class U>
void sort_pairs(const Launch& launch, Device device, const U* keys, const int64_t* places,
                int64_t* sorted, int64_t n, int bits) {
  const Scratch sorted_keys(static_cast<size_t>(n) * sizeof(U), device);
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys.as<U>(), places, sorted,
                                        n, 0, bits, launch.stream()));
  const Scratch room(std::max<size_t>(bytes, 1), device);
  check(cub::DeviceRadixSort::SortPairs(room.as<void>(), bytes, keys, sorted_keys.as<U>(), places,
                                        sorted, n, 0, bits, launch.stream()));
}

// Positions in [rows, n], sorted by row and then by value: element i of row r comes from place
// r * n + result % n of it.
Tensor sorted_places(const Tensor& self, const Strip& strip, bool descending) {
  const int64_t total = self.numel();
  RL_CHECK(total <= 2147483647, "sorting more than 2^31 - 1 elements is not supported");
  const Device device = self.device();
  const Tensor places = make_empty({total}, kInt64, device);
  const Tensor sorted = make_empty({total}, kInt64, device);
  const Launch launch(device);
  visit_dtype<set_real | set_Bool>("sort", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Scratch keys(static_cast<size_t>(total) * sizeof(T), device);
    each(launch, Space<1>{{total}, {DimVector{1}}},
         MakeKeys<T>{keys.as<Key<T>>(), places.data<int64_t>(), self.data<T>(), strip, descending});
    sort_pairs(launch, device, keys.as<Key<T>>(), places.data<int64_t>(), sorted.data<int64_t>(),
               total, static_cast<int>(8 * sizeof(T)));
  });
  if (strip.rows == 1) {
    return sorted;
  }
  const Scratch rows(static_cast<size_t>(total) * sizeof(uint32_t), device);
  each(launch, Space<1>{{total}, {DimVector{1}}},
       RowOf{rows.as<uint32_t>(), sorted.data<int64_t>(), strip.n});
  int bits = 1;
  while (bits < 32 && (int64_t{1} << bits) < strip.rows) {
    bits++;
  }
  sort_pairs(launch, device, rows.as<uint32_t>(), sorted.data<int64_t>(), places.data<int64_t>(),
             total, bits);
  return places;
}

// The first k of each row, in order.
template <class T>
struct WriteSorted {
  T* values;
  int64_t* indices;
  const T* in;
  const int64_t* places;
  Strip from;
  Strip to;
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
  const Strip from = strip_of(self, dim);
  const Tensor places = sorted_places(self, from, descending);
  const Launch launch(self.device());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<1>{{values.numel()}, {DimVector{1}}},
         WriteSorted<T>{static_cast<T*>(values.data_ptr()), indices.data<int64_t>(),
                        static_cast<const T*>(self.data_ptr()), places.data<int64_t>(), from,
                        strip_of(values, dim)});
  });
}

// One element of each sorted row: a fixed rank, or the middle.
enum class Rank { Fixed, Median, NanMedian };
template <class T>
struct Pick {
  T* values;
  int64_t* indices;
  const T* in;
  const int64_t* places;
  Strip strip;
  Rank rank;
  int64_t fixed;
  __device__ bool is_nan(int64_t row, int64_t i) const {
    const auto x = widen(in[at(row, i)]);
    return x != x;
  }
  __device__ int64_t at(int64_t row, int64_t i) const {
    return strip.first(row) + places[row * strip.n + i] % strip.n * strip.inner;
  }
  __device__ void operator()(const int64_t (&row_at)[1]) const {
    const int64_t row = row_at[0];
    int64_t chosen = fixed;
    if (rank != Rank::Fixed) {
      int64_t numbers = 0;  // before the first NaN
      int64_t high = strip.n;
      while (numbers < high) {
        const int64_t middle = numbers + (high - numbers) / 2;
        if (is_nan(row, middle)) {
          high = middle;
        } else {
          numbers = middle + 1;
        }
      }
      if (rank == Rank::Median) {
        chosen = numbers < strip.n ? numbers : (strip.n - 1) / 2;
      } else {
        chosen = numbers == 0 ? 0 : (numbers - 1) / 2;
      }
    }
    values[row] = in[at(row, chosen)];
    indices[row] = places[row * strip.n + chosen] % strip.n;
  }
};

void pick(const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim, Rank rank,
          int64_t fixed) {
  if (values.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const Strip strip = strip_of(self, dim);
  const Tensor places = sorted_places(self, strip, false);
  const Launch launch(self.device());
  visit_dtype<set_real | set_Bool>("sort", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<1>{{strip.rows}, {DimVector{1}}},
         Pick<T>{values.data<T>(), indices.data<int64_t>(), self.data<T>(), places.data<int64_t>(),
                 strip, rank, fixed});
  });
}

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

template <class W>
struct CountInto {
  W* counts;
  const int64_t* values;
  const W* weights;  // null: 1
  int64_t bins;
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t bin = values[at[0]];
    assert(bin >= 0 && bin < bins && "bincount only supports 1-d non-negative integral inputs.");
    meet<Add>(counts + bin, weights != nullptr ? weights[at[0]] : W(1));
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
  pick(values, indices, self, dim, Rank::Fixed, k - 1);
}
void cuda::median_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                      bool) {
  pick(values, indices, self, dim, Rank::Median, 0);
}
void cuda::nanmedian_dim(const Tensor& values, const Tensor& indices, const Tensor& self,
                         int64_t dim, bool) {
  pick(values, indices, self, dim, Rank::NanMedian, 0);
}

void cuda::searchsorted(const Tensor& out, const Tensor& sorted_sequence, const Tensor& self, bool,
                        bool right, std::optional<std::string_view>, const Tensor& sorter) {
  if (self.numel() == 0) {
    return;
  }
  const Tensor sorted = contiguous_raw(sorted_sequence);
  const Tensor values = contiguous_raw(on_device(cast_raw(self, sorted.dtype()), sorted));
  const Tensor order = sorter.defined() ? contiguous_raw(sorter) : Tensor();
  const int64_t n = sorted.sizes()[sorted.sizes().size() - 1];
  const int64_t rows = n == 0 ? 1 : sorted.numel() / n;
  const int64_t per_row = sorted.dim() == 1 ? 0 : std::max<int64_t>(values.numel() / rows, 1);
  const Launch launch(out.device());
  visit_dtype<set_real | set_Bool>("searchsorted", sorted.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto result) {
      using R = typename decltype(result)::type;
      each(launch, Space<1>{{values.numel()}, {DimVector{1}}},
           Search<T, R>{out.data<R>(), sorted.data<T>(), values.data<T>(),
                        order.defined() ? order.data<int64_t>() : nullptr, n, per_row, right});
    };
    if (out.dtype() == kInt32) {
      run(Tag<int32_t>{});
    } else {
      run(Tag<int64_t>{});
    }
  });
}

Tensor cuda::bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const char* const message = "bincount only supports 1-d non-negative integral inputs.";
  RL_CHECK(minlength >= 0, "minlength should be >= 0");
  RL_CHECK(self.dim() == 1 || self.numel() == 0, message);
  if (!is_integral(self.dtype())) {
    dtype_not_implemented("bincount", self.dtype());
  }
  RL_CHECK(!weights.defined() || weights.sizes() == self.sizes(),
           "weights should be 1-d and have the same length as input");
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
