// Files and memory to read from, and files that are replaced in one step.
#include "serialize/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <istream>
#include <iterator>
#include <string>
#include <utility>

namespace rushlight::serialize {
namespace {

// The kernel takes at most 2 GiB at a time.
constexpr size_t largest_transfer = size_t{1} << 30;
// What is written before the disk is told of it.
constexpr uint64_t disk_share = uint64_t{8} << 20;
// Small pieces are written together, so many.
constexpr size_t most_waiting = size_t{1} << 18;

class File : public Source {
 public:
  explicit File(const std::string& path, int access = O_RDONLY)
      : path_(path), fd_(open(path.c_str(), access | O_CLOEXEC)) {
    struct stat info{};
    if (fd_ < 0 || fstat(fd_, &info) != 0 || S_ISDIR(info.st_mode)) {
      const int code = fd_ >= 0 && S_ISDIR(info.st_mode) ? EISDIR : errno;
      close_file();
      throw FileError(code, path);
    }
    size_ = static_cast<uint64_t>(info.st_size);
  }
  ~File() override { close_file(); }

 protected:
  void fetch(uint64_t offset, void* to, size_t n) const override {
    char* p = static_cast<char*>(to);
    while (n > 0) {
      const ssize_t got = pread(fd_, p, std::min(n, largest_transfer), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        throw FileError(errno, path_);
      }
      RL_CHECK(got > 0, "the file ", path_, " has become shorter while it was read");
      p += got;
      offset += static_cast<uint64_t>(got);
      n -= static_cast<size_t>(got);
    }
  }
  const std::string path_;
  int fd_;

 private:
  void close_file() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
};

class MappedFile : public File {
 public:
  MappedFile(const std::string& path, bool shared) : File(path, shared ? O_RDWR : O_RDONLY) {
    if (size_ == 0) {
      return;
    }
    void* p =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd_, 0);
    if (p == MAP_FAILED) {
      throw FileError(errno, path);
    }
    mapped_ = static_cast<const char*>(p);
  }
  ~MappedFile() override {
    if (mapped_ != nullptr) {
      munmap(const_cast<char*>(mapped_), size_);
    }
  }
};

class Memory : public Source {
 public:
  Memory(const void* data, size_t n, std::shared_ptr<void> owner) : owner_(std::move(owner)) {
    mapped_ = static_cast<const char*>(data);
    size_ = n;
  }

 protected:
  void fetch(uint64_t offset, void* to, size_t n) const override {
    std::memcpy(to, mapped_ + offset, n);
  }

 private:
  std::shared_ptr<void> owner_;
};

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

FileError::FileError(int code, const std::string& path)
    : Error(str(std::strerror(code), ": '", path, "'")), code_(code), path_(path) {}
FileError::~FileError() = default;
Source::~Source() = default;
Sink::~Sink() = default;

void Source::read(uint64_t offset, void* to, size_t n) const {
  RL_CHECK(offset <= size_ && n <= size_ - offset, "cannot read ", n, " bytes at ", offset,
           ": there are only ", size_);
  if (n > 0) {
    fetch(offset, to, n);
  }
}

std::shared_ptr<Source> open_source(const std::string& path, bool map, bool shared) {
  if (map) {
    return std::make_shared<MappedFile>(path, shared);
  }
  return std::make_shared<File>(path);
}

std::shared_ptr<Source> memory_source(const void* data, size_t n, std::shared_ptr<void> owner) {
  return std::make_shared<Memory>(data, n, std::move(owner));
}

std::shared_ptr<Source> stream_source(std::istream& stream) {
  const auto bytes = std::make_shared<std::string>(std::istreambuf_iterator<char>(stream),
                                                   std::istreambuf_iterator<char>());
  RL_CHECK(!stream.bad(), "the stream that is loaded from failed");
  return memory_source(bytes->data(), bytes->size(), bytes);
}

namespace {
// The file that a path names, also where it does not exist yet, whatever the current folder
// becomes.
std::string behind_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int most = 40;  // as the system follows
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  if (error) {
    return path;
  }
  for (int i = 0; i < most && fs::is_symlink(at, error); i++) {
    const fs::path target = fs::read_symlink(at, error);
    if (error) {
      break;
    }
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return at.string();
}
}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  struct stat info{};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    replaces_ = exists;
    path_ = behind_links(path);
    // A file that may not be written must not be replaced either.
    if (exists && access(path_.c_str(), W_OK) != 0) {
      throw FileError(errno, path);
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
      random = static_cast<uint64_t>(getpid());
    }
    temporary_ = str(directory_of(path_), "/.rushlight-", random, ".tmp");
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0 && exists && fchmod(fd_, info.st_mode & 07777) != 0) {
      const int code = errno;
      discard();
      throw FileError(code, path);
    }
  }
  if (fd_ < 0) {
    temporary_.clear();
    throw FileError(errno, path);
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    temporary_.clear();
  }
}

void AtomicFile::write(const void* data, size_t n) {
  RL_CHECK(fd_ >= 0, "the file ", path_, " is closed");
  if (n > most_waiting - waiting_.size()) {
    flush();
  }
  if (n > most_waiting) {
    put(static_cast<const char*>(data), n);
  } else if (n != 0) {
    waiting_.append(static_cast<const char*>(data), n);
  }
}

void AtomicFile::flush() {
  put(waiting_.data(), waiting_.size());
  waiting_.clear();
}

void AtomicFile::put(const char* p, size_t n) {
  while (n > 0) {
    const ssize_t wrote = ::write(fd_, p, std::min(n, largest_transfer));
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote < 0) {
      throw FileError(errno, path_);
    }
    p += wrote;
    n -= static_cast<size_t>(wrote);
    written_ += static_cast<uint64_t>(wrote);
    // The disk begins while more is written, so that little is left to wait for in the end.
    if (replaces_ && written_ - started_ >= disk_share) {
      sync_file_range(fd_, static_cast<off64_t>(started_),
                      static_cast<off64_t>(written_ - started_), SYNC_FILE_RANGE_WRITE);
      started_ = written_;
    }
  }
}

void AtomicFile::commit() {
  RL_CHECK(fd_ >= 0, "the file ", path_, " is closed");
  flush();
  const auto check_done = [&](bool done) {
    if (!done) {
      throw FileError(errno, path_);
    }
  };
  if (temporary_.empty()) {
    check_done(close(std::exchange(fd_, -1)) == 0);
    return;
  }
  check_done(!replaces_ || fsync(fd_) == 0);
  check_done(close(std::exchange(fd_, -1)) == 0);
  check_done(rename(temporary_.c_str(), path_.c_str()) == 0);
  temporary_.clear();
  // The name is safe on disk only once its folder is. Some file systems cannot sync folders:
  // nothing to be done there.
  const int folder =
      replaces_ ? open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace rushlight::serialize
