// Reading the header of a safetensors file, with the little JSON that it takes.
#include "serialize/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace rushlight::serialize {
namespace {

std::optional<ScalarType> dtype_named(std::string_view name) {
  for (int i = 0; i < num_dtypes && !name.empty(); i++) {
    if (name == dtype_infos[i].safetensors) {
      return static_cast<ScalarType>(i);
    }
  }
  return std::nullopt;
}

template <class... Parts>
[[noreturn]] void raise_invalid(const Parts&... parts) {
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
    raise_invalid("invalid JSON in header: ", what, " at byte ", at_);
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

SafetensorsEntry read_entry(Json& json, const std::string& name) {
  SafetensorsEntry e;
  e.name = name;
  std::vector<int64_t> offsets;
  bool shape = false;
  json.object([&](const std::string& key) {
    if (key == "dtype" && e.dtype == ScalarType::Undefined) {
      const std::string text = json.string();
      const std::optional<ScalarType> found = dtype_named(text);
      if (!found) {
        raise_invalid("the tensor '", name, "' has the dtype ", text, ", which is not supported");
      }
      e.dtype = *found;
    } else if (key == "shape" && !shape) {
      shape = true;
      json.array([&] { e.shape.push_back(json.number()); });
    } else if (key == "data_offsets" && offsets.empty()) {
      json.array([&] { offsets.push_back(json.number()); });
    } else {
      raise_invalid("the tensor '", name, "' has the unknown or repeated property '", key, "'");
    }
  });
  if (e.dtype == ScalarType::Undefined || !shape || offsets.size() != 2 ||
      offsets[0] > offsets[1]) {
    raise_invalid("the description of the tensor '", name, "' is incomplete");
  }
  e.begin = static_cast<uint64_t>(offsets[0]);
  e.end = static_cast<uint64_t>(offsets[1]);
  int64_t bytes = itemsize(e.dtype);
  bool empty = false;
  bool overflow = false;
  for (const int64_t n : e.shape) {
    empty |= n == 0;
    // Strides count an empty dimension as one element: they must fit even where nothing is stored.
    overflow |= __builtin_mul_overflow(bytes, n == 0 ? 1 : n, &bytes);
  }
  if (overflow || static_cast<uint64_t>(empty ? 0 : bytes) != e.end - e.begin) {
    raise_invalid("the shape of the tensor '", name, "' does not go with its ", e.end - e.begin,
                  " bytes");
  }
  return e;
}

void check_cover(const std::vector<SafetensorsEntry>& entries, uint64_t size) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const SafetensorsEntry& e : entries) {
    order.push_back(&e);
  }
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const SafetensorsEntry* e : order) {
    if (e->begin != at) {
      raise_invalid("invalid offset of the tensor '", e->name,
                    "': tensors overlap or leave a hole");
    }
    at = e->end;
  }
  if (at != size) {
    raise_invalid("metadata incomplete, buffer not fully covered: the file has ", size,
                  " bytes of data, the header says ", at);
  }
}

}  // namespace

const char* safetensors_name(ScalarType dtype) {
  const char* name = dtype_info(dtype).safetensors;
  return *name == 0 ? nullptr : name;
}

SafetensorsHeader read_safetensors_header(const Source& source) {
  uint64_t length = 0;
  if (source.size() < sizeof length) {
    raise_invalid("header too small");
  }
  source.read(0, &length, sizeof length);
  if (length > max_safetensors_header || length > source.size() - sizeof length) {
    raise_invalid("header too large or invalid header length");
  }
  std::string text(length, '\0');
  source.read(sizeof length, text.data(), text.size());
  if (!text.starts_with('{')) {
    raise_invalid("invalid start character in header: this is no safetensors file");
  }
  Json json(text);
  SafetensorsHeader header;
  std::unordered_set<std::string> known;
  json.object([&](const std::string& name) {
    if (!known.insert(name).second) {
      raise_invalid("the name '", name, "' is there twice");
    }
    if (name == "__metadata__") {
      json.object([&](const std::string& key) {
        std::string value = json.string();
        header.metadata.emplace_back(key, std::move(value));
      });
    } else {
      header.entries.push_back(read_entry(json, name));
    }
  });
  json.end();
  header.size = sizeof length + length;
  check_cover(header.entries, source.size() - header.size);
  return header;
}

}  // namespace rushlight::serialize
