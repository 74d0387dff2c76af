// Nodes: their compact layout, what they save, and their destruction without recursion.
#include <algorithm>
#include <bit>
#include <cstring>

#include "autograd/node.h"
#include "core/small_blocks.h"

namespace rushlight {

PackedTensor::~PackedTensor() = default;
SavedTensorHooks::~SavedTensorHooks() = default;
TensorHook::~TensorHook() = default;
NodeHook::~NodeHook() = default;
AccumulateHook::~AccumulateHook() = default;
FinalCallback::~FinalCallback() = default;

// A counted array that grows by doubling; most nodes have none or one of each kind.
template <class T>
struct Node::Block {
  uint32_t size;
  uint32_t capacity;
  alignas(T) unsigned char bytes[1];

  T* items() { return reinterpret_cast<T*>(bytes); }
  static size_t bytes_for(uint32_t capacity) {
    return offsetof(Block, bytes) + capacity * sizeof(T);
  }
  static T& append(Block*& block, T value) {
    if (block == nullptr || block->size == block->capacity) {
      const uint32_t capacity = block == nullptr ? 1 : 2 * block->capacity;
      auto* fresh = static_cast<Block*>(small_allocate(bytes_for(capacity)));
      fresh->size = 0;
      fresh->capacity = capacity;
      if (block != nullptr) {
        for (; fresh->size < block->size; fresh->size++) {
          new (fresh->items() + fresh->size) T(std::move(block->items()[fresh->size]));
        }
        destroy(block);
      }
      block = fresh;
    }
    T* item = new (block->items() + block->size) T(std::move(value));
    block->size++;
    return *item;
  }
  static void destroy(Block*& block) {
    if (block != nullptr) {
      std::destroy_n(block->items(), block->size);
      small_free(block, bytes_for(block->capacity));
      block = nullptr;
    }
  }
};

// ---- OutputInfo ----

OutputInfo::OutputInfo(const Tensor& t) {
  if (!t.defined()) {
    return;
  }
  dtype_ = t.dtype();
  device_ = t.device();
  const IntArrayRef sizes = t.sizes();
  bool fits = sizes.size() <= near_dims;
  for (const int64_t s : sizes) {
    fits &= s <= UINT32_MAX;
  }
  if (!fits) {
    ndim_ = is_far;
    DimVector* far = new DimVector(sizes);
    std::memcpy(near_, &far, sizeof(far));
    return;
  }
  ndim_ = static_cast<uint8_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); i++) {
    near_[i] = static_cast<uint32_t>(sizes[i]);
  }
}

OutputInfo::OutputInfo(OutputInfo&& o) noexcept
    : ndim_(o.ndim_), dtype_(o.dtype_), device_(o.device_) {
  std::copy_n(o.near_, near_dims, near_);
  o.ndim_ = 0;
}

OutputInfo& OutputInfo::operator=(OutputInfo&& o) noexcept {
  std::swap(ndim_, o.ndim_);
  std::swap(dtype_, o.dtype_);
  std::swap(device_, o.device_);
  std::swap(near_, o.near_);
  return *this;
}

OutputInfo::~OutputInfo() {
  if (ndim_ == is_far) {
    delete sizes_on_heap();
  }
}

DimVector* OutputInfo::sizes_on_heap() const {
  DimVector* far;
  std::memcpy(&far, near_, sizeof(far));
  return far;
}

DimVector OutputInfo::sizes() const {
  if (ndim_ == is_far) {
    return *sizes_on_heap();
  }
  DimVector out(ndim_);
  std::copy_n(near_, ndim_, out.begin());
  return out;
}

bool OutputInfo::has_sizes(IntArrayRef sizes) const {
  if (ndim_ == is_far) {
    return IntArrayRef(*sizes_on_heap()) == sizes;
  }
  return sizes.size() == ndim_ &&
         std::equal(sizes.begin(), sizes.end(), near_,
                    [](int64_t a, uint32_t b) { return a == static_cast<int64_t>(b); });
}

