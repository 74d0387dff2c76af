// What DLPack's tensors and ours have in common, for C++ and for Python's capsules.
#pragma once

#include <rushlight/dlpack.h>

#include <memory>
#include <type_traits>

#include "core/op_support.h"

namespace rushlight::dlpack {

RL_API DLDataType type_of(ScalarType t);
// A view of the tensor's memory as DLPack has it, in which an M that is to be handed out lies.
template <class M>
struct ExportedTensor {
  M managed = {};
  Storage storage;  // the memory as it is now, whatever becomes of the tensor
  DimVector sizes;
  DimVector strides;
};
template <class M>
M* export_as(const Tensor& t) {
  auto exported = std::make_unique<ExportedTensor<M>>();
  exported->storage = t.storage();
  exported->sizes = DimVector(t.sizes());
  exported->strides = DimVector(t.strides());
  exported->storage->fix_size();  // the address stays while others hold it
  M& m = exported->managed;
  m.dl_tensor = {t.data_ptr(),
                 {kDLCPU, 0},
                 static_cast<int32_t>(t.dim()),
                 type_of(t.dtype()),
                 exported->sizes.data(),
                 exported->strides.data(),
                 0};
  m.manager_ctx = exported.get();
  m.deleter = [](M* managed) { delete static_cast<ExportedTensor<M>*>(managed->manager_ctx); };
  return &exported.release()->managed;
}

}  // namespace rushlight::dlpack
