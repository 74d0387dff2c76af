// libtorch's inner functions of sparse tensors.
#include <rushlight/factories.h>
#include <rushlight/internal_functions.h>

namespace rushlight {

// ---- making them ----

Tensor _coalesce(const Tensor& self) { return self.coalesce(); }
Tensor _coalesced(const Tensor& self, bool coalesced) {
  return self.clone()._coalesced_(coalesced);
}
Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                 const TensorOptions& options, std::optional<bool> is_coalesced) {
  return sparse_coo_tensor(indices, values, size, options, is_coalesced);
}
Tensor _sparse_coo_tensor_with_dims(int64_t sparse_dim, int64_t dense_dim, IntArrayRef size,
                                    const TensorOptions& options) {
  RL_CHECK(sparse_dim >= 0 && dense_dim >= 0 &&
               sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
           "_sparse_coo_tensor_with_dims: ", sparse_dim, " sparse and ", dense_dim,
           " dense dimensions are not those of sizes ", size);
  std::vector<int64_t> of_values{0};
  of_values.insert(of_values.end(), size.begin() + sparse_dim, size.end());
  const TensorOptions plain = options.layout(kStrided);
  return sparse_coo_tensor(empty({sparse_dim, 0}, plain.dtype(kLong)), empty(of_values, plain), size,
                           options, true);
}
Tensor _sparse_coo_tensor_with_dims_and_tensors(int64_t sparse_dim, int64_t dense_dim,
                                                IntArrayRef size, const Tensor& indices,
                                                const Tensor& values, const TensorOptions& options,
                                                std::optional<bool> is_coalesced) {
  RL_CHECK(indices.size(0) == sparse_dim && values.dim() == dense_dim + 1,
           "_sparse_coo_tensor_with_dims_and_tensors: indices of sizes ", indices.sizes(),
           " and values of sizes ", values.sizes(), " do not have ", sparse_dim, " sparse and ",
           dense_dim, " dense dimensions");
  return sparse_coo_tensor(indices, values, size, options, is_coalesced);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                const Tensor& values, const TensorOptions& options) {
  return sparse_compressed_tensor(compressed_indices, plain_indices, values, OptionalIntArrayRef(),
                                  options);
}
Tensor _sparse_compressed_tensor_unsafe(const Tensor& compressed_indices,
                                        const Tensor& plain_indices, const Tensor& values,
                                        IntArrayRef size, const TensorOptions& options) {
  return sparse_compressed_tensor(compressed_indices, plain_indices, values, size, options);
}
void _validate_sparse_compressed_tensor_args(const Tensor& compressed_indices,
                                             const Tensor& plain_indices, const Tensor& values,
                                             IntArrayRef size, Layout layout,
                                             std::optional<bool> /*check_pinning: none is*/) {
  _check_sparse_compressed(compressed_indices, plain_indices, values, size, layout);
}
#define RL_COMPRESSED(name, layout)                                                              \
  Tensor _sparse_##name##_tensor_unsafe(const Tensor& compressed_indices,                        \
                                        const Tensor& plain_indices, const Tensor& values,       \
                                        IntArrayRef size, const TensorOptions& options) {        \
    return sparse_##name##_tensor(compressed_indices, plain_indices, values, size, options);     \
  }                                                                                              \
  void _validate_sparse_##name##_tensor_args(const Tensor& compressed_indices,                   \
                                             const Tensor& plain_indices, const Tensor& values,  \
                                             IntArrayRef size, std::optional<bool>) {            \
    _check_sparse_compressed(compressed_indices, plain_indices, values, size, layout);           \
  }
RL_COMPRESSED(csr, kSparseCsr)
RL_COMPRESSED(csc, kSparseCsc)
RL_COMPRESSED(bsr, kSparseBsr)
RL_COMPRESSED(bsc, kSparseBsc)
#undef RL_COMPRESSED

// ---- products and reductions ----

Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense, std::string_view reduce) {
  RL_CHECK_NOT_IMPLEMENTED(reduce == "sum", "_sparse_mm: expected reduce to be \"sum\", got \"",
                           reduce, "\"");
  return _sparse_mm(sparse, dense);
}
Tensor _sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                     const Scalar& beta, const Scalar& alpha) {
  return addmm(self, mat1, mat2, beta, alpha);
}
Tensor _sparse_sparse_matmul(const Tensor& self, const Tensor& other) { return mm(self, other); }
Tensor _sparse_sum(const Tensor& self) { return _sum_of_sparse(self); }
Tensor _sparse_sum(const Tensor& self, ScalarType dtype) {
  return _sum_of_sparse(self, OptionalIntArrayRef(), dtype);
}
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim) { return _sum_of_sparse(self, dim); }
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return _sum_of_sparse(self, dim, dtype);
}
#define RL_OF_SPARSE(name)                                                                       \
  Tensor _sparse_##name(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {      \
    return _##name##_of_sparse(self, dim, dtype);                                                \
  }                                                                                              \
  Tensor _sparse_##name(const Tensor& self, int64_t dim, bool half_to_float) {                   \
    return _##name##_of_sparse(self, dim, half_to_float ? std::optional(kFloat) : std::nullopt); \
  }
RL_OF_SPARSE(softmax)
RL_OF_SPARSE(log_softmax)
#undef RL_OF_SPARSE

}  // namespace rushlight
