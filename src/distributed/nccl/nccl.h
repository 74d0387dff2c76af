// NCCL's C interface, as far as it is used here: found at run time, from version 2.14 on.
#pragma once

#include <array>
#include <climits>
#include <string>
#include <vector>

#include <rushlight/dtype.h>

namespace rushlight::distributed::nccl {

using Comm = void*;
using Op = int;
using Type = int;

constexpr int success = 0;
constexpr int in_progress = 7;
constexpr int first_version = 21400;

constexpr Op sum = 0, product = 1, max = 2, min = 3, average = 4;
constexpr Type bytes_type = 0;  // signed, of 8 bits
// What a dtype is to reductions; ValueError where it is none of NCCL's.
Type type_of(ScalarType dtype);

struct UniqueId {
  std::array<char, 128> bytes;
};

// The settings of version 2.14, which later versions fill up: their size and version say so.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = first_version;
  int blocking = 0;
};

#define RL_NCCL_FUNCTIONS(_)                                            \
  _(GetVersion, (int*))                                                 \
  _(GetUniqueId, (UniqueId*))                                           \
  _(CommInitRankConfig, (Comm*, int, UniqueId, int, Config*))           \
  _(CommFinalize, (Comm))                                               \
  _(CommDestroy, (Comm))                                                \
  _(CommAbort, (Comm))                                                  \
  _(CommGetAsyncError, (Comm, int*))                                    \
  _(RedOpCreatePreMulSum, (Op*, void*, Type, int, Comm))                \
  _(RedOpDestroy, (Op, Comm))                                           \
  _(GroupStart, ())                                                     \
  _(GroupEnd, ())                                                       \
  _(AllReduce, (const void*, void*, size_t, Type, Op, Comm, void*))     \
  _(Broadcast, (const void*, void*, size_t, Type, int, Comm, void*))    \
  _(Reduce, (const void*, void*, size_t, Type, Op, int, Comm, void*))   \
  _(AllGather, (const void*, void*, size_t, Type, Comm, void*))         \
  _(ReduceScatter, (const void*, void*, size_t, Type, Op, Comm, void*)) \
  _(Send, (const void*, size_t, Type, int, Comm, void*))                \
  _(Recv, (void*, size_t, Type, int, Comm, void*))

struct Api {
#define RL_NCCL_POINTER(name, parameters) int(*name) parameters;
  RL_NCCL_FUNCTIONS(RL_NCCL_POINTER)
#undef RL_NCCL_POINTER
  const char* (*GetErrorString)(int);
  const char* (*GetLastError)(Comm);

  // BackendError unless it is success or in_progress.
  void check(int code) const;
};

// Where the library lies; empty where there is none.
std::string find(const std::vector<std::string>& folders);
// Loads it; RuntimeError where there is none, or one too old.
const Api& api();

}  // namespace rushlight::distributed::nccl
