// einsum: operands are brought into one order of labels (those of the result first), with
// dimensions of size 1 where a label is absent, and multiplied pair by pair as batched matrix
// products. A label is summed with the last pair it is in.

#include <algorithm>
#include <array>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

constexpr int num_letters = 52;
constexpr int ellipsis = num_letters;

int letter_index(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}
char name_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }

// The labels of one operand or of the result; `where` says which in errors.
std::vector<int> parse_labels(std::string_view equation, size_t begin, size_t end,
                              const std::string& where) {
  std::vector<int> labels;
  bool seen = false;
  for (size_t i = begin; i < end; i++) {
    const char c = equation[i];
    if (c == ' ') {
      continue;
    }
    if (c == '.') {
      RL_CHECK(i + 2 < end && equation[i + 1] == '.' && equation[i + 2] == '.',
               "einsum(): found '.' for ", where, " outside of an ellipsis, which is '...'");
      RL_CHECK(!seen, "einsum(): found '.' for ", where,
               " for which an ellipsis was already found");
      seen = true;
      labels.push_back(ellipsis);
      i += 2;
      continue;
    }
    RL_CHECK(letter_index(c) >= 0, "einsum(): invalid subscript given at index ", i,
             " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(letter_index(c));
  }
  return labels;
}

struct Equation {
  std::vector<std::vector<int>> operands;
  bool has_output = false;
  std::vector<int> output;
};

Equation parse(std::string_view text) {
  Equation e;
  const size_t arrow = text.find("->");
  const size_t end = arrow == std::string_view::npos ? text.size() : arrow;
  size_t begin = 0;
  while (true) {
    const size_t comma = std::min(text.substr(0, end).find(',', begin), end);
    e.operands.push_back(parse_labels(text, begin, comma, str("operand ", e.operands.size())));
    if (comma == end) {
      break;
    }
    begin = comma + 1;
  }
  if (arrow != std::string_view::npos) {
    e.has_output = true;
    e.output = parse_labels(text, arrow + 2, text.size(), "output");
  }
  return e;
}

// The product of two operands over all labels in order, those of `summed` (dimensions) summed to
// size 1.
Tensor contract(Tensor left, Tensor right, const std::vector<int64_t>& summed) {
  DimVector both, left_only, right_only, contracted;
  for (int64_t d = 0; d < left.dim(); d++) {
    const bool in_left = left.size(d) != 1;
    const bool in_right = right.size(d) != 1;
    if (std::find(summed.begin(), summed.end(), d) != summed.end()) {
      if (in_left && in_right) {
        contracted.push_back(d);
        continue;
      }
      left = in_left ? left.sum(DimVector{d}, true) : left;
      right = in_right ? right.sum(DimVector{d}, true) : right;
      both.push_back(d);
    } else if (in_left && !in_right) {
      left_only.push_back(d);
    } else if (in_right && !in_left) {
      right_only.push_back(d);
    } else {
      both.push_back(d);
    }
  }
  if (contracted.empty()) {
    return left * right;
  }
  const auto order = [](std::initializer_list<const DimVector*> lists) {
    DimVector all;
    for (const DimVector* list : lists) {
      for (const int64_t d : *list) {
        all.push_back(d);
      }
    }
    return all;
  };
  const auto size = [](const Tensor& t, const DimVector& dims) {
    int64_t n = 1;
    for (const int64_t d : dims) {
      n *= t.size(d);
    }
    return n;
  };
  const int64_t batch = size(left, both);
  const int64_t depth = size(left, contracted);
  // What one operand lacks has size 1 there and vanishes.
  const Tensor a = left.permute(order({&both, &left_only, &contracted, &right_only}))
                       .reshape({batch, size(left, left_only), depth});
  const Tensor b = right.permute(order({&both, &contracted, &right_only, &left_only}))
                       .reshape({batch, depth, size(right, right_only)});
  DimVector sizes;
  for (const int64_t d : both) {
    sizes.push_back(left.size(d));
  }
  for (const int64_t d : left_only) {
    sizes.push_back(left.size(d));
  }
  for (const int64_t d : right_only) {
    sizes.push_back(right.size(d));
  }
  sizes.resize(static_cast<size_t>(left.dim()), 1);
  const DimVector from = order({&both, &left_only, &right_only, &contracted});
  DimVector back(from.size());
  for (size_t i = 0; i < from.size(); i++) {
    back[static_cast<size_t>(from[i])] = static_cast<int64_t>(i);
  }
  return a.bmm(b).reshape(sizes).permute(back);
}

// Where the labels of an equation lie in the common order: the result's first, then those that are
// summed.
struct Order {
  std::array<int, num_letters> count{};  // how often each letter occurs in operands
  std::array<int64_t, num_letters> place;
  int64_t covered = 0;  // how many dimensions an ellipsis stands for
  int64_t ellipsis_place = -1;
  int64_t result_dims = 0;
  int64_t dims = 0;
};

void count_labels(const Equation& e, TensorList tensors, Order& order) {
  for (size_t i = 0; i < tensors.size(); i++) {
    const std::vector<int>& labels = e.operands[i];
    const bool open = std::find(labels.begin(), labels.end(), ellipsis) != labels.end();
    const int64_t named = static_cast<int64_t>(labels.size()) - (open ? 1 : 0);
    const int64_t rest = tensors[i].dim() - named;
    RL_CHECK(open ? rest >= 0 : rest == 0, "einsum(): the number of subscripts, ", named,
             open ? ", is more than" : ", is not", " that of the dimensions of operand ", i, ", ",
             tensors[i].dim(), open ? "" : ": an ellipsis stands for the others");
    order.covered = std::max(order.covered, open ? rest : 0);
    for (const int label : labels) {
      if (label != ellipsis) {
        order.count[static_cast<size_t>(label)]++;
      }
    }
  }
}

Order order_of(const Equation& e, TensorList tensors) {
  Order order;
  count_labels(e, tensors, order);
  auto& [count, place, covered, ellipsis_place, result_dims, dims] = order;
  place.fill(-1);
  if (e.has_output) {
    for (const int label : e.output) {
      if (label == ellipsis) {
        ellipsis_place = dims;
        dims += covered;
        continue;
      }
      RL_CHECK(place[static_cast<size_t>(label)] < 0, "einsum(): output subscript ", name_of(label),
               " appears more than once: each names one dimension of the result");
      RL_CHECK(count[static_cast<size_t>(label)] > 0, "einsum(): output subscript ", name_of(label),
               " does not appear before '->'");
      place[static_cast<size_t>(label)] = dims++;
    }
  } else {
    ellipsis_place = 0;
    dims = covered;
    for (size_t label = 0; label < num_letters; label++) {
      if (count[label] == 1) {
        place[label] = dims++;
      }
    }
  }
  result_dims = dims;
  if (ellipsis_place < 0) {
    ellipsis_place = dims;
    dims += covered;
  }
  for (size_t label = 0; label < num_letters; label++) {
    if (count[label] > 0 && place[label] < 0) {
      place[label] = dims++;
    }
  }
  return order;
}

// Operand i in the common order, with size 1 for what it lacks.
Tensor in_order(const Order& order, const std::vector<int>& labels, Tensor t, size_t i) {
  DimVector from(static_cast<size_t>(order.dims), -1);  // dimension of t at each place
  const int64_t open = t.dim() - static_cast<int64_t>(labels.size()) + 1;
  int64_t d = 0;
  for (const int label : labels) {
    if (label == ellipsis) {
      for (int64_t k = 0; k < open; k++) {
        from[static_cast<size_t>(order.ellipsis_place + order.covered - open + k)] = d++;
      }
      continue;
    }
    int64_t& at = from[static_cast<size_t>(order.place[static_cast<size_t>(label)])];
    if (at >= 0) {  // the same label again: its diagonal
      RL_CHECK(t.size(at) == t.size(d), "einsum(): subscript ", name_of(label),
               " is repeated for operand ", i, " but the sizes don't match, ", t.size(d),
               " != ", t.size(at));
      t = t.diagonal(0, at, d).movedim(-1, at);
    } else {
      at = d++;
    }
  }
  for (int64_t& at : from) {
    if (at < 0) {
      t = t.unsqueeze(-1);
      at = t.dim() - 1;
    }
  }
  return t.permute(from);
}

// How many operands have each dimension; sizes have to broadcast.
std::vector<int> count_uses(const Order& order, const std::vector<Tensor>& operands) {
  std::vector<int> uses(static_cast<size_t>(order.dims), 0);
  DimVector sizes(static_cast<size_t>(order.dims), 1);
  for (size_t i = 0; i < operands.size(); i++) {
    for (int64_t k = 0; k < order.dims; k++) {
      const int64_t n = operands[i].size(k);
      int64_t& size = sizes[static_cast<size_t>(k)];
      if (n == 1) {
        continue;
      }
      uses[static_cast<size_t>(k)]++;
      if (size != 1 && size != n) {
        std::string label = "...";
        for (int l = 0; l < num_letters; l++) {
          label = order.place[static_cast<size_t>(l)] == k ? std::string(1, name_of(l)) : label;
        }
        throw Error(str("einsum(): subscript ", label, " has size ", n, " for operand ", i,
                        ", but ", size,
                        " in an operand before it: it must be the same in all, or 1"));
      }
      size = n;
    }
  }
  return uses;
}

// The product of all operands, pair by pair; a dimension that is summed is so with its last pair.
Tensor contract_all(const Order& order, std::vector<Tensor> operands, IntArrayRef pairs) {
  std::vector<int> uses = count_uses(order, operands);  // by operands that are left
  for (size_t step = 0; operands.size() > 1; step++) {
    int64_t i = pairs.empty() ? 0 : pairs[2 * step];
    int64_t j = pairs.empty() ? 1 : pairs[2 * step + 1];
    if (i > j) {
      std::swap(i, j);
    }
    RL_CHECK(i >= 0 && i != j && j < static_cast<int64_t>(operands.size()),
             "einsum(): invalid contraction path (", i, ", ", j, ")");
    const Tensor left = operands[static_cast<size_t>(i)];
    const Tensor right = operands[static_cast<size_t>(j)];
    operands.erase(operands.begin() + j);
    operands.erase(operands.begin() + i);
    std::vector<int64_t> summed;
    for (int64_t d = 0; d < order.dims; d++) {
      int& left_to_use = uses[static_cast<size_t>(d)];
      left_to_use -= (left.size(d) != 1) + (right.size(d) != 1);
      if (d >= order.result_dims && left_to_use == 0) {
        summed.push_back(d);
      } else if (left.size(d) != 1 || right.size(d) != 1) {
        left_to_use++;  // the product has it
      }
    }
    operands.insert(pairs.empty() ? operands.begin() : operands.end(),
                    contract(left, right, summed));
  }
  return operands[0];
}

}  // namespace

