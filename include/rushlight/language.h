// Language models that make a token at a time, from files of the GGUF format: the network, its
// tokenizer, a sampler. Results have the bits of Python's `rushlight.language`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <rushlight/generator.h>
#include <rushlight/gguf.h>
#include <rushlight/tensor.h>

namespace rushlight::language {

// Text as tokens and back, by the vocabulary that a file has: of SentencePiece ("llama"), whose
// pieces have scores, or of bytes ("gpt2"), whose pieces are merged in an order.
class RL_API Tokenizer {
 public:
  // ValueError where the metadata have no vocabulary, or one of a kind that is not known.
  explicit Tokenizer(const gguf::Metadata& metadata);

  // The tokens of a text in UTF-8. `bos`: with the token in front that begins texts, if the
  // vocabulary asks for one; `special`: names of tokens that control the network are found.
  std::vector<int64_t> encode(std::string_view text, bool bos = false, bool special = false) const;
  // The bytes that a token stands for: none for those of control.
  std::string piece(int64_t token) const;
  // The bytes of a text, which need not be whole characters.
  std::string decode(const std::vector<int64_t>& tokens) const;

  int64_t size() const;                          // tokens of the vocabulary
  const std::string& text(int64_t token) const;  // as the vocabulary has it
  std::optional<int64_t> bos() const;
  std::optional<int64_t> eos() const;
  const std::set<int64_t>& ends() const;  // tokens at which a text ends

 private:
  struct Vocabulary;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

// Draws the next token from what a network says of all of them.
struct RL_API Sampler {
  double temperature = 0.8;  // what logits are divided by; 0 takes the most likely token
  int64_t top_k = 40;        // tokens that are kept; 0 keeps all
  double top_p = 0.95;  // the fewest likely tokens are kept whose probabilities come to so much
  double repetition_penalty = 1;  // positive logits of tokens seen before are divided by it
  Generator generator = {};       // none: the default one

  // ValueError where one of these is out of bounds.
  void check() const;
  int64_t operator()(const Tensor& logits, const std::vector<int64_t>& seen = {}) const;
};

struct LlamaOptions {
  int64_t max_len = 0;    // positions that there is room for; 0: the network's, at most 4096
  int64_t sequences = 1;  // texts side by side
  ScalarType cache_dtype = kFloat32;  // of keys and values: float32, float16, bfloat16, int8
  std::function<void(int64_t done, int64_t of)> progress = {};  // of blocks that are ready
};

// A network of the architecture "llama", with room for several texts, which share its weights.
class RL_API Llama {
 public:
  // ValueError where metadata and tensors are not those of such a network.
  explicit Llama(const gguf::File& file, const LlamaOptions& options = {});
  // Of a file, whose embedding stays mapped; the other weights are brought into another order.
  static Llama load(const std::string& path, const LlamaOptions& options = {});

  // Logits (batch, rows, words) behind tokens (batch, rows) of the texts `sequences`, or (batch,
  // 1, words) with `last`. IndexError where there is no room.
  Tensor forward(const Tensor& tokens, bool last, const std::vector<int64_t>& sequences);
  // Those behind some more tokens of one text: (words).
  Tensor read(const std::vector<int64_t>& tokens, int64_t sequence = 0);
  // Those behind one more token of each of several texts: (texts, words).
  Tensor step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& sequences);
  // Forgets all tokens of a text from `length` on.
  void truncate(int64_t length, int64_t sequence = 0);

  int64_t max_len() const;
  int64_t sequences() const;
  int64_t words() const;
  int64_t seen(int64_t sequence = 0) const;  // tokens of a text that are held

 private:
  struct Network;
  std::shared_ptr<Network> network_;
};

}  // namespace rushlight::language
