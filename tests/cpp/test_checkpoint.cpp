// .pt files: round trips of state dicts, and what damaged files and failed saves come to.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <rushlight/rushlight.h>
#include <rushlight/serialize.h>

#include "check.h"
#include "serialize/checkpoint.h"

using namespace rushlight;
using namespace rushlight::serialize;

// A folder that goes with its contents.
struct Folder {
  std::string path = "/tmp/rushlight-test-XXXXXX";
  Folder() { CHECK(mkdtemp(path.data()) != nullptr); }
  ~Folder() {
    if (std::system(("rm -rf " + path).c_str()) != 0) {
      std::printf("%s stays\n", path.c_str());
    }
  }
  std::string file(const char* name) const { return path + "/" + name; }
};

static std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

RL_TEST(state_dicts) {
  const Folder folder;
  const std::string path = folder.file("net.pt");
  Tensor w = arange(6).to(kFloat32).view({2, 3});
  Tensor part = w.select(0, 1);
  w.requires_grad_();
  save({{"w", w}, {"part", part}, {"b", zeros({0, 4}, kBool)}, {"t", ones({2, 2}, kInt64).t()}},
       path);
  const StateDict back = load_state_dict(path);
  CHECK(back.size() == 4);
  CHECK(back[0].first == "w" && back[0].second.requires_grad());
  CHECK(equal(back[0].second, w));
  CHECK(back[1].second.storage() == back[0].second.storage());
  CHECK(back[1].second.storage_offset() == 3 && equal(back[1].second, part));
  CHECK(back[2].second.sizes() == IntArrayRef({0, 4}) && back[2].second.dtype() == kBool);
  CHECK(back[3].second.strides() == IntArrayRef({1, 2}));
  save(part, path);
  CHECK(equal(load_tensor(path), part));
  save(std::vector<Tensor>{w, part}, path);
  std::vector<Tensor> list;
  load(list, path);
  CHECK(list.size() == 2 && equal(list[1], part) && list[1].storage() == list[0].storage());
  CHECK_THROWS(Error, "No such file", load_tensor(folder.file("missing.pt")));
}

// Every byte of a small file changed: an error or a result, no crash (run under ASan and UBSan as
// well).
RL_TEST(changed_files) {
  const Folder folder;
  const std::string path = folder.file("net.pt");
  save({{"w", ones({2, 3})}, {"b", ones({3}, kBool)}}, path);
  const std::string good = contents(path);
  int refused = 0;
  for (size_t i = 0; i < good.size(); i++) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] + 1);
    std::ofstream(path, std::ios::binary) << bad;
    try {
      for (const auto& [name, t] : load_state_dict(path)) {
        (void)t.clone();
      }
    } catch (const Error&) {
      refused++;
    }
  }
  CHECK(refused > static_cast<int>(good.size() / 3));
}

RL_TEST(windows_stay_inside) {
  const Storage s = StorageImpl::allocate(24, Device(kCPU));
  const auto on = [&](int64_t offset, DimVector sizes, DimVector strides) {
    return tensor_on(s, kFloat32, offset, sizes, strides);
  };
  CHECK(on(0, {2, 3}, {3, 1}).numel() == 6);
  CHECK(on(5, {1}, {1}).numel() == 1);
  CHECK(on(0, {6, 5}, {1, 0}).numel() == 30);
  CHECK(on(6, {0}, {1}).numel() == 0);
  constexpr int64_t huge = INT64_MAX;
  CHECK_THROWS(Error, "out of bounds", on(0, {7}, {1}));
  CHECK_THROWS(Error, "out of bounds", on(1, {2, 3}, {3, 1}));
  CHECK_THROWS(Error, "out of bounds", on(6, {1}, {1}));
  CHECK_THROWS(Error, "out of bounds", on(7, {0}, {1}));
  CHECK_THROWS(Error, "out of bounds", on(0, {huge, huge}, {huge, huge}));
  CHECK_THROWS(Error, "out of bounds", on(huge, {1}, {1}));
  CHECK_THROWS(Error, "out of bounds", on(0, {2, 2}, {1, huge}));
  CHECK_THROWS(Error, "offset", on(-1, {1}, {1}));
  CHECK_THROWS(Error, "egative", on(0, {2}, {-1}));
  CHECK_THROWS(Error, "negative dimension", on(0, {-2}, {1}));
  CHECK_THROWS(Error, "mismatch", on(0, {2}, {}));
  std::memset(s->data(), 0x42, 24);
  CHECK(tensor_on(s, kBool, 0, DimVector({24}), DimVector({1})).all().item<bool>());
  CHECK(static_cast<char*>(s->data())[7] == 0x42);
}

RL_TEST(a_failed_save_keeps_the_old_file) {
  const Folder folder;
  const std::string path = folder.file("net.pt");
  save(ones({2}), path);
  const std::string before = contents(path);
  CHECK(chmod(path.c_str(), 0640) == 0);
  {
    AtomicFile file(path);
    file.write("half", 4);
  }
  CHECK(contents(path) == before);
  save(ones({3}), path);
  CHECK(load_tensor(path).numel() == 3);
  struct stat info{};
  CHECK(stat(path.c_str(), &info) == 0 && (info.st_mode & 0777) == 0640);
  const std::string link = folder.file("link.pt");
  CHECK(symlink(path.c_str(), link.c_str()) == 0);
  save(ones({4}), link);
  CHECK(load_tensor(path).numel() == 4);
  CHECK(lstat(link.c_str(), &info) == 0 && S_ISLNK(info.st_mode));
  CHECK_THROWS(FileError, "No such file", save(ones({2}), folder.file("none/net.pt")));
  save(ones({2}), "/dev/null");
  CHECK(std::system(("test $(ls -A " + folder.path + " | wc -l) = 2").c_str()) ==
        0);  // no temporaries stay
}

RL_TEST_MAIN()
