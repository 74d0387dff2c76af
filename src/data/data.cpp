// MNIST's files, samplers, and the threads of loaders.
#include <rushlight/chunks.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <rushlight/factories.h>

namespace torch::data {

// ---- MNIST ----

namespace {

// A file of bytes in the IDX format: a magic number, sizes as big-endian numbers, the bytes.
Tensor read_idx(const std::string& path, uint32_t magic, size_t dims) {
  std::ifstream file(path, std::ios::binary);
  RL_CHECK(file.good(), "Error opening images file at ", path);
  const auto number = [&] {
    unsigned char b[4] = {};
    file.read(reinterpret_cast<char*>(b), 4);
    RL_CHECK(file.good(), path, " ends within its header");
    return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
  };
  const uint32_t found = number();
  RL_CHECK(found == magic, path, " is no such file of MNIST: its magic number is ", found);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims; i++) {
    sizes.push_back(number());
  }
  const auto start = file.tellg();
  file.seekg(0, std::ios::end);
  int64_t wanted = 1;
  for (const int64_t n : sizes) {
    RL_CHECK(!__builtin_mul_overflow(wanted, n, &wanted), path, " has sizes that overflow");
  }
  RL_CHECK(file.tellg() - start >= wanted, path, " is shorter than its header says");
  file.seekg(start);
  Tensor t = empty(sizes, kUInt8);
  file.read(static_cast<char*>(t.data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  RL_CHECK(file.good() || t.numel() == 0, "Error reading ", path);
  return t;
}

std::string join_path(const std::string& root, const char* name) {
  return root.empty() || root.back() == '/' ? root + name : root + '/' + name;
}

}  // namespace

datasets::TensorDataset::TensorDataset(const std::vector<Tensor>& tensors)
    : TensorDataset(rushlight::stack(tensors)) {}
datasets::TensorDataset::TensorDataset(Tensor values) : tensor(std::move(values)) {}
TensorExample datasets::TensorDataset::get(size_t index) {
  return tensor[static_cast<int64_t>(index)];
}
std::optional<size_t> datasets::TensorDataset::size() const {
  return static_cast<size_t>(tensor.size(0));
}

Example<> transforms::Stack<Example<>>::apply_batch(std::vector<Example<>> examples) {
  std::vector<Tensor> data;
  std::vector<Tensor> targets;
  for (Example<>& e : examples) {
    data.push_back(std::move(e.data));
    targets.push_back(std::move(e.target));
  }
  return {rushlight::stack(data), rushlight::stack(targets)};
}
TensorExample transforms::Stack<TensorExample>::apply_batch(std::vector<TensorExample> examples) {
  std::vector<Tensor> data;
  for (TensorExample& e : examples) {
    data.push_back(std::move(e.data));
  }
  return rushlight::stack(data);
}

datasets::MNIST::MNIST(const std::string& root, Mode mode) : train_(mode == Mode::kTrain) {
  constexpr uint32_t images_magic = 2051;
  constexpr uint32_t labels_magic = 2049;
  const char* images = train_ ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
  const char* labels = train_ ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
  images_ = read_idx(join_path(root, images), images_magic, 3).to(kFloat32).div_(255).unsqueeze(1);
  targets_ = read_idx(join_path(root, labels), labels_magic, 1).to(kInt64);
  RL_CHECK(images_.size(0) == targets_.size(0), "MNIST: ", images_.size(0), " images but ",
           targets_.size(0), " labels");
}

Example<> datasets::MNIST::get(size_t index) {
  const auto i = static_cast<int64_t>(index);
  return {images_[i], targets_[i]};
}
std::optional<size_t> datasets::MNIST::size() const { return static_cast<size_t>(images_.size(0)); }

// ---- samplers ----

namespace samplers {

namespace {
void save_place(serialize::OutputArchive& archive, size_t place) {
  archive.write("index", IValue(static_cast<int64_t>(place)));
}
size_t load_place(serialize::InputArchive& archive) {
  IValue place;
  archive.read("index", place);
  return static_cast<size_t>(place.toInt());
}
}  // namespace

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}
std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  if (index_ >= size_) {
    return {};
  }
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  for (size_t& i : batch) {
    i = index_++;
  }
  return batch;
}
void SequentialSampler::save(serialize::OutputArchive& archive) const {
  save_place(archive, index_);
}
void SequentialSampler::load(serialize::InputArchive& archive) { index_ = load_place(archive); }

RandomSampler::RandomSampler(int64_t size, ScalarType index_dtype)
    : order_(randperm(size, index_dtype)) {}
void RandomSampler::reset(std::optional<size_t> new_size) {
  const int64_t size = new_size ? static_cast<int64_t>(*new_size) : order_.numel();
  order_ = randperm(size, order_.dtype());
  index_ = 0;
}
std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  const auto size = static_cast<size_t>(order_.numel());
  if (index_ >= size) {
    return {};
  }
  const size_t n = std::min(batch_size, size - index_);
  const auto first = static_cast<int64_t>(index_);
  const Tensor part = order_.slice(0, first, first + static_cast<int64_t>(n)).to(kInt64);
  const int64_t* const indices = part.data_ptr<int64_t>();
  index_ += n;
  return std::vector<size_t>(indices, indices + n);
}
void RandomSampler::save(serialize::OutputArchive& archive) const {
  save_place(archive, index_);
  archive.write("indices", order_, true);
}
void RandomSampler::load(serialize::InputArchive& archive) {
  index_ = load_place(archive);
  archive.read("indices", order_, true);
}

