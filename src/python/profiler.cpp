// The profiler's mode: notes every op of a thread, below autograd, with its times, and if asked its
// arguments (tensors by sizes, strides and dtype), the bytes of its new results and the calls of
// Python functions around it; and the ranges that C++ programs name. python/rushlight/profiler
// makes tables of it.
#include <rushlight/mode.h>
#include <rushlight/record_function.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/types.h"

#include <frameobject.h>  // PyFrame_GetBack, up to Python 3.10

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

template <class T, class F>
Object list_of(const std::vector<T>& values, F f) {
  Object list = Object::check(PyList_New(0));
  for (const T& value : values) {
    check(PyList_Append(list.get(), f(value).get()));
  }
  return list;
}

// Notes the calls of modules on this thread between `enter` and `leave`, and if asked those of
// Python functions, and of C functions by Python ones, that are open or made. What sys.setprofile
// set has its place back afterwards.
class CallTracer final : public ModuleWatcher {
 public:
  struct Call {
    Object what;  // a module, a code object, or what a C function says of itself
    int64_t begin;
    int64_t end;
    int64_t parent;  // the call it was made in, or -1
  };
  explicit CallTracer(bool functions) : functions_(functions) {}
  void enter() {
    outer_ = std::exchange(module_watcher, this);
    if (!functions_) {
      return;
    }
    const PyThreadState* state = PyThreadState_Get();
    before_ = state->c_profilefunc;
    argument_before_ = Object::maybe(Py_XNewRef(state->c_profileobj));
    self_ = Object::check(PyCapsule_New(this, nullptr, nullptr));
    std::vector<Object> frames;
    for (PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get()); frame != nullptr;
         frame = PyFrame_GetBack(frame)) {
      frames.push_back(Object::check(reinterpret_cast<PyObject*>(frame)));
    }
    std::reverse(frames.begin(), frames.end());
    for (const Object& frame : frames) {
      begin_function(reinterpret_cast<PyFrameObject*>(frame.get()));
    }
    PyEval_SetProfile(trace, self_.get());
  }
  void leave() {
    module_watcher = outer_;
    if (functions_) {
      PyEval_SetProfile(before_, argument_before_.get());
    }
    const int64_t ended = now();
    for (const Open& open : open_) {
      calls_[static_cast<size_t>(open.call)].end = ended;
    }
    open_.clear();
  }
  const std::vector<Call>& calls() const { return calls_; }
  void begin_module(PyObject* module) override {
    begin(nullptr, Kind::Module, Object::borrow(module));
  }
  void end_module() override { end(nullptr, Kind::Module); }

 private:
  enum class Kind : uint8_t { Function, C, Module };
  struct Open {
    const PyFrameObject* frame;  // of C: the one that makes the call; of a module: none
    Kind kind;
    int64_t call;
  };

  static int trace(PyObject* self, PyFrameObject* frame, int what, PyObject* argument) {
    return translate_errors_to_status([&] {
      auto* tracer = static_cast<CallTracer*>(PyCapsule_GetPointer(self, nullptr));
      switch (what) {
        case PyTrace_CALL:
          tracer->begin_function(frame);
          break;
        case PyTrace_C_CALL:
          tracer->begin(frame, Kind::C, Object::check(PyObject_Repr(argument)));
          break;
        case PyTrace_RETURN:
          tracer->end(frame, Kind::Function);
          break;
        case PyTrace_C_RETURN:
        case PyTrace_C_EXCEPTION:
          tracer->end(frame, Kind::C);
          break;
        default:
          break;
      }
    });
  }

  void begin_function(PyFrameObject* frame) {
    begin(frame, Kind::Function,
          Object::check(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame))));
  }

  void begin(const PyFrameObject* frame, Kind kind, Object what) {
    const int64_t parent = open_.empty() ? -1 : open_.back().call;
    open_.push_back({frame, kind, static_cast<int64_t>(calls_.size())});
    calls_.push_back({std::move(what), now(), 0, parent});
  }

  // Calls whose ends were not seen end with the one around them.
  void end(const PyFrameObject* frame, Kind kind) {
    const auto found = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& open) {
      return open.frame == frame && open.kind == kind;
    });
    if (found == open_.rend()) {
      return;
    }
    const auto from = std::prev(found.base());
    const int64_t ended = now();
    for (auto open = from; open != open_.end(); ++open) {
      calls_[static_cast<size_t>(open->call)].end = ended;
    }
    open_.erase(from, open_.end());
  }

  const bool functions_;
  ModuleWatcher* outer_ = nullptr;
  Py_tracefunc before_ = nullptr;
  Object argument_before_;
  Object self_;
  std::vector<Call> calls_;
  std::vector<Open> open_;
};

class ProfilerMode final : public LowerMode, public RangeRecorder {
 public:
  struct Event {
    const OpInfo* op;
    int64_t begin;
    int64_t end;
    std::vector<Value> arguments;
    Value result;
    int64_t bytes = 0;
  };
  ProfilerMode(bool shapes, bool memory, bool functions, bool modules)
      : shapes_(shapes), memory_(memory) {
    if (functions || modules) {
      tracer_.emplace(functions);
    }
  }
  void enter() {
    LowerMode::enter();
    RangeRecorder::enter();
    if (tracer_) {
      tracer_->enter();
    }
  }
  void leave() {
    if (tracer_) {
      tracer_->leave();
    }
    RangeRecorder::leave();
    LowerMode::leave();
  }
  std::vector<CallTracer::Call> calls() const {
    return tracer_ ? tracer_->calls() : std::vector<CallTracer::Call>();
  }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<RecordedRange>& ranges() const { return ranges_; }
  bool wants_shapes() const override { return shapes_; }
  void record(const RecordedRange& range) override {
    ranges_.push_back(range);
    ranges_.back().begin = std::max(range.begin, began_);
  }

