// Values, nodes and blocks: who uses what, and in which order nodes stand.
#include <algorithm>

#include <rushlight/graph_function.h>
#include <rushlight/library.h>

namespace rushlight::graph {

// ---- values ----

Graph& Value::graph() const { return node_->graph(); }

Value* Value::set_name(std::string_view name) {
  Graph& graph = this->graph();
  if (has_name()) {
    graph.named_.erase(name_);
    name_.clear();
  }
  if (name.empty()) {
    return this;
  }
  std::string wanted(name);
  if (std::all_of(wanted.begin(), wanted.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    wanted = "v" + wanted;  // numbers are of values without names
  }
  if (graph.named_.count(wanted) != 0) {
    const size_t dot = wanted.rfind('.');
    const bool is_numbered = dot != std::string::npos && dot + 1 < wanted.size() &&
                             wanted.find_first_not_of("0123456789", dot + 1) == std::string::npos;
    const std::string stem = is_numbered ? wanted.substr(0, dot) : wanted;
    size_t& next = graph.names_[stem];
    do {
      wanted = stem + "." + std::to_string(++next);
    } while (graph.named_.count(wanted) != 0);
  }
  name_ = wanted;
  graph.named_[name_] = this;
  return this;
}

void Value::replace_all_uses(Value* by) {
  if (by == this) {
    return;
  }
  for (const Use& use : std::vector<Use>(uses_)) {
    use.node->set_input(use.place, by);
  }
}

void Value::replace_uses_after(const Node* node, Value* by) {
  for (const Use& use : std::vector<Use>(uses_)) {
    if (use.node != node && node->is_before(use.node)) {
      use.node->set_input(use.place, by);
    }
  }
}

const IValue* Value::constant() const {
  return node_->kind == Kind::Constant ? &node_->attribute("value") : nullptr;
}

// ---- inputs and outputs of nodes ----

namespace {
void drop_use(std::vector<Use>& uses, const Use& use) {
  const auto found = std::find(uses.begin(), uses.end(), use);
  RL_CHECK(found != uses.end(), "a graph's list of uses lacks one");
  uses.erase(found);
}
}  // namespace

Value* Node::add_input(Value* value) { return insert_input(inputs_.size(), value); }

Value* Node::insert_input(size_t place, Value* value) {
  RL_CHECK(value != nullptr && &value->graph() == graph_, kind_name(),
           " was given a value of another graph as input ", place);
  RL_CHECK(place <= inputs_.size(), kind_name(), " has ", inputs_.size(),
           " inputs; none can be put at ", place);
  renumber_uses(place, 1);
  inputs_.insert(inputs_.begin() + static_cast<ptrdiff_t>(place), value);
  value->uses_.push_back({this, place});
  return value;
}

// Inputs from a place on move by one.
void Node::renumber_uses(size_t from, int by) {
  for (size_t i = from; i < inputs_.size(); i++) {
    const auto use = std::find(inputs_[i]->uses_.begin(), inputs_[i]->uses_.end(), Use{this, i});
    // One value may be several inputs: those that moved already are told apart by their sign bit.
    use->place = (i + static_cast<size_t>(by)) | ~(~size_t{0} >> 1);
  }
  for (size_t i = from; i < inputs_.size(); i++) {
    for (Use& use : inputs_[i]->uses_) {
      use.place &= ~size_t{0} >> 1;
    }
  }
}

void Node::set_input(size_t place, Value* value) {
  RL_CHECK(value != nullptr && &value->graph() == graph_, kind_name(),
           " was given a value of another graph as input ", place);
  drop_use(inputs_.at(place)->uses_, {this, place});
  inputs_[place] = value;
  value->uses_.push_back({this, place});
}

void Node::remove_input(size_t place) {
  drop_use(inputs_.at(place)->uses_, {this, place});
  renumber_uses(place + 1, -1);
  inputs_.erase(inputs_.begin() + static_cast<ptrdiff_t>(place));
}

void Node::remove_all_inputs() {
  for (size_t i = 0; i < inputs_.size(); i++) {
    drop_use(inputs_[i]->uses_, {this, i});
  }
  inputs_.clear();
}

Value* Node::add_output(Type type) { return insert_output(outputs_.size(), std::move(type)); }

Value* Node::insert_output(size_t place, Type type) {
  RL_CHECK(place <= outputs_.size(), kind_name(), " has ", outputs_.size(),
           " outputs; none can be put at ", place);
  Value* const value = graph_->new_value(this, place);
  value->type = std::move(type);
  outputs_.insert(outputs_.begin() + static_cast<ptrdiff_t>(place), value);
  for (size_t i = place + 1; i < outputs_.size(); i++) {
    outputs_[i]->place_ = i;
  }
  return value;
}

void Node::remove_output(size_t place) {
  RL_CHECK(!outputs_.at(place)->is_used(), "output ", place, " of ", kind_name(), " is used");
  outputs_[place]->set_name({});
  outputs_.erase(outputs_.begin() + static_cast<ptrdiff_t>(place));
  for (size_t i = place; i < outputs_.size(); i++) {
    outputs_[i]->place_ = i;
  }
}

Block* Node::add_block() {
  blocks_.push_back(graph_->new_block(this));
  return blocks_.back();
}

void Node::remove_block(size_t place) {
  Block* const block = blocks_.at(place);
  block->return_node()->remove_all_inputs();
  while (block->first() != block->return_node()) {
    block->return_node()->previous()->erase();
  }
  blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(place));
}

// ---- attributes ----

const IValue* Node::find_attribute(std::string_view name) const {
  for (const Attribute& one : attributes) {
    if (one.name == name) {
      return &one.value;
    }
  }
  return nullptr;
}

const IValue& Node::attribute(std::string_view name) const {
  const IValue* const found = find_attribute(name);
  RL_CHECK(found != nullptr, kind_name(), " has no attribute '", name, "'");
  return *found;
}

std::string Node::text_attribute(std::string_view name) const {
  return attribute(name).toStringRef();
}

Node* Node::set_attribute(std::string_view name, IValue value) {
  for (Attribute& one : attributes) {
    if (one.name == name) {
      one.value = std::move(value);
      return this;
    }
  }
  attributes.push_back({std::string(name), std::move(value)});
  return this;
}

// ---- places of nodes ----

Node* Node::insert_before(Node* other) {
  RL_CHECK(block_ == nullptr, kind_name(), " is in a block already");
  RL_CHECK(other->block_ != nullptr && other->kind != Kind::Param, "a node cannot be put before ",
           other->kind_name(), ", which is in no block or begins one");
  for (const Node* around = other->block_->owner(); around != nullptr;) {
    RL_CHECK(around != this, kind_name(), " cannot be put into a block of its own");
    around = around->block_ == nullptr ? nullptr : around->block_->owner();
  }
  block_ = other->block_;
  previous_ = other->previous_;
  next_ = other;
  previous_->next_ = this;
  other->previous_ = this;
  return this;
}

Node* Node::insert_after(Node* other) {
  RL_CHECK(other->kind != Kind::Return && other->next_ != nullptr, "a node cannot be put after ",
           other->kind_name());
  return insert_before(other->next_);
}

void Node::move_before(Node* other) {
  if (other == this) {
    return;
  }
  RL_CHECK(block_ != nullptr, kind_name(), " is in no block, so it cannot be moved");
  Node* const place = next_;
  previous_->next_ = next_;
  next_->previous_ = previous_;
  block_ = nullptr;
  try {
    insert_before(other);
  } catch (const Error&) {
    insert_before(place);
    throw;
  }
}

void Node::move_after(Node* other) {
  if (other != this) {
    move_before(other->next_ == this ? next_ : other->next_);
  }
}

bool Node::is_before(const Node* other) const {
  // Up from the other to this node's block.
  while (other != nullptr && other->block_ != block_) {
    other = other->block_ == nullptr ? nullptr : other->block_->owner();
  }
  if (other == nullptr || other == this) {
    return false;
  }
  for (const Node* node = next_; node != nullptr; node = node->next_) {
    if (node == other) {
      return true;
    }
  }
  return false;
}

void Node::erase() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    RL_CHECK(!outputs_[i]->is_used(), "output ", i, " of ", kind_name(),
             " is used; the node cannot be erased");
  }
  while (!blocks_.empty()) {
    remove_block(blocks_.size() - 1);
  }
  remove_all_inputs();
  for (Value* const output : outputs_) {
    output->set_name({});
  }
  if (block_ != nullptr) {
    if (graph_->insert_point_ == this) {
      graph_->insert_point_ = next_;
    }
    previous_->next_ = next_;
    next_->previous_ = previous_;
    block_ = nullptr;
  }
}

