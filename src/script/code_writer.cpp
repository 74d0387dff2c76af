// A graph as statements: what is used once, right behind where it is made, is written in its place.
#include "script/code_writer.h"

#include "script/expression_writer.h"

namespace rushlight::script {

using graph::Block;
using graph::Graph;
using graph::Kind;
using graph::Node;
using graph::Schema;
using graph::Value;
using TypeKind = Type::Kind;

namespace {

// The method that calls `forward` with the hooks of its module. PyTorch has none: who calls it is
// written with what it does.
constexpr std::string_view with_hooks = "_call_with_hooks";

graph::Function* hooked_call(const Node& node) {
  const bool is_call = node.kind == Kind::CallMethod && node.text_attribute("name") == with_hooks;
  return is_call ? node.input(0)->type.definition->find_method(with_hooks) : nullptr;
}
bool calls_hooks(const Block& block) {
  for (const Node* const node : block) {
    bool found = hooked_call(*node) != nullptr;
    for (const Block* const inner : node->blocks()) {
      found = found || calls_hooks(*inner);
    }
    if (found) {
      return true;
    }
  }
  return false;
}
void write_out_hooks(Graph& graph, Block& block) {
  for (Node* const node : block) {
    for (Block* const inner : node->blocks()) {
      write_out_hooks(graph, *inner);
    }
    if (graph::Function* const called = hooked_call(*node)) {
      Graph::ValueMap values;
      for (size_t i = 0; i < node->inputs().size(); i++) {
        values[called->graph().inputs()[i]] = node->input(i);
      }
      const graph::InsertPoint here(graph, node);
      node->output()->replace_all_uses(graph.insert_copy(called->graph().block(), values).at(0));
      node->erase();
    }
  }
}

class Writer : ExpressionWriter {
 public:
  Writer(Mentions& mentions, int indent) : ExpressionWriter(mentions), indent_(indent) {}

  std::string run(graph::Function& function) {
    std::unique_ptr<Graph> written;
    if (calls_hooks(function.graph().block())) {
      written = function.graph().clone();
      write_out_hooks(*written, written->block());
    }
    Graph& graph = written != nullptr ? *written : function.graph();
    const std::vector<graph::Argument>& arguments = function.schema.arguments;
    std::string head = str("def ", function.base_name(), "(");
    for (size_t i = 0; i < graph.inputs().size(); i++) {
      Value* const input = graph.inputs()[i];
      const std::string name = i < arguments.size() ? arguments[i].name : input->name();
      names_[input] = name;
      taken_.insert(name);
      head += (i == 0 ? "" : ",\n    " + std::string(static_cast<size_t>(2 * indent_), ' ')) +
              name + ": " + annotation(input->type);
      if (i < arguments.size() && arguments[i].fallback) {
        head += "=" + literal(*arguments[i].fallback, input->type, mentions_);
      }
    }
    const std::vector<Value*>& outputs = graph.outputs();
    const Type returns = !function.schema.results.empty() ? function.schema.results[0].type
                         : outputs.empty()                ? Type{TypeKind::None}
                                                          : outputs[0]->type;
    line(head + ") -> " + annotation(returns) + ":");
    indent_++;
    block(graph.block(), graph.block().return_node());
    line("return " + (outputs.empty() ? "None" : use(outputs[0])));
    indent_--;
    return std::move(text_);
  }

 private:
  // ---- lines and names ----

  void line(const std::string& text) {
    text_ += std::string(static_cast<size_t>(2 * indent_), ' ') + text + "\n";
  }
  // ---- which nodes are written in the place of their use ----

  static bool is_expression(const Node& node) {
    if (node.outputs().size() != 1 || !node.blocks().empty()) {
      return false;
    }
    switch (node.kind) {
      case Kind::If:
      case Kind::Loop:
      case Kind::Fork:
      case Kind::SetAttr:
      case Kind::Enter:
      case Kind::Exit:
      case Kind::RaiseException:
      case Kind::GetAttr:
      case Kind::CreateObject:
      case Kind::Uninitialized:
        return false;
      default:
        return true;
    }
  }
  static Node* before(Node* node) {
    node = node->previous();
    while (node != nullptr && node->kind == Kind::Constant) {
      node = node->previous();
    }
    return node;
  }
  // Marks the inputs of a node that come right before it, the last first; where the chain ends.
  Node* mark_chain(Node* user, Node* last) {
    for (size_t i = user->inputs().size(); i-- > 0;) {
      Value* const input = user->inputs()[i];
      Node* const maker = input->node();
      if (maker->kind == Kind::Constant) {
        continue;
      }
      if (maker != last || !is_expression(*maker) || input->uses().size() != 1 ||
          input->has_name()) {
        break;
      }
      marked_.insert(maker);
      last = mark_chain(maker, before(maker));
    }
    return last;
  }

  // ---- nodes ----

