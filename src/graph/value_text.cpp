// Values as str(), format() and print() of programs say them.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/nesting.h"
#include "graph/builtins.h"

namespace rushlight::graph {

std::string float_text(double number) {
  if (std::isnan(number) || std::isinf(number)) {
    return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  const std::string out = text;
  return out.find_first_of(".e") == std::string::npos ? out + "." : out;
}

namespace {
std::string number_text(const Scalar& number) {
  if (number.is_complex()) {
    const auto parts = number.as<complex<double>>();
    return float_text(parts.re) + (parts.im < 0 ? "" : "+") + float_text(parts.im) + "j";
  }
  return number.is_floating_point() ? float_text(number.as<double>()) : str(number);
}

// Elements of a tensor as nested brackets.
void append_tensor(std::string& out, const Tensor& tensor) {
  if (tensor.dim() == 0) {
    out += number_text(tensor.item());
    return;
  }
  constexpr int64_t most = 1000;
  out += '[';
  for (int64_t i = 0; i < std::min(tensor.size(0), most); i++) {
    out += i == 0 ? "" : ", ";
    append_tensor(out, tensor.select(0, i));
  }
  out += tensor.size(0) > most ? ", ...]" : "]";
}
}  // namespace

std::string text_of(const IValue& value) {
  if (value.isNone()) {
    return "None";
  }
  if (value.isString()) {
    return value.toStringRef();
  }
  if (value.isScalar()) {
    return number_text(value.toScalar());
  }
  if (value.isTensor()) {
    std::string out;
    append_tensor(out, value.toTensor().detach().cpu());
    return out;
  }
  if (value.isDevice()) {
    return str(value.toDevice());
  }
  const Nesting deeper;
  if (value.isList() || value.isTuple()) {
    std::string inside;
    const IValue::Items items = value.isTuple() ? items_of(value) : value.toListRef();
    for (const IValue& item : items) {
      inside += (inside.empty() ? "" : ", ") + text_of(item);
    }
    const bool is_single = value.isTuple() && items.size() == 1;
    return value.isTuple() ? "(" + inside + (is_single ? ",)" : ")") : "[" + inside + "]";
  }
  if (value.isGenericDict()) {
    std::string inside;
    for (const auto& [key, item] : dict_of(value).pairs) {
      inside += (inside.empty() ? "" : ", ") + text_of(key) + ": " + text_of(item);
    }
    return "{" + inside + "}";
  }
  Object* const object = object_of(value);
  if (object != nullptr && object->type->form == ClassType::Form::Enum) {
    return object->type->base_name() + "." + object->at("name").toStringRef();
  }
  return "<" + type_of(value).annotation() + " object>";
}

}  // namespace rushlight::graph
