// x[…]: read, assigned, and changed in place.
#include "script/lower.h"

#include <algorithm>

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

// An integer that the compiler knows.
std::optional<int64_t> Lowering::constant_int(const Meaning& what) {
  if (what.is(Meaning::Kind::Constant) && what.type.is(TypeKind::Int)) {
    return what.constant.toInt();
  }
  if (what.is(Meaning::Kind::Value) && what.value->type.is(TypeKind::Int)) {
    const IValue* const known = what.value->constant();
    return known != nullptr ? std::optional<int64_t>(known->toInt()) : std::nullopt;
  }
  return {};
}

namespace {
// The indices between the brackets.
std::vector<const Expr*> indices_of(const Expr& e) {
  std::vector<const Expr*> out;
  if (e.of.size() == 2 && e.of[1]->is(Kind::Tuple)) {
    for (const ExprPtr& part : e.of[1]->of) {
      out.push_back(part.get());
    }
    return out;
  }
  for (size_t i = 1; i < e.of.size(); i++) {
    out.push_back(e.of[i].get());
  }
  return out;
}
}  // namespace

// The parts of an index that is a slice: a:b:c, slice(a, b, c), or a name of such; nothing of
// others.
std::optional<std::vector<Meaning>> Lowering::slice_of(const Expr& index) {
  if (index.is(Kind::Slice)) {
    std::vector<Meaning> out;
    for (const ExprPtr& part : index.of) {
      out.push_back(part ? meaning(*part) : Meaning::of_constant(IValue(), Type{TypeKind::None}));
    }
    return out;
  }
  const Variable* const variable = index.is(Kind::Name) ? find_variable(index.text) : nullptr;
  if (variable != nullptr && variable->meaning.is(Meaning::Kind::Slice)) {
    return variable->meaning.of;
  }
  const bool calls = index.is(Kind::Call) && index.of[0]->is_name("slice");
  return calls ? std::optional(meaning(index).of) : std::nullopt;
}

namespace {
bool is_left_out(const Meaning& m) {
  return m.is(Meaning::Kind::Constant) ? m.constant.isNone()
                                       : m.value != nullptr && m.value->type.is(TypeKind::None);
}
}  // namespace

// slice(stop), slice(start, stop), slice(start, stop, step).
Meaning Lowering::slice_call(const Expr& e) {
  if (e.of.size() < 2 || e.of.size() > 4 || !e.keywords.empty()) {
    fail(e.span, str("slice expected 1 to 3 arguments, got ", e.of.size() - 1));
  }
  const Meaning nothing = Meaning::of_constant(IValue(), Type{TypeKind::None});
  std::vector<Meaning> parts(3, nothing);
  for (size_t i = 1; i < e.of.size(); i++) {
    parts[e.of.size() == 2 ? 1 : i - 1] = meaning(*e.of[i]);
  }
  return Meaning::list(Meaning::Kind::Slice, "", std::move(parts));
}

// parts[a:b:c], of a tuple or of modules.
Meaning Lowering::slice_of_parts(const std::vector<Meaning>& parts,
                                 const std::vector<Meaning>& slice, Span span) {
  const auto size = static_cast<int64_t>(parts.size());
  std::optional<int64_t> given[3];
  for (size_t i = 0; i < 3; i++) {
    if (!is_left_out(slice[i])) {
      given[i] = constant_int(slice[i]);
      if (!given[i]) {
        fail(span, "tuples and lists of modules are cut at integers that are known");
      }
    }
  }
  const int64_t step = given[2].value_or(1);
  if (step == 0) {
    fail(span, "slice step cannot be zero");
  }
  const auto clamp_index = [&](int64_t i) {
    i = i < 0 ? i + size : i;
    return step > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
  };
  const int64_t first = given[0] ? clamp_index(*given[0]) : step > 0 ? 0 : size - 1;
  const int64_t end = given[1] ? clamp_index(*given[1]) : step > 0 ? size : -1;
  std::vector<Meaning> out;
  for (int64_t i = first; step > 0 ? i < end : i > end; i += step) {
    out.push_back(parts[static_cast<size_t>(i)]);
  }
  return Meaning::list(Meaning::Kind::Tuple, "", std::move(out));
}

