// Sorting and selecting along a dimension: sort, topk, kthvalue, median, mode. Rows become keys
// (sort_keys.h); whole rows are sorted as items (sort_items.cpp), ranks are found by narrowing down
// on one byte of the key after the other, and topk looks only at what passes a bar found by
// vectors.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/sort/sort_keys.h"
#include "cpu/readable.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

template <class T>
using ItemOf = std::conditional_t<sizeof(T) <= 4, Item8, Item16>;

// Rows of `self` along `dim`, contiguous: the tensor itself or a copy with `dim` last.
Tensor rows_along(const Tensor& t, int64_t dim) {
  if (t.dim() == 0) {
    return t;
  }
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  const int64_t size = sizes[dim];
  const int64_t stride = strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  sizes.push_back(size);
  strides.push_back(stride);
  return contiguous_raw(make_view(t, {sizes, strides, t.storage_offset()}));
}

// Results with `dim` last, copied to where they belong unless they are there already.
class RowResult {
 public:
  RowResult(const Tensor& out, int64_t dim) : out_(out), view_(out) {
    if (out.dim() > 0 && dim != out.dim() - 1) {
      DimVector sizes = out.sizes();
      DimVector strides = out.strides();
      const int64_t size = sizes[dim];
      const int64_t stride = strides[dim];
      sizes.erase(dim);
      strides.erase(dim);
      sizes.push_back(size);
      strides.push_back(stride);
      view_ = make_view(out, {sizes, strides, out.storage_offset()});
      rows_ = make_empty(sizes, out.dtype(), out.device());
    } else {
      rows_ = out;
    }
  }
  const Tensor& rows() const { return rows_; }
  void finish() const {
    if (!rows_.is_same(out_)) {
      copy_raw(view_, rows_);
    }
  }

 private:
  Tensor out_;
  Tensor view_;
  Tensor rows_;
};

template <class T>
void make_items(const T* x, int64_t n, bool descending, ItemOf<T>* items) {
  const Key<T> flip = descending ? static_cast<Key<T>>(~Key<T>(0)) : Key<T>(0);
  for (int64_t i = 0; i < n; i++) {
    items[i] = ItemOf<T>::make(static_cast<Key<T>>(key_of<T>::get(x[i]) ^ flip), i);
  }
}

template <class T>
void make_keys(const T* x, int64_t n, bool descending, Key<T>* keys) {
  const Key<T> flip = descending ? static_cast<Key<T>>(~Key<T>(0)) : Key<T>(0);
  for (int64_t i = 0; i < n; i++) {
    keys[i] = static_cast<Key<T>>(key_of<T>::get(x[i]) ^ flip);
  }
}

int64_t row_length(const Tensor& self, int64_t dim) {
  return self.dim() == 0 ? 1 : self.sizes()[dim];
}

void check_row_length(const char* op, int64_t n) {
  RL_CHECK(n < (int64_t(1) << 32), op, ": rows of 2^32 elements and more are not supported");
}

// Calls f(tag, contiguous rows, number of rows, length).
template <class F>
void visit_rows(const char* op, const Tensor& self, int64_t dim, const F& f) {
  if (self.numel() == 0) {
    return;
  }
  const int64_t n = row_length(self, dim);
  check_row_length(op, n);
  const Tensor rows = rows_along(self, dim);
  visit_dtype<set_real | set_Bool>(op, self.dtype(),
                                   [&](auto tag) { f(tag, rows, self.numel() / n, n); });
}

// Threads share out rows, or a single long row.
template <class F>
void for_rows(int64_t count, int64_t n, const F& f) {
  if (n > long_row) {
    for (int64_t r = 0; r < count; r++) {
      f(r, r + 1);
    }
  } else {
    parallel_for(0, count, std::max<int64_t>(1, 4096 / n), f);
  }
}

// Elements move as bytes: those of bool may be of memory that nobody wrote
// (kernels/read_element.h).
template <class T>
void move_one(T* to, const T* from) {
  std::memcpy(to, from, sizeof(T));
}

// Items of a row, sorted, become values and positions.
template <class T, class Item>
void write_sorted(const T* row, const Item* sorted, int64_t n, T* values, int64_t* indices) {
  const auto write = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const int64_t at = sorted[i].index();
      move_one(values + i, row + at);
      indices[i] = at;
    }
  };
  if (n > long_row) {
    parallel_for(0, n, 1 << 16, write);
  } else {
    write(0, n);
  }
}

