// Boxed calls from Python: any op by name with a list of values. python/rushlight/_ops.py binds
// arguments to the schema.
#include <unordered_map>

#include <rushlight/library.h>
#include <rushlight/mode.h>

#include "python/bindings.h"
#include "python/boxed.h"
#include "python/parser.h"

namespace rushlight::python {

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

std::vector<Value> values_of(const OpInfo& op, PyObject* values) {
  RL_CHECK_TYPE(static_cast<size_t>(PyTuple_GET_SIZE(values)) == op.arguments.size(), op.name,
                "() takes ", op.arguments.size(), " arguments, but got ", PyTuple_GET_SIZE(values));
  std::vector<Value> out;
  out.reserve(op.arguments.size());
  for (size_t i = 0; i < op.arguments.size(); i++) {
    out.push_back(to_value(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)), op,
                           op.arguments[i].type, op.arguments[i].name));
  }
  return out;
}

std::vector<Value> returned_values(const OpInfo& op, PyObject* returned, const char* whose) {
  const auto check_result = [&](PyObject* o, const ResultInfo& result) {
    const bool is_tensor_type =
        result.type.base == BaseType::Tensor && !result.type.is_list && !result.type.optional;
    RL_CHECK_TYPE(!is_tensor_type || (o != Py_None && !is_number(o)), whose, ' ', op.name,
                  " must return a ", type_text(result.type), ", but got ",
                  o == Py_None ? "None" : type_name(o));
    return to_value(o, op, result.type, "result");
  };
  std::vector<Value> out;
  if (op.results.empty()) {
    return out;
  }
  if (op.results.size() == 1) {
    out.push_back(check_result(returned, op.results[0]));
    return out;
  }
  const Object items = Object::check(PySequence_Tuple(returned));
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(items.get()));
  RL_CHECK_TYPE(n == op.results.size(), whose, ' ', op.name, " must return ", op.results.size(),
                " results, but got ", n);
  for (size_t i = 0; i < n; i++) {
    out.push_back(
        check_result(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)), op.results[i]));
  }
  return out;
}

PyObject* overload_object(const OpInfo& op) {
  static std::unordered_map<const OpInfo*, PyObject*> made;
  PyObject*& found = made[&op];
  if (found == nullptr) {
    static PyObject* make = nullptr;
    found =
        check(PyObject_CallFunction(import_attribute(make, "rushlight._library.python_ops", "_overload"),
                                    "sss", op.space, op.name, op.overload));
  }
  return found;
}

const OpInfo& op_at(Py_ssize_t index) {
  const OpInfo* const found = index < 0 ? nullptr : op_of_number(static_cast<size_t>(index));
  RL_CHECK_INDEX(found != nullptr, "there is no op number ", index);
  return *found;
}

namespace {

// _call_op(index, values, original=False): an op of the registry, with a value for each argument;
// as if nobody had overridden it where the original is asked for.
PyObject* call_op(PyObject*, PyObject* args) {
  return translate_errors([&]() -> PyObject* {
    Py_ssize_t index;
    PyObject* values;
    int original = 0;
    if (!PyArg_ParseTuple(args, "nO!|p:_call_op", &index, &PyTuple_Type, &values, &original)) {
      throw PythonError();
    }
    const OpInfo& op = op_at(index);
    const std::vector<Value> boxed = values_of(op, values);
    std::vector<Value> results;
    {
      const WithoutGil no_gil;
      results = original != 0 ? library::call_original(op, boxed) : call(op, boxed);
    }
    return from_results(results);
  });
}

// _op_overloads("space::name"): (index, overload, whether a library defines it) of each overload,
// in order of preference.
PyObject* op_overloads(PyObject*, PyObject* name) {
  return translate_errors([&] {
    if (!PyUnicode_Check(name)) {
      raise(PyExc_TypeError, "_op_overloads(): the name must be str");
    }
    Object list = Object::check(PyList_New(0));
    for (const OpInfo* op : overloads_named(text_view(name))) {
      const Object row = Object::check(
          Py_BuildValue("(nsO)", static_cast<Py_ssize_t>(number_of_op(*op)), op->overload,
                        library::is_defined_by_library(*op) ? Py_True : Py_False));
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
  return translate_errors([&] { return PyLong_FromUnsignedLong(op_at(to_int(index)).tags); });
}

// _op_schema(index): (text, arguments, results); an argument is (its type row, whether it is
// keyword-only, a tuple of its default or nothing).
PyObject* op_schema(PyObject*, PyObject* index) {
  return translate_errors([&] {
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
  return translate_errors([&] {
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

// The names of the table's ops: "aten::add".
PyObject* op_names(PyObject*, PyObject*) {
  return translate_errors([&] {
    Object names = Object::check(PySet_New(nullptr));
    for (const OpInfo* op : all_ops()) {
      check(PySet_Add(names.get(), text(str(op->space, "::", op->name)).get()));
    }
    return names.release();
  });
}
// Those of the ops that libraries define.
PyObject* library_op_names(PyObject*, PyObject*) {
  return translate_errors([&] {
    Object names = Object::check(PySet_New(nullptr));
    for (const std::string& name : names_of_library_ops()) {
      check(PySet_Add(names.get(), text(name).get()));
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
    {"_library_op_names", library_op_names, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void init_calls(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rushlight::python
