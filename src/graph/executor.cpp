// Runs instructions.
#include <algorithm>
#include <string_view>

#include <rushlight/thread_state.h>

#include "core/allowance.h"
#include "core/boxed_arguments.h"
#include "core/rounds.h"
#include "graph/code.h"

namespace rushlight::graph {

Raised::~Raised() = default;

// ---- frames ----

void Frame::clear() {
  for (IValue& one : registers) {
    one = IValue();
  }
  for (IValue& one : scratch) {
    one = IValue();
  }
  results.clear();
}

std::unique_ptr<Frame> Code::take_frame() const {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!frames.empty()) {
      std::unique_ptr<Frame> out = std::move(frames.back());
      frames.pop_back();
      return out;
    }
  }
  auto out = std::make_unique<Frame>();
  out->registers.resize(registers);
  out->scratch.resize(scratch);
  out->arguments.reserve(ops.size());
  for (const OpCall& call : ops) {
    out->arguments.push_back(call.arguments);
  }
  return out;
}

void Code::give_back(std::unique_ptr<Frame> frame) const {
  constexpr size_t most = 64;
  const std::lock_guard<std::mutex> lock(mutex);
  if (frames.size() < most) {
    frames.push_back(std::move(frame));
  }
}

namespace {

// ---- what ends a run ----

constexpr int rounds_between_looks = 32;
thread_local int rounds_until_look __attribute__((tls_model("initial-exec"))) =
    rounds_between_looks;

void look() {
  rounds_until_look = rounds_between_looks;
  begin_rounds(rounds_between_looks);
}
// At the beginning of each round of a loop, and at each call.
void begin_round() {
  if (RL_UNLIKELY(--rounds_until_look <= 0)) {
    look();
  }
}

// How much there is of a value, at least one; of a number where it says how often something is.
uint64_t extent(const IValue& value, bool numbers) {
  if (value.isString()) {
    return value.toStringRef().size() + 1;
  }
  if (value.isTensor()) {
    return value.toTensor().defined() ? static_cast<uint64_t>(value.toTensor().numel()) + 1 : 1;
  }
  if (is_shared_list(value)) {
    return (items_of(value).size() + 1) * sizeof(IValue);
  }
  return numbers && value.isInt() ? static_cast<uint64_t>(std::max<int64_t>(value.toInt(), 0)) + 1
                                  : 1;
}

// What a call of a function of the language may make, where the thread is limited. Those of
// `multiply` make as much as the product of what they take; others, less than its sum.
void charge(const Builtin& called, const IValue* values, size_t n) {
  static constexpr std::string_view multiply[] = {
      "mul",  "mul_",       "ljust",   "rjust",         "center", "zfill",
      "join", "expandtabs", "replace", "percentFormat", "format", "pow"};
  const bool multiplies =
      std::find(std::begin(multiply), std::end(multiply), called.schema.name) != std::end(multiply);
  uint64_t product = 1;
  uint64_t sum = 0;
  bool has_parts = false;
  for (size_t i = 0; i < n; i++) {
    const uint64_t one = extent(values[i], multiplies);
    has_parts |= !values[i].isScalar();
    sum += one;
    if (__builtin_mul_overflow(product, one, &product)) {
      product = UINT64_MAX;
    }
  }
  Allowance::take_bytes(multiplies && has_parts ? product : sum);
}

// ---- what failed, and where ----

// On its way out of nested calls.
struct Failure {
  std::exception_ptr cause;
  std::string trace;  // outermost call first
};

std::string trace_entry(const Origin& origin, const SourceRange& range, const std::string& name) {
  return range.is_known() ? range.excerpt(name)
                          : rushlight::str("  in ", name, ", at ", origin.kind, "\n");
}

std::string trace_of(const Code& code, size_t at) {
  const Origin& origin = code.origins[at];
  std::string out;
  const SourceRange* range = &origin.range;
  for (const CallSite* site = origin.inlined.get(); site != nullptr; site = site->outer.get()) {
    out.insert(0, trace_entry(origin, *range, site->function));
    range = &site->range;
  }
  return out.insert(0, trace_entry(origin, *range, code.name));
}

[[noreturn]] void raise(const Failure& failure) {
  const std::string before =
      "an operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent "
      "call last):\n" +
      failure.trace;
  try {
    std::rethrow_exception(failure.cause);
  } catch (const Raised& e) {
    const std::string& kind = e.class_name();
    throw Raised(before + (kind.empty() ? "RuntimeError" : kind) + ": " + e.text() + "\n", kind,
                 e.text());
  } catch (const NotImplementedError& e) {
    throw NotImplementedError(before + "RuntimeError: " + e.what() + "\n");
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& e) {
    throw Error(before + "RuntimeError: " + e.what() + "\n");
  }  // what is no error of rushlight's, such as one of Python code, goes on as it is
}

// ---- running ----

struct Future : CustomClassHolder {
  IValue value;
  std::exception_ptr failure;
};
[[maybe_unused]] const bool is_named = [] {
  name_class(typeid(Future), "__torch__.Future");
  return true;
}();

// Calls of calls: each takes a few hundred bytes of the thread's stack, and what ops take.
constexpr int max_depth = 1000;
thread_local int depth = 0;
struct Depth {
  Depth() {
    depth++;
    if (depth > max_depth) {
      depth--;
      throw Error("functions call each other more deeply than is supported");
    }
  }
  ~Depth() { depth--; }
};

}  // namespace