// Rows of few elements whose keys share a word with their places: by a network, many at a time.
template <class T>
bool sorts_side_by_side(int64_t n) {
  return std::is_same_v<ItemOf<T>, Item8> && n <= network_row;
}

// Calls write(row, at): at(i) is the position in the row of what comes i-th.
template <class T, class F>
void sort_short_rows(const T* x, int64_t count, int64_t n, bool descending, const F& write) {
  const Key<T> flip = descending ? static_cast<Key<T>>(~Key<T>(0)) : Key<T>(0);
  parallel_for(
      0, num_chunks(0, count, sorted_together), std::max<int64_t>(1, 1024 / n),
      [&](int64_t begin, int64_t end) {
        alignas(64) Item8 items[network_row * sorted_together];
        for (int64_t block = begin; block < end; block++) {
          const int64_t first = block * sorted_together;
          const int64_t rows = std::min(sorted_together, count - first);
          for (int64_t r = 0; r < rows; r++) {
            for (int64_t i = 0; i < n; i++) {
              const auto key = static_cast<Key<T>>(key_of<T>::get(x[(first + r) * n + i]) ^ flip);
              items[i * sorted_together + r] = Item8::make(key, i);
            }
          }
          for (int64_t r = rows; r < sorted_together; r++) {
            for (int64_t i = 0; i < n; i++) {
              items[i * sorted_together + r] = Item8{};
            }
          }
          sort_side_by_side(items, n);
          for (int64_t r = 0; r < rows; r++) {
            write(first + r, [&](int64_t i) { return items[i * sorted_together + r].index(); });
          }
        }
      });
}

template <class T>
void sort_rows(const T* x, int64_t count, int64_t n, bool descending, T* values, int64_t* indices) {
  if (sorts_side_by_side<T>(n)) {
    sort_short_rows(x, count, n, descending, [&](int64_t row, const auto& at) {
      for (int64_t i = 0; i < n; i++) {
        move_one(values + row * n + i, x + row * n + at(i));
        indices[row * n + i] = at(i);
      }
    });
    return;
  }
  using Item = ItemOf<T>;
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
    // Integers of 64 bits are seldom large: with keys counted from the least, half the bytes move.
    const IntegerRange<T> range = integer_range(x, count * n);
    if (range.fits_word()) {
      for_rows(count, n, [&](int64_t begin, int64_t end) {
        Scratch<Item8> a(n);
        Scratch<Item8> b(n);
        for (int64_t r = begin; r < end; r++) {
          const T* row = x + r * n;
          for (int64_t i = 0; i < n; i++) {
            a[i] =
                Item8::make(descending ? range.below(row[i]) : range.offset_from_least(row[i]), i);
          }
          const Item8* sorted = radix_sort(a.data(), b.data(), n, range.key_bytes());
          write_sorted(row, sorted, n, values + r * n, indices + r * n);
        }
      });
      return;
    }
  }
  for_rows(count, n, [&](int64_t begin, int64_t end) {
    Scratch<Item> a(n);
    Scratch<Item> b(n);
    for (int64_t r = begin; r < end; r++) {
      const T* row = x + r * n;
      make_items(row, n, descending, a.data());
      const Item* sorted = radix_sort(a.data(), b.data(), n, sizeof(Key<T>));
      write_sorted(row, sorted, n, values + r * n, indices + r * n);
    }
  });
}

}  // namespace

void sort_stable(const Tensor& values, const Tensor& indices, const Tensor& self,
                 std::optional<bool> stable, int64_t dim, bool descending) {
  if (is_wide_unsigned(self.dtype())) {
    const Tensor keys = comparable(self);
    const Tensor sorted = make_empty(values.sizes(), keys.dtype(), kCPU);
    sort_stable(sorted, indices, keys, stable, dim, descending);
    copy_raw(values, from_comparable(sorted, values.dtype()));
    return;
  }
  const RowResult value_rows(values, dim);
  const RowResult index_rows(indices, dim);
  visit_rows("sort", self, dim, [&](auto tag, const Tensor& rows, int64_t count, int64_t n) {
    using T = typename decltype(tag)::type;
    sort_rows(rows.data<T>(), count, n, descending, value_rows.rows().data<T>(),
              index_rows.rows().data<int64_t>());
  });
  value_rows.finish();
  index_rows.finish();
}

