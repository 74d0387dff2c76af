// Values of the boxed form from and to Python (calls.cpp), and modes that Python code enters and
// leaves, in whatever order (dispatch.cpp).
#pragma once

#include <string_view>

#include <rushlight/mode.h>

#include "python/common.h"

namespace rushlight::python {

// `type` as the schema writes it: "Tensor?[]", "int[2]", "Scalar". TypeError, naming the op and the
// argument, where it cannot be that.
Value to_value(PyObject* o, const OpInfo& op, std::string_view type, std::string_view name);
// A number that was on its way into an op comes back as a number.
PyObject* from_value(const Value& value);

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