DistributedSampler::DistributedSampler(size_t size, size_t num_replicas, size_t rank,
                                       bool allow_duplicates)
    : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
  RL_CHECK(rank < num_replicas, "rank ", rank, " is not below the number of replicas ",
           num_replicas);
}
size_t DistributedSampler::local_sample_count() const {
  return (allow_duplicates_ ? size_ + num_replicas_ - 1 : size_) / num_replicas_;
}
void DistributedSampler::order(std::vector<size_t>&) const {}
void DistributedSampler::fill() {
  const size_t own = local_sample_count();
  std::vector<size_t> all(own * num_replicas_);
  if (all.size() < size_) {  // some are left out; which, the order says
    all.resize(size_);
  }
  for (size_t i = 0; i < all.size(); i++) {
    all[i] = i % std::max<size_t>(size_, 1);
  }
  order(all);
  const auto first = all.begin() + static_cast<ptrdiff_t>(rank_ * own);
  indices_.assign(first, first + static_cast<ptrdiff_t>(own));
  index_ = 0;
}
void DistributedSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  fill();
}
std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  if (index_ >= indices_.size()) {
    return {};
  }
  const size_t end = std::min(index_ + batch_size, indices_.size());
  std::vector<size_t> batch(indices_.begin() + static_cast<ptrdiff_t>(index_),
                            indices_.begin() + static_cast<ptrdiff_t>(end));
  index_ = end;
  return batch;
}
void DistributedSampler::save(serialize::OutputArchive& archive) const {
  save_place(archive, index_);
  archive.write("epoch", IValue(static_cast<int64_t>(epoch_)));
}
void DistributedSampler::load(serialize::InputArchive& archive) {
  IValue epoch;
  archive.read("epoch", epoch);
  epoch_ = static_cast<size_t>(epoch.toInt());
  fill();
  index_ = load_place(archive);
}
DistributedSequentialSampler::DistributedSequentialSampler(size_t size, size_t num_replicas,
                                                           size_t rank, bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  fill();
}
DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  fill();
}
void DistributedRandomSampler::order(std::vector<size_t>& indices) const {
  std::mt19937 random(static_cast<uint32_t>(epoch()));
  std::shuffle(indices.begin(), indices.end(), random);
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  seen_ = 0;
}
std::optional<size_t> StreamSampler::next(size_t batch_size) {
  if (seen_ >= epoch_size_) {
    return {};
  }
  const size_t n = std::min(batch_size, epoch_size_ - seen_);
  seen_ += n;
  return n;
}
void StreamSampler::save(serialize::OutputArchive& archive) const { save_place(archive, seen_); }
void StreamSampler::load(serialize::InputArchive& archive) { seen_ = load_place(archive); }

}  // namespace samplers

