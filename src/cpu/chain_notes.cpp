// Notes steps: finds their chain, and what is in the way.
#include <rushlight/thread_state.h>

#include "core/op_support.h"
#include "core/region.h"
#include "cpu/chain.h"
#include "cpu/chain_steps.h"

namespace rushlight {

using cpu::bytes_before, cpu::forget_result, cpu::lies_as, cpu::row_step_of, cpu::step_of;
using cpu::Chain;

namespace {

constexpr size_t max_open = 4;    // chains of one thread, of different shapes
constexpr size_t max_steps = 64;  // of a chain

// Whether the formula takes float32 and gives what it computes, without a conversion.
bool keeps_float(const TensorIterator& it, const cpu::PointwiseKernel& kernel) {
  bool keeps = it.common_dtype() == kFloat32 && it.output(0).dtype() == kernel.result(kFloat32);
  for (int i = 0; i < kernel.num_inputs; i++) {
    const Tensor* const in = it.tensor(i + 1);
    keeps &= in == nullptr || in->numel() == 1 || in->dtype() == kernel.wanted(i, kFloat32);
  }
  return keeps;
}

}  // namespace

// One call that is noted: what is in the way, and what is written down.
struct Notebook::Noter {
  Notebook& book;
  std::unique_lock<std::mutex> lock{book.lock_};

  enum class Way { Clear, Changed, None };

  // The chain of this shape, which is begun where there is none or the one there is has grown long.
  Chain& chain(const Tensor& out) {
    for (const auto& open : book.open_) {
      if (lies_as(*open, out)) {
        if (open->steps.size() < max_steps) {
          return *open;
        }
        book.complete(*open);
        break;
      }
    }
    if (book.open_.size() == max_open) {
      book.complete(*book.open_.front());
    }
    if (book.spare_.empty()) {
      book.spare_.push_back(std::make_unique<Chain>());
    }
    book.open_.push_back(std::move(book.spare_.back()));
    book.spare_.pop_back();
    Chain& fresh = *book.open_.back();
    fresh.dim = out.dim();
    std::copy(out.sizes().begin(), out.sizes().end(), fresh.sizes);
    std::copy(out.strides().begin(), out.strides().end(), fresh.strides);
    fresh.numel = out.numel();
    fresh.row = 0;
    return fresh;
  }

  // The chain with the rows whose elements all inputs are; null where there is none.
  Chain* chain_of_rows(const TensorIterator& it) {
    for (const auto& open : book.open_) {
      bool reads_row = false;
      bool fits = open->row != 0 && open->steps.size() < max_steps && it.allocates(0);
      for (int i = 1; fits && i < it.num_operands(); i++) {
        const Tensor* in = it.tensor(i);
        if (in == nullptr) {
          continue;
        }
        const bool is_row = row_step_of(*open, *in) >= 0 && in->sizes() == it.output(0).sizes();
        reads_row |= is_row;
        fits = is_row || (in->numel() == 1 && writer_number(in->storage().get()) == 0);
      }
      if (fits && reads_row) {
        return open.get();
      }
    }
    return nullptr;
  }

  // Whether `t` is known here as it is: its memory is there, or will be what a step of this chain
  // gives.
  Way way_to(const Chain& chain, const Tensor& t) {
    const StorageImpl* storage = t.storage().get();
    const uint32_t writer = writer_number(storage);
    if (writer == 0) {
      return storage->exposed() && t.numel() != 1 ? Way::None : Way::Clear;
    }
    if (writer != book.number_) {
      lock.unlock();
      storage->complete();
      lock.lock();
      return Way::Changed;
    }
    if (step_of(chain, t) >= 0) {
      return Way::Clear;
    }
    book.complete(*book.writer_of(storage));
    return Way::Changed;
  }

