// Recordings of steps (rushlight/capture.h), for _dynamo/_capture.py.
#include <rushlight/autocast.h>
#include <rushlight/capture.h>
#include <rushlight/graph.h>

#include "core/recording.h"
#include "python/autograd.h"
#include "python/bindings.h"
#include "python/graph.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

constexpr const char* capsule_name = "rushlight._C.Recording";

Recording& recording_in(PyObject* capsule) {
  void* const recording = PyCapsule_GetPointer(capsule, capsule_name);
  if (recording == nullptr) {
    throw PythonError();
  }
  return *static_cast<Recording*>(recording);
}
void delete_recording(PyObject* capsule) {
  delete static_cast<Recording*>(PyCapsule_GetPointer(capsule, capsule_name));
}

struct PythonStep final : Recording::Step {
  PythonStep(PyObject* step, PyObject* place) : step(step), where(place) {}
  void run() override { Object::check(PyObject_CallNoArgs(step)); }
  std::string place() override {
    const WithGil gil;  // backward runs without it
    return std::string(text_view(Object::check(PyObject_CallNoArgs(where)).get()));
  }
  PyObject* step;  // borrowed, as the other
  PyObject* where;
};

// _record(inputs, step, strict, place): the recording of step(); place() says where the program is.
PyObject* record(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *inputs, *step, *place;
    int strict = 0;
    if (!PyArg_ParseTuple(args, "OOpO:_record", &inputs, &step, &strict, &place)) {
      throw PythonError();
    }
    auto made = std::make_unique<Recording>(unwrap_tuple(inputs, "what a recording takes"),
                                            PythonStep(step, place), strict != 0);
    PyObject* const capsule = check(PyCapsule_New(made.get(), capsule_name, delete_recording));
    made.release();
    return capsule;
  });
}
// _set_recorded_outputs(recording, tensors)
PyObject* set_outputs(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    PyObject *recording, *outputs;
    if (!PyArg_ParseTuple(args, "OO:_set_recorded_outputs", &recording, &outputs)) {
      throw PythonError();
    }
    recording_in(recording).set_outputs(unwrap_tuple(outputs, "what a recording takes"));
    Py_RETURN_NONE;
  });
}
PyObject* refusal(PyObject*, PyObject* recording) {
  return translate_errors(
      [&] { return PyUnicode_FromString(recording_in(recording).refusal().c_str()); });
}
PyObject* leaves(PyObject*, PyObject* recording) {
  return translate_errors([&] { return wrap_result(recording_in(recording).leaves()); });
}
// _recorded_finds(recording, tensor)
PyObject* finds(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *recording, *tensor;
    if (!PyArg_ParseTuple(args, "OO:_recorded_finds", &recording, &tensor)) {
      throw PythonError();
    }
    return PyBool_FromLong(recording_in(recording).finds(expect_tensor(tensor, "tensor")));
  });
}
std::vector<double> numbers_in(PyObject* list) {
  std::vector<double> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    out.push_back(PyFloat_AsDouble(PyList_GET_ITEM(list, i)));
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
  }
  return out;
}
// _recorded_difference(recording, other, settings, other_settings): in words; empty where both do
// the same.
PyObject* difference(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *recording, *other, *settings, *other_settings;
    if (!PyArg_ParseTuple(args, "OOO!O!:_recorded_difference", &recording, &other, &PyList_Type,
                          &settings, &PyList_Type, &other_settings)) {
      throw PythonError();
    }
    const std::string text = recording_in(recording).difference(
        recording_in(other), numbers_in(settings), numbers_in(other_settings));
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
// _recorded_varying(recording): for each number that varies, a list of the settings that it may be.
PyObject* varying(PyObject*, PyObject* recording) {
  return translate_errors([&] {
    Object out = Object::check(PyList_New(0));
    for (const std::vector<size_t>& which : recording_in(recording).varying()) {
      const Object places = Object::check(PyList_New(0));
      for (const size_t place : which) {
        const Object number = Object::check(PyLong_FromSize_t(place));
        check(PyList_Append(places.get(), number.get()));
      }
      check(PyList_Append(out.get(), places.get()));
    }
    return out.release();
  });
}
PyObject* recorded_graph(PyObject*, PyObject* recording) {
  return translate_errors([&] { return wrap_graph(recording_in(recording).graph()); });
}
// _replay(recording, inputs, settings): the outputs.
PyObject* replay(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return translate_errors([&] {
    if (n != 3 || !PyList_Check(args[2])) {
      raise(PyExc_TypeError, "_replay takes a recording, its inputs and a list of settings");
    }
    const Recording& recording = recording_in(args[0]);
    const std::vector<Tensor> inputs = unwrap_tuple(args[1], "what a recording takes");
    const std::vector<double> settings = numbers_in(args[2]);
    std::vector<Tensor> outputs;
    {
      const WithoutGil free;
      outputs = recording.replay(inputs, settings);
    }
    return wrap_result(outputs);
  });
}

// What ops a step runs depends on, beside values of tensors: bytes that are equal for equal kinds.
class Kind {
 public:
  Kind() {
    add(tls.grad_mode);
    add(tls.inference_mode);
    add(tls.autocast());
    add(autocast::get_dtype(kCPU));
    add(get_default_dtype());
  }
  // False of what is no tensor, number, text or None.
  bool take(PyObject* o) {
    if (is_exact_tensor(o)) {
      take(unwrap(o));
      tensors_.push_back(o);
    } else if (o == Py_None || o == Py_True || o == Py_False) {
      add(o);
    } else if (PyFloat_CheckExact(o)) {
      bytes_ += 'f';
      add(PyFloat_AS_DOUBLE(o));
    } else if (PyLong_CheckExact(o)) {
      int overflow = 0;
      bytes_ += 'i';
      add(PyLong_AsLongLongAndOverflow(o, &overflow));
      return overflow == 0;
    } else if (PyUnicode_CheckExact(o)) {
      const std::string_view text = text_view(o);
      bytes_ += 's';
      add(text.size());
      bytes_ += text;
    } else {
      return false;
    }
    return true;
  }
  PyObject* bytes() const {
    return check(PyBytes_FromStringAndSize(bytes_.data(), static_cast<Py_ssize_t>(bytes_.size())));
  }
  PyObject* tensors() const {
    PyObject* const out = check(PyList_New(static_cast<Py_ssize_t>(tensors_.size())));
    for (size_t i = 0; i < tensors_.size(); i++) {
      PyList_SET_ITEM(out, static_cast<Py_ssize_t>(i), Py_NewRef(tensors_[i]));
    }
    return out;
  }

 private:
  template <class T>
  void add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void take(const Tensor& t) {
    bytes_ += 't';
    add(t.dtype());
    add(t.layout());
    add(t.device().type());
    add(t.device().index());
    add(t.requires_grad());
    add(t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      add(t.sizes()[d]);
      add(t.layout() == kStrided ? t.strides()[d] : 0);
    }
  }

  std::string bytes_;
  std::vector<PyObject*> tensors_;
};

// _kind_of_call(args, kwargs): the kind of a call, as bytes, and its tensors; None where a value is
// no tensor, number, text or None.
PyObject* kind_of_call(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return translate_errors([&]() -> PyObject* {
    if (n != 2 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1])) {
      raise(PyExc_TypeError, "_kind_of_call takes a tuple and a dict");
    }
    Kind kind;
    bool known = true;
    for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(args[0]); i++) {
      known = kind.take(PyTuple_GET_ITEM(args[0], i));
    }
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (known && PyDict_Next(args[1], &at, &name, &value) != 0) {
      known = kind.take(name) && kind.take(value);
    }
    if (!known) {
      Py_RETURN_NONE;
    }
    return Py_BuildValue("(NN)", kind.bytes(), kind.tensors());
  });
}

// _is_recording(): whether reading a value would be refused on this thread.
PyObject* recording_is_on(PyObject*, PyObject*) { return PyBool_FromLong(is_recording()); }

PyMethodDef functions[] = {
    {"_is_recording", recording_is_on, METH_NOARGS, nullptr},
    {"_kind_of_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kind_of_call)),
     METH_FASTCALL, nullptr},
    {"_record", record, METH_VARARGS, nullptr},
    {"_set_recorded_outputs", set_outputs, METH_VARARGS, nullptr},
    {"_recorded_refusal", refusal, METH_O, nullptr},
    {"_recorded_leaves", leaves, METH_O, nullptr},
    {"_recorded_finds", finds, METH_VARARGS, nullptr},
    {"_recorded_difference", difference, METH_VARARGS, nullptr},
    {"_recorded_varying", varying, METH_O, nullptr},
    {"_recorded_graph", recorded_graph, METH_O, nullptr},
    {"_replay", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(replay)), METH_FASTCALL,
     nullptr},
    {},
};

}  // namespace

void init_capture(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
