// Stores in Python: the module rushlight._C._distributed, made when it is first asked for.
#include "python/distributed.h"

#include <nanobind/trampoline.h>

#include <rushlight/distributed/tcp_store.h>
#include "python/bindings.h"

namespace nb = nanobind;

namespace rushlight::python {

using namespace rushlight::distributed;  // NOLINT

namespace {

using Strings = std::vector<std::string>;

PyObject* dist_error;
PyObject* store_error;
PyObject* network_error;
PyObject* backend_error;

PyObject* make_error(nb::module_& m, const char* name, PyObject* base, const char* doc) {
  const std::string full = std::string("rushlight.distributed.") + name;
  PyObject* const type = check(PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr));
  add(m.ptr(), name, type);
  return type;
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const StoreError& e) {
    PyErr_SetString(store_error, e.what());
  } catch (const NetworkError& e) {
    PyErr_SetString(network_error, e.what());
  } catch (const BackendError& e) {
    PyErr_SetString(backend_error, e.what());
  } catch (const Error&) {
    set_error_from_exception();
  } catch (const PythonError&) {
  } catch (const CarriedError&) {
    set_error_from_exception();
  }
}

std::string text_of(nb::handle o) {
  if (PyBytes_Check(o.ptr())) {
    return {PyBytes_AS_STRING(o.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(o.ptr()))};
  }
  if (PyUnicode_Check(o.ptr())) {
    return std::string(text_view(o.ptr()));
  }
  if (PyByteArray_Check(o.ptr())) {
    return {PyByteArray_AS_STRING(o.ptr()), static_cast<size_t>(PyByteArray_GET_SIZE(o.ptr()))};
  }
  raise(PyExc_TypeError, str("a value of a store must be str or bytes, not ", type_name(o.ptr())));
}
Strings texts_of(const nb::sequence& values) {
  Strings out;
  for (const nb::handle value : values) {
    out.push_back(text_of(value));
  }
  return out;
}
nb::bytes bytes_of(const std::string& s) { return nb::bytes(s.data(), s.size()); }

// A store written in Python. Values are bytes there.
class PythonStore : public Store {
 public:
  NB_TRAMPOLINE(Store, 16);

  void set(const std::string& key, const std::string& value) override {
    call<void>("set", key, bytes{value});
  }
  std::string get(const std::string& key) override { return call<std::string>("get", key); }
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override {
    return call<std::string>("compare_set", key, bytes{expected}, bytes{desired});
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return call<int64_t>("add", key, amount);
  }
  bool delete_key(const std::string& key) override { return call<bool>("delete_key", key); }
  bool check(const Strings& keys) override { return call<bool>("check", keys); }
  int64_t num_keys() override { return call<int64_t>("num_keys"); }
  Strings list_keys() override { throw NotImplementedError("list_keys of a store in Python"); }
  void wait(const Strings& keys, Milliseconds timeout) override {
    call<void>("wait", keys, timeout);
  }
  std::shared_ptr<Store> clone() override {
    const nb::gil_scoped_acquire gil;
    const nb::object self = nb::borrow(nb_trampoline.base());
    const nb::object method = nb::getattr(self.type(), "clone", nb::none());
    if (!method.is_none() && nb::hasattr(method, "__code__")) {
      return nb::cast<std::shared_ptr<Store>>(self.attr("clone")());
    }
    return nb::cast<std::shared_ptr<Store>>(self);  // its calls do not wait for each other
  }
  void append(const std::string& key, const std::string& value) override {
    call<void>("append", key, bytes{value});
  }
  Milliseconds timeout() const override { return Store::timeout(); }

 private:
  struct bytes {
    const std::string& text;
  };
  static nb::object as_object(const bytes& b) { return bytes_of(b.text); }
  template <class T>
  static nb::object as_object(const T& value) {
    return nb::cast(value);
  }
  // A method of the class in Python, and what it returns.
  template <class R, class... Args>
  R call(const char* name, const Args&... args) {
    const nb::gil_scoped_acquire gil;
    const nb::object self = nb::borrow(nb_trampoline.base());
    const nb::object method = nb::getattr(self.type(), name);
    if (!nb::hasattr(method, "__code__")) {
      throw NotImplementedError(str("the store does not define ", name));
    }
    try {
      const nb::object result = method(self, as_object(args)...);
      if constexpr (std::is_same_v<R, std::string>) {
        return text_of(result);
      } else if constexpr (!std::is_void_v<R>) {
        return nb::cast<R>(result);
      }
    } catch (nb::python_error& e) {
      e.restore();
      throw CarriedError::take();
    }
  }
};

using Free = nb::call_guard<nb::gil_scoped_release>;

