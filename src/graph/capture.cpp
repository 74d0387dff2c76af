// Records steps, compares recordings, and replays them.
#include <rushlight/capture.h>

#include <unordered_set>

#include <rushlight/executor.h>
#include <rushlight/functions.h>
#include <rushlight/graph_passes.h>

#include "core/recording.h"
#include "core/region.h"
#include "core/sparse.h"
#include "core/weak_storage.h"
#include "graph/recorder.h"

namespace rushlight {

namespace {

// Which elements of a memory a tensor is.
struct Window {
  ScalarType dtype;
  int64_t offset;
  DimVector sizes;
  DimVector strides;

  explicit Window(const Tensor& t)
      : dtype(t.dtype()), offset(t.storage_offset()), sizes(t.sizes()), strides(t.strides()) {}
  bool operator==(const Window& o) const {
    return dtype == o.dtype && offset == o.offset && IntArrayRef(sizes) == IntArrayRef(o.sizes) &&
           IntArrayRef(strides) == IntArrayRef(o.strides);
  }
};

// The memory that some values of the graph are windows on. The recording does not keep it alive:
// whether a tensor is the last on its memory decides what some ops do.
class WatchedMemory {
 public:
  struct Known {
    Window window;
    graph::Value* value;
  };
  explicit WatchedMemory(const Storage& storage) : number_(weak_storage::watch(storage)) {}
  WatchedMemory(WatchedMemory&& o) noexcept
      : known(std::move(o.known)), number_(std::exchange(o.number_, 0)) {}
  WatchedMemory& operator=(WatchedMemory&& o) noexcept {
    std::swap(known, o.known);
    std::swap(number_, o.number_);
    return *this;
  }
  ~WatchedMemory() {
    if (number_ != 0) {
      weak_storage::remove_watcher(number_);
    }
  }
  bool is_freed() const { return weak_storage::is_freed(number_); }

  std::vector<Known> known;

 private:
  uint64_t number_;
};

}  // namespace

// Tensors are known by the memory that they are windows on, not by their objects: autograd and
// modules make new objects of a tensor that they keep.
class Recording::Recorder final : public graph::Recorder, public Refusal {
 public:
  Recorder(graph::Graph& into, bool strict) : graph::Recorder(into), strict_(strict) {}
  // Runs what is recorded.
  void run(Step& step) {
    struct Refusing {
      explicit Refusing(Refusal* refusal) : before(exchange_refusal(refusal)) {}
      ~Refusing() { exchange_refusal(before); }
      Refusal* const before;
    } const refusing(this);
    const RunNow at_once;
    const ModeScope scope(*this, ModeScope::Level::Lower);
    step_ = &step;
    step.run();
    step_ = nullptr;
  }

  std::vector<rushlight::Value> handle(const OpInfo& op,
                                       const std::vector<rushlight::Value>& arguments) override {
    if (std::string_view(op.name) == "_local_scalar_dense") {
      refuse("reads the value of a tensor");
    }
    for (const rushlight::Value& argument : arguments) {
      argument.for_each_tensor([&](const Tensor& t) { refuse_special(t); });
    }
    if (!refusal_.empty()) {
      return call(op, arguments);
    }
    graph_.range = here();
    for (size_t i = 0; i < arguments.size(); i++) {
      arguments[i].for_each_tensor([&](const Tensor& t) {
        if (t.defined() && op.arguments[i].type.written) {
          written_.insert(t.storage().get());
        }
      });
    }
    return graph::Recorder::handle(op, arguments);
  }

  graph::Value* find(const Tensor& t) override {
    WatchedMemory* const memory = memory_of(t);
    if (memory == nullptr) {
      return nullptr;
    }
    graph::Value* const value = window_in(*memory, t);
    return value != nullptr ? value : as_strided(memory->known.front(), t);
  }

  void refuse(const char* what) override {
    if (!refusal_.empty()) {
      return;
    }
    const std::string place = here().place();
    refusal_ = str("the step ", what, place.empty() ? "" : ", at ", place,
                   "; a replay would not do that. Do it outside of the step, or with ops");
    RL_CHECK(!strict_, "capture: ", refusal_);
  }
  const std::string& refusal() const { return refusal_; }

  const std::vector<Tensor>& found() const { return found_; }
  bool is_written(const Tensor& t) const { return written_.contains(t.storage().get()); }
  // Nothing more is asked of what is no constant.
  void close() { memories_.clear(); }

 private:
  graph::SourceRange here() const {
    const std::string place = step_ == nullptr ? "" : step_->place();
    const size_t colon = place.rfind(':');
    if (colon == std::string::npos) {
      return {};
    }
    auto source = std::make_shared<graph::Source>();
    source->file = place.substr(0, colon);
    source->first_line = std::stoul(place.substr(colon + 1));
    return {std::move(source), 0, 0};
  }
  void refuse_special(const Tensor& t) {
    if (t.defined() && (is_special(t) || is_sparse(t))) {
      refuse("uses a sparse, nested or otherwise special tensor");
    }
  }