class Machine {
 public:
  Machine(const Code& code, Frame& frame) : code_(code), frame_(frame) {}

  void run() {
    size_t at = 0;
    try {
      while (true) {
        const Instruction& now = code_.instructions[at];
        if (now.step == Step::Return) {
          frame_.results.clear();
          for (size_t i = 0; i < now.inputs; i++) {
            frame_.results.push_back(take(now, i));
          }
          return;
        }
        at = run(now, at);
      }
    } catch (const Failure& inner) {
      const Failure outer{inner.cause, trace_of(code_, at) + inner.trace};
      leave_contexts();
      throw outer;
    } catch (...) {
      const Failure outer{std::current_exception(), trace_of(code_, at)};
      leave_contexts();
      throw outer;
    }
  }

 private:
  const IValue& read(const Instruction& now, size_t i) const {
    const Operand operand = code_.operands[now.first + i];
    return operand.is_constant() ? code_.constants[operand.number()]
                                 : frame_.registers[operand.number()];
  }
  IValue take(const Instruction& now, size_t i) {
    const Operand operand = code_.operands[now.first + i];
    if (operand.is_constant()) {
      return code_.constants[operand.number()];
    }
    IValue& from = frame_.registers[operand.number()];
    return operand.is_last_use() ? std::exchange(from, IValue()) : from;
  }
  void put(const Instruction& now, size_t i, IValue value) {
    const uint32_t number = code_.operands[now.first + now.inputs + i].number();
    if (number != no_register) {
      frame_.registers[number] = std::move(value);
    }
  }
  // Inputs that were read and die.
  void end_inputs(const Instruction& now) {
    for (size_t i = 0; i < now.inputs; i++) {
      const Operand operand = code_.operands[now.first + i];
      if (operand.is_last_use()) {
        frame_.registers[operand.number()] = IValue();
      }
    }
  }
  std::vector<IValue> take_all(const Instruction& now) {
    std::vector<IValue> out;
    out.reserve(now.inputs);
    for (size_t i = 0; i < now.inputs; i++) {
      out.push_back(take(now, i));
    }
    return out;
  }

  // Runs one instruction; the place of the next.
  size_t run(const Instruction& now, size_t at) {
    switch (now.step) {
      case Step::CallOp:
        call_op(now);
        break;
      case Step::CallBuiltin:
        call_builtin(now);
        break;
      case Step::Move:
        put(now, 0, take(now, 0));
        break;
      case Step::Drop:
        end_inputs(now);
        break;
      case Step::Jump:
        return now.index;
      case Step::JumpUnless: {
        const bool holds = read(now, 0).toBool();
        end_inputs(now);
        return holds ? at + 1 : now.index;
      }
      case Step::LoopTest: {
        const int64_t round = read(now, 0).toInt();
        if (!read(now, 2).toBool() || round >= read(now, 1).toInt()) {
          return now.index;
        }
        begin_round();
        put(now, 0, IValue(round));
        frame_.registers[code_.operands[now.first].number()] = IValue(round + 1);
        break;
      }
      case Step::CallFunction:
        call(now, *code_.functions[now.index]);
        break;
      case Step::CallMethod:
        call_method(now, code_.names[now.index]);
        break;
      default:
        run_value(now);
    }
    return at + 1;
  }

  void call_op(const Instruction& now) {
    const OpCall& call = code_.ops[now.index];
    std::vector<rushlight::Value>& arguments = frame_.arguments[now.index];
    for (const OpCall::Filled& one : call.filled) {
      arguments[one.place] = to_op(read(now, one.input), *one.type);
    }
    if (RL_UNLIKELY(Allowance::is_limited())) {
      for (size_t i = 0; i < now.inputs; i++) {
        Allowance::take_bytes(extent(read(now, i), false));
      }
    }
    end_inputs(now);
    std::vector<rushlight::Value> results;
    try {
      results = call.joined ? call.op->function->call(function_arguments(*call.op, arguments))
                            : call.op->function->call(arguments);
    } catch (...) {
      empty(call, arguments);
      throw;
    }
    empty(call, arguments);
    for (size_t i = 0; i < now.outputs && i < results.size(); i++) {
      put(now, i, from_op(std::move(results[i]), call.op->results[i].type));
    }
  }
  static void empty(const OpCall& call, std::vector<rushlight::Value>& arguments) {
    for (const OpCall::Filled& one : call.filled) {
      arguments[one.place] = rushlight::Value();
    }
  }

