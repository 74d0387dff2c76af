// Runs a libFuzzer target without libFuzzer, on damaged copies of files:
//
//   g++ -std=c++20 -O2 -Iinclude -Isrc tests/fuzz/driver.cpp tests/fuzz/load.cpp SOURCES -o /tmp/fuzz
//   /tmp/fuzz 10000000 1 net.pt net.pt2
//
// SOURCES stand in the head of the target. It says how many runs there were, how many a second, and
// what the slowest one took; a finding ends the process.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// One change of the bytes; `other` is where pieces are taken from.
void damage(std::string& bytes, const std::string& other, std::mt19937_64& draw) {
  const size_t at = draw() % bytes.size();
  switch (draw() % 7) {
    case 0:
      bytes[at] = static_cast<char>(draw());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw() % 8);
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.insert(at, bytes.substr(draw() % bytes.size(), draw() % 32));
      break;
    case 4:
      bytes.erase(at, draw() % 16);
      break;
    case 5:
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at),
                  std::min<size_t>(4, bytes.size() - at), draw() % 2 == 0 ? '\xff' : '\0');
      break;
    default:
      bytes.replace(at, 16, other.substr(draw() % other.size(), 16));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s RUNS SEED FILE...\n", argv[0]);
    return 2;
  }
  const uint64_t runs = std::strtoull(argv[1], nullptr, 10);
  std::mt19937_64 draw(std::strtoull(argv[2], nullptr, 10));
  std::vector<std::string> files;
  for (int i = 3; i < argc; i++) {
    std::ifstream in(argv[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (files.back().empty()) {
      std::fprintf(stderr, "%s: no bytes\n", argv[i]);
      return 2;
    }
  }
  Seconds slowest{};
  const Clock::time_point begin = Clock::now();
  for (uint64_t run = 0; run < runs; run++) {
    std::string bytes = files[draw() % files.size()];
    for (uint64_t changes = 1 + draw() % 8; changes > 0 && !bytes.empty(); changes--) {
      damage(bytes, files[draw() % files.size()], draw);
    }
    const Clock::time_point start = Clock::now();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    slowest = std::max(slowest, Seconds(Clock::now() - start));
  }
  const Seconds took = Clock::now() - begin;
  std::printf("%llu runs, %.0f a second, the slowest %.1f ms\n",
              static_cast<unsigned long long>(runs), static_cast<double>(runs) / took.count(),
              slowest.count() * 1e3);
  return 0;
}
