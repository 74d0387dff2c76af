#include "distributed/nccl/nccl.h"

#include <dlfcn.h>

#include "distributed/found_library.h"
#include <rushlight/distributed/store.h>

namespace rushlight::distributed::nccl {

namespace {

FoundLibrary& library() {
  static FoundLibrary found(
      "RUSHLIGHT_NCCL_LIBRARY", [] { return std::vector<std::string>{"libnccl.so.2"}; },
      RTLD_NOW | RTLD_LOCAL);
  return found;
}

Api load() {
  void* const nccl = library().handle();
  RL_CHECK(nccl != nullptr,
           "Distributed package doesn't have NCCL built in: libnccl.so.2 was not found (pip "
           "install nvidia-nccl-cu13; or set RUSHLIGHT_NCCL_LIBRARY)");
  Api api{};
  const auto find = [&](auto& function, const char* name) {
    void* const address = dlsym(nccl, name);
    RL_CHECK_AS(BackendError, address != nullptr, "the NCCL library has no ", name,
                ": version 2.14 or later is needed");
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
#define RL_NCCL_FIND(name, parameters) find(api.name, "nccl" #name);
  RL_NCCL_FUNCTIONS(RL_NCCL_FIND)
#undef RL_NCCL_FIND
  find(api.GetErrorString, "ncclGetErrorString");
  find(api.GetLastError, "ncclGetLastError");
  return api;
}

}  // namespace

std::string find(const std::vector<std::string>& folders) { return library().find(folders); }

const Api& api() {
  static const Api loaded = load();
  return loaded;
}

void Api::check(int code) const {
  if (code == success || code == in_progress) {
    return;
  }
  const char* const last = GetLastError(nullptr);
  const std::string more = last == nullptr || *last == 0 ? "" : str(": ", last);
  throw BackendError(str("NCCL error: ", GetErrorString(code), more));
}

Type type_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Char:
      return 0;
    case ScalarType::Byte:
    case ScalarType::Bool:
      return 1;
    case ScalarType::Int:
      return 2;
    case ScalarType::UInt32:
      return 3;
    case ScalarType::Long:
      return 4;
    case ScalarType::UInt64:
      return 5;
    case ScalarType::Half:
    case ScalarType::ComplexHalf:
      return 6;
    case ScalarType::Float:
    case ScalarType::ComplexFloat:
      return 7;
    case ScalarType::Double:
    case ScalarType::ComplexDouble:
      return 8;
    case ScalarType::BFloat16:
      return 9;
    case ScalarType::Float8_e4m3fn:
      return 10;
    case ScalarType::Float8_e5m2:
      return 11;
    default:
      RL_CHECK_VALUE(false, "Unconvertible NCCL type ", dtype, ": NCCL cannot reduce it");
  }
}

}  // namespace rushlight::distributed::nccl
