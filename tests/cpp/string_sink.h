// Where tests write files: a string.
#pragma once

#include <string>

#include "serialize/file.h"

namespace rushlight::testing {

class StringSink : public serialize::Sink {
 public:
  void write(const void* data, size_t n) override {
    bytes.append(static_cast<const char*>(data), n);
  }
  std::string bytes;
};

}  // namespace rushlight::testing
