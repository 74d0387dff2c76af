// What generated calls do with the arguments that parser.cpp has bound: conversion to C++ (class
// Arguments), the measure of the work ahead, results with names.
#include "python/parser.h"

#include <algorithm>
#include <structmember.h>

#include <string>

namespace rushlight::python {

// ---- conversion ----

const Tensor Arguments::undefined_tensor;
const Generator Arguments::no_generator;

Tensor Arguments::tensor_or_number(int i) const {
  if (!is_given(i)) {
    return Tensor();
  }
  return is_tensor(slots_[i]) ? unwrap(slots_[i]) : make_number(to_scalar(slots_[i]));
}

std::vector<Tensor> Arguments::tensors(int i) const {
  std::vector<Tensor> out;
  if (is_given(i)) {
    out.reserve(static_cast<size_t>(items(i).size));
    for (Py_ssize_t k = 0; k < items(i).size; k++) {
      out.push_back(expect_tensor(items(i).data[k], "an item of the list"));
    }
  }
  return out;
}

std::vector<Tensor> Arguments::out_tensors(int i, size_t n, const char* op) const {
  std::vector<Tensor> out = tensors(i);
  RL_CHECK_TYPE(out.size() == n, op, "(): argument 'out' must be a tuple of ", n,
                " Tensors, but it has ", out.size());
  return out;
}

std::vector<std::optional<Tensor>> Arguments::optional_tensors(int i) const {
  std::vector<std::optional<Tensor>> out;
  if (is_given(i)) {
    for (Py_ssize_t k = 0; k < items(i).size; k++) {
      PyObject* o = items(i).data[k];
      out.push_back(o == Py_None ? std::nullopt
                                 : std::optional(expect_tensor(o, "an item of the list")));
    }
  }
  return out;
}

// Items are read afresh at each step and held: a conversion may run Python code, which may change
// the list.
template <class T, class F>
T Arguments::convert_list(int i, F convert) const {
  T out;
  if (!items(i).is_sequence()) {
    out.push_back(convert(slots_[i]));
    return out;
  }
  for (Py_ssize_t k = 0; k < items(i).size; k++) {
    const Object item = Object::borrow(items(i).data[k]);
    out.push_back(convert(item.get()));
  }
  return out;
}

DimVector Arguments::ints(int i) const {
  const Items list = items(i);
  if (!list.is_sequence()) {
    return {to_int(slots_[i])};
  }
  DimVector out(static_cast<size_t>(list.size));
  Py_ssize_t k = 0;
  try {
    for (; k < list.size; k++) {
      if (RL_UNLIKELY(!PyLong_CheckExact(list.data[k]))) {
        k = -1;
        return convert_list<DimVector>(i, [&](PyObject* o) {
          k++;
          return to_int(o);
        });
      }
      out[static_cast<size_t>(k)] = to_int(list.data[k]);  // runs no Python code
    }
  } catch (const ValueError& error) {
    RL_CHECK_TYPE(false, name_, "(): '", table_->params[i].name,
                  "' failed to unpack the object at pos ", k + 1, ": ", error.what());
  }
  return out;
}
std::vector<double> Arguments::numbers(int i) const {
  return convert_list<std::vector<double>>(i, to_float);
}
std::vector<Scalar> Arguments::scalars(int i) const {
  return convert_list<std::vector<Scalar>>(i, to_scalar);
}

ScalarType Arguments::dtype_of(PyObject* o) { return *as_dtype(o); }

TensorOptions Arguments::options(int i) const {
  TensorOptions out;
  if (is_given(i)) {
    out = out.dtype(dtype(i));
  }
  if (is_given(i + 1)) {
    out = out.layout(layout(i + 1));
  }
  if (is_given(i + 2)) {
    out = out.device(device(i + 2));
  } else if (i == 0 || table_->params[0].kind != Kind::Tensor) {
    // zeros_like and its like go where their argument is; the default is for what has none.
    if (const std::optional<Device> d = default_device()) {
      out = out.device(*d);
    }
  }
  RL_CHECK(!is_given(i + 3) || !boolean(i + 3),
           "Cannot access accelerator device when none is available: pin_memory=True");
  return is_given(i + 4) ? out.requires_grad(boolean(i + 4)) : out;
}

bool Arguments::has_heavy_lists() const {
  const auto heavy = [](PyObject* o) { return is_tensor(o) && unwrap(o).numel() >= heavy_numel; };
  for (int i = 0; i < table_->count; i++) {
    const Kind kind = table_->params[i].kind;
    if (!is_given(i) || kind > Kind::OptionalTensorList) {
      continue;
    }
    Items list = {const_cast<PyObject**>(&slots_[i]), 1};
    if (kind > Kind::TensorOrNumber) {
      list = items(i);
    }
    if (std::any_of(list.data, list.data + list.size, heavy)) {
      return true;
    }
  }
  return false;
}

bool Arguments::has_heavy_ints() const {
  int64_t asked = 1;
  for (int i = 0; i < table_->count; i++) {
    const Kind kind = table_->params[i].kind;
    if (!is_given(i) || (kind != Kind::IntList && kind != Kind::Int && kind != Kind::Scalar)) {
      continue;
    }
    Items list = {const_cast<PyObject**>(&slots_[i]), 1};
    if (kind == Kind::IntList && items(i).is_sequence()) {
      list = items(i);
    }
    for (Py_ssize_t k = 0; k < list.size; k++) {
      int overflow = 0;
      const int64_t n = PyLong_CheckExact(list.data[k])
                            ? PyLong_AsLongLongAndOverflow(list.data[k], &overflow)
                            : 1;
      if (n > 1 && __builtin_mul_overflow(asked, n, &asked)) {
        return true;
      }
    }
  }
  return asked >= heavy_numel;
}

// ---- results ----

namespace {

PyObject* return_types;  // module

// torch.return_types.max(
// values=tensor(…),
// indices=tensor(…))
PyObject* named_repr(PyObject* self) {
  return translate_errors([&] {
    std::string out = str("torch.return_types.", type_name(self), "(\n");
    const PyMemberDef* members = Py_TYPE(self)->tp_members;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
      const Object item = Object::check(PyObject_Repr(PyStructSequence_GetItem(self, i)));
      out += str(i != 0 ? ",\n" : "", members[i].name, "=", text_view(item.get()));
    }
    return text(out + ")").release();
  });
}

}  // namespace

