// Convolutions by oneDNN, parallel over chunks of images that depend on the problem alone. Each
// chunk runs on one thread: images are reordered into the layout that the primitive asks for, and
// back; channels-last images are taken as they are. The weight's gradient is summed over the chunks
// in order.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <algorithm>
#include <memory>

#include "cpu/onednn_common.h"

namespace rushlight::cpu::onednn {
namespace {

using dnnl::memory;

enum class Kind : int64_t { Forward, Data, Weights };

// A convolution between a large image (the input of an ordinary one) and a small one (its output).
struct Geometry {
  Kind kind;
  const Conv& c;
  Images large;
  Images small;
  int64_t large_channels;  // of one group
  int64_t small_channels;
  Dims3 large_size;
  Dims3 small_size;

  Geometry(Kind k, const Conv& conv)
      : kind(k),
        c(conv),
        large(conv.transposed ? conv.output : conv.input),
        small(conv.transposed ? conv.input : conv.output),
        large_channels(conv.transposed ? conv.out_channels : conv.in_channels),
        small_channels(conv.transposed ? conv.in_channels : conv.out_channels),
        large_size(conv.transposed ? conv.out : conv.in),
        small_size(conv.transposed ? conv.in : conv.out) {}
};

enum class Layout : int64_t { Other, Plain, ChannelsLast };

Layout layout_of(const Images& x, int64_t channels, const Dims3& size) {
  const auto& s = x.strides;
  const int64_t area = size[1] * size[2];
  const auto is = [](int64_t stride, int64_t wanted, int64_t n) {
    return n == 1 || stride == wanted;
  };
  if (is(s[4], 1, size[2]) && is(s[3], size[2], size[1]) && is(s[2], area, size[0]) &&
      is(s[1], area * size[0], channels) && s[0] >= channels * area * size[0]) {
    return Layout::Plain;
  }
  if (is(s[1], 1, channels) && is(s[4], channels, size[2]) &&
      is(s[3], size[2] * channels, size[1]) && is(s[2], area * channels, size[0]) &&
      s[0] >= channels * area * size[0]) {
    return Layout::ChannelsLast;
  }
  return Layout::Other;
}

// Descriptions leave out the leading dimensions that are 1, but for the height.
struct Described {
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
  bool channels_last;
};

Described describe(const Geometry& g, int64_t images, memory::data_type weight_type) {
  const Conv& c = g.c;
  Described d;
  const int first = g.large_size[0] == 1 && g.small_size[0] == 1 && c.kernel[0] == 1 ? 1 : 0;
  d.large = {images, c.groups * g.large_channels};
  d.small = {images, c.groups * g.small_channels};
  d.weight = c.groups > 1 ? memory::dims{c.groups, g.small_channels, g.large_channels}
                          : memory::dims{g.small_channels, g.large_channels};
  for (int i = first; i < 3; i++) {
    d.large.push_back(g.large_size[i]);
    d.small.push_back(g.small_size[i]);
    d.weight.push_back(c.kernel[i]);
    d.stride.push_back(c.stride[i]);
    d.dilation.push_back(c.dilation[i] - 1);
    d.before.push_back(c.padding[i]);
    // What the windows reach behind the image: less than the padding, or less than nothing.
    d.after.push_back((g.small_size[i] - 1) * c.stride[i] + (c.kernel[i] - 1) * c.dilation[i] + 1 -
                      g.large_size[i] - c.padding[i]);
  }
  const auto strides = [&](const Images& x, const Dims3& size, int64_t channels) {
    memory::dims s = {x.strides[0], x.strides[1]};
    for (int i = first; i < 3; i++) {
      s.push_back(x.strides[2 + i]);
    }
    // Strides of dimensions of size 1 are settled as if they were dense.
    const Layout layout = layout_of(x, channels, size);
    int64_t inner = layout == Layout::ChannelsLast ? channels : 1;
    for (int i = 2; i >= first; i--) {
      s[static_cast<size_t>(2 + i - first)] = inner;
      inner *= size[i];
    }
    s[1] = layout == Layout::ChannelsLast ? 1 : inner;
    return s;
  };
  const memory::data_type type = data_type(c.dtype);
  d.user_large =
      memory::desc(d.large, type, strides(g.large, g.large_size, c.groups * g.large_channels));
  d.user_small =
      memory::desc(d.small, type, strides(g.small, g.small_size, c.groups * g.small_channels));
  memory::dims dense(d.weight.size());
  int64_t step = 1;
  for (size_t i = dense.size(); i-- > 0;) {
    dense[i] = step;
    step *= d.weight[i];
  }
  d.user_weight = memory::desc(d.weight, weight_type, dense);
  d.channels_last =
      layout_of(g.large, c.groups * g.large_channels, g.large_size) == Layout::ChannelsLast &&
      layout_of(g.small, c.groups * g.small_channels, g.small_size) == Layout::ChannelsLast;
  return d;
}

// A primitive for a number of images, with the layouts that it wants.
struct Plan {
  Described user;
  memory::desc large;
  memory::desc small;
  memory::desc weight;
  memory::desc scratchpad;
  dnnl::primitive primitive;
};

memory::desc any(const memory::dims& dims, memory::data_type type) {
  return memory::desc(dims, type, memory::format_tag::any);
}

Plan make_plan(const Geometry& g, int64_t images) {
  const memory::data_type type = data_type(g.c.dtype);
  // Weight gradients of 16-bit images are summed in float32.
  const memory::data_type weight_type = g.kind == Kind::Weights ? memory::data_type::f32 : type;
  Plan p;
  p.user = describe(g, images, weight_type);
  const Described& d = p.user;
  const memory::desc large = d.channels_last ? d.user_large : any(d.large, type);
  const memory::desc small = d.channels_last ? d.user_small : any(d.small, type);
  const memory::desc weight = any(d.weight, weight_type);
  const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
  const dnnl::engine& engine = cpu_engine();
  const dnnl::primitive_attr attributes = own_scratchpad();
  const memory::desc bias({g.c.groups * g.small_channels}, type, memory::format_tag::a);
  const auto forward = [&](const memory::desc& w) {
    using Forward = dnnl::convolution_forward::primitive_desc;
    const dnnl::prop_kind kind = dnnl::prop_kind::forward_training;
    return g.kind == Kind::Forward && g.c.bias != nullptr
               ? Forward(engine, kind, direct, large, w, bias, small, d.stride, d.dilation,
                         d.before, d.after, attributes)
               : Forward(engine, kind, direct, large, w, small, d.stride, d.dilation, d.before,
                         d.after, attributes);
  };
  if (g.kind == Kind::Forward) {
    const auto pd = forward(weight);
    p.large = pd.src_desc();
    p.small = pd.dst_desc();
    p.weight = pd.weights_desc();
    p.scratchpad = pd.scratchpad_desc();
    p.primitive = dnnl::convolution_forward(pd);
  } else if (g.kind == Kind::Data) {
    const dnnl::convolution_backward_data::primitive_desc pd(engine, direct, large, weight, small,
                                                             d.stride, d.dilation, d.before,
                                                             d.after, forward(weight), attributes);
    p.large = pd.diff_src_desc();
    p.small = pd.diff_dst_desc();
    p.weight = pd.weights_desc();
    p.scratchpad = pd.scratchpad_desc();
    p.primitive = dnnl::convolution_backward_data(pd);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc pd(
        engine, direct, large, weight, small, d.stride, d.dilation, d.before, d.after,
        forward(any(d.weight, type)), attributes);
    p.large = pd.src_desc();
    p.small = pd.diff_dst_desc();
    p.weight = pd.diff_weights_desc();
    p.scratchpad = pd.scratchpad_desc();
    p.primitive = dnnl::convolution_backward_weights(pd);
  }
  return p;
}

Plan& plan_for(const Geometry& g, int64_t images) {
  const Conv& c = g.c;
  std::array<int64_t, 32> key = {};
  size_t n = 0;
  const auto put = [&](int64_t x) { key[n++] = x; };
  put(static_cast<int64_t>(g.kind));
  put(static_cast<int64_t>(c.dtype));
  put(images);
  put(c.groups);
  put(g.large_channels);
  put(g.small_channels);
  put(c.bias != nullptr);
  put(static_cast<int64_t>(layout_of(g.large, c.groups * g.large_channels, g.large_size)));
  put(static_cast<int64_t>(layout_of(g.small, c.groups * g.small_channels, g.small_size)));
  put(g.large.strides[0]);
  put(g.small.strides[0]);
  for (const Dims3* dims :
       {&g.large_size, &g.small_size, &c.kernel, &c.stride, &c.padding, &c.dilation}) {
    for (const int64_t x : *dims) {
      put(x);
    }
  }
  return cached<Plan>(key, [&] { return make_plan(g, images); });
}

// Converts between two layouts of one thing.
void reorder(const memory& from, const memory& to) {
  dnnl::reorder::primitive_desc pd(cpu_engine(), from.get_desc(), cpu_engine(), to.get_desc(),
                                   own_scratchpad());
  const Block scratchpad(pd.scratchpad_desc());
  memory source = from;
  memory target = to;
  dnnl::reorder(pd).execute(
      cpu_stream(),
      {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}, {DNNL_ARG_SCRATCHPAD, scratchpad.memory}});
}

// A user's memory in the layout that a primitive wants: itself where it has it, else a copy.
class Adapted {
 public:
  Adapted(const memory::desc& user, void* data, const memory::desc& wanted)
      : user_(user, cpu_engine(), data), same_(user == wanted) {
    if (!same_) {
      block_ = std::make_unique<Block>(wanted);
    }
  }
  const memory& get() const { return same_ ? user_ : block_->memory; }
  const memory& read() const {
    if (!same_) {
      reorder(user_, block_->memory);
    }
    return get();
  }
  void write() const {
    if (!same_) {
      reorder(block_->memory, user_);
    }
  }

