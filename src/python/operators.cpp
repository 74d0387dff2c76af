// Operators of Tensor: number slots and comparisons. They call the op directly; no parser stands
// between, for two tensors or a tensor and a number. Whatever else is on the other side gets its
// turn by NotImplemented.
#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "python/bindings.h"
#include "python/numpy.h"
#include "python/parser.h"
#include "python/torch_function.h"

namespace rushlight::python {

namespace {

// From this many elements on the GIL is released.
constexpr int64_t heavy = 16384;

// A side of a binary operator as a tensor; a Python number becomes a wrapped one.
class Operand {
 public:
  explicit Operand(PyObject* o) {
    if (is_tensor(o)) {
      tensor_ = &unwrap(o);
    } else if (is_number(o)) {
      made_ = make_number(to_scalar(o));
      tensor_ = &made_;
    }
  }
  // An array of numpy, where it would not get its turn, for it lets tensors go first. One of a type
  // that no tensor has is another kind of object; any other that no tensor can hold raises.
  void take_array(PyObject* o) {
    ArrayView view;
    if (fits() || !view_array(o, view)) {
      return;
    }
    try {
      made_ = from_numpy(o);
      tensor_ = &made_;
    } catch (const PythonError&) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
        throw;
      }
      PyErr_Clear();
    }
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  bool fits() const { return tensor_ != nullptr; }
  const Tensor& operator*() const { return *tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
  Tensor made_;
};

bool is_overridden(PyObject* a, PyObject* b) {
  return mode_active() || overrides(a) || overrides(b);
}

// What modes and __torch_function__ make of an operator. Where they know no more than a TypeError
// to raise, the other side gets its turn, as in PyTorch.
PyObject* call_overridden_operator(const char* name, std::initializer_list<PyObject*> args) {
  try {
    return call_torch_function_method(name, args);
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
      throw;
    }
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
}

// `name` and `reflected` are the methods that __torch_function__ is told of, with the tensor first.
template <bool arrays = false, class F>
PyObject* binary(PyObject* a, PyObject* b, const char* name, const char* reflected, F op) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(is_overridden(a, b))) {
      if (is_tensor(a)) {
        return call_overridden_operator(name, {a, b});
      }
      return call_overridden_operator(reflected, {b, a});
    }
    Operand x(a);
    Operand y(b);
    if (RL_UNLIKELY(!x.fits() || !y.fits())) {
      if (arrays) {
        x.take_array(a);
        y.take_array(b);
      }
      if (!x.fits() || !y.fits()) {
        Py_RETURN_NOTIMPLEMENTED;
      }
    }
    if (RL_LIKELY((*x).numel() < heavy && (*y).numel() < heavy)) {
      return wrap(op(*x, *y));
    }
    Tensor result;
    {
      const WithoutGil no_gil;
      result = op(*x, *y);
    }
    return wrap(std::move(result));
  });
}

template <class F>
PyObject* inplace(PyObject* a, PyObject* b, const char* name, F op) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(is_overridden(a, b))) {
      return call_overridden_operator(name, {a, b});
    }
    const Operand y(b);
    if (!y.fits()) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    const Tensor& x = unwrap(a);
    {
      const WithoutGil no_gil(x.numel() >= heavy);
      op(x, *y);
    }
    return Py_NewRef(a);
  });
}

template <class F>
PyObject* unary(PyObject* a, const char* name, F op) {
  return translate_errors([&]() -> PyObject* {
    if (RL_UNLIKELY(mode_active() || overrides(a))) {
      return call_torch_function_method(name, {a});
    }
    const Tensor& x = unwrap(a);
    Tensor result;
    {
      const WithoutGil no_gil(x.numel() >= heavy);
      result = op(x);
    }
    return wrap(std::move(result));
  });
}

#define BINARY(slot, op, reflected)                                                      \
  PyObject* slot(PyObject* a, PyObject* b) {                                             \
    return binary(a, b, #op, reflected,                                                  \
                  [](const Tensor& x, const Tensor& y) { return rushlight::op(x, y); }); \
  }
