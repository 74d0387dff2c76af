// A piece of a convolution and the primitive of oneDNN that computes it: what onednn_conv.cpp,
// which cuts, and onednn_conv_plan.cpp, which makes primitives, share.
#pragma once

#include <optional>

#include "cpu/onednn.h"
#include "cpu/onednn_common.h"

namespace rushlight::cpu::onednn {

enum class Kind : int64_t { Forward, Data, Weights };

enum class Layout : int64_t { Other, Plain, ChannelsLast };

struct Side {
  char* data;
  std::array<int64_t, 5> strides;  // in elements; as if dense where a dimension has one element
  int64_t channels;                // of one group
  Dims3 size;
  Layout layout;
};

// A convolution between large images (the input of an ordinary one) and small ones (its output):
// all of it, or some images, rows and channels.
struct Piece {
  Kind kind;
  ScalarType dtype;
  int64_t images;
  int64_t groups;
  Side large;
  Side small;
  Dims3 kernel;
  Dims3 stride;
  Dims3 padding;  // before the first row; behind the last one as the sizes say
  Dims3 dilation;
  char* weight;
  int64_t weight_row;  // from one small channel to the next
  const char* bias;

  Piece(Kind k, const Conv& c);
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t bytes(int64_t elements) const { return elements * itemsize(dtype); }
  // Multiplications.
  double work() const;
  // What is computed in channels of its own: groups, or the channels of the result.
  int64_t channels() const;
  // Those from..to of these.
  Piece of_channels(int64_t from, int64_t to) const;
  // Those of the large images of one group.
  Piece of_large_channels(int64_t from, int64_t to) const;
  Piece of_images(int64_t from, int64_t to) const;
  // Windows from..to along a dimension, and what of the large images belongs to them.
  Piece of_rows(int dim, int64_t from, int64_t to) const;
};

// A thing that has a place only while a primitive runs. Making one costs more than a small
// primitive does, so they are kept with it.
class Place {
 public:
  Place() = default;
  explicit Place(const dnnl::memory::desc& desc)
      : bytes_(static_cast<int64_t>(desc.get_size())),
        desc_(desc),
        memory_(desc, cpu_engine(), DNNL_MEMORY_NONE) {}
  int64_t bytes() const { return bytes_; }
  const dnnl::memory::desc& desc() const { return desc_; }
  dnnl_memory_t at(const void* data) const {
    memory_.set_data_handle(const_cast<void*>(data));
    return memory_.get();
  }

 private:
  int64_t bytes_ = 0;
  dnnl::memory::desc desc_;
  dnnl::memory memory_;
};

struct Argument {
  int name;
  const Place& place;
  const void* data;
};
// Runs a primitive on the calling thread, with working memory at a place of its own.
void execute(const dnnl::primitive& primitive, const Place& scratchpad,
             std::initializer_list<Argument> arguments);

// A conversion between two layouts of one thing, made once. Making one costs microseconds.
struct Conversion {
  Place from;
  Place to;
  Place scratchpad;
  dnnl::reorder primitive;
  bool needed = false;

  Conversion() = default;
  Conversion(const dnnl::memory::desc& source, const dnnl::memory::desc& target);
  void run(const void* source, void* target) const;
};

// What a primitive reads: the user's memory, or a copy in the layout that it wants.
class Read {
 public:
  Read(const Conversion& conversion, const char* data) : desc_(conversion.to.desc()), data_(data) {
    if (conversion.needed) {
      copy_.emplace(conversion.to.bytes());
      conversion.run(data, copy_->data());
      data_ = copy_->data();
    }
  }
  const char* data() const { return data_; }
  const dnnl::memory::desc& desc() const { return desc_; }

 private:
  dnnl::memory::desc desc_;
  std::optional<Scratch<char>> copy_;
  const char* data_;
};

// What a primitive writes; `finish` puts it where the user wants it.
class Written {
 public:
  Written(const Conversion& conversion, void* user)
      : conversion_(conversion),
        user_(user),
        copy_(conversion.needed ? conversion.from.bytes() : 0) {}
  void* data() const { return conversion_.needed ? copy_.data() : user_; }
  void finish() const {
    if (conversion_.needed) {
      conversion_.run(copy_.data(), user_);
    }
  }

 private:
  const Conversion& conversion_;
  void* user_;
  Scratch<char> copy_;
};

// A primitive, and the ways between the layouts that it wants and the user's: from the user's for
// what it reads, to the user's for what it writes.
struct Plan {
  dnnl::primitive primitive;
  Place scratchpad;
  Place bias;
  // A kernel made for such convolutions, not a loop over products or over all elements.
  bool fast;
  Conversion large;
  Conversion small;
  Conversion weight;
  Conversion sums;  // as weight, to float32
};

// All that a piece says but for where its tensors lie.
using PieceKey = std::array<int64_t, 40>;
PieceKey key_of(const Piece& piece);

// Kept for this thread.
const Plan& plan_for(const Piece& piece);

}  // namespace rushlight::cpu::onednn
