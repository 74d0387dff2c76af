// What values of graphs and arguments of schemas may be: tensors, numbers, strings, lists, dicts,
// tuples, and classes, which programs define.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <rushlight/export.h>

namespace rushlight {

struct ClassType;

struct RL_API Type {
  enum class Kind : uint8_t {
    Any,
    Tensor,
    Int,
    Float,
    Bool,
    Scalar,  // any number
    String,
    ScalarType,  // these three are integers where programs see them
    Device,
    Layout,
    MemoryFormat,
    Generator,
    List,        // of one
    Tuple,       // of each
    Dict,        // of two
    Object,      // of the C++ class `name`
    Optional,    // of one
    None,        // that value alone
    Complex,     //
    Union,       // of one among these
    Future,      // of one
    Await,       // of one
    RRef,        // of one; named in schemas and never made
    Function,    // named in schemas and never made
    Stream,      //
    Storage,     //
    Class,       // of `definition`, whose form says which of the four it is
    NamedTuple,  // a tuple whose parts have names; of each
    Enum,
    Interface,
    Variable,  // of schemas: any type, the same wherever `name` stands
  };
  Kind kind = Kind::Any;
  std::vector<Type> of = {};
  std::string name = {};
  // Of the last four but one. Whoever owns the definition (a CompilationUnit) outlives its users.
  ClassType* definition = nullptr;

  static Type list(Type item) { return {Kind::List, {std::move(item)}}; }
  static Type optional(Type item);  // itself where it holds None already
  static Type tuple(std::vector<Type> items) { return {Kind::Tuple, std::move(items)}; }
  static Type dict(Type key, Type value) {
    return {Kind::Dict, {std::move(key), std::move(value)}};
  }
  static Type future(Type item) { return {Kind::Future, {std::move(item)}}; }
  // Without what others of them include; Optional and single types where they say the same.
  static Type union_of(const std::vector<Type>& members);
  static Type of_class(ClassType& definition);
  static Type variable(std::string name) { return {Kind::Variable, {}, std::move(name)}; }

  std::string str() const;         // as graphs spell it: "Tensor", "int[]", "Dict(str, Tensor)?"
  std::string annotation() const;  // as programs do: "List[int]", "Optional[Dict[str, Tensor]]"

  bool is(Kind k) const { return kind == k; }
  bool is_tuple() const { return kind == Kind::Tuple || kind == Kind::NamedTuple; }
  bool has_variables() const;
  // The members of a union, the item and None of an optional, itself otherwise.
  std::vector<Type> members() const;
  bool may_be_none() const;
  bool operator==(const Type& other) const;
  bool operator!=(const Type& other) const { return !(*this == other); }
  // Whether each value of this type is one of the other. Lists and dicts hold exactly what they
  // say.
  bool is_subtype_of(const Type& other) const;
};

// The type of what is of one type or of the other: the wider of them, an Optional where one is
// None; nothing where there is no such type but a union.
RL_API std::optional<Type> unify(const Type& a, const Type& b);

using TypeVariables = std::unordered_map<std::string, Type>;
// Whether a value of type `actual` may stand where `formal` does, which may have variables: those
// that are not bound yet get bound.
RL_API bool match(const Type& formal, const Type& actual, TypeVariables& variables);
// The type with what its variables are bound to in their place; itself where one is not bound.
RL_API Type substitute(const Type& type, const TypeVariables& variables);

// Finds what a type text names beyond the built-in types: "__torch__.models.Net".
class RL_API TypeNames {
 public:
  virtual ~TypeNames();
  virtual std::optional<Type> find(std::string_view name) const = 0;
};
// Reads either spelling, that of graphs and that of programs; RuntimeError says where the text is
// wrong. Lower-case names of one letter are variables.
RL_API Type parse_type(std::string_view text, const TypeNames* names = nullptr);

}  // namespace rushlight
