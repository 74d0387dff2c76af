// Values as literals, and what texts mention.
#include <charconv>
#include <cmath>

#include "script/code_writer.h"

namespace rushlight::script {

using TypeKind = Type::Kind;

// ---- mentions ----

void Mentions::add(ClassType& type) {
  if (known_.insert(&type).second) {
    classes.push_back(&type);
  }
}

void Mentions::add(const Type& type) {
  if (type.definition != nullptr) {
    add(*type.definition);
  }
  for (const Type& part : type.of) {
    add(part);
  }
}

void Mentions::add(graph::Function& function) {
  if (known_.insert(&function).second) {
    functions.push_back(&function);
  }
}

size_t Mentions::add_constant(const IValue& value) {
  if (value.isTensor()) {
    for (size_t i = 0; i < constants.size(); i++) {
      if (constants[i].isTensor() && constants[i].toTensor().is_same(value.toTensor())) {
        return i;
      }
    }
  }
  constants.push_back(value);
  return constants.size() - 1;
}

// ---- literals ----

namespace {

std::string number_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  std::string text(digits, end);
  return text.find_first_of(".e") == std::string::npos ? text + "." : text;
}

// Empty where the text has characters that files of programs do not spell alike.
std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c >= ' ' && c < 127) {
      out += c;
    } else {
      return "";
    }
  }
  return out + "\"";
}

std::string items_text(const IValue::Items& items, const std::vector<Type>& types,
                       Mentions& mentions) {
  std::string out;
  for (size_t i = 0; i < items.size(); i++) {
    const Type type = types.empty() ? type_of(items[i]) : types[types.size() == 1 ? 0 : i];
    out += (i == 0 ? "" : ", ") + literal(items[i], type, mentions);
  }
  return out;
}

}  // namespace

std::string literal(const IValue& value, const Type& type, Mentions& mentions) {
  if (value.isNone()) {
    return "None";
  }
  if (value.isBool()) {
    return value.toBool() ? "True" : "False";
  }
  if (value.isInt()) {
    return std::to_string(value.toInt());
  }
  if (value.isDouble()) {
    return number_text(value.toDouble());
  }
  if (value.isScalar()) {
    const auto number = value.toScalar().to<complex<double>>();
    return number_text(number.re) + "+" + number_text(number.im) + "j";
  }
  if (value.isString()) {
    const std::string text = quote(value.toStringRef());
    return text.empty() ? str("CONSTANTS.c", mentions.add_constant(value)) : text;
  }
  if (value.isDevice()) {
    return str("torch.device(\"", value.toDevice().str(), "\")");
  }
  if (value.isList()) {
    const IValue::Items items = value.toListRef();
    const Type item = type.is(TypeKind::List) ? type.of[0] : type_of(value).of[0];
    const std::string text = "[" + items_text(items, {item}, mentions) + "]";
    mentions.add(item);
    const bool plain = !items.empty() && type_of(value) == Type::list(item);
    return plain ? text : str("annotate(", Type::list(item).annotation(), ", ", text, ")");
  }
  if (value.isTuple()) {
    const IValue::Items& items = value.items();
    const bool typed = type.is_tuple() && type.of.size() == items.size();
    const std::string text = items_text(items, typed ? type.of : std::vector<Type>(), mentions);
    if (typed && type.is(TypeKind::NamedTuple)) {
      mentions.add(type);
      return type.definition->name + "(" + text + ")";
    }
    return "(" + text + (items.size() == 1 ? ",)" : ")");
  }
  if (const Object* const object = object_of(value)) {
    if (object->type->form == ClassType::Form::Enum) {
      mentions.add(*object->type);
      return object->type->name + "." + object->slots.at(0).toStringRef();
    }
  }
  return str("CONSTANTS.c", mentions.add_constant(value));
}

}  // namespace rushlight::script
