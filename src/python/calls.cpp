// The boxed form from Python: any op by name with a list of values. python/rushlight/_ops.py binds
// arguments to the schema; here they become Values, by the type that it says.
#include <unordered_map>

#include <rushlight/library.h>
#include <rushlight/mode.h>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

// ---- Python to Value ----

// An argument or a result of the schema.
struct Place {
  const OpInfo& op;
  const TypeInfo& type;
  const char* name;

  [[noreturn]] void wrong(PyObject* o) const {
    raise(PyExc_TypeError,
          str(op.space, "::", op.name, "() expected a value of type '", type_text(type),
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

// What is beyond 64 bits is a RuntimeError of the registry's.
int64_t integer_of(PyObject* o, const Place& place) {
  try {
    return to_int(o);
  } catch (const ValueError& error) {
    RL_CHECK(false, place.op.space, "::", place.op.name, "(): argument '", place.name,
             "': ", error.what());
  }
}

Value to_list(PyObject* o, const Place& place) {
  const auto tensor = [&](PyObject* item) {
    return is_tensor(item) ? unwrap(item) : (place.wrong(item), Tensor());
  };
  const auto integer = [&](PyObject* item) {
    return is_int(item) ? integer_of(item, place) : (place.wrong(item), int64_t{0});
  };
  switch (place.type.base) {
    case BaseType::Tensor:
      if (place.type.element_optional) {
        return Value(list_of<std::optional<Tensor>>(o, place, [&](PyObject* item) {
          return item == Py_None ? std::nullopt : std::optional(tensor(item));
        }));
      }
      return Value(list_of<Tensor>(o, place, tensor));
    case BaseType::Int:
      return is_int(o) ? Value(DimVector({integer_of(o, place)}))
                       : Value(DimVector(list_of<int64_t>(o, place, integer)));
    case BaseType::Scalar:
      return Value(list_of<Scalar>(o, place, [&](PyObject* item) {
        return is_scalar(item) ? to_scalar(item) : (place.wrong(item), Scalar());
      }));
    default:
      break;
  }
  return Value(list_of<double>(o, place, [&](PyObject* item) {
    return is_float(item) ? to_float(item) : (place.wrong(item), 0.0);
  }));
}

Value to_value(PyObject* o, const Place& place) {
  if (o == Py_None && place.type.optional) {
    return Value();
  }
  if (place.type.is_list) {
    return to_list(o, place);
  }
  switch (place.type.base) {
    case BaseType::Tensor:
      if (is_tensor(o)) {
        return Value(unwrap(o));
      }
      // To any op, for derivatives take logarithms of bases, and `from_value` shows modes numbers.
      if (is_number(o)) {
        return Value(make_number(to_scalar(o)));
      }
      break;
    case BaseType::Int:
      if (is_int(o)) {
        return Value(integer_of(o, place));
      }
      break;
    case BaseType::Float:
      if (is_float(o)) {
        return Value(to_float(o));
      }
      break;
    case BaseType::Bool:
      if (is_bool(o)) {
        return Value(to_scalar(o));
      }
      break;
    case BaseType::Scalar:
      if (is_scalar(o)) {
        return Value(to_scalar(o));
      }
      break;
    case BaseType::String:
      if (PyUnicode_Check(o)) {
        return Value(std::string(text_view(o)));
      }
      break;
    case BaseType::ScalarType:
      if (const std::optional<ScalarType> t = as_dtype(o)) {
        return Value(*t);
      }
      break;
    case BaseType::Device:
      if (is_device(o)) {
        return Value(as_device(o));
      }
      break;
    case BaseType::Layout:
      if (const std::optional<Layout> layout = as_layout(o)) {
        return Value(*layout);
      }
      break;
    case BaseType::MemoryFormat:
      if (const std::optional<MemoryFormat> format = as_memory_format(o)) {
        return Value(*format);
      }
      break;
    case BaseType::Generator:
      if (is_generator(o)) {
        return Value(unwrap_generator(o));
      }
      break;
    case BaseType::Options:
      break;
  }
  place.wrong(o);
}

template <class T, class F>
PyObject* list_from(const std::vector<T>& list, const F& convert) {
  Object out = Object::check(PyList_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); i++) {
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(convert(list[i])));
  }
  return out.release();
}

}  // namespace

Value to_value(PyObject* o, const OpInfo& op, const TypeInfo& type, const char* name) {
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
    return list_from(value.get<std::vector<double>>(), PyFloat_FromDouble);
  }
  if (value.is<std::vector<Scalar>>()) {
    return list_from(value.get<std::vector<Scalar>>(), wrap_number);
  }
  if (value.is<std::vector<std::optional<Tensor>>>()) {
    return list_from(
        value.get<std::vector<std::optional<Tensor>>>(),
        [](const std::optional<Tensor>& t) { return t ? wrap(*t) : Py_NewRef(Py_None); });
  }
  raise(PyExc_TypeError, "the op has a value that has no Python form");
}

