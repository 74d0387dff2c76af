// Classes of characters, by which texts are cut into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rushlight::language {

// Letters L, numbers N, ends of lines R, the space _, other white space S, the apostrophe, and the
// rest O.
char class_of(char32_t c);

// The characters of UTF-8 with the bytes at which they begin, and the end behind them; bytes that
// are no characters stand for themselves, as ones of the class O.
struct Characters {
  std::vector<char32_t> codes;
  std::vector<size_t> begins;
};
Characters characters_of(std::string_view text);

std::string utf8_of(char32_t c);

}  // namespace rushlight::language
