// What the generated shape functions of reductions call: the sizes that are left, and the checks
// and dtypes that entries name. `dim` becomes the dimensions that are reduced, which kernels are
// given.
#pragma once

#include "generated/contracts.h"
#include "ops/contracts.h"

namespace rushlight {

// What a reduction goes over: an empty list of dimensions means all of them; the same, and there
// must be elements to choose from; an empty list means none.
enum class Reduces { All, Some, Listed };
struct NoDim {};  // an op that always reduces all dimensions

DimVector sizes_without(const char* name, const Tensor& self, std::optional<DimVector>& dim,
                        bool keepdim, Reduces how);
DimVector sizes_without(const char* name, const Tensor& self, DimVector& dim, bool keepdim,
                        Reduces how);
DimVector sizes_without(const char* name, const Tensor& self, std::optional<int64_t>& dim,
                        bool keepdim, Reduces how);
DimVector sizes_without(const char* name, const Tensor& self, int64_t& dim, bool keepdim,
                        Reduces how);
DimVector sizes_without(const char* name, const Tensor& self, NoDim, bool keepdim, Reduces how);

DimVector sizes_of_rows(const Tensor& self, int64_t& dim);

// Integers and bool add up in int64.
ScalarType sum_dtype(const Tensor& self, const std::optional<ScalarType>& dtype);
ScalarType mean_dtype(const Tensor& self, const std::optional<ScalarType>& dtype);
ScalarType truth_dtype(const Tensor& self);
ScalarType running_dtype(const Tensor& self, const std::optional<ScalarType>& dtype);
ScalarType softmax_dtype(const char* name, const Tensor& self,
                         const std::optional<ScalarType>& dtype);

void check_not_complex(const char* name, const Tensor& self);
void check_comparable(const char* name, const Tensor& self);
void check_same_sizes(const char* name, const Tensor& grad_output, const Tensor& output);
void check_rank(const Tensor& self, int64_t k, int64_t dim);
void check_ordered(const char* name, const Tensor& self);
void check_extremes(const Tensor& self, const std::optional<int64_t>& dim);
void check_position(const char* name, const Tensor& self, const std::optional<int64_t>& dim);
void check_variance(const char* name, const Tensor& self, const std::optional<DimVector>& dim,
                    const std::optional<Scalar>& correction);
void check_vector_norm(const Tensor& self, const Scalar& ord, const std::optional<DimVector>& dim,
                       const std::optional<ScalarType>& dtype);

}  // namespace rushlight
