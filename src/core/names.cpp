// Names of kinds of devices, layouts and memory formats, as libtorch writes them.
#include <cctype>
#include <ostream>

#include <rushlight/print.h>

#include "core/sparse.h"

namespace rushlight {

std::string DeviceTypeName(DeviceType type, bool lower_case) {
  std::string out = Device(type).str();
  for (char& c : out) {
    c = lower_case ? c : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, Layout layout) { return out << layout_text(layout); }

std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return out << names[static_cast<int>(format)];
}

}  // namespace rushlight
