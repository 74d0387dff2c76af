// Profiles of C++ programs: what the ops of a thread, and ranges that programs name
// (record_function.h), take. Python has a profiler of its own (rushlight.profiler), which shows
// more.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <rushlight/record_function.h>

namespace rushlight::profiler {

struct Event {
  std::string name;   // "aten::add.Tensor", or a range's own
  int64_t begin = 0;  // nanoseconds of std::chrono::steady_clock
  int64_t end = 0;
  bool is_op = true;
  std::vector<DimVector> shapes;  // of the tensors that it takes, if they are wanted
};

// What is done on this thread until `stop`, which the destructor calls too. Profiles nest; the one
// that began last stops first.
class RL_API Profile {
 public:
  explicit Profile(bool with_shapes = false);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void stop();
  const std::vector<Event>& events() const;  // in the order in which they ended
  // A line a name, those that took longest first: calls, milliseconds in all and of each call.
  std::string table(size_t rows = 20) const;
  // For chrome://tracing and Perfetto; RuntimeError where the file cannot be written.
  void export_chrome_trace(const std::string& path) const;
  void export_chrome_trace(std::ostream& out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rushlight::profiler

namespace rushlight::autograd_api::profiler {

// libtorch's: a trace of what is done until it goes.
class RL_API RecordProfile {
 public:
  explicit RecordProfile(std::ostream& out);
  explicit RecordProfile(std::string filename);
  ~RecordProfile();
  RecordProfile(const RecordProfile&) = delete;
  RecordProfile& operator=(const RecordProfile&) = delete;

 private:
  rushlight::profiler::Profile profile_;
  std::ostream* out_ = nullptr;
  std::string filename_;
};

}  // namespace rushlight::autograd_api::profiler
