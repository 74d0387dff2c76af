// The one argument parser: tables of parameters in, bound arguments out.
//
// Every op name has a Parser over its signatures, in order of preference (generated:
// gen/python.py). A call walks them and takes the first that fits; nothing is raised before all
// have failed. Then the error of the only plausible signature is raised, or the list of all.
// `Arguments` converts what was bound, on demand, to the C++ types of the op.
#pragma once

#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "python/convert.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

enum class Kind : uint8_t {
  Tensor,
  TensorOrNumber,
  TensorList,
  OptionalTensorList,
  Scalar,
  ScalarList,
  Int,
  IntList,
  Float,
  FloatList,
  Bool,
  String,
  Dtype,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Object,  // anything
};

struct Param {
  std::string_view name;
  Kind kind;
  bool none = false;  // None is taken
  bool keyword_only = false;
  bool out = false;             // out=: functions have it, methods do not
  const char* shown = nullptr;  // the default, as the error message lists it; null: required
};

// The forms that an op name takes in Python: add(a, b), a.add(b), a.add_(b) and, for nn.functional,
// add_(a, b).
enum Form : uint8_t { FunctionForm = 1, MethodForm = 2, InplaceForm = 4, InplaceFunctionForm = 8 };
constexpr bool is_method(Form f) { return f == MethodForm || f == InplaceForm; }
constexpr bool is_inplace(Form f) { return f == InplaceForm || f == InplaceFunctionForm; }

inline constexpr int max_params = 24;

struct ParamList {
  constexpr ParamList(const Param* list, size_t n)
      : params(list), count(n <= max_params ? static_cast<uint8_t>(n) : throw "too many") {}
  template <size_t n>
  constexpr ParamList(const Param (&list)[n]) : ParamList(list, n) {}
  const Param* params;
  uint8_t count;
};
struct Signature : ParamList {
  uint8_t forms;            // a set of Form
  int8_t self;              // index of the parameter that a method is called on; -1: none
  bool varargs = false;     // the last positional parameter takes `view(2, 3)`, `block_diag(a, b)`
  bool deprecated = false;  // taken with a warning, and not listed in errors
};

class Arguments;
using Run = PyObject* (*)(const Arguments&);

struct Parser {
  const char* name;
  const Signature* signatures;
  uint8_t count;
  Run run;
  PyObject** owner;  // where the public callable of the function form is an attribute

  // Whole calls: offers it to __torch_function__, parses, runs, sets Python's error. `self` is null
  // for functions.
  PyObject* call(Form form, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                 PyObject* kwnames) const;
};

// What Python calls: a function or method over its parser.
template <const Parser& parser, Form form>
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return parser.call(form, is_method(form) ? self : nullptr, args, nargs, names);
}

// A row of what a generated file adds.
#define RL_BINDING(parser, form, shown, also, doc)                                \
  {                                                                               \
    is_method(form) ? nullptr : (parser).owner, also, {                           \
      shown, as_function(entry<parser, form>), METH_FASTCALL | METH_KEYWORDS, doc \
    }                                                                             \
  }

class Arguments {
 public:
  int signature() const { return signature_; }
  bool inplace() const { return is_inplace(form_); }

  // Not passed at all: an optional parameter with a default other than None takes that; None stays
  // None.
  bool is_absent(int i) const { return slots_[i] == nullptr; }
  bool is_given(int i) const { return slots_[i] != nullptr && slots_[i] != Py_None; }
  PyObject* object(int i) const { return slots_[i]; }

  const Tensor& tensor(int i) const { return is_given(i) ? unwrap(slots_[i]) : undefined_tensor; }
  Tensor tensor_or_number(int i) const;
  std::vector<Tensor> tensors(int i) const;
  std::vector<std::optional<Tensor>> optional_tensors(int i) const;
  // out= of an op with n results: a tuple or list of n tensors, TypeError otherwise.
  std::vector<Tensor> out_tensors(int i, size_t n, const char* op) const;