#define INPLACE(slot, op)                                                                     \
  PyObject* slot(PyObject* a, PyObject* b) {                                                  \
    return inplace(a, b, #op, [](const Tensor& x, const Tensor& y) { rushlight::op(x, y); }); \
  }
BINARY(nb_add, add, "add")
BINARY(nb_sub, sub, "__rsub__")
BINARY(nb_mul, mul, "mul")
BINARY(nb_floor_divide, floor_divide, "__rfloordiv__")
BINARY(nb_remainder, remainder, "__rmod__")
BINARY(nb_and, bitwise_and, "__rand__")
BINARY(nb_or, bitwise_or, "__ror__")
BINARY(nb_xor, bitwise_xor, "__rxor__")
BINARY(nb_lshift, bitwise_left_shift, "__rlshift__")
BINARY(nb_rshift, bitwise_right_shift, "__rrshift__")
INPLACE(nb_isub, sub_)
INPLACE(nb_imul, mul_)
INPLACE(nb_idiv, div_)
INPLACE(nb_ifloor_divide, floor_divide_)
INPLACE(nb_iremainder, remainder_)
INPLACE(nb_iand, bitwise_and_)
INPLACE(nb_ior, bitwise_or_)
INPLACE(nb_ixor, bitwise_xor_)
INPLACE(nb_ilshift, bitwise_left_shift_)
INPLACE(nb_irshift, bitwise_right_shift_)
#undef BINARY
#undef INPLACE

// Python takes what this returns as the sum of sequences, too, NotImplemented with it: so that
// others get their turn here.
PyObject* nb_iadd(PyObject* a, PyObject* b) {
  PyObject* sum =
      inplace(a, b, "add_", [](const Tensor& x, const Tensor& y) { rushlight::add_(x, y); });
  if (sum != Py_NotImplemented) {
    return sum;
  }
  Py_DECREF(sum);
  return PyNumber_Add(a, b);
}

PyObject* nb_div(PyObject* a, PyObject* b) {
  return binary<true>(a, b, "div", "__rtruediv__",
                      [](const Tensor& x, const Tensor& y) { return rushlight::div(x, y); });
}

// Python's third argument, a modulus, has no meaning here.
PyObject* nb_pow(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return binary(a, b, "pow", "__rpow__",
                [](const Tensor& x, const Tensor& y) { return rushlight::pow(x, y); });
}
PyObject* nb_ipow(PyObject* a, PyObject* b, PyObject*) {
  return inplace(a, b, "pow_", [](const Tensor& x, const Tensor& y) { rushlight::pow_(x, y); });
}

// Matrices only: a number on either side is no operand.
PyObject* nb_matmul(PyObject* a, PyObject* b) {
  const bool tensors = is_tensor(a) && is_tensor(b);
  if (!tensors && !(overrides(a) || overrides(b))) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return binary(a, b, "matmul", "__rmatmul__",
                [](const Tensor& x, const Tensor& y) { return rushlight::matmul(x, y); });
}

PyObject* nb_negative(PyObject* a) {
  return unary(a, "neg", [](const Tensor& x) { return rushlight::neg(x); });
}
PyObject* nb_absolute(PyObject* a) {
  return unary(a, "abs", [](const Tensor& x) { return rushlight::abs(x); });
}
PyObject* nb_invert(PyObject* a) {
  return unary(a, "__invert__", [](const Tensor& x) {
    RL_CHECK_TYPE(
        is_integral(x.dtype()) || x.dtype() == kBool,
        "~ (operator.invert) is only implemented on integer and Boolean-type tensors, got ",
        enum_name(x.dtype()));
    return rushlight::bitwise_not(x);
  });
}
PyObject* nb_positive(PyObject* a) {
  return translate_errors([&] {
    RL_CHECK(unwrap(a).dtype() != kBool, "+t: a bool tensor is no number");
    return Py_NewRef(a);
  });
}

// ---- to Python numbers ----

std::string conversion_message(const char* which, const char* to) {
  return str("only ", which, " can be converted to ", to);
}

// The only element of a tensor.
Scalar only_element(PyObject* self) {
  const Tensor& t = unwrap(self);
  RL_CHECK_VALUE(t.numel() == 1, conversion_message("one element tensors", "Python scalars"),
                 ", but this one has shape ", t.sizes());
  return t.item();
}

template <class F>
PyObject* to_number(PyObject* self, const char* name, F convert) {
  return translate_errors([&] {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      return call_torch_function_method(name, {self});
    }
    return convert();
  });
}

int nb_bool(PyObject* self) {
  int result = -1;
  const int status = translate_errors_to_status([&] {
    if (RL_UNLIKELY(mode_active() || overrides(self))) {
      const Object value = Object::check(call_torch_function_method("__bool__", {self}));
      RL_CHECK_TYPE(PyBool_Check(value.get()), "__bool__ should return bool, returned ",
                    type_name(value.get()));
      result = value.get() == Py_True;
      return;
    }
    const Tensor& t = unwrap(self);
    batching::refuse_control_flow(t);
    RL_CHECK(t.numel() != 0,
             "Boolean value of Tensor without elements is ambiguous: numel() tells whether there "
             "are any");
    RL_CHECK(t.numel() == 1, "Boolean value of Tensor of shape ", t.sizes(),
             " is ambiguous: any() and all() say what is meant");
    result = t.item().toBool();
  });
  return status < 0 ? -1 : result;
}

