// Checksums, zip files and pickles: round trips, and what damaged or hostile ones come to.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "serialize/crc32.h"
#include "serialize/pickle.h"
#include "serialize/zip.h"

using namespace rushlight;
using namespace rushlight::serialize;

struct Collected : Sink {
  std::string bytes;
  void write(const void* data, size_t n) override {
    bytes.append(static_cast<const char*>(data), n);
  }
};

static std::shared_ptr<Source> source_of(const std::string& bytes) {
  auto copy = std::make_shared<std::string>(bytes);
  return memory_source(copy->data(), copy->size(), copy);
}

RL_TEST(checksums) {
  CHECK(crc32(0, "123456789", 9) == 0xcbf43926);
  CHECK(crc32_tables(0, "123456789", 9) == 0xcbf43926);
  std::vector<unsigned char> data(5000);
  uint32_t seed = 1;
  for (auto& b : data) {
    seed = seed * 1664525 + 1013904223;
    b = static_cast<unsigned char>(seed >> 24);
  }
  bool good = true;
  for (size_t n = 0; n < 3000; n++) {
    for (size_t start : {0, 1, 7}) {
      good &= crc32(n, &data[start], n) == crc32_tables(n, &data[start], n);
    }
  }
  CHECK(good);
  CHECK(crc32(crc32(0, data.data(), 1234), &data[1234], 3766) ==
        crc32_tables(0, data.data(), 5000));
}

RL_TEST(checksums_of_pieces) {
  std::string data(100000, 'a');
  for (size_t i = 0; i < data.size(); i++) {
    data[i] = static_cast<char>(i * i / 7);
  }
  const uint32_t whole = crc32(0, data.data(), data.size());
  for (const size_t n : {size_t{0}, size_t{1}, size_t{77}, size_t{65536}, data.size()}) {
    const uint32_t first = crc32(0, data.data(), n);
    const uint32_t second = crc32(0, &data[n], data.size() - n);
    CHECK(crc32_of_both(first, second, data.size() - n) == whole);
  }
}

RL_TEST(large_entries) {
  std::string data(10'000'000, 'a');
  for (size_t i = 0; i < data.size(); i++) {
    data[i] = static_cast<char>(i * i / 7);
  }
  Collected out;
  ZipWriter writer(out);
  writer.add("a/large", data.data(), data.size());
  writer.finish();
  const ZipReader zip(source_of(out.bytes));
  CHECK(zip.find("a/large")->crc == crc32_tables(0, data.data(), data.size()));
  CHECK(zip.read(*zip.find("a/large")) == data);
  out.bytes[9'000'000] ^= 1;
  const ZipReader damaged(source_of(out.bytes));
  CHECK_THROWS(Error, "checksum", damaged.read(*damaged.find("a/large")));
}

static std::string small_zip() {
  Collected out;
  ZipWriter zip(out);
  zip.add("a/first", "hello", 5);
  zip.add("a/empty", "", 0);
  zip.add("a/second", std::string(1000, 'x').data(), 1000);
  zip.finish();
  return out.bytes;
}

RL_TEST(zip_round_trip) {
  const ZipReader zip(source_of(small_zip()));
  CHECK(zip.entries().size() == 3);
  CHECK(zip.read(*zip.find("a/first")) == "hello");
  CHECK(zip.read(*zip.find("a/empty")).empty());
  CHECK(zip.read(*zip.find("a/second")) == std::string(1000, 'x'));
  CHECK(zip.find("a/third") == nullptr);
  for (const auto& e : zip.entries()) {
    CHECK(e.offset % 64 == 0);
  }
  CHECK(std::string(zip.in_place(*zip.find("a/first")), 5) == "hello");
}

RL_TEST(cut_zips_are_refused) {
  const std::string good = small_zip();
  for (size_t n = 0; n < good.size(); n++) {
    CHECK_THROWS(Error, "failed", ZipReader(source_of(good.substr(0, n))));
  }
}

// Every byte changed in three ways: an error or the right contents, nothing else.
RL_TEST(changed_zips_are_refused_or_harmless) {
  const std::string good = small_zip();
  int refused = 0;
  for (size_t i = 0; i < good.size(); i++) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      try {
        const ZipReader zip(source_of(bad));
        for (const auto& e : zip.entries()) {
          (void)zip.read(e);
        }
      } catch (const Error&) {
        refused++;
      }
    }
  }
  CHECK(refused > 2000);
}

