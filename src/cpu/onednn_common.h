// What the two oneDNN sources share: one thread within a scope, engines, and a cache of primitives.
// Primitives are made and run on one thread with memory that we give them, so that nothing of
// theirs is shared.
#pragma once

#include <omp.h>

#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "core/parallel.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::onednn {

// Limits the library to the instruction set that we use ourselves. Before any other call.
void set_up();

// Whether the processor (and the set-up) multiplies this 16-bit dtype itself.
bool native(ScalarType dtype);

// oneDNN sizes its work by omp_get_max_threads(): one within a scope, on the calling thread alone.
class OneThread {
 public:
  OneThread() {
    get_num_threads();  // reads OpenMP's setting on its first call: it must not be ours
    before_ = omp_get_max_threads();
    omp_set_num_threads(1);
  }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

inline const dnnl::engine& cpu_engine() {
  // Never destroyed: threads may compute while the process ends.
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::stream& cpu_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

inline dnnl::memory::data_type data_type(ScalarType t) {
  using type = dnnl::memory::data_type;
  return t == kFloat32    ? type::f32
         : t == kBFloat16 ? type::bf16
         : t == kFloat16  ? type::f16
         : t == kInt32    ? type::s32
         : t == kUInt8    ? type::u8
                          : type::s8;
}

inline dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// Memory of a description from our allocator.
class Block {
 public:
  explicit Block(const dnnl::memory::desc& desc)
      : bytes_(static_cast<int64_t>(desc.get_size())), memory(desc, cpu_engine(), bytes_.data()) {}

 private:
  Scratch<char> bytes_;

 public:
  dnnl::memory memory;
};

template <size_t N>
struct KeyHash {
  size_t operator()(const std::array<int64_t, N>& key) const {
    uint64_t h = 1469598103934665603u;
    for (const int64_t x : key) {
      h = (h ^ static_cast<uint64_t>(x)) * 1099511628211u;
      h ^= h >> 29;
    }
    return h;
  }
};

// What `make` builds for a key, kept for this thread.
template <class T, size_t N, class Make>
T& cached(const std::array<int64_t, N>& key, const Make& make) {
  thread_local std::unordered_map<std::array<int64_t, N>, T, KeyHash<N>> entries;
  const auto found = entries.find(key);
  if (found != entries.end()) {
    return found->second;
  }
  if (entries.size() >= 1024) {
    entries.clear();
  }
  return entries.emplace(key, make()).first->second;
}

}  // namespace rushlight::cpu::onednn
