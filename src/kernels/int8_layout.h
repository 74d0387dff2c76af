// How a matrix of int8 is packed for products: panels of 16 columns, in a panel groups of four
// terms, in a group the four terms of each column side by side. What is missing in the last panel
// and in the last group is zero.
#pragma once

#include <cstdint>

namespace rushlight {

inline constexpr int64_t int8_panel = 16;
inline constexpr int64_t int8_group = 4;
// So many products of a code less its zero point and a code of a weight always fit an int32.
inline constexpr int64_t int8_most_terms = INT32_MAX / (255 * 128);

inline int64_t int8_groups(int64_t terms) { return (terms + int8_group - 1) / int8_group; }
inline int64_t int8_panels(int64_t columns) { return (columns + int8_panel - 1) / int8_panel; }
inline int64_t int8_panel_bytes(int64_t groups) { return groups * int8_panel * int8_group; }

}  // namespace rushlight
