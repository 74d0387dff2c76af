// Ops of one's own in C++: TORCH_LIBRARY names them, TORCH_LIBRARY_IMPL says what they do on
// devices. Python finds them as ops.NAMESPACE.NAME (ops.load_library, or an extension's import),
// C++ by Dispatcher::singleton().findSchemaOrThrow("namespace::name",
// "").typed<Signature>().call(…).
#pragma once

#include <rushlight/boxed_function.h>
#include <rushlight/custom_class.h>
#include <rushlight/schema.h>
#include <rushlight/thread_state.h>

namespace rushlight {

namespace library {
// What a program said: a definition has a schema, an implementation a place.
struct Record {
  std::string space;   // "_": of all ops that lack an implementation there
  std::string name;    // "name.overload"
  std::string schema;  // "(Tensor x, float y=1) -> Tensor"; empty in an implementation
  std::optional<DispatchKey> key;
  Kernel kernel;              // of a definition alone: empty
  std::string python_module;  // the one that has what Python adds to the op
  uint32_t tags = 0;          // of a definition: bit_of each
};
RL_API void add(Record record);
RL_API size_t count();                  // of records; they are never taken back
RL_API const Record& at(size_t place);  // stays where it is
RL_API std::string schema_of(const Kernel& kernel);
// What runs ops that have no function in C++ for their arguments, and says whether it did: Python's
// registry of functions. `below`: those for autograd are passed over.
using Elsewhere = bool(const std::string& name, Stack& stack, bool below);
RL_API void set_elsewhere(Elsewhere* function);
// Runs a record's function for the op of that name, or the fallback of the mode that is included.
RL_API void run(const Record& record, const std::string& name, Stack& stack);

// What runs in the place of an op of the table: for Autograd keys before the call is recorded, for
// devices behind that. What it calls itself comes to it again, but for Autograd keys below
// AutoDispatchBelowAutograd.
struct RL_API Override {
  virtual ~Override();
  virtual std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments,
                                 DispatchKeySet keys) const = 0;
};
// From now on, in all threads; the last one that was put there counts. A number to take it back by.
RL_API uint64_t override_op(const OpInfo& op, DispatchKey key, std::shared_ptr<const Override> by);
RL_API void take_back(uint64_t number);
// Whether an op of the table can have a function for a key: what autocast and sparse layouts do
// with it is said in the table.
RL_API bool may_override(DispatchKey key);
// The op as if nobody had overridden it.
RL_API std::vector<Value> call_original(const OpInfo& op, const std::vector<Value>& arguments);
// Whether the thread is in an AutoDispatchBelowAutograd; enters or leaves one.
RL_API bool is_below_autograd();
RL_API void enter_below_autograd(int by);
}  // namespace library

// ---- what is known of an op ----

struct FunctionArgument {
  std::string name_;
  std::string type_;
  std::string default_;  // as it is written; empty where it must be given
  const std::string& name() const { return name_; }
};
struct OperatorName {
  std::string name;
  std::string overload_name;
};
class RL_API FunctionSchema {
 public:
  FunctionSchema(OperatorName name, const std::string& text);
  const std::string& name() const { return name_.name; }
  const std::string& overload_name() const { return name_.overload_name; }
  const OperatorName& operator_name() const { return name_; }
  const std::vector<FunctionArgument>& arguments() const { return arguments_; }
  const std::vector<FunctionArgument>& returns() const { return returns_; }
  const std::string& text() const { return text_; }

 private:
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
  explicit OperatorHandle(const OpInfo& op);
  // "namespace::name"; RuntimeError where there is none.
  OperatorHandle(const std::string& name, const std::string& overload);
  const OperatorName& operator_name() const { return name_; }
  FunctionSchema schema() const;
  uint32_t tags() const;
  bool hasTag(Tag tag) const { return (tags() & bit_of(tag)) != 0; }
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
  OperatorName name_;
  std::string full_name_;       // "namespace::name.overload"
  const OpInfo* op_ = nullptr;  // of the table; null: of a library
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

// ---- definitions and implementations ----

// A function with the place that it is for: dispatch(DispatchKey::CPU, f).
class CppFunction {
 public:
  template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, CppFunction>, int> = 0,
            class = decltype(library::kernel_of(std::declval<F>()))>
  CppFunction(F&& function) : kernel_(library::kernel_of(std::forward<F>(function))) {}
  // A function (const OperatorHandle&, Stack*), or with a DispatchKeySet between them.
  template <auto function>
  static CppFunction makeFromBoxedFunction() {
    return CppFunction(
        library::boxed([](const OperatorHandle* op, Stack& stack) {
          if constexpr (std::is_invocable_v<decltype(function), const OperatorHandle&, Stack*>) {
            function(*op, &stack);
          } else {
            function(*op, library::current_keys(), &stack);
          }
        }),
        false);
  }
  template <class F>
  static CppFunction makeFromUnboxedFunction(F&& function) {
    return CppFunction(std::forward<F>(function));
  }
  static CppFunction makeFallthrough() {
    CppFunction out(library::Kernel(), false);
    out.kernel_.falls_through = true;
    return out;
  }
  std::optional<DispatchKey> key;
  const library::Kernel& kernel() const { return kernel_; }

