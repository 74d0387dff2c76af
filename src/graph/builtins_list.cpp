// Functions of lists.
#include "graph/builtins.h"

namespace rushlight::graph {

namespace {
constexpr BuiltinRow rows[] = {
    {"aten::len.t(t[] a) -> int",
     [](IValue* a, size_t, IValue* out) {
       out[0] = IValue(static_cast<int64_t>(a[0].items()->size()));
     }},
};
}  // namespace

BuiltinRows list_builtins() { return rows; }

}  // namespace rushlight::graph
