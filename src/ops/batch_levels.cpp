// The levels of vmap: tensors that have a batch, entering and leaving with gradients, random
// numbers.
#include <algorithm>
#include <memory>

#include <rushlight/forward.h>
#include <rushlight/ops.h>

#include "core/op_support.h"
#include "core/sparse.h"
#include "ops/batching.h"

namespace rushlight::batching {

namespace {

class BatchedTensor final : public SpecialTensor {
 public:
  BatchedTensor(Tensor value, int64_t level) : value_(std::move(value)), level_(level) {}
  const Tensor& value() const { return value_; }
  int64_t level() const override { return level_; }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    return call(op, arguments);
  }
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    return call_by_rules(function, std::move(arguments));
  }
  Tensor alias(const Tensor&) const override { return of_level(value_.tensor_data(), level_); }
  void check_has_memory() const override {
    throw Error(
        "Cannot access data pointer of Tensor that doesn't have storage: vmap goes through it, so "
        "it stands for many");
  }

 private:
  Tensor value_;
  int64_t level_;
};

class VmapMode final : public Mode {
 public:
  VmapMode(int64_t level, int64_t batch, Randomness randomness)
      : level_(level), batch_(batch), randomness_(randomness) {}
  int64_t level() const { return level_; }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    return call(op, arguments);
  }
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override;

 private:
  std::vector<Value> draw(const OpFunction& function, std::vector<Value> arguments, Kind kind);
  std::vector<Value> draw_in_place(const OpFunction& function, std::vector<Value> arguments);
  Tensor open(const Tensor& t, bool repeat) const;

  int64_t level_;
  int64_t batch_;
  Randomness randomness_;
};

std::vector<std::unique_ptr<VmapMode>>& open_modes() {
  static thread_local std::vector<std::unique_ptr<VmapMode>> levels;
  return levels;
}

}  // namespace

int64_t level_of(const Tensor& t) {
  return RL_UNLIKELY(is_special(t)) ? t.impl()->special()->level() : 0;
}

const Tensor& value_of(const Tensor& t) {
  return static_cast<const BatchedTensor*>(t.impl()->special())->value();
}

Tensor of_level(const Tensor& value, int64_t level) {
  if (!value.defined()) {
    return value;
  }
  auto impl = TensorImpl::make(value.storage(), value.dtype(), value.device());
  impl->set_storage_offset(value.storage_offset());
  impl->set_sizes_and_strides(value.sizes().slice(1, value.dim() - 1),
                              value.strides().slice(1, value.dim() - 1));
  impl->set_special(std::make_unique<BatchedTensor>(value, level));
  return Tensor(std::move(impl));
}

Tensor all_of(const Tensor& t) {
  Tensor out = t;
  while (level_of(out) != 0) {
    out = Tensor(value_of(out));
  }
  return out;
}

void refuse_control_flow(const Tensor& t) {
  RL_CHECK(level_of(t) == 0,
           "vmap: data-dependent control flow on a Tensor with a batch, whose samples may go "
           "different ways. Compute both ways and let `torch.where` choose");
}

bool has_batch(const Tensor& t, int64_t level) {
  const int64_t own = level_of(t);
  return own == level || (own > level && has_batch(value_of(t), level));
}

// ---- levels ----

int64_t enter(int64_t batch, Randomness randomness) {
  const auto level = static_cast<int64_t>(++tls.next_sequence);
  auto mode = std::make_unique<VmapMode>(level, batch, randomness);
  mode->below = tls.exchange_lower(mode.get());
  open_modes().push_back(std::move(mode));
  return level;
}

void leave(int64_t level) {
  auto& levels = open_modes();
  RL_CHECK(!levels.empty() && levels.back()->level() == level,
           "vmap: levels are left out of order");
  Mode* const left = levels.back().get();
  if (tls.lower() == left) {
    tls.exchange_lower(left->below);
  } else {
    for (Mode* m = tls.lower(); m != nullptr; m = m->below) {
      if (m->below == left) {
        m->below = left->below;
        break;
      }
    }
  }
  levels.pop_back();
}

int64_t current_level() { return open_modes().empty() ? 0 : open_modes().back()->level(); }

int64_t depth_of(int64_t level) {
  const auto& levels = open_modes();
  for (size_t i = 0; i < levels.size(); i++) {
    if (levels[i]->level() == level) {
      return static_cast<int64_t>(i) + 1;
    }
  }
  return 0;
}

// ---- entering and leaving ----

