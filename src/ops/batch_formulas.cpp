// Functions of the expressions of `batch=`: moves of the batch, and ops of which slices are put
// side by side in a way of their own.
#include "ops/batch_formulas.h"

#include <algorithm>
#include <map>

#include <rushlight/reduction.h>

#include "core/op_support.h"
#include "core/sparse.h"

namespace rushlight {

// ---- moves of the batch ----

Tensor first_of(const Tensor& t) { return t.select(0, 0); }

Tensor expand_batch(const Tensor& t, int64_t batch) {
  if (!t.defined() || t.size(0) == batch) {
    return t;
  }
  DimVector sizes(t.sizes());
  sizes[0] = batch;
  return t.expand(sizes);
}

Tensor merge_batch(const Tensor& t, int64_t dim, int64_t batch) {
  return t.defined() ? expand_batch(t, batch).movedim(0, dim).flatten(dim, dim + 1) : t;
}

Tensor split_batch(const Tensor& t, int64_t dim, int64_t batch) {
  if (!t.defined()) {
    return t;
  }
  RL_CHECK(batch > 0, "vmap: this op needs a batch of at least one slice");
  return t.unflatten(dim, {batch, t.size(dim) / batch}).movedim(dim, 0);
}

DimVector multiply_size(IntArrayRef sizes, int64_t dim, int64_t batch) {
  DimVector out(sizes);
  out[static_cast<size_t>(dim)] *= batch;
  return out;
}

Tensor flatten_slices(const Tensor& t, int64_t batch) {
  const Tensor all = expand_batch(t, batch);
  return all.dim() == 1 ? all.unsqueeze(1) : all.flatten(1);
}

Tensor with_dims(const Tensor& t, int64_t rank) {
  Tensor out = t;
  for (int64_t missing = rank + 1 - t.dim(); missing > 0; missing--) {
    out = out.unsqueeze(1);
  }
  return out;
}

// ---- indices ----

Tensor wrap_index(const Tensor& index, int64_t size) {
  return where(index.ge(0), index, index + size);
}

Tensor expand_index(const Tensor& index, int64_t dim, const Tensor& like, int64_t batch) {
  const int64_t n = index.dim() > 1 ? index.size(1) : 1;
  const int64_t at = wrap_dim(dim, like.dim());
  DimVector sizes(like.sizes());
  sizes[0] = batch;
  sizes[static_cast<size_t>(at)] = n;
  DimVector ones(sizes.size(), 1);
  ones[0] = batch;
  ones[static_cast<size_t>(at)] = n;
  return wrap_index(expand_batch(index, batch), like.size(at)).reshape(ones).expand(sizes);
}

Tensor offset_indices(const Tensor& indices, int64_t batch, int64_t rows) {
  const Tensor start = arange(batch, indices.options()) * rows;
  DimVector sizes(static_cast<size_t>(indices.dim()), 1);
  sizes[0] = batch;
  return expand_batch(indices, batch) + start.reshape(sizes);
}

std::vector<Tensor> expand_tensors(TensorList tensors, int64_t batch) {
  int64_t rank = 0;
  for (const Tensor& t : tensors) {
    rank = std::max(rank, t.dim());
  }
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    if (t.dim() == rank || t.dim() != 2 || t.numel() > 0) {
      out.push_back(expand_batch(t, batch));
    }
  }
  return out;
}

namespace {

bool is_mask(const Tensor& index) { return index.dtype() == kBool || index.dtype() == kUInt8; }

// Dimensions of a slice that are indexed, with their indices; a mask is those of its true elements.
std::map<int64_t, Tensor> places_of(const std::vector<std::optional<Tensor>>& indices) {
  std::map<int64_t, Tensor> found;
  int64_t dim = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) {
      dim++;
    } else if (is_mask(*index)) {
      RL_CHECK(index->size(0) == 1,
               "vmap: It looks like you're indexing with a mask whose true elements differ in "
               "number from slice to slice: vmap does not support ops of dynamic shape");
      for (const Tensor& i : index->squeeze(0).nonzero().unbind(1)) {
        found[dim++] = i.unsqueeze(0);
      }
    } else {
      found[dim++] = *index;
    }
  }
  return found;
}