  // Every kind has an accessor for a required parameter, one with the value of a parameter that was
  // not passed, and one where None is welcome.
  Scalar scalar(int i) const { return to_scalar(slots_[i]); }
  int64_t integer(int i) const { return to_int(slots_[i]); }
  double number(int i) const { return to_float(slots_[i]); }
  bool boolean(int i) const { return to_bool(slots_[i]); }
  std::string_view string(int i) const { return text_view(slots_[i]); }
  DimVector ints(int i) const;  // a single int is a list of one
  std::vector<double> numbers(int i) const;
  std::vector<Scalar> scalars(int i) const;
  ScalarType dtype(int i) const { return dtype_of(slots_[i]); }
  Device device(int i) const { return as_device(slots_[i]); }
  Layout layout(int i) const { return *as_layout(slots_[i]); }
  MemoryFormat memory_format(int i) const { return *as_memory_format(slots_[i]); }
#define RL_ACCESSORS(name, T)                                                           \
  T name(int i, const T& otherwise) const { return is_given(i) ? name(i) : otherwise; } \
  std::optional<T> optional_##name(int i) const {                                       \
    return is_given(i) ? std::optional<T>(name(i)) : std::nullopt;                      \
  }                                                                                     \
  std::optional<T> optional_##name(int i, const T& otherwise) const {                   \
    return is_absent(i) ? std::optional<T>(otherwise) : optional_##name(i);             \
  }
  RL_ACCESSORS(scalar, Scalar)
  RL_ACCESSORS(integer, int64_t)
  RL_ACCESSORS(number, double)
  RL_ACCESSORS(boolean, bool)
  RL_ACCESSORS(string, std::string_view)
  RL_ACCESSORS(ints, DimVector)
  RL_ACCESSORS(numbers, std::vector<double>)
  RL_ACCESSORS(scalars, std::vector<Scalar>)
  RL_ACCESSORS(dtype, ScalarType)
  RL_ACCESSORS(device, Device)
  RL_ACCESSORS(layout, Layout)
  RL_ACCESSORS(memory_format, MemoryFormat)
#undef RL_ACCESSORS
  const Generator& generator(int i) const {
    return is_given(i) ? unwrap_generator(slots_[i]) : no_generator;
  }
  // dtype, layout, device, pin_memory, requires_grad, from parameter i on.
  TensorOptions options(int i) const;

  // Whether the work may be worth releasing the GIL for: some tensor is not small, or, where there
  // is none (factories), the product of the ints is not.
  bool is_heavy() const {
    bool tensors = false;
    for (int i = 0; i < table_->count; i++) {
      const Kind kind = table_->params[i].kind;
      if (RL_LIKELY(kind <= Kind::TensorOrNumber)) {
        if (slots_[i] != nullptr && is_tensor(slots_[i])) {
          if (unwrap(slots_[i]).numel() >= heavy_numel) {
            return true;
          }
          tensors = true;
        }
      } else if (kind <= Kind::OptionalTensorList) {
        return has_heavy_lists();
      }
    }
    return !tensors && has_heavy_ints();
  }

 private:
  friend struct Parser;
  static const Tensor undefined_tensor;
  static const Generator no_generator;
  static ScalarType dtype_of(PyObject* o);

  static constexpr int64_t heavy_numel = 16384;
  bool has_heavy_lists() const;
  bool has_heavy_ints() const;

  Items items(int i) const;
  template <class T, class F>
  T convert_list(int i, F convert) const;

  const char* name_;  // of the op
  const Signature* table_;
  int signature_;
  Form form_;
  PyObject* const* varargs_ = nullptr;  // the items of view(2, 3)
  Py_ssize_t varargs_count_ = 0;
  PyObject* slots_[max_params];
};

// ---- results ----

