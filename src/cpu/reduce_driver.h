// The driver of all reductions. Elements are cut into leaves of a fixed size; an op turns a leaf
// into a state, and states are merged in a binary tree whose form depends on the sizes alone, so
// that neither the number of threads nor the way work is split changes a bit. Leaves are runs of
// 2048 elements of one output (rows), or tiles of 32 elements of many neighbouring outputs
// (columns), whichever follows memory; short rows and few columns are turned into the other. Only
// the leaf functions are templates (src/cpu/isa); the driver sees bytes.
#pragma once

#include "cpu/reduce_plan.h"

namespace rushlight::cpu {

inline constexpr int64_t row_leaf = 2048;
inline constexpr int64_t tile_rows = 32;
inline constexpr int64_t tile_bytes = 2048;  // of a row of a tile
inline constexpr int64_t turned_tile_bytes =
    8192;  // of a whole tile that short rows are turned into
// Rows of at most this many bytes, and elements of a tile, are turned. Their elements are taken one
// after the other wherever they stand.
inline constexpr int64_t short_row_bytes = 128;
inline constexpr int64_t few_columns = 16;
inline constexpr int64_t chunk_leaves = 16;  // leaves that are one piece of parallel work
inline constexpr int64_t chunk_elements = row_leaf * chunk_leaves;
inline constexpr int64_t enough_tasks =
    16;  // with more outputs than this a single output is not split

// Writes n contiguous elements from elements `stride` bytes apart.
using ConvertRun = void (*)(void* to, const void* from, int64_t stride, int64_t n);

// What a reduction does, on elements x of element_size bytes (as loaded) and states s of state_size
// bytes, which are plain data. `first` is the position of the first element among those of its
// output.
struct ReduceOp {
  const void* context;
  int64_t element_size;
  int64_t state_size;
  void (*identity)(const void* context, void* s);
  // `ld`: elements between rows. One state per row, or per column.
  void (*rows)(const void* context, const void* x, int64_t ld, int64_t rows, int64_t n,
               int64_t first, void* s);
  void (*columns)(const void* context, const void* x, int64_t ld, int64_t rows, int64_t cols,
                  int64_t first, void* s);
  // `width` states of older elements take up those of newer ones.
  void (*merge)(const void* context, void* older, int64_t n_older, const void* newer,
                int64_t n_newer, int64_t width);
  // to[i][j] = from[j][i] for i < rows, j < columns; strides in bytes.
  void (*transpose)(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                    int64_t size, int64_t rows, int64_t columns);
};

// Receives the states of n outputs; called once for each output, from several threads.
struct Emit {
  const void* context;
  void (*call)(const void* context, int64_t first, const void* states, int64_t n);
};

// Elements that are in no memory: computed when they are wanted, n from number `first` on in the
// order of the input, which is contiguous. From several threads.
struct Source {
  virtual void read(int64_t first, int64_t n, char* to) const = 0;

 protected:
  ~Source() = default;
};

// `read` brings elements of `data` into the form that the op takes; `direct`: they have it already.
void run_reduction(const ReduceOp& op, const ReducePlan& plan, const void* data, ConvertRun read,
                   bool direct, const Emit& emit);
// The same of the elements of a source, which gives them in this form.
void run_reduction(const ReduceOp& op, const ReducePlan& plan, const Source& source,
                   const Emit& emit);

}  // namespace rushlight::cpu
