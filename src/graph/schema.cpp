// Schemas of functions: read from text, and made from rows of the registry.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <rushlight/graph_function.h>

#include "graph/values.h"

namespace rushlight::graph {

// ---- printing ----

namespace {
std::string text_of(const IValue& value) {
  if (value.isString()) {
    return "\"" + value.toStringRef() + "\"";
  }
  if (value.isList()) {
    std::string inside;
    for (const IValue& item : value.toListRef()) {
      inside += (inside.empty() ? "" : ", ") + text_of(item);
    }
    return "[" + inside + "]";
  }
  return value.isScalar() ? rushlight::str(value.toScalar()) : "None";
}
std::string argument_text(const Argument& argument) {
  std::string type = argument.type.str();
  if (argument.size != 0) {
    type.insert(type.rfind(']'), std::to_string(argument.size));
  }
  if (argument.written) {
    type += "(!)";
  }
  std::string out = type + (argument.name.empty() ? "" : " ") + argument.name;
  return argument.fallback ? out + "=" + argument.default_text() : out;
}
}  // namespace

std::string Argument::default_text() const { return fallback ? text_of(*fallback) : ""; }

std::string Schema::str() const {
  std::string inside;
  bool keyword_only = false;
  const auto add = [&](const std::string& part) { inside += (inside.empty() ? "" : ", ") + part; };
  for (const Argument& argument : arguments) {
    if (argument.keyword_only && !keyword_only) {
      add("*");
      keyword_only = true;
    }
    add(argument_text(argument));
  }
  if (variadic) {
    add("...");
  }
  std::string out;
  for (const Argument& result : results) {
    out += (out.empty() ? "" : ", ") + argument_text(result);
  }
  // One result that is a tuple is told from several results by brackets of its own.
  const bool is_plain = results.size() == 1 && (out.front() != '(' || out.back() != ')');
  return qualified_name() + (overload.empty() ? "" : "." + overload) + "(" + inside + ") -> " +
         (is_plain ? out : "(" + out + ")");
}

// ---- reading ----

namespace {
std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \n\t") + 1 - begin);
}

// What stands between commas that are not within brackets or quotes.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  char quote = 0;  // that is open
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i == text.size() || (text[i] == ',' && depth == 0 && quote == 0)) {
      const std::string_view part = trim(text.substr(begin, i - begin));
      if (!part.empty()) {
        out.push_back(part);
      }
      begin = i + 1;
    } else if (quote != 0 || text[i] == '"' || text[i] == '\'') {
      quote = quote == 0 ? text[i] : quote == text[i] ? '\0' : quote;
    } else {
      depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    }
  }
  return out;
}

// Enumerators that schemas have as defaults; nothing where the text is none.
std::optional<IValue> read_enumerator(std::string_view text, const Type& type) {
  const std::pair<std::string_view, IValue> names[] = {
      {"None", {}},
      {"True", true},
      {"False", false},
      {"Mean", 1},
      {"Sum", 2},
      {"strided", Layout::Strided},
      {"contiguous_format", MemoryFormat::Contiguous},
      {"preserve_format", MemoryFormat::Preserve},
      {"channels_last", MemoryFormat::ChannelsLast},
  };
  for (const auto& [name, value] : names) {
    if (name == text) {
      return value;
    }
  }
  if (type.is(Type::Kind::ScalarType)) {
    for (const ScalarType dtype : all_dtypes) {
      const DtypeInfo& info = dtype_info(dtype);
      if (text == info.name || text == info.alias) {
        return IValue(dtype);
      }
    }
  }
  return std::nullopt;
}

IValue read_default(std::string_view text, const Type& type) {
  if (std::optional<IValue> enumerator = read_enumerator(text, type)) {
    return *enumerator;
  }
  if (text[0] == '"' || text[0] == '\'') {
    return IValue(std::string(text.substr(1, text.size() - 2)));
  }
  if (text[0] == '[') {
    IValue::Items items;
    for (const std::string_view part : parts_of(text.substr(1, text.size() - 2))) {
      items.push_back(read_default(part, type.of.empty() ? type : type.of[0]));
    }
    return list_value(std::move(items));
  }
  const std::string number(text);
  const Type& inner = type.is(Type::Kind::Optional) ? type.of[0] : type;
  if (inner.is(Type::Kind::Float) || number.find_first_of(".en") != std::string::npos) {
    return IValue(std::strtod(number.c_str(), nullptr));
  }
  return IValue(static_cast<int64_t>(std::strtoll(number.c_str(), nullptr, 10)));
}

