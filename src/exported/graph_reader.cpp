// Nodes of a .pt2 file: calls of ops, of functions of numbers, and of graphs.
#include "exported/graph_reader.h"

#include <algorithm>
#include <limits>

#include <rushlight/library.h>

namespace rushlight::exported {

using graph::Node;
using graph::Value;
using serialize::Json;
using Kind = Type::Kind;

// ---- what nodes call ----

struct GraphReader::Callee {
  enum class Form : uint8_t { Op, Builtin, Numbers, Branches, Loop, Map, Scan, Inner };
  Form form = Form::Op;
  const OpInfo* op = nullptr;
  const graph::Builtin* builtin = nullptr;
  const char* numbers = nullptr;
  size_t graph_at = 0;  // of Form::Inner: which argument is the graph
};

namespace {

// Functions of numbers: by the name in files, that in programs.
constexpr std::pair<std::string_view, const char*> number_functions[] = {
    {"_operator.add", "aten::add"},     {"_operator.sub", "aten::sub"},
    {"_operator.mul", "aten::mul"},     {"_operator.floordiv", "aten::floordiv"},
    {"_operator.truediv", "aten::div"}, {"_operator.mod", "aten::remainder"},
    {"_operator.pow", "aten::pow"},     {"_operator.neg", "aten::neg"},
    {"_operator.eq", "aten::eq"},       {"_operator.ne", "aten::ne"},
    {"_operator.lt", "aten::lt"},       {"_operator.le", "aten::le"},
    {"_operator.gt", "aten::gt"},       {"_operator.ge", "aten::ge"},
    {"torch.sym_max", "prim::max"},     {"torch.sym_min", "prim::min"},
    {"torch.sym_float", "aten::Float"}, {"torch.sym_int", "aten::Int"},
    {"torch.sym_not", "aten::__not__"}, {"torch.sym_sqrt", "aten::sqrt"},
    {"torch.sym_ite", "prim::sym_ite"}};

// Null where it is none of them.
const char* number_function(std::string_view target) {
  for (const auto& [name, function] : number_functions) {
    if (target == name) {
      return function;
    }
  }
  return nullptr;
}

// "torch.ops.aten.add.Tensor" as "aten::add.Tensor"; empty of what is no op.
std::string op_name(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.";
  if (!target.starts_with(prefix)) {
    return {};
  }
  target.remove_prefix(prefix.size());
  const size_t space = target.find('.');
  if (space == std::string_view::npos) {
    return {};
  }
  std::string name(target);
  name.replace(space, 1, "::");
  constexpr std::string_view plain = ".default";
  return name.ends_with(plain) ? name.substr(0, name.size() - plain.size()) : name;
}

}  // namespace

std::optional<GraphReader::Callee> GraphReader::callee(const std::string& target) {
  Callee found;
  if (target == "torch.ops.higher_order.cond") {
    found.form = Callee::Form::Branches;
  } else if (target == "torch.ops.higher_order.while_loop") {
    found.form = Callee::Form::Loop;
  } else if (target == "torch.ops.higher_order.map_impl") {
    found.form = Callee::Form::Map;
  } else if (target == "torch.ops.higher_order.scan") {
    found.form = Callee::Form::Scan;
  } else if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") {
    found.form = Callee::Form::Inner;  // nothing is recorded, whatever it says
    found.graph_at = 1;
  } else if (const char* const function = number_function(target)) {
    found.form = Callee::Form::Numbers;
    found.numbers = function;
  } else {
    const std::string name = op_name(target);
    found.op = find_op_named(name);
    found.builtin = graph::find_builtin(name);
    if (found.op == nullptr && found.builtin == nullptr) {
      return {};
    }
    // What Python has defined is the slower of two that do the same.
    const bool by_op = found.op != nullptr &&
                       (found.builtin == nullptr || !library::is_defined_by_library(*found.op));
    found.form = by_op ? Callee::Form::Op : Callee::Form::Builtin;
  }
  return found;
}

