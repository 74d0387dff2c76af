// Annotations as types.
#include "script/meaning.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using TypeKind = Type::Kind;

Space::~Space() = default;
Resolver::~Resolver() = default;
std::optional<Type> Resolver::annotation(const std::string&) { return {}; }
std::optional<IValue> Resolver::fallback(const std::string&, const Type&) { return {}; }
void Resolver::spend(size_t) {}

size_t parts_of(const Type& type) {
  size_t out = 1;
  for (const Type& part : type.of) {
    out += parts_of(part);
  }
  return out;
}

namespace {

// What the last part of a name says: `List`, `typing.List`, `torch.Tensor`.
std::optional<Type> simple_type(std::string_view name) {
  constexpr std::pair<std::string_view, TypeKind> names[] = {
      {"Tensor", TypeKind::Tensor},       {"int", TypeKind::Int},
      {"float", TypeKind::Float},         {"bool", TypeKind::Bool},
      {"str", TypeKind::String},          {"complex", TypeKind::Complex},
      {"number", TypeKind::Scalar},       {"Scalar", TypeKind::Scalar},
      {"NoneType", TypeKind::None},       {"None", TypeKind::None},
      {"Device", TypeKind::Device},       {"device", TypeKind::Device},
      {"Generator", TypeKind::Generator}, {"Stream", TypeKind::Stream},
      {"Storage", TypeKind::Storage},     {"Any", TypeKind::Any},
      {"ScalarType", TypeKind::Int},      {"Layout", TypeKind::Int},
      {"MemoryFormat", TypeKind::Int},    {"dtype", TypeKind::Int},
      {"layout", TypeKind::Int},          {"memory_format", TypeKind::Int}};
  for (const auto& [text, kind] : names) {
    if (text == name) {
      return Type{kind};
    }
  }
  return {};
}

class Annotation {
 public:
  Annotation(const Text& text, Resolver& resolver) : text_(text), resolver_(resolver) {}

  Type type(const Expr& e) const {
    switch (e.kind) {
      case Kind::None:
        return {TypeKind::None};
      case Kind::Name:
      case Kind::Attribute:
        return type_named(e);
      case Kind::String: {
        auto quoted = std::make_shared<graph::Source>(graph::Source{e.text, text_->file});
        const ExprPtr inner = parse_expression(quoted);
        return Annotation(quoted, resolver_).type(*inner);
      }
      case Kind::Subscript:
        return generic(e);
      case Kind::Binary:
        if (e.text == "|") {
          return Type::union_of({type(*e.of[0]), type(*e.of[1])});
        }
        break;
      default:
        break;
    }
    fail_at(text_, e.span, "this is no type that compiled code knows");
  }

 private:
  static std::string last_name(const Expr& e) {
    return e.is(Kind::Name) || e.is(Kind::Attribute) ? e.text : "";
  }

  std::optional<Meaning> meaning(const Expr& e) const {
    if (e.is(Kind::Name)) {
      return resolver_.find(e.text);
    }
    const std::optional<Meaning> of = meaning_of_base(*e.of[0]);
    return of && of->is(Meaning::Kind::Space) ? of->space->find(e.text) : std::nullopt;
  }
  std::optional<Meaning> meaning_of_base(const Expr& e) const {
    return e.is(Kind::Name) || e.is(Kind::Attribute) ? meaning(e) : std::nullopt;
  }

  Type type_named(const Expr& e) const {
    if (const std::optional<Type> simple = simple_type(last_name(e))) {
      return *simple;
    }
    const std::optional<Meaning> found = meaning(e);
    if (found && (found->is(Meaning::Kind::Class) || found->is(Meaning::Kind::TypeName))) {
      return found->type;
    }
    const std::string name = last_name(e);
    if (name == "list" || name == "List" || name == "dict" || name == "Dict" || name == "tuple" ||
        name == "Tuple" || name == "Optional") {
      fail_at(text_, e.span,
              str("Attempted to use ", name, " without a contained type: say of what"));
    }
    fail_at(text_, e.span,
            str("Unknown type name '", text_->text.substr(e.span.begin, e.span.end - e.span.begin),
                "'"));
  }

  Type generic(const Expr& e) const {
    const std::string name = last_name(*e.of[0]);
    if ((name == "Tuple" || name == "tuple") && e.of.size() == 3 && e.of[2]->is(Kind::Ellipsis)) {
      return Type::list(type(*e.of[1]));  // of a length that is not known
    }
    std::vector<Type> of;
    const bool empty = e.of.size() == 2 && e.of[1]->is(Kind::Tuple) && e.of[1]->of.empty();
    for (size_t i = 1; i < e.of.size() && !empty; i++) {
      of.push_back(type(*e.of[i]));
    }
    const auto takes = [&](size_t n) {
      if (of.size() != n) {
        fail_at(text_, e.span, str(name, " takes ", n, " types, not ", of.size()));
      }
    };
    if (name == "List" || name == "list") {
      takes(1);
      return Type::list(of[0]);
    }
    if (name == "Optional") {
      takes(1);
      return Type::optional(of[0]);
    }
    if (name == "Dict" || name == "dict") {
      takes(2);
      return Type::dict(of[0], of[1]);
    }
    if (name == "Tuple" || name == "tuple") {
      return Type::tuple(std::move(of));
    }
    if (name == "Union") {
      return Type::union_of(of);
    }
    if (name == "Future") {
      takes(1);
      return Type::future(of[0]);
    }
    if (name == "Final") {
      takes(1);
      return of[0];
    }
    if (name.starts_with("BroadcastingList")) {
      takes(1);
      return Type::list(of[0]);
    }
    if (name == "Await") {
      takes(1);
      return {TypeKind::Await, of};
    }
    fail_at(text_, e.of[0]->span, str("Unknown type constructor ", name));
  }

  const Text& text_;
  Resolver& resolver_;
};

}  // namespace

Type type_of(const Expr& annotation, const Text& text, Resolver& resolver) {
  Type out = Annotation(text, resolver).type(annotation);
  resolver.spend(parts_of(out));
  return out;
}

}  // namespace rushlight::script