Meaning Lowering::part_at(const std::vector<Meaning>& parts, const Expr& index, Span span) {
  const auto size = static_cast<int64_t>(parts.size());
  const std::optional<int64_t> place = constant_int(meaning(index));
  if (!place) {
    fail(span, "a tuple or a list of modules is indexed by an integer that is known");
  }
  if (*place < -size || *place >= size) {
    fail(span, str("Tuple index out of range: ", *place, " of ", size));
  }
  return parts[static_cast<size_t>(*place < 0 ? *place + size : *place)];
}

// What `chosen` makes of modules[index], by an index that is known when it runs: a branch for each
// module, whose values are of one type.
graph::Value* Lowering::choose_module(Value* modules, const std::vector<std::string>& names,
                                      Value* index, const std::function<Value*(Value*)>& chosen,
                                      Span span) {
  const bool by_name = index->type.is(TypeKind::String);
  if (names.empty() || (!by_name && !index->type.is(TypeKind::Int))) {
    fail(span, names.empty() ? "there is no module to choose from"
                             : "modules are chosen by integers or by names");
  }
  Value* const asked = index;
  if (!by_name) {  // negative ones count from the end
    Value* const size = integer(static_cast<int64_t>(names.size()));
    Condition negative;
    negative.value = op("aten::lt", {index, integer(0)}, span);
    const auto from_the_end = [&] { return op("aten::add", {index, size}, span); };
    index = select_value(negative, from_the_end, [&] { return index; }, span, "the index");
  }
  Type type;
  const std::function<Value*(size_t)> from = [&](size_t i) -> Value* {
    if (i == names.size()) {
      const auto text = [&](const std::string& words) {
        return constant(words, Type{TypeKind::String});
      };
      Value* message = asked;
      if (!by_name) {
        message = op("aten::add", {text("index "), op("aten::str", {asked}, span)}, span);
        message = op(
            "aten::add",
            {message, text(str(" is out of range: there are ", names.size(), " modules, from 0"))},
            span);
      }
      Value* const kind = text(by_name ? "builtins.KeyError" : "builtins.IndexError");
      graph_->append(NodeKind::RaiseException, {message, kind}, 0);
      return uninitialized(type);
    }
    Value* const key =
        by_name ? constant(names[i], Type{TypeKind::String}) : integer(static_cast<int64_t>(i));
    Condition here;
    here.value = op("aten::eq", {index, key}, span);
    const auto found = [&] {
      Value* const made = chosen(get_attribute(modules, names[i]));
      type = made->type;
      return made;
    };
    return select_value(here, found, [&] { return from(i + 1); }, span, "the module");
  };
  return from(0);
}

