// Functions that are graphs, and the units that own them and the classes.
#include <mutex>

#include <rushlight/graph_function.h>

namespace rushlight::graph {

// ---- functions ----

namespace {
// Graphs are made by one thread at a time: making one may ask for others.
std::recursive_mutex& making() {
  static auto* const mutex = new std::recursive_mutex();
  return *mutex;
}
}  // namespace

Function::Making::~Making() = default;

Function::Function(std::string name, Schema schema, std::unique_ptr<Graph> graph)
    : schema(std::move(schema)), name_(std::move(name)), graph_(std::move(graph)) {}
Function::~Function() = default;

Graph& Function::graph() {
  const std::lock_guard<std::recursive_mutex> lock(making());
  if (graph_ == nullptr && maker_ != nullptr) {
    const std::unique_ptr<Making> make = std::move(maker_);
    graph_ = (*make)();
  }
  RL_CHECK(graph_ != nullptr, name_,
           " has no graph: it is a method of an interface, or it calls "
           "itself, which graphs cannot");
  return *graph_;
}

void Function::set_graph(std::unique_ptr<Graph> graph) {
  const std::lock_guard<std::recursive_mutex> lock(making());
  graph_ = std::move(graph);
}

// ---- units ----

CompilationUnit::CompilationUnit() = default;
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
  of.methods.push_back(&made);
  return made;
}

ClassType* CompilationUnit::find_class(std::string_view name) const {
  const auto found = class_of_.find(std::string(name));
  return found == class_of_.end() ? nullptr : found->second;
}

Function* CompilationUnit::find_function(std::string_view name) const {
  const auto found = function_of_.find(std::string(name));
  return found == function_of_.end() ? nullptr : found->second;
}

std::optional<Type> CompilationUnit::find(std::string_view name) const {
  ClassType* const found = find_class(name);
  return found == nullptr ? std::nullopt : std::optional<Type>(Type::of_class(*found));
}

intrusive_ptr<Object> CompilationUnit::create(ClassType& type) {
  return make_intrusive<Object>(type, shared_from_this());
}

}  // namespace rushlight::graph
