// The pieces of a convolution (onednn_conv.h), their descriptions, and oneDNN's primitives for
// them.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <algorithm>

#include "cpu/onednn_conv.h"

namespace rushlight::cpu::onednn {
namespace {

using dnnl::memory;

// Strides of dimensions of one element become those of dense images.
Side layout_of_images(const Images& x, int64_t images, int64_t groups, int64_t channels,
                      const Dims3& size) {
  const int64_t all = groups * channels;
  const int64_t area = size[0] * size[1] * size[2];
  const auto matches = [&](const std::array<int64_t, 5>& dense) {
    const Dims3 sizes = size;
    bool same = all == 1 || x.strides[1] == dense[1];
    for (size_t d = 0; d < 3; d++) {
      same &= sizes[d] == 1 || x.strides[2 + d] == dense[2 + d];
    }
    return same && (images == 1 || x.strides[0] >= all * area);
  };
  const int64_t first = images == 1 ? all * area : x.strides[0];
  const std::array<int64_t, 5> plain = {first, area, size[1] * size[2], size[2], 1};
  const std::array<int64_t, 5> last = {first, 1, size[1] * size[2] * all, size[2] * all, all};
  char* data = static_cast<char*>(x.data);
  if (matches(plain)) {
    return {data, plain, channels, size, Layout::Plain};
  }
  if (matches(last)) {
    return {data, last, channels, size, Layout::ChannelsLast};
  }
  return {data, x.strides, channels, size, Layout::Other};
}

// Descriptions leave out the leading dimensions that are 1, but for the height.
struct Descriptors {
  memory::dims large;
  memory::dims small;
  memory::dims weight;
  memory::dims stride;
  memory::dims dilation;
  memory::dims before;
  memory::dims after;
  memory::desc user_large;
  memory::desc user_small;
  memory::desc user_weight;
  memory::desc sums;  // of a weight's gradient
  bool channels_last;
};

Descriptors describe(const Piece& p) {
  Descriptors d;
  const int first = p.large.size[0] == 1 && p.small.size[0] == 1 && p.kernel[0] == 1 ? 1 : 0;
  d.large = {p.images, p.groups * p.large.channels};
  d.small = {p.images, p.groups * p.small.channels};
  d.weight = {p.small.channels, p.large.channels};
  memory::dims weight = {p.weight_row, p.taps()};
  if (p.groups > 1) {
    d.weight.insert(d.weight.begin(), p.groups);
    weight.insert(weight.begin(), p.small.channels * p.weight_row);
  }
  int64_t step = p.taps();
  memory::dims large = {p.large.strides[0], p.large.strides[1]};
  memory::dims small = {p.small.strides[0], p.small.strides[1]};
  for (int i = first; i < 3; i++) {
    const auto at = static_cast<size_t>(i);
    large.push_back(p.large.strides[2 + at]);
    small.push_back(p.small.strides[2 + at]);
    d.large.push_back(p.large.size[at]);
    d.small.push_back(p.small.size[at]);
    d.weight.push_back(p.kernel[at]);
    step /= p.kernel[at];
    weight.push_back(step);
    d.stride.push_back(p.stride[at]);
    d.dilation.push_back(p.dilation[at] - 1);
    d.before.push_back(p.padding[at]);
    // What the windows reach behind the image: less than the padding, or less than nothing.
    d.after.push_back((p.small.size[at] - 1) * p.stride[at] + (p.kernel[at] - 1) * p.dilation[at] +
                      1 - p.large.size[at] - p.padding[at]);
  }
  const memory::data_type type = data_type(p.dtype);
  d.user_large = memory::desc(d.large, type, large);
  d.user_small = memory::desc(d.small, type, small);
  d.user_weight = memory::desc(d.weight, type, weight);
  d.sums = memory::desc(d.weight, memory::data_type::f32, weight);
  d.channels_last =
      p.large.layout == Layout::ChannelsLast && p.small.layout == Layout::ChannelsLast;
  return d;
}

Plan make_plan(const Piece& piece) {
  const memory::data_type type = data_type(piece.dtype);
  // Weight gradients of 16-bit images are summed in float32.
  const memory::data_type weight_type = piece.kind == Kind::Weights ? memory::data_type::f32 : type;
  Plan p;
  const Descriptors d = describe(piece);
  const auto any = [](const memory::dims& dims, memory::data_type t) {
    return memory::desc(dims, t, memory::format_tag::any);
  };
  const auto layout = [&](const memory::desc& user, const memory::dims& dims, const Side& side) {
    if (!d.channels_last) {
      return any(dims, type);
    }
    // Some of the channels are copied into an order of their own.
    using Tag = memory::format_tag;
    return side.strides[4] == piece.groups * side.channels
               ? user
               : memory::desc(dims, type, dims.size() == 5 ? Tag::ndhwc : Tag::nhwc);
  };
  const memory::desc large = layout(d.user_large, d.large, piece.large);
  const memory::desc small = layout(d.user_small, d.small, piece.small);
  const memory::desc weight = any(d.weight, weight_type);
  const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
  const dnnl::engine& engine = cpu_engine();
  const dnnl::primitive_attr attributes = own_scratchpad();
  const memory::desc bias({d.small[1]}, type, memory::format_tag::a);
  p.bias = Place(bias);
  const auto forward = [&](const memory::desc& w) {
    using Forward = dnnl::convolution_forward::primitive_desc;
    const dnnl::prop_kind kind = dnnl::prop_kind::forward_training;
    return piece.kind == Kind::Forward && piece.bias != nullptr
               ? Forward(engine, kind, direct, large, w, bias, small, d.stride, d.dilation,
                         d.before, d.after, attributes)
               : Forward(engine, kind, direct, large, w, small, d.stride, d.dilation, d.before,
                         d.after, attributes);
  };
  const auto keep = [&](const auto& pd) {
    const std::string name = pd.impl_info_str();
    const bool depthwise =
        piece.groups > 1 && piece.large.channels == 1 && piece.small.channels == 1;
    p.fast = depthwise ? name.find("dw") != std::string::npos
                       : name.rfind("ref", 0) != 0 && name.rfind("gemm", 0) != 0;
    p.scratchpad = Place(pd.scratchpad_desc());
  };
  if (piece.kind == Kind::Forward) {
    const auto pd = forward(weight);
    p.large = Conversion(d.user_large, pd.src_desc());
    p.small = Conversion(pd.dst_desc(), d.user_small);
    p.weight = Conversion(d.user_weight, pd.weights_desc());
    keep(pd);
    p.primitive = dnnl::convolution_forward(pd);
  } else if (piece.kind == Kind::Data) {
    const dnnl::convolution_backward_data::primitive_desc pd(engine, direct, large, weight, small,
                                                             d.stride, d.dilation, d.before,
                                                             d.after, forward(weight), attributes);
    p.large = Conversion(pd.diff_src_desc(), d.user_large);
    p.small = Conversion(d.user_small, pd.diff_dst_desc());
    p.weight = Conversion(d.user_weight, pd.weights_desc());
    keep(pd);
    p.primitive = dnnl::convolution_backward_data(pd);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc pd(
        engine, direct, large, weight, small, d.stride, d.dilation, d.before, d.after,
        forward(any(d.weight, type)), attributes);
    p.large = Conversion(d.user_large, pd.src_desc());
    p.small = Conversion(d.user_small, pd.diff_dst_desc());
    p.weight = Conversion(pd.diff_weights_desc(), d.user_weight);
    p.sums = Conversion(pd.diff_weights_desc(), d.sums);
    keep(pd);
    p.primitive = dnnl::convolution_backward_weights(pd);
  }
  return p;
}

int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

}  // namespace

Piece::Piece(Kind k, const Conv& c)
    : kind(k),
      dtype(c.dtype),
      images(c.batch),
      groups(c.groups),
      large(layout_of_images(c.transposed ? c.output : c.input, c.batch, c.groups,
                             c.transposed ? c.out_channels : c.in_channels,
                             c.transposed ? c.out : c.in)),
      small(layout_of_images(c.transposed ? c.input : c.output, c.batch, c.groups,
                             c.transposed ? c.in_channels : c.out_channels,
                             c.transposed ? c.in : c.out)),
      kernel(c.kernel),
      stride(c.stride),
      padding(c.padding),
      dilation(c.dilation),
      weight(static_cast<char*>(c.weight)),
      weight_row(large.channels * c.taps()),
      bias(static_cast<const char*>(c.bias)) {}

double Piece::work() const {
  double product = static_cast<double>(images * groups) * static_cast<double>(small.channels);
  product *= static_cast<double>(large.channels * taps());
  for (const int64_t n : small.size) {
    product *= static_cast<double>(n);
  }
  return product;
}

int64_t Piece::channels() const {
  return groups > 1 ? groups : kind == Kind::Data ? large.channels : small.channels;
}

Piece Piece::of_channels(int64_t from, int64_t to) const {
  Piece p = *this;
  if (groups > 1) {
    p.groups = to - from;
    p.large.data += bytes(from * large.channels * large.strides[1]);
    p.small.data += bytes(from * small.channels * small.strides[1]);
    p.weight += bytes(from * small.channels * weight_row);
    p.bias += bias == nullptr ? 0 : bytes(from * small.channels);
  } else if (kind == Kind::Data) {
    return of_large_channels(from, to);
  } else {
    p.small.channels = to - from;
    p.small.data += bytes(from * small.strides[1]);
    p.weight += bytes(from * weight_row);
    p.bias += bias == nullptr ? 0 : bytes(from);
  }
  return p;
}

Piece Piece::of_large_channels(int64_t from, int64_t to) const {
  Piece p = *this;
  p.large.channels = to - from;
  p.large.data += bytes(from * large.strides[1]);
  p.weight += bytes(from * taps());
  return p;
}

Piece Piece::of_images(int64_t from, int64_t to) const {
  Piece p = *this;
  p.images = to - from;
  p.large.data += bytes(from * large.strides[0]);
  p.small.data += bytes(from * small.strides[0]);
  return p;
}

Piece Piece::of_rows(int dim, int64_t from, int64_t to) const {
  const auto d = static_cast<size_t>(dim);
  const int64_t rows = small.size[d];
  if (from == 0 && to == rows) {
    return *this;
  }
  const int64_t reach = (kernel[d] - 1) * dilation[d];
  int64_t l0;
  int64_t l1;
  int64_t s0 = from;
  int64_t s1 = to;
  if (kind == Kind::Data) {
    // These rows of the large images, and all windows that reach into them.
    l0 = from == 0 ? 0 : from * stride[d] - padding[d];
    l1 = to == rows ? large.size[d] : to * stride[d] - padding[d];
    s0 = std::max<int64_t>(0, ceil_div(l0 + padding[d] - reach, stride[d]));
    s1 = std::min(rows, (l1 - 1 + padding[d]) / stride[d] + 1);
  } else {
    l0 = std::max<int64_t>(0, from * stride[d] - padding[d]);
    l1 = std::min(large.size[d], (to - 1) * stride[d] - padding[d] + reach + 1);
  }
  Piece p = *this;
  p.padding[d] = l0 + padding[d] - s0 * stride[d];
  const auto narrow = [&](Side& side, int64_t begin, int64_t end) {
    side.data += bytes(begin * side.strides[2 + d]);
    side.size[d] = end - begin;
    if (images == 1) {  // dense
      side.strides[0] = groups * side.channels * side.size[0] * side.size[1] * side.size[2];
    }
  };
  narrow(p.large, l0, l1);
  narrow(p.small, s0, s1);
  return p;
}

void execute(const dnnl::primitive& primitive, const Place& scratchpad,
             std::initializer_list<Argument> arguments) {
  const Scratch<char> working(scratchpad.bytes());
  dnnl_exec_arg_t all[8];
  int n = 0;
  for (const Argument& a : arguments) {
    all[n++] = {a.name, a.place.at(a.data)};
  }
  all[n++] = {DNNL_ARG_SCRATCHPAD, scratchpad.at(working.data())};
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), cpu_stream().get(), n, all),
                          "could not execute a primitive");
}

