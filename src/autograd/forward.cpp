// Forward mode: levels, and the tangents that tensors have of them.
#include <rushlight/forward.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "autograd/node.h"
#include "core/op_support.h"

namespace rushlight::forward {

// A tangent stands in two lists: its tensor's, later levels first, and its level's, so that both
// may end before the other.
struct Tangent {
  Tensor value;
  uint64_t level;
  AutogradMeta* owner;
  const TensorImpl* source;  // what its tensor is a view of, which lives as long
  Tangent* next = nullptr;   // of the tensor
  Tangent* before = nullptr;
  Tangent* after = nullptr;  // of the level
};

namespace {

struct Level {
  Tangent* first = nullptr;
  std::thread::id thread = std::this_thread::get_id();  // that entered it
};

struct Levels {
  std::mutex mutex;  // guards all lists; no tensor is dropped and no op runs under it
  uint64_t last = 0;
  std::map<uint64_t, Level> open;
};
Levels& levels() {
  static Levels* const all = new Levels;  // tensors may outlive static objects
  return *all;
}

// Whether it has any; others may give it some, or end a level, at the same time. Who follows the
// list holds the mutex.
bool has_tangents(const AutogradMeta* meta) {
  return meta != nullptr && meta->tangents.load(std::memory_order_relaxed) != nullptr;
}

Tangent* find(const AutogradMeta* meta, uint64_t level) {
  Tangent* t = has_tangents(meta) ? meta->tangents.load() : nullptr;
  while (t != nullptr && t->level != level) {
    t = t->next;
  }
  return t;
}

// What a view has tangents from, where it has none itself.
Tensor source_of(const Tensor& t) {
  const AutogradMeta* meta = t.impl()->autograd();
  if (!t.is_view() || (meta != nullptr && meta->is_dual)) {
    return {};
  }
  return meta != nullptr && meta->dual ? Tensor(meta->dual) : t._base();
}

Tensor own_tangent(const Tensor& t, uint64_t level) {
  Levels& all = levels();
  const std::lock_guard lock(all.mutex);
  const Tangent* found = find(t.impl()->autograd(), level);
  return found != nullptr ? found->value : Tensor();
}

// Levels that `t` itself has tangents of, later ones first.
std::vector<std::pair<uint64_t, Tensor>> own_tangents(const Tensor& t) {
  std::vector<std::pair<uint64_t, Tensor>> out;
  const AutogradMeta* meta = t.impl()->autograd();
  if (has_tangents(meta)) {
    const std::lock_guard lock(levels().mutex);
    for (const Tangent* i = meta->tangents; i != nullptr; i = i->next) {
      out.emplace_back(i->level, i->value);
    }
  }
  return out;
}

void set_tangent(const Tensor& t, uint64_t level, Tensor value) {
  AutogradMeta& meta = t.impl()->autograd_or_make();
  Levels& all = levels();
  std::unique_ptr<Tangent> fresh(new Tangent{Tensor(), level, &meta, source_of(t).impl()});
  const std::lock_guard lock(all.mutex);
  if (Tangent* found = find(&meta, level)) {
    std::swap(found->value, value);  // the old one dies after the lock
    return;
  }
  const auto open = all.open.find(level);
  if (open == all.open.end()) {
    return;  // the level has ended
  }
  fresh->value = std::move(value);
  Tangent* earlier = nullptr;
  fresh->next = meta.tangents;
  while (fresh->next != nullptr && fresh->next->level > level) {
    earlier = std::exchange(fresh->next, fresh->next->next);
  }
  if (earlier != nullptr) {
    earlier->next = fresh.get();
  } else {
    meta.tangents = fresh.get();
  }
  fresh->after = open->second.first;
  if (fresh->after != nullptr) {
    fresh->after->before = fresh.get();
  }
  open->second.first = fresh.release();
}

// Runs what is not the program's own: recorded, and seen by no level.
struct TangentStash {
  WithoutModes without;
  GradMode recording{true};
};

// A tangent may be older than the transform within which its tensor is written.
class Uncaptured {
 public:
  Uncaptured() : before_(std::exchange(tls.transforming, false)) {}
  ~Uncaptured() { tls.transforming = before_; }
  Uncaptured(const Uncaptured&) = delete;
  Uncaptured& operator=(const Uncaptured&) = delete;

