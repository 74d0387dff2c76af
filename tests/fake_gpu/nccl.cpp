// NCCL's functions for the fake device: processes of one machine exchange bytes through shared
// memory. What the real one makes hard is kept: communicators become ready by and by, calls of a
// group are one piece of work on a stream, which a rank that does not come holds up until it is
// aborted, and lengths that differ are an error that is found later.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.h"
#include "distributed/nccl/nccl.h"
#include <rushlight/distributed/backend.h>
#include <rushlight/export.h>

using namespace rushlight;
using distributed::nccl::Config;
using distributed::nccl::UniqueId;

namespace {

constexpr int ok = 0, system_error = 2, invalid_usage = 5, in_progress = 7;
constexpr uint64_t pipe_bytes = 1 << 16;

struct Pipe {
  std::atomic<uint64_t> written, read;
  char bytes[pipe_bytes];
};
struct Shared {
  std::atomic<int> joined;
  Pipe pipes[1];  // from rank a to rank b: a * size + b
};

struct Comm {
  int rank = 0;
  int size = 0;
  std::string name;
  Shared* shared = nullptr;
  std::atomic<int> error{ok};
  std::atomic<bool> aborted{false};
  std::atomic<int> polls{0};      // so often it is in progress yet
  std::map<int, double> factors;  // of the ops that were made
  std::atomic<int> running{0};
  std::atomic<bool> unlinked{false};

  Pipe& pipe(int from, int to) { return shared->pipes[from * size + to]; }
};

struct Transfer {
  int peer;
  char* memory;
  uint64_t bytes;
  uint64_t done = 0;  // of a header of 8 bytes, and of the memory
};

// What one call of NCCL moves, and what is done when it has been moved.
struct Call {
  Comm* comm;
  void* stream;
  std::vector<Transfer> sends, receives;
  std::vector<std::vector<char>> parts;
  std::function<void()> then = [] {};
};

thread_local int depth = 0;
thread_local std::vector<std::shared_ptr<Call>> calls;

// Moves some bytes of a transfer through a pipe; whether it is done.
bool push(Pipe& pipe, Transfer& t) {
  const uint64_t total = t.bytes + 8;
  while (t.done < total && pipe.written - pipe.read < pipe_bytes) {
    const uint64_t at = pipe.written;
    const char* from =
        t.done < 8 ? reinterpret_cast<const char*>(&t.bytes) + t.done : t.memory + (t.done - 8);
    const uint64_t left = t.done < 8 ? 8 - t.done : total - t.done;
    const uint64_t n =
        std::min({left, pipe_bytes - (at - pipe.read), pipe_bytes - at % pipe_bytes});
    std::memcpy(pipe.bytes + at % pipe_bytes, from, n);
    t.done += n;
    pipe.written = at + n;
  }
  return t.done == total;
}
bool pull(Comm& comm, Pipe& pipe, Transfer& t, uint64_t& header) {
  const uint64_t total = t.bytes + 8;
  while (t.done < total && pipe.written != pipe.read) {
    const uint64_t at = pipe.read;
    char* to = t.done < 8 ? reinterpret_cast<char*>(&header) + t.done : t.memory + (t.done - 8);
    const uint64_t left = t.done < 8 ? 8 - t.done : total - t.done;
    const uint64_t n = std::min({left, pipe.written - at, pipe_bytes - at % pipe_bytes});
    std::memcpy(to, pipe.bytes + at % pipe_bytes, n);
    t.done += n;
    pipe.read = at + n;
    if (t.done == 8 && header != t.bytes) {
      comm.error = invalid_usage;
      return false;
    }
  }
  return t.done == total;
}

void run(const std::vector<std::shared_ptr<Call>>& group) {
  Comm& comm = *group[0]->comm;
  std::map<int, std::deque<Transfer*>> sends, receives;
  for (const auto& call : group) {
    for (Transfer& t : call->sends) {
      sends[t.peer].push_back(&t);
    }
    for (Transfer& t : call->receives) {
      receives[t.peer].push_back(&t);
    }
  }
  std::map<int, uint64_t> headers;
  for (bool all = false; !all && !comm.aborted;) {
    all = true;
    for (auto& [peer, list] : sends) {
      while (!list.empty() && push(comm.pipe(comm.rank, peer), *list.front())) {
        list.pop_front();
      }
      all = all && list.empty();
    }
    for (auto& [peer, list] : receives) {
      while (!list.empty() && comm.error == ok &&
             pull(comm, comm.pipe(peer, comm.rank), *list.front(), headers[peer])) {
        list.pop_front();
      }
      all = all && list.empty();
    }
    if (!all) {
      sched_yield();
    }
  }
  if (!comm.aborted) {
    for (const auto& call : group) {
      call->then();
    }
  }
  comm.running--;
}

int end_group() {
  if (depth-- > 1 || calls.empty()) {
    return ok;
  }
  auto group = std::move(calls);
  calls.clear();
  Comm* const comm = group[0]->comm;
  for (const auto& call : group) {
    if (call->comm != comm || call->stream != group[0]->stream) {
      return invalid_usage;
    }
  }
  comm->polls = 2;
  comm->running++;
  fake_gpu::enqueue(group[0]->stream, [group] { run(group); });
  return in_progress;
}

// A call by itself is a group.
int add(std::shared_ptr<Call> call) {
  calls.push_back(std::move(call));
  if (depth > 0) {
    return ok;
  }
  depth++;
  return end_group();
}

size_t size_of(int type) {
  constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[type];
}
ScalarType scalar_type_of(int type) {
  constexpr ScalarType types[] = {
      ScalarType::Char,   ScalarType::Byte,     ScalarType::Int,           ScalarType::UInt32,
      ScalarType::Long,   ScalarType::UInt64,   ScalarType::Half,          ScalarType::Float,
      ScalarType::Double, ScalarType::BFloat16, ScalarType::Float8_e4m3fn, ScalarType::Float8_e5m2};
  return types[type];
}

struct Recorder {
  std::shared_ptr<Call> call = std::make_shared<Call>();
  Comm& comm;
  Recorder(void* c, void* stream) : comm(*static_cast<Comm*>(c)) {
    call->comm = &comm;
    call->stream = stream;
    call->parts.resize(static_cast<size_t>(comm.size));
  }
  void send(int to, const void* from, size_t bytes) {
    call->sends.push_back({to, static_cast<char*>(const_cast<void*>(from)), bytes});
  }
  void receive(int from, void* to, size_t bytes) {
    call->receives.push_back({from, static_cast<char*>(to), bytes});
  }
  // Everybody's part, and then what an op makes of them.
  void receive_and_combine(const void* own, void* to, size_t count, int type, int op) {
    const size_t bytes = count * size_of(type);
    for (int r = 0; r < comm.size; r++) {
      if (r != comm.rank) {
        auto& part = call->parts[static_cast<size_t>(r)];
        part.resize(bytes);
        receive(r, part.data(), bytes);
      }
    }
    call->then = [c = call.get(), own, to, count, type, op] {
      std::vector<const void*> parts;
      for (int r = 0; r < c->comm->size; r++) {
        parts.push_back(r == c->comm->rank ? own : c->parts[static_cast<size_t>(r)].data());
      }
      using distributed::ReduceKind;
      constexpr ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Product, ReduceKind::Max,
                                      ReduceKind::Min, ReduceKind::Avg};
      distributed::Reduction reduction;
      if (op < 5) {
        reduction.kind = kinds[op];
      } else {
        reduction = {ReduceKind::PremulSum, c->comm->factors.at(op)};
      }
      distributed::combine(to, parts, static_cast<int64_t>(count), scalar_type_of(type), reduction);
    };
  }
};

