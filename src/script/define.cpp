// Programs that C++ makes of text: Module::define, jit::compile.
#include <rushlight/functions.h>
#include <rushlight/script.h>

#include "script/lower.h"
#include "script/prelude.h"

namespace rushlight::jit {

namespace {

using rushlight::script::Meaning;

// A name is a function of the unit, `torch` or `ops`.
class UnitNames : public rushlight::script::Resolver {
 public:
  explicit UnitNames(const graph::CompilationUnit& unit) : unit_(unit) {}
  std::optional<Meaning> find(std::string_view name) override {
    if (graph::Function* const function = unit_.find_function(name)) {
      return Meaning::of_function(*function);
    }
    return rushlight::script::op_name(name);
  }
  std::optional<Meaning> member(const Type&, graph::Value*, std::string_view) override {
    return {};
  }
  std::optional<std::vector<std::string>> submodules(const Type&) override { return {}; }

 private:
  const graph::CompilationUnit& unit_;
};

// Compiles the functions of a text, in their order; methods where there is a class.
void define_text(graph::CompilationUnit& unit, ClassType* owner, const std::string& source) {
  namespace script = rushlight::script;
  const auto text = std::make_shared<graph::Source>();
  text->text = source;
  text->file = "<string>";
  UnitNames names(unit);
  const std::optional<Type> self =
      owner != nullptr ? std::optional(Type::of_class(*owner)) : std::nullopt;
  for (const script::Stmt& s : script::parse(text)) {
    RL_CHECK(s.kind == script::Stmt::Kind::Def, "a program of text has functions alone:\n",
             script::range_of(text, s.span).excerpt());
    graph::Schema schema = script::signature(*s.function, text, names, self);
    std::optional<Type> returns;
    if (!schema.results.empty()) {
      returns = schema.results[0].type;
    }
    script::Lowering lowering(unit, names, text, script::newest_version);
    std::unique_ptr<graph::Graph> graph = lowering.lower(*s.function, schema, returns);
    if (schema.results.empty()) {
      schema.results.push_back({"", *returns});
    }
    if (owner != nullptr) {
      unit.add_method(*owner, s.function->name, std::move(schema), std::move(graph));
    } else {
      unit.add_function(s.function->name, std::move(schema), std::move(graph));
    }
  }
}

}  // namespace

// ---- modules ----

Module::Module(const std::string& class_name) {
  const auto unit = std::make_shared<graph::CompilationUnit>();
  const bool qualified = class_name.starts_with("__torch__.");
  ClassType& type =
      unit->add_class(ClassType::Form::Module, qualified ? class_name : "__torch__." + class_name);
  type.add_attribute({"training", Type{Type::Kind::Bool}});
  object_ = unit->create(type);
  object()->slots[0] = true;
}

void Module::register_attribute(const std::string& name, const Type& wanted, IValue value,
                                bool is_parameter, bool is_buffer) {
  RL_CHECK(is_of(value, wanted), "the attribute '", name, "' is of type ", wanted.annotation(),
           ", and the value is of another");
  RL_CHECK(object()->slots.size() == class_type().attributes.size(), class_type().name,
           " has got attributes by way of another object of its class");
  class_type().add_attribute({name, wanted, is_parameter, is_buffer});
  object()->slots.push_back(std::move(value));
}
void Module::register_parameter(const std::string& name, Tensor value, bool is_buffer) {
  register_attribute(name, Type{Type::Kind::Tensor}, std::move(value), !is_buffer, is_buffer);
}
void Module::register_buffer(const std::string& name, Tensor value) {
  register_parameter(name, std::move(value), true);
}
void Module::register_module(const std::string& name, const Module& module) {
  register_attribute(name, Type::of_class(module.class_type()), module.object()->value());
}

void Module::define(const std::string& source) {
  define_text(*class_type().unit, &class_type(), source);
}

// ---- functions ----

CompilationUnit::CompilationUnit() : unit_(std::make_shared<graph::CompilationUnit>()) {}

void CompilationUnit::define(const std::string& source) { define_text(*unit_, nullptr, source); }

graph::Function* CompilationUnit::find_function(const std::string& name) const {
  return unit_->find_function(name);
}
graph::Function& CompilationUnit::get_function(const std::string& name) const {
  graph::Function* const found = find_function(name);
  RL_CHECK(found != nullptr, "the unit has no function '", name, "'");
  return *found;
}

std::vector<graph::Function*> CompilationUnit::get_functions() const {
  std::vector<graph::Function*> out;
  for (const auto& function : unit_->functions()) {
    out.push_back(function.get());
  }
  return out;
}

IValue CompilationUnit::call(const std::string& name, std::vector<IValue> arguments) const {
  return get_function(name)(std::move(arguments));
}

std::shared_ptr<CompilationUnit> compile(const std::string& source) {
  auto unit = std::make_shared<CompilationUnit>();
  unit->define(source);
  return unit;
}

}  // namespace rushlight::jit
