// Products of codes: how work is cut, and packing. Sums of integers are the same however they are
// cut.
#include "cpu/int8_product.h"

#include <algorithm>
#include <cstring>

#include "core/op_support.h"
#include "core/parallel.h"
#include "generated/kernels.h"

namespace rushlight::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Products that are worth a thread's while, some ten microseconds, and pieces that keep many
// threads busy.
constexpr int64_t least_work = int64_t{1} << 20;
constexpr int64_t enough_pieces = 64;
// Of rows of codes that stay in the second-level cache beside a panel.
constexpr int64_t most_row_bytes = int64_t{384} << 10;

using Sixteen = uint8_t __attribute__((vector_size(16)));

// The upper or the lower halves of two vectors, by elements of `size` bytes in turns.
template <int size, bool upper>
Sixteen in_turns(Sixteen a, Sixteen b) {
  Sixteen places;
  for (int i = 0; i < 16; i++) {
    const int element = (upper ? 16 / size / 2 : 0) + i / size / 2;
    places[i] = static_cast<uint8_t>((i / size % 2) * 16 + element * size + i % size);
  }
  return __builtin_shuffle(a, b, places);
}

// Four rows of sixteen bytes, column by column.
void transpose_group(const int8_t* rows, int64_t row, int8_t* to) {
  Sixteen x[4];
  for (int64_t t = 0; t < int8_group; t++) {
    std::memcpy(&x[t], rows + t * row, sizeof(x[t]));
  }
  const Sixteen first[] = {in_turns<1, false>(x[0], x[1]), in_turns<1, true>(x[0], x[1])};
  const Sixteen second[] = {in_turns<1, false>(x[2], x[3]), in_turns<1, true>(x[2], x[3])};
  for (int h = 0; h < 2; h++) {
    const Sixteen two[] = {in_turns<2, false>(first[h], second[h]),
                           in_turns<2, true>(first[h], second[h])};
    std::memcpy(to + h * 32L, two, sizeof(two));
  }
}

// Four rows of B become the groups of a panel's columns.
void pack_group(const ByteMatrix& b, int64_t term, int64_t column, int8_t* to) {
  const auto* const from = static_cast<const int8_t*>(b.data);
  const int64_t terms = std::min(int8_group, b.rows - term);
  const int64_t columns = std::min(int8_panel, b.columns - column);
  if (terms == int8_group && columns == int8_panel && b.row == 1) {
    for (int64_t j = 0; j < int8_panel; j++) {
      std::memcpy(to + j * int8_group, from + term + (column + j) * b.col, int8_group);
    }
    return;
  }
  if (terms == int8_group && columns == int8_panel && b.col == 1) {
    transpose_group(from + term * b.row + column, b.row, to);
    return;
  }
  std::memset(to, 0, int8_panel * int8_group);
  for (int64_t j = 0; j < columns; j++) {
    for (int64_t t = 0; t < terms; t++) {
      to[j * int8_group + t] = from[(term + t) * b.row + (column + j) * b.col];
    }
  }
}

void add_groups(const int8_t* panel, int64_t groups, int64_t columns, int32_t* sums) {
  int32_t lanes[int8_panel * int8_group] = {};
  for (int64_t g = 0; g < groups; g++) {
    for (int64_t x = 0; x < int8_panel * int8_group; x++) {
      lanes[x] += panel[g * int8_panel * int8_group + x];
    }
  }
  for (int64_t j = 0; j < columns; j++) {
    const int32_t* const x = lanes + j * int8_group;
    sums[j] = x[0] + x[1] + x[2] + x[3];
  }
}

}  // namespace

void pack_int8(const ByteMatrix& b, int8_t* panels, int32_t* sums) {
  const int64_t groups = int8_groups(b.rows);
  const int64_t bytes = int8_panel_bytes(groups);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, bytes));
  // Panels whose columns lie in the same lines of the cache are packed together.
  const int64_t at_once = b.col == 1 ? 64 / int8_panel : 1;
  parallel_for(0, int8_panels(b.columns), std::max(grain, at_once),
               [&](int64_t begin, int64_t end) {
                 for (int64_t first = begin; first < end; first += at_once) {
                   const int64_t last = std::min(first + at_once, end);
                   for (int64_t g = 0; g < groups; g++) {
                     for (int64_t p = first; p < last; p++) {
                       pack_group(b, g * int8_group, p * int8_panel,
                                  panels + p * bytes + g * int8_panel_bytes(1));
                     }
                   }
                 }
                 for (int64_t p = begin; p < end && sums != nullptr; p++) {
                   const int64_t column = p * int8_panel;
                   add_groups(panels + p * bytes, groups, std::min(int8_panel, b.columns - column),
                              sums + column);
                 }
               });
}