  WatchedMemory* memory_of(const Tensor& t) {
    const auto found = memories_.find(t.storage().get());
    if (found == memories_.end()) {
      return nullptr;
    }
    if (found->second.is_freed()) {
      memories_.erase(found);
      return nullptr;
    }
    return &found->second;
  }

  static graph::Value* window_in(const WatchedMemory& memory, const Tensor& t) {
    const Window window(t);
    for (size_t i = memory.known.size(); i-- > 0;) {
      if (memory.known[i].window == window) {
        return memory.known[i].value;
      }
    }
    return nullptr;
  }

  // A view that was made beside the ops.
  graph::Value* as_strided(const WatchedMemory::Known& from, const Tensor& t) {
    if (from.window.dtype != t.dtype()) {
      refuse("looks at the memory of one tensor as two dtypes");
      return from.value;
    }
    static const OpInfo& op = *find_op("as_strided");
    const auto numbers = [&](IntArrayRef values) {
      return graph_.constant(IValue(std::vector<int64_t>(values.begin(), values.end())));
    };
    graph::Value* const made =
        graph_.append(op, {from.value, numbers(t.sizes()), numbers(t.strides()),
                           graph_.constant(t.storage_offset())});
    note(t, made);
    return made;
  }

  void note(const Tensor& t, graph::Value* value) override {
    refuse_special(t);
    if (!refusal_.empty()) {
      return;
    }
    WatchedMemory* memory = memory_of(t);
    if (memory == nullptr) {
      memory =
          &memories_.insert_or_assign(t.storage().get(), WatchedMemory(t.storage())).first->second;
    }
    memory->known.push_back({Window(t), value});
  }

  // A view that is all of what it views.
  bool is_known(const OpInfo& op, const std::vector<rushlight::Value>& results) override {
    if (!op.is_view() || results.size() != 1 || !results[0].isTensor()) {
      return false;
    }
    const Tensor& t = results[0].toTensor();
    const WatchedMemory* const memory = memory_of(t);
    return memory != nullptr && window_in(*memory, t) != nullptr;
  }

  graph::Value* constant(const Tensor& t) override {
    graph::Value* const made = graph_.constant(t, {Type::Kind::Tensor});
    found_.push_back(t);
    note(t, made);
    return made;
  }

  const bool strict_;
  Step* step_ = nullptr;  // while it runs
  std::string refusal_;
  std::unordered_map<const StorageImpl*, WatchedMemory> memories_;
  std::vector<Tensor> found_;  // the constants, in their order
  std::unordered_set<const StorageImpl*> written_;
};

// ---- recording ----

Recording::Step::~Step() = default;

Recording::Recording(const std::vector<Tensor>& inputs, Step&& step, bool strict)
    : graph_(std::make_shared<graph::Graph>()),
      replayed_(graph_),
      recorder_(std::make_unique<Recorder>(*graph_, strict)) {
  for (const Tensor& t : inputs) {
    RL_CHECK(t.defined() && !is_special(t) && !is_sparse(t),
             "capture: expected dense tensors as arguments of the step");
    recorder_->remember(t, graph_->add_input({Type::Kind::Tensor}));
  }
  recorder_->run(step);
}

Recording::~Recording() = default;

const std::string& Recording::refusal() const { return recorder_->refusal(); }

void Recording::set_outputs(const std::vector<Tensor>& outputs) {
  RL_CHECK(program_ == nullptr && refusal().empty(),
           "capture: expected outputs once, of a step that can be replayed");
  for (const Tensor& t : outputs) {
    RL_CHECK(t.defined(), "capture: an output is undefined");
    graph::Value* const found = recorder_->find(t);
    graph_->add_output(found != nullptr ? found : graph_->constant(t.detach()));
  }
  recorder_->close();
  graph::remove_dead_code_but_draws(*graph_);
  graph_->verify();
  program_ = std::make_unique<graph::Program>(*graph_, "the step");
}

bool Recording::finds(const Tensor& t) const {
  const std::vector<Tensor>& found = recorder_->found();
  return std::any_of(found.begin(), found.end(),
                     [&](const Tensor& one) { return one.storage() == t.storage(); });
}

std::vector<Tensor> Recording::leaves() const {
  std::vector<Tensor> out;
  for (const Tensor& t : recorder_->found()) {
    if (t.is_leaf() && t.requires_grad()) {
      out.push_back(t);
    }
  }
  return out;
}

// ---- comparing ----

// Which settings two numbers may be: those that are one here and the other there.
struct Recording::Comparison {
  const std::vector<double>& settings;
  const std::vector<double>& other_settings;

