// From graphs to instructions: control flow becomes jumps, each value gets a register, and operands
// say where their values die.
#include <algorithm>

#include "core/boxed_arguments.h"
#include "graph/code.h"
#include "graph/lifetimes.h"

namespace rushlight::graph {

namespace {

class Compiler {
 public:
  Compiler(const Graph& graph, Code& code) : graph_(graph), code_(code), lifetimes_(graph) {}

  void run() {
    for (const Value* const input : graph_.inputs()) {
      define(*input);
    }
    code_.inputs = graph_.inputs().size();
    block(graph_.block());
    emit(Step::Return, *graph_.block().return_node(), inputs_of(*graph_.block().return_node()), {});
    code_.registers = next_;
  }

 private:
  // ---- registers ----

  uint32_t new_register() {
    RL_CHECK(next_ < no_register, "the graph has too many values");
    return next_++;
  }
  uint32_t define(const Value& value) { return registers_[&value] = new_register(); }
  uint32_t register_of(const Value& value) const { return registers_.at(&value); }
  static bool is_constant(const Value& value) {
    return value.node()->kind == Kind::Constant || value.node()->kind == Kind::Uninitialized;
  }
  Operand constant(IValue value) {
    code_.constants.push_back(std::move(value));
    return Operand::of_constant(static_cast<uint32_t>(code_.constants.size() - 1));
  }
  Operand operand(const Value& value, bool dies) {
    if (is_constant(value)) {
      const auto [found, is_new] = constants_.emplace(&value, Operand::of_constant(0));
      if (is_new) {
        const IValue* const what = value.constant();
        found->second = constant(what == nullptr ? IValue() : shared_list(*what));
      }
      return found->second;
    }
    const Operand out = Operand::in_register(register_of(value));
    return dies ? out.as_last_use() : out;
  }
  Operand input(const Node& node, size_t i) {
    return operand(*node.input(i), lifetimes_.is_last_use_at(node, i));
  }
  std::vector<Operand> inputs_of(const Node& node, size_t from = 0) {
    std::vector<Operand> out;
    for (size_t i = from; i < node.inputs().size(); i++) {
      out.push_back(input(node, i));
    }
    return out;
  }
  std::vector<uint32_t> outputs_of(const Node& node) {
    std::vector<uint32_t> out;
    for (const Value* const output : node.outputs()) {
      out.push_back(output->is_used() ? define(*output) : no_register);
    }
    return out;
  }

  // ---- instructions ----

  size_t emit(Step step, const Node& node, const std::vector<Operand>& inputs,
              const std::vector<uint32_t>& outputs, size_t index = 0, size_t end = 0) {
    constexpr size_t most = 65535;
    RL_CHECK(inputs.size() <= most && outputs.size() <= most, node.kind_name(), " has ",
             inputs.size(), " inputs and ", outputs.size(), " outputs; at most ", most,
             " are supported");
    Instruction made{step,
                     static_cast<uint16_t>(inputs.size()),
                     static_cast<uint16_t>(outputs.size()),
                     static_cast<uint32_t>(code_.operands.size()),
                     static_cast<uint32_t>(index),
                     static_cast<uint32_t>(end)};
    code_.operands.insert(code_.operands.end(), inputs.begin(), inputs.end());
    for (const uint32_t output : outputs) {
      code_.operands.push_back(Operand::in_register(output));
    }
    code_.instructions.push_back(made);
    code_.origins.push_back({node.kind_name(), node.range, node.inlined});
    return code_.instructions.size() - 1;
  }
  void emit_node(Step step, const Node& node, size_t index = 0, size_t end = 0) {
    const std::vector<Operand> inputs = inputs_of(node);
    emit(step, node, inputs, outputs_of(node), index, end);
  }
  size_t next_instruction() const { return code_.instructions.size(); }
  void jump_here(size_t instruction) {
    code_.instructions[instruction].index = static_cast<uint32_t>(next_instruction());
  }
  void drop(const Node& node, const std::vector<const Value*>& values) {
    std::vector<Operand> dead;
    for (const Value* const value : values) {
      const auto found = registers_.find(value);  // a round's number may have none
      if (found != registers_.end()) {
        dead.push_back(Operand::in_register(found->second).as_last_use());
      }
    }
    if (!dead.empty()) {
      emit(Step::Drop, node, dead, {});
    }
  }
  template <class T>
  static size_t add_entry(std::vector<T>& table, T entry) {
    table.push_back(std::move(entry));
    return table.size() - 1;
  }

  // ---- nodes ----

  void block(const Block& block) {
    drop(*block.param_node(), lifetimes_.dead_before(block));
    for (const Node* const each : block) {
      node(*each);
      drop(*each, lifetimes_.dead_after(*each));
    }
  }

