// Indices as Python writes them: x.index({Slice(1, None), "...", 3, mask}) is x[1:, ..., 3, mask].
#pragma once

#include <iosfwd>
#include <limits>
#include <optional>
#include <vector>

#include <rushlight/tensor.h>

namespace rushlight::indexing {

inline constexpr std::nullopt_t None = std::nullopt;
struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis;

// Where slices end that say nothing of it.
inline constexpr int64_t INDEX_MIN = std::numeric_limits<int64_t>::min();
inline constexpr int64_t INDEX_MAX = std::numeric_limits<int64_t>::max();
class Slice {
 public:
  Slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
        std::optional<int64_t> step = {})
      : step_(step.value_or(1)),
        start_(start.value_or(step_ < 0 ? INDEX_MAX : 0)),
        stop_(stop.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX)) {}
  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t step_;
  int64_t start_;
  int64_t stop_;
};

enum class TensorIndexType { None, Ellipsis, SymInt, Boolean, Slice, Tensor };

class RL_API TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };
  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(EllipsisIndexType) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* dots);  // "...", or ValueError
  template <class T, std::enable_if_t<is_integer_v<T>, int> = 0>
  TensorIndex(T i) : kind_(Kind::Integer), integer_(static_cast<int64_t>(i)) {}
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, char> = 0>
  TensorIndex(T b) : kind_(Kind::Boolean), integer_(b) {}
  TensorIndex(Slice s) : kind_(Kind::Slice), slice_(s) {}
  TensorIndex(Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_ellipsis() const { return kind_ == Kind::Ellipsis; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_slice() const { return kind_ == Kind::Slice; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

RL_API std::ostream& operator<<(std::ostream& out, const Slice& slice);  // 1:5:2
RL_API std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
RL_API std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

}  // namespace rushlight::indexing
