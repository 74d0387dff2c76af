// libFuzzer target of the file reader: any bytes as a .pt container, and as the pickle in one. It
// needs no tensors, so that it builds alone, with clang:
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
//   tests/fuzz/load.cpp \
//     src/serialize/{crc32,file,inflate,pickle,zip}.cpp src/core/{dtype,error}.cpp -o /tmp/fuzz-load
//   mkdir -p /tmp/corpus && /tmp/fuzz-load -max_len=4096 -max_total_time=300 /tmp/corpus
//
// A few .pt files and their pickles in the corpus folder are a good start. Tensors and storages of
// damaged files are tested in tests/python/test_serialization.py, which `./dev sanitize` runs too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/parallel.h"
#include "serialize/pickle.h"
#include "serialize/zip.h"

// Instead of the thread pool.
void rushlight::run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFunction f,
                           const void* context) {
  for (int64_t b = begin; b < end; b += grain) {
    f(context, b, b + grain < end ? b + grain : end);
  }
}

using namespace rushlight;
using namespace rushlight::serialize;

namespace {

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

// Everything that a walker relies on.
void check(const Pickle& p) {
  require(p.root < p.nodes.size());
  const auto made = [&](uint32_t first, uint32_t count, uint32_t before) {
    require(first <= p.items.size() && count <= p.items.size() - first);
    for (uint32_t i = 0; i < count; i++) {
      require(p.items[first + i] < before);
    }
  };
  uint32_t next = 0;
  const auto make = [&](uint32_t id) {
    require(id == next++);  // nodes are made in order
    const PickleNode& n = p.nodes[id];
    if (n.kind == PickleNode::Kind::Tuple || n.kind == PickleNode::Kind::Call ||
        n.kind == PickleNode::Kind::New || n.kind == PickleNode::Kind::Persistent) {
      made(n.value.items.first, n.value.items.count, id);
    }
  };
  const auto fill = [&](const PickleStep& step) {
    require(step.node < next);
    made(step.first, step.count, next);
  };
  p.replay(make, fill);
  require(next == p.nodes.size());
}

void read_as_pickle(std::string_view bytes) {
  try {
    check(read_pickle(bytes));
  } catch (const Error&) {}
  try {
    const std::string renamed =
        rename_globals(bytes, {{"torch", "rushlight"}, {"os\nsystem", "a.b\nc"}});
    (void)rename_globals(renamed, {{"rushlight", "torch"}});
  } catch (const Error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_as_pickle(bytes);
  try {
    const ZipReader zip(memory_source(data, size, nullptr));
    for (const ZipReader::Entry& e : zip.entries()) {
      require(e.offset <= size && e.size <= size - e.offset);
      read_as_pickle({zip.in_place(e), e.size});
      (void)zip.read(e);
    }
  } catch (const Error&) {}
  return 0;
}