int64_t code_row_bytes(int64_t terms) {
  const int64_t bytes = int8_groups(terms) * int8_group;
  return bytes % 1024 == 0 ? bytes + 64 : bytes;
}

int64_t PanelTiles::tile_rows() const {
  const int64_t fit = most_row_bytes / std::max<int64_t>(1, row_bytes) / rows_at_once;
  const int64_t most = std::max<int64_t>(1, fit) * rows_at_once;
  return ceil_div(ceil_div(rows, ceil_div(rows, most)), rows_at_once) * rows_at_once;
}

// An even number, as some processors take two panels at once.
int64_t PanelTiles::tile_panels() const {
  const int64_t pairs = ceil_div(panels(), 2);
  const int64_t tiles = ceil_div(rows, tile_rows());
  const int64_t work =
      2 * int8_panel * std::max<int64_t>(1, row_bytes) * std::min(rows, tile_rows());
  const int64_t least = std::max<int64_t>(1, least_work / work);
  return 2 * std::max(least, ceil_div(pairs * tiles, enough_pieces));
}

void multiply_int8(const Int8Gemm& problem, int64_t rows) {
  const PanelTiles tiles = {rows, problem.columns, problem.groups * int8_group,
                            int8_kernels().rows_at_once()};
  for_tiles_of_panels(tiles, int8_kernels().multiply, problem);
}

namespace {

ByteMatrix bytes_of(const Tensor& t) {
  return {t.data_ptr(), t.size(0), t.size(1), t.strides()[0], t.strides()[1]};
}

// Rows of whole groups of codes; those of int8 are 128 more.
void copy_rows(const ByteMatrix& a, uint8_t flip, uint8_t* to, int64_t row_bytes) {
  const auto* const from = static_cast<const uint8_t*>(a.data);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / row_bytes);
  parallel_for(0, a.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      uint8_t* const row = to + i * row_bytes;
      const uint8_t* const x = from + i * a.row;
      if (a.col == 1) {
        int64_t k = 0;
        for (; k + 16 <= a.columns; k += 16) {
          Sixteen some;
          std::memcpy(&some, x + k, sizeof(some));
          some ^= flip;
          std::memcpy(row + k, &some, sizeof(some));
        }
        for (; k < a.columns; k++) {
          row[k] = x[k] ^ flip;
        }
      } else {
        for (int64_t k = 0; k < a.columns; k++) {
          row[k] = x[k * a.col] ^ flip;
        }
      }
      std::memset(row + a.columns, 0, row_bytes - a.columns);
    }
  });
}

}  // namespace

void multiply_bytes(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  const ByteMatrix a = bytes_of(self);
  const ByteMatrix b = bytes_of(mat2);
  const bool with_sign = self.dtype() == kInt8;
  const int64_t groups = int8_groups(b.rows);
  const Scratch<int8_t> panels(int8_panels(b.columns) * int8_panel_bytes(groups));
  const Scratch<int32_t> sums(with_sign ? b.columns : 0);
  pack_int8(b, panels, with_sign ? sums.data() : nullptr);
  const int64_t row_bytes = code_row_bytes(a.columns);
  const Scratch<uint8_t> codes(a.rows * row_bytes);
  copy_rows(a, with_sign ? 128 : 0, codes, row_bytes);
  const Tensor whole = out.strides()[1] == 1 || out.size(1) == 1
                           ? out
                           : make_empty(out.sizes(), kInt32, out.device());
  Int8Gemm g{
      .a = codes,
      .a_row = row_bytes,
      .seven_bits = int8_kernels().are_seven_bits(codes, a.rows * row_bytes),
      .panels = panels,
      .groups = groups,
      .columns = b.columns,
      .result = {.kind = Int8Result::sums, .data = whole.data_ptr(), .row = whole.strides()[0]}};
  if (with_sign) {
    g.column_sums = sums;
    g.zero_point = 128;
  }
  multiply_int8(g, a.rows);
  if (!whole.is_same(out)) {
    copy_raw(out, whole);
  }
}

void _int8_pack(const Tensor& out, const Tensor& weight, int64_t groups) {
  const int64_t rows = weight.size(0) / groups;
  const int64_t inputs = weight.size(1);
  const int64_t bytes = int8_panels(rows) * int8_panel_bytes(int8_groups(inputs));
  for (int64_t g = 0; g < groups; g++) {
    const int8_t* const from = weight.data<int8_t>() + g * rows * inputs;
    pack_int8({from, inputs, rows, 1, inputs}, out.data<int8_t>() + g * bytes, nullptr);
  }
}

}  // namespace rushlight::cpu