// ---- what nodes are ----

namespace {
const char* name_of(Kind kind) {
  constexpr const char* names[] = {
      "",
      "",
      "prim::Param",
      "prim::Return",
      "prim::Constant",
      "prim::If",
      "prim::Loop",
      "prim::GetAttr",
      "prim::SetAttr",
      "prim::CreateObject",
      "prim::CallFunction",
      "prim::CallMethod",
      "prim::ListConstruct",
      "prim::DictConstruct",
      "prim::TupleConstruct",
      "prim::ListUnpack",
      "prim::TupleUnpack",
      "prim::TupleIndex",
      "prim::TupleSlice",
      "prim::isinstance",
      "prim::unchecked_cast",
      "prim::Uninitialized",
      "prim::RaiseException",
      "prim::Enter",
      "prim::Exit",
      "prim::fork",
      "aten::wait",
  };
  static_assert(std::size(names) == static_cast<size_t>(Kind::Opaque), "each kind has a name");
  return names[static_cast<size_t>(kind)];
}
}  // namespace

std::optional<Kind> control_named(std::string_view name) {
  for (auto kind = static_cast<int>(Kind::Constant); kind < static_cast<int>(Kind::Opaque);
       kind++) {
    if (name == name_of(static_cast<Kind>(kind))) {
      return static_cast<Kind>(kind);
    }
  }
  return std::nullopt;
}

