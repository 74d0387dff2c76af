// Convolutions by oneDNN, parallel over chunks that depend on the problem alone; each chunk runs on
// one thread. Images are brought into the layout that the primitive asks for, and back;
// channels-last images are taken as they are. Results and gradients of the input are cut into
// chunks of images. Gradients of the weight are cut into blocks of its output channels, which are
// independent; where these are few, into images, too, whose sums are added in order.
#include "cpu/onednn.h"

#ifdef RL_HAVE_DNNL

#include <algorithm>
#include <optional>

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
  int64_t part;  // of the small channels of all groups: what one primitive works on
  Dims3 large_size;
  Dims3 small_size;

  Geometry(Kind k, const Conv& conv)
      : kind(k),
        c(conv),
        large(conv.transposed ? conv.output : conv.input),
        small(conv.transposed ? conv.input : conv.output),
        large_channels(conv.transposed ? conv.out_channels : conv.in_channels),
        small_channels(conv.transposed ? conv.in_channels : conv.out_channels),
        part(conv.groups * small_channels),
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
  memory::desc sums;  // of a weight's gradient
  bool channels_last;
};

Described describe(const Geometry& g, int64_t images) {
  const Conv& c = g.c;
  Described d;
  const int first = g.large_size[0] == 1 && g.small_size[0] == 1 && c.kernel[0] == 1 ? 1 : 0;
  d.large = {images, c.groups * g.large_channels};
  d.small = {images, g.part};
  d.weight = c.groups > 1 ? memory::dims{c.groups, g.small_channels, g.large_channels}
                          : memory::dims{g.part, g.large_channels};
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
    // Strides of dimensions of size 1 are set as if they were dense.
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
  d.user_weight = memory::desc(d.weight, type, dense);
  d.sums = memory::desc(d.weight, memory::data_type::f32, dense);
  d.channels_last =
      layout_of(g.large, c.groups * g.large_channels, g.large_size) == Layout::ChannelsLast &&
      layout_of(g.small, c.groups * g.small_channels, g.small_size) == Layout::ChannelsLast;
  return d;
}

// A conversion between two layouts of one thing, made once. Making one costs microseconds.
struct Conversion {
  memory::desc from;
  memory::desc to;
  memory::desc scratchpad;
  dnnl::reorder primitive;
  bool needed = false;

  Conversion() = default;
  Conversion(const memory::desc& source, const memory::desc& target)
      : from(source), to(target), needed(source != target) {
    if (needed) {
      const dnnl::reorder::primitive_desc pd(cpu_engine(), from, cpu_engine(), to,
                                             own_scratchpad());
      scratchpad = pd.scratchpad_desc();
      primitive = dnnl::reorder(pd);
    }
  }
  void run(void* source, void* target) const {
    const Block working(scratchpad);
    primitive.execute(cpu_stream(), {{DNNL_ARG_FROM, memory(from, cpu_engine(), source)},
                                     {DNNL_ARG_TO, memory(to, cpu_engine(), target)},
                                     {DNNL_ARG_SCRATCHPAD, working.memory}});
  }
};

// What a primitive reads: the user's memory, or a copy in the layout that it wants.
class Read {
 public:
  Read(const Conversion& conversion, void* data) : memory_(conversion.to, cpu_engine(), data) {
    if (conversion.needed) {
      block_.emplace(conversion.to);
      conversion.run(data, block_->memory.get_data_handle());
      memory_ = block_->memory;
    }
  }
  const memory& get() const { return memory_; }

 private:
  memory memory_;
  std::optional<Block> block_;
};

// What a primitive writes; `finish` puts it where the user wants it.
class Written {
 public:
  Written(const Conversion& conversion, void* data)
      : conversion_(conversion), data_(data), memory_(conversion.from, cpu_engine(), data) {
    if (conversion.needed) {
      block_.emplace(conversion.from);
      memory_ = block_->memory;
    }
  }
  const memory& get() const { return memory_; }
  void finish() const {
    if (conversion_.needed) {
      conversion_.run(memory_.get_data_handle(), data_);
    }
  }

 private:
  const Conversion& conversion_;
  void* data_;
  memory memory_;
  std::optional<Block> block_;
};