namespace {

// The handler of a special tensor is not asked to move a dimension to where it is.
Tensor move_dim(const Tensor& t, int64_t from, int64_t to) {
  return from == to && is_special(all_of(t)) ? t : t.movedim(from, to);
}

Tensor add_below(const Tensor& t, int64_t dim, int64_t level) {
  const int64_t own = level_of(t);
  if (own > level) {  // the innermost stays outside
    return of_level(add_below(value_of(t), dim + 1, level), own);
  }
  return of_level(move_dim(t, dim, 0), level);
}

Tensor remove_below(const Tensor& t, int64_t level, int64_t batch, int64_t dim) {
  const int64_t own = level_of(t);
  if (own == level) {
    return move_dim(value_of(t), 0, dim);
  }
  if (own > level) {
    return of_level(remove_below(value_of(t), level, batch, dim + 1), own);
  }
  DimVector sizes(t.sizes());
  sizes.insert(static_cast<size_t>(dim), batch);
  return t.unsqueeze(dim).expand(sizes);
}

// Without the levels of this thread, without recording and tangents: what is below sees ops on
// values.
class Below {
 public:
  Below() : lower_(tls.exchange_lower(nullptr)) {}
  ~Below() { tls.exchange_lower(lower_); }
  Below(const Below&) = delete;
  Below& operator=(const Below&) = delete;

 private:
  NoGradGuard no_grad_;
  forward::Below no_tangents_{1};
  Mode* lower_;
};

// Values of nodes: the level, the size of the batch, its dimension.
void add_backward(Node& node, const Tensor* grads, Tensor* result) {
  result[0] = remove_batch(grads[0], node.value(0).get<int64_t>(), node.value(1).get<int64_t>(),
                           node.value(2).get<int64_t>());
}
constexpr NodeDescriptor add_descriptor = {"AddBatchDimBackward0", add_backward, false};

void remove_backward(Node& node, const Tensor* grads, Tensor* result) {
  result[0] = add_batch(grads[0], node.value(2).get<int64_t>(), node.value(0).get<int64_t>());
}
constexpr NodeDescriptor remove_descriptor = {"RemoveBatchDimBackward0", remove_backward, false};

Tensor record_level(const NodeDescriptor& descriptor, const Tensor& input, const Tensor& result,
                    int64_t level, int64_t batch, int64_t dim) {
  if (grad_enabled() && input.requires_grad()) {
    auto node = Ref<Node>::steal(new Node(&descriptor));
    node->add_edge(input);
    node->keep(level);
    node->keep(batch);
    node->keep(dim);
    set_history(result, node);
  }
  return result;
}

}  // namespace

Tensor add_batch(const Tensor& t, int64_t dim, int64_t level) {
  const int64_t at = wrap_dim(dim, t.dim());
  RL_CHECK_INDEX(t.dim() > 0, "vmap: a tensor without dimensions has none to map over");
  const int64_t batch = t.size(at);
  Tensor result;
  {
    const Below below;
    result = add_below(t.requires_grad() ? t.tensor_data() : t, at, level);
  }
  forward::carry_tangents(t, result, [&](const Tensor& v) { return add_batch(v, at, level); });
  return record_level(add_descriptor, t, result, level, batch, at);
}

Tensor remove_batch(const Tensor& t, int64_t level, int64_t batch, int64_t dim) {
  const int64_t at = wrap_dim(dim, t.dim() + 1);
  const auto carry = [&](const Tensor& result) {
    forward::carry_tangents(t, result,
                            [&](const Tensor& v) { return remove_batch(v, level, batch, at); });
    return result;
  };
  if (!has_batch(t, level)) {
    RL_CHECK_NOT_IMPLEMENTED(!is_sparse(t) || !has_batch(find_sparse(t)->values(), level),
                             "vmap: a sparse tensor whose values have a batch cannot be a result. "
                             "Return its values(), or to_dense()");
    DimVector sizes(t.sizes());
    sizes.insert(static_cast<size_t>(at), batch);
    Tensor result;
    {
      const forward::Below no_tangents(1);
      result = t.unsqueeze(at).expand(sizes);
    }
    return carry(result);
  }
  Tensor result;
  {
    const Below below;
    result = remove_below(t, level, batch, at);
    const bool shown = level_of(result) == 0 && result.is_view() && !result.requires_grad();
    if (shown) {  // a view of an argument, made outside of the graph
      result.impl()->view().kind = ViewKind::Normal;
    }
    if ((!shown && level_of(result) == 0) || t.requires_grad()) {
      result = result.tensor_data();
    }
  }
  return record_level(remove_descriptor, t, carry(result), level, batch, at);
}

void take_value(const Tensor& t, const Tensor& from) {
  TensorImpl& impl = *t.impl();
  impl.set_storage(from.storage());
  impl.set_storage_offset(from.storage_offset());
  impl.set_sizes_and_strides(from.sizes(), from.strides());
  impl.set_special(std::make_unique<BatchedTensor>(value_of(from), level_of(from)));
}

