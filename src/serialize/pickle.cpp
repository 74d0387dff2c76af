// The pickle machine: a stack, marks on it, and a memo. Opcodes are in one table with their names
// and how their argument lies in the stream; to read one more, add its row and its case.
#include "serialize/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace rushlight::serialize {
namespace {

using Kind = PickleNode::Kind;
using Step = PickleStep::Kind;
constexpr uint32_t none = PickleNode::none;
// Objects nested deeper than this overflow the stack of those who hash or compare them.
constexpr uint32_t max_depth = 1000;

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

constexpr auto opcodes = [] {
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

class Reader {
 public:
  explicit Reader(std::string_view bytes) : s_(bytes) {}

  Pickle run() {
    do {
      s_.next();
      execute();
    } while (s_.code() != '.');
    if (stack_.size() != 1 || !marks_.empty()) {
      s_.fail("the pickle ends with ", stack_.size(), " objects instead of one");
    }
    result_.root = stack_[0];
    result_.end = s_.position();
    return std::move(result_);
  }

 private:
  void execute() {
    const std::string_view a = s_.argument();
    switch (static_cast<unsigned char>(s_.code())) {
      case '(':
        marks_.push_back(static_cast<uint32_t>(stack_.size()));
        break;
      case '.':
        break;
      case '0':
        pop_or_mark();
        break;
      case '1':
        stack_.resize(pop_mark());
        break;
      case '2':
        stack_.push_back(top());
        break;
      case 'N':
        make(Kind::None);
        break;
      case 0x88:
        make(Kind::Bool).value.i = 1;
        break;
      case 0x89:
        make(Kind::Bool).value.i = 0;
        break;
      case 'J':
        make(Kind::Int).value.i = number_at<int32_t>(a.data());
        break;
      case 'K':
        make(Kind::Int).value.i = number_at<uint8_t>(a.data());
        break;
      case 'M':
        make(Kind::Int).value.i = number_at<uint16_t>(a.data());
        break;
      case 0x8a:
      case 0x8b:
        make_long(a);
        break;
      case 'G':
        make(Kind::Float).value.d =
            std::bit_cast<double>(__builtin_bswap64(number_at<uint64_t>(a.data())));
        break;
      case 'X':
      case 0x8c:
      case 0x8d:
        make(Kind::String).bytes = a;
        break;
      case 'T':
      case 'U':
        make(Kind::OldString).bytes = a;
        break;
      case 'B':
      case 'C':
      case 0x8e:
        make(Kind::Bytes).bytes = a;
        break;
      case 0x96:
        make(Kind::ByteArray).bytes = a;
        break;
      case ']':
        make(Kind::List);
        break;
      case '}':
        make(Kind::Dict);
        break;
      case 0x8f:
        make(Kind::Set);
        break;
      case 'l':
        make_filled(Kind::List, Step::Append);
        break;
      case 'd':
        make_filled(Kind::Dict, Step::SetItems);
        break;
      case 'a':
        fill(Step::Append, height() - 1);
        break;
      case 'e':
        fill(Step::Append, pop_mark());
        break;
      case 's':
        fill(Step::SetItems, height() - 2);
        break;
      case 'u':
        fill(Step::SetItems, pop_mark());
        break;
      case 0x90:
        fill(Step::Add, pop_mark());
        break;
      case 'b':
        fill(Step::Build, height() - 1);
        break;
      case ')':
        make_of_items(Kind::Tuple, height());
        break;
      case 't':
        make_of_items(Kind::Tuple, pop_mark());
        break;
      case 0x85:
        make_of_items(Kind::Tuple, height() - 1);
        break;
      case 0x86:
        make_of_items(Kind::Tuple, height() - 2);
        break;
      case 0x87:
        make_of_items(Kind::Tuple, height() - 3);
        break;
      case 'R':
        make_call(Kind::Call);
        break;
      case 0x81:
        make_call(Kind::New);
        break;
      case 'Q':
        make_of_items(Kind::Persistent, height() - 1);
        break;
      case 'c':
        make(Kind::Global).bytes = a;
        break;
      case 0x93:
        make_global_of_strings();
        break;
      case 'h':
        get(number_at<uint8_t>(a.data()));
        break;
      case 'j':
        get(number_at<uint32_t>(a.data()));
        break;
      case 'q':
        put(number_at<uint8_t>(a.data()));
        break;
      case 'r':
        put(number_at<uint32_t>(a.data()));
        break;
      case 0x94:
        put(memo_.size());
        break;
      case 0x80:
        if (a[0] < 0 || a[0] > 5) {
          s_.fail("unsupported pickle protocol ",
                  static_cast<int>(static_cast<unsigned char>(a[0])));
        }
        break;
      case 0x95:
        break;  // frames only say what will be read next
      default:
        s_.fail("unsupported opcode ", s_.name());
    }
  }

  // ---- stack ----

  // Objects below the last mark are out of reach.
  int64_t height() const { return static_cast<int64_t>(stack_.size()); }
  int64_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t top() const {
    if (height() <= floor()) {
      s_.fail("stack underflow in ", s_.name());
    }
    return stack_.back();
  }
  uint32_t pop_mark() {
    if (marks_.empty()) {
      s_.fail("no mark for ", s_.name());
    }
    const uint32_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  void pop_or_mark() {
    if (height() > floor()) {
      stack_.pop_back();
    } else {
      pop_mark();
    }
  }
  // Moves the objects from `from` on to the items.
  uint32_t take_items(int64_t from) {
    if (from < floor()) {
      s_.fail("stack underflow in ", s_.name());
    }
    if (result_.items.size() + stack_.size() >= none) {
      s_.fail("the pickle is too large");
    }
    const uint32_t first = static_cast<uint32_t>(result_.items.size());
    result_.items.insert(result_.items.end(), stack_.begin() + from, stack_.end());
    stack_.resize(static_cast<size_t>(from));
    return first;
  }

  // ---- memo ----

  void put(uint64_t index) {
    // Writers number what they remember, so that a number is never beyond the bytes written by
    // then.
    if (index > s_.position()) {
      s_.fail("memo index ", index, " out of range");
    }
    if (index >= memo_.size()) {
      memo_.resize(index + 1, none);
    }
    memo_[index] = top();
  }
  void get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == none) {
      s_.fail("memo value not found at index ", index);
    }
    stack_.push_back(memo_[index]);
  }

  // ---- nodes ----

  PickleNode& make(Kind kind) {
    auto& nodes = result_.nodes;
    if (nodes.size() >= none - 1) {
      s_.fail("the pickle is too large");
    }
    const uint32_t id = static_cast<uint32_t>(nodes.size());
    PickleNode& node = nodes.emplace_back();
    node.kind = kind;
    result_.steps.push_back({Step::Make, id});
    stack_.push_back(id);
    return node;
  }

  void make_of_items(Kind kind, int64_t from) {
    const uint32_t first = take_items(from);
    const uint32_t count = static_cast<uint32_t>(result_.items.size()) - first;
    uint32_t depth = 1;
    for (uint32_t i = 0; i < count; i++) {
      depth = std::max(depth, result_.nodes[result_.items[first + i]].depth + 1);
    }
    if (depth > max_depth) {
      s_.fail("objects are nested more than ", max_depth, " deep");
    }
    PickleNode& node = make(kind);
    node.depth = depth;
    node.value.items = {first, count};
  }

  void make_call(Kind kind) {
    if (height() - 2 < floor()) {
      s_.fail("stack underflow in ", s_.name());
    }
    // TorchScript calls the enums of its programs with the value itself.
    const PickleNode& function = result_.nodes[stack_[stack_.size() - 2]];
    const bool is_enum = function.kind == Kind::Global && function.bytes.starts_with("__torch__");
    if (result_.nodes[stack_.back()].kind != Kind::Tuple && !is_enum) {
      s_.fail(s_.name(), " without a tuple of arguments");
    }
    make_of_items(kind, height() - 2);
  }

  void make_long(std::string_view bytes) {
    if (bytes.size() > 8) {
      make(Kind::BigInt).bytes = bytes;
      return;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); i++) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    const size_t unused = 64 - 8 * bytes.size();
    if (unused > 0 && unused < 64) {  // the sign
      value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    }
    make(Kind::Int).value.i = static_cast<int64_t>(value);
  }

