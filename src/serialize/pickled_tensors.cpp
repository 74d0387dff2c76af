// Descriptions of tensors in pickles.
#include "serialize/pickled_tensors.h"

#include <rushlight/mode.h>

#include "core/op_support.h"

namespace rushlight::serialize {

using Kind = PickleNode::Kind;

// ---- from a pickle ----

namespace {
void expect(bool good, const char* what) {
  if (!good) {
    throw UnpicklingError(str("a tensor in this file has a wrong ", what));
  }
}
}  // namespace

const PickleNode& PickledTensors::item(const PickleNode& of, uint32_t i) const {
  const bool has_items = of.kind == Kind::Tuple || of.kind == Kind::Call || of.kind == Kind::New ||
                         of.kind == Kind::Persistent;
  if (!has_items || i >= of.value.items.count) {
    throw UnpicklingError("a tensor in this file lacks a part of its description");
  }
  return node(pickle_.items[of.value.items.first + i]);
}

std::string_view PickledTensors::function_name(const PickleNode& call) const {
  const PickleNode& function = item(call, 0);
  if (function.kind != Kind::Global) {
    throw UnpicklingError("this file calls what is no global name");
  }
  return function.bytes();
}

Tensor PickledTensors::tensor(const PickleNode& call) {
  const std::string_view function = function_name(call);
  const PickleNode& arguments = item(call, 1);
  if (function == "torch._utils\n_rebuild_parameter") {
    const PickleNode& data = item(arguments, 0);
    expect(data.kind == Kind::Call &&
               function_name(data).starts_with("torch._utils\n_rebuild_tensor_v"),
           "parameter");
    Tensor t = tensor(data);
    t.requires_grad_(item(arguments, 1).kind == Kind::Bool && item(arguments, 1).value.i != 0);
    return t;
  }
  const bool untyped = function == "torch._utils\n_rebuild_tensor_v3";
  if (!untyped && function != "torch._utils\n_rebuild_tensor_v2") {
    throw UnpicklingError(
        str("tensors made by ", function.substr(function.find('\n') + 1), " cannot be loaded"));
  }
  const PickleNode& offset = item(arguments, 1);
  const PickleNode& requires_grad = item(arguments, 4);
  expect(offset.kind == Kind::Int, "storage offset");
  expect(requires_grad.kind == Kind::Bool, "requires_grad");
  ScalarType dtype = ScalarType::Undefined;
  const Storage s = storage(item(arguments, 0), dtype, false);
  if (untyped) {
    dtype = named_dtype(item(arguments, 6));
  }
  Tensor t = tensor_on(s, dtype, offset.value.i, integers(item(arguments, 2)),
                       integers(item(arguments, 3)));
  if (requires_grad.value.i != 0) {
    t.requires_grad_();
  }
  return t;
}

Tensor PickledTensors::codes(const PickleNode& call) {
  const PickleNode& arguments = item(call, 1);
  const PickleNode& offset = item(arguments, 1);
  expect(offset.kind == Kind::Int, "storage offset");
  ScalarType dtype = ScalarType::Undefined;
  const Storage s = storage(item(arguments, 0), dtype, true);
  return tensor_on(s, dtype, offset.value.i, integers(item(arguments, 2)),
                   integers(item(arguments, 3)));
}

namespace {
std::optional<ScalarType> dtype_of_codes(std::string_view storage_class) {
  constexpr std::pair<std::string_view, ScalarType> classes[] = {
      {"QInt8Storage", kChar}, {"QUInt8Storage", kByte}, {"QInt32Storage", kInt}};
  for (const auto& [name, dtype] : classes) {
    if (name == storage_class) {
      return dtype;
    }
  }
  return {};
}
}  // namespace

ScalarType PickledTensors::named_dtype(const PickleNode& name) const {
  expect(name.kind == Kind::Global && name.bytes().starts_with("torch\n"), "dtype");
  for (const ScalarType t : all_dtypes) {
    if (name.bytes().substr(6) == dtype_info(t).name && t != kBool) {
      return t;
    }
  }
  throw UnpicklingError("tensors of this dtype cannot be loaded");
}

Storage PickledTensors::storage(const PickleNode& id, ScalarType& dtype, bool of_codes) {
  expect(id.kind == Kind::Persistent && item(id, 0).kind == Kind::Tuple, "storage");
  const PickleNode& parts = item(id, 0);
  const PickleNode& type = item(parts, 1);
  const PickleNode& key = item(parts, 2);
  const PickleNode& numel = item(parts, 4);
  expect(item(parts, 0).kind == Kind::String && item(parts, 0).bytes() == "storage", "storage");
  expect(type.kind == Kind::Global && key.kind == Kind::String && numel.kind == Kind::Int,
         "storage");
  const std::string_view name = type.bytes().substr(type.bytes().find('\n') + 1);
  const std::optional<ScalarType> found =
      of_codes ? dtype_of_codes(name) : dtype_of_storage_class(name);
  expect(found.has_value(), "storage type");
  dtype = *found;
  return reader_.storage(std::string(key.bytes()), dtype, numel.value.i, folder_);
}

DimVector PickledTensors::integers(const PickleNode& tuple) const {
  expect(tuple.kind == Kind::Tuple, "size");
  DimVector list;
  for (uint32_t i = 0; i < tuple.value.items.count; i++) {
    expect(item(tuple, i).kind == Kind::Int, "size");
    list.push_back(item(tuple, i).value.i);
  }
  return list;
}

// ---- to a pickle ----

void TensorPickler::write(const Tensor& t) {
  RL_CHECK(t.defined(), "an undefined tensor cannot be saved");
  if (is_special(t)) {
    t.impl()->special()->check_has_memory();
  }
  RL_CHECK(t.is_cpu(), "tensors on ", t.device().str(),
           " cannot be saved from C++: move them to the cpu first");
  const bool typed = has_storage_class(t.dtype());
  p_.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  p_.mark();
  storage(t);
  p_.integer(t.storage_offset());
  integers(t.sizes());
  integers(t.strides());
  p_.boolean(t.requires_grad());
  p_.global("collections", "OrderedDict");  // hooks, which are never saved
  p_.empty_tuple();
  p_.reduce();
  if (!typed) {
    p_.global("torch", dtype_info(t.dtype()).name);
  }
  p_.tuple();
  p_.reduce();
}

void TensorPickler::integers(IntArrayRef list) {
  p_.mark();
  for (const int64_t n : list) {
    p_.integer(n);
  }
  p_.tuple();
}
void TensorPickler::storage(const Tensor& t) {
  const Storage& s = t.storage();
  const auto [place, fresh] = keys_.emplace(s.get(), std::make_pair(storages_.size(), t.dtype()));
  RL_CHECK(place->second.second == t.dtype(),
           "save: two tensors view the same data as different types, ", place->second.second,
           " and ", t.dtype(), ", and the format has one for each storage. Clone one of them");
  if (fresh) {
    storages_.push_back(s);
  }
  p_.mark();
  p_.string("storage");
  p_.global("torch", storage_class(t.dtype()));
  p_.string(std::to_string(place->second.first));
  p_.string("cpu");
  const int64_t unit = has_storage_class(t.dtype()) ? t.element_size() : 1;
  p_.integer(static_cast<int64_t>(s->nbytes()) / unit);
  p_.tuple();
  p_.persistent();
}

}  // namespace rushlight::serialize
