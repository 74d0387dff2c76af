// Schema matching as TorchScript does it: exact types first, then the few implicit conversions.
#include "script/match.h"

#include <algorithm>

#include <rushlight/library.h>

namespace rushlight::script {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::Schema;
using graph::Value;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

namespace {

Value* list_of(Graph& graph, const std::vector<Value*>& items, const Type& item) {
  return graph.append(NodeKind::ListConstruct, items)->output()->set_type(Type::list(item));
}

const Type& without_optional(const Type& type) {
  return type.is(TypeKind::Optional) ? type.of[0] : type;
}

// How a value comes to stand where a formal does.
enum class How : uint8_t {
  No,
  AsIs,
  Repeated,   // int[2] from one int
  FromTuple,  // int[] from (int, int)
  Int,        // from a tensor
  Float,      // the same
  Scalar,     // the same
  BoolAsInt,
  Device,  // from a string
};

How conversion_of(const Value& value, const Argument& formal, bool convert,
                  TypeVariables& variables) {
  const Type& actual = value.type;
  if (match(formal.type, actual, variables)) {
    return How::AsIs;
  }
  const Type& wanted = without_optional(formal.type);
  if (wanted.is(TypeKind::List)) {
    if (formal.size > 0 && match(wanted.of[0], actual, variables)) {
      return How::Repeated;
    }
    if (actual.is_tuple() && !actual.of.empty()) {
      bool all = true;
      for (const Type& part : actual.of) {
        all = all && match(wanted.of[0], part, variables);
      }
      return all ? How::FromTuple : How::No;
    }
  }
  if (!convert) {
    return How::No;
  }
  if (actual.is(TypeKind::Tensor)) {
    switch (wanted.kind) {
      case TypeKind::Int:
        return How::Int;
      case TypeKind::Float:
        return How::Float;
      case TypeKind::Scalar:
        return How::Scalar;
      default:
        return How::No;
    }
  }
  if (actual.is(TypeKind::Bool) && wanted.is(TypeKind::Scalar)) {
    return How::BoolAsInt;
  }
  return actual.is(TypeKind::String) && wanted.is(TypeKind::Device) ? How::Device : How::No;
}

Value* apply_conversion(Graph& graph, How way, Value* value, const Argument& formal) {
  const Type& wanted = without_optional(formal.type);
  switch (way) {
    case How::Repeated:
      return list_of(graph, std::vector<Value*>(formal.size, value), value->type);
    case How::FromTuple: {
      Node* const parts = graph.append(NodeKind::TupleUnpack, {value}, value->type.of.size());
      for (size_t i = 0; i < value->type.of.size(); i++) {
        parts->output(i)->set_type(value->type.of[i]);
      }
      const Type item = wanted.of[0].has_variables() ? value->type.of[0] : wanted.of[0];
      return list_of(graph, parts->outputs(), item);
    }
    case How::Int:
      return graph.append("aten::IntImplicit", {value});
    case How::Float:
      return graph.append("aten::FloatImplicit", {value});
    case How::Scalar:
      return graph.append("aten::ScalarImplicit", {value});
    case How::BoolAsInt:
      return graph.append("aten::Int.bool", {value});
    case How::Device:
      return graph.append("aten::device", {value});
    default:
      return value;
  }
}

// What stands for one argument of a schema.
struct Place {
  std::vector<Value*> values;  // several become a list; none: the default
  How way = How::AsIs;
  bool gathered = false;
};

class Matching {
 public:
  Matching(const Schema& schema, const Arguments& arguments, bool convert, TypeVariables& variables,
           std::string* why)
      : schema_(schema),
        arguments_(arguments),
        convert_(convert),
        variables_(variables),
        why_(why),
        used_(arguments.named.size(), false) {}

