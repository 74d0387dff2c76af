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
// Elements of a row that is worked on as a whole: of more a few values would not stay in a cache.
constexpr int64_t longest_row = 16384;

// Whether the formula takes float32 and gives what it computes, without a conversion.
bool keeps_float(const TensorIterator& it, const cpu::PointwiseKernel& kernel) {
  bool keeps = it.common_dtype() == kFloat32 && it.output(0).dtype() == kernel.result(kFloat32);
  for (int i = 0; i < kernel.num_inputs; i++) {
    const Tensor* const in = it.tensor(i + 1);
    const bool is_number = in == nullptr || (in->numel() == 1 && !is_pending_here(*in));
    keeps &= is_number || in->dtype() == kernel.wanted(i, kFloat32);
  }
  return keeps;
}

// Whether elements of `from`, spread over the shape of `to`, follow each other or are one where
// those of `to` follow each other. Others are better copied by tiles.
bool lies_in_rows_of(const Tensor& to, const Tensor& from) {
  const int64_t missing = to.dim() - from.dim();
  for (int64_t d = 0; d < to.dim(); d++) {
    if (to.sizes()[d] != 1 && to.strides()[d] == 1) {
      return d < missing || from.sizes()[d - missing] == 1 || from.strides()[d - missing] <= 1;
    }
  }
  return true;
}

