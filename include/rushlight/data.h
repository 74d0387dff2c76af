// data: datasets, transforms, samplers, and loaders that make batches, in threads where asked to.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rushlight/archive.h>
#include <rushlight/nn/options.h>
#include <rushlight/ops.h>
#include <rushlight/samplers.h>

namespace torch::data {

namespace example {
struct NoTarget {};
}  // namespace example

// A sample or a batch: data and its target.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data d, Target t) : data(std::move(d)), target(std::move(t)) {}
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data d) : data(std::move(d)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }
  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

// ---- datasets ----

namespace datasets {

template <class Source, class Transform>
class MapDataset;

// Gives batches for requests, which are usually lists of indices.
template <class Self, class Batch, class Request = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;
  static constexpr bool is_stateful = false;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(Request request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

// Gives single samples by index.
template <class Self, class Single = Example<>>
class Dataset : public BatchDataset<Self, std::vector<Single>> {
 public:
  using ExampleType = Single;
  virtual Single get(size_t index) = 0;
  std::vector<Single> get_batch(ArrayRef<size_t> indices) override {
    std::vector<Single> out;
    out.reserve(indices.size());
    for (const size_t i : indices) {
      out.push_back(get(i));
    }
    return out;
  }
};

// Gives batches by their size alone.
template <class Self, class Batch = std::vector<Example<>>>
class StreamDataset : public BatchDataset<Self, Batch, size_t> {};

// Gives batches, or nothing once an epoch is over, and says where it stands.
template <class Self, class Batch = std::vector<Example<>>, class Request = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, Request> {
 public:
  static constexpr bool is_stateful = true;
  virtual void reset() = 0;  // starts an epoch
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class... T>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const StatefulDataset<T...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... T>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    StatefulDataset<T...>& dataset) {
  dataset.load(archive);
  return archive;
}

template <bool optional, class T>
using optional_if_t = std::conditional_t<optional, std::optional<T>, T>;

// What a transform makes of a dataset's batches.
template <class Source, class Transform>
class MapDataset
    : public BatchDataset<MapDataset<Source, Transform>,
                          optional_if_t<Source::is_stateful, typename Transform::OutputBatchType>,
                          typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = Transform;
  using BatchRequestType = typename Source::BatchRequestType;
  using OutputBatchType = optional_if_t<Source::is_stateful, typename Transform::OutputBatchType>;
  static constexpr bool is_stateful = Source::is_stateful;
  MapDataset(Source source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  OutputBatchType get_batch(BatchRequestType request) override {
    if constexpr (is_stateful) {
      auto batch = source_.get_batch(std::move(request));
      return batch ? OutputBatchType(transform_.apply_batch(*std::move(batch))) : OutputBatchType();
    } else {
      return transform_.apply_batch(source_.get_batch(std::move(request)));
    }
  }
  template <class S = Source>
  auto reset() -> std::void_t<decltype(std::declval<S&>().reset())> {
    source_.reset();
  }
  std::optional<size_t> size() const noexcept override { return source_.size(); }
  const Source& dataset() const noexcept { return source_; }
  const Transform& transform() const noexcept { return transform_; }

 private:
  Source source_;
  Transform transform_;
};

// The slices of a tensor along its first dimension.
class RL_API TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  explicit TensorDataset(Tensor values);
  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;
  Tensor tensor;
};

// One dataset that all threads and epochs share, rather than copies.
template <class Shared>
class SharedBatchDataset
    : public BatchDataset<SharedBatchDataset<Shared>, typename Shared::BatchType,
                          typename Shared::BatchRequestType> {
 public:
  static constexpr bool is_stateful = Shared::is_stateful;
  SharedBatchDataset(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  typename Shared::BatchType get_batch(typename Shared::BatchRequestType request) override {
    return shared_->get_batch(std::move(request));
  }
  std::optional<size_t> size() const override { return shared_->size(); }
  template <class S = Shared>
  auto reset() -> std::void_t<decltype(std::declval<S&>().reset())> {
    shared_->reset();
  }
  Shared& operator*() { return *shared_; }
  Shared* operator->() { return shared_.get(); }

 private:
  std::shared_ptr<Shared> shared_;
};
template <class Shared, class... Args>
SharedBatchDataset<Shared> make_shared_dataset(Args&&... args) {
  return std::make_shared<Shared>(std::forward<Args>(args)...);
}

// Handwritten digits, from the four files of the MNIST database in a folder: images (1, 28, 28) in
// [0, 1] and labels.
class RL_API MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const noexcept { return train_; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Tensor images_;
  Tensor targets_;
  bool train_;
};

}  // namespace datasets
using datasets::BatchDataset;
using datasets::Dataset;
using datasets::MapDataset;
using datasets::StatefulDataset;
using datasets::StreamDataset;

// ---- transforms ----

namespace transforms {

template <class Input, class Output>
struct BatchTransform {
  using InputBatchType = Input;
  using OutputBatchType = Output;
  virtual ~BatchTransform() = default;
  virtual Output apply_batch(Input input) = 0;
};
template <class Input, class Output>
struct Transform : BatchTransform<std::vector<Input>, std::vector<Output>> {
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> inputs) override {
    std::vector<Output> out;
    out.reserve(inputs.size());
    for (Input& input : inputs) {
      out.push_back(apply(std::move(input)));
    }
    return out;
  }
};
template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  explicit BatchLambda(std::function<Output(Input)> f) : f_(std::move(f)) {}
  Output apply_batch(Input input) override { return f_(std::move(input)); }