uint8_t size_of_list(std::string_view type) {
  const size_t bracket = type.find('[');
  if (bracket == std::string_view::npos) {
    return 0;
  }
  return static_cast<uint8_t>(std::atoi(std::string(type.substr(bracket + 1)).c_str()));
}

// "int[2] size=1", "Tensor(a!) self"; a result may have no name.
Argument read_argument(std::string_view text, const TypeNames* names) {
  Argument out;
  std::string_view fallback;
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    fallback = trim(text.substr(equals + 1));
    text = trim(text.substr(0, equals));
  }
  int depth = 0;
  size_t name_at = std::string_view::npos;
  for (size_t i = 0; i < text.size(); i++) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    if (text[i] == ' ' && depth == 0) {
      name_at = i;
    }
  }
  const std::string_view type = text.substr(0, name_at);
  out.name = name_at == std::string_view::npos ? "" : text.substr(name_at + 1);
  out.type = parse_type(type, names);
  out.size = size_of_list(type);
  out.written = type.find('!') != std::string_view::npos;
  if (const size_t alias = type.find("Tensor("); alias != std::string_view::npos) {
    out.alias = type[alias + std::strlen("Tensor(")];
  }
  if (!fallback.empty()) {
    out.fallback = read_default(fallback, out.type);
    if (out.size != 0 && out.fallback->isScalar()) {  // int[2] size=1
      out.fallback = list_value(IValue::Items(out.size, *out.fallback));
    }
  }
  return out;
}
}  // namespace

Schema parse_schema(std::string_view text, const TypeNames* names) {
  Schema out;
  const size_t open = text.find('(');
  const size_t arrow = text.rfind("->");
  RL_CHECK(open != std::string_view::npos && arrow != std::string_view::npos && open < arrow,
           "the schema '", text, "' is not of the form 'name(type argument) -> type'");
  std::string_view name = trim(text.substr(0, open));
  if (const size_t colons = name.find("::"); colons != std::string_view::npos) {
    out.space = name.substr(0, colons);
    name = name.substr(colons + 2);
  }
  const size_t dot = name.find('.');
  out.name = name.substr(0, dot);
  out.overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);

  const size_t close = text.rfind(')', arrow);
  RL_CHECK(close != std::string_view::npos && close > open, "the schema '", text,
           "' lacks a closing bracket");
  bool keyword_only = false;
  for (const std::string_view part : parts_of(text.substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
    } else if (part == "...") {
      out.variadic = true;
    } else {
      out.arguments.push_back(read_argument(part, names));
      out.arguments.back().keyword_only = keyword_only;
    }
  }
  std::string_view results = trim(text.substr(arrow + 2));
  const bool is_list = !results.empty() && results.front() == '(' && results.back() == ')';
  if (is_list) {
    results = results.substr(1, results.size() - 2);
  }
  for (const std::string_view part : parts_of(results)) {
    out.results.push_back(read_argument(part, names));
  }
  return out;
}

// ---- enumerators ----

namespace {
constexpr std::pair<int64_t, Layout> layout_numbers[] = {
    {0, Layout::Strided},   {1, Layout::Sparse},    {2, Layout::SparseCsr},
    {4, Layout::SparseCsc}, {5, Layout::SparseBsr}, {6, Layout::SparseBsc},
};
}  // namespace