  void make_global_of_strings() {
    if (height() - 2 < floor()) {
      s_.fail("stack underflow in STACK_GLOBAL");
    }
    const PickleNode& module = result_.nodes[stack_[stack_.size() - 2]];
    const PickleNode& name = result_.nodes[stack_.back()];
    if (module.kind != Kind::String || name.kind != Kind::String) {
      s_.fail("STACK_GLOBAL requires str");
    }
    result_.names.push_back(std::make_unique<std::string>(str(module.bytes, '\n', name.bytes)));
    stack_.resize(stack_.size() - 2);
    make(Kind::Global).bytes = *result_.names.back();
  }

  // Fills the object below `from` with those from there on.
  void fill(Step kind, int64_t from) {
    const uint32_t first = take_items(from);
    const uint32_t count = static_cast<uint32_t>(result_.items.size()) - first;
    add_step(kind, top(), first, count);
  }

  void make_filled(Kind kind, Step step) {
    const uint32_t first = take_items(pop_mark());
    const uint32_t count = static_cast<uint32_t>(result_.items.size()) - first;
    make(kind);
    add_step(step, top(), first, count);
  }

  void add_step(Step kind, uint32_t target, uint32_t first, uint32_t count) {
    if (kind == Step::SetItems && count % 2 != 0) {
      s_.fail("odd number of items for ", s_.name());
    }
    const uint32_t id = static_cast<uint32_t>(result_.steps.size());
    result_.steps.push_back({kind, target, first, count});
    PickleNode& node = result_.nodes[target];
    (node.last_step == none ? node.first_step : result_.steps[node.last_step].next) = id;
    node.last_step = id;
  }

  Stream s_;
  Pickle result_;
  std::vector<uint32_t> stack_;
  std::vector<uint32_t> marks_;  // heights of the stack
  std::vector<uint32_t> memo_;
};

}  // namespace

Pickle read_pickle(std::string_view bytes) { return Reader(bytes).run(); }

std::string rename_globals(std::string_view pickle, const Renames& renames) {
  std::string out;
  out.reserve(pickle.size());
  Stream s(pickle);
  do {
    s.next();
    if (s.code() == '\x95' || s.code() == '\x93') {
      s.fail("names can be changed in pickles of protocol 3 at most");
    }
    const std::string_view global = s.argument();
    const auto fits = [&](const std::pair<std::string, std::string>& r) {
      const std::string& from = r.first;
      const char after = from.size() < global.size() ? global[from.size()] : '\0';
      return global.starts_with(from) &&
             (global.size() == from.size() || after == '.' || after == '\n');
    };
    const auto rename =
        s.code() == 'c' ? std::find_if(renames.begin(), renames.end(), fits) : renames.end();
    if (rename == renames.end()) {
      out += s.whole();
    } else {
      out += 'c';
      out += rename->second;
      out += global.substr(rename->first.size());
      out += '\n';
    }
  } while (s.code() != '.');
  return out;
}

}  // namespace rushlight::serialize
