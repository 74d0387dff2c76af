// Tokenizer: pieces by their scores, or bytes by the order of their merges.
#include <rushlight/language.h>

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <unordered_map>

#include <rushlight/error.h>
#include <rushlight/ops.h>

#include "language/characters.h"
#include "language/metadata.h"
#include "language/words.h"

namespace rushlight::language {
namespace {

// Kinds of tokens, as the metadata numbers them.
constexpr double Unknown = 2;
constexpr double Control = 3;
constexpr double Own = 4;
constexpr double Byte = 6;

constexpr const char* space_mark = "\xe2\x96\x81";
constexpr size_t longest = size_t{1} << 22;  // bytes of a text

// The letter that stands for each byte where vocabularies are of bytes.
const std::array<std::string, 256>& letters_of_bytes() {
  // Never destroyed: threads may use it until the process ends.
  static const auto& letters = *new std::array<std::string, 256>([] {
    std::array<std::string, 256> found;
    char32_t next = 256;
    for (char32_t b = 0; b < 256; b++) {
      const bool shown =
          (b >= 0x21 && b < 0x7f) || (b >= 0xa1 && b < 0xad) || (b >= 0xae && b < 0x100);
      found[b] = utf8_of(shown ? b : next++);
    }
    return found;
  }());
  return letters;
}

const std::unordered_map<std::string, char>& bytes_of_letters() {
  static const auto& bytes = *new std::unordered_map<std::string, char>([] {
    std::unordered_map<std::string, char> found;
    for (size_t b = 0; b < 256; b++) {
      found.emplace(letters_of_bytes()[b], static_cast<char>(b));
    }
    return found;
  }());
  return bytes;
}

// Neighbours joined as long as they have a rank, the lowest first, then the leftmost.
template <class Rank>
std::vector<std::string> merged(std::vector<std::string> parts, const Rank& rank) {
  const auto n = static_cast<int64_t>(parts.size());
  std::vector<int64_t> following(parts.size());
  std::vector<int64_t> preceding(parts.size());
  std::vector<char> alive(parts.size(), 1);
  for (int64_t i = 0; i < n; i++) {
    following[i] = i + 1 < n ? i + 1 : -1;
    preceding[i] = i - 1;
  }
  using Offer = std::tuple<double, int64_t, int64_t, std::string>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  const auto offer = [&](int64_t left) {
    const int64_t right = left >= 0 ? following[left] : -1;
    if (right >= 0) {
      if (const std::optional<double> found = rank(parts[left], parts[right])) {
        offers.emplace(*found, left, right, parts[left] + parts[right]);
      }
    }
  };
  for (int64_t i = 0; i < n; i++) {
    offer(i);
  }
  while (!offers.empty()) {
    const auto [found, left, right, both] = offers.top();
    offers.pop();
    const bool stands = alive[left] != 0 && alive[right] != 0 && following[left] == right;
    if (!stands || parts[left] + parts[right] != both) {
      continue;
    }
    parts[left] = both;
    alive[right] = 0;
    following[left] = following[right];
    if (following[left] >= 0) {
      preceding[following[left]] = left;
    }
    offer(preceding[left]);
    offer(left);
  }
  std::vector<std::string> rest;
  for (int64_t i = 0; i < n; i++) {
    if (alive[i] != 0) {
      rest.push_back(std::move(parts[i]));
    }
  }
  return rest;
}

std::string with_marks(std::string_view text) {
  std::string found;
  for (const char c : text) {
    c == ' ' ? found += space_mark : found += c;
  }
  return found;
}

std::string with_spaces(std::string text) {
  for (size_t at = 0; (at = text.find(space_mark, at)) != text.npos;) {
    text.replace(at, 3, " ");
  }
  return text;
}

std::string key_of(const char* name) { return std::string("tokenizer.ggml.") + name; }

// Numbers of tokens, which are as many as those.
std::vector<double> numbers_of(const gguf::Metadata& said, const char* name, size_t size,
                               double otherwise) {
  if (!has(said, key_of(name))) {
    return std::vector<double>(size, otherwise);
  }
  const auto* const found = find<Tensor>(said, key_of(name));
  RL_CHECK_VALUE(
      found != nullptr && found->dim() == 1 && found->size(0) == static_cast<int64_t>(size),
      key_of(name), " must be ", size, " numbers, one for each token");
  const Tensor numbers = found->to(kFloat64).contiguous();
  const auto* const from = numbers.data_ptr<double>();
  return {from, from + size};
}

std::optional<int64_t> token_of(const gguf::Metadata& said, const char* name, size_t size) {
  if (!has(said, key_of(name))) {
    return std::nullopt;
  }
  const auto* const found = find<int64_t>(said, key_of(name));
  RL_CHECK_VALUE(found != nullptr && *found >= 0 && *found < static_cast<int64_t>(size),
                 key_of(name), " must be one of ", size, " tokens");
  return *found;
}

bool flag(const gguf::Metadata& said, const char* name, bool otherwise) {
  const auto* const found = find<bool>(said, key_of(name));
  return found == nullptr ? otherwise : *found;
}

}  // namespace

struct Tokenizer::Vocabulary {
  bool of_bytes = false;
  Cut cut = Cut::Gpt2;
  std::vector<std::string> tokens;
  std::unordered_map<std::string, int64_t> ids;
  std::vector<double> types;
  std::vector<double> scores;
  std::unordered_map<std::string, int64_t> ranks;  // of "left right"
  std::vector<std::string> whole;  // names that texts are not cut within, the longest first
  std::optional<int64_t> bos;
  std::optional<int64_t> eos;
  std::optional<int64_t> unknown;
  std::set<int64_t> ends;
  bool adds_bos = false;
  bool adds_space = false;

