// The kernels that the op table asks for, by device. Comes at the end of generated/kernels.h, which
// has struct KernelTable and three lists of its entries: RL_ISA_KERNELS are compiled for each
// instruction set, RL_ONCE_KERNELS once, and RL_ANYWHERE_KERNELS, written over copy_raw, fill_raw
// and views, serve every device.
#pragma once

#include <type_traits>

#include "core/isa_levels.h"

namespace rushlight {

// By device; a null entry is an op that the device lacks. Meta has none and needs none. Devices
// that are names alone have none either, but tensors without memory (wrappers) may say they lie
// there.
extern const KernelTable* kernel_tables[num_device_names];

// A kernel has the type of its entry in the table.
#define RL_DECLARE_KERNEL(name) std::remove_pointer_t<decltype(KernelTable::name)> name;
#define RL_DECLARE_API_KERNEL(name) RL_API RL_DECLARE_KERNEL(name)

namespace anywhere {
RL_ANYWHERE_KERNELS(RL_DECLARE_API_KERNEL)
}  // namespace anywhere

namespace cpu {
RL_ONCE_KERNELS(RL_DECLARE_KERNEL)
#define RL_DECLARE_LEVEL(level)     \
  namespace level {                 \
  RL_ISA_KERNELS(RL_DECLARE_KERNEL) \
  }
RL_ISA_LEVELS(RL_DECLARE_LEVEL)
#undef RL_DECLARE_LEVEL
}  // namespace cpu

#undef RL_DECLARE_API_KERNEL

}  // namespace rushlight
