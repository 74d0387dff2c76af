// Notebooks of threads, and how chains are completed.
#include "cpu/chain.h"

#include <rushlight/thread_state.h>

#include "core/op_support.h"
#include "core/region.h"
#include "core/rounds.h"
#include "cpu/chain_source.h"
#include "cpu/chain_steps.h"
#include "cpu/program_builder.h"

namespace rushlight {

using cpu::Chain;
using cpu::forget_result, cpu::reads, cpu::step_of;

namespace {

constexpr size_t max_notebooks = 4096;

std::mutex notebooks_lock;
Notebook* notebooks[max_notebooks];  // from number 1 on; they stay for ever
size_t num_notebooks = 0;
// Of threads that have ended. Never destroyed: threads may end after main().
std::vector<Notebook*>& unused = *new std::vector<Notebook*>;
std::mutex memory_lock;  // while memory is taken that was to be taken later

}  // namespace

// ---- notebooks ----

Notebook::Notebook(uint32_t number) : number_(number) {}
Notebook::~Notebook() = default;

// A thread's notebook, given back when the thread ends.
struct Notebook::Owner {
  Notebook* notebook = nullptr;
  Owner() {
    const std::lock_guard guard(notebooks_lock);
    if (!unused.empty()) {
      notebook = unused.back();
      unused.pop_back();
    } else if (num_notebooks < max_notebooks) {
      notebook = new Notebook(static_cast<uint32_t>(num_notebooks + 1));
      notebooks[num_notebooks++] = notebook;
    }
  }
  ~Owner() {
    if (notebook != nullptr) {
      const std::lock_guard guard(notebooks_lock);
      unused.push_back(notebook);
    }
  }
};

Notebook* Notebook::of_thread() {
  thread_local const Owner owner;
  return owner.notebook;
}

Notebook& Notebook::numbered(uint32_t number) { return *notebooks[number - 1]; }

ChainCounts Notebook::counts() {
  const std::lock_guard guard(lock_);
  return counts_;
}

// ---- completing ----

// Computes what can be seen of it and empties it. The caller holds the lock.
void Notebook::complete(Chain& chain) {
  if (!chain.steps.empty()) {
    const Uninterrupted whole;
    for (const cpu::Step& step : chain.steps) {
      if (step.result != nullptr && step.result->data_ == nullptr) {
        step.result->take_memory();
      }
    }
    const cpu::Program& program = program_of(chain);
    if (!program.instructions.empty()) {
      cpu::programs().run(program);
      counts_.chains++;
    }
    for (const cpu::Step& step : chain.steps) {
      counts_.steps++;
      if (step.result != nullptr) {
        step.result->noted_.fetch_sub(number_ * StorageImpl::one_writer, std::memory_order_release);
      } else {
        counts_.unseen++;
        counts_.bytes_left += chain.elements_of(step) * itemsize(step.stored);
      }
    }
  }
  for (const cpu::Leaf& leaf : chain.leaves) {
    if (leaf.storage) {
      leaf.storage->noted_.fetch_sub(1, std::memory_order_release);
    }
  }
  chain.steps.clear();
  chain.leaves.clear();
  const auto open = std::find_if(open_.begin(), open_.end(),
                                 [&](const auto& other) { return other.get() == &chain; });
  spare_.push_back(std::move(*open));
  open_.erase(open);
}

// From those that have been made for a chain like it.
cpu::Program& Notebook::program_of(const Chain& chain) {
  constexpr size_t most = 256;
  if (code_age_ != cpu::jit_age() || programs_.size() > most) {
    programs_.clear();
    code_age_ = cpu::jit_age();
  }
  if (!cpu::ProgramBuilder(chain, program_, address_of).key(key_)) {
    cpu::ProgramBuilder(chain, program_, address_of).build();
    return program_;
  }
  if (const auto found = programs_.find(key_); found != programs_.end()) {
    cpu::ProgramBuilder(chain, found->second, address_of).refresh();
    return found->second;
  }
  cpu::ProgramBuilder(chain, program_, address_of).build();
  return program_.is_final ? programs_[key_] = program_ : program_;
}

uint32_t Notebook::writer_number(const StorageImpl* storage) {
  return storage->noted_.load(std::memory_order_acquire) / StorageImpl::one_writer;
}

char* Notebook::address_of(const StorageImpl* storage) {
  return static_cast<char*>(storage->data_);
}

// ---- reading without completing ----

void cpu::ChainSource::find(const Tensor& t) {
  Notebook& book = *tls.notebook;
  const StorageImpl* storage = t.storage().get();
  constexpr int64_t least = 1 << 16;  // less stays in a cache when it is written
  if (t.numel() < least || !t.is_contiguous() || Notebook::writer_number(storage) != book.number_) {
    return;
  }
  std::unique_lock lock(book.lock_);
  const Chain* chain = book.writer_of(storage);
  const int step = chain == nullptr ? -1 : step_of(*chain, t);
  if (step < 0) {
    return;
  }
  auto program = std::make_unique<Program>();
  ProgramBuilder builder(*chain, *program, Notebook::address_of);
  if (builder.build_reader(step)) {
    program_ = std::move(program);
    run_ = programs().read;
    lock_ = std::move(lock);
    book.counts_.chains++;
  }
}

void cpu::ChainSource::read(int64_t first, int64_t n, char* to) const {
  run_(*program_, first, n, to);
}

// ---- completing when it is asked for ----

void Notebook::complete_all() {
  const std::lock_guard guard(lock_);
  while (!open_.empty()) {
    complete(*open_.front());
  }
}

Chain* Notebook::writer_of(const StorageImpl* storage) {
  for (const auto& chain : open_) {
    for (const cpu::Step& step : chain->steps) {
      if (step.result == storage) {
        return chain.get();
      }
    }
  }
  return nullptr;
}

void Notebook::complete_writer(const StorageImpl* storage) {
  const std::lock_guard guard(lock_);
  if (Chain* chain = writer_of(storage)) {
    complete(*chain);
  }
}

void Notebook::complete_readers_here(const StorageImpl* storage) {
  const std::lock_guard guard(lock_);
  for (size_t i = open_.size(); i-- > 0;) {
    if (reads(*open_[i], storage)) {
      complete(*open_[i]);
    }
  }
}

void Notebook::complete_readers(const StorageImpl* storage) {
  size_t n = 0;
  {
    const std::lock_guard guard(notebooks_lock);
    n = num_notebooks;
  }
  if (tls.notebook != nullptr) {
    tls.notebook->complete_readers_here(storage);
  }
  for (size_t i = 0; i < n && storage->noted_.load(std::memory_order_acquire) != 0; i++) {
    notebooks[i]->complete_readers_here(storage);
  }
}

void Notebook::forget(const StorageImpl* storage) {
  const std::lock_guard guard(lock_);
  if (Chain* chain = writer_of(storage)) {
    forget_result(*chain, storage);
  }
}

// ---- what storages ask for ----

void StorageImpl::complete() const {
  while (const uint32_t noted = noted_.load(std::memory_order_acquire)) {
    const uint32_t writer = noted / one_writer;
    if (writer == later) {
      const std::lock_guard guard(memory_lock);
      if (noted_.load(std::memory_order_acquire) / one_writer == later) {
        take_memory();
        noted_.fetch_sub(later * one_writer, std::memory_order_release);
      }
    } else if (writer != 0) {
      Notebook::numbered(writer).complete_writer(this);
    } else {
      // Who reads it from here on does so at the same time as whoever wants the address.
      return Notebook::complete_readers(this);
    }
  }
}

void StorageImpl::forget() const {
  const uint32_t writer = noted_.load(std::memory_order_acquire) / one_writer;
  if (writer != 0 && writer != later) {
    Notebook::numbered(writer).forget(this);
  }
}

// ---- regions ----

namespace {
std::atomic<bool> noting{true};
}
bool regions_note() { return noting.load(std::memory_order_relaxed); }
void set_regions_note(bool on) { noting.store(on, std::memory_order_relaxed); }

Region::Region() : before_(tls.notebook) {
  if (regions_note()) {
    tls.notebook = Notebook::of_thread();
  }
}
Region::~Region() {
  try {
    close();
  } catch (const std::exception& e) {
    warn(str("compile: a chain was not completed at the end of a region: ", e.what()));
  }
}
void Region::close() {
  if (std::exchange(open_, false)) {
    Notebook* const here = std::exchange(tls.notebook, before_);
    if (here != nullptr && before_ == nullptr) {
      here->complete_all();
    }
  }
}

RunNow::RunNow() : before_(std::exchange(tls.notebook, nullptr)) {}
RunNow::~RunNow() { tls.notebook = before_; }

}  // namespace rushlight