template <class C>
void store_methods(C& c) {
  c.def(
       "set",
       [](Store& s, const std::string& key, nb::handle value) {
         const std::string text = text_of(value);
         const nb::gil_scoped_release free;
         s.set(key, text);
       },
       nb::arg("key"), nb::arg("value"), "Writes a value.")
      .def(
          "get",
          [](Store& s, const std::string& key) {
            std::string value;
            {
              const nb::gil_scoped_release free;
              value = s.get(key);
            }
            return bytes_of(value);
          },
          nb::arg("key"), "A value, as bytes; waits for it.")
      .def(
          "compare_set",
          [](Store& s, const std::string& key, nb::handle expected, nb::handle desired) {
            const std::string before = text_of(expected);
            const std::string after = text_of(desired);
            std::string value;
            {
              const nb::gil_scoped_release free;
              value = s.compare_set(key, before, after);
            }
            return bytes_of(value);
          },
          nb::arg("key"), nb::arg("expected_value"), nb::arg("desired_value"),
          "Writes a value where another is there; what is there then.")
      .def("add", &Store::add, nb::arg("key"), nb::arg("value"), Free(),
           "Adds to a number; the sum.")
      .def("delete_key", &Store::delete_key, nb::arg("key"), Free(),
           "Takes a key away; whether it was there.")
      .def("check", &Store::check, nb::arg("keys"), Free(), "Whether all keys are there.")
      .def("num_keys", &Store::num_keys, Free(), "How many keys there are.")
      .def("list_keys", &Store::list_keys, Free(), "The keys.")
      .def(
          "wait", [](Store& s, const Strings& keys) { s.wait(keys, s.timeout()); }, nb::arg("keys"),
          Free(), "Waits until all keys are there.")
      .def("wait", &Store::wait, nb::arg("keys"), nb::arg("timeout"), Free())
      .def("clone", &Store::clone, Free(), "A store on the same values, for another thread.")
      .def(
          "append",
          [](Store& s, const std::string& key, nb::handle value) {
            const std::string text = text_of(value);
            const nb::gil_scoped_release free;
            s.append(key, text);
          },
          nb::arg("key"), nb::arg("value"), "Writes after what is there.")
      .def(
          "multi_get",
          [](Store& s, const Strings& keys) {
            Strings values;
            {
              const nb::gil_scoped_release free;
              values = s.multi_get(keys);
            }
            nb::list out;
            for (const std::string& value : values) {
              out.append(bytes_of(value));
            }
            return out;
          },
          nb::arg("keys"), "Several values.")
      .def(
          "multi_set",
          [](Store& s, const Strings& keys, const nb::sequence& values) {
            const Strings texts = texts_of(values);
            const nb::gil_scoped_release free;
            s.multi_set(keys, texts);
          },
          nb::arg("keys"), nb::arg("values"), "Writes several values.")
      .def("has_extended_api", &Store::has_extended_api,
           "Whether append, multi_get and multi_set are done in one step.")
      .def("set_timeout", &Store::set_timeout, nb::arg("timeout"),
           "How long get and wait wait at most.")
      .def_prop_ro("timeout", &Store::timeout, "How long get and wait wait at most.");
}

std::shared_ptr<Store> underlying_root(const PrefixStore& s) {
  std::shared_ptr<Store> store = s.underlying();
  while (auto* const inner = dynamic_cast<PrefixStore*>(store.get())) {
    store = inner->underlying();
  }
  return store;
}

}  // namespace

