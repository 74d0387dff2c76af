// Records, storages and tensors of .pt files.
#include "serialize/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "serialize/crc32.h"

namespace rushlight::serialize {
namespace {

void swap_bytes(char* p, size_t n, ScalarType t) {
  const size_t unit = static_cast<size_t>(itemsize(is_complex(t) ? to_real(t) : t));
  for (size_t i = 0; i + unit <= n; i += unit) {
    std::reverse(p + i, p + i + unit);
  }
}

void forget_source(void*, size_t, void* context) {
  delete static_cast<std::shared_ptr<Source>*>(context);
}

}  // namespace

std::string storage_class(ScalarType t) {
  return str(has_storage_class(t) ? enum_name(t) : "Untyped", "Storage");
}

std::optional<ScalarType> dtype_of_storage_class(std::string_view name) {
  for (const ScalarType t : all_dtypes) {
    if (has_storage_class(t) && storage_class(t) == name) {
      return t;
    }
  }
  return name == "UntypedStorage" ? std::optional(kUInt8) : std::nullopt;
}

Tensor tensor_on(const Storage& storage, ScalarType dtype, int64_t offset, IntArrayRef sizes,
                 IntArrayRef strides) {
  RL_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape: ", sizes,
           " and ", strides);
  RL_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  bool empty = false;
  int64_t last = offset;  // the furthest element
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); d++) {
    RL_CHECK(sizes[d] >= 0, "Trying to create tensor with negative dimension ", sizes[d], ": ",
             sizes);
    RL_CHECK(strides[d] >= 0,
             "as_strided: Negative strides are not supported, got strides: ", strides);
    empty |= sizes[d] == 0;
    int64_t extent = 0;
    // The full product, although one stride less is spanned: layouts are computed from it.
    overflow |= __builtin_mul_overflow(strides[d], std::max<int64_t>(sizes[d], 1), &extent);
    overflow |= __builtin_sub_overflow(extent, strides[d], &extent);
    overflow |= __builtin_add_overflow(last, extent, &last);
  }
  int64_t end = empty ? offset : last;
  overflow |= !empty && __builtin_add_overflow(end, 1, &end);
  overflow |= __builtin_mul_overflow(end, itemsize(dtype), &end);
  RL_CHECK(!overflow && static_cast<uint64_t>(end) <= storage->nbytes(), "setStorage: sizes ",
           sizes, ", strides ", strides, ", storage offset ", offset, ", and itemsize ",
           itemsize(dtype), " are out of bounds for storage of size ", storage->nbytes());
  Ref<TensorImpl> impl = TensorImpl::make(storage, dtype, storage->device());
  impl->set_sizes_and_strides(sizes, strides);
  impl->set_storage_offset(offset);
  return Tensor(std::move(impl));
}

void fill(const Storage& storage, const void* data, size_t n) {
  RL_CHECK(storage->device().is_cpu() && storage->nbytes() == n, "a storage of ", storage->nbytes(),
           " bytes cannot be filled with ", n);
  if (n != 0) {
    std::memcpy(storage->data(), data, n);
  }
}

CheckpointReader::CheckpointReader(std::shared_ptr<Source> source, bool in_place, bool big_endian)
    : zip_(std::move(source)), in_place_(in_place), swap_(big_endian) {
  RL_CHECK(!zip_.entries().empty(), "PytorchStreamReader failed reading zip archive: it is empty");
  const std::string& first = zip_.entries()[0].name;
  const size_t slash = first.find('/');
  RL_CHECK(slash != std::string::npos,
           "PytorchStreamReader failed locating file data.pkl: this zip file holds '", first,
           "' and is no checkpoint");
  archive_ = first.substr(0, slash + 1);
  if (has_record("byteorder")) {
    const std::string order = record("byteorder");
    RL_CHECK(order == "little" || order == "big", "Unknown endianness type: ", order);
    swap_ = order == "big";
  }
}

bool CheckpointReader::has_record(const std::string& name) const {
  return zip_.find(archive_ + name) != nullptr;
}

const ZipReader::Entry& CheckpointReader::entry(const std::string& name) const {
  const ZipReader::Entry* found = zip_.find(archive_ + name);
  RL_CHECK(found != nullptr, "PytorchStreamReader failed locating file ", name, ": file not found");
  return *found;
}

