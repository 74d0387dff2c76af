// Gradients within limits, parameters as a vector, packed sequences.
#include <rushlight/nn/utils.h>

#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/thread_state.h>

namespace torch::nn::utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) {
      norms.push_back(p.grad().norm(norm_type));
    }
  }
  if (norms.empty()) {
    return 0;
  }
  const Tensor total = stack(norms).norm(norm_type);
  const double number = total.item<double>();
  RL_CHECK(!error_if_nonfinite || std::isfinite(number), "The total norm of order ", norm_type,
           " for gradients from `parameters` is non-finite: clip_grad_norm_ has no factor for it. "
           "Look for NaN and infinity in .grad, or pass error_if_nonfinite=false.");
  const Tensor factor = (max_norm / (total + 1e-6)).clamp_max(1);  // rounded as Python rounds it
  if (factor.item<double>() != 1) {
    for (const Tensor& p : parameters) {
      if (p.grad().defined()) {
        p.grad().mul_(factor);
      }
    }
  }
  return number;
}
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) {
      p.grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
    }
  }
}

void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  flat.reserve(parameters.size());
  for (const Tensor& p : parameters) {
    flat.push_back(p.reshape(-1));
  }
  return cat(flat);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vector.slice(0, at, at + p.numel()).view_as(p).detach());
    at += p.numel();
  }
}

namespace rnn {

PackedSequence PackedSequence::to(const TensorOptions& options) const {
  const Tensor data = data_.to(options);
  const auto follows = [&](const Tensor& indices) {
    return indices.defined() ? indices.to(data.device()) : indices;
  };
  return PackedSequence(data, batch_sizes_, follows(sorted_indices_), follows(unsorted_indices_));
}

PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first,
                                    bool enforce_sorted) {
  Tensor sorted;
  Tensor unsorted;
  lengths = lengths.to(kInt64);
  if (batch_first) {
    input = input.transpose(0, 1);
  }
  if (!enforce_sorted) {
    std::tie(lengths, sorted) = lengths.sort(-1, true);
    unsorted = sorted.argsort();
    input = input.index_select(1, sorted);
  }
  const Tensor counts = lengths.contiguous();
  const int64_t* const n = counts.data_ptr<int64_t>();
  const int64_t batch = counts.numel();
  RL_CHECK(batch == input.size(1), "Expected `len(lengths)` to be equal to batch_size, but got ",
           batch, " (batch_size=", input.size(1), ")");
  for (int64_t i = 0; i < batch; i++) {
    RL_CHECK(n[i] > 0, "Length of all samples has to be greater than 0");
    RL_CHECK(n[i] <= input.size(0), "Expected lengths within the input's ", input.size(0),
             " steps");
    RL_CHECK(i == 0 || n[i] <= n[i - 1],
             "pack_padded_sequence: lengths must be sorted in decreasing order, but ", n[i],
             " follows ", n[i - 1], "; enforce_sorted=false sorts them");
  }
  std::vector<Tensor> steps;
  std::vector<int64_t> sizes;
  int64_t active = batch;
  for (int64_t step = 0; step < n[0]; step++) {
    while (n[active - 1] <= step) {
      active--;
    }
    steps.push_back(input.select(0, step).slice(0, 0, active));
    sizes.push_back(active);
  }
  return {cat(steps), tensor(sizes), sorted, unsorted};
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  lengths.reserve(sequences.size());
  for (const Tensor& s : sequences) {
    lengths.push_back(s.size(0));
  }
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths), false, enforce_sorted);
}

Tensor invert_permutation(const Tensor& permutation) {
  return permutation.defined() ? permutation.argsort() : Tensor();
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<int64_t> total_length) {
  const Tensor sizes = sequence.batch_sizes().contiguous();
  const int64_t* const n = sizes.data_ptr<int64_t>();
  const int64_t steps = sizes.numel();
  const int64_t length = total_length.value_or(steps);
  RL_CHECK(length >= steps, "pad_packed_sequence: expected a total_length of at least ", steps,
           ", the longest sequence, but got ", length);
  std::vector<Tensor> rows;
  std::vector<int64_t> lengths(static_cast<size_t>(n[0]));
  int64_t at = 0;
  for (int64_t step = 0; step < length; step++) {
    const int64_t active = step < steps ? n[step] : 0;
    Tensor row = sequence.data().slice(0, at, at + active);
    if (active < n[0]) {
      DimVector rest(row.sizes());
      rest[0] = n[0] - active;
      row = cat({row, full(rest, padding_value, row.options())});
    }
    for (int64_t i = 0; i < active; i++) {
      lengths[static_cast<size_t>(i)]++;
    }
    at += active;
    rows.push_back(row);
  }
  Tensor out = stack(rows);
  Tensor counts = tensor(lengths);
  if (sequence.unsorted_indices().defined()) {
    out = out.index_select(1, sequence.unsorted_indices());
    counts = counts.index_select(0, sequence.unsorted_indices());
  }
  return {batch_first ? out.transpose(0, 1) : out, counts};
}

}  // namespace rnn
}  // namespace torch::nn::utils
