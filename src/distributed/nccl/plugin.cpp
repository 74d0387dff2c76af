// What the library finds in the plug-in.
#include "core/interface_hash.h"
#include "distributed/nccl/backend.h"

namespace rushlight::distributed {

namespace {

std::shared_ptr<Backend> make(const BackendOptions& options) {
  return std::make_shared<NcclBackend>(options);
}

const Plugin plugin = {interface_hash, make, nccl::find};

}  // namespace

}  // namespace rushlight::distributed

extern "C" RL_API const rushlight::distributed::Plugin* rushlight_distributed_plugin() {
  return &rushlight::distributed::plugin;
}
