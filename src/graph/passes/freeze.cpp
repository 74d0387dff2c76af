// Modules whose attributes stay as they are, and batch norms that become part of convolutions.
#include <algorithm>
#include <map>
#include <unordered_set>

#include <rushlight/autograd.h>
#include <rushlight/ops.h>

#include "cpu/kept_weights.h"
#include "graph/passes/passes.h"

namespace rushlight::graph {

namespace {

// Names that some node sets, of whatever object; all where calls may set more.
struct SetNames {
  std::unordered_set<std::string> names;
  bool any = false;
  explicit SetNames(const Block& block) {
    for_each_node(block, [&](const Node* node) {
      if (node->kind == Kind::SetAttr) {
        names.insert(node->text_attribute("name"));
      }
      any = any || node->kind == Kind::CallMethod || node->kind == Kind::CallFunction ||
            node->kind == Kind::Fork || node->kind == Kind::Enter || node->kind == Kind::Exit;
    });
  }
  bool has(const std::string& name) const { return any || names.count(name) != 0; }
};

// Lists and dicts may be changed by who holds them: only what ops read of them is taken.
bool may_freeze(const Value& value) {
  const Type& type = value.type;
  return is_immutable(type) || type.is(Type::Kind::Tensor) || type.is(Type::Kind::Object) ||
         (type.is(Type::Kind::Optional) && type.of[0].is(Type::Kind::Tensor)) ||
         (type.is(Type::Kind::List) && only_ops_read(value));
}

class Freezer {
 public:
  Freezer(const Graph& graph, const IValue& self, const std::set<std::string>& kept)
      : set_(graph.block()) {
    set_.names.insert(kept.begin(), kept.end());
    objects_[graph.inputs().at(0)] = self;
  }

  bool block(const Block& block) {
    bool changed = false;
    for (Node* const node : block) {
      for (const Block* const inner : node->blocks()) {
        changed = this->block(*inner) || changed;
      }
      changed = (node->kind == Kind::GetAttr && attribute(node)) || changed;
    }
    return changed;
  }

 private:
  bool attribute(Node* node) {
    const auto holder = objects_.find(node->input());
    const std::string name = node->text_attribute("name");
    if (holder == objects_.end() || set_.has(name)) {
      return false;
    }
    Object* const object = object_of(holder->second);
    if (object == nullptr) {
      return false;
    }
    const IValue value = object->at(name);
    if (object_of(value) != nullptr) {
      objects_[node->output()] = value;
      return false;  // dead code once its own attributes are constants
    }
    if (!may_freeze(*node->output())) {
      return false;
    }
    replace_with_constant(node, value.isTensor() ? IValue(value.toTensor().detach()) : value);
    return true;
  }

