// A graph as statements: what is used once, right behind where it is made, is written in its place.
#include "script/code_writer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace rushlight::script {

using graph::Block;
using graph::Graph;
using graph::Kind;
using graph::Node;
using graph::Schema;
using graph::Value;
using TypeKind = Type::Kind;

namespace {

constexpr std::string_view reserved[] = {"False",
                                         "None",
                                         "True",
                                         "and",
                                         "as",
                                         "assert",
                                         "async",
                                         "await",
                                         "break",
                                         "class",
                                         "continue",
                                         "def",
                                         "del",
                                         "elif",
                                         "else",
                                         "except",
                                         "for",
                                         "from",
                                         "global",
                                         "if",
                                         "import",
                                         "in",
                                         "is",
                                         "lambda",
                                         "not",
                                         "or",
                                         "pass",
                                         "raise",
                                         "return",
                                         "try",
                                         "while",
                                         "with",
                                         "yield",
                                         "torch",
                                         "ops",
                                         "CONSTANTS",
                                         "inf",
                                         "nan",
                                         "fork",
                                         "int",
                                         "float",
                                         "bool",
                                         "str",
                                         "getattr",
                                         "range",
                                         "print",
                                         "annotate",
                                         "isinstance",
                                         "unchecked_cast",
                                         "uninitialized",
                                         "nonlocal",
                                         "finally",
                                         "complex",
                                         "__torch__",
                                         "Tensor",
                                         "List",
                                         "Dict",
                                         "Optional",
                                         "Tuple"};

bool is_identifier(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), good) &&
         std::find(std::begin(reserved), std::end(reserved), name) == std::end(reserved);
}

std::string attribute_name(const Node& node) { return node.attribute("name").toStringRef(); }

class Writer {
 public:
  Writer(Mentions& mentions, int indent) : mentions_(mentions), indent_(indent) {}