 private:
  std::function<Output(Input)> f_;
};
template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  explicit Lambda(std::function<Output(Input)> f) : f_(std::move(f)) {}
  Output apply(Input input) override { return f_(std::move(input)); }

 private:
  std::function<Output(Input)> f_;
};
template <class Target = Tensor>
struct TensorTransform : Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<Tensor(Tensor)> f) : f_(std::move(f)) {}
  Tensor operator()(Tensor input) override { return f_(std::move(input)); }

 private:
  std::function<Tensor(Tensor)> f_;
};
// (x - mean) / stddev, with a number for each channel or one for all.
template <class Target = Tensor>
class Normalize : public TensorTransform<Target> {
 public:
  Normalize(ArrayRef<double> mean_, ArrayRef<double> stddev_)
      : mean(by_channel(mean_)), stddev(by_channel(stddev_)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean;
  Tensor stddev;

 private:
  static Tensor by_channel(ArrayRef<double> values) {
    const Tensor t = rushlight::empty({static_cast<int64_t>(values.size()), 1, 1}, kFloat32);
    for (size_t i = 0; i < values.size(); i++) {
      t.data_ptr<float>()[i] = static_cast<float>(values[i]);
    }
    return t;
  }
};

template <class T, class Batch = std::vector<T>>
struct Collation : BatchTransform<Batch, T> {};
template <class T, class Batch = std::vector<T>>
using Collate = BatchLambda<Batch, T>;
// A batch of samples as one sample of stacked tensors.
template <class T = Example<>>
struct Stack;
template <>
struct RL_API Stack<Example<>> : Collation<Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override;
};
template <>
struct RL_API Stack<TensorExample> : Collation<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override;
};

}  // namespace transforms

// ---- loaders ----

struct DataLoaderOptions {
  DataLoaderOptions(size_t batch_size = 1) : batch_size_(batch_size) {}
  TORCH_ARG(size_t, batch_size);
  TORCH_ARG(size_t, workers) = 0;              // threads
  TORCH_ARG(std::optional<size_t>, max_jobs);  // batches that are made ahead: twice the workers
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
};

// What a worker's exception arrives as.
struct RL_API WorkerException : Error {
  explicit WorkerException(std::exception_ptr original);
  std::exception_ptr original_exception;
};

namespace detail {
template <class T>
struct Content {
  using type = T;
};
template <class T>
struct Content<std::optional<T>> {
  using type = T;
};
// Threads that make batches of requests; batches come in the order of their requests if asked to.
class RL_API Workers {
 public:
  using Make = std::function<std::shared_ptr<void>(size_t worker, std::shared_ptr<void> request)>;
  Workers(size_t threads, bool ordered, Make make);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void push(std::shared_ptr<void> request);
  std::shared_ptr<void> pop();  // WorkerException where making it threw
  size_t waiting() const;       // pushed and not popped
  void drain();                 // drops all of them

 private:
  struct State;
  std::unique_ptr<State> state_;
};
}  // namespace detail

// An input iterator over what `next` gives, in order; equal to end() behind the last.
template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;
  Iterator() = default;
  explicit Iterator(std::function<std::shared_ptr<Batch>()> next) : next_(std::move(next)) {
    ++*this;
  }
  Iterator& operator++() {
    batch_ = next_();
    return *this;
  }
  Batch& operator*() const { return *batch_; }
  Batch* operator->() const { return batch_.get(); }
  friend bool operator==(const Iterator& a, const Iterator& b) {
    return (a.batch_ == nullptr) == (b.batch_ == nullptr);
  }
  friend bool operator!=(const Iterator& a, const Iterator& b) { return !(a == b); }

 private:
  std::function<std::shared_ptr<Batch>()> next_;
  std::shared_ptr<Batch> batch_;
};

