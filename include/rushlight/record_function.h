// Named ranges of a program's own, which the profiler of the thread shows between its ops:
// RECORD_FUNCTION("forward", std::vector<c10::IValue>({x})). Without a profiler a range costs a
// test.
#pragma once

#include <rushlight/tensor.h>

#include <string>
#include <vector>

namespace rushlight {

enum class RecordScope : uint8_t { FUNCTION = 0, BACKWARD_FUNCTION = 1, USER_SCOPE = 7 };

struct RecordedRange {
  std::string name;
  RecordScope scope = RecordScope::FUNCTION;
  int64_t begin = 0;  // nanoseconds of std::chrono::steady_clock
  int64_t end = 0;
  int64_t sequence = -1;  // of a backward function: when its forward was recorded
  std::vector<DimVector> shapes;
};

// One who notes the ranges of its thread between `enter` and `leave`; those who entered before note
// them, too.
class RL_API RangeRecorder {
 public:
  virtual ~RangeRecorder();
  void enter();
  void leave();
  virtual bool wants_shapes() const = 0;
  virtual void record(const RecordedRange& range) = 0;
  static RangeRecorder* innermost();
  RangeRecorder* outer() const { return outer_; }

 private:
  RangeRecorder* outer_ = nullptr;
};

// A range from `before` to `end`, or to where the object goes.
class RL_API RecordFunction {
 public:
  explicit RecordFunction(RecordScope scope = RecordScope::FUNCTION)
      : active_(RangeRecorder::innermost() != nullptr) {
    range_.scope = scope;
  }
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

  bool isActive() const { return active_; }
  bool needsInputs() const;
  RecordScope scope() const { return range_.scope; }
  const std::string& name() const { return range_.name; }
  void before(std::string name, int64_t sequence = -1);
  // With the sizes of the tensors among `inputs`, which are IValues.
  template <class Inputs>
  void before(std::string name, const Inputs& inputs) {
    for (const auto& input : inputs) {
      if (input.isTensor()) {
        add_shape(DimVector(input.toTensor().sizes()));
      }
    }
    before(std::move(name));
  }
  void add_shape(DimVector sizes) { range_.shapes.push_back(std::move(sizes)); }
  void end();

 private:
  bool active_;
  RecordedRange range_;
};

}  // namespace rushlight

#define RL_RECORD(guard, scope, name, ...)           \
  ::rushlight::RecordFunction guard(scope);          \
  if (guard.isActive()) {                            \
    if (guard.needsInputs()) {                       \
      guard.before(name __VA_OPT__(, ) __VA_ARGS__); \
    } else {                                         \
      guard.before(name);                            \
    }                                                \
  }
#define RL_RECORD_GUARD_(line) record_function_##line
#define RL_RECORD_GUARD(line) RL_RECORD_GUARD_(line)

#define RECORD_FUNCTION_WITH_SCOPE(scope, name, ...) \
  RL_RECORD(RL_RECORD_GUARD(__LINE__), scope, name __VA_OPT__(, ) __VA_ARGS__)
#define RECORD_FUNCTION(name, ...) \
  RECORD_FUNCTION_WITH_SCOPE(::rushlight::RecordScope::FUNCTION, name __VA_OPT__(, ) __VA_ARGS__)
#define RECORD_USER_SCOPE(name) \
  RECORD_FUNCTION_WITH_SCOPE(::rushlight::RecordScope::USER_SCOPE, name)
