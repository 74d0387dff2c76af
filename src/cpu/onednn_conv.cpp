// Convolutions by oneDNN, parallel over pieces that depend on the problem alone; each runs on one
// thread. Images are brought into the layout that the primitive asks for, and back; channels-last
// images are taken as they are. A piece is some images, some rows of them, and some channels of the
// result. Pieces of a weight's gradient that differ in images or rows have sums of their own, which
// are added in order.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <algorithm>
#include <vector>

#include "cpu/isa_level.h"
#include "cpu/kept_weights.h"
#include "cpu/onednn_conv.h"

namespace rushlight::cpu::onednn {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Images, rows of windows and channels of the result in a piece; of a weight's gradient channels of
// the large images, too.
struct Sizes {
  int64_t images = 0;
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t others = 0;
};

double elements(const Piece& whole, const Side& side) {
  return static_cast<double>(whole.images * whole.groups * side.channels) *
         static_cast<double>(side.size[0] * side.size[1] * side.size[2]);
}

// The dimension that has the rows.
int row_dim(const Piece& p) { return p.small.size[0] > 1 ? 0 : p.small.size[1] > 1 ? 1 : 2; }

// The sizes that seem to cost least.
Sizes choose_sizes(const Piece& p) {
  const auto d = static_cast<size_t>(row_dim(p));
  const int64_t total = p.small.size[d];
  const bool weights = p.kind == Kind::Weights;
  const bool last =
      p.large.layout == Layout::ChannelsLast && p.small.layout == Layout::ChannelsLast;
  // What primitives compute together.
  const int64_t unit =
      p.groups > 1 ? std::max<int64_t>(1, 16 / std::min(p.large.channels, p.small.channels)) : 16;
  const int64_t reach = (p.kernel[d] - 1) * p.dilation[d];
  // Rows of the large images begin behind the padding.
  const int64_t some = p.kind == Kind::Data ? p.padding[d] / p.stride[d] + 1 : 1;
  const int64_t least_rows = p.padding[d] > reach ? total : some;
  // In cycles of the processor, and a fourth of one for each of these.
  const double source = elements(p, p.kind == Kind::Data ? p.small : p.large);
  const double weight = static_cast<double>(p.groups * p.small.channels * p.weight_row);
  // Enough for 32 threads where there is a millisecond of work, fewer where there is less: each
  // costs some microseconds.
  constexpr double least_work = 3.5e6;
  constexpr double millisecond = 5.5e7;
  const int64_t wanted =
      p.work() >= millisecond ? 33 : static_cast<int64_t>(std::max(p.work() / least_work, 1.0));
  // What each band or chunk costs for an element of the weight: read, or summed.
  const double again = weights ? 2.5 : p.kind == Kind::Data ? 0.75 : 0.25;
  double best = -1;
  Sizes found;
  const auto consider = [&](int64_t chunk, int64_t row, int64_t block, int64_t column) {
    const int64_t n = ceil_div(p.images, chunk) * ceil_div(total, row);
    const int64_t pieces = n * ceil_div(p.channels(), block) * ceil_div(p.large.channels, column);
    const double overlap =
        static_cast<double>(row * p.stride[d] + reach) / static_cast<double>(row * p.stride[d]);
    double cost = 7000 * static_cast<double>(pieces) + source * (row < total ? overlap : 1) * 1.5;
    cost += weight * static_cast<double>(weights && n == 1 ? 0 : n) * again;
    cost += source * static_cast<double>(ceil_div(p.channels(), block)) * 0.15;
    cost *= 1 + 4 * static_cast<double>(std::max<int64_t>(0, wanted - pieces));
    if (best < 0 || cost < best) {
      best = cost;
      found = {chunk, row, block, column};
    }
  };
  const auto each = [](int64_t n, int64_t least, int64_t step, const auto& f) {
    int64_t before = 0;
    for (const int64_t parts : {1, 2, 3, 4, 5, 6, 8, 11, 17, 33}) {
      const int64_t size = std::max(least, ceil_div(ceil_div(n, parts), step) * step);
      if (size != before) {
        f(std::min(n, size));
      }
      before = size;
    }
  };
  each(p.images, weights ? 1 : ceil_div(p.images, wanted), 1, [&](int64_t chunk) {
    each(total, chunk > 1 ? total : least_rows, 1, [&](int64_t row) {
      each(p.channels(), last && !weights ? p.channels() : 1, unit, [&](int64_t block) {
        each(p.large.channels, weights && p.groups == 1 && !last ? 1 : p.large.channels, 16,
             [&](int64_t column) { consider(chunk, row, block, column); });
      });
    });
  });
  return found;
}

// How a convolution is cut: a grid of pieces.
struct Cut {
  const Piece& whole;
  Sizes sizes;
  int dim;
  int64_t chunks;  // how many of each
  int64_t bands;
  int64_t blocks;
  int64_t columns;

