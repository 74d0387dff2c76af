// Key functions of the error types, warnings, and the number formatting behind str().
#include <rushlight/error.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <rushlight/array_ref.h>
#include <rushlight/device.h>
#include <rushlight/dtype.h>
#include <rushlight/scalar.h>

namespace rushlight {

Error::~Error() = default;
IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
NotImplementedError::~NotImplementedError() = default;
AssertionError::~AssertionError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
LinAlgError::~LinAlgError() = default;
UnpicklingError::~UnpicklingError() = default;

void raise_error(const char* message) { throw Error(message); }

void detail::fail_bound(size_t index, size_t size) {
  std::fprintf(stderr, "[rushlight] element %zu of a list of %zu was asked for\n", index, size);
  std::abort();
}

namespace {
void to_stderr(const std::string& message) {
  std::fprintf(stderr, "[rushlight] warning: %s\n", message.c_str());
}
std::atomic<WarningHandler> warning_handler{to_stderr};
}  // namespace

void set_warning_handler(WarningHandler handler) {
  warning_handler = handler != nullptr ? handler : to_stderr;
}
void warn(const std::string& message) { warning_handler.load()(message); }

namespace {
std::atomic<bool> always_warn{false};
}
void set_warn_always(bool always) { always_warn = always; }
bool is_warn_always() { return always_warn; }

void warn_once(bool& done, const std::string& message) {
  if (!done || always_warn) {
    done = true;
    warn(message);
  }
}

namespace {
template <class T>
void append_number(std::string& out, T value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}
}  // namespace

void append(std::string& out, long long value) { append_number(out, value); }
void append(std::string& out, unsigned long long value) { append_number(out, value); }

void append(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  const size_t start = out.size();
  append_number(out, value);
  // Python writes 1.0 where to_chars writes 1.
  if (out.find_first_of(".e", start) == std::string::npos) {
    out += ".0";
  }
}

void append(std::string& out, const Scalar& s) {
  if (s.is_bool()) {
    append(out, s.toBool());
  } else if (s.kind() == Scalar::Kind::UInt) {
    append(out, s.as<uint64_t>());
  } else if (s.is_integral()) {
    append(out, s.as<int64_t>());
  } else if (s.is_floating_point()) {
    append(out, s.as<double>());
  } else {
    const auto c = s.as<complex<double>>();
    out += '(';
    append(out, c.re);
    out += std::signbit(c.im) ? "" : "+";
    append(out, c.im);
    out += "j)";
  }
}

void store_scalar(void* to, ScalarType t, const Scalar& s) {
  visit_dtype<set_stored>("store_scalar", t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *static_cast<T*>(to) = s.as<T>();
  });
}

void Scalar::check_fits(ScalarType t) const {
  const DtypeInfo& info = dtype_info(t);
  const auto fail = [&] {
    const std::string type = info.is_floating ? info.alias
                             : t == kInt32    ? std::string("int")
                                              : str(info.name, "_t");
    throw Error(str("the value does not fit into type ", type,
                    ": it cannot be converted without overflow"));
  };
  if (info.is_complex || t == kBool) {
    return;
  }
  if (kind_ == Kind::Complex && v_.d[1] != 0) {
    fail();
  }
  if (info.is_floating) {
    // 16-bit floats compute in float: what float holds becomes infinite in them. Those of 8 bits
    // take all.
    const double limit = t == kFloat64 || info.is_float8 ? HUGE_VAL : 3.4028234663852886e38;
    const double v = as<double>();
    if (std::isfinite(v) && std::abs(v) > limit) {
      fail();
    }
    return;
  }
  if (kind_ == Kind::UInt) {
    if (t != kUInt64) {
      fail();
    }
    return;
  }
  const int bits = 8 * info.itemsize;
  if (kind_ == Kind::Bool || kind_ == Kind::Int) {
    // Negative numbers wrap for unsigned dtypes, as in PyTorch; magnitudes must fit.
    const int64_t high =
        bits == 64 ? INT64_MAX : (int64_t(1) << (info.is_signed ? bits - 1 : bits)) - 1;
    const int64_t low = bits == 64 ? INT64_MIN : info.is_signed ? -high - 1 : -high;
    if (v_.i > high || v_.i < low) {
      fail();
    }
    return;
  }
  const double v = v_.d[0];
  const double high = std::ldexp(1.0, info.is_signed ? bits - 1 : bits);  // one more than fits
  if (!(v >= (info.is_signed ? -high : 0.0) && (bits == 64 ? v < high : v <= high - 1))) {
    fail();
  }
}

// ---- devices ----

namespace {

// In the order of DeviceType; those after its enumerators are names alone: what wants memory there
// is refused (backend_of).
constexpr std::string_view device_names[num_device_names] = {
    "cpu", "cuda", "meta", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",
    "ve",  "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "hpu",    "mtia",  "privateuseone",
};

}  // namespace

Device::Device(std::string_view text) : type_(kCPU), index_(-1) {
  const auto fail = [&] { throw Error(rushlight::str("Invalid device string: '", text, "'")); };
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const auto* const found = std::find(std::begin(device_names), std::end(device_names), kind);
  if (found == std::end(device_names)) {
    std::string names;
    for (const std::string_view name : device_names) {
      names += names.empty() ? "" : ", ";
      names += name;
    }
    throw Error(rushlight::str("Expected one of ", names,
                               " device type at start of device string: ", text,
                               kind == "gpu" ? ": did you mean cuda?" : ""));
  }
  type_ = static_cast<DeviceType>(found - std::begin(device_names));
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    int value = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool leading_zero = number.size() > 1 && number[0] == '0';
    if (error != std::errc() || end != number.data() + number.size() || value < 0 || value > 127 ||
        leading_zero) {
      fail();
    }
    index_ = static_cast<int8_t>(value);
  }
}

std::string Device::str() const {
  std::string out(device_names[static_cast<int>(type_)]);
  if (has_index()) {
    rushlight::append(out, ':');
    rushlight::append(out, static_cast<int>(index_));
  }
  return out;
}

}  // namespace rushlight
