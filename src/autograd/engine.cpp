// The engine: counts dependencies, then runs what is ready. It works on the calling thread; a
// backward within a backward is a run within a run, and only when these nest very deep does one
// move to a thread of its own, for the stack's sake.
#include "autograd/engine.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <rushlight/batching.h>
#include <rushlight/record_function.h>
#include <rushlight/ops.h>

#include "core/region.h"
#include "core/sparse.h"

namespace rushlight {

namespace {

// A few tensors on the stack, more on the heap.
class TensorArray {
 public:
  explicit TensorArray(size_t n) : n_(n) {
    if (n > near_count) {
      far_ = std::make_unique<Tensor[]>(n);
    }
  }
  Tensor* data() { return far_ != nullptr ? far_.get() : near_; }
  size_t size() const { return n_; }
  void clear() {
    for (size_t i = 0; i < n_; i++) {
      data()[i].reset();
    }
  }

 private:
  static constexpr size_t near_count = 4;
  size_t n_;
  Tensor near_[near_count];
  std::unique_ptr<Tensor[]> far_;
};

bool can_add_into(const Tensor& t, const Tensor& other) {
  return !is_special(t) && !is_special(other) && t.use_count() == 1 &&
         t.storage()->use_count() == 1 && t.impl()->is_non_overlapping_and_dense();
}

// The gradient of an input that may be from outside of vmap.
Tensor leave_vmap_levels(const Tensor& grad, const Node& node, const Node& input,
                         const std::vector<int64_t>& kept) {
  const int64_t level = batching::level_of(grad);
  if (level == 0 || std::find(kept.begin(), kept.end(), level) != kept.end()) {
    return grad;
  }
  if (&input.descriptor() != &accumulate_grad_descriptor()) {
    return batching::leave_levels(grad, node.sequence(), input.sequence(), Tensor());
  }
  const Tensor leaf = leaf_of_accumulator(input);
  const AutogradMeta::Hooks* const more = leaf.impl()->autograd()->hooks.get();
  return batching::leave_levels(grad, node.sequence(), more != nullptr ? more->leaf_since : 0,
                                leaf);
}

}  // namespace

void fit_gradient(Tensor& grad, const OutputInfo& info, const char* who, size_t index) {
  if (info.dtype() == ScalarType::Undefined) {
    return;
  }
  if (RL_UNLIKELY(!info.has_sizes(grad.sizes()))) {
    const DimVector sizes = info.sizes();
    RL_CHECK(is_expandable_to(sizes, grad.sizes()), "Function ", who,
             " returned an invalid gradient at index ", index, " - got ", grad.sizes(),
             " but expected shape compatible with ", sizes);
    grad = sum_to_size(grad, sizes);
  }
  if (RL_UNLIKELY(grad.dtype() != info.dtype() && is_differentiable(info.dtype()))) {
    if (grad.is_complex() && !is_complex(info.dtype())) {
      grad = rushlight::real(grad);
    }
    grad = grad.dtype() == info.dtype() ? grad.clone() : grad.to(info.dtype());
  }
  if (RL_UNLIKELY(!(grad.device() == info.device()))) {
    RL_CHECK(grad.dim() == 0, "Function ", who, " returned an invalid gradient at index ", index,
             " - expected device ", info.device(), " but got ", grad.device());
    grad = grad.to(info.device());
  }
}

void fit_gradients(const Node& node, Tensor* grads) {
  for (size_t i = 0; i < node.num_outputs(); i++) {
    if (grads[i].defined()) {
      fit_gradient(grads[i], node.output_info(i), node.name(), i);
    }
  }
}

void run_backward_of(Node& node, Tensor* grads, Tensor* results) {
  const size_t n = node.num_outputs();
  const bool is_op = node.descriptor().backward != nullptr;
  const auto num_defined = static_cast<size_t>(
      std::count_if(grads, grads + n, [](const Tensor& g) { return g.defined(); }));
  if (is_op && num_defined != n && num_defined != 0 && !node.descriptor().undefined_grads) {
    for (size_t i = 0; i < n; i++) {
      const OutputInfo& info = node.output_info(i);
      if (!grads[i].defined() && is_differentiable(info.dtype())) {
        grads[i] = zeros(info.sizes(), TensorOptions(info.dtype()).device(info.device()));
      }
    }
  }
  if (!is_op || num_defined != 0) {
    node.apply(grads, results);
  }
}

std::atomic<uint64_t> Run::count_{0};

Node* current_node() { return tls.current_node; }
uint64_t current_run() { return tls.run == nullptr ? 0 : tls.run->number(); }
bool will_run(const Node& node) { return tls.run != nullptr && tls.run->will_run(node); }
bool run_reaches_all_leaves() { return tls.run == nullptr || !tls.run->restricted(); }

void queue_callback(std::unique_ptr<FinalCallback> callback) {
  RL_CHECK(tls.run != nullptr, "Final callbacks can only be installed during backward pass.");
  tls.run->add_callback(std::move(callback));
}

bool Run::will_run(const Node& node) const {
  const int64_t slot = find(node);
  return slot >= 0 && (states_[slot].needed || states_[slot].first_capture >= 0);
}

bool Node::is_needed_by_run(size_t i) const {
  return tls.wanted_by->leads_to_capture(*edge_data()[i].node);
}

// ---- finding a node's state ----

int64_t Run::find(const Node& node) const {
  const uint32_t slot = node.slot_.load(std::memory_order_relaxed);
  if (RL_LIKELY(slot != 0 && slot <= states_.size() && states_[slot - 1].node == &node)) {
    return slot - 1;
  }
  if (RL_UNLIKELY(!elsewhere_.empty())) {
    const auto it = elsewhere_.find(&node);
    if (it != elsewhere_.end()) {
      return it->second;
    }
  }
  return -1;
}

uint32_t Run::find_or_add(Node& node) {
  const int64_t found = find(node);
  if (found >= 0) {
    return static_cast<uint32_t>(found);
  }
  const auto slot = static_cast<uint32_t>(states_.size());
  RL_CHECK(slot != UINT32_MAX, "backward through more than four billion operations");
  states_.push_back({});
  states_.back().node = &node;
  noted_ |= node.was_noted();
  uint32_t unclaimed = 0;
  if (node.slot_.compare_exchange_strong(unclaimed, slot + 1, std::memory_order_relaxed)) {
    states_.back().claimed = true;
  } else {
    elsewhere_.emplace(&node, slot);
  }
  return slot;
}

Run::~Run() {
  for (const State& state : states_) {
    if (state.claimed) {
      state.node->slot_.store(0, std::memory_order_relaxed);
    }
  }
}

// ---- before the run ----

void Run::add_root(const Edge& edge, Tensor grad) {
  roots_.push_back(edge.node);
  fit_gradient(grad, edge.node->output_info(edge.input_nr), edge.node->name(), roots_.size() - 1);
  const uint32_t slot = find_or_add(*edge.node);
  if (RL_UNLIKELY(!grad.device().is_cpu())) {
    accumulate_across_streams(states_[slot], edge.input_nr, std::move(grad));
  } else {
    accumulate(states_[slot], edge.input_nr, std::move(grad));
  }
}

void Run::discover() {
  for (size_t i = 0; i < states_.size(); i++) {  // grows meanwhile
    for (const Edge& edge : states_[i].node->edges()) {
      if (edge.node) {
        states_[find_or_add(*edge.node)].dependencies++;
      }
    }
  }
}

void Run::capture(const Edge& edge, Tensor* result) {
  if (!restricted_) {
    restricted_ = true;
    for (State& state : states_) {
      state.needed = false;
    }
  }
  const int64_t slot = edge.node ? find(*edge.node) : -1;
  if (slot < 0) {
    return;
  }
  State& state = states_[slot];
  if (result == nullptr) {
    state.needed = true;
  } else {
    captures_.push_back({edge.input_nr, state.first_capture, result});
    state.first_capture = static_cast<int32_t>(captures_.size()) - 1;
  }
}

bool Run::leads_to_capture(const Node& node) const {
  const int64_t slot = find(node);
  return slot < 0 || states_[slot].needed || states_[slot].first_capture >= 0;
}

// A node must run if something wanted lies behind it. Goes through the graph from its leaves back
// to the roots, then counts again the dependencies that remain.
void Run::restrict_to_captures() {
  std::vector<uint32_t> order;
  order.reserve(states_.size());
  for (uint32_t i = 0; i < states_.size(); i++) {
    if (states_[i].dependencies == 0) {
      order.push_back(i);
    }
  }
  for (size_t i = 0; i < order.size(); i++) {
    for (const Edge& edge : states_[order[i]].node->edges()) {
      if (edge.node) {
        const auto next = static_cast<uint32_t>(find(*edge.node));
        if (--states_[next].dependencies == 0) {
          order.push_back(next);
        }
      }
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    State& state = states_[*it];
    for (const Edge& edge : state.node->edges()) {
      if (edge.node && !state.needed) {
        state.needed = leads_to_capture(*edge.node);
      }
    }
    if (state.needed) {
      for (const Edge& edge : state.node->edges()) {
        if (edge.node) {
          states_[find(*edge.node)].dependencies++;
        }
      }
    }
  }
}

// ---- the run ----

void Run::execute() {
  if (restricted_) {
    restrict_to_captures();
  }
  // Backward within backward, as a hook or a custom function may call it: a thread's stack holds
  // some, then another thread goes on.
  constexpr uint32_t of_thread = 60;
  constexpr uint32_t deepest = 1 << 14;
  RL_CHECK(tls.backward_depth < deepest, "backward: ", deepest,
           " calls are nested in each other, which is the most; does a hook or a custom function "
           "call backward without end?");
  if (tls.backward_depth % of_thread != of_thread - 1) {
    run_all();
    return;
  }
  const ThreadState state = tls;
  const std::vector<Stream> streams = current_streams();
  std::exception_ptr error;
  std::thread([&] {
    tls = state;
    try {
      std::for_each(streams.begin(), streams.end(), set_current_stream);
      run_all();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

void Run::push_if_needed(uint32_t slot) {
  const State& state = states_[slot];
  if (state.needed || state.first_capture >= 0) {
    ready_.push_back({state.node->sequence(), slot});
    std::push_heap(ready_.begin(), ready_.end());
  }
}

void Run::run_all() {
  struct Depth {
    Node* node = tls.current_node;
    Run* run = tls.run;
    Run* wanted_by = tls.wanted_by;
    Depth() { tls.backward_depth++; }
    ~Depth() {
      tls.backward_depth--;
      tls.current_node = node;
      tls.run = run;
      tls.wanted_by = wanted_by;
    }
  };
  const Depth depth;
  std::optional<Region> region;
  if (RL_UNLIKELY(noted_)) {
    region.emplace();
  }
  tls.run = this;
  recorded_ = RangeRecorder::innermost() != nullptr;
  for (const Ref<Node>& root : roots_) {
    const auto slot = static_cast<uint32_t>(find(*root));
    if (states_[slot].dependencies == 0) {
      push_if_needed(slot);
      states_[slot].dependencies = UINT32_MAX;  // the same node may be the root of several outputs
    }
  }
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t slot = ready_.back().slot;
    ready_.pop_back();
    evaluate(slot);
  }
  for (const Stream& stream : streams_) {
    Stream::current(stream.device()).wait(stream);
  }
  if (RL_UNLIKELY(!callbacks_.empty())) {
    run_callbacks();
  }
  if (region.has_value()) {
    region->close();
  }
}

void Run::run_callbacks() {
  tls.current_node = nullptr;
  tls.wanted_by = nullptr;
  const GradMode mode(create_graph_);
  for (size_t i = 0; i < callbacks_.size(); i++) {  // one may add others
    const std::unique_ptr<FinalCallback> callback = std::move(callbacks_[i]);
    (*callback)();
  }
}

// Adds to what has arrived before, in place where nobody else can see it.
void Run::accumulate(State& state, uint32_t output_nr, Tensor grad) {
  const size_t n = state.node->num_outputs();
  if (n > 1 && state.grads == nullptr) {
    state.grads = std::make_unique<Tensor[]>(n);
  }
  Tensor& sum = n > 1 ? state.grads[output_nr] : state.grad;
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (!create_graph_ && can_add_into(sum, grad)) {
    sum.add_(grad);
  } else if (!create_graph_ && can_add_into(grad, sum)) {
    grad.add_(sum);
    sum = std::move(grad);
  } else {
    sum = is_sparse(sum) ? add(grad, sum) : add(sum, grad);  // a dense one comes first
  }
}

// On devices with streams: the current one made the gradient.
void Run::accumulate_across_streams(State& state, uint32_t output_nr, Tensor grad) {
  if (grad.is_meta()) {
    accumulate(state, output_nr, std::move(grad));
    return;
  }
  const Stream producer = Stream::current(grad.device());
  const Stream of_node = stream_of(*state.node);
  const Stream consumer = of_node.device() == grad.device() ? of_node : producer;
  if (!(consumer == producer)) {
    consumer.wait(producer);
    consumer.record_use(grad.storage());
  }
  note_stream(consumer);
  const StreamGuard guard(consumer);
  accumulate(state, output_nr, std::move(grad));
}

void Run::note_stream(const Stream& stream) {
  if (!stream.device().is_cpu() &&
      std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
    streams_.push_back(stream);
  }
}

namespace {

void retain(const Node::Extra& extra, Node& node, const Tensor* grads) {
  std::vector<std::pair<uint32_t, Tensor>> alive;
  {
    const SpinGuard guard(spin_lock_of(&node));
    for (const auto& retained : extra.retained) {
      if (retained.tensor->try_retain()) {
        alive.emplace_back(retained.output_nr, Tensor(Ref<TensorImpl>::steal(retained.tensor)));
      }
    }
  }
  for (const auto& [output_nr, tensor] : alive) {
    if (grads[output_nr].defined()) {
      Tensor& kept = tensor.mutable_grad();
      kept = kept.defined() ? add(kept, grads[output_nr]) : grads[output_nr].clone();
    }
  }
}

// Hooks of tensors, then of the gradients that tensors retain. A hook may write its gradient, too.
void run_tensor_hooks(Node& node, Tensor* grads) {
  const auto call = [&](TensorHook& hook, uint32_t output_nr) {
    Tensor& grad = grads[output_nr];
    Tensor changed = hook(grad);  // where nothing arrived, too: of an undefined one
    if (changed.defined()) {
      grad = std::move(changed);
    }
    if (grad.defined()) {
      fit_gradient(grad, node.output_info(output_nr), node.name(), output_nr);
    }
  };
  if (&node.descriptor() == &accumulate_grad_descriptor()) {
    const Tensor leaf = leaf_of_accumulator(node);
    const AutogradMeta* meta = leaf.impl()->autograd();
    if (meta->hooks != nullptr) {
      const auto hooks = meta->hooks->tensor_hooks;  // a hook may add others
      for (const auto& hook : hooks) {
        if (hook != nullptr) {
          call(*hook, 0);
        }
      }
    }
  }
  const Node::Extra* extra = node.extra();
  if (extra == nullptr) {
    return;
  }
  if (!extra->output_hooks.empty()) {
    const auto hooks = extra->output_hooks;
    for (const auto& [output_nr, hook] : hooks) {
      if (hook != nullptr) {
        call(*hook, output_nr);
      }
    }
  }
  if (!extra->retained.empty()) {
    retain(*extra, node, grads);
  }
}

void run_node_hooks(const std::vector<std::shared_ptr<NodeHook>>& hooks, Tensor* changed, size_t n,
                    const Tensor* other, size_t n_other) {
  if (hooks.empty()) {
    return;
  }
  const auto copy = hooks;  // NOLINT(performance-unnecessary-copy-initialization): hooks add hooks
  std::vector<Tensor> list(changed, changed + n);
  const std::vector<Tensor> others(other, other + n_other);
  for (const auto& hook : copy) {
    (*hook)(list, others);
    RL_CHECK(list.size() == n, "a hook changed the number of gradients from ", n, " to ",
             list.size());
  }
  std::move(list.begin(), list.end(), changed);
}

void check_for_nan(const Node& node, const Tensor* results, size_t n) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < n; i++) {
    if (results[i].defined()) {
      RL_CHECK(!batching::all_of(ne(results[i], results[i])).any().item().toBool(), "Function '",
               node.name(), "' returned nan values in its ", i, "th output.");
    }
  }
}

void warn_of_origin(const Node& node) {
  if (node.extra() == nullptr || node.extra()->traceback.empty()) {
    warn(
        str("Error detected in ", node.name(),
            ". No forward pass information available: anomaly mode was off when it was recorded."));
    return;
  }
  std::string text =
      str("Error detected in ", node.name(), ". Traceback of forward call that caused the error:\n",
          node.extra()->traceback);
  const Node* parent = node.extra()->parent.get();
  for (; parent != nullptr && parent->extra() != nullptr; parent = parent->extra()->parent.get()) {
    text += str("\nPrevious calculation was induced by ", parent->name(),
                ". Traceback of forward call that induced it:\n", parent->extra()->traceback);
  }
  warn(text);
}

}  // namespace

void Run::apply(Node& node, Tensor* grads, size_t num_grads, Tensor* results, size_t num_results) {
  if (RL_UNLIKELY(node.released())) {
    node.check_not_released();
  }
  const Node::Extra* extra = node.extra();
  if (RL_UNLIKELY(extra != nullptr && !extra->pre_hooks.empty())) {
    run_node_hooks(extra->pre_hooks, grads, num_grads, nullptr, 0);
    fit_gradients(node, grads);
  }
  if (RL_UNLIKELY(recorded_)) {
    record_apply(node, grads, num_grads, results);
  } else {
    run_backward_of(node, grads, results);
  }
  if (RL_UNLIKELY(extra != nullptr)) {
    run_node_hooks(extra->post_hooks, results, num_results, grads, num_grads);
  }
  if (!retain_graph_) {
    node.release_saved();
    if (RL_UNLIKELY(extra != nullptr && extra->wrapped)) {
      extra->wrapped->release_saved();
    }
  }
  if (RL_UNLIKELY(tls.anomaly_mode) && tls.anomaly_check_nan) {
    check_for_nan(node, results, num_results);
  }
}

namespace {
// When the forward of a node ran; leaves have none.
int64_t sequence_of(const Node& node) {
  const bool is_leaf = &node.descriptor() == &accumulate_grad_descriptor();
  return is_leaf ? -1 : static_cast<int64_t>(node.sequence());
}
}  // namespace

// A profiler shows the function of a node with its gradients, within all that the node takes.
void Run::record_apply(Node& node, Tensor* grads, size_t num_grads, Tensor* results) {
  RecordFunction range(RecordScope::BACKWARD_FUNCTION);
  if (range.needsInputs()) {
    for (size_t i = 0; i < num_grads; i++) {
      range.add_shape(grads[i].defined() ? DimVector(grads[i].sizes()) : DimVector());
    }
  }
  range.before(node.name(), sequence_of(node));
  run_backward_of(node, grads, results);
}

void Run::evaluate(uint32_t slot) {
  Node& node = *states_[slot].node;
  std::optional<RecordFunction> range;
  if (RL_UNLIKELY(recorded_)) {
    range.emplace();
    range->before(str("autograd::engine::evaluate_function: ", node.name()), sequence_of(node));
  }
  std::optional<StreamGuard> on_stream;
  if (const Stream stream = stream_of(node); RL_UNLIKELY(!stream.device().is_cpu())) {
    note_stream(stream);
    on_stream.emplace(stream);
  }
  TensorArray grads(node.num_outputs());
  if (State& state = states_[slot]; state.grads != nullptr) {
    std::move(state.grads.get(), state.grads.get() + grads.size(), grads.data());
    state.grads.reset();
  } else if (grads.size() != 0) {
    grads.data()[0] = std::move(state.grad);
  }
  tls.current_node = &node;
  tls.wanted_by = restricted_ ? this : nullptr;
  const GradMode mode(create_graph_);
  if (RL_UNLIKELY(node.extra() != nullptr || &node.descriptor() == &accumulate_grad_descriptor())) {
    run_tensor_hooks(node, grads.data());
  }
  for (int32_t i = states_[slot].first_capture; i >= 0; i = captures_[i].next) {
    *captures_[i].result = grads.data()[captures_[i].output_nr];
  }
  if (!states_[slot].needed) {
    return;
  }
  const ArrayRef<Edge> edges = node.edges();
  TensorArray results(edges.size());
  if (RL_UNLIKELY(tls.anomaly_mode)) {
    try {
      apply(node, grads.data(), grads.size(), results.data(), results.size());
    } catch (...) {
      warn_of_origin(node);
      throw;
    }
  } else {
    apply(node, grads.data(), grads.size(), results.data(), results.size());
  }
  grads.clear();
  for (size_t i = 0; i < edges.size(); i++) {
    const Edge& edge = edges[i];
    if (!edge.node) {
      continue;
    }
    const auto next = static_cast<uint32_t>(find(*edge.node));
    State& state = states_[next];
    Tensor& result = results.data()[i];
    if (result.defined() && (state.needed || state.first_capture >= 0)) {
      if (RL_UNLIKELY(is_special(result))) {
        result = leave_vmap_levels(result, node, *edge.node, kept_levels_);
      }
      fit_gradient(result, edge.node->output_info(edge.input_nr), node.name(), i);
      if (RL_UNLIKELY(!result.device().is_cpu())) {
        accumulate_across_streams(state, edge.input_nr, std::move(result));
      } else {
        accumulate(state, edge.input_nr, std::move(result));
      }
    }
    if (--state.dependencies == 0) {
      push_if_needed(next);
    }
  }
}

}  // namespace rushlight
