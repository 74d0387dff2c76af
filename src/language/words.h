// How vocabularies of bytes cut texts into words, before bytes are merged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rushlight::language {

enum class Cut { Gpt2, Llama3, Qwen2 };

std::vector<std::string_view> words_of(std::string_view text, Cut cut);

}  // namespace rushlight::language
