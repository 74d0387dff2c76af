// Random numbers: PyTorch 2.13's own, written down here, for seed 3 unless said otherwise.
#include <cmath>
#include <thread>
#include <vector>

#include "check.h"
#include "core/generator.h"
#include "kernels/random.h"

#include <rushlight/error.h>

using namespace rushlight;
using namespace rushlight::random::RL_ISA;

static Generator seeded(uint64_t seed = 3) {
  Generator g{Device(kCPU)};
  g.set_current_seed(seed);
  return g;
}

template <class T, class Fill>
static std::vector<T> filled(int64_t n, const Fill& fill) {
  std::vector<T> out(static_cast<size_t>(n) + 1);
  out.back() = T(77.0f);
  fill(out.data(), n);
  CHECK(static_cast<float>(out.back()) == 77.0f);  // nothing is written beyond the end
  out.pop_back();
  return out;
}

template <class T>
static bool equal(const std::vector<T>& values, std::initializer_list<double> expected,
                  double tolerance = 0) {
  size_t i = 0;
  for (const double e : expected) {
    const double v = static_cast<double>(values[i++]);
    if (!(std::abs(v - e) <= tolerance * std::abs(e))) {
      std::printf("     element %zu: %a, expected %a\n", i - 1, v, e);
      return false;
    }
  }
  return true;
}

RL_TEST(uniform) {
  Generator g = seeded();
  const auto uniform = [&](double from, double to) {
    return [&g, from, to](auto* out, int64_t n) { fill_uniform(out, n, from, to, *g); };
  };
  CHECK(equal(filled<float>(5, uniform(0, 1)),
              {0x1.176ap-8, 0x1.b0698p-4, 0x1.24b3e4p-2, 0x1.b9a0cp-6, 0x1.e2eeep-2}));
  CHECK(equal(filled<double>(3, uniform(0, 1)),
              {0x1.ec791058b32p-2, 0x1.e6315e4982bfdp-1, 0x1.a549f2b9bb65p-4}));
  CHECK(equal(filled<Half>(3, uniform(0, 1)), {0x1.994p-1, 0x1.32cp-3, 0x1.9bp-2}));
  CHECK(equal(filled<BFloat16>(3, uniform(0, 1)), {0x1.bcp-5, 0x1.d6p-2, 0x1.68p-3}));
  CHECK(equal(filled<float>(3, uniform(-3.3, 7.7)), {0x1.c90656p+2, 0x1.814ff4p+2, 0x1.94b2e4p+2}));
  // The upper bound never comes out, though many numbers would round to it.
  for (const BFloat16 x : filled<BFloat16>(10000, uniform(0, 1))) {
    CHECK(x < 1 && x >= 0);
  }
  g.set_current_seed(static_cast<uint64_t>(-1));
  CHECK(equal(filled<float>(2, uniform(0, 1)), {0x1.fcd346p-1, 0x1.248244p-1}));
}

RL_TEST(normal) {
  Generator g = seeded();
  const auto normal = [&](auto* out, int64_t n) { fill_normal(out, n, 0, 1, *g); };
  CHECK(equal(filled<float>(5, normal),
              {0x1.9b47p-1, 0x1.660f0cp-3, 0x1.6c744cp-4, -0x1.3a394p-1, 0x1.7a539ep-5}));
  // The first of these is the second of the last pair.
  CHECK(equal(filled<double>(2, normal), {-0x1.5e463bc486fa1p+0, 0x1.599850aafe9bp-2}, 1e-15));
  const auto picked = [](auto x) { return decltype(x){x[0], x[1], x[8], x[16]}; };
  g = seeded();
  CHECK(equal(picked(filled<float>(17, normal)),
              {-0x1.39ef5ep-4, 0x1.dcbc58p-1, 0x1.9e5156p-2, 0x1.f0c1bap-2}, 2e-7));
  g = seeded();
  CHECK(equal(
      picked(filled<double>(17, normal)),
      {-0x1.bdf3141b7769p-3, 0x1.105ac960342d8p+0, 0x1.14145507c1061p+0, 0x1.d71644d19eb06p-6},
      1e-15));
  g = seeded();
  CHECK(equal(picked(filled<Half>(17, normal)), {-0x1.3ap-4, 0x1.0bcp-2, 0x1.b28p-5, -0x1.2ccp-3}));
  g = seeded();
  const std::vector<float> many = filled<float>(100000, normal);
  double sum = 0;
  double squares = 0;
  for (const float x : many) {
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / 1e5) < 0.02);
  CHECK(std::abs(squares / 1e5 - 1) < 0.02);
}

