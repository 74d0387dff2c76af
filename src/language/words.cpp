#include "language/words.h"

#include "language/characters.h"

namespace rushlight::language {
namespace {

// What stands at a place: classes of characters, by language/characters.h.
class Place {
 public:
  Place(const std::string& classes, size_t at) : classes_(classes), at_(at) {}

  char operator[](size_t i) const { return at_ + i < classes_.size() ? classes_[at_ + i] : '\0'; }
  // How many characters from the i-th on are of these classes.
  size_t run(std::string_view of, size_t i = 0) const {
    size_t n = 0;
    while ((*this)[i + n] != '\0' && of.find((*this)[i + n]) != of.npos) {
      n++;
    }
    return n;
  }

 private:
  const std::string& classes_;
  size_t at_;
};

// White space: the last one of several goes with the word behind it.
size_t space(const Place& c) {
  const size_t n = c.run("_SR");
  return n > 1 && c[n] != '\0' ? n - 1 : n;
}

// A word of one class, perhaps with a space in front.
size_t with_space(const Place& c, std::string_view of) {
  const size_t before = c[0] == '_' ? 1 : 0;
  const size_t n = c.run(of, before);
  return n == 0 ? 0 : before + n;
}

size_t gpt2_word(const Place& c) {
  for (const std::string_view of : {"L", "N", "O'"}) {
    if (const size_t n = with_space(c, of)) {
      return n;
    }
  }
  return space(c);
}

size_t later_word(const Place& c, size_t most_digits) {
  const size_t before = c[0] != 'R' && c[0] != 'L' && c[0] != 'N' ? 1 : 0;
  if (const size_t n = c.run("L", before)) {
    return before + n;
  }
  if (c[0] == 'N') {
    return std::min(c.run("N"), most_digits);
  }
  if (const size_t n = with_space(c, "O'")) {
    return n + c.run("R", n);
  }
  for (size_t n = c.run("_SR"); n > 0; n--) {
    if (c[n - 1] == 'R') {
      return n;
    }
  }
  return space(c);
}

// The length of "'s" and its kind.
size_t ending(const std::vector<char32_t>& text, size_t at, bool any_case) {
  const auto letter = [&](size_t i) -> char32_t {
    const char32_t c = at + i < text.size() ? text[at + i] : U'\0';
    if (any_case && c == 0x17f) {  // a long s
      return 's';
    }
    return any_case && c >= 'A' && c <= 'Z' ? c + 32 : c;
  };
  if (text[at] != '\'') {
    return 0;
  }
  const char32_t first = letter(1);
  const char32_t second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return 2;
  }
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text, Cut cut) {
  const Characters all = characters_of(text);
  std::string classes;
  for (const char32_t c : all.codes) {
    classes += class_of(c);
  }
  std::vector<std::string_view> words;
  for (size_t at = 0; at < classes.size();) {
    const Place here(classes, at);
    size_t n = ending(all.codes, at, cut != Cut::Gpt2);
    if (n == 0) {
      n = cut == Cut::Gpt2 ? gpt2_word(here) : later_word(here, cut == Cut::Llama3 ? 3 : 1);
    }
    words.push_back(text.substr(all.begins[at], all.begins[at + n] - all.begins[at]));
    at += n;
  }
  return words;
}

}  // namespace rushlight::language