namespace {

// Room for what top_items finds on its way.
template <class T>
struct BestItems {
  std::vector<Key<T>> keys;
  std::vector<Key<T>> groups;
  std::vector<ItemOf<T>> found;
};

// The k first items of a row in the order of keys, in `found`. The row is dealt to more than k
// groups, whose best elements are found by vectors; the k-th of those is a bar that at least k
// elements pass, and few more unless many are equal.
template <class T>
void top_items(const T* x, int64_t n, int64_t k, bool largest, BestItems<T>& work) {
  work.keys.resize(n);
  make_keys(x, n, largest, work.keys.data());
  const Key<T>* keys = work.keys.data();
  const int64_t groups = std::min(n, std::max<int64_t>(64, 4 * k));
  work.groups.assign(keys, keys + groups);
  Key<T>* __restrict best = work.groups.data();
  for (int64_t i = groups; i < n; i += groups) {
    const int64_t m = std::min(groups, n - i);
    for (int64_t j = 0; j < m; j++) {
      best[j] = std::min(best[j], keys[i + j]);
    }
  }
  std::nth_element(best, best + k - 1, best + groups);
  const Key<T> bar = best[k - 1];
  work.found.clear();
  constexpr int64_t step = 16;
  for (int64_t i = 0; i < n; i += step) {
    const int64_t m = std::min(step, n - i);
    Key<T> any = 0;  // as wide as a key, so that this is a loop of vectors
    for (int64_t j = 0; j < m; j++) {
      any = static_cast<Key<T>>(any | (keys[i + j] <= bar ? 1 : 0));
    }
    for (int64_t j = 0; any != 0 && j < m; j++) {
      if (keys[i + j] <= bar) {
        work.found.push_back(ItemOf<T>::make(keys[i + j], i + j));
      }
    }
  }
  std::nth_element(work.found.begin(), work.found.begin() + k - 1, work.found.end());
  std::sort(work.found.begin(), work.found.begin() + k);
}

}  // namespace

void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim,
          bool largest, bool) {
  if (values.numel() == 0) {
    return;
  }
  const RowResult value_rows(values, dim);
  const RowResult index_rows(indices, dim);
  visit_rows("topk", self, dim, [&](auto tag, const Tensor& rows, int64_t count, int64_t n) {
    using T = typename decltype(tag)::type;
    using Item = ItemOf<T>;
    const T* x = rows.data<T>();
    T* value = value_rows.rows().data<T>();
    int64_t* index = index_rows.rows().data<int64_t>();
    const auto write = [&](int64_t r, const Item* items) {
      for (int64_t i = 0; i < k; i++) {
        const int64_t at = items[i].index();
        move_one(value + r * k + i, x + r * n + at);
        index[r * k + i] = at;
      }
    };
    if (sorts_side_by_side<T>(n)) {
      sort_short_rows(x, count, n, largest, [&](int64_t row, const auto& at) {
        for (int64_t i = 0; i < k; i++) {
          move_one(value + row * k + i, x + row * n + at(i));
          index[row * k + i] = at(i);
        }
      });
      return;
    }
    for_rows(count, n, [&](int64_t begin, int64_t end) {
      const bool all = k * 16 > n;
      Scratch<Item> a(all ? n : 0);
      Scratch<Item> b(all ? n : 0);
      BestItems<T> best;
      for (int64_t r = begin; r < end; r++) {
        if (all) {
          make_items(x + r * n, n, largest, a.data());
          write(r, radix_sort(a.data(), b.data(), n, sizeof(Key<T>)));
        } else {
          top_items(x + r * n, n, k, largest, best);
          write(r, best.found.data());
        }
      }
    });
  });
  value_rows.finish();
  index_rows.finish();
}

namespace {

// The position of the element of the given rank (from 0) among keys, as a stable sort would have
// it.
template <class K>
int64_t select_rank(const K* keys, int64_t n, int64_t rank, K* candidates) {
  const K* from = keys;
  int64_t m = n;
  for (int byte = static_cast<int>(sizeof(K)) - 1; byte >= 0; byte--) {
    // Four tables: neighbours that share a digit do not wait for each other.
    uint32_t count[4][256] = {};
    const int shift = 8 * byte;
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      count[0][from[i] >> shift & 255]++;
      count[1][from[i + 1] >> shift & 255]++;
      count[2][from[i + 2] >> shift & 255]++;
      count[3][from[i + 3] >> shift & 255]++;
    }
    for (; i < m; i++) {
      count[0][from[i] >> shift & 255]++;
    }
    int d = 0;
    for (;; d++) {
      const int64_t here = int64_t(count[0][d]) + count[1][d] + count[2][d] + count[3][d];
      if (rank < here) {
        break;
      }
      rank -= here;
    }
    int64_t kept = 0;
    for (int64_t j = 0; j < m; j++) {
      const K key = from[j];
      candidates[kept] = key;
      kept += (key >> shift & 255) == static_cast<K>(d);
    }
    from = candidates;
    m = kept;
    if (m == 1) {
      break;
    }
  }
  // All candidates are equal to the one that was looked for; `rank` counts among them.
  const K wanted = from[0];
  int64_t i = 0;
  for (;; i++) {
    if (keys[i] == wanted && rank-- == 0) {
      return i;
    }
  }
}

