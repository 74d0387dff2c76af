// Distinct elements, and distinct slices along a dimension. Slices stand as rows in an order in
// which equal ones are neighbours; those that differ from the one before begin a run, and a scan
// over them numbers the runs. Slices are ordered by sorting their places by the last element first.
#include "core/refusals.h"
#include "cuda/column.h"
#include "cuda/select.h"
#include "cuda/sort.cuh"

namespace rushlight {

namespace cuda {

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Space<1> numbers_to(int64_t n) { return {{n}, {DimVector{1}}}; }

// [n, length] and the order in which they are looked at.
template <class T>
struct Slices {
  const T* data;
  const uint32_t* order;  // null: as they stand
  int64_t length;
  __device__ int64_t place(int64_t i) const { return order != nullptr ? order[i] : i; }
  __device__ bool same(int64_t i, int64_t j) const {
    const T* const a = data + place(i) * length;
    const T* const b = data + place(j) * length;
    for (int64_t k = 0; k < length; k++) {
      if (!(widen(a[k]) == widen(b[k]))) {
        return false;
      }
    }
    return true;
  }
};

template <class T>
struct FindStarts {
  bool* starts;
  Slices<T> slices;
  __device__ void operator()(const int64_t (&at)[1]) const {
    starts[at[0]] = at[0] == 0 || !slices.same(at[0], at[0] - 1);
  }
};
struct NumberRuns {
  const bool* starts;
  const int64_t* before;
  const uint32_t* order;  // null: as they stand
  int64_t* first;         // of each run: where its first slice stands
  int64_t* begin;         // of each run, and the end
  int64_t* inverse;       // null: not wanted
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t i = at[0];
    const int64_t place = order != nullptr ? order[i] : i;
    if (starts[i]) {
      first[before[i]] = place;
      begin[before[i]] = i;
    }
    if (inverse != nullptr) {
      inverse[place] = before[i + 1] - 1;
    }
  }
};
struct Lengths {
  int64_t* counts;
  const int64_t* begin;
  __device__ void operator()(const int64_t (&at)[1]) const {
    counts[at[0]] = begin[at[0] + 1] - begin[at[0]];
  }
};

struct Runs {
  Tensor first;
  Tensor inverse;
  Tensor counts;
};

// Of n slices of `length` elements each.
template <class T>
Runs find_runs(const Tensor& slices, int64_t n, int64_t length, const uint32_t* order,
               bool want_inverse, bool want_counts) {
  const Device device = slices.device();
  const auto numbers = [&](int64_t size) { return make_empty({size}, kInt64, device); };
  const Launch launch(device);
  const Tensor starts = make_empty({n}, kBool, device);
  each(launch, numbers_to(n),
       FindStarts<T>{starts.data<bool>(), {slices.data<T>(), order, length}});
  const Places places = places_of(starts);
  const int64_t k = places.total;
  const Runs runs{numbers(k), numbers(want_inverse ? n : 0), numbers(want_counts ? k : 0)};
  const Tensor begin = numbers(k + 1);
  fill_raw(make_view(begin, {{}, {}, k}), n);
  each(launch, numbers_to(n),
       NumberRuns{starts.data<bool>(), places.before.data<int64_t>(), order,
                  runs.first.data<int64_t>(), begin.data<int64_t>(),
                  want_inverse ? runs.inverse.data<int64_t>() : nullptr});
  if (want_counts) {
    each(launch, numbers_to(k), Lengths{runs.counts.data<int64_t>(), begin.data<int64_t>()});
  }
  return runs;
}

Tensor with_sizes(const Tensor& t, IntArrayRef sizes) {
  return make_view(t, {sizes, contiguous_strides(sizes), t.storage_offset()});
}

Tensor select_along(const Tensor& self, int64_t dim, const Tensor& index) {
  DimVector sizes = self.sizes();
  sizes[static_cast<size_t>(dim)] = index.numel();
  const Tensor out = make_empty(sizes, self.dtype(), self.device());
  cuda::index_select(out, self, dim, index);
  return out;
}

// Slices along `dim` as contiguous rows.
Tensor slices_of(const Tensor& t, int64_t dim) {
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  const int64_t size = sizes[static_cast<size_t>(dim)];
  const int64_t stride = strides[static_cast<size_t>(dim)];
  sizes.erase(static_cast<size_t>(dim));
  strides.erase(static_cast<size_t>(dim));
  sizes.insert(0, size);
  strides.insert(0, stride);
  return contiguous_raw(make_view(t, {sizes, strides, t.storage_offset()}));
}

template <class T>
struct KeysOfColumn {
  Key<T>* keys;
  const T* slices;
  const uint32_t* order;
  int64_t length;
  int64_t column;
  __device__ void operator()(const int64_t (&at)[1]) const {
    keys[at[0]] = key_of(slices[order[at[0]] * length + column], false);
  }
};
struct Count {
  uint32_t* order;
  __device__ void operator()(const int64_t (&at)[1]) const {
    order[at[0]] = static_cast<uint32_t>(at[0]);
  }
};

// Calls f(order) with the places of n slices in order.
template <class T, class F>
auto with_order(const Tensor& slices, int64_t n, int64_t length, const F& f) {
  const Device device = slices.device();
  const Scratch first(static_cast<size_t>(n) * sizeof(uint32_t), device);
  const Scratch second(static_cast<size_t>(n) * sizeof(uint32_t), device);
  const Scratch keys(static_cast<size_t>(n) * sizeof(Key<T>), device);
  const Scratch sorted_keys(static_cast<size_t>(n) * sizeof(Key<T>), device);
  uint32_t* order = first.as<uint32_t>();
  uint32_t* other = second.as<uint32_t>();
  const Launch launch(device);
  each(launch, numbers_to(n), Count{order});
  for (int64_t column = length - 1; column >= 0; column--) {
    each(launch, numbers_to(n),
         KeysOfColumn<T>{keys.as<Key<T>>(), slices.data<T>(), order, length, column});
    sort_pairs(launch, device, keys.as<Key<T>>(), sorted_keys.as<Key<T>>(), order, other, n,
               static_cast<int>(8 * sizeof(T)));
    std::swap(order, other);
  }
  return f(order);
}

void check_dim(const char* op, const Tensor& self) {
  RL_CHECK(self.dim() > 0, op, ": a 0-d tensor has no dimension to be unique along");
}

}  // namespace

}  // namespace cuda