PyObject* wrap_result(const std::vector<Tensor>& list) {
  Object out = Object::check(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); i++) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  }
  return out.release();
}

// Takes over `item`. A named result is a tuple inside.
void set_item(PyObject* tuple, Py_ssize_t i, PyObject* item) {
  PyTuple_SET_ITEM(tuple, i, check(item));
}

namespace {

PyTypeObject* make_result_type(const char* name, const std::vector<std::string>& fields) {
  if (PyObject* made = PyDict_GetItemString(PyModule_GetDict(return_types), name)) {
    return reinterpret_cast<PyTypeObject*>(made);
  }
  // Names and descriptions live as long as the types: for ever.
  auto* names = new std::vector<std::string>(fields);
  auto* descriptions = new std::vector<PyStructSequence_Field>;
  for (const std::string& field : *names) {
    descriptions->push_back({field.c_str(), nullptr});
  }
  descriptions->push_back({nullptr, nullptr});
  auto* full_name = new std::string(str("rushlight.return_types.", name));
  PyStructSequence_Desc description = {full_name->c_str(), nullptr, descriptions->data(),
                                       static_cast<int>(fields.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (type == nullptr) {
    throw PythonError();
  }
  type->tp_repr = named_repr;
  PyType_Modified(type);
  add(return_types, name, reinterpret_cast<PyObject*>(type));
  return type;
}

// _result_type(name, fields): for who asks for a type before the op has run.
PyObject* result_type_of(PyObject*, PyObject* args) {
  return translate_errors([&] {
    const char* name = nullptr;
    PyObject* fields = nullptr;
    if (!PyArg_ParseTuple(args, "sO!:_result_type", &name, &PyTuple_Type, &fields)) {
      throw PythonError();
    }
    std::vector<std::string> names;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); i++) {
      RL_CHECK_TYPE(PyUnicode_Check(PyTuple_GET_ITEM(fields, i)),
                    "_result_type(): the fields must be str");
      names.emplace_back(text_view(PyTuple_GET_ITEM(fields, i)));
    }
    return Py_NewRef(reinterpret_cast<PyObject*>(make_result_type(name, names)));
  });
}

PyMethodDef result_functions[] = {{"_result_type", result_type_of, METH_VARARGS, nullptr}, {}};

}  // namespace

PyTypeObject* named_result(PyTypeObject*& cache, const char* name,
                           std::initializer_list<const char*> fields) {
  if (cache == nullptr) {
    cache = make_result_type(name, std::vector<std::string>(fields.begin(), fields.end()));
  }
  return cache;
}

void init_results(PyObject* module) {
  return_types = check(PyModule_New("rushlight.return_types"));
  add(module, "return_types", return_types);
  check(PyModule_AddFunctions(module, result_functions));
}

}  // namespace rushlight::python
