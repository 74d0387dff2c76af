// The pickle machine: a stack, marks on it, and a memo.
#include "serialize/pickle.h"

#include <algorithm>
#include <array>
#include <bit>

#include "serialize/pickle_stream.h"

namespace rushlight::serialize {
namespace {

using Kind = PickleNode::Kind;
using Step = PickleStep::Kind;
constexpr uint32_t none = PickleNode::none;
// Objects nested deeper than this overflow the stack of those who hash or compare them.
constexpr uint32_t max_depth = 1000;
// Objects take a hundred bytes and more, which one byte of a pickle may ask for, or ask to have
// copied again. Whoever writes a pickle has some bytes for each: a name by which it is remembered,
// or what is in it.
constexpr uint64_t objects_anyway = uint64_t{1} << 19;
constexpr uint64_t bytes_per_object = 4;
// In objects: what an empty set and the result of a call take, what may be copied without being
// counted, and how much of a text or of a tuple that is hashed counts as one.
constexpr uint64_t for_a_set = 3;
constexpr uint64_t for_a_call = 4;
constexpr uint64_t copied_freely = 8;
constexpr uint64_t bytes_copied = 32;
constexpr uint64_t elements_hashed = 16;

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
        make_once(none_, Kind::None, 0);
        break;
      case 0x88:
        make_once(true_, Kind::Bool, 1);
        break;
      case 0x89:
        make_once(false_, Kind::Bool, 0);
        break;
      case 'J':
        make(Kind::Int).value.i = number_at<int32_t>(a.data());
        break;
      case 'K': {
        const uint8_t i = number_at<uint8_t>(a.data());
        make_once(small_[i], Kind::Int, i);
        break;
      }
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
        make(Kind::String).value.bytes = a;
        break;
      case 'T':
      case 'U':
        make(Kind::OldString).value.bytes = a;
        break;
      case 'B':
      case 'C':
      case 0x8e:
        make(Kind::Bytes).value.bytes = a;
        break;
      case 0x96:
        make(Kind::ByteArray).value.bytes = a;
        break;
      case ']':
        make_container(Kind::List);
        break;
      case '}':
        make_container(Kind::Dict);
        break;
      case 0x8f:
        make_container(Kind::Set);
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
        make_once(empty_tuple_, Kind::Tuple, 0);
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
        make(Kind::Global).value.bytes = a;
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
    stack_.push_back(static_cast<uint32_t>(nodes.size()));
    PickleNode& node = nodes.emplace_back();
    node.kind = kind;
    return node;
  }

  // What nobody can tell from another of its value is one node.
  void make_once(uint32_t& id, Kind kind, int64_t value) {
    if (id != none) {
      stack_.push_back(id);
      return;
    }
    PickleNode& node = make(kind);
    node.value.i = value;
    if (kind == Kind::Tuple) {
      node.value.items = {};
    }
    id = stack_.back();
  }

  void make_container(Kind kind) {
    spend(kind == Kind::Set ? for_a_set : 1);
    make(kind).value.items = {};
  }

  void make_of_items(Kind kind, int64_t from) {
    const uint32_t first = take_items(from);
    const uint32_t count = static_cast<uint32_t>(result_.items.size()) - first;
    uint32_t depth = 1;
    uint64_t size = count;
    for (uint32_t i = 0; i < count; i++) {
      const PickleNode& item = result_.nodes[result_.items[first + i]];
      depth = std::max(depth, item.depth + 1U);
      size += size_within(item);
    }
    if (depth > max_depth) {
      s_.fail("objects are nested more than ", max_depth, " deep");
    }
    PickleNode& node = make(kind);
    node.depth = static_cast<uint16_t>(depth);
    node.value.items = {first, count, up_to_most(size)};
  }

