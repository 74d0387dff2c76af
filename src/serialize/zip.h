// The zip container of .pt files: stored entries, each aligned to 64 bytes, with the 64-bit
// extensions where sizes ask for them; texts of programs may be compressed. The reader trusts
// nothing: whatever an entry says has been checked against the file when it is opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serialize/file.h"

namespace rushlight::serialize {

class RL_API ZipReader {
 public:
  struct Entry {
    std::string name;
    uint64_t offset = 0;  // of the data
    uint64_t size = 0;
    uint64_t packed = 0;  // in the file: the same, or less where it is compressed
    uint32_t crc = 0;
    bool compressed = false;
  };
  // RuntimeError where this is no zip file, or a damaged one.
  explicit ZipReader(std::shared_ptr<Source> source);
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // null where there is none
  // Reads an entry whole, into `to`, and compares its checksum.
  void read(const Entry& entry, void* to) const;
  std::string read(const Entry& entry) const;
  // The bytes in place, or null where the source does not lie in memory. Their checksum is not
  // compared.
  const char* in_place(const Entry& entry) const;
  const std::shared_ptr<Source>& source() const { return source_; }

 private:
  void read_directory(uint64_t offset, uint64_t size, uint64_t count);
  void locate_data(uint64_t directory);

  std::shared_ptr<Source> source_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

class RL_API ZipWriter {
 public:
  explicit ZipWriter(Sink& sink) : sink_(sink) {}
  // Names must differ and be shorter than 64 KiB.
  void add(const std::string& name, const void* data, size_t n, bool checked = true);
  // Writes the directory; nothing may follow.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset;  // of the entry's header
    uint64_t size;
    uint32_t crc;
  };
  void put(const std::string& bytes);

  Sink& sink_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace rushlight::serialize
