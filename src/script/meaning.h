// What expressions stand for while a text is lowered: values of the graph, and what the compiler
// alone knows, such as functions, types and modules of names.
#pragma once

#include <functional>

#include <rushlight/graph_function.h>

#include "script/ast.h"

namespace rushlight::script {

struct Meaning;
struct Scope;

// What has names behind a dot: `torch`, a module of Python, a package of an archive.
class RL_API Space {
 public:
  virtual ~Space();
  virtual std::optional<Meaning> find(std::string_view name) = 0;
  virtual std::string describe() const = 0;
};

// A function that the compiler carries out itself.
struct Closure {
  const Function* function;
  Scope* scope;
};

struct Meaning {
  enum class Kind : uint8_t {
    Value,     // value
    Constant,  // constant, of a value that has no node yet
    Op,        // name: "aten::add", to be called
    Special,   // name: a form of the language, to be called: "annotate"
    Function,  // function
    Method,    // name of the class of `value`
    Property,  // name of the method of the class of `value` that gives it
    OpMethod,  // a method of a built-in type: name is called with `value` in front
    Class,     // type is called to make an object, or is asked for its names
    TypeName,  // type stands for itself, as in isinstance
    Space,
    Tuple,     // of
    Iterable,  // name: "range", "zip", …, of `of`
    Closure,
    Slice,      // of: start, stop and step, each None where it is left out
    Overloads,  // of: functions or methods, of which the first that fits is called
  };
  Kind kind = Kind::Value;
  graph::Value* value = nullptr;
  std::string name = {};
  graph::Function* function = nullptr;
  Type type = {};
  IValue constant = {};
  std::shared_ptr<Space> space = {};
  std::shared_ptr<Closure> closure = {};
  std::vector<Meaning> of = {};

  bool is(Kind k) const { return kind == k; }
  static Meaning of_value(graph::Value* value) { return {Kind::Value, value}; }
  static Meaning named(Kind kind, std::string name) { return {kind, nullptr, std::move(name)}; }
  static Meaning of_function(graph::Function& function) {
    return {Kind::Function, nullptr, {}, &function};
  }
  static Meaning of_type(Type type, Kind kind = Kind::Class) {
    return {kind, nullptr, {}, nullptr, std::move(type)};
  }
  static Meaning of_constant(IValue constant, Type type) {
    return {Kind::Constant, nullptr, {}, nullptr, std::move(type), std::move(constant)};
  }
  static Meaning of_space(std::shared_ptr<Space> space) {
    Meaning out = named(Kind::Space, {});
    out.space = std::move(space);
    return out;
  }
  static Meaning list(Kind kind, std::string name, std::vector<Meaning> of) {
    Meaning out = named(kind, std::move(name));
    out.of = std::move(of);
    return out;
  }
};

// Says what free names mean: those of archives, or those around a function of Python.
class RL_API Resolver {
 public:
  virtual ~Resolver();
  virtual std::optional<Meaning> find(std::string_view name) = 0;
  // What an object's class has beyond attributes and methods: constants, methods that are compiled
  // when they are asked for.
  virtual std::optional<Meaning> member(const Type& of, graph::Value* object,
                                        std::string_view name) = 0;
  // The names of the submodules of a list or dict of modules; nothing where it is neither.
  virtual std::optional<std::vector<std::string>> submodules(const Type& of) = 0;
  // The type of a parameter, or of the result by "return", where it is known by other means than
  // the text.
  virtual std::optional<Type> annotation(const std::string& parameter);
  // The default of a parameter, where it is known by other means than the text.
  virtual std::optional<IValue> fallback(const std::string& parameter, const Type& type);
  // Told of all that is made of a text, in expressions and parts of types; that of archives raises
  // where it is far more than the text is long: loops over tuples are unrolled, and `x = (x, x)`
  // doubles a type each time.
  virtual void spend(size_t n);
};

// How many types there are in a type, itself included.
size_t parts_of(const Type& type);

// The names that all texts have: int, len, range, isinstance, …; nothing for others.
std::optional<Meaning> language_name(std::string_view name);

// A value that is written as literals and names of constants, such as a default.
IValue constant_value(const Expr& e, const Text& text, Resolver& resolver);
// A function's schema by its annotations, without results where it does not say them; `self`: the
// type of a method's object.
RL_API graph::Schema signature(const Function& function, const Text& text, Resolver& resolver,
                               const std::optional<Type>& self);

// The type that an annotation says; fails at the annotation where it is none.
Type type_of(const Expr& annotation, const Text& text, Resolver& resolver);

}  // namespace rushlight::script
