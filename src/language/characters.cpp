#include "language/characters.h"

#include <algorithm>
#include <iterator>

namespace rushlight::language {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

#include "language/characters.inc"

template <size_t n>
bool is_in(const Range (&ranges)[n], char32_t c) {
  const Range* const behind = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                               [](char32_t x, Range r) { return x < r.first; });
  return behind != std::begin(ranges) && c <= std::prev(behind)->last;
}

bool is_other_space(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// Bytes of the character that begins here; 0 where none does.
size_t length_of(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (n == 0 || lead > 0xf4 || at + n > text.size()) {
    return 0;
  }
  for (size_t i = 1; i < n; i++) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  // Neither longer than need be, nor a half of a pair of UTF-16, nor beyond Unicode.
  const auto second = static_cast<unsigned char>(n > 1 ? text[at + 1] : 0);
  const bool good = lead == 0xe0   ? second >= 0xa0
                    : lead == 0xed ? second < 0xa0
                    : lead == 0xf0 ? second >= 0x90
                    : lead == 0xf4 ? second < 0x90
                                   : true;
  return good ? n : 0;
}

}  // namespace

char class_of(char32_t c) {
  if (c == '\r' || c == '\n') {
    return 'R';
  }
  if (c == ' ') {
    return '_';
  }
  if (c == '\'') {
    return '\'';
  }
  if (is_other_space(c)) {
    return 'S';
  }
  return is_in(letters, c) ? 'L' : is_in(numbers, c) ? 'N' : 'O';
}

Characters characters_of(std::string_view text) {
  constexpr unsigned leads[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  Characters found;
  for (size_t at = 0; at < text.size();) {
    const size_t n = length_of(text, at);
    char32_t c = 0xfffd;
    if (n > 0) {
      c = static_cast<unsigned char>(text[at]) & leads[n];
      for (size_t i = 1; i < n; i++) {
        c = c << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
      }
    }
    found.codes.push_back(c);
    found.begins.push_back(at);
    at += std::max<size_t>(n, 1);
  }
  found.begins.push_back(text.size());
  return found;
}

std::string utf8_of(char32_t c) {
  const auto tail = [](char32_t bits) { return static_cast<char>(0x80U | (bits & 0x3fU)); };
  if (c < 0x80) {
    return {static_cast<char>(c)};
  }
  if (c < 0x800) {
    return {static_cast<char>(0xc0U | c >> 6U), tail(c)};
  }
  if (c < 0x10000) {
    return {static_cast<char>(0xe0U | c >> 12U), tail(c >> 6U), tail(c)};
  }
  return {static_cast<char>(0xf0U | c >> 18U), tail(c >> 12U), tail(c >> 6U), tail(c)};
}

}  // namespace rushlight::language