struct IndexFront {
  Tensor self;                                 // indexed dimensions behind the batch
  DimVector order;                             // where its dimensions, but for the batch, came from
  std::vector<std::optional<Tensor>> indices;  // the batch's, then those of the dimensions
  int64_t start;  // where the block of indexed dimensions stands in a slice of the result
  int64_t block;  // how many dimensions it has
};

IndexFront move_index_to_front(const Tensor& self,
                               const std::vector<std::optional<Tensor>>& indices, int64_t batch) {
  const std::map<int64_t, Tensor> places = places_of(indices);
  IndexFront out;
  int64_t rank = 1;
  DimVector moved = {0};
  for (const auto& [dim, index] : places) {
    out.order.push_back(dim);
    moved.push_back(dim + 1);
    rank = std::max(rank, index.dim());
  }
  for (int64_t d = 0; d + 1 < self.dim(); d++) {
    if (!places.contains(d)) {
      out.order.push_back(d);
      moved.push_back(d + 1);
    }
  }
  const int64_t first = places.begin()->first;
  const bool adjacent = places.rbegin()->first - first + 1 == static_cast<int64_t>(places.size());
  DimVector slots(static_cast<size_t>(rank), 1);
  slots[0] = batch;
  out.indices.emplace_back(arange(batch, self.options().dtype(kInt64)).reshape(slots));
  for (const auto& [dim, index] : places) {
    out.indices.emplace_back(with_dims(index, rank - 1));
  }
  out.self = expand_batch(self, batch).permute(moved);
  out.start = adjacent ? first : 0;
  out.block = rank - 1;
  return out;
}

DimVector range_of(int64_t start, int64_t count) {
  DimVector out;
  for (int64_t i = 0; i < count; i++) {
    out.push_back(start + i);
  }
  return out;
}

}  // namespace

Tensor batched_index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                     int64_t batch) {
  const IndexFront f = move_index_to_front(self, indices, batch);
  return index(f.self, f.indices).movedim(range_of(1, f.block), range_of(f.start + 1, f.block));
}

Tensor batched_index_put(const Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                         const Tensor& values, bool accumulate, int64_t batch) {
  // A mask of each slice and one value: whatever the number of true elements, this is a choice.
  if (indices.size() == 1 && indices[0] && indices[0]->dtype() == kBool && values.dim() == 1 &&
      !accumulate) {
    Tensor mask = *indices[0];
    for (int64_t missing = self.dim() - mask.dim(); missing > 0; missing--) {
      mask = mask.unsqueeze(-1);
    }
    return where(mask, with_dims(values, self.dim() - 1).to(self.dtype()),
                 expand_batch(self, batch));
  }
  const IndexFront f = move_index_to_front(self, indices, batch);
  DimVector shape;
  for (const std::optional<Tensor>& i : f.indices) {
    shape = broadcast_sizes(shape, i->sizes());
  }
  const auto count = static_cast<int64_t>(f.indices.size());
  DimVector target = {batch};
  for (int64_t d = count; d < count + f.start; d++) {
    target.push_back(f.self.size(d));
  }
  for (size_t d = 1; d < shape.size(); d++) {
    target.push_back(shape[d]);
  }
  for (int64_t d = count + f.start; d < f.self.dim(); d++) {
    target.push_back(f.self.size(d));
  }
  const Tensor given = with_dims(values, static_cast<int64_t>(target.size()) - 1)
                           .expand(target)
                           .movedim(range_of(f.start + 1, f.block), range_of(1, f.block));
  const Tensor out = index_put(f.self, f.indices, given, accumulate);
  DimVector back(f.order.size() + 1);
  for (size_t i = 0; i < f.order.size(); i++) {
    back[static_cast<size_t>(f.order[i]) + 1] = static_cast<int64_t>(i) + 1;
  }
  return out.permute(back);
}

