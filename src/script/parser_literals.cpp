// Tokens to trees: numbers and strings, with the expressions that strings hold.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "script/parser.h"

namespace rushlight::script {

using Kind = Expr::Kind;

ExprPtr Parser::number(const Token& t) {
  std::string digits(view(t.span));
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  if (t.kind != Token::Kind::Int) {
    ExprPtr out = make(t.kind == Token::Kind::Float ? Kind::Float : Kind::Imaginary, t.span.begin);
    if (t.kind == Token::Kind::Imaginary) {
      digits.pop_back();
    }
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out->number);
    if (error == std::errc::result_out_of_range) {
      out->number = std::strtod(digits.c_str(), nullptr);  // an infinity, or 0
    }
    return out;
  }
  ExprPtr out = make(Kind::Int, t.span.begin);
  int base = 10;
  size_t first = 0;
  if (digits.size() > 1 && digits[0] == '0' && !(digits[1] >= '0' && digits[1] <= '9')) {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
    first = 2;
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data() + first, digits.data() + digits.size(), value, base);
  // -2**63 is a number, and its sign comes later.
  if (error != std::errc() || end != digits.data() + digits.size() || value > uint64_t{1} << 63) {
    fail_at(text_, t.span, "this number is no integer of 64 bits");
  }
  out->integer = static_cast<int64_t>(value);
  return out;
}

// ---- strings ----

// Strings that follow each other are one.
ExprPtr Parser::strings() {
  const uint32_t begin = token().span.begin;
  std::vector<ExprPtr> pieces;
  std::string text;
  bool formatted = false;
  while (token().kind == Token::Kind::String) {
    const Span span = token().span;
    const std::string_view all = view(span);
    const size_t quote = all.find_first_of("'\"");
    const std::string_view prefix = all.substr(0, quote);
    const bool triple =
        all.size() >= quote + 6 && all[quote + 1] == all[quote] && all[quote + 2] == all[quote];
    const uint32_t skip = triple ? 3 : 1;
    const Span inner = {span.begin + static_cast<uint32_t>(quote) + skip, span.end - skip};
    const bool raw = prefix.find_first_of("rR") != std::string_view::npos;
    if (prefix.find_first_of("bB") != std::string_view::npos) {
      fail("bytes cannot be compiled: use a string");
    }
    next_++;
    if (prefix.find_first_of("fF") != std::string_view::npos) {
      formatted = true;
      add_pieces(inner, raw, text, pieces);
    } else {
      text += unescape(text_, inner, raw);
    }
  }
  if (!formatted) {
    return join(Kind::String, begin, text);
  }
  if (!text.empty()) {
    pieces.push_back(join(Kind::String, begin, text));
  }
  return make(Kind::FormatText, begin, std::move(pieces));
}

// The pieces of an f-string; `text` is the text before the next expression.
void Parser::add_pieces(Span inner, bool raw, std::string& text, std::vector<ExprPtr>& pieces) {
  const std::string& bytes = text_->text;
  uint32_t at = inner.begin;
  while (at < inner.end) {
    const uint32_t first = at;
    while (at < inner.end && bytes[at] != '{' && bytes[at] != '}') {
      at++;
    }
    text += unescape(text_, {first, at}, raw);
    if (at >= inner.end) {
      return;
    }
    if (at + 1 < inner.end && bytes[at + 1] == bytes[at]) {
      text += bytes[at];
      at += 2;
      continue;
    }
    const uint32_t open = at++;
    uint32_t depth = 0;
    for (; at < inner.end && (depth > 0 || bytes[at] != '}'); at++) {
      depth += bytes[at] == '(' || bytes[at] == '[' || bytes[at] == '{' ? 1 : 0;
      depth -= depth > 0 && (bytes[at] == ')' || bytes[at] == ']' || bytes[at] == '}') ? 1 : 0;
      if (depth == 0 && (bytes[at] == ':' || (bytes[at] == '!' && bytes[at + 1] != '='))) {
        fail_at(text_, {open, at + 1},
                "formats and conversions in f-strings cannot be compiled: write the value alone");
      }
    }
    if (at >= inner.end || bytes[open] == '}') {
      fail_at(text_, {open, open + 1}, "a brace of this f-string has no partner");
    }
    if (!text.empty()) {
      pieces.push_back(join(Kind::String, open, text));
      text.clear();
    }
    Parser piece(text_, {open + 1, at}, true);
    piece.nesting_ = nesting_;
    pieces.push_back(piece.only_expression());
    at++;
  }
}

}  // namespace rushlight::script
