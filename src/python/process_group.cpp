// Engines of `distributed` in Python: works, and collectives on lists of tensors.
#include <rushlight/distributed/backend.h>
#include <rushlight/distributed/tcp_store.h>

#include "core/recording.h"
#include "python/distributed.h"
#include "python/tensor_type.h"

namespace nb = nanobind;

namespace rushlight::python {

using namespace rushlight::distributed;  // NOLINT

namespace {

Tensor tensor_of(const Backend& b, nb::handle o) {
  if (!is_tensor(o.ptr())) {
    raise(PyExc_TypeError, str("expected Tensor but got ", type_name(o.ptr())));
  }
  const Tensor& t = unwrap(o.ptr());
  RL_CHECK(t.device().type() == b.device_type(), "No backend type associated with device type ",
           t.device());
  (void)t.impl()->data();  // says so where it has no memory
  return t;
}
Tensors tensors_of(const Backend& b, const nb::sequence& list) {
  Tensors out;
  for (const nb::handle o : list) {
    out.push_back(tensor_of(b, o));
  }
  return out;
}

// An engine may wait: to connect processes, or because its caller would.
template <class F>
WorkPtr without_gil(const F& f, bool at_once = false) {
  refuse_in_recording("talks to other processes");
  const nb::gil_scoped_release free;
  const AtOnce until_the_end(at_once);
  return f();
}

void check_count(const Tensors& list, const Backend& b, const char* what) {
  RL_CHECK_VALUE(static_cast<int>(list.size()) == b.size(), what, ": expected ", b.size(),
                 " tensors, one for each rank, but got ", list.size());
}
void check_like(const Backend& b, const Tensors& list, const Tensor& t, const char* what) {
  for (const Tensor& other : list) {
    RL_CHECK_VALUE(other.dtype() == t.dtype(), what, ": invalid tensor type: ", other.dtype(),
                   " beside ", t.dtype());
    RL_CHECK_VALUE(b.accepts_uneven() || other.numel() == t.numel(), what,
                   ": invalid tensor size: ", other.sizes(), " beside ", t.sizes());
  }
}

Reduction reduction(int kind, double factor) {
  RL_CHECK_VALUE(kind >= 0 && kind <= static_cast<int>(ReduceKind::PremulSum),
                 "an unknown ReduceOp");
  return {static_cast<ReduceKind>(kind), factor};
}

// A function of Python's, given back with the GIL.
class PythonCallback : public Callback {
 public:
  explicit PythonCallback(nb::object function) : function_(function.release().ptr()) {}
  ~PythonCallback() override {
    if (Py_IsInitialized() != 0) {
      const WithGil gil;
      Py_DECREF(function_);
    }
  }
  PythonCallback(const PythonCallback&) = delete;
  PythonCallback& operator=(const PythonCallback&) = delete;
  void call() override {
    if (Py_IsInitialized() == 0) {
      return;
    }
    const WithGil gil;
    PyObject* const result = PyObject_CallNoArgs(function_);
    if (result == nullptr) {
      PyErr_WriteUnraisable(function_);
    }
    Py_XDECREF(result);
  }

 private:
  PyObject* function_;
};

// An engine's end waits for callbacks of its works, which take the GIL.
std::shared_ptr<Backend> drop_without_gil(std::shared_ptr<Backend> backend) {
  Backend* const to = backend.get();
  return {to, [held = std::move(backend)](Backend*) mutable {
            if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
              const nb::gil_scoped_release free;
              held.reset();
            } else {
              held.reset();
            }
          }};
}

// The error of a work, as an exception object; None where there is none.
nb::object error_of(const Work& work) {
  const std::exception_ptr error = work.error();
  if (error == nullptr) {
    return nb::none();
  }
  std::string what;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    what = e.what();
  }
  static PyObject* type = nullptr;
  return nb::borrow(
      import_attribute(type, "rushlight.distributed.distributed_c10d", "DistBackendError"))(what);
}

}  // namespace