static void replace(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

RL_TEST(hostile_zips) {
  std::string twice = small_zip();
  replace(twice, "a/empty", "a/first");
  CHECK_THROWS(Error, "there twice", ZipReader(source_of(twice)));
  std::string packed = small_zip();
  packed[packed.find("PK\x01\x02") + 10] = 8;
  CHECK_THROWS(Error, "damaged", ZipReader(source_of(packed)));  // its header says another method
  std::string overlapping = small_zip();
  const size_t second = overlapping.find("PK\x01\x02", overlapping.find("PK\x01\x02") + 4);
  std::memset(&overlapping[second + 20], 0x7f, 1);  // both sizes of the empty entry
  std::memset(&overlapping[second + 24], 0x7f, 1);
  CHECK_THROWS(Error, "overlap", ZipReader(source_of(overlapping)));
}

static std::string pickled(const char* text, size_t n) { return std::string(text, n); }
#define PICKLE(text) pickled(text, sizeof(text) - 1)

RL_TEST(pickles) {
  const std::string list = PICKLE(
      "\x80\x02]q\x00(K\x01J\xfe\xff\xff\xff\x8a\x02\x00\x80G?"
      "\xf8\0\0\0\0\0\0X\x02\0\0\0hiN\x88h\x00"
      "e.tail");
  const Pickle p = read_pickle(list);
  CHECK(p.end == list.size() - 4);
  const PickleNode& root = p.nodes[p.root];
  CHECK(root.kind == PickleNode::Kind::List);
  const PickleStep& fill = p.steps[root.last_step];
  CHECK(fill.kind == PickleStep::Kind::Append && fill.count == 8);
  const auto item = [&](uint32_t i) -> const PickleNode& {
    return p.nodes[p.items[fill.first + i]];
  };
  CHECK(item(0).value.i == 1);
  CHECK(item(1).value.i == -2);
  CHECK(item(2).value.i == -32768);
  CHECK(item(3).value.d == 1.5);
  CHECK(item(4).bytes() == "hi");
  CHECK(item(5).kind == PickleNode::Kind::None);
  CHECK(item(6).kind == PickleNode::Kind::Bool && item(6).value.i == 1);
  CHECK(&item(7) == &root);
  const std::string call = PICKLE(
      "\x80\x02"
      "cos\nsystem\nX\x02\0\0\0ls\x85R.");
  const Pickle q = read_pickle(call);  // read, not run
  CHECK(q.nodes[q.root].kind == PickleNode::Kind::Call);
  CHECK(q.nodes[q.items[q.nodes[q.root].value.items.first]].bytes() == "os\nsystem");
}

RL_TEST(bad_pickles) {
  const auto read = [](const std::string& bytes) { read_pickle(bytes); };
  CHECK_THROWS(UnpicklingError, "truncated", (read(""), 0));
  CHECK_THROWS(UnpicklingError, "truncated", (read(PICKLE("X\xff\xff\xff\x7fhi.")), 0));
  CHECK_THROWS(UnpicklingError, "truncated",
               (read(PICKLE("\x8e\xff\xff\xff\xff\xff\xff\xff\xff.")), 0));
  CHECK_THROWS(UnpicklingError, "truncated", (read(PICKLE("cos\nsystem")), 0));
  CHECK_THROWS(UnpicklingError, "underflow", (read("a."), 0));
  CHECK_THROWS(UnpicklingError, "underflow", (read("N(a."), 0));
  CHECK_THROWS(UnpicklingError, "underflow", (read("\x87."), 0));
  CHECK_THROWS(UnpicklingError, "no mark", (read("t."), 0));
  CHECK_THROWS(UnpicklingError, "instead of one", (read("."), 0));
  CHECK_THROWS(UnpicklingError, "instead of one", (read("NN."), 0));
  CHECK_THROWS(UnpicklingError, "odd number", (read("}(Nu."), 0));
  CHECK_THROWS(UnpicklingError, "memo value not found", (read("h\x05."), 0));
  CHECK_THROWS(UnpicklingError, "out of range", (read("Nr\xff\xff\xff\xff."), 0));
  CHECK_THROWS(UnpicklingError, "without a tuple", (read("NNR."), 0));
  CHECK_THROWS(UnpicklingError, "unsupported opcode INST", (read("(ios\nsystem\n."), 0));
  CHECK_THROWS(UnpicklingError, "unsupported opcode FROZENSET", (read("(\x91."), 0));
  CHECK_THROWS(UnpicklingError, "unknown opcode 255", (read("\xff."), 0));
  CHECK_THROWS(UnpicklingError, "unsupported pickle protocol 77", (read("\x80M."), 0));
  CHECK_THROWS(UnpicklingError, "deep", (read("N" + std::string(2000, '\x85') + "."), 0));
}

RL_TEST(globals_are_renamed) {
  const std::string before = PICKLE(
      "\x80\x02(crushlight._"
      "utils\nf\ncrushlight\nfloat32\ncrushlights\nx\nX\x0a\0\0\0crushlightt.");
  const std::string after =
      PICKLE("\x80\x02(ctorch._utils\nf\nctorch\nfloat32\nca.b\ny\nX\x0a\0\0\0crushlightt.");
  CHECK(rename_globals(before, {{"rushlights\nx", "a.b\ny"}, {"rushlight", "torch"}}) == after);
}

RL_TEST_MAIN()