Tensor batched_put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
                   int64_t batch) {
  const int64_t size = product(self.sizes().slice(1, self.dim() - 1));
  const Tensor places = offset_indices(wrap_index(index, size), batch, size);
  return expand_batch(self, batch)
      .contiguous()
      .put(places, expand_batch(source, batch), accumulate);
}

Tensor batched_searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                            bool right, std::optional<std::string_view> side, const Tensor& sorter,
                            int64_t batch) {
  const auto dense = [&](const Tensor& t) {
    return t.defined() ? expand_batch(t, batch).contiguous() : t;
  };
  const bool one = sorted_sequence.dim() == 2;  // one sequence a slice, for values of any shape
  const Tensor values = one ? flatten_slices(self, batch).contiguous() : dense(self);
  const Tensor out =
      searchsorted(dense(sorted_sequence), values, out_int32, right, side, dense(sorter));
  DimVector sizes(self.sizes());
  sizes[0] = batch;
  return one ? out.reshape(sizes) : out;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> batched_recurrent_layer(
    const Tensor& gates, const Tensor& hidden, const Tensor& cell, const Tensor& weight_hh,
    const Tensor& bias_hh, const Tensor& weight_hr, IntArrayRef batch_sizes, std::string_view mode,
    bool reverse, bool batch_first, bool keep, int64_t batch) {
  // Rows are sequence after sequence where batch_first, else step after step: there the slices come
  // behind the sequences, so that those that end first are the last ones still.
  const auto join = [&](const Tensor& t) {
    if (!t.defined()) {
      return t;
    }
    const Tensor every = expand_batch(t, batch);
    return (batch_first ? every : every.transpose(0, 1)).flatten(0, 1);
  };
  const auto part = [&](const Tensor& t) {
    const int64_t rows = t.size(0) / batch;
    return batch_first ? t.unflatten(0, {batch, rows})
                       : t.unflatten(0, {rows, batch}).transpose(0, 1);
  };
  const auto first_if_defined = [](const Tensor& t) { return t.defined() ? first_of(t) : t; };
  DimVector sizes(batch_sizes);
  for (int64_t& n : sizes) {
    n *= batch;
  }
  const auto [output, last_hidden, last_cell, kept_gates, kept_cells] = _recurrent_layer(
      join(gates), join(hidden), join(cell), first_if_defined(weight_hh), first_if_defined(bias_hh),
      first_if_defined(weight_hr), sizes, mode, reverse, batch_first, keep);
  return {part(output), part(last_hidden), part(last_cell), part(kept_gates), part(kept_cells)};
}

Tensor batched_embedding_backward(const Tensor& grad_output, const Tensor& indices,
                                  int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                                  int64_t batch) {
  // One table of all slices; the rows of padding are set to 0 behind.
  const Tensor rows = offset_indices(indices, batch, num_weights);
  const Tensor out =
      split_batch(embedding_dense_backward(expand_batch(grad_output, batch), rows,
                                           num_weights * batch, -1, scale_grad_by_freq),
                  0, batch);
  if (padding_idx >= 0) {
    out.select(1, padding_idx).zero_();
  }
  return out;
}

// ---- products ----

namespace {
void check_rank(const char* op, const Tensor& t, int64_t rank) {
  RL_CHECK(t.dim() == rank + 1, "Shape mismatch: Got incorrect dims for ", op,
           ": expected a tensor of ", rank, " dimensions, got ", t.dim() - 1);
}
}  // namespace

Tensor batched_mv(const Tensor& self, const Tensor& vec) {
  check_rank("mv", self, 2);
  check_rank("mv", vec, 1);
  if (is_sparse(self)) {  // one matrix meets a column of each slice
    return self.squeeze(0).mm(vec.t()).t();
  }
  return self.matmul(vec.unsqueeze(-1)).squeeze(-1);
}

Tensor batched_dot(const Tensor& self, const Tensor& tensor) {
  check_rank("dot", self, 1);
  check_rank("dot", tensor, 1);
  RL_CHECK(self.size(1) == tensor.size(1), "inconsistent tensor size, expected tensor [",
           self.size(1), "] and src [", tensor.size(1), "] to have the same number of elements");
  const int64_t batch = std::max(self.size(0), tensor.size(0));
  return expand_batch(self, batch)
      .unsqueeze(1)
      .bmm(expand_batch(tensor, batch).unsqueeze(2))
      .flatten();
}

Tensor batched_mm(const Tensor& self, const Tensor& mat2, int64_t batch) {
  check_rank("mm", self, 2);
  check_rank("mm", mat2, 2);
  if (is_sparse(self)) {  // one matrix meets the columns of all slices
    const Tensor columns = expand_batch(mat2, batch).movedim(0, 1).flatten(1);
    return self.squeeze(0).mm(columns).unflatten(1, {batch, mat2.size(2)}).movedim(1, 0);
  }
  if (is_sparse(mat2) || (mat2.size(0) == 1 && batch != 1)) {  // rows of all slices meet one matrix
    return expand_batch(self, batch)
        .flatten(0, 1)
        .mm(mat2.squeeze(0))
        .unflatten(0, {batch, self.size(1)});
  }
  return self.matmul(mat2);
}

Tensor batched_bmm(const Tensor& self, const Tensor& mat2, int64_t batch) {
  check_rank("bmm", self, 3);
  check_rank("bmm", mat2, 3);
  if (is_sparse(self)) {  // as above, for each matrix
    const Tensor columns = expand_batch(mat2, batch).permute({1, 2, 0, 3}).flatten(2);
    const Tensor products = self.squeeze(0).bmm(columns);
    return products.unflatten(2, {batch, mat2.size(3)}).permute({2, 0, 1, 3});
  }
  if (is_sparse(mat2)) {
    return batched_bmm(mat2.transpose(2, 3), self.transpose(2, 3), batch).transpose(2, 3);
  }
  return split_batch(merge_batch(self, 0, batch).bmm(merge_batch(mat2, 0, batch)), 0, batch);
}

Tensor batched_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha, int64_t batch) {
  if (any_sparse(mat1, mat2)) {
    const bool neither_has_one = is_sparse(mat1) && is_sparse(mat2);
    const Tensor product = (neither_has_one ? mat1.squeeze(0).mm(mat2.squeeze(0)).to_dense()
                                            : batched_mm(mat1, mat2, batch))
                               .mul(make_number(alpha));
    const bool added = beta.to<complex<double>>() != complex<double>(0.0);
    return added ? with_dims(self, 2).mul(make_number(beta)) + product : product;
  }
  return baddbmm(with_dims(self, 2), expand_batch(mat1, batch), expand_batch(mat2, batch), beta,
                 alpha);
}

