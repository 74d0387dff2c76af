// Reading the header of a GGUF file, version 2 or 3: "GGUF", the version, the numbers of tensors
// and of values, the values, the tensors' names, sizes, types and offsets; then, aligned, their
// bytes.
#include "serialize/gguf_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <unordered_set>

namespace rushlight::serialize {
namespace {

template <class... Parts>
[[noreturn]] void raise_invalid(const Parts&... parts) {
  throw Error(str("gguf: ", parts...));
}

// ---- bytes in order ----

class Cursor {
 public:
  explicit Cursor(const Source& source) : source_(source) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return source_.size() - at_; }

  // Steps over n bytes, which must be there; `what` they are is for the message.
  uint64_t skip(uint64_t n, const char* what) {
    if (n > left() || at_ + n > max_gguf_header) {
      raise_invalid(what, " at byte ", at_, " of the file needs ", n, " bytes, more than ",
                    n > left() ? "the file has left" : "a header may have");
    }
    at_ += n;
    return at_ - n;
  }

  template <class T>
  T number(const char* what) {
    T value;
    get(skip(sizeof(T), what), &value, sizeof(T));
    return value;
  }

  std::string text(const char* what) {
    const auto size = number<uint64_t>(what);
    const uint64_t from = skip(size, what);
    std::string out(size, '\0');
    get(from, out.data(), size);
    return out;
  }

 private:
  // Through a window, for files that are not in memory.
  void get(uint64_t from, void* to, uint64_t n) {
    if (source_.mapped() != nullptr) {
      std::memcpy(to, source_.mapped() + from, n);
      return;
    }
    if (n > window_.size() || from < start_ || from + n > start_ + filled_) {
      if (n > window_.size()) {
        source_.read(from, to, n);
        return;
      }
      start_ = from;
      filled_ = std::min<uint64_t>(window_.size(), source_.size() - from);
      source_.read(start_, window_.data(), filled_);
    }
    std::memcpy(to, window_.data() + (from - start_), n);
  }

  const Source& source_;
  uint64_t at_ = 0;
  std::string window_ = std::string(1 << 16, '\0');
  uint64_t start_ = 0;
  uint64_t filled_ = 0;
};

std::string name_of(Cursor& in, const char* what) {
  std::string name = in.text(what);
  if (name.size() > max_gguf_name) {
    raise_invalid(what, " has ", name.size(), " bytes");
  }
  return name;
}

// ---- values ----

GgufType type_of_value(Cursor& in) {
  const auto type = in.number<uint32_t>("the type of a value");
  if (type > static_cast<uint32_t>(GgufType::Float64)) {
    raise_invalid("a value has the unknown type ", type);
  }
  return static_cast<GgufType>(type);
}

GgufValue read_array(Cursor& in, const std::string& key) {
  GgufValue v;
  v.is_array = true;
  v.type = type_of_value(in);
  v.count = in.number<uint64_t>("the length of an array");
  if (v.type == GgufType::Array) {
    raise_invalid("'", key, "' is an array of arrays, which is not supported");
  }
  if (v.type != GgufType::String) {
    const auto unit = static_cast<uint64_t>(itemsize(gguf_dtype(v.type)));
    if (v.count > in.left() / unit) {
      raise_invalid("'", key, "' has ", v.count, " numbers, more than the file has left");
    }
    v.offset = in.skip(v.count * unit, "an array");
    return v;
  }
  if (v.count > in.left() / sizeof(uint64_t)) {
    raise_invalid("'", key, "' has ", v.count, " strings, more than the file has left");
  }
  v.texts.reserve(std::min<uint64_t>(v.count, max_gguf_header / sizeof(uint64_t)));
  for (uint64_t i = 0; i < v.count; i++) {
    v.texts.push_back(in.text("a string"));
  }
  return v;
}

GgufValue read_value(Cursor& in, const std::string& key) {
  const GgufType type = type_of_value(in);
  if (type == GgufType::Array) {
    return read_array(in, key);
  }
  GgufValue v;
  v.type = type;
  if (type == GgufType::String) {
    v.texts.push_back(in.text("a string"));
    return v;
  }
  switch (itemsize(gguf_dtype(type))) {
    case 1:
      v.bits = in.number<uint8_t>("a value");
      break;
    case 2:
      v.bits = in.number<uint16_t>("a value");
      break;
    case 4:
      v.bits = in.number<uint32_t>("a value");
      break;
    default:
      v.bits = in.number<uint64_t>("a value");
  }
  return v;
}

uint64_t alignment_of(const GgufHeader& header) {
  for (const auto& [key, v] : header.metadata) {
    if (key == "general.alignment") {
      const bool is_power = v.bits >= 8 && v.bits <= 1 << 20 && (v.bits & (v.bits - 1)) == 0;
      if (v.is_array || v.type != GgufType::UInt32 || !is_power) {
        raise_invalid("general.alignment must be a power of two from 8 on, of type uint32");
      }
      return v.bits;
    }
  }
  return 32;
}

// ---- tensors ----

struct StoredType {
  uint32_t number;  // in files
  ScalarType dtype;
  const GgufBlock* blocks;
};
constexpr std::array<StoredType, 12> stored_types = {{
    {0, kFloat32, nullptr},
    {1, kFloat16, nullptr},
    {2, ScalarType::Undefined, &gguf_block(GgufFormat::Q4_0)},
    {8, ScalarType::Undefined, &gguf_block(GgufFormat::Q8_0)},
    {12, ScalarType::Undefined, &gguf_block(GgufFormat::Q4_K)},
    {14, ScalarType::Undefined, &gguf_block(GgufFormat::Q6_K)},
    {24, kInt8, nullptr},
    {25, kInt16, nullptr},
    {26, kInt32, nullptr},
    {27, kInt64, nullptr},
    {28, kFloat64, nullptr},
    {30, kBFloat16, nullptr},
}};

void set_type(GgufEntry& e, uint32_t number) {
  for (const StoredType& t : stored_types) {
    if (t.number == number) {
      e.dtype = t.dtype;
      e.blocks = t.blocks;
      return;
    }
  }
  raise_invalid("the tensor '", e.name, "' has the type ", number,
                ", which is not supported; those are F32 (0), F16 (1), Q4_0 (2), Q8_0 (8), Q4_K "
                "(12), Q6_K (14), I8 to I64 (24 to 27), F64 (28) and BF16 (30)");
}

// How many bytes the shape needs.
uint64_t bytes_of(GgufEntry& e) {
  uint64_t count = 1;  // elements; an empty dimension counts as one, since strides must fit as well
  bool empty = false;
  for (const int64_t n : e.shape) {
    empty |= n == 0;
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(std::max<int64_t>(n, 1)), &count) ||
        count > uint64_t{1} << 56U) {
      raise_invalid("the tensor '", e.name, "' is too large");
    }
  }
  if (e.blocks == nullptr) {
    return empty ? 0 : count * static_cast<uint64_t>(itemsize(e.dtype));
  }
  if (e.shape.empty() || e.shape.back() % e.blocks->numbers != 0) {
    raise_invalid("the rows of the tensor '", e.name, "' are no whole blocks of ", e.blocks->name);
  }
  return empty ? 0
               : count / static_cast<uint64_t>(e.blocks->numbers) *
                     static_cast<uint64_t>(e.blocks->bytes());
}

