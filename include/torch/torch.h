// For programs written against libtorch: its names, as those of rushlight.
#pragma once

// Programs rely on these, which libtorch's header has as well.
#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cassert>
#include <chrono>
#include <climits>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <set>
#include <stack>
#include <thread>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include <rushlight/archive.h>
#include <rushlight/chunks.h>
#include <rushlight/compat.h>
#include <rushlight/complex_math.h>
#include <rushlight/container_print.h>
#include <rushlight/custom_node.h>
#include <rushlight/data.h>
#include <rushlight/library.h>
#include <rushlight/other_tensors.h>
#include <rushlight/libtorch.h>
#include <rushlight/nn.h>
#include <rushlight/optim.h>
#include <rushlight/rushlight.h>
#include <rushlight/script.h>

namespace rushlight {
using Deleter = std::function<void(void*)>;
}
namespace rushlight::autograd_api {
using _jvp_fn_t = std::function<variable_list(variable_list, variable_list)>;
using _view_as_self_fn_t = std::function<Tensor(Tensor)>;
}  // namespace rushlight::autograd_api

namespace at::native {
using namespace rushlight::native;
}

// What setups of extensions define, whose sources may include this header alone.
#ifdef TORCH_API_INCLUDE_EXTENSION_H
#include <torch/extension.h>
#endif
