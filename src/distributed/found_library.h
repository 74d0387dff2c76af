// A library that an engine finds at run time.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <rushlight/export.h>

namespace rushlight::distributed {

// The file that an environment variable names or, by the names of the library, best first: what
// the process has loaded already, what lies in the folders of the last `find`, what the system has.
class RL_API FoundLibrary {
 public:
  using Names = std::vector<std::string> (*)();
  FoundLibrary(const char* variable, Names names, int flags)
      : variable_(variable), names_(names), flags_(flags) {}
  // Where it lies; empty where there is none.
  std::string find(const std::vector<std::string>& folders);
  // Null where there is none.
  void* handle();

 private:
  bool open(const std::string& file, int flags);
  void search();

  const char* variable_;
  Names names_;
  int flags_;
  std::mutex mutex_;
  std::vector<std::string> folders_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace rushlight::distributed
