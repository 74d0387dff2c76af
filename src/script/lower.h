// Trees to graphs: each assignment makes a value, and what branches and loops assign comes out of
// their nodes. The pieces are in lower.cpp (statements), flow.cpp (branches and loops), exits.cpp,
// expressions.cpp, operators.cpp, subscripts.cpp and calls.cpp.
#pragma once

#include <map>
#include <set>

#include "script/match.h"

namespace rushlight::script {

// How a list of statements ends.
enum class Exit : uint8_t {
  Falls,      // what follows it runs
  Sometimes,  // it may have returned, or left the loop: a flag says whether
  Always,     // it has returned, or left the loop
  Raises,     // it has raised; what follows is compiled, for nothing it makes is seen
};

struct Variable {
  Meaning meaning;
  std::optional<Type> declared = {};  // by an annotation or by a loop: it takes no other type
};

// The names that a block has bound itself; those of blocks around it are seen through `outer`.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, Variable, std::less<>> own = {};
  std::map<std::string, std::string, std::less<>> missing = {};  // why a name has no value
};

// What is known where a condition holds or fails: names are of narrower types there.
using Refinements = std::vector<std::pair<std::string, Type>>;
struct Condition {
  graph::Value* value = nullptr;  // null where the compiler knows the answer
  bool known = false;             // the answer
  Refinements if_true = {};
  Refinements if_false = {};
};

// Whether a module's method gives its parameters, buffers or modules: "named_parameters".
bool is_part_of_module(std::string_view name);

constexpr int64_t newest_version = 10;  // of operators, as archives number them

class RL_API Lowering {
 public:
  Lowering(graph::CompilationUnit& unit, Resolver& resolver, Text text, int64_t version)
      : unit_(unit), resolver_(resolver), text_(std::move(text)), version_(version) {}

  // The graph of a function whose schema is known but for its result: where `returns` says none, it
  // is set to what the statements return.
  std::unique_ptr<graph::Graph> lower(const Function& function, const graph::Schema& schema,
                                      std::optional<Type>& returns);
  // Assignments to attributes of the first argument define them: an __init__ is lowered.
  void defines(ClassType& type) { defined_ = &type; }

 private:
  using Value = graph::Value;
  using Node = graph::Node;
  using Block = graph::Block;
  using Rest = std::function<Exit()>;

  // ---- lower.cpp: names and statements ----
  [[noreturn]] void fail(Span span, const std::string& what) const { fail_at(text_, span, what); }
  const Variable* find_variable(std::string_view name) const;
  void assign(const std::string& name, Meaning meaning, Span span,
              std::optional<Type> declared = {});
  void assign_to(const Expr& target, Meaning meaning);
  void unpack_to(const Expr& targets, const Meaning& meaning);
  void assign_attribute(const Expr& target, const Meaning& meaning, const Type* declared = nullptr);
  Exit statements(const Body& body, size_t from = 0);
  Exit statement(const Stmt& s, const Rest& rest);
  Exit continue_after(Exit exit, const Rest& rest);
  void assignment(const Stmt& s);
  void augmented_assignment(const Stmt& s);
  void raise(const Stmt& s);
  void raise_error(const std::string& kind, const std::string& message);
  Exit assertion(const Stmt& s);
  void remove(const Expr& target);
  Exit with(const Stmt& s, const Rest& rest);

  // ---- exits.cpp ----
  std::string flag_name(const char* what) const;
  Value* flag(const char* what);
  void set_flag(const char* what);
  Exit return_statement(const Stmt& s);
  Exit leave_loop(const Stmt& s);
  void finish(Exit exit, const Function& function, std::optional<Type>& returns);
  Value* uninitialized(const Type& type);

  // ---- flow.cpp ----
  Exit branch(const Condition& condition, Span span, const Rest& yes, const Rest& no,
              const Rest& rest);
  void merge(Node* node, Scope& yes, Scope& no, Exit yes_exit, Exit no_exit, Span span);
  Value* value_at_end(Scope& scope, Block& block, const std::string& name, Exit exit,
                      const Type& type);
  void refine(const Refinements& refinements);
  Exit while_loop(const Stmt& s, const Rest& rest);
  Exit for_loop(const Stmt& s, const Rest& rest);
  struct Loop;
  struct Rounds;
  Exit unroll(const Stmt& s, const Rounds& over, size_t from, const Rest& rest);
  Exit unroll_with_exits(const Stmt& s, const Rounds& over, const Rest& rest);
  void loop(Loop& loop);
  std::vector<std::string> loop_variables(const Body& body, const Expr* target) const;

  // ---- conditions.cpp ----
  Condition condition(const Expr& e);
  Condition logical(const Expr& e);
  Condition is_none(const Expr& e);
  Condition is_instance(const Expr& e);
  Value* truth(Value* value, Span span);
  Value* truth_of(const Condition& condition);
  Value* select_value(const Condition& condition, const std::function<Value*()>& yes,
                      const std::function<Value*()>& no, Span span, const char* what,
                      const Type* hint = nullptr);

  // ---- rounds.cpp: what loops go over ----
  struct Rounds {
    std::optional<size_t> fixed;  // unrolled
    Value* count = nullptr;       // otherwise
    std::function<Meaning(Value*)> item;
    std::function<Meaning(size_t)> fixed_item;
  };
  Rounds iterations(const Meaning& over, Span span);
  Rounds iterations_of_value(Value* value, Span span);
  Rounds iterations_of_range(const Meaning& over, Span span);
  Rounds zip_iterations(const Meaning& over, Span span);
  void require_length(Value* length, Value* wanted, Span span);
  Rounds of_length(const Rounds& open, size_t size, Span span);
  void loop_of_comprehension(const Expr& e, const std::function<void()>& inner);
  Value* comprehension(const Expr& e, const Type* hint);

