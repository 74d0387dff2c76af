#include "language/cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <rushlight/batch_invariant.h>
#include <rushlight/factories.h>
#include <rushlight/ops.h>

namespace rushlight::language {
namespace {

constexpr int64_t few = 8;          // queries that one op attends for
constexpr int64_t scale_bytes = 4;  // behind the codes of a row

}  // namespace

Cache::Cache(int64_t sequences, int64_t heads, int64_t max_len, int64_t width, ScalarType dtype)
    : width_(width), length_(static_cast<size_t>(sequences)) {
  RL_CHECK_VALUE(dtype == kFloat32 || dtype == kFloat16 || dtype == kBFloat16 || dtype == kInt8,
                 "a cache must be of float32, float16, bfloat16 or int8, not of ", dtype);
  const int64_t row = width + (dtype == kInt8 ? scale_bytes : 0);
  keys_ = rushlight::zeros({sequences, heads, max_len, row}, dtype);
  values_ = rushlight::zeros({sequences, heads, max_len, row}, dtype);
}

Tensor Cache::places(const std::vector<int64_t>& sequences) const {
  std::vector<int64_t> found;
  for (const int64_t s : sequences) {
    found.push_back(length(s));
  }
  return tensor(found);
}

void Cache::truncate(int64_t length, int64_t sequence) {
  RL_CHECK_VALUE(length >= 0 && length <= this->length(sequence), "a text of ",
                 this->length(sequence), " positions cannot be cut to ", length);
  length_[static_cast<size_t>(sequence)] = length;
}

Tensor Cache::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                     const std::vector<int64_t>& sequences) {
  if (query.size(2) > few && is_batch_invariant()) {
    std::vector<Tensor> found;
    for (int64_t i = 0; i < query.size(2); i += few) {
      const auto part = [&](const Tensor& t) {
        return t.narrow(2, i, std::min(few, query.size(2) - i));
      };
      found.push_back(attend(part(query), part(key), part(value), sequences));
    }
    return rushlight::cat(found, 2);
  }
  if (query.size(2) > few) {
    std::vector<Tensor> found;
    for (size_t i = 0; i < sequences.size(); i++) {
      const auto one = [&](const Tensor& t) { return t.narrow(0, static_cast<int64_t>(i), 1); };
      found.push_back(attend_many(one(query), one(key), one(value), sequences[i]));
    }
    return found.size() == 1 ? found[0] : rushlight::cat(found);
  }
  std::vector<int64_t> pairs;
  for (const int64_t s : sequences) {
    pairs.push_back(length(s));
    pairs.push_back(s);
  }
  const Tensor places = tensor(pairs).view({-1, 2});
  const double scale = std::pow(static_cast<double>(query.size(3)), -0.5);
  const Tensor found =
      rushlight::_cached_attention(query, key, value, keys_, values_, places, scale);
  for (const int64_t s : sequences) {
    length_[static_cast<size_t>(s)] += query.size(2);
  }
  return found;
}

Tensor Cache::attend_many(const Tensor& query, const Tensor& key, const Tensor& value,
                          int64_t sequence) {
  const int64_t before = length(sequence);
  const int64_t rows = query.size(2);
  const int64_t end = before + rows;
  RL_CHECK_INDEX(end <= keys_.size(2), "a cache of ", keys_.size(2), " positions, of which ",
                 before, " are filled, has no room for ", rows);
  const Tensor keys = keys_.narrow(0, sequence, 1);
  const Tensor values = values_.narrow(0, sequence, 1);
  keys.narrow(2, before, rows).copy_(stored(key));
  values.narrow(2, before, rows).copy_(stored(value));
  length_[static_cast<size_t>(sequence)] = end;
  Tensor mask;
  if (before > 0) {
    mask = rushlight::ones({rows, end}, kBool).tril(before);
  }
  return rushlight::scaled_dot_product_attention(
      query, numbers(keys.narrow(2, 0, end)), numbers(values.narrow(2, 0, end)), mask, 0.0,
      before == 0, std::nullopt, query.size(1) != key.size(1));
}

Tensor Cache::stored(const Tensor& rows) const {
  if (keys_.dtype() != kInt8) {
    return rows;
  }
  const Tensor scales = rows.abs().amax(-1, true) / 127;
  const Tensor good = (scales > 0).logical_and(scales < std::numeric_limits<double>::infinity());
  const Tensor codes = rushlight::where(good, rows / scales, rushlight::zeros({1}, kFloat32))
                           .round()
                           .clamp(-127, 127)
                           .to(kInt8);
  return rushlight::cat({codes, scales.view(kInt8)}, -1);
}

Tensor Cache::numbers(const Tensor& rows) const {
  if (keys_.dtype() != kInt8) {
    return rows.to(kFloat32);
  }
  const Tensor scales = rows.narrow(-1, width_, scale_bytes).contiguous().view(kFloat32);
  return rows.narrow(-1, 0, width_) * scales;
}

}  // namespace rushlight::language
