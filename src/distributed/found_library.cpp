#include "distributed/found_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include <rushlight/error.h>

namespace rushlight::distributed {

std::string FoundLibrary::find(const std::vector<std::string>& folders) {
  const std::lock_guard<std::mutex> lock(mutex_);
  folders_ = folders;
  search();
  return path_;
}

void* FoundLibrary::handle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  search();
  return handle_;
}

bool FoundLibrary::open(const std::string& file, int flags) {
  handle_ = dlopen(file.c_str(), flags_ | flags);
  if (handle_ != nullptr) {
    path_ = file;
  }
  return handle_ != nullptr;
}

void FoundLibrary::search() {
  if (handle_ != nullptr) {
    return;
  }
  if (const char* const given = getenv(variable_)) {
    open(given, 0);
    return;
  }
  const std::vector<std::string> names = names_();
  for (const std::string& name : names) {
    if (open(name, RTLD_NOLOAD)) {
      return;
    }
  }
  for (const std::string& name : names) {
    for (const std::string& folder : folders_) {
      if (open(str(folder, "/", name), 0)) {
        return;
      }
    }
    if (open(name, 0)) {
      return;
    }
  }
}

}  // namespace rushlight::distributed
