// Ops that are programs themselves: those that archives name and the registry lacks, and what ops
// did in earlier versions of archives.
#pragma once

#include "script/meaning.h"

namespace rushlight::script {

// The function of that name, compiled into the unit when it is first asked for; null where there is
// none.
graph::Function* prelude_function(graph::CompilationUnit& unit, const std::string& name);

RL_API bool has_prelude_function(const std::string& name);

// What an op of this name was in archives of an earlier version: a name of the prelude, or nothing
// where it has not changed. `tensors`: how many of the first two arguments are tensors.
std::optional<std::string> name_in_version(const std::string& name, int64_t version, int tensors,
                                           bool has_mode);

// `torch`, `ops`: the names of all ops.
RL_API std::optional<Meaning> op_name(std::string_view name);

}  // namespace rushlight::script
