// Generator as a Python type.
#include <algorithm>

#include "core/op_support.h"
#include "python/convert.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

struct GeneratorObject {
  PyObject_HEAD Generator value;
};
PyObject* default_cpu_generator;

Generator& generator_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->value; }

PyObject* make_generator(PyTypeObject* type, Generator g) {
  PyObject* o = check(type->tp_alloc(type, 0));
  new (&generator_of(o)) Generator(std::move(g));
  return o;
}
PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &device)) {
      throw PythonError();
    }
    if (device != nullptr && device != Py_None && !is_device(device)) {
      raise(PyExc_TypeError,
            str("Generator(): argument 'device' must be torch.device, not ", type_name(device)));
    }
    const bool given = device != nullptr && device != Py_None;
    return make_generator(type, Generator(given ? as_device(device) : Device(kCPU)));
  });
}
void generator_dealloc(PyObject* self) {
  generator_of(self).~Generator();
  Py_TYPE(self)->tp_free(self);
}
// Seeds may be given as negative numbers: the same bits.
uint64_t to_seed(PyObject* o) {
  if (!is_int(o)) {
    raise(PyExc_TypeError, str("manual_seed expected a long, but got ", type_name(o)));
  }
  const Object number = Object::check(PyNumber_Index(o));
  const uint64_t unsigned_value = PyLong_AsUnsignedLongLong(number.get());
  if (!PyErr_Occurred()) {
    return unsigned_value;
  }
  PyErr_Clear();
  const int64_t value = PyLong_AsLongLong(number.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, "Overflow when unpacking long long");
  }
  return static_cast<uint64_t>(value);
}
PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  return translate_errors([&] {
    generator_of(self).set_current_seed(to_seed(seed));
    return Py_NewRef(self);
  });
}
PyObject* generator_seed(PyObject* self, PyObject*) {
  return translate_errors([&] { return PyLong_FromUnsignedLongLong(generator_of(self).seed()); });
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return translate_errors(
      [&] { return PyLong_FromUnsignedLongLong(generator_of(self).initial_seed()); });
}
PyObject* generator_get_state(PyObject* self, PyObject*) {
  return translate_errors([&] { return wrap(generator_of(self).get_state()); });
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  return translate_errors([&] {
    if (!is_tensor(state)) {
      raise(PyExc_TypeError, str("expected a torch.ByteTensor, but got ", type_name(state)));
    }
    generator_of(self).set_state(unwrap(state));
    return Py_NewRef(self);
  });
}
PyObject* generator_clone(PyObject* self, PyObject*) {
  return translate_errors(
      [&] { return make_generator(Py_TYPE(self), generator_of(self).clone()); });
}
PyObject* generator_device(PyObject* self, void*) {
  return translate_errors([&] { return wrap(generator_of(self).device()); });
}
PyObject* generator_reduce(PyObject* self, PyObject*) {
  return translate_errors([&] {
    PyObject* rebuild = nullptr;
    import_attribute(rebuild, "rushlight._utils", "_rebuild_generator");
    const Object function = Object::check(rebuild);
    const Object device = Object::check(wrap(generator_of(self).device()));
    const Object state = Object::check(generator_get_state(self, nullptr));
    return check(Py_BuildValue("O(OO)", function.get(), device.get(), state.get()));
  });
}
PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "Sets the seed; returns the generator."},
    {"seed", generator_seed, METH_NOARGS, "Takes a fresh, non-deterministic seed and returns it."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "The seed that was set last."},
    {"get_state", generator_get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O, "Restores what get_state gave."},
    {"clone_state", generator_clone, METH_NOARGS, "A generator of its own in the same state."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {},
};
PyGetSetDef generator_getset[] = {
    {"device", generator_device, nullptr, "Where it makes numbers.", nullptr},
    {},
};

}  // namespace

PyTypeObject generator_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C.Generator",
    .tp_basicsize = sizeof(GeneratorObject),
    .tp_dealloc = generator_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "Generator(device='cpu')\n--\n\nA source of random numbers.\n\n"
        "Args:\n"
        "    device: whose numbers it draws.\n\n"
        "Example:\n"
        "    >>> generator = torch.Generator().manual_seed(0)\n"
        "    >>> first = torch.rand(2, generator=generator)\n"
        "    >>> torch.equal(first, torch.rand(2, generator=generator.manual_seed(0)))\n"
        "    True",
    .tp_methods = generator_methods,
    .tp_getset = generator_getset,
    .tp_new = generator_new,
};

PyObject* wrap(const Generator& g) {
  if (g.defined() && default_cpu_generator != nullptr &&
      g.ref() == generator_of(default_cpu_generator).ref()) {
    return Py_NewRef(default_cpu_generator);
  }
  return make_generator(&generator_type, g);
}

const Generator& unwrap_generator(PyObject* o) { return generator_of(o); }

void init_generator(PyObject* module) {
  add_type(module, generator_type);
  default_cpu_generator = wrap(default_generator());
  add(module, "default_generator", default_cpu_generator);
}

}  // namespace rushlight::python
