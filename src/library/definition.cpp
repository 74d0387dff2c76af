#include "library/definition.h"

#include "core/functions.h"

namespace rushlight::library {

namespace {

// Types that schemas name beyond the built-in ones: classes that C++ programs have bound.
struct BoundClasses final : TypeNames {
  std::optional<Type> find(std::string_view name) const override {
    if (name.rfind("__torch__.torch.classes.", 0) != 0) {
      return std::nullopt;
    }
    return Type{Type::Kind::Object, {}, std::string(name)};
  }
};

std::optional<BaseType> base_of(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::Tensor:
      return BaseType::Tensor;
    case Type::Kind::Scalar:
      return BaseType::Scalar;
    case Type::Kind::Int:
      return BaseType::Int;
    case Type::Kind::Float:
      return BaseType::Float;
    case Type::Kind::Bool:
      return BaseType::Bool;
    case Type::Kind::String:
      return BaseType::String;
    case Type::Kind::ScalarType:
      return BaseType::ScalarType;
    case Type::Kind::Device:
      return BaseType::Device;
    case Type::Kind::Layout:
      return BaseType::Layout;
    case Type::Kind::MemoryFormat:
      return BaseType::MemoryFormat;
    case Type::Kind::Generator:
      return BaseType::Generator;
    default:
      return std::nullopt;
  }
}

// What rows of the table can say of a type; nothing where they cannot.
std::optional<TypeInfo> as_row(const Type& type) {
  TypeInfo out;
  const Type* inner = &type;
  const auto unwrap = [&](Type::Kind kind) {
    const bool is = inner->is(kind);
    inner = is ? &inner->of[0] : inner;
    return is;
  };
  out.optional = unwrap(Type::Kind::Optional);
  out.is_list = unwrap(Type::Kind::List);
  out.element_optional = out.is_list && unwrap(Type::Kind::Optional);
  const std::optional<BaseType> base = base_of(inner->kind);
  const bool list_of_others =
      out.is_list && base != BaseType::Tensor && base != BaseType::Int && base != BaseType::Float;
  if (!base || list_of_others || (out.element_optional && base != BaseType::Tensor)) {
    return std::nullopt;
  }
  out.base = *base;
  return out;
}

}  // namespace

Definition::Definition(std::string text, uint32_t tags, std::string python_module)
    : OpFunction{run_library_op, {}},
      text_(std::move(text)),
      python_module_(std::move(python_module)) {
  static const auto& bound = *new BoundClasses;
  schema_ = graph::parse_schema(text_, &bound);
  for (const graph::Argument& a : schema_.arguments) {
    arguments_.push_back({a.name.c_str(), type_info(a), default_info(a), a.keyword_only});
  }
  for (const graph::Argument& r : schema_.results) {
    results_.push_back({r.name.c_str(), type_info(r)});
  }
  row_ = {schema_.space.c_str(),
          schema_.name.c_str(),
          schema_.overload.c_str(),
          arguments_,
          results_,
          this,
          arguments_,
          nullptr,
          tags,
          text_.c_str()};
  rule_ = {batching::Kind::Slices, ~uint64_t{0}};
  overloads = {&row_, 1};
  batch = {&rule_, 1};
}

std::string Definition::full_name() const {
  return schema_.qualified_name() + (schema_.overload.empty() ? "" : "." + schema_.overload);
}

TypeInfo Definition::type_info(const graph::Argument& argument) {
  std::optional<TypeInfo> out = as_row(argument.type);
  if (!out) {
    out.emplace();
    out->base = BaseType::Other;
    out->of = &types_.emplace_back(argument.type);
  }
  out->size = argument.size;
  out->written = argument.written;
  out->alias = argument.alias;
  return *out;
}

DefaultInfo Definition::default_info(const graph::Argument& argument) {
  DefaultInfo out;
  if (argument.fallback) {
    out.kind = DefaultInfo::Boxed;
    out.value = &defaults_.emplace_back(*argument.fallback);
  }
  return out;
}

const Definition* definition_of(const OpInfo& op) {
  return is_defined_by_library(op) ? static_cast<const Definition*>(op.function) : nullptr;
}

const OpInfo& define(const std::string& space, const std::string& schema, uint32_t tags,
                     const std::string& python_module) {
  const std::string text = schema.rfind(space + "::", 0) == 0 ? schema : space + "::" + schema;
  // Never freed: whoever found the op may keep it.
  auto* const made = new Definition(text, tags, python_module);
  const bool is_new = find_op_named(made->full_name()) == nullptr;
  if (!is_new) {
    const std::string name = made->full_name();
    delete made;
    throw Error(str("Tried to register an operator (", name,
                    ") with the same name and overload name multiple times."));
  }
  add_op(made->row());
  functions::attach_waiting_rows(made->row());
  return made->row();
}

void undefine(const OpInfo& op) { remove_op(op); }

}  // namespace rushlight::library
