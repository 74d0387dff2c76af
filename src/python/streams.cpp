// torch.Stream and torch.Event, of whatever device, and which device and stream are current.
// The classes of a device's own module derive from these.
#include <rushlight/stream.h>

#include <memory>
#include <vector>

#include "core/backend.h"
#include "python/bindings.h"
#include "python/common.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

extern PyTypeObject stream_type;
extern PyTypeObject event_type;

struct StreamState {
  Stream stream;
  std::vector<std::unique_ptr<StreamGuard>> entered;  // by `with`
};
struct StreamObject {
  PyObject_HEAD StreamState* state;
};
struct EventState {
  Event event;
  Device device;  // on whose current stream it is recorded unless another is given
};
struct EventObject {
  PyObject_HEAD EventState* state;
};

Stream& stream_of(PyObject* o) {
  RL_CHECK_TYPE(PyObject_TypeCheck(o, &stream_type), "expected a torch.Stream, but got ",
                type_name(o));
  return reinterpret_cast<StreamObject*>(o)->state->stream;
}
Event& event_of(PyObject* o) {
  RL_CHECK_TYPE(PyObject_TypeCheck(o, &event_type), "expected a torch.Event, but got ",
                type_name(o));
  return reinterpret_cast<EventObject*>(o)->state->event;
}

PyObject* make_stream(PyTypeObject* type, const Stream& stream) {
  auto state = std::make_unique<StreamState>();
  state->stream = stream;
  PyObject* const made = check(type->tp_alloc(type, 0));
  reinterpret_cast<StreamObject*>(made)->state = state.release();
  return made;
}

// None means the accelerator's current device, the CPU where there is none; a number one of the
// accelerator's devices.
Device device_of(PyObject* o) {
  if (o != nullptr && o != Py_None && PyLong_Check(o) == 0) {
    return as_device(o);
  }
  const DeviceType type = accelerator_type();
  const bool numbered = o != nullptr && o != Py_None && type != kCPU;
  const long index = numbered ? PyLong_AsLong(o) : -1;
  if (index == -1 && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  RL_CHECK(index >= -1 && index < 128, "invalid device ordinal: ", index);
  return Device(type, static_cast<int8_t>(index));
}

// ---- streams ----

PyObject* new_stream(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return translate_errors([&] {
    static const char* const names[] = {"device",       "priority",    "stream_id",
                                        "device_index", "device_type", nullptr};
    PyObject* device = nullptr;
    int priority = 0;
    PyObject* id = nullptr;
    int index = -1;
    int kind = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Oi$O!ii:Stream", const_cast<char**>(names),
                                     &device, &priority, &PyLong_Type, &id, &index, &kind)) {
      throw PythonError();
    }
    if (id == nullptr) {
      const Device place = device_of(device);
      return make_stream(type, Stream::make(place, priority));
    }
    const uint64_t number = PyLong_AsUnsignedLongLong(id);
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    RL_CHECK(kind >= 0 && kind < num_device_types && index >= -1 && index < 128,
             "Stream(): stream_id needs the device_index and device_type of a device");
    const Device place(static_cast<DeviceType>(kind), static_cast<int8_t>(index));
    return make_stream(type, Stream(resolve_device(place), number));
  });
}

void free_stream(PyObject* o) {
  delete reinterpret_cast<StreamObject*>(o)->state;
  Py_TYPE(o)->tp_free(o);
}

