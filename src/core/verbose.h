// RUSHLIGHT_VERBOSE=1: a line on stderr for every choice between several ways of doing a job
// (cpu/candidates.h).
#pragma once

#include <string>

#include <rushlight/export.h>

namespace rushlight {

// Whether the environment asks for it; read once.
RL_API bool verbose();
// Writes "rushlight: " and the text as one line.
RL_API void verbose_line(const std::string& text);

}  // namespace rushlight