 private:
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments) override {
    const int64_t begin = now();
    std::vector<Value> results = call(op, arguments);
    Event event = {&op, begin, now(), {}, {}};
    if (shapes_) {
      for (const Value& v : arguments) {
        event.arguments.push_back(without_memory(v));
      }
      if (!results.empty()) {
        event.result = without_memory(results[0]);
      }
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

  // Tensors by their geometry.
  static Value without_memory(const Value& v) {
    if (v.is<Tensor>()) {
      const auto t = v.get<Tensor>();
      return t.defined() ? Value(TensorMeta(t)) : Value();
    }
    if (v.is<std::vector<Tensor>>() || v.is<std::vector<std::optional<Tensor>>>()) {
      std::vector<TensorMeta> metas;
      v.for_each_tensor(
          [&](const Tensor& t) { metas.push_back(t.defined() ? TensorMeta(t) : TensorMeta()); });
      return metas;
    }
    return v;
  }

  bool shapes_;
  bool memory_;
  std::optional<CallTracer> tracer_;
  int64_t began_ = now();
  std::vector<Event> events_;
  std::vector<RecordedRange> ranges_;
};

// A list of lists, or None where no shapes are wanted.
Object shapes_of(const ProfilerMode& profile, const std::vector<DimVector>& shapes) {
  if (!profile.wants_shapes()) {
    return Object::borrow(Py_None);
  }
  return list_of(shapes, [](const DimVector& sizes) { return Object::check(wrap_ints(sizes)); });
}

// (sizes, strides, dtype); None for an undefined tensor.
Object geometry(const TensorMeta& meta) {
  if (meta.dtype() == ScalarType::Undefined) {
    return Object::borrow(Py_None);
  }
  const Object sizes = Object::check(wrap_ints(meta.sizes()));
  const Object strides = Object::check(wrap_ints(meta.strides()));
  const Object dtype = Object::check(wrap(meta.dtype()));
  return Object::check(PyTuple_Pack(3, sizes.get(), strides.get(), dtype.get()));
}

// A tensor as its geometry, a list of tensors as a list of them, anything else as it is.
Object argument(const Value& value) {
  if (value.is<TensorMeta>()) {
    return geometry(value.get<TensorMeta>());
  }
  if (value.is<std::vector<TensorMeta>>()) {
    return list_of(value.get<std::vector<TensorMeta>>(), geometry);
  }
  return Object::check(from_value(value));
}

// Those that a thread never ended stay: it may end after the interpreter, whose objects they hold.
struct Profiles : std::vector<std::unique_ptr<ProfilerMode>> {
  ~Profiles() {
    for (std::unique_ptr<ProfilerMode>& p : *this) {
      static_cast<void>(p.release());
    }
  }
};
thread_local Profiles profiles;

// _profile_start(shapes, memory, functions, modules)
PyObject* profile_start(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    int shapes;
    int memory;
    int functions;
    int modules;
    if (!PyArg_ParseTuple(args, "pppp:_profile_start", &shapes, &memory, &functions, &modules)) {
      throw PythonError();
    }
    profiles.push_back(
        std::make_unique<ProfilerMode>(shapes != 0, memory != 0, functions != 0, modules != 0));
    profiles.back()->enter();
    Py_RETURN_NONE;
  });
}

// Of this thread since the matching start: [(name, overload, begin, end, arguments, result, bytes)]
// of ops, where arguments are None if they are not wanted; [(name, begin, end, shapes or None,
// scope, sequence)] of ranges in C++; [(module, code object or text, begin, end, parent)] of calls.
PyObject* profile_stop(PyObject*, PyObject*) {
  return translate_errors([&] {
    RL_CHECK(!profiles.empty(), "the profiler was not started on this thread");
    profiles.back()->leave();
    const std::unique_ptr<ProfilerMode> profile = std::move(profiles.back());
    profiles.pop_back();
    const Object ops = list_of(profile->events(), [&](const ProfilerMode::Event& e) {
      const Object arguments =
          profile->wants_shapes() ? list_of(e.arguments, argument) : Object::borrow(Py_None);
      const std::string name = std::string(e.op->space) + "::" + e.op->name;
      return Object::check(
          Py_BuildValue("(ssLLOOL)", name.c_str(), e.op->overload, static_cast<long long>(e.begin),
                        static_cast<long long>(e.end), arguments.get(), argument(e.result).get(),
                        static_cast<long long>(e.bytes)));
    });
    const Object ranges = list_of(profile->ranges(), [&](const RecordedRange& r) {
      return Object::check(
          Py_BuildValue("(sLLOiL)", r.name.c_str(), static_cast<long long>(r.begin),
                        static_cast<long long>(r.end), shapes_of(*profile, r.shapes).get(),
                        static_cast<int>(r.scope), static_cast<long long>(r.sequence)));
    });
    const Object calls = list_of(profile->calls(), [](const CallTracer::Call& c) {
      return Object::check(Py_BuildValue("(OLLL)", c.what.get(), static_cast<long long>(c.begin),
                                         static_cast<long long>(c.end),
                                         static_cast<long long>(c.parent)));
    });
    return Object::check(PyTuple_Pack(3, ops.get(), ranges.get(), calls.get())).release();
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
