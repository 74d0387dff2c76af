// The mode in which a row's bits do not depend on the other rows.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

// Whether products, attention, norms and softmax compute each row in one way, whatever the number
// of rows beside it: for the whole process.
RL_API bool is_batch_invariant();
RL_API void use_batch_invariant(bool on);

}  // namespace rushlight