// ---- making a node ----

void* Node::operator new(size_t size) { return small_allocate(size); }
void Node::operator delete(void* p, size_t size) { small_free(p, size); }

Node::Node(const NodeDescriptor* descriptor)
    : descriptor_(descriptor), sequence_(tls.next_sequence++), near_edges_{}, near_output_() {
  if (RL_UNLIKELY(tls.anomaly_mode)) {
    Extra& e = extra_or_make();
    e.traceback = current_traceback();
    if (tls.current_node != nullptr) {
      e.parent = Ref<Node>(tls.current_node);
    }
  }
}

namespace {

// Storage for more than `near` items has a capacity that follows from their number: the next power
// of two.
template <class T, class Near>
T* grow(Near* near, T* far, uint32_t count, uint32_t near_count) {
  if (count < near_count || (count > near_count && !std::has_single_bit(count))) {
    return far;
  }
  T* fresh = static_cast<T*>(small_allocate(std::bit_ceil(count + 1) * sizeof(T)));
  T* old = count == near_count ? near : far;
  for (uint32_t i = 0; i < count; i++) {
    new (fresh + i) T(std::move(old[i]));
  }
  std::destroy_n(old, count);
  if (count > near_count) {
    small_free(far, count * sizeof(T));
  }
  return fresh;
}

template <class T>
void destroy_items(T* near, T* far, uint32_t count, uint32_t near_count) {
  T* items = count <= near_count ? near : far;
  std::destroy_n(items, count <= near_count ? near_count : count);
  if (count > near_count) {
    small_free(far, std::bit_ceil(count) * sizeof(T));
  }
}

}  // namespace

Edge& Node::new_edge() {
  if (num_edges_ >= near_edge_count) {
    // A list that is exactly full moves to one of twice the size.
    const bool was_near = num_edges_ == near_edge_count;
    far_edges_ =
        grow<Edge>(near_edges_, was_near ? nullptr : far_edges_, num_edges_, near_edge_count);
    return *new (far_edges_ + num_edges_++) Edge();
  }
  return near_edges_[num_edges_++];
}

void Node::add_edge(const Tensor& input) {
  Edge& edge = new_edge();
  if (!input.defined() || !input.requires_grad()) {
    return;
  }
  const AutogradMeta* meta = input.impl()->autograd();
  if (!input.is_view() && meta->grad_fn) {  // the common case, without a call
    edge.node = meta->grad_fn;
    edge.input_nr = meta->output_nr;
    return;
  }
  edge = gradient_edge(input);
}

void Node::add_edge(Edge edge) { new_edge() = std::move(edge); }

namespace {

// Only streams that are not their device's first are kept, so that most nodes need no Extra.
void note_stream(Node& node, Device device) {
  const Stream now = Stream::current(device);
  const bool known = node.extra() != nullptr && !node.extra()->stream.device().is_cpu();
  if (now.id() != 0 && !known) {
    node.extra_or_make().stream = now;
  }
}

}  // namespace

uint32_t Node::add_output(const Tensor& output) {
  if (num_outputs_ == 0) {
    near_output_ = OutputInfo(output);
  } else {
    const bool was_near = num_outputs_ == 1;
    far_outputs_ =
        grow<OutputInfo>(&near_output_, was_near ? nullptr : far_outputs_, num_outputs_, 1);
    new (far_outputs_ + num_outputs_) OutputInfo(output);
  }
  if (RL_UNLIKELY(output.defined() && !output.device().is_cpu())) {
    note_stream(*this, output.device());
  }
  return num_outputs_++;
}

Stream stream_of(const Node& node) {
  if (node.extra() != nullptr && !node.extra()->stream.device().is_cpu()) {
    return node.extra()->stream;
  }
  for (size_t i = 0; i < node.num_outputs(); i++) {
    const Device device = node.output_info(i).device();
    if (!device.is_cpu() && !device.is_meta()) {
      return {device, 0};
    }
  }
  return {};
}

