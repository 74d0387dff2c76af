// The tokens of a text of Python.
#pragma once

#include "script/ast.h"

namespace rushlight::script {

struct Token {
  enum class Kind : uint8_t {
    Name,  // keywords as well
    Int,
    Float,
    Imaginary,
    String,  // with prefix and quotes
    Operator,
    Newline,
    Indent,
    Dedent,
    End,
  };
  Kind kind;
  Span span;
};

struct Tokens {
  std::vector<Token> tokens;
  std::vector<Span> type_comments;  // what follows "# type:"
};

// Of the bytes of a span; positions count from the beginning of the text. `inside`: newlines and
// indentation mean nothing, as between brackets.
Tokens tokens_of(const Text& text, Span span, bool inside);

// What a string token stands for, without prefix, quotes and escapes; `raw` keeps backslashes.
std::string unescape(const Text& text, Span inner, bool raw);

}  // namespace rushlight::script