RL_TEST(integers) {
  Generator g = seeded();
  CHECK(
      equal(filled<int64_t>(12, [&](int64_t* out, int64_t n) { fill_integers(out, n, 10, 0, *g); }),
            {6, 8, 7, 7, 0, 0, 0, 5, 1, 9, 4, 1}));
  const auto wide = filled<int64_t>(
      3, [&](int64_t* o, int64_t n) { fill_integers(o, n, uint64_t{1} << 40, 0, *g); });
  CHECK((wide == std::vector<int64_t>{1069621364393, 593770158997, 511502908838}));
  const auto all = filled<int64_t>(3, [&](int64_t* out, int64_t n) { fill_all_bits(out, n, *g); });
  CHECK(
      (all == std::vector<int64_t>{8131506278483621524, 551118848153549405, 8427085544504367502}));
  g = seeded();
  const auto random = [&](auto* out, int64_t n) { fill_random(out, n, *g); };
  CHECK(equal(filled<int8_t>(4, random), {106, 24, 121, 3}));
  CHECK(equal(filled<float>(4, random), {7912302, 1008553, 12949630, 12477060}));
  CHECK((filled<int64_t>(2, random) ==
         std::vector<int64_t>{7248591967756700307, 7310317230188440427}));
  g = seeded();
  CHECK(equal(filled<int32_t>(10, [&](int32_t* out, int64_t n) { fill_permutation(out, n, *g); }),
              {6, 0, 3, 7, 8, 5, 1, 9, 2, 4}));
}

RL_TEST(bernoulli_and_exponential) {
  Generator g = seeded();
  CHECK(
      equal(filled<int64_t>(20, [&](int64_t* out, int64_t n) { fill_bernoulli(out, n, 0.3, *g); }),
            {1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1}));
  const std::vector<float> p(20, 0.3f);
  CHECK(
      equal(filled<float>(20, [&](float* out, int64_t n) { fill_bernoulli(out, p.data(), n, *g); }),
            {0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}));
  g = seeded();
  CHECK(equal(filled<double>(3, [&](double* out, int64_t n) { fill_exponential(out, n, 1.7, *g); }),
              {0x1.4e75ab93731afp-6, 0x1.9714e819fed9ap-3, 0x1.be79256a79f7bp-1}, 1e-15));
}

static uint64_t fnv(const std::vector<uint8_t>& bytes) {
  uint64_t h = 14695981039346656037u;
  for (const uint8_t b : bytes) {
    h = (h ^ b) * 1099511628211u;
  }
  return h;
}

RL_TEST(state) {
  Generator g = seeded();
  CHECK(g.state_bytes().size() == 5056);
  CHECK(fnv(g.state_bytes()) == 0xf6bab29220961f65);  // the whole state equals PyTorch's
  std::vector<float> x(701);
  fill_uniform(x.data(), 700, 0, 1, *g);
  fill_normal(x.data(), 1, 0, 1, *g);
  const std::vector<uint8_t> state = g.state_bytes();
  Generator twin = g.clone();
  CHECK(twin.state_bytes() == state);
  const auto draw = [&](Generator& from) {
    return filled<double>(100, [&](double* out, int64_t n) {
      fill_normal(out, 1, 0, 1, *from);
      fill_uniform(out + 1, n - 1, 0, 1, *from);
    });
  };
  const auto first = draw(g);
  CHECK(draw(twin) == first);
  g.set_state_bytes(state);
  CHECK(draw(g) == first);
  CHECK(g.initial_seed() == 3);
  CHECK(g.seed() == g.initial_seed());
  CHECK(default_generator().device() == Device(kCPU));
}

RL_TEST(bad_states_are_refused) {
  Generator g = seeded();
  const std::vector<uint8_t> good = g.state_bytes();
  CHECK_THROWS(Error, "size", g.set_state_bytes({1, 2, 3}));
  CHECK_THROWS(Error, "Invalid mt19937 state", g.set_state_bytes(std::vector<uint8_t>(5056)));
  for (const int at : {8, 9, 11, 12, 16, 18, 23}) {
    std::vector<uint8_t> bad = good;
    bad[static_cast<size_t>(at)] ^= 0x82;
    CHECK_THROWS(Error, "Invalid mt19937 state", g.set_state_bytes(bad));
  }
  std::vector<uint8_t> odd_bool = good;
  odd_bool[5052] = 0xff;
  g.set_state_bytes(odd_bool);
  CHECK_THROWS(Error, "undefined", Generator().initial_seed());
  CHECK_THROWS(AssertionError, "Torch not compiled with CUDA enabled", Generator(Device(kCUDA)));
}

RL_TEST_MAIN()
