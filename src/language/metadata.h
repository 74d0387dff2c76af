// What metadata of GGUF files say, checked.
#pragma once

#include <rushlight/gguf.h>

#include <optional>
#include <string>

namespace rushlight::language {

// Null where there is no such value, or one of another type.
template <class T>
const T* find(const gguf::Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : std::get_if<T>(&found->second);
}

// Whether there is a value of any type.
inline bool has(const gguf::Metadata& metadata, const std::string& key) {
  return metadata.count(key) != 0;
}

// An integer or a float as a float; none where the value is something else.
inline std::optional<double> number(const gguf::Metadata& metadata, const std::string& key) {
  if (const auto* const i = find<int64_t>(metadata, key)) {
    return static_cast<double>(*i);
  }
  if (const auto* const u = find<uint64_t>(metadata, key)) {
    return static_cast<double>(*u);
  }
  const auto* const d = find<double>(metadata, key);
  return d == nullptr ? std::nullopt : std::optional(*d);
}

}  // namespace rushlight::language
