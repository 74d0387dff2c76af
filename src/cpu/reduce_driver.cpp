// The driver of reductions: gathers leaves, merges states in a fixed tree, spreads outputs or
// pieces of long ones over threads.
#include "cpu/reduce_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {

namespace {

// Merges states as they come, like a binary counter: equal subtrees are merged, so chunks of 2^k
// leaves can be prepared apart and pushed as one without changing the tree.
class Cascade {
 public:
  Cascade(const ReduceOp& op, int64_t pushes, int64_t width)
      : op_(op),
        width_(width),
        levels_(levels(pushes)),
        memory_((levels_ + 1) * width * op.state_size) {
    for (int l = 0; l <= levels_; l++) {
      slot_[l] = memory_.data() + l * width * op.state_size;
    }
  }
  // Where the next state is to be written before push().
  char* leaf() { return slot_[levels_]; }
  void push(int64_t n) {
    int level = 0;
    while ((pushes_ >> level) & 1) {
      op_.merge(op_.context, slot_[level], count_[level], leaf(), n, width_);
      n += count_[level];
      std::swap(slot_[level], slot_[levels_]);
      level++;
    }
    std::swap(slot_[level], slot_[levels_]);
    count_[level] = n;
    pushes_++;
  }
  void push_copy(const char* states, int64_t n) {
    std::memcpy(leaf(), states, width_ * op_.state_size);
    push(n);
  }
  const char* finish() {
    int level = 0;
    while (!((pushes_ >> level) & 1)) {
      level++;
    }
    char* total = slot_[level];
    int64_t n = count_[level];
    for (level++; level < levels_; level++) {
      if ((pushes_ >> level) & 1) {
        op_.merge(op_.context, slot_[level], count_[level], total, n, width_);
        total = slot_[level];
        n += count_[level];
      }
    }
    return total;
  }

 private:
  static int levels(int64_t pushes) {
    int n = 1;
    while (pushes >> n) {
      n++;
    }
    return n;
  }
  const ReduceOp& op_;
  int64_t width_;
  int levels_;
  uint64_t pushes_ = 0;
  char* slot_[64];
  int64_t count_[64];
  Bytes memory_;
};

class Reduction {
 public:
  Reduction(const ReduceOp& op, const ReducePlan& plan, const void* data, ConvertRun read,
            bool direct, const Source* source, const Emit& emit)
      : op_(op),
        plan_(plan),
        data_(static_cast<const char*>(data)),
        read_(read),
        direct_(direct),
        source_(source),
        turned_(plan.rows_lie && plan.count <= tile_rows &&
                plan.count * op.element_size <= short_row_bytes),
        emit_(emit) {}

  void run() const {
    if (plan_.outputs == 0) {
      return;
    }
    if (plan_.count == 0) {
      Bytes state(op_.state_size);
      op_.identity(op_.context, state.data());
      for (int64_t o = 0; o < plan_.outputs; o++) {
        emit(o, state.data(), 1);
      }
    } else if (plan_.columns || turned_) {
      run_columns();
    } else if (has_few_columns()) {
      run_few_columns();
    } else if (plan_.count > 2 * chunk_elements && plan_.outputs <= enough_tasks) {
      run_split_rows();
    } else {
      run_rows();
    }
  }

 private:
  void read(char* to, const char* from, int64_t stride, int64_t n) const {
    if (source_ != nullptr) {
      source_->read((from - data_) / op_.element_size, n, to);
    } else {
      read_(to, from, stride, n);
    }
  }

  void emit(int64_t first, const char* states, int64_t n) const {
    emit_.call(emit_.context, first, states, n);
  }

  // Emits `width` outputs from `first` on, whose states have been found for chunks of `length`
  // elements each; from one chunk to the next there are `step` states.
  void join_chunks(const char* states, int64_t step, int64_t length, int64_t first,
                   int64_t width) const {
    const int64_t chunks = num_chunks(0, plan_.count, length);
    Cascade cascade(op_, chunks, width);
    for (int64_t c = 0; c < chunks; c++) {
      cascade.push_copy(states + c * step * op_.state_size,
                        std::min(length, plan_.count - c * length));
    }
    emit(first, cascade.finish(), width);
  }

