// Long work can be ended from outside.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

// What programs and ops ask now and then while they work through rounds whose number a caller says:
// it throws where they have to end. Python sets it, so that Ctrl-C ends them.
RL_API void set_interrupt(void (*ask)());

}  // namespace rushlight
