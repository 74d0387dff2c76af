// More of libtorch's names, which extensions use beside tensors and ops.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <rushlight/absent_functions.h>
#include <rushlight/compat.h>
#include <rushlight/context.h>
#include <rushlight/data_ptr.h>
#include <rushlight/function.h>
#include <rushlight/functions.h>
#include <rushlight/logging.h>
#include <rushlight/out_functions.h>
#include <rushlight/overloads.h>
#include <rushlight/record_function.h>
#include <rushlight/thread_index.h>

namespace rushlight {

// Small vectors are vectors here.
template <class T, unsigned inlined = 0>
using SmallVector = std::vector<T>;

// The numbers of a range, for loops: irange(n), irange(begin, end).
template <class T>
class IntegerRange {
 public:
  class iterator {
   public:
    explicit iterator(T at) : at_(at) {}
    T operator*() const { return at_; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const iterator& o) const { return at_ == o.at_; }
    bool operator!=(const iterator& o) const { return at_ != o.at_; }

   private:
    T at_;
  };
  IntegerRange(T begin, T end) : begin_(begin), end_(end < begin ? begin : end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }

 private:
  T begin_;
  T end_;
};
template <class T>
IntegerRange<T> irange(T end) {
  return {T(0), end};
}
template <class A, class B>
IntegerRange<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}

// The sizes of two broadcast tensors.
RL_API DimVector broadcast_sizes(IntArrayRef a, IntArrayRef b);
inline std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b) {
  const DimVector sizes = broadcast_sizes(a, b);
  return {sizes.data(), sizes.data() + sizes.size()};
}

// The dtype of an arithmetic result.
RL_API ScalarType result_type(TensorList operands);
inline ScalarType result_type(const Tensor& a, const Tensor& b) {
  const Tensor both[] = {a, b};
  return result_type(TensorList(both, 2));
}
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return promote_types(a, b); }
inline bool canCast(ScalarType from, ScalarType to) { return can_cast(from, to); }

// One partial result for each chunk of `grain`, combined in their order: the bits do not depend on
// the number of threads.
template <class T, class F, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain, T identity, const F& f,
                  const Combine& combine) {
  grain = grain < 1 ? 1 : grain;
  std::vector<T> parts(static_cast<size_t>(num_chunks(begin, end, grain)), identity);
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    parts[static_cast<size_t>((b - begin) / grain)] = f(b, e, identity);
  });
  T out = identity;
  for (const T& part : parts) {
    out = combine(out, part);
  }
  return out;
}
// Ops run on the thread that calls them: there is no pool of others, whatever is asked for.
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int n) {
  RL_CHECK(n > 0, "Expected positive number of threads");
}
inline int get_thread_num() { return parallel_thread_index(); }
namespace internal {
inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }
}  // namespace internal
using internal::divup;

class CPUGeneratorImpl;  // for make_generator<CPUGeneratorImpl>(seed) alone

// Padding by its kind, of the last dimensions.
#define RL_PADS(n)                                                          \
  inline Tensor reflection_pad##n##d(const Tensor& self, IntArrayRef by) {  \
    return pad(self, by, "reflect");                                        \
  }                                                                         \
  inline Tensor replication_pad##n##d(const Tensor& self, IntArrayRef by) { \
    return pad(self, by, "replicate");                                      \
  }
RL_PADS(1)
RL_PADS(2)
RL_PADS(3)
#undef RL_PADS
inline constexpr ScalarType kU16 = kUInt16, kU32 = kUInt32, kU64 = kUInt64;
// As `<<` writes it, in lines of another length.
RL_API std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size = 80);
// Where a tensor lies, or the first of a list; none where nothing is defined.
inline std::optional<Device> device_of(const Tensor& t) {
  return t.defined() ? std::optional(t.device()) : std::nullopt;
}
inline std::optional<Device> device_of(TensorList list) {
  return list.empty() ? std::nullopt : device_of(list[0]);
}
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
inline int64_t stride(const Tensor& self, int64_t dim) { return self.stride(dim); }
inline int64_t numel(const Tensor& self) { return self.numel(); }

// The sum and the product of a list of numbers.
template <class List>
int64_t sum_integers(const List& list) {
  int64_t out = 0;
  for (const auto item : list) {
    out += item;
  }
  return out;
}
template <class List>
int64_t multiply_integers(const List& list) {
  int64_t out = 1;
  for (const auto item : list) {
    out *= item;
  }
  return out;
}

