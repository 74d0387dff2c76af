// Devices beside the CPU as Python reaches them: loading their libraries, their default generators,
// pinned memory. What one device alone has stands in python/rushlight/NAME.
#include "core/backend.h"

#include "core/op_support.h"
#include "python/bindings.h"
#include "python/common.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

DeviceType type_of(PyObject* name) { return Device(text_view(name)).type(); }

PyObject* path(PyObject*, PyObject* name) {
  return translate_errors([&] {
    const std::string found = backend_path(type_of(name));
    return check(PyUnicode_FromString(found.c_str()));
  });
}

PyObject* load(PyObject*, PyObject* name) {
  return translate_errors([&] {
    const DeviceType type = type_of(name);
    RL_CHECK(type != kCPU && type != kMeta, Device(type), " needs no library");
    {
      const WithoutGil free;
      (void)backend_of(type);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* generator(PyObject*, PyObject* device) {
  return translate_errors([&] { return wrap(default_generator(as_device(device))); });
}

PyObject* seed_devices(PyObject*, PyObject* seed) {
  return translate_errors([&] {
    const uint64_t value = PyLong_AsUnsignedLongLongMask(seed);
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    manual_seed_devices(value);
    return Py_NewRef(Py_None);
  });
}

PyObject* pin(PyObject*, PyObject* tensor) {
  return translate_errors([&] {
    const Tensor t = expect_tensor(tensor, "_pin_memory(): argument");
    return wrap(pin_memory(t));
  });
}

PyMethodDef functions[] = {
    {"_backend_path", path, METH_O, "Where the library of a device lies; '' where there is none."},
    {"_load_backend", load, METH_O, "Loads the library of a device."},
    {"_device_generator", generator, METH_O, "The default generator of a device."},
    {"_seed_devices", seed_devices, METH_O, "Seeds the generators of devices beside the CPU."},
    {"_pin_memory", pin, METH_O, "A copy in memory that a device reads by itself."},
    {},
};

}  // namespace

void init_backend(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
