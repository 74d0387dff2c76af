// Expressions of programs: literals, names, calls.
#include "script/expression_writer.h"

#include <algorithm>

namespace rushlight::script {

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

std::string attribute_name(const Node& node) { return node.attribute("name").toStringRef(); }

// The hook that a node calls; null where it calls another method.
graph::Function* hook_of(const Node& node) {
  const Type& type = node.input(0)->type;
  const std::string name = attribute_name(node);
  if (!type.is(TypeKind::Class)) {
    return nullptr;
  }
  for (const auto* const hooks : {&type.definition->pre_hooks, &type.definition->hooks}) {
    if (std::find(hooks->begin(), hooks->end(), name) != hooks->end()) {
      return type.definition->find_method(name);
    }
  }
  return nullptr;
}

// Whether the items' own types say that of the whole.
bool all_have_type(const std::vector<Value*>& items, size_t first, size_t step, const Type& type) {
  for (size_t i = first; i < items.size(); i += step) {
    if (!(items[i]->type == type)) {
      return false;
    }
  }
  return items.size() > first;
}

bool is_default(const graph::Argument& argument, const Value& value) {
  const IValue* const known = value.constant();
  if (!argument.fallback || known == nullptr) {
    return false;
  }
  Mentions none;
  const auto text = [&](const IValue& v) { return literal(v, argument.type, none); };
  const bool plain = !known->isTensor() && !known->isObject();
  return plain && text(*known) == text(*argument.fallback);
}

}  // namespace

bool is_identifier(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), is_allowed) &&
         std::find(std::begin(reserved), std::end(reserved), name) == std::end(reserved);
}

std::string ExpressionWriter::annotation(const Type& type) {
  mentions_.add(type);
  return type.annotation();
}
std::string ExpressionWriter::new_number_name() {
  std::string name;
  do {
    name = "_" + std::to_string(next_++);
  } while (!taken_.insert(name).second);
  return name;
}
std::string ExpressionWriter::new_name(const Value& value) {
  std::string base = value.has_name() ? value.name() : "";
  base = base.substr(0, base.find('.'));
  if (!is_identifier(base)) {
    return new_number_name();
  }
  std::string name = base;
  for (int i = 0; taken_.count(name) > 0; i++) {
    name = base + std::to_string(i);
  }
  taken_.insert(name);
  return name;
}
const std::string& ExpressionWriter::name_of(Value* value) {
  const auto known = names_.find(value);
  return known != names_.end() ? known->second
                               : names_.emplace(value, new_name(*value)).first->second;
}

// What is written where a value is used: a literal, its expression, or its name.
std::string ExpressionWriter::use(Value* value) {
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
std::string ExpressionWriter::use_of(Value* value) { return "(" + use(value) + ")"; }
std::string ExpressionWriter::uses(const std::vector<Value*>& values, size_t first) {
  std::string out;
  for (size_t i = first; i < values.size(); i++) {
    out += (i == first ? "" : ", ") + use(values[i]);
  }
  return out;
}

std::string ExpressionWriter::member(Value* object, const std::string& name) {
  const std::string of = use(object);
  return is_identifier(name) ? of + "." + name : "";
}

std::string ExpressionWriter::expression(Node& node) {
  switch (node.kind) {
    case Kind::Op:
      return call(graph::schema_of(*node.op), node);
    case Kind::Builtin:
      return builtin(node);
    case Kind::GetAttr: {
      const std::string text = member(node.input(), attribute_name(node));
      return text.empty() ? str("getattr(", use(node.input()), ", \"", attribute_name(node), "\")")
                          : text;
    }
    case Kind::CallMethod: {
      // Hooks are no methods for PyTorch: they are called as functions.
      if (graph::Function* const hook = hook_of(node)) {
        mentions_.add(*hook);
        return str(hook->name(), "(", uses(node.inputs()), ", )");
      }
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
      return str("unchecked_cast(", annotation(node.output()->type), ", ", use(node.input()), ")");
    case Kind::Uninitialized:
      return str("uninitialized(", annotation(node.output()->type), ")");
    case Kind::Wait:
      return str("torch.wait(", use(node.input()), ")");
    default:
      throw Error(str("a program with ", node.kind_name(), " cannot be written as text"));
  }
}

std::string ExpressionWriter::is_instance(Node& node) {
  std::string types;
  for (const Type& type : node.types) {
    types += (types.empty() ? "" : ", ") + annotation(type);
  }
  return str("isinstance(", use(node.input()), ", ",
             node.types.size() == 1 ? types : "(" + types + ")", ")");
}

std::string ExpressionWriter::annotate(const Type& type, const std::string& text) {
  return str("annotate(", annotation(type), ", ", text, ")");
}
std::string ExpressionWriter::list(Node& node) {
  const Type& type = node.output()->type;
  const std::string text = "[" + uses(node.inputs()) + "]";
  return all_have_type(node.inputs(), 0, 1, type.of[0]) ? text : annotate(type, text);
}
std::string ExpressionWriter::dict(Node& node) {
  const Type& type = node.output()->type;
  std::string text;
  for (size_t i = 0; i + 1 < node.inputs().size(); i += 2) {
    const std::string key = use(node.input(i));
    text += (i == 0 ? "" : ", ") + key + ": " + use(node.input(i + 1));
  }
  text = "{" + text + "}";
  const bool plain = all_have_type(node.inputs(), 0, 2, type.of[0]) &&
                     all_have_type(node.inputs(), 1, 2, type.of[1]);
  return plain ? text : annotate(type, text);
}
std::string ExpressionWriter::tuple(Node& node) {
  const Type& type = node.output()->type;
  if (type.is(TypeKind::NamedTuple)) {
    return str(annotation(type), "(", uses(node.inputs()), ")");
  }
  return "(" + uses(node.inputs()) + (node.inputs().size() == 1 ? ",)" : ")");
}

// A function of the language: some are written in forms of their own.
std::string ExpressionWriter::builtin(Node& node) {
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
    const std::string of =
        node.input(0)->node()->kind == Kind::Constant ? use_of(node.input(0)) : use(node.input(0));
    return str(of, "[", use(node.input(1)), "]");
  }
  if (name == "aten::percentFormat" && node.inputs().size() > 2) {
    const std::string text = use(node.input(0));
    return str("torch.percentFormat(", text, ", (", uses(node.inputs(), 1), "))");
  }
  if (name == "prim::tolist") {
    return annotate(node.output()->type, use(node.input()) + ".tolist()");
  }
  return call(schema, node);
}

std::string ExpressionWriter::call(const Schema& schema, const Node& node) {
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
    out += (i == 0 ? "" : ", ") + (keyword ? schema.arguments[i].name + "=" : "") + use(inputs[i]);
  }
  return out + ")";
}

}  // namespace rushlight::script