  void block(Block& b, Node* end) {
    for (Node* user = end; user != nullptr && user->kind != Kind::Param;) {
      Node* const last = before(user);
      const bool takes = user->kind != Kind::Loop && user->kind != Kind::Constant &&
                         (user->kind != Kind::Return || b.owner() == nullptr);
      user = takes ? mark_chain(user, last) : last;
    }
    for (Node* const node : b) {
      statement(*node);
    }
  }

  void statement(Node& node) {
    switch (node.kind) {
      case Kind::Constant:
        return;
      case Kind::If:
        branch(node);
        return;
      case Kind::Loop:
        loop(node);
        return;
      case Kind::SetAttr: {
        const std::string value = use(node.input(1));
        line(str(member(node.input(0), node.attribute("name").toStringRef()), " = ", value));
        return;
      }
      case Kind::RaiseException:
        line("ops.prim.RaiseException(" + uses(exception_values(node)) + ")");
        return;
      case Kind::Enter:
        line("with " + use(node.input()) + ":");
        indent_++;
        line("pass");
        return;
      case Kind::Exit:
        indent_--;
        return;
      case Kind::TupleUnpack:
      case Kind::ListUnpack: {
        const std::string from = use(node.input());
        line(targets(node.outputs()) + ", = " + from);
        return;
      }
      case Kind::Fork:
        fork(node);
        return;
      default:
        break;
    }
    const std::string text = expression(node);
    if (marked_.count(&node) > 0) {
      inlined_[&node] = text;
    } else if (node.outputs().empty()) {
      line(text);
    } else {
      line(targets(node.outputs()) + " = " + text);
    }
  }

  static std::vector<Value*> exception_values(const Node& node) {
    std::vector<Value*> out = node.inputs();
    if (out.size() == 2 && out[1]->constant() != nullptr && out[1]->constant()->isNone()) {
      out.pop_back();
    }
    return out;
  }

  std::string targets(const std::vector<Value*>& values) {
    std::string out;
    for (Value* const value : values) {
      out += (out.empty() ? "" : ", ") + name_of(value);
    }
    return out;
  }

  // What comes out of a block, into the names of the node's outputs.
  void assign_results(const std::vector<Value*>& outputs, const std::vector<Value*>& results,
                      bool first) {
    for (size_t i = 0; i < outputs.size(); i++) {
      const bool wider = first && !(outputs[i]->type == results[i]->type);
      const std::string value = use(results[i]);
      line(name_of(outputs[i]) + (wider ? " : " + annotation(outputs[i]->type) : "") + " = " +
           value);
    }
  }

  void branch(Node& node) {
    const std::string condition = use(node.input());
    std::vector<Value*> outputs = node.outputs();
    for (Value* const output : outputs) {
      name_of(output);
    }
    for (size_t side = 0; side < 2; side++) {
      line(side == 0 ? "if " + condition + ":" : "else:");
      indent_++;
      const size_t before = text_.size();
      Block& b = node.block(side);
      block(b, b.return_node());
      assign_results(outputs, b.returns(), side == 0);
      if (text_.size() == before) {
        line("pass");
      }
      indent_--;
    }
  }

  static bool is_constant(const Value* value, bool expected) {
    const IValue* const known = value->constant();
    return known != nullptr && known->isBool() && known->toBool() == expected;
  }

  void loop(Node& node) {
    Block& b = node.block(0);
    const size_t carried = node.outputs().size();
    // Names of what is carried: those of the outputs, which the body sees as its params.
    for (size_t i = 0; i < carried; i++) {
      Value* const output = node.output(i);
      const std::string& name = name_of(output);
      names_[b.params()[i + 1]] = name;
      Value* const initial = node.input(i + 2);
      const bool wider = !(output->type == initial->type);
      const std::string value = use(initial);
      line(name + (wider ? " : " + annotation(output->type) : "") + " = " + value);
    }
    const bool counts = is_constant(node.input(1), true) && is_constant(b.returns()[0], true);
    const IValue* const most = node.input(0)->constant();
    const bool endless = most != nullptr && most->isInt() && most->toInt() == INT64_MAX;
    Value* const round = b.params()[0];
    if (counts && !endless) {
      const std::string count = use(node.input(0));
      line("for " + name_of(round) + " in range(" + count + "):");
      body(b, "", "");
      return;
    }
    const std::string condition = new_number_name();
    std::string limit;
    if (!endless || round->is_used()) {
      limit = use(node.input(0));
      line(name_of(round) + " = 0");
    }
    const std::string first = use(node.input(1));
    line(condition + " = " +
         (endless ? first : str("torch.__and__(torch.lt(0, ", limit, "), ", first, ")")));
    line("while " + condition + ":");
    body(b, condition, endless ? "" : limit, round->is_used() || !endless ? name_of(round) : "");
  }

