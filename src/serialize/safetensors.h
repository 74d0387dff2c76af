// The safetensors format: a length, a JSON object that says of each tensor its dtype, its shape and
// where its bytes are, and the bytes. The reader is strict: what the header says must cover the
// file exactly, without holes or overlaps.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rushlight/serialize.h>

#include "serialize/file.h"
#include "serialize/safetensors_header.h"

namespace rushlight::serialize {

// Tensors in the order of the header. `in_place`: they use the source's memory, which must then be
// writable, where it is aligned for them. RuntimeError for a damaged file.
RL_API StateDict read_safetensors(const std::shared_ptr<Source>& source, bool in_place,
                                  Metadata* metadata = nullptr);
RL_API void write_safetensors(const StateDict& tensors, const Metadata& metadata, Sink& sink);

}  // namespace rushlight::serialize