Tensor composite::einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  RL_CHECK_VALUE(!tensors.empty(), "einsum(): expected the equation and at least one operand");
  const Equation e = parse(equation);
  RL_CHECK(e.operands.size() >= tensors.size(),
           "einsum(): more operands were provided than the equation names: ", tensors.size(),
           " for ", e.operands.size());
  RL_CHECK(e.operands.size() <= tensors.size(),
           "einsum(): fewer operands were provided than the equation names: ", tensors.size(),
           " for ", e.operands.size());
  const Order order = order_of(e, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); i++) {
    operands.push_back(in_order(order, e.operands[i], tensors[i], i));
  }
  const IntArrayRef pairs = path.value_or({});
  RL_CHECK(pairs.empty() || pairs.size() == 2 * (tensors.size() - 1),
           "einsum(): expected contraction path to have ", 2 * (tensors.size() - 1),
           " elements, but got ", pairs.size());
  Tensor result = contract_all(order, std::move(operands), pairs);
  DimVector rest;
  for (int64_t d = order.result_dims; d < order.dims; d++) {
    if (result.size(d) != 1) {
      rest.push_back(d);
    }
  }
  if (!rest.empty()) {
    result = result.sum(rest, true);
  }
  for (int64_t d = order.dims - 1; d >= order.result_dims; d--) {
    result = result.squeeze(d);
  }
  return result;
}

