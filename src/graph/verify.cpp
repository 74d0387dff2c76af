// Whether a graph is well formed.
#include <algorithm>
#include <unordered_set>

#include <rushlight/graph_function.h>

namespace rushlight::graph {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void block(const Block& block) {
    std::vector<const Value*> made = check_outputs(*block.param_node());
    for (const Node* const node : block) {
      require(node->block() == &block && node->next()->previous() == node, *node,
              "is not linked into its block");
      inputs(*node);
      shape(*node);
      for (const Block* const inner : node->blocks()) {
        require(inner->owner() == node, *node, "has a block of another node");
        this->block(*inner);
      }
      const std::vector<const Value*> outputs = check_outputs(*node);
      made.insert(made.end(), outputs.begin(), outputs.end());
    }
    inputs(*block.return_node());
    for (const Value* const value : made) {
      visible_.erase(value);
    }
  }

 private:
  static void require(bool holds, const Node& node, const std::string& what) {
    RL_CHECK(holds, "a graph is not well formed: ", node.kind_name(), " ", what,
             node.range.is_known() ? " at " + node.range.place() : "");
  }

  std::vector<const Value*> check_outputs(const Node& node) {
    std::vector<const Value*> out;
    for (size_t i = 0; i < node.outputs().size(); i++) {
      const Value* const value = node.output(i);
      require(value->node() == &node && value->place() == i, node, "has an output of another node");
      visible_.insert(value);
      out.push_back(value);
    }
    return out;
  }

  void inputs(const Node& node) const {
    require(&node.graph() == &graph_, node, "is of another graph");
    for (size_t i = 0; i < node.inputs().size(); i++) {
      const Value* const value = node.input(i);
      require(visible_.count(value) != 0, node,
              "takes %" + value->name() + ", which is not made before it or is out of sight");
      require(std::count(value->uses().begin(), value->uses().end(),
                         Use{const_cast<Node*>(&node), i}) == 1,
              node, "is not among the uses of its input %" + value->name());
    }
  }

  static void counts(const Node& node, size_t in, size_t out, size_t blocks) {
    require(node.inputs().size() == in && node.outputs().size() == out &&
                node.blocks().size() == blocks,
            node,
            rushlight::str("has ", node.inputs().size(), " inputs, ", node.outputs().size(),
                           " outputs and ", node.blocks().size(), " blocks, not ", in, ", ", out,
                           " and ", blocks));
  }

  static void shape(const Node& node) {
    const size_t in = node.inputs().size();
    switch (node.kind) {
      case Kind::Op:
        require(node.op != nullptr, node, "has no op");
        counts(node, node.op->arguments.size(), node.op->results.size(), 0);
        break;
      case Kind::Builtin: {
        require(node.builtin != nullptr, node, "has no function");
        const Schema& schema = node.builtin->schema;
        counts(node, schema.variadic ? in : schema.arguments.size(), schema.results.size(), 0);
        break;
      }
      case Kind::If:
      case Kind::Loop:
        check_control(node);
        break;
      case Kind::CallFunction:
        require(node.function != nullptr, node, "has no function");
        break;
      case Kind::CallMethod:
      case Kind::GetAttr:
      case Kind::SetAttr:
      case Kind::CreateObject:
        check_objects(node);
        break;
      case Kind::Param:
      case Kind::Return:
        require(false, node, "stands within a block");
        break;
      default:
        check_values(node);
    }
  }

  static void check_control(const Node& node) {
    const size_t out = node.outputs().size();
    if (node.kind == Kind::If) {
      counts(node, 1, out, 2);
      for (const Block* const branch : node.blocks()) {
        require(branch->params().empty() && branch->returns().size() == out, node,
                "has a branch that makes another number of values");
      }
      return;
    }
    counts(node, out + 2, out, 1);
    const Block& body = node.block(0);
    require(body.params().size() == out + 1 && body.returns().size() == out + 1, node,
            "has a body that takes or makes another number of values");
  }

  static void check_objects(const Node& node) {
    if (node.kind == Kind::CreateObject) {
      counts(node, 0, 1, 0);
      require(node.output()->type.definition != nullptr, node, "makes no object of a class");
      return;
    }
    require(node.find_attribute("name") != nullptr, node, "has no name");
    if (node.kind == Kind::CallMethod) {
      require(!node.inputs().empty(), node, "has no object");
    } else {
      const bool gets = node.kind == Kind::GetAttr;
      counts(node, gets ? 1 : 2, gets ? 1 : 0, 0);
    }
  }

  static void check_values(const Node& node) {
    const size_t in = node.inputs().size();
    switch (node.kind) {
      case Kind::Constant:
        counts(node, 0, 1, 0);
        require(node.find_attribute("value") != nullptr, node, "has no value");
        break;
      case Kind::DictConstruct:
        require(in % 2 == 0, node, "has a key without a value");
        counts(node, in, 1, 0);
        break;
      case Kind::ListConstruct:
      case Kind::TupleConstruct:
        counts(node, in, 1, 0);
        break;
      case Kind::ListUnpack:
      case Kind::TupleUnpack:
        counts(node, 1, node.outputs().size(), 0);
        break;
      case Kind::TupleIndex:
        counts(node, 2, 1, 0);
        break;
      case Kind::TupleSlice:
      case Kind::IsInstance:
      case Kind::UncheckedCast:
      case Kind::Wait:
        counts(node, 1, 1, 0);
        break;
      case Kind::Uninitialized:
        counts(node, 0, 1, 0);
        break;
      default:
        break;
    }
  }

  const Graph& graph_;
  std::unordered_set<const Value*> visible_;
};

}  // namespace

void Graph::verify() const { Verifier(*this).block(*block_); }

}  // namespace rushlight::graph
