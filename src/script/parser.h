// The parser by recursive descent; its pieces are in parser.cpp and statements.cpp.
#pragma once

#include "script/lexer.h"

namespace rushlight::script {

class Parser {
 public:
  Parser(const Text& text, Span span, bool inside)
      : text_(text), tokens_(tokens_of(text, span, inside)) {}
  Body program();
  ExprPtr only_expression();

 private:
  static constexpr int max_nesting = 200;      // of brackets and blocks
  static constexpr uint16_t max_depth = 1000;  // of trees, which chains of operators make deep

  static constexpr int max_nodes = 1'000'000;  // no program that people write has as many

  // Counts how deep the parser calls itself, so that no text overflows the stack.
  struct Nested {
    explicit Nested(Parser& parser) : count(parser.nesting_) {
      if (++count > 4 * max_nesting) {
        count = 0;
        parser.fail("this text is nested too deep");
      }
    }
    ~Nested() { count--; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    int& count;
  };

  // What is next.
  const Token& token() const { return tokens_.tokens[next_]; }
  uint32_t last_end() const { return next_ == 0 ? 0 : tokens_.tokens[next_ - 1].span.end; }
  std::string_view view(Span span) const;
  bool at(std::string_view word) const;
  bool accept(std::string_view word);
  void expect(std::string_view word);
  std::string name();
  [[noreturn]] void fail(const std::string& what) const;

  // Expressions.
  ExprPtr make(Expr::Kind kind, uint32_t begin, std::vector<ExprPtr> of = {}) const;
  template <class... Parts>
  ExprPtr join(Expr::Kind kind, uint32_t begin, std::string_view text, Parts... parts) const {
    std::vector<ExprPtr> of;
    (of.push_back(std::move(parts)), ...);
    ExprPtr out = make(kind, begin, std::move(of));
    out->text = text;
    return out;
  }
  ExprPtr expression();
  ExprPtr or_expression();
  ExprPtr and_expression();
  ExprPtr not_expression();
  std::string_view accept_comparison();
  ExprPtr comparison();
  ExprPtr binary(int least);
  ExprPtr unary();
  ExprPtr postfix();
  ExprPtr call(uint32_t begin, ExprPtr function);
  ExprPtr subscript(uint32_t begin, ExprPtr base);
  ExprPtr index();
  ExprPtr comprehension(uint32_t begin, Expr::Kind kind, ExprPtr item, ExprPtr value);
  ExprPtr parenthesized(uint32_t begin);
  ExprPtr starred_expression();
  ExprPtr list(uint32_t begin);
  ExprPtr dict(uint32_t begin);
  ExprPtr atom();
  ExprPtr name_or_constant();
  ExprPtr number(const Token& t);
  ExprPtr strings();
  void add_pieces(Span inner, bool raw, std::string& text, std::vector<ExprPtr>& pieces);
  ExprPtr expression_list();
  bool starts_expression() const;
  ExprPtr targets(std::string_view end);

  // Statements.
  void statement(Body& out);
  void simple_statements(Body& out);
  Stmt simple_statement();
  Stmt assignment(uint32_t begin);
  Stmt if_statement(uint32_t begin);
  Stmt for_statement(uint32_t begin);
  Stmt with_statement(uint32_t begin);
  Stmt definition(uint32_t begin, std::vector<ExprPtr> decorators);
  Stmt class_definition(uint32_t begin, std::vector<ExprPtr> decorators);
  std::vector<Parameter> parameters();
  Body block();
  Stmt stmt(Stmt::Kind kind, uint32_t begin) const;
  ExprPtr type_comment(uint32_t begin, uint32_t end);
  ExprPtr signature_comment(Span comment);

  Text text_;
  Tokens tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
  mutable int nodes_ = 0;
};

}  // namespace rushlight::script