  // ---- expressions.cpp ----
  Meaning meaning(const Expr& e, const Type* hint = nullptr);
  Meaning meaning_of(const Expr& e, const Type* hint);
  Value* value(const Expr& e, const Type* hint = nullptr);
  Value* as_value(const Meaning& meaning, Span span);
  static const IValue* constant_of(const Meaning& meaning);
  Value* constant(IValue v, Type type);
  Value* none() { return constant(IValue(), Type{Type::Kind::None}); }
  Value* integer(int64_t n) { return constant(n, Type{Type::Kind::Int}); }
  Meaning name(const Expr& e);
  Meaning attribute(const Meaning& of, const std::string& name, Span span);
  Meaning attribute_of_value(Value* object, const std::string& name, Span span);
  Value* get_attribute(Value* object, const std::string& name);
  Meaning tuple(const Expr& e, const Type* hint);
  Value* list(const Expr& e, const Type* hint);
  Value* list_of(const std::vector<Value*>& items, const Type* hint, Span span);
  Value* dict(const Expr& e, const Type* hint);
  Value* dict_of(const std::vector<Value*>& all, const Type* hint, Span span);
  Value* dict_call(const Expr& e, const Type* hint);
  Value* unary(const Expr& e);
  Value* binary(const Expr& e);
  Value* compare(const Expr& e);
  // Of a list or dict of modules; nothing of other values.
  std::optional<std::vector<std::string>> submodule_names(const Value* value);
  Value* operation(const std::string& symbol, Value* left, Value* right, Span span);
  Meaning format_text(const Expr& e);
  std::vector<Meaning> parts_of(const Meaning& meaning, Span span);

  // ---- subscripts.cpp ----
  Meaning subscript(const Expr& e, const Type* hint);
  Value* choose_module(Value* modules, const std::vector<std::string>& names, Value* index,
                       const std::function<Value*(Value*)>& chosen, Span span);
  Value* tensor_subscript(Value* tensor, const Expr& e, std::vector<Value*>& indices);
  void assign_subscript(const Expr& target, Value* value);
  void augment_subscript(const Expr& target, const std::string& op, Value* by);
  std::optional<std::vector<Meaning>> slice_of(const Expr& index);
  Meaning slice_call(const Expr& e);
  Value* slice_tensor(Value* tensor, int64_t dim, const std::vector<Meaning>& slice, Span span);
  Value* index_list(const std::vector<Value*>& tensors);
  Value* augmented_value(const std::string& symbol, Value* left, Value* right, Span span);
  Meaning slice_of_parts(const std::vector<Meaning>& parts, const std::vector<Meaning>& slice,
                         Span span);
  Meaning part_at(const std::vector<Meaning>& parts, const Expr& index, Span span);
  static std::optional<int64_t> constant_int(const Meaning& what);

  // ---- calls.cpp ----
  Meaning call(const Expr& e, const Type* hint);
  Meaning call(const Meaning& what, const Arguments& arguments, Span span);
  std::optional<Meaning> call_of_chosen_module(const Expr& e);
  Value* collect_list(const Meaning& over, Span span);
  Arguments arguments(const Expr& e);
  bool is_open(const Meaning& many, Span span);
  std::vector<Value*> values_of(const std::vector<ExprPtr>& of, size_t from, const Type* item,
                                bool& joined);
  Value* op(const std::string& name, const std::vector<Value*>& arguments, Span span);
  Meaning call_op_at(const std::string& name, const Arguments& arguments, Span span);
  Meaning unknown_call(const std::string& name, const Arguments& arguments, Span span);
  Value* call_function(graph::Function& function, const Arguments& arguments, Span span,
                       Value* self = nullptr);
  Value* call_with(graph::Function& function, const std::vector<Value*>& inputs, bool method);
  Value* call_overload(const std::vector<Meaning>& overloads, const Arguments& arguments,
                       Span span);
  Value* construct(const Type& type, const Arguments& arguments, Span span);

  // ---- specials.cpp ----
  Meaning special(const Meaning& what, const Expr& e, const Type* hint);
  Meaning special_of_objects(const Meaning& what, const Expr& e, const Type* hint);
  Meaning submodule_list(const Meaning& what);
  Meaning parts_of_module(const Meaning& what);
  Meaning cast(const std::string& name, const Expr& e);
  Meaning fork(const Expr& e);
  void lift(Node& node);
  Value* to_list(Value* value, const Type* hint, Span span);
  Value* sorted(const Expr& e);

  // Where nodes come from, for the length of a scope.
  struct At {
    At(Lowering& of, Span span) : graph(*of.graph_), before(graph.range) {
      graph.range = range_of(of.text_, span);
    }
    At(const At&) = delete;
    At& operator=(const At&) = delete;
    ~At() { graph.range = std::move(before); }
    graph::Graph& graph;
    graph::SourceRange before;
  };
  // A block's names, for the length of a scope.
  struct Inside {
    Inside(Lowering& of, Scope& scope);
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      of.scope_ = of.scope_->outer;
      of.depth_--;
    }
    Lowering& of;
  };
  graph::CompilationUnit& unit_;
  Resolver& resolver_;
  Text text_;
  int64_t version_;  // of the archive's operators
  ClassType* defined_ = nullptr;
  std::unique_ptr<graph::Graph> graph_;
  Scope* scope_ = nullptr;
  std::optional<Type> returns_;
  // The schemas whose results tuples are, for the names of their parts.
  std::unordered_map<const Value*, const graph::Schema*> fields_;
  std::set<const Node*> unknown_;  // calls of ops whose results nobody has said
  std::optional<Type> returned_;   // what has been returned so far has in common
  int loops_ = 0;                  // around the statement
  int depth_ = 0;
};

}  // namespace rushlight::script
