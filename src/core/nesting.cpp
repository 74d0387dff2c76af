// Levels of a thread.
#include "core/nesting.h"

namespace rushlight {

namespace {
constexpr int deepest = 1000;
thread_local int depth = 0;
}  // namespace

Nesting::Nesting() {
  RL_CHECK(depth < deepest, "values are nested more than ", deepest, " deep");
  depth++;
}
Nesting::~Nesting() { depth--; }

}  // namespace rushlight
