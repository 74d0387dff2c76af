// Regions of a program in which pointwise ops are noted and computed together: what `compile`
// opens. src/cpu/chain.h says how.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

class Notebook;
class Tensor;

// While it lives formulas of this thread are noted. Completes what is pending at the end of the
// outermost one.
class RL_API Region {
 public:
  Region();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  // Ends it, and throws what the destructor would have to keep to itself.
  void close();

 private:
  Notebook* before_;
  bool open_ = true;
};

// Whether regions note; where they do not, formulas run at once.
RL_API bool regions_note();
RL_API void set_regions_note(bool on);

// Whether this thread has noted what the tensor will be.
RL_API bool is_pending_here(const Tensor& t);

// Notes in a region that `to` gets the elements of `from`, broadcast and converted; false where they
// have to be copied now.
RL_API bool note_copy(const Tensor& to, const Tensor& from);

// While it lives formulas of this thread run at once, in a region too.
class RL_API RunNow {
 public:
  RunNow();
  ~RunNow();
  RunNow(const RunNow&) = delete;
  RunNow& operator=(const RunNow&) = delete;

 private:
  Notebook* before_;
};

}  // namespace rushlight