  // ---- rows ----

  // The next n elements of `walk`, contiguous.
  const char* gather(const char* base, Walk& walk, int64_t n, char* buffer) const {
    if (direct_ && walk.run() >= n && (walk.stride() == op_.element_size || n == 1)) {
      const char* x = base + walk.offset();
      walk.advance(n);
      return x;
    }
    for (int64_t done = 0; done < n;) {
      const int64_t m = std::min(walk.run(), n - done);
      read(buffer + done * op_.element_size, base + walk.offset(), walk.stride(), m);
      walk.advance(m);
      done += m;
    }
    return buffer;
  }

  // Pushes the leaves of positions [begin, end) of the output at `base`.
  void push_rows(Cascade& cascade, const char* base, int64_t begin, int64_t end,
                 char* buffer) const {
    Walk walk(plan_.reduced, begin);
    for (int64_t i = begin; i < end; i += row_leaf) {
      const int64_t n = std::min(row_leaf, end - i);
      op_.rows(op_.context, gather(base, walk, n, buffer), 0, 1, n, i, cascade.leaf());
      cascade.push(n);
    }
  }

  // Outputs of one leaf each whose elements lie side by side are taken many at once: where they
  // are, or converted if they follow each other.
  bool rows_follow_memory() const {
    if (plan_.count > row_leaf || plan_.reduced.n != 1) {
      return plan_.count == 1 && direct_;
    }
    return direct_
               ? plan_.reduced.stride[0] == op_.element_size
               : plan_.kept.n > 0 && plan_.kept.stride[0] == plan_.count * plan_.reduced.stride[0];
  }

  void run_rows() const {
    const int64_t grain = std::max<int64_t>(1, chunk_elements / plan_.count);
    const bool many = rows_follow_memory();
    const int64_t size = op_.element_size;
    parallel_for(0, plan_.outputs, grain, [&](int64_t begin, int64_t end) {
      constexpr int64_t batch = 64;
      Bytes states(batch * op_.state_size);
      Bytes buffer(many && direct_ ? 0 : row_leaf * size);
      Walk outputs(plan_.kept, begin);
      for (int64_t o = begin; o < end; o += batch) {
        const int64_t n = std::min(batch, end - o);
        for (int64_t i = 0; i < n;) {
          const char* base = data_ + outputs.offset();
          char* state = states.data() + i * op_.state_size;
          int64_t rows = 1;
          if (many) {
            rows = std::min(outputs.run(), n - i);
            int64_t ld = outputs.stride() / size;
            if (!direct_) {
              rows = std::min(rows, row_leaf / plan_.count);
              ld = plan_.count;
              read(buffer.data(), base, plan_.reduced.stride[0], rows * plan_.count);
              base = buffer.data();
            }
            op_.rows(op_.context, base, ld, rows, plan_.count, 0, state);
          } else if (plan_.count <= row_leaf) {
            Walk walk(plan_.reduced);
            op_.rows(op_.context, gather(base, walk, plan_.count, buffer.data()), 0, 1, plan_.count,
                     0, state);
          } else {
            Cascade cascade(op_, num_chunks(0, plan_.count, row_leaf), 1);
            push_rows(cascade, base, 0, plan_.count, buffer.data());
            std::memcpy(state, cascade.finish(), op_.state_size);
          }
          outputs.advance(rows);
          i += rows;
        }
        emit(o, states.data(), n);
      }
    });
  }

  // Few long outputs: pieces of each in parallel.
  void run_split_rows() const {
    const int64_t chunks = num_chunks(0, plan_.count, chunk_elements);
    Bytes partial(chunks * plan_.outputs * op_.state_size);
    parallel_for(0, chunks * plan_.outputs, 1, [&](int64_t begin, int64_t end) {
      Bytes buffer(row_leaf * op_.element_size);
      for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % chunks * chunk_elements;
        const int64_t last = std::min(first + chunk_elements, plan_.count);
        Cascade cascade(op_, chunk_leaves, 1);
        push_rows(cascade, data_ + plan_.kept.offset(task / chunks), first, last, buffer.data());
        std::memcpy(partial.data() + task * op_.state_size, cascade.finish(), op_.state_size);
      }
    });
    for (int64_t o = 0; o < plan_.outputs; o++) {
      join_chunks(partial.data() + o * chunks * op_.state_size, 1, chunk_elements, o, 1);
    }
  }

