// What a layer of recurrent cells works on, for the kernels of every device.
#pragma once

#include <algorithm>
#include <string_view>

#include <rushlight/tensor.h>

#include "kernels/inline.h"

namespace rushlight::recurrent {

enum class Cell { Lstm, Gru, Tanh, Relu };

RL_INLINE Cell cell_of(std::string_view mode) {
  return mode == "lstm"   ? Cell::Lstm
         : mode == "gru"  ? Cell::Gru
         : mode == "tanh" ? Cell::Tanh
                          : Cell::Relu;
}

// Sequences of a batch are sorted by length: step t has the first sizes[t] of them.
struct Layer {
  Cell cell;
  int64_t steps;
  int64_t batch;     // of the first step, the largest
  int64_t units;     // of the cell
  int64_t hidden;    // width of the hidden state: units, or that of the projection
  int64_t gates;     // blocks of units rows in weight_hh
  int64_t kept;      // values kept of each unit and step
  int64_t rows = 0;  // of all steps
  bool reverse;
  bool batch_first;
  const int64_t* sizes;
  DimVector offsets;  // first row of each step where steps follow each other

  RL_INLINE Layer(const Tensor& first_hidden, const Tensor& weight_hh, IntArrayRef batch_sizes,
                  std::string_view mode, bool reverse, bool batch_first)
      : cell(cell_of(mode)),
        steps(static_cast<int64_t>(batch_sizes.size())),
        batch(first_hidden.size(0)),
        hidden(first_hidden.size(1)),
        gates(cell == Cell::Lstm  ? 4
              : cell == Cell::Gru ? 3
                                  : 1),
        kept(gates > 1 ? 4 : 0),
        reverse(reverse),
        batch_first(batch_first),
        sizes(batch_sizes.data()) {
    units = weight_hh.size(0) / gates;
    for (int64_t t = 0; t < steps; t++) {
      offsets.push_back(rows);
      rows += sizes[t];
    }
  }
  // The row of the tensors in which step t of sequence b stands, and in the order of the steps.
  RL_INLINE int64_t row(int64_t t, int64_t b) const {
    return batch_first ? b * steps + t : row_of_step(t, b);
  }
  RL_INLINE int64_t row_of_step(int64_t t, int64_t b) const {
    return offsets[static_cast<size_t>(t)] + b;
  }
  // Between the rows of neighbouring sequences.
  RL_INLINE int64_t row_step() const { return batch_first ? steps : 1; }
  // The step that is computed as number i.
  RL_INLINE int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
  // The step computed before, and how many sequences it shares with step t (0: t is the first).
  RL_INLINE int64_t before(int64_t t) const { return reverse ? t + 1 : t - 1; }
  RL_INLINE int64_t sequences_from_before(int64_t t) const {
    const int64_t p = before(t);
    return p < 0 || p >= steps ? 0 : std::min(sizes[p], sizes[t]);
  }
};

}  // namespace rushlight::recurrent
