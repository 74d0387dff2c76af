// The state of autocast: for which kinds of devices it is on, and what it casts to.
#include <rushlight/autocast.h>

#include "python/bindings.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

DeviceType type_of(std::string_view name) { return Device(name).type(); }

constexpr Param device_param = {"device_type", Kind::String};

RL_FUNCTION(is_autocast_enabled,
            Param{.name = "device_type", .kind = Kind::String, .none = true, .shown = "None"}) {
  const DeviceType type = a.is_given(0) ? type_of(a.string(0)) : kCUDA;
  return PyBool_FromLong(autocast::is_enabled(type));
}
// Also called with the value alone, for CUDA.
RL_FUNCTION(set_autocast_enabled, Param{"device_type", Kind::Object},
            Param{.name = "enabled", .kind = Kind::Bool, .none = true, .shown = "None"}) {
  if (a.is_given(1)) {
    RL_CHECK_TYPE(PyUnicode_Check(a.object(0)),
                  "set_autocast_enabled(): argument 'device_type' must be str, not ",
                  type_name(a.object(0)));
    autocast::set_enabled(type_of(text_view(a.object(0))), a.boolean(1));
  } else {
    RL_CHECK_TYPE(PyBool_Check(a.object(0)),
                  "set_autocast_enabled(): argument 'enabled' must be bool, not ",
                  type_name(a.object(0)));
    autocast::set_enabled(kCUDA, a.object(0) == Py_True);
  }
  Py_RETURN_NONE;
}
RL_FUNCTION(get_autocast_dtype, device_param) {
  return wrap(autocast::get_dtype(type_of(a.string(0))));
}
RL_FUNCTION(set_autocast_dtype, device_param, Param{"dtype", Kind::Dtype}) {
  autocast::set_dtype(type_of(a.string(0)), a.dtype(1));
  Py_RETURN_NONE;
}
RL_FUNCTION(set_autocast_cache_enabled, Param{"enabled", Kind::Bool}) {
  autocast::set_cache_enabled(a.boolean(0));
  Py_RETURN_NONE;
}
PyObject* is_cache_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(autocast::is_cache_enabled());
}
PyObject* clear_cache(PyObject*, PyObject*) {
  return translate_errors([&]() -> PyObject* {
    autocast::clear_cache();
    Py_RETURN_NONE;
  });
}
PyObject* increment_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(autocast::increment_nesting());
}
PyObject* decrement_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(autocast::decrement_nesting());
}
PyObject* is_available(PyObject*, PyObject* name) {
  return translate_errors([&] {
    RL_CHECK_TYPE(PyUnicode_Check(name), "the type of a device must be str, not ", type_name(name));
    return PyBool_FromLong(autocast::is_available(type_of(text_view(name))));
  });
}

#define ROW(name, doc) RL_FAST_ROW(#name, name##_function, doc)
PyMethodDef functions[] = {
    ROW(is_autocast_enabled,
        "is_autocast_enabled(device_type='cuda')\n--\n\n"
        "Whether autocast is on for a kind of device (default: cuda)."
        "\n"
        "\n"
        "Args:\n"
        "    device_type: the kind of device, such as \"cpu\".\n"
        "\n"
        "Example:\n"
        "    >>> torch.is_autocast_enabled(\"cpu\")\n"
        "    False"),
    ROW(set_autocast_enabled,
        "set_autocast_enabled(device_type, enabled=None)\n--\n\n"
        "Turns autocast on or off for a kind of device."
        "\n"
        "\n"
        "Args:\n"
        "    device_type: the kind of device, such as \"cpu\".\n"
        "    enabled: whether it is.\n"
        "\n"
        "Example:\n"
        "    >>> torch.set_autocast_enabled(\"cpu\", False)"),
    ROW(get_autocast_dtype,
        "get_autocast_dtype(device_type)\n--\n\n"
        "The dtype that autocast lowers to on a kind of device."
        "\n"
        "\n"
        "Args:\n"
        "    device_type: the kind of device, such as \"cpu\".\n"
        "\n"
        "Example:\n"
        "    >>> torch.get_autocast_dtype(\"cpu\")\n"
        "    torch.bfloat16"),
    ROW(set_autocast_dtype,
        "set_autocast_dtype(device_type, dtype)\n--\n\n"
        "Changes the dtype that autocast lowers to on a kind of device."
        "\n"
        "\n"
        "Args:\n"
        "    device_type: the kind of device, such as \"cpu\".\n"
        "    dtype: bfloat16 or float16.\n"
        "\n"
        "Example:\n"
        "    >>> torch.set_autocast_dtype(\"cpu\", torch.bfloat16)"),
    ROW(set_autocast_cache_enabled,
        "set_autocast_cache_enabled(enabled)\n--\n\n"
        "Whether autocast keeps the weights that it has cast."
        "\n"
        "\n"
        "Args:\n"
        "    enabled: whether cast weights are kept.\n"
        "\n"
        "Example:\n"
        "    >>> torch.set_autocast_cache_enabled(True)"),
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS,
     "is_autocast_cache_enabled()\n--\n\n"
     "Whether autocast keeps the weights that it has cast."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.is_autocast_cache_enabled()\n"
     "    True"},
    {"clear_autocast_cache", clear_cache, METH_NOARGS,
     "clear_autocast_cache()\n--\n\n"
     "Forgets the weights that were cast."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.clear_autocast_cache()"},
    {"autocast_increment_nesting", increment_nesting, METH_NOARGS,
     "autocast_increment_nesting()\n--\n\n"
     "Enters an autocast: returns how many are entered."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.autocast_increment_nesting()\n"
     "    1\n"
     "    >>> torch.autocast_decrement_nesting()\n"
     "    0"},
    {"autocast_decrement_nesting", decrement_nesting, METH_NOARGS,
     "autocast_decrement_nesting()\n--\n\n"
     "Leaves an autocast: returns how many are entered."
     "\n"
     "\n"
     "Example:\n"
     "    >>> torch.autocast_increment_nesting()\n"
     "    1\n"
     "    >>> torch.autocast_decrement_nesting()\n"
     "    0"},
    {},
};
#undef ROW
PyMethodDef module_functions[] = {
    {"_is_autocast_available", is_available, METH_O, nullptr},
    {},
};

}  // namespace

void init_autocast(PyObject* module) {
  check(PyModule_AddFunctions(ops_owner, functions));
  check(PyModule_AddFunctions(module, module_functions));
}

}  // namespace rushlight::python
