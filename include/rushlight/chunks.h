// Datasets that are read in chunks: threads read whole chunks ahead, in the order of one sampler,
// and mix the samples of each in the order of another.
#pragma once

#include <rushlight/data.h>

namespace torch::data {

namespace detail {
// A lock on which threads wait for one of two things, and threads that end together.
class RL_API Monitor {
 public:
  Monitor();
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  enum Event { Filled, Emptied };
  void wait(Event event);  // while it is locked
  void notify_all(Event event);
  class Lock {
   public:
    explicit Lock(Monitor& monitor) : monitor_(monitor) { monitor_.lock(); }
    ~Lock() { monitor_.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Monitor& monitor_;
  };

 private:
  void lock();
  void unlock();
  struct State;
  std::unique_ptr<State> state_;
};
class RL_API Threads {
 public:
  Threads();
  ~Threads();  // joins them
  void start(size_t count, const std::function<void()>& run);
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
}  // namespace detail

namespace datasets {

// Reads what a chunk holds. It is called from several threads at once.
template <class Single, class Chunk = std::vector<Single>>
class ChunkDataReader {
 public:
  using ChunkType = Chunk;
  using ExampleType = Single;
  using BatchType = Chunk;
  virtual ~ChunkDataReader() = default;
  virtual Chunk read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  virtual void reset() = 0;  // before each epoch
};

struct ChunkDatasetOptions {
  ChunkDatasetOptions() = delete;
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    RL_CHECK(preloader_count > 0, "Preloader count is 0. At least one is needed.");
    RL_CHECK(batch_size > 0, "Batch size is 0. It must be positive.");
    RL_CHECK(cache_size > 0, "Cache size is 0. It must be positive.");
    RL_CHECK(cache_size >= batch_size,
             "Cache size is less than batch size. It must hold at least one batch.");
    RL_CHECK(cross_chunk_shuffle_count > 0, "cross_chunk_shuffle_count must be greater than 0.");
  }
  TORCH_ARG(size_t, preloader_count);  // threads that read
  TORCH_ARG(size_t, batch_size);
  TORCH_ARG(size_t, cache_size) = 2048;              // samples that wait at most, or a chunk more
  TORCH_ARG(size_t, cross_chunk_shuffle_count) = 1;  // chunks that are mixed with each other
};

namespace detail {
using data::detail::Monitor;

// Batches that chunks were made into, and who waits for them.
template <class Batch, class ExampleSampler>
class BatchBuffer {
 public:
  BatchBuffer(size_t batch_size, ExampleSampler& sampler, size_t capacity)
      : batch_size_(batch_size), sampler_(sampler), capacity_(capacity) {}
  // Waits for a whole batch, or the end; the last one may be smaller.
  std::optional<Batch> take() {
    Entry entry;
    {
      const Monitor::Lock lock(monitor_);
      while (!stopped_ &&
             (queue_.empty() || (!queue_[0].error && queue_[0].batch.size() < batch_size_))) {
        monitor_.wait(Monitor::Filled);
      }
      if (queue_.empty()) {
        return {};
      }
      entry = std::move(queue_.front());
      queue_.erase(queue_.begin());
      count_ -= entry.batch.size();
    }
    monitor_.notify_all(Monitor::Emptied);
    if (entry.error) {
      throw WorkerException(entry.error);
    }
    return std::move(entry.batch);
  }
  void add(Batch chunk) {
    const Monitor::Lock lock(monitor_);
    if (!has_room()) {
      return;
    }
    sampler_.reset(chunk.size());
    count_ += chunk.size();
    for (size_t left = chunk.size(); left > 0;) {
      if (queue_.empty() || queue_.back().error || queue_.back().batch.size() >= batch_size_) {
        queue_.emplace_back();
      }
      Batch& batch = queue_.back().batch;
      const auto places = sampler_.next(std::min(left, batch_size_ - batch.size()));
      RL_CHECK(places.has_value() && !places->empty(), "the sampler of examples gave none of ",
               left);
      for (const size_t place : *places) {
        RL_CHECK_INDEX(place < chunk.size(), "Index out of range");
        batch.push_back(std::move(chunk[place]));
      }
      left -= places->size();
    }
    monitor_.notify_all(Monitor::Filled);
  }
  void add(std::exception_ptr error) {
    const Monitor::Lock lock(monitor_);
    if (has_room()) {
      queue_.emplace_back().error = std::move(error);
      monitor_.notify_all(Monitor::Filled);
    }
  }
  // What is there can still be taken.
  void stop() {
    const Monitor::Lock lock(monitor_);
    stopped_ = true;
    monitor_.notify_all(Monitor::Filled);
    monitor_.notify_all(Monitor::Emptied);
  }