int64_t number_of(ScalarType dtype) {
  RL_CHECK(dtype != ScalarType::Undefined, "graphs have no number for this dtype");
  return static_cast<int64_t>(dtype);
}
int64_t number_of(Layout layout) {
  for (const auto& [number, one] : layout_numbers) {
    if (one == layout) {
      return number;
    }
  }
  throw Error("graphs have no number for this layout");
}
ScalarType dtype_of_number(int64_t number) {
  for (const ScalarType dtype : all_dtypes) {
    if (static_cast<int64_t>(dtype) == number) {
      return dtype;
    }
  }
  throw Error(rushlight::str("the number ", number, " stands for no dtype that is supported"));
}
Layout layout_of_number(int64_t wanted) {
  for (const auto& [number, layout] : layout_numbers) {
    if (number == wanted) {
      return layout;
    }
  }
  throw Error(rushlight::str("the number ", wanted, " stands for no layout that is supported"));
}
MemoryFormat memory_format_of_number(int64_t number) {
  RL_CHECK(number >= 0 && number <= static_cast<int64_t>(MemoryFormat::ChannelsLast3d),
           "the number ", number, " stands for no memory format");
  return static_cast<MemoryFormat>(number);
}

// ---- rows of the registry ----

namespace {
Type type_from(const TypeInfo& info) {
  if (info.of != nullptr) {
    return *info.of;
  }
  constexpr Type::Kind kinds[] = {
      Type::Kind::Tensor, Type::Kind::Scalar,       Type::Kind::Int,        Type::Kind::Float,
      Type::Kind::Bool,   Type::Kind::String,       Type::Kind::ScalarType, Type::Kind::Device,
      Type::Kind::Layout, Type::Kind::MemoryFormat, Type::Kind::Generator,  Type::Kind::Any};
  Type out{kinds[static_cast<size_t>(info.base)]};
  if (info.is_list) {
    out = Type::list(info.element_optional ? Type::optional(std::move(out)) : std::move(out));
  }
  return info.optional ? Type::optional(std::move(out)) : out;
}

// As programs see it.
IValue fallback_of(const ArgInfo& argument) {
  const DefaultInfo& d = argument.fallback;
  switch (d.kind) {
    case DefaultInfo::Bool:
      return IValue(d.ints[0] != 0);
    case DefaultInfo::Int:
      if (argument.type.is_list) {
        return list_value(
            IValue::Items(std::max<size_t>(argument.type.size, 1), IValue(d.ints[0])));
      }
      return IValue(argument.type.base == BaseType::ScalarType
                        ? number_of(static_cast<ScalarType>(d.ints[0]))
                        : d.ints[0]);
    case DefaultInfo::Float:
      return IValue(d.number);
    case DefaultInfo::String:
      return IValue(std::string(d.text));
    case DefaultInfo::List: {
      IValue::Items items;
      for (size_t i = 0; i < d.count; i++) {
        items.push_back(argument.type.base == BaseType::Bool ? IValue(d.ints[i] != 0)
                                                             : IValue(d.ints[i]));
      }
      return list_value(std::move(items));
    }
    case DefaultInfo::Boxed:
      return *d.value;
    default:
      return {};
  }
}

std::unique_ptr<const Schema> make_schema(const OpInfo& op) {
  auto out = std::make_unique<Schema>();
  out->space = op.space;
  out->name = op.name;
  out->overload = op.overload;
  for (const ArgInfo& a : op.arguments) {
    Argument& made = out->arguments.emplace_back(Argument{
        a.name, type_from(a.type), {}, a.keyword_only, a.type.size, a.type.written, a.type.alias});
    if (a.fallback.kind != DefaultInfo::Required) {
      made.fallback = fallback_of(a);
    }
  }
  for (const ResultInfo& r : op.results) {
    out->results.push_back({r.name, type_from(r.type), {}, false, 0, r.type.written, r.type.alias});
  }
  return out;
}
}  // namespace

const Schema& schema_of(const OpInfo& op) {
  static auto* const mutex = new std::mutex();
  static auto* const made = new std::unordered_map<const OpInfo*, std::unique_ptr<const Schema>>();
  const std::lock_guard<std::mutex> lock(*mutex);
  std::unique_ptr<const Schema>& schema = (*made)[&op];
  if (schema == nullptr) {
    schema = make_schema(op);
  }
  return *schema;
}

}  // namespace rushlight::graph
