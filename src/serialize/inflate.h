// Bytes that were packed by DEFLATE (RFC 1951), as the texts in archives of programs are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rushlight/export.h>

namespace rushlight::serialize {

// Exactly `size` bytes; RuntimeError where the packed ones are damaged or stand for another number.
RL_API std::string inflate(std::string_view packed, uint64_t size);

}  // namespace rushlight::serialize
