// FileStore: a log in a file. A record is two lengths and their bytes; a value's length of
// `deleted` takes the key away.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <rushlight/distributed/store.h>

namespace rushlight::distributed {

namespace {

constexpr uint32_t deleted = UINT32_MAX;
// Counts the stores of a file that have come and gone: no key of a program begins so.
const std::string users_key = std::string(1, '\0') + "users";

}  // namespace

// The file, opened and locked, with `values_` brought up to date; closing gives the lock back.
class FileStore::Locked {
 public:
  Locked(FileStore& store, bool write) : store_(store), guard_(store.mutex_) {
    const int flags = O_CLOEXEC | (write ? O_RDWR | O_CREAT : O_RDONLY);
    const auto deadline = Clock::now() + store.timeout();
    while (true) {
      file_ = open(store.path_.c_str(), flags, 0600);
      if (file_ >= 0) {
        break;
      }
      // The process that makes it may not have come yet.
      RL_CHECK_AS(StoreError, errno == ENOENT && !write && Clock::now() < deadline,
                  "FileStore: cannot open ", store.path_, ": ", std::strerror(errno));
      std::this_thread::sleep_for(Milliseconds(5));
    }
    try {
      int status;
      do {
        status = flock(file_, write ? LOCK_EX : LOCK_SH);
      } while (status != 0 && errno == EINTR);
      RL_CHECK_AS(StoreError, status == 0, "FileStore: cannot lock ", store.path_, ": ",
                  std::strerror(errno));
      read_new_entries();
    } catch (...) {
      close(file_);
      throw;
    }
  }
  ~Locked() { close(file_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // Appends a record; `value` null deletes.
  void write(const std::string& key, const std::string* value) {
    RL_CHECK_VALUE(key.size() <= max_key_bytes, "FileStore: a key of ", key.size(), " bytes");
    RL_CHECK_VALUE(value == nullptr || value->size() <= max_value_bytes, "FileStore: a value of ",
                   value->size(), " bytes");
    std::string record;
    append_length(record, static_cast<uint32_t>(key.size()));
    record += key;
    append_length(record, value == nullptr ? deleted : static_cast<uint32_t>(value->size()));
    record += value == nullptr ? "" : *value;
    for (size_t done = 0; done < record.size();) {
      const ssize_t n = pwrite(file_, record.data() + done, record.size() - done,
                               static_cast<off_t>(store_.read_ + static_cast<int64_t>(done)));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n < 0) {
        const int error = errno;
        // What is half written would be read as a record.
        (void)!ftruncate(file_, static_cast<off_t>(store_.read_));
        throw StoreError(
            str("FileStore: cannot write to ", store_.path_, ": ", std::strerror(error)));
      }
      done += static_cast<size_t>(n);
    }
    store_.read_ += static_cast<int64_t>(record.size());
    apply(key, value);
  }

 private:
  static void append_length(std::string& out, uint32_t length) {
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
  }
  void apply(const std::string& key, const std::string* value) {
    if (value == nullptr) {
      store_.values_.erase(key);
    } else {
      store_.values_.set(key, *value);
    }
  }
  void read_new_entries() {
    struct stat info;
    RL_CHECK_AS(StoreError, fstat(file_, &info) == 0, "FileStore: ", std::strerror(errno));
    const int64_t size = info.st_size;
    RL_CHECK_AS(StoreError, size >= store_.read_, "FileStore: ", store_.path_, " has shrunk");
    while (store_.read_ < size) {
      int64_t at = store_.read_;
      const std::string key = read_part(at, size, max_key_bytes);
      uint32_t length;
      bytes(&length, sizeof length, at, size);
      if (length == deleted) {
        apply(key, nullptr);
      } else {
        at -= static_cast<int64_t>(sizeof length);
        const std::string value = read_part(at, size, max_value_bytes);
        apply(key, &value);
      }
      store_.read_ = at;
    }
  }
  std::string read_part(int64_t& at, int64_t size, size_t most) {
    uint32_t length;
    bytes(&length, sizeof length, at, size);
    check(length <= most && length <= size - at);
    std::string out(length, '\0');
    bytes(out.data(), length, at, size);
    return out;
  }
  void bytes(void* to, size_t count, int64_t& at, int64_t size) {
    check(static_cast<int64_t>(count) <= size - at);
    for (size_t done = 0; done < count;) {
      const ssize_t n = pread(file_, static_cast<char*>(to) + done, count - done,
                              static_cast<off_t>(at + static_cast<int64_t>(done)));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      check(n > 0);
      done += static_cast<size_t>(n);
    }
    at += static_cast<int64_t>(count);
  }
  void check(bool fine) const {
    RL_CHECK_AS(StoreError, fine, "FileStore: ", store_.path_, " is no file of a store");
  }

  FileStore& store_;
  std::unique_lock<std::mutex> guard_;
  int file_ = -1;
};

FileStore::FileStore(std::string path, int world_size)
    : path_(std::move(path)), world_size_(world_size), counted_(true) {
  add(users_key, 1);
}

FileStore::FileStore(const FileStore& other) : path_(other.path_), world_size_(other.world_size_) {
  set_timeout(other.timeout());
}

FileStore::~FileStore() {
  if (!counted_ || access(path_.c_str(), F_OK) != 0) {
    return;
  }
  try {
    // Each store of the world adds one as it comes and one as it goes.
    if (add(users_key, 1) == 2 * int64_t{world_size_}) {
      unlink(path_.c_str());
    }
  } catch (const std::exception&) {
    // Nobody can be told, and the file is no use to others either.
  }
}

void FileStore::set(const std::string& key, const std::string& value) {
  Locked(*this, true).write(key, &value);
}

std::string FileStore::get(const std::string& key) {
  wait_for({key}, timeout());
  const Locked file(*this, false);
  const std::string* const value = values_.find(key);
  RL_CHECK_AS(StoreError, value != nullptr, "FileStore: the key ", key, " was deleted");
  return *value;
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  Locked file(*this, true);
  const std::string* const value = values_.find(key);
  if (value == nullptr && !expected.empty()) {
    return expected;
  }
  if (value == nullptr || *value == expected) {
    file.write(key, &desired);
    return desired;
  }
  return *value;
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  Locked file(*this, true);
  const std::string sum = add_to_value(values_.find(key), amount);
  file.write(key, &sum);
  return std::stoll(sum);
}

bool FileStore::delete_key(const std::string& key) {
  Locked file(*this, true);
  if (values_.find(key) == nullptr) {
    return false;
  }
  file.write(key, nullptr);
  return true;
}

bool FileStore::check(const std::vector<std::string>& keys) {
  const Locked file(*this, false);
  return values_.has(keys);
}

int64_t FileStore::num_keys() {
  const Locked file(*this, false);
  return static_cast<int64_t>(values_.size());
}

std::vector<std::string> FileStore::list_keys() {
  const Locked file(*this, false);
  std::vector<std::string> keys = values_.keys();
  keys.erase(std::remove(keys.begin(), keys.end(), users_key), keys.end());
  return keys;
}

void FileStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  wait_for(keys, timeout);
}

// A file tells nobody that it was written: looks again, less and less often.
void FileStore::wait_for(const std::vector<std::string>& keys, Milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (auto pause = std::chrono::microseconds(200); !check(keys);
       pause = std::min(2 * pause, std::chrono::microseconds(10'000))) {
    RL_CHECK_AS(StoreError, Clock::now() < deadline, "Wait timeout after ", timeout.count(),
                "ms, keys: ", join_keys(keys));
    std::this_thread::sleep_for(pause);
  }
}

std::shared_ptr<Store> FileStore::clone() { return std::shared_ptr<Store>(new FileStore(*this)); }

void FileStore::append(const std::string& key, const std::string& value) {
  Locked file(*this, true);
  const std::string* const old = values_.find(key);
  const std::string joined = (old != nullptr ? *old : "") + value;
  file.write(key, &joined);
}

}  // namespace rushlight::distributed
