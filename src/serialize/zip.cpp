// Zip, as PKWARE's APPNOTE describes it, in the part that .pt files use.
#include "serialize/zip.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "core/parallel.h"
#include "serialize/crc32.h"
#include "serialize/inflate.h"

namespace rushlight::serialize {
namespace {

constexpr uint32_t entry_signature = 0x04034b50;
constexpr uint32_t directory_signature = 0x02014b50;
constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t locator64_signature = 0x07064b50;
constexpr size_t entry_header = 30;
constexpr size_t directory_header = 46;
constexpr size_t end_size = 22;
constexpr size_t locator64_size = 20;
constexpr size_t end64_size = 56;
constexpr uint32_t max_32 = std::numeric_limits<uint32_t>::max();
constexpr uint16_t max_16 = std::numeric_limits<uint16_t>::max();
constexpr uint16_t field_64 = 1;            // extra field with 64-bit sizes
constexpr uint16_t field_padding = 0x4246;  // "FB", as PyTorch pads
constexpr uint64_t alignment = 64;
constexpr uint16_t deflated = 8;  // the method of compression
// What a compressed entry may stand for: texts of programs take a tenth of their size, and seldom a
// thirtieth.
constexpr uint64_t max_inflated = uint64_t{1} << 24;
constexpr uint64_t inflated_anyway = uint64_t{1} << 18;
constexpr uint64_t most_times = 64;

template <class T>
T number_at(const char* p) {
  T value;
  std::memcpy(&value, p,
              sizeof value);  // zip is little-endian, as is every machine that this is built for
  return value;
}
uint16_t u16(const char* p) { return number_at<uint16_t>(p); }
uint32_t u32(const char* p) { return number_at<uint32_t>(p); }
uint64_t u64(const char* p) { return number_at<uint64_t>(p); }

template <class... Parts>
[[noreturn]] void raise_invalid(const Parts&... parts) {
  throw Error(str("PytorchStreamReader failed reading zip archive: ", parts...));
}

// Values of the directory that stand as all ones are in the extra field, in this order.
void take_64(std::string_view extra, uint64_t& size, uint64_t& packed, uint64_t& offset,
             const std::string& name) {
  while (extra.size() >= 4) {
    const uint16_t id = u16(extra.data());
    const size_t length = u16(extra.data() + 2);
    if (length > extra.size() - 4) {
      break;
    }
    if (id == field_64) {
      std::string_view values = extra.substr(4, length);
      for (uint64_t* value : {&size, &packed, &offset}) {
        if (*value != max_32) {
          continue;
        }
        if (values.size() < 8) {
          raise_invalid("the entry '", name, "' lacks its 64-bit sizes");
        }
        *value = u64(values.data());
        values.remove_prefix(8);
      }
      return;
    }
    extra.remove_prefix(4 + length);
  }
}

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_16(std::string& out, uint64_t v) { append_number(out, static_cast<uint16_t>(v)); }
void append_32(std::string& out, uint64_t v) { append_number(out, static_cast<uint32_t>(v)); }
void append_64(std::string& out, uint64_t v) { append_number(out, v); }

// The checksum of `size` bytes, on all threads. fetch(at, n) gives the address of n of them, and is
// called in steps that fit into the cache.
template <class Fetch>
uint32_t checksum(uint64_t size, const Fetch& fetch) {
  constexpr int64_t share = int64_t{1} << 19;
  constexpr int64_t step = int64_t{1} << 18;
  const int64_t end = static_cast<int64_t>(size);
  std::vector<uint32_t> parts(static_cast<size_t>(num_chunks(0, end, share)));
  parallel_for(0, end, share, [&](int64_t b, int64_t e) {
    uint32_t crc = 0;
    for (int64_t at = b; at < e; at += step) {
      const size_t n = static_cast<size_t>(std::min(step, e - at));
      crc = crc32(crc, fetch(static_cast<uint64_t>(at), n), n);
    }
    parts[static_cast<size_t>(b / share)] = crc;
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const int64_t n = std::min(share, end - static_cast<int64_t>(i) * share);
    crc = crc32_of_both(crc, parts[i], static_cast<uint64_t>(n));
  }
  return crc;
}

constexpr uint16_t utf8_names = 0x0800;
// 1980-01-01, as PyTorch writes: the same state gives the same bytes.
constexpr uint32_t no_date = 0x00210000;

}  // namespace

ZipReader::ZipReader(std::shared_ptr<Source> source) : source_(std::move(source)) {
  const uint64_t file = source_->size();
  if (file < end_size) {
    raise_invalid("not a ZIP archive: ", file, " bytes are too few");
  }
  // The end record closes the file but for a comment.
  const size_t tail_size = static_cast<size_t>(std::min<uint64_t>(file, end_size + max_16));
  std::string tail(tail_size, '\0');
  source_->read(file - tail_size, tail.data(), tail_size);
  size_t at = tail_size - end_size;
  while (u32(&tail[at]) != end_signature || u16(&tail[at + 20]) != tail_size - end_size - at) {
    if (at == 0) {
      raise_invalid("failed finding central directory: the file is cut or no zip file");
    }
    at--;
  }
  const char* end = &tail[at];
  uint64_t directory_end = file - tail_size + at;
  uint64_t count = u16(end + 10);
  uint64_t size = u32(end + 12);
  uint64_t offset = u32(end + 16);
  if (u16(end + 4) != 0 || u16(end + 6) != 0 || u16(end + 8) != count) {
    raise_invalid("archives in several volumes are not supported");
  }
  if (count == max_16 || size == max_32 || offset == max_32) {
    if (directory_end < locator64_size + end64_size) {
      raise_invalid("failed finding central directory: its 64-bit form is missing");
    }
    char locator[locator64_size];
    source_->read(directory_end - locator64_size, locator, sizeof locator);
    char end64[end64_size];
    const uint64_t where = u64(locator + 8);
    if (u32(locator) != locator64_signature ||
        where > directory_end - locator64_size - end64_size) {
      raise_invalid("failed finding central directory: its 64-bit form is damaged");
    }
    source_->read(where, end64, sizeof end64);
    if (u32(end64) != end64_signature || u64(end64 + 24) != u64(end64 + 32)) {
      raise_invalid("failed finding central directory: its 64-bit form is damaged");
    }
    directory_end = where;
    count = u64(end64 + 32);
    size = u64(end64 + 40);
    offset = u64(end64 + 48);
  }
  if (offset > directory_end || size > directory_end - offset || count > size / directory_header) {
    raise_invalid("the central directory does not fit into the file");
  }
  read_directory(offset, size, count);
  locate_data(offset);
}

void ZipReader::read_directory(uint64_t offset, uint64_t size, uint64_t count) {
  std::string directory(size, '\0');
  source_->read(offset, directory.data(), directory.size());
  std::string_view rest = directory;
  entries_.reserve(count);
  for (uint64_t i = 0; i < count; i++) {
    if (rest.size() < directory_header || u32(rest.data()) != directory_signature) {
      raise_invalid("the central directory is damaged at entry ", i);
    }
    const char* p = rest.data();
    const size_t name_size = u16(p + 28);
    const size_t extra_size = u16(p + 30);
    const size_t whole = directory_header + name_size + extra_size + u16(p + 32);
    if (whole > rest.size()) {
      raise_invalid("the central directory is damaged at entry ", i);
    }
    Entry entry;
    entry.name.assign(p + directory_header, name_size);
    entry.crc = u32(p + 16);
    entry.size = u32(p + 24);
    entry.offset = u32(p + 42);  // of the entry's header, for now
    uint64_t packed = u32(p + 20);
    take_64(rest.substr(directory_header + name_size, extra_size), entry.size, packed, entry.offset,
            entry.name);
    if ((u16(p + 8) & 1) != 0) {
      raise_invalid("the entry '", entry.name, "' is encrypted");
    }
    const uint16_t method = u16(p + 10);
    if (method != 0 && method != deflated) {
      raise_invalid("the entry '", entry.name, "' is compressed by the unknown method ", method);
    }
    entry.packed = packed;
    entry.compressed = method == deflated;
    if (entry.compressed && (entry.size > max_inflated ||
                             entry.size / most_times > packed + inflated_anyway / most_times)) {
      raise_invalid("the entry '", entry.name, "' stands for ", entry.size,
                    " bytes, more than any text has");
    }
    if (!entry.compressed && packed != entry.size) {
      raise_invalid("the entry '", entry.name, "' has two different sizes");
    }
    entries_.push_back(std::move(entry));
    rest.remove_prefix(whole);
  }
  by_name_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); i++) {
    if (!by_name_.emplace(entries_[i].name, i).second) {
      raise_invalid("the entry '", entries_[i].name, "' is there twice");
    }
  }
}