 private:
  memory user_;
  bool same_;
  std::unique_ptr<Block> block_;
};

void* image_at(const Images& x, int64_t n, ScalarType dtype) {
  return static_cast<char*>(x.data) + n * x.strides[0] * itemsize(dtype);
}

const char* refusal(const Conv& c) {
  if (c.dtype != kFloat32 && !contains(set_reduced, c.dtype)) {
    return "not float32, float16 or bfloat16";
  }
  if (c.dtype != kFloat32 && !native(c.dtype)) {
    return "the processor does not multiply this dtype";
  }
  if (c.batch < 2) {
    return "one image: no chunks";
  }
  if (c.batch * c.pixels() * c.groups * c.out_channels * c.in_channels * c.taps() <
      (int64_t{1} << 22)) {
    return "small: primitives cost more than they save";
  }
  const Geometry g(Kind::Forward, c);
  if (layout_of(g.large, c.groups * g.large_channels, g.large_size) == Layout::Other ||
      layout_of(g.small, c.groups * g.small_channels, g.small_size) == Layout::Other) {
    return "strides";
  }
  set_up();
  return nullptr;
}

int64_t images_of_chunk(const Conv& c, int64_t chunks) { return (c.batch + chunks - 1) / chunks; }

}  // namespace

const char* convolve_refusal(const Conv& c) {
  if (c.transposed && c.bias != nullptr) {
    return "transposed with a bias";
  }
  if (c.groups == 1 && c.out_channels < 16) {
    return "few output channels: windows are faster";
  }
  return refusal(c);
}

