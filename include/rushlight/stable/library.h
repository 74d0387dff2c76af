// STABLE_TORCH_LIBRARY: TORCH_LIBRARY over the stable ABI. TORCH_BOX makes of a function one that
// takes its arguments from a stack.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include <rushlight/schema.h>
#include <rushlight/stable/values.h>

#pragma GCC visibility push(hidden)  // each binary has its own
namespace at {
using ::rushlight::Tag;
}  // namespace at

namespace torch {
namespace headeronly {
using ::rushlight::Tag;
}  // namespace headeronly
namespace stable {
namespace detail {

using StackFunction = void (*)(StableIValue* stack, uint64_t num_arguments, uint64_t num_results);

class StableLibrary {
 public:
  enum class Kind { DEF, IMPL, FRAGMENT };
  StableLibrary(Kind kind, const char* space, const char* key, const char* file, uint32_t line) {
    STABLE_TORCH_ERROR_CODE_CHECK(
        kind == Kind::IMPL  ? aoti_torch_library_init_impl(space, key, file, line, &handle_)
        : kind == Kind::DEF ? aoti_torch_library_init_def(space, file, line, &handle_)
                            : aoti_torch_library_init_fragment(space, file, line, &handle_));
  }
  StableLibrary(const StableLibrary&) = delete;
  StableLibrary& operator=(const StableLibrary&) = delete;
  ~StableLibrary() { aoti_torch_delete_library_object(handle_); }

  StableLibrary& def(const char* schema) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_def(handle_, schema));
    return *this;
  }
  StableLibrary& impl(const char* name, StackFunction function) {
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
    STABLE_TORCH_ERROR_CODE_CHECK(
        torch_library_impl(handle_, name, function, TORCH_FEATURE_VERSION));
#else
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_impl(handle_, name, function));
#endif
    return *this;
  }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0
  StableLibrary& def(const char* schema, const std::vector<headeronly::Tag>& tags) {
    std::vector<int32_t> numbers;
    for (const headeronly::Tag tag : tags) {
      numbers.push_back(number_of(tag));
    }
    STABLE_TORCH_ERROR_CODE_CHECK(torch_library_def_with_tags(
        handle_, schema, numbers.data(), static_cast<int32_t>(numbers.size())));
    return *this;
  }
#endif
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  StableLibrary& set_python_module(const char* module, const char* context = "") {
    STABLE_TORCH_ERROR_CODE_CHECK(torch_library_set_python_module(handle_, module, context));
    return *this;
  }
#endif

 private:
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0
  static int32_t number_of(headeronly::Tag tag) {
    switch (tag) {
#define RL_CASE(name)         \
  case headeronly::Tag::name: \
    return torch_tag_##name();
      RL_FOR_EACH_STABLE_TAG(RL_CASE)
#undef RL_CASE
      default:
        headeronly::fail("def(): the stable ABI has no number for this tag");
    }
  }
#endif
  TorchLibraryHandle handle_ = nullptr;
};

// Lives as long as the binary is loaded.
struct StableTorchLibraryInit {
  StableTorchLibraryInit(StableLibrary::Kind kind, void (*body)(StableLibrary&), const char* space,
                         const char* key, const char* file, uint32_t line)
      : library(kind, space, key, file, line) {
    body(library);
  }
  StableLibrary library;
};

// What is held while the function runs, of a parameter that refers to others.
template <class T>
struct Held {
  using type = T;
};
template <class T>
struct Held<headeronly::HeaderOnlyArrayRef<T>> {
  using type = std::vector<T>;
};
template <class T>
struct Held<std::optional<headeronly::HeaderOnlyArrayRef<T>>> {
  using type = std::optional<std::vector<T>>;
};
template <>
struct Held<std::string_view> {
  using type = std::string;
};
template <class T>
using held_t = typename Held<std::decay_t<T>>::type;

template <class T>
void put(StableIValue* stack, const T& result) {
  stack[0] = from(result);
}
template <class... T>
void put(StableIValue* stack, const std::tuple<T...>& results) {
  size_t i = 0;
  std::apply([&](const auto&... r) { ((stack[i++] = from(r)), ...); }, results);
}

template <auto function, class R, class... A, size_t... i>
void run_boxed(StableIValue* stack, R (*)(A...), std::index_sequence<i...>) {
  std::tuple<held_t<A>...> held{to<held_t<A>>(stack[i])...};
  if constexpr (std::is_void_v<R>) {
    function(std::get<i>(held)...);
  } else {
    put(stack, function(std::get<i>(held)...));
  }
}
template <class R, class... A>
constexpr size_t num_parameters(R (*)(A...)) {
  return sizeof...(A);
}
template <auto function>
void boxed(StableIValue* stack, uint64_t num_arguments, uint64_t) {
  constexpr size_t n = num_parameters(function);
  STD_TORCH_CHECK(num_arguments == n, "the function has ", n, " parameters, but the schema ",
                  num_arguments);
  run_boxed<function>(stack, function, std::make_index_sequence<n>());
}

}  // namespace detail
}  // namespace stable
}  // namespace torch
#pragma GCC visibility pop

#define TORCH_BOX(function) (&::torch::stable::detail::boxed<(function)>)
#define RL_STABLE_JOINED_(a, b) a##b
#define RL_STABLE_JOINED(a, b) RL_STABLE_JOINED_(a, b)
#define RL_STABLE_LIBRARY(kind, space, key, id, m)                                            \
  static void RL_STABLE_JOINED(stable_library_, id)(::torch::stable::detail::StableLibrary&); \
  static const ::torch::stable::detail::StableTorchLibraryInit RL_STABLE_JOINED(              \
      stable_library_init_, id)(::torch::stable::detail::StableLibrary::Kind::kind,           \
                                &RL_STABLE_JOINED(stable_library_, id), space, key, __FILE__, \
                                __LINE__);                                                    \
  static void RL_STABLE_JOINED(stable_library_,                                               \
                               id)([[maybe_unused]] ::torch::stable::detail::StableLibrary & m)
#define STABLE_TORCH_LIBRARY(ns, m) RL_STABLE_LIBRARY(DEF, #ns, nullptr, ns, m)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m) \
  RL_STABLE_LIBRARY(FRAGMENT, #ns, nullptr, __COUNTER__, m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, k, m) RL_STABLE_LIBRARY(IMPL, #ns, #k, __COUNTER__, m)
