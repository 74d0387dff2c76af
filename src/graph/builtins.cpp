// Finding functions of the language by name.
#include "graph/builtins.h"

#include <unordered_map>

namespace rushlight::graph {

namespace {
struct Table {
  std::vector<std::unique_ptr<const Builtin>> owned;
  std::vector<const Builtin*> all;
  std::unordered_map<std::string, std::vector<const Builtin*>> by_name;

  Table() {
    for (const BuiltinRows& rows :
         {number_builtins(), math_builtins(), string_builtins(), list_builtins(), dict_builtins(),
          tensor_builtins(), vision_builtins()}) {
      for (const BuiltinRow& row : rows) {
        owned.push_back(
            std::make_unique<const Builtin>(Builtin{parse_schema(row.schema), row.call, row.pure}));
        all.push_back(owned.back().get());
        by_name[all.back()->schema.qualified_name()].push_back(all.back());
      }
    }
  }
};
// Schemas are read when the first graph is made.
const Table& table() {
  static const auto* const made = new Table();
  return *made;
}
}  // namespace

ArrayRef<const Builtin*> all_builtins() { return table().all; }

ArrayRef<const Builtin*> find_builtins(std::string_view qualified_name) {
  const auto found = table().by_name.find(std::string(qualified_name));
  if (found == table().by_name.end()) {
    return {};
  }
  return found->second;
}

const Builtin* find_builtin(std::string_view full_name) {
  const size_t colons = full_name.find("::");
  const size_t dot = full_name.find('.', colons == std::string_view::npos ? 0 : colons);
  const std::string_view overload = dot == std::string_view::npos ? "" : full_name.substr(dot + 1);
  for (const Builtin* const builtin : find_builtins(full_name.substr(0, dot))) {
    if (builtin->schema.overload == overload) {
      return builtin;
    }
  }
  return nullptr;
}

}  // namespace rushlight::graph
