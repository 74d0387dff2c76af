// Values as the stable ABI passes them (stable/abi.h), by the types of schemas.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rushlight/stable/abi.h>
#include <rushlight/tensor.h>
#include <rushlight/type.h>
#include <rushlight/value.h>

struct StableListOpaque {
  std::vector<StableIValue> items;
};
struct StringOpaque {
  std::string text;
};

namespace rushlight::stable {

// What a failed call of this thread has said last.
const std::string& last_error();
void keep_error(const char* text) noexcept;

// Runs a function of C's: 0, or 1 where it throws, and the text is kept.
template <class F>
AOTITorchError run(const F& f) noexcept {
  try {
    f();
    return AOTI_TORCH_SUCCESS;
  } catch (const std::exception& error) {
    keep_error(error.what());
  } catch (...) {
    keep_error("an exception that is no std::exception");
  }
  return AOTI_TORCH_FAILURE;
}

inline Tensor& tensor_of(AtenTensorHandle handle) { return *reinterpret_cast<Tensor*>(handle); }
inline AtenTensorHandle new_handle(Tensor t) {
  return reinterpret_cast<AtenTensorHandle>(new Tensor(std::move(t)));
}

// The numbers are PyTorch's; RuntimeError of one that stands for nothing here.
ScalarType dtype_of(int32_t number);
Layout layout_of(int32_t number);
MemoryFormat memory_format_of(int32_t number);
Device device_of(int32_t type, int32_t index);
int32_t number_of(Layout layout);
int32_t number_of(DeviceType type);

// Takes what the value owns, also where it throws; RuntimeError where the ABI has no form for the
// type.
Value take(StableIValue value, const Type& type);
StableIValue give(const Value& value, const Type& type);

}  // namespace rushlight::stable
