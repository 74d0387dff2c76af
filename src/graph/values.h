// How values hold the lists and dicts of programs: the one place that knows it.
#pragma once

#include <rushlight/ivalue.h>

namespace rushlight::graph {

// Whether a value is a list as programs have them, whose holders all see a change, and not a vector
// of an op.
inline bool is_shared_list(const IValue& value) { return value.kind() == IValue::Kind::List; }
// Of such a list, or of a tuple; RuntimeError of anything else.
inline IValue::Items& items_of(const IValue& value) { return value.items(); }
inline bool are_one_list(const IValue& a, const IValue& b) {
  return is_shared_list(a) && is_shared_list(b) && &items_of(a) == &items_of(b);
}
inline IValue list_value(IValue::Items items) { return IValue::list(std::move(items)); }
// A list as programs have them; any other value itself.
inline IValue shared_list(IValue value) {
  return value.isList() && !is_shared_list(value) ? list_value(value.toListRef()) : value;
}

inline IValue new_dict() { return IValue::dict(make_intrusive<ivalue::DictItems>()); }
inline ivalue::DictItems& dict_of(const IValue& value) { return *value.dict_items(); }

}  // namespace rushlight::graph
