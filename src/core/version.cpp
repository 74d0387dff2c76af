// The version of the library, as pyproject.toml gives it.
#include <rushlight/version.h>

namespace rushlight {

const char* version() { return RUSHLIGHT_VERSION; }

}  // namespace rushlight
