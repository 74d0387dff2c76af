// Functions that are graphs, and the units that own them and the classes.
#include <algorithm>
#include <mutex>

#include <rushlight/graph_passes.h>

#include "graph/code.h"

namespace rushlight::graph {

// ---- functions ----

namespace {
// Graphs are made by one thread at a time: making one may ask for others.
std::recursive_mutex& creation_mutex() {
  static auto* const mutex = new std::recursive_mutex();
  return *mutex;
}
}  // namespace

Function::Making::~Making() = default;
Function::Native::~Native() = default;

Function::Function(std::string name, Schema schema, std::unique_ptr<Graph> graph)
    : schema(std::move(schema)), name_(std::move(name)), graph_(std::move(graph)) {}
Function::~Function() = default;

std::shared_ptr<Graph> Function::shared_graph() {
  RL_CHECK(native_ == nullptr, "Could not export Python function call '", base_name(),
           "': it is no program, and has neither a graph nor a text");
  const std::lock_guard<std::recursive_mutex> lock(creation_mutex());
  if (graph_ == nullptr && maker_ != nullptr) {
    const std::unique_ptr<Making> make = std::move(maker_);
    graph_ = (*make)();
  }
  RL_CHECK(graph_ != nullptr, name_,
           " has no graph: it is a method of an interface, or it calls "
           "itself, which graphs cannot");
  return graph_;
}

void Function::set_graph(std::unique_ptr<Graph> graph) {
  const std::lock_guard<std::recursive_mutex> lock(creation_mutex());
  RL_CHECK(program_ == nullptr, name_, " has run: its graph cannot change");
  graph_ = std::move(graph);
}

const Program& Function::program() {
  if (const Program* const made = compiled_.load(std::memory_order_acquire)) {
    return *made;
  }
  const std::lock_guard<std::recursive_mutex> lock(creation_mutex());
  if (program_ == nullptr) {
    const std::unique_ptr<Graph> copy =
        graph().clone();  // the graph itself stays as it was written
    optimize(*copy);
    program_ = std::make_unique<const Program>(*copy, base_name());
    compiled_.store(program_.get(), std::memory_order_release);
  }
  return *program_;
}

std::vector<IValue> Function::run(std::vector<IValue> arguments) {
  return native_ != nullptr ? (*native_)(std::move(arguments))
                            : program().run(std::move(arguments));
}

namespace {
void check_type(const std::string& function, const Argument& argument, const IValue& value) {
  RL_CHECK(is_of(value, argument.type), function, "(): expected a value of type '",
           argument.type.annotation(), "' for argument '", argument.name, "' but got one of type '",
           type_of(value).annotation(), "'");
}
}  // namespace

IValue Function::operator()(std::vector<IValue> arguments,
                            std::vector<std::pair<std::string, IValue>> by_name) {
  const std::vector<Argument>& wanted = schema.arguments;
  const std::string name = base_name();
  RL_CHECK(arguments.size() <= wanted.size(), name, "(): expected at most ", wanted.size(),
           " arguments but got ", arguments.size(), ": ", schema.str());
  std::vector<bool> is_there(wanted.size());
  std::fill_n(is_there.begin(), arguments.size(), true);
  arguments.resize(wanted.size());
  for (auto& [key, value] : by_name) {
    const auto found = std::find_if(wanted.begin(), wanted.end(),
                                    [&](const Argument& a) { return a.name == key; });
    RL_CHECK(found != wanted.end(), name, "(): there is no argument '", key, "': ", schema.str());
    const auto place = static_cast<size_t>(found - wanted.begin());
    RL_CHECK(!is_there[place], name, "(): the argument '", key, "' was passed twice");
    arguments[place] = std::move(value);
    is_there[place] = true;
  }
  for (size_t i = 0; i < wanted.size(); i++) {
    if (is_there[i]) {
      arguments[i] = shared_list(std::move(arguments[i]));
      check_type(name, wanted[i], arguments[i]);
    } else {
      RL_CHECK(wanted[i].fallback.has_value(), name, "(): missing value for argument '",
               wanted[i].name, "': ", schema.str());
      arguments[i] = *wanted[i].fallback;
    }
  }
  std::vector<IValue> results = run(std::move(arguments));
  return results.size() == 1 ? std::move(results[0])
         : results.empty()   ? IValue()
                             : IValue::tuple(std::move(results));
}

// ---- units ----

CompilationUnit::CompilationUnit(std::shared_ptr<const CompilationUnit> outer)
    : outer_(std::move(outer)) {}
CompilationUnit::~CompilationUnit() = default;

ClassType& CompilationUnit::add_class(ClassType::Form form, std::string name) {
  RL_CHECK(class_of_.count(name) == 0, "the class '", name, "' is defined already");
  classes_.push_back(std::make_unique<ClassType>(form, std::move(name)));
  ClassType& made = *classes_.back();
  made.unit = this;
  class_of_[made.name] = &made;
  return made;
}

Function& CompilationUnit::add_function(std::string name, Schema schema,
                                        std::unique_ptr<Graph> graph) {
  RL_CHECK(function_of_.count(name) == 0, "the function '", name, "' is defined already");
  functions_.push_back(
      std::make_unique<Function>(std::move(name), std::move(schema), std::move(graph)));
  Function& made = *functions_.back();
  function_of_[made.name()] = &made;
  return made;
}

Function& CompilationUnit::add_method(ClassType& of, std::string_view base_name, Schema schema,
                                      std::unique_ptr<Graph> graph) {
  Function& made =
      add_function(of.name + "." + std::string(base_name), std::move(schema), std::move(graph));
  of.add_method(made);
  return made;
}

ClassType* CompilationUnit::find_class(std::string_view name) const {
  const auto found = class_of_.find(std::string(name));
  if (found != class_of_.end()) {
    return found->second;
  }
  return outer_ != nullptr ? outer_->find_class(name) : nullptr;
}

Function* CompilationUnit::find_function(std::string_view name) const {
  const auto found = function_of_.find(std::string(name));
  if (found != function_of_.end()) {
    return found->second;
  }
  return outer_ != nullptr ? outer_->find_function(name) : nullptr;
}

std::optional<Type> CompilationUnit::find(std::string_view name) const {
  ClassType* const found = find_class(name);
  return found == nullptr ? std::nullopt : std::optional<Type>(Type::of_class(*found));
}

intrusive_ptr<Object> CompilationUnit::create(ClassType& type) {
  return make_intrusive<Object>(type, shared_from_this());
}

void CompilationUnit::keep(std::shared_ptr<const void> unit) {
  const bool is_known = unit == nullptr || unit.get() == this || unit == outer_ ||
                        std::find(kept_.begin(), kept_.end(), unit) != kept_.end();
  if (!is_known) {
    kept_.push_back(std::move(unit));
  }
}

}  // namespace rushlight::graph
