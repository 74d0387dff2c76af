// Modules as archives of TorchScript.
#pragma once

#include <rushlight/script.h>

#include "serialize/file.h"

namespace rushlight::script {

// RuntimeError where the module holds what archives cannot.
RL_API void write_module(const jit::Module& module, serialize::Sink& sink,
                         const std::string& archive, const jit::ExtraFilesMap& extra_files);

}  // namespace rushlight::script
