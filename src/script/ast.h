// The tree of TorchScript's text: the statements and expressions of Python that the language has.
// The same tree stands for the files of archives and for the source of Python functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rushlight/graph.h>

namespace rushlight::script {

// Bytes of the text, from `begin` to before `end`.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// A text with its name and the number of its first line, for messages.
using Text = std::shared_ptr<const graph::Source>;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;  // "" for **x
  ExprPtr value;
};

struct Expr {
  enum class Kind : uint8_t {
    Name,       // text
    Int,        // integer
    Float,      // number
    Imaginary,  // number
    String,     // text, with escapes replaced
    True,
    False,
    None,
    Ellipsis,
    Attribute,   // text of of[0]
    Call,        // of[0] is called with the rest and the keywords
    Subscript,   // of[0] by the rest, which are several where there are commas
    Slice,       // start, stop, step; null where it is left out
    Tuple,       // of
    List,        // of
    Dict,        // keys and values by turns
    ListComp,    // item, and the loops and conditions behind it in their order
    DictComp,    // key, value, loops and conditions
    CompFor,     // a loop of a comprehension: target, iterable
    Unary,       // text: "-", "+", "~", "not"
    Binary,      // text: "+", "**", …, of two
    Compare,     // text: "<", "is not", …, of two; chains are And of them
    And,         // of two
    Or,          // of two
    IfElse,      // condition, then, else
    Starred,     // *of[0]
    FormatText,  // an f-string: its pieces, of which strings are text
  };
  Kind kind;
  Span span;
  uint16_t depth = 1;
  std::string text = {};
  int64_t integer = 0;
  double number = 0;
  std::vector<ExprPtr> of = {};
  std::vector<Keyword> keywords = {};

  bool is(Kind k) const { return kind == k; }
  bool is_name(std::string_view name) const { return kind == Kind::Name && text == name; }
};

struct Parameter {
  std::string name;
  Span span;
  ExprPtr annotation;  // null where there is none, as is
  ExprPtr fallback;
  bool keyword_only = false;
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Function {
  std::string name;
  std::vector<ExprPtr> decorators;
  std::vector<Parameter> parameters;
  ExprPtr returns;
  ExprPtr type_comment;  // "(int, Tensor) -> Tensor" as a tuple of the tuple and the result
  std::vector<Stmt> body;
};

struct Class {
  std::string name;
  std::vector<ExprPtr> decorators;
  std::vector<ExprPtr> bases;
  std::vector<Stmt> body;
};

struct Stmt {
  enum class Kind : uint8_t {
    Expression,  // value
    Assign,      // targets = value; with an annotation x: T = value, or x: T without a value
    Augmented,   // targets[0] text value, where text is "+", "*", …
    If,          // value; body, otherwise
    While,       // value; body
    For,         // targets[0] in value; body
    Return,      // value or null
    Raise,       // value or null
    Assert,      // value, targets[0] is the message
    Pass,
    Break,
    Continue,
    Delete,  // targets
    With,    // targets are contexts and what they are bound to, or null, by turns; body
    Def,     // function
    ClassDef,
  };
  Kind kind;
  Span span;
  std::string text = {};
  std::vector<ExprPtr> targets = {};
  ExprPtr annotation = {};
  ExprPtr value = {};
  Body body = {};
  Body otherwise = {};
  std::unique_ptr<Function> function = {};
  std::unique_ptr<Class> defined = {};
};

// All statements of a text. RuntimeError names the construct that the language lacks, and its line.
RL_API Body parse(const Text& text);
// One expression, such as a type.
ExprPtr parse_expression(const Text& text);

inline graph::SourceRange range_of(const Text& text, Span span) {
  return {text, span.begin, span.end};
}
// Throws a RuntimeError that says what and where.
[[noreturn]] void fail_at(const Text& text, Span span, const std::string& what);

}  // namespace rushlight::script
