// Functions of dicts, which keep the order in which keys came in.
#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

using ivalue::DictItems;

[[noreturn]] void no_key(const IValue& key) { throw Error(str("KeyError: ", text_of(key))); }
IValue& value_at(DictItems& dict, const IValue& key) {
  const size_t place = dict.find(key);
  if (place == dict.pairs.size()) {
    no_key(key);
  }
  return dict.pairs[place].second;
}
IValue pop_value(DictItems& dict, const IValue& key) {
  IValue out = value_at(dict, key);
  dict.erase(key);
  return out;
}
IValue copy_of(const DictItems& dict) {
  IValue out = new_dict();
  for (const auto& [key, value] : dict.pairs) {
    dict_of(out).insert(key, value, true);
  }
  return out;
}
template <class F>
IValue list_from(const DictItems& dict, F item) {
  IValue::Items out;
  for (const auto& pair : dict.pairs) {
    out.push_back(item(pair));
  }
  return list_value(std::move(out));
}
IValue pair_value(const std::pair<IValue, IValue>& pair) {
  return IValue::tuple({pair.first, pair.second});
}

#define RL_DICT_CALL(body)                                                 \
  [](IValue* a, [[maybe_unused]] size_t n, [[maybe_unused]] IValue* out) { \
    DictItems& dict = dict_of(a[0]);                                       \
    body                                                                   \
  }

const BuiltinRow rows[] = {
    {"aten::len.Dict(Dict(k, t) self) -> int",
     RL_DICT_CALL({ out[0] = IValue(static_cast<int64_t>(dict.pairs.size())); })},
    {"aten::__getitem__.Dict(Dict(k, t) self, k key) -> t",
     RL_DICT_CALL({ out[0] = value_at(dict, a[1]); })},
    {"aten::_set_item.Dict(Dict(k, t)(a!) l, k idx, t v) -> ()",
     RL_DICT_CALL({ dict.insert(std::move(a[1]), std::move(a[2]), true); }), false},
    {"aten::Delete.Dict(Dict(k, t)(a!) self, k key) -> ()",
     RL_DICT_CALL({ pop_value(dict, a[1]); }), false},
    {"aten::__contains__.Dict(Dict(k, t) dict, k key) -> bool",
     RL_DICT_CALL({ out[0] = IValue(dict.find(a[1]) < dict.pairs.size()); })},
    {"aten::get.Dict(Dict(k, t) self, k key) -> t?", RL_DICT_CALL({
       const size_t place = dict.find(a[1]);
       out[0] = place < dict.pairs.size() ? dict.pairs[place].second : IValue();
     })},
    {"aten::get.default_Dict(Dict(k, t) self, k key, t default_value) -> t", RL_DICT_CALL({
       const size_t place = dict.find(a[1]);
       out[0] = place < dict.pairs.size() ? dict.pairs[place].second : a[2];
     })},
    {"aten::setdefault.Dict(Dict(k, t)(a!) self, k key, t default_value) -> t", RL_DICT_CALL({
       dict.insert(a[1], a[2], false);
       out[0] = value_at(dict, a[1]);
     }),
     false},
    {"aten::pop.Dict(Dict(k, t)(a!) self, k key) -> t",
     RL_DICT_CALL({ out[0] = pop_value(dict, a[1]); }), false},
    {"aten::pop.Dict_default(Dict(k, t)(a!) self, k key, t default_value) -> t",
     RL_DICT_CALL({ out[0] = dict.find(a[1]) < dict.pairs.size() ? pop_value(dict, a[1]) : a[2]; }),
     false},
    {"aten::popitem.Dict(Dict(k, t)(a!) self) -> ((k, t))", RL_DICT_CALL({
       RL_CHECK(!dict.pairs.empty(), "popitem(): the dict is empty");
       out[0] = pair_value(dict.pairs.front());
       dict.erase(IValue(dict.pairs.front().first));
     }),
     false},
    {"aten::update.Dict(Dict(k, t)(a!) self, Dict(k, t) to_add) -> ()", RL_DICT_CALL({
       if (&dict != &dict_of(a[1])) {
         for (const auto& [key, value] : dict_of(a[1]).pairs) {
           dict.insert(key, value, true);
         }
       }
     }),
     false},
    {"aten::clear.Dict(Dict(k, t)(a!) self) -> ()", RL_DICT_CALL({
       while (!dict.pairs.empty()) {
         dict.erase(IValue(dict.pairs.back().first));
       }
     }),
     false},
    {"aten::copy.Dict(Dict(k, t) self) -> Dict(k, t)", RL_DICT_CALL({ out[0] = copy_of(dict); })},
    {"aten::dict.Dict(Dict(k, t) self) -> Dict(k, t)", RL_DICT_CALL({ out[0] = copy_of(dict); })},
    {"aten::dict.pairs((k, t)[] inputs) -> Dict(k, t)",
     [](IValue* a, size_t, IValue* out) {
       out[0] = new_dict();
       for (const IValue& pair : a[0].toListRef()) {
         RL_CHECK(pair.isTuple() && items_of(pair).size() == 2, "dict() takes a list of pairs");
         dict_of(out[0]).insert(items_of(pair)[0], items_of(pair)[1], true);
       }
     }},
    {"aten::dict() -> Dict(str, Tensor)",
     [](IValue*, size_t, IValue* out) { out[0] = new_dict(); }},
    {"aten::keys.Dict(Dict(k, t) self) -> k[]",
     RL_DICT_CALL({ out[0] = list_from(dict, [](const auto& pair) { return pair.first; }); })},
    {"aten::values.Dict(Dict(k, t) self) -> t[]",
     RL_DICT_CALL({ out[0] = list_from(dict, [](const auto& pair) { return pair.second; }); })},
    {"aten::items.Dict(Dict(k, t) self) -> (k, t)[]",
     RL_DICT_CALL({ out[0] = list_from(dict, pair_value); })},
};
#undef RL_DICT_CALL

}  // namespace

BuiltinRows dict_builtins() { return {std::begin(rows), std::end(rows)}; }

}  // namespace rushlight::graph