  void call_builtin(const Instruction& now) {
    IValue* const arguments = frame_.scratch.data();
    IValue* const results = arguments + now.inputs;
    for (size_t i = 0; i < now.inputs; i++) {
      arguments[i] = take(now, i);
    }
    if (RL_UNLIKELY(Allowance::is_limited())) {
      charge(*code_.builtins[now.index], arguments, now.inputs);
    }
    code_.builtins[now.index]->call(arguments, now.inputs, results);
    for (size_t i = 0; i < now.outputs; i++) {
      put(now, i, std::move(results[i]));
    }
    for (size_t i = 0; i < size_t{now.inputs} + now.outputs; i++) {
      arguments[i] = IValue();
    }
  }

  // ---- functions ----

  static Object& object(const IValue& value) {
    Object* const out = object_of(value);
    RL_CHECK(out != nullptr, "a ", type_of(value).str(), " was used as an object");
    return *out;
  }
  static Function& method(const Object& object, const std::string& name) {
    Function* const out = object.type->find_method(name);
    RL_CHECK(out != nullptr, object.type->name, " has no method '", name, "'");
    return *out;
  }
  static std::vector<IValue> run_nested(Function& function, std::vector<IValue> arguments) {
    return function.native() != nullptr ? (*function.native())(std::move(arguments))
                                        : function.program().run_nested(std::move(arguments));
  }
  void call(const Instruction& now, Function& function) {
    std::vector<IValue> results = run_nested(function, take_all(now));
    RL_CHECK(results.size() == now.outputs, function.name(), " makes ", results.size(),
             " values, not ", now.outputs);
    for (size_t i = 0; i < now.outputs; i++) {
      put(now, i, std::move(results[i]));
    }
  }
  // The object keeps its class and methods until it returns.
  void call_method(const Instruction& now, const std::string& name) {
    const IValue kept = read(now, 0);
    call(now, method(object(kept), name));
  }
  static IValue one_of(std::vector<IValue> results) {
    return results.size() == 1 ? std::move(results[0])
           : results.empty()   ? IValue()
                               : IValue::tuple(std::move(results));
  }
  // A fork runs at once; its failure waits for who waits.
  void fork(const Instruction& now) {
    auto future = make_intrusive<Future>();
    try {
      future->value = one_of(run_nested(*code_.functions[now.index], take_all(now)));
    } catch (const Failure& failure) {
      future->failure = failure.cause;
    }
    put(now, 0, IValue(std::move(future)));
  }
  void wait(const Instruction& now) {
    const IValue value = take(now, 0);
    const auto* const future = dynamic_cast<Future*>(value.object().get());
    RL_CHECK(future != nullptr, "a ", value.class_name(), " was waited for");
    if (future->failure != nullptr) {
      std::rethrow_exception(future->failure);
    }
    put(now, 0, future->value);
  }
  void enter(const Instruction& now) {
    const IValue context = read(now, 0);
    call_method(now, "__enter__");
    contexts_.push_back(context);
  }
  void exit(const Instruction& now) {
    contexts_.pop_back();
    leave(take(now, 0));
  }
  // With statements that a failure leaves; one in their own __exit__ does not take its place.
  void leave_contexts() {
    while (!contexts_.empty()) {
      const IValue context = std::move(contexts_.back());
      contexts_.pop_back();
      try {
        leave(context);
      } catch (const Failure&) {  // the first failure is the one to be told
      }
    }
  }
  static void leave(const IValue& manager) {
    Function& function = method(object(manager), "__exit__");
    std::vector<IValue> arguments(function.graph().inputs().size());
    RL_CHECK(!arguments.empty(), function.name(), " takes no object");
    arguments[0] = manager;
    function.program().run_nested(std::move(arguments));
  }

  // ---- values ----

  void run_value(const Instruction& now) {
    switch (now.step) {
      case Step::Fork:
        return fork(now);
      case Step::Wait:
        return wait(now);
      case Step::Enter:
        return enter(now);
      case Step::Exit:
        return exit(now);
      case Step::MakeList:
        return put(now, 0, list_value(take_all(now)));
      case Step::MakeTuple:
        return put(now, 0, IValue::tuple(take_all(now)));
      case Step::MakeDict:
        return make_dict(now);
      case Step::UnpackList:
      case Step::UnpackTuple:
        return unpack(now);
      case Step::TupleIndex:
        return put(now, 0, tuple_item(take(now, 0), read(now, 1).toInt()));
      case Step::TupleSlice:
        return tuple_slice(now);
      case Step::Create: {
        ClassType& type = *code_.classes[now.index];
        RL_CHECK(type.unit != nullptr, type.name, " is of no unit");
        return put(now, 0, IValue(type.unit->create(type)));
      }
      case Step::IsInstance:
        return is_instance(now);
      case Step::Raise:
        return raise_exception(now);
      default:
        return attribute(now);
    }
  }