Tensor batched_int_mm(const Tensor& self, const Tensor& mat2, int64_t batch) {
  check_rank("_int_mm", self, 2);
  check_rank("_int_mm", mat2, 2);
  if (mat2.size(0) == 1) {
    const Tensor rows = expand_batch(self, batch).flatten(0, 1);
    return _int_mm(rows, mat2.squeeze(0)).unflatten(0, {batch, self.size(1)});
  }
  return expand_batch(self, batch).to(kInt32).bmm(expand_batch(mat2, batch).to(kInt32));
}

Tensor batched_baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                       const Scalar& beta, const Scalar& alpha, int64_t batch) {
  const DimVector sizes = {batch, batch1.size(1), batch1.size(2), batch2.size(3)};
  const Tensor added = with_dims(self, 3).expand(sizes).flatten(0, 1);
  return split_batch(
      baddbmm(added, merge_batch(batch1, 0, batch), merge_batch(batch2, 0, batch), beta, alpha), 0,
      batch);
}

Tensor batched_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Tensor out;
  if (weight.dim() == 2) {  // one row, whose dimension the result does not have
    out = (input * with_dims(weight, input.dim() - 1)).sum(-1);
  } else {
    out = with_dims(input, 2).matmul(
        with_dims(weight.transpose(-2, -1), std::max<int64_t>(input.dim() - 1, 2)));
    out = input.dim() == 2 ? out.squeeze(-2) : out;
  }
  return bias.defined() ? out + with_dims(bias, out.dim() - 1) : out;
}

