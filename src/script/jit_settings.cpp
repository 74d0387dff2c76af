// What stands for libtorch's settings of executors, and files read by adapters.
#include <rushlight/jit_settings.h>

#include <atomic>
#include <sstream>

#include <rushlight/archive.h>

namespace caffe2::serialize {
ReadAdapterInterface::~ReadAdapterInterface() = default;
}  // namespace caffe2::serialize

namespace rushlight::jit {

namespace {

std::atomic<bool> fuses{true};
thread_local bool optimizes = true;

}  // namespace

bool& getProfilingMode() {
  static bool on = true;
  return on;
}
bool& getExecutorMode() {
  static bool on = true;
  return on;
}
bool tensorExprFuserEnabled() { return fuses; }
void setTensorExprFuserEnabled(bool enabled) { fuses = enabled; }
bool getGraphExecutorOptimize() { return optimizes; }
void setGraphExecutorOptimize(bool optimize) { optimizes = optimize; }

bool fuser::cuda::setEnabled(bool enabled) {
  RL_CHECK(!enabled, "fuser::cuda::setEnabled: nothing fuses the nodes of a graph for a GPU here");
  return false;
}

std::map<std::string, Tensor> _load_parameters(const std::string& path,
                                               std::optional<Device> device) {
  serialize::InputArchive archive;
  archive.load_from(path, device);
  std::map<std::string, Tensor> out;
  for (const auto& [name, tensor] : archive.state()) {
    out[name] = tensor;
  }
  return out;
}

Module load(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> reader,
            std::optional<Device> device, bool load_debug_files) {
  RL_CHECK(reader != nullptr, "jit::load: expected a reader, got null");
  std::string bytes(reader->size(), '\0');
  const size_t found = reader->read(0, bytes.data(), bytes.size(), "an archive");
  RL_CHECK(found == bytes.size(), "jit::load: expected ", bytes.size(), " bytes, got ", found);
  std::istringstream stream(std::move(bytes));
  return load(stream, device, load_debug_files);
}

}  // namespace rushlight::jit