void GraphReader::find_missing(const Json& record, std::vector<std::string>& missing) {
  record.at("nodes").items([&](const Json& node) {
    const std::string target = node.at("target").string();
    if (!callee(target) && std::find(missing.begin(), missing.end(), target) == missing.end()) {
      missing.push_back(target);
    }
    node.at("inputs").items([&](const Json& input) {
      if (const std::optional<Json> graph = input.at("arg").find("as_graph")) {
        find_missing(graph->at("graph"), missing);
      }
    });
  });
}

// ---- graphs ----

Value* GraphReader::value_named(const std::string& name) const {
  const auto found = names_.find(name);
  RL_CHECK(found != names_.end(), damaged, ": it uses '", name, "' before it is computed");
  return found->second;
}

GraphReader::Values GraphReader::read(const Json& record) {
  std::vector<std::string> missing;
  find_missing(record, missing);
  if (!missing.empty()) {
    std::string all;
    for (const std::string& name : missing) {
      all += (all.empty() ? "" : ", ") + name;
    }
    throw NotImplementedError("the program calls what this version lacks: " + all);
  }
  record.at("nodes").items([&](const Json& node) { read_node(node); });
  Values outputs;
  record.at("outputs").items([&](const Json& output) { outputs.push_back(argument(output)); });
  return outputs;
}

// The nodes of a graph that is an argument, with these values as its inputs. Names of a graph are
// its own.
GraphReader::Values GraphReader::read_inner(const Json& argument, const Values& inputs) {
  const Json record = argument.at("as_graph").at("graph");
  GraphReader inner(graph_, device_, left_);
  size_t count = 0;
  record.at("inputs").items([&](const Json& input) {
    const auto [kind, value] = input.only();
    RL_CHECK(count < inputs.size() && value.is_object(), damaged,
             ": a graph within the graph takes other inputs than it gets");
    const std::optional<Json> name = value.find("name");
    inner.define((name ? *name : value.at("as_name")).string(), inputs[count++]);
  });
  RL_CHECK(count == inputs.size(), damaged, ": a graph within the graph gets too many inputs");
  return inner.read(record);
}

// ---- nodes ----

void GraphReader::read_node(const Json& record) {
  RL_CHECK(left_-- > 0, damaged, ": graphs in its loops make far more nodes than it holds");
  if (const std::optional<Json> metadata = record.find("metadata")) {
    const std::optional<Json> trace = metadata->find("stack_trace");
    graph_.range = {};
    if (trace && trace->is_string()) {
      std::string text = trace->string();
      const size_t last = text.rfind('\n');
      const size_t begin = last == std::string::npos ? 0 : last + 1;
      const size_t end = text.size();
      graph_.range = {std::make_shared<graph::Source>(graph::Source{std::move(text), ""}), begin,
                      end};
    }
  }
  const Values results = call(*callee(record.at("target").string()), record.at("inputs"));
  name_results(record.at("outputs"), results);
}

namespace {
std::vector<Json> arguments_of(const Json& inputs, size_t count) {
  std::vector<Json> out;
  inputs.items([&](const Json& input) { out.push_back(input.at("arg")); });
  RL_CHECK(out.size() >= count, damaged, ": an op that takes graphs has ", out.size(),
           " arguments, expected ", count);
  return out;
}
}  // namespace

// Of an argument that may not be there.
GraphReader::Values GraphReader::values_at(const std::vector<Json>& arguments, size_t place) {
  return place < arguments.size() ? values_of(arguments[place]) : Values();
}

GraphReader::Values GraphReader::call(const Callee& callee, const Json& inputs) {
  switch (callee.form) {
    case Callee::Form::Op:
    case Callee::Form::Builtin:
      return call_overload(callee, inputs);
    case Callee::Form::Numbers:
      return call_numbers(callee.numbers, inputs);
    case Callee::Form::Branches:
      return call_branches(inputs);
    case Callee::Form::Loop:
      return call_loop(inputs);
    case Callee::Form::Map: {  // map_impl(graph, sequences, others)
      const std::vector<Json> given = arguments_of(inputs, 2);
      return call_steps(given[0], {}, values_of(given[1]), values_at(given, 2));
    }
    case Callee::Form::Scan: {  // scan(graph, carried, sequences, others)
      const std::vector<Json> given = arguments_of(inputs, 3);
      return call_steps(given[0], values_of(given[1]), values_of(given[2]), values_at(given, 3));
    }
    case Callee::Form::Inner:
      return call_inner(callee.graph_at, inputs);
  }
  return {};
}

