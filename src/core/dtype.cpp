// Promotion between dtypes and the default dtype.
#include <rushlight/dtype.h>

#include <atomic>

namespace rushlight {

const char* enum_name(ScalarType t) {
  static constexpr const char* names[] = {
#define RL_NAME(T, Enum, name, alias) #Enum,
      RL_FOR_EACH_DTYPE(RL_NAME)
#undef RL_NAME
          "Undefined"};
  return names[static_cast<int>(t)];
}

void dtype_not_implemented(const char* op, ScalarType t) {
  throw NotImplementedError(str('"', op, "\" not implemented for '", enum_name(t), "'"));
}

namespace {

// bool < integers < floating < complex.
int category(ScalarType t) {
  if (t == kBool) {
    return 0;
  }
  return is_integral(t) ? 1 : is_floating(t) ? 2 : 3;
}

ScalarType promote_integers(ScalarType a, ScalarType b) {
  if (a == kUInt8 || b == kUInt8) {  // uint8 and int8 give int16, and is below all the wider ones
    const ScalarType other = a == kUInt8 ? b : a;
    return other == kInt8 ? kInt16 : other;
  }
  return itemsize(a) >= itemsize(b) ? a : b;
}

ScalarType promote_floats(ScalarType a, ScalarType b) {
  if (itemsize(a) == itemsize(b)) {  // float16 with bfloat16
    return kFloat32;
  }
  return itemsize(a) > itemsize(b) ? a : b;
}

std::atomic<ScalarType> default_dtype{kFloat32};

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b || b == ScalarType::Undefined) {
    return a;
  }
  if (a == ScalarType::Undefined) {
    return b;
  }
  if (category(a) != category(b)) {
    const ScalarType high = category(a) > category(b) ? a : b;
    const ScalarType low = category(a) > category(b) ? b : a;
    return is_complex(high) && low == kFloat64 ? kComplexDouble : high;
  }
  switch (category(a)) {
    case 1:
      return promote_integers(a, b);
    case 2:
      return promote_floats(a, b);
    default:
      return kComplexDouble;
  }
}

bool can_cast(ScalarType from, ScalarType to) {
  return category(from) <= category(to) && !(category(from) == 1 && to == kBool);
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType t) {
  RL_CHECK_TYPE(is_floating(t), "only floating-point types are supported as the default type");
  default_dtype = t;
}

}  // namespace rushlight
