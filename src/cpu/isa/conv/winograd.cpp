// Convolutions with kernels of 3x3 at stride 1 by Winograd's algorithm: outputs are computed in
// tiles of 4x4, which takes 36 multiplications for each pair of channels instead of 144. With the
// points 0, ±1/√2, ±√2 and infinity rounding errors are three to five times those of the sums. A
// tile's 6x6 elements are transformed, multiplied with the transformed weight, and what is summed
// over the input channels is transformed back:
//   Y = A' [ sum over channels of (G g G') * (B' d B) ] A.
// The products are 36 matrix products, one for each place in the transformed tile; tiles of all
// images are their columns, in panels of as many as the micro-kernel takes.
#include <atomic>
#include <cmath>
#include <numbers>

#include "core/parallel.h"
#include "cpu/conv.h"
#include "cpu/isa/conv/rows.h"
#include "cpu/isa/matmul/gemm_engine.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using V = Simd<float>;
using B = GemmBlocks<float>;

constexpr int64_t places = 36;  // in a transformed tile
constexpr float low = static_cast<float>(1 / std::numbers::sqrt2);
constexpr float high = static_cast<float>(std::numbers::sqrt2);

inline V::V multiply_by(float factor, V::V x) { return V::mul(V::set1(factor), x); }
inline V::V add_times(V::V sum, float factor, V::V x) { return V::fma(V::set1(factor), x, sum); }

// B' of six elements.
inline void transform_input(const V::V (&d)[6], V::V (&to)[6]) {
  const V::V even_low = add_times(d[4], -2, d[2]);
  const V::V odd_low = multiply_by(low, add_times(d[3], -2, d[1]));
  const V::V even_high = add_times(d[4], -0.5F, d[2]);
  const V::V odd_high = multiply_by(high, add_times(d[3], -0.5F, d[1]));
  to[0] = V::add(add_times(d[0], -2.5F, d[2]), d[4]);
  to[1] = V::add(even_low, odd_low);
  to[2] = V::sub(even_low, odd_low);
  to[3] = V::add(even_high, odd_high);
  to[4] = V::sub(even_high, odd_high);
  to[5] = V::add(add_times(d[1], -2.5F, d[3]), d[5]);
}

// G of three elements.
inline void transform_weight(const V::V (&g)[3], V::V (&to)[6]) {
  const V::V even_low = multiply_by(-1 / 1.5F, add_times(g[0], 0.5F, g[2]));
  const V::V odd_low = multiply_by(-low / 1.5F, g[1]);
  const V::V even_high = multiply_by(1 / 6.0F, add_times(g[0], 2, g[2]));
  const V::V odd_high = multiply_by(high / 6, g[1]);
  to[0] = g[0];
  to[1] = V::add(even_low, odd_low);
  to[2] = V::sub(even_low, odd_low);
  to[3] = V::add(even_high, odd_high);
  to[4] = V::sub(even_high, odd_high);
  to[5] = g[2];
}

// A' of six elements.
inline void transform_output(const V::V (&m)[6], V::V (&to)[4]) {
  const V::V sum_low = V::add(m[1], m[2]);
  const V::V difference_low = V::sub(m[1], m[2]);
  const V::V sum_high = V::add(m[3], m[4]);
  const V::V difference_high = V::sub(m[3], m[4]);
  to[0] = V::add(m[0], V::add(sum_low, sum_high));
  to[1] = add_times(multiply_by(low, difference_low), high, difference_high);
  to[2] = add_times(multiply_by(0.5F, sum_low), 2, sum_high);
  to[3] = add_times(add_times(m[5], low / 2, difference_low), 2 * high, difference_high);
}

// The tiles of all images, row after row, and how many rows of tiles are worked on at once.
struct Tiles {
  int64_t rows;   // of one image
  int64_t width;  // tiles of a row
  int64_t all_rows;
  int64_t block;  // rows whose transformed tiles stay in the caches