  std::string run(graph::Function& function) {
    Graph& graph = function.graph();
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
  std::string annotation(const Type& type) {
    mentions_.add(type);
    return type.annotation();
  }
  std::string fresh_number() {
    std::string name;
    do {
      name = "_" + std::to_string(next_++);
    } while (!taken_.insert(name).second);
    return name;
  }
  std::string fresh(const Value& value) {
    std::string base = value.has_name() ? value.name() : "";
    base = base.substr(0, base.find('.'));
    if (!is_identifier(base)) {
      return fresh_number();
    }
    std::string name = base;
    for (int i = 0; taken_.count(name) > 0; i++) {
      name = base + std::to_string(i);
    }
    taken_.insert(name);
    return name;
  }
  const std::string& name_of(Value* value) {
    const auto known = names_.find(value);
    return known != names_.end() ? known->second
                                 : names_.emplace(value, fresh(*value)).first->second;
  }

  // ---- values ----

  // What is written where a value is used: a literal, its expression, or its name.
  std::string use(Value* value) {
    if (value->node()->kind == Kind::Constant) {
      return literal(*value->constant(), value->type, mentions_);
    }
    const auto waiting = inlined_.find(value->node());
    if (waiting != inlined_.end()) {
      std::string text = std::move(waiting->second);
      inlined_.erase(waiting);
      return text;
    }
    return name_of(value);
  }
  // Before a dot or a bracket.
  std::string use_of(Value* value) { return "(" + use(value) + ")"; }
  std::string uses(const std::vector<Value*>& values, size_t first = 0) {
    std::string out;
    for (size_t i = first; i < values.size(); i++) {
      out += (i == first ? "" : ", ") + use(values[i]);
    }
    return out;
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
  Node* mark(Node* user, Node* last) {
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
      last = mark(maker, before(maker));
    }
    return last;
  }

  // ---- nodes ----

  void block(Block& b, Node* end) {
    for (Node* user = end; user != nullptr && user->kind != Kind::Param;) {
      Node* const last = before(user);
      const bool takes = user->kind != Kind::Loop && user->kind != Kind::Constant &&
                         (user->kind != Kind::Return || b.owner() == nullptr);
      user = takes ? mark(user, last) : last;
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
        line(str(member(node.input(0), attribute_name(node)), " = ", value));
        return;
      }
      case Kind::RaiseException:
        line("ops.prim.RaiseException(" + uses(raised(node)) + ")");
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

  static std::vector<Value*> raised(const Node& node) {
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

  std::string member(Value* object, const std::string& name) {
    const std::string of = use(object);
    return is_identifier(name) ? of + "." + name : "";
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
    const std::string condition = fresh_number();
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

  void fork(Node& node) {
    const std::string name = "__forked_function" + std::to_string(next_++);
    line("def " + name + "():");
    indent_++;
    Block& b = node.block(0);
    block(b, b.return_node());
    line("return " + (b.returns().empty() ? "None" : use(b.returns()[0])));
    indent_--;
    line(name_of(node.output()) + " = fork(" + name + ")");
  }

  // ---- expressions ----

  std::string expression(Node& node) {
    switch (node.kind) {
      case Kind::Op:
        return call(graph::schema_of(*node.op), node);
      case Kind::Builtin:
        return builtin(node);
      case Kind::Library: {
        std::string name = node.library_name.substr(0, node.library_name.find('.'));
        name.replace(name.find("::"), 2, ".");
        return str("ops.", name, "(", uses(node.inputs()), ")");
      }
      case Kind::GetAttr: {
        const std::string text = member(node.input(), attribute_name(node));
        return text.empty()
                   ? str("getattr(", use(node.input()), ", \"", attribute_name(node), "\")")
                   : text;
      }
      case Kind::CallMethod: {
        const std::string of = use_of(node.input());
        const std::string arguments = uses(node.inputs(), 1);
        return str(of, ".", attribute_name(node), "(", arguments, arguments.empty() ? ")" : ", )");
      }
      case Kind::CallFunction: {
        mentions_.add(*node.function);
        const std::string arguments = uses(node.inputs());
        return str(node.function->name(), "(", arguments, arguments.empty() ? ")" : ", )");
      }
      case Kind::CreateObject: {
        const std::string name = annotation(node.output()->type);
        return str(name, ".__new__(", name, ")");
      }
      case Kind::ListConstruct:
        return list(node);
      case Kind::DictConstruct:
        return dict(node);
      case Kind::TupleConstruct:
        return tuple(node);
      case Kind::TupleIndex: {
        const std::string of = use_of(node.input(0));
        return str(of, "[", use(node.input(1)), "]");
      }
      case Kind::IsInstance:
        return is_instance(node);
      case Kind::UncheckedCast:
        return str("unchecked_cast(", annotation(node.output()->type), ", ", use(node.input()),
                   ")");
      case Kind::Uninitialized:
        return str("uninitialized(", annotation(node.output()->type), ")");
      case Kind::Wait:
        return str("torch.wait(", use(node.input()), ")");
      default:
        throw Error(str("a program with ", node.kind_name(), " cannot be written as text"));
    }
  }

  std::string is_instance(Node& node) {
    std::string types;
    for (const Type& type : node.types) {
      types += (types.empty() ? "" : ", ") + annotation(type);
    }
    return str("isinstance(", use(node.input()), ", ",
               node.types.size() == 1 ? types : "(" + types + ")", ")");
  }

  // Whether the items' own types say that of the whole.
  static bool says_itself(const std::vector<Value*>& items, size_t first, size_t step,
                          const Type& type) {
    for (size_t i = first; i < items.size(); i += step) {
      if (!(items[i]->type == type)) {
        return false;
      }
    }
    return items.size() > first;
  }
  std::string annotated(const Type& type, const std::string& text) {
    return str("annotate(", annotation(type), ", ", text, ")");
  }
  std::string list(Node& node) {
    const Type& type = node.output()->type;
    const std::string text = "[" + uses(node.inputs()) + "]";
    return says_itself(node.inputs(), 0, 1, type.of[0]) ? text : annotated(type, text);
  }
  std::string dict(Node& node) {
    const Type& type = node.output()->type;
    std::string text;
    for (size_t i = 0; i + 1 < node.inputs().size(); i += 2) {
      const std::string key = use(node.input(i));
      text += (i == 0 ? "" : ", ") + key + ": " + use(node.input(i + 1));
    }
    text = "{" + text + "}";
    const bool plain = says_itself(node.inputs(), 0, 2, type.of[0]) &&
                       says_itself(node.inputs(), 1, 2, type.of[1]);
    return plain ? text : annotated(type, text);
  }
  std::string tuple(Node& node) {
    const Type& type = node.output()->type;
    if (type.is(TypeKind::NamedTuple)) {
      return str(annotation(type), "(", uses(node.inputs()), ")");
    }
    return "(" + uses(node.inputs()) + (node.inputs().size() == 1 ? ",)" : ")");
  }

  // A function of the language: some are written in forms of their own.
  std::string builtin(Node& node) {
    const Schema& schema = node.builtin->schema;
    const std::string name = schema.qualified_name();
    constexpr std::pair<std::string_view, std::string_view> casts[] = {
        {"aten::Int", "int"}, {"aten::Float", "float"}, {"aten::Bool", "bool"},
        {"aten::str", "str"}, {"prim::Print", "print"}, {"aten::Complex", "complex"}};
    for (const auto& [function, text] : casts) {
      if (function == name) {
        return str(text, "(", uses(node.inputs()), ")");
      }
    }
    constexpr std::pair<std::string_view, std::string_view> implicit[] = {
        {"aten::IntImplicit", "int"},
        {"aten::FloatImplicit", "float"},
        {"aten::ScalarImplicit", "number"}};
    for (const auto& [function, type] : implicit) {
      if (function == name) {
        return str("annotate(", type, ", ", use(node.input()), ")");
      }
    }
    if (name == "aten::__getitem__") {
      const std::string of = node.input(0)->node()->kind == Kind::Constant ? use_of(node.input(0))
                                                                           : use(node.input(0));
      return str(of, "[", use(node.input(1)), "]");
    }
    if (name == "prim::tolist") {
      return annotated(node.output()->type, use(node.input()) + ".tolist()");
    }
    return call(schema, node);
  }

  std::string call(const Schema& schema, const Node& node) {
    if (schema.space == "rushlight") {
      throw Error(str("the op ", schema.name, " is rushlight's own, and archives cannot name it"));
    }
    const std::vector<Value*>& inputs = node.inputs();
    size_t count = inputs.size();
    if (!schema.variadic) {  // defaults at the end are left out
      while (count > 0 && is_default(schema.arguments[count - 1], *inputs[count - 1])) {
        count--;
      }
    }
    std::string out =
        (schema.space == "aten" ? "torch." : "ops." + schema.space + ".") + schema.name + "(";
    for (size_t i = 0; i < count; i++) {
      const bool keyword = i < schema.arguments.size() && schema.arguments[i].keyword_only;
      out +=
          (i == 0 ? "" : ", ") + (keyword ? schema.arguments[i].name + "=" : "") + use(inputs[i]);
    }
    return out + ")";
  }

  static bool is_default(const graph::Argument& argument, const Value& value) {
    const IValue* const known = value.constant();
    if (!argument.fallback || known == nullptr) {
      return false;
    }
    Mentions none;
    const auto text = [&](const IValue& v) { return literal(v, argument.type, none); };
    const bool plain = !known->isTensor() && !known->isObject();
    return plain && text(*known) == text(*argument.fallback);
  }

  Mentions& mentions_;
  int indent_;
  std::string text_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<const Node*> marked_;
  std::unordered_map<const Node*, std::string> inlined_;
  int next_ = 0;
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

std::string class_text(ClassType& type, Mentions& mentions) {
  constexpr const char* bases[] = {"", "(Module)", "(NamedTuple)", "(Enum)", "(Interface)"};
  std::string out = str("class ", type.base_name(), bases[static_cast<size_t>(type.form)], ":\n");
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
      out += str("  def ", method->base_name(), "(self) -> None:\n    pass\n");
      continue;
    }
    out += function_text(*method, mentions, 1);
  }
  return out;
}

}  // namespace rushlight::script
