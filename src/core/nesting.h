// How deep values are nested within each other is for programs and files to say. What goes through
// them by recursion holds one of these at each level, so that it is an error where the thread's
// stack would not do.
#pragma once

#include <rushlight/error.h>

namespace rushlight {

class RL_API Nesting {
 public:
  Nesting();  // RuntimeError at too deep a level
  ~Nesting();
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

}  // namespace rushlight