// ---- workers ----

namespace {
std::string text_of(const std::exception_ptr& original) {
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}
}  // namespace

WorkerException::WorkerException(std::exception_ptr original)
    : Error("Caught exception in DataLoader worker thread. Original message: " + text_of(original)),
      original_exception(std::move(original)) {}

namespace detail {

struct Monitor::State {
  std::mutex mutex;
  std::condition_variable events[2];
};
Monitor::Monitor() : state_(std::make_unique<State>()) {}
Monitor::~Monitor() = default;
void Monitor::lock() { state_->mutex.lock(); }
void Monitor::unlock() { state_->mutex.unlock(); }
void Monitor::wait(Event event) {
  std::unique_lock<std::mutex> lock(state_->mutex, std::adopt_lock);
  state_->events[event].wait(lock);
  lock.release();
}
void Monitor::notify_all(Event event) { state_->events[event].notify_all(); }

struct Threads::State {
  std::vector<std::thread> threads;
};
Threads::Threads() : state_(std::make_unique<State>()) {}
Threads::~Threads() { join(); }
void Threads::start(size_t count, const std::function<void()>& run) {
  for (size_t i = 0; i < count; i++) {
    state_->threads.emplace_back(run);
  }
}
void Threads::join() {
  for (std::thread& thread : state_->threads) {
    thread.join();
  }
  state_->threads.clear();
}

struct Workers::State {
  struct Result {
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };
  bool ordered;
  Make make;
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable done;
  std::deque<std::pair<uint64_t, std::shared_ptr<void>>> requests;
  std::map<uint64_t, Result> results;  // by the number of the request
  uint64_t pushed = 0;
  uint64_t next = 0;  // to be popped, where the order matters
  size_t waiting = 0;
  bool stop = false;
  std::vector<std::thread> threads;

  void run(size_t worker) {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || !requests.empty(); });
      if (stop) {
        return;
      }
      auto [number, request] = std::move(requests.front());
      requests.pop_front();
      lock.unlock();
      Result result;
      try {
        result.batch = make(worker, std::move(request));
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      results.emplace(number, std::move(result));
      done.notify_one();
    }
  }
};

Workers::Workers(size_t threads, bool ordered, Make make) : state_(std::make_unique<State>()) {
  state_->ordered = ordered;
  state_->make = std::move(make);
  for (size_t i = 0; i < threads; i++) {
    state_->threads.emplace_back([this, i] { state_->run(i); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_all();
  for (std::thread& thread : state_->threads) {
    thread.join();
  }
}

void Workers::push(std::shared_ptr<void> request) {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->requests.emplace_back(state_->pushed++, std::move(request));
    state_->waiting++;
  }
  state_->work.notify_one();
}

std::shared_ptr<void> Workers::pop() {
  State& s = *state_;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.done.wait(lock, [&] { return s.ordered ? s.results.count(s.next) != 0 : !s.results.empty(); });
  const auto found = s.ordered ? s.results.find(s.next) : s.results.begin();
  const State::Result result = std::move(found->second);
  s.results.erase(found);
  s.next++;
  s.waiting--;
  if (result.error) {
    throw WorkerException(result.error);
  }
  return result.batch;
}

size_t Workers::waiting() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->waiting;
}

void Workers::drain() {
  while (waiting() > 0) {
    try {
      pop();
    } catch (const WorkerException&) {  // of a batch that nobody wants any more
    }
  }
}

}  // namespace detail
}  // namespace torch::data
