// Values as text in streams, and any value that streams take as text in messages.
#pragma once

#include <optional>
#include <ostream>
#include <sstream>

#include <rushlight/tensor.h>

namespace rushlight {

template <class T>
std::enable_if_t<detail::appends<T> && (std::is_same_v<T, Device> ||
                                        std::is_same_v<T, ScalarType> || std::is_same_v<T, Scalar>),
                 std::ostream&>
operator<<(std::ostream& out, const T& value) {
  return out << str(value);
}
inline std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << Device(type).str();
}
// "CPU", or "cpu".
RL_API std::string DeviceTypeName(DeviceType type, bool lower_case = false);
RL_API std::ostream& operator<<(std::ostream& out, Layout layout);
RL_API std::ostream& operator<<(std::ostream& out, MemoryFormat format);
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << '[';
  for (size_t i = 0; i < list.size(); i++) {
    out << (i == 0 ? "" : ", ") << list[i];
  }
  return out << ']';
}

// A handle as a pointer: its address.
template <class T>
std::ostream& operator<<(std::ostream& out, const Ref<T>& handle) {
  return out << static_cast<const void*>(handle.get());
}

template <class T>
std::ostream& operator<<(std::ostream& out, const std::optional<T>& value) {
  return value ? out << *value : out << "None";
}

template <class T>
struct Streamed {
  static std::string text(const T& value) {
    std::ostringstream out;
    write(out, value);
    return out.str();
  }

 private:
  template <class V>
  static void write(std::ostream& out, const V& value) {
    out << value;
  }
  template <class V>
  static void write(std::ostream& out, const std::vector<V>& list) {
    out << ArrayRef<V>(list);
  }
};

}  // namespace rushlight