std::string Node::kind_name() const {
  switch (kind) {
    case Kind::Op:
      return rushlight::str(op->space, "::", op->name);
    case Kind::Builtin:
      return builtin->schema.qualified_name();
    case Kind::Opaque:
      return text_attribute("kind");
    default:
      return name_of(kind);
  }
}

std::string Node::schema() const {
  return kind == Kind::Op ? schema_text(*op) : kind == Kind::Builtin ? builtin->schema.str() : "";
}

namespace {
bool block_has_side_effects(const Block& block) {
  for (const Node* const node : block) {
    if (node->has_side_effects()) {
      return true;
    }
  }
  return false;
}
}  // namespace

bool Node::has_side_effects() const {
  switch (kind) {
    case Kind::Op:
      return op->is_mutable() || op->has_tag(Tag::inplace) || op->has_tag(Tag::inplace_view) ||
             library::is_defined_by_library(*op);
    case Kind::Builtin:
      return !builtin->pure;
    case Kind::If:
    case Kind::Loop:
      return std::any_of(blocks_.begin(), blocks_.end(),
                         [](const Block* block) { return block_has_side_effects(*block); });
    case Kind::SetAttr:
    case Kind::CallFunction:
    case Kind::CallMethod:
    case Kind::RaiseException:
    case Kind::Enter:
    case Kind::Exit:
    case Kind::Fork:
    case Kind::Wait:
    case Kind::Opaque:
    case Kind::Param:
    case Kind::Return:
      return true;
    default:
      return false;
  }
}

bool Node::is_pure() const {
  return !has_side_effects() && !(kind == Kind::Op && op->has_tag(Tag::nondeterministic_seeded));
}

// ---- blocks and graphs ----

Block::Block(Graph* graph, Node* owner)
    : graph_(graph),
      owner_(owner),
      param_(graph->new_node(Kind::Param)),
      return_(graph->new_node(Kind::Return)) {
  param_->block_ = return_->block_ = this;
  param_->next_ = return_;
  return_->previous_ = param_;
}

Graph::Graph() : block_(new_block(nullptr)), insert_point_(block_->return_node()) {}
Graph::~Graph() = default;

Value* Graph::new_value(Node* node, size_t place) {
  return &values_.emplace_back(node, place, values_.size());
}
Block* Graph::new_block(Node* owner) { return &blocks_.emplace_back(this, owner); }
Node* Graph::new_node(Kind kind) { return &nodes_.emplace_back(this, kind); }

Value* Graph::add_input(Type type, std::string_view name) {
  return block_->add_param(std::move(type))->set_name(name);
}

}  // namespace rushlight::graph