// The element of each row that has the rank (from 0) that rank_of(row, n) gives.
template <class Rank>
void select_by_rank(const char* op, const Tensor& values, const Tensor& indices, const Tensor& self,
                    int64_t dim, const Rank& rank_of) {
  visit_rows(op, self, dim, [&](auto tag, const Tensor& rows, int64_t count, int64_t n) {
    using T = typename decltype(tag)::type;
    const T* x = rows.data<T>();
    T* value = values.data<T>();
    int64_t* index = indices.data<int64_t>();
    if (sorts_side_by_side<T>(n)) {
      sort_short_rows(x, count, n, false, [&](int64_t row, const auto& at) {
        index[row] = at(rank_of(x + row * n, n));
        move_one(value + row, x + row * n + index[row]);
      });
      return;
    }
    if (n <= network_row) {
      for_rows(count, n, [&](int64_t begin, int64_t end) {
        ItemOf<T> items[network_row];
        for (int64_t r = begin; r < end; r++) {
          const T* const row = x + r * n;
          make_items(row, n, false, items);
          index[r] = radix_sort(items, items, n, sizeof(Key<T>))[rank_of(row, n)].index();
          move_one(value + r, row + index[r]);
        }
      });
      return;
    }
    parallel_for(0, count, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      Scratch<Key<T>> keys(n);
      Scratch<Key<T>> spare(n + 1);
      for (int64_t r = begin; r < end; r++) {
        const T* const row = x + r * n;
        make_keys(row, n, false, keys.data());
        const int64_t at = select_rank(keys.data(), n, rank_of(row, n), spare.data());
        move_one(value + r, row + at);
        index[r] = at;
      }
    });
  });
}

// How many are NaN.
template <class T>
int64_t count_nan(const T* x, int64_t n) {
  int64_t count = 0;
  if constexpr (!std::is_integral_v<T>) {
    for (int64_t i = 0; i < n; i++) {
      count += x[i] != x[i];
    }
  }
  return count;
}

}  // namespace

void kthvalue(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k,
              int64_t dim, bool) {
  select_by_rank("kthvalue", values, indices, self, dim,
                 [k](const auto*, int64_t) { return k - 1; });
}

void median_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                bool) {
  select_by_rank("median", values, indices, self, dim, [](const auto* x, int64_t n) {
    const int64_t numbers = n - count_nan(x, n);
    return numbers < n ? numbers : (n - 1) / 2;  // NaNs come last
  });
}

void nanmedian_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                   bool) {
  select_by_rank("nanmedian", values, indices, self, dim, [](const auto* x, int64_t n) {
    const int64_t numbers = n - count_nan(x, n);
    return numbers == 0 ? int64_t{0} : (numbers - 1) / 2;
  });
}

void mode(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  visit_rows("mode", self, dim, [&](auto tag, const Tensor& rows, int64_t count, int64_t n) {
    using T = typename decltype(tag)::type;
    using Item = ItemOf<T>;
    const T* x = rows.data<T>();
    T* value = values.data<T>();
    int64_t* index = indices.data<int64_t>();
    for_rows(count, n, [&](int64_t begin, int64_t end) {
      Scratch<Item> a(n);
      Scratch<Item> b(n);
      for (int64_t r = begin; r < end; r++) {
        make_items(x + r * n, n, false, a.data());
        const Item* sorted = radix_sort(a.data(), b.data(), n, sizeof(Key<T>));
        int64_t longest = 0;
        int64_t best = 0;
        for (int64_t i = 0; i < n;) {
          int64_t stop = i + 1;
          while (stop < n && sorted[stop].key() == sorted[i].key()) {
            stop++;
          }
          if (stop - i > longest) {
            longest = stop - i;
            best = sorted[stop - 1].index();
          }
          i = stop;
        }
        move_one(value + r, x + r * n + best);
        index[r] = best;
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