  // The same for a tensor that is given to be written. Nobody else may still have to read it, and
  // this chain only element by element.
  Way way_to_write(const Chain& chain, const Tensor& t) {
    const StorageImpl* storage = t.storage().get();
    if (storage->exposed()) {
      return Way::None;
    }
    const Way way = way_to(chain, t);
    if (way != Way::Clear) {
      return way;
    }
    uint32_t readers = storage->noted_.load(std::memory_order_acquire) % StorageImpl::one_writer;
    for (const auto& open : book.open_) {
      for (const cpu::Leaf& leaf : open->leaves) {
        if (leaf.storage.get() != storage) {
          continue;
        }
        if (open.get() != &chain || !leaf.linear || leaf.offset != bytes_before(t) ||
            leaf.dtype != t.dtype()) {
          book.complete(*open);
          return Way::Changed;
        }
        readers--;
      }
    }
    if (readers != 0) {
      lock.unlock();
      complete_readers(storage);
      lock.lock();
      return Way::Changed;
    }
    return Way::Clear;
  }

  Way way(const Chain& chain, const TensorIterator& it) {
    const Tensor& out = it.output(0);
    const bool given = !it.allocates(0);
    for (int i = 1; i < it.num_operands(); i++) {
      const Tensor* in = it.tensor(i);
      if (in == nullptr) {
        continue;
      }
      if (given && in->storage() == out.storage() &&
          !(lies_as(chain, *in) && bytes_before(*in) == bytes_before(out) &&
            in->dtype() == out.dtype())) {
        return Way::None;
      }
      if (const Way way = way_to(chain, *in); way != Way::Clear) {
        return way;
      }
    }
    return given ? way_to_write(chain, out) : Way::Clear;
  }

  // The chain of this shape once nothing is in the way any more; null where something stays.
  template <class F>
  Chain* clear_chain(const Tensor& shape, const F& way) {
    for (;;) {
      Chain& found = chain(shape);
      const Way how = way(found);
      if (how != Way::Changed) {
        return how == Way::Clear ? &found : nullptr;
      }
    }
  }

  static int16_t leaf_number(Chain& chain, cpu::Leaf&& leaf) {
    for (size_t i = 0; i < chain.leaves.size(); i++) {
      if (leaf.storage && chain.leaves[i].same_as(leaf, chain.dim)) {
        return static_cast<int16_t>(i);
      }
    }
    if (leaf.storage) {
      leaf.storage->noted_.fetch_add(1, std::memory_order_acq_rel);
    }
    chain.leaves.push_back(std::move(leaf));
    return static_cast<int16_t>(chain.leaves.size() - 1);
  }

  cpu::Input input(Chain& chain, const TensorIterator& it, int operand, bool on_rows) {
    const Tensor* t = it.tensor(operand);
    if (t != nullptr) {
      if (const int step = on_rows ? row_step_of(chain, *t) : step_of(chain, *t); step >= 0) {
        return {true, static_cast<int16_t>(step)};
      }
    }
    cpu::Leaf leaf;
    leaf.dtype = it.dtype(operand);
    if (t == nullptr || t->numel() == 1) {  // a number, as it is now
      const void* value = t == nullptr
                              ? it.number(operand)
                              : static_cast<const char*>(t->storage()->data_) + bytes_before(*t);
      std::memcpy(leaf.number, value, static_cast<size_t>(itemsize(leaf.dtype)));
      return {false, leaf_number(chain, std::move(leaf))};
    }
    return memory(chain, *t);
  }
  static cpu::Input memory(Chain& chain, const Tensor& t) {
    cpu::Leaf leaf;
    leaf.dtype = t.dtype();
    leaf.storage = t.storage();
    leaf.offset = bytes_before(t);
    leaf.linear = lies_as(chain, t);
    const int64_t missing = chain.dim - t.dim();
    for (int64_t d = 0; d < chain.dim; d++) {
      const bool repeats = d < missing || (t.sizes()[d - missing] == 1 && chain.sizes[d] != 1);
      leaf.strides[d] = repeats ? 0 : t.strides()[d - missing] * itemsize(leaf.dtype);
    }
    return {false, leaf_number(chain, std::move(leaf))};
  }

