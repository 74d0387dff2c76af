#include "cuda/caching_allocator.h"

#include <algorithm>

namespace rushlight::cuda {

namespace {

constexpr size_t granule = 512;
constexpr size_t small_limit = size_t{1} << 20;
constexpr size_t small_segment = size_t{2} << 20;
constexpr size_t middle_limit = size_t{10} << 20;
constexpr size_t middle_segment = size_t{20} << 20;
constexpr size_t large_granule = size_t{2} << 20;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t segment_size(size_t size) {
  if (size <= small_limit) {
    return small_segment;
  }
  return size < middle_limit ? middle_segment : round_up(size, large_granule);
}

}  // namespace

bool CachingAllocator::BySize::operator()(const Block* a, const Block* b) const {
  if (a->stream != b->stream) {
    return std::less<>()(a->stream, b->stream);
  }
  return a->size != b->size ? a->size < b->size : std::less<>()(a->data, b->data);
}

void CachingAllocator::Count::add(int64_t n) {
  current += n;
  peak = std::max(peak, current);
  (n > 0 ? allocated : freed) += n > 0 ? n : -n;
}
void CachingAllocator::Counts::add(bool is_small, int64_t n) {
  kinds[0].add(n);
  kinds[is_small ? 1 : 2].add(n);
}

// ---- taking ----

CachingAllocator::Block* CachingAllocator::find_cached(size_t size, bool is_small,
                                                       StreamHandle stream) {
  Block key;
  key.size = size;
  key.stream = stream;
  Pool& pool = is_small ? small_ : large_;
  const auto found = pool.lower_bound(&key);
  if (found == pool.end() || (*found)->stream != stream) {
    return nullptr;
  }
  Block* const block = *found;
  pool.erase(found);
  if (block->before != nullptr || block->after != nullptr) {
    inactive_split_.add(is_small, -1);
    inactive_split_bytes_.add(is_small, -static_cast<int64_t>(block->size));
  }
  return block;
}

CachingAllocator::Block* CachingAllocator::make_segment(size_t size, bool is_small,
                                                        StreamHandle stream) {
  void* const data = memory_.allocate(size);
  if (data == nullptr) {
    return nullptr;
  }
  device_allocations_++;
  auto* const block = new Block();
  block->data = static_cast<char*>(data);
  block->size = size;
  block->stream = stream;
  block->is_small = is_small;
  segment_.add(is_small, 1);
  reserved_bytes_.add(is_small, static_cast<int64_t>(size));
  return block;
}

// Cuts what is not needed off the end. Large blocks keep a rest of up to 1 MiB.
void CachingAllocator::split(Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (rest < granule || (!block->is_small && rest <= small_limit)) {
    return;
  }
  auto* const tail = new Block();
  tail->data = block->data + size;
  tail->size = rest;
  tail->stream = block->stream;
  tail->is_small = block->is_small;
  tail->before = block;
  tail->after = block->after;
  if (tail->after != nullptr) {
    tail->after->before = tail;
  }
  block->after = tail;
  block->size = size;
  pool_of(*tail).insert(tail);
  inactive_split_.add(tail->is_small, 1);
  inactive_split_bytes_.add(tail->is_small, static_cast<int64_t>(rest));
}

void* CachingAllocator::allocate(size_t bytes, StreamHandle stream) {
  if (bytes == 0) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > SIZE_MAX / 4) {
    failures_++;
    return nullptr;
  }
  const size_t size = round_up(bytes, granule);
  const bool is_small = size <= small_limit;
  collect_done(false);
  Block* block = find_cached(size, is_small, stream);
  if (block == nullptr) {
    block = make_segment(segment_size(size), is_small, stream);
  }
  if (block == nullptr) {  // what waits for other streams, and what is cached, may make room
    retries_++;
    collect_done(true);
    release_cached();
    block = make_segment(segment_size(size), is_small, stream);
  }
  if (block == nullptr) {
    failures_++;
    return nullptr;
  }
  split(block, size);
  block->taken = true;
  block->requested = bytes;
  taken_.emplace(block->data, block);
  const auto n = static_cast<int64_t>(block->size);
  allocation_.add(is_small, 1);
  active_.add(is_small, 1);
  allocated_bytes_.add(is_small, n);
  active_bytes_.add(is_small, n);
  requested_bytes_.add(is_small, static_cast<int64_t>(bytes));
  return block->data;
}

// ---- giving back ----

void CachingAllocator::use(void* p, StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = taken_.find(p);
  if (found != taken_.end() && found->second->stream != stream) {
    found->second->uses.insert(stream);
  }
}

