// Promotion between dtypes and the default dtype.
#include <rushlight/type_meta.h>

#include <atomic>
#include <ostream>

namespace rushlight {

void dtype_not_implemented(const char* op, ScalarType t) {
  throw NotImplementedError(str('"', op, "\" not implemented for '", enum_name(t), "'"));
}

std::string_view cpp_name(ScalarType dtype) {
  switch (dtype) {
    case kByte:
      return "unsigned char";
    case kChar:
      return "signed char";
    case kShort:
      return "short";
    case kInt:
      return "int";
    case kLong:
      return "long";
    case kHalf:
      return "c10::Half";
    case kFloat:
      return "float";
    case kDouble:
      return "double";
    case kComplexHalf:
      return "c10::complex<c10::Half>";
    case kComplexFloat:
      return "c10::complex<float>";
    case kComplexDouble:
      return "c10::complex<double>";
    case kBool:
      return "bool";
    case kBFloat16:
      return "c10::BFloat16";
    case kUInt16:
      return "unsigned short";
    case kUInt32:
      return "unsigned int";
    case kUInt64:
      return "unsigned long";
    case kFloat8_e4m3fn:
      return "c10::Float8_e4m3fn";
    case kFloat8_e5m2:
      return "c10::Float8_e5m2";
    case kFloat8_e4m3fnuz:
      return "c10::Float8_e4m3fnuz";
    case kFloat8_e5m2fnuz:
      return "c10::Float8_e5m2fnuz";
    case ScalarType::Undefined:
      break;
  }
  return "nullptr (uninitialized)";
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
  const auto check = [&](bool fits, const char* which) {
    RL_CHECK(fits, "Promotion for ", which, " is not supported, attempted to promote ",
             enum_name(a), " and ", enum_name(b));
  };
  check(!is_float8(a) && !is_float8(b), "Float8 Types");
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    const ScalarType other = is_wide_unsigned(a) ? b : a;
    check(is_floating(other), "uint16, uint32, uint64 types");
    return other;
  }
  if (category(a) != category(b)) {
    const ScalarType high = category(a) > category(b) ? a : b;
    const ScalarType low = category(a) > category(b) ? b : a;
    return is_complex(high) && is_floating(low) ? promote_types(high, to_complex(low)) : high;
  }
  switch (category(a)) {
    case 1:
      return promote_integers(a, b);
    case 2:
      return promote_floats(a, b);
    default:
      return itemsize(a) > itemsize(b) ? a : b;
  }
}

bool can_cast(ScalarType from, ScalarType to) {
  return category(from) <= category(to) && !(category(from) == 1 && to == kBool);
}

FloatLimits float_limits(ScalarType t) {
  return visit_dtype<set_floating | set_float8>("finfo", t, [](auto tag) -> FloatLimits {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Half>) {
      return {0x1p-10, 65504.0, 0x1p-14};
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return {0x1p-7, 0x1.fep127, 0x1p-126};
    } else if constexpr (is_float8_v<T>) {
      return {T::eps(), T::max(), T::smallest_normal()};
    } else {
      using Limits = std::numeric_limits<T>;
      return {Limits::epsilon(), Limits::max(), Limits::min()};
    }
  });
}

ScalarType to_complex(ScalarType t) {
  switch (t) {
    case kFloat16:
    case kComplexHalf:
      return kComplexHalf;
    case kBFloat16:
    case kFloat32:
    case kComplexFloat:
      return kComplexFloat;
    case kFloat64:
    case kComplexDouble:
      return kComplexDouble;
    default:
      throw Error(str("Unknown Complex ScalarType for ", enum_name(t)));
  }
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType t) {
  RL_CHECK_TYPE(is_floating(t), "only floating-point types are supported as the default type");
  default_dtype = t;
}

}  // namespace rushlight

namespace caffe2 {
std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.name(); }
}  // namespace caffe2
