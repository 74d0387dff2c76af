// libFuzzer target of the readers of programs: any bytes as the graph of an exported program (a
// .pt2 file) or as the source of a TorchScript archive, among the other entries of a real file. It
// needs the whole library:
//
//   g++ -std=c++20 -O2 -Iinclude -Isrc -Ibuild/release/generated/include tests/fuzz/driver.cpp
//   tests/fuzz/programs.cpp -Lbuild/release -lrushlight -Wl,-rpath,$PWD/build/release -o /tmp/fuzz
//   RUSHLIGHT_FUZZ_FILE=net.pt2 RUSHLIGHT_FUZZ_ENTRY=models/model.json /tmp/fuzz 100000 1
//   model.json
//
// What runs is bounded by the file's size: a program that takes more ends by an error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <rushlight/exported.h>
#include <rushlight/script.h>

#include "serialize/zip.h"

using namespace rushlight;
using namespace rushlight::serialize;

namespace {

class Text final : public Sink {
 public:
  void write(const void* data, size_t n) override {
    bytes.append(static_cast<const char*>(data), n);
  }
  std::string bytes;
};

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set\n", name);
    std::exit(2);
  }
  return value;
}

// The entries of the file, that which is replaced without its bytes.
struct Template {
  std::vector<std::pair<std::string, std::string>> entries;
  size_t place = 0;
  bool is_script = false;

  Template() {
    const ZipReader zip(open_source(variable("RUSHLIGHT_FUZZ_FILE"), false));
    const std::string_view wanted = variable("RUSHLIGHT_FUZZ_ENTRY");
    for (const ZipReader::Entry& entry : zip.entries()) {
      is_script |= entry.name.find("/code/") != std::string::npos;
      if (entry.name.ends_with(wanted)) {
        place = entries.size();
      }
      entries.emplace_back(entry.name, zip.read(entry));
    }
  }
};

std::string archive_with(std::string_view bytes) {
  static const Template& file = *new Template;
  Text text;
  ZipWriter zip(text);
  for (size_t i = 0; i < file.entries.size(); i++) {
    const auto& [name, content] = file.entries[i];
    const std::string_view data = i == file.place ? bytes : std::string_view(content);
    zip.add(name, data.data(), data.size());
  }
  zip.finish();
  return std::move(text.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool is_script = Template().is_script;
  std::istringstream stream(archive_with({reinterpret_cast<const char*>(data), size}));
  try {
    if (is_script) {
      (void)jit::load(stream);
    } else {
      (void)exported::load(stream);
    }
  } catch (const Error&) {}
  return 0;
}