Tensor leave_levels(const Tensor& grad, uint64_t recorded, uint64_t input, const Tensor& leaf) {
  Tensor out = grad;
  for (Tensor t = grad; level_of(t) != 0; t = Tensor(value_of(t))) {
    const auto level = static_cast<uint64_t>(level_of(t));
    if (recorded >= level && input < level && !(leaf.defined() && has_batch(leaf, level_of(t)))) {
      const int64_t batch = value_of(t).size(0);
      out = remove_batch(out, static_cast<int64_t>(level), batch, 0).sum(0);
    }
  }
  return out;
}

// ---- random numbers ----

namespace {
[[noreturn]] void refuse_same_for_batch(const OpFunction& function) {
  throw Error(
      str("vmap: ", function.overloads[0].name,
          " does not currently support same randomness with a batched tensor, whose samples "
          "differ. Pass randomness='different', or a tensor without a batch."));
}
}  // namespace

std::vector<Value> VmapMode::take(const OpFunction& function, std::vector<Value> arguments) {
  const OpFunction& made = function.functional != nullptr ? *function.functional : function;
  const Kind kind = made.batch.empty() ? Kind::View : made.batch[0].kind;
  if (kind != Kind::Random && kind != Kind::RandomLike) {
    return call_by_rules(function, std::move(arguments));
  }
  RL_CHECK(randomness_ != Randomness::Error,
           "vmap: called random operation while in randomness error mode. randomness='same' draws "
           "once for all samples, 'different' for each");
  const bool writes = !function.arguments().empty() && function.arguments()[0].type.written;
  return writes ? draw_in_place(function, std::move(arguments))
                : draw(function, std::move(arguments), kind);
}

// A tensor with the batch of this level in front; one without is repeated or left alone.
Tensor VmapMode::open(const Tensor& t, bool repeat) const {
  return has_batch(t, level_) ? remove_below(t, level_, batch_, 0)
         : repeat             ? remove_below(t, level_, batch_, 0)
                              : t;
}

std::vector<Value> VmapMode::draw(const OpFunction& function, std::vector<Value> arguments,
                                  Kind kind) {
  bool batched = false;
  bool tensors = false;
  for (const Value& v : arguments) {
    v.for_each_tensor([&](const Tensor& t) {
      batched |= t.defined() && has_batch(t, level_);
      tensors |= t.defined();
    });
  }
  if (randomness_ == Randomness::Same) {
    if (batched && kind != Kind::RandomLike) {
      refuse_same_for_batch(function);
    }
    if (batched) {  // only the form of the tensor counts
      arguments[0].change_tensors(
          [&](const Tensor& t) { return remove_below(t, level_, batch_, 0).select(0, 0); });
    }
    return function.call(arguments);
  }
  bool sized = false;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (is_size(function, i)) {
      DimVector sizes = arguments[i].get<DimVector>();
      sizes.insert(0, batch_);
      arguments[i] = Value(std::move(sizes));
      sized = true;
    }
    arguments[i].change_tensors([&](const Tensor& t) { return open(t, /*repeat=*/true); });
  }
  if (sized || tensors) {
    std::vector<Value> results = function.call(arguments);
    for (Value& v : results) {
      v.change_tensors([&](const Tensor& t) { return add_below(t, 0, level_); });
    }
    return results;
  }
  std::vector<Tensor> each;
  for (int64_t i = 0; i < batch_; i++) {
    each.push_back(function.call(arguments)[0].get<Tensor>());
  }
  return {Value(add_below(stack(each), 0, level_))};
}

std::vector<Value> VmapMode::draw_in_place(const OpFunction& function,
                                           std::vector<Value> arguments) {
  const Tensor self = arguments[0].get<Tensor>();
  bool others = false;
  for (size_t i = 1; i < arguments.size(); i++) {
    arguments[i].for_each_tensor(
        [&](const Tensor& t) { others |= t.defined() && has_batch(t, level_); });
  }
  const bool batched = has_batch(self, level_);
  if (randomness_ == Randomness::Same) {
    if (others) {
      refuse_same_for_batch(function);
    }
    if (!batched) {
      return function.call(arguments);
    }
    const Tensor all = remove_below(self, level_, batch_, 0);
    arguments[0] = Value(empty_like(all.select(0, 0)));
    all.copy_(function.call(arguments)[0].get<Tensor>());
    return {Value(self)};
  }
  RL_CHECK(batched,
           "vmap: no different inplace randomness on an unbatched tensor, which holds one draw. "
           "Make the tensor by an op on an argument of the function that vmap goes through, or "
           "draw numbers by an op that is not in place.");
  for (Value& v : arguments) {
    v.change_tensors([&](const Tensor& t) { return open(t, /*repeat=*/true); });
  }
  function.call(arguments);
  return {Value(self)};
}

}  // namespace rushlight::batching
