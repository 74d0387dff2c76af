// The instruction sets that src/cpu/isa may be compiled for, lowest first. Each is a namespace.
#pragma once

#if defined(__x86_64__)
#define RL_ISA_LEVELS(X) X(v2) X(v3) X(v4)
#elif defined(__aarch64__)
#define RL_ISA_LEVELS(X) X(neon)
#else
#error "rushlight has kernels for x86-64 and aarch64"
#endif