void init_stores(nb::module_& m) {
  dist_error = make_error(m, "DistError", PyExc_RuntimeError,
                          "What processes could not do.\n"
                          "\n"
                          "Example:\n"
                          "    >>> issubclass(torch.distributed.DistError, RuntimeError)\n"
                          "    True");
  store_error = make_error(m, "DistStoreError", dist_error,
                           "What a store could not do.\n"
                           "\n"
                           "For an example see `distributed.DistError`.");
  network_error = make_error(m, "DistNetworkError", dist_error,
                             "A connection that failed.\n"
                             "\n"
                             "For an example see `distributed.DistError`.");
  backend_error = make_error(m, "DistBackendError", dist_error,
                             "What a backend could not do.\n"
                             "\n"
                             "For an example see `distributed.DistError`.");
  nb::register_exception_translator(translate);

  nb::class_<Store, PythonStore> store(
      m, "Store", nb::dynamic_attr(),
      "The base of stores: values by key, which processes read, write and wait for.\n"
      "\n"
      "For an example see `distributed.HashStore`.");
  store.def(nb::init<>());
  store_methods(store);

  nb::class_<HashStore, Store>(m, "HashStore",
                               "A store in the memory of this process, for its threads.\n"
                               "\n"
                               "Example:\n"
                               "    >>> store = torch.distributed.HashStore()\n"
                               "    >>> store.set(\"epoch\", \"3\")\n"
                               "    >>> store.get(\"epoch\"), store.add(\"ready\", 1)\n"
                               "    (b'3', 1)")
      .def(nb::init<>());
  nb::class_<FileStore, Store>(m, "FileStore",
                               "A store in a file that all processes can open.\n"
                               "\n"
                               "Args:\n"
                               "    file_name: the path.\n"
                               "    world_size: how many processes use it; -1: any number.\n"
                               "\n"
                               "For an example see `distributed.HashStore`.")
      .def(nb::init<std::string, int>(), nb::arg("file_name"), nb::arg("world_size") = -1)
      .def_prop_ro("path", &FileStore::path, "The file.");
  nb::class_<PrefixStore, Store>(m, "PrefixStore",
                                 "A store whose keys are kept in another store, behind a prefix.\n"
                                 "\n"
                                 "Args:\n"
                                 "    prefix: what stands before each key, with a `/` between.\n"
                                 "    store: the other store.\n"
                                 "\n"
                                 "For an example see `distributed.HashStore`.")
      .def(nb::init<std::string, std::shared_ptr<Store>>(), nb::arg("prefix"), nb::arg("store"))
      .def_prop_ro("underlying_store", &PrefixStore::underlying, "The store that it is on.")
      .def_prop_ro("_underlying_non_prefix_store", underlying_root, "The first that is no prefix.");
  nb::class_<TcpStore, Store>(
      m, "TCPStore",
      "A store that one process keeps and others reach over the network.\n"
      "\n"
      "Args:\n"
      "    host_name: the machine of the process that keeps it.\n"
      "    port: the port there; 0 for the one that keeps it: any that is free.\n"
      "    world_size: how many processes use it; None: any number.\n"
      "    is_master: whether this process keeps it.\n"
      "    timeout: how long a process waits for a key or a connection.\n"
      "    wait_for_workers: whether the one that keeps it waits until all have come.\n"
      "    multi_tenant: whether stores of this process share a port.\n"
      "    master_listen_fd: a socket that listens already.\n"
      "    use_libuv: accepted; there is one server.\n"
      "\n"
      "For an example see `distributed.HashStore`.")
      .def(
          "__init__",
          [](TcpStore* self, const std::string& host, int64_t port, std::optional<int> world_size,
             bool is_master, Milliseconds timeout, bool wait_for_workers, bool multi_tenant,
             std::optional<int> listen_fd, bool /*use_libuv*/) {
            RL_CHECK_VALUE(port >= 0 && port < 65536, "TCPStore: the port ", port,
                           " is not in 0..65535");
            TcpStoreOptions options;
            options.port = static_cast<uint16_t>(port);
            options.world_size =
                world_size.has_value() && *world_size >= 0 ? world_size : std::nullopt;
            options.is_master = is_master;
            options.timeout = timeout;
            options.wait_for_workers = wait_for_workers;
            options.multi_tenant = multi_tenant;
            options.listen_fd = listen_fd.value_or(-1);
            const nb::gil_scoped_release free;
            new (self) TcpStore(host, options);
          },
          nb::arg("host_name"), nb::arg("port"), nb::arg("world_size") = nb::none(),
          nb::arg("is_master") = false, nb::arg("timeout") = Store::default_timeout,
          nb::arg("wait_for_workers") = true, nb::arg("multi_tenant") = false,
          nb::arg("master_listen_fd") = nb::none(), nb::arg("use_libuv") = true)
      .def_prop_ro("host", &TcpStore::host, "Where the server is.")
      .def_prop_ro("port", &TcpStore::port, "The server's port.")
      .def_prop_ro(
          "libuvBackend", [](const TcpStore&) { return false; }, "False: epoll serves.")
      .def("__repr__", [](const TcpStore& s) {
        return str("TCPStore(host=", s.host(), ", port=", s.port(), ", server=", s.serves(), ")");
      });
}

namespace {

PyObject* load_distributed(PyObject* self, PyObject*) {
  return translate_errors([&] {
    if (PyObject_HasAttrString(self, "_distributed") == 0) {
      nb::module_ parent = nb::borrow<nb::module_>(self);
      nb::module_ m = parent.def_submodule("_distributed", "Stores, groups of processes.");
      // A group that is still there when the interpreter ends is no leak: its process ends, too.
      nb::set_leak_warnings(false);
      init_stores(m);
      init_process_group(m);
    }
    return check(PyObject_GetAttrString(self, "_distributed"));
  });
}

PyMethodDef functions[] = {
    {"_load_distributed", load_distributed, METH_NOARGS, "The types of `distributed`."},
    {},
};

}  // namespace

void init_distributed(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