std::tuple<Tensor, Tensor, Tensor> cuda::_unique2(const Tensor& self, bool, bool return_inverse,
                                                  bool return_counts) {
  const Tensor x = contiguous_raw(self);
  const Tensor flat = with_sizes(x, {x.numel()});
  return visit_dtype<set_real | set_Bool>("unique", x.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    const SortedPlaces order(flat, dim_split_of(flat, 0), false);
    const Runs runs =
        find_runs<T>(flat, flat.numel(), 1, order.get(), return_inverse, return_counts);
    return {select_along(flat, 0, runs.first),
            return_inverse ? with_sizes(runs.inverse, self.sizes()) : runs.inverse, runs.counts};
  });
}

std::tuple<Tensor, Tensor, Tensor> cuda::unique_dim(const Tensor& self, int64_t given_dim, bool,
                                                    bool return_inverse, bool return_counts) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  check_dim("unique_dim", self);
  const Tensor slices = slices_of(self, dim);
  const int64_t n = slices.sizes()[0];
  check_unique_slices("unique_dim", n, slices.numel());
  RL_CHECK(n <= 2147483647, "unique_dim: more than 2^31 - 1 slices are not supported");
  const int64_t length = n == 0 ? 0 : slices.numel() / n;
  return visit_dtype<set_real | set_Bool>("unique_dim", self.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    return with_order<T>(slices, n, length, [&](const uint32_t* order) -> Three {
      const Runs runs = find_runs<T>(slices, n, length, order, return_inverse, return_counts);
      return {select_along(self, dim, runs.first), runs.inverse, runs.counts};
    });
  });
}

std::tuple<Tensor, Tensor, Tensor> cuda::unique_consecutive(const Tensor& self, bool return_inverse,
                                                            bool return_counts,
                                                            std::optional<int64_t> given_dim) {
  if (given_dim.has_value()) {
    check_dim("unique_consecutive", self);
  }
  const int64_t dim = given_dim.has_value() ? wrap_dim(*given_dim, self.dim()) : 0;
  const Tensor x = contiguous_raw(self);
  const Tensor whole = given_dim.has_value() ? self : with_sizes(x, {x.numel()});
  const Tensor slices = given_dim.has_value() ? slices_of(self, dim) : whole;
  const int64_t n = slices.sizes()[0];
  const int64_t length = n == 0 ? 0 : slices.numel() / n;
  return visit_dtype<set_all>("unique_consecutive", self.dtype(), [&](auto tag) -> Three {
    using T = typename decltype(tag)::type;
    const Runs runs = find_runs<T>(slices, n, length, nullptr, return_inverse, return_counts);
    const bool like_self = return_inverse && !given_dim.has_value();
    return {select_along(whole, dim, runs.first),
            like_self ? with_sizes(runs.inverse, self.sizes()) : runs.inverse, runs.counts};
  });
}

}  // namespace rushlight
