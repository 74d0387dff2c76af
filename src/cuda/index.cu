// Indexing, gathering and scattering. Indices are checked on the device: one that is out of bounds
// stops the kernel by an assertion, before anything beyond the tensor is touched.
#include "cuda/atomic.cuh"
#include "cuda/checked.cuh"
#include "cuda/column.h"
#include "cuda/each.cuh"

namespace rushlight {

namespace cuda {

namespace {

using Indices = std::vector<std::optional<Tensor>>;

// ---- index tensors for whole dimensions ----

constexpr int max_indexed = 16;

// Where index tensors point: the sum over indexed dimensions of index * stride.
struct Target {
  int count = 0;
  bool negative = true;  // -1 is the last
  const int64_t* index[max_indexed];
  int64_t size[max_indexed];
  int64_t stride[max_indexed];
  __device__ int64_t offset(int64_t at) const {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
      int64_t k = index[i][at];
      k += negative && k < 0 ? size[i] : 0;
      sum += checked_index(k, size[i]) * stride[i];
    }
    return sum;
  }
};

// Operands: the dense side (result or values), the indexed tensor, the number of the index.
struct Plan {
  Space<3> space;
  Target target;
  Indices held;
};

// `dense` has the shape that indexing gives, broadcast.
Plan plan_of(const Tensor& indexed, const Indices& indices, const Tensor& dense, bool negative) {
  Plan plan;
  plan.target.negative = negative;
  DimVector common;
  int64_t first = -1;
  int64_t last = -1;
  bool together = true;
  for (int64_t d = 0; d < indexed.dim(); d++) {
    const std::optional<Tensor>& t = indices[static_cast<size_t>(d)];
    if (!t.has_value()) {
      continue;
    }
    RL_CHECK(plan.target.count < max_indexed, "more than ", max_indexed,
             " tensors of indices are not supported on this device");
    const Tensor here = contiguous_raw(on_device(*t, indexed));
    plan.held.emplace_back(here);
    plan.target.index[plan.target.count] = here.data<int64_t>();
    plan.target.size[plan.target.count] = indexed.sizes()[d];
    plan.target.stride[plan.target.count] = indexed.strides()[d];
    plan.target.count++;
    together = together && (last < 0 || last == d - 1);
    first = first < 0 ? d : first;
    last = d;
    common = t->sizes();
  }
  const int64_t place = together && first > 0 ? first : 0;
  const DimVector steps = contiguous_strides(common);
  for (int64_t d = 0; d < std::max<int64_t>(indexed.dim(), 1); d++) {
    if (d == place) {
      for (size_t i = 0; i < common.size(); i++) {
        plan.space.sizes.push_back(common[i]);
        plan.space.strides[1].push_back(0);
        plan.space.strides[2].push_back(steps[i]);
      }
    }
    if (d < indexed.dim() && !indices[static_cast<size_t>(d)].has_value()) {
      plan.space.sizes.push_back(indexed.sizes()[d]);
      plan.space.strides[1].push_back(indexed.strides()[d]);
      plan.space.strides[2].push_back(0);
    }
  }
  plan.space.strides[0] = strides_over(dense, plan.space.sizes);
  return plan;
}

template <class T>
struct Read {
  T* out;
  const T* self;
  Target target;
  __device__ void operator()(const int64_t (&at)[3]) const {
    out[at[0]] = self[at[1] + target.offset(at[2])];
  }
};
template <class How, class T>
struct Write {
  const T* values;
  T* self;
  Target target;
  __device__ void operator()(const int64_t (&at)[3]) const {
    atomic_combine<How>(self + at[1] + target.offset(at[2]), read_element(values + at[0]));
  }
};

void read(const Tensor& out, const Tensor& self, const Indices& indices, bool negative) {
  const Plan plan = plan_of(self, indices, out, negative);
  const Launch launch(out.device());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, plan.space,
         Read<T>{static_cast<T*>(out.data_ptr()), static_cast<const T*>(self.data_ptr()),
                 plan.target});
  });
}

