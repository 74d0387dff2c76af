// nn::utils: gradients kept within limits, parameters as one vector, packed sequences.
#pragma once

#include <rushlight/functions.h>
#include <rushlight/nn/namespace.h>

namespace torch::nn::utils {

// Scales gradients in place so that their norm as one vector is at most max_norm; returns it.
RL_API double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                              double norm_type = 2, bool error_if_nonfinite = false);
RL_API double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2,
                              bool error_if_nonfinite = false);
RL_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
RL_API void clip_grad_value_(const Tensor& parameter, double clip_value);
RL_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
RL_API void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

namespace rnn {

// Sequences of different lengths, step after step.
class PackedSequence {
 public:
  PackedSequence() = default;
  PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                 Tensor unsorted_indices = {})
      : data_(std::move(data)),
        batch_sizes_(std::move(batch_sizes)),
        sorted_indices_(std::move(sorted_indices)),
        unsorted_indices_(std::move(unsorted_indices)) {}
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  // The numbers as the options say, the indices on the same device. Sizes of batches stay where
  // they are.
  RL_API PackedSequence to(const TensorOptions& options) const;
  PackedSequence cpu() const { return to(kCPU); }
  PackedSequence cuda() const { return to(kCUDA); }
  bool is_cuda() const { return data_.is_cuda(); }

 private:
  Tensor data_;
  Tensor batch_sizes_;
  Tensor sorted_indices_;
  Tensor unsorted_indices_;
};
RL_API PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first = false,
                                           bool enforce_sorted = true);
RL_API std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                                      bool batch_first = false,
                                                      double padding_value = 0,
                                                      std::optional<int64_t> total_length = {});
using rushlight::pad_sequence;
RL_API PackedSequence pack_sequence(const std::vector<Tensor>& sequences,
                                    bool enforce_sorted = true);
RL_API Tensor invert_permutation(const Tensor& permutation);

}  // namespace rnn
}  // namespace torch::nn::utils

namespace rushlight {
// What pad_packed_sequence makes of a sequence in the order of its lengths.
inline std::tuple<Tensor, Tensor> _pad_packed_sequence(const Tensor& data,
                                                       const Tensor& batch_sizes, bool batch_first,
                                                       const Scalar& padding_value,
                                                       int64_t total_length) {
  return nn::utils::rnn::pad_packed_sequence({data, batch_sizes}, batch_first,
                                             padding_value.toDouble(), total_length);
}
}  // namespace rushlight
