// Visibility: everything is compiled hidden; RL_API marks what leaves the library.
#pragma once

#define RL_API __attribute__((visibility("default")))
// A variable that is initialised at compile time, also in C++17.
#ifdef __clang__
#define RL_CONSTINIT [[clang::require_constant_initialization]]
#else
#define RL_CONSTINIT __constinit
#endif
#define RL_LIKELY(x) __builtin_expect(!!(x), 1)
#define RL_UNLIKELY(x) __builtin_expect(!!(x), 0)