inline PyObject* wrap_result(Tensor t) { return wrap(std::move(t)); }
inline PyObject* wrap_result(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap_result(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap_result(double v) { return PyFloat_FromDouble(v); }
inline PyObject* wrap_result(ScalarType t) { return wrap(t); }
inline PyObject* wrap_result(const Scalar& s) { return wrap_number(s); }
PyObject* wrap_result(const std::vector<Tensor>& list);  // a tuple

void set_item(PyObject* tuple, Py_ssize_t i, PyObject* item);
template <class... T>
PyObject* wrap_result(std::tuple<T...> results, PyTypeObject* named = nullptr) {
  Object out =
      Object::check(named != nullptr ? PyStructSequence_New(named) : PyTuple_New(sizeof...(T)));
  Py_ssize_t i = 0;
  std::apply([&](auto&... r) { (set_item(out.get(), i++, wrap_result(std::move(r))), ...); },
             results);
  return out.release();
}

// In-place and out=: the object that was given comes back.
template <class F>
PyObject* finish_with(const Arguments& a, PyObject* given, F&& op) {
  {
    const WithoutGil no_gil(a.is_heavy());
    op();
  }
  return Py_NewRef(given);
}
// Runs an op, without the GIL where it is heavy, and wraps what comes out; `named` may be the type
// of several results with names.
template <class F, class... Named>
PyObject* finish(const Arguments& a, F&& op, Named*... named) {
  if constexpr (std::is_void_v<decltype(op())>) {
    return finish_with(a, Py_None, op);
  } else {
    if (RL_LIKELY(!a.is_heavy())) {
      return wrap_result(op(), named...);
    }
    auto result = [&] {
      const WithoutGil no_gil;
      return op();
    }();
    return wrap_result(std::move(result), named...);
  }
}
// out= at parameter i of an op with n results, which `op` is given: a tensor, or a tuple of
// several.
template <size_t n, class F, class... Named>
PyObject* finish_out(const Arguments& a, int i, const char* name, F&& op, Named*... named) {
  if constexpr (n == 1) {
    return finish_with(a, a.object(i), [&] { op(a.tensor(i)); });
  } else {
    const std::vector<Tensor> out = a.out_tensors(i, n, name);
    return [&]<size_t... k>(std::index_sequence<k...>) {
      const auto run = [&] {
        op(out[k]...);
        return std::tuple(out[k]...);
      };
      return finish(a, run, named...);
    }(std::make_index_sequence<n>());
  }
}

// The type torch.return_types.NAME with these fields; made on first use.
PyTypeObject* named_result(PyTypeObject*& cache, const char* name,
                           std::initializer_list<const char*> fields);
void init_results(PyObject* module);

// ---- definitions by hand: a table of parameters, then the body, which is given `a` ----

inline constexpr Param self_param = {"self", Kind::Tensor};

#define RL_METHOD(name, ...) RL_METHOD_CALLED(name, #name, __VA_ARGS__)

// The same under a name that C++ keeps for itself.
#define RL_METHOD_CALLED(name, text, ...)                                          \
  PyObject* name##_run(const Arguments& a);                                        \
  const Param name##_params[] = {self_param, __VA_ARGS__};                         \
  const Signature name##_signatures[] = {{name##_params, MethodForm, 0, false}};   \
  const Parser name##_parser = {text, name##_signatures, 1, name##_run, nullptr};  \
  PyObject* name##_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, \
                          PyObject* names) {                                       \
    return name##_parser.call(MethodForm, self, args, nargs, names);               \
  }                                                                                \
  PyObject* name##_run(const Arguments& a)

// A function of the module `ops_owner`, to which the row RL_FUNCTION_ROW adds it.
#define RL_FUNCTION(name, ...)                                                                     \
  PyObject* name##_run(const Arguments& a);                                                        \
  const Param name##_params[] = {__VA_ARGS__};                                                     \
  const Signature name##_signatures[] = {{name##_params, FunctionForm, -1, false}};                \
  const Parser name##_parser = {#name, name##_signatures, 1, name##_run, &ops_owner};              \
  PyObject* name##_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) { \
    return name##_parser.call(FunctionForm, nullptr, args, nargs, names);                          \
  }                                                                                                \
  PyObject* name##_run(const Arguments& a)

#define RL_FAST_ROW(name, function, doc) \
  {name, as_function(function), METH_FASTCALL | METH_KEYWORDS, doc}

}  // namespace rushlight::python
