// Messages of LOG and CHECK: when and where they arose, and which are written.
#include <rushlight/logging.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace rushlight {

namespace {

int lowest_logged() {
  const char* const text = std::getenv("TORCH_CPP_LOG_LEVEL");
  if (text == nullptr) {
    return log_WARNING;
  }
  const std::string_view names[] = {"INFO", "WARNING", "ERROR", "FATAL"};
  for (int i = 0; i < 4; i++) {
    if (names[i] == text) {
      return i;
    }
  }
  char* end = nullptr;
  const long level = std::strtol(text, &end, 10);
  return end != text && *end == '\0' ? static_cast<int>(level) : log_WARNING;
}

// "1201 12:10:03.049514190": the month and the day, then the time.
std::string now() {
  const auto time = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char day[32];
  char out[64];
  std::strftime(day, sizeof day, "%m%d %H:%M:%S", &parts);
  std::snprintf(out, sizeof out, "%s.%09lld", day, static_cast<long long>(ns.count() % 1000000000));
  return out;
}

}  // namespace

bool is_logged(int severity) {
  static const int lowest = lowest_logged();
  return severity >= lowest || severity >= log_FATAL;
}

MessageLogger::MessageLogger(const char* file, int line, int severity) : severity_(severity) {
  const std::string_view path = file;
  text_ << '[' << "IWEF"[severity] << now() << ' ' << path.substr(path.rfind('/') + 1) << ':'
        << line << "] ";
}
MessageLogger::~MessageLogger() noexcept(false) {
  const std::string text = text_.str();
  std::fprintf(stderr, "%s\n", text.c_str());
  if (severity_ == log_FATAL) {
    throw Error(text);
  }
}

}  // namespace rushlight
