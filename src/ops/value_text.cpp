// IValues in streams, as libtorch writes them: 3, 2., text without quotes, [1, 2], (1, 2), {a: 1}.
#include <cmath>
#include <cstdio>
#include <ostream>

#include <rushlight/ivalue.h>
#include <rushlight/libtorch.h>

namespace rushlight {
namespace {

// All digits that tell it from others, and a point where there is none.
std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", number);
  const std::string out = text;
  return std::isfinite(number) && out.find_first_of(".e") == std::string::npos ? out + '.' : out;
}
void write_items(std::ostream& out, const std::vector<Value>& items) {
  for (size_t i = 0; i < items.size(); i++) {
    out << (i == 0 ? "" : ", ") << items[i];
  }
}

}  // namespace

std::ostream& write_value(std::ostream& out, const Value& value) {
  if (value.isNone()) {
    return out << "None";
  }
  if (value.isTensor()) {
    return out << value.toTensor();
  }
  if (value.isString()) {
    return out << value.toStringRef();
  }
  if (value.isDouble()) {
    return out << number_text(value.toDouble());
  }
  if (value.isComplexDouble()) {
    const auto number = value.toScalar().to<complex<double>>();
    return out << number_text(number.real()) << (std::signbit(number.imag()) ? "" : "+")
               << number_text(number.imag()) << 'j';
  }
  if (value.isTuple()) {
    const auto& items = value.toTupleRef().elements();
    out << '(';
    write_items(out, items);
    return out << (items.size() == 1 ? ",)" : ")");
  }
  if (value.isList()) {
    out << '[';
    write_items(out, value.toListRef());
    return out << ']';
  }
  if (value.isGenericDict()) {
    out << '{';
    const char* before = "";
    for (const auto& entry : value.toGenericDict()) {
      out << before << entry.key() << ": " << entry.value();
      before = ", ";
    }
    return out << '}';
  }
  if (value.isDevice()) {
    return out << value.toDevice();
  }
  if (value.isScalar()) {
    return out << value.toScalar();
  }
  return out << value.tagKind();
}

}  // namespace rushlight