Tensor composite::tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                            IntArrayRef dims_other) {
  RL_CHECK(dims_self.size() == dims_other.size(),
           "both dimension lists should have the same length, but got ", dims_self, " and ",
           dims_other);
  RL_CHECK(self.dtype() == other.dtype(), "both inputs should have same dtype, but got ",
           self.dtype(), " and ", other.dtype());
  // The dimensions of each, summed ones behind the free ones of self and before those of other.
  DimVector left;
  DimVector right = wrap_dims(dims_other, other.dim(), false);
  const DimVector summed = wrap_dims(dims_self, self.dim(), false);
  DimVector sizes;
  Tensor a = self;
  Tensor b = other;
  int64_t terms = 1;
  for (size_t i = 0; i < summed.size(); i++) {
    const int64_t m = self.size(summed[i]);
    const int64_t n = other.size(right[i]);
    RL_CHECK(m == n || m == 1 || n == 1, "contracted dimensions need to match, but dim ", summed[i],
             " of the first has size ", m, ", dim ", right[i], " of the second ", n);
    if (m == 1 && n != 1) {  // the same number for all terms
      b = b.sum({right[i]}, true, b.dtype());
    } else if (n == 1 && m != 1) {
      a = a.sum({summed[i]}, true, a.dtype());
    }
    terms *= std::min(m, n);
  }
  int64_t rows = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (std::find(summed.begin(), summed.end(), d) == summed.end()) {
      left.push_back(d);
      sizes.push_back(self.size(d));
      rows *= self.size(d);
    }
  }
  int64_t columns = 1;
  for (int64_t d = 0; d < other.dim(); d++) {
    if (std::find(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(summed.size()), d) ==
        right.begin() + static_cast<std::ptrdiff_t>(summed.size())) {
      right.push_back(d);
      sizes.push_back(other.size(d));
      columns *= other.size(d);
    }
  }
  for (const int64_t d : summed) {
    left.push_back(d);
  }
  const Tensor matrix = a.permute(left).reshape({rows, terms});
  return matrix.mm(b.permute(right).reshape({terms, columns})).reshape(sizes);
}

}  // namespace rushlight