 private:
  const bool before_;
};

// A window of the source's tangent, where the view is in the source.
Tensor window_of(const Tensor& tangent, const Tensor& source, const Tensor& view) {
  const int64_t bytes = view.storage_offset() * view.element_size() -
                        source.storage_offset() * source.element_size() +
                        tangent.storage_offset() * tangent.element_size();
  return take_window(tangent, view.dtype(), view.sizes(), view.strides(),
                     bytes / view.element_size());
}

// Slices of a batch do; other special tensors need not.
bool has_memory_layout(const Tensor& t) { return !is_special(batching::all_of(t)); }

bool same_strides(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); d++) {
    if (a.sizes()[d] != 1 && a.strides()[d] != b.strides()[d]) {
      return false;
    }
  }
  return true;
}

// A copy with the strides of `like`, and with the batches of `beside` too.
Tensor copy_with_strides_of(const Tensor& like, const Tensor& tangent, const Tensor& beside = {}) {
  const TangentStash aside;
  const bool wider = beside.defined() && lacks_batch(tangent, beside);
  const Tensor out = new_like(wider ? number_with_batches(tangent, beside) : tangent, like.sizes(),
                              like.strides());
  out.copy_(tangent);
  return out;
}

// Views of a tensor are the same views of its tangent only where both lie alike. Where a tensor has
// an element at several places its tangent need not.
Tensor with_layout_of(Tensor tangent, const Tensor& like) {
  if (tangent.is_complex() && !like.is_complex()) {
    tangent = rushlight::real(tangent);
  }
  if (tangent.dtype() != like.dtype() || tangent.device() != like.device()) {
    tangent = tangent.to(like.device(), like.dtype());
  }
  if (!(tangent.sizes() == like.sizes())) {
    tangent = tangent.expand(like.sizes());
  }
  if (!has_memory_layout(tangent) || !has_memory_layout(like) || tangent.numel() == 0 ||
      same_strides(tangent, like) || has_internal_overlap(like)) {
    return tangent;
  }
  return copy_with_strides_of(like, tangent);
}

}  // namespace

// ---- levels ----

uint64_t enter_level() {
  Levels& all = levels();
  const std::lock_guard lock(all.mutex);
  // Each level doubles what the next one computes, at least.
  constexpr std::ptrdiff_t deepest = 16;
  const auto is_of_thread = [](const auto& open) {
    return open.second.thread == std::this_thread::get_id();
  };
  RL_CHECK(std::count_if(all.open.begin(), all.open.end(), is_of_thread) < deepest,
           "forward mode: ", deepest,
           " levels are open in each other, which is the most; does a function that is "
           "differentiated (jvp, jacfwd) call itself without end?");
  all.open.emplace(++all.last, Level());
  process_asks.fetch_or(ask::tangents);
  return all.last;
}

namespace {
// Both under the mutex.
void unlink_from_tensor(Tangent& t) {
  Tangent* at = t.owner->tangents;
  if (at == &t) {
    t.owner->tangents = t.next;
    return;
  }
  while (at->next != &t) {
    at = at->next;
  }
  at->next = t.next;
}

void unlink_from_level(Tangent& t) {
  (t.before != nullptr ? t.before->after : levels().open.at(t.level).first) = t.after;
  if (t.after != nullptr) {
    t.after->before = t.before;
  }
}
}  // namespace

void exit_level(uint64_t level) {
  Levels& all = levels();
  std::vector<std::unique_ptr<Tangent>> dropped;
  {
    const std::lock_guard lock(all.mutex);
    const auto open = all.open.find(level);
    RL_CHECK(open != all.open.end(), "Trying to exit a forward AD level that is not open: ", level);
    for (Tangent* t = open->second.first; t != nullptr; t = t->after) {
      unlink_from_tensor(*t);
      dropped.emplace_back(t);
    }
    all.open.erase(open);
    if (all.open.empty()) {
      process_asks.fetch_and(~ask::tangents);
    }
  }
}

