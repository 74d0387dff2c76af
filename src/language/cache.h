// Keys and values of the positions that an attention layer has seen; what Python calls KVCache.
#pragma once

#include <vector>

#include <rushlight/tensor.h>

namespace rushlight::language {

class Cache {
 public:
  Cache(int64_t sequences, int64_t heads, int64_t max_len, int64_t width, ScalarType dtype);

  // Positions of some sequences, of int64.
  Tensor places(const std::vector<int64_t>& sequences) const;
  int64_t length(int64_t sequence) const { return length_[static_cast<size_t>(sequence)]; }
  void truncate(int64_t length, int64_t sequence);
  // Appends keys and values (batch, heads, rows, width), and attends to all positions up to each
  // query's own.
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
                const std::vector<int64_t>& sequences);

 private:
  Tensor attend_many(const Tensor& query, const Tensor& key, const Tensor& value, int64_t sequence);
  Tensor stored(const Tensor& rows) const;
  Tensor numbers(const Tensor& rows) const;

  Tensor keys_;
  Tensor values_;
  int64_t width_;
  std::vector<int64_t> length_;
};

}  // namespace rushlight::language
