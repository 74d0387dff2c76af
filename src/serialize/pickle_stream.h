// A pickle opcode by opcode: the table of opcodes with their names and how their argument lies in the
// stream. To read one more, add its row here, and its case in pickle.cpp.
#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include "serialize/pickle.h"

namespace rushlight::serialize {

// How the argument of an opcode lies in the stream.
enum class Argument : uint8_t {
  Unknown,  // no opcode of this reader
  Nothing,
  Fixed1,
  Fixed2,
  Fixed4,
  Fixed8,
  Counted1,  // that many bytes, after a count of 1, 4 or 8 bytes
  Counted4,
  Counted8,
  Line,
  TwoLines,
};

struct Opcode {
  const char* name = nullptr;
  Argument argument = Argument::Unknown;
};

inline constexpr auto opcodes = [] {
  std::array<Opcode, 256> t{};
  const auto set = [&t](char c, const char* name, Argument a) {
    t[static_cast<unsigned char>(c)] = {name, a};
  };
  using enum Argument;
  set('(', "MARK", Nothing);
  set('.', "STOP", Nothing);
  set('0', "POP", Nothing);
  set('1', "POP_MARK", Nothing);
  set('2', "DUP", Nothing);
  set('N', "NONE", Nothing);
  set('\x88', "NEWTRUE", Nothing);
  set('\x89', "NEWFALSE", Nothing);
  set('J', "BININT", Fixed4);
  set('K', "BININT1", Fixed1);
  set('M', "BININT2", Fixed2);
  set('\x8a', "LONG1", Counted1);
  set('\x8b', "LONG4", Counted4);
  set('G', "BINFLOAT", Fixed8);
  set('X', "BINUNICODE", Counted4);
  set('\x8c', "SHORT_BINUNICODE", Counted1);
  set('\x8d', "BINUNICODE8", Counted8);
  set('T', "BINSTRING", Counted4);
  set('U', "SHORT_BINSTRING", Counted1);
  set('B', "BINBYTES", Counted4);
  set('C', "SHORT_BINBYTES", Counted1);
  set('\x8e', "BINBYTES8", Counted8);
  set('\x96', "BYTEARRAY8", Counted8);
  set(']', "EMPTY_LIST", Nothing);
  set('l', "LIST", Nothing);
  set('a', "APPEND", Nothing);
  set('e', "APPENDS", Nothing);
  set(')', "EMPTY_TUPLE", Nothing);
  set('t', "TUPLE", Nothing);
  set('\x85', "TUPLE1", Nothing);
  set('\x86', "TUPLE2", Nothing);
  set('\x87', "TUPLE3", Nothing);
  set('}', "EMPTY_DICT", Nothing);
  set('d', "DICT", Nothing);
  set('s', "SETITEM", Nothing);
  set('u', "SETITEMS", Nothing);
  set('\x8f', "EMPTY_SET", Nothing);
  set('\x90', "ADDITEMS", Nothing);
  set('h', "BINGET", Fixed1);
  set('j', "LONG_BINGET", Fixed4);
  set('q', "BINPUT", Fixed1);
  set('r', "LONG_BINPUT", Fixed4);
  set('\x94', "MEMOIZE", Nothing);
  set('c', "GLOBAL", TwoLines);
  set('\x93', "STACK_GLOBAL", Nothing);
  set('R', "REDUCE", Nothing);
  set('b', "BUILD", Nothing);
  set('\x81', "NEWOBJ", Nothing);
  set('Q', "BINPERSID", Nothing);
  set('\x80', "PROTO", Fixed1);
  set('\x95', "FRAME", Fixed8);
  // Known, so that errors can name them, and skipped over when names are changed.
  set('I', "INT", Line);
  set('L', "LONG", Line);
  set('F', "FLOAT", Line);
  set('S', "STRING", Line);
  set('V', "UNICODE", Line);
  set('g', "GET", Line);
  set('p', "PUT", Line);
  set('P', "PERSID", Line);
  set('i', "INST", TwoLines);
  set('o', "OBJ", Nothing);
  set('\x82', "EXT1", Fixed1);
  set('\x83', "EXT2", Fixed2);
  set('\x84', "EXT4", Fixed4);
  set('\x91', "FROZENSET", Nothing);
  set('\x92', "NEWOBJ_EX", Nothing);
  set('\x97', "NEXT_BUFFER", Nothing);
  set('\x98', "READONLY_BUFFER", Nothing);
  return t;
}();

template <class T>
T number_at(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// One opcode after the other, with its argument.
class Stream {
 public:
  explicit Stream(std::string_view bytes) : bytes_(bytes) {}

  // Moves to the next opcode.
  void next() {
    start_ = position_;
    code_ = take(1)[0];
    const Opcode& op = opcodes[static_cast<unsigned char>(code_)];
    switch (op.argument) {
      case Argument::Unknown:
        fail("unknown opcode ", static_cast<int>(static_cast<unsigned char>(code_)));
      case Argument::Nothing:
        argument_ = {};
        break;
      case Argument::Fixed1:
        argument_ = take(1);
        break;
      case Argument::Fixed2:
        argument_ = take(2);
        break;
      case Argument::Fixed4:
        argument_ = take(4);
        break;
      case Argument::Fixed8:
        argument_ = take(8);
        break;
      case Argument::Counted1:
        argument_ = take(number_at<uint8_t>(take(1).data()));
        break;
      case Argument::Counted4:
        argument_ = take(number_at<uint32_t>(take(4).data()));
        break;
      case Argument::Counted8:
        argument_ = take(number_at<uint64_t>(take(8).data()));
        break;
      case Argument::Line:
        argument_ = take_lines(1);
        break;
      case Argument::TwoLines:
        argument_ = take_lines(2);
        break;
    }
  }
  char code() const { return code_; }
  const char* name() const { return opcodes[static_cast<unsigned char>(code_)].name; }
  std::string_view argument() const { return argument_; }
  std::string_view whole() const { return bytes_.substr(start_, position_ - start_); }
  size_t start() const { return start_; }
  size_t position() const { return position_; }
  size_t size() const { return bytes_.size(); }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw UnpicklingError(str(parts..., " at byte ", start_, " of the pickle"));
  }

 private:
  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - position_) {
      fail("pickle data was truncated");
    }
    const std::string_view piece = bytes_.substr(position_, n);
    position_ += n;
    return piece;
  }
  // Without the last newline.
  std::string_view take_lines(int lines) {
    size_t end = position_;
    for (int i = 0; i < lines; i++) {
      end = bytes_.find('\n', end);
      if (end == std::string_view::npos) {
        fail("pickle data was truncated");
      }
      end++;
    }
    const std::string_view text = bytes_.substr(position_, end - 1 - position_);
    position_ = end;
    return text;
  }

  std::string_view bytes_;
  std::string_view argument_;
  size_t position_ = 0;
  size_t start_ = 0;
  char code_ = 0;
};

}  // namespace rushlight::serialize