void convolve(const Conv& c) {
  const Geometry g(c.transposed ? Kind::Data : Kind::Forward, c);
  const int64_t images = images_of_chunk(c, 16);
  // The weight is brought into the primitive's layout once, for all chunks of the usual size.
  std::unique_ptr<Block> shared;
  {
    const OneThread one;
    const Plan& plan = plan_for(g, images);
    if (!(plan.weight == plan.user.user_weight)) {
      shared = std::make_unique<Block>(plan.weight);
      reorder(memory(plan.user.user_weight, cpu_engine(), c.weight), shared->memory);
    }
  }
  parallel_for(0, c.batch, images, [&](int64_t begin, int64_t end) {
    const OneThread one;
    const Plan& plan = plan_for(g, end - begin);
    const Adapted large(plan.user.user_large, image_at(g.large, begin, c.dtype), plan.large);
    const Adapted small(plan.user.user_small, image_at(g.small, begin, c.dtype), plan.small);
    const Adapted own(plan.user.user_weight, c.weight, plan.weight);
    const bool share = shared && shared->memory.get_desc() == plan.weight;
    const memory weight = share ? shared->memory : own.read();
    const Block scratchpad(plan.scratchpad);
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_WEIGHTS, weight},
                                                 {DNNL_ARG_SCRATCHPAD, scratchpad.memory}};
    if (g.kind == Kind::Forward) {
      arguments.insert({{DNNL_ARG_SRC, large.read()}, {DNNL_ARG_DST, small.get()}});
      if (c.bias != nullptr) {
        const memory::desc bias({c.groups * c.out_channels}, data_type(c.dtype),
                                memory::format_tag::a);
        arguments.insert({DNNL_ARG_BIAS, memory(bias, cpu_engine(), const_cast<void*>(c.bias))});
      }
      plan.primitive.execute(cpu_stream(), arguments);
      small.write();
    } else {
      arguments.insert({{DNNL_ARG_DIFF_DST, small.read()}, {DNNL_ARG_DIFF_SRC, large.get()}});
      plan.primitive.execute(cpu_stream(), arguments);
      large.write();
    }
  });
}

