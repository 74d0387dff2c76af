// The tensors that pickles in .pt containers describe: calls of PyTorch's functions that rebuild
// them from storages.
#pragma once

#include "serialize/checkpoint.h"

namespace rushlight::serialize {

// UnpicklingError where a description is wrong.
class PickledTensors {
 public:
  // Storages are the records `folder`/KEY. Both must outlive it.
  PickledTensors(CheckpointReader& reader, const Pickle& pickle, std::string folder)
      : reader_(reader), pickle_(pickle), folder_(std::move(folder)) {}
  const PickleNode& node(uint32_t id) const { return pickle_.nodes[id]; }
  // The i-th part of a tuple, call or id.
  const PickleNode& item(const PickleNode& of, uint32_t i) const;
  // "module\nname" of what is called.
  std::string_view called(const PickleNode& call) const;
  // What a call of "torch._utils\n_rebuild_…" makes.
  Tensor tensor(const PickleNode& call);

 private:
  ScalarType named_dtype(const PickleNode& name) const;
  Storage storage(const PickleNode& id, ScalarType& dtype);
  DimVector integers(const PickleNode& tuple) const;

  CheckpointReader& reader_;
  const Pickle& pickle_;
  std::string folder_;
};

}  // namespace rushlight::serialize