  void node(const Node& node) {
    switch (node.kind) {
      case Kind::Constant:
      case Kind::Uninitialized:
        break;  // operands name them
      case Kind::If:
        branch(node);
        break;
      case Kind::Loop:
        loop(node);
        break;
      case Kind::Op:
        op(node);
        break;
      case Kind::Builtin:
        code_.scratch = std::max(code_.scratch, node.inputs().size() + node.outputs().size());
        emit_node(Step::CallBuiltin, node, add_entry(code_.builtins, node.builtin));
        break;
      case Kind::CallFunction:
      case Kind::Fork:
        RL_CHECK(node.function != nullptr, node.kind_name(), " has no function");
        emit_node(node.kind == Kind::Fork ? Step::Fork : Step::CallFunction, node,
                  add_entry(code_.functions, node.function));
        break;
      case Kind::CallMethod:
        method(node);
        break;
      case Kind::GetAttr:
      case Kind::SetAttr:
        attribute(node);
        break;
      case Kind::CreateObject:
        RL_CHECK(node.output()->type.definition != nullptr, "prim::CreateObject makes no object");
        emit_node(Step::Create, node, add_entry(code_.classes, node.output()->type.definition));
        break;
      case Kind::IsInstance:
        emit_node(Step::IsInstance, node, add_entry(code_.types, node.types));
        break;
      case Kind::TupleSlice:
        emit_node(Step::TupleSlice, node, static_cast<size_t>(node.attribute("beg").toInt()),
                  static_cast<size_t>(node.attribute("end").toInt()));
        break;
      default:
        compile_simple(node);
    }
  }

  void compile_simple(const Node& node) {
    const auto step = [&]() -> std::optional<Step> {
      switch (node.kind) {
        case Kind::ListConstruct:
          return Step::MakeList;
        case Kind::DictConstruct:
          return Step::MakeDict;
        case Kind::TupleConstruct:
          return Step::MakeTuple;
        case Kind::ListUnpack:
          return Step::UnpackList;
        case Kind::TupleUnpack:
          return Step::UnpackTuple;
        case Kind::TupleIndex:
          return Step::TupleIndex;
        case Kind::UncheckedCast:
          return Step::Move;
        case Kind::RaiseException:
          return Step::Raise;
        case Kind::Enter:
          return Step::Enter;
        case Kind::Exit:
          return Step::Exit;
        case Kind::Wait:
          return Step::Wait;
        default:
          return std::nullopt;
      }
    }();
    RL_CHECK_NOT_IMPLEMENTED(step, "graphs with ", node.kind_name(), " do not run",
                             node.range.is_known() ? " (" + node.range.place() + ")" : "");
    emit_node(*step, node);
  }

  void branch(const Node& node) {
    const std::vector<Operand> condition = inputs_of(node);
    const std::vector<uint32_t> outputs = outputs_of(node);
    const size_t to_else = emit(Step::JumpUnless, node, condition, {});
    block(node.block(0));
    move_returns(node.block(0), outputs);
    const size_t to_end = emit(Step::Jump, node, {}, {});
    jump_here(to_else);
    block(node.block(1));
    move_returns(node.block(1), outputs);
    jump_here(to_end);
  }

  // What a block makes goes into registers. Where one of them is an operand of a later move (of a
  // carried pair that is swapped) the value waits elsewhere.
  void move_returns(const Block& block, const std::vector<uint32_t>& targets) {
    const Node& end = *block.return_node();
    std::vector<std::pair<uint32_t, uint32_t>> waiting;
    for (size_t i = 0; i < targets.size(); i++) {
      const bool dies =
          lifetimes_.is_last_use_at(end, i) && !is_in_place_already(end, targets, *end.input(i), i);
      const Operand what = operand(*end.input(i), dies);
      if (targets[i] == no_register) {
        if (what.is_last_use()) {
          emit(Step::Drop, end, {what}, {});
        }
      } else if (is_read_later(end, i + 1, targets[i])) {
        waiting.emplace_back(new_register(), targets[i]);
        emit(Step::Move, end, {what}, {waiting.back().first});
      } else if (what.is_constant() || what.number() != targets[i]) {
        emit(Step::Move, end, {what}, {targets[i]});
      }
    }
    for (const auto& [place, target] : waiting) {
      emit(Step::Move, end, {Operand::in_register(place).as_last_use()}, {target});
    }
  }
  // Whether a value is in its place already, as another of the returns than number i.
  bool is_in_place_already(const Node& end, const std::vector<uint32_t>& targets,
                           const Value& value, size_t i) const {
    for (size_t k = 0; k < targets.size() && !is_constant(value); k++) {
      if (k != i && end.input(k) == &value && targets[k] == register_of(value)) {
        return true;
      }
    }
    return false;
  }
  bool is_read_later(const Node& end, size_t from, uint32_t target) const {
    for (size_t i = from; i < end.inputs().size(); i++) {
      if (!is_constant(*end.input(i)) && register_of(*end.input(i)) == target) {
        return true;
      }
    }
    return false;
  }

