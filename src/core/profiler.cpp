// Profiles of C++ programs: a mode below autograd notes ops, a recorder notes ranges.
#include <rushlight/profiler.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>

#include <rushlight/mode.h>

namespace rushlight::profiler {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// As a string of JSON.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string full_name(const OpInfo& op) {
  return str(op.space, "::", op.name, *op.overload != 0 ? "." : "", op.overload);
}

}  // namespace

struct Profile::State final : Mode, RangeRecorder {
  explicit State(bool with_shapes) : with_shapes(with_shapes) {
    scope.emplace(*this, ModeScope::Level::Lower);
    RangeRecorder::enter();
  }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    Event event;
    if (with_shapes) {
      for (const Value& v : arguments) {
        v.for_each_tensor([&](const Tensor& t) {
          event.shapes.push_back(t.defined() ? DimVector(t.sizes()) : DimVector());
        });
      }
    }
    event.begin = now();
    std::vector<Value> results = call(op, arguments);
    event.end = now();
    event.name = full_name(op);
    events.push_back(std::move(event));
    return results;
  }
  bool wants_shapes() const override { return with_shapes; }
  void record(const RecordedRange& range) override {
    events.push_back({range.name, std::max(range.begin, began), range.end, false, range.shapes});
  }
  void stop() {
    if (scope.has_value()) {
      RangeRecorder::leave();
      scope.reset();
    }
  }

  const bool with_shapes;
  const int64_t began = now();
  std::optional<ModeScope> scope;
  std::vector<Event> events;
};

Profile::Profile(bool with_shapes) : state_(std::make_unique<State>(with_shapes)) {}
Profile::~Profile() {
  try {
    stop();
  } catch (const Error& error) {  // it ends before one that it began before
    std::fprintf(stderr, "rushlight: %s\n", error.what());
  }
}
void Profile::stop() { state_->stop(); }
const std::vector<Event>& Profile::events() const { return state_->events; }

std::string Profile::table(size_t rows) const {
  struct Sum {
    std::string name;
    int64_t calls = 0;
    int64_t nanoseconds = 0;
  };
  std::map<std::string, Sum> by_name;
  for (const Event& e : events()) {
    Sum& sum = by_name[e.name];
    sum.name = e.name;
    sum.calls++;
    sum.nanoseconds += e.end - e.begin;
  }
  std::vector<Sum> sums;
  size_t width = 4;
  for (auto& [name, sum] : by_name) {
    sums.push_back(std::move(sum));
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Sum& a, const Sum& b) { return a.nanoseconds > b.nanoseconds; });
  sums.resize(std::min(rows, sums.size()));
  for (const Sum& sum : sums) {
    width = std::max(width, sum.name.size());
  }
  const auto padded = [&](const std::string& name) {
    return name + std::string(width - name.size(), ' ');
  };
  std::string out = padded("name") + "     calls       ms   ms each\n";
  for (const Sum& sum : sums) {
    const double ms = static_cast<double>(sum.nanoseconds) / 1e6;
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "%10lld %8.3f %9.4f\n",
                  static_cast<long long>(sum.calls), ms, ms / static_cast<double>(sum.calls));
    out += padded(sum.name) + numbers;
  }
  return out;
}

void Profile::export_chrome_trace(std::ostream& out) const {
  out << "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* between = "\n";
  for (const Event& e : events()) {
    char times[96];
    std::snprintf(times, sizeof times, "\"ts\": %.3f, \"dur\": %.3f",
                  static_cast<double>(e.begin) / 1e3, static_cast<double>(e.end - e.begin) / 1e3);
    out << between << "{\"ph\": \"X\", \"cat\": \"" << (e.is_op ? "cpu_op" : "user_annotation")
        << "\", \"name\": " << quoted(e.name) << ", " << times << ", \"pid\": " << getpid()
        << ", \"tid\": " << gettid() << ", \"args\": {";
    if (!e.shapes.empty()) {
      std::string dims;
      for (const DimVector& sizes : e.shapes) {
        dims += str(dims.empty() ? "" : ", ", IntArrayRef(sizes));
      }
      out << "\"Input Dims\": [" << dims << ']';
    }
    out << "}}";
    between = ",\n";
  }
  out << "\n]}\n";
}

void Profile::export_chrome_trace(const std::string& path) const {
  std::ofstream file(path);
  export_chrome_trace(file);
  file.flush();
  RL_CHECK(file.good(), "export_chrome_trace(): cannot write '", path, "'");
}

}  // namespace rushlight::profiler

namespace rushlight::autograd_api::profiler {

RecordProfile::RecordProfile(std::ostream& out) : out_(&out) {}
RecordProfile::RecordProfile(std::string filename) : filename_(std::move(filename)) {}
RecordProfile::~RecordProfile() {
  try {
    profile_.stop();
    if (out_ != nullptr) {
      profile_.export_chrome_trace(*out_);
    } else {
      profile_.export_chrome_trace(filename_);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rushlight: RecordProfile: %s\n", error.what());
  }
}

}  // namespace rushlight::autograd_api::profiler