// Arguments go by their names; those that the file leaves out have the schema's defaults.
GraphReader::Values GraphReader::call_overload(const Callee& callee, const Json& inputs) {
  const graph::Schema& schema =
      callee.op != nullptr ? graph::schema_of(*callee.op) : callee.builtin->schema;
  Values values(schema.arguments.size());
  inputs.items([&](const Json& input) {
    const std::string name = input.at("name").string();
    for (size_t i = 0; i < values.size(); i++) {
      if (schema.arguments[i].name == name && values[i] == nullptr) {
        values[i] = argument(input.at("arg"), schema.arguments[i].type);
        return;
      }
    }
    throw Error(str(damaged, ": it passes '", name, "' to ", schema.str()));
  });
  for (size_t i = 0; i < values.size(); i++) {
    const graph::Argument& wanted = schema.arguments[i];
    if (values[i] == nullptr) {
      RL_CHECK(wanted.fallback.has_value(), damaged, ": it does not pass '", wanted.name, "' to ",
               schema.str());
      values[i] = constant(*wanted.fallback, wanted.type);
    }
  }
  Node* const node = graph_.insert(callee.op != nullptr ? graph_.create(*callee.op, values)
                                                        : graph_.create(*callee.builtin, values));
  return node->outputs();
}

GraphReader::Values GraphReader::call_numbers(const std::string& function, const Json& inputs) {
  Values values;
  inputs.items([&](const Json& input) { values.push_back(argument(input.at("arg"))); });
  const bool ints = std::all_of(values.begin(), values.end(),
                                [](const Value* v) { return v->type.is(Kind::Int); });
  if (function == "aten::pow" && ints) {  // an int, as sizes are
    return {graph_.append("aten::pow.int_to_int", values)};
  }
  return graph_.insert(graph_.create(function, values))->outputs();
}

Value* GraphReader::as_truth(Value* value) {
  return value->type.is(Kind::Bool) ? value : graph_.append("aten::Bool.Tensor", {value});
}

// cond(condition, graph, graph, operands)
GraphReader::Values GraphReader::call_branches(const Json& inputs) {
  const std::vector<Json> given = arguments_of(inputs, 3);
  Value* const condition = as_truth(argument(given[0]));
  const Values operands = values_at(given, 3);
  Node* const node = graph_.append(graph::Kind::If, {condition}, 0);
  for (const size_t branch : {1, 2}) {
    graph::Block* const block = node->add_block();
    const graph::InsertPoint within(graph_, *block);
    for (Value* const result : read_inner(given[branch], operands)) {
      block->add_return(result);
    }
  }
  RL_CHECK(node->block(0).returns().size() == node->block(1).returns().size(), damaged,
           ": the branches of a cond return different numbers of values");
  for (Value* const result : node->block(0).returns()) {
    node->add_output(result->type);
  }
  return node->outputs();
}

// while_loop(graph, graph, carried, others)
GraphReader::Values GraphReader::call_loop(const Json& inputs) {
  const std::vector<Json> given = arguments_of(inputs, 3);
  const Values carried = values_of(given[2]);
  const Values others = values_at(given, 3);
  const auto with_others = [&](Values values) {
    values.insert(values.end(), others.begin(), others.end());
    return values;
  };
  const auto goes_on = [&](const Values& values) {
    const Values results = read_inner(given[0], with_others(values));
    RL_CHECK(results.size() == 1, damaged, ": the condition of a loop has ", results.size(),
             " results");
    return as_truth(results[0]);
  };
  Values into = {constant(std::numeric_limits<int64_t>::max(), {Kind::Int}), goes_on(carried)};
  into.insert(into.end(), carried.begin(), carried.end());
  Node* const node = graph_.append(graph::Kind::Loop, into, 0);
  graph::Block* const block = node->add_block();
  block->add_param({Kind::Int});
  Values now;
  for (const Value* const value : carried) {
    now.push_back(block->add_param(value->type));
    node->add_output(value->type);
  }
  const graph::InsertPoint within(graph_, *block);
  const Values next = read_inner(given[1], with_others(now));
  RL_CHECK(next.size() == carried.size(), damaged, ": a loop carries ", carried.size(),
           " values, and its graph returns ", next.size());
  block->add_return(goes_on(next));
  for (Value* const value : next) {
    block->add_return(value);
  }
  return node->outputs();
}

