// Sizes of arguments against what a program was exported for.
#include "exported/sizes.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "exported/facts.h"

namespace rushlight::exported {

using serialize::Json;

namespace {

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))", or a symbol alone.
class Reader {
 public:
  Reader(std::string_view text, const Symbols& symbols) : text_(text), symbols_(symbols) {}

  std::optional<int64_t> read() {
    const Number value = expression(0);
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  using Number = std::optional<int64_t>;
  static constexpr int deepest = 60;

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      at_++;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) {
      return false;
    }
    at_++;
    return true;
  }
  std::string_view word() {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) {
      at_++;
    }
    return text_.substr(begin, at_ - begin);
  }
  Number symbol(std::string_view name) const {
    const auto found = symbols_.find(std::string(name));
    return found == symbols_.end() ? std::nullopt : Number(found->second);
  }

  Number expression(int depth) {
    const bool negative = take('-');
    const std::string_view name = word();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (!name.empty() && error == std::errc() && end == name.data() + name.size()) {
      return negative ? -number : number;
    }
    if (!take('(')) {
      return symbol(name);
    }
    std::vector<Number> arguments;
    std::string_view quoted;
    while (depth < deepest && !take(')')) {
      if (take('\'')) {
        quoted = word();
        if (!take('\'')) {
          return {};
        }
      } else {
        arguments.push_back(expression(depth + 1));
        if (take('=')) {  // positive=True
          arguments.pop_back();
          word();
        }
      }
      if (!take(',') && peek() != ')') {
        return {};
      }
    }
    return name == "Symbol" ? symbol(quoted) : value(name, arguments);
  }

  static Number value(std::string_view function, const std::vector<Number>& arguments) {
    if (arguments.empty() || !std::all_of(arguments.begin(), arguments.end(),
                                          [](const Number& n) { return n.has_value(); })) {
      return {};
    }
    Number value = arguments[0];
    if (function == "Integer" && arguments.size() == 1) {
      return value;
    }
    for (size_t i = 1; i < arguments.size(); i++) {
      value = value ? of_two(function, *value, *arguments[i]) : value;
    }
    return arguments.size() > 1 ? value : std::nullopt;
  }

  static Number of_two(std::string_view function, int64_t a, int64_t b) {
    int64_t out = 0;
    if (function == "Add") {
      return __builtin_add_overflow(a, b, &out) ? std::nullopt : Number(out);
    }
    if (function == "Mul") {
      return __builtin_mul_overflow(a, b, &out) ? std::nullopt : Number(out);
    }
    if (function == "Max" || function == "Min") {
      return function == "Max" ? std::max(a, b) : std::min(a, b);
    }
    // Of sizes, none of which is negative.
    const bool divides = a >= 0 && b > 0;
    return function == "FloorDiv" && divides ? Number(a / b)
           : function == "Mod" && divides    ? Number(a % b)
                                             : std::nullopt;
  }

  std::string_view text_;
  const Symbols& symbols_;
  size_t at_ = 0;
};

}  // namespace

std::optional<int64_t> value_of(std::string_view expression, const Symbols& symbols) {
  return Reader(expression, symbols).read();
}

std::string symbol_in(std::string_view expression) {
  constexpr std::string_view prefix = "Symbol('";
  if (expression.starts_with(prefix)) {
    expression.remove_prefix(prefix.size());
    expression = expression.substr(0, expression.find('\''));
  }
  const bool is_name = std::all_of(expression.begin(), expression.end(), is_letter);
  return is_name ? std::string(expression) : std::string();
}

TensorFacts::TensorFacts(const Json& record) : dtype(dtype_numbered(record.at("dtype").integer())) {
  record.at("sizes").items([&](const Json& size) {
    if (const std::optional<int64_t> known = known_size(size)) {
      sizes.push_back({*known});
      return;
    }
    std::string expression = size.at("as_expr").at("expr_str").string();
    std::string symbol = symbol_in(expression);
    sizes.push_back({-1, std::move(expression), std::move(symbol)});
  });
}

void TensorFacts::check(const Tensor& tensor, const std::string& name, Symbols& symbols) const {
  RL_CHECK(tensor.dtype() == dtype, "the argument '", name, "' is of ", tensor.dtype(),
           ", and the program was exported for ", dtype);
  RL_CHECK(tensor.dim() == static_cast<int64_t>(sizes.size()), "the argument '", name, "' has ",
           tensor.dim(), " dimensions, and the program was exported for ", sizes.size());
  for (size_t d = 0; d < sizes.size(); d++) {
    const int64_t size = tensor.sizes()[d];
    if (!sizes[d].symbol.empty()) {
      symbols.emplace(sizes[d].symbol, size);  // the first place of a symbol says what it is
    }
    const std::optional<int64_t> wanted =
        sizes[d].known >= 0 ? sizes[d].known : value_of(sizes[d].expression, symbols);
    RL_CHECK(!wanted || size == *wanted, "dimension ", d, " of the argument '", name, "' is ", size,
             ", and the program was exported for ", *wanted);
  }
}

}  // namespace rushlight::exported