  explicit Tiles(const Conv& c)
      : rows((c.out[1] + 3) / 4), width((c.out[2] + 3) / 4), all_rows(c.batch * rows) {
    const int64_t tile = places * c.in_channels * static_cast<int64_t>(sizeof(float));
    const int64_t together = std::max<int64_t>((int64_t{2} << 20) / tile, 4 * B::nr);
    block = std::clamp<int64_t>(together / width, 1, all_rows);
  }
};

// Between the places of what is transformed: without it they would lie powers of two apart for most
// numbers of channels, and share a few lines of the caches.
constexpr int64_t gap = 16;

int64_t panels_of(int64_t tiles) { return (tiles + B::nr - 1) / B::nr; }

// Output channels that one call of the micro-kernel computes: fewer than it could where a block of
// tiles would give less than 32 pieces.
struct Channels {
  int64_t count;
  int64_t blocks;
  Channels(int64_t n, int64_t panels, int64_t depth) : count(n) {
    constexpr int64_t few = (B::max_rows + 1) / 2;
    const int64_t least = (n + B::max_rows - 1) / B::max_rows;
    const bool large = places * panels * B::nr * depth * n > int64_t{1} << 24;
    blocks = large ? std::clamp((31 + panels) / panels, least, std::max(least, n / few)) : least;
  }
  int64_t begin(int64_t b) const { return count * b / blocks; }
};

class Winograd {
 public:
  explicit Winograd(const Conv& c)
      : c_(c),
        tiles_(c),
        channels_(c.out_channels, panels_of(tiles_.block * tiles_.width), c.in_channels),
        place_(place_of(B::nr)),
        few_(tiles_.block == tiles_.all_rows && are_few(panels_of(tiles_.all_rows * tiles_.width))),
        weight_(few_ ? 0
                     : places * (c.in_channels * c.out_channels + channels_.blocks * gap) +
                           V::width) {
    for (int d = 0; d < 2; d++) {
      padding_[d] = c.transposed ? 2 - c.padding[1 + d] : c.padding[1 + d];
    }
  }

