// In which order the samples of a dataset are taken: samplers, which name the indices of a batch.
#pragma once

#include <optional>
#include <vector>

#include <rushlight/archive.h>
#include <rushlight/nn/namespace.h>

namespace torch::data {

namespace samplers {

template <class Request = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = Request;
  virtual ~Sampler() = default;
  virtual void reset(std::optional<size_t> new_size) = 0;
  virtual std::optional<Request> next(size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

// Numbers below a size, in order.
class RL_API SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return index_; }

 private:
  size_t size_;
  size_t index_ = 0;
};

// The same, in an order that is drawn for each epoch.
class RL_API RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(int64_t size, ScalarType index_dtype = kInt64);
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return index_; }

 private:
  Tensor order_;
  size_t index_ = 0;
};

// Numbers below a size, of which each of several processes (`num_replicas`, the one here being
// `rank`) goes through its share: `size / num_replicas` rounded up, where `allow_duplicates` lets
// some occur twice, or down.
class RL_API DistributedSampler : public Sampler<> {
 public:
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                     bool allow_duplicates = true);
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t index() const noexcept { return index_; }
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 protected:
  size_t local_sample_count() const;
  virtual void order(std::vector<size_t>& indices) const;  // before each takes its share
  void fill();

 private:
  size_t size_;
  size_t num_replicas_;
  size_t rank_;
  size_t epoch_ = 0;
  bool allow_duplicates_;
  std::vector<size_t> indices_;  // the share
  size_t index_ = 0;
};
class RL_API DistributedSequentialSampler : public DistributedSampler {
 public:
  DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                               bool allow_duplicates = true);
};
// In an order that set_epoch() says, the same in all processes.
class RL_API DistributedRandomSampler : public DistributedSampler {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true);

 protected:
  void order(std::vector<size_t>& indices) const override;
};

// Sizes of batches, until an epoch is over.
class RL_API StreamSampler : public Sampler<size_t> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<size_t> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t epoch_size_;
  size_t seen_ = 0;
};

}  // namespace samplers

}  // namespace torch::data