Meaning Lowering::subscript(const Expr& e, const Type* hint) {
  const Meaning of = meaning(*e.of[0]);
  const std::vector<const Expr*> indices = indices_of(e);
  if (indices.empty()) {  // x[()]
    Value* const whole = as_value(of, e.of[0]->span);
    if (!whole->type.is(TypeKind::Tensor)) {
      fail(e.span, "an index is missing");
    }
    return Meaning::of_value(whole);
  }
  const Expr& index = *indices[0];
  const std::optional<std::vector<Meaning>> slice =
      indices.size() == 1 ? slice_of(index) : std::nullopt;
  if (of.is(Meaning::Kind::Tuple)) {
    return slice ? slice_of_parts(of.of, *slice, e.span) : part_at(of.of, index, e.span);
  }
  Value* const base = as_value(of, e.of[0]->span);
  const Type& type = base->type;
  if (type.is(TypeKind::Tensor)) {
    std::vector<Value*> tensors;
    Value* const view = tensor_subscript(base, e, tensors);
    if (tensors.empty()) {
      return Meaning::of_value(view);
    }
    return Meaning::of_value(op("aten::index", {view, index_list(tensors)}, e.span));
  }
  if (indices.size() != 1) {
    fail(e.span, str("a ", type.annotation(), " takes one index"));
  }
  if (type.is_tuple()) {
    if (slice) {
      return slice_of_parts(parts_of(of, e.span), *slice, e.span);
    }
    const Meaning at = meaning(index);
    const std::optional<int64_t> place = constant_int(at);
    if (!place) {
      const bool alike = std::all_of(type.of.begin(), type.of.end(),
                                     [&](const Type& part) { return part == type.of[0]; });
      Value* const number = as_value(at, e.span);
      if (!alike || type.of.empty() || !number->type.is(TypeKind::Int)) {
        fail(e.span, "tuple index must be an integer that is known, where parts differ in type");
      }
      Node* const node = graph_->append(NodeKind::TupleIndex, {base, number});
      return Meaning::of_value(node->output()->set_type(type.of[0]));
    }
    const auto size = static_cast<int64_t>(type.of.size());
    if (*place < -size || *place >= size) {
      fail(e.span, str("Tuple index out of range: ", *place, " of ", size));
    }
    const Type& part = type.of[static_cast<size_t>(*place < 0 ? *place + size : *place)];
    Node* const node = graph_->append(NodeKind::TupleIndex, {base, integer(*place)});
    return Meaning::of_value(node->output()->set_type(part));
  }
  if (type.is(TypeKind::Class)) {
    if (const auto names = resolver_.submodules(type)) {
      if (hint != nullptr && hint->is(TypeKind::Interface) && !slice) {
        const auto as_interface = [&](Value* module) {
          if (!module->type.is_subtype_of(*hint)) {
            fail(e.span, str("the module ", module->type.annotation(), " has not all methods of ",
                             hint->annotation()));
          }
          return graph_->append(NodeKind::UncheckedCast, {module})->output()->set_type(*hint);
        };
        return Meaning::of_value(choose_module(base, *names, value(index), as_interface, e.span));
      }
      std::vector<Meaning> parts;
      const Meaning key = index.is(Kind::String) ? meaning(index) : Meaning();
      for (const std::string& name : *names) {
        if (index.is(Kind::String) && name == index.text) {
          return Meaning::of_value(get_attribute(base, name));
        }
        parts.push_back(Meaning::named(Meaning::Kind::OpMethod, name));
      }
      if (index.is(Kind::String)) {
        fail(e.span, str("Key Error, ", index.text));
      }
      Meaning chosen =
          slice ? slice_of_parts(parts, *slice, e.span) : part_at(parts, index, e.span);
      for (Meaning& one : chosen.of) {
        one = Meaning::of_value(get_attribute(base, one.name));
      }
      return chosen.is(Meaning::Kind::Tuple) ? chosen
                                             : Meaning::of_value(get_attribute(base, chosen.name));
    }
    return call(attribute_of_value(base, "__getitem__", e.span), {{value(index)}, {}}, e.span);
  }
  if (slice) {
    std::vector<Value*> arguments = {base};
    for (size_t i = 0; i < 3; i++) {
      const bool one = i == 2 && is_left_out((*slice)[i]);
      arguments.push_back(one ? integer(1) : as_value((*slice)[i], index.span));
    }
    return Meaning::of_value(op("aten::slice", arguments, e.span));
  }
  return Meaning::of_value(op("aten::__getitem__", {base, value(index)}, e.span));
}