void drop_tangents(AutogradMeta& meta) {
  Levels& all = levels();
  std::vector<std::unique_ptr<Tangent>> dropped;
  const std::lock_guard lock(all.mutex);
  for (Tangent* t = meta.tangents; t != nullptr; t = t->next) {
    unlink_from_level(*t);
    dropped.emplace_back(t);
  }
  meta.tangents = nullptr;
}

// ---- tangents of a tensor ----

uint64_t level_of(const Tensor& t) {
  if (!t.defined()) {
    return 0;
  }
  const uint64_t limit = tls.forward_limit;
  const auto latest = [&](const Tensor& of) -> uint64_t {
    const AutogradMeta* meta = of.impl()->autograd();
    if (!has_tangents(meta)) {
      return 0;
    }
    const std::lock_guard lock(levels().mutex);
    const Tangent* i = meta->tangents;
    while (i != nullptr && i->level > limit) {
      i = i->next;
    }
    return i != nullptr ? i->level : 0;
  };
  const uint64_t own = latest(t);
  const Tensor source = source_of(t);
  return source.defined() ? std::max(own, latest(source)) : own;
}

uint64_t level_of(TensorList list) {
  uint64_t level = 0;
  for (const Tensor& t : list) {
    level = std::max(level, level_of(t));
  }
  return level;
}

Tensor tangent(const Tensor& t, uint64_t level) {
  if (!t.defined()) {
    return {};
  }
  if (Tensor own = own_tangent(t, level); own.defined()) {
    return own;
  }
  const Tensor source = source_of(t);
  const Tensor behind = source.defined() ? own_tangent(source, level) : Tensor();
  if (!behind.defined()) {
    return {};
  }
  const Below below(level);
  const TangentStash aside;
  const Tensor window = window_of(behind, source, t);
  set_tangent(t, level, window);
  return window;
}

void give_tangent(const Tensor& t, uint64_t level, const Tensor& tangent) {
  const Below below(level);
  set_tangent(t, level, with_layout_of(tangent, t));
}

namespace {
// What is written when `t` is: its source where that has the tangent, else itself.
Tensor owner_of_tangent(const Tensor& t, uint64_t level) {
  const Tensor source = source_of(t);
  return source.defined() && own_tangent(source, level).defined() ? source : t;
}

// Views take theirs anew from a source that is given another tangent.
void set_for_views(const Tensor& source, uint64_t level, Tensor value) {
  Levels& all = levels();
  std::vector<std::unique_ptr<Tangent>> dropped;
  {
    const std::lock_guard lock(all.mutex);
    for (Tangent* t = all.open.at(level).first; t != nullptr;) {
      Tangent* const here = std::exchange(t, t->after);
      if (here->source == source.impl()) {
        unlink_from_tensor(*here);
        unlink_from_level(*here);
        dropped.emplace_back(here);
      }
    }
  }
  set_tangent(source, level, std::move(value));
}
}  // namespace

void write_tangent(const Tensor& t, uint64_t level, const Tensor& value) {
  if (!is_differentiable(t.dtype())) {
    return;
  }
  const Below below(level);
  Tensor held = tangent(t, level);
  if (!held.defined()) {
    const Tensor source = source_of(t);
    if (!source.defined() || to_real(source.dtype()) != to_real(t.dtype())) {
      const Tensor fit = with_layout_of(value, t);
      set_tangent(t, level, has_memory_layout(fit) ? copy_with_strides_of(t, fit) : fit.clone());
      return;
    }
    const TangentStash aside;
    const Tensor like = is_special(value) ? value.to(source.dtype()) : source;
    set_tangent(source, level,
                new_like(like, source.sizes(),
                         has_internal_overlap(source) ? contiguous_strides(source.sizes())
                                                      : DimVector(source.strides()))
                    .zero_());
    held = tangent(t, level);
  }
  if (held.is_same(value)) {
    return;
  }
  const Uncaptured uncaptured;
  if (!has_memory_layout(value) && has_memory_layout(held) && !t.is_view()) {
    set_for_views(t, level, with_layout_of(value, t));
    return;
  }
  if (lacks_batch(held, value)) {  // the values that all slices had in common go apart
    const Tensor owner = owner_of_tangent(t, level);
    set_for_views(owner, level, copy_with_strides_of(owner, own_tangent(owner, level), value));
    held = tangent(t, level);
  }
  held.copy_(held.is_complex() || !value.is_complex() ? value : rushlight::real(value));
}

