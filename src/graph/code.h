// What a graph is compiled to, and what it runs in.
#pragma once

#include <mutex>

#include <rushlight/executor.h>

#include "graph/values.h"

namespace rushlight::graph {

// A register or a constant, and whether its value may be moved from: it is not used again.
class Operand {
 public:
  static Operand in_register(uint32_t number) { return Operand(number); }
  static Operand of_constant(uint32_t number) { return Operand(number | constant_bit); }
  Operand as_last_use() const { return Operand(bits_ | dies_bit); }
  bool is_last_use() const { return (bits_ & dies_bit) != 0; }
  bool is_constant() const { return (bits_ & constant_bit) != 0; }
  uint32_t number() const { return bits_ & ~(dies_bit | constant_bit); }

 private:
  explicit Operand(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t dies_bit = uint32_t{1} << 31;
  static constexpr uint32_t constant_bit = uint32_t{1} << 30;
  uint32_t bits_;
};

enum class Step : uint8_t {
  CallOp,       // `index` of ops
  CallBuiltin,  // `index` of builtins
  CallFunction,
  CallMethod,  // `index` of names; the object's class says which function it is
  Fork,
  Wait,
  Move,
  Drop,        // its inputs die
  Jump,        // to instruction `index`
  JumpUnless,  // the input
  LoopTest,    // inputs: rounds so far, most rounds, condition; counts a round and puts its number
               // into the output, or jumps
  MakeList,
  MakeTuple,
  MakeDict,
  UnpackList,
  UnpackTuple,
  TupleIndex,
  TupleSlice,  // `index` and `end`
  GetSlot,     // `index` of the object's slots
  SetSlot,
  GetNamed,  // `index` of names
  SetNamed,
  Create,      // an object of class `index` of classes
  IsInstance,  // `index` of types
  Raise,
  Enter,
  Exit,
  Return,
};

struct Instruction {
  Step step;
  uint16_t inputs = 0;
  uint16_t outputs = 0;
  uint32_t first = 0;  // place of its first input in `operands`; the outputs are behind the inputs
  uint32_t index = 0;
  uint32_t end = 0;
};
// An output that nobody uses.
inline constexpr uint32_t no_register = (uint32_t{1} << 30) - 1;

// A call of an op. Arguments that are constants stand in `arguments` already.
struct OpCall {
  struct Filled {
    uint16_t input;  // of the instruction
    uint16_t place;  // in `arguments`
    const TypeInfo* type;
  };
  const OpInfo* op;
  std::vector<rushlight::Value> arguments;
  std::vector<Filled> filled;
  // Of the overload, not of its function: some that are filled in are joined (function_arguments).
  bool joined = false;
};

// Where an instruction comes from.
struct Origin {
  std::string kind;
  SourceRange range;
  std::shared_ptr<const CallSite> inlined;
};

struct Frame {
  std::vector<IValue> registers;
  std::vector<std::vector<rushlight::Value>> arguments;  // of each op call
  std::vector<IValue> scratch;                           // arguments and results of builtins
  std::vector<IValue> results;
  void clear();
};

struct Code {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<IValue> constants;
  std::vector<OpCall> ops;
  std::vector<const Builtin*> builtins;
  std::vector<std::string> names;
  std::vector<ClassType*> classes;
  std::vector<std::vector<Type>> types;
  std::vector<Function*> functions;
  std::vector<Origin> origins;  // of each instruction
  size_t inputs = 0;
  size_t registers = 0;
  size_t scratch = 0;

  // Frames that nobody runs in.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Frame>> frames;
  std::unique_ptr<Frame> take_frame() const;
  void give_back(std::unique_ptr<Frame> frame) const;
};

std::unique_ptr<Code> compile(const Graph& graph, std::string name);

// ---- between programs and ops ----

// As an op takes it: numbers become dtypes, shared lists become vectors.
rushlight::Value to_op(const IValue& value, const TypeInfo& type);
// As programs see it.
IValue from_op(rushlight::Value value, const TypeInfo& type);

}  // namespace rushlight::graph
