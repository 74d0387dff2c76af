// Named ranges of a program's own, which the profiler of the thread shows between its ops:
// RECORD_FUNCTION("forward", std::vector<c10::IValue>({x})). Without a profiler a range costs a
// test.
#pragma once

#include <rushlight/tensor.h>

#include <string>
#include <vector>

namespace rushlight {

enum class RecordScope : uint8_t { FUNCTION, BACKWARD_FUNCTION, USER_SCOPE };

// One who notes the ranges of its thread between `enter` and `leave`; those who entered before note
// them, too.
class RL_API RangeRecorder {
 public:
  virtual ~RangeRecorder();
  void enter();
  void leave();
  virtual bool wants_shapes() const = 0;
  // Times are nanoseconds of std::chrono::steady_clock.
  virtual void note(const std::string& name, int64_t begin, int64_t end,
                    const std::vector<DimVector>& shapes) = 0;
  static RangeRecorder* innermost();
  RangeRecorder* outer() const { return outer_; }

 private:
  RangeRecorder* outer_ = nullptr;
};

// A range from `before` to `end`, or to where the object goes.
class RL_API RecordFunction {
 public:
  explicit RecordFunction(RecordScope scope = RecordScope::FUNCTION)
      : active_(RangeRecorder::innermost() != nullptr), scope_(scope) {}
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

  bool isActive() const { return active_; }
  bool needsInputs() const;
  RecordScope scope() const { return scope_; }
  const std::string& name() const { return name_; }
  void before(std::string name);
  // With the sizes of the tensors among `inputs`, which are IValues.
  template <class Inputs>
  void before(std::string name, const Inputs& inputs) {
    for (const auto& input : inputs) {
      if (input.isTensor()) {
        shapes_.push_back(DimVector(input.toTensor().sizes()));
      }
    }
    before(std::move(name));
  }
  void end();

 private:
  bool active_;
  RecordScope scope_;
  int64_t begin_ = 0;
  std::string name_;
  std::vector<DimVector> shapes_;
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
