// What a function takes and returns, as it says itself.
#include <limits>

#include "script/lower.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using TypeKind = Type::Kind;

namespace {
std::optional<Meaning> find_constant(const Expr& e, Resolver& resolver) {
  if (e.is(Kind::Name)) {
    return resolver.find(e.text);
  }
  if (!e.is(Kind::Attribute)) {
    return {};
  }
  const std::optional<Meaning> of = find_constant(*e.of[0], resolver);
  if (of && of->is(Meaning::Kind::Space)) {
    return of->space->find(e.text);
  }
  if (of && of->is(Meaning::Kind::Class) && of->type.definition != nullptr) {
    if (const IValue* const member = of->type.definition->find_constant(e.text)) {
      return Meaning::of_constant(*member, of->type);
    }
  }
  return {};
}

IValue::Items constant_items(const Expr& e, const Text& text, Resolver& resolver) {
  IValue::Items items;
  for (const ExprPtr& part : e.of) {
    items.push_back(constant_value(*part, text, resolver));
  }
  return items;
}
}  // namespace

IValue constant_value(const Expr& e, const Text& text, Resolver& resolver) {
  switch (e.kind) {
    case Kind::Int:
      return e.integer;
    case Kind::Float:
      return e.number;
    case Kind::Imaginary:
      return Scalar(rushlight::complex<double>(0, e.number));
    case Kind::String:
      return e.text;
    case Kind::True:
    case Kind::False:
      return e.is(Kind::True);
    case Kind::None:
      return {};
    case Kind::List:
      return IValue::list(constant_items(e, text, resolver));
    case Kind::Tuple:
      return IValue::tuple(constant_items(e, text, resolver));
    case Kind::Dict: {
      auto items = make_intrusive<ivalue::DictItems>();
      for (size_t i = 0; i + 1 < e.of.size(); i += 2) {
        items->insert(constant_value(*e.of[i], text, resolver),
                      constant_value(*e.of[i + 1], text, resolver), true);
      }
      return IValue::dict(std::move(items));
    }
    case Kind::Unary:
      if (e.text == "-") {
        const IValue inner = constant_value(*e.of[0], text, resolver);
        if (inner.isScalar()) {
          return -inner.toScalar();
        }
      }
      break;
    case Kind::Binary: {  // 1.+2.j
      const IValue a = constant_value(*e.of[0], text, resolver);
      const IValue b = constant_value(*e.of[1], text, resolver);
      if (e.text == "+" && a.isScalar() && b.isScalar()) {
        const auto x = a.toScalar().to<rushlight::complex<double>>();
        const auto y = b.toScalar().to<rushlight::complex<double>>();
        return Scalar(rushlight::complex<double>(x.re + y.re, x.im + y.im));
      }
      break;
    }
    case Kind::Call:
      if (e.of[0]->is_name("annotate") && e.of.size() == 3) {
        return constant_value(*e.of[2], text, resolver);
      }
      if (e.of[0]->text == "device" && e.of.size() == 2 && e.of[1]->is(Kind::String)) {
        return Device(e.of[1]->text);
      }
      break;
    default:
      if (const std::optional<Meaning> found = find_constant(e, resolver)) {
        if (found->is(Meaning::Kind::Constant)) {
          return found->constant;
        }
      }
  }
  fail_at(text, e.span, "this default is no value that is known when the function is compiled");
}

namespace {
// The types that a comment says, "(int, Tensor) -> Tensor", without that of self.
void add_comment(graph::Schema& schema, const Function& function, size_t first, const Text& text,
                 Resolver& resolver) {
  const std::vector<ExprPtr>& types = function.type_comment->of[0]->of;
  const size_t count = schema.arguments.size() - first;
  if (types.size() != count && types.size() != count + first) {
    fail_at(text, function.type_comment->span,
            str("the comment has ", types.size(), " types for ", count, " arguments"));
  }
  for (size_t i = 0; i < count; i++) {
    schema.arguments[first + i].type = type_of(*types[types.size() - count + i], text, resolver);
  }
}
}  // namespace

namespace {
// The n of BroadcastingListN[int], also within Optional: one value stands for n equal ones.
uint8_t broadcast_size(const Expr& annotation) {
  if (!annotation.is(Kind::Subscript)) {
    return 0;
  }
  const std::string& name = annotation.of[0]->text;
  if (name == "Optional" && annotation.of.size() == 2) {
    return broadcast_size(*annotation.of[1]);
  }
  const bool numbered = name.size() == 17 && name.starts_with("BroadcastingList");
  return numbered && name[16] >= '1' && name[16] <= '9' ? static_cast<uint8_t>(name[16] - '0') : 0;
}
}  // namespace

namespace {
// The type of a list, or of one value that stands for equal ones.
Type with_single_values(const Type& type) {
  std::vector<Type> members;
  for (const Type& member : type.members()) {
    members.push_back(member);
    if (member.is(TypeKind::List)) {
      members.push_back(member.of[0]);
    }
  }
  return Type::union_of(members);
}
}  // namespace

namespace {
// tuple[T, ...], whose length the statements say.
bool is_open_tuple(const Expr& annotation) {
  return annotation.is(Kind::Subscript) && annotation.of.back()->is(Kind::Ellipsis);
}
}  // namespace

graph::Schema signature(const Function& function, const Text& text, Resolver& resolver,
                        const std::optional<Type>& self) {
  graph::Schema out;
  out.name = function.name;
  const auto annotated = [&](const Expr& annotation, const std::string& name) {
    const std::optional<Type> known = resolver.annotation(name);
    return known ? *known : type_of(annotation, text, resolver);
  };
  for (const Parameter& parameter : function.parameters) {
    graph::Argument argument;
    argument.name = parameter.name;
    argument.keyword_only = parameter.keyword_only;
    const bool is_self = self && out.arguments.empty();
    argument.type = is_self                ? *self
                    : parameter.annotation ? annotated(*parameter.annotation, argument.name)
                                           : Type{TypeKind::Tensor};
    argument.size = parameter.annotation ? broadcast_size(*parameter.annotation) : 0;
    out.arguments.push_back(std::move(argument));
  }
  if (self && out.arguments.empty()) {
    throw Error(str("the method ", function.name, " has no argument for its object"));
  }
  std::optional<Type> returns;
  if (function.type_comment) {
    add_comment(out, function, self ? 1 : 0, text, resolver);
    if (function.type_comment->of[1]) {
      returns = type_of(*function.type_comment->of[1], text, resolver);
    }
  } else if (function.returns && !is_open_tuple(*function.returns)) {
    returns = annotated(*function.returns, "return");
  }
  if (returns) {
    out.results.push_back({"", *returns});
  }
  for (size_t i = 0; i < function.parameters.size(); i++) {  // types are known by now
    if (function.parameters[i].fallback) {
      graph::Argument& argument = out.arguments[i];
      const Type one_or_more =
          argument.size > 0 ? with_single_values(argument.type) : argument.type;
      std::optional<IValue> known = resolver.fallback(argument.name, one_or_more);
      argument.fallback = known ? std::move(*known)
                                : constant_value(*function.parameters[i].fallback, text, resolver);
      if (argument.size > 0 && argument.fallback->isScalar()) {
        argument.fallback = IValue::list(IValue::Items(argument.size, IValue(*argument.fallback)));
      }
    }
  }
  return out;
}

}  // namespace rushlight::script
