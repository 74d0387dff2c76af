// What passes ask of graphs, and the order in which they run.
#include "graph/passes/passes.h"

#include <cstring>

#include "graph/builtins.h"

namespace rushlight::graph {

bool is_immutable(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Int:
    case Type::Kind::Float:
    case Type::Kind::Bool:
    case Type::Kind::Scalar:
    case Type::Kind::Complex:
    case Type::Kind::String:
    case Type::Kind::ScalarType:
    case Type::Kind::Layout:
    case Type::Kind::MemoryFormat:
    case Type::Kind::Device:
    case Type::Kind::None:
      return true;
    case Type::Kind::Optional:
    case Type::Kind::Tuple:
    case Type::Kind::NamedTuple:
    case Type::Kind::Union:
      return std::all_of(type.of.begin(), type.of.end(), is_immutable);
    default:
      return false;
  }
}

Writes::Writes(const Block& block) {
  for (const Node* const node : block) {
    switch (node->kind) {
      case Kind::If:
      case Kind::Loop:
        for (const Block* const inner : node->blocks()) {
          const Writes more(*inner);
          memory = memory || more.memory;
          attributes = attributes || more.attributes;
        }
        break;
      case Kind::SetAttr:
        attributes = true;
        break;
      case Kind::RaiseException:
        break;
      case Kind::CallFunction:
      case Kind::CallMethod:
      case Kind::Enter:
      case Kind::Exit:
      case Kind::Fork:
      case Kind::Wait:
      case Kind::Opaque:
        memory = attributes = true;
        break;
      default:
        memory = memory || node->has_side_effects();
    }
  }
}

void replace_with_values(Node* node, const std::vector<Value*>& values) {
  for (size_t i = 0; i < values.size(); i++) {
    node->output(i)->replace_all_uses(values[i]);
  }
  node->erase();
}

void replace_with_constant(Node* node, IValue value) {
  const InsertPoint before(node->graph(), node);
  const SourceRange range = std::exchange(node->graph().range, node->range);
  Value* const made = node->graph().constant(std::move(value), node->output()->type);
  node->graph().range = range;
  replace_with_values(node, {made});
}

bool same_constants(const Value& a, const Value& b) {
  if (a.type != b.type || a.constant() == nullptr || b.constant() == nullptr) {
    return false;
  }
  const IValue& x = *a.constant();
  const IValue& y = *b.constant();
  if (x.isDouble() && y.isDouble()) {  // 0.0 and -0.0 differ, NaNs do not
    const double p = x.toDouble();
    const double q = y.toDouble();
    return std::memcmp(&p, &q, sizeof p) == 0;
  }
  if (x.isTensor() || y.isTensor() || x.isObject() || y.isObject()) {
    return (x.isTensor() && y.isTensor() && x.toTensor().impl() == y.toTensor().impl()) ||
           (x.isObject() && y.isObject() && x.object().get() == y.object().get());
  }
  return is_immutable(a.type) && type_of(x) == type_of(y) && equal(x, y);
}

bool only_ops_read(const Value& value) {
  return std::all_of(value.uses().begin(), value.uses().end(), [](const Use& use) {
    return use.node->kind == Kind::Op && !use.node->op->is_mutable() && !use.node->op->is_view();
  });
}

void optimize(Graph& graph) {
  inline_calls(graph);
  constexpr int most = 8;
  bool changes = true;
  for (int i = 0; i < most && changes; i++) {
    changes = simplify(graph);
    changes = propagate_constants(graph) || changes;
    changes = merge_common_nodes(graph) || changes;
    changes = remove_dead_code(graph) || changes;
  }
  pool_constants(graph);
}

}  // namespace rushlight::graph
