// Philox4x32-10 against the answers that its authors publish (kat_vectors of Random123).
#include "kernels/philox.h"

#include "check.h"

using namespace rushlight;  // NOLINT

namespace {

bool equal(const philox::Numbers& x, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return x.at[0] == a && x.at[1] == b && x.at[2] == c && x.at[3] == d;
}

}  // namespace

RL_TEST(known_answers) {
  CHECK(
      equal(philox::numbers({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t ones = 0xffffffff;
  CHECK(equal(philox::numbers({{ones, ones, ones, ones}}, ones, ones), 0x408f276d, 0x41c83b0e,
              0xa20bc7c6, 0x6d5451fd));
  CHECK(equal(
      philox::numbers({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
      0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

RL_TEST(streams_and_offsets_are_counters) {
  const philox::Numbers direct = philox::numbers({{3, 1, 7, 2}}, 0x89abcdef, 0x01234567);
  const philox::Numbers stream = philox::numbers(
      uint64_t{0x0123456789abcdef}, (uint64_t{2} << 32) + 7, ((uint64_t{1} << 32) + 3) * 4);
  for (int i = 0; i < 4; i++) {
    CHECK(direct.at[i] == stream.at[i]);
  }
}

RL_TEST(units_lie_below_one) {
  CHECK(philox::unit_float(0) == 0 && philox::unit_float(0xffffffff) < 1);
  CHECK(philox::unit_float(0xffffffff) == 1 - 0x1p-24f);
  CHECK(philox::unit_double(0, 0) == 0 &&
        philox::unit_double(0xffffffff, 0xffffffff) == 1 - 0x1p-53);
}

RL_TEST_MAIN()