// ---- memory ----

Tensor batched_new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                 const TensorOptions& options, int64_t batch) {
  RL_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
           ") must match dimensionality of strides (", stride.size(), ")");
  int64_t span = 1;
  DimVector sizes = {batch};
  DimVector strides = {0};
  for (size_t i = 0; i < size.size(); i++) {
    span += std::max<int64_t>(size[i] - 1, 0) * stride[i];
    sizes.push_back(size[i]);
    strides.push_back(stride[i]);
  }
  strides[0] = span;
  return new_empty_strided(self, sizes, strides, options);
}

// ---- losses of classes ----

namespace {

// The weight of each target, 0 for those that do not count.
Tensor class_weights(const Tensor& target, const Tensor& weight, int64_t ignore_index,
                     ScalarType dtype) {
  const Tensor counts = target.ne(ignore_index);
  if (!weight.defined()) {
    return counts.to(dtype);
  }
  return weight.take(target.masked_fill(counts.logical_not(), 0)) * counts;
}

// Losses of samples, reduced slice by slice, and the sum of weights of each slice.
Two reduce_slices(const Tensor& loss, const Tensor& target, const Tensor& weight, int64_t reduction,
                  int64_t ignore_index, int64_t batch) {
  const Tensor of_slices = split_batch(loss, 0, batch);
  const Tensor total =
      flatten_slices(class_weights(expand_batch(target, batch), weight, ignore_index, loss.dtype()),
                     batch)
          .sum(1);
  if (reduction == Reduction::None) {
    return {of_slices, total};
  }
  const Tensor sum = flatten_slices(of_slices, batch).sum(1);
  return {reduction == Reduction::Mean ? sum / total : sum, total};
}

// The gradient of a reduced loss as one of each sample's.
Tensor of_samples(const Tensor& grad_output, const Tensor& target, const Tensor& total_weight,
                  int64_t reduction, int64_t batch) {
  if (reduction == Reduction::None) {
    return merge_batch(grad_output, 0, batch);
  }
  const Tensor given = reduction == Reduction::Mean ? grad_output / total_weight : grad_output;
  DimVector sizes(target.sizes());
  sizes[0] = batch;
  return with_dims(given, target.dim() - 1).expand(sizes).flatten(0, 1);
}

// Classes' weights, which are those of all slices.
Tensor common(const Tensor& weight) { return weight.defined() ? first_of(weight) : weight; }

}  // namespace

Two batched_nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                     int64_t reduction, int64_t ignore_index, int64_t batch) {
  if (self.dim() == 2) {  // one sample
    auto [loss, total] = batched_nll_loss(self.unsqueeze(1), target.unsqueeze(1), weight, reduction,
                                          ignore_index, batch);
    return {reduction == Reduction::None ? loss.squeeze(1) : loss, total};
  }
  const Tensor loss =
      std::get<0>(_nll_loss(merge_batch(self, 0, batch), merge_batch(target, 0, batch),
                            common(weight), Reduction::None, ignore_index));
  return reduce_slices(loss, target, common(weight), reduction, ignore_index, batch);
}

