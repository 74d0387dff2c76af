// RL_INLINE: a function that has no copy of its own, so that none made for one instruction set is
// linked into another's code. Where device code is compiled, a header of that device comes first
// and defines it as its compiler wants it.
#pragma once

#ifndef RL_INLINE
#define RL_INLINE inline __attribute__((always_inline))
#endif