  // The last step, for whose result the memory of `out` waits.
  void add(Chain& chain, cpu::Step& step, const Tensor& out, const cpu::ProgramRunner& runner) {
    StorageImpl* storage = out.storage().get();
    step.stored = out.dtype();
    step.offset = bytes_before(out);
    const uint32_t writer = writer_number(storage);
    if (writer == book.number_) {  // written once more
      forget_result(chain, storage);
    } else {
      storage->noted_.fetch_add((book.number_ - writer) * StorageImpl::one_writer,
                                std::memory_order_acq_rel);
    }
    step.result = storage;
    chain.steps.push_back(step);
    chain.runner = &runner;
  }
};

bool Notebook::note(const TensorIterator& it, const cpu::PointwiseKernel& kernel,
                    const char* attributes, const cpu::ProgramRunner& runner) {
  const Tensor& out = it.output(0);
  if (it.num_outputs() != 1 || out.dim() > cpu::Strided::max_dims ||
      !out.impl()->is_non_overlapping_and_dense()) {
    return false;
  }
  Noter noter{*this};
  Chain* chain = noter.chain_of_rows(it);
  const bool on_rows = chain != nullptr && keeps_float(it, kernel);
  if (!on_rows) {
    if (out.numel() < TensorIterator::least_noted) {
      return false;
    }
    chain = noter.clear_chain(out, [&](const Chain& at) { return noter.way(at, it); });
    if (chain == nullptr) {
      return false;
    }
  }
  cpu::Step step;
  step.kernel = &kernel;
  step.on_rows = on_rows;
  step.common = it.common_dtype();
  step.light = on_rows ? int16_t{-1} : light_number(kernel);
  for (int i = 0; i < kernel.num_inputs; i++) {
    step.in[i] = noter.input(*chain, it, i + 1, on_rows);
  }
  const int64_t size = itemsize(kernel.compute(step.common));
  std::memcpy(step.attributes, attributes, static_cast<size_t>(kernel.num_attributes * size));
  noter.add(*chain, step, out, runner);
  return true;
}

bool Notebook::note_fold(const Tensor& in, const Tensor& out, int64_t row, cpu::RowFold fold,
                         const void* formula, size_t size, const cpu::ProgramRunner& runner) {
  constexpr int64_t longest = 16384;  // of longer ones a few values would not stay in a cache
  if (in.numel() < TensorIterator::least_noted || in.dim() > cpu::Strided::max_dims ||
      row % cpu::least_piece != 0 || row > longest || size > sizeof(cpu::Step::attributes) ||
      !in.is_contiguous() || !out.is_contiguous() || out.storage() == in.storage() ||
      out.storage()->exposed() || out.storage()->noted_.load(std::memory_order_acquire) != 0) {
    return false;
  }
  Noter noter{*this};
  Chain* const chain = noter.clear_chain(in, [&](const Chain& at) { return noter.way_to(at, in); });
  if (chain == nullptr || (chain->row != 0 && chain->row != row)) {
    return false;
  }
  const int made_by = step_of(*chain, in);
  if (made_by >= 0 && chain->steps[static_cast<size_t>(made_by)].on_rows) {
    return false;
  }
  chain->row = row;
  cpu::Step step;
  step.fold = fold;
  step.on_rows = true;
  step.common = in.dtype();
  step.light = -1;
  step.in[0] =
      made_by >= 0 ? cpu::Input{true, static_cast<int16_t>(made_by)} : Noter::memory(*chain, in);
  std::memcpy(step.attributes, formula, size);
  noter.add(*chain, step, out, runner);
  return true;
}

bool Notebook::writes(const StorageImpl* storage) const {
  return writer_number(storage) == number_;
}
bool is_pending_here(const Tensor& t) {
  return t.storage() && tls.notebook != nullptr && tls.notebook->writes(t.storage().get());
}

// The number of a kernel's formula in register code, remembered by the kernel's address.
int16_t Notebook::light_number(const cpu::PointwiseKernel& kernel) {
  Light& known = known_[reinterpret_cast<uintptr_t>(&kernel) / 64 % std::size(known_)];
  if (known.kernel != &kernel) {
    known = {&kernel, static_cast<int16_t>(cpu::jit_formula(kernel.name))};
  }
  return known.number;
}

}  // namespace rushlight