void write(const char* name, const Tensor& out, const Indices& indices, const Tensor& values,
           bool accumulate, bool negative) {
  const Tensor source = on_device(values, out);
  const Plan plan = plan_of(out, indices, source, negative);
  const Launch launch(out.device());
  if (accumulate) {
    visit_dtype<set_all>(name, out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      each(launch, plan.space, Write<Add, T>{source.data<T>(), out.data<T>(), plan.target});
    });
    return;
  }
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, plan.space,
         Write<Assign, T>{static_cast<const T*>(source.data_ptr()), static_cast<T*>(out.data_ptr()),
                          plan.target});
  });
}

Tensor at_least_1d(const Tensor& t) {
  return t.dim() > 0 ? t : make_view(t, {{1}, {1}, t.storage_offset()});
}
// One vector of indices along a dimension.
Indices indices_along(const Tensor& self, int64_t dim, const Tensor& index) {
  Indices indices(static_cast<size_t>(self.dim()));
  indices[static_cast<size_t>(dim)] = contiguous_raw(cast_raw(at_least_1d(index), kInt64));
  return indices;
}

// ---- gather and scatter: an index for each element ----

template <class T>
struct Gather {
  T* out;
  const int64_t* index;
  const T* self;
  int64_t size;
  int64_t stride;
  __device__ void operator()(const int64_t (&at)[3]) const {
    out[at[0]] = self[at[2] + checked_index(index[at[1]], size) * stride];
  }
};
template <class How, class T>
struct Scatter {
  T* out;
  const int64_t* index;
  const T* source;  // null: `value`
  T value;
  int64_t size;
  int64_t stride;
  __device__ void operator()(const int64_t (&at)[3]) const {
    atomic_combine<How>(out + at[0] + checked_index(index[at[1]], size) * stride,
                        source != nullptr ? read_element(source + at[2]) : value);
  }
};

// Tensor or number of a scatter.
struct Source {
  Tensor tensor;
  Scalar number;
};

template <class How, uint32_t Set>
void scatter(const char* name, const Tensor& out, int64_t dim, const Tensor& index,
             const Source& source) {
  if (index.numel() == 0) {
    return;
  }
  const Tensor to = at_least_1d(out);
  const Tensor places = at_least_1d(cast_raw(index, kInt64));
  const Tensor from = source.tensor.defined() ? at_least_1d(source.tensor) : Tensor();
  const DimVector sizes = places.sizes();
  DimVector source_strides(sizes.size());
  if (from.defined()) {
    source_strides = from.strides();
  }
  const Space<3> space{sizes, {with_zero(to.strides(), dim), places.strides(), source_strides}};
  const Launch launch(out.device());
  visit_dtype<Set>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T number = from.defined() ? T() : convert<T>(source.number.as<compute_t<T>>());
    each(launch, space,
         Scatter<How, T>{
             to.data<T>(), places.data<int64_t>(), from.defined() ? from.data<T>() : nullptr,
             number, to.sizes()[static_cast<size_t>(dim)], to.strides()[static_cast<size_t>(dim)]});
  });
}

constexpr uint32_t multiplied = set_all & ~static_cast<uint32_t>(set_ComplexDouble);

void scatter_reduce_by(const Tensor& out, int64_t dim, const Tensor& index, const Source& source,
                       std::string_view how) {
  if (how == "add" || how == "sum" || how == "mean") {
    scatter<Add, set_all>("scatter", out, dim, index, source);
  } else if (how == "multiply" || how == "prod") {
    scatter<Multiply, multiplied>("scatter", out, dim, index, source);
  } else if (how == "amax") {
    scatter<Larger, set_real | set_Bool>("scatter", out, dim, index, source);
  } else {
    scatter<Smaller, set_real | set_Bool>("scatter", out, dim, index, source);
  }
}

template <class T>
struct DivideByCount {
  T* x;
  const int64_t* n;
  __device__ void operator()(const int64_t (&at)[2]) const {
    if constexpr (std::is_integral_v<T>) {
      const T d = static_cast<T>(n[at[1]]);
      x[at[0]] = d == T(0) ? T(0) : math::div_floor(x[at[0]], d);
    } else {
      using C = compute_t<T>;
      const C d = C(static_cast<real_t<C>>(n[at[1]]));
      x[at[0]] = narrow<T>(widen(x[at[0]]) / d);
    }
  }
};

// ---- masks and triangles ----

template <class T>
struct MaskedFill {
  T* out;
  const uint8_t* mask;
  T value;
  __device__ void operator()(const int64_t (&at)[2]) const {
    if (mask[at[1]] != 0) {
      out[at[0]] = value;
    }
  }
};

