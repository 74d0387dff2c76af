// Programs as graphs: nodes that take values and make values, in blocks. Control flow is nodes that
// have blocks of their own (prim::If, prim::Loop), so that each value is made in one place.
#pragma once

#include <deque>
#include <unordered_map>

#include <rushlight/class_type.h>
#include <rushlight/graph_kind.h>
#include <rushlight/schema.h>
#include <rushlight/source_range.h>

namespace rushlight::graph {

struct Builtin;
class Block;
class Graph;
class Node;
class Function;

// ---- values ----

struct Use {
  Node* node;
  size_t place;  // which of its inputs
  bool operator==(const Use& o) const { return node == o.node && place == o.place; }
};

class RL_API Value {
 public:
  Type type;
  std::shared_ptr<const TensorFacts> facts;

  Value(Node* node, size_t place, size_t number) : node_(node), place_(place), number_(number) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  Node* node() const { return node_; }     // that makes it
  size_t place() const { return place_; }  // which of its outputs
  size_t number() const { return number_; }
  Graph& graph() const;
  const std::vector<Use>& uses() const { return uses_; }
  bool is_used() const { return !uses_.empty(); }
  bool has_name() const { return !name_.empty(); }
  std::string name() const { return has_name() ? name_ : std::to_string(number_); }
  // Where the graph has a value of that name already, it gets ".1" or the next number behind it.
  Value* set_name(std::string_view name);
  Value* set_type(Type of) {
    type = std::move(of);
    return this;
  }
  void replace_all_uses(Value* by);
  // Of the uses that come behind a node.
  void replace_uses_after(const Node* node, Value* by);
  // The constant that it is; null where it is none.
  const IValue* constant() const;

 private:
  friend class Graph;
  friend class Node;
  Node* node_;
  size_t place_;
  size_t number_;
  std::string name_;
  std::vector<Use> uses_;
};

// ---- nodes ----

struct Attribute {
  std::string name;
  IValue value;
};

class RL_API Node {
 public:
  Kind kind;
  const OpInfo* op = nullptr;               // of Kind::Op
  const graph::Builtin* builtin = nullptr;  // of Kind::Builtin
  Function* function = nullptr;             // of CallFunction, Fork
  std::vector<Attribute> attributes;
  std::vector<Type> types;  // of IsInstance
  SourceRange range;
  std::string scope;  // of modules that were traced, from outside in, with '/' between
  std::shared_ptr<const CallSite> inlined;

  Node(Graph* graph, Kind kind) : kind(kind), graph_(graph) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Graph& graph() const { return *graph_; }
  Block* block() const { return block_; }  // null where it is in none: new or erased
  Node* next() const { return next_; }     // the return node behind the last
  Node* previous() const { return previous_; }
  std::string kind_name() const;  // "aten::add", "prim::If"
  std::string str(bool with_ranges = true) const;
  // "aten::add.Tensor(Tensor self, …) -> Tensor", empty where it is no function.
  std::string schema() const;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Block*>& blocks() const { return blocks_; }
  Value* input(size_t i = 0) const { return inputs_.at(i); }
  Value* output(size_t i = 0) const { return outputs_.at(i); }
  Block& block(size_t i) const { return *blocks_.at(i); }

  Value* add_input(Value* value);
  Value* insert_input(size_t place, Value* value);
  void set_input(size_t place, Value* value);
  void remove_input(size_t place);
  void remove_all_inputs();
  Value* add_output(Type type);
  Value* insert_output(size_t place, Type type);
  void remove_output(size_t place);  // RuntimeError where it is used
  Block* add_block();
  void remove_block(size_t place);

  const IValue* find_attribute(std::string_view name) const;  // null where there is none
  const IValue& attribute(std::string_view name) const;       // RuntimeError where there is none
  std::string text_attribute(std::string_view name) const;
  Node* set_attribute(std::string_view name, IValue value);

  Node* insert_before(Node* other);  // this one, which is in no block yet
  Node* insert_after(Node* other);
  void move_before(Node* other);
  void move_after(Node* other);
  // Whether it comes before another, or before the node that the other is within.
  bool is_before(const Node* other) const;
  // Takes it out, with its blocks; RuntimeError where an output is used.
  void erase();
  bool has_side_effects() const;  // beyond its outputs, also by what its blocks do
  // Whether it may be left out or done once for two equal ones: no side effects, not random.
  bool is_pure() const;