  void set_merges(const gguf::Metadata& said) {
    const auto* const merges = find<std::vector<std::string>>(said, key_of("merges"));
    const auto* const pre = find<std::string>(said, key_of("pre"));
    const std::string name = pre == nullptr ? "default" : *pre;
    const bool is_gpt2 = name == "default" || name == "gpt-2";
    const bool is_llama = name == "llama-bpe" || name == "llama3" || name == "llama-v3";
    RL_CHECK_VALUE(merges != nullptr && (is_gpt2 || is_llama || name == "qwen2"),
                   "a vocabulary of bytes needs merges, and words cut as gpt-2, llama-bpe, qwen2 "
                   "are, not as '",
                   name, "'");
    cut = is_gpt2 ? Cut::Gpt2 : is_llama ? Cut::Llama3 : Cut::Qwen2;
    for (size_t i = 0; i < merges->size(); i++) {
      ranks.emplace((*merges)[i], static_cast<int64_t>(i));
    }
  }

  void add(std::vector<int64_t>& to, const std::string& piece) const {
    const auto found = ids.find(piece);
    if (found != ids.end()) {
      to.push_back(found->second);
    } else if (of_bytes) {
      if (unknown) {
        to.push_back(*unknown);
      }
    } else {
      for (const char byte : piece) {
        static constexpr const char* digits = "0123456789ABCDEF";
        const auto b = static_cast<unsigned char>(byte);
        const auto id = ids.find({'<', '0', 'x', digits[b >> 4U], digits[b & 15U], '>'});
        if (id != ids.end()) {
          to.push_back(id->second);
        } else if (unknown) {
          to.push_back(*unknown);
        }
      }
    }
  }

  void add_pieces(std::vector<int64_t>& to, std::string_view text) const {
    const std::string marked = with_marks(text);
    const Characters all = characters_of(marked);
    std::vector<std::string> parts;
    for (size_t i = 0; i + 1 < all.begins.size(); i++) {
      parts.push_back(marked.substr(all.begins[i], all.begins[i + 1] - all.begins[i]));
    }
    const auto rank = [&](const std::string& left, const std::string& right) {
      const auto found = ids.find(left + right);
      return found == ids.end() ? std::nullopt
                                : std::optional(-scores[static_cast<size_t>(found->second)]);
    };
    for (const std::string& piece : merged(std::move(parts), rank)) {
      add(to, piece);
    }
  }

  void add_words(std::vector<int64_t>& to, std::string_view text) const {
    const auto rank = [&](const std::string& left, const std::string& right) {
      const auto found = ranks.find(left + " " + right);
      return found == ranks.end() ? std::nullopt
                                  : std::optional(static_cast<double>(found->second));
    };
    for (const std::string_view word : words_of(text, cut)) {
      std::vector<std::string> parts;
      for (const char byte : word) {
        parts.push_back(letters_of_bytes()[static_cast<unsigned char>(byte)]);
      }
      for (const std::string& piece : merged(std::move(parts), rank)) {
        add(to, piece);
      }
    }
  }

