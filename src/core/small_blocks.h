// Small blocks from per-thread free lists: what nodes, saved tensors and their like are made of. A
// block may be freed on another thread than the one that asked for it; it then joins the lists of
// that thread.
#pragma once

#include <cstddef>

#include <rushlight/export.h>

namespace rushlight {

// Aligned to 16 bytes. Larger sizes than the lists hold go to operator new.
RL_API void* small_allocate(size_t bytes);
RL_API void small_free(void* p, size_t bytes) noexcept;

}  // namespace rushlight
