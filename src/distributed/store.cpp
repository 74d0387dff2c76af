// What all stores share, HashStore and PrefixStore.
#include <rushlight/distributed/store.h>

#include <charconv>

namespace rushlight {

StoreError::~StoreError() = default;
NetworkError::~NetworkError() = default;
BackendError::~BackendError() = default;

}  // namespace rushlight

namespace rushlight::distributed {

Store::~Store() = default;

std::string join_keys(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) {
    out += out.empty() ? "/" : ", /";
    out += key;
  }
  return out;
}

std::vector<std::string> Store::multi_get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    values.push_back(get(key));
  }
  return values;
}

void Store::multi_set(const std::vector<std::string>& keys,
                      const std::vector<std::string>& values) {
  RL_CHECK_VALUE(keys.size() == values.size(), "multi_set: ", keys.size(), " keys but ",
                 values.size(), " values");
  for (size_t i = 0; i < keys.size(); i++) {
    set(keys[i], values[i]);
  }
}

// ---- values ----

std::string add_to_value(const std::string* value, int64_t amount) {
  int64_t number = 0;
  if (value != nullptr) {
    const char* const end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, number);
    RL_CHECK_VALUE(error == std::errc() && stop == end, "add: the value of the key is no number");
  }
  RL_CHECK_VALUE(!__builtin_add_overflow(number, amount, &number),
                 "add: the sum does not fit into 64 bits");
  return std::to_string(number);
}

bool Values::has(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (values_.count(key) == 0) {
      return false;
    }
  }
  return true;
}

std::string Values::compare_set(const std::string& key, const std::string& expected,
                                const std::string& desired) {
  const std::string* const value = find(key);
  if (value == nullptr && !expected.empty()) {
    return expected;
  }
  if (value == nullptr || *value == expected) {
    set(key, desired);
    return desired;
  }
  return *value;
}

int64_t Values::add(const std::string& key, int64_t amount) {
  std::string sum = add_to_value(find(key), amount);
  const int64_t number = std::stoll(sum);
  set(key, std::move(sum));
  return number;
}

void Values::append(const std::string& key, const std::string& value) {
  std::string& old = values_[key];
  RL_CHECK_VALUE(old.size() + value.size() <= max_value_bytes, "append: the value grows too long");
  old += value;
}

std::vector<std::string> Values::keys() const {
  std::vector<std::string> out;
  out.reserve(values_.size());
  for (const auto& entry : values_) {
    out.push_back(entry.first);
  }
  return out;
}

// ---- HashStore ----

void HashStore::set(const std::string& key, const std::string& value) {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->values.set(key, value);
  }
  shared_->changed.notify_all();
}

std::string HashStore::get(const std::string& key) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const bool there = shared_->changed.wait_for(
      lock, timeout(), [&] { return shared_->values.find(key) != nullptr; });
  RL_CHECK_AS(StoreError, there, "Wait timeout after ", timeout().count(), "ms, keys: /", key);
  return *shared_->values.find(key);
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  std::string out;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    out = shared_->values.compare_set(key, expected, desired);
  }
  shared_->changed.notify_all();
  return out;
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  int64_t sum;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    sum = shared_->values.add(key, amount);
  }
  shared_->changed.notify_all();
  return sum;
}

bool HashStore::delete_key(const std::string& key) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->values.erase(key);
}

bool HashStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->values.has(keys);
}

int64_t HashStore::num_keys() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return static_cast<int64_t>(shared_->values.size());
}

std::vector<std::string> HashStore::list_keys() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->values.keys();
}

void HashStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const bool there =
      shared_->changed.wait_for(lock, timeout, [&] { return shared_->values.has(keys); });
  RL_CHECK_AS(StoreError, there, "Wait timeout after ", timeout.count(),
              "ms, keys: ", join_keys(keys));
}

std::shared_ptr<Store> HashStore::clone() {
  auto other = std::make_shared<HashStore>();
  other->shared_ = shared_;
  other->set_timeout(timeout());
  return other;
}

void HashStore::append(const std::string& key, const std::string& value) {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->values.append(key, value);
  }
  shared_->changed.notify_all();
}

// ---- PrefixStore ----

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix)), store_(std::move(store)) {}

std::vector<std::string> PrefixStore::add_prefix(const std::vector<std::string>& keys) const {
  std::vector<std::string> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) {
    out.push_back(add_prefix(key));
  }
  return out;
}

void PrefixStore::set(const std::string& key, const std::string& value) {
  store_->set(add_prefix(key), value);
}
std::string PrefixStore::get(const std::string& key) { return store_->get(add_prefix(key)); }
std::string PrefixStore::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  return store_->compare_set(add_prefix(key), expected, desired);
}
int64_t PrefixStore::add(const std::string& key, int64_t amount) {
  return store_->add(add_prefix(key), amount);
}
bool PrefixStore::delete_key(const std::string& key) { return store_->delete_key(add_prefix(key)); }
bool PrefixStore::check(const std::vector<std::string>& keys) {
  return store_->check(add_prefix(keys));
}
void PrefixStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  store_->wait(add_prefix(keys), timeout);
}
std::shared_ptr<Store> PrefixStore::clone() {
  return std::make_shared<PrefixStore>(prefix_, store_->clone());
}
void PrefixStore::append(const std::string& key, const std::string& value) {
  store_->append(add_prefix(key), value);
}
std::vector<std::string> PrefixStore::multi_get(const std::vector<std::string>& keys) {
  return store_->multi_get(add_prefix(keys));
}
void PrefixStore::multi_set(const std::vector<std::string>& keys,
                            const std::vector<std::string>& values) {
  store_->multi_set(add_prefix(keys), values);
}

std::vector<std::string> PrefixStore::list_keys() {
  std::vector<std::string> out;
  const std::string start = add_prefix("");
  for (const std::string& key : store_->list_keys()) {
    if (key.compare(0, start.size(), start) == 0) {
      out.push_back(key.substr(start.size()));
    }
  }
  return out;
}

}  // namespace rushlight::distributed