cpu::Step copy_step(ScalarType dtype) {
  static const int light = cpu::jit_formula("copy");
  cpu::Step step;
  step.kind = cpu::Step::Kind::Copy;
  step.common = step.stored = dtype;
  step.light = static_cast<int16_t>(light);
  return step;
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

  static cpu::Input input(Chain& chain, const TensorIterator& it, int operand, bool on_rows) {
    const Tensor* t = it.tensor(operand);
    return t != nullptr ? input(chain, *t, on_rows)
                        : number(chain, it.dtype(operand), it.number(operand));
  }
  static cpu::Input input(Chain& chain, const Tensor& t, bool on_rows) {
    if (const int step = on_rows ? row_step_of(chain, t) : step_of(chain, t); step >= 0) {
      return {true, static_cast<int16_t>(step)};
    }
    if (t.numel() == 1) {  // as it is now
      return number(chain, t.dtype(),
                    static_cast<const char*>(t.storage()->data_) + bytes_before(t));
    }
    return memory(chain, t, 0);
  }
  static cpu::Input number(Chain& chain, ScalarType dtype, const void* value) {
    cpu::Leaf leaf;
    leaf.dtype = dtype;
    std::memcpy(leaf.number, value, static_cast<size_t>(itemsize(dtype)));
    return {false, leaf_number(chain, std::move(leaf))};
  }
  static cpu::Input memory(Chain& chain, const Tensor& t, int64_t width) {
    cpu::Leaf leaf;
    leaf.width = width;
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
  void add(Chain& chain, cpu::Step& step, const Tensor& out) {
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
  }

  // Whether the value of a step can be a part of joined rows, and how many steps it takes: what it
  // is made from may be read once more, in rows.
  static bool can_be_part(const Chain& chain, int step, const Tensor& out, size_t& num_steps);
  Way way_to_part(const Tensor& t, const Tensor& out, size_t& num_steps);
  void add_part(Chain& chain, const Tensor& t, const Tensor& out, cpu::Step& join);
};

bool Notebook::note(const TensorIterator& it, const cpu::PointwiseKernel& kernel,
                    const char* attributes) {
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
  step.inputs = kernel.num_inputs;
  step.on_rows = on_rows;
  step.common = it.common_dtype();
  step.light = on_rows ? int16_t{-1} : light_number(kernel);
  for (int i = 0; i < kernel.num_inputs; i++) {
    step.in[i] = noter.input(*chain, it, i + 1, on_rows);
  }
  const int64_t size = itemsize(kernel.compute(step.common));
  std::memcpy(step.attributes, attributes, static_cast<size_t>(kernel.num_attributes * size));
  noter.add(*chain, step, out);
  return true;
}

bool Notebook::note_fold(const Tensor& in, const Tensor& out, int64_t row, cpu::RowFold fold,
                         const void* formula, size_t size) {
  if (in.numel() < TensorIterator::least_noted || in.dim() > cpu::Strided::max_dims ||
      row % cpu::least_piece != 0 || row > longest_row || size > sizeof(cpu::Step::attributes) ||
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
  step.kind = cpu::Step::Kind::Fold;
  step.fold = fold;
  step.on_rows = true;
  step.common = in.dtype();
  step.in[0] =
      made_by >= 0 ? cpu::Input{true, static_cast<int16_t>(made_by)} : Noter::memory(*chain, in, 0);
  std::memcpy(step.attributes, formula, size);
  noter.add(*chain, step, out);
  return true;
}

// ---- copies ----

bool Notebook::note_copy(const Tensor& to, const Tensor& from) {
  if (to.numel() < TensorIterator::least_noted || to.dim() > cpu::Strided::max_dims ||
      !to.impl()->is_non_overlapping_and_dense() || to.storage() == from.storage() ||
      !is_expandable_to(from.sizes(), to.sizes()) || !lies_in_rows_of(to, from)) {
    return false;
  }
  Noter noter{*this};
  Chain* const chain = noter.clear_chain(to, [&](const Chain& at) {
    const Noter::Way way = noter.way_to(at, from);
    return way == Noter::Way::Clear ? noter.way_to_write(at, to) : way;
  });
  if (chain == nullptr) {
    return false;
  }
  cpu::Step step = copy_step(to.dtype());
  step.in[0] = Noter::input(*chain, from, false);
  noter.add(*chain, step, to);
  return true;
}
bool note_copy(const Tensor& to, const Tensor& from) {
  const bool is_memory = to.storage() && from.storage() && to.is_cpu() && from.is_cpu();
  return is_memory && tls.notebook != nullptr && tls.notebook->note_copy(to, from);
}

// ---- joined rows ----

bool Notebook::Noter::can_be_part(const Chain& chain, int step, const Tensor& out,
                                  size_t& num_steps) {
  uint64_t needed = uint64_t{1} << step;
  for (int i = step; i >= 0; i--) {
    if ((needed >> i & 1) == 0) {
      continue;
    }
    const cpu::Step& one = chain.steps[static_cast<size_t>(i)];
    num_steps++;
    const bool is_plain = one.kind == cpu::Step::Kind::Formula || one.kind == cpu::Step::Kind::Copy;
    if (!is_plain || one.on_rows || one.width != 0) {
      return false;
    }
    for (int k = 0; k < one.num_inputs(); k++) {
      if (one.in[k].is_step) {
        needed |= uint64_t{1} << one.in[k].index;
        continue;
      }
      const cpu::Leaf& leaf = chain.leaves[static_cast<size_t>(one.in[k].index)];
      const int64_t stride = leaf.strides[chain.dim - 1];
      if (leaf.storage &&
          (writer_number(leaf.storage.get()) != 0 || leaf.storage == out.storage() ||
           (stride != 0 && stride != itemsize(leaf.dtype)))) {
        return false;
      }
    }
  }
  return true;
}

Notebook::Noter::Way Notebook::Noter::way_to_part(const Tensor& t, const Tensor& out,
                                                  size_t& num_steps) {
  const StorageImpl* const storage = t.storage().get();
  const uint32_t writer = writer_number(storage);
  if (writer == 0) {
    num_steps++;
    return storage->exposed() || t.strides()[t.dim() - 1] != 1 || t.storage() == out.storage()
               ? Way::None
               : Way::Clear;
  }
  if (writer != book.number_) {
    lock.unlock();
    storage->complete();
    lock.lock();
    return Way::Changed;
  }
  Chain* const chain = book.writer_of(storage);
  const int step = step_of(*chain, t);
  if (step >= 0 && can_be_part(*chain, step, out, num_steps)) {
    num_steps++;
    return Way::Clear;
  }
  book.complete(*chain);
  return Way::Changed;
}

// Notes once more what gives a part, in rows of its width.
void Notebook::Noter::add_part(Chain& chain, const Tensor& t, const Tensor& out, cpu::Step& join) {
  const int64_t width = t.sizes()[t.dim() - 1];
  cpu::Step copy = copy_step(out.dtype());
  copy.width = width;
  const auto note = [&](const cpu::Step& step) {
    chain.steps.push_back(step);
    return cpu::Input{true, static_cast<int16_t>(chain.steps.size() - 1)};
  };
  cpu::Input& part = join.in[join.inputs++];
  if (writer_number(t.storage().get()) == 0) {
    copy.in[0] = memory(chain, t, width);
    part = note(copy);
    return;
  }
  const Chain& from = *book.writer_of(t.storage().get());
  const int last = step_of(from, t);
  uint64_t needed = uint64_t{1} << last;
  for (int i = last; i >= 0; i--) {
    const cpu::Step& step = from.steps[static_cast<size_t>(i)];
    for (int k = 0; k < step.num_inputs() && (needed >> i & 1) != 0; k++) {
      needed |= step.in[k].is_step ? uint64_t{1} << step.in[k].index : 0;
    }
  }
  std::vector<cpu::Input> noted(from.steps.size());
  for (int i = 0; i <= last; i++) {
    if ((needed >> i & 1) == 0) {
      continue;
    }
    cpu::Step step = from.steps[static_cast<size_t>(i)];
    step.width = width;
    step.result = nullptr;
    for (int k = 0; k < step.num_inputs(); k++) {
      const auto at = static_cast<size_t>(step.in[k].index);
      if (step.in[k].is_step) {
        step.in[k] = noted[at];
      } else {
        cpu::Leaf leaf = from.leaves[at];
        leaf.width = width;
        leaf.linear = false;
        step.in[k] = {false, leaf_number(chain, std::move(leaf))};
      }
    }
    noted[static_cast<size_t>(i)] = note(step);
  }
  part = noted[static_cast<size_t>(last)];
  if (t.dtype() != out.dtype()) {
    copy.in[0] = part;
    part = note(copy);
  }
}

bool Notebook::note_join(const Tensor& out, TensorList tensors) {
  const int64_t row = out.sizes()[out.dim() - 1];
  bool fits = out.numel() >= TensorIterator::least_noted && out.dim() <= cpu::Strided::max_dims &&
              out.is_contiguous() && row <= longest_row && tensors.size() > 1 &&
              tensors.size() <= cpu::max_inputs;
  for (const Tensor& t : tensors) {
    fits = fits && t.storage() && t.numel() != 0 && t.sizes()[t.dim() - 1] % cpu::least_piece == 0;
  }
  if (!fits) {
    return false;
  }
  Noter noter{*this};
  size_t num_steps = 0;
  Chain* const chain = noter.clear_chain(out, [&](const Chain& at) {
    num_steps = 1;
    for (const Tensor& t : tensors) {
      if (const Noter::Way way = noter.way_to_part(t, out, num_steps); way != Noter::Way::Clear) {
        return way;
      }
    }
    return noter.way_to_write(at, out);
  });
  if (chain == nullptr || (chain->row != 0 && chain->row != row) ||
      chain->steps.size() + num_steps > max_steps) {
    return false;
  }
  chain->row = row;
  cpu::Step join;
  join.kind = cpu::Step::Kind::Join;
  join.common = out.dtype();
  join.inputs = 0;
  for (const Tensor& t : tensors) {
    noter.add_part(*chain, t, out, join);
  }
  noter.add(*chain, join, out);
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
