#include "core/dlpack.h"

namespace rushlight {

namespace dlpack {

DLDataType type_of(ScalarType t) {
  return {dtype_info(t).dlpack, static_cast<uint8_t>(8 * itemsize(t)), 1};
}

Tensor import_from(const DLTensor& dl, StorageImpl::Deleter deleter, void* context) {
  RL_CHECK(dl.device.device_type == kDLCPU || dl.device.device_type == kDLCUDAHost,
           "from_dlpack: the tensor lies on a device of DLPack's type ",
           static_cast<int>(dl.device.device_type), ", which this build cannot read");
  RL_CHECK(dl.ndim >= 0 && dl.ndim <= 64 && (dl.ndim == 0 || dl.shape != nullptr),
           "from_dlpack: a tensor with ", dl.ndim, " dimensions");
  const ScalarType t = toScalarType(dl.dtype);
  const DimVector sizes(IntArrayRef(dl.shape, static_cast<size_t>(dl.ndim)));
  auto impl = TensorImpl::make(StorageImpl::borrow(nullptr, 0, kCPU, nullptr, nullptr), t, kCPU);
  impl->set_sizes_contiguous(sizes);
  if (dl.strides != nullptr && dl.ndim != 0) {
    const DimVector strides(IntArrayRef(dl.strides, static_cast<size_t>(dl.ndim)));
    for (const int64_t s : strides) {
      RL_CHECK_AS(ValueError, s >= 0,
                  "from_dlpack: tensors with negative strides are not supported; copy the array "
                  "first");
    }
    impl->set_sizes_and_strides(sizes, strides);
  }
  size_t nbytes = 0;
  if (impl->numel() != 0) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); d++) {
      last += (sizes[d] - 1) * impl->strides()[d];
    }
    nbytes = static_cast<size_t>(last + 1) * static_cast<size_t>(itemsize(t));
    const auto address = reinterpret_cast<uintptr_t>(dl.data) + dl.byte_offset;
    RL_CHECK(dl.data != nullptr, "from_dlpack: a tensor with elements but without memory");
    RL_CHECK(address % static_cast<uintptr_t>(std::min<int64_t>(itemsize(t), 8)) == 0,
             "from_dlpack: the memory is not aligned for ", t);
  }
  char* const data = nbytes != 0 ? static_cast<char*>(dl.data) + dl.byte_offset : nullptr;
  impl->set_storage(StorageImpl::borrow(data, nbytes, kCPU, deleter, context));
  return Tensor(std::move(impl));
}

}  // namespace dlpack

DLDataType getDLDataType(const Tensor& t) { return dlpack::type_of(t.dtype()); }

ScalarType toScalarType(const DLDataType& dtype) {
  for (const ScalarType t : all_dtypes) {
    const DLDataType ours = dlpack::type_of(t);
    if (ours.code == dtype.code && ours.bits == dtype.bits && dtype.lanes == 1) {
      return t;
    }
  }
  throw Error(str("Unsupported dtype in DLPack tensor: code ", int{dtype.code}, ", ",
                  int{dtype.bits}, " bits, ", dtype.lanes, " lanes"));
}

DLManagedTensor* toDLPack(const Tensor& t) {
  RL_CHECK(t.is_cpu(), "toDLPack: the tensor lies on ", t.device(), "; only those of the CPU do");
  if (t.impl()->special() != nullptr) {
    t.impl()->special()->check_has_memory();
  }
  return dlpack::export_as<DLManagedTensor>(t);
}

Tensor fromDLPack(DLManagedTensor* managed) {
  const auto release = [](void*, size_t, void* context) {
    auto* const it = static_cast<DLManagedTensor*>(context);
    if (it->deleter != nullptr) {
      it->deleter(it);
    }
  };
  return dlpack::import_from(managed->dl_tensor, release, managed);
}

}  // namespace rushlight
