// Graphs as text, in PyTorch's form; and where things were written.
#include <algorithm>
#include <cstdio>

#include "graph/builtins.h"

namespace rushlight::graph {

// ---- sources ----

namespace {
struct Line {
  size_t begin;
  size_t end;  // without its newline
};
Line line_at(const std::string& text, size_t at) {
  at = std::min(at, text.size());
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t after = text.find('\n', at);
  return {before == std::string::npos ? 0 : before + 1,
          after == std::string::npos ? text.size() : after};
}
size_t line_number(const Source& source, size_t at) {
  const auto end = source.text.begin() + static_cast<ptrdiff_t>(std::min(at, source.text.size()));
  return source.first_line + static_cast<size_t>(std::count(source.text.begin(), end, '\n'));
}
}  // namespace

std::string SourceRange::place() const {
  if (!is_known()) {
    return "";
  }
  const Line line = line_at(source->text, begin);
  return rushlight::str(source->file, ":", line_number(*source, begin), ":", begin - line.begin);
}

std::string SourceRange::excerpt(const std::string& function) const {
  if (!is_known()) {
    return "";
  }
  constexpr int lines_around = 3;
  const std::string& text = source->text;
  const Line line = line_at(text, begin);
  size_t from = line.begin;
  for (int i = 0; i < lines_around && from > 0; i++) {
    from = line_at(text, from - 1).begin;
  }
  std::string out =
      rushlight::str("  File \"", source->file, "\", line ", line_number(*source, begin),
                     function.empty() ? "" : ", in ", function, "\n");
  int behind = -1;  // lines shown behind the one that is meant
  for (size_t at = from; at < text.size() && behind < lines_around;) {
    const Line shown = line_at(text, at);
    out += text.substr(shown.begin, shown.end - shown.begin) + "\n";
    if (shown.begin == line.begin) {
      const size_t last = std::max(std::min(end, line.end), begin + 1);
      out += std::string(begin - line.begin, ' ') + std::string(last - begin, '~') + " <--- HERE\n";
    }
    behind += shown.begin >= line.begin ? 1 : 0;
    at = shown.end + 1;
  }
  return out;
}

// ---- parts of nodes ----

std::string TensorFacts::str() const {
  const char* const name = dtype ? enum_name(*dtype) : "Tensor";
  std::string inside;
  const auto add = [&](const std::string& part) { inside += (inside.empty() ? "" : ", ") + part; };
  if (sizes) {
    for (const int64_t size : *sizes) {
      add(std::to_string(size));
    }
  }
  if (strides && sizes && !sizes->empty()) {
    add(rushlight::str("strides=", IntArrayRef(*strides)));
  }
  if (requires_grad) {
    add(*requires_grad ? "requires_grad=1" : "requires_grad=0");
  }
  if (device) {
    add(rushlight::str("device=", *device));
  }
  return std::string(name) + "(" + inside + ")";
}

namespace {
std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 32 || c == 127) {
          char escape[8];
          std::snprintf(escape, sizeof escape, "\\%03o", static_cast<unsigned>(c));
          out += escape;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string value_text(const IValue& value) {
  if (value.isTensor()) {
    const Tensor tensor = value.toTensor();
    const bool is_shown = tensor.defined() && tensor.numel() == 1 && tensor.device().is_cpu();
    return is_shown ? rushlight::str("{", tensor.item(), "}") : "{...}";
  }
  if (value.isBool()) {
    return value.toBool() ? "1" : "0";
  }
  if (value.isDouble()) {
    return float_text(value.toDouble());
  }
  if (value.isScalar()) {
    return rushlight::str(value.toScalar());
  }
  if (value.isString()) {
    return quote(value.toStringRef());
  }
  if (value.isDevice()) {
    return quote(rushlight::str(value.toDevice()));
  }
  if (value.isList() || value.isTuple()) {
    std::string inside;
    for (const IValue& item : value.isTuple() ? items_of(value) : value.toListRef()) {
      inside += (inside.empty() ? "" : ", ") + value_text(item);
    }
    return value.isTuple() ? "(" + inside + ")" : "[" + inside + "]";
  }
  if (value.isGenericDict()) {
    std::string inside;
    for (const auto& [key, item] : dict_of(value).pairs) {
      inside += (inside.empty() ? "" : ", ") + value_text(key) + ": " + value_text(item);
    }
    return "{" + inside + "}";
  }
  return value.isNone() ? "None" : "<" + type_of(value).str() + ">";
}

std::string type_text(const Value& value) {
  return value.facts ? value.facts->str() : value.type.str();
}

class Printer {
 public:
  explicit Printer(bool with_ranges) : with_ranges_(with_ranges) {}

  void values(const std::vector<Value*>& list, const char* separator, bool with_types) {
    for (size_t i = 0; i < list.size(); i++) {
      text += (i == 0 ? "" : separator);
      text += "%" + list[i]->name();
      text += with_types ? " : " + type_text(*list[i]) : "";
    }
  }

  void node(const Node& node, size_t depth) {
    text += std::string(2 * depth, ' ');
    values(node.outputs(), ", ", true);
    text += " = " + node.kind_name() + attributes(node) + "(";
    values(node.inputs(), ", ", false);
    text += ")";
    if (!node.scope.empty()) {
      text += ", scope: " + node.scope;
    }
    const std::string place = with_ranges_ ? node.range.place() : "";
    text += place.empty() ? "\n" : " # " + place + "\n";
    for (size_t i = 0; i < node.blocks().size(); i++) {
      block(node.block(i), i, depth + 1);
    }
  }

  std::string text;

 private:
  void block(const Block& block, size_t number, size_t depth) {
    text += std::string(2 * depth, ' ') + "block" + std::to_string(number) + "(";
    values(block.params(), ", ", true);
    text += "):\n";
    for (const Node* const inner : block) {
      node(*inner, depth + 1);
    }
    text += std::string(2 * depth + 2, ' ') + "-> (";
    values(block.returns(), ", ", false);
    text += ")\n";
  }

  static std::string attributes(const Node& node) {
    std::string out;
    const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
    for (const Attribute& one : node.attributes) {
      if (one.value.isNone() || (node.kind == Kind::Opaque && one.name == "kind")) {
        continue;
      }
      add(one.name + "=" + value_text(one.value));
    }
    if (node.function != nullptr) {
      add("name=" + quote(node.function->base_name()));
    }
    if (node.kind == Kind::IsInstance) {
      std::string types;
      for (const Type& type : node.types) {
        types += (types.empty() ? "" : ", ") + type.str();
      }
      add("types=[" + types + "]");
    }
    return out.empty() ? "" : "[" + out + "]";
  }

  bool with_ranges_;
};
}  // namespace

std::string Node::str(bool with_ranges) const {
  Printer out(with_ranges);
  out.node(*this, 0);
  return out.text;
}

std::string Graph::str(bool with_ranges) const {
  Printer out(with_ranges);
  out.text = "graph(";
  out.values(inputs(), ",\n      ", true);
  out.text += "):\n";
  for (const Node* const node : *block_) {
    out.node(*node, 1);
  }
  out.text += "  return (";
  out.values(outputs(), ", ", false);
  out.text += ")\n";
  return out.text;
}

}  // namespace rushlight::graph
