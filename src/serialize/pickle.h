// Python's pickle as data: a reader that turns a pickle into plain nodes and runs nothing, a writer
// for what state consists of, and the renaming of the globals that a pickle mentions.
//
// A pickle is a program that builds objects. The reader records what it would build (nodes) and in
// which order it would fill it (steps); to make real objects, one walks over the steps once,
// without recursion. What a global name stands for, and what calling it would mean, is for the
// walker to decide: here both are only nodes.
#pragma once

#include <cstdint>
#include <memory>
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
    List,        // empty at first
    Dict,        // empty at first
    Set,         // empty at first
    Tuple,       // items
    Global,      // bytes: module, newline, name
    Call,        // items: what is called, the tuple of arguments
    New,         // the same, for a class whose __new__ is called
    Persistent,  // items: the id
  };
  Kind kind = Kind::None;
  uint32_t depth = 1;  // of tuples, calls and ids nested in each other
  union {
    int64_t i;
    double d;
    struct {
      uint32_t first;  // into Pickle::items
      uint32_t count;
    } items;
  } value = {};
  std::string_view bytes;      // into the pickle itself or Pickle::names
  uint32_t first_step = none;  // the steps that fill this node, chained by PickleStep::next
  uint32_t last_step = none;
  static constexpr uint32_t none = UINT32_MAX;
};

struct PickleStep {
  enum class Kind : uint8_t {
    Make,      // the node comes into being; its items have been made
    Append,    // items are appended to a list
    SetItems,  // items are keys and values by turns
    Add,       // items go into a set
    Build,     // one item: the state that is given to the object
  };
  Kind kind;
  uint32_t node;
  uint32_t first = 0;  // into Pickle::items
  uint32_t count = 0;
  uint32_t next = PickleNode::none;
};

struct Pickle {
  std::vector<PickleNode> nodes;
  std::vector<PickleStep> steps;
  std::vector<uint32_t> items;  // nodes
  std::vector<std::unique_ptr<std::string>>
      names;  // globals that the pickle does not hold in one piece
  uint32_t root = 0;
  size_t end = 0;  // bytes read
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
