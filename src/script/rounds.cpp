// What loops and comprehensions go over.
#include <algorithm>

#include "script/lower.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

Lowering::Rounds Lowering::iterations_of_value(Value* value, Span span) {
  Rounds out;
  const Type type = value->type;
  if (type.is_tuple()) {
    out.fixed = type.of.size();
    const std::vector<Meaning> parts = parts_of(Meaning::of_value(value), span);
    out.fixed_item = [parts](size_t i) { return parts[i]; };
    return out;
  }
  if (type.is(TypeKind::Class)) {
    const std::optional<std::vector<std::string>> names = resolver_.submodules(type);
    if (!names) {
      fail(span, str("'", type.annotation(), "' object is not iterable"));
    }
    out.fixed = names->size();
    out.fixed_item = [this, value, names = *names](size_t i) {
      return Meaning::of_value(get_attribute(value, names[i]));
    };
    return out;
  }
  if (type.is(TypeKind::Dict)) {
    return iterations_of_value(op("aten::keys", {value}, span), span);
  }
  if (!type.is(TypeKind::List) && !type.is(TypeKind::Tensor) && !type.is(TypeKind::String)) {
    fail(span, str("'", type.annotation(), "' object is not iterable"));
  }
  out.count = op("aten::len", {value}, span);
  const bool tensor = type.is(TypeKind::Tensor);
  out.item = [this, value, span, tensor](Value* i) {
    return Meaning::of_value(tensor ? op("aten::select", {value, integer(0), i}, span)
                                    : op("aten::__getitem__", {value, i}, span));
  };
  return out;
}

Lowering::Rounds Lowering::iterations_of_range(const Meaning& over, Span span) {
  std::vector<Value*> given;
  for (const Meaning& part : over.of) {
    Value* const value = convert_value(*graph_, as_value(part, span), Type{TypeKind::Int});
    if (value == nullptr) {
      fail(span, "range takes integers");
    }
    given.push_back(value);
  }
  Rounds out;
  if (given.size() == 1) {
    out.count = given[0];
    out.item = [](Value* i) { return Meaning::of_value(i); };
    return out;
  }
  if (given.empty() || given.size() > 3) {
    fail(span, str("range expected 1 to 3 arguments, got ", given.size()));
  }
  Value* const step = given.size() == 3 ? given[2] : integer(1);
  Value* const first = given[0];
  out.count = op("aten::__range_length", {first, given[1], step}, span);
  out.item = [this, first, step, span](Value* i) {
    return Meaning::of_value(op("aten::__derive_index", {i, first, step}, span));
  };
  return out;
}

// Raises where a zip that wants equal lengths gets others.
void Lowering::require_length(Value* length, Value* wanted, Span span) {
  Condition differ;
  differ.value = op("aten::ne", {length, wanted}, span);
  const auto goes_on = [] { return Exit::Falls; };
  const auto raises = [&] {
    raise_error("builtins.ValueError", "zip() arguments are of different lengths");
    return Exit::Raises;
  };
  branch(differ, span, raises, goes_on, goes_on);
}

// What is as long as is known when it runs, gone over beside what is of a fixed length.
Lowering::Rounds Lowering::of_length(const Rounds& open, size_t size, Span span) {
  require_length(open.count, integer(static_cast<int64_t>(size)), span);
  Rounds out;
  out.fixed = size;
  out.fixed_item = [this, open](size_t i) { return open.item(integer(static_cast<int64_t>(i))); };
  return out;
}

// zip, and enumerate as a zip with numbers; "strict zip" raises where lengths differ.
Lowering::Rounds Lowering::zip_iterations(const Meaning& over, Span span) {
  const bool strict = over.name == "strict zip";
  std::vector<Rounds> all;
  for (const Meaning& part : over.of) {
    all.push_back(iterations(part, span));
  }
  if (all.empty()) {
    fail(span, "zip needs something to go over");
  }
  Rounds out;
  const auto is_fixed = [](const Rounds& one) { return one.fixed.has_value(); };
  const auto fixed = std::find_if(all.begin(), all.end(), is_fixed);
  if (fixed != all.end()) {
    const size_t size = *fixed->fixed;
    for (Rounds& one : all) {
      if (!one.fixed && !strict) {
        fail(span,
             "Can not iterate over a module list or tuple together with what has no fixed length, "
             "but by zip(…, strict=True)");
      }
      one = one.fixed ? one : of_length(one, size, span);
    }
  }
  for (const Rounds& one : all) {
    if (one.fixed) {
      if (strict && *one.fixed != *all[0].fixed) {
        fail(span, "zip() with strict=True got arguments of different lengths");
      }
      out.fixed = std::min(out.fixed.value_or(*one.fixed), *one.fixed);
    } else {
      if (strict && out.count != nullptr) {
        require_length(one.count, out.count, span);
      }
      out.count = out.count == nullptr ? one.count : op("prim::min", {out.count, one.count}, span);
    }
  }
  if (out.fixed) {
    out.fixed_item = [all](size_t i) {
      std::vector<Meaning> parts;
      for (const Rounds& one : all) {
        parts.push_back(one.fixed_item(i));
      }
      return Meaning::list(Meaning::Kind::Tuple, "", std::move(parts));
    };
  } else {
    out.item = [all](Value* i) {
      std::vector<Meaning> parts;
      for (const Rounds& one : all) {
        parts.push_back(one.item(i));
      }
      return Meaning::list(Meaning::Kind::Tuple, "", std::move(parts));
    };
  }
  return out;
}