  Cut(const Piece& p, const Sizes& of_piece)
      : whole(p),
        sizes(of_piece),
        dim(row_dim(p)),
        chunks(ceil_div(p.images, sizes.images)),
        bands(ceil_div(p.small.size[static_cast<size_t>(dim)], sizes.rows)),
        blocks(ceil_div(p.channels(), sizes.channels)),
        columns(ceil_div(p.large.channels, sizes.others)) {}

  // Images and rows; channels of the result; other channels.
  int64_t items() const { return chunks * bands; }
  int64_t pieces() const { return items() * blocks * columns; }
  Piece piece(int64_t item, int64_t block, int64_t column) const {
    const auto [images, rows, channels, others] = sizes;
    const int64_t n = item / bands * images;
    const int64_t r = item % bands * rows;
    const Piece p =
        whole.of_images(n, std::min(n + images, whole.images))
            .of_rows(dim, r, std::min(r + rows, whole.small.size[static_cast<size_t>(dim)]))
            .of_channels(block * channels, std::min((block + 1) * channels, whole.channels()));
    return columns == 1 ? p
                        : p.of_large_channels(column * others,
                                              std::min((column + 1) * others, p.large.channels));
  }
};

// What several pieces read, in the layout that the first of them wants.
class Shared {
 public:
  explicit Shared(int64_t n) : all_(static_cast<size_t>(n)) {}
  // `piece(i)`, which of its conversions and its data for i < n.
  template <class F>
  void fill(const F& piece, Conversion Plan::* which, const auto& data) {
    parallel_for(0, static_cast<int64_t>(all_.size()), 1, [&](int64_t begin, int64_t end) {
      const OneThread one;
      for (int64_t i = begin; i < end; i++) {
        const Piece p = piece(i);
        all_[static_cast<size_t>(i)].emplace(plan_for(p).*which, data(p));
      }
    });
  }
  // The i-th where it is what a plan wants; else a copy, kept in `own`.
  const char* get(int64_t i, const Conversion& wanted, const char* data,
                  std::optional<Read>& own) const {
    if (!all_.empty()) {
      const Read& found = *all_[static_cast<size_t>(i)];
      if (found.desc() == wanted.to.desc()) {
        return found.data();
      }
    }
    return own.emplace(wanted, data).data();
  }

