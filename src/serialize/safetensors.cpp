// Reading and writing safetensors, with the little JSON that it takes.
#include "serialize/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include <rushlight/ops.h>

#include "serialize/checkpoint.h"

namespace rushlight::serialize {
namespace {

constexpr uint64_t max_header = 100'000'000;  // as the format's own library has it

struct Name {
  const char* name;
  ScalarType dtype;
};
constexpr Name names[] = {
    {"F64", kFloat64}, {"F32", kFloat32},      {"F16", kFloat16}, {"BF16", kBFloat16},
    {"I64", kInt64},   {"I32", kInt32},        {"I16", kInt16},   {"I8", kInt8},
    {"U8", kUInt8},    {"C64", kComplexFloat}, {"BOOL", kBool},
};

struct Entry {
  std::string name;
  ScalarType dtype = ScalarType::Undefined;
  DimVector shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

template <class... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  throw Error(str("Error while deserializing header: ", parts...));
}

// JSON as far as headers need it: objects, arrays of numbers from 0 on, strings.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}

  // f(key) for each key of an object; it reads the value.
  template <class F>
  void object(const F& f) {
    expect('{');
    if (take('}')) {
      return;
    }
    do {
      const std::string key = string();
      expect(':');
      f(key);
    } while (take(','));
    expect('}');
  }
  template <class F>
  void array(const F& f) {
    expect('[');
    if (take(']')) {
      return;
    }
    do {
      f();
    } while (take(','));
    expect(']');
  }
  int64_t number() {
    skip_space();
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
      const int64_t digit = text_[at_] - '0';
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, digit, &value)) {
        fail("a number is too large");
      }
    }
    if (at_ == start) {
      fail("expected a number");
    }
    return value;
  }
  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      const char c = next();
      if (c == '"') {
        return out;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        fail("a control character in a string");
      }
      if (c == '\\') {
        escape(out);
      } else {
        out += c;
      }
    }
  }
  void end() {
    skip_space();
    if (at_ != text_.size()) {
      fail("something follows the object");
    }
  }
  [[noreturn]] void fail(const char* what) const {
    bad("invalid JSON in header: ", what, " at byte ", at_);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      at_++;
    }
  }
  char next() {
    if (at_ == text_.size()) {
      fail("the header ends early");
    }
    return text_[at_++];
  }
  bool take(char c) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == c) {
      at_++;
      return true;
    }
    return false;
  }
  void expect(char c) {
    if (!take(c)) {
      fail("a character is missing or wrong");
    }
  }
  uint32_t hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
      const char c = next();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        fail("a damaged escape in a string");
      }
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return value;
  }
  void escape(std::string& out) {
    const char c = next();
    constexpr std::string_view from = "\"\\/bfnrt";
    constexpr std::string_view to = "\"\\/\b\f\n\r\t";
    const size_t i = from.find(c);
    if (i != std::string_view::npos) {
      out += to[i];
      return;
    }
    if (c != 'u') {
      fail("an unknown escape in a string");
    }
    uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00) {  // the first of a pair
      if (next() != '\\' || next() != 'u') {
        fail("half of a character in a string");
      }
      const uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) {
        fail("half of a character in a string");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      fail("half of a character in a string");
    }
    const auto put = [&](uint32_t lead, int more) {
      out += static_cast<char>(lead | code >> (6 * more));
      while (more-- > 0) {
        out += static_cast<char>(0x80 | (code >> (6 * more) & 0x3f));
      }
    };
    code < 0x80      ? put(0, 0)
    : code < 0x800   ? put(0xc0, 1)
    : code < 0x10000 ? put(0xe0, 2)
                     : put(0xf0, 3);
  }

  std::string_view text_;
  size_t at_ = 0;
};

Entry read_entry(Json& json, const std::string& name) {
  Entry e;
  e.name = name;
  std::vector<int64_t> offsets;
  bool shape = false;
  json.object([&](const std::string& key) {
    if (key == "dtype" && e.dtype == ScalarType::Undefined) {
      const std::string text = json.string();
      const auto* found = std::find_if(std::begin(names), std::end(names),
                                       [&](const Name& n) { return text == n.name; });
      if (found == std::end(names)) {
        bad("the tensor '", name, "' has the dtype ", text, ", which is not supported");
      }
      e.dtype = found->dtype;
    } else if (key == "shape" && !shape) {
      shape = true;
      json.array([&] { e.shape.push_back(json.number()); });
    } else if (key == "data_offsets" && offsets.empty()) {
      json.array([&] { offsets.push_back(json.number()); });
    } else {
      bad("the tensor '", name, "' has the unknown or repeated property '", key, "'");
    }
  });
  if (e.dtype == ScalarType::Undefined || !shape || offsets.size() != 2 ||
      offsets[0] > offsets[1]) {
    bad("the description of the tensor '", name, "' is incomplete");
  }
  e.begin = static_cast<uint64_t>(offsets[0]);
  e.end = static_cast<uint64_t>(offsets[1]);
  int64_t bytes = itemsize(e.dtype);
  bool empty = false;
  bool overflow = false;
  for (const int64_t n : e.shape) {
    empty |= n == 0;
    overflow |= __builtin_mul_overflow(bytes, n, &bytes);
  }
  if (empty ? e.begin != e.end : overflow || static_cast<uint64_t>(bytes) != e.end - e.begin) {
    bad("the shape of the tensor '", name, "' does not go with its ", e.end - e.begin, " bytes");
  }
  return e;
}

