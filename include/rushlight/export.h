// Visibility: everything is compiled hidden; RL_API marks what leaves the library.
#pragma once

#define RL_API __attribute__((visibility("default")))
#define RL_LIKELY(x) __builtin_expect(!!(x), 1)
#define RL_UNLIKELY(x) __builtin_expect(!!(x), 0)