PyObject* nb_int(PyObject* self) {
  return to_number(self, "__int__", [&] {
    const Scalar value = only_element(self);
    const Object number = Object::check(wrap_number(value.is_complex() ? value.toLong() : value));
    return check(PyNumber_Long(number.get()));
  });
}
PyObject* nb_float(PyObject* self) {
  return to_number(self, "__float__", [&] {
    const Scalar value = only_element(self);
    const Object number = Object::check(wrap_number(value.is_complex() ? value.toDouble() : value));
    return check(PyNumber_Float(number.get()));
  });
}
PyObject* nb_index(PyObject* self) {
  return to_number(self, "__index__", [&] {
    const Tensor& t = unwrap(self);
    RL_CHECK_TYPE(t.numel() == 1 && (is_integral(t.dtype()) || t.dtype() == kBool),
                  conversion_message("integer tensors of a single element", "an index"),
                  ", but this one has dtype ", t.dtype(), " and shape ", t.sizes());
    return PyLong_FromLongLong(t.item().toLong());
  });
}
PyObject* to_complex(PyObject* self, PyObject*) {
  return to_number(self, "__complex__", [&] {
    const auto z = only_element(self).as<complex<double>>();
    return PyComplex_FromDoubles(z.re, z.im);
  });
}
PyObject* to_bool_method(PyObject* self, PyObject*) {
  const int value = nb_bool(self);
  return value < 0 ? nullptr : PyBool_FromLong(value);
}

// ---- comparison ----

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_EQ:
      return binary<true>(a, b, "__eq__", "__eq__",
                          [](const Tensor& x, const Tensor& y) { return rushlight::eq(x, y); });
    case Py_NE:
      return binary<true>(a, b, "__ne__", "__ne__",
                          [](const Tensor& x, const Tensor& y) { return rushlight::ne(x, y); });
    case Py_LT:
      return binary(a, b, "lt", "gt",
                    [](const Tensor& x, const Tensor& y) { return rushlight::lt(x, y); });
    case Py_LE:
      return binary(a, b, "le", "ge",
                    [](const Tensor& x, const Tensor& y) { return rushlight::le(x, y); });
    case Py_GT:
      return binary(a, b, "gt", "lt",
                    [](const Tensor& x, const Tensor& y) { return rushlight::gt(x, y); });
    default:
      return binary(a, b, "ge", "le",
                    [](const Tensor& x, const Tensor& y) { return rushlight::ge(x, y); });
  }
}

// Tensors are keys by identity.
Py_hash_t hash(PyObject* self) { return hash_pointer(self); }

PyNumberMethods number_slots = {
    .nb_add = nb_add,
    .nb_subtract = nb_sub,
    .nb_multiply = nb_mul,
    .nb_remainder = nb_remainder,
    .nb_power = nb_pow,
    .nb_negative = nb_negative,
    .nb_positive = nb_positive,
    .nb_absolute = nb_absolute,
    .nb_bool = nb_bool,
    .nb_invert = nb_invert,
    .nb_lshift = nb_lshift,
    .nb_rshift = nb_rshift,
    .nb_and = nb_and,
    .nb_xor = nb_xor,
    .nb_or = nb_or,
    .nb_int = nb_int,
    .nb_float = nb_float,
    .nb_inplace_add = nb_iadd,
    .nb_inplace_subtract = nb_isub,
    .nb_inplace_multiply = nb_imul,
    .nb_inplace_remainder = nb_iremainder,
    .nb_inplace_power = nb_ipow,
    .nb_inplace_lshift = nb_ilshift,
    .nb_inplace_rshift = nb_irshift,
    .nb_inplace_and = nb_iand,
    .nb_inplace_xor = nb_ixor,
    .nb_inplace_or = nb_ior,
    .nb_floor_divide = nb_floor_divide,
    .nb_true_divide = nb_div,
    .nb_inplace_floor_divide = nb_ifloor_divide,
    .nb_inplace_true_divide = nb_idiv,
    .nb_index = nb_index,
    .nb_matrix_multiply = nb_matmul,
};

PyMethodDef methods[] = {
    {"__complex__", to_complex, METH_NOARGS, nullptr},
    {"__nonzero__", to_bool_method, METH_NOARGS, nullptr},
    {},
};

}  // namespace

void add_operators() {
  tensor_base_type.tp_as_number = &number_slots;
  tensor_base_type.tp_richcompare = compare;
  tensor_base_type.tp_hash = hash;
  add_methods(methods);
}

}  // namespace rushlight::python
