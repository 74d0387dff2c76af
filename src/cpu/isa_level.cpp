// Choice of the instruction set: cpu/isa_level.h.
#include "cpu/isa_level.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <rushlight/error.h>

namespace rushlight::cpu {
namespace {

IsaLevel of_hardware() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) {
    return IsaLevel::v4;
  }
  return __builtin_cpu_supports("x86-64-v3") ? IsaLevel::v3 : IsaLevel::v2;
}

#ifdef RL_ONE_ISA
constexpr IsaLevel lowest = IsaLevel::RL_ONE_ISA;
constexpr IsaLevel highest = IsaLevel::RL_ONE_ISA;
#else
constexpr IsaLevel lowest = IsaLevel::v2;
constexpr IsaLevel highest = IsaLevel::v4;
#endif

IsaLevel choose() {
  const IsaLevel best = std::min(of_hardware(), highest);
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (wanted == nullptr || *wanted == '\0') {
    return best;
  }
  for (const IsaLevel level : {IsaLevel::v2, IsaLevel::v3, IsaLevel::v4}) {
    const char name[] = {'v', static_cast<char>('0' + static_cast<int>(level)), '\0'};
    if (std::string_view(wanted) == name) {
      if (level > best) {
        warn(str("RUSHLIGHT_CPU=", wanted,
                 ": the best that this processor and this library have is v",
                 static_cast<int>(best)));
        return best;
      }
      if (level < lowest) {
        warn(str("RUSHLIGHT_CPU=", wanted, ": this library has kernels for ", compiled_levels(),
                 " alone (RUSHLIGHT_ISA=all builds them all)"));
      }
      return std::max(level, lowest);
    }
  }
  warn(str("RUSHLIGHT_CPU=", wanted, " is none of v2, v3, v4 and is ignored"));
  return best;
}

}  // namespace

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

#define RL_TEXT_OF(x) #x
#define RL_TEXT(x) RL_TEXT_OF(x)
const char* compiled_levels() {
#ifdef RL_ONE_ISA
  return RL_TEXT(RL_ONE_ISA);
#else
  return "v2, v3, v4";
#endif
}

bool is_supported_here() { return of_hardware() >= lowest; }

}  // namespace rushlight::cpu