  // False where an element is not finite: it would spread over its tile.
  bool run() {
    if (few_) {
      run_few_tiles();
      return finite_;
    }
    const int64_t grain = std::max<int64_t>(1, 2048 / B::max_rows / c_.in_channels);
    parallel_for(0, channels_.blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        transform_weights(b, weight_of(b));
      }
    });
    for (int64_t row = 0; row < tiles_.all_rows && finite_; row += tiles_.block) {
      run_block(row, std::min(row + tiles_.block, tiles_.all_rows));
    }
    return finite_;
  }

 private:
  // Keeps in mind whether all lanes are finite.
  static void check(V::V x, V::V& sum) { sum = V::fma(x, V::zero(), sum); }
  void check_finite(V::V sum) {
    if (sum_lanes<float>(sum) != 0) {
      finite_ = false;
    }
  }

  // Elements of a place, from one to the next, of so many tiles or output channels.
  int64_t place_of(int64_t side) const { return c_.in_channels * side + gap; }

  // The weight of a block of output channels: [place][input channel][output channel].
  float* weight_of(int64_t block) const {
    return weight_ + places * (channels_.begin(block) * c_.in_channels + block * gap);
  }

  void transform_weights(int64_t block, float* to) {
    const int64_t begin = channels_.begin(block);
    const int64_t rows = channels_.begin(block + 1) - begin;
    const int64_t by_out = c_.transposed ? 9 : c_.in_channels * 9;
    const int64_t by_in = c_.transposed ? c_.out_channels * 9 : 9;
    const int64_t place = place_of(rows);
    const int64_t all = c_.in_channels * rows;
    const float* const weight = static_cast<const float*>(c_.weight) + begin * by_out;
    alignas(64) float taps[9][V::width] = {};
    V::V sum = V::zero();
    int64_t in = 0;  // of the next lane, as its output channel is
    int64_t out = 0;
    for (int64_t first = 0; first < all; first += V::width) {
      const int64_t lanes = std::min(V::width, all - first);
      for (int64_t lane = 0; lane < lanes; lane++) {
        const float* from = weight + out * by_out + in * by_in;
        for (int k = 0; k < 9; k++) {
          taps[c_.transposed ? 8 - k : k][lane] = from[k];
        }
        if (++out == rows) {
          out = 0;
          in++;
        }
      }
      V::V half[3][6];  // of each column
      for (int x = 0; x < 3; x++) {
        const V::V column[3] = {V::load(taps[x]), V::load(taps[3 + x]), V::load(taps[6 + x])};
        transform_weight(column, half[x]);
      }
      for (int y = 0; y < 6; y++) {
        const V::V row[3] = {half[0][y], half[1][y], half[2][y]};
        V::V whole[6];
        transform_weight(row, whole);
        for (int x = 0; x < 6; x++) {
          check(whole[x], sum);
          store_some(to + (y * 6 + x) * place + first, whole[x], lanes);
        }
      }
    }
    check_finite(sum);
  }

  // As pieces, blocks of channels have to be enough.
  bool are_few(int64_t panels) const {
    return panels == 1 || (panels == 2 && channels_.blocks >= 32);
  }

  // All outputs, of tiles so few that a block of the weight is used but once or twice: it is
  // transformed then, and does not leave the caches.
  void run_few_tiles() {
    const int64_t panels = panels_of(tiles_.all_rows * tiles_.width);
    const Scratch<float> images(panels * places * place_);
    transform_images(0, tiles_.all_rows, images);
    const int64_t work = places * c_.in_channels * B::max_rows * (panels * B::nr + places);
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / work);
    parallel_for(0, finite_ ? channels_.blocks : 0, grain, [&](int64_t b, int64_t e) {
      const Scratch<float> weight(places * place_of(B::max_rows) + V::width);
      const Scratch<float> products(places * B::max_rows * B::nr);
      for (int64_t block = b; block < e; block++) {
        transform_weights(block, weight);
        for (int64_t panel = 0; panel < panels; panel++) {
          run_panel(0, tiles_.all_rows, panel, block, images, weight, products);
        }
      }
    });
  }

  // All outputs of some rows of tiles.
  void run_block(int64_t begin, int64_t end) {
    const int64_t panels = panels_of((end - begin) * tiles_.width);
    const Scratch<float> images(panels * places * place_);
    transform_images(begin, end, images);
    const int64_t work = places * place_ * B::max_rows;
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / work);
    const int64_t pieces = finite_ ? panels * channels_.blocks : 0;
    parallel_for(0, pieces, grain, [&](int64_t b, int64_t e) {
      const Scratch<float> products(places * B::max_rows * B::nr);
      for (int64_t t = b; t < e; t++) {
        const int64_t block = t % channels_.blocks;
        run_panel(begin, end, t / channels_.blocks, block, images, weight_of(block), products);
      }
    });
  }

  // One panel of the tiles in some rows, for a block of output channels.
  void run_panel(int64_t begin, int64_t end, int64_t panel, int64_t block, const float* images,
                 const float* weight, float* products) const {
    const int64_t tiles = std::min(B::nr, (end - begin) * tiles_.width - panel * B::nr);
    multiply(images + panel * places * place_, tiles, block, weight, products);
    write(products, block, begin * tiles_.width + panel * B::nr, tiles);
  }

  void transform_images(int64_t begin, int64_t end, float* images) {
    const int64_t count = (end - begin) * tiles_.width;
    const int64_t first = begin / tiles_.rows;
    const int64_t together = (end - 1) / tiles_.rows - first + 1;
    const int64_t grain = std::max<int64_t>(1, 1024 * together / count);
    parallel_for(0, together * c_.in_channels, grain, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; t++) {
        const int64_t n = first + t / c_.in_channels;
        transform_image(n, t % c_.in_channels, std::max(begin, n * tiles_.rows),
                        std::min(end, (n + 1) * tiles_.rows), begin, images);
      }
    });
  }

  // One channel of image n, rows of tiles begin to end, into panels that begin with row `origin`.
  void transform_image(int64_t n, int64_t channel, int64_t begin, int64_t end, int64_t origin,
                       float* to) {
    const int64_t rows = end - begin;
    const int64_t width = tiles_.width;
    // Elements at the same place of all tiles side by side, for four rows of a tile: the others
    // are the first ones of the next row of tiles.
    const int64_t plane = (rows + 1) * width;
    const Scratch<float> elements(24 * plane + V::width);
    const Scratch<float> line(4 * width + 2);
    const auto& s = c_.input.strides;
    const float* image = static_cast<const float*>(c_.input.data) + n * s[0] + channel * s[1];
    const int64_t x0 = std::max<int64_t>(0, padding_[1]);
    const int64_t x1 = std::clamp(c_.in[2] + padding_[1], x0, 4 * width + 2);
    std::fill_n(line.data(), 4 * width + 2, 0.0F);
    for (int64_t y = 0; y < 4 * rows + 4; y++) {
      float* here = elements + y % 4 * 6 * plane + y / 4 * width;
      const int64_t from = 4 * (begin - n * tiles_.rows) + y - padding_[0];
      if (from < 0 || from >= c_.in[1] || y >= 4 * rows + 2) {
        for (int j = 0; j < 6; j++) {
          std::fill_n(here + j * plane, width, 0.0F);
        }
        continue;
      }
      copy_row(line + x0, image + from * s[3] + (x0 - padding_[1]) * s[4], s[4], x1 - x0);
      for (int64_t t = 0; t < width; t++) {
        for (int j = 0; j < 6; j++) {
          here[j * plane + t] = line[4 * t + j];
        }
      }
    }
    std::fill_n(elements + 24 * plane, V::width, 0.0F);
    V::V sum = V::zero();
    const int64_t first = (begin - origin) * width;
    const int64_t panel_size = places * place_;
    for (int64_t p = 0; p < rows * width;) {
      const int64_t lane = (first + p) % B::nr;
      const int64_t lanes = std::min(V::width - lane % V::width, rows * width - p);
      V::V half[6][6];
#pragma GCC unroll 6
      for (int j = 0; j < 6; j++) {
        V::V column[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
          column[i] = V::load(elements + (i % 4 * 6 + j) * plane + i / 4 * width + p);
        }
        V::V out[6];
        transform_input(column, out);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
          half[i][j] = out[i];
        }
      }
      float* panel = to + (first + p) / B::nr * panel_size + channel * B::nr + lane;
#pragma GCC unroll 6
      for (int i = 0; i < 6; i++) {
        V::V whole[6];
        transform_input(half[i], whole);
        if (i == 0 || i == 5) {  // every element has a part in one of the corners
          check(whole[0], sum);
          check(whole[5], sum);
        }
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++) {
          store_some(panel + (i * 6 + j) * place_, whole[j], lanes);
        }
      }
      p += lanes;
    }
    check_finite(sum);
  }

  // One panel of `count` tiles times a block of output channels: [place][output channel][tile].
  void multiply(const float* panel, int64_t count, int64_t block, const float* weight,
                float* products) const {
    using Rows = std::make_index_sequence<B::max_rows>;
    static constexpr auto whole = micro_kernels<float>(Rows());
    static constexpr auto half = micro_kernels<float, 1>(Rows());
    const auto& kernels = count > V::width ? whole : half;
    const int64_t begin = channels_.begin(block);
    const int64_t rows = channels_.begin(block + 1) - begin;
    // Long sums are cut short, which halves their rounding errors. It costs nothing where the
    // factors do not come from the first-level cache.
    const int64_t step = c_.in_channels > B::k_step ? B::k_step / 4 : B::k_step;
    for (int64_t place = 0; place < places; place++) {
      for (int64_t k = 0; k < c_.in_channels; k += step) {
        kernels[rows - 1](
            std::min(step, c_.in_channels - k), weight + place * place_of(rows) + k * rows,
            panel + place * place_ + k * B::nr, products + place * rows * B::nr, B::nr, k > 0);
      }
    }
  }

  // Transforms the products of `count` tiles from `first` on back, and writes their pixels.
  void write(const float* products, int64_t block, int64_t first, int64_t count) const {
    const int64_t begin = channels_.begin(block);
    const int64_t rows = channels_.begin(block + 1) - begin;
    const auto& s = c_.output.strides;
    alignas(64) float pixels[16 * B::nr];
    alignas(64) float line[4 * B::nr];
    for (int64_t r = 0; r < rows; r++) {
      const int64_t channel = begin + r;
      const V::V bias =
          V::set1(c_.bias == nullptr ? 0.0F : static_cast<const float*>(c_.bias)[channel]);
      for (int64_t lane = 0; lane < count; lane += V::width) {
        V::V half[4][6];
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++) {
          V::V column[6];
#pragma GCC unroll 6
          for (int i = 0; i < 6; i++) {
            column[i] = V::load(products + ((i * 6 + j) * rows + r) * B::nr + lane);
          }
          V::V out[4];
          transform_output(column, out);
#pragma GCC unroll 4
          for (int i = 0; i < 4; i++) {
            half[i][j] = out[i];
          }
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
          V::V whole[4];
          transform_output(half[i], whole);
#pragma GCC unroll 4
          for (int j = 0; j < 4; j++) {
            V::store(pixels + (i * 4 + j) * B::nr + lane, V::add(whole[j], bias));
          }
        }
      }
      for (int64_t lane = 0; lane < count;) {
        const int64_t row = (first + lane) / tiles_.width;
        const int64_t x = (first + lane) % tiles_.width;
        const int64_t together = std::min(tiles_.width - x, count - lane);
        const int64_t y = row % tiles_.rows * 4;
        float* to = static_cast<float*>(c_.output.data) + row / tiles_.rows * s[0] +
                    channel * s[1] + y * s[3] + x * 4 * s[4];
        for (int64_t i = 0; i < std::min<int64_t>(4, c_.out[1] - y); i++) {
          const float* from = pixels + i * 4 * B::nr + lane;
          for (int64_t t = 0; t < together; t++) {
            for (int j = 0; j < 4; j++) {
              line[4 * t + j] = from[j * B::nr + t];
            }
          }
          put_row(to + i * s[3], s[4], line, std::min(4 * together, c_.out[2] - 4 * x));
        }
        lane += together;
      }
    }
  }

  const Conv& c_;
  const Tiles tiles_;
  const Channels channels_;
  const int64_t place_;  // of a panel of tiles
  const bool few_;
  int64_t padding_[2];
  const Scratch<float> weight_;
  std::atomic<bool> finite_ = true;
};