// Views by integers, slices, None and …; tensors that index come into `tensors`, null where a
// dimension has none.
graph::Value* Lowering::tensor_subscript(Value* tensor, const Expr& e,
                                         std::vector<Value*>& tensors) {
  const std::vector<const Expr*> indices = indices_of(e);
  Value* view = tensor;
  int64_t next = 0;           // the dimension that the next index takes
  bool from_the_end = false;  // behind an ellipsis, where dimensions are counted backwards
  const auto unsqueeze_at = [&](const Expr& index) {
    view = op("aten::unsqueeze", {view, integer(from_the_end ? next - 1 : next)}, index.span);
    next += from_the_end ? 0 : 1;
  };
  for (size_t i = 0; i < indices.size(); i++) {
    const Expr& index = *indices[i];
    if (index.is(Kind::Ellipsis)) {
      if (from_the_end) {
        fail(index.span, "an index can only have a single ellipsis");
      }
      from_the_end = true;
      next = 0;
      for (size_t k = i + 1; k < indices.size(); k++) {
        next -= indices[k]->is(Kind::None) || indices[k]->is(Kind::Ellipsis) ? 0 : 1;
      }
      continue;
    }
    if (const auto slice = slice_of(index)) {
      view = slice_tensor(view, next, *slice, index.span);
      next++;
      continue;
    }
    Value* given = value(index);
    if (given->type.is(TypeKind::None)) {
      unsqueeze_at(index);
    } else if (given->type.is(TypeKind::Int)) {
      view = op("aten::select", {view, integer(next), given}, index.span);
      next += from_the_end ? 1 : 0;
    } else {
      given = given->type.is(TypeKind::List) ? op("aten::tensor", {given}, index.span) : given;
      if (!given->type.is(TypeKind::Tensor)) {
        fail(index.span, str("a tensor is indexed by integers, slices, tensors and None, not by ",
                             given->type.annotation()));
      }
      if (from_the_end) {
        fail(index.span, "Ellipses followed by tensor indexing is not supported: write each ':'");
      }
      tensors.resize(static_cast<size_t>(next) + 1, nullptr);
      tensors[static_cast<size_t>(next)] = given;
      next++;
    }
  }
  return view;
}

// A slice of one dimension; the tensor itself where it leaves nothing out.
graph::Value* Lowering::slice_tensor(Value* tensor, int64_t dim, const std::vector<Meaning>& slice,
                                     Span span) {
  if (std::all_of(slice.begin(), slice.end(), is_left_out)) {
    return tensor;
  }
  std::vector<Value*> arguments = {tensor, integer(dim)};
  for (size_t k = 0; k < 3; k++) {
    Value* const part = k == 2 && is_left_out(slice[k]) ? integer(1) : as_value(slice[k], span);
    const bool number = part->type.is(TypeKind::Tensor);
    arguments.push_back(number ? convert_value(*graph_, part, Type{TypeKind::Int}) : part);
  }
  return op("aten::slice", arguments, span);
}

graph::Value* Lowering::index_list(const std::vector<Value*>& tensors) {
  std::vector<Value*> items;
  for (Value* tensor : tensors) {
    items.push_back(tensor != nullptr ? tensor : none());
  }
  Node* const node = graph_->append(NodeKind::ListConstruct, items);
  return node->output()->set_type(Type::list(Type::optional(Type{TypeKind::Tensor})));
}