void unmap(Comm* comm) {
  comm->aborted = true;
  while (comm->running > 0) {
    sched_yield();
  }
}

}  // namespace

#define FAKE extern "C" RL_API int

FAKE ncclGetVersion(int* version) {
  *version = 22809;
  return ok;
}
FAKE ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> next{0};
  id->bytes.fill(0);
  (void)std::snprintf(id->bytes.data(), id->bytes.size(), "/fake-nccl-%d-%d",
                      static_cast<int>(getpid()), next++);
  return ok;
}
FAKE ncclCommInitRankConfig(void** made, int size, UniqueId id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->version < 21400 || config->blocking != 0 ||
      config->size != sizeof(Config)) {
    return invalid_usage;
  }
  auto comm = std::make_unique<Comm>();
  comm->rank = rank;
  comm->size = size;
  comm->name = id.bytes.data();
  const size_t bytes = sizeof(Shared) + sizeof(Pipe) * static_cast<size_t>(size * size);
  const int file = shm_open(comm->name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return system_error;
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    return system_error;
  }
  comm->shared = static_cast<Shared*>(memory);
  comm->shared->joined++;
  comm->polls = 3;
  *made = comm.release();
  return in_progress;
}
FAKE ncclCommGetAsyncError(void* c, int* state) {
  Comm& comm = *static_cast<Comm*>(c);
  const bool joined = comm.shared->joined == comm.size;
  if (joined && !comm.unlinked.exchange(true)) {
    shm_unlink(comm.name.c_str());  // all have it
  }
  const bool ready = comm.polls-- <= 0 && joined;
  *state = comm.error != ok ? comm.error.load() : ready ? ok : in_progress;
  return ok;
}
FAKE ncclCommFinalize(void*) { return ok; }
FAKE ncclCommDestroy(void* c) {
  unmap(static_cast<Comm*>(c));
  return ok;
}
FAKE ncclCommAbort(void* c) {
  unmap(static_cast<Comm*>(c));
  return ok;
}
FAKE ncclRedOpCreatePreMulSum(int* op, void* factor, int type, int where, void* c) {
  auto& factors = static_cast<Comm*>(c)->factors;
  const ScalarType dtype = scalar_type_of(type);
  double value = 0;
  if (where != 1) {
    return invalid_usage;
  } else if (dtype == ScalarType::Double) {
    value = *static_cast<double*>(factor);
  } else if (dtype == ScalarType::Float) {
    value = *static_cast<float*>(factor);
  } else if (dtype == ScalarType::Half) {
    value = *static_cast<Half*>(factor);
  } else if (dtype == ScalarType::BFloat16) {
    value = *static_cast<BFloat16*>(factor);
  } else {
    return invalid_usage;
  }
  *op = 5 + static_cast<int>(factors.size());
  factors[*op] = value;
  return ok;
}
FAKE ncclRedOpDestroy(int, void*) { return ok; }
FAKE ncclGroupStart() {
  depth++;
  return ok;
}
FAKE ncclGroupEnd() { return end_group(); }
FAKE ncclAllReduce(const void* from, void* to, size_t count, int type, int op, void* c,
                   void* stream) {
  Recorder r(c, stream);
  for (int peer = 0; peer < r.comm.size; peer++) {
    if (peer != r.comm.rank) {
      r.send(peer, from, count * size_of(type));
    }
  }
  r.receive_and_combine(from, to, count, type, op);
  return add(r.call);
}
FAKE ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* c,
                   void* stream) {
  Recorder r(c, stream);
  const size_t bytes = count * size_of(type);
  if (r.comm.rank != root) {
    r.receive(root, to, bytes);
    return add(r.call);
  }
  for (int peer = 0; peer < r.comm.size; peer++) {
    if (peer != root) {
      r.send(peer, from, bytes);
    }
  }
  r.call->then = [=] { std::memmove(to, from, bytes); };
  return add(r.call);
}
FAKE ncclReduce(const void* from, void* to, size_t count, int type, int op, int root, void* c,
                void* stream) {
  Recorder r(c, stream);
  if (r.comm.rank == root) {
    r.receive_and_combine(from, to, count, type, op);
  } else {
    r.send(root, from, count * size_of(type));
  }
  return add(r.call);
}
FAKE ncclAllGather(const void* from, void* to, size_t count, int type, void* c, void* stream) {
  Recorder r(c, stream);
  const size_t bytes = count * size_of(type);
  for (int peer = 0; peer < r.comm.size; peer++) {
    char* const place = static_cast<char*>(to) + static_cast<size_t>(peer) * bytes;
    if (peer != r.comm.rank) {
      r.send(peer, from, bytes);
      r.receive(peer, place, bytes);
    } else {
      r.call->then = [=] { std::memmove(place, from, bytes); };
    }
  }
  return add(r.call);
}
FAKE ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, void* c,
                       void* stream) {
  Recorder r(c, stream);
  const size_t bytes = count * size_of(type);
  const char* const parts = static_cast<const char*>(from);
  for (int peer = 0; peer < r.comm.size; peer++) {
    if (peer != r.comm.rank) {
      r.send(peer, parts + static_cast<size_t>(peer) * bytes, bytes);
    }
  }
  r.receive_and_combine(parts + static_cast<size_t>(r.comm.rank) * bytes, to, count, type, op);
  return add(r.call);
}
FAKE ncclSend(const void* from, size_t count, int type, int peer, void* c, void* stream) {
  Recorder r(c, stream);
  r.send(peer, from, count * size_of(type));
  return add(r.call);
}
FAKE ncclRecv(void* to, size_t count, int type, int peer, void* c, void* stream) {
  Recorder r(c, stream);
  r.receive(peer, to, count * size_of(type));
  return add(r.call);
}
extern "C" RL_API const char* ncclGetErrorString(int code) {
  return code == invalid_usage ? "invalid usage" : "unhandled system error";
}
extern "C" RL_API const char* ncclGetLastError(void*) { return ""; }
