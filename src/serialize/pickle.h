// Python's pickle as data: a reader that turns a pickle into plain nodes and runs nothing, a writer
// for what state consists of, and the renaming of the globals that a pickle mentions.
//
// A pickle is a program that builds objects. The reader records what it would build (nodes) and in
// which order it would fill it (steps); to make real objects, one replays both once, without
// recursion. What a global name stands for, and what calling it would mean, is for the
// walker to decide: here both are only nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rushlight/error.h>

namespace rushlight::serialize {

struct PickleNode {
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,         // value.i
    BigInt,      // bytes: two's complement, the lowest byte first
    Float,       // value.d
    String,      // bytes: UTF-8, not validated
    OldString,   // bytes: a str of Python 2
    Bytes,       // bytes
    ByteArray,   // bytes
    Global,      // bytes: module, newline, name
    List,        // empty at first
    Dict,        // empty at first
    Set,         // empty at first
    Tuple,       // items
    Call,        // items: what is called, the tuple of arguments
    New,         // the same, for a class whose __new__ is called
    Persistent,  // items: the id
  };
  struct Items {
    uint32_t first;  // into Pickle::items
    uint32_t count;
    // How many elements whoever copies or hashes it goes through, at least: those of tuples within
    // are its own, those that fill it count.
    uint32_t size;
  };
  union Value {
    constexpr Value() : i(0) {}
    int64_t i;
    double d;
    Items items;
    std::string_view bytes;  // into the pickle itself or Pickle::names
  };
  static constexpr uint32_t none = UINT32_MAX;

  bool has_bytes() const {
    return kind == Kind::BigInt || (kind >= Kind::String && kind <= Kind::Global);
  }
  bool has_items() const { return kind >= Kind::List; }
  std::string_view bytes() const { return has_bytes() ? value.bytes : std::string_view(); }

  Kind kind = Kind::None;
  uint16_t depth = 1;         // of tuples, calls and ids nested in each other
  uint32_t last_step = none;  // of those that fill this node; the first one is its `next`
  Value value;
};

// Items go into a node that has been made.
struct PickleStep {
  enum class Kind : uint8_t {
    Append,    // items are appended to a list
    SetItems,  // items are keys and values by turns
    Add,       // items go into a set
    Build,     // one item: the state that is given to the object
  };
  Kind kind;
  uint32_t node;
  uint32_t first;  // into Pickle::items
  uint32_t count;
  uint32_t made;  // how many nodes there are by then
  uint32_t next;  // that fills the same node; after the last one comes the first
};

// Lists that grow in pieces: a pickle of many bytes is one of many more objects.
struct Pickle {
  std::deque<PickleNode> nodes;
  std::deque<PickleStep> steps;
  std::deque<uint32_t> items;     // nodes
  std::deque<std::string> names;  // globals that the pickle does not hold in one piece
  uint32_t root = 0;
  size_t end = 0;  // bytes read

  // Calls make(id) for each node, whose items have been made, and fill(step), in the order of the
  // pickle.
  template <class Make, class Fill>
  void replay(const Make& make, const Fill& fill) const {
    uint32_t id = 0;
    for (const PickleStep& step : steps) {
      for (; id < step.made; id++) {
        make(id);
      }
      fill(step);
    }
    for (; id < nodes.size(); id++) {
      make(id);
    }
  }
  // Calls fill(step) for those of one node.
  template <class Fill>
  void each_step(const PickleNode& node, const Fill& fill) const {
    uint32_t id = node.last_step;
    while (id != PickleNode::none) {
      id = steps[id].next;
      fill(steps[id]);
      id = id == node.last_step ? PickleNode::none : id;
    }
  }
};

// Reads one pickle from the front of `bytes`, which must outlive the result. UnpicklingError where
// it is damaged or uses what a data-only reader does not follow.
RL_API Pickle read_pickle(std::string_view bytes);

// A pickle (of protocol 3 at most) with globals renamed. Each pair is a module's old and new name,
// which holds for what lies in it as well, or "module\nname" for one global alone; the first pair
// that fits counts.
using Renames = std::vector<std::pair<std::string, std::string>>;
RL_API std::string rename_globals(std::string_view pickle, const Renames& renames);

// Writes protocol 2, one value after the other, containers around their contents.
class RL_API PickleWriter {
 public:
  PickleWriter();
  void none() { out_ += 'N'; }
  void boolean(bool v) { out_ += v ? '\x88' : '\x89'; }
  void integer(int64_t v);
  void real(double v);
  void string(std::string_view v);
  void global(std::string_view module, std::string_view name);
  void mark() { out_ += '('; }
  void tuple() { out_ += 't'; }  // of all since the mark
  void empty_dict() { out_ += '}'; }
  void set_items() { out_ += 'u'; }  // of all since the mark, in the dict below it
  void empty_list() { out_ += ']'; }
  void append_items() { out_ += 'e'; }
  void empty_tuple() { out_ += ')'; }
  void reduce() { out_ += 'R'; }          // calls the global below the tuple
  void persistent() { out_ += 'Q'; }      // the id on top
  void make_object() { out_ += '\x81'; }  // of the class below the tuple of arguments
  void build() { out_ += 'b'; }           // gives the state on top to the object below it
  // Remembers what is on top under a number, and puts it there again.
  void remember(uint32_t number);
  void write_get(uint32_t number);
  std::string finish();

 private:
  std::string out_;
};

}  // namespace rushlight::serialize
