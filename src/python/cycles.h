// Cycles of references through C++, which Python's collector finds where it is shown them.
#pragma once

#include "python/common.h"

namespace rushlight {
class Node;
}

namespace rushlight::python {

// What C++ keeps of Python's and a search for cycles goes through: hooks, packed tensors.
struct HoldsPython {
  virtual ~HoldsPython();
  // The objects that it has one reference each to; null for none.
  virtual std::pair<PyObject*, PyObject*> python_objects() const = 0;
};

// From now on something of C++'s holds a Python object, so that there may be cycles.
void note_tie();

// During a full collection the Python object that stands for a tensor or a node of C++'s.
struct Shadow;
extern bool showing_cycles;  // there are shadows
// The shadow of what `holder` is the Python object of; null where it has none.
const Shadow* shadow_of(const TensorImpl& impl, PyObject* holder);
const Shadow* shadow_of(const Node& node, PyObject* holder);
int visit_shadow(const Shadow& shadow, visitproc visit, void* arg);

void init_cycles();

}  // namespace rushlight::python
