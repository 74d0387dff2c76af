// Pickles of protocol 2, opcode by opcode.
#include <bit>

#include "serialize/pickle.h"

namespace rushlight::serialize {

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::integer(int64_t v) {
  const auto put = [&](char code, const void* bytes, size_t n) {
    out_ += code;
    out_.append(static_cast<const char*>(bytes), n);
  };
  if (v >= 0 && v < 256) {
    put('K', &v, 1);
  } else if (v >= 0 && v < 65536) {
    put('M', &v, 2);
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    put('J', &v, 4);
  } else {
    put('\x8a', "\x08", 1);
    out_.append(reinterpret_cast<const char*>(&v), 8);
  }
}

void PickleWriter::real(double v) {
  const uint64_t bits = __builtin_bswap64(std::bit_cast<uint64_t>(v));
  out_ += 'G';
  out_.append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

void PickleWriter::string(std::string_view v) {
  RL_CHECK(v.size() <= UINT32_MAX, "a string of ", v.size(), " bytes is too long to be saved");
  const uint32_t n = static_cast<uint32_t>(v.size());
  out_ += 'X';
  out_.append(reinterpret_cast<const char*>(&n), sizeof n);
  out_ += v;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

void PickleWriter::remember(uint32_t number) {
  out_ += 'r';
  out_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void PickleWriter::write_get(uint32_t number) {
  out_ += 'j';
  out_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace rushlight::serialize
