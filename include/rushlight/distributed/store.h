// Stores: small values under names, by which processes find each other before they can talk.
//
// Names and values are bytes. `get` and `wait` wait until a key is there, at most for the store's
// timeout. Everything may be called from several threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <rushlight/error.h>

namespace rushlight {

// What a store, a connection or a backend could not do: DistStoreError and its like in Python.
#define RL_DISTRIBUTED_ERROR(Name)   \
  class RL_API Name : public Error { \
   public:                           \
    using Error::Error;              \
    ~Name() override;                \
  }
RL_DISTRIBUTED_ERROR(StoreError);
RL_DISTRIBUTED_ERROR(NetworkError);
RL_DISTRIBUTED_ERROR(BackendError);
#undef RL_DISTRIBUTED_ERROR

}  // namespace rushlight

namespace rushlight::distributed {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// No key and no value is longer.
constexpr size_t max_key_bytes = size_t{1} << 16;
constexpr size_t max_value_bytes = size_t{1} << 30;

class RL_API Store {
 public:
  static constexpr Milliseconds default_timeout{300'000};

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store();

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key.
  virtual std::string get(const std::string& key) = 0;
  // Writes `desired` where the value is `expected`, or where `expected` is empty and there is none;
  // what is there afterwards (`expected` where there is nothing).
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) = 0;
  // Adds to a number, which begins at 0; the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual bool delete_key(const std::string& key) = 0;
  virtual bool check(const std::vector<std::string>& keys) = 0;
  virtual int64_t num_keys() = 0;
  virtual std::vector<std::string> list_keys() = 0;
  virtual void wait(const std::vector<std::string>& keys, Milliseconds timeout) = 0;
  // A store of its own on the same values, whose calls wait for nobody else's.
  virtual std::shared_ptr<Store> clone() = 0;

  virtual void append(const std::string& key, const std::string& value) = 0;
  virtual std::vector<std::string> multi_get(const std::vector<std::string>& keys);
  virtual void multi_set(const std::vector<std::string>& keys,
                         const std::vector<std::string>& values);
  virtual bool has_extended_api() const { return false; }

  virtual Milliseconds timeout() const { return timeout_; }
  virtual void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 private:
  Milliseconds timeout_ = default_timeout;
};

// Values by name, as a server, a file's reader and HashStore hold them. No locks.
class RL_API Values {
 public:
  void set(const std::string& key, std::string value) { values_[key] = std::move(value); }
  const std::string* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  bool has(const std::vector<std::string>& keys) const;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  int64_t add(const std::string& key, int64_t amount);
  void append(const std::string& key, const std::string& value);
  bool erase(const std::string& key) { return values_.erase(key) != 0; }
  size_t size() const { return values_.size(); }
  std::vector<std::string> keys() const;

 private:
  std::map<std::string, std::string> values_;
};

// The sum of a number in a store and another; ValueError where the value is none.
RL_API std::string add_to_value(const std::string* value, int64_t amount);

// For the threads of one process.
class RL_API HashStore : public Store {
 public:
  HashStore() : shared_(std::make_shared<Shared>()) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t num_keys() override;
  std::vector<std::string> list_keys() override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::shared_ptr<Store> clone() override;
  void append(const std::string& key, const std::string& value) override;
  bool has_extended_api() const override { return true; }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    Values values;
  };
  std::shared_ptr<Shared> shared_;
};

// Another store, whose keys it begins with a prefix.
class RL_API PrefixStore : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);
  const std::shared_ptr<Store>& underlying() const { return store_; }
  const std::string& prefix() const { return prefix_; }

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t num_keys() override { return store_->num_keys(); }
  std::vector<std::string> list_keys() override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::shared_ptr<Store> clone() override;
  void append(const std::string& key, const std::string& value) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::string>& values) override;
  bool has_extended_api() const override { return store_->has_extended_api(); }
  Milliseconds timeout() const override { return store_->timeout(); }
  void set_timeout(Milliseconds timeout) override { store_->set_timeout(timeout); }

 private:
  std::string add_prefix(const std::string& key) const { return prefix_ + "/" + key; }
  std::vector<std::string> add_prefix(const std::vector<std::string>& keys) const;

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

// Values in a file that processes share: a log of what was written, which each reads on from where
// it stopped, under a lock of the file. The last of `world_size` stores removes it.
class RL_API FileStore : public Store {
 public:
  explicit FileStore(std::string path, int world_size = -1);
  ~FileStore() override;
  const std::string& path() const { return path_; }

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t num_keys() override;
  std::vector<std::string> list_keys() override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::shared_ptr<Store> clone() override;
  void append(const std::string& key, const std::string& value) override;

 private:
  class Locked;
  void wait_for(const std::vector<std::string>& keys, Milliseconds timeout);
  FileStore(const FileStore& other);  // for `clone`: not one of the world's

  std::string path_;
  int world_size_;
  bool counted_ = false;
  std::mutex mutex_;
  Values values_;
  int64_t read_ = 0;  // bytes of the file that values_ holds
};

// `keys` as an error names them.
RL_API std::string join_keys(const std::vector<std::string>& keys);

}  // namespace rushlight::distributed
