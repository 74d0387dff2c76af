// Which of the three builds of src/cpu/isa runs on this processor. Chosen once, by feature bits
// (models lie): x86-64-v4 needs AVX-512, v3 AVX2 and FMA. RUSHLIGHT_CPU=v2|v3|v4 asks for a lower
// one.
#pragma once

#include <rushlight/export.h>

namespace rushlight::cpu {

enum class IsaLevel : int { v2 = 2, v3 = 3, v4 = 4 };

RL_API IsaLevel isa_level();

// The levels that this library has kernels for, as "v2, v3, v4", and whether this processor can run
// one of them: what a developer built for one processor may have come to another.
RL_API const char* compiled_levels();
RL_API bool is_supported_here();

// Code of src/cpu/isa that is reached from outside stands in a table of each build; this picks one
// of the three, or the one that there is (RUSHLIGHT_ISA in cmake/Flags.cmake).
#ifdef RL_ONE_ISA
#define RL_ISA_TABLE(table) (RL_ONE_ISA::table)
#else
#define RL_ISA_TABLE(table)                                                      \
  (::rushlight::cpu::isa_level() == ::rushlight::cpu::IsaLevel::v4   ? v4::table \
   : ::rushlight::cpu::isa_level() == ::rushlight::cpu::IsaLevel::v3 ? v3::table \
                                                                     : v2::table)
#endif

}  // namespace rushlight::cpu
