// Sorting of items (sort_keys.h): by radix, few by insertion or, of several rows, by a network,
// very many by all threads.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa/sort/sort_keys.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t sort_chunk = 1 << 16;
inline constexpr int64_t short_row = 48;  // sorted by insertion

template <class Item>
void insertion_sort(Item* a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const Item x = a[i];
    int64_t j = i;
    for (; j > 0 && x < a[j - 1]; j--) {
      a[j] = a[j - 1];
    }
    a[j] = x;
  }
}

template <class Item>
int digit(const Item& item, int byte) {
  return static_cast<int>(item.key() >> (8 * byte) & 255);
}

template <class Item>
struct KeyRange {
  uint64_t least = ~uint64_t(0);
  uint64_t greatest = 0;
  void take(const Item* items, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      const uint64_t key = items[i].key();
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    }
  }
  void take(const KeyRange& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
  bool is_one() const { return least >= greatest; }
  // Cuts the range into 1 << bits buckets at most.
  int shift(int bits) const {
    return std::max(0, static_cast<int>(std::bit_width(greatest - least)) - bits);
  }
};

// Sorts by distributing items to buckets of equal parts of the range that their keys have, and so
// on in each bucket, which soon fits into the nearest cache. The result is in `items`, or in
// `other` where `moved`.
template <class Item>
void sort_by_buckets(Item* items, Item* other, int64_t n, bool moved) {
  constexpr int bits = 8;
  if (n > short_row) {
    KeyRange<Item> range;
    range.take(items, n);
    if (!range.is_one()) {
      const int shift = range.shift(bits);
      const auto bucket = [&](const Item& item) { return (item.key() - range.least) >> shift; };
      int64_t place[(1 << bits) + 1] = {};
      for (int64_t i = 0; i < n; i++) {
        place[bucket(items[i]) + 1]++;
      }
      for (int d = 0; d < 1 << bits; d++) {
        place[d + 1] += place[d];
      }
      for (int64_t i = 0; i < n; i++) {
        other[place[bucket(items[i])]++] = items[i];
      }
      if (shift == 0) {  // a bucket is one key
        if (!moved) {
          std::copy_n(other, n, items);
        }
        return;
      }
      int64_t start = 0;
      for (int d = 0; d < 1 << bits; d++) {  // places are the ends of buckets now
        sort_by_buckets(other + start, items + start, place[d] - start, !moved);
        start = place[d];
      }
      return;
    }
  } else {
    insertion_sort(items, n);
  }
  if (moved) {
    std::copy_n(items, n, other);
  }
}

// The same by all threads, for the first buckets: each chunk counts its items, learns where its
// share of each bucket begins, and moves it; then threads take buckets. Returns where the result
// is.
template <class Item>
Item* sort_by_threads(Item* items, Item* other, int64_t n) {
  constexpr int bits = 10;
  constexpr int64_t buckets = 1 << bits;
  const int64_t chunks = num_chunks(0, n, sort_chunk);
  const auto for_chunks = [&](const auto& f) {
    parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
      f(c, items + c * sort_chunk, std::min(sort_chunk, n - c * sort_chunk));
    });
  };
  std::vector<KeyRange<Item>> ranges(chunks);
  for_chunks([&](int64_t c, const Item* x, int64_t m) { ranges[c].take(x, m); });
  KeyRange<Item> range;
  for (const KeyRange<Item>& r : ranges) {
    range.take(r);
  }
  if (range.is_one()) {
    return items;
  }
  const int shift = range.shift(bits);
  const auto bucket = [&](const Item& item) { return (item.key() - range.least) >> shift; };
  Scratch<int64_t> place(chunks * buckets);
  for_chunks([&](int64_t c, const Item* x, int64_t m) {
    int64_t* const count = place.data() + c * buckets;
    std::fill_n(count, buckets, 0);
    for (int64_t i = 0; i < m; i++) {
      count[bucket(x[i])]++;
    }
  });
  int64_t first[buckets + 1];
  int64_t start = 0;
  for (int64_t d = 0; d < buckets; d++) {
    first[d] = start;
    for (int64_t c = 0; c < chunks; c++) {
      start += std::exchange(place[c * buckets + d], start);
    }
  }
  first[buckets] = n;
  for_chunks([&](int64_t c, const Item* x, int64_t m) {
    int64_t* const to = place.data() + c * buckets;
    for (int64_t i = 0; i < m; i++) {
      other[to[bucket(x[i])]++] = x[i];
    }
  });
  if (shift == 0) {
    return other;
  }
  const auto is_long = [&](int64_t d) { return first[d + 1] - first[d] > long_row; };
  parallel_for(0, buckets, 8, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; d++) {
      if (!is_long(d)) {
        sort_by_buckets(other + first[d], items + first[d], first[d + 1] - first[d], true);
      }
    }
  });
  for (int64_t d = 0; d < buckets; d++) {
    if (is_long(d)) {
      const int64_t n_here = first[d + 1] - first[d];
      const Item* sorted = sort_by_threads(other + first[d], items + first[d], n_here);
      if (sorted != items + first[d]) {
        std::copy_n(sorted, n_here, items + first[d]);
      }
    }
  }
  return items;
}

}  // namespace

// Batcher's merging of odd and even places (Knuth, The Art of Computer Programming, volume 3,
// 5.2.2, algorithm M): the same comparisons whatever the items, so that all rows make them at once.
void sort_side_by_side(Item8* items, int64_t n) {
  const auto exchange = [items](int64_t i, int64_t j) {
    Item8* const a = items + i * sorted_together;
    Item8* const b = items + j * sorted_together;
    for (int64_t r = 0; r < sorted_together; r++) {
      const uint64_t x = a[r].word;
      const uint64_t y = b[r].word;
      a[r].word = x < y ? x : y;
      b[r].word = x < y ? y : x;
    }
  };
  if (n < 2) {
    return;
  }
  const auto top = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n - 1)));
  for (int64_t p = top; p > 0; p /= 2) {
    int64_t q = top;
    int64_t r = 0;
    for (int64_t d = p;; d = q - p, q /= 2, r = p) {
      for (int64_t i = 0; i + d < n; i++) {
        if ((i & p) == r) {
          exchange(i, i + d);
        }
      }
      if (q == p) {
        break;
      }
    }
  }
}

template <class Item>
Item* radix_sort(Item* a, Item* b, int64_t n, int bytes) {
  if (n <= short_row) {
    insertion_sort(a, n);
    return a;
  }
  if (n > long_row && !in_parallel_region()) {
    return sort_by_threads(a, b, n);
  }
  int64_t count[8][256] = {};
  for (int64_t i = 0; i < n; i++) {
    for (int byte = 0; byte < bytes; byte++) {
      count[byte][digit(a[i], byte)]++;
    }
  }
  for (int byte = 0; byte < bytes; byte++) {
    int64_t* to = count[byte];
    if (to[digit(a[0], byte)] == n) {
      continue;
    }
    int64_t start = 0;
    for (int d = 0; d < 256; d++) {
      start += std::exchange(to[d], start);
    }
    for (int64_t i = 0; i < n; i++) {
      b[to[digit(a[i], byte)]++] = a[i];
    }
    std::swap(a, b);
  }
  return a;
}
template Item8* radix_sort(Item8* a, Item8* b, int64_t n, int bytes);
template Item16* radix_sort(Item16* a, Item16* b, int64_t n, int bytes);
template BareKey* radix_sort(BareKey* a, BareKey* b, int64_t n, int bytes);

}  // namespace rushlight::cpu::RL_ISA