const char* convolve_weight_backward_refusal(const Conv& c) { return refusal(c); }

void convolve_weight_backward(const Conv& c) {
  const Geometry g(Kind::Weights, c);
  const int64_t size = c.groups * c.out_channels * c.in_channels * c.taps();
  // Each chunk has a sum of its own: few chunks where they are large.
  const int64_t chunks = std::clamp<int64_t>((int64_t{1} << 22) / size, 2, 16);
  const int64_t images = images_of_chunk(c, chunks);
  const int64_t count = num_chunks(0, c.batch, images);
  const Scratch<float> sums(count * size);
  parallel_for(0, c.batch, images, [&](int64_t begin, int64_t end) {
    const OneThread one;
    const Plan& plan = plan_for(g, end - begin);
    const Adapted large(plan.user.user_large, image_at(g.large, begin, c.dtype), plan.large);
    const Adapted small(plan.user.user_small, image_at(g.small, begin, c.dtype), plan.small);
    const Adapted weight(plan.user.user_weight, sums + begin / images * size, plan.weight);
    const Block scratchpad(plan.scratchpad);
    plan.primitive.execute(cpu_stream(), {{DNNL_ARG_SRC, large.read()},
                                          {DNNL_ARG_DIFF_DST, small.read()},
                                          {DNNL_ARG_DIFF_WEIGHTS, weight.get()},
                                          {DNNL_ARG_SCRATCHPAD, scratchpad.memory}});
    weight.write();
  });
  visit_dtype<set_Float | set_reduced>("convolution_weight_backward", c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(c.weight);
    parallel_for(0, size, 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float sum = sums[i];
        for (int64_t k = 1; k < count; k++) {
          sum += sums[k * size + i];
        }
        to[i] = T(sum);
      }
    });
  });
}

}  // namespace rushlight::cpu::onednn

#endif