template <class Dataset, class Sampler>
class DataLoader {
 public:
  static constexpr bool is_stateful = Dataset::is_stateful;
  using BatchType = typename detail::Content<typename Dataset::BatchType>::type;
  using BatchRequestType = typename Sampler::BatchRequestType;

  using Iterator = data::Iterator<BatchType>;

  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  DataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : options_(options), sampler_(std::move(sampler)) {
    const size_t threads = options.workers();
    datasets_.reserve(threads + 1);
    for (size_t i = 1; i < threads; i++) {
      datasets_.push_back(std::make_unique<Dataset>(dataset));
    }
    datasets_.push_back(std::make_unique<Dataset>(std::move(dataset)));
    if (threads > 0) {
      workers_ = std::make_unique<detail::Workers>(
          threads, options.enforce_ordering(),
          [this](size_t worker, const std::shared_ptr<void>& request) -> std::shared_ptr<void> {
            return make(*datasets_[worker],
                        std::move(*static_cast<BatchRequestType*>(request.get())));
          });
    }
  }
  // Starts an epoch.
  Iterator begin() {
    if (workers_) {
      workers_->drain();
    }
    sampler_.reset({});
    over_ = false;
    if constexpr (is_stateful) {
      datasets_[0]->reset();  // copies share what they read from
    }
    return Iterator([this] { return next(); });
  }
  Iterator end() { return Iterator(); }
  void join() { workers_.reset(); }
  const DataLoaderOptions& options() const noexcept { return options_; }

 private:
  std::shared_ptr<BatchType> next() {
    if (!workers_) {
      std::optional<BatchRequestType> request = request_next();
      return request ? make(*datasets_[0], std::move(*request)) : nullptr;
    }
    while (!over_ && workers_->waiting() < options_.max_jobs().value_or(2 * options_.workers())) {
      std::optional<BatchRequestType> request = request_next();
      if (!request) {
        break;
      }
      workers_->push(std::make_shared<BatchRequestType>(std::move(*request)));
    }
    std::shared_ptr<BatchType> out;
    while (out == nullptr && workers_->waiting() > 0) {
      out = std::static_pointer_cast<BatchType>(workers_->pop());
      over_ = over_ || out == nullptr;
    }
    return out;
  }
  static std::shared_ptr<BatchType> make(Dataset& dataset, BatchRequestType request) {
    auto batch = dataset.get_batch(std::move(request));
    if constexpr (is_stateful) {
      return batch ? std::make_shared<BatchType>(*std::move(batch)) : nullptr;
    } else {
      return std::make_shared<BatchType>(std::move(batch));
    }
  }
  std::optional<BatchRequestType> request_next() {
    std::optional<BatchRequestType> request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && size_of(*request) < options_.batch_size()) {
      request.reset();
    }
    return request;
  }
  static size_t size_of(size_t n) { return n; }
  static size_t size_of(const std::vector<size_t>& indices) { return indices.size(); }

  DataLoaderOptions options_;
  Sampler sampler_;
  bool over_ = false;                               // a worker found the end of the epoch
  std::vector<std::unique_ptr<Dataset>> datasets_;  // one for each worker
  std::unique_ptr<detail::Workers> workers_;        // ends before what its threads use
};
template <class Dataset, class Sampler>
using StatelessDataLoader = DataLoader<Dataset, Sampler>;

// Stands in for a sampler where the dataset knows its own order.
struct NoSampler {
  using BatchRequestType = size_t;
  explicit NoSampler(size_t = 0) {}
  void reset(std::optional<size_t>) {}
  std::optional<size_t> next(size_t batch_size) { return batch_size; }
};
template <class Dataset>
using StatefulDataLoader = DataLoader<Dataset, NoSampler>;

template <class Dataset, class Sampler>
std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, Sampler sampler,
                                                               DataLoaderOptions options) {
  return std::make_unique<DataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler),
                                                        options);
}
template <class Dataset, std::enable_if_t<Dataset::is_stateful, int> = 0>
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(Dataset dataset,
                                                              DataLoaderOptions options = {}) {
  return make_data_loader(std::move(dataset), NoSampler(), options);
}
template <class Sampler = samplers::RandomSampler, class Dataset,
          std::enable_if_t<!Dataset::is_stateful, int> = 0>
std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                               DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  RL_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}

}  // namespace torch::data