template <class T>
struct Triangle {
  T* out;
  const T* self;
  int64_t diagonal;
  bool lower;
  __device__ void operator()(const int64_t (&at)[3]) const {  // at[2]: column - row
    const bool kept = lower ? at[2] <= diagonal : at[2] >= diagonal;
    out[at[0]] = kept ? self[at[1]] : T{};
  }
};

void triangle(const Tensor& out, const Tensor& self, int64_t diagonal, bool lower) {
  const size_t n = self.sizes().size();
  DimVector difference(n);
  difference[n - 1] = 1;
  difference[n - 2] = -1;
  const Launch launch(out.device());
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<3>{self.sizes(), {out.strides(), self.strides(), difference}},
         Triangle<T>{static_cast<T*>(out.data_ptr()), static_cast<const T*>(self.data_ptr()),
                     diagonal, lower});
  });
}

template <class T>
struct Move {
  T* out;
  const T* self;
  __device__ void operator()(const int64_t (&at)[2]) const { out[at[0]] = self[at[1]]; }
};

}  // namespace

}  // namespace cuda

void cuda::index(const Tensor& out, const Tensor& self, const Indices& indices) {
  read(out, self, indices, true);
}
void cuda::index_put(const Tensor& out, const Indices& indices, const Tensor& values,
                     bool accumulate) {
  write("index_put", out, indices, values, accumulate, true);
}
void cuda::index_select(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  const Tensor from = at_least_1d(self);
  read(at_least_1d(out), from, indices_along(from, dim, index), false);
}
void cuda::index_add(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source,
                     const Scalar& alpha) {
  const Tensor to = at_least_1d(out);
  Tensor from = at_least_1d(source);
  if (!alpha.equal(1)) {
    const Tensor scaled = make_empty(from.sizes(), from.dtype(), from.device());
    const Tensor factor = make_number(alpha);
    TensorIterator it("index_add");
    it.add_output(scaled);
    it.add_input(from);
    it.add_input(factor);
    it.build({Promote::Same, set_all});
    cuda::mul(it, nullptr);
    from = scaled;
  }
  write("index_add", to, indices_along(to, dim, index), from, true, false);
}
void cuda::index_copy(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source) {
  const Tensor to = at_least_1d(out);
  write("index_copy", to, indices_along(to, dim, index), at_least_1d(source), false, false);
}
void cuda::index_fill_value(const Tensor& out, int64_t dim, const Tensor& index,
                            const Scalar& value) {
  const Tensor to = at_least_1d(out);
  const Tensor number = make_empty({}, out.dtype(), out.device());
  fill_raw(number, value);
  write("index_fill", to, indices_along(to, dim, index), number, false, true);
}

void cuda::gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  if (index.numel() == 0) {
    return;
  }
  const Tensor to = at_least_1d(out);
  const Tensor from = at_least_1d(self);
  const Tensor places = at_least_1d(cast_raw(index, kInt64));
  const Space<3> space{places.sizes(),
                       {to.strides(), places.strides(), with_zero(from.strides(), dim)}};
  const Launch launch(out.device());
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, space,
         Gather<T>{static_cast<T*>(to.data_ptr()), places.data<int64_t>(),
                   static_cast<const T*>(from.data_ptr()), from.sizes()[static_cast<size_t>(dim)],
                   from.strides()[static_cast<size_t>(dim)]});
  });
}
void cuda::scatter_src(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter<Assign, set_all>("scatter", out, dim, index, {src, 0});
}
void cuda::scatter_value(const Tensor& out, int64_t dim, const Tensor& index, const Scalar& value) {
  scatter<Assign, set_all>("scatter", out, dim, index, {{}, value});
}
void cuda::scatter_src_reduce(const Tensor& out, int64_t dim, const Tensor& index,
                              const Tensor& src, std::string_view reduce) {
  scatter_reduce_by(out, dim, index, {src, 0}, reduce);
}
void cuda::scatter_value_reduce(const Tensor& out, int64_t dim, const Tensor& index,
                                const Scalar& value, std::string_view reduce) {
  scatter_reduce_by(out, dim, index, {{}, value}, reduce);
}
void cuda::scatter_add(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter<Add, set_all>("scatter_add", out, dim, index, {src, 0});
}
void cuda::scatter_reduce(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                          std::string_view reduce, bool include_self) {
  if (index.numel() == 0) {
    return;
  }
  if (!include_self) {
    Scalar start(reduce == "prod" ? 1 : 0);
    if (reduce == "amax" || reduce == "amin") {
      visit_dtype<set_real | set_Bool>("scatter_reduce", out.dtype(), [&](auto tag) {
        using T = compute_t<typename decltype(tag)::type>;
        using Limits = std::numeric_limits<T>;
        const T low = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
        const T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
        start = Scalar(reduce == "amax" ? low : high);
      });
    }
    scatter<Assign, set_all>("scatter_reduce", out, dim, index, {{}, start});
  }
  scatter_reduce_by(out, dim, index, {src, 0}, reduce);
  if (reduce != "mean") {
    return;
  }
  const Tensor count = make_empty(out.sizes(), kInt64, out.device());
  fill_raw(count, 1);
  if (!include_self) {
    scatter<Assign, set_Long>("scatter_reduce", count, dim, index, {{}, 0});
  }
  scatter<Add, set_Long>("scatter_reduce", count, dim, index, {{}, 1});
  const Launch launch(out.device());
  visit_dtype<set_numbers>("scatter_reduce", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<2>{out.sizes(), {out.strides(), count.strides()}},
         DivideByCount<T>{out.data<T>(), count.data<int64_t>()});
  });
}