  // Few columns, whose rows follow each other in memory, are turned into rows: leaves and the tree
  // are those of rows.
  bool has_few_columns() const {
    return plan_.kept.n > 0 && plan_.kept.size[0] < few_columns && plan_.reduced.n == 1 &&
           plan_.reduced.stride[0] == plan_.kept.size[0] * plan_.kept.stride[0] &&
           plan_.count > 1 && (!direct_ || plan_.kept.stride[0] == op_.element_size);
  }

  void run_few_columns() const {
    const int64_t inner = plan_.kept.size[0];
    const int64_t groups = plan_.outputs / inner;
    const int64_t size = op_.element_size;
    const int64_t chunks = num_chunks(0, plan_.count, chunk_elements);
    const int64_t leaf = std::min(row_leaf, plan_.count);
    Bytes partial(chunks > 1 ? groups * chunks * inner * op_.state_size : 0);
    const int64_t grain = std::max<int64_t>(1, chunk_elements / (plan_.count * inner));
    parallel_for(0, groups * chunks, grain, [&](int64_t begin, int64_t end) {
      Bytes turned(leaf * inner * size);
      Bytes staging(direct_ ? 0 : leaf * inner * size);
      for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % chunks * chunk_elements;
        const int64_t last = std::min(first + chunk_elements, plan_.count);
        const char* const base = data_ + plan_.kept.offset(task / chunks * inner);
        Cascade cascade(op_, num_chunks(first, last, row_leaf), inner);
        for (int64_t i = first; i < last; i += row_leaf) {
          const int64_t n = std::min(row_leaf, last - i);
          const char* from = base + i * plan_.reduced.stride[0];
          if (!direct_) {
            read(staging.data(), from, plan_.kept.stride[0], n * inner);
            from = staging.data();
          }
          op_.transpose(turned.data(), n * size, from, inner * size, size, inner, n);
          op_.rows(op_.context, turned.data(), n, inner, n, i, cascade.leaf());
          cascade.push(n);
        }
        if (chunks == 1) {
          emit(task * inner, cascade.finish(), inner);
        } else {
          std::memcpy(partial.data() + task * inner * op_.state_size, cascade.finish(),
                      inner * op_.state_size);
        }
      }
    });
    for (int64_t group = 0; chunks > 1 && group < groups; group++) {
      join_chunks(partial.data() + group * chunks * inner * op_.state_size, inner, chunk_elements,
                  group * inner, inner);
    }
  }

  // ---- columns ----

  // Elements [0, count) of `cols` short rows, the first of them at `base`, turned on their side
  // into the buffer. Behind the tile the buffer has room for as many elements as it holds.
  void transpose_rows(const char* base, int64_t cols, char* buffer) const {
    const int64_t size = op_.element_size;
    const int64_t n = plan_.count;
    int64_t row_bytes = plan_.kept.stride[0];
    if (!direct_) {
      char* const rows = buffer + n * cols * size;
      const int64_t in_size = plan_.reduced.stride[0];
      if (row_bytes == n * in_size) {
        read(rows, base, in_size, n * cols);
      } else {
        for (int64_t c = 0; c < cols; c++) {
          read(rows + c * n * size, base + c * row_bytes, in_size, n);
        }
      }
      base = rows;
      row_bytes = n * size;
    }
    op_.transpose(buffer, cols * size, base, row_bytes, size, n, cols);
  }

  // Pushes the tiles of positions [begin, end) for `cols` neighbouring outputs, the first of them
  // at `base`.
  void push_columns(Cascade& cascade, const char* base, int64_t begin, int64_t end, int64_t cols,
                    char* buffer) const {
    const int64_t size = op_.element_size;
    if (turned_) {
      transpose_rows(base, cols, buffer);
      op_.columns(op_.context, buffer, cols, plan_.count, cols, 0, cascade.leaf());
      cascade.push(plan_.count);
      return;
    }
    const bool in_place = direct_ && plan_.kept.stride[0] == size;
    Walk walk(plan_.reduced, begin);
    for (int64_t i = begin; i < end; i += tile_rows) {
      const int64_t rows = std::min(tile_rows, end - i);
      if (in_place && walk.run() >= rows && walk.stride() % size == 0) {
        op_.columns(op_.context, base + walk.offset(), walk.stride() / size, rows, cols, i,
                    cascade.leaf());
        walk.advance(rows);
      } else if (walk.run() >= rows && walk.stride() == cols * plan_.kept.stride[0]) {
        read(buffer, base + walk.offset(), plan_.kept.stride[0], rows * cols);
        walk.advance(rows);
        op_.columns(op_.context, buffer, cols, rows, cols, i, cascade.leaf());
      } else {
        for (int64_t r = 0; r < rows; r++) {
          read(buffer + r * cols * size, base + walk.offset(), plan_.kept.stride[0], cols);
          walk.advance(1);
        }
        op_.columns(op_.context, buffer, cols, rows, cols, i, cascade.leaf());
      }
      cascade.push(rows);
    }
  }

  void run_columns() const {
    constexpr int64_t chunk_rows = tile_rows * chunk_leaves;
    const int64_t inner = plan_.kept.size[0];
    int64_t width = std::min(inner, tile_bytes / op_.element_size);
    if (turned_) {
      const int64_t fits = turned_tile_bytes / (plan_.count * op_.element_size) & -16;
      width = std::min(width, std::max<int64_t>(16, fits));
    }
    const int64_t tiles = num_chunks(0, inner, width);
    const int64_t tasks = plan_.outputs / inner * tiles;
    const bool split = tasks < enough_tasks && plan_.count >= 2 * chunk_rows;
    const int64_t rows = split ? chunk_rows : plan_.count;
    const int64_t chunks = num_chunks(0, plan_.count, rows);
    Bytes partial(split ? chunks * plan_.outputs * op_.state_size : 0);  // [outer][chunk][inner]
    const int64_t grain = std::max<int64_t>(1, chunk_elements / (width * rows));
    parallel_for(0, tasks * chunks, grain, [&](int64_t begin, int64_t end) {
      Bytes buffer((turned_ ? 2 * plan_.count : tile_rows) * width * op_.element_size);
      for (int64_t task = begin; task < end; task++) {
        const int64_t col = task % tiles * width;
        const int64_t chunk = task / tiles % chunks;
        const int64_t outer = task / tiles / chunks;
        const int64_t cols = std::min(width, inner - col);
        const int64_t first = chunk * rows;
        const int64_t last = std::min(first + rows, plan_.count);
        Cascade cascade(op_, num_chunks(first, last, tile_rows), cols);
        push_columns(cascade, data_ + plan_.kept.offset(outer * inner + col), first, last, cols,
                     buffer.data());
        if (split) {
          std::memcpy(partial.data() + ((outer * chunks + chunk) * inner + col) * op_.state_size,
                      cascade.finish(), cols * op_.state_size);
        } else {
          emit(outer * inner + col, cascade.finish(), cols);
        }
      }
    });
    if (!split) {
      return;
    }
    parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / tiles;
        const int64_t col = task % tiles * width;
        const int64_t cols = std::min(width, inner - col);
        join_chunks(partial.data() + (outer * chunks * inner + col) * op_.state_size, inner, rows,
                    outer * inner + col, cols);
      }
    });
  }

  const ReduceOp& op_;
  const ReducePlan& plan_;
  const char* data_;
  ConvertRun read_;
  bool direct_;
  const Source* source_;  // or null; then `data_` only counts elements
  bool turned_;  // short rows are taken as columns
  const Emit& emit_;
};

}  // namespace

void run_reduction(const ReduceOp& op, const ReducePlan& plan, const void* data, ConvertRun read,
                   bool direct, const Emit& emit) {
  Reduction(op, plan, data, read, direct, nullptr, emit).run();
}

void run_reduction(const ReduceOp& op, const ReducePlan& plan, const Source& source,
                   const Emit& emit) {
  Reduction(op, plan, &source, nullptr, false, &source, emit).run();
}

}  // namespace rushlight::cpu
