// Ops of one's own in C++: TORCH_LIBRARY names them, TORCH_LIBRARY_IMPL says what they do on
// devices. Python finds them as ops.NAMESPACE.NAME (ops.load_library, or an extension's import),
// C++ by Dispatcher::singleton().findSchemaOrThrow("namespace::name",
// "").typed<Signature>().call(…).
#pragma once

#include <rushlight/custom_class.h>
#include <rushlight/operator_handle.h>
#include <rushlight/thread_state.h>

namespace rushlight {

namespace library {
// Defines an op: "name.overload(Tensor x, float y=1) -> Tensor" in a namespace. RuntimeError where
// there is one of that name, or the text is no schema.
RL_API const OpInfo& define(const std::string& space, const std::string& schema, uint32_t tags = 0,
                            const std::string& python_module = "");
RL_API void undefine(const OpInfo& op);
RL_API bool is_defined_by_library(const OpInfo& op);  // no: the table's
RL_API std::string schema_of(const Kernel& kernel);   // "(Tensor _0) -> Tensor"

// Registers a function of an op ("space::name.overload"), of the table or of a library, from now on
// and in all threads; "_" is that of all ops that have none. The last one for a key counts; one for
// an op that is not defined yet waits for it. A number to take it back by.
//
// In the place of an op of the table, a function for an autograd key runs before the call is
// recorded, one for a device behind that. What it calls itself comes to it again, but for autograd
// keys below AutoDispatchBelowAutograd.
RL_API uint64_t implement(const std::string& full_name, DispatchKey key, Kernel kernel);
RL_API void take_back(uint64_t number);
// The one that counts; null where there is none.
RL_API std::shared_ptr<const Kernel> function_of(const OpInfo& op, DispatchKey key);
// The op as if nobody had overridden it.
RL_API std::vector<Value> call_original(const OpInfo& op, const std::vector<Value>& arguments);
// Whether the thread is in an AutoDispatchBelowAutograd; enters or leaves one.
RL_API bool is_below_autograd();
RL_API void enter_below_autograd(int by);
}  // namespace library

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
        library::make_kernel([](const OperatorHandle* op, Stack& stack) {
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
// The same by a kind of device: dispatch(kCPU, f).
template <class F>
CppFunction dispatch(DeviceType device, F&& function) {
  return dispatch(library::backend_key(device), std::forward<F>(function));
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
  // At a dispatch key, or on a kind of device.
  template <class Place, class F>
  Library& impl(const std::string& name, Place place, F&& function) & {
    return impl(name, dispatch(place, std::forward<F>(function)));
  }
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
  RL_API RegisterOperators& op(const std::string& schema, const CppFunction& function);
};

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
