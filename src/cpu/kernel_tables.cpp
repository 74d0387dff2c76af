// The CPU's column of the kernel table: one for each instruction set. Which of them runs is chosen
// when the library is loaded.
#include "core/backend.h"
#include "cpu/isa_level.h"
#include "generated/kernels.h"

namespace rushlight {

namespace cpu {

// Names are looked up from a level outwards: its own kernels, then those compiled once.
#define RL_ROW(name) .name = name,
#define RL_ANYWHERE_ROW(name) .name = anywhere::name,
#define RL_CPU_TABLE(level)                                                        \
  namespace level {                                                                \
  const KernelTable kernel_table = {RL_ISA_KERNELS(RL_ROW) RL_ONCE_KERNELS(RL_ROW) \
                                        RL_ANYWHERE_KERNELS(RL_ANYWHERE_ROW)};     \
  }
#ifdef RL_ONE_ISA
RL_CPU_TABLE(RL_ONE_ISA)
#else
RL_ISA_LEVELS(RL_CPU_TABLE)
#endif

static const KernelTable* cpu_table() { return &RL_ISA_TABLE(kernel_table); }

}  // namespace cpu

const KernelTable* cpu_kernels() { return cpu::cpu_table(); }

const KernelTable* kernel_tables[num_device_names] = {cpu::cpu_table()};

}  // namespace rushlight
