// The profiler's mode: notes every op of a thread, below autograd, with its times, and if asked the
// sizes of its inputs and the bytes of its new results; and the ranges that C++ programs name.
// python/rushlight/profiler makes tables of it.
#include <rushlight/mode.h>
#include <rushlight/record_function.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

// Nanoseconds of the clock that Python's time.perf_counter_ns() reads.
int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Calls f for each tensor among boxed values.
template <class F>
void each_tensor(const std::vector<Value>& values, F f) {
  for (const Value& v : values) {
    if (v.is<Tensor>()) {
      const auto t = v.get<Tensor>();
      if (t.defined()) {
        f(t);
      }
    } else if (v.is<std::vector<Tensor>>()) {
      for (const Tensor& t : v.get<std::vector<Tensor>>()) {
        if (t.defined()) {
          f(t);
        }
      }
    }
  }
}

class ProfilerMode final : public LowerMode, public RangeRecorder {
 public:
  struct Event {
    const char* name;
    int64_t begin;
    int64_t end;
    std::vector<DimVector> shapes;
    int64_t bytes = 0;
  };
  struct Range {
    std::string name;
    int64_t begin;
    int64_t end;
    std::vector<DimVector> shapes;
  };
  ProfilerMode(bool shapes, bool memory) : shapes_(shapes), memory_(memory) {}
  void enter() {
    LowerMode::enter();
    RangeRecorder::enter();
  }
  void leave() {
    RangeRecorder::leave();
    LowerMode::leave();
  }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  bool wants_shapes() const override { return shapes_; }
  void note(const std::string& name, int64_t begin, int64_t end,
            const std::vector<DimVector>& shapes) override {
    ranges_.push_back({name, std::max(begin, began_), end, shapes});
  }

 private:
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments) override {
    const int64_t begin = now();
    std::vector<Value> results = call(op, arguments);
    Event event = {op.name, begin, now(), {}};
    if (shapes_) {
      each_tensor(arguments,
                  [&](const Tensor& t) { event.shapes.push_back(DimVector(t.sizes())); });
    }
    if (memory_) {
      event.bytes = new_bytes(arguments, results);
    }
    events_.push_back(std::move(event));
    return results;
  }

  static int64_t new_bytes(const std::vector<Value>& arguments, const std::vector<Value>& results) {
    std::vector<const StorageImpl*> known;
    each_tensor(arguments, [&](const Tensor& t) { known.push_back(t.storage().get()); });
    int64_t bytes = 0;
    each_tensor(results, [&](const Tensor& t) {
      const StorageImpl* storage = t.storage().get();
      if (std::find(known.begin(), known.end(), storage) == known.end()) {
        known.push_back(storage);
        bytes += static_cast<int64_t>(storage->nbytes());
      }
    });
    return bytes;
  }

  bool shapes_;
  bool memory_;
  int64_t began_ = now();
  std::vector<Event> events_;
  std::vector<Range> ranges_;
};

// A list of lists, or None where no shapes are wanted.
Object shapes_of(const ProfilerMode& profile, const std::vector<DimVector>& shapes) {
  if (!profile.wants_shapes()) {
    return Object::borrow(Py_None);
  }
  Object list = Object::check(PyList_New(0));
  for (const DimVector& sizes : shapes) {
    const Object one = Object::check(wrap_ints(sizes));
    check(PyList_Append(list.get(), one.get()));
  }
  return list;
}

thread_local std::vector<std::unique_ptr<ProfilerMode>> profiles;

// _profile_start(shapes, memory)
PyObject* profile_start(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int shapes;
    int memory;
    if (!PyArg_ParseTuple(args, "pp:_profile_start", &shapes, &memory)) {
      throw PythonError();
    }
    profiles.push_back(std::make_unique<ProfilerMode>(shapes != 0, memory != 0));
    profiles.back()->enter();
    Py_RETURN_NONE;
  });
}

// [(name, begin, end, shapes or None, bytes)] of the ops of this thread since the matching start,
// and [(name, begin, end, shapes or None)] of its ranges in C++.
PyObject* profile_stop(PyObject*, PyObject*) {
  return guarded([&] {
    RL_CHECK(!profiles.empty(), "the profiler was not started on this thread");
    profiles.back()->leave();
    const std::unique_ptr<ProfilerMode> profile = std::move(profiles.back());
    profiles.pop_back();
    Object ops = Object::check(PyList_New(0));
    for (const ProfilerMode::Event& e : profile->events()) {
      const Object item = Object::check(Py_BuildValue(
          "(sLLOL)", e.name, static_cast<long long>(e.begin), static_cast<long long>(e.end),
          shapes_of(*profile, e.shapes).get(), static_cast<long long>(e.bytes)));
      check(PyList_Append(ops.get(), item.get()));
    }
    Object ranges = Object::check(PyList_New(0));
    for (const ProfilerMode::Range& r : profile->ranges()) {
      const Object item = Object::check(
          Py_BuildValue("(sLLO)", r.name.c_str(), static_cast<long long>(r.begin),
                        static_cast<long long>(r.end), shapes_of(*profile, r.shapes).get()));
      check(PyList_Append(ranges.get(), item.get()));
    }
    return Object::check(PyTuple_Pack(2, ops.get(), ranges.get())).release();
  });
}

PyMethodDef functions[] = {
    {"_profile_start", profile_start, METH_VARARGS, nullptr},
    {"_profile_stop", profile_stop, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_profiler(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
