// DLPack in C++: tensors handed to other libraries, and taken from them, without copying.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <rushlight/tensor.h>

// DLPack's binary interface, where a program does not have its header.
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
};
enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};
struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null for contiguous
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
#endif

namespace rushlight {

// Shares the memory of a tensor on the CPU. Who gets it calls its deleter.
RL_API DLManagedTensor* toDLPack(const Tensor& t);
// Takes it over: its deleter runs with the last tensor. RuntimeError where it cannot be read.
RL_API Tensor fromDLPack(DLManagedTensor* managed);
namespace dlpack {
// A tensor on the memory of another library; `deleter` gets `context` when the last one is gone.
// RuntimeError, or ValueError for negative strides: then nothing is taken over.
RL_API Tensor import_from(const DLTensor& dl, StorageImpl::Deleter deleter, void* context);
}  // namespace dlpack
// The same, but `deleter(managed)` runs in the place of its own.
template <class F>
Tensor fromDLPack(DLManagedTensor* managed, F deleter) {
  using Owner = std::pair<DLManagedTensor*, F>;
  const auto release = [](void*, size_t, void* context) {
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
    owner->second(owner->first);
  };
  auto owner = std::make_unique<Owner>(managed, std::move(deleter));
  Tensor out = dlpack::import_from(managed->dl_tensor, release, owner.get());
  (void)owner.release();
  return out;
}
RL_API DLDataType getDLDataType(const Tensor& t);
RL_API ScalarType toScalarType(const DLDataType& dtype);  // RuntimeError where there is none

}  // namespace rushlight
