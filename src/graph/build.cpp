// Making nodes of graphs, by kind, by op and by name.
#include <rushlight/graph_function.h>

namespace rushlight::graph {

Node* Graph::create(Kind kind, const std::vector<Value*>& inputs, size_t outputs) {
  Node* const node = new_node(kind);
  for (Value* const input : inputs) {
    node->add_input(input);
  }
  for (size_t i = 0; i < outputs; i++) {
    node->add_output({Type::Kind::Tensor});
  }
  return node;
}

namespace {
// The outputs that a schema says, for inputs of these types.
void add_outputs(Node& node, const Schema& schema) {
  const size_t count = node.inputs().size();
  RL_CHECK(count == schema.arguments.size() || (schema.variadic && count > schema.arguments.size()),
           schema.str(), " takes ", schema.arguments.size(), " arguments, got ", count);
  TypeVariables variables;
  for (size_t i = 0; i < schema.arguments.size(); i++) {
    match(schema.arguments[i].type, node.input(i)->type, variables);
  }
  for (const Argument& result : schema.results) {
    node.add_output(substitute(result.type, variables));
  }
}
Value* only_output(const Node& node) { return node.outputs().empty() ? nullptr : node.output(); }
}  // namespace

Node* Graph::create(const OpInfo& op, const std::vector<Value*>& inputs) {
  Node* const node = create(Kind::Op, inputs, 0);
  node->op = &op;
  add_outputs(*node, schema_of(op));
  return node;
}

Node* Graph::create(const graph::Builtin& builtin, const std::vector<Value*>& inputs) {
  Node* const node = create(Kind::Builtin, inputs, 0);
  node->builtin = &builtin;
  add_outputs(*node, builtin.schema);
  return node;
}

namespace {
bool accepts_inputs(const Schema& schema, const std::vector<Value*>& inputs) {
  const size_t count = schema.arguments.size();
  if (inputs.size() < count || (inputs.size() > count && !schema.variadic)) {
    return false;
  }
  TypeVariables variables;
  for (size_t i = 0; i < count; i++) {
    if (!match(schema.arguments[i].type, inputs[i]->type, variables)) {
      return false;
    }
  }
  return true;
}
}  // namespace

namespace {
// What lists and tuples are made of, and what is in them, says what the outputs are.
void set_output_types(Node& node) {
  std::vector<Type> types;
  for (const Value* const input : node.inputs()) {
    types.push_back(input->type);
  }
  if (node.kind == Kind::TupleConstruct && node.outputs().size() == 1) {
    node.output()->type = Type::tuple(std::move(types));
  } else if (node.kind == Kind::ListConstruct && node.outputs().size() == 1) {
    std::optional<Type> item = types.empty() ? Type{Type::Kind::Tensor} : types[0];
    for (size_t i = 1; i < types.size() && item; i++) {
      item = unify(*item, types[i]);
    }
    node.output()->type = Type::list(item.value_or(Type{Type::Kind::Any}));
  } else if (node.kind == Kind::ListUnpack && types.size() == 1 && types[0].is(Type::Kind::List)) {
    for (Value* const output : node.outputs()) {
      output->type = types[0].of[0];
    }
  } else if (node.kind == Kind::TupleUnpack && types.size() == 1 && types[0].is_tuple() &&
             types[0].of.size() == node.outputs().size()) {
    for (Value* const output : node.outputs()) {
      output->type = types[0].of[output->place()];
    }
  }
}
}  // namespace

Node* Graph::create(std::string_view kind, const std::vector<Value*>& inputs, size_t outputs) {
  if (const std::optional<Kind> control = control_named(kind)) {
    Node* const node = create(*control, inputs, outputs);
    set_output_types(*node);
    return node;
  }
  const size_t colons = kind.find("::");
  if (colons != std::string_view::npos) {
    for (const OpInfo* const op : find_overloads(kind.substr(colons + 2))) {
      if (op->space == kind.substr(0, colons) && accepts_inputs(schema_of(*op), inputs)) {
        return create(*op, inputs);
      }
    }
  }
  for (const graph::Builtin* const builtin : find_builtins(kind)) {
    if (accepts_inputs(builtin->schema, inputs)) {
      return create(*builtin, inputs);
    }
  }
  Node* const node = create(Kind::Opaque, inputs, outputs);
  node->set_attribute("kind", std::string(kind));
  return node;
}

Node* Graph::insert(Node* node) {
  if (!node->range.is_known()) {
    node->range = range;
  }
  if (node->scope.empty()) {
    node->scope = scope;
  }
  return node->insert_before(insert_point_);
}

Value* Graph::append(const OpInfo& op, const std::vector<Value*>& inputs) {
  return only_output(*insert(create(op, inputs)));
}

Value* Graph::append(const graph::Builtin& builtin, const std::vector<Value*>& inputs) {
  return only_output(*insert(create(builtin, inputs)));
}

Value* Graph::append(std::string_view name, const std::vector<Value*>& inputs) {
  if (const OpInfo* const op = find_op_named(name)) {
    return append(*op, inputs);
  }
  const graph::Builtin* const builtin = find_builtin(name);
  RL_CHECK(builtin != nullptr, "there is no op and no function of the language named '", name, "'");
  return append(*builtin, inputs);
}

Value* Graph::constant(IValue value) {
  Type type = type_of(value);
  return constant(std::move(value), std::move(type));
}

Value* Graph::constant(IValue value, Type type) {
  Node* const node = append(Kind::Constant);
  node->set_attribute("value", std::move(value));
  return node->output()->set_type(std::move(type));
}

// ---- copies ----

Node* Graph::create_copy(const Node& node, ValueMap& values) {
  Node* const copy = new_node(node.kind);
  copy->op = node.op;
  copy->builtin = node.builtin;
  copy->function = node.function;
  copy->attributes = node.attributes;
  copy->types = node.types;
  copy->range = node.range;
  copy->scope = node.scope;
  copy->inlined = node.inlined;
  for (const Value* const input : node.inputs()) {
    const auto found = values.find(input);
    RL_CHECK(found != values.end(), "a copy of ", node.kind_name(), " lacks %", input->name());
    copy->add_input(found->second);
  }
  for (const Value* const output : node.outputs()) {
    Value* const made = copy->add_output(output->type);
    made->facts = output->facts;
    if (output->has_name()) {
      made->set_name(output->name());
    }
    values[output] = made;
  }
  for (const Block* const block : node.blocks()) {
    Block* const copied = copy->add_block();
    for (const Value* const param : block->params()) {
      values[param] = copied->add_param(param->type);
      if (param->has_name()) {
        values[param]->set_name(param->name());
      }
    }
    const InsertPoint inside(*this, *copied);
    for (Value* const value : insert_copy(*block, values)) {
      copied->add_return(value);
    }
  }
  return copy;
}

std::vector<Value*> Graph::insert_copy(const Block& block, ValueMap& values) {
  for (const Node* const node : block) {
    create_copy(*node, values)->insert_before(insert_point_);
  }
  std::vector<Value*> out;
  for (const Value* const value : block.returns()) {
    const auto found = values.find(value);
    RL_CHECK(found != values.end(), "a copy of a block lacks %", value->name());
    out.push_back(found->second);
  }
  return out;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  ValueMap values;
  for (const Value* const input : inputs()) {
    Value* const made = copy->add_input(input->type);
    made->facts = input->facts;
    values[input] = made->set_name(input->has_name() ? input->name() : "");
  }
  for (Value* const output : copy->insert_copy(*block_, values)) {
    copy->add_output(output);
  }
  return copy;
}

}  // namespace rushlight::graph