void ZipReader::locate_data(uint64_t directory) {
  struct Range {
    uint64_t begin;
    uint64_t end;
    const Entry* entry;
  };
  std::vector<Range> ranges;
  ranges.reserve(entries_.size());
  std::string name;
  for (Entry& entry : entries_) {
    const uint64_t begin = entry.offset;
    char header[entry_header];
    if (begin > directory || directory - begin < entry_header) {
      raise_invalid("the entry '", entry.name, "' lies beyond the file");
    }
    source_->read(begin, header, sizeof header);
    const size_t name_size = u16(header + 26);
    const uint64_t before = entry_header + name_size + u16(header + 28);
    if (u32(header) != entry_signature || u16(header + 8) != (entry.compressed ? deflated : 0) ||
        name_size != entry.name.size()) {
      raise_invalid("the header of the entry '", entry.name, "' is damaged");
    }
    if (before > directory - begin || entry.packed > directory - begin - before) {
      raise_invalid("the entry '", entry.name, "' lies beyond the file");
    }
    name.resize(name_size);
    source_->read(begin + entry_header, name.data(), name_size);
    if (name != entry.name) {
      raise_invalid("the entry '", entry.name, "' has another name in its header");
    }
    entry.offset = begin + before;
    ranges.push_back({begin, entry.offset + entry.packed, &entry});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); i++) {
    if (ranges[i].begin < ranges[i - 1].end) {
      raise_invalid("the entries '", ranges[i - 1].entry->name, "' and '", ranges[i].entry->name,
                    "' overlap");
    }
  }
}