namespace {

void add_work(nb::module_& m) {
  nb::class_<Work>(m, "_Work")
      .def(
          "wait",
          [](Work& w, std::optional<Milliseconds> timeout) {
            const nb::gil_scoped_release free;
            w.wait(timeout);
          },
          nb::arg("timeout") = nb::none())
      .def("is_completed", &Work::is_completed)
      .def("is_success", &Work::is_success)
      .def("exception", error_of)
      .def("source_rank", &Work::source)
      .def("then", [](Work& w, nb::object f) {
        auto callback = std::make_unique<PythonCallback>(std::move(f));
        const nb::gil_scoped_release free;
        w.then(std::move(callback));
      });
}

void add_reductions(nb::class_<Backend>& c) {
  c.def("all_reduce",
        [](Backend& b, const nb::sequence& tensors, int kind, double factor, Milliseconds timeout,
           bool at_once) {
          const Tensors list = tensors_of(b, tensors);
          return without_gil([&] { return b.all_reduce(list, reduction(kind, factor), timeout); },
                             at_once);
        })
      .def("reduce",
           [](Backend& b, nb::handle tensor, int root, int kind, double factor,
              Milliseconds timeout, bool at_once) {
             const Tensor t = tensor_of(b, tensor);
             return without_gil([&] { return b.reduce(t, root, reduction(kind, factor), timeout); },
                                at_once);
           })
      .def("reduce_scatter", [](Backend& b, nb::handle output, const nb::sequence& inputs, int kind,
                                double factor, Milliseconds timeout, bool at_once) {
        const Tensor out = tensor_of(b, output);
        const Tensors in = tensors_of(b, inputs);
        check_count(in, b, "reduce_scatter");
        RL_CHECK_VALUE(in[static_cast<size_t>(b.rank())].numel() == out.numel(),
                       "reduce_scatter: invalid tensor size: ", out.sizes());
        for (const Tensor& t : in) {
          RL_CHECK_VALUE(t.dtype() == out.dtype(),
                         "reduce_scatter: invalid tensor type: ", t.dtype());
        }
        return without_gil(
            [&] { return b.reduce_scatter(out, in, reduction(kind, factor), timeout); }, at_once);
      });
}

void add_exchanges(nb::class_<Backend>& c) {
  c.def("broadcast",
        [](Backend& b, const nb::sequence& tensors, int root, Milliseconds timeout, bool at_once) {
          const Tensors list = tensors_of(b, tensors);
          return without_gil([&] { return b.broadcast(list, root, timeout); }, at_once);
        })
      .def("all_gather",
           [](Backend& b, const nb::sequence& outputs, nb::handle input, Milliseconds timeout,
              bool at_once) {
             const Tensors out = tensors_of(b, outputs);
             const Tensor in = tensor_of(b, input);
             check_count(out, b, "all_gather");
             check_like(b, out, in, "all_gather");
             return without_gil([&] { return b.all_gather(out, in, timeout); }, at_once);
           })
      .def("gather",
           [](Backend& b, const nb::sequence& outputs, nb::handle input, int root,
              Milliseconds timeout, bool at_once) {
             const Tensors out = tensors_of(b, outputs);
             const Tensor in = tensor_of(b, input);
             if (b.rank() == root) {
               check_count(out, b, "gather");
               check_like(b, out, in, "gather");
             }
             return without_gil([&] { return b.gather(out, in, root, timeout); }, at_once);
           })
      .def("scatter",
           [](Backend& b, nb::handle output, const nb::sequence& inputs, int root,
              Milliseconds timeout, bool at_once) {
             const Tensor out = tensor_of(b, output);
             const Tensors in = tensors_of(b, inputs);
             if (b.rank() == root) {
               check_count(in, b, "scatter");
               check_like(b, in, out, "scatter");
             }
             return without_gil([&] { return b.scatter(out, in, root, timeout); }, at_once);
           })
      .def("all_to_all",
           [](Backend& b, const nb::sequence& outputs, const nb::sequence& inputs,
              Milliseconds timeout, bool at_once) {
             const Tensors out = tensors_of(b, outputs);
             const Tensors in = tensors_of(b, inputs);
             check_count(out, b, "all_to_all");
             check_count(in, b, "all_to_all");
             return without_gil([&] { return b.all_to_all(out, in, timeout); }, at_once);
           })
      .def("barrier",
           [](Backend& b, Milliseconds timeout, bool at_once) {
             return without_gil([&] { return b.barrier(timeout); }, at_once);
           })
      .def("send",
           [](Backend& b, nb::handle tensor, int to, uint32_t tag, Milliseconds timeout) {
             const Tensor t = tensor_of(b, tensor);
             return without_gil([&] { return b.send(t, to, tag, timeout); });
           })
      .def("receive",
           [](Backend& b, nb::handle tensor, int from, uint32_t tag, Milliseconds timeout) {
             const Tensor t = tensor_of(b, tensor);
             return without_gil([&] { return b.receive(t, from, tag, timeout); });
           });
}

void add_engines(nb::module_& m) {
  m.def("_local_address", &local_address,
        "The address by which this machine reaches a store's server; '' where that is itself.");
  m.def("_plugin_path", &plugin_path, "Where an engine lies; '' where it does not.");
  const auto launcher_of = [](const std::string& name) -> Launcher& {
    Launcher* const launcher = load_plugin(name).launcher;
    RL_CHECK(launcher != nullptr, name, " starts no processes");
    return *launcher;
  };
  m.def(
      "_engine_library",
      [](const std::string& name, const std::vector<std::string>& folders) -> std::string {
        const auto find = load_plugin(name).find;
        return find == nullptr ? "" : find(folders);
      },
      "The library that an engine finds, in folders or where the system has it; '' where there is "
      "none.");
  m.def(
      "_launcher_enter",
      [launcher_of](const std::string& name) {
        const nb::gil_scoped_release free;
        const Launcher::Place place = launcher_of(name).enter();
        return std::vector<int>{place.rank, place.size};
      },
      "[Rank, number of processes] as an engine's launcher has them.");
  m.def(
      "_launcher_tell",
      [launcher_of](const std::string& name, const std::string& text) {
        const nb::gil_scoped_release free;
        return launcher_of(name).broadcast_text(text);
      },
      "What rank 0 says, to all.");
  m.def(
      "_make_backend",
      [](const std::string& name, std::shared_ptr<Store> store, int rank, int size,
         Milliseconds timeout, const std::string& interface, const std::string& hostname,
         bool high_priority) {
        const nb::gil_scoped_release free;
        BackendOptions options{store->clone(), rank,     size,         timeout,
                               interface,      hostname, high_priority};
        return drop_without_gil(load_plugin(name).make(options));
      },
      "The processes of a store, connected by an engine.");
}

}  // namespace

void init_process_group(nb::module_& m) {
  add_work(m);
  nb::class_<Backend> backend(m, "_Backend");
  backend.def("rank", &Backend::rank)
      .def("lost_by", &Backend::rank_lost_by, nb::arg("rank"))
      .def("give_up", &Backend::give_up, nb::arg("rank"), nb::call_guard<nb::gil_scoped_release>())
      .def("size", &Backend::size)
      .def("name", &Backend::name)
      .def(
          "connect",
          [](Backend& b, int device, Milliseconds timeout) {
            b.connect(Device(b.device_type(), static_cast<int8_t>(device)), timeout);
          },
          nb::call_guard<nb::gil_scoped_release>())
      .def("takes_uneven", &Backend::accepts_uneven)
      .def("can_group", &Backend::can_group)
      .def("begin_group", &Backend::begin_group)
      .def("end_group", &Backend::end_group, nb::call_guard<nb::gil_scoped_release>())
      .def("shutdown", &Backend::shutdown, nb::call_guard<nb::gil_scoped_release>())
      .def("abort", &Backend::abort, nb::call_guard<nb::gil_scoped_release>());
  add_reductions(backend);
  add_exchanges(backend);
  add_engines(m);
}

}  // namespace rushlight::python