Conversion::Conversion(const memory::desc& source, const memory::desc& target)
    : from(source), to(target), needed(source != target) {
  if (needed) {
    const dnnl::reorder::primitive_desc pd(cpu_engine(), source, cpu_engine(), target,
                                           own_scratchpad());
    scratchpad = Place(pd.scratchpad_desc());
    primitive = dnnl::reorder(pd);
  }
}

void Conversion::run(const void* source, void* target) const {
  execute(primitive, scratchpad, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
}

PieceKey key_of(const Piece& p) {
  PieceKey key = {};
  size_t n = 0;
  const auto put = [&](int64_t x) { key[n++] = x; };
  put(static_cast<int64_t>(p.kind));
  put(static_cast<int64_t>(p.dtype));
  put(p.images);
  put(p.groups);
  put(p.bias != nullptr);
  put(p.weight_row);
  for (const Side* side : {&p.large, &p.small}) {
    put(side->channels);
    put(static_cast<int64_t>(side->layout));
    for (const int64_t x : side->strides) {
      put(x);
    }
    for (const int64_t x : side->size) {
      put(x);
    }
  }
  for (const Dims3* dims : {&p.kernel, &p.stride, &p.padding, &p.dilation}) {
    for (const int64_t x : *dims) {
      put(x);
    }
  }
  return key;
}

const Plan& plan_for(const Piece& p) {
  return cached<Plan>(key_of(p), [&] { return make_plan(p); });
}

}  // namespace rushlight::cpu::onednn

#endif
