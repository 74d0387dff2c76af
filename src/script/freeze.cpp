// jit::freeze: a module as one graph for each method, with its attributes as constants.
#include <algorithm>

#include <rushlight/graph_passes.h>
#include <rushlight/script.h>

namespace rushlight::jit {

namespace {

using graph::Graph;
using graph::Kind;
using graph::Node;

template <class F>
void for_each_node(const graph::Block& block, const F& f) {
  for (Node* const node : block) {
    f(*node);
    for (const graph::Block* const inner : node->blocks()) {
      for_each_node(*inner, f);
    }
  }
}

struct Frozen {
  graph::Function* from;
  std::unique_ptr<Graph> graph;
};

void tidy(Graph& graph) {
  for (bool changed = true; changed;) {
    changed = graph::propagate_constants(graph);
    changed = graph::simplify(graph) || changed;
    changed = graph::remove_dead_code(graph) || changed;
  }
}

// What becomes of weights: nothing; batch norms are folded into them; that, and they are kept in
// the layouts that kernels want.
enum class How { Exact, Folded, Kept };

void freeze_graph(Graph& graph, const IValue& self, const std::set<std::string>& kept, How how) {
  while (graph::freeze_attributes(graph, self, kept)) {
    tidy(graph);
  }
  if (how != How::Exact && graph::fold_batch_norms(graph)) {
    tidy(graph);
  }
  if (how == How::Kept && graph::keep_weights(graph)) {
    tidy(graph);
  }
  graph::pool_constants(graph);
}

// The attributes of the object that methods still ask for, or set.
std::set<std::string> used_names(const std::vector<Frozen>& methods) {
  std::set<std::string> out;
  for (const Frozen& one : methods) {
    for (const graph::Use& use : one.graph->inputs().at(0)->uses()) {
      const bool named = use.node->kind == Kind::GetAttr || use.node->kind == Kind::SetAttr ||
                         use.node->kind == Kind::CallMethod;
      RL_CHECK(named && use.place == 0,
               "freezing a module that its program hands on: ", use.node->kind_name());
      out.insert(use.node->text_attribute("name"));
    }
  }
  return out;
}

// A class of the same package that the unit does not have.
std::string new_name(const graph::CompilationUnit& unit, const ClassType& type) {
  const size_t dot = type.name.rfind('.');
  std::string out;
  for (int i = 0; out.empty() || unit.find_class(out) != nullptr; i++) {
    out = str(type.name.substr(0, dot), ".___torch_mangle_", i, type.name.substr(dot));
  }
  return out;
}

Module frozen_module(const Module& module, const std::vector<std::string>& preserved, How how) {
  RL_CHECK(!module.is_training(),
           "Freezing is currently only implemented for modules in eval mode: call eval() first");
  ClassType& type = module.class_type();
  std::vector<std::string> names = preserved;
  const bool named = std::find(names.begin(), names.end(), "forward") != names.end();
  if (!named && type.find_method("forward") != nullptr) {
    names.insert(names.begin(), "forward");
  }
  std::vector<Frozen> methods;
  std::set<std::string> kept = {preserved.begin(), preserved.end()};
  for (const std::string& name : names) {
    graph::Function* const method = type.find_method(name);
    RL_CHECK(method != nullptr || module.hasattr(name), "the module has no '", name,
             "', neither a method nor an attribute");
    if (method != nullptr) {
      methods.push_back({method, method->graph().clone()});
      graph::inline_calls(*methods.back().graph);
      for_each_node(methods.back().graph->block(), [&](const Node& node) {
        if (node.kind == Kind::SetAttr) {
          kept.insert(node.text_attribute("name"));
        }
      });
    }
  }
  const IValue self = module.object()->value();
  for (const Frozen& one : methods) {
    freeze_graph(*one.graph, self, kept, how);
  }
  std::set<std::string> used = used_names(methods);
  used.insert(preserved.begin(), preserved.end());
  used.insert("training");
  graph::CompilationUnit& unit = *type.unit;
  ClassType& made = unit.add_class(ClassType::Form::Module, new_name(unit, type));
  for (const ClassType::Attribute& attribute : type.attributes) {
    if (used.count(attribute.name) != 0) {
      made.add_attribute(attribute);
    }
  }
  made.constants = type.constants;
  const intrusive_ptr<Object> object = unit.create(made);
  for (const ClassType::Attribute& attribute : made.attributes) {
    object->at(attribute.name) = module.object()->at(attribute.name);
  }
  for (Frozen& one : methods) {
    graph::Schema schema = one.from->schema;
    schema.arguments.at(0).type = Type::of_class(made);
    one.graph->inputs().at(0)->set_type(Type::of_class(made));
    unit.add_method(made, one.from->base_name(), std::move(schema), std::move(one.graph));
  }
  return Module(object);
}

}  // namespace

Module freeze(const Module& module, const std::vector<std::string>& preserved_attrs,
              bool optimize_numerics) {
  return frozen_module(module, preserved_attrs, optimize_numerics ? How::Folded : How::Exact);
}

Module optimize_for_inference(const Module& module, const std::vector<std::string>& other_methods) {
  if (module.is_training()) {
    module.eval();
  }
  return frozen_module(module, other_methods, How::Kept);
}

}  // namespace rushlight::jit
