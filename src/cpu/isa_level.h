// Which build of src/cpu/isa runs on this processor. Chosen once, by feature bits (models lie):
// x86-64-v4 needs AVX-512, v3 AVX2 and FMA; aarch64 has one build, for ARMv8.2 with dot products.
// RUSHLIGHT_CPU=v2|v3|v4 asks for a lower one.
#pragma once

#include <rushlight/export.h>

#include "core/isa_levels.h"

namespace rushlight::cpu {

enum class IsaLevel : int { none, neon, v2, v3, v4 };

RL_API IsaLevel isa_level();
RL_API const char* name_of(IsaLevel level);

// The levels that this library has kernels for, as "v2, v3, v4", and whether this processor can run
// one of them: what a developer built for one processor may have come to another.
RL_API const char* compiled_levels();
RL_API bool is_supported_here();

// Code of src/cpu/isa that is reached from outside stands in a table of each build. RL_ISA_TABLE
// picks one of them, or the one that there is (RUSHLIGHT_ISA in cmake/Flags.cmake).
#define RL_DECLARE_ISA_TABLE_OF(level, Type, name) \
  namespace level {                                \
  extern const Type name;                          \
  }
#if defined(__x86_64__)
#define RL_DECLARE_ISA_TABLE(Type, name)  \
  RL_DECLARE_ISA_TABLE_OF(v2, Type, name) \
  RL_DECLARE_ISA_TABLE_OF(v3, Type, name) \
  RL_DECLARE_ISA_TABLE_OF(v4, Type, name)
#else
#define RL_DECLARE_ISA_TABLE(Type, name) RL_DECLARE_ISA_TABLE_OF(neon, Type, name)
#endif
#if defined(RL_ONE_ISA)
#define RL_ISA_TABLE(table) (RL_ONE_ISA::table)
#elif defined(__x86_64__)
#define RL_ISA_TABLE(table)                                                      \
  (::rushlight::cpu::isa_level() == ::rushlight::cpu::IsaLevel::v4   ? v4::table \
   : ::rushlight::cpu::isa_level() == ::rushlight::cpu::IsaLevel::v3 ? v3::table \
                                                                     : v2::table)
#else
#define RL_ISA_TABLE(table) (neon::table)
#endif

}  // namespace rushlight::cpu
