// Long work can be ended from outside.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

// What programs and ops ask now and then while they work: it throws where they have to end. Python
// sets it, so that Ctrl-C ends them. `ask` is for between ops, where handlers of signals may run;
// `ask_within` for the midst of one, where nothing of the program may.
RL_API void set_interrupt(void (*ask)(), void (*ask_within)());

}  // namespace rushlight
