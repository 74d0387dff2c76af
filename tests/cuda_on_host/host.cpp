// A GPU played by the processor. The threads of a block are contexts that run one after the other;
// one that waits for its block or warp gives way, and goes on when all that are left have come
// there. The CUDA runtime has one device (RUSHLIGHT_HOST_GPUS says how many), whose memory is the
// host's and whose streams do everything at once. Fresh memory is filled with 0xFB: a NaN, or a
// large number.
#include <host.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstdio>
#include <mutex>
#include <vector>

namespace on_host {

Index thread_index;
Index block_index;
Index grid_size;
unsigned char exchanged[most_threads][64];
bool failed = false;  // an assertion ended the kernel

namespace {

constexpr size_t stack_bytes = 128 * 1024;

enum class State { Ready, AtBlock, AtWarp, Done };
struct Thread {
  ucontext_t context;
  char* stack = nullptr;
  State state = State::Done;
};

std::recursive_mutex running;
Thread threads[most_threads];
std::vector<char*> spare_stacks;
ucontext_t scheduler;
void (*body)(void*);
void* body_data;

void leave(State state) {
  Thread& me = threads[thread_index.x];
  me.state = state;
  swapcontext(&me.context, &scheduler);
}
void enter() {
  body(body_data);
  leave(State::Done);
}

void resume(unsigned t) {
  Thread& thread = threads[t];
  thread_index.x = t;
  thread.state = State::Ready;
  swapcontext(&scheduler, &thread.context);
  if (thread.state == State::Done) {
    spare_stacks.push_back(thread.stack);
  }
}

void start(unsigned t) {
  if (spare_stacks.empty()) {
    spare_stacks.push_back(static_cast<char*>(std::malloc(stack_bytes)));
  }
  Thread& thread = threads[t];
  thread.stack = spare_stacks.back();
  spare_stacks.pop_back();
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack;
  thread.context.uc_stack.ss_size = stack_bytes;
  makecontext(&thread.context, enter, 0);
  resume(t);
}

[[noreturn]] void give_up(const char* why) {
  (void)std::fprintf(stderr, "kernel on the host: %s\n", why);
  std::abort();
}

// Threads begin to end that are not done, and those of them in a state.
struct Census {
  unsigned left = 0;
  unsigned waiting = 0;
  Census(unsigned begin, unsigned end, State state) {
    for (unsigned t = begin; t < end; t++) {
      left += threads[t].state != State::Done ? 1 : 0;
      waiting += threads[t].state == state ? 1 : 0;
    }
  }
  bool all() const { return left > 0 && waiting == left; }
};

void resume_all(unsigned begin, unsigned end) {
  for (unsigned t = begin; t < end && !failed; t++) {
    if (threads[t].state != State::Done) {
      resume(t);
    }
  }
}

void run_block(unsigned block) {
  for (unsigned t = 0; t < block && !failed; t++) {
    start(t);
  }
  while (!failed) {
    const Census whole(0, block, State::AtBlock);
    if (whole.left == 0) {
      return;
    }
    if (whole.all()) {
      resume_all(0, block);
      continue;
    }
    bool moved = false;
    for (unsigned first = 0; first < block && !failed; first += warp) {
      const unsigned end = first + warp < block ? first + warp : block;
      const Census lanes(first, end, State::AtWarp);
      if (lanes.all()) {
        if (lanes.left != warp) {
          give_up("lanes that take part in an exchange have ended");
        }
        resume_all(first, end);
        moved = true;
      }
    }
    if (!moved && !failed) {
      give_up("threads wait for each other in different places");
    }
  }
}

}  // namespace

void wait_for_block() { leave(State::AtBlock); }
void wait_for_warp() { leave(State::AtWarp); }
void fail(const char*) {
  failed = true;
  leave(State::Done);
  std::abort();
}

void run(dim3 grid, unsigned block, void (*thread)(void*), void* kernel) {
  const std::lock_guard<std::recursive_mutex> lock(running);
  if (grid.x == 0 || grid.x > 2147483647u || grid.y == 0 || grid.y > 65535 || grid.z != 1 ||
      block == 0 || block > most_threads) {
    give_up("a grid that no GPU takes");
  }
  body = thread;
  body_data = kernel;
  grid_size = {grid.x, grid.y, 1};
  for (unsigned y = 0; y < grid.y && !failed; y++) {
    for (unsigned x = 0; x < grid.x && !failed; x++) {
      block_index = {x, y, 0};
      run_block(block);
    }
  }
}

}  // namespace on_host

// ---- the runtime ----

namespace {

thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;

int devices() {
  const char* const text = std::getenv("RUSHLIGHT_HOST_GPUS");
  return text != nullptr ? std::atoi(text) : 1;
}
cudaError_t remember(cudaError_t error) {
  last_error = error;
  return error;
}
void* aligned(size_t bytes) {
  void* const p = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(p, 0xFB, bytes);
  return p;
}
constexpr size_t memory = size_t{8} << 30;

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices();
  return *count > 0 ? cudaSuccess : remember(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* which) {
  *which = device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= devices()) {
    return remember(cudaErrorInvalidDevice);
  }
  device = which;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "the host");
  p->major = 9;
  p->multiProcessorCount = 4;
  p->totalGlobalMem = memory;
  p->warpSize = 32;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = devices() > 0 ? CUDART_VERSION : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
// An assertion that failed is told once, so that tests of errors go on in the same process.
cudaError_t cudaGetLastError() {
  const bool stopped = std::exchange(on_host::failed, false);
  const cudaError_t error = std::exchange(last_error, cudaSuccess);
  return stopped ? cudaErrorAssert : error;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorAssert ? "device-side assert triggered" : "error of the host's device";
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  if (bytes > memory) {
    return remember(cudaErrorMemoryAllocation);
  }
  *p = aligned(bytes);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  *p = aligned(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *free_bytes = memory;
  *total = memory;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaGetLastError(); }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = static_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = static_cast<cudaEvent_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}

// kernels/math.h calls the core's own on this processor.
float rushlight_erff(float x) { return std::erf(x); }
}
