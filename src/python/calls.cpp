// The boxed form from Python: any op by name with a list of values. python/rushlight/_ops.py binds
// arguments to the schema; here they become Values, by the type that it says.
#include <rushlight/mode.h>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

// ---- Python to Value ----

// {"dtype": …, "device": …, "requires_grad": …}
TensorOptions options_of(PyObject* o) {
  RL_CHECK_TYPE(PyDict_Check(o), "expected a dict of options, but got ", type_name(o));
  TensorOptions out;
  PyObject* dtype = PyDict_GetItemString(o, "dtype");
  PyObject* device = PyDict_GetItemString(o, "device");
  PyObject* requires_grad = PyDict_GetItemString(o, "requires_grad");
  if (dtype != nullptr && dtype != Py_None) {
    const std::optional<ScalarType> t = as_dtype(dtype);
    RL_CHECK_TYPE(t.has_value(), "dtype must be torch.dtype, not ", type_name(dtype));
    out = out.dtype(*t);
  }
  if (device != nullptr && device != Py_None) {
    RL_CHECK_TYPE(is_device(device), "device must be torch.device, not ", type_name(device));
    out = out.device(as_device(device));
  }
  if (requires_grad != nullptr && requires_grad != Py_None) {
    out = out.requires_grad(check(PyObject_IsTrue(requires_grad)) != 0);
  }
  return out;
}

// An argument of the schema: its type as it is written there ("Tensor?[]", "int[2]", "Scalar").
struct Place {
  const OpInfo& op;
  std::string_view type;
  std::string_view name;

  [[noreturn]] void wrong(PyObject* o) const {
    raise(PyExc_TypeError, str("aten::", op.name, "() expected a value of type '", type,
                               "' for argument '", name, "' but got ", type_name(o)));
  }
};

template <class T, class F>
std::vector<T> list_of(PyObject* o, const Place& place, F convert) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) {
    place.wrong(o);
  }
  std::vector<T> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(o, i));
    out.push_back(convert(item.get()));
  }
  return out;
}

Value to_list(PyObject* o, const Place& place) {
  const auto tensor = [&](PyObject* item) {
    return is_tensor(item) ? unwrap(item) : (place.wrong(item), Tensor());
  };
  const auto integer = [&](PyObject* item) {
    return is_int(item) ? to_int(item) : (place.wrong(item), int64_t{0});
  };
  if (place.type.starts_with("Tensor?[")) {
    return Value(list_of<std::optional<Tensor>>(o, place, [&](PyObject* item) {
      return item == Py_None ? std::nullopt : std::optional(tensor(item));
    }));
  }
  if (place.type.starts_with("Tensor")) {
    return Value(list_of<Tensor>(o, place, tensor));
  }
  if (place.type.starts_with("int")) {
    return is_int(o) ? Value(DimVector({to_int(o)}))
                     : Value(DimVector(list_of<int64_t>(o, place, integer)));
  }
  return Value(list_of<double>(o, place, [&](PyObject* item) {
    return is_float(item) ? to_float(item) : (place.wrong(item), 0.0);
  }));
}

Value to_value(PyObject* o, const Place& place) {
  const std::string_view type = place.type;
  const std::string_view base = type.substr(0, type.find_first_of("?[|"));
  if (base == "options") {
    return o == Py_None ? Value(TensorOptions()) : Value(options_of(o));
  }
  if (o == Py_None && type.ends_with('?')) {
    return Value();
  }
  if (type.find('[') != std::string_view::npos) {
    return to_list(o, place);
  }
  if (base == "Tensor" && is_tensor(o)) {
    return Value(unwrap(o));
  }
  if (base == "Tensor" && type != base && is_number(o)) {  // Tensor|Scalar
    return Value(make_number(to_scalar(o)));
  }
  if (base == "int" && is_int(o)) {
    return Value(to_int(o));
  }
  if (base == "float" && is_float(o)) {
    return Value(to_float(o));
  }
  if (base == "bool" && is_bool(o)) {
    return Value(to_scalar(o));
  }
  if (base == "Scalar" && is_scalar(o)) {
    return Value(to_scalar(o));
  }
  if (base == "str" && PyUnicode_Check(o)) {
    return Value(std::string(text_view(o)));
  }
  if (const std::optional<ScalarType> t = as_dtype(o); t && base == "ScalarType") {
    return Value(*t);
  }
  if (base == "Device" && is_device(o)) {
    return Value(as_device(o));
  }
  if (const std::optional<Layout> layout = as_layout(o); layout && base == "Layout") {
    return Value(*layout);
  }
  if (const std::optional<MemoryFormat> format = as_memory_format(o);
      format && base == "MemoryFormat") {
    return Value(*format);
  }
  if (base == "Generator" && is_generator(o)) {
    return Value(unwrap_generator(o));
  }
  place.wrong(o);
}

}  // namespace

