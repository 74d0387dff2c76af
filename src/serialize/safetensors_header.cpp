// Reading the header of a safetensors file.
#include "serialize/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <rushlight/json.h>

namespace rushlight::serialize {
namespace {

std::optional<ScalarType> dtype_named(std::string_view name) {
  for (const ScalarType t : all_dtypes) {
    if (!name.empty() && name == dtype_info(t).safetensors) {
      return t;
    }
  }
  return std::nullopt;
}

template <class... Parts>
[[noreturn]] void raise_invalid(const Parts&... parts) {
  throw Error(str("Error while deserializing header: ", parts...));
}

SafetensorsEntry read_entry(JsonReader& json, const std::string& name) {
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
      json.array([&] { e.shape.push_back(json.natural()); });
    } else if (key == "data_offsets" && offsets.empty()) {
      json.array([&] { offsets.push_back(json.natural()); });
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
  JsonReader json(text, "Error while deserializing header: invalid JSON in header");
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