  SetNames set_;
  std::unordered_map<const Value*, IValue> objects_;
};

// ---- batch norms ----

const Tensor* tensor_in(const Value& value, Tensor& place) {
  const IValue* const constant = value.constant();
  if (constant == nullptr || !constant->isTensor()) {
    return nullptr;
  }
  place = constant->toTensor();
  return &place;
}

bool is_convolution(const Node& node) {
  const std::string name = node.kind_name();
  if (node.kind != Kind::Op) {
    return false;
  }
  if (name == "aten::conv1d" || name == "aten::conv2d" || name == "aten::conv3d") {
    return true;
  }
  if (name != "aten::convolution" && name != "aten::_convolution") {
    return false;
  }
  const IValue* const transposed = node.input(6)->constant();
  return transposed != nullptr && transposed->isBool() && !transposed->toBool();
}

// Whether a value is used by one node alone, beside questions that its numbers do not answer.
bool has_one_reader(const Value& value) {
  constexpr std::string_view questions[] = {"aten::dim", "aten::size", "prim::dtype",
                                            "prim::device"};
  return std::count_if(value.uses().begin(), value.uses().end(), [&](const Use& use) {
           return std::find(std::begin(questions), std::end(questions), use.node->kind_name()) ==
                  std::end(questions);
         }) == 1;
}

struct Folded {
  Tensor weight;
  Tensor bias;
};
// The weights of a convolution that does what conv and norm do together; nothing where some of
// theirs are not known.
std::optional<Folded> fold_norm(const Node& conv, const Node& norm) {
  Tensor weight;
  Tensor mean;
  Tensor variance;
  if (tensor_in(*conv.input(1), weight) == nullptr || tensor_in(*norm.input(3), mean) == nullptr ||
      tensor_in(*norm.input(4), variance) == nullptr) {
    return std::nullopt;
  }
  const auto optional_tensor = [](const Value& value, Tensor otherwise) -> std::optional<Tensor> {
    const IValue* const constant = value.constant();
    if (constant == nullptr) {
      return std::nullopt;
    }
    return constant->isNone() ? otherwise : constant->toTensor();
  };
  const std::optional<Tensor> bias = optional_tensor(*conv.input(2), zeros_like(mean));
  const std::optional<Tensor> scale = optional_tensor(*norm.input(1), ones_like(mean));
  const std::optional<Tensor> shift = optional_tensor(*norm.input(2), zeros_like(mean));
  const IValue* const training = norm.input(5)->constant();
  const IValue* const epsilon = norm.input(7)->constant();
  if (!bias || !scale || !shift || training == nullptr || training->toBool() ||
      epsilon == nullptr || weight.dim() < 3) {
    return std::nullopt;
  }
  const NoGradGuard off;
  const Tensor factor = *scale * (variance + epsilon->toScalar()).rsqrt();
  DimVector sizes(static_cast<size_t>(weight.dim()), 1);
  sizes[0] = -1;
  return Folded{(weight * factor.reshape(sizes)).to(weight.dtype()),
                ((*bias - mean) * factor + *shift).to(weight.dtype())};
}

}  // namespace

bool freeze_attributes(Graph& graph, const IValue& self, const std::set<std::string>& kept) {
  RL_CHECK(!graph.inputs().empty() && object_of(self) != nullptr,
           "freezing needs a graph whose first input is an object, and the object");
  return Freezer(graph, self, kept).block(graph.block());
}

bool fold_batch_norms(Graph& graph) {
  bool changed = false;
  for_each_node(graph.block(), [&](Node* norm) {
    if (norm->kind != Kind::Op || norm->kind_name() != "aten::batch_norm") {
      return;
    }
    Node* const conv = norm->input()->node();
    if (!is_convolution(*conv) || !has_one_reader(*conv->output()) ||
        conv->block() != norm->block()) {
      return;
    }
    const std::optional<Folded> both = fold_norm(*conv, *norm);
    if (!both) {
      return;
    }
    const InsertPoint before(graph, conv);
    conv->set_input(1, graph.constant(both->weight, {Type::Kind::Tensor}));
    conv->set_input(2, graph.constant(both->bias, {Type::Kind::Tensor}));
    replace_with_values(norm, {conv->output()});
    changed = true;
  });
  return changed;
}

bool keep_weights(Graph& graph) {
  std::map<std::pair<const void*, std::vector<int64_t>>, Tensor>
      kept;  // some have two convolutions
  for_each_node(graph.block(), [&](Node* conv) {
    Tensor weight;
    if (!is_convolution(*conv) || tensor_in(*conv->input(1), weight) == nullptr ||
        !weight.is_cpu() || weight.layout() != kStrided || !weight.is_contiguous() ||
        weight.numel() == 0) {
      return;
    }
    Tensor& copy = kept[{weight.data_ptr(), weight.sizes().vec()}];
    if (!copy.defined()) {
      copy = cpu::keep_weight(weight);
    }
    const InsertPoint before(graph, conv);
    conv->set_input(1, graph.constant(copy, {Type::Kind::Tensor}));
  });
  return !kept.empty();
}

}  // namespace rushlight::graph
