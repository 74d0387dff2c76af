// DEFLATE, read.
#include "serialize/inflate.h"

#include <array>
#include <vector>

#include <rushlight/error.h>

namespace rushlight::serialize {
namespace {

[[noreturn]] void raise_corrupt() { throw Error("a compressed entry of a zip file is damaged"); }

// The bits of a stream, the lowest of each byte first.
class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}
  uint32_t take(int n) {
    while (count_ < n) {
      if (at_ == bytes_.size()) {
        raise_corrupt();
      }
      held_ |= static_cast<uint32_t>(static_cast<unsigned char>(bytes_[at_++])) << count_;
      count_ += 8;
    }
    const uint32_t out = held_ & ((uint32_t{1} << n) - 1);
    held_ >>= n;
    count_ -= n;
    return out;
  }
  // The rest of the current byte is passed over.
  std::string_view take_bytes(size_t n) {
    held_ = 0;
    count_ = 0;
    if (bytes_.size() - at_ < n) {
      raise_corrupt();
    }
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  uint32_t held_ = 0;
  int count_ = 0;
};

// A canonical prefix code by the lengths of its words.
class Code {
 public:
  explicit Code(const std::vector<uint8_t>& lengths) : symbols_(lengths.size()) {
    for (const uint8_t length : lengths) {
      counts_[length]++;
    }
    counts_[0] = 0;
    int left = 1;
    std::array<uint16_t, 17> first{};
    for (size_t length = 1; length <= 15; length++) {
      left = 2 * left - counts_[length];
      if (left < 0) {
        raise_corrupt();  // more words than there are
      }
      first[length + 1] = static_cast<uint16_t>(first[length] + counts_[length]);
    }
    for (size_t symbol = 0; symbol < lengths.size(); symbol++) {
      if (lengths[symbol] != 0) {
        symbols_[first[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
      }
    }
  }
  uint16_t read(Bits& bits) const {
    int word = 0;
    int first = 0;
    size_t index = 0;
    for (size_t length = 1; length <= 15; length++) {
      word |= static_cast<int>(bits.take(1));
      const int count = counts_[length];
      if (word - count < first) {
        return symbols_[index + static_cast<size_t>(word - first)];
      }
      index += static_cast<size_t>(count);
      first = 2 * (first + count);
      word *= 2;
    }
    raise_corrupt();
  }

 private:
  std::array<uint16_t, 16> counts_{};
  std::vector<uint16_t> symbols_;
};

constexpr uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr uint16_t distance_base[] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr uint8_t distance_bits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                     6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

void read_words(Bits& bits, const Code& literals, const Code& distances, uint64_t size,
                std::string& out) {
  while (true) {
    const uint16_t symbol = literals.read(bits);
    if (symbol == 256) {
      return;
    }
    if (symbol < 256) {
      if (out.size() == size) {
        raise_corrupt();
      }
      out += static_cast<char>(symbol);
      continue;
    }
    const size_t place = symbol - 257u;
    if (place >= std::size(length_base)) {
      raise_corrupt();
    }
    const size_t length = length_base[place] + bits.take(length_bits[place]);
    const uint16_t far = distances.read(bits);
    if (far >= std::size(distance_base)) {
      raise_corrupt();
    }
    const size_t distance = distance_base[far] + bits.take(distance_bits[far]);
    if (distance > out.size() || size - out.size() < length) {
      raise_corrupt();
    }
    for (size_t i = 0; i < length; i++) {
      out += out[out.size() - distance];
    }
  }
}

void read_fixed(Bits& bits, uint64_t size, std::string& out) {
  std::vector<uint8_t> lengths(288, 8);
  std::fill(lengths.begin() + 144, lengths.begin() + 256, uint8_t{9});
  std::fill(lengths.begin() + 256, lengths.begin() + 280, uint8_t{7});
  read_words(bits, Code(lengths), Code(std::vector<uint8_t>(30, 5)), size, out);
}

void read_dynamic(Bits& bits, uint64_t size, std::string& out) {
  const size_t literals = bits.take(5) + 257;
  const size_t distances = bits.take(5) + 1;
  const size_t words = bits.take(4) + 4;
  constexpr uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  std::vector<uint8_t> lengths(19, 0);
  for (size_t i = 0; i < words; i++) {
    lengths[order[i]] = static_cast<uint8_t>(bits.take(3));
  }
  const Code code(lengths);
  std::vector<uint8_t> all;
  while (all.size() < literals + distances) {
    const uint16_t symbol = code.read(bits);
    if (symbol < 16) {
      all.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && all.empty()) {
      raise_corrupt();
    }
    const uint8_t repeated = symbol == 16 ? all.back() : uint8_t{0};
    const size_t times = symbol == 16   ? 3 + bits.take(2)
                         : symbol == 17 ? 3 + bits.take(3)
                                        : 11 + bits.take(7);
    all.insert(all.end(), times, repeated);
  }
  if (all.size() != literals + distances) {
    raise_corrupt();
  }
  const auto middle = all.begin() + static_cast<int64_t>(literals);
  read_words(bits, Code({all.begin(), middle}), Code({middle, all.end()}), size, out);
}

}  // namespace

std::string inflate(std::string_view packed, uint64_t size) {
  Bits bits(packed);
  std::string out;
  bool last = false;
  while (!last) {
    last = bits.take(1) != 0;
    const uint32_t kind = bits.take(2);
    if (kind == 0) {
      const std::string_view head = bits.take_bytes(4);
      const auto byte = [&](size_t i) { return static_cast<unsigned char>(head[i]); };
      const size_t n = byte(0) | byte(1) << 8;
      if ((byte(2) | byte(3) << 8) != (~n & 0xffff) || size - out.size() < n) {
        raise_corrupt();
      }
      out += bits.take_bytes(n);
    } else if (kind == 1) {
      read_fixed(bits, size, out);
    } else if (kind == 2) {
      read_dynamic(bits, size, out);
    } else {
      raise_corrupt();
    }
  }
  if (out.size() != size) {
    raise_corrupt();
  }
  return out;
}

}  // namespace rushlight::serialize