std::string CheckpointReader::record(const std::string& name) const {
  const ZipReader::Entry& found = entry(name);
  // Objects take many times the bytes of a pickle, so that few compressed ones might stand for very
  // many.
  constexpr uint64_t anyway = uint64_t{1} << 16;
  constexpr uint64_t most_times = 8;
  RL_CHECK(!found.compressed || !name.ends_with(".pkl") ||
               found.size <= anyway + most_times * found.packed,
           "PytorchStreamReader failed reading file ", name, ": ", found.packed,
           " bytes stand for a pickle of ", found.size, ": more than objects have");
  return zip_.read(found);
}

std::vector<std::string> CheckpointReader::records() const {
  std::vector<std::string> names;
  for (const ZipReader::Entry& e : zip_.entries()) {
    if (e.name.starts_with(archive_)) {
      names.push_back(e.name.substr(archive_.size()));
    }
  }
  return names;
}

// In place, or a copy.
Storage CheckpointReader::read_storage(const ZipReader::Entry& entry, ScalarType dtype) const {
  const char* const data = in_place_ && !swap_ ? zip_.in_place(entry) : nullptr;
  if (data != nullptr &&
      reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(itemsize(dtype)) == 0) {
    return StorageImpl::borrow(const_cast<char*>(data), entry.size, Device(kCPU), forget_source,
                               new std::shared_ptr<Source>(zip_.source()));
  }
  Storage copy = StorageImpl::allocate(entry.size, Device(kCPU));
  zip_.read(entry, copy->data());
  if (swap_) {
    swap_bytes(static_cast<char*>(copy->data()), entry.size, dtype);
  }
  return copy;
}

Storage CheckpointReader::storage(const std::string& key, ScalarType dtype, int64_t numel,
                                  const std::string& folder) {
  const std::string path = folder + '/' + key;
  const ZipReader::Entry& e = entry(path);
  int64_t bytes = 0;
  RL_CHECK(numel >= 0 && !__builtin_mul_overflow(numel, itemsize(dtype), &bytes), "storage '", key,
           "' has the impossible number of ", numel, " elements");
  // A storage may end in a part of an element, where tensors of another dtype have used it.
  const uint64_t least = static_cast<uint64_t>(bytes);
  RL_CHECK(least <= e.size && e.size - least < static_cast<uint64_t>(itemsize(dtype)), "storage '",
           key, "' has wrong byte size: expected ", bytes, ", got ", e.size);
  std::unique_lock lock(mutex_);
  auto found = storages_.find(path);
  if (found == storages_.end()) {
    lock.unlock();  // others read other storages meanwhile
    Storage fresh = read_storage(e, dtype);
    lock.lock();
    found = storages_.emplace(path, std::move(fresh)).first;  // or another thread was faster
  }
  return found->second;
}

CheckpointWriter::CheckpointWriter(Sink& sink, const std::string& archive)
    : zip_(sink), archive_(archive + '/') {}

void CheckpointWriter::add_objects(const std::string& pickle) {
  hash_ = crc32(0, pickle.data(), pickle.size());
  zip_.add(archive_ + "data.pkl", pickle.data(), pickle.size());
  const auto note = [&](const char* name, std::string_view text) {
    zip_.add(archive_ + name, text.data(), text.size());
  };
  note(".format_version", "1");
  note(".storage_alignment", "64");
  note("byteorder", "little");
}

void CheckpointWriter::add_storage(const std::string& key, const Storage& storage, bool checked) {
  RL_CHECK(!storage->device().is_meta(), "meta tensors have no data to save");
  zip_.add(archive_ + "data/" + key, storage->data(), storage->nbytes(), checked);
}

void CheckpointWriter::finish() {
  zip_.add(archive_ + "version", "3\n", 2);
  // Forty digits that depend on the contents alone.
  std::string id = std::to_string(hash_);
  id.insert(0, 40 - id.size(), '0');
  zip_.add(archive_ + ".data/serialization_id", id.data(), id.size());
  zip_.finish();
}

}  // namespace rushlight::serialize