 private:
  struct Entry {
    Batch batch;
    std::exception_ptr error;
  };
  bool has_room() {
    while (!stopped_ && count_ >= capacity_) {
      monitor_.wait(Monitor::Emptied);
    }
    return !stopped_;
  }
  size_t batch_size_;
  ExampleSampler& sampler_;
  size_t capacity_;
  Monitor monitor_;
  std::vector<Entry> queue_;
  size_t count_ = 0;  // of samples in the queue
  bool stopped_ = false;
};

}  // namespace detail

template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final
    : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                             typename ChunkReader::BatchType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  // `preprocess` is called with each chunk, or those that are mixed, before it is cut into batches.
  ChunkDataset(ChunkReader reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options,
               std::function<void(UnwrappedBatchType&)> preprocess = nullptr)
      : reader_(std::move(reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        options_(options),
        preprocess_(std::move(preprocess)) {}
  ~ChunkDataset() override { end(); }
  ChunkDataset(const ChunkDataset&) = delete;
  ChunkDataset& operator=(const ChunkDataset&) = delete;

  // Nothing once the epoch is over. WorkerException where reading a chunk threw.
  BatchType get_batch(size_t batch_size) override {
    RL_CHECK(buffer_ != nullptr, "Dataset needs to call reset() before calling get_batch().");
    RL_CHECK(batch_size == options_.batch_size(), "The requested batch size ", batch_size,
             " does not match with the initialized batch size ", options_.batch_size());
    return buffer_->take();
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }
  // Starts an epoch; one that was loaded goes on.
  void reset() override {
    end();
    if (!loaded_) {
      reader_.reset();
      chunk_sampler_.reset(reader_.chunk_count());
    }
    loaded_ = false;
    buffer_ = std::make_unique<detail::BatchBuffer<UnwrappedBatchType, ExampleSampler>>(
        options_.batch_size(), example_sampler_, options_.cache_size());
    quit_ = false;
    running_ = options_.preloader_count();
    threads_.start(options_.preloader_count(), [this] { preload(); });
  }
  std::optional<size_t> size() const override { return {}; }
  ChunkSampler& chunk_sampler() { return chunk_sampler_; }
  void save(serialize::OutputArchive& archive) const override {
    const detail::Monitor::Lock lock(monitor_);
    chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    const detail::Monitor::Lock lock(monitor_);
    chunk_sampler_.load(archive);
    loaded_ = true;
  }

 private:
  std::vector<size_t> next_chunks() {
    const detail::Monitor::Lock lock(monitor_);
    auto chunks = quit_ ? std::nullopt : chunk_sampler_.next(options_.cross_chunk_shuffle_count());
    return chunks ? *std::move(chunks) : std::vector<size_t>();
  }
  void preload() {
    for (std::vector<size_t> chunks = next_chunks(); !chunks.empty(); chunks = next_chunks()) {
      std::exception_ptr error;  // leaves here, so that who takes it is alone with it
      try {
        UnwrappedBatchType data = reader_.read_chunk(chunks[0]);
        for (size_t i = 1; i < chunks.size(); i++) {
          UnwrappedBatchType more = reader_.read_chunk(chunks[i]);
          data.insert(data.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
        }
        if (preprocess_) {
          preprocess_(data);
        }
        if (!data.empty()) {
          buffer_->add(std::move(data));
        }
      } catch (...) {
        error = std::current_exception();
      }
      if (error != nullptr) {
        buffer_->add(std::move(error));
      }
    }
    const detail::Monitor::Lock lock(monitor_);
    if (--running_ == 0) {
      buffer_->stop();
    }
  }
  void end() {
    {
      const detail::Monitor::Lock lock(monitor_);
      quit_ = true;
    }
    if (buffer_) {
      buffer_->stop();
    }
    threads_.join();
  }

  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  ChunkDatasetOptions options_;
  std::function<void(UnwrappedBatchType&)> preprocess_;
  std::unique_ptr<detail::BatchBuffer<UnwrappedBatchType, ExampleSampler>> buffer_;
  mutable detail::Monitor monitor_;  // of the sampler of chunks and of what follows
  size_t running_ = 0;
  bool quit_ = false;
  bool loaded_ = false;
  data::detail::Threads threads_;
};

}  // namespace datasets
}  // namespace torch::data
