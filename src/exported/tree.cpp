// How arguments and results lie in containers.
#include "exported/tree.h"

#include "exported/facts.h"

namespace rushlight::exported {

using serialize::Json;

namespace {

// Keys of dicts are strings or numbers.
Value key_of(const Json& record) {
  if (record.is_string()) {
    return record.string();
  }
  return record.is_boolean() ? Value(record.boolean()) : Value(record.integer());
}

Tree tree_of(const Json& record) {
  const std::optional<Json> type = record.find("type");
  Tree made;
  if (!type) {
    return made;
  }
  const std::string name = type->string();
  const std::optional<Json> context = record.find("context");
  if (name == "builtins.list") {
    made.kind = Tree::Kind::List;
  } else if (name == "builtins.tuple" || name == "collections.namedtuple") {
    made.kind = Tree::Kind::Tuple;
  } else if (name == "builtins.dict" || name == "collections.OrderedDict") {
    made.kind = Tree::Kind::Dict;
    const std::string keys = context ? context->string() : "[]";
    Json(keys, damaged).items([&](const Json& key) { made.keys.push_back(key_of(key)); });
  } else {
    throw NotImplementedError("the program takes or returns a container of the class " + name +
                              ", which C++ does not know");
  }
  record.at("children_spec").items([&](const Json& child) { made.of.push_back(tree_of(child)); });
  RL_CHECK(made.kind != Tree::Kind::Dict || made.keys.size() == made.of.size(), damaged,
           ": a dict has ", made.keys.size(), " keys and ", made.of.size(), " values");
  return made;
}

std::string text_of(const Value& key) {
  return key.isString() ? str("'", key.toStringRef(), "'") : std::to_string(key.toInt());
}

}  // namespace

Tree Tree::read(std::string_view text) {
  std::vector<Json> parts;
  Json(text, damaged).items([&](const Json& part) { parts.push_back(part); });
  RL_CHECK(parts.size() == 2 && parts[0].integer() == 1, damaged,
           ": the structure of its arguments is in a form that is not known");
  return tree_of(parts[1]);
}

size_t Tree::leaf_count() const {
  size_t count = kind == Kind::Leaf ? 1 : 0;
  for (const Tree& part : of) {
    count += part.leaf_count();
  }
  return count;
}

void Tree::flatten(const Value& value, const std::string& where, std::vector<Value>& leaves) const {
  if (kind == Kind::Leaf) {
    leaves.push_back(value);
    return;
  }
  if (kind == Kind::Dict) {
    RL_CHECK(value.isGenericDict(), where, " is a ", value.kind_name(), ", expected a dict");
    const auto items = value.dict_items();
    for (size_t i = 0; i < of.size(); i++) {
      const size_t place = items->find(keys[i]);
      RL_CHECK(place < items->pairs.size(), where, " lacks the key ", text_of(keys[i]));
      of[i].flatten(items->pairs[place].second, str(where, "[", text_of(keys[i]), "]"), leaves);
    }
    RL_CHECK(items->pairs.size() == of.size(), where, " has ", items->pairs.size(),
             " keys, expected ", of.size());
    return;
  }
  const bool fits = kind == Kind::Tuple ? value.isTuple() : value.isList();
  RL_CHECK(fits, where, " is a ", value.kind_name(), ", expected a ",
           kind == Kind::Tuple ? "tuple" : "list");
  const Value::Items items = value.isTuple() ? value.items() : value.toListRef();
  RL_CHECK(items.size() == of.size(), where, " has ", items.size(), " items, expected ", of.size());
  for (size_t i = 0; i < of.size(); i++) {
    of[i].flatten(items[i], str(where, "[", i, "]"), leaves);
  }
}

Value Tree::unflatten(const std::vector<Value>& leaves, size_t& place) const {
  if (kind == Kind::Leaf) {
    return leaves.at(place++);
  }
  Value::Items items;
  for (const Tree& part : of) {
    items.push_back(part.unflatten(leaves, place));
  }
  if (kind == Kind::List) {
    return Value::list(std::move(items));
  }
  if (kind == Kind::Tuple) {
    return Value::tuple(std::move(items));
  }
  auto made = make_intrusive<ivalue::DictItems>();
  for (size_t i = 0; i < items.size(); i++) {
    made->insert(keys[i], std::move(items[i]), true);
  }
  return Value::dict(std::move(made));
}

}  // namespace rushlight::exported
