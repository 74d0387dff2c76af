// Networks of the architecture "llama", under llama.cpp's names of tensors.
#include <algorithm>
#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/language.h>
#include <rushlight/ops.h>
#include <rushlight/thread_state.h>

#include "kernels/gguf_blocks.h"
#include "language/cache.h"
#include "language/metadata.h"
#include "language/positions.h"

namespace rushlight::language {
namespace {

constexpr int64_t at_once = 512;  // tokens of a prompt

struct Sizes {
  int64_t layers;
  int64_t width;
  int64_t hidden;
  int64_t heads;
  int64_t key_heads;
  int64_t head_width;
  int64_t turned;
  int64_t context;
  double eps;
  double base;
  Scaling scaling;

  explicit Sizes(const gguf::Metadata& metadata) {
    const auto* const architecture = find<std::string>(metadata, "general.architecture");
    RL_CHECK_VALUE(architecture != nullptr && *architecture == "llama",
                   "the architecture must be 'llama', not '",
                   architecture == nullptr ? "" : *architecture, "'");
    const auto real = [&](const char* name, std::optional<double> otherwise) {
      const std::string key = std::string("llama.") + name;
      const std::optional<double> found = has(metadata, key) ? number(metadata, key) : otherwise;
      RL_CHECK_VALUE(found && *found > 0 && *found < 2147483648.0, "the metadata's ", key,
                     " must be a positive number");
      return *found;
    };
    const auto whole = [&](const char* name, std::optional<int64_t> otherwise = std::nullopt) {
      const double found =
          real(name, otherwise ? std::optional(static_cast<double>(*otherwise)) : std::nullopt);
      RL_CHECK_VALUE(found == std::floor(found), "the metadata's llama.", name,
                     " must be an integer, not ", found);
      return static_cast<int64_t>(found);
    };
    heads = whole("attention.head_count");
    width = whole("embedding_length");
    head_width = whole("attention.key_length", std::max<int64_t>(1, width / heads));
    layers = whole("block_count");
    hidden = whole("feed_forward_length");
    key_heads = whole("attention.head_count_kv", heads);
    turned = whole("rope.dimension_count", head_width);
    context = whole("context_length");
    eps = real("attention.layer_norm_rms_epsilon", 1e-5);
    base = real("rope.freq_base", 10000.0);
    scaling = Scaling::of(metadata, context);
    RL_CHECK_VALUE(heads % key_heads == 0 && turned <= head_width && turned % 2 == 0, heads,
                   " heads, ", key_heads, " of keys, and ", turned, " of ", head_width,
                   " numbers that are turned do not go together");
  }
};

// A matrix of a file: numbers of float32, or blocks.
struct Weight {
  Tensor numbers;
  Tensor blocks;  // as the file has them
  Tensor panels;  // as products read them
  std::string format;
  int64_t results = 0;
  Tensor bias;

  Weight() = default;
  explicit Weight(const gguf::Stored& stored) : format(stored.format) {
    results = stored.tensor.size(0);
    if (format.empty()) {
      numbers = stored.tensor.to(kFloat32, false, true);  // a copy, so that no part stays mapped
    } else {
      blocks = stored.tensor;
    }
  }

  void pack() {
    if (blocks.defined()) {
      panels = rushlight::_gguf_pack(blocks, format);
    }
  }
  void forget_blocks() { blocks = {}; }

  Tensor linear(const Tensor& x) const {
    return panels.defined() ? rushlight::_gguf_linear(x, panels, bias, format, results)
                            : rushlight::linear(x, numbers, bias);
  }
  Tensor rows(const Tensor& indices) const {
    if (!blocks.defined()) {
      return rushlight::embedding(numbers, indices);
    }
    const Tensor found = blocks.index_select(0, indices.flatten());
    const Tensor rows = rushlight::_gguf_dequantize(found, format);
    return rows.view({indices.size(0), indices.size(1), -1});
  }
};

// The tensors of a file, whose sizes are checked as they are taken.
class Parts {
 public:
  Parts(const gguf::File& file, std::string prefix = {})
      : file_(file), prefix_(std::move(prefix)) {}

