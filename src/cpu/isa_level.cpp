// Choice of the instruction set: cpu/isa_level.h.
#include "cpu/isa_level.h"

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

IsaLevel choose() {
  const IsaLevel best = of_hardware();
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (wanted == nullptr || *wanted == '\0') {
    return best;
  }
  for (const IsaLevel level : {IsaLevel::v2, IsaLevel::v3, IsaLevel::v4}) {
    const char name[] = {'v', static_cast<char>('0' + static_cast<int>(level)), '\0'};
    if (std::string_view(wanted) == name) {
      if (level > best) {
        warn(str("RUSHLIGHT_CPU=", wanted, ": this processor has only x86-64-v",
                 static_cast<int>(best)));
        return best;
      }
      return level;
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

}  // namespace rushlight::cpu