Value to_value(PyObject* o, const OpInfo& op, std::string_view type, std::string_view name) {
  return to_value(o, Place{op, type, name});
}

PyObject* from_value(const Value& value) {
  if (value.is_none()) {
    Py_RETURN_NONE;
  }
  if (value.is<Tensor>()) {
    const auto t = value.get<Tensor>();
    return t.defined() && t.impl()->is_wrapped_number() ? wrap_number(t.item()) : wrap(t);
  }
  if (value.is<std::vector<Tensor>>()) {
    return wrap_result(value.get<std::vector<Tensor>>());
  }
  if (value.is<Scalar>()) {
    return wrap_number(value.get<Scalar>());
  }
  if (value.is<ScalarType>()) {
    return wrap(value.get<ScalarType>());
  }
  if (value.is<DimVector>()) {
    return wrap_ints(value.get<DimVector>());
  }
  if (value.is<std::string>()) {
    return text(value.get<std::string>()).release();
  }
  if (value.is<Device>()) {
    return wrap(value.get<Device>());
  }
  if (value.is<MemoryFormat>()) {
    return wrap(value.get<MemoryFormat>());
  }
  if (value.is<Layout>()) {
    return wrap(value.get<Layout>());
  }
  if (value.is<Generator>()) {
    return wrap(value.get<Generator>());
  }
  if (value.is<std::vector<double>>()) {
    const auto list = value.get<std::vector<double>>();
    Object out = Object::check(PyList_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); i++) {
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(PyFloat_FromDouble(list[i])));
    }
    return out.release();
  }
  if (value.is<std::vector<std::optional<Tensor>>>()) {
    const auto list = value.get<std::vector<std::optional<Tensor>>>();
    Object out = Object::check(PyList_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); i++) {
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                      check(list[i] ? wrap(*list[i]) : Py_NewRef(Py_None)));
    }
    return out.release();
  }
  raise(PyExc_TypeError, "the op has a value that has no Python form");
}

namespace {

const OpInfo& op_named(PyObject* name, PyObject* overload) {
  const std::string_view n = text_view(name);
  const std::string_view o = text_view(overload);
  const OpInfo* op = find_op(n, o);
  RL_CHECK_AS(Error, op != nullptr, "no op is named ", n, o.empty() ? "" : ".", o);
  return *op;
}

// _call_op(name, overload, values, types, names)
PyObject* call_op(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *overload, *values, *types, *names;
    if (!PyArg_ParseTuple(args, "UUO!O!O!:_call_op", &name, &overload, &PyTuple_Type, &values,
                          &PyTuple_Type, &types, &PyTuple_Type, &names)) {
      throw PythonError();
    }
    const OpInfo& op = op_named(name, overload);
    RL_CHECK_TYPE(PyTuple_GET_SIZE(values) == PyTuple_GET_SIZE(types) &&
                      PyTuple_GET_SIZE(values) == PyTuple_GET_SIZE(names),
                  "_call_op(): a type and a name are needed for each value");
    std::vector<Value> boxed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
      const Place place{op, text_view(PyTuple_GET_ITEM(types, i)),
                        text_view(PyTuple_GET_ITEM(names, i))};
      boxed.push_back(to_value(PyTuple_GET_ITEM(values, i), place));
    }
    std::vector<Value> results;
    {
      const WithoutGil no_gil;
      results = call(op, boxed);
    }
    if (results.size() == 1) {
      return from_value(results[0]);
    }
    if (results.empty()) {
      Py_RETURN_NONE;
    }
    Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); i++) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(from_value(results[i])));
    }
    return out.release();
  });
}

// _op_schemas(name): the schemas of all overloads, in order of preference.
PyObject* op_schemas(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) {
      raise(PyExc_TypeError, "_op_schemas(): the name must be str");
    }
    Object list = Object::check(PyList_New(0));
    for (const OpInfo* op : all_ops()) {
      if (text_view(name) == op->name) {
        check(PyList_Append(list.get(), text(op->schema).get()));
      }
    }
    return list.release();
  });
}

PyObject* op_names(PyObject*, PyObject*) {
  return guarded([&] {
    Object names = Object::check(PySet_New(nullptr));
    for (const OpInfo* op : all_ops()) {
      check(PySet_Add(names.get(), text(op->name).get()));
    }
    return names.release();
  });
}

PyMethodDef functions[] = {
    {"_call_op", call_op, METH_VARARGS, nullptr},
    {"_op_schemas", op_schemas, METH_O, nullptr},
    {"_op_names", op_names, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_calls(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