  // Null where there is no such tensor; a size of -1 is any.
  const gguf::Stored* look_for(const std::string& name, IntArrayRef size) const {
    const auto found = file_.tensors.find(prefix_ + name);
    if (found == file_.tensors.end()) {
      return nullptr;
    }
    const gguf::Stored& stored = found->second;
    DimVector sizes(stored.tensor.sizes());
    if (const GgufBlock* const block = find_gguf_block(stored.format)) {
      sizes.back() = sizes.back() / block->bytes() * block->numbers;
    }
    const bool fits = sizes.size() == size.size() &&
                      std::equal(size.begin(), size.end(), sizes.begin(),
                                 [](int64_t n, int64_t m) { return n == -1 || n == m; });
    RL_CHECK_VALUE(fits, prefix_, name, " must be of size ", size, ", not ", IntArrayRef(sizes));
    RL_CHECK_VALUE(!stored.format.empty() || is_floating(stored.tensor.dtype()), prefix_, name,
                   " must be of floats, not of ", stored.tensor.dtype());
    return &stored;
  }
  const gguf::Stored& take(const std::string& name, IntArrayRef size) const {
    const gguf::Stored* const found = look_for(name, size);
    RL_CHECK_VALUE(found != nullptr, "the file has no tensor ", prefix_, name);
    return *found;
  }
  // Plain numbers of float32, or nothing.
  static Tensor numbers_of(const gguf::Stored* stored) {
    if (stored == nullptr) {
      return {};
    }
    return stored->format.empty() ? stored->tensor.to(kFloat32, false, true)
                                  : rushlight::_gguf_dequantize(stored->tensor, stored->format);
  }
  Weight linear(const std::string& name, int64_t outputs, int64_t inputs) const {
    Weight weight(take(name + ".weight", {outputs, inputs}));
    weight.pack();
    weight.forget_blocks();
    weight.bias = numbers_of(look_for(name + ".bias", {outputs}));
    return weight;
  }
  Tensor norm(const std::string& name, const Sizes& sizes) const {
    return numbers_of(&take(name + ".weight", {sizes.width}));
  }

 private:
  const gguf::File& file_;
  std::string prefix_;
};

struct Block {
  Tensor attn_norm;
  Weight q;
  Weight k;
  Weight v;
  Weight output;
  Tensor ffn_norm;
  Weight gate;
  Weight up;
  Weight down;
  Cache cache;

  Block(const Parts& of, const Sizes& s, int64_t max_len, const LlamaOptions& options)
      : attn_norm(of.norm("attn_norm", s)),
        q(of.linear("attn_q", s.heads * s.head_width, s.width)),
        k(of.linear("attn_k", s.key_heads * s.head_width, s.width)),
        v(of.linear("attn_v", s.key_heads * s.head_width, s.width)),
        output(of.linear("attn_output", s.width, s.heads * s.head_width)),
        ffn_norm(of.norm("ffn_norm", s)),
        gate(of.linear("ffn_gate", s.hidden, s.width)),
        up(of.linear("ffn_up", s.hidden, s.width)),
        down(of.linear("ffn_down", s.width, s.hidden)),
        cache(options.sequences, s.key_heads, max_len, s.head_width, options.cache_dtype) {}
};

}  // namespace

struct Llama::Network {
  Sizes sizes;
  int64_t max_len;
  int64_t sequences;
  Weight embedding;
  Weight output;
  Tensor output_norm;
  Tensor cos;
  Tensor sin;
  std::vector<Block> blocks;

  Network(const gguf::File& file, const LlamaOptions& options)
      : sizes(file.metadata),
        max_len(options.max_len > 0 ? options.max_len : std::min<int64_t>(sizes.context, 4096)),
        sequences(options.sequences) {
    RL_CHECK_VALUE(sequences > 0, "there must be room for a text, not for ", sequences);
    const Parts whole(file);
    embedding = Weight(whole.take("token_embd.weight", {-1, sizes.width}));
    set_angles(Parts::numbers_of(whole.look_for("rope_freqs.weight", {sizes.turned / 2})));
    for (int64_t i = 0; i < sizes.layers; i++) {
      blocks.emplace_back(Parts(file, str("blk.", i, ".")), sizes, max_len, options);
      if (options.progress) {
        options.progress(i + 1, sizes.layers);
      }
    }
    output_norm = whole.norm("output_norm", sizes);
    if (file.tensors.count("output.weight") != 0) {
      output = whole.linear("output", embedding.results, sizes.width);
    } else {
      output = embedding;
      output.pack();
      output.forget_blocks();
    }
  }

  void set_angles(const Tensor& factors) {
    Tensor angles = sizes.scaling.angles(sizes.turned, sizes.base);
    if (factors.defined()) {
      angles = angles / factors.to(kFloat64);
    }
    const Tensor turns = rushlight::arange(0, max_len, 1, kFloat64).unsqueeze(1) * angles;
    cos = (turns.cos() * sizes.scaling.size()).to(kFloat32);
    sin = (turns.sin() * sizes.scaling.size()).to(kFloat32);
  }