void copy_tangents(const Tensor& from, const Tensor& to) {
  for (auto& [level, value] : own_tangents(from)) {
    set_tangent(to, level, value);
  }
}

namespace {
// Of every level: those that `t` itself has, and those that it has from its source.
std::vector<std::pair<uint64_t, Tensor>> all_tangents(const Tensor& t) {
  std::vector<std::pair<uint64_t, Tensor>> all = own_tangents(t);
  if (const Tensor source = source_of(t); source.defined()) {
    for (const auto& [level, value] : own_tangents(source)) {
      all.emplace_back(level, tangent(t, level));
    }
  }
  return all;
}
}  // namespace

Tensor clone_with_tangents(const Tensor& t) {
  Tensor copy = t.clone();
  for (const auto& [level, value] : all_tangents(t)) {
    if (level > tls.forward_limit) {
      const Below below(level);
      give_tangent(copy, level, value.clone());
    }
  }
  return copy;
}

Tensor data_of(const Tensor& t) {
  Tensor data = t.tensor_data();
  if (RL_UNLIKELY(active())) {
    for (const auto& [level, value] : all_tangents(t)) {
      set_tangent(data, level, value);
    }
  }
  return data;
}

Tensor leaf_of(const Tensor& t) { return data_of(t).requires_grad_(); }

void pass_tangent_to_node(const Tensor& result) {
  const AutogradMeta* meta = result.impl()->autograd();
  if (result.is_view()) {  // CopySlices of the root, where it was written
    meta = result._base().impl()->autograd();
    const Node* slices = meta != nullptr ? meta->grad_fn.get() : nullptr;
    if (slices != nullptr && slices->extra() != nullptr && slices->extra()->wrapped) {
      slices->extra()->wrapped->take_tangents(result);
    }
  } else if (meta != nullptr && meta->grad_fn) {
    meta->grad_fn->take_tangents(result);
  }
}

// ---- duals ----

namespace {
// Apart from the rest for tangents of this level and later ones.
Tensor hide_level(const Tensor& t, uint64_t level) {
  const Below below(level);
  Tensor view = rushlight::alias(t);
  view.impl()->autograd_or_make().is_dual = true;
  return view;
}
}  // namespace

namespace {
// Other windows on the primal's storage may be taken of the dual: its tangent lies in a storage of
// that size.
Tensor with_storage_size_of(const Tensor& value, const Tensor& primal) {
  if (is_special(value) || is_special(primal) || value.numel() == 0 ||
      has_internal_overlap(primal)) {
    return value;  // a batch is laid out when it is given
  }
  const int64_t size = primal.element_size();
  const auto elements = static_cast<int64_t>(primal.storage()->nbytes()) / size;
  const bool alike = static_cast<int64_t>(value.storage()->nbytes()) / size == elements &&
                     value.storage_offset() == primal.storage_offset();
  if (alike && same_strides(value, primal)) {
    return value;
  }
  const Tensor whole = rushlight::zeros({elements}, value.options());
  Tensor out = whole.as_strided(primal.sizes(), primal.strides(), primal.storage_offset());
  out.copy_(value);
  return out;
}
}  // namespace

Tensor make_dual(const Tensor& primal, const Tensor& value, uint64_t level) {
  RL_CHECK(!tangent(primal, level).defined(),
           "make_dual: the primal already has a forward gradient, which it was given at the same "
           "level. unpack_dual() takes them apart");
  RL_CHECK(primal.sizes() == value.sizes(),
           "make_dual: got a forward gradient that has a different size, ", value.sizes(),
           ", than the primal, ", primal.sizes());
  RL_CHECK(primal.dtype() == value.dtype(),
           "Expected tangent to have the dtype of the primal: ", primal.dtype(), ", but got ",
           value.dtype());
  RL_CHECK(!tangent(value, level).defined(),
           "Trying to set a forward gradient that itself has a forward gradient at the same level, "
           "which is not supported.");
  Tensor dual = hide_level(primal, level);
  give_tangent(dual, level, with_storage_size_of(value, primal));
  return dual;
}

Tensor primal_of(const Tensor& dual, uint64_t level) { return hide_level(dual, level); }

}  // namespace rushlight::forward