  bool run() {
    for (size_t i = 0; i < schema_.arguments.size(); i++) {
      if (!match_argument(i)) {
        return false;
      }
    }
    if (next_ < arguments_.positional.size() && !schema_.variadic) {
      return refuse([&] {
        return str("it takes ", schema_.arguments.size(), " arguments, not ",
                   arguments_.positional.size() + arguments_.named.size());
      });
    }
    for (size_t i = 0; i < used_.size(); i++) {
      if (!used_[i]) {
        return refuse([&] { return str("it has no argument '", arguments_.named[i].first, "'"); });
      }
    }
    return true;
  }

  std::vector<Value*> values(Graph& graph) const {
    std::vector<Value*> out;
    for (size_t i = 0; i < places_.size(); i++) {
      const Place& place = places_[i];
      const Argument& formal = schema_.arguments[i];
      if (place.gathered) {
        out.push_back(
            list_of(graph, gather_rest(graph, place, formal), without_optional(formal.type).of[0]));
      } else if (place.values.empty()) {
        out.push_back(graph.constant(*formal.fallback, formal.type));
      } else {
        out.push_back(apply_conversion(graph, place.way, place.values[0], formal));
      }
    }
    for (size_t i = next_; i < arguments_.positional.size(); i++) {
      out.push_back(arguments_.positional[i]);
    }
    return out;
  }

 private:
  template <class F>
  bool refuse(const F& reason) const {
    if (why_ != nullptr) {
      *why_ = reason();
    }
    return false;
  }

  static std::vector<Value*> gather_rest(Graph& graph, const Place& place, const Argument& formal) {
    const Argument item{formal.name, without_optional(formal.type).of[0]};
    std::vector<Value*> out;
    TypeVariables none;
    for (Value* value : place.values) {
      out.push_back(apply_conversion(graph, conversion_of(*value, item, true, none), value, item));
    }
    return out;
  }

  bool match_argument(size_t i) {
    const Argument& formal = schema_.arguments[i];
    Place place;
    Value* given = nullptr;
    if (next_ < arguments_.positional.size() && !formal.keyword_only) {
      given = arguments_.positional[next_];
      if (takes_rest(i, place)) {
        places_.push_back(std::move(place));
        return true;
      }
      next_++;
    } else {
      given = by_name(formal.name);
    }
    if (given == nullptr) {
      if (!formal.fallback) {
        return refuse([&] { return str("the argument '", formal.name, "' is missing"); });
      }
      places_.push_back(std::move(place));
      return true;
    }
    place.way = conversion_of(*given, formal, convert_, variables_);
    place.values = {given};
    if (place.way == How::No) {
      return refuse([&] {
        return str("Expected a value of type '", formal.type.annotation(), "' for argument '",
                   formal.name, "' but found '", given->type.annotation(), "'");
      });
    }
    places_.push_back(std::move(place));
    return true;
  }

  Value* by_name(const std::string& name) {
    for (size_t i = 0; i < arguments_.named.size(); i++) {
      if (arguments_.named[i].first == name && !used_[i]) {
        used_[i] = true;
        return arguments_.named[i].second;
      }
    }
    return nullptr;
  }

  // view(2, 3): the rest of the positional arguments is the list of the last argument.
  bool takes_rest(size_t i, Place& place) {
    const Argument& formal = schema_.arguments[i];
    const Type& wanted = without_optional(formal.type);
    const bool last = i + 1 == schema_.arguments.size() || schema_.arguments[i + 1].keyword_only;
    if (!last || !wanted.is(TypeKind::List) || wanted.has_variables() || formal.size > 0 ||
        schema_.variadic) {
      return false;
    }
    TypeVariables none;
    if (conversion_of(*arguments_.positional[next_], formal, false, none) != How::No) {
      return false;
    }
    const Argument item{formal.name, wanted.of[0]};
    for (size_t k = next_; k < arguments_.positional.size(); k++) {
      if (conversion_of(*arguments_.positional[k], item, convert_, none) == How::No) {
        return false;
      }
    }
    place.values.assign(arguments_.positional.begin() + static_cast<int64_t>(next_),
                        arguments_.positional.end());
    place.gathered = true;
    next_ = arguments_.positional.size();
    return true;
  }