Lowering::Rounds Lowering::iterations(const Meaning& over, Span span) {
  if (over.is(Meaning::Kind::Value) || over.is(Meaning::Kind::Constant)) {
    return iterations_of_value(as_value(over, span), span);
  }
  Rounds out;
  if (over.is(Meaning::Kind::Tuple)) {
    out.fixed = over.of.size();
    out.fixed_item = [parts = over.of](size_t i) { return parts[i]; };
    return out;
  }
  if (!over.is(Meaning::Kind::Iterable)) {
    fail(span, "this is nothing that a loop goes over");
  }
  if (over.name == "range") {
    return iterations_of_range(over, span);
  }
  if (over.name == "zip" || over.name == "strict zip") {
    return zip_iterations(over, span);
  }
  const Rounds inner = iterations(over.of[0], span);
  out.fixed = inner.fixed;
  out.count = inner.count;
  if (over.name == "enumerate") {
    Value* const start = over.of.size() > 1 ? as_value(over.of[1], span) : nullptr;
    const auto pair = [this, start, span](Meaning number, Meaning item) {
      if (start != nullptr) {
        number = Meaning::of_value(op("aten::add", {as_value(number, span), start}, span));
      }
      return Meaning::list(Meaning::Kind::Tuple, "", {std::move(number), std::move(item)});
    };
    out.item = [pair, inner](Value* i) { return pair(Meaning::of_value(i), inner.item(i)); };
    out.fixed_item = [pair, inner](size_t i) {
      const Meaning number = Meaning::of_constant(static_cast<int64_t>(i), Type{TypeKind::Int});
      return pair(number, inner.fixed_item(i));
    };
    return out;
  }
  // reversed
  out.fixed_item = [inner](size_t i) { return inner.fixed_item(*inner.fixed - 1 - i); };
  out.item = [this, inner, span](Value* i) {
    Value* const last = op("aten::sub", {inner.count, integer(1)}, span);
    return inner.item(op("aten::sub", {last, i}, span));
  };
  return out;
}

// One loop of a comprehension; `inner` is what a round does.
void Lowering::loop_of_comprehension(const Expr& e, const std::function<void()>& inner) {
  const Rounds over = iterations(meaning(*e.of[1]), e.of[1]->span);
  if (over.fixed) {
    for (size_t i = 0; i < *over.fixed; i++) {
      Scope scope;
      const Inside inside(*this, scope);
      assign_to(*e.of[0], over.fixed_item(i));
      inner();
    }
    return;
  }
  Node* const node =
      graph_->append(NodeKind::Loop, {over.count, constant(true, Type{TypeKind::Bool})}, 0);
  Block& block = *node->add_block();
  Value* const round = block.add_param(Type{TypeKind::Int});
  Scope scope;
  const Inside inside(*this, scope);
  const graph::InsertPoint there(*graph_, block);
  assign_to(*e.of[0], over.item(round));
  inner();
  block.add_return(constant(true, Type{TypeKind::Bool}));
}

// [item for target in over if …] and {key: value for …}: loops that fill a new list or dict.
graph::Value* Lowering::comprehension(const Expr& e, const Type* hint) {
  const bool is_dict = e.is(Kind::DictComp);
  Node* const made =
      graph_->append(is_dict ? NodeKind::DictConstruct : NodeKind::ListConstruct, {});
  std::optional<Type> type;
  if (hint != nullptr && (hint->is(TypeKind::List) || hint->is(TypeKind::Dict))) {
    type = *hint;
  }
  const auto add = [&] {
    Value* const key = value(*e.of[0]);
    Value* const item = is_dict ? value(*e.of[1]) : nullptr;
    if (!type) {
      type = is_dict ? Type::dict(key->type, item->type) : Type::list(key->type);
    }
    made->output()->set_type(*type);
    if (is_dict) {
      op("aten::_set_item", {made->output(), key, item}, e.span);
    } else {
      op("aten::append", {made->output(), key}, e.span);
    }
  };
  const std::function<Exit(size_t)> from = [&](size_t i) {
    if (i == e.of.size()) {
      add();
      return Exit::Falls;
    }
    if (e.of[i]->is(Kind::CompFor)) {
      loop_of_comprehension(*e.of[i], [&] { from(i + 1); });
      return Exit::Falls;
    }
    const Condition wanted = condition(*e.of[i]);
    const auto skip = [] { return Exit::Falls; };
    return branch(wanted, e.span, [&] { return from(i + 1); }, skip, skip);
  };
  from(is_dict ? 2 : 1);
  if (!type) {  // nothing was added: only a loop of no rounds
    type = is_dict ? Type::dict(Type{TypeKind::String}, Type{TypeKind::Tensor})
                   : Type::list(Type{TypeKind::Tensor});
  }
  made->output()->set_type(*type);
  return made->output();
}

}  // namespace rushlight::script
