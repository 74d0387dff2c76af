// Formulas that are noted instead of run. Inside a region (core/region.h; `compile` in Python)
// every pointwise op does all it does otherwise, checks, shapes, history, versions and errors, but
// for the walk over memory: a *step* is noted in a *chain* of steps over one shape, and its result
// is *pending*. A chain is completed, in one pass (program.h) that leaves out what nobody can see
// any more, when
//
// - somebody takes the address of a pending result, or of memory that the chain reads
//   (StorageImpl::data): a kernel, numpy, print, item(), another thread;
// - it has become long, or an op needs a part or a view of one of its results;
// - the region ends.
//
// Memory whose address is known outside (numpy arrays, data_ptr()) is neither read nor written by a
// chain: such ops run at once.
//
// Each thread notes in a notebook of its own. A lock of the notebook is held while it is changed or
// a chain of it is completed; a thread never waits for one notebook while it holds another.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <rushlight/storage.h>

#include "cpu/program_builder.h"

namespace rushlight {

namespace cpu {
class ChainSource;
}

// What was noted, to explain it.
struct ChainCounts {
  int64_t chains = 0;      // passes over memory
  int64_t steps = 0;       // formulas that they computed
  int64_t unseen = 0;      // of these results that were never written
  int64_t bytes_left = 0;  // of unseen results: neither written nor read again
};

class RL_API Notebook {
 public:
  // Notes the call; false where the formula has to run now. Values of the attributes are of the
  // compute type, one after another, as blocks take them.
  bool note(const TensorIterator& it, const cpu::PointwiseKernel& kernel, const char* attributes);
  // Notes that each row of `in`, its last `row` elements, is folded to an element of `out`, by a
  // formula of `size` bytes; false where it has to run now.
  bool note_fold(const Tensor& in, const Tensor& out, int64_t row, cpu::RowFold fold,
                 const void* formula, size_t size);
  // Notes that `to` gets the elements of `from`, broadcast and converted.
  bool note_copy(const Tensor& to, const Tensor& from);
  // Notes that rows of `out` are those of the tensors, one after the other.
  bool note_join(const Tensor& out, TensorList tensors);
  bool writes(const StorageImpl* storage) const;
  void complete_all();
  ChainCounts counts();

  // The notebook of this thread, which it keeps; null where there are too many threads.
  static Notebook* of_thread();
  // What StorageImpl asks for: that of a number, and that all who read this memory have done so.
  static Notebook& numbered(uint32_t number);
  static void complete_readers(const StorageImpl* storage);
  void complete_writer(const StorageImpl* storage);
  void forget(const StorageImpl* storage);

 private:
  friend class StorageImpl;
  friend class cpu::ChainSource;
  struct Noter;
  struct Owner;

  Notebook(uint32_t number);
  ~Notebook();
  void complete(cpu::Chain& chain);
  void complete_readers_here(const StorageImpl* storage);
  cpu::Chain* writer_of(const StorageImpl* storage);
  static uint32_t writer_number(const StorageImpl* storage);
  static char* address_of(const StorageImpl* storage);

  const uint32_t number_;
  std::mutex lock_;
  std::vector<std::unique_ptr<cpu::Chain>> open_;   // the latest last
  std::vector<std::unique_ptr<cpu::Chain>> spare_;  // empty ones
  cpu::Program& program_of(const cpu::Chain& chain);
  int16_t light_number(const cpu::PointwiseKernel& kernel);

  struct Light {
    const cpu::PointwiseKernel* kernel = nullptr;
    int16_t number = -1;
  };
  Light known_[256];

  cpu::Program program_;  // of a chain whose program is not kept
  std::string key_;
  std::unordered_map<std::string, cpu::Program> programs_;
  int64_t code_age_ = 0;  // of what these were made with
  ChainCounts counts_;
};

}  // namespace rushlight
