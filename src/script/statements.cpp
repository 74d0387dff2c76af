// Tokens to trees: statements, functions and classes.
#include <algorithm>

#include "script/parser.h"

namespace rushlight::script {

using Kind = Expr::Kind;

ExprPtr Parser::only_expression() {
  ExprPtr out = expression_list();
  if (token().kind != Token::Kind::End) {
    fail("expected the end of the expression here");
  }
  return out;
}

// One expression, or a tuple of several without brackets.
ExprPtr Parser::expression_list() {
  const uint32_t begin = token().span.begin;
  ExprPtr first = starred_expression();
  if (!at(",")) {
    return first;
  }
  std::vector<ExprPtr> of;
  of.push_back(std::move(first));
  while (accept(",") && starts_expression()) {
    of.push_back(starred_expression());
  }
  return make(Kind::Tuple, begin, std::move(of));
}

bool Parser::starts_expression() const {
  const Token& t = token();
  if (t.kind == Token::Kind::Operator) {
    return std::string_view("([{-+~*...").find(view(t.span)) != std::string_view::npos;
  }
  return t.kind != Token::Kind::Newline && t.kind != Token::Kind::End &&
         t.kind != Token::Kind::Dedent && !at("in");
}

// What a loop assigns to, before the word `end`.
ExprPtr Parser::targets(std::string_view end) {
  const uint32_t begin = token().span.begin;
  std::vector<ExprPtr> of;
  bool comma = false;
  while (!at(end)) {
    const uint32_t first = token().span.begin;
    if (accept("*")) {
      ExprPtr rest = postfix();
      of.push_back(join(Kind::Starred, first, "", std::move(rest)));
    } else {
      of.push_back(postfix());
    }
    if (!accept(",")) {
      break;
    }
    comma = true;
  }
  if (of.size() == 1 && !comma) {
    return std::move(of[0]);
  }
  return make(Kind::Tuple, begin, std::move(of));
}

Stmt Parser::stmt(Stmt::Kind kind, uint32_t begin) const {
  if (++nodes_ > max_nodes) {
    fail("this text is too long to be a program");
  }
  Stmt out;
  out.kind = kind;
  out.span = {begin, std::max(begin, last_end())};
  return out;
}

Body Parser::program() {
  Body out;
  while (token().kind != Token::Kind::End) {
    statement(out);
  }
  return out;
}

// The statements behind a colon: on the same line, or a block of its own.
Body Parser::block() {
  const Nested nested(*this);
  expect(":");
  Body out;
  if (token().kind != Token::Kind::Newline) {
    simple_statements(out);
    return out;
  }
  next_++;
  if (token().kind != Token::Kind::Indent) {
    fail("expected an indented block here");
  }
  next_++;
  while (token().kind != Token::Kind::Dedent && token().kind != Token::Kind::End) {
    statement(out);
  }
  next_ += token().kind == Token::Kind::Dedent ? 1 : 0;
  return out;
}

void Parser::statement(Body& out) {
  const uint32_t begin = token().span.begin;
  if (token().kind == Token::Kind::Indent) {
    fail("this line is indented without a reason");
  }
  for (const std::string_view word : {"try", "async", "global", "nonlocal", "import", "from"}) {
    if (at(word)) {
      fail(str("'", word, "' cannot be compiled"));
    }
  }
  if (accept("if")) {
    out.push_back(if_statement(begin));
  } else if (accept("while")) {
    Stmt loop = stmt(Stmt::Kind::While, begin);
    loop.value = expression();
    loop.body = block();
    out.push_back(std::move(loop));
  } else if (accept("for")) {
    out.push_back(for_statement(begin));
  } else if (accept("with")) {
    out.push_back(with_statement(begin));
  } else if (at("def") || at("class") || at("@")) {
    std::vector<ExprPtr> decorators;
    while (accept("@")) {
      decorators.push_back(expression());
      next_ += token().kind == Token::Kind::Newline ? 1 : 0;
    }
    out.push_back(accept("class") ? class_definition(begin, std::move(decorators))
                                  : definition(begin, std::move(decorators)));
  } else {
    simple_statements(out);
    return;
  }
  if (at("else")) {
    fail("an 'else' of a loop cannot be compiled");
  }
}

Stmt Parser::if_statement(uint32_t begin) {
  const Nested nested(*this);
  ExprPtr condition = expression();
  Stmt out = stmt(Stmt::Kind::If, begin);
  out.value = std::move(condition);
  out.body = block();
  const uint32_t next = token().span.begin;
  if (accept("elif")) {
    out.otherwise.push_back(if_statement(next));
  } else if (accept("else")) {
    out.otherwise = block();
  }
  return out;
}

Stmt Parser::for_statement(uint32_t begin) {
  ExprPtr target = targets("in");
  expect("in");
  ExprPtr value = expression_list();
  Stmt out = stmt(Stmt::Kind::For, begin);
  out.targets.push_back(std::move(target));
  out.value = std::move(value);
  out.body = block();
  return out;
}

Stmt Parser::with_statement(uint32_t begin) {
  std::vector<ExprPtr> contexts;
  do {
    contexts.push_back(expression());
    contexts.push_back(accept("as") ? postfix() : nullptr);
  } while (accept(","));
  Stmt out = stmt(Stmt::Kind::With, begin);
  out.targets = std::move(contexts);
  out.body = block();
  return out;
}

void Parser::simple_statements(Body& out) {
  do {
    if (token().kind == Token::Kind::Newline) {
      break;
    }
    out.push_back(simple_statement());
  } while (accept(";"));
  if (token().kind != Token::Kind::End) {
    if (token().kind != Token::Kind::Newline) {
      fail("expected the end of the line here");
    }
    next_++;
  }
}

Stmt Parser::simple_statement() {
  const uint32_t begin = token().span.begin;
  constexpr std::pair<std::string_view, Stmt::Kind> words[] = {
      {"pass", Stmt::Kind::Pass}, {"break", Stmt::Kind::Break}, {"continue", Stmt::Kind::Continue}};
  for (const auto& [word, kind] : words) {
    if (accept(word)) {
      return stmt(kind, begin);
    }
  }
  if (accept("return")) {
    ExprPtr value = starts_expression() ? expression_list() : nullptr;
    Stmt out = stmt(Stmt::Kind::Return, begin);
    out.value = std::move(value);
    return out;
  }
  if (accept("raise")) {
    ExprPtr value = starts_expression() ? expression() : nullptr;
    if (accept("from")) {
      expression();
    }
    Stmt out = stmt(Stmt::Kind::Raise, begin);
    out.value = std::move(value);
    return out;
  }
  if (accept("assert")) {
    ExprPtr value = expression();
    ExprPtr message = accept(",") ? expression() : nullptr;
    Stmt out = stmt(Stmt::Kind::Assert, begin);
    out.value = std::move(value);
    out.targets.push_back(std::move(message));
    return out;
  }
  if (accept("del")) {
    ExprPtr target = expression_list();
    Stmt out = stmt(Stmt::Kind::Delete, begin);
    out.targets.push_back(std::move(target));
    return out;
  }
  return assignment(begin);
}

Stmt Parser::assignment(uint32_t begin) {
  ExprPtr value = expression_list();
  constexpr std::string_view augmented[] = {
      "+=", "-=", "*=", "/=", "//=", "%=", "**=", ">>=", "<<=", "&=", "|=", "^=", "@="};
  for (const std::string_view op : augmented) {
    if (accept(op)) {
      ExprPtr by = expression_list();
      Stmt out = stmt(Stmt::Kind::Augmented, begin);
      out.text = op.substr(0, op.size() - 1);
      out.targets.push_back(std::move(value));
      out.value = std::move(by);
      return out;
    }
  }
  ExprPtr annotation;
  std::vector<ExprPtr> targets;
  const bool annotated = accept(":");
  if (annotated) {
    annotation = expression();
    targets.push_back(std::move(value));
    value = accept("=") ? expression_list() : nullptr;
  } else {
    while (accept("=")) {
      targets.push_back(std::move(value));
      value = expression_list();
    }
  }
  const bool assigns = annotated || !targets.empty();
  Stmt out = stmt(assigns ? Stmt::Kind::Assign : Stmt::Kind::Expression, begin);
  if (assigns && !annotated) {
    annotation = type_comment(last_end(), token().span.begin);
  }
  out.targets = std::move(targets);
  out.annotation = std::move(annotation);
  out.value = std::move(value);
  return out;
}

// The type of a comment between two places; null where there is none.
ExprPtr Parser::type_comment(uint32_t begin, uint32_t end) {
  for (const Span& comment : tokens_.type_comments) {
    if (comment.begin >= begin && comment.end <= end) {
      return Parser(text_, comment, true).only_expression();
    }
  }
  return nullptr;
}

// "(int, Tensor) -> Tensor".
ExprPtr Parser::signature_comment(Span comment) {
  Parser inner(text_, comment, true);
  const uint32_t begin = inner.token().span.begin;
  std::vector<ExprPtr> of;
  inner.expect("(");
  std::vector<ExprPtr> arguments;
  while (!inner.accept(")")) {
    arguments.push_back(inner.expression());
    if (!inner.at(")")) {
      inner.expect(",");
    }
  }
  of.push_back(inner.make(Expr::Kind::Tuple, begin, std::move(arguments)));
  // Without a result the statements say it.
  of.push_back(inner.accept("->") ? inner.only_expression() : nullptr);
  return make(Expr::Kind::Tuple, begin, std::move(of));
}

Stmt Parser::definition(uint32_t begin, std::vector<ExprPtr> decorators) {
  const Nested nested(*this);
  expect("def");
  auto function = std::make_unique<Function>();
  function->decorators = std::move(decorators);
  function->name = name();
  function->parameters = parameters();
  if (accept("->")) {
    function->returns = expression();
  }
  Stmt out = stmt(Stmt::Kind::Def, begin);
  const size_t colon = next_;
  function->body = block();
  // Between the colon and the first statement a comment may say the types.
  const uint32_t from = tokens_.tokens[colon].span.begin;
  size_t first = colon + 1;
  while (first + 1 < tokens_.tokens.size() && (tokens_.tokens[first].kind == Token::Kind::Newline ||
                                               tokens_.tokens[first].kind == Token::Kind::Indent)) {
    first++;
  }
  const uint32_t to = tokens_.tokens[first].span.begin;
  for (const Span& comment : tokens_.type_comments) {
    const size_t text = text_->text.find_first_not_of(' ', comment.begin);
    if (comment.begin >= from && comment.end <= to && text_->text[text] == '(') {
      function->type_comment = signature_comment(comment);
      break;
    }
  }
  out.function = std::move(function);
  return out;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> out;
  bool keyword_only = false;
  expect("(");
  while (!accept(")")) {
    if (accept("/")) {
      // All before it are passed by position alone, which a call that names them breaks nowhere.
    } else if (at("**") || (at("*") && view(tokens_.tokens[next_ + 1].span) != ",")) {
      fail("a function that takes any number of arguments cannot be compiled");
    } else if (accept("*")) {
      keyword_only = true;
    } else {
      Parameter one;
      const uint32_t begin = token().span.begin;
      one.name = name();
      one.keyword_only = keyword_only;
      if (accept(":")) {
        one.annotation = expression();
      }
      if (accept("=")) {
        one.fallback = expression();
      }
      one.span = {begin, last_end()};
      out.push_back(std::move(one));
    }
    const uint32_t after = last_end();
    if (!at(")")) {
      expect(",");
    }
    if (!out.empty() && !out.back().annotation) {
      out.back().annotation = type_comment(after, token().span.begin);
    }
  }
  return out;
}

Stmt Parser::class_definition(uint32_t begin, std::vector<ExprPtr> decorators) {
  const Nested nested(*this);
  auto defined = std::make_unique<Class>();
  defined->decorators = std::move(decorators);
  defined->name = name();
  if (accept("(")) {
    while (!accept(")")) {
      defined->bases.push_back(expression());
      if (!at(")")) {
        expect(",");
      }
    }
  }
  Stmt out = stmt(Stmt::Kind::ClassDef, begin);
  defined->body = block();
  out.defined = std::move(defined);
  return out;
}

Body parse(const Text& text) {
  return Parser(text, {0, static_cast<uint32_t>(text->text.size())}, false).program();
}

ExprPtr parse_expression(const Text& text) {
  const Span all = {0, static_cast<uint32_t>(text->text.size())};
  return Parser(text, all, true).only_expression();
}

void fail_at(const Text& text, Span span, const std::string& what) {
  throw Error(str(what, ":\n", range_of(text, span).excerpt()));
}

}  // namespace rushlight::script