 private:
  std::vector<std::optional<Read>> all_;
};

// The weight of a piece as its plan wants it, kept from an earlier call; null where nothing is
// kept.
const char* kept_form(const Conv& c, const Piece& p, const Plan& plan) {
  if (c.kept == nullptr || !plan.weight.needed) {
    return nullptr;
  }
  const KeptWeight::Key key = {p.weight - static_cast<const char*>(c.weight), key_of(p)};
  return c.kept->form(key, plan.weight.to.bytes(),
                      [&](char* to) { plan.weight.run(p.weight, to); });
}

// What windows do faster than the library's kernels for AVX2, of layouts that these reorder: those
// for weights are slow where windows have gaps or depth, and the others gain by layouts of their
// own only with many channels on both sides.
const char* faster_without_avx512(const Conv& c, Kind kind, bool channels_last) {
  if (isa_level() != IsaLevel::v3 || c.dtype != kFloat32 || channels_last) {
    return nullptr;
  }
  const bool dilated = std::ranges::any_of(c.dilation, [](int64_t d) { return d > 1; });
  const bool deep = c.kernel[0] > 1;
  if (kind == Kind::Weights) {
    return dilated || deep ? "dilated or deep: windows are faster on AVX2" : nullptr;
  }
  const bool near = deep || (c.kernel[1] > 1 && c.stride[2] == 1);
  return kind == Kind::Forward && near && std::min(c.in_channels, c.out_channels) < 128
             ? "few channels: windows are faster on AVX2"
             : nullptr;
}

// What is better done otherwise, known at a glance.
const char* refusal_at_once(const Conv& c, const Piece& whole) {
  const Kind kind = whole.kind;
  if (c.dtype != kFloat32 && !contains(set_reduced, c.dtype)) {
    return "not float32, float16 or bfloat16";
  }
  if (c.dtype != kFloat32 && !native(c.dtype)) {
    return "the processor does not multiply this dtype";
  }
  if (!is_convolution_forced()) {
    const bool depthwise = c.groups > 1 && c.in_channels == 1 && c.out_channels == 1;
    // Results of few channels leave lanes idle; of depthwise ones it makes vectors all the same.
    if (!depthwise && (kind == Kind::Weights ? c.dtype == kFloat32 && c.out_channels < 16
                                             : c.out_channels < (c.groups > 1 ? 8 : 16))) {
      return "few output channels: windows are faster";
    }
    // Where windows overlap, their elements are loaded once for several taps.
    if (!depthwise && kind != Kind::Weights && c.in_channels < 8 && c.kernel[2] > c.stride[2]) {
      return "few input channels: windows are faster";
    }
    if (kind == Kind::Weights && c.dtype == kFloat32 && c.taps() > 128) {
      return "large kernels: windows are faster";
    }
    if (whole.work() < (depthwise ? 1 << 17 : 1 << 21)) {
      return "small: primitives cost more than they save";
    }
    const bool channels_last =
        whole.large.layout == Layout::ChannelsLast && whole.small.layout == Layout::ChannelsLast;
    if (const char* better = faster_without_avx512(c, kind, channels_last);
        better != nullptr && !depthwise) {
      return better;
    }
  }
  if (whole.large.layout == Layout::Other || whole.small.layout == Layout::Other) {
    return "strides";
  }
  return nullptr;
}

// How a convolution is cut; no sizes where the library has no kernel for all of it.
Sizes decide(const Piece& whole) {
  set_up();
  const Sizes sizes = choose_sizes(whole);
  const Cut cut(whole, sizes);
  const OneThread one;
  for (const int64_t item : {int64_t{0}, std::min<int64_t>(1, cut.items() - 1), cut.items() - 1}) {
    if (!plan_for(cut.piece(item, 0, 0)).fast && whole.dtype == kFloat32) {
      return {};
    }
  }
  return sizes;
}

// Kept for this thread: to decide costs as much as a small convolution.
const Sizes& sizes_for(const Piece& whole) {
  return cached<Sizes>(key_of(whole), [&] { return decide(whole); });
}

const char* refusal(const Conv& c, Kind kind) {
  const Piece whole(kind, c);
  const char* const at_once = refusal_at_once(c, whole);
  return at_once != nullptr             ? at_once
         : sizes_for(whole).images == 0 ? "the library has no kernel for this"
                                        : nullptr;
}

}  // namespace

const char* convolve_refusal(const Conv& c) {
  if (c.transposed && c.bias != nullptr) {
    return "transposed with a bias";
  }
  return refusal(c, c.transposed ? Kind::Data : Kind::Forward);
}

