// What the files of this folder share. What ops do with sparse tensors is said by their entries
// (`sparse=`) and written here over ops on indices and values, so that derivatives, which are
// sparse with the same indices, come from those. Only the functions of make.cpp look inside.
#pragma once

#include <rushlight/ops.h>

#include "core/sparse.h"
#include "generated/contracts.h"

namespace rushlight::sparse {

inline bool is_coo(const Tensor& t) { return layout_of(t) == kSparse; }
inline bool is_compressed(Layout l) { return l != kStrided && l != kSparse; }
inline bool is_blocked(Layout l) { return l == kSparseBsr || l == kSparseBsc; }
inline bool is_by_column(Layout l) { return l == kSparseCsc || l == kSparseBsc; }
SparseTensor& sparse_impl(const Tensor& t);  // RuntimeError where it is not sparse
int64_t nnz(const Tensor& t);
int64_t batch_dims(const Tensor& t);  // 0 for COO
int64_t sparse_dims(const Tensor& t);
int64_t dense_dims(const Tensor& t);
void expect_coo(const char* op, const Tensor& t);

// Recorded: values are an input. Unchecked.
Tensor make(Layout layout, const Tensor& first, const Tensor& second, const Tensor& values,
            IntArrayRef sizes, bool coalesced);
Tensor make_coo(const Tensor& indices, const Tensor& values, IntArrayRef sizes, bool coalesced);
Tensor with_values(const Tensor& pattern, const Tensor& values);  // in a tensor's own pattern
// The elements of a dense tensor where a compressed mask has entries, zeros too, in their order.
Tensor mask_like(const Tensor& dense, const Tensor& mask);
Tensor values_of(const Tensor& t);  // recorded; of a coalesced one where it is COO
Tensor as_coo(const Tensor& t);     // coalesced, of any tensor
Tensor as_layout(const Tensor& t, Layout layout, const Tensor& model);
Tensor as_dense(const Tensor& t);

int64_t index_rows(const Tensor& indices);  // checked: one a sparse dimension
std::vector<std::optional<Tensor>> index_list(const Tensor& indices);
Tensor gather_values(const Tensor& dense, const Tensor& indices);  // dense[indices], recorded
// One number for each column of indices, in their order.
Tensor linear(const Tensor& indices, IntArrayRef sizes);
// Columns of indices sorted and each there once, and where each of them was found.
struct Unique {
  Tensor indices;
  Tensor inverse;
};
Unique unique_columns(const Tensor& indices, IntArrayRef sizes);
// The compressed dimension's index of each entry: (batch…, entries).
// 0 to n - 1, where another tensor lies.
inline Tensor count_up(int64_t n, const Tensor& beside) {
  return rushlight::arange(Scalar(n), TensorOptions(kInt64).device(beside.device()));
}
Tensor expand_starts(const Tensor& starts, int64_t entries);
Tensor row_starts(const Tensor& rows, int64_t n);
// csr_mm: rows given by their starts, columns, values, times a dense matrix; recorded.
Tensor csr_mm(const Tensor& starts, const Tensor& columns, const Tensor& values,
              const Tensor& dense);

// Whether the call writes into this tensor, so that a rule may: then the result is the tensor.
bool may_write(const Tensor& t);

void check_coo(const Tensor& indices, const Tensor& values, IntArrayRef sizes, bool coalesced);
void check_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                      const Tensor& values, IntArrayRef sizes);

}  // namespace rushlight::sparse
