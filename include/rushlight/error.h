// Errors for people. Each type here becomes the Python exception of the same meaning. RL_CHECK*
// throw when their condition is false; the message is the concatenation of the remaining arguments,
// built only on failure. `str(...)` is that concatenation; a type joins in by giving `void
// append(std::string&, const T&)`.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include <rushlight/export.h>

namespace rushlight {

class RL_API Error : public std::exception {  // RuntimeError
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& msg() const noexcept { return message_; }
  // What libtorch calls the message without its backtrace.
  const char* what_without_backtrace() const noexcept { return message_.c_str(); }

 private:
  std::string message_;
};

#define RL_ERROR_TYPE(Name)          \
  class RL_API Name : public Error { \
   public:                           \
    using Error::Error;              \
    ~Name() override;                \
  }
RL_ERROR_TYPE(IndexError);
RL_ERROR_TYPE(ValueError);
RL_ERROR_TYPE(TypeError);
RL_ERROR_TYPE(NotImplementedError);
RL_ERROR_TYPE(AssertionError);  // a device that this build lacks
RL_ERROR_TYPE(OutOfMemoryError);
RL_ERROR_TYPE(LinAlgError);
RL_ERROR_TYPE(UnpicklingError);
#undef RL_ERROR_TYPE

// Throws Error. For src/cpu/isa, where the templates of RL_CHECK would leave weak symbols of that
// instruction set.
[[noreturn]] RL_API void raise_error(const char* message);

// Warnings go to the handler that Python installs (warnings.warn), else to stderr.
RL_API void warn(const std::string& message);
RL_API void warn_once(bool& done, const std::string& message);
RL_API void set_warn_always(bool always);  // repeat what warn_once says
RL_API bool is_warn_always();
using WarningHandler = void (*)(const std::string& message);
RL_API void set_warning_handler(WarningHandler handler);

RL_API void append(std::string& out, long long value);
RL_API void append(std::string& out, unsigned long long value);
RL_API void append(std::string& out, double value);  // as Python prints it
inline void append(std::string& out, std::string_view value) { out += value; }
inline void append(std::string& out, const char* value) { out += value; }
inline void append(std::string& out, const std::string& value) { out += value; }
inline void append(std::string& out, char value) { out += value; }
inline void append(std::string& out, bool value) { out += value ? "True" : "False"; }
inline void append(std::string& out, float value) { append(out, static_cast<double>(value)); }
template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                                        !std::is_same_v<T, char>,
                                    int> = 0>
void append(std::string& out, T value) {
  if constexpr (std::is_signed_v<T>) {
    append(out, static_cast<long long>(value));
  } else {
    append(out, static_cast<unsigned long long>(value));
  }
}

// Writes what has no `append` with <<, by <rushlight/print.h>.
template <class T>
struct Streamed;
namespace detail {
template <class T, class = void>
inline constexpr bool appends = false;
template <class T>
inline constexpr bool appends<
    T, std::void_t<decltype(append(std::declval<std::string&>(), std::declval<const T&>()))>> =
    true;
template <class T>
void append_any(std::string& out, const T& part) {
  if constexpr (appends<T>) {
    append(out, part);
  } else {
    out += Streamed<T>::text(part);
  }
}
}  // namespace detail
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (detail::append_any(out, parts), ...);
  return out;
}

}  // namespace rushlight

#define RL_CHECK_AS(Type, condition, ...)                     \
  do {                                                        \
    if (RL_UNLIKELY(!(condition))) {                          \
      throw ::rushlight::Type(::rushlight::str(__VA_ARGS__)); \
    }                                                         \
  } while (false)
#define RL_CHECK(condition, ...) RL_CHECK_AS(Error, condition, __VA_ARGS__)
#define RL_CHECK_INDEX(condition, ...) RL_CHECK_AS(IndexError, condition, __VA_ARGS__)
#define RL_CHECK_VALUE(condition, ...) RL_CHECK_AS(ValueError, condition, __VA_ARGS__)
#define RL_CHECK_TYPE(condition, ...) RL_CHECK_AS(TypeError, condition, __VA_ARGS__)
#define RL_CHECK_NOT_IMPLEMENTED(condition, ...) \
  RL_CHECK_AS(NotImplementedError, condition, __VA_ARGS__)
