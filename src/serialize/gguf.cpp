#include "serialize/gguf.h"

#include <rushlight/gguf.h>

#include "serialize/checkpoint.h"

namespace rushlight {
namespace serialize {
namespace {

void forget_source(void*, size_t, void* context) {
  delete static_cast<std::shared_ptr<Source>*>(context);
}

}  // namespace

GgufReader::GgufReader(std::shared_ptr<Source> source, bool in_place)
    : source_(std::move(source)), header_(read_gguf_header(*source_)) {
  if (in_place && source_->mapped() != nullptr) {
    whole_ = StorageImpl::borrow(const_cast<char*>(source_->mapped()), source_->size(),
                                 Device(kCPU), forget_source, new std::shared_ptr<Source>(source_));
  }
}

Tensor GgufReader::copied(uint64_t offset, ScalarType dtype, IntArrayRef shape,
                          uint64_t bytes) const {
  const Storage storage = StorageImpl::allocate(bytes, Device(kCPU));
  source_->read(offset, storage->data(), bytes);
  return tensor_on(storage, dtype, 0, shape, contiguous_strides(shape));
}

Tensor GgufReader::tensor(const GgufEntry& entry) const {
  DimVector shape = entry.shape;
  ScalarType dtype = entry.dtype;
  if (entry.blocks != nullptr) {
    dtype = kUInt8;
    shape.back() = shape.back() / entry.blocks->numbers * entry.blocks->bytes();
  }
  const auto unit = static_cast<uint64_t>(itemsize(dtype));
  if (whole_ && entry.begin % unit == 0) {
    return tensor_on(whole_, dtype, static_cast<int64_t>(entry.begin / unit), shape,
                     contiguous_strides(shape));
  }
  return copied(entry.begin, dtype, shape, entry.bytes);
}

Tensor GgufReader::array(const GgufValue& value) const {
  const ScalarType dtype = gguf_dtype(value.type);
  const DimVector shape = {static_cast<int64_t>(value.count)};
  return copied(value.offset, dtype, shape, value.count * static_cast<uint64_t>(itemsize(dtype)));
}

}  // namespace serialize

namespace gguf {
namespace {

using namespace serialize;

Value number(GgufType type, uint64_t bits) {
  switch (type) {
    case GgufType::Bool:
      return bits != 0;
    case GgufType::Int8:
      return int64_t{gguf_bits_as<int8_t>(bits)};
    case GgufType::Int16:
      return int64_t{gguf_bits_as<int16_t>(bits)};
    case GgufType::Int32:
      return int64_t{gguf_bits_as<int32_t>(bits)};
    case GgufType::Int64:
      return gguf_bits_as<int64_t>(bits);
    case GgufType::Float32:
      return double{gguf_bits_as<float>(bits)};
    case GgufType::Float64:
      return gguf_bits_as<double>(bits);
    case GgufType::UInt64:
      return bits;
    default:
      return static_cast<int64_t>(bits);
  }
}

Value value_of(const GgufReader& reader, const GgufValue& v) {
  if (v.type == GgufType::String) {
    return v.is_array ? Value(v.texts) : Value(v.texts[0]);
  }
  return v.is_array ? Value(reader.array(v)) : number(v.type, v.bits);
}

}  // namespace

File load(const std::string& path) {
  const GgufReader reader(open_source(path, true), true);
  File file;
  for (const auto& [key, value] : reader.header().metadata) {
    file.metadata.emplace(key, value_of(reader, value));
  }
  for (const GgufEntry& e : reader.header().entries) {
    file.tensors.emplace(e.name,
                         Stored{reader.tensor(e),
                                e.blocks == nullptr ? std::string() : std::string(e.blocks->name)});
  }
  return file;
}

}  // namespace gguf
}  // namespace rushlight