void Lowering::assign_subscript(const Expr& target, Value* given) {
  Value* const base = value(*target.of[0]);
  const Type& type = base->type;
  if (type.is(TypeKind::Tensor)) {
    std::vector<Value*> tensors;
    Value* const view = tensor_subscript(base, target, tensors);
    const auto as_tensor = [&] {
      return given->type.is(TypeKind::Tensor)
                 ? given
                 : as_value(call_op_at("aten::tensor",
                                       {{given},
                                        {{"dtype", op("prim::dtype", {base}, target.span)},
                                         {"device", op("prim::device", {base}, target.span)}}},
                                       target.span),
                            target.span);
    };
    if (tensors.empty()) {
      op("aten::copy_", {view, as_tensor()}, target.span);
    } else {
      op("aten::index_put_", {view, index_list(tensors), as_tensor()}, target.span);
    }
    return;
  }
  if (target.of.size() != 2 || target.of[1]->is(Kind::Slice)) {
    fail(target.span, "a slice of a list cannot be assigned to: build a new list");
  }
  Value* const index = value(*target.of[1]);
  if (type.is(TypeKind::Class)) {
    call(attribute_of_value(base, "__setitem__", target.span), {{index, given}, {}}, target.span);
    return;
  }
  if (!type.is(TypeKind::List) && !type.is(TypeKind::Dict)) {
    fail(target.span, str("items of a ", type.annotation(), " cannot be assigned to"));
  }
  const Type& item = type.of.back();
  Value* const fitting = convert_value(*graph_, given, item);
  if (fitting == nullptr) {
    fail(target.span,
         str("a ", given->type.annotation(), " does not fit into a ", type.annotation()));
  }
  op("aten::_set_item", {base, index, fitting}, target.span);
}

// ---- changes in place ----

namespace {
std::string in_place(const std::string& symbol) {
  constexpr std::pair<std::string_view, std::string_view> functions[] = {
      {"+", "add_"},           {"-", "sub_"},       {"*", "mul_"},         {"/", "div_"},
      {"//", "floor_divide_"}, {"%", "remainder_"}, {"**", "pow_"},        {"&", "__iand__"},
      {"|", "__ior__"},        {"^", "__ixor__"},   {"<<", "__ilshift__"}, {">>", "__irshift__"}};
  for (const auto& [text, function] : functions) {
    if (text == symbol) {
      return "aten::" + std::string(function);
    }
  }
  return "";
}
}  // namespace

// The value after `left op= right`, which may be `left` itself, changed.
graph::Value* Lowering::augmented_value(const std::string& symbol, Value* left, Value* right,
                                        Span span) {
  const bool list = left->type.is(TypeKind::List) && (symbol == "+" || symbol == "*");
  if (list) {
    return op(symbol == "+" ? "aten::add_" : "aten::mul_", {left, right}, span);
  }
  if (left->type.is(TypeKind::Tensor) && !in_place(symbol).empty()) {
    return op(in_place(symbol), {left, right}, span);
  }
  return operation(symbol, left, right, span);
}

void Lowering::augment_subscript(const Expr& target, const std::string& symbol, Value* by) {
  Value* const base = value(*target.of[0]);
  if (base->type.is(TypeKind::Tensor)) {
    std::vector<Value*> tensors;
    Value* const view = tensor_subscript(base, target, tensors);
    if (tensors.empty()) {
      augmented_value(symbol, view, by, target.span);
      return;
    }
    Value* const list = index_list(tensors);
    Value* const old = op("aten::index", {view, list}, target.span);
    op("aten::index_put_", {view, list, operation(symbol, old, by, target.span)}, target.span);
    return;
  }
  if (target.of.size() != 2 || target.of[1]->is(Kind::Slice)) {
    fail(target.span, "a slice of a list cannot be assigned to: build a new list");
  }
  Value* const index = value(*target.of[1]);
  Value* const old = op("aten::__getitem__", {base, index}, target.span);
  op("aten::_set_item", {base, index, augmented_value(symbol, old, by, target.span)}, target.span);
}

void Lowering::augmented_assignment(const Stmt& s) {
  const Expr& target = *s.targets[0];
  Value* const by = value(*s.value);
  if (target.is(Kind::Subscript)) {
    augment_subscript(target, s.text, by);
    return;
  }
  if (!target.is(Kind::Name) && !target.is(Kind::Attribute)) {
    fail(target.span, "only names, attributes and items can be changed in place");
  }
  Value* const made = augmented_value(s.text, value(target), by, s.span);
  assign_to(target, Meaning::of_value(made));
}

}  // namespace rushlight::script
