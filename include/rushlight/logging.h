// LOG, CHECK and their like, by libtorch's names. Where a program has those of another library
// already (glog), they stay.
#pragma once

#include <ostream>
#include <sstream>
#include <string>

#include <rushlight/error.h>

namespace rushlight {

enum LogSeverity : int { log_INFO, log_WARNING, log_ERROR, log_FATAL };
// Whether messages of a severity are written: warnings and worse, unless TORCH_CPP_LOG_LEVEL
// (INFO, WARNING, ERROR, FATAL, or a number, below zero for VLOG) says otherwise.
RL_API bool is_logged(int severity);

// A message in the making, which is written to stderr when it ends; a fatal one is thrown as well.
class RL_API MessageLogger {
 public:
  MessageLogger(const char* file, int line, int severity);
  ~MessageLogger() noexcept(false);
  MessageLogger(const MessageLogger&) = delete;
  MessageLogger& operator=(const MessageLogger&) = delete;
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
  int severity_;
};
// Makes an expression of either branch of `?:` void.
struct LogVoidify {
  void operator&(std::ostream&) const {}
};
template <class T>
T check_not_null(const char* file, int line, const char* what, T pointer) {
  if (pointer == nullptr) {
    MessageLogger(file, line, log_FATAL).stream()
        << "Check failed: '" << what << "' must be non NULL. ";
  }
  return pointer;
}

}  // namespace rushlight

#define RL_LOG_IF(severity, condition)       \
  !(condition) ? (void)0                     \
               : ::rushlight::LogVoidify() & \
                     ::rushlight::MessageLogger(__FILE__, __LINE__, severity).stream()
#define RL_CHECK_LOGGED(condition) \
  RL_LOG_IF(::rushlight::log_FATAL, !(condition)) << "Check failed: " #condition " "
#ifdef NDEBUG
#define RL_DEBUG_ONLY false
#else
#define RL_DEBUG_ONLY true
#endif

#ifndef LOG
#define LOG(severity) \
  RL_LOG_IF(::rushlight::log_##severity, ::rushlight::is_logged(::rushlight::log_##severity))
#endif
#ifndef LOG_IF
#define LOG_IF(severity, condition)      \
  RL_LOG_IF(::rushlight::log_##severity, \
            ::rushlight::is_logged(::rushlight::log_##severity) && (condition))
#endif
#ifndef DLOG
#define DLOG(severity)                   \
  RL_LOG_IF(::rushlight::log_##severity, \
            RL_DEBUG_ONLY&& ::rushlight::is_logged(::rushlight::log_##severity))
#endif
#ifndef VLOG
#define VLOG(level) RL_LOG_IF(::rushlight::log_INFO, ::rushlight::is_logged(-(level)))
#endif
#ifndef VLOG_IS_ON
#define VLOG_IS_ON(level) (::rushlight::is_logged(-(level)))
#endif
#ifndef VLOG_IF
#define VLOG_IF(level, condition) \
  RL_LOG_IF(::rushlight::log_INFO, ::rushlight::is_logged(-(level)) && (condition))
#endif
#ifndef CHECK
#define CHECK(condition) RL_CHECK_LOGGED(condition)
#endif
#ifndef DCHECK
#define DCHECK(condition)                                          \
  RL_LOG_IF(::rushlight::log_FATAL, RL_DEBUG_ONLY && !(condition)) \
      << "Check failed: " #condition " "
#endif

// Both sides are shown, and what follows: TORCH_CHECK_EQ(a, b) << "because".
#define TORCH_CHECK_OP(a, b, op)                 \
  RL_LOG_IF(::rushlight::log_FATAL, !((a)op(b))) \
      << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, b, <=)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, b, <)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, b, >=)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, b, >)
#define TORCH_CHECK_NOTNULL(p) ::rushlight::check_not_null(__FILE__, __LINE__, #p, p)
#define TORCH_DCHECK_OP(a, b, op)                                 \
  RL_LOG_IF(::rushlight::log_FATAL, RL_DEBUG_ONLY && !((a)op(b))) \
      << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "
#define TORCH_DCHECK_EQ(a, b) TORCH_DCHECK_OP(a, b, ==)
#define TORCH_DCHECK_NE(a, b) TORCH_DCHECK_OP(a, b, !=)
#define TORCH_DCHECK_LE(a, b) TORCH_DCHECK_OP(a, b, <=)
#define TORCH_DCHECK_LT(a, b) TORCH_DCHECK_OP(a, b, <)
#define TORCH_DCHECK_GE(a, b) TORCH_DCHECK_OP(a, b, >=)
#define TORCH_DCHECK_GT(a, b) TORCH_DCHECK_OP(a, b, >)

// Errors that say where in the program they arose.
#define RL_ENFORCE(condition, text, ...)                                              \
  RL_CHECK(condition, "[enforce fail at ", __FILE__, ':', __LINE__, "] ", text, ". ", \
           ::rushlight::str(__VA_ARGS__))
#define CAFFE_ENFORCE(condition, ...) RL_ENFORCE(condition, #condition __VA_OPT__(, ) __VA_ARGS__)
#define RL_ENFORCE_OP(a, op, b, ...) \
  RL_ENFORCE((a)op(b),               \
             ::rushlight::str(#a " " #op " " #b ". ", a, " vs ", b) __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_EQ(a, b, ...) RL_ENFORCE_OP(a, ==, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_NE(a, b, ...) RL_ENFORCE_OP(a, !=, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_LE(a, b, ...) RL_ENFORCE_OP(a, <=, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_LT(a, b, ...) RL_ENFORCE_OP(a, <, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_GE(a, b, ...) RL_ENFORCE_OP(a, >=, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_ENFORCE_GT(a, b, ...) RL_ENFORCE_OP(a, >, b __VA_OPT__(, ) __VA_ARGS__)
#define CAFFE_THROW(...) RL_ENFORCE(false, "" __VA_OPT__(, ) __VA_ARGS__)
