// Text to tokens.
#include "script/lexer.h"

#include <algorithm>

namespace rushlight::script {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(const Text& text, Span span, bool inside)
      : text_(text), bytes_(text->text), at_(span.begin), end_(span.end), inside_(inside) {}

  Tokens run() {
    bool fresh_line = !inside_;
    while (true) {
      if (fresh_line && brackets_.empty() && !read_indentation()) {
        break;
      }
      fresh_line = false;
      skip_spaces();
      if (at_ >= end_) {
        break;
      }
      if (peek() == '\n') {
        at_++;
        if (!inside_ && brackets_.empty()) {
          put(Token::Kind::Newline, at_ - 1);
          fresh_line = true;
        }
        continue;
      }
      read_token();
    }
    finish();
    return std::move(out_);
  }

 private:
  char peek(uint32_t ahead = 0) const { return at_ + ahead < end_ ? bytes_[at_ + ahead] : '\0'; }
  void put(Token::Kind kind, uint32_t begin) { out_.tokens.push_back({kind, {begin, at_}}); }
  [[noreturn]] void fail(uint32_t begin, const std::string& what) const {
    fail_at(text_, {begin, std::min(end_, begin + 1)}, what);
  }

  void finish() {
    if (!brackets_.empty()) {
      fail(brackets_.back(), "this bracket is never closed");
    }
    if (!inside_ && !out_.tokens.empty() && out_.tokens.back().kind != Token::Kind::Newline) {
      put(Token::Kind::Newline, at_);
    }
    for (; indents_.size() > 1; indents_.pop_back()) {
      put(Token::Kind::Dedent, at_);
    }
    put(Token::Kind::End, at_);
  }

