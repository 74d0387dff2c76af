// Boxed calls as Python code sees them (calls.cpp), and modes that Python code enters and leaves,
// in whatever order (dispatch.cpp).
#pragma once

#include <string_view>

#include <rushlight/mode.h>

#include "python/common.h"
#include "python/values.h"

namespace rushlight::python {

// The row of the registry; IndexError where there is none.
const OpInfo& op_at(Py_ssize_t index);
// The OpOverload of an op (python/rushlight/_ops.py): borrowed, made once.
PyObject* overload_object(const OpInfo& op);

// A call as Python code sees it: arguments that have their defaults are left out.
struct PythonCall {
  Object args;    // tuple
  Object kwargs;  // dict
};
PythonCall python_call(const OpInfo& op, const std::vector<Value>& arguments);
// The values of all arguments of an op, in a tuple, by the schema's types.
std::vector<Value> values_of(const OpInfo& op, PyObject* values);
// What a function of Python returned in the place of an op, by the schema's types of the results;
// errors say whose results they are.
std::vector<Value> returned_values(const OpInfo& op, PyObject* returned, const char* whose);

// A mode below autograd on the thread that entered it.
class LowerMode : public Mode {
 public:
  ~LowerMode() override;
  void enter();
  void leave();  // RuntimeError while it runs
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) final;

 private:
  virtual std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments) = 0;
  int running_ = 0;
  bool entered_ = false;
};

}  // namespace rushlight::python