void cuda::take(const Tensor& out, const Tensor& self, const Tensor& index) {
  if (index.numel() == 0) {
    return;
  }
  const Tensor dense = contiguous_raw(self);
  const Tensor flat = make_view(dense, {{dense.numel()}, {1}, dense.storage_offset()});
  const Tensor places = contiguous_raw(index);
  Indices indices = {make_view(places, {{places.numel()}, {1}, places.storage_offset()})};
  const Tensor result =
      out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype(), out.device());
  read(make_view(result, {{result.numel()}, {1}, result.storage_offset()}), flat, indices, true);
  if (!result.is_same(out)) {
    copy_raw(out, result);
  }
}
void cuda::put(const Tensor& out, const Tensor& index, const Tensor& source, bool accumulate) {
  if (index.numel() == 0) {
    return;
  }
  const Tensor result = contiguous_raw(out);
  const Tensor places = contiguous_raw(index);
  const Tensor from = contiguous_raw(source);
  Indices indices = {make_view(places, {{places.numel()}, {1}, places.storage_offset()})};
  write("put_", make_view(result, {{result.numel()}, {1}, result.storage_offset()}), indices,
        make_view(from, {{from.numel()}, {1}, from.storage_offset()}), accumulate, true);
  if (!result.is_same(out)) {
    copy_raw(out, result);
  }
}

void cuda::masked_fill_value(const Tensor& out, const Tensor& mask, const Scalar& value) {
  const Tensor where = on_device(mask, out);
  const Launch launch(out.device());
  visit_dtype<set_all>("masked_fill", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<2>{out.sizes(), {out.strides(), strides_over(where, out.sizes())}},
         MaskedFill<T>{out.data<T>(), where.data<uint8_t>(), convert<T>(value.as<compute_t<T>>())});
  });
}

void cuda::tril(const Tensor& out, const Tensor& self, int64_t diagonal) {
  triangle(out, self, diagonal, true);
}
void cuda::triu(const Tensor& out, const Tensor& self, int64_t diagonal) {
  triangle(out, self, diagonal, false);
}

void cuda::flip(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  if (out.numel() == 0) {
    return;
  }
  DimVector strides = self.strides();
  int64_t start = 0;
  for (const int64_t d : dims) {
    if (d < self.dim()) {
      start += (self.sizes()[d] - 1) * self.strides()[d];
      strides[static_cast<size_t>(d)] = -strides[static_cast<size_t>(d)];
    }
  }
  const Launch launch(out.device());
  visit_size(out.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<2>{out.sizes(), {out.strides(), strides}},
         Move<T>{static_cast<T*>(out.data_ptr()), static_cast<const T*>(self.data_ptr()) + start});
  });
}

void cuda::embedding(const Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool,
                     bool) {
  Indices rows(2);
  rows[0] = contiguous_raw(cast_raw(indices, kInt64));
  read(out, weight, rows, false);
}
}  // namespace rushlight
