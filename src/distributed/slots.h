// The numbers by which messages find their receivers: bit 63 stands for collectives, bit 62 for
// notes, both for boxes, and what has neither is between two ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::distributed {

enum class Kind : uint64_t {
  Broadcast = 1,
  AllReduce,
  Reduce,
  AllGather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  Barrier,
};

inline uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}

// Where a message of a collective goes. What differs between ranks by mistake (the kind, the
// length) makes slots differ, too: such messages never meet, and the time runs out.
class Slots {
 public:
  Slots(Kind kind, uint64_t number)
      : base_((uint64_t{1} << 63) | ((number & 0xffffff) << 38)), kind_(kind) {}
  uint64_t at(uint64_t step, size_t bytes) const {
    const uint64_t check = mix_bits((static_cast<uint64_t>(kind_) << 56) ^ (step << 44) ^ bytes);
    return base_ | ((check & 0x3ffff) << 20) | (step & 0xfffff);
  }

 private:
  uint64_t base_;
  Kind kind_;
};

// Between two ranks: a tag and the length.
inline uint64_t pair_slot(uint32_t tag, size_t bytes) {
  return (uint64_t{tag} << 24) | (mix_bits(bytes) & 0xffffff);
}

inline bool is_pair_slot(uint64_t slot) { return slot >> 62 == 0; }
inline uint32_t tag_of(uint64_t pair_slot) { return static_cast<uint32_t>(pair_slot >> 24); }

// Of the box that a rank's small message with this number goes into.
inline uint64_t slot_of_box(uint64_t number) {
  return (uint64_t{3} << 62) | (number & 0xffffffffffff);
}

// Of what ranks say before they give up.
constexpr uint64_t note_slot = uint64_t{1} << 62;

}  // namespace rushlight::distributed