 private:
  CppFunction(library::Kernel kernel, bool typed) : kernel_(std::move(kernel)) {
    kernel_.typed = typed;
  }
  library::Kernel kernel_;
};
template <class F>
CppFunction dispatch(DispatchKey key, F&& function) {
  CppFunction out(std::forward<F>(function));
  out.key = key;
  return out;
}
inline std::string schema(std::string text) { return text; }

// What TORCH_LIBRARY and TORCH_LIBRARY_IMPL hand to their body.
class RL_API Library {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  Library(Kind kind, std::string space, std::optional<DispatchKey> key);
  // "name(Tensor x) -> Tensor", without or with what it does; or "name", with the schema that the
  // function's types say.
  Library& def(const std::string& schema, const std::vector<Tag>& tags = {}) & {
    return define(schema, nullptr, tags);
  }
  Library& def(const std::string& schema, const CppFunction& function,
               const std::vector<Tag>& tags = {}) & {
    return define(schema, &function, tags);
  }
  // Of the definitions that follow: errors about what Python should add name it.
  Library& set_python_module(const char* module, const char* = "") {
    python_module_ = module;
    return *this;
  }
  Library& impl_abstract_pystub(const char* module, const char* context = "") {
    return set_python_module(module, context);
  }
  Library& impl(const std::string& name, const CppFunction& function) &;
  // In TORCH_LIBRARY_IMPL(_, KEY, m): what ops do that have no function for this key.
  Library& fallback(const CppFunction& function) &;
  // A class of this namespace; its methods follow.
  template <class C>
  rushlight::class_<C> class_(const std::string& name) {
    return {space_, name};
  }

 private:
  Library& define(const std::string& schema, const CppFunction* function,
                  const std::vector<Tag>& tags);
  Kind kind_;
  std::string space_;
  std::optional<DispatchKey> key_;
  std::string python_module_;
};
struct LibraryInit {
  LibraryInit(Library::Kind kind, const char* space, std::optional<DispatchKey> key,
              void (*body)(Library&)) {
    Library library(kind, space, key);
    body(library);
  }
};

// Ops as programs named them before TORCH_LIBRARY:
// static auto registry = RegisterOperators().op("namespace::name", f);
class RegisterOperators {
 public:
  RegisterOperators() = default;
  RegisterOperators(const std::string& schema, const CppFunction& function) {
    op(schema, function);
  }
  // The name with its namespace alone, or with a schema.
  RegisterOperators& op(const std::string& schema, const CppFunction& function) {
    const size_t colons = schema.find("::");
    RL_CHECK(colons != std::string::npos, "the schema '", schema, "' names no namespace");
    Library library(Library::FRAGMENT, schema.substr(0, colons), std::nullopt);
    library.def(schema, function);
    return *this;
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

namespace impl {
// Within it the keys of autograd, or of autocast, are passed over; others are not to be excluded.
class RL_API ExcludeDispatchKeyGuard {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet keys);
  explicit ExcludeDispatchKeyGuard(DispatchKey key)
      : ExcludeDispatchKeyGuard(DispatchKeySet(key)) {}
  ~ExcludeDispatchKeyGuard();
  ExcludeDispatchKeyGuard(const ExcludeDispatchKeyGuard&) = delete;
  ExcludeDispatchKeyGuard& operator=(const ExcludeDispatchKeyGuard&) = delete;

 private:
  std::optional<AutoDispatchBelowAutograd> below_;
  uint8_t autocast_;  // as it was
};
// Within it the ops of this thread go to the fallback of a key, which is off while it runs.
class RL_API IncludeDispatchKeyGuard {
 public:
  explicit IncludeDispatchKeyGuard(DispatchKey key);
  ~IncludeDispatchKeyGuard();
  IncludeDispatchKeyGuard(const IncludeDispatchKeyGuard&) = delete;
  IncludeDispatchKeyGuard& operator=(const IncludeDispatchKeyGuard&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
}  // namespace impl

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

#define RL_JOINED_(a, b) a##b
#define RL_JOINED(a, b) RL_JOINED_(a, b)
#define RL_LIBRARY(kind, space, key, id, m)                                        \
  static void RL_JOINED(rushlight_library_, id)(::rushlight::Library&);            \
  static const ::rushlight::LibraryInit RL_JOINED(rushlight_library_init_, id)(    \
      ::rushlight::Library::kind, space, key, &RL_JOINED(rushlight_library_, id)); \
  static void RL_JOINED(rushlight_library_, id)([[maybe_unused]] ::rushlight::Library & m)
#define TORCH_LIBRARY(ns, m) RL_LIBRARY(DEF, #ns, std::nullopt, ns, m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) RL_LIBRARY(FRAGMENT, #ns, std::nullopt, __COUNTER__, m)
#define TORCH_LIBRARY_IMPL(ns, k, m) \
  RL_LIBRARY(IMPL, #ns, ::rushlight::DispatchKey::k, __COUNTER__, m)
#define TORCH_FN(function) (&function)
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