  void loop(const Node& node) {
    const uint32_t rounds = new_register();
    const uint32_t most = new_register();
    std::vector<uint32_t> state = {new_register()};  // the condition, then what is carried
    emit(Step::Move, node, {constant(IValue(int64_t{0}))}, {rounds});
    emit(Step::Move, node, {input(node, 0)}, {most});
    emit(Step::Move, node, {input(node, 1)}, {state[0]});
    const Block& body = node.block(0);
    for (size_t i = 0; i < node.outputs().size(); i++) {
      state.push_back(define(*body.params().at(i + 1)));
      emit(Step::Move, node, {input(node, i + 2)}, {state.back()});
      registers_[node.output(i)] = state.back();
    }
    const Value& number = *body.params().at(0);
    const uint32_t round = number.is_used() ? define(number) : no_register;
    const size_t test = emit(
        Step::LoopTest, node,
        {Operand::in_register(rounds), Operand::in_register(most), Operand::in_register(state[0])},
        {round});
    block(body);
    move_returns(body, state);
    emit(Step::Jump, node, {}, {}, test);
    jump_here(test);
    std::vector<const Value*> unused;
    for (const Value* const output : node.outputs()) {
      if (!output->is_used()) {
        unused.push_back(output);
      }
    }
    drop(node, unused);
  }

  void op(const Node& node) {
    const OpInfo& info = *node.op;
    OpCall call{&info, {}, {}, false};
    std::vector<rushlight::Value> known(info.arguments.size());
    std::vector<size_t> unknown;
    for (size_t i = 0; i < info.arguments.size(); i++) {
      if (!put_constant(known[i], *node.input(i), info.arguments[i].type)) {
        unknown.push_back(i);
      }
    }
    const auto is_joined = [&](size_t i) {
      return info.places != nullptr &&
             (info.places[i] < 0 ||
              info.function->arguments()[static_cast<size_t>(info.places[i])].type.base ==
                  BaseType::Options);
    };
    call.joined = std::any_of(unknown.begin(), unknown.end(), is_joined);
    if (!call.joined) {
      try {
        call.arguments = function_arguments(info, known);
      } catch (const Error&) {
        call.joined = true;  // it fails when it runs, and only then
      }
    }
    if (call.joined) {
      call.arguments = std::move(known);
    }
    std::vector<Operand> operands;
    for (const size_t i : unknown) {
      const size_t place =
          call.joined || info.places == nullptr ? i : static_cast<size_t>(info.places[i]);
      call.filled.push_back({static_cast<uint16_t>(operands.size()), static_cast<uint16_t>(place),
                             &info.arguments[i].type});
      operands.push_back(input(node, i));
    }
    emit(Step::CallOp, node, operands, outputs_of(node), add_entry(code_.ops, std::move(call)));
  }
  // Whether an argument is a constant that the op can take; others fail when they run.
  static bool put_constant(rushlight::Value& to, const Value& value, const TypeInfo& type) {
    const IValue* const what = value.constant();
    if (what == nullptr) {
      return false;
    }
    try {
      to = to_op(*what, type);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void method(const Node& node) {
    const Type& type = node.input(0)->type;
    const std::string name = node.text_attribute("name");
    Function* const function =
        type.is(Type::Kind::Class) ? type.definition->find_method(name) : nullptr;
    if (function != nullptr) {
      emit_node(Step::CallFunction, node, add_entry(code_.functions, function));
    } else {
      emit_node(Step::CallMethod, node, add_entry(code_.names, name));
    }
  }

  void attribute(const Node& node) {
    const bool gets = node.kind == Kind::GetAttr;
    const Type& type = node.input(0)->type;
    const std::string name = node.text_attribute("name");
    const size_t slot =
        type.is(Type::Kind::Class) ? type.definition->find_attribute(name) : ClassType::npos;
    if (slot != ClassType::npos) {
      emit_node(gets ? Step::GetSlot : Step::SetSlot, node, slot);
    } else {
      emit_node(gets ? Step::GetNamed : Step::SetNamed, node, add_entry(code_.names, name));
    }
  }

  const Graph& graph_;
  Code& code_;
  Lifetimes lifetimes_;
  std::unordered_map<const Value*, uint32_t> registers_;
  std::unordered_map<const Value*, Operand> constants_;
  uint32_t next_ = 0;
};

}  // namespace

std::unique_ptr<Code> compile(const Graph& graph, std::string name) {
  auto out = std::make_unique<Code>();
  out->name = std::move(name);
  Compiler(graph, *out).run();
  return out;
}

}  // namespace rushlight::graph