// ---- what a node keeps ----

void Node::save(const Tensor& t, const Node* output_of) {
  Block<SavedTensor>::append(saved_, SavedTensor(t, output_of));
}

void Node::save_list(const std::vector<std::optional<Tensor>>& list) {
  for (const std::optional<Tensor>& t : list) {
    save(t.value_or(Tensor()));
  }
}

void Node::fill_saved(size_t i, const Tensor& output) {
  saved_->items()[i] = SavedTensor(output, this);
}

void Node::take_tangents(const Tensor& output) {
  for (size_t i = 0; i < num_saved(); i++) {
    saved_->items()[i].take_tangents(output);
  }
}

void Node::keep(Value v) { Block<Value>::append(values_, std::move(v)); }

void Node::lock() const {
  while (locked_.exchange(true, std::memory_order_acquire)) {
    std::this_thread::yield();
  }
}

void Node::check_not_released() const {
  RL_CHECK(!released_,
           "Trying to backward through the graph a second time, or reading its saved tensors after "
           "backward has freed them (",
           name(),
           "). Specify retain_graph=True in the first .backward() or autograd.grad() call if the "
           "graph is needed again.");
}

Tensor Node::saved(size_t i) const { return unpack_saved(i, !tls.grad_mode); }
Tensor Node::saved_with_history(size_t i) const { return unpack_saved(i, false); }

// The lock keeps another thread from releasing what is copied here; unpacking may run hooks, so it
// comes after.
Tensor Node::unpack_saved(size_t i, bool detached_ok) const {
  SavedTensor copy;
  lock();
  const bool gone = released_;
  if (!gone && i < num_saved()) {
    copy = saved_->items()[i];
  }
  unlock();
  if (RL_UNLIKELY(gone)) {
    check_not_released();
  }
  return copy.take(*this, detached_ok);
}

std::vector<std::optional<Tensor>> Node::saved_list(size_t first) const {
  lock();
  const size_t end = num_saved();
  unlock();
  check_not_released();
  std::vector<std::optional<Tensor>> out(end - first);
  for (size_t i = first; i < end; i++) {
    Tensor t = saved(i);
    if (t.defined()) {
      out[i - first] = std::move(t);
    }
  }
  return out;
}

const Value& Node::value(size_t i) const {
  RL_CHECK_INDEX(i < num_values(), "value ", i, " of ", num_values(), " that ", name(), " keeps");
  return values_->items()[i];
}
size_t Node::num_saved() const { return saved_ == nullptr ? 0 : saved_->size; }
size_t Node::num_values() const { return values_ == nullptr ? 0 : values_->size; }

SavedTensor& Node::saved_tensor(size_t i) {
  check_not_released();
  RL_CHECK_INDEX(i < num_saved(), "saved tensor ", i, " of ", num_saved());
  return saved_->items()[i];
}

void Node::release_saved() {
  Block<SavedTensor>* dropped = nullptr;
  lock();
  // A node whose inputs asked for nothing that it could save runs as often as one likes.
  const auto holds = [](const SavedTensor& s) { return s.defined(); };
  if (saved_ != nullptr && std::any_of(saved_->items(), saved_->items() + saved_->size, holds)) {
    released_ = true;
    std::swap(dropped, saved_);
  }
  unlock();
  Block<SavedTensor>::destroy(dropped);
  release_variables();
}

// ---- extras ----

Node::Extra& Node::extra_or_make() {
  if (extra_ == nullptr) {
    extra_ = new Extra();
  }
  return *extra_;
}

Node::Extra::~Extra() {
  if (wrapped) {
    wrapped->extra()->within = nullptr;
  }
  if (metadata != nullptr) {
    drop_metadata(metadata);
  }
}

std::atomic<bool>& spin_lock_of(const void* object) {
  struct alignas(64) Lock {
    std::atomic<bool> flag{false};
  };
  static Lock locks[64];
  return locks[(reinterpret_cast<uintptr_t>(object) >> 6) % 64].flag;
}

