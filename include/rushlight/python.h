// C++ functions as functions of a Python module, with Python's C API alone: what extensions that
// utils.cpp_extension.load_inline compiles are made of. Tensors cross by the table of functions
// that the extension _C publishes.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rushlight/tensor.h>

namespace rushlight::bind {

struct PythonApi {
  PyObject* (*wrap)(const Tensor& t);         // a new reference; null where Python raised
  const Tensor* (*unwrap)(PyObject* object);  // null where it is no tensor
  ScalarType (*dtype)(PyObject* object);      // Undefined where it is no dtype
  void (*set_error)();                        // within a catch block
};
inline const PythonApi& api() {
  static const auto* table =
      static_cast<const PythonApi*>(PyCapsule_Import("rushlight._C._python_api", 0));
  if (table == nullptr) {
    throw TypeError("an extension needs rushlight to be imported first");
  }
  return *table;
}

// Thrown where Python's error is set.
struct Raised {};

template <class T, class = void>
struct Converter;
template <>
struct Converter<Tensor> {
  static constexpr const char* name = "Tensor";
  static bool load(PyObject* o, Tensor& out) {
    if (o == Py_None) {
      return true;
    }
    const Tensor* const t = api().unwrap(o);
    if (t != nullptr) {
      out = *t;
    }
    return t != nullptr;
  }
  static PyObject* give(const Tensor& t) { return api().wrap(t); }
};
template <>
struct Converter<bool> {
  static constexpr const char* name = "bool";
  static bool load(PyObject* o, bool& out) {
    out = o == Py_True;
    return PyBool_Check(o);
  }
  static PyObject* give(bool v) { return PyBool_FromLong(v); }
};
template <class T>
struct Converter<T, std::enable_if_t<is_integer_v<T>>> {
  static constexpr const char* name = "int";
  static bool load(PyObject* o, T& out) {
    if (!PyLong_Check(o) || PyBool_Check(o)) {
      return false;
    }
    const long long value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      throw Raised();
    }
    out = static_cast<T>(value);
    return static_cast<long long>(out) == value;
  }
  static PyObject* give(T v) { return PyLong_FromLongLong(static_cast<long long>(v)); }
};
template <class T>
struct Converter<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static constexpr const char* name = "float";
  static bool load(PyObject* o, T& out) {
    if (!PyFloat_Check(o) && !PyLong_Check(o)) {
      return false;
    }
    out = static_cast<T>(PyFloat_AsDouble(o));
    return PyErr_Occurred() == nullptr;
  }
  static PyObject* give(T v) { return PyFloat_FromDouble(static_cast<double>(v)); }
};
template <>
struct Converter<std::string> {
  static constexpr const char* name = "str";
  static bool load(PyObject* o, std::string& out) {
    Py_ssize_t n = 0;
    const char* const text = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &n) : nullptr;
    if (text != nullptr) {
      out.assign(text, static_cast<size_t>(n));
    }
    return text != nullptr;
  }
  static PyObject* give(const std::string& v) {
    return PyUnicode_FromStringAndSize(v.data(), static_cast<Py_ssize_t>(v.size()));
  }
};
template <>
struct Converter<ScalarType> {
  static constexpr const char* name = "torch.dtype";
  static bool load(PyObject* o, ScalarType& out) {
    out = api().dtype(o);
    return out != ScalarType::Undefined;
  }
};
template <class T>
struct Converter<std::optional<T>> {
  static constexpr const char* name = Converter<T>::name;
  static bool load(PyObject* o, std::optional<T>& out) {
    if (o == Py_None) {
      return true;
    }
    return Converter<T>::load(o, out.emplace());
  }
  static PyObject* give(const std::optional<T>& v) {
    return v ? Converter<T>::give(*v) : Py_NewRef(Py_None);
  }
};
template <class T>
struct Converter<std::vector<T>> {
  static constexpr const char* name = "list";
  static bool load(PyObject* o, std::vector<T>& out) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) {
      return false;
    }
    for (Py_ssize_t i = 0; i < PySequence_Size(o); i++) {
      PyObject* const item = PyList_Check(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
      T value{};
      if (!Converter<T>::load(item, value)) {
        return false;
      }
      out.push_back(std::move(value));
    }
    return true;
  }
  static PyObject* give(const std::vector<T>& list) {
    PyObject* const out = PyList_New(static_cast<Py_ssize_t>(list.size()));
    for (size_t i = 0; out != nullptr && i < list.size(); i++) {
      PyObject* const item = Converter<T>::give(list[i]);
      if (item == nullptr) {
        Py_DECREF(out);
        return nullptr;
      }
      PyList_SET_ITEM(out, static_cast<Py_ssize_t>(i), item);
    }
    return out;
  }
};
template <class... T>
struct Converter<std::tuple<T...>> {
  static PyObject* give(const std::tuple<T...>& values) {
    return std::apply(
        [](const T&... parts) {
          PyObject* items[] = {Converter<T>::give(parts)...};
          PyObject* const out = PyTuple_New(sizeof...(T));
          for (size_t i = 0; i < sizeof...(T); i++) {
            PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), items[i]);
          }
          return out;
        },
        values);
  }
};

template <class T>
T load_argument(PyObject* o, size_t place) {
  T value{};
  if (!Converter<T>::load(o, value)) {
    if (PyErr_Occurred() != nullptr) {
      throw Raised();
    }
    throw TypeError(str("argument ", place + 1, " must be ", Converter<T>::name, ", not ",
                        Py_TYPE(o)->tp_name));
  }
  return value;
}

template <auto function>
struct Call;
template <class R, class... A, R (*function)(A...)>
struct Call<function> {
  static PyObject* run(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
    return call(arguments, n, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... I>
  static PyObject* call([[maybe_unused]] PyObject* const* arguments, Py_ssize_t n,
                        std::index_sequence<I...>) {
    try {
      if (n != static_cast<Py_ssize_t>(sizeof...(A))) {
        throw TypeError(str("expected ", sizeof...(A), " arguments, got ", n));
      }
      std::tuple<std::decay_t<A>...> values{load_argument<std::decay_t<A>>(arguments[I], I)...};
      if constexpr (std::is_void_v<R>) {
        function(static_cast<A>(std::get<I>(values))...);
        return Py_NewRef(Py_None);
      } else {
        return Converter<std::decay_t<R>>::give(function(static_cast<A>(std::get<I>(values))...));
      }
    } catch (const Raised&) {
      return nullptr;
    } catch (...) {
      api().set_error();
      return nullptr;
    }
  }
};

// A row of a module's methods: RL_METHOD("name", function, "doc").
#define RL_METHOD(name, function, doc)                                     \
  {name,                                                                   \
   reinterpret_cast<PyCFunction>(                                          \
       reinterpret_cast<void*>(&::rushlight::bind::Call<&function>::run)), \
   METH_FASTCALL, doc}

}  // namespace rushlight::bind
