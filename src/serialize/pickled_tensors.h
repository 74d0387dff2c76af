// The tensors that pickles in .pt containers describe: calls of PyTorch's functions that rebuild
// them from storages.
#pragma once

#include <unordered_map>

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
  std::string_view function_name(const PickleNode& call) const;
  // What a call of "torch._utils\n_rebuild_…" makes.
  Tensor tensor(const PickleNode& call);
  // The codes of what a call of "torch._utils\n_rebuild_qtensor" makes, as integers.
  Tensor codes(const PickleNode& call);

 private:
  ScalarType named_dtype(const PickleNode& name) const;
  Storage storage(const PickleNode& id, ScalarType& dtype, bool of_codes);
  DimVector integers(const PickleNode& tuple) const;

  CheckpointReader& reader_;
  const Pickle& pickle_;
  std::string folder_;
};

// Writes descriptions of tensors; those that share memory do so in the file.
class TensorPickler {
 public:
  explicit TensorPickler(PickleWriter& pickle) : p_(pickle) {}
  // RuntimeError of tensors that are on no cpu, or undefined.
  void write(const Tensor& t);
  const std::vector<Storage>& storages() const { return storages_; }  // storage i has the key "i"

 private:
  void integers(IntArrayRef list);
  void storage(const Tensor& t);

  PickleWriter& p_;
  std::vector<Storage> storages_;
  std::unordered_map<const StorageImpl*, std::pair<size_t, ScalarType>> keys_;
};

}  // namespace rushlight::serialize