  void add_text(std::vector<int64_t>& to, std::string_view text) const {
    if (text.empty()) {
      return;
    }
    if (of_bytes) {
      add_words(to, text);
    } else {
      // A space goes in front of a text, and of what follows a token of control.
      add_pieces(to, adds_space ? " " + std::string(text) : std::string(text));
    }
  }
};

Tokenizer::Tokenizer(const gguf::Metadata& metadata) {
  const auto* const model = find<std::string>(metadata, key_of("model"));
  const auto* const tokens = find<std::vector<std::string>>(metadata, key_of("tokens"));
  RL_CHECK_VALUE(model != nullptr && (*model == "llama" || *model == "gpt2") && tokens != nullptr &&
                     !tokens->empty(),
                 "the metadata must have a vocabulary (tokenizer.ggml.tokens) of the model 'llama' "
                 "or 'gpt2', not '",
                 model == nullptr ? "" : *model, "'");
  const auto v = std::make_shared<Vocabulary>();
  v->of_bytes = *model == "gpt2";
  v->tokens = *tokens;
  const size_t size = tokens->size();
  for (size_t i = 0; i < size; i++) {
    v->ids.emplace(v->tokens[i], static_cast<int64_t>(i));
  }
  v->types = numbers_of(metadata, "token_type", size, 1);
  v->scores = numbers_of(metadata, "scores", size, 0);
  v->bos = token_of(metadata, "bos_token_id", size);
  v->eos = token_of(metadata, "eos_token_id", size);
  v->unknown = token_of(metadata, "unknown_token_id", size);
  for (const auto& end : {v->eos, token_of(metadata, "eot_token_id", size)}) {
    if (end) {
      v->ends.insert(*end);
    }
  }
  v->adds_bos = flag(metadata, "add_bos_token", !v->of_bytes);
  v->adds_space = flag(metadata, "add_space_prefix", true);
  for (size_t i = 0; i < size; i++) {
    if ((v->types[i] == Control || v->types[i] == Own) && !v->tokens[i].empty()) {
      v->whole.push_back(v->tokens[i]);
    }
  }
  std::stable_sort(v->whole.begin(), v->whole.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  if (v->of_bytes) {
    v->set_merges(metadata);
  }
  vocabulary_ = v;
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, bool bos, bool special) const {
  const Vocabulary& v = *vocabulary_;
  RL_CHECK_VALUE(text.size() <= longest, "encode: a text may have ", longest, " bytes, not ",
                 text.size());
  std::vector<int64_t> found;
  if (bos && v.adds_bos && v.bos) {
    found.push_back(*v.bos);
  }
  size_t begin = 0;
  for (size_t at = 0; special && at < text.size();) {
    const auto name = std::find_if(v.whole.begin(), v.whole.end(), [&](const std::string& s) {
      return text.compare(at, s.size(), s) == 0;
    });
    if (name == v.whole.end()) {
      at++;
      continue;
    }
    v.add_text(found, text.substr(begin, at - begin));
    found.push_back(v.ids.at(*name));
    at += name->size();
    begin = at;
  }
  v.add_text(found, text.substr(begin));
  return found;
}

std::string Tokenizer::piece(int64_t token) const {
  const Vocabulary& v = *vocabulary_;
  RL_CHECK_INDEX(token >= 0 && token < size(), "there is no token ", token, " among ", size());
  const std::string& text = v.tokens[static_cast<size_t>(token)];
  const double kind = v.types[static_cast<size_t>(token)];
  if (kind == Control || kind == Unknown) {
    return {};
  }
  const auto digit = [&](size_t i) {
    const char c = text[i];
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (kind == Byte && text.size() == 6 && text.compare(0, 3, "<0x") == 0 && text[5] == '>' &&
      digit(3) >= 0 && digit(4) >= 0) {
    return {static_cast<char>(16 * digit(3) + digit(4))};
  }
  if (!v.of_bytes || kind == Own) {
    return with_spaces(text);
  }
  const Characters all = characters_of(text);
  std::string bytes;
  for (size_t i = 0; i + 1 < all.begins.size(); i++) {
    const auto found =
        bytes_of_letters().find(text.substr(all.begins[i], all.begins[i + 1] - all.begins[i]));
    if (found == bytes_of_letters().end()) {
      return text;
    }
    bytes += found->second;
  }
  return bytes;
}

std::string Tokenizer::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    text += piece(token);
  }
  const bool spaced = !vocabulary_->of_bytes && vocabulary_->adds_space;
  return spaced && !text.empty() && text[0] == ' ' ? text.substr(1) : text;
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(vocabulary_->tokens.size()); }
const std::string& Tokenizer::text(int64_t token) const {
  return vocabulary_->tokens.at(static_cast<size_t>(token));
}
std::optional<int64_t> Tokenizer::bos() const { return vocabulary_->bos; }
std::optional<int64_t> Tokenizer::eos() const { return vocabulary_->eos; }
const std::set<int64_t>& Tokenizer::ends() const { return vocabulary_->ends; }

}  // namespace rushlight::language
