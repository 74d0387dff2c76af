// Reductions over ranks: always from the first rank to the last, so that bits depend neither on
// timing nor on how a tensor was cut.
#include <algorithm>
#include <complex>

#include <rushlight/distributed/backend.h>

namespace rushlight::distributed {

namespace {

// Elements whose running results stay in the first-level cache.
constexpr int64_t block = 1024;

template <class T>
struct Running {
  using type = T;
};
template <>
struct Running<Half> {
  using type = float;
};
template <>
struct Running<BFloat16> {
  using type = float;
};

template <class T>
constexpr bool is_number = !std::is_same_v<T, bool>;

template <class T, class Add>
void fold(T* out, const std::vector<const void*>& parts, int64_t count, const Reduction& op,
          const Add& add) {
  using R = typename Running<T>::type;
  R running[block];
  const auto ranks = static_cast<double>(parts.size());
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t n = std::min(block, count - begin);
    const T* first = static_cast<const T*>(parts[0]) + begin;
    for (int64_t i = 0; i < n; i++) {
      running[i] = static_cast<R>(first[i]);
    }
    if constexpr (is_number<T>) {
      if (op.kind == ReduceKind::PremulSum) {
        for (int64_t i = 0; i < n; i++) {
          running[i] = running[i] * static_cast<R>(op.factor);
        }
      }
    }
    for (size_t p = 1; p < parts.size(); p++) {
      const T* part = static_cast<const T*>(parts[p]) + begin;
      for (int64_t i = 0; i < n; i++) {
        running[i] = add(running[i], static_cast<R>(part[i]));
      }
    }
    if constexpr (is_number<T>) {
      if (op.kind == ReduceKind::Avg) {
        for (int64_t i = 0; i < n; i++) {
          running[i] = running[i] / static_cast<R>(ranks);
        }
      }
    }
    for (int64_t i = 0; i < n; i++) {
      out[begin + i] = static_cast<T>(running[i]);
    }
  }
}

template <class R>
R wrapping_add(R a, R b) {
  if constexpr (std::is_integral_v<R>) {
    return static_cast<R>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class R>
R wrapping_multiply(R a, R b) {
  if constexpr (std::is_integral_v<R>) {
    return static_cast<R>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
void combine_as(T* out, const std::vector<const void*>& parts, int64_t count, const Reduction& op) {
  using R = typename Running<T>::type;
  constexpr bool ordered =
      !std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>;
  switch (op.kind) {
    case ReduceKind::Sum:
    case ReduceKind::Avg:
      return fold(out, parts, count, op, [](R a, R b) { return wrapping_add(a, b); });
    case ReduceKind::PremulSum:
      return fold(out, parts, count, op, [&op](R a, R b) {
        return wrapping_add(a, wrapping_multiply(b, static_cast<R>(op.factor)));
      });
    case ReduceKind::Product:
      return fold(out, parts, count, op, [](R a, R b) { return wrapping_multiply(a, b); });
    default:
      break;
  }
  if constexpr (ordered) {
    // Not a number wins.
    if (op.kind == ReduceKind::Min) {
      return fold(out, parts, count, op, [](R a, R b) { return b < a || b != b ? b : a; });
    }
    if (op.kind == ReduceKind::Max) {
      return fold(out, parts, count, op, [](R a, R b) { return b > a || b != b ? b : a; });
    }
  }
  if constexpr (std::is_integral_v<T>) {
    if (op.kind == ReduceKind::BAnd) {
      return fold(out, parts, count, op, [](R a, R b) { return static_cast<R>(a & b); });
    }
    if (op.kind == ReduceKind::BOr) {
      return fold(out, parts, count, op, [](R a, R b) { return static_cast<R>(a | b); });
    }
    return fold(out, parts, count, op, [](R a, R b) { return static_cast<R>(a ^ b); });
  }
}

// Truth is a byte that is 0 or 1: the ops of bytes.
Reduction of_truth(Reduction op) {
  switch (op.kind) {
    case ReduceKind::Sum:
    case ReduceKind::Max:
      return {ReduceKind::BOr};
    case ReduceKind::Product:
    case ReduceKind::Min:
      return {ReduceKind::BAnd};
    default:
      return op;
  }
}

}  // namespace

void check_reduction(ScalarType dtype, const Reduction& op) {
  const bool bits =
      op.kind == ReduceKind::BAnd || op.kind == ReduceKind::BOr || op.kind == ReduceKind::BXor;
  const bool order = op.kind == ReduceKind::Min || op.kind == ReduceKind::Max;
  const bool scaled = op.kind == ReduceKind::Avg || op.kind == ReduceKind::PremulSum;
  const bool complex = is_complex(dtype);
  RL_CHECK(!bits || !(complex || is_floating(dtype)),
           "Cannot use ReduceOp.BAND, BOR or BXOR with non-integral dtype ", dtype);
  RL_CHECK_VALUE(!complex || !order, "all_reduce does not support ReduceOp.MIN and MAX on complex ",
                 "tensors");
  RL_CHECK(dtype != kBool || !scaled, "Cannot use ReduceOp.AVG or PREMUL_SUM with dtype ", dtype);
}

void combine(void* out, const std::vector<const void*>& parts, int64_t count, ScalarType dtype,
             const Reduction& op) {
#define RL_COMBINE(name, type) \
  case ScalarType::name:       \
    return combine_as(static_cast<type*>(out), parts, count, op);
  switch (dtype) {
    RL_COMBINE(Float, float)
    RL_COMBINE(Double, double)
    RL_COMBINE(Half, Half)
    RL_COMBINE(BFloat16, BFloat16)
    RL_COMBINE(Byte, uint8_t)
    RL_COMBINE(Char, int8_t)
    RL_COMBINE(Short, int16_t)
    RL_COMBINE(Int, int32_t)
    RL_COMBINE(Long, int64_t)
    RL_COMBINE(ComplexFloat, std::complex<float>)
    RL_COMBINE(ComplexDouble, std::complex<double>)
    case ScalarType::Bool:
      return combine_as(static_cast<uint8_t*>(out), parts, count, of_truth(op));
    default:
      throw TypeError(str("Invalid scalar type: no reduction over ranks of ", dtype));
  }
#undef RL_COMBINE
}

}  // namespace rushlight::distributed
