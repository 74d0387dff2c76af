// Choice of the instruction set: cpu/isa_level.h.
#include "cpu/isa_level.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <rushlight/error.h>

namespace rushlight::cpu {
namespace {

#if defined(__x86_64__)
IsaLevel of_hardware() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) {
    return IsaLevel::v4;
  }
  return __builtin_cpu_supports("x86-64-v3") ? IsaLevel::v3 : IsaLevel::v2;
}
#else
IsaLevel of_hardware() {
  constexpr unsigned long needed = HWCAP_ATOMICS | HWCAP_ASIMDHP | HWCAP_ASIMDDP;
  return (getauxval(AT_HWCAP) & needed) == needed ? IsaLevel::neon : IsaLevel::none;
}
#endif

#ifdef RL_ONE_ISA
constexpr IsaLevel levels[] = {IsaLevel::RL_ONE_ISA};
#else
#define RL_LEVEL(level) IsaLevel::level,
constexpr IsaLevel levels[] = {RL_ISA_LEVELS(RL_LEVEL)};
#endif
constexpr IsaLevel lowest = levels[0];
constexpr IsaLevel highest = levels[std::size(levels) - 1];

// What RUSHLIGHT_CPU may ask for.
#define RL_NAMED_LEVEL(level) {#level, IsaLevel::level},
constexpr struct {
  const char* name;
  IsaLevel level;
} known[] = {RL_ISA_LEVELS(RL_NAMED_LEVEL)};

std::string known_levels() {
  std::string names;
  for (const auto& one : known) {
    names += str(names.empty() ? "" : ", ", one.name);
  }
  return names;
}

IsaLevel choose() {
  const IsaLevel best = std::min(of_hardware(), highest);
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (wanted == nullptr || *wanted == '\0') {
    return best;
  }
  for (const auto& [name, level] : known) {
    if (std::string_view(wanted) == name) {
      if (level > best) {
        warn(str("RUSHLIGHT_CPU=", wanted,
                 ": the best that this processor and this library have is ", name_of(best)));
        return best;
      }
      if (level < lowest) {
        warn(str("RUSHLIGHT_CPU=", wanted, ": this library has kernels for ", compiled_levels(),
                 " alone (RUSHLIGHT_ISA=all builds them all)"));
      }
      return std::max(level, lowest);
    }
  }
  warn(str("RUSHLIGHT_CPU=", wanted, " is none of ", known_levels(), " and is ignored"));
  return best;
}

}  // namespace

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

const char* name_of(IsaLevel level) {
  for (const auto& one : known) {
    if (one.level == level) {
      return one.name;
    }
  }
  return "none";
}

const char* compiled_levels() {
  static const std::string& names =  // never destroyed
      *new std::string(lowest == highest ? name_of(lowest) : known_levels());
  return names.c_str();
}

bool is_supported_here() { return of_hardware() >= lowest; }

}  // namespace rushlight::cpu
