// Products of codes over threads, and how matrices of codes come into the order that they need.
#pragma once

#include <algorithm>

#include <rushlight/tensor.h>

#include "core/parallel.h"
#include "cpu/int8_gemm.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {

// A matrix of bytes; strides in elements.
struct ByteMatrix {
  const void* data;
  int64_t rows;
  int64_t columns;
  int64_t row;
  int64_t col;
};

// b (terms, columns) into panels (kernels/int8_layout.h), and the sums of its columns where `sums`
// is given.
void pack_int8(const ByteMatrix& b, int8_t* panels, int32_t* sums);

// Bytes between rows of whole groups of codes: rows do not compete for lines of the cache.
int64_t code_row_bytes(int64_t terms);

// How results of rows of codes and panels of columns are cut into tiles, whatever the number of
// threads.
struct PanelTiles {
  int64_t rows;
  int64_t columns;
  int64_t row_bytes;     // of codes
  int64_t rows_at_once;  // that a kernel takes

  int64_t panels() const { return int8_panels(columns); }
  int64_t tile_rows() const;
  int64_t tile_panels() const;
};

// Calls multiply(problem, first row, last row, first panel, last panel) for all tiles.
template <class Problem>
void for_tiles_of_panels(const PanelTiles& t,
                         void (*multiply)(const Problem&, int64_t, int64_t, int64_t, int64_t),
                         const Problem& problem) {
  if (t.rows == 0 || t.columns == 0) {
    return;
  }
  const int64_t rows = t.tile_rows();
  const int64_t panels = t.tile_panels();
  const int64_t across = num_chunks(0, t.panels(), panels);
  parallel_for(0, num_chunks(0, t.rows, rows) * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t row = i / across * rows;
      const int64_t panel = i % across * panels;
      multiply(problem, row, std::min(row + rows, t.rows), panel,
               std::min(panel + panels, t.panels()));
    }
  });
}

// All results of `rows` rows.
void multiply_int8(const Int8Gemm& problem, int64_t rows);

// out = self @ mat2 in int32, where self holds int8 or uint8 and mat2 int8, of any strides.
void multiply_bytes(const Tensor& out, const Tensor& self, const Tensor& mat2);

}  // namespace rushlight::cpu
