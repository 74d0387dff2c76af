// PyTorch's .pt container: a zip file "NAME/data.pkl" (the objects, as a pickle that names storages
// by persistent ids), "NAME/data/KEY" (their bytes), and a few records that say how it was written.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <rushlight/tensor.h>

#include "serialize/pickle.h"
#include "serialize/zip.h"

namespace rushlight::serialize {

// "FloatStorage" for float32, as persistent ids name dtypes; "UntypedStorage" for those that have
// no class of their own.
RL_API std::string storage_class(ScalarType t);
inline constexpr bool has_storage_class(ScalarType t) { return contains(set_all, t); }
// The dtype of a class name without its module; none for classes that do not exist here.
RL_API std::optional<ScalarType> dtype_of_storage_class(std::string_view name);

// A new tensor on a storage. RuntimeError unless every element lies inside of it. The bytes stay as
// they are, those of bools, too: kernels take all but 0 for true.
RL_API Tensor tensor_on(const Storage& storage, ScalarType dtype, int64_t offset, IntArrayRef sizes,
                        IntArrayRef strides);

// Copies elements of a file into a new storage of the same size.
RL_API void fill(const Storage& storage, const void* data, size_t n);

class RL_API CheckpointReader {
 public:
  // `in_place`: tensors use the source's memory, which must then be writable, instead of copies of
  // it. `big_endian`: of files that do not say so themselves.
  CheckpointReader(std::shared_ptr<Source> source, bool in_place, bool big_endian = false);
  // Names without the archive's own.
  bool has_record(const std::string& name) const;
  std::string record(const std::string& name) const;
  std::vector<std::string> records() const;
  uint64_t record_size(const std::string& name) const { return entry(name).size; }
  uint64_t size() const { return zip_.source()->size(); }  // of the whole file
  // The bytes of storage KEY, which must be numel elements; the same storage whenever it is asked
  // for. Thread-safe.
  Storage storage(const std::string& key, ScalarType dtype, int64_t numel,
                  const std::string& folder = "data");

 private:
  Storage read_storage(const ZipReader::Entry& entry, ScalarType dtype) const;
  const ZipReader::Entry& entry(const std::string& name) const;
  ZipReader zip_;
  std::string archive_;  // with the slash
  bool in_place_;
  bool swap_ = false;  // written on a big-endian machine
  std::mutex mutex_;   // of what follows
  std::map<std::string, Storage> storages_;
};

class RL_API CheckpointWriter {
 public:
  CheckpointWriter(Sink& sink, const std::string& archive);
  // The pickle comes first, then the storages; finish() adds the rest.
  void add_objects(const std::string& pickle);
  // Without `checked` the file says no checksum, for bytes that others fill in.
  void add_storage(const std::string& key, const Storage& storage, bool checked = true);
  void finish();

 private:
  ZipWriter zip_;
  std::string archive_;
  uint64_t hash_ = 0;
};

}  // namespace rushlight::serialize