 private:
  friend class Graph;
  friend class Block;
  void renumber_uses(size_t from, int by);
  Graph* graph_;
  Block* block_ = nullptr;
  Node* next_ = nullptr;
  Node* previous_ = nullptr;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<Block*> blocks_;
};

// ---- blocks ----

class RL_API Block {
 public:
  Block(Graph* graph, Node* owner);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Graph& graph() const { return *graph_; }
  Node* owner() const { return owner_; }  // the node that it is of; null of the graph's own
  Node* param_node() const { return param_; }
  Node* return_node() const { return return_; }
  const std::vector<Value*>& params() const { return param_->outputs(); }
  const std::vector<Value*>& returns() const { return return_->inputs(); }
  Value* add_param(Type type) { return param_->add_output(std::move(type)); }
  size_t add_return(Value* value) {
    return_->add_input(value);
    return returns().size() - 1;
  }
  Node* first() const { return param_->next(); }  // the return node where it is empty

  class iterator {
   public:
    explicit iterator(Node* node) : node_(node), next_(node->next()) {}
    Node* operator*() const { return node_; }
    iterator& operator++() {  // the node that it was at may have been erased
      node_ = next_;
      next_ = node_->next();
      return *this;
    }
    bool operator!=(const iterator& o) const { return node_ != o.node_; }

   private:
    Node* node_;
    Node* next_;
  };
  iterator begin() const { return iterator(first()); }
  iterator end() const { return iterator(return_); }

 private:
  Graph* graph_;
  Node* owner_;
  Node* param_;
  Node* return_;
};

// ---- graphs ----

// Owns its nodes, values and blocks; those that were erased live until the graph dies.
class RL_API Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  Block& block() const { return *block_; }
  const std::vector<Value*>& inputs() const { return block_->params(); }
  const std::vector<Value*>& outputs() const { return block_->returns(); }
  Value* add_input(Type type, std::string_view name = {});
  size_t add_output(Value* value) { return block_->add_return(value); }

  // Nodes in no block yet; those of functions have outputs as the schema says.
  Node* create(Kind kind, const std::vector<Value*>& inputs = {}, size_t outputs = 1);
  Node* create(const OpInfo& op, const std::vector<Value*>& inputs);
  Node* create(const graph::Builtin& builtin, const std::vector<Value*>& inputs);
  // "aten::add": the overload that takes inputs of these types; "prim::If"; Opaque where nothing of
  // that name takes them.
  Node* create(std::string_view kind, const std::vector<Value*>& inputs, size_t outputs = 1);

  // Puts nodes in before the insert point, with the current range and scope.
  Node* insert(Node* node);
  Node* append(Kind kind, const std::vector<Value*>& inputs = {}, size_t outputs = 1) {
    return insert(create(kind, inputs, outputs));
  }
  // One input for each argument of the schema. The result, or null of an op that has none.
  Value* append(const OpInfo& op, const std::vector<Value*>& inputs);
  Value* append(const graph::Builtin& builtin, const std::vector<Value*>& inputs);
  // "aten::add.Tensor"; RuntimeError where there is no such op or builtin, or where its schema
  // takes another number of arguments.
  Value* append(std::string_view name, const std::vector<Value*>& inputs);
  Value* constant(IValue value);
  Value* constant(IValue value, Type type);

  Node* insert_point() const { return insert_point_; }
  void set_insert_point(Node* before) { insert_point_ = before; }
  void set_insert_point(Block& end_of) { insert_point_ = end_of.return_node(); }
  SourceRange range;  // of the nodes that are put in
  std::string scope;

  std::string str(bool with_ranges = true) const;  // in PyTorch's form
  // Copies a block's nodes before the insert point; what its params and outer values become is in
  // `values`, which gains what the nodes make. The copies of its returns.
  using ValueMap = std::unordered_map<const Value*, Value*>;
  std::vector<Value*> insert_copy(const Block& block, ValueMap& values);
  Node* create_copy(const Node& node, ValueMap& values);
  std::unique_ptr<Graph> clone() const;
  // RuntimeError where the graph is not well formed: a value is used before it is made, or out of
  // sight; a node has another number of inputs, outputs or blocks than its kind; uses do not agree.
  void verify() const;

 private:
  friend class Node;
  friend class Block;
  friend class Value;
  Value* new_value(Node* node, size_t place);
  Block* new_block(Node* owner);
  Node* new_node(Kind kind);
  std::deque<Node> nodes_;
  std::deque<Value> values_;
  std::deque<Block> blocks_;
  Block* block_;
  Node* insert_point_;
  std::unordered_map<std::string, size_t> names_;  // the next number of each
  std::unordered_map<std::string, Value*> named_;
};

// For the length of a scope nodes are put in elsewhere.
class InsertPoint {
 public:
  InsertPoint(Graph& graph, Node* before) : graph_(graph), before_(graph.insert_point()) {
    graph.set_insert_point(before);
  }
  InsertPoint(Graph& graph, Block& end_of) : InsertPoint(graph, end_of.return_node()) {}
  InsertPoint(const InsertPoint&) = delete;
  InsertPoint& operator=(const InsertPoint&) = delete;
  ~InsertPoint() { graph_.set_insert_point(before_); }

 private:
  Graph& graph_;
  Node* before_;
};

}  // namespace rushlight::graph