  const Schema& schema_;
  const Arguments& arguments_;
  bool convert_;
  TypeVariables& variables_;
  std::string* why_;
  std::vector<bool> used_;
  std::vector<Place> places_;
  size_t next_ = 0;
};

struct Candidate {
  const graph::Builtin* builtin = nullptr;
  const OpInfo* op = nullptr;
  const Schema* schema = nullptr;
};

template <class F>
bool any_builtin(const std::string& name, const F& f) {
  for (const graph::Builtin* const builtin : graph::find_builtins(name)) {
    if (f(Candidate{builtin, nullptr, &builtin->schema})) {
      return true;
    }
  }
  return false;
}
// Of the table, or of libraries. Programs have no ops that PyTorch lacks.
template <class F>
bool any_op(const std::string& name, bool of_library, const F& f) {
  if (name.starts_with("rushlight::")) {
    return false;
  }
  const std::vector<const OpInfo*> overloads = overloads_named(name);
  return std::any_of(overloads.begin(), overloads.end(), [&](const OpInfo* op) {
    return library::is_defined_by_library(*op) == of_library &&
           f(Candidate{nullptr, op, &graph::schema_of(*op)});
  });
}
// Calls f(candidate) until it says true; whether it did. Ops come first where tensors are passed:
// functions of the language may take values of any type.
template <class F>
bool any_candidate(const std::string& name, bool ops_first, const F& f) {
  const auto table = [&] { return any_op(name, false, f); };
  const auto builtins = [&] { return any_builtin(name, f); };
  return (ops_first ? table() || builtins() : builtins() || table()) || any_op(name, true, f);
}

}  // namespace

bool is_op(const std::string& name) {
  return any_candidate(name, false, [](const Candidate&) { return true; });
}

std::optional<std::vector<Value*>> match_arguments(Graph& graph, const Schema& schema,
                                                   const Arguments& arguments, bool convert,
                                                   TypeVariables& variables, std::string* why) {
  Matching matching(schema, arguments, convert, variables, why);
  if (!matching.run()) {
    return {};
  }
  return matching.values(graph);
}

Value* convert_value(Graph& graph, Value* value, const Type& type) {
  const Argument formal{"", type};
  TypeVariables none;
  const How way = conversion_of(*value, formal, true, none);
  return way == How::No ? nullptr : apply_conversion(graph, way, value, formal);
}

Node* call_op(Graph& graph, const std::string& name, const Arguments& arguments) {
  const auto is_tensor = [](const Value* value) { return value->type.is(TypeKind::Tensor); };
  const bool tensors =
      std::any_of(arguments.positional.begin(), arguments.positional.end(), is_tensor);
  Node* node = nullptr;
  for (int attempt = 0; attempt < 2 && node == nullptr; attempt++) {
    any_candidate(name, tensors, [&](const Candidate& one) {
      TypeVariables variables;
      const auto inputs =
          match_arguments(graph, *one.schema, arguments, attempt == 1, variables, nullptr);
      if (inputs) {
        node = one.op != nullptr ? graph.create(*one.op, *inputs)
                                 : graph.create(*one.builtin, *inputs);
      }
      return inputs.has_value();
    });
  }
  if (node != nullptr) {
    return graph.insert(node);
  }
  std::string reasons;
  any_candidate(name, tensors, [&](const Candidate& one) {
    TypeVariables variables;
    std::string why;
    match_arguments(graph, *one.schema, arguments, true, variables, &why);
    reasons += str("\n  ", one.schema->str(), ": ", why);
    return false;
  });
  throw Error(
      str("Arguments for call are not valid: no overload of ", name, " takes them", reasons));
}

Value* result_of(Graph& graph, Node* node) {
  const std::vector<Value*>& results = node->outputs();
  if (results.empty()) {
    return graph.constant(IValue(), Type{TypeKind::None});
  }
  if (results.size() == 1) {
    return results[0];
  }
  std::vector<Type> types;
  for (const Value* result : results) {
    types.push_back(result->type);
  }
  return graph.append(NodeKind::TupleConstruct, results)->output()->set_type(Type::tuple(types));
}

}  // namespace rushlight::script