void CachingAllocator::free(void* p) {
  if (p == nullptr) {
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = taken_.find(p);
  if (found == taken_.end()) {
    return;
  }
  Block* const block = found->second;
  taken_.erase(found);
  allocation_.add(block->is_small, -1);
  allocated_bytes_.add(block->is_small, -static_cast<int64_t>(block->size));
  requested_bytes_.add(block->is_small, -static_cast<int64_t>(block->requested));
  block->taken = false;
  for (const StreamHandle stream : block->uses) {
    if (const EventHandle event = memory_.record(stream)) {
      pending_.emplace_back(event, block);
      block->waiting++;
    }
  }
  block->uses.clear();
  if (block->waiting == 0) {
    make_free(block);
  }
}

// One block out of two neighbours; returns it.
CachingAllocator::Block* CachingAllocator::merge(Block* a, Block* b) {
  a->size += b->size;
  a->after = b->after;
  if (a->after != nullptr) {
    a->after->before = a;
  }
  delete b;
  return a;
}

void CachingAllocator::make_free(Block* block) {
  active_.add(block->is_small, -1);
  active_bytes_.add(block->is_small, -static_cast<int64_t>(block->size));
  const auto is_cached = [](const Block* b) {
    return b != nullptr && !b->taken && b->waiting == 0;
  };
  const auto take_out = [&](Block* b) {
    pool_of(*b).erase(b);
    inactive_split_.add(b->is_small, -1);
    inactive_split_bytes_.add(b->is_small, -static_cast<int64_t>(b->size));
  };
  if (is_cached(block->after)) {
    take_out(block->after);
    block = merge(block, block->after);
  }
  if (is_cached(block->before)) {
    take_out(block->before);
    block = merge(block->before, block);
  }
  pool_of(*block).insert(block);
  if (block->before != nullptr || block->after != nullptr) {
    inactive_split_.add(block->is_small, 1);
    inactive_split_bytes_.add(block->is_small, static_cast<int64_t>(block->size));
  }
}

void CachingAllocator::collect_done(bool wait) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto [event, block] = *at;
    if (wait) {
      memory_.wait(event);
    } else if (!memory_.is_done(event)) {
      ++at;
      continue;
    }
    memory_.drop(event);
    at = pending_.erase(at);
    block->waiting--;
    if (block->waiting == 0) {
      make_free(block);
    }
  }
}

void CachingAllocator::release_pool(Pool& pool) {
  for (auto at = pool.begin(); at != pool.end();) {
    Block* const block = *at;
    if (block->before != nullptr || block->after != nullptr) {  // a part of its segment is taken
      ++at;
      continue;
    }
    at = pool.erase(at);
    memory_.release(block->data);
    device_frees_++;
    segment_.add(block->is_small, -1);
    reserved_bytes_.add(block->is_small, -static_cast<int64_t>(block->size));
    delete block;
  }
}

void CachingAllocator::release_cached() {
  release_pool(small_);
  release_pool(large_);
}

void CachingAllocator::empty_cache() {
  const std::lock_guard<std::mutex> lock(mutex_);
  collect_done(true);
  release_cached();
}

// ---- statistics ----

std::vector<std::pair<std::string, int64_t>> CachingAllocator::stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<std::string, int64_t>> out;
  const auto add = [&](const char* name, const Counts& counts) {
    const char* const kinds[] = {"all", "small_pool", "large_pool"};
    for (int i = 0; i < 3; i++) {
      const std::string prefix = std::string(name) + "." + kinds[i] + ".";
      const Count& c = counts.kinds[i];
      out.emplace_back(prefix + "current", c.current);
      out.emplace_back(prefix + "peak", c.peak);
      out.emplace_back(prefix + "allocated", c.allocated);
      out.emplace_back(prefix + "freed", c.freed);
    }
  };
  add("allocation", allocation_);
  add("segment", segment_);
  add("active", active_);
  add("inactive_split", inactive_split_);
  add("allocated_bytes", allocated_bytes_);
  add("reserved_bytes", reserved_bytes_);
  add("active_bytes", active_bytes_);
  add("inactive_split_bytes", inactive_split_bytes_);
  add("requested_bytes", requested_bytes_);
  out.emplace_back("num_alloc_retries", retries_);
  out.emplace_back("num_ooms", failures_);
  out.emplace_back("num_device_alloc", device_allocations_);
  out.emplace_back("num_device_free", device_frees_);
  return out;
}

void CachingAllocator::reset_peaks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Counts* counts :
       {&allocation_, &segment_, &active_, &inactive_split_, &allocated_bytes_, &reserved_bytes_,
        &active_bytes_, &inactive_split_bytes_, &requested_bytes_}) {
    for (Count& c : counts->kinds) {
      c.peak = c.current;
    }
  }
}

void CachingAllocator::reset_totals() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Counts* counts :
       {&allocation_, &segment_, &active_, &inactive_split_, &allocated_bytes_, &reserved_bytes_,
        &active_bytes_, &inactive_split_bytes_, &requested_bytes_}) {
    for (Count& c : counts->kinds) {
      c.allocated = 0;
      c.freed = 0;
    }
  }
  retries_ = 0;
  failures_ = 0;
}

}  // namespace rushlight::cuda