// One step for each slice of the sequences: it takes what is carried, the slices and the others,
// and gives what is carried on and what is stacked.
GraphReader::Values GraphReader::call_steps(const Json& graph, const Values& carried,
                                            const Values& sequences, const Values& others) {
  RL_CHECK(!sequences.empty(), damaged, ": it maps a graph over no tensors");
  Value* const first = constant(0, {Kind::Int});
  Values into = {graph_.append("aten::size.int", {sequences[0], first}),
                 constant(true, {Kind::Bool})};
  into.insert(into.end(), carried.begin(), carried.end());
  Node* const node = graph_.append(graph::Kind::Loop, into, 0);
  graph::Block* const block = node->add_block();
  Value* const round = block->add_param({Kind::Int});
  Values now;
  for (const Value* const value : carried) {
    now.push_back(block->add_param(value->type));
    node->add_output(value->type);
  }
  Values stacks;
  {
    const graph::InsertPoint within(graph_, *block);
    for (Value* const sequence : sequences) {
      now.push_back(graph_.append("aten::select.int", {sequence, first, round}));
    }
    now.insert(now.end(), others.begin(), others.end());
    const Values next = read_inner(graph, now);
    RL_CHECK(next.size() >= carried.size(), damaged, ": a step returns too few values");
    for (size_t i = carried.size(); i < next.size(); i++) {
      {
        const graph::InsertPoint before(graph_, node);
        stacks.push_back(list_of({}));
      }
      graph_.append("aten::append.t", {stacks.back(), next[i]});
    }
    block->add_return(constant(true, {Kind::Bool}));
    for (size_t i = 0; i < carried.size(); i++) {
      block->add_return(next[i]);
    }
  }
  Values results = node->outputs();
  for (Value* const stack : stacks) {
    results.push_back(graph_.append("aten::stack", {stack, first}));
  }
  return results;
}

GraphReader::Values GraphReader::call_inner(size_t graph_at, const Json& inputs) {
  const std::vector<Json> given = arguments_of(inputs, graph_at + 1);
  Values values;
  for (size_t i = graph_at + 1; i < given.size(); i++) {
    for (Value* const value : values_of(given[i])) {
      values.push_back(value);
    }
  }
  return read_inner(given[graph_at], values);
}

void GraphReader::name_results(const Json& outputs, const Values& results) {
  size_t place = 0;
  const auto name_next = [&](const Json& record) {
    RL_CHECK(place < results.size(), damaged, ": it names more results than a node has");
    const std::optional<Json> name = record.find("name");
    define((name ? *name : record.at("as_name")).string(), results[place++]);
  };
  outputs.items([&](const Json& output) {
    const auto [kind, value] = output.only();
    if (kind == "as_none") {
      place++;
    } else if (!value.is_array()) {
      name_next(value);
    } else if (results.size() == 1 && results[0]->type.is(Kind::List)) {
      size_t count = 0;
      value.items([&](const Json&) { count++; });
      Node* const parts = graph_.append(graph::Kind::ListUnpack, {results[0]}, count);
      size_t part = 0;
      value.items([&](const Json& record) {
        define(record.at("name").string(), parts->output(part++)->set_type(results[0]->type.of[0]));
      });
    } else {
      value.items(name_next);
    }
  });
}

}  // namespace rushlight::exported