// A primitive for a number of images and small channels, and the ways between the layouts that it
// wants and the user's: from the user's for what it reads, to the user's for what it writes.
struct Plan {
  Described user;
  memory::desc scratchpad;
  dnnl::primitive primitive;
  Conversion large;
  Conversion small;
  Conversion weight;
  Conversion sums;   // as weight, to float32
  Conversion image;  // as large, for one image of the batch
};

memory::desc any(const memory::dims& dims, memory::data_type type) {
  return memory::desc(dims, type, memory::format_tag::any);
}

Plan make_plan(const Geometry& g, int64_t images) {
  const memory::data_type type = data_type(g.c.dtype);
  // Weight gradients of 16-bit images are summed in float32.
  const memory::data_type weight_type = g.kind == Kind::Weights ? memory::data_type::f32 : type;
  Plan p;
  p.user = describe(g, images);
  const Described& d = p.user;
  const auto layout = [&](const memory::desc& user, const memory::dims& dims, bool whole) {
    if (!d.channels_last) {
      return any(dims, type);
    }
    using Tag = memory::format_tag;
    return whole ? user : memory::desc(dims, type, dims.size() == 5 ? Tag::ndhwc : Tag::nhwc);
  };
  const memory::desc large = layout(d.user_large, d.large, true);
  const memory::desc small = layout(d.user_small, d.small, g.part == g.c.groups * g.small_channels);
  const memory::desc weight = any(d.weight, weight_type);
  const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
  const dnnl::engine& engine = cpu_engine();
  const dnnl::primitive_attr attributes = own_scratchpad();
  const memory::desc bias({g.part}, type, memory::format_tag::a);
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
    p.large = Conversion(d.user_large, pd.src_desc());
    p.small = Conversion(pd.dst_desc(), d.user_small);
    p.weight = Conversion(d.user_weight, pd.weights_desc());
    p.scratchpad = pd.scratchpad_desc();
    p.primitive = dnnl::convolution_forward(pd);
  } else if (g.kind == Kind::Data) {
    const dnnl::convolution_backward_data::primitive_desc pd(engine, direct, large, weight, small,
                                                             d.stride, d.dilation, d.before,
                                                             d.after, forward(weight), attributes);
    p.large = Conversion(pd.diff_src_desc(), d.user_large);
    p.small = Conversion(d.user_small, pd.diff_dst_desc());
    p.weight = Conversion(d.user_weight, pd.weights_desc());
    p.scratchpad = pd.scratchpad_desc();
    p.primitive = dnnl::convolution_backward_data(pd);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc pd(
        engine, direct, large, weight, small, d.stride, d.dilation, d.before, d.after,
        forward(any(d.weight, type)), attributes);
    p.large = Conversion(d.user_large, pd.src_desc());
    memory::dims one = d.large;
    one[0] = 1;
    const memory::dims none(one.size(), 0);
    p.image =
        Conversion(d.user_large.submemory_desc(one, none), pd.src_desc().submemory_desc(one, none));
    p.small = Conversion(d.user_small, pd.diff_dst_desc());
    p.weight = Conversion(pd.diff_weights_desc(), d.user_weight);
    p.sums = Conversion(pd.diff_weights_desc(), d.sums);
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
  put(g.part);
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
  std::optional<Read> shared;
  {
    const OneThread one;
    shared.emplace(plan_for(g, images).weight, c.weight);
  }
  parallel_for(0, c.batch, images, [&](int64_t begin, int64_t end) {
    const OneThread one;
    const Plan& plan = plan_for(g, end - begin);
    std::optional<Read> own;
    if (plan.weight.to != shared->get().get_desc()) {
      own.emplace(plan.weight, c.weight);
    }
    const Block scratchpad(plan.scratchpad);
    std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_WEIGHTS, own ? own->get() : shared->get()},
        {DNNL_ARG_SCRATCHPAD, scratchpad.memory}};
    void* large_data = image_at(g.large, begin, c.dtype);
    void* small_data = image_at(g.small, begin, c.dtype);
    if (g.kind == Kind::Forward) {
      const Read large(plan.large, large_data);
      const Written small(plan.small, small_data);
      arguments.insert({{DNNL_ARG_SRC, large.get()}, {DNNL_ARG_DST, small.get()}});
      if (c.bias != nullptr) {
        const memory::desc bias({g.part}, data_type(c.dtype), memory::format_tag::a);
        arguments.insert({DNNL_ARG_BIAS, memory(bias, cpu_engine(), const_cast<void*>(c.bias))});
      }
      plan.primitive.execute(cpu_stream(), arguments);
      small.finish();
    } else {
      const Read small(plan.small, small_data);
      const Written large(plan.large, large_data);
      arguments.insert({{DNNL_ARG_DIFF_DST, small.get()}, {DNNL_ARG_DIFF_SRC, large.get()}});
      plan.primitive.execute(cpu_stream(), arguments);
      large.finish();
    }
  });
}

