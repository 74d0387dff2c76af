// Ops by name for C++ programs: what is known of one, and its calls, boxed and by a signature.
#pragma once

#include <rushlight/boxed_function.h>
#include <rushlight/schema.h>
#include <rushlight/thread_state.h>

namespace rushlight {

namespace graph {
struct Schema;
}  // namespace graph

struct FunctionArgument {
  std::string name_;
  std::string type_;
  std::string default_;  // as it is written; empty where it must be given
  const std::string& name() const { return name_; }
  // As an object, by <rushlight/script_types.h>.
  RL_API std::shared_ptr<script_types::Type> type() const;
};
using Argument = FunctionArgument;
struct OperatorName {
  std::string name;
  std::string overload_name;
};
class RL_API FunctionSchema {
 public:
  explicit FunctionSchema(const OpInfo& op);
  explicit FunctionSchema(const graph::Schema& schema);
  const std::string& name() const { return name_.name; }
  const std::string& overload_name() const { return name_.overload_name; }
  const OperatorName& operator_name() const { return name_; }
  const std::vector<FunctionArgument>& arguments() const { return arguments_; }
  const std::vector<FunctionArgument>& returns() const { return returns_; }
  const std::string& text() const { return text_; }

 private:
  FunctionSchema(const graph::Schema& schema, OperatorName name, std::string text);
  OperatorName name_;
  std::string text_;
  std::vector<FunctionArgument> arguments_;
  std::vector<FunctionArgument> returns_;
};
inline const std::string& toString(const FunctionSchema& schema) { return schema.text(); }

template <class Signature>
class TypedOperatorHandle;
class RL_API OperatorHandle {
 public:
  explicit OperatorHandle(const OpInfo& op) : op_(&op) {}
  // "namespace::name"; RuntimeError where there is none.
  OperatorHandle(const std::string& name, const std::string& overload);
  const OpInfo& op() const { return *op_; }
  OperatorName operator_name() const;
  FunctionSchema schema() const { return FunctionSchema(*op_); }
  bool hasTag(Tag tag) const { return op_->has_tag(tag); }
  // Takes all its arguments from the stack.
  void callBoxed(Stack& stack) const;
  void callBoxed(Stack* stack) const { callBoxed(*stack); }
  // The same, below autograd where the keys have none of its keys.
  void redispatchBoxed(DispatchKeySet keys, Stack* stack) const;
  template <class F>
  auto typed() const {
    return TypedOperatorHandle<std::remove_pointer_t<F>>(*this);
  }

 private:
  const OpInfo* op_;
};
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(OperatorHandle op) : op_(std::move(op)) {}
  R call(A... arguments) const {
    Stack stack;
    (stack.push_back(IValue(std::decay_t<A>(arguments))), ...);
    op_.callBoxed(stack);
    if constexpr (!std::is_void_v<R>) {
      return unbox(stack, static_cast<std::decay_t<R>*>(nullptr));
    }
  }
  // The same, below autograd where the keys have none of its keys.
  R redispatch(DispatchKeySet keys, A... arguments) const;

 private:
  template <class T>
  static T unbox(Stack& stack, T*) {
    return stack.at(0).to<T>();
  }
  template <class... T>
  static std::tuple<T...> unbox(Stack& stack, std::tuple<T...>*) {
    return IValue::tuple(std::move(stack)).template to<std::tuple<T...>>();
  }
  OperatorHandle op_;
};
class RL_API Dispatcher {
 public:
  static Dispatcher& singleton();
  // RuntimeError where no op has the name.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const {
    return {name, overload};
  }
};

// Within it ops are not recorded, and an op's function for autograd is passed over.
class RL_API AutoDispatchBelowADInplaceOrView {
 public:
  AutoDispatchBelowADInplaceOrView();
  ~AutoDispatchBelowADInplaceOrView();
  AutoDispatchBelowADInplaceOrView(const AutoDispatchBelowADInplaceOrView&) = delete;
  AutoDispatchBelowADInplaceOrView& operator=(const AutoDispatchBelowADInplaceOrView&) = delete;

 private:
  NoGradGuard no_grad_;
};
using AutoDispatchBelowAutograd = AutoDispatchBelowADInplaceOrView;
using AutoNonVariableTypeMode = AutoDispatchBelowADInplaceOrView;

template <class R, class... A>
R TypedOperatorHandle<R(A...)>::redispatch(DispatchKeySet keys, A... arguments) const {
  if (keys.has_any(autograd_dispatch_keyset)) {
    return call(std::forward<A>(arguments)...);
  }
  const AutoDispatchBelowAutograd below;
  return call(std::forward<A>(arguments)...);
}

namespace jit {
using Stack = rushlight::Stack;
template <class T>
void push_one(Stack& stack, T&& value) {
  stack.push_back(IValue(std::forward<T>(value)));
}
template <class... T>
void push(Stack& stack, T&&... values) {
  (push_one(stack, std::forward<T>(values)), ...);
}
template <class... T>
void push(Stack* stack, T&&... values) {
  push(*stack, std::forward<T>(values)...);
}
inline IValue pop(Stack& stack) {
  RL_CHECK(!stack.empty(), "the stack is empty");
  IValue out = std::move(stack.back());
  stack.pop_back();
  return out;
}
inline IValue pop(Stack* stack) { return pop(*stack); }
inline void drop(Stack& stack, size_t n) {
  RL_CHECK(stack.size() >= n, "the stack holds only ", stack.size(), " values");
  stack.resize(stack.size() - n);
}
inline void drop(Stack* stack, size_t n) { drop(*stack, n); }
// Value number i of the last n.
inline IValue& peek(Stack& stack, size_t i, size_t n) { return stack.at(stack.size() - n + i); }
}  // namespace jit

}  // namespace rushlight
