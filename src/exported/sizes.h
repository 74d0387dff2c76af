// What a program was exported for: dtypes, sizes, and symbols that stand for sizes.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <rushlight/tensor.h>

#include <rushlight/json.h>

namespace rushlight::exported {

using Symbols = std::unordered_map<std::string, int64_t>;

// The value of an expression, "Add(Symbol('s0', …), Integer(1))" or "s0"; nothing where it has
// unknown symbols or functions.
RL_API std::optional<int64_t> value_of(std::string_view expression, const Symbols& symbols);
// The symbol that an expression is; empty where it is more than that.
RL_API std::string symbol_in(std::string_view expression);

struct Range {
  std::optional<int64_t> least;
  std::optional<int64_t> most;
};

struct TensorFacts {
  ScalarType dtype = ScalarType::Undefined;
  struct Size {
    int64_t known = -1;
    std::string expression = {};  // where it is not known
    std::string symbol = {};      // where it is no more than that
  };
  std::vector<Size> sizes;

  explicit TensorFacts(const serialize::Json& record);
  // Fills in symbols. RuntimeError where a tensor, called `name`, has another dtype or size.
  void check(const Tensor& tensor, const std::string& name, Symbols& symbols) const;
};

}  // namespace rushlight::exported
