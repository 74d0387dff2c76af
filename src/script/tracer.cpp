// Traces of C++ programs: an upper mode that runs each op and writes a node for it.
#include <rushlight/tracer.h>

#include "graph/recorder.h"

namespace rushlight::jit {

// ---- graphs ----

TracedGraph::TracedGraph() : graph_(std::make_unique<graph::Graph>()) {}

TracedGraph::Value* TracedGraph::Value::setType(const std::shared_ptr<script_types::Type>& type) {
  RL_CHECK(type != nullptr, "setType: expected a type, got null");
  value->set_type(type->type());
  return this;
}

TracedGraph::Value* TracedGraph::wrap(graph::Value* value) {
  made_.emplace_back().value = value;
  return &made_.back();
}
TracedGraph::Value* TracedGraph::insertInput(size_t place, const std::string& name) {
  RL_CHECK(graph_ != nullptr, "the graph of this trace is a function's already");
  RL_CHECK(place >= graph_->inputs().size(), "insertInput: expected the place behind ",
           graph_->inputs().size(), " inputs, got ", place);
  return wrap(graph_->add_input(Type{Type::Kind::Tensor}, name));
}
size_t TracedGraph::registerOutput(Value* value) {
  RL_CHECK(graph_ != nullptr && value != nullptr,
           "registerOutput: expected a value of the graph of a trace");
  return graph_->add_output(value->value);
}
std::unique_ptr<graph::Graph> TracedGraph::take() {
  RL_CHECK(graph_ != nullptr, "the graph of this trace is a function's already");
  return std::move(graph_);
}

// ---- traces ----

namespace tracer {

// Tensors are known by their objects: one that autograd no longer follows is another value.
struct TracingState::Recorder final : graph::Recorder {
  using graph::Recorder::Recorder;

  graph::Value* find(const Tensor& t) override {
    const auto found = known.find(t.impl());
    return found == known.end() ? nullptr : found->second.second;
  }
  void note(const Tensor& t, graph::Value* value) override { known[t.impl()] = {t, value}; }
  graph::Value* constant(const Tensor& t) override {
    return graph_.constant(t.detach(), {Type::Kind::Tensor});
  }

  // The tensors themselves, so that no other one gets their address.
  std::unordered_map<const TensorImpl*, std::pair<Tensor, graph::Value*>> known;
  std::unique_ptr<ModeScope> scope;
};

namespace {

thread_local std::shared_ptr<TracingState> current;

}  // namespace

TracingState::TracingState()
    : graph(std::make_shared<TracedGraph>()),
      recorder_(std::make_unique<Recorder>(graph->graph())) {}
TracingState::~TracingState() = default;

void TracingState::setValue(const IValue& of, TracedGraph::Value* value) {
  RL_CHECK(of.isTensor() && of.toTensor().defined() && value != nullptr,
           "setValue: expected a tensor and a value of the graph, got a ", of.kind_name());
  recorder_->remember(of, value->value);
}
bool TracingState::hasValue(const IValue& of) const {
  return of.isTensor() && of.toTensor().defined() && recorder_->find(of.toTensor()) != nullptr;
}
TracedGraph::Value* TracingState::getValue(const IValue& of) {
  RL_CHECK(of.isTensor(), "getValue: expected a tensor, got a ", of.kind_name());
  graph::Value* const found = recorder_->find(of.toTensor());
  return graph->wrap(found != nullptr
                         ? found
                         : graph->graph().constant(of.toTensor().detach(), {Type::Kind::Tensor}));
}
TracedGraph::Value* TracingState::getOutput(const IValue& of, size_t place) {
  RL_CHECK(hasValue(of), "result ", place, " of the trace did not have observable data dependence",
           " on its inputs: no op of this thread made it while the trace was taken");
  return getValue(of);
}

const std::shared_ptr<TracingState>& getTracingState() { return current; }
void setTracingState(std::shared_ptr<TracingState> state) {
  if (current != nullptr) {
    current->recorder_->scope.reset();
  }
  current = std::move(state);
  if (current != nullptr) {
    current->recorder_->scope =
        std::make_unique<ModeScope>(*current->recorder_, ModeScope::Level::Upper);
  }
}
void abandon() { setTracingState(nullptr); }

}  // namespace tracer

// ---- objects ----

ObjectRef::ObjectRef(const IValue& value) {
  Object* const object = object_of(value);
  RL_CHECK(object != nullptr, "expected an object of a class of programs, got a ",
           value.kind_name());
  object_ = intrusive_ptr<CustomClassHolder>(object);
}
namespace {
Object& object_in(const intrusive_ptr<CustomClassHolder>& held) {
  return static_cast<Object&>(*held);
}
}  // namespace
std::shared_ptr<script_types::ClassType> ObjectRef::type() const {
  return object_in(object_).value().type()->expect<script_types::ClassType>();
}
IValue ObjectRef::getAttr(const std::string& name) const { return object_in(object_).at(name); }
void ObjectRef::setAttr(const std::string& name, IValue value) const {
  object_in(object_).at(name) = std::move(value);
}
UnitRef ObjectRef::compilation_unit() const {
  ClassType& type = *object_in(object_).type;
  RL_CHECK(type.unit != nullptr, type.name, " is of no compilation unit");
  return {type.unit, type.name};
}
graph::Function* UnitRef::create_function(const std::string& name,
                                          const std::shared_ptr<TracedGraph>& graph) const {
  RL_CHECK(graph != nullptr, "create_function: expected the graph of a trace, got null");
  std::unique_ptr<graph::Graph> taken = graph->take();
  graph::Schema schema;
  schema.name = name;
  for (size_t i = 0; i < taken->inputs().size(); i++) {
    graph::Value* const input = taken->inputs()[i];
    schema.arguments.push_back({input->has_name() ? input->name() : str("x", i), input->type});
  }
  for (const graph::Value* output : taken->outputs()) {
    schema.results.push_back({"", output->type});
  }
  taken->verify();
  return &unit->add_function(class_name + "." + name, std::move(schema), std::move(taken));
}

IValue Module::create_class(const QualifiedName& name, std::vector<IValue> arguments) const {
  graph::CompilationUnit& unit = *class_type().unit;
  ClassType* const type = unit.find_class(name.qualifiedName());
  RL_CHECK(type != nullptr, "Can't find class by the name ", name.qualifiedName(),
           " in the unit of ", class_type().name);
  IValue made = unit.create(*type)->value();
  graph::Function* const init = type->find_method("__init__");
  RL_CHECK(init != nullptr, type->name, " has no __init__");
  arguments.insert(arguments.begin(), made);
  (*init)(std::move(arguments));
  return made;
}
ObjectRef Module::_ivalue() const { return ObjectRef(object()->value()); }

}  // namespace rushlight::jit

namespace rushlight {

jit::ObjectRef Value::toObjectRef() const { return jit::ObjectRef(*this); }
jit::ObjectRef Value::toObject() const { return jit::ObjectRef(*this); }

}  // namespace rushlight