const char* convolve_weight_backward_refusal(const Conv& c) {
  if (c.groups == 1 && c.out_channels <= 16 && c.dtype == kFloat32) {
    return "few output channels: windows are faster";
  }
  return refusal(c);
}

namespace {

// The large images of a whole batch in the layout of a plan for it, for several blocks of channels.
class SharedImages {
 public:
  explicit SharedImages(const Geometry& g) {
    const OneThread one;
    const Plan& plan = plan_for(g, g.c.batch);
    layout_ = plan.large.to;
    if (!plan.large.needed) {
      data_ = static_cast<char*>(g.large.data);
      image_bytes_ = g.large.strides[0] * itemsize(g.c.dtype);
      return;
    }
    block_.emplace(layout_);
    data_ = static_cast<char*>(block_->memory.get_data_handle());
    image_bytes_ = static_cast<int64_t>(layout_.get_size()) / g.c.batch;
    parallel_for(0, g.c.batch, 1, [&](int64_t begin, int64_t end) {
      const OneThread own;
      for (int64_t n = begin; n < end; n++) {
        plan_for(g, g.c.batch).image.run(image_at(g.large, n, g.c.dtype), image(n));
      }
    });
  }
  // The description of the first n images.
  memory::desc layout(int64_t n) const {
    memory::dims dims = layout_.get_dims();
    const memory::dims none(dims.size(), 0);
    dims[0] = n;
    return layout_.submemory_desc(dims, none);
  }
  void* image(int64_t n) const { return data_ + n * image_bytes_; }

 private:
  memory::desc layout_;
  std::optional<Block> block_;
  char* data_;
  int64_t image_bytes_;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void convolve_weight_backward(const Conv& c) {
  Geometry g(Kind::Weights, c);
  const int64_t channels = c.groups * c.out_channels;
  const int64_t row = c.in_channels * c.taps();
  const int64_t size = channels * row;
  // Blocks are multiples of what the primitives compute together.
  constexpr int64_t block = 16;
  constexpr int64_t wanted = 8;
  const int64_t part =
      c.groups > 1 ? channels : std::min(channels, ceil_div(channels, wanted * block) * block);
  const int64_t parts = ceil_div(channels, part);
  const int64_t images = ceil_div(c.batch, parts >= wanted ? 1 : ceil_div(2 * wanted, parts));
  const int64_t count = ceil_div(c.batch, images);
  g.part = part;
  const SharedImages shared(g);
  const Scratch<float> sums(count > 1 ? count * size : 0);
  parallel_for(0, parts * count, 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t t = begin; t < end; t++) {
      const int64_t n = t % count * images;
      const int64_t o = t / count * part;
      Geometry mine = g;
      mine.part = std::min(part, channels - o);
      const int64_t together = std::min(images, c.batch - n);
      const Plan& plan = plan_for(mine, together);
      std::optional<Read> own;
      memory large;
      if (plan.large.to == shared.layout(together)) {
        large = memory(plan.large.to, cpu_engine(), shared.image(n));
      } else {
        large = own.emplace(plan.large, image_at(g.large, n, c.dtype)).get();
      }
      const Read small(plan.small, static_cast<char*>(image_at(g.small, n, c.dtype)) +
                                       o * g.small.strides[1] * itemsize(c.dtype));
      const Written weight =
          count > 1
              ? Written(plan.sums, sums + t % count * size + o * row)
              : Written(plan.weight, static_cast<char*>(c.weight) + o * row * itemsize(c.dtype));
      const Block scratchpad(plan.scratchpad);
      plan.primitive.execute(cpu_stream(), {{DNNL_ARG_SRC, large},
                                            {DNNL_ARG_DIFF_DST, small.get()},
                                            {DNNL_ARG_DIFF_WEIGHTS, weight.get()},
                                            {DNNL_ARG_SCRATCHPAD, scratchpad.memory}});
      weight.finish();
    }
  });
  if (count == 1) {
    return;
  }
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