  Tensor norm(const Tensor& x, const Tensor& weight) const {
    return rushlight::rms_norm(x, {sizes.width}, weight, sizes.eps);
  }

  Tensor attention(Block& block, const Tensor& x, const std::vector<int64_t>& which) const {
    const auto heads = [&](const Tensor& y) {
      return y.view({y.size(0), y.size(1), -1, sizes.head_width}).transpose(1, 2);
    };
    const Tensor places = block.cache.places(which);
    const auto turned = [&](const Weight& weight) {
      return rushlight::_rotary(heads(weight.linear(x)), cos, sin, places, true);
    };
    const Tensor query = turned(block.q);
    const Tensor key = turned(block.k);
    const Tensor found = block.cache.attend(query, key, heads(block.v.linear(x)), which);
    return block.output.linear(found.transpose(1, 2).flatten(2));
  }

  Tensor forward(const Tensor& tokens, bool last, const std::vector<int64_t>& which) {
    Tensor x = embedding.rows(tokens);
    for (Block& block : blocks) {
      x = x + attention(block, norm(x, block.attn_norm), which);
      const Tensor y = norm(x, block.ffn_norm);
      x = x + block.down.linear(rushlight::_swiglu(block.gate.linear(y), block.up.linear(y)));
    }
    if (last) {
      x = x.narrow(1, x.size(1) - 1, 1);
    }
    return output.linear(norm(x, output_norm));
  }
};

Llama::Llama(const gguf::File& file, const LlamaOptions& options)
    : network_(std::make_shared<Network>(file, options)) {}

Llama Llama::load(const std::string& path, const LlamaOptions& options) {
  gguf::File file = gguf::load(path);
  // Rows of the embedding are read from the file when they are wanted, by a mapping of their own:
  // that of the other weights is let go when they are packed.
  gguf::File again = gguf::load(path);
  const auto embedding = again.tensors.find("token_embd.weight");
  if (embedding != again.tensors.end()) {
    file.tensors["token_embd.weight"] = embedding->second;
  }
  return Llama(file, options);
}

Tensor Llama::forward(const Tensor& tokens, bool last, const std::vector<int64_t>& sequences) {
  const InferenceMode inference;
  RL_CHECK_VALUE(tokens.dim() == 2 && tokens.size(0) == static_cast<int64_t>(sequences.size()) &&
                     tokens.numel() > 0,
                 "tokens must be (texts, rows) for ", sequences.size(), " texts, not of size ",
                 tokens.sizes());
  for (const int64_t s : sequences) {
    RL_CHECK_INDEX(s >= 0 && s < network_->sequences, "there is no text ", s, " among ",
                   network_->sequences);
  }
  return network_->forward(tokens, last, sequences);
}

Tensor Llama::read(const std::vector<int64_t>& tokens, int64_t sequence) {
  RL_CHECK_VALUE(!tokens.empty(), "there must be a token to read");
  Tensor logits;
  for (size_t i = 0; i < tokens.size(); i += at_once) {
    const std::vector<int64_t> part(
        tokens.begin() + static_cast<int64_t>(i),
        tokens.begin() + static_cast<int64_t>(std::min(tokens.size(), i + at_once)));
    logits = forward(tensor(part).unsqueeze(0), true, {sequence});
  }
  return logits.select(0, 0).select(0, 0);
}

Tensor Llama::step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& sequences) {
  return forward(tensor(tokens).unsqueeze(1), false, sequences).select(1, 0);
}

void Llama::truncate(int64_t length, int64_t sequence) {
  RL_CHECK_INDEX(sequence >= 0 && sequence < network_->sequences, "there is no text ", sequence,
                 " among ", network_->sequences);
  for (Block& block : network_->blocks) {
    block.cache.truncate(length, sequence);
  }
}

int64_t Llama::max_len() const { return network_->max_len; }
int64_t Llama::sequences() const { return network_->sequences; }
int64_t Llama::words() const { return network_->embedding.results; }
int64_t Llama::seen(int64_t sequence) const {
  RL_CHECK_INDEX(sequence >= 0 && sequence < network_->sequences, "there is no text ", sequence,
                 " among ", network_->sequences);
  return network_->blocks[0].cache.length(sequence);
}

}  // namespace rushlight::language