const char* forward(const Conv& c) {
  if (c.dtype != kFloat32 || c.groups != 1) {
    return "not float32 or grouped";
  }
  const Dims3 ones = {1, 1, 1};
  if (c.kernel != Dims3{1, 3, 3} || c.stride != ones || c.dilation != ones || c.in[0] != 1 ||
      c.out[0] != 1 || c.padding[0] != 0) {
    return "not 3x3 at stride 1";
  }
  if (std::max(c.padding[1], c.padding[2]) > 2) {
    return "wide padding";
  }
  if (c.input.strides[4] != 1 || c.output.strides[4] != 1) {
    return "channels last";
  }
  // In multiplications: tiles and weights cost some to transform.
  const Tiles tiles(c);
  const double count = static_cast<double>(tiles.all_rows * tiles.width);
  const double in = static_cast<double>(c.in_channels);
  const double out = static_cast<double>(c.out_channels);
  const int64_t vectors = (tiles.all_rows * tiles.width + V::width - 1) / V::width;
  const double padded = static_cast<double>(vectors * V::width);
  const double own = places * in * out * padded + 600 * (in + out) * count + 600 * in * out;
  const double plain = 9 * in * out * static_cast<double>(c.batch * c.out[1] * c.out[2]);
  if (own > plain * 0.9 && !is_convolution_forced()) {
    return "few tiles or channels";
  }
  return Winograd(c).run() ? nullptr : "an element is not finite";
}

}  // namespace

const WinogradConvKernels winograd_conv_kernels = {forward};

}  // namespace rushlight::cpu::RL_ISA
