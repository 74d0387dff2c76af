// The lines of RUSHLIGHT_VERBOSE: core/verbose.h.
#include "core/verbose.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rushlight {

bool verbose() {
  static const bool on = [] {
    const char* value = std::getenv("RUSHLIGHT_VERBOSE");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
  }();
  return on;
}

void verbose_line(const std::string& text) {
  const std::string line = "rushlight: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace rushlight