  // The rest of a loop, one level in: `condition` and `round` are set anew at its end.
  void body(Block& b, const std::string& condition, const std::string& limit,
            const std::string& round = "") {
    indent_++;
    const size_t before = text_.size();
    block(b, b.return_node());
    std::string names;
    std::string values;
    const auto add = [&](const std::string& name, const std::string& value) {
      names += (names.empty() ? "" : ", ") + name;
      values += (values.empty() ? "" : ", ") + value;
    };
    const std::string next = str("torch.add(", round, ", 1)");
    if (!condition.empty()) {
      const std::string again = use(b.returns()[0]);
      add(condition, limit.empty()
                         ? again
                         : str("torch.__and__(torch.lt(", next, ", ", limit, "), ", again, ")"));
    }
    if (!round.empty()) {
      add(round, next);
    }
    for (size_t i = 1; i < b.returns().size(); i++) {
      const std::string value = use(b.returns()[i]);
      const std::string& name = names_[b.params()[i]];
      if (value != name) {
        add(name, value);
      }
    }
    if (!names.empty()) {
      line(names + " = " + values);
    }
    if (text_.size() == before) {
      line("pass");
    }
    indent_--;
  }

  // A task calls a function of its own, whose arguments are what it uses.
  void fork(Node& node) {
    mentions_.add(*node.function);
    const std::string name = "__forked_function" + new_number_name();
    const std::string arguments = uses(node.inputs());
    line("def " + name + "():");
    line("  return " + node.function->name() + "(" + arguments + (arguments.empty() ? ")" : ", )"));
    line(name_of(node.output()) + " = fork(" + name + ")");
  }

  int indent_;
  std::string text_;
  std::unordered_set<const Node*> marked_;
};

std::string quoted_names(const ClassType& type, bool ClassType::Attribute::* which) {
  std::string out;
  for (const ClassType::Attribute& attribute : type.attributes) {
    if (attribute.*which) {
      out += str("\"", attribute.name, "\", ");
    }
  }
  return "[" + out + "]";
}

}  // namespace

std::string function_text(graph::Function& function, Mentions& mentions, int indent) {
  return Writer(mentions, indent).run(function);
}

namespace {
// What an interface says of a method.
std::string interface_method(const graph::Function& method, Mentions& mentions) {
  std::string out = str("  def ", method.base_name(), "(self");
  for (size_t i = 1; i < method.schema.arguments.size(); i++) {
    const graph::Argument& argument = method.schema.arguments[i];
    mentions.add(argument.type);
    out += str(",\n    ", argument.name, ": ", argument.type.annotation());
  }
  const Type result =
      method.schema.results.empty() ? Type{TypeKind::None} : method.schema.results[0].type;
  mentions.add(result);
  return out + str(") -> ", result.annotation(), ":\n    pass\n");
}

// A line with the names of hooks; nothing where there are none.
std::string hook_names(const char* what, const std::vector<std::string>& names) {
  std::string listed;
  for (const std::string& name : names) {
    listed += "\"" + name + "\", ";
  }
  return names.empty() ? "" : str("  ", what, " = [", listed, "]\n");
}
}  // namespace

std::string class_text(ClassType& type, Mentions& mentions) {
  constexpr const char* bases[] = {"", "(Module)", "(NamedTuple)", "(Enum)", "(Interface)"};
  std::string out =
      str("class ", type.base_name(),
          (type.of_modules ? "(ModuleInterface)" : bases[static_cast<size_t>(type.form)]), ":\n");
  if (type.form == ClassType::Form::Enum) {
    for (const ClassType::Named& member : type.constants) {
      const IValue& value = object_of(member.second)->slots.at(1);
      out += str("  ", member.first, " = ", literal(value, type_of(value), mentions), "\n");
    }
    return out;
  }
  if (type.form == ClassType::Form::Module) {
    out +=
        str("  __parameters__ = ", quoted_names(type, &ClassType::Attribute::is_parameter), "\n");
    out += str("  __buffers__ = ", quoted_names(type, &ClassType::Attribute::is_buffer), "\n");
    out += hook_names("__forward_pre_hooks__", type.pre_hooks);
    out += hook_names("__forward_hooks__", type.hooks);
  }
  for (const ClassType::Attribute& attribute : type.attributes) {
    mentions.add(attribute.type);
    const std::string annotation = attribute.type.annotation();
    out += is_identifier(attribute.name)
               ? str("  ", attribute.name, " : ", annotation, "\n")
               : str("  __annotations__[\"", attribute.name, "\"] = ", annotation, "\n");
  }
  for (const ClassType::Named& constant : type.constants) {
    const Type of = type_of(constant.second);
    out += str("  ", constant.first, " : Final[", of.annotation(),
               "] = ", literal(constant.second, of, mentions), "\n");
  }
  for (graph::Function* const method : type.methods) {
    if (type.form == ClassType::Form::Interface) {
      out += interface_method(*method, mentions);
      continue;
    }
    if (method->base_name() != with_hooks) {
      out += function_text(*method, mentions, 1);
    }
  }
  return out;
}

}  // namespace rushlight::script