// An IValue, and nothing that one could be made of.
RL_API std::ostream& write_value(std::ostream& out, const Value& value);
template <class T, std::enable_if_t<std::is_same_v<T, Value>, int> = 0>
std::ostream& operator<<(std::ostream& out, const T& value) {
  return write_value(out, value);
}
// The dtype and the device as options: zeros(sizes, CPU(kFloat)).
inline DeprecatedTypeProperties CPU(ScalarType dtype) { return {dtype, kCPU, kStrided}; }
inline DeprecatedTypeProperties CUDA(ScalarType dtype) { return {dtype, kCUDA, kStrided}; }

namespace impl {
// The same dict, told what its keys and values are, or not.
template <class K, class V>
Dict<K, V> toTypedDict(const GenericDict& dict) {
  return Dict<K, V>(dict.items());
}
template <class K, class V>
GenericDict toGenericDict(const Dict<K, V>& dict) {
  return GenericDict(dict.items());
}
}  // namespace impl

namespace native {
using namespace ::rushlight;  // at::native::relu is the op
}  // namespace native
namespace jit {
using rushlight::IValue;
}  // namespace jit

namespace autograd_api {
inline bool any_variable_requires_grad(const variable_list& variables) {
  for (const Tensor& t : variables) {
    if (t.defined() && t.requires_grad()) {
      return true;
    }
  }
  return false;
}
struct AnomalyMode {
  static bool is_enabled() { return tls.anomaly_mode; }
  static bool should_check_nan() { return tls.anomaly_check_nan; }
  static void set_enabled(bool enabled, bool check_nan = true) {
    tls.anomaly_mode = enabled;
    tls.anomaly_check_nan = check_nan;
  }
};
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : enabled_(tls.anomaly_mode), check_nan_(tls.anomaly_check_nan) {
    AnomalyMode::set_enabled(true, check_nan);
  }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(enabled_, check_nan_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_;
  bool check_nan_;
};
}  // namespace autograd_api

}  // namespace rushlight

// libtorch's hash maps, as the standard library's.
namespace ska {
template <class K, class V, class... Others>
using flat_hash_map = std::unordered_map<K, V, Others...>;
template <class K, class... Others>
using flat_hash_set = std::unordered_set<K, Others...>;
}  // namespace ska

#define TORCH_CHECK_LINALG(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_CHECK_WITH(Type, condition, ...) \
  RL_CHECK_AS(Type, condition,                 \
              ::rushlight::check_text(         \
                  "Expected " #condition " to be true, but got false.", ##__VA_ARGS__))
#define TORCH_CHECK_WITH_MSG(Type, condition, what, ...) \
  TORCH_CHECK_WITH(Type, condition, ##__VA_ARGS__)
#define TORCH_CHECK_ARG(condition, n, ...) \
  RL_CHECK(condition, "invalid argument ", n, ": ", ::rushlight::check_text("", ##__VA_ARGS__))
#define TORCH_SYM_CHECK(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_SYM_INTERNAL_ASSERT(condition, ...) TORCH_INTERNAL_ASSERT(condition, ##__VA_ARGS__)
#define TORCH_WARN_DEPRECATION(...) TORCH_WARN(__VA_ARGS__)
#define C10_THROW_ERROR(Type, message) throw ::rushlight::Type(message)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) static_cast<void>(0)
#define C10_RESTRICT __restrict
#define C10_EXPORT [[gnu::visibility("default")]]
#define C10_API C10_EXPORT
#define C10_ALWAYS_INLINE [[gnu::always_inline]] inline
#define C10_HOST_DEVICE
#define C10_HOST
#define C10_DEVICE
#define C10_HIP_HOST_DEVICE
#define C10_HIDDEN [[gnu::visibility("hidden")]]
#define C10_IMPORT C10_EXPORT
#define C10_USED __attribute__((__used__))
#define C10_NOINLINE __attribute__((noinline))
#define C10_NODISCARD [[nodiscard]]
#define C10_DEPRECATED [[deprecated]]
#define C10_DEPRECATED_MESSAGE(message) [[deprecated(message)]]
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_MACRO_EXPAND(...) __VA_ARGS__
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, __LINE__)
#define C10_DISABLE_COPY_AND_ASSIGN(Class) \
  Class(const Class&) = delete;            \
  Class& operator=(const Class&) = delete
#define AT_DISALLOW_COPY_AND_ASSIGN(Class) C10_DISABLE_COPY_AND_ASSIGN(Class)
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_CLANG_DIAGNOSTIC_IGNORE(warning)
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning)
#define C10_DIAGNOSTIC_POP()
#define TORCH_CUDA_CPP_API C10_EXPORT
#define TORCH_CUDA_CU_API C10_EXPORT
#define TORCH_PYTHON_API C10_EXPORT
#define TORCH_XPU_API C10_EXPORT
#define AT_PARALLEL_OPENMP 1