// An entry whose place counts from the start of the data.
GgufEntry read_entry(Cursor& in) {
  GgufEntry e;
  e.name = name_of(in, "the name of a tensor");
  const auto dims = in.number<uint32_t>("the number of dimensions");
  if (dims > 4) {
    raise_invalid("the tensor '", e.name, "' has ", dims, " dimensions, more than four");
  }
  for (uint32_t d = 0; d < dims; d++) {
    const auto n = in.number<uint64_t>("a size");
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      raise_invalid("the tensor '", e.name, "' is too large");
    }
    e.shape.push_back(static_cast<int64_t>(n));
  }
  std::reverse(e.shape.begin(), e.shape.end());
  set_type(e, in.number<uint32_t>("the type of a tensor"));
  e.begin = in.number<uint64_t>("the place of a tensor");
  e.bytes = bytes_of(e);
  return e;
}

void place_entries(std::vector<GgufEntry>& entries, uint64_t header, uint64_t alignment,
                   uint64_t size) {
  const uint64_t start = (header + alignment - 1) / alignment * alignment;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (GgufEntry& e : entries) {
    if (e.begin % alignment != 0) {
      raise_invalid("the tensor '", e.name, "' is not aligned to ", alignment, " bytes");
    }
    if (e.bytes == 0) {
      e.begin = std::min(start, size);
      continue;
    }
    if (start > size || e.begin > size - start || e.bytes > size - start - e.begin) {
      raise_invalid("the bytes of the tensor '", e.name, "' are not all in the file");
    }
    e.begin += start;
    places.emplace_back(e.begin, e.begin + e.bytes);
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); i++) {
    if (places[i].first < places[i - 1].second) {
      raise_invalid("two tensors overlap at byte ", places[i].first, " of the file");
    }
  }
}

uint64_t checked_count(Cursor& in, const char* what, uint64_t least_bytes, uint64_t most) {
  const auto n = in.number<uint64_t>(what);
  if (n > most || n > in.left() / least_bytes) {
    raise_invalid(what, " is ", n, ", more than the file can have");
  }
  return n;
}

}  // namespace

ScalarType gguf_dtype(GgufType type) {
  constexpr std::array<ScalarType, 13> dtypes = {kUInt8,
                                                 kInt8,
                                                 kUInt16,
                                                 kInt16,
                                                 kUInt32,
                                                 kInt32,
                                                 kFloat32,
                                                 kBool,
                                                 ScalarType::Undefined,
                                                 ScalarType::Undefined,
                                                 kUInt64,
                                                 kInt64,
                                                 kFloat64};
  return dtypes[static_cast<size_t>(type)];
}

GgufHeader read_gguf_header(const Source& source) {
  Cursor in(source);
  if (in.number<uint32_t>("the first word") != 0x46554747) {
    raise_invalid("the file does not begin with GGUF");
  }
  const auto version = in.number<uint32_t>("the version");
  if (version != 2 && version != 3) {
    raise_invalid("versions 2 and 3 are read, not ", version,
                  (version & 0xffff) == 0 ? ", which is one of a big-endian machine" : "");
  }
  const uint64_t tensors = checked_count(in, "the number of tensors", 24, max_gguf_tensors);
  const uint64_t values = checked_count(in, "the number of values", 13, max_gguf_values);
  GgufHeader header;
  std::unordered_set<std::string> known;
  for (uint64_t i = 0; i < values; i++) {
    std::string key = name_of(in, "the name of a value");
    if (!known.insert(key).second) {
      raise_invalid("two values are called '", key, "'");
    }
    GgufValue value = read_value(in, key);
    header.metadata.emplace_back(std::move(key), std::move(value));
  }
  known.clear();
  for (uint64_t i = 0; i < tensors; i++) {
    header.entries.push_back(read_entry(in));
    if (!known.insert(header.entries.back().name).second) {
      raise_invalid("two tensors are called '", header.entries.back().name, "'");
    }
  }
  place_entries(header.entries, in.at(), alignment_of(header), source.size());
  return header;
}

}  // namespace rushlight::serialize