PyObject* from_results(const std::vector<Value>& results) {
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
}

PythonCall python_call(const OpInfo& op, const std::vector<Value>& arguments) {
  size_t positional = 0;
  while (positional < arguments.size() && !op.arguments[positional].keyword_only) {
    positional++;
  }
  size_t shown = positional;
  while (shown > 0 && is_default(op.arguments[shown - 1], arguments[shown - 1])) {
    shown--;
  }
  PythonCall out = {Object::check(PyTuple_New(static_cast<Py_ssize_t>(shown))),
                    Object::check(PyDict_New())};
  for (size_t i = 0; i < shown; i++) {
    PyTuple_SET_ITEM(out.args.get(), static_cast<Py_ssize_t>(i), check(from_value(arguments[i])));
  }
  for (size_t i = positional; i < arguments.size(); i++) {
    if (!is_default(op.arguments[i], arguments[i])) {
      const Object value = Object::check(from_value(arguments[i]));
      check(PyDict_SetItemString(out.kwargs.get(), op.arguments[i].name, value.get()));
    }
  }
  return out;
}

std::vector<Value> dispatch_results(const OpInfo& op, PyObject* returned) {
  const auto checked = [&](PyObject* o, const ResultInfo& result) {
    RL_CHECK_TYPE(o != Py_None || result.type.base != BaseType::Tensor, "__torch_dispatch__ of ",
                  op.name, " must return a ", type_text(result.type), ", but got None");
    RL_CHECK_TYPE(result.type.base != BaseType::Tensor || !is_number(o), "__torch_dispatch__ of ",
                  op.name, " must return a ", type_text(result.type), ", but got ", type_name(o));
    return to_value(o, op, result.type, "result");
  };
  std::vector<Value> out;
  if (op.results.empty()) {
    return out;
  }
  if (op.results.size() == 1) {
    out.push_back(checked(returned, op.results[0]));
    return out;
  }
  const Object items = Object::check(PySequence_Tuple(returned));
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(items.get()));
  RL_CHECK_TYPE(n == op.results.size(), "__torch_dispatch__ of ", op.name, " must return ",
                op.results.size(), " results, but got ", n);
  for (size_t i = 0; i < n; i++) {
    out.push_back(
        checked(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)), op.results[i]));
  }
  return out;
}

PyObject* overload_object(const OpInfo& op) {
  static std::unordered_map<const OpInfo*, PyObject*> made;
  PyObject*& found = made[&op];
  if (found == nullptr) {
    static PyObject* make = nullptr;
    found = check(PyObject_CallFunction(imported(make, "rushlight._ops", "_overload"), "sss",
                                        op.space, op.name, op.overload));
  }
  return found;
}

const OpInfo& op_at(Py_ssize_t index) {
  const ArrayRef<const OpInfo*> ops = all_ops();
  RL_CHECK_INDEX(index >= 0 && static_cast<size_t>(index) < ops.size(), "there is no op number ",
                 index);
  return *ops[static_cast<size_t>(index)];
}