  std::vector<size_t> settings_of(const graph::Node* mine, const graph::Node* theirs) const {
    std::vector<size_t> found;
    const IValue* const a = number_of(mine);
    const IValue* const b = number_of(theirs);
    for (size_t i = 0; i < settings.size() && a != nullptr && b != nullptr; i++) {
      if (settings[i] == a->toDouble() && other_settings[i] == b->toDouble()) {
        found.push_back(i);
      }
    }
    return found;
  }
  static const IValue* number_of(const graph::Node* node) {
    const IValue* const value =
        node->kind == graph::Kind::Constant ? node->output()->constant() : nullptr;
    return value != nullptr && value->isDouble() ? value : nullptr;
  }
};

std::string Recording::difference(const Recording& other, const std::vector<double>& settings,
                                  const std::vector<double>& other_settings) {
  RL_CHECK(settings.size() == other_settings.size(),
           "capture: expected as many settings of one recording as of the other");
  const auto place = [](const graph::Node* node) {
    const std::string text = node->range.place();
    return text.empty() ? "" : ", at " + text;
  };
  const auto words = [](const graph::Node* node) {
    std::string text = node->str(false);
    text.erase(text.find_last_not_of('\n') + 1);
    const bool feeds = node->kind == graph::Kind::Constant && node->output()->is_used();
    return feeds ? str(text, " of ", node->output()->uses()[0].node->kind_name()) : text;
  };
  const auto tensor_of = [](const graph::Node* node) {
    const IValue* const value =
        node->kind == graph::Kind::Constant ? node->output()->constant() : nullptr;
    const Tensor t = value != nullptr && value->isTensor() ? value->toTensor() : Tensor();
    return t.defined() && t.impl()->is_wrapped_number() ? Tensor() : t;  // a number says itself
  };
  // Another object is the same where it holds the same, and no step writes it.
  const auto is_same = [&](const Tensor& a, const Tensor& b) {
    return Window(a) == Window(b) &&
           (a.storage() == b.storage() ||
            (!recorder_->is_written(a) && !other.recorder_->is_written(b) &&
             equal(a.detach(), b.detach())));
  };
  const Comparison comparison{settings, other_settings};
  const auto varies_there = [&](size_t at) {
    return std::count(other.varying_places_.begin(), other.varying_places_.end(), at) != 0;
  };
  std::vector<size_t> varying;
  varying_.clear();
  auto mine = graph_->block().begin();
  auto theirs = other.graph_->block().begin();
  const auto end = graph_->block().end();
  const auto other_end = other.graph_->block().end();
  for (size_t at = 0; mine != end && theirs != other_end; ++mine, ++theirs, at++) {
    const Tensor a = tensor_of(*mine);
    const Tensor b = tensor_of(*theirs);
    if (a.defined() && b.defined()) {
      if (!is_same(a, b)) {
        return str("a tensor that the step finds", place((*mine)->next()),
                   ", is another each time, of other values or written by the step");
      }
      continue;
    }
    const bool differs = (*mine)->str(false) != (*theirs)->str(false);
    if (differs || varies_there(at)) {
      std::vector<size_t> found = comparison.settings_of(*mine, *theirs);
      if (found.empty()) {
        return str(words(*mine), place(*mine), " was ", words(*theirs), place(*theirs));
      }
      varying.push_back(at);
      varying_.push_back(std::move(found));
    }
  }
  if (mine != end || theirs != other_end) {
    const graph::Node* const more = mine != end ? *mine : *theirs;
    return str(words(more), place(more), " is run in some steps alone");
  }
  vary(varying);
  return "";
}

// Makes inputs of the constants at these places.
void Recording::vary(const std::vector<size_t>& places) {
  varying_places_ = places;
  if (places.empty()) {
    return;
  }
  RL_CHECK(program_ != nullptr, "capture: numbers vary once the outputs of a recording are known");
  replayed_ = graph_->clone();
  std::vector<graph::Value*> constants;
  size_t at = 0;
  for (const graph::Node* const node : replayed_->block()) {
    if (std::count(places.begin(), places.end(), at++) != 0) {
      constants.push_back(node->output());
    }
  }
  for (graph::Value* const constant : constants) {
    constant->replace_all_uses(replayed_->add_input(constant->type));
  }
  replayed_->verify();
  program_ = std::make_unique<graph::Program>(*replayed_, "the step");
}

// ---- replaying ----

std::vector<Tensor> Recording::replay(const std::vector<Tensor>& inputs,
                                      const std::vector<double>& settings) const {
  RL_CHECK(program_ != nullptr, "capture: a recording is replayed once its outputs are known");
  std::vector<IValue> arguments(inputs.begin(), inputs.end());
  for (const std::vector<size_t>& which : varying_) {
    RL_CHECK(which.front() < settings.size(), "capture: expected ", which.front() + 1,
             " settings or more, got ", settings.size());
    arguments.emplace_back(settings[which.front()]);
  }
  struct Plain {  // what the ops ran under: casts and records stand in the graph
    const uint8_t autocast = tls.exchange_autocast(0);
    const NoGradGuard no_grad;
    ~Plain() { tls.exchange_autocast(autocast); }
  } const plain;
  Region region;
  std::vector<IValue> results = program_->run_plainly(std::move(arguments));
  std::vector<Tensor> out;
  out.reserve(results.size());
  for (const IValue& one : results) {
    out.push_back(one.toTensor());
  }
  region.close();
  return out;
}

}  // namespace rushlight