  // At the beginning of a line: whether a line with something in it follows.
  bool read_indentation() {
    while (at_ < end_) {
      const uint32_t begin = at_;
      uint32_t width = 0;
      for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; at_++) {
        width = peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
      }
      if (peek() == '#') {
        skip_comment();
      }
      if (peek() == '\r') {
        at_++;
      }
      if (peek() == '\n') {
        at_++;
        continue;
      }
      if (at_ >= end_) {
        return false;
      }
      set_indentation(width, begin);
      return true;
    }
    return false;
  }

  void set_indentation(uint32_t width, uint32_t begin) {
    if (width > indents_.back()) {
      if (indents_.size() > 100) {
        fail(begin, "blocks are nested too deep");
      }
      indents_.push_back(width);
      put(Token::Kind::Indent, begin);
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      put(Token::Kind::Dedent, at_);
    }
    if (width != indents_.back()) {
      fail(begin, "this line is indented like no block around it");
    }
  }

  void skip_spaces() {
    while (at_ < end_) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        at_++;
      } else if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
      } else if (c == '\\' && peek(1) == '\r' && peek(2) == '\n') {
        at_ += 3;
      } else if (c == '#') {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    const uint32_t begin = at_;
    while (at_ < end_ && peek() != '\n') {
      at_++;
    }
    std::string_view comment(bytes_.data() + begin + 1, at_ - begin - 1);
    const size_t first = comment.find_first_not_of(' ');
    if (first != std::string_view::npos && comment.substr(first).starts_with("type:")) {
      const uint32_t inner = begin + 1 + static_cast<uint32_t>(first) + 5;
      std::string_view rest(bytes_.data() + inner, at_ - inner);
      const size_t word = rest.find_first_not_of(' ');
      if (word != std::string_view::npos && !rest.substr(word).starts_with("ignore")) {
        out_.type_comments.push_back({inner, at_});
      }
    }
  }

  void read_token() {
    const uint32_t begin = at_;
    const char c = peek();
    if (starts_name(c)) {
      while (at_ < end_ && continues_name(peek())) {
        at_++;
      }
      if ((peek() == '"' || peek() == '\'') && is_prefix(begin)) {
        read_string(begin);
        return;
      }
      put(Token::Kind::Name, begin);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      read_number(begin);
    } else if (c == '"' || c == '\'') {
      read_string(begin);
    } else {
      read_operator(begin);
    }
  }

  bool is_prefix(uint32_t begin) const {
    const std::string_view prefix(bytes_.data() + begin, at_ - begin);
    return prefix.size() <= 2 && prefix.find_first_not_of("rRbBfFuU") == std::string_view::npos;
  }

  void read_string(uint32_t begin) {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (true) {
      if (at_ >= end_ || (!triple && peek() == '\n')) {
        fail(begin, "this string has no end");
      }
      if (peek() == '\\') {
        at_ += 2;  // in a raw string, too, a backslash keeps a quote from ending it
        continue;
      }
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        at_ = std::min(at_, end_);
        put(Token::Kind::String, begin);
        return;
      }
      at_++;
    }
  }

  void skip_digits() {
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) {
      at_++;
    }
  }

  void read_number(uint32_t begin) {
    Token::Kind kind = Token::Kind::Int;
    if (peek() == '0' && (peek(1) | 0x20) >= 'a') {
      at_++;
      const char base = static_cast<char>(peek() | 0x20);
      if (base == 'x' || base == 'o' || base == 'b') {
        at_++;
        while (continues_name(peek())) {
          at_++;
        }
        put(kind, begin);
        return;
      }
    }
    skip_digits();
    if (peek() == '.') {
      kind = Token::Kind::Float;
      at_++;
      skip_digits();
    }
    if ((peek() | 0x20) == 'e' &&
        (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
      kind = Token::Kind::Float;
      at_ += 2;
      skip_digits();
    }
    if ((peek() | 0x20) == 'j') {
      kind = Token::Kind::Imaginary;
      at_++;
    }
    put(kind, begin);
  }

  void read_operator(uint32_t begin) {
    constexpr std::string_view known[] = {"**=", "//=", ">>=", "<<=", "...", "->", "**", "//",
                                          "<<",  ">>",  "<=",  ">=",  "==",  "!=", "+=", "-=",
                                          "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":="};
    const std::string_view rest(bytes_.data() + at_, end_ - at_);
    for (const std::string_view op : known) {
      if (rest.starts_with(op)) {
        at_ += static_cast<uint32_t>(op.size());
        put(Token::Kind::Operator, begin);
        return;
      }
    }
    const char c = peek();
    if (std::string_view("+-*/%@&|^~<>()[]{},:.;=").find(c) == std::string_view::npos) {
      fail(begin, "this character means nothing in a program");
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets_.push_back(at_);
    } else if (c == ')' || c == ']' || c == '}') {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty() || bytes_[brackets_.back()] != opening) {
        fail(begin, "this bracket closes none");
      }
      brackets_.pop_back();
    }
    at_++;
    put(Token::Kind::Operator, begin);
  }

  Text text_;
  const std::string& bytes_;
  uint32_t at_;
  uint32_t end_;
  bool inside_;
  Tokens out_;
  std::vector<uint32_t> indents_ = {0};
  std::vector<uint32_t> brackets_;
};

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | ((code >> 18) & 7));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The number of up to `most` digits at `at`, which moves behind them; -1 where there is none.
int64_t digits_at(const std::string& bytes, uint32_t& at, uint32_t end, uint32_t most, int base) {
  int64_t value = -1;
  for (uint32_t n = 0; n < most && at < end; n++, at++) {
    const char c = bytes[at];
    const int digit = is_digit(c)                              ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) {
      break;
    }
    value = std::max<int64_t>(value, 0) * base + digit;
  }
  return value;
}

}  // namespace

Tokens tokens_of(const Text& text, Span span, bool inside) {
  return Lexer(text, span, inside).run();
}

std::string unescape(const Text& text, Span inner, bool raw) {
  const std::string& bytes = text->text;
  std::string out;
  for (uint32_t at = inner.begin; at < inner.end;) {
    const char c = bytes[at++];
    if (c != '\\' || raw || at >= inner.end) {
      out += c;
      continue;
    }
    const char e = bytes[at];
    constexpr std::string_view names = "abfnrtv\\'\"";
    constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    const size_t place = names.find(e);
    if (place != std::string_view::npos) {
      out += meanings[place];
      at++;
    } else if (e == '\n') {
      at++;
    } else if (e >= '0' && e <= '7') {
      out += static_cast<char>(digits_at(bytes, at, inner.end, 3, 8) & 0xff);
    } else if (e == 'x' || e == 'u' || e == 'U') {
      at++;
      const int64_t code = digits_at(bytes, at, inner.end, e == 'x' ? 2 : e == 'u' ? 4 : 8, 16);
      if (code < 0 || code > 0x10ffff) {
        fail_at(text, inner, "a string holds an escape that names no character");
      }
      append_utf8(out, static_cast<uint32_t>(code));
    } else {
      out += '\\';
    }
  }
  return out;
}

}  // namespace rushlight::script