void add_pre_hook(Node& node, std::shared_ptr<NodeHook> hook) {
  node.extra_or_make().pre_hooks.push_back(std::move(hook));
}

void add_post_hook(Node& node, std::shared_ptr<NodeHook> hook) {
  node.extra_or_make().post_hooks.push_back(std::move(hook));
}

// ---- the end of a node ----

bool (*stays_in_python)(const Node&) = nullptr;

// Destroying a node drops its edges and tensors, and with them perhaps the next node, and so on
// down a graph of any depth. The outermost call therefore destroys in a loop; nodes that die
// meanwhile wait in a list, linked through their sequence numbers.
void Node::destroy() const {
  if (RL_UNLIKELY(descriptor_->backward == nullptr) && stays_in_python != nullptr &&
      stays_in_python(*this)) {
    return;
  }
  struct Pending {
    const Node* first = nullptr;
    bool destroying = false;
  };
  static constinit thread_local Pending pending __attribute__((tls_model("initial-exec")));
  if (pending.destroying) {
    sequence_ = reinterpret_cast<uintptr_t>(pending.first);
    pending.first = this;
    return;
  }
  pending.destroying = true;
  dispose(this);
  while (pending.first != nullptr) {
    const Node* node = pending.first;
    pending.first = reinterpret_cast<const Node*>(node->sequence_);
    dispose(node);
  }
  pending.destroying = false;
}

// The graph holds no reference any more.
void Node::dispose(const Node* node) {
  if (node->extra_ != nullptr && node->extra_->owner) {
    node->retain();  // as a new one: the other owners of the pointer may record it again
    const std::shared_ptr<Node> owner = std::move(node->extra_->owner);
    return;
  }
  delete node;
}

// ---- nodes of classes that programs write (custom_node.h) ----

namespace {
void apply_lists(Node& node, const Tensor* grads, Tensor* results) {
  std::vector<Tensor> out = node.apply(std::vector<Tensor>(grads, grads + node.num_outputs()));
  const size_t wanted = node.edges().size();
  RL_CHECK(out.size() == wanted, "a node returned an incorrect number of gradients: expected ",
           wanted, ", got ", out.size());
  std::move(out.begin(), out.end(), results);
}
constexpr NodeDescriptor custom_descriptor = {"CustomNode", apply_lists, true};
}  // namespace

Node::Node() : Node(&custom_descriptor) {}

std::vector<Tensor> Node::apply(std::vector<Tensor>&&) {
  throw NotImplementedError("Node::apply(variable_list&&) is for classes that override it");
}

Ref<Node> Node::of_shared(const std::shared_ptr<Node>& node) {
  Extra& extra = node->extra_or_make();
  if (extra.owner) {
    return Ref<Node>(node.get());
  }
  extra.owner = node;
  node->sequence_ = tls.next_sequence++;
  return Ref<Node>::steal(node.get());
}

void Node::set_next_edges(std::vector<Edge> edges) {
  destroy_items(near_edges_, far_edges_, num_edges_, near_edge_count);
  num_edges_ = 0;
  std::uninitialized_value_construct_n(near_edges_, near_edge_count);
  for (Edge& edge : edges) {
    add_edge(std::move(edge));
  }
}

void Node::clear_input_metadata() {
  destroy_items(&near_output_, far_outputs_, num_outputs_, 1);
  num_outputs_ = 0;
  std::uninitialized_value_construct_n(&near_output_, 1);
}

Node::~Node() {
  if (descriptor_ == &accumulate_grad_descriptor()) {
    forget_accumulator(*this);
  }
  Block<SavedTensor>::destroy(saved_);
  Block<Value>::destroy(values_);
  delete extra_;
  destroy_items(near_edges_, far_edges_, num_edges_, near_edge_count);
  destroy_items(&near_output_, far_outputs_, num_outputs_, 1);
}

}  // namespace rushlight