const ZipReader::Entry* ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

void ZipReader::read(const Entry& entry, void* to) const {
  if (entry.compressed) {
    raise_invalid("the entry '", entry.name,
                  "' is compressed, and data of tensors is stored as it is");
  }
  const uint32_t crc = checksum(entry.size, [&](uint64_t at, size_t n) {
    source_->read(entry.offset + at, static_cast<char*>(to) + at, n);
    return static_cast<const char*>(to) + at;
  });
  if (entry.crc != 0 && crc != entry.crc) {  // 0: nobody has said it
    raise_invalid("the entry '", entry.name, "' is damaged: its checksum differs");
  }
}

std::string ZipReader::read(const Entry& entry) const {
  if (entry.compressed) {
    std::string packed(entry.packed, '\0');
    source_->read(entry.offset, packed.data(), packed.size());
    std::string bytes = inflate(packed, entry.size);
    if (entry.crc != 0 && crc32(0, bytes.data(), bytes.size()) != entry.crc) {
      raise_invalid("the entry '", entry.name, "' is damaged: its checksum differs");
    }
    return bytes;
  }
  std::string bytes(entry.size, '\0');
  read(entry, bytes.data());
  return bytes;
}

const char* ZipReader::in_place(const Entry& entry) const {
  return source_->mapped() == nullptr || entry.compressed ? nullptr
                                                          : source_->mapped() + entry.offset;
}

