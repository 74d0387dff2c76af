// The memory that the allocator takes from the system and gives back.
#pragma once

#include <cstddef>

namespace rushlight::allocation {

// From here on blocks are cut from slabs; their sizes are multiples of the page.
inline constexpr size_t slab_threshold = size_t{128} << 10;
inline constexpr size_t map_threshold = size_t{1} << 20;  // from here on mapped on their own
inline constexpr size_t huge_page = size_t{2} << 20;
inline constexpr size_t page = 4096;

// A mapping aligned to `alignment` (a multiple of the page), or null.
char* map_aligned(size_t bytes, size_t alignment);
void* system_allocate(size_t bytes);  // or null
void system_free(void* p, size_t bytes);
// How many freed bytes are kept: a quarter of what the machine, or the container, has.
size_t default_limit();

}  // namespace rushlight::allocation