Tensor batched_nll_loss_backward(const Tensor& grad_output, const Tensor& target,
                                 const Tensor& weight, const Tensor& total_weight,
                                 IntArrayRef sizes, int64_t reduction, int64_t ignore_index,
                                 int64_t batch) {
  if (sizes.size() == 1) {
    const Tensor given = reduction == Reduction::None ? grad_output.unsqueeze(1) : grad_output;
    return batched_nll_loss_backward(given, target.unsqueeze(1), weight, total_weight,
                                     {1, sizes[0]}, reduction, ignore_index, batch)
        .squeeze(1);
  }
  const Tensor given = of_samples(grad_output, target, total_weight, reduction, batch);
  return split_batch(_nll_loss_backward(given, merge_batch(target, 0, batch), common(weight),
                                        first_of(total_weight), multiply_size(sizes, 0, batch),
                                        Reduction::None, ignore_index),
                     0, batch);
}

Three batched_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction, int64_t ignore_index, double label_smoothing,
                            int64_t batch) {
  if (self.dim() == 2) {
    auto [loss, log_sum, total] =
        batched_cross_entropy(self.unsqueeze(1), target.unsqueeze(1), weight, reduction,
                              ignore_index, label_smoothing, batch);
    return {reduction == Reduction::None ? loss.squeeze(1) : loss, log_sum.squeeze(2), total};
  }
  const auto [loss, log_sum, unused] =
      _cross_entropy(merge_batch(self, 0, batch), merge_batch(target, 0, batch), common(weight),
                     Reduction::None, ignore_index, label_smoothing);
  auto [total_loss, total] =
      reduce_slices(loss, target, common(weight), reduction, ignore_index, batch);
  return {total_loss, split_batch(log_sum, 1, batch), total};
}

Tensor batched_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                      const Tensor& target, const Tensor& weight,
                                      const Tensor& log_sum, const Tensor& total_weight,
                                      int64_t reduction, int64_t ignore_index,
                                      double label_smoothing, int64_t batch) {
  if (self.dim() == 2) {
    return batched_cross_entropy_backward(
               reduction == Reduction::None ? grad_output.unsqueeze(1) : grad_output,
               self.unsqueeze(1), target.unsqueeze(1), weight, log_sum.unsqueeze(2), total_weight,
               reduction, ignore_index, label_smoothing, batch)
        .squeeze(1);
  }
  const Tensor given = of_samples(grad_output, target, total_weight, reduction, batch);
  return split_batch(_cross_entropy_backward(given, merge_batch(self, 0, batch),
                                             merge_batch(target, 0, batch), common(weight),
                                             merge_batch(log_sum, 1, batch), first_of(total_weight),
                                             Reduction::None, ignore_index, label_smoothing),
                     0, batch);
}

namespace {
TensorOptions of_space(const TensorOptions& options) {
  return TensorOptions(options).dtype(options.dtype_opt().value_or(get_default_dtype()));
}
}  // namespace

Tensor batched_space(const Tensor& start, const Tensor& end, int64_t steps,
                     const TensorOptions& options) {
  const Tensor n = rushlight::arange(Scalar(steps), of_space(options));
  const Tensor first = start.to(n.dtype()).unsqueeze(-1);
  const Tensor last = end.to(n.dtype()).unsqueeze(-1);
  const Tensor step = last.sub(first).div(Scalar(std::max<int64_t>(steps - 1, 1)));
  const Tensor rest = rushlight::rsub(n, Scalar(steps - 1));
  return where(n.lt(Scalar(steps / 2 + steps % 2)), first.add(step.mul(n)),
               last.sub(step.mul(rest)));
}
Tensor batched_space(const Tensor& start, const Scalar& end, int64_t steps,
                     const TensorOptions& options) {
  return batched_space(start, rushlight::full(start.sizes(), end, of_space(options)), steps,
                       options);
}
Tensor batched_space(const Scalar& start, const Tensor& end, int64_t steps,
                     const TensorOptions& options) {
  return batched_space(rushlight::full(end.sizes(), start, of_space(options)), end, steps, options);
}

}  // namespace rushlight