void check_cover(const std::vector<Entry>& entries, uint64_t size) {
  std::vector<const Entry*> order;
  for (const Entry& e : entries) {
    order.push_back(&e);
  }
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const Entry* e : order) {
    if (e->begin != at) {
      bad("invalid offset of the tensor '", e->name, "': tensors overlap or leave a hole");
    }
    at = e->end;
  }
  if (at != size) {
    bad("metadata incomplete, buffer not fully covered: the file has ", size,
        " bytes of data, the header says ", at);
  }
}

DimVector contiguous_strides(IntArrayRef shape) {
  DimVector strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    // Without overflow: empty shapes may hold any numbers.
    if (__builtin_mul_overflow(strides[d], std::max<int64_t>(shape[d], 1), &strides[d - 1])) {
      bad("a shape is too large");
    }
  }
  return strides;
}

void forget_source(void*, size_t, void* context) {
  delete static_cast<std::shared_ptr<Source>*>(context);
}

void append_json(std::string& out, const std::string& text) {
  constexpr char hex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += str("\\u00", hex[c >> 4], hex[c & 15]);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

StateDict read_safetensors(const std::shared_ptr<Source>& source, bool in_place,
                           Metadata* metadata) {
  uint64_t header_size = 0;
  if (source->size() < sizeof header_size) {
    bad("header too small");
  }
  source->read(0, &header_size, sizeof header_size);
  if (header_size > max_header || header_size > source->size() - sizeof header_size) {
    bad("header too large or invalid header length");
  }
  std::string header(header_size, '\0');
  source->read(sizeof header_size, header.data(), header.size());
  if (!header.starts_with('{')) {
    bad("invalid start character in header: this is no safetensors file");
  }
  Json json(header);
  std::vector<Entry> entries;
  std::unordered_set<std::string> known;
  json.object([&](const std::string& name) {
    if (!known.insert(name).second) {
      bad("the name '", name, "' is there twice");
    }
    if (name == "__metadata__") {
      json.object([&](const std::string& key) {
        std::string value = json.string();
        if (metadata != nullptr) {
          metadata->emplace_back(key, std::move(value));
        }
      });
    } else {
      entries.push_back(read_entry(json, name));
    }
  });
  json.end();
  const uint64_t start = sizeof header_size + header_size;
  check_cover(entries, source->size() - start);

  Storage whole;  // all bytes, in place
  if (in_place && source->mapped() != nullptr) {
    whole = StorageImpl::borrow(const_cast<char*>(source->mapped()), source->size(), Device(kCPU),
                                forget_source, new std::shared_ptr<Source>(source));
  }
  StateDict result;
  for (const Entry& e : entries) {
    const DimVector strides = contiguous_strides(e.shape);
    const uint64_t unit = static_cast<uint64_t>(itemsize(e.dtype));
    // tensor_on makes bytes of bools right in its whole storage, so these get storages of their
    // own.
    if (whole && e.dtype != kBool && (start + e.begin) % unit == 0) {
      result.emplace_back(
          e.name, tensor_on(whole, e.dtype, static_cast<int64_t>((start + e.begin) / unit), e.shape,
                            strides));
      continue;
    }
    const Storage storage = StorageImpl::allocate(e.end - e.begin, Device(kCPU));
    source->read(start + e.begin, storage->data(), e.end - e.begin);
    result.emplace_back(e.name, tensor_on(storage, e.dtype, 0, e.shape, strides));
  }
  return result;
}

void write_safetensors(const StateDict& tensors, const Metadata& metadata, Sink& sink) {
  // The widest types first, so that all are aligned; then by name.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t x = tensors[a].second.element_size();
    const int64_t y = tensors[b].second.element_size();
    return x != y ? x > y : tensors[a].first < tensors[b].first;
  });
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      header += header.back() == '{' ? "" : ",";
      append_json(header, key);
      header += ':';
      append_json(header, value);
    }
    header += '}';
  }
  int64_t at = 0;
  std::unordered_set<std::string> known{"__metadata__"};
  for (const size_t i : order) {
    const auto& [name, t] = tensors[i];
    RL_CHECK(t.defined() && t.is_cpu(), "the tensor '", name, "' is not on the cpu");
    RL_CHECK(known.insert(name).second, "two tensors are called '", name, "'");
    const auto* found = std::find_if(std::begin(names), std::end(names),
                                     [&](const Name& n) { return t.dtype() == n.dtype; });
    RL_CHECK_TYPE(found != std::end(names), "safetensors cannot hold tensors of dtype ", t.dtype());
    header += header.size() == 1 ? "" : ",";
    append_json(header, name);
    header += str(":{\"dtype\":\"", found->name, "\",\"shape\":[");
    for (size_t d = 0; d < t.sizes().size(); d++) {
      header += str(d == 0 ? "" : ",", t.sizes()[d]);
    }
    header += str("],\"data_offsets\":[", at, ",", at + t.nbytes(), "]}");
    at += t.nbytes();
  }
  header += '}';
  header.append(-header.size() & 7, ' ');
  const uint64_t size = header.size();
  RL_CHECK(size <= max_header, "the names of these tensors are too many or too long");
  sink.write(&size, sizeof size);
  sink.write(header.data(), header.size());
  for (const size_t i : order) {
    const Tensor t = tensors[i].second.contiguous();
    sink.write(t.data_ptr(), static_cast<size_t>(t.nbytes()));
  }
}

}  // namespace rushlight::serialize

namespace rushlight {

void save_safetensors(const StateDict& state, const std::string& path) {
  serialize::AtomicFile file(path);
  serialize::write_safetensors(state, {}, file);
  file.commit();
}

StateDict load_safetensors(const std::string& path) {
  return serialize::read_safetensors(serialize::open_source(path, false), false);
}

}  // namespace rushlight