void convolve(const Conv& c) {
  const Piece whole(c.transposed ? Kind::Data : Kind::Forward, c);
  const bool forward = whole.kind == Kind::Forward;
  const Cut cut(whole, sizes_for(whole));
  Shared weights(c.kept != nullptr ? 0 : cut.blocks);
  Shared sources(cut.blocks > 1 && whole.groups == 1 ? cut.items() : 0);
  weights.fill([&](int64_t i) { return cut.piece(0, i, 0); }, &Plan::weight,
               [](const Piece& p) { return p.weight; });
  sources.fill([&](int64_t i) { return cut.piece(i, 0, 0); }, forward ? &Plan::large : &Plan::small,
               [&](const Piece& p) { return forward ? p.large.data : p.small.data; });
  parallel_for(0, cut.pieces(), 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t t = begin; t < end; t++) {
      const int64_t item = t % cut.items();
      const int64_t block = t / cut.items();
      const Piece p = cut.piece(item, block, 0);
      const Plan& plan = plan_for(p);
      std::optional<Read> own_weight;
      std::optional<Read> own_source;
      const char* const kept = kept_form(c, p, plan);
      const Argument weight = {
          DNNL_ARG_WEIGHTS, plan.weight.to,
          kept != nullptr ? kept : weights.get(block, plan.weight, p.weight, own_weight)};
      if (forward) {
        const char* source = sources.get(item, plan.large, p.large.data, own_source);
        const Written result(plan.small, p.small.data);
        const Argument from = {DNNL_ARG_SRC, plan.large.to, source};
        const Argument to = {DNNL_ARG_DST, plan.small.from, result.data()};
        if (p.bias == nullptr) {
          execute(plan.primitive, plan.scratchpad, {weight, from, to});
        } else {
          execute(plan.primitive, plan.scratchpad,
                  {weight, from, to, {DNNL_ARG_BIAS, plan.bias, p.bias}});
        }
        result.finish();
      } else {
        const char* source = sources.get(item, plan.small, p.small.data, own_source);
        const Written result(plan.large, p.large.data);
        execute(plan.primitive, plan.scratchpad,
                {weight,
                 {DNNL_ARG_DIFF_DST, plan.small.to, source},
                 {DNNL_ARG_DIFF_SRC, plan.large.from, result.data()}});
        result.finish();
      }
    }
  });
}

const char* convolve_weight_backward_refusal(const Conv& c) { return refusal(c, Kind::Weights); }

void convolve_weight_backward(const Conv& c) {
  const Piece whole(Kind::Weights, c);
  const Cut cut(whole, sizes_for(whole));
  const int64_t size = c.groups * c.out_channels * whole.weight_row;
  const bool several = cut.items() > 1;
  const int64_t sources = cut.items() * cut.columns;
  Shared images(cut.blocks > 1 && whole.groups == 1 ? sources : 0);
  images.fill([&](int64_t i) { return cut.piece(i / cut.columns, 0, i % cut.columns); },
              &Plan::large, [](const Piece& p) { return p.large.data; });
  const Scratch<float> sums(several ? cut.items() * size : 0);
  parallel_for(0, cut.pieces(), 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t t = begin; t < end; t++) {
      const int64_t source = t % sources;
      const int64_t item = source / cut.columns;
      const Piece p = cut.piece(item, t / sources, source % cut.columns);
      const Plan& plan = plan_for(p);
      std::optional<Read> own;
      const char* large = images.get(source, plan.large, p.large.data, own);
      const Read small(plan.small, p.small.data);
      const int64_t at = (p.weight - whole.weight) / itemsize(c.dtype);
      const Conversion& conversion = several ? plan.sums : plan.weight;
      const Written weight(conversion,
                           several ? static_cast<void*>(sums + item * size + at) : p.weight);
      execute(plan.primitive, plan.scratchpad,
              {{DNNL_ARG_SRC, plan.large.to, large},
               {DNNL_ARG_DIFF_DST, plan.small.to, small.data()},
               {DNNL_ARG_DIFF_WEIGHTS, conversion.from, weight.data()}});
      weight.finish();
    }
  });
  if (!several) {
    return;
  }
  visit_dtype<set_Float | set_reduced>("convolution_weight_backward", c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(c.weight);
    parallel_for(0, size, 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float sum = sums[i];
        for (int64_t k = 1; k < cut.items(); k++) {
          sum += sums[k * size + i];
        }
        to[i] = T(sum);
      }
    });
  });
}

}  // namespace rushlight::cpu::onednn

#endif