void ZipWriter::put(const std::string& bytes) {
  sink_.write(bytes.data(), bytes.size());
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, const void* data, size_t n, bool checked) {
  RL_CHECK(name.size() < max_16 - alignment, "the name of a zip entry is too long");
  const auto bytes = [&](uint64_t at, size_t) { return static_cast<const char*>(data) + at; };
  const uint32_t crc = checked ? checksum(n, bytes) : 0;
  const bool wide = n >= max_32;
  std::string header;
  append_32(header, entry_signature);
  append_16(header, wide ? 45 : 20);
  append_16(header, utf8_names);
  append_16(header, 0);
  append_32(header, no_date);
  append_32(header, crc);
  append_32(header, wide ? max_32 : n);
  append_32(header, wide ? max_32 : n);
  append_16(header, name.size());
  // The padding is an extra field of its own, of at least four bytes.
  const uint64_t extra_64 = wide ? 20 : 0;
  const uint64_t unpadded = position_ + entry_header + name.size() + extra_64 + 4;
  const uint64_t padding = -unpadded & (alignment - 1);
  append_16(header, extra_64 + 4 + padding);
  header += name;
  if (wide) {
    append_16(header, field_64);
    append_16(header, 16);
    append_64(header, n);
    append_64(header, n);
  }
  append_16(header, field_padding);
  append_16(header, padding);
  header.append(padding, 'Z');
  entries_.push_back({name, position_, n, crc});
  put(header);
  sink_.write(data, n);
  position_ += n;
}

void ZipWriter::finish() {
  const uint64_t offset = position_;
  std::string directory;
  std::unordered_set<std::string_view> names;
  for (const Entry& e : entries_) {
    RL_CHECK(names.insert(e.name).second, "two zip entries are called '", e.name, "'");
    const bool wide_size = e.size >= max_32;
    const bool wide_offset = e.offset >= max_32;
    std::string extra;
    if (wide_size || wide_offset) {
      append_16(extra, field_64);
      append_16(extra, (wide_size ? 16 : 0) + (wide_offset ? 8 : 0));
      if (wide_size) {
        append_64(extra, e.size);
        append_64(extra, e.size);
      }
      if (wide_offset) {
        append_64(extra, e.offset);
      }
    }
    append_32(directory, directory_signature);
    append_16(directory, 20);
    append_16(directory, extra.empty() ? 20 : 45);
    append_16(directory, utf8_names);
    append_16(directory, 0);
    append_32(directory, no_date);
    append_32(directory, e.crc);
    append_32(directory, wide_size ? max_32 : e.size);
    append_32(directory, wide_size ? max_32 : e.size);
    append_16(directory, e.name.size());
    append_16(directory, extra.size());
    append_16(directory, 0);  // comment
    append_16(directory, 0);  // volume
    append_16(directory, 0);
    append_32(directory, 0);
    append_32(directory, wide_offset ? max_32 : e.offset);
    directory += e.name;
    directory += extra;
  }
  put(directory);
  const uint64_t end64 = position_;
  const uint64_t count = entries_.size();
  const uint64_t size = directory.size();
  std::string end;
  if (count >= max_16 || size >= max_32 || offset >= max_32) {
    append_32(end, end64_signature);
    append_64(end, end64_size - 12);
    append_16(end, 45);
    append_16(end, 45);
    append_32(end, 0);
    append_32(end, 0);
    append_64(end, count);
    append_64(end, count);
    append_64(end, size);
    append_64(end, offset);
    append_32(end, locator64_signature);
    append_32(end, 0);
    append_64(end, end64);
    append_32(end, 1);
  }
  append_32(end, end_signature);
  append_16(end, 0);
  append_16(end, 0);
  append_16(end, std::min<uint64_t>(count, max_16));
  append_16(end, std::min<uint64_t>(count, max_16));
  append_32(end, std::min<uint64_t>(size, max_32));
  append_32(end, std::min<uint64_t>(offset, max_32));
  append_16(end, 0);
  put(end);
}

}  // namespace rushlight::serialize
