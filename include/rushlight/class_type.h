// The classes that programs of graphs define, and the values that are of them.
#pragma once

#include <rushlight/ivalue.h>

namespace rushlight {

namespace graph {
class CompilationUnit;
class Function;
}  // namespace graph

struct RL_API ClassType {
  enum class Form : uint8_t {
    Class,
    Module,  // a class whose attributes may be parameters, buffers and modules
    NamedTuple,
    Enum,
    Interface,  // methods without bodies: any class that has them is one
  };
  struct Attribute {
    std::string name;
    Type type;
    bool is_parameter = false;
    bool is_buffer = false;
    std::optional<IValue> fallback = {};  // of a NamedTuple's field
  };
  using Named = std::pair<std::string, IValue>;

  Form form = Form::Class;
  bool of_modules = false;                // of an interface: modules have it, no other objects
  std::string name;                       // "__torch__.models.Net"
  std::vector<Attribute> attributes;      // an object has a slot for each, in this order
  std::vector<Named> constants;           // the members of an enum
  std::vector<graph::Function*> methods;  // the CompilationUnit owns them
  std::vector<std::string> pre_hooks;     // of a module: methods that a call runs before `forward`
  std::vector<std::string> hooks;         // and behind it

  graph::CompilationUnit* unit = nullptr;  // that owns it

  ClassType(Form form, std::string name);
  ClassType(const ClassType&) = delete;
  ClassType& operator=(const ClassType&) = delete;

  static constexpr size_t npos = static_cast<size_t>(-1);
  size_t find_attribute(std::string_view attribute) const;  // npos where there is none
  // RuntimeError where the class has one of that name already; its place.
  size_t add_attribute(Attribute attribute);
  const IValue* find_constant(std::string_view constant) const;  // null where there is none
  graph::Function* find_method(std::string_view method) const;   // null where there is none
  void add_method(graph::Function& method);
  std::string base_name() const { return name.substr(name.rfind('.') + 1); }

 private:
  std::unordered_map<std::string, size_t> places_;  // of attributes
  std::unordered_map<std::string, graph::Function*> method_of_;
};

// An object of a class; a member of an enum, whose slots are its name and its value.
struct RL_API Object final : CustomClassHolder {
  ClassType* type;
  std::vector<IValue> slots;
  // What keeps the type alive; may be null where its owner lives for ever.
  std::shared_ptr<const void> owner;

  Object(ClassType& type, std::shared_ptr<const void> owner);  // each slot is None
  IValue& at(std::string_view attribute);                      // RuntimeError where there is none
  IValue value() { return IValue(intrusive_ptr<Object>(this)); }
};
// Null where the value is no object of a class of programs.
RL_API Object* object_of(const IValue& value);

// What a value is; of lists and dicts what their items have in common, None's list where empty.
RL_API Type type_of(const IValue& value);
// Whether a value is of a type. Of lists and dicts the items are looked at.
RL_API bool is_of(const IValue& value, const Type& type);

}  // namespace rushlight