  void make_call(Kind kind) {
    if (height() - 2 < floor()) {
      s_.fail("stack underflow in ", s_.name());
    }
    // TorchScript calls the enums of its programs with the value itself.
    const PickleNode& function = result_.nodes[stack_[stack_.size() - 2]];
    const PickleNode& arguments = result_.nodes[stack_.back()];
    const bool is_enum =
        function.kind == Kind::Global && function.bytes().starts_with("__torch__");
    if (arguments.kind != Kind::Tuple && !is_enum) {
      s_.fail(s_.name(), " without a tuple of arguments");
    }
    uint64_t copied = 0;
    for (uint32_t i = 0; arguments.kind == Kind::Tuple && i < arguments.value.items.count; i++) {
      copied += size_to_copy(result_.nodes[result_.items[arguments.value.items.first + i]]);
    }
    spend(for_a_call + copied);
    make_of_items(kind, height() - 2);
    result_.nodes.back().value.items.size = up_to_most(copied);
  }

  // ---- what is spent ----

  void spend(uint64_t objects) {
    spent_ += objects;
    if (spent_ > objects_anyway + s_.size() / bytes_per_object) {
      s_.fail("the pickle makes or copies far more objects than its ", s_.size(),
              " bytes have room for, found");
    }
  }
  static uint32_t up_to_most(uint64_t size) {
    return static_cast<uint32_t>(std::min(size, uint64_t{none}));
  }
  static uint64_t size_within(const PickleNode& n) {
    return n.kind == Kind::Tuple ? n.value.items.size : 0;
  }
  // Storages, which persistent ids are of, are shared.
  static uint64_t size_to_copy(const PickleNode& n) {
    const uint64_t size = n.kind == Kind::Persistent ? 0
                          : n.has_items()            ? n.value.items.size
                                                     : n.bytes().size() / bytes_copied;
    return size - std::min(size, copied_freely);
  }

  void make_long(std::string_view bytes) {
    if (bytes.size() > 8) {
      make(Kind::BigInt).value.bytes = bytes;
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
    const std::string& full =
        result_.names.emplace_back(str(module.bytes(), '\n', name.bytes()));
    stack_.resize(stack_.size() - 2);
    make(Kind::Global).value.bytes = full;
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
    make_container(kind);
    add_step(step, top(), first, count);
  }

  void add_step(Step kind, uint32_t target, uint32_t first, uint32_t count) {
    if (kind == Step::SetItems && count % 2 != 0) {
      s_.fail("odd number of items for ", s_.name());
    }
    PickleNode& node = result_.nodes[target];
    uint64_t size = count;
    for (uint32_t i = 0; i < count; i++) {
      const PickleNode& item = result_.nodes[result_.items[first + i]];
      size += size_within(item);
      const bool is_hashed = kind == Step::Add || (kind == Step::SetItems && i % 2 == 0);
      spend(is_hashed          ? size_within(item) / elements_hashed
            : kind == Step::Build ? size_to_copy(item)
                                  : 0);
    }
    if (node.has_items()) {
      node.value.items.size = up_to_most(size + node.value.items.size);
    }
    const uint32_t id = static_cast<uint32_t>(result_.steps.size());
    const uint32_t last = std::exchange(node.last_step, id);
    const uint32_t next = last == none ? id : std::exchange(result_.steps[last].next, id);
    const uint32_t made = static_cast<uint32_t>(result_.nodes.size());
    result_.steps.push_back({kind, target, first, count, made, next});
  }

  Stream s_;
  Pickle result_;
  uint64_t spent_ = 0;
  std::deque<uint32_t> stack_;
  std::deque<uint32_t> marks_;  // heights of the stack
  std::deque<uint32_t> memo_;
  uint32_t none_ = none;
  uint32_t true_ = none;
  uint32_t false_ = none;
  uint32_t empty_tuple_ = none;
  std::array<uint32_t, 256> small_ = filled_small();

  static constexpr std::array<uint32_t, 256> filled_small() {
    std::array<uint32_t, 256> all{};
    all.fill(none);
    return all;
  }
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
