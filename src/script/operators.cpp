// Operators of one and of two sides, and comparisons.
#include <algorithm>

#include "script/lower.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using TypeKind = Type::Kind;

graph::Value* Lowering::unary(const Expr& e) {
  if (e.text == "not") {
    return truth_of(condition(e));
  }
  Value* const of = value(*e.of[0]);
  if (e.text == "+") {
    return of;
  }
  if (of->type.is(TypeKind::Class)) {
    const char* const method = e.text == "-" ? "__neg__" : "__invert__";
    return as_value(call(attribute_of_value(of, method, e.span), {}, e.span), e.span);
  }
  if (e.text == "~" && (of->type.is(TypeKind::Int) || of->type.is(TypeKind::Bool))) {
    Value* const number = of->type.is(TypeKind::Int) ? of : op("aten::Int", {of}, e.span);
    return op("aten::__xor__", {number, integer(-1)}, e.span);
  }
  return op(e.text == "-" ? "aten::neg" : "aten::bitwise_not", {of}, e.span);
}

namespace {
bool is_number(const Type& type) {
  return type.is(TypeKind::Int) || type.is(TypeKind::Float) || type.is(TypeKind::Scalar) ||
         type.is(TypeKind::Complex) || type.is(TypeKind::Bool);
}

std::string_view function_of(std::string_view op) {
  constexpr std::pair<std::string_view, std::string_view> functions[] = {
      {"+", "add"},           {"-", "sub"},       {"*", "mul"},     {"/", "div"},
      {"//", "floordiv"},     {"%", "remainder"}, {"**", "pow"},    {"@", "matmul"},
      {"&", "__and__"},       {"|", "__or__"},    {"^", "__xor__"}, {"<<", "__lshift__"},
      {">>", "__rshift__"},   {"<", "lt"},        {">", "gt"},      {"<=", "le"},
      {">=", "ge"},           {"==", "eq"},       {"!=", "ne"},     {"is", "__is__"},
      {"is not", "__isnot__"}};
  for (const auto& [text, function] : functions) {
    if (text == op) {
      return function;
    }
  }
  return "";
}

// The comparison with its sides exchanged.
std::string_view swap_sides(std::string_view op) {
  return op == "<" ? ">" : op == ">" ? "<" : op == "<=" ? ">=" : op == ">=" ? "<=" : op;
}
}  // namespace

graph::Value* Lowering::operation(const std::string& text, Value* left, Value* right, Span span) {
  const auto function = [&](std::string_view symbol) {
    return "aten::" + std::string(function_of(symbol));
  };
  if (text == "%" && left->type.is(TypeKind::String)) {
    std::vector<Value*> values = {left};
    if (right->type.is_tuple()) {
      for (const Meaning& part : parts_of(Meaning::of_value(right), span)) {
        values.push_back(part.value);
      }
    } else {
      values.push_back(right);
    }
    return op("aten::percentFormat", values, span);
  }
  if (text == "+" && left->type.is_tuple() && right->type.is_tuple()) {
    std::vector<Meaning> parts = parts_of(Meaning::of_value(left), span);
    for (Meaning& part : parts_of(Meaning::of_value(right), span)) {
      parts.push_back(std::move(part));
    }
    return as_value(Meaning::list(Meaning::Kind::Tuple, "", std::move(parts)), span);
  }
  const auto is_repeated = [](const Value* text, const Value* times) {
    return text->type.is(TypeKind::String) && times->type.is(TypeKind::Int);
  };
  if (text == "*" && (is_repeated(left, right) || is_repeated(right, left))) {
    const bool first = left->type.is(TypeKind::String);
    Value* const one = list_of({first ? left : right}, nullptr, span);
    Value* const all = op("aten::mul", {one, first ? right : left}, span);
    return op("aten::join", {constant("", Type{TypeKind::String}), all}, span);
  }
  if (text == "//" && (left->type.is(TypeKind::Tensor) || right->type.is(TypeKind::Tensor))) {
    return op("aten::floor_divide", {left, right}, span);
  }
  if (is_number(left->type) && right->type.is(TypeKind::Tensor)) {
    if (text == "+" || text == "*" || text == "==" || text == "!=" || text == "&" || text == "|" ||
        text == "^" || swap_sides(text) != text) {
      return op(function(swap_sides(text)), {right, left}, span);
    }
    if (text == "-") {
      return op("aten::rsub", {right, left}, span);
    }
    if (text == "/") {
      return op("aten::mul", {op("aten::reciprocal", {right}, span), left}, span);
    }
  }
  if (left->type.is(TypeKind::Class) && text != "is" && text != "is not") {
    constexpr std::pair<std::string_view, std::string_view> methods[] = {
        {"/", "__truediv__"}, {"//", "__floordiv__"}, {"%", "__mod__"},
        {"&", "__and__"},     {"|", "__or__"},        {"^", "__xor__"}};
    std::string method = "__" + std::string(function_of(text)) + "__";
    for (const auto& [symbol, name] : methods) {
      method = symbol == text ? name : method;
    }
    const ClassType& type = *left->type.definition;
    if (type.find_method(method) == nullptr) {
      resolver_.member(left->type, left, method);  // compiles it
    }
    graph::Function* const found = type.find_method(method);
    if (found == nullptr) {
      fail(span, str("the class ", left->type.annotation(), " has no ", method));
    }
    return call_function(*found, {{right}, {}}, span, left);
  }
  return op(function(text), {left, right}, span);
}

graph::Value* Lowering::binary(const Expr& e) {
  Value* const left = value(*e.of[0]);
  Value* const right = value(*e.of[1]);
  return operation(e.text, left, right, e.span);
}

std::optional<std::vector<std::string>> Lowering::submodule_names(const Value* value) {
  return value->type.is(TypeKind::Class) ? resolver_.submodules(value->type) : std::nullopt;
}

graph::Value* Lowering::compare(const Expr& e) {
  if (e.text == "is" || e.text == "is not") {
    if (e.of[0]->is(Kind::None) || e.of[1]->is(Kind::None)) {
      return truth_of(is_none(e));
    }
  }
  Value* const left = value(*e.of[0]);
  Value* const right = value(*e.of[1]);
  if (e.text == "in" || e.text == "not in") {
    Value* out;
    if (right->type.is(TypeKind::String)) {
      Value* const at = op("aten::find", {right, left}, e.span);
      out = op("aten::ne", {at, integer(-1)}, e.span);
    } else if (right->type.is_tuple()) {
      std::vector<Value*> parts;
      for (const Meaning& part : parts_of(Meaning::of_value(right), e.span)) {
        parts.push_back(part.value);
      }
      out = op("aten::__contains__", {list_of(parts, nullptr, e.span), left}, e.span);
    } else if (const auto names = submodule_names(right)) {
      const IValue* const key = left->constant();
      if (key == nullptr || !key->isString()) {
        fail(e.span, "a list or dict of modules is asked for a name that is known");
      }
      out = constant(std::find(names->begin(), names->end(), key->toStringRef()) != names->end(),
                     Type{TypeKind::Bool});
      return e.text == "in" ? out : constant(!out->constant()->toBool(), Type{TypeKind::Bool});
    } else if (right->type.is(TypeKind::Class)) {
      const Meaning method = attribute_of_value(right, "__contains__", e.span);
      out = as_value(call(method, {{left}, {}}, e.span), e.span);
    } else {
      out = op("aten::__contains__", {right, left}, e.span);
    }
    return e.text == "in" ? out : op("aten::__not__", {out}, e.span);
  }
  return operation(e.text, left, right, e.span);
}

}  // namespace rushlight::script
