// Tokens to trees: expressions. Statements are in statements.cpp.
#include "script/parser.h"

#include <algorithm>

namespace rushlight::script {

using Kind = Expr::Kind;

namespace {
// How tightly operators of two sides bind; 0: none.
int precedence(std::string_view op) {
  if (op == "|") {
    return 1;
  }
  if (op == "^") {
    return 2;
  }
  if (op == "&") {
    return 3;
  }
  if (op == "<<" || op == ">>") {
    return 4;
  }
  if (op == "+" || op == "-") {
    return 5;
  }
  return op == "*" || op == "/" || op == "//" || op == "%" || op == "@" ? 6 : 0;
}
constexpr std::string_view reserved[] = {
    "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
    "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
    "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
    "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};
}  // namespace

// ---- what is next ----

void Parser::fail(const std::string& what) const { fail_at(text_, token().span, what); }

std::string_view Parser::view(Span span) const {
  return std::string_view(text_->text).substr(span.begin, span.end - span.begin);
}

bool Parser::at(std::string_view word) const {
  const Token& t = token();
  return (t.kind == Token::Kind::Operator || t.kind == Token::Kind::Name) && view(t.span) == word;
}

bool Parser::accept(std::string_view word) {
  const bool found = at(word);
  next_ += found ? 1 : 0;
  return found;
}

void Parser::expect(std::string_view word) {
  if (!accept(word)) {
    const Token& t = token();
    const std::string found = t.kind == Token::Kind::Newline ? "the end of the line"
                              : t.kind == Token::Kind::End   ? "the end of the text"
                                                             : str("'", view(t.span), "'");
    fail(str("expected '", word, "' but found ", found, " here"));
  }
}

std::string Parser::name() {
  const Token& t = token();
  if (t.kind != Token::Kind::Name ||
      std::find(std::begin(reserved), std::end(reserved), view(t.span)) != std::end(reserved)) {
    fail("expected a name here");
  }
  next_++;
  return std::string(view(t.span));
}

// ---- trees ----

ExprPtr Parser::make(Kind kind, uint32_t begin, std::vector<ExprPtr> of) const {
  if (++nodes_ > max_nodes) {
    fail("this text is too long to be a program");
  }
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->span = {begin, std::max(begin, last_end())};
  for (const ExprPtr& part : of) {
    out->depth = part ? std::max<uint16_t>(out->depth, part->depth + 1) : out->depth;
  }
  out->of = std::move(of);
  if (out->depth > max_depth) {
    fail_at(text_, out->span, "this expression is nested too deep");
  }
  return out;
}

// ---- expressions, from the loosest binding to the tightest ----

ExprPtr Parser::expression() {
  const Nested nested(*this);
  if (at("lambda")) {
    fail("a lambda cannot be compiled: name a function");
  }
  const uint32_t begin = token().span.begin;
  ExprPtr value = or_expression();
  if (at(":=")) {
    fail("an assignment inside of an expression cannot be compiled: write it as a statement");
  }
  if (!accept("if")) {
    return value;
  }
  ExprPtr condition = or_expression();
  expect("else");
  ExprPtr otherwise = expression();
  return join(Kind::IfElse, begin, "", std::move(condition), std::move(value),
              std::move(otherwise));
}

ExprPtr Parser::or_expression() {
  const uint32_t begin = token().span.begin;
  ExprPtr left = and_expression();
  while (accept("or")) {
    ExprPtr right = and_expression();
    left = join(Kind::Or, begin, "", std::move(left), std::move(right));
  }
  return left;
}

ExprPtr Parser::and_expression() {
  const uint32_t begin = token().span.begin;
  ExprPtr left = not_expression();
  while (accept("and")) {
    ExprPtr right = not_expression();
    left = join(Kind::And, begin, "", std::move(left), std::move(right));
  }
  return left;
}

ExprPtr Parser::not_expression() {
  const Nested nested(*this);
  const uint32_t begin = token().span.begin;
  if (accept("not")) {
    ExprPtr value = not_expression();
    return join(Kind::Unary, begin, "not", std::move(value));
  }
  return comparison();
}

std::string_view Parser::accept_comparison() {
  for (const std::string_view op : {"<", ">", "==", "!=", "<=", ">=", "in"}) {
    if (accept(op)) {
      return op;
    }
  }
  if (accept("is")) {
    return accept("not") ? "is not" : "is";
  }
  if (at("not") && next_ + 1 < tokens_.tokens.size() &&
      view(tokens_.tokens[next_ + 1].span) == "in") {
    next_ += 2;
    return "not in";
  }
  return "";
}

// a < b < c is a < b and b < c, where the language computes b twice if it is no name; so it is
// parsed anew, from its own tokens.
ExprPtr Parser::comparison() {
  const uint32_t begin = token().span.begin;
  ExprPtr left = binary(1);
  ExprPtr all;
  for (std::string_view op = accept_comparison(); !op.empty(); op = accept_comparison()) {
    const size_t middle = next_;
    ExprPtr right = binary(1);
    const size_t after = next_;
    ExprPtr one = join(Kind::Compare, begin, op, std::move(left), std::move(right));
    all = all ? join(Kind::And, begin, "", std::move(all), std::move(one)) : std::move(one);
    if (!accept_comparison().empty()) {
      next_ = middle;
      left = binary(1);
    }
    next_ = after;
  }
  return all ? std::move(all) : std::move(left);
}

ExprPtr Parser::binary(int least) {
  const uint32_t begin = token().span.begin;
  ExprPtr left = unary();
  while (token().kind == Token::Kind::Operator) {
    const std::string_view op = view(token().span);
    const int strong = precedence(op);
    if (strong < least || strong == 0) {
      break;
    }
    next_++;
    ExprPtr right = binary(strong + 1);
    left = join(Kind::Binary, begin, op, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr Parser::unary() {
  const Nested nested(*this);
  const uint32_t begin = token().span.begin;
  for (const std::string_view op : {"-", "+", "~"}) {
    if (accept(op)) {
      ExprPtr value = unary();
      const bool number = value->is(Kind::Int) || value->is(Kind::Float);
      if (op == "-" && number && value->text.empty()) {  // a literal
        value->integer = static_cast<int64_t>(-static_cast<uint64_t>(value->integer));
        value->number = -value->number;
        value->span.begin = begin;
        value->text = "-";
        return value;
      }
      return join(Kind::Unary, begin, op, std::move(value));
    }
  }
  ExprPtr base = postfix();
  if (accept("**")) {
    ExprPtr exponent = unary();
    base = join(Kind::Binary, begin, "**", std::move(base), std::move(exponent));
  }
  return base;
}

ExprPtr Parser::postfix() {
  const uint32_t begin = token().span.begin;
  ExprPtr value = atom();
  while (true) {
    if (accept(".")) {
      const std::string field = name();
      value = join(Kind::Attribute, begin, field, std::move(value));
    } else if (accept("(")) {
      value = call(begin, std::move(value));
    } else if (accept("[")) {
      value = subscript(begin, std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr Parser::call(uint32_t begin, ExprPtr function) {
  std::vector<ExprPtr> of;
  of.push_back(std::move(function));
  std::vector<Keyword> keywords;
  while (!accept(")")) {
    const uint32_t at_argument = token().span.begin;
    if (accept("**")) {
      keywords.push_back({"", expression()});
    } else if (accept("*")) {
      ExprPtr value = expression();
      of.push_back(join(Kind::Starred, at_argument, "", std::move(value)));
    } else if (token().kind == Token::Kind::Name && view(tokens_.tokens[next_ + 1].span) == "=") {
      std::string word = name();
      expect("=");
      keywords.push_back({std::move(word), expression()});
    } else {
      of.push_back(expression());
      if (at("for")) {  // all(… for …): the same as of the list
        of.back() = comprehension(at_argument, Kind::ListComp, std::move(of.back()), nullptr);
      }
    }
    if (!at(")")) {
      expect(",");
    }
  }
  ExprPtr out = make(Kind::Call, begin, std::move(of));
  for (const Keyword& keyword : keywords) {
    out->depth = std::max<uint16_t>(out->depth, keyword.value->depth + 1);
  }
  if (out->depth > max_depth) {
    fail_at(text_, out->span, "this expression is nested too deep");
  }
  out->keywords = std::move(keywords);
  return out;
}

ExprPtr Parser::subscript(uint32_t begin, ExprPtr base) {
  std::vector<ExprPtr> of;
  of.push_back(std::move(base));
  bool comma = false;
  while (!accept("]")) {
    of.push_back(index());
    if (!at("]")) {
      expect(",");
      comma = true;
    }
  }
  if (of.size() == 1) {
    fail("expected an index here");
  }
  ExprPtr out = make(Kind::Subscript, begin, std::move(of));
  out->text = comma ? "," : "";
  return out;
}

ExprPtr Parser::index() {
  const uint32_t begin = token().span.begin;
  const auto ends = [&] { return at(":") || at("]") || at(","); };
  ExprPtr parts[3];
  if (!ends()) {
    parts[0] = expression();
  }
  if (!accept(":")) {
    if (!parts[0]) {
      fail("expected an index here");
    }
    return std::move(parts[0]);
  }
  if (!ends()) {
    parts[1] = expression();
  }
  if (accept(":") && !ends()) {
    parts[2] = expression();
  }
  return join(Kind::Slice, begin, "", std::move(parts[0]), std::move(parts[1]),
              std::move(parts[2]));
}

// The rest of [item for …] or {item: value for …}, up to the bracket.
ExprPtr Parser::comprehension(uint32_t begin, Kind kind, ExprPtr item, ExprPtr value) {
  std::vector<ExprPtr> of;
  of.push_back(std::move(item));
  if (value) {
    of.push_back(std::move(value));
  }
  while (at("for") || at("if")) {
    const uint32_t clause = token().span.begin;
    if (accept("if")) {
      of.push_back(or_expression());
      continue;
    }
    expect("for");
    ExprPtr target = targets("in");
    expect("in");
    ExprPtr over = or_expression();
    of.push_back(join(Kind::CompFor, clause, "", std::move(target), std::move(over)));
  }
  if (at("async")) {
    fail("an asynchronous comprehension cannot be compiled");
  }
  return make(kind, begin, std::move(of));
}

ExprPtr Parser::parenthesized(uint32_t begin) {
  std::vector<ExprPtr> of;
  bool comma = false;
  while (!accept(")")) {
    if (at("yield")) {
      fail("a generator cannot be compiled");
    }
    of.push_back(starred_expression());
    if (of.size() == 1 && at("for")) {  // a generator is the list of what it gives
      ExprPtr out = comprehension(begin, Kind::ListComp, std::move(of[0]), nullptr);
      expect(")");
      return out;
    }
    if (!at(")")) {
      expect(",");
      comma = true;
    }
  }
  if (of.size() == 1 && !comma) {
    return std::move(of[0]);
  }
  return make(Kind::Tuple, begin, std::move(of));
}

ExprPtr Parser::starred_expression() {
  const uint32_t begin = token().span.begin;
  if (accept("*")) {
    ExprPtr value = binary(1);
    return join(Kind::Starred, begin, "", std::move(value));
  }
  return expression();
}

ExprPtr Parser::list(uint32_t begin) {
  std::vector<ExprPtr> of;
  while (!accept("]")) {
    of.push_back(starred_expression());
    if (of.size() == 1 && at("for")) {
      ExprPtr out = comprehension(begin, Kind::ListComp, std::move(of[0]), nullptr);
      expect("]");
      return out;
    }
    if (!at("]")) {
      expect(",");
    }
  }
  return make(Kind::List, begin, std::move(of));
}

ExprPtr Parser::dict(uint32_t begin) {
  std::vector<ExprPtr> of;
  while (!accept("}")) {
    if (at("**")) {
      fail("a dict inside of a dict's text cannot be compiled: call update()");
    }
    of.push_back(expression());
    if (!at(":")) {
      fail("a set cannot be compiled: use a list or a dict");
    }
    expect(":");
    of.push_back(expression());
    if (of.size() == 2 && at("for")) {
      ExprPtr out = comprehension(begin, Kind::DictComp, std::move(of[0]), std::move(of[1]));
      expect("}");
      return out;
    }
    if (!at("}")) {
      expect(",");
    }
  }
  return make(Kind::Dict, begin, std::move(of));
}

ExprPtr Parser::atom() {
  const Nested nested(*this);
  const Token t = token();
  const uint32_t begin = t.span.begin;
  switch (t.kind) {
    case Token::Kind::Int:
    case Token::Kind::Float:
    case Token::Kind::Imaginary:
      next_++;
      return number(t);
    case Token::Kind::String:
      return strings();
    case Token::Kind::Operator:
      if (accept("(")) {
        return parenthesized(begin);
      }
      if (accept("[")) {
        return list(begin);
      }
      if (accept("{")) {
        return dict(begin);
      }
      if (accept("...")) {
        return make(Kind::Ellipsis, begin);
      }
      break;
    case Token::Kind::Name:
      return name_or_constant();
    default:
      break;
  }
  fail("expected an expression here");
}

ExprPtr Parser::name_or_constant() {
  const uint32_t begin = token().span.begin;
  constexpr std::pair<std::string_view, Kind> constants[] = {
      {"True", Kind::True}, {"False", Kind::False}, {"None", Kind::None}};
  for (const auto& [text, kind] : constants) {
    if (accept(text)) {
      return make(kind, begin);
    }
  }
  if (at("await") || at("yield")) {
    fail(str("'", view(token().span), "' cannot be compiled"));
  }
  if (accept("Ellipsis")) {
    return make(Kind::Ellipsis, begin);
  }
  const std::string text = name();
  return join(Kind::Name, begin, text);
}

}  // namespace rushlight::script
