// Archives of TorchScript as modules.
#pragma once

#include <rushlight/script.h>

#include "serialize/checkpoint.h"

namespace rushlight::script {

// As jit::load, from any source of bytes.
RL_API jit::Module load_module(const std::shared_ptr<serialize::Source>& source,
                               std::optional<Device> device, jit::ExtraFilesMap& extra_files);

class ArchiveCode;
// What a pickle of an archive stands for: data.pkl with `folder` "data", or constants.pkl. Objects
// whose class says how they are restored are restored by `restore`, later.
struct ArchiveObjects {
  IValue root;
  // Objects and the states that their __setstate__ takes, in this order.
  std::vector<std::pair<intrusive_ptr<Object>, IValue>> restore;
};
ArchiveObjects read_objects(serialize::CheckpointReader& reader, const std::string& record,
                            const std::string& folder, ArchiveCode& code,
                            graph::CompilationUnit& unit, std::optional<Device> device);

}  // namespace rushlight::script