PyObject* stream_query(PyObject* self, PyObject*) {
  return translate_errors([&] { return PyBool_FromLong(stream_of(self).query()); });
}
PyObject* stream_synchronize(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Stream stream = stream_of(self);
    {
      const WithoutGil free;
      stream.synchronize();
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_wait_event(PyObject* self, PyObject* event) {
  return translate_errors([&] {
    stream_of(self).wait(event_of(event));
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_wait_stream(PyObject* self, PyObject* other) {
  return translate_errors([&] {
    stream_of(self).wait(stream_of(other));
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_record_event(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    PyObject* given = Py_None;
    if (!PyArg_ParseTuple(args, "|O:record_event", &given)) {
      throw PythonError();
    }
    const Object device = Object::check(wrap(stream_of(self).device()));
    Object event = given == Py_None ? Object::check(PyObject_CallOneArg(
                                          reinterpret_cast<PyObject*>(&event_type), device.get()))
                                    : Object::borrow(given);
    event_of(event.get()).record(stream_of(self));
    return event.release();
  });
}
PyObject* stream_record_use(PyObject* self, PyObject* tensor) {
  return translate_errors([&] {
    const Tensor& t = expect_tensor(tensor, "_record_use(): argument");
    RL_CHECK_NOT_IMPLEMENTED(t.device() == stream_of(self).device(), "record_stream: a tensor on ",
                             t.device(), " is not used by a stream of ", stream_of(self).device());
    stream_of(self).record_use(t.storage());
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_enter(PyObject* self, PyObject*) {
  return translate_errors([&] {
    StreamState& state = *reinterpret_cast<StreamObject*>(self)->state;
    state.entered.push_back(std::make_unique<StreamGuard>(state.stream));
    return Py_NewRef(self);
  });
}
PyObject* stream_exit(PyObject* self, PyObject*) {
  return translate_errors([&] {
    StreamState& state = *reinterpret_cast<StreamObject*>(self)->state;
    RL_CHECK(!state.entered.empty(), "this stream was not entered");
    state.entered.pop_back();
    return Py_NewRef(Py_None);
  });
}

PyObject* stream_compare(PyObject* a, PyObject* b, int how) {
  const bool comparable = (how == Py_EQ || how == Py_NE) && PyObject_TypeCheck(a, &stream_type) &&
                          PyObject_TypeCheck(b, &stream_type);
  if (!comparable) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((stream_of(a) == stream_of(b)) == (how == Py_EQ));
}
Py_hash_t stream_hash(PyObject* o) {
  const Stream& s = stream_of(o);
  const auto hash =
      static_cast<Py_hash_t>(s.id() * 1024 + static_cast<uint64_t>(s.device().type()) * 256 +
                             static_cast<uint64_t>(s.device().index() + 1));
  return hash == -1 ? -2 : hash;
}
PyObject* stream_repr(PyObject* o) {
  return translate_errors([&] {
    const Stream& s = stream_of(o);
    return text(str("torch.Stream device_type=", Device(s.device().type()), ", device_index=",
                    static_cast<int>(s.device().index()), ", stream_id=", s.id()))
        .release();
  });
}

PyObject* stream_device(PyObject* o, void*) {
  return translate_errors([&] { return wrap(stream_of(o).device()); });
}
PyObject* stream_device_index(PyObject* o, void*) {
  return translate_errors([&] { return PyLong_FromLong(stream_of(o).device().index()); });
}
PyObject* stream_device_type(PyObject* o, void*) {
  return translate_errors(
      [&] { return PyLong_FromLong(static_cast<long>(stream_of(o).device().type())); });
}
PyObject* stream_id(PyObject* o, void*) {
  return translate_errors([&] { return PyLong_FromUnsignedLongLong(stream_of(o).id()); });
}

PyMethodDef stream_methods[] = {
    {"query", stream_query, METH_NOARGS, "Whether all queued work is done."},
    {"synchronize", stream_synchronize, METH_NOARGS, "Waits until all queued work is done."},
    {"wait_event", stream_wait_event, METH_O, "Work queued from now on waits for the event."},
    {"wait_stream", stream_wait_stream, METH_O,
     "Work queued from now on waits for what the other stream has queued so far."},
    {"record_event", stream_record_event, METH_VARARGS,
     "Marks the end of what is queued so far; returns the event."},
    {"_record_use", stream_record_use, METH_O, "Tensor.record_stream."},
    {"__enter__", stream_enter, METH_NOARGS, nullptr},
    {"__exit__", stream_exit, METH_VARARGS, nullptr},
    {},
};
PyGetSetDef stream_getset[] = {
    {"device", stream_device, nullptr, "The device that it belongs to.", nullptr},
    {"device_index", stream_device_index, nullptr, "The number of its device.", nullptr},
    {"device_type", stream_device_type, nullptr, "The number of its kind of device.", nullptr},
    {"stream_id", stream_id, nullptr, "The device's own number of it; 0 for the default.", nullptr},
    {"native_handle", stream_id, nullptr, "The same, as the device's library knows it.", nullptr},
    {},
};

PyTypeObject stream_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.Stream",
    .tp_basicsize = sizeof(StreamObject),
    .tp_dealloc = free_stream,
    .tp_repr = stream_repr,
    .tp_hash = stream_hash,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "Stream(device=None, priority=0, *, stream_id=None, device_index=-1, "
        "device_type=-1)\n--\n\nA queue of work on a device; work on different "
        "streams may run at the same time.\n\n"
        "Args:\n    device: the accelerator by default, the CPU where there is none.\n"
        "    priority: negative for work that goes first.\n"
        "    stream_id, device_index, device_type: those of a stream that there is.\n\n"
        "Example:\n    >>> torch.Stream(\"cpu\").device\n    device(type='cpu')",
    .tp_richcompare = stream_compare,
    .tp_methods = stream_methods,
    .tp_getset = stream_getset,
    .tp_new = new_stream,
};

// ---- events ----

PyObject* new_event(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return translate_errors([&] {
    static const char* const names[] = {"device", "enable_timing", "blocking", "interprocess",
                                        nullptr};
    PyObject* device = nullptr;
    int timing = 0;
    int blocking = 0;
    int interprocess = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$ppp:Event", const_cast<char**>(names),
                                     &device, &timing, &blocking, &interprocess)) {
      throw PythonError();
    }
    RL_CHECK_NOT_IMPLEMENTED(interprocess == 0, "events of several processes are not supported");
    auto state = std::make_unique<EventState>(
        Event({.timing = timing != 0, .blocking = blocking != 0}), device_of(device));
    PyObject* const made = check(type->tp_alloc(type, 0));
    reinterpret_cast<EventObject*>(made)->state = state.release();
    return made;
  });
}

void free_event(PyObject* o) {
  delete reinterpret_cast<EventObject*>(o)->state;
  Py_TYPE(o)->tp_free(o);
}

Stream stream_or_current(PyObject* self, PyObject* args) {
  PyObject* stream = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &stream)) {
    throw PythonError();
  }
  return stream == Py_None ? Stream::current(reinterpret_cast<EventObject*>(self)->state->device)
                           : stream_of(stream);
}

PyObject* event_record(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    event_of(self).record(stream_or_current(self, args));
    return Py_NewRef(Py_None);
  });
}
PyObject* event_wait(PyObject* self, PyObject* args) {
  return translate_errors([&] {
    stream_or_current(self, args).wait(event_of(self));
    return Py_NewRef(Py_None);
  });
}
PyObject* event_query(PyObject* self, PyObject*) {
  return translate_errors([&] { return PyBool_FromLong(event_of(self).query()); });
}
PyObject* event_synchronize(PyObject* self, PyObject*) {
  return translate_errors([&] {
    const Event event = event_of(self);
    {
      const WithoutGil free;
      event.synchronize();
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* event_elapsed(PyObject* self, PyObject* end) {
  return translate_errors(
      [&] { return PyFloat_FromDouble(event_of(self).elapsed(event_of(end))); });
}
PyObject* event_id(PyObject* self, void*) {
  return translate_errors([&] { return PyLong_FromVoidPtr(event_of(self).handle()); });
}

PyMethodDef event_methods[] = {
    {"record", event_record, METH_VARARGS,
     "Marks the end of what the stream (the current one by default) has queued."},
    {"wait", event_wait, METH_VARARGS,
     "Work that the stream queues from now on waits for this event."},
    {"query", event_query, METH_NOARGS, "Whether everything before the mark is done."},
    {"synchronize", event_synchronize, METH_NOARGS,
     "Waits until everything before the mark is done."},
    {"elapsed_time", event_elapsed, METH_O, "Milliseconds from this mark to another."},
    {},
};
PyObject* event_device(PyObject* self, void*) {
  return translate_errors(
      [&] { return wrap(reinterpret_cast<EventObject*>(self)->state->device); });
}

PyGetSetDef event_getset[] = {
    {"device", event_device, nullptr, "The device that it is for.", nullptr},
    {"event_id", event_id, nullptr, "The device's own handle; 0 before it is recorded.", nullptr},
    {},
};

PyTypeObject event_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight.Event",
    .tp_basicsize = sizeof(EventObject),
    .tp_dealloc = free_event,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "Event(device=None, *, enable_timing=False, blocking=False, interprocess=False)\n--\n\nA "
        "mark in a "
        "stream.\n\nArgs:\n    device: the accelerator by default.\n"
        "    enable_timing: whether `elapsed_time` may be asked.\n"
        "    blocking: whether a waiting host sleeps.\n"
        "    interprocess: not supported.\n\n"
        "Example:\n    >>> event = torch.Event(\"cpu\")",
    .tp_methods = event_methods,
    .tp_getset = event_getset,
    .tp_new = new_event,
};

// ---- what is current ----

PyObject* accelerator(PyObject*, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    const DeviceType type = accelerator_type();
    return type == kCPU ? Py_NewRef(Py_None) : wrap(Device(type));
  });
}
PyObject* current_stream(PyObject*, PyObject* device) {
  return translate_errors(
      [&] { return make_stream(&stream_type, Stream::current(device_of(device))); });
}
PyObject* set_stream(PyObject*, PyObject* stream) {
  return translate_errors([&] {
    set_current_stream(stream_of(stream));
    return Py_NewRef(Py_None);
  });
}
PyObject* device_count(PyObject*, PyObject* device) {
  return translate_errors(
      [&] { return PyLong_FromLong(backend_of(device_of(device).type()).device_count()); });
}
PyObject* current_index(PyObject*, PyObject* device) {
  return translate_errors([&] {
    const Device place = resolve_device(Device(device_of(device).type()));
    return PyLong_FromLong(place.index());
  });
}
PyObject* set_device(PyObject*, PyObject* device) {
  return translate_errors([&] {
    set_current_device(device_of(device));
    return Py_NewRef(Py_None);
  });
}
PyObject* synchronize_device(PyObject*, PyObject* device) {
  return translate_errors([&] {
    const Device place = device_of(device);
    {
      const WithoutGil free;
      synchronize(place);
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_accelerator", accelerator, METH_NOARGS, "The kind of device beside the CPU, or None."},
    {"_current_stream", current_stream, METH_O, "The stream that this thread queues work on."},
    {"_set_stream", set_stream, METH_O, "Makes a stream the current one of its device."},
    {"_device_count", device_count, METH_O, "How many devices of a kind there are."},
    {"_current_device", current_index, METH_O, "The number of the current device of a kind."},
    {"_set_device", set_device, METH_O, "Makes a device the current one of its kind."},
    {"_synchronize", synchronize_device, METH_O, "Waits until a device has done all its work."},
    {},
};

}  // namespace

void init_streams(PyObject* module) {
  ready(stream_type);
  ready(event_type);
  add(module, "Stream", reinterpret_cast<PyObject*>(&stream_type));
  add(module, "Event", reinterpret_cast<PyObject*>(&event_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
