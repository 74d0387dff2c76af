// Settings of libtorch's executors of TorchScript, which programs set and read. Graphs are
// optimised here once, whatever they say (graph_passes.h).
#pragma once

#include <map>
#include <memory>

#include <rushlight/script.h>

namespace rushlight::jit {

RL_API bool& getProfilingMode();
RL_API bool& getExecutorMode();
RL_API bool tensorExprFuserEnabled();
RL_API void setTensorExprFuserEnabled(bool enabled);
RL_API bool getGraphExecutorOptimize();
RL_API void setGraphExecutorOptimize(bool optimize);
inline void setProfilingMode(bool on) { getProfilingMode() = on; }
// Strings are bytes here until Python sees them: whatever is set, none is lost.
inline bool& utf8_decoding_ignore() {
  static bool ignore = false;
  return ignore;
}
inline void setUTF8DecodingIgnore(bool ignore) { utf8_decoding_ignore() = ignore; }
inline bool getUTF8DecodingIgnore() { return utf8_decoding_ignore(); }
namespace fuser::cuda {
inline bool isEnabled() { return false; }
// RuntimeError where it is wanted: nothing fuses the nodes of a graph for a GPU.
RL_API bool setEnabled(bool enabled);
}  // namespace fuser::cuda

// The tensors of a file that holds a dict of them, by name.
RL_API std::map<std::string, Tensor> _load_parameters(const std::string& path,
                                                      std::optional<Device> device = {});

}  // namespace rushlight::jit

namespace caffe2::serialize {
// Where the bytes of a file come from.
class RL_API ReadAdapterInterface {
 public:
  virtual ~ReadAdapterInterface();
  virtual size_t size() const = 0;
  // Up to n bytes from `at` on; how many they are. `what`: what is read, for messages.
  virtual size_t read(uint64_t at, void* into, size_t n, const char* what = "") const = 0;
};
}  // namespace caffe2::serialize

namespace rushlight::jit {
RL_API Module load(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> reader,
                   std::optional<Device> device = {}, bool load_debug_files = true);
}  // namespace rushlight::jit
