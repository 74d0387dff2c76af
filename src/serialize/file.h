// Where bytes come from and go to: a file or memory to read, a file that appears whole or not at
// all.
#pragma once

#include <ostream>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include <rushlight/error.h>

namespace rushlight::serialize {

// What the system refused, with its error number; OSError in Python.
class RL_API FileError : public Error {
 public:
  FileError(int code, const std::string& path);
  ~FileError() override;
  int code() const { return code_; }
  const std::string& path() const { return path_; }

 private:
  int code_;
  std::string path_;
};

// Bytes to read at random. Thread-safe.
class RL_API Source {
 public:
  virtual ~Source();
  uint64_t size() const { return size_; }
  // Exactly n bytes; RuntimeError where they are not there.
  void read(uint64_t offset, void* to, size_t n) const;
  // Where all bytes lie in memory, or null.
  const char* mapped() const { return mapped_; }

 protected:
  virtual void fetch(uint64_t offset, void* to, size_t n) const = 0;
  uint64_t size_ = 0;
  const char* mapped_ = nullptr;
};

// FileError where it cannot be opened. `map`: bytes are mapped and writable instead of being read,
// privately or, with `shared`, so that what is written goes into the file; a file that others cut
// short meanwhile then ends the process.
RL_API std::shared_ptr<Source> open_source(const std::string& path, bool map, bool shared = false);
// All that a stream still has; RuntimeError where reading fails.
RL_API std::shared_ptr<Source> stream_source(std::istream& stream);
// `owner` keeps the bytes alive.
RL_API std::shared_ptr<Source> memory_source(const void* data, size_t n,
                                             std::shared_ptr<void> owner);

class RL_API Sink {
 public:
  virtual ~Sink();
  virtual void write(const void* data, size_t n) = 0;
};

class StreamSink : public Sink {
 public:
  explicit StreamSink(std::ostream& stream) : stream_(stream) {}
  void write(const void* data, size_t n) override {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(n));
  }

 private:
  std::ostream& stream_;
};

// Writes a temporary sibling of `path`; commit() puts it in place of what was there, and without it
// the sibling is removed. Where there was a file, the new one is on the disk before the old one
// goes; a file that replaces none is left to the system to write out, as PyTorch's are. Devices and
// pipes are written directly.
class RL_API AtomicFile : public Sink {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t n) override;
  void commit();

 private:
  void discard() noexcept;
  void put(const char* p, size_t n);
  void flush();
  std::string path_;       // of the real file, behind links
  std::string temporary_;  // empty where written directly
  int fd_ = -1;
  bool replaces_ = false;  // a file that must outlive a crash until this one is safe
  std::string waiting_;    // small pieces, for one call of the system
  uint64_t written_ = 0;
  uint64_t started_ = 0;  // bytes that are on their way to the disk
};

}  // namespace rushlight::serialize