namespace {

// _call_op(index, values, original=False): an op of the registry, with a value for each argument;
// as if nobody had overridden it where the original is asked for.
PyObject* call_op(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t index;
    PyObject* values;
    int original = 0;
    if (!PyArg_ParseTuple(args, "nO!|p:_call_op", &index, &PyTuple_Type, &values, &original)) {
      throw PythonError();
    }
    const OpInfo& op = op_at(index);
    RL_CHECK_TYPE(static_cast<size_t>(PyTuple_GET_SIZE(values)) == op.arguments.size(), op.name,
                  "() takes ", op.arguments.size(), " arguments, but got ",
                  PyTuple_GET_SIZE(values));
    std::vector<Value> boxed;
    for (size_t i = 0; i < op.arguments.size(); i++) {
      boxed.push_back(python::to_value(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)), op,
                                       op.arguments[i].type, op.arguments[i].name));
    }
    std::vector<Value> results;
    {
      const WithoutGil no_gil;
      results = original != 0 ? library::call_original(op, boxed) : call(op, boxed);
    }
    return from_results(results);
  });
}

// _op_overloads(name): (index, space, overload) of each overload, in order of preference.
PyObject* op_overloads(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) {
      raise(PyExc_TypeError, "_op_overloads(): the name must be str");
    }
    const ArrayRef<const OpInfo*> ops = all_ops();
    const ArrayRef<const OpInfo*> found = find_overloads(text_view(name));
    Object list = Object::check(PyList_New(0));
    for (const OpInfo* const& op : found) {
      const Object row = Object::check(Py_BuildValue(
          "(nss)", static_cast<Py_ssize_t>(&op - ops.begin()), op->space, op->overload));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

// (name, type, alias, whether it is written)
PyObject* type_row(const char* name, const TypeInfo& type) {
  const char alias[] = {type.alias, '\0'};
  TypeInfo plain = type;
  plain.alias = 0;
  return check(Py_BuildValue("(sssO)", name, type_text(plain).c_str(), alias,
                             type.written ? Py_True : Py_False));
}

// _op_tags(index): the set of tags, a bit for each.
PyObject* op_tags(PyObject*, PyObject* index) {
  return guarded([&] { return PyLong_FromUnsignedLong(op_at(to_int(index)).tags); });
}

// _op_schema(index): (text, arguments, results); an argument is (its type row, whether it is
// keyword-only, a tuple of its default or nothing).
PyObject* op_schema(PyObject*, PyObject* index) {
  return guarded([&] {
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    const OpInfo& op = op_at(i);
    const Object arguments = Object::check(PyList_New(0));
    for (const ArgInfo& a : op.arguments) {
      const Object type = Object::check(type_row(a.name, a.type));
      const bool required = a.fallback.kind == DefaultInfo::Required;
      const Object fallback = Object::check(PyTuple_New(required ? 0 : 1));
      if (!required) {
        PyTuple_SET_ITEM(fallback.get(), 0, check(from_value(default_value(a))));
      }
      const Object row = Object::check(
          PyTuple_Pack(3, type.get(), a.keyword_only ? Py_True : Py_False, fallback.get()));
      check(PyList_Append(arguments.get(), row.get()));
    }
    const Object results = Object::check(PyList_New(0));
    for (const ResultInfo& r : op.results) {
      check(PyList_Append(results.get(), Object::check(type_row(r.name, r.type)).get()));
    }
    return check(Py_BuildValue("(sOO)", schema_text(op).c_str(), arguments.get(), results.get()));
  });
}

// _op_is_elementwise(index): whether each element of the result comes from those at its place.
PyObject* op_is_elementwise(PyObject*, PyObject* index) {
  return guarded([&] {
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    const OpFunction* function = op_at(i).function;
    if (function->functional != nullptr) {
      function = function->functional;
    }
    return PyBool_FromLong(function->batch.size() == 1 &&
                           function->batch[0].kind == batching::Kind::Aligned);
  });
}

// The names of all ops: "aten::add".
PyObject* op_names(PyObject*, PyObject*) {
  return guarded([&] {
    Object names = Object::check(PySet_New(nullptr));
    for (const OpInfo* op : all_ops()) {
      check(PySet_Add(names.get(), text(str(op->space, "::", op->name)).get()));
    }
    return names.release();
  });
}

PyMethodDef functions[] = {
    {"_call_op", call_op, METH_VARARGS, nullptr},
    {"_op_overloads", op_overloads, METH_O, nullptr},
    {"_op_schema", op_schema, METH_O, nullptr},
    {"_op_tags", op_tags, METH_O, nullptr},
    {"_op_is_elementwise", op_is_elementwise, METH_O, nullptr},
    {"_op_names", op_names, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_calls(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