  void attribute(const Instruction& now) {
    const IValue holder = read(now, 0);
    Object& of = object(holder);
    const bool is_named = now.step == Step::GetNamed || now.step == Step::SetNamed;
    RL_CHECK(is_named || now.index < of.slots.size(), of.type->name,
             " has fewer attributes than the graph says");
    IValue& slot = is_named ? of.at(code_.names[now.index]) : of.slots[now.index];
    if (now.step == Step::GetSlot || now.step == Step::GetNamed) {
      put(now, 0, slot);
    } else {
      slot = take(now, 1);
    }
    end_inputs(now);
  }

  void make_dict(const Instruction& now) {
    IValue made = new_dict();
    for (size_t i = 0; i < now.inputs; i += 2) {
      IValue key = take(now, i);
      dict_of(made).insert(std::move(key), take(now, i + 1), true);
    }
    put(now, 0, std::move(made));
  }

  void unpack(const Instruction& now) {
    const IValue whole = take(now, 0);
    const IValue::Items items = whole.isTuple() ? items_of(whole) : whole.toListRef();
    RL_CHECK(items.size() == now.outputs, "Expected ", now.outputs,
             " elements in a list but found ", items.size());
    for (size_t i = 0; i < items.size(); i++) {
      put(now, i, items[i]);
    }
  }

  static IValue tuple_item(const IValue& tuple, int64_t i) {
    const auto n = static_cast<int64_t>(items_of(tuple).size());
    RL_CHECK_INDEX(i >= -n && i < n, "tuple index out of range");
    return items_of(tuple)[static_cast<size_t>(i < 0 ? i + n : i)];
  }

  void tuple_slice(const Instruction& now) {
    const IValue tuple = take(now, 0);
    const IValue::Items& items = items_of(tuple);
    RL_CHECK_INDEX(now.index <= now.end && now.end <= items.size(), "tuple index out of range");
    put(now, 0, IValue::tuple({items.begin() + now.index, items.begin() + now.end}));
  }

  void is_instance(const Instruction& now) {
    const std::vector<Type>& types = code_.types[now.index];
    const IValue& value = read(now, 0);
    const bool holds = std::any_of(types.begin(), types.end(),
                                   [&](const Type& type) { return is_of(value, type); });
    end_inputs(now);
    put(now, 0, IValue(holds));
  }

  [[noreturn]] void raise_exception(const Instruction& now) {
    const std::string text = read(now, 0).toStringRef();
    const bool has_class = now.inputs > 1 && read(now, 1).isString();
    throw Raised(text, has_class ? read(now, 1).toStringRef() : "", text);
  }

  const Code& code_;
  Frame& frame_;
  std::vector<IValue> contexts_;  // of the with statements that the run is within
};

// ---- programs ----

Program::Program(const Graph& graph, std::string name) : code_(compile(graph, std::move(name))) {}
Program::~Program() = default;

std::vector<IValue> Program::run_nested(std::vector<IValue> arguments) const {
  RL_CHECK(arguments.size() == code_->inputs, code_->name, " takes ", code_->inputs,
           " arguments, got ", arguments.size());
  const Depth deeper;
  begin_round();
  std::unique_ptr<Frame> frame = code_->take_frame();
  std::move(arguments.begin(), arguments.end(), frame->registers.begin());
  try {
    Machine(*code_, *frame).run();
  } catch (...) {
    frame->clear();
    code_->give_back(std::move(frame));
    throw;
  }
  std::vector<IValue> results = std::move(frame->results);
  code_->give_back(std::move(frame));
  return results;
}

std::vector<IValue> Program::run(std::vector<IValue> arguments) const {
  const bool records = GradMode::is_enabled();
  try {
    return run_nested(std::move(arguments));
  } catch (const Failure& failure) {
    GradMode::set_enabled(records);  // a with statement may have been left
    raise(failure);
  }
}

std::vector<IValue> Program::run_plainly(std::vector<IValue> arguments) const {
  try {
    return run_nested(std::move(arguments));
  } catch (const Failure& failure) {
    std::rethrow_exception(failure.cause);
  }
}

size_t Program::size() const { return code_->instructions.size(); }

}  // namespace rushlight::graph
