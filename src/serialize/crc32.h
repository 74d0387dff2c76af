// CRC-32 as zip has it (polynomial 0x04c11db7, reflected), at the speed of memory where the
// processor multiplies without carries.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rushlight/export.h>

namespace rushlight::serialize {

// The checksum of what `crc` was the checksum of, followed by these bytes. Starts from 0.
RL_API uint32_t crc32(uint32_t crc, const void* data, size_t n);
// The same without the special instructions; for tests.
RL_API uint32_t crc32_tables(uint32_t crc, const void* data, size_t n);

// The checksum of two pieces in a row from that of each; `n` is the size of the second.
RL_API uint32_t crc32_of_both(uint32_t first, uint32_t second, uint64_t n);

}  // namespace rushlight::serialize
