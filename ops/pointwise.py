"""Element by element: arithmetic, comparison, functions, activations, and the losses that are a
formula and a mean.

The formulas stand in src/kernels/pointwise.h; checks, conditions and attributes of formulas in
src/ops/pointwise_choice.h; composites and longer derivatives in src/ops/pointwise.cpp.
"""

from gen.table import (
    bfloat16,
    boolean,
    complex_,
    complex_half,
    composite,
    everything,
    float8,
    float8_e5m2,
    floating,
    floats,
    formula,
    half,
    integers,
    numbers,
    op,
    pointwise,
    real,
    stored,
    update,
    wide_unsigned,
)

_floats = dict(kernel=pointwise(floating, promote="float"))
_complex = dict(kernel=pointwise(floating, complex_, promote="float"))
_activation = dict(kernel=pointwise(floating))
_backward = dict(kernel=pointwise(floating), variants="function")
_zero = "zeros_like(grad)"

# ---- arithmetic ----

_no_bool = "check_no_bool(self, other)"


def _with_factor(plain, scaled, factor, *dtypes, check=(), loop=""):
    """Two formulas: the plain one where the factor is 1."""
    return pointwise(*dtypes, check=[*check, f'check_factor(it, "{factor}", {factor})'],
                     formulas=[formula(plain, when=f"is_one({factor})", loop=loop),
                               formula(scaled, factor)])


def _arithmetic(name, more="", more_of_numbers=None):
    """The overloads of an op whose Tensor form takes numbers too, as PyTorch's does in Python."""
    tensor = f"other{more}"
    number = f"Scalar other{more if more_of_numbers is None else more_of_numbers}"
    forms = [f"{name}{form}.{kind}(self, {operands})"
             for form in ("", "_") for kind, operands in (("Tensor", tensor), ("Scalar", number))]
    return [*forms, f"{name}.out(self, {tensor}, out!)", f"{name}.Scalar_out(self, {number}, out!)"]



op("add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
   kernel=_with_factor("add", "add_scaled", "alpha", everything, complex_half, loop="rounds_once"),
   grad={"self": "grad", "other": "scale_gradient(grad, alpha.conj())"}, ref="numpy.add",
   sparse="add", python="number_first",
   doc="self + alpha * other.",
   overloads=_arithmetic("add", ", alpha", ", Scalar alpha=1"), tags=("core",))
op("sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
   kernel=_with_factor("sub", "sub_scaled", "alpha", numbers, complex_half, check=[_no_bool],
                  loop="rounds_once"),
   grad={"self": "grad", "other": "scale_gradient(grad, -alpha.conj())"}, ref="numpy.subtract",
   sparse="sub", python="number_first",
   doc="self - alpha * other.",
   overloads=_arithmetic("sub", ", alpha", ", Scalar alpha=1"), tags=("core",))
op("rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
   kernel=_with_factor("rsub", "rsub_scaled", "alpha", numbers, complex_half, check=[_no_bool],
                  loop="rounds_once"),
   node={"other.impl()->is_wrapped_number()": 1},
   variants="function method",
   grad={"self": "scale_gradient(grad, -alpha.conj())", "other": "grad"},
   doc="other - alpha * self.",
   overloads=["rsub.Scalar(self, Scalar other, Scalar alpha=1)",
              "rsub.Tensor(self, Tensor other, alpha)",
              "rsub.Scalar_out(self, Scalar other, Scalar alpha=1, out!)",
              "rsub.Tensor_out(self, Tensor other, alpha, out!)"])
op("mul(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=pointwise(stored, formulas=[formula("mul", loop="rounds_once")]),
   grad={"self": "grad * other.conj()", "other": "grad * self.conj()"}, ref="numpy.multiply",
   sparse="mul", python="number_first",
   doc="self * other.",
   overloads=_arithmetic("mul"), tags=("core",))
op("div(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=pointwise(floating, complex_, complex_half, promote="float",
                    formulas=[formula("div", loop="rounds_once")]),
   grad={"self": "grad / other.conj()", "other": "-grad * ((self / other) / other).conj()"},
   ref="numpy.divide", sparse="div", python="number_first",
   doc="self / other; quotients of integers are floating-point.",
   overloads=_arithmetic("div"), tags=("core",))


def _division(name, **keys):
    return pointwise(real, check=["check_divisor(it)"], formulas=[formula(name, **keys)])


composite("div.mode(Tensor self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
          python="number_first",
          doc="The quotient, rounded towards zero ('trunc'), down ('floor') or not at all (None).",
          overloads=["div.Tensor_mode(self, other, rounding_mode)",
                     "div.Scalar_mode(self, Scalar other, rounding_mode)",
                     "div.out_mode(self, other, rounding_mode, out!)",
                     "div.Scalar_mode_out(self, Scalar other, rounding_mode, out!)"],
          variants="function method out", tags=("core", "pointwise"))
composite("div_.mode(Tensor(a!) self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor(a!)",
          variants="method inplace", doc="`div` with a rounding mode, in place.",
          overloads=["div_.Tensor_mode(self, other, rounding_mode)",
                     "div_.Scalar_mode(self, Scalar other, rounding_mode)"], tags=("pointwise",))
op("_div_trunc(Tensor self, Tensor|Scalar other) -> Tensor", kernel=_division("div_trunc"),
   variants="function inplace", grad={"self": _zero, "other": _zero},
   doc="The quotient, rounded towards zero.", own=True)
op("floor_divide(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("floor_divide", loop="isa"),
   grad={"self": _zero, "other": _zero}, ref="numpy.floor_divide",
   python="number_first",
   doc="The quotient, rounded down.",
   overloads=["floor_divide(self, other)", "floor_divide.Scalar(self, Scalar other)",
              "floor_divide_.Tensor(self, other)", "floor_divide_.Scalar(self, Scalar other)",
              "floor_divide.out(self, other, out!)",
              "floor_divide.Scalar_out(self, Scalar other, out!)"])
op("remainder(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("remainder", loop="isa"),
   node={"!other.impl()->is_wrapped_number()": 1},
   grad={"self": "grad", "other": "-grad * self.floor_divide(other)"}, ref="numpy.remainder",
   doc="The remainder with the sign of other, as Python's %.", tags=("core",))
composite("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", variants="function",
          doc="self % other.", out="cpp", tags=("pointwise.Scalar_Tensor",))
op("fmod(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("fmod", loop="isa"),
   node={"!other.impl()->is_wrapped_number()": 1},
   grad={"self": "grad", "other": "-grad * _div_trunc(self, other)"}, ref="numpy.fmod",
   doc="The remainder with the sign of self, as C's fmod.", tags=("core",))
# Small constant powers have formulas of their own, which are exact where that of pow is not.
op("pow(Tensor self, Tensor|Scalar exponent) -> Tensor",
   kernel=pointwise(
       numbers, check=["check_power(it)", "power = real_host_number(it, 2)"],
       formulas=[
           formula("square", when="power == 2", inputs=1),
           formula("cube", when="power == 3", inputs=1),
           formula("sqrt", when="power == 0.5", inputs=1, dtypes=(floating,)),
           formula("rsqrt", when="power == -0.5", inputs=1, dtypes=(floating,)),
           formula("reciprocal", when="power == -1", inputs=1, dtypes=(floating, complex_)),
           formula("inverse_square", when="power == -2", inputs=1, dtypes=(floating, complex_)),
           formula("pow"),
       ]),
   node={"!exponent.impl()->is_wrapped_number()": 1, "self.impl()->is_wrapped_number()": 2},
   grad={"self": "pow_backward_self(grad, self, exponent)",
         "exponent": "pow_backward_exponent(grad, self, exponent, result)"},
   ref="numpy.power", sparse="pow", doc="self to the power of exponent.",
   overloads=["pow.Tensor_Scalar(self, Scalar exponent)",
              "pow.Tensor_Tensor(self, Tensor exponent)",
              "pow.Tensor_Scalar_out(self, Scalar exponent, out!)",
              "pow.Tensor_Tensor_out(self, Tensor exponent, out!)"],
   autocast={"accelerator": "float32"}, tags=("core",))
composite("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", variants="function out",
          doc="A number to the power of a tensor.",
          autocast={"accelerator": "float32"}, tags=("core", "pointwise"))
composite("float_power(Tensor self, Tensor|Scalar exponent) -> Tensor",
          variants="function method out", doc="`pow` in float64 or complex128.",
          overloads=["float_power.Tensor_Scalar(self, Scalar exponent)",
                     "float_power.Tensor_Tensor(self, Tensor exponent)",
                     "float_power.Tensor_Scalar_out(self, Scalar exponent, out!)",
                     "float_power.Tensor_Tensor_out(self, Tensor exponent, out!)"],
                     tags=("pointwise",))
composite("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", variants="function out",
          doc="`float_power` of a number.", tags=("pointwise",))
op("neg(Tensor self) -> Tensor",
   kernel=pointwise(numbers, complex_half, check=["check_no_bool(self)"]),
   grad={"self": "-grad"}, ref="numpy.negative",
   sparse="values", doc="-self.", tags=("core",))
composite("positive(Tensor(a) self) -> Tensor(a)", doc="Returns self. RuntimeError for bool.",
          tags=("pointwise",))
op("reciprocal(Tensor self) -> Tensor", **_complex,
   grad={"self": "-grad * (result * result).conj()"},
   ref="numpy.reciprocal", doc="1 / self.",
   autocast={"accelerator": "float32"}, tags=("core",))
composite("square(Tensor self) -> Tensor", variants="function method out", ref="numpy.square",
          doc="self * self.", tags=("pointwise",))
composite("square_(Tensor(a!) self) -> Tensor(a!)", variants="function method inplace",
          doc="`square` in place.", tags=("pointwise",))
op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   kernel=_with_factor("addcmul_plain", "addcmul", "value", numbers, complex_half),
   grad={"self": "grad", "tensor1": "scale_gradient(grad * tensor2.conj(), value.conj())",
         "tensor2": "scale_gradient(grad * tensor1.conj(), value.conj())"},
   doc="self + value * tensor1 * tensor2.",
   autocast={"accelerator": "promote"})
op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   kernel=_with_factor("addcdiv_plain", "addcdiv", "value", floating, complex_,
                  check=["check_true_division(tensor1, tensor2)"]),
   grad={"self": "grad", "tensor1": "scale_gradient(grad / tensor2.conj(), value.conj())",
         "tensor2": "-scale_gradient(grad * (tensor1 / (tensor2 * tensor2)).conj(), value.conj())"},
   doc="self + value * tensor1 / tensor2.",
   autocast={"accelerator": "promote"})
op("_standardize(Tensor self, Tensor mean, Tensor std) -> Tensor",
   kernel=pointwise(floating, formulas=[formula("standardize")],
                    check=['check_same_dtype(self, "mean", mean)',
                           'check_same_dtype(self, "std", std)']),
   variants="function inplace", own=True,
   grad={"self": "grad / std", "mean": "-grad / std",
         "std": "-grad * (self - mean) / (std * std)"},
   doc="(self - mean) / std.")
op("lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
   kernel=pointwise(floating, complex_,
                    check=['check_dtype("lerp", set_floating | set_complexes, self)',
                           'check_same_dtype(self, "end", end)',
                           'check_same_dtype(self, "weight", weight)']),
   node={"!weight.impl()->is_wrapped_number()": 1},
   grad={"self": "grad * (1 - weight).conj()", "end": "grad * weight.conj()",
         "weight": "grad * (end - self).conj()"},
   doc="self + weight * (end - self).")

# ---- sign and magnitude ----

op("abs(Tensor self) -> Tensor", kernel=pointwise(numbers, complex_half, float8, promote="real"),
   grad={"self": "grad * self.sgn()"},
   ref="numpy.absolute", sparse="values",
   doc="The absolute value, which is real for complex numbers.",
   jvp="self_t * self.sgn().conj()", tags=("core",))
op("sign(Tensor self) -> Tensor", kernel=pointwise(real, boolean), grad={"self": _zero},
   sparse="values", doc="The sign of self: -1, 0 or 1.", tags=("core",))
op("sgn(Tensor self) -> Tensor", kernel=pointwise(everything, complex_half),
   grad={"self": "sgn_backward(grad, self, result)"},
   sparse="values", doc="self / |self|, 0 at 0.",
   jvp="sgn_backward(self_t, self, result)")
op("_angle(Tensor self) -> Tensor", kernel=pointwise(floating, complex_, promote="real"),
   variants="function",
   grad={"self": "angle_backward(grad, self)"},
   doc="`angle` of floating-point and complex numbers.", own=True,
   jvp="where(self.eq(0), 0, imag_of(self_t / self))")
composite("angle(Tensor self) -> Tensor", variants="function method out", ref="numpy.angle",
          doc="The angle of complex numbers; 0 or pi for real ones.", tags=("pointwise",))
op("conj_physical(Tensor self) -> Tensor", kernel=pointwise(stored),
   grad={"self": "grad.conj()"}, ref="numpy.conj",
   sparse="values", doc="The complex conjugate, in memory of its own.",
   jvp="linear")
composite("conj(Tensor(a) self) -> Tensor(a)", shown="body", ref="numpy.conj",
          doc="The complex conjugate; real tensors are returned as they are.")
op("copysign(Tensor self, Tensor|Scalar other) -> Tensor", **_floats,
   node={"other.impl()->is_wrapped_number()": 1},
   grad={"self": "copysign_backward(grad, self, result)", "other": _zero}, ref="numpy.copysign",
   doc="The magnitude of self with the sign of other.",
   overloads=["copysign.Scalar_out(self, Scalar other, out!)",
              "copysign.out(self, Tensor other, out!)"])
op("signbit(Tensor self) -> Tensor",
   kernel=pointwise(real, boolean, wide_unsigned, promote="bool",
                    formulas=[formula("never", dtypes=(wide_unsigned,)),
                              formula("signbit", dtypes=(real, boolean))]),
   variants="function method out",
   grad="none", ref="numpy.signbit", sparse="values", doc="True for negative numbers and -0.0.")
op("hypot(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating),
   grad={"self": "grad * share_of_length(self, result)",
         "other": "grad * share_of_length(other, result)"}, ref="numpy.hypot",
   doc="The length of the vector (self, other): sqrt(self^2 + other^2).")
op("heaviside(Tensor self, Tensor values) -> Tensor",
   kernel=pointwise(real, boolean, check=['check_equal_dtypes("heaviside", self, values)']),
   grad="missing",
   ref="numpy.heaviside",
   doc="The step function: 0 for negative numbers, `values` at 0, 1 for positive ones.")
op("nextafter(Tensor self, Tensor other) -> Tensor",
   kernel=pointwise(floating, formulas=[formula("next_half", dtypes=(half,)),
                                        formula("next_bfloat16", dtypes=(bfloat16,)),
                                        formula("nextafter", dtypes=(floats,))]),
   grad={"self": "grad", "other": _zero}, ref="numpy.nextafter",
   doc="The next number from self towards other.")

# ---- exponentials and logarithms ----

op("exp(Tensor self) -> Tensor", **_complex, grad={"self": "grad * result.conj()"}, ref="numpy.exp",
   doc="e to the power of self.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("exp2(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad * (result.conj() * 0.6931471805599453)"},
   ref="numpy.exp2", doc="2 to the power of self.")
op("expm1(Tensor self) -> Tensor", **_complex, grad={"self": "grad * (result.conj() + 1)"},
   ref="numpy.expm1",
   sparse="values", doc="exp(self) - 1, accurate near 0.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("log(Tensor self) -> Tensor", **_complex, grad={"self": "grad / self.conj()"}, ref="numpy.log",
   doc="The natural logarithm.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("log2(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad / (self.conj() * 0.6931471805599453)"},
   ref="numpy.log2", doc="The logarithm to base 2.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("log10(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad / (self.conj() * 2.302585092994046)"},
   ref="numpy.log10", doc="The logarithm to base 10.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("log1p(Tensor self) -> Tensor", **_complex, grad={"self": "grad / (self + 1).conj()"},
   ref="numpy.log1p",
   sparse="values", doc="log(1 + self), accurate near 0.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("sqrt(Tensor self) -> Tensor", **_complex, grad={"self": "grad / (2 * result.conj())"},
   ref="numpy.sqrt", sparse="values", doc="The square root.", tags=("core",))
op("rsqrt(Tensor self) -> Tensor", **_complex, grad={"self": "-0.5 * grad * result.pow(3).conj()"},
   doc="1 / sqrt(self).",
   autocast={"accelerator": "float32"}, tags=("core",))
op("xlogy(Tensor self, Tensor|Scalar other) -> Tensor", **_floats, python="inplace",
   node={"self.impl()->is_wrapped_number()": 1, "other.impl()->is_wrapped_number()": 2},
   grad={"self": "grad * where(self.eq(0).logical_and(other.le(0)), 1, other).log()",
         "other": "where(self.eq(0).logical_and(other.eq(0)), 0, grad * self / "
                  "where(self.eq(0).logical_and(other.eq(0)), 1, other))"},
   doc="self * log(other), 0 where self is 0.",
   overloads=["xlogy.Scalar_Other(self, Scalar other)", "xlogy.Tensor(self, Tensor other)",
              "xlogy_.Scalar_Other(self, Scalar other)", "xlogy_.Tensor(self, Tensor other)",
              "xlogy.OutScalar_Other(self, Scalar other, out!)",
              "xlogy.OutTensor(self, Tensor other, out!)"])
composite("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", variants="function out",
          doc="`xlogy` of a number.",
          overloads=["xlogy.OutScalar_Self(self, other, out!)"], tags=("pointwise",))
op("logaddexp(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating, complex_),
   grad={"self": "grad * _share_of(self, other, 1).conj()",
         "other": "grad * _share_of(other, self, 1).conj()"},
   variants="function method out", ref="numpy.logaddexp",
   doc="log(exp(self) + exp(other)) without overflow.")
op("logaddexp2(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating),
   grad={"self": "grad * _share_of(self, other, M_LN2)",
         "other": "grad * _share_of(other, self, M_LN2)"},
   variants="function method out", ref="numpy.logaddexp2",
   doc="log2(2^self + 2^other) without overflow.")
_slope = "grad * (result * (1 - result)).conj() * rate"
op("_share_of(Tensor self, Tensor other, float rate) -> Tensor",
   kernel=pointwise(floating, complex_), variants="", own=True,
   grad={"self": _slope, "other": f"-{_slope}"},
   doc="b^self / (b^self + b^other) for the base of which rate is the logarithm.")
op("_exp_difference(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating),
   variants="", own=True, grad={"self": "grad * result", "other": "-grad * result"},
   doc="exp(self - other), 1 for equal infinities.")
op("_weighed(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating), variants="",
   own=True, shown=("parts", "mul(self, other)"),
   grad={"self": "where(self.eq(0).logical_and(other.isinf()), 0, grad * other)",
         "other": "_weighed(self, grad)"},
   doc="self * other, 0 where self is 0 and other infinite.")

# ---- trigonometry ----

op("sin(Tensor self) -> Tensor", **_complex, grad={"self": "grad * self.cos().conj()"},
   ref="numpy.sin", sparse="values", doc="The sine.", tags=("core",))
op("cos(Tensor self) -> Tensor", **_complex, grad={"self": "-grad * self.sin().conj()"},
   ref="numpy.cos", doc="The cosine.", tags=("core",))
op("tan(Tensor self) -> Tensor", **_complex, grad={"self": "grad * (1 + result * result).conj()"},
   ref="numpy.tan", sparse="values", doc="The tangent.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("asin(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad * (1 - self * self).rsqrt().conj()"}, ref="numpy.arcsin",
   sparse="values", doc="The inverse sine.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("acos(Tensor self) -> Tensor", **_complex,
   grad={"self": "-grad * (1 - self * self).rsqrt().conj()"},
   ref="numpy.arccos", doc="The inverse cosine.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("atan(Tensor self) -> Tensor", **_complex, grad={"self": "grad / square_and_one(self).conj()"},
   ref="numpy.arctan",
   sparse="values", doc="The inverse tangent.", tags=("core",))
op("atan2(Tensor self, Tensor other) -> Tensor", **_floats,
   grad={"self": "over_square_length(grad, other, self)",
         "other": "-over_square_length(grad, self, other)"},
   ref="numpy.arctan2", doc="The angle of the point (other, self).",
   autocast={"accelerator": "promote"}, tags=("core",))
op("sinh(Tensor self) -> Tensor", **_complex, grad={"self": "grad * self.cosh().conj()"},
   ref="numpy.sinh", sparse="values", doc="The hyperbolic sine.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("cosh(Tensor self) -> Tensor", **_complex, grad={"self": "grad * self.sinh().conj()"},
   ref="numpy.cosh", doc="The hyperbolic cosine.",
   autocast={"accelerator": "float32"}, tags=("core",))
op("tanh(Tensor self) -> Tensor", **_complex, python="functional",
   grad={"self": "tanh_backward(grad, result)"},
   ref="numpy.tanh", sparse="values", doc="The hyperbolic tangent.", tags=("core",))
op("asinh(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad * asinh_slope(self).conj()"},
   ref="numpy.arcsinh", sparse="values", doc="The inverse hyperbolic sine.", tags=("core",))
op("acosh(Tensor self) -> Tensor", **_complex,
   grad={"self": "grad * ((self - 1).rsqrt() * (self + 1).rsqrt()).conj()"},
   ref="numpy.arccosh", doc="The inverse hyperbolic cosine.", tags=("core",))
op("atanh(Tensor self) -> Tensor", **_complex, grad={"self": "grad / (1 - self * self).conj()"},
   ref="numpy.arctanh",
   sparse="values", doc="The inverse hyperbolic tangent.", tags=("core",))
op("sinc(Tensor self) -> Tensor", **_complex, grad={"self": "sinc_backward(grad, self)"},
   ref="numpy.sinc",
   doc="sin(pi self) / (pi self), 1 at 0.")
composite("deg2rad(Tensor self) -> Tensor", variants="function method out", ref="numpy.deg2rad",
          sparse="values",
          doc="Converts degrees to radians.", tags=("pointwise",))
composite("rad2deg(Tensor self) -> Tensor", variants="function method out", ref="numpy.rad2deg",
          sparse="values",
          doc="Converts radians to degrees.", tags=("pointwise",))

# ---- error function and its like ----

op("erf(Tensor self) -> Tensor", **_floats,
   grad={"self": "grad * (1.1283791670955126 * normal_factor(self))"},
   sparse="values",
   doc="The error function.", tags=("core",))
op("erfc(Tensor self) -> Tensor", **_floats,
   grad={"self": "grad * (-1.1283791670955126 * normal_factor(self))"}, doc="1 - erf(self).")
op("erfinv(Tensor self) -> Tensor", **_floats,
   grad={"self": "grad * (0.886226925452758 * (result * result).exp())"},
   sparse="values", doc="The inverse of erf.",
   autocast={"accelerator": "float32"})
op("sigmoid(Tensor self) -> Tensor", **_complex, python="functional",
   grad={"self": "sigmoid_backward(grad, result)"},
   doc="1 / (1 + exp(-self)).", tags=("core",))
op("_logit(Tensor self) -> Tensor", **_floats, variants="function",
   grad={"self": "grad * where((self < 0).logical_or(self > 1), NAN, "
                 "self.reciprocal() + (1 - self).reciprocal())"},
   doc="log(self / (1 - self)).", own=True)
composite("logit(Tensor self, float? eps=None) -> Tensor", variants="function method out",
          doc="log(self / (1 - self)), self clamped to [eps, 1 - eps].", tags=("pointwise",))

# ---- rounding ----

op("floor(Tensor self) -> Tensor", kernel=pointwise(real, wide_unsigned), grad={"self": _zero},
   ref="numpy.floor",
   sparse="values", doc="The largest integer that is not above self.", tags=("core",))
op("ceil(Tensor self) -> Tensor", kernel=pointwise(real, wide_unsigned), grad={"self": _zero},
   ref="numpy.ceil",
   sparse="values", doc="The smallest integer that is not below self.", tags=("core",))
op("trunc(Tensor self) -> Tensor", kernel=pointwise(real, wide_unsigned), grad={"self": _zero},
   ref="numpy.trunc",
   sparse="values", doc="self rounded towards zero.", tags=("core",))
op("round(Tensor self) -> Tensor", kernel=pointwise(real, wide_unsigned), grad={"self": _zero},
   ref="numpy.round",
   sparse="values", doc="The nearest integer; halves are rounded to even.", tags=("core",))
op("round.decimals(Tensor self, *, int decimals) -> Tensor",
   kernel=pointwise(real, formulas=[
       formula("round", when="decimals == 0"),
       formula("round_decimals", "scale_of(decimals)", when="decimals > 0", dtypes=(floating,)),
       formula("round_tens", "scale_of(decimals)", dtypes=(floating,))]),
   grad={"self": _zero},
   sparse="values", doc="The nearest multiple of 10^-decimals.")
op("frac(Tensor self) -> Tensor", kernel=pointwise(floating), grad={"self": "grad"},
   sparse="values", doc="self - trunc(self).")

# ---- classification ----

_finite = (everything, complex_half, wide_unsigned, float8_e5m2)
for _name, _doc in {"isnan": "True where NaN.", "isinf": "True where infinite.",
                    "isfinite": "True where neither infinite nor NaN."}.items():
    op(f"{_name}(Tensor self) -> Tensor",
       kernel=pointwise(*((stored,) if _name == "isnan" else _finite), promote="bool"),
       variants="function method",
       out="cpp" if _name != "isfinite" else "none", grad="none",
       sparse=None if _name == "isfinite" else "values",
       ref=f"numpy.{_name}", doc=_doc, tags=() if _name == "isfinite" else ("core",))
op("isposinf(Tensor self) -> Tensor",
   kernel=pointwise(real, boolean, wide_unsigned, promote="bool"),
   variants="function method out",
   grad="none", ref="numpy.isposinf", sparse="values", doc="True where self is plus infinity.")
op("isneginf(Tensor self) -> Tensor",
   kernel=pointwise(real, boolean, wide_unsigned, promote="bool"),
   variants="function method out",
   grad="none", ref="numpy.isneginf", sparse="values", doc="True where self is minus infinity.")
composite("isreal(Tensor self) -> Tensor", ref="numpy.isreal",
          doc="True where the imaginary part is 0.")
op("_nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
   kernel=pointwise(floating, check=["largest = largest_number(it.common_dtype())"], formulas=[
       formula("nan_to_num", "nan.value_or(0.0)", "posinf.value_or(largest)",
               "neginf.value_or(-largest)")]),
   variants="function inplace",
   grad={"self": "grad * self.isfinite()"},
   sparse="values",
   doc="`nan_to_num` of floating-point numbers.", own=True)
composite("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> "
          "Tensor", variants="function method out",
          ref="numpy.nan_to_num", sparse="values",
          doc="Replaces NaN by 0 and infinities by the largest and smallest finite numbers, or "
              "all by given values.",
          tags=("pointwise",))
composite("nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) "
          "-> Tensor(a!)",
          variants="function method inplace", doc="`nan_to_num` in place.", tags=("pointwise",))

# ---- comparison, logic, bits ----

for _name, _sign, _dtypes, _numpy in (
    ("eq", "==", (stored,), "equal"),
    ("ne", "!=", (stored,), "not_equal"),
    ("lt", "<", (real, boolean), "less"),
    ("le", "<=", (real, boolean), "less_equal"),
    ("gt", ">", (real, boolean), "greater"),
    ("ge", ">=", (real, boolean), "greater_equal"),
):
    op(f"{_name}(Tensor self, Tensor|Scalar other) -> Tensor",
       kernel=pointwise(*_dtypes, promote="bool"), grad="none",
       ref=f"numpy.{_numpy}", doc=f"True where self {_sign} other.", tags=("core",))
for _name in ("and", "or", "xor"):
    op(f"logical_{_name}(Tensor self, Tensor other) -> Tensor",
       kernel=pointwise(everything, promote="bool"), grad="none",
       ref=f"numpy.logical_{_name}", doc=f"Logical {_name} of what is not 0.",
       tags=("core",))
    op(f"bitwise_{_name}(Tensor self, Tensor|Scalar other) -> Tensor",
       kernel=pointwise(integers, boolean, wide_unsigned), grad="none",
       ref=f"numpy.bitwise_{_name}", doc=f"Bitwise {_name} of integers, logical of bool.",
       tags=("core",))
    composite(f"bitwise_{_name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
              variants="function", out="cpp",
              doc=f"Bitwise {_name} of a number and a tensor.",
              tags=("pointwise.Scalar_Tensor",))
    composite(f"__{_name}__(Tensor self, Tensor|Scalar other) -> Tensor",
              doc=f"Alias of `bitwise_{_name}`.",
              tags=("pointwise",) if _name == "xor" else ())
op("logical_not(Tensor self) -> Tensor", kernel=pointwise(everything, promote="bool"), grad="none",
   ref="numpy.logical_not",
   doc="True where self is 0.", tags=("core",))
op("bitwise_not(Tensor self) -> Tensor", kernel=pointwise(integers, boolean), grad="none",
   ref="numpy.bitwise_not",
   doc="Inverts all bits; of bool, the logical not.", tags=("core",))
for _name in ("left", "right"):
    op(f"bitwise_{_name}_shift(Tensor self, Tensor|Scalar other) -> Tensor",
       kernel=pointwise(integers), grad="none",
       ref=f"numpy.{_name}_shift",
       doc=f"Bits shifted to the {_name}; all are shifted out by counts beyond the width.",
       overloads=[f"bitwise_{_name}_shift{_form}(self, {_operand})" for _form, _operand in (
           (".Tensor", "Tensor other"), (".Tensor_Scalar", "Scalar other"),
           (".Tensor_out", "Tensor other, out!"),
           (".Tensor_Scalar_out", "Scalar other, out!"))]
       + [f"bitwise_{_name}_shift_{_form}(self, {_operand})" for _form, _operand in (
           (".Tensor", "Tensor other"), (".Tensor_Scalar", "Scalar other"))])
    composite(f"bitwise_{_name}_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
              variants="function", out="cpp",
              doc=f"A number shifted to the {_name}.", tags=("pointwise.Scalar_Tensor",))
    composite(f"__{_name[0]}shift__(Tensor self, Tensor|Scalar other) -> Tensor", out="cpp",
              doc=f"Alias of `bitwise_{_name}_shift`.",
              tags=("pointwise.Tensor", "pointwise.Scalar"))
for _name in ("maximum", "minimum"):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", kernel=pointwise(real, boolean),
       variants="function method out", grad={"self": f"{_name}_backward(grad, self, other)",
                                             "other": f"{_name}_backward(grad, other, self)"},
       ref=f"numpy.{_name}", doc=f"The {_name} of two; NaN where either is.", tags=("core",))
op("fmax(Tensor self, Tensor other) -> Tensor", kernel=pointwise(real, boolean),
   variants="function method out",
   grad={"self": "where((self >= other).logical_or(other.isnan()), grad, 0)",
         "other": "where((self >= other).logical_or(other.isnan()), 0, grad)"},
   ref="numpy.fmax", doc="The larger of two numbers; the other one where one is NaN.")
op("fmin(Tensor self, Tensor other) -> Tensor", kernel=pointwise(real, boolean),
   variants="function method out",
   grad={"self": "where((self <= other).logical_or(other.isnan()), grad, 0)",
         "other": "where((self <= other).logical_or(other.isnan()), 0, grad)"},
   ref="numpy.fmin", doc="The smaller of two numbers; the other one where one is NaN.")
op("_clamp(Tensor self, Tensor|Scalar min, Tensor|Scalar max) -> Tensor",
   kernel=pointwise(
       real, check=["check_bound(it, 2)", "check_bound(it, 3)",
                    "low = host_number(it, 2)", "high = host_number(it, 3)"],
       formulas=[formula("clamp_bounded", "low", "high", when="!is_nan(low) && !is_nan(high)",
                         inputs=1),
                 formula("clamp")]),
   variants="function inplace out",
   grad={"self": "where((self >= min).logical_and(self <= max), grad, 0)",
         "min": "where((min < max).logical_and(self < min), grad, 0)",
         "max": "where((self > max).logical_or(max < min), grad, 0)"},
   doc="`clamp` with both bounds.", own=True)
op("clamp_min(Tensor self, Tensor|Scalar min) -> Tensor",
   kernel=pointwise(real, boolean, check=["check_bound(it, 2)"]),
   python="inplace",
   grad={"self": "where(self >= min, grad, 0)", "min": "where(self < min, grad, 0)"},
   doc="Raises elements below min to min.",
   overloads=["clamp_min(self, Scalar min)", "clamp_min.Tensor(self, Tensor min)",
              "clamp_min_(self, Scalar min)", "clamp_min_.Tensor(self, Tensor min)",
              "clamp_min.Tensor_out(self, Tensor min, out!)",
              "clamp_min.out(self, Scalar min, out!)"])
op("clamp_max(Tensor self, Tensor|Scalar max) -> Tensor",
   kernel=pointwise(real, boolean, check=["check_bound(it, 2)"]),
   python="inplace",
   grad={"self": "where(self <= max, grad, 0)", "max": "where(self > max, grad, 0)"},
   doc="Lowers elements above max to max.",
   overloads=["clamp_max(self, Scalar max)", "clamp_max.Tensor(self, Tensor max)",
              "clamp_max_(self, Scalar max)", "clamp_max_.Tensor(self, Tensor max)",
              "clamp_max.Tensor_out(self, Tensor max, out!)",
              "clamp_max.out(self, Scalar max, out!)"])
for _name in ("clamp", "clip"):
    for _overload, _type in (("", "Scalar?"), (".Tensor", "Tensor?")):
        composite(f"{_name}{_overload}(Tensor self, {_type} min=None, {_type} max=None) -> Tensor",
                  ref="numpy.clip",
                  variants="function method out", doc="Clamps each element to [min, max].",
                  tags=("core", "pointwise") if _name == "clamp" else ("pointwise",))
        composite(f"{_name}_{_overload}(Tensor(a!) self, {_type} min=None, {_type} max=None) -> "
                  f"Tensor(a!)",
                  variants="function method inplace", doc=f"`{_name}` in place.",
                  tags=("pointwise",))
op("_where(Tensor condition, Tensor self, Tensor other) -> Tensor",
   kernel=pointwise(stored, promote="rest", formulas=[formula("where", loop="all")]),
   variants="function out",
   grad={"self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
   doc="`where` with a condition that is bool.", own=True)
composite("where.self(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
          ref="numpy.where",
          variants="function method out", doc="self where condition holds, else other.",
          overloads=["where.Scalar(condition, Scalar self, Scalar other)",
                     "where.ScalarOther(condition, Tensor self, Scalar other)",
                     "where.ScalarSelf(condition, Scalar self, Tensor other)",
                     "where.self(condition, Tensor self, Tensor other)",
                     "where.self_out(condition, Tensor self, Tensor other, out!)"],
                     tags=("core.self", "pointwise.self"))

# ---- activations ----

op("relu(Tensor self) -> Tensor", kernel=pointwise(real), python="functional",
   variants="function method inplace",
   grad={"self": "threshold_backward(grad, result, 0)"},
   sparse="values", doc="max(self, 0).", tags=("core",))
op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
   kernel=pointwise(real), out="any_dtype",
   python="functional inplace",
   variants="function inplace out", grad={"self": "threshold_backward(grad, self, threshold)"},
   doc="self where it is above the threshold, else value.")
op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
   kernel=pointwise(real),
   variants="function", grad={"grad_output": "threshold_backward(grad, self, threshold)",
                              "self": _zero},
   doc="The gradient of `threshold`.",
   overloads=["threshold_backward.grad_input(grad_output, self, threshold, grad_input!)"])
op("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
   kernel=pointwise(real, check=["check_limits(self, min_val, max_val)"]),
   python="nn functional",
   variants="function inplace", grad={"self": "hardtanh_backward(grad, self, min_val, max_val)"},
   doc="self clamped to [min_val, max_val].", tags=("core",))
op("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
   **_backward,
   grad={"grad_output": "hardtanh_backward(grad, self, min_val, max_val)", "self": _zero},
   doc="The gradient of `hardtanh`.",
   overloads=["hardtanh_backward.grad_input(grad_output, self, min_val, max_val, grad_input!)"])
composite("relu6(Tensor self) -> Tensor", python="nn", variants="function",
          doc="self clamped to [0, 6].", tags=("pointwise",))
composite("relu6_(Tensor(a!) self) -> Tensor(a!)", python="nn", variants="inplace",
          doc="`relu6` in place.")
op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", **_activation,
   python="nn functional", variants="function inplace",
   grad={"self": "leaky_relu_backward(grad, self, negative_slope)"},
   doc="self, multiplied by negative_slope where it is negative.", tags=("core",))
op("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
   **_backward, out="none",
   grad={"grad_output": "leaky_relu_backward(grad, self, negative_slope)", "self": _zero},
   doc="The gradient of `leaky_relu`.")
op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
   **_activation,
   python="nn functional", variants="function inplace",
   grad={"self": "elu_backward(grad, self, alpha, scale, input_scale)"},
   doc="scale * self, and scale * alpha * expm1(input_scale * self) below 0.", tags=("core",))
op("elu_backward(Tensor grad_output, Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) "
   "-> Tensor", **_backward, out="none",
   grad={"grad_output": "elu_backward(grad, self, alpha, scale, input_scale)",
         "self": "elu_double_backward(grad, grad_output, self, alpha, scale, input_scale)"},
   doc="The gradient of `elu`.")
composite("selu(Tensor self) -> Tensor", variants="function",
          doc="`elu` with the constants of self-normalising networks.", tags=("pointwise",))
composite("selu_(Tensor(a!) self) -> Tensor(a!)", variants="function inplace", python="functional",
          doc="`selu` in place.", tags=("pointwise",))
composite("celu(Tensor self, Scalar alpha=1.0) -> Tensor", variants="function",
          doc="max(0, self) + min(0, alpha * expm1(self / alpha)).", out="cpp",
          tags=("pointwise.default",))
composite("celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)", variants="function inplace",
          python="functional", doc="`celu` in place.", tags=("pointwise",))
op("gelu(Tensor self, *, str approximate='none') -> Tensor",
   kernel=pointwise(floating, check=["check_approximate(approximate)"],
                    formulas=[formula("gelu_tanh", when='approximate == "tanh"'),
                              formula("gelu_erf")]),
   python="nn functional", variants="function out",
   grad={"self": "gelu_backward(grad, self, approximate)"},
   doc="self times the normal distribution function, exact or by tanh.", tags=("core",))
op("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
   kernel=pointwise(floating, formulas=[
       formula("gelu_tanh_backward", when='approximate == "tanh"'), formula("gelu_erf_backward")]),
   variants="function",
   grad={"grad_output": "gelu_backward(grad, self, approximate)",
         "self": "gelu_double_backward(grad, grad_output, self, approximate)"},
   doc="The gradient of `gelu`.",
   overloads=["gelu_backward.grad_input(grad_output, self, approximate, grad_input!)"])
op("silu(Tensor self) -> Tensor", kernel=pointwise(floating, complex_), python="nn",
   variants="function inplace", grad={"self": "silu_backward(grad, self)"},
   doc="self * sigmoid(self).")
op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", kernel=pointwise(floating, complex_),
   variants="function",
   grad={"grad_output": "silu_backward(grad.conj(), self).conj()",
         "self": "silu_double_backward(grad, grad_output, self)"},
   doc="The gradient of `silu`.",
   overloads=["silu_backward.grad_input(grad_output, self, grad_input!)"],
   jvp={"grad_output": "silu_backward(grad_output_t, self)",
        "self": "grad_output * (self.sigmoid() * (1 - self.sigmoid()) * (2 + self * (1 - 2 * "
                "self.sigmoid())) * self_t).conj()"})
op("_swiglu(Tensor gate, Tensor up) -> Tensor", kernel=pointwise(floating), variants="function",
   own=True, grad={"gate": "silu_backward(grad * up, gate)", "up": "grad * silu(gate)"},
   doc="silu(gate) * up, the gated activation of language models.")
op("mish(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "mish_backward(grad, self)"},
   doc="self * tanh(softplus(self)).")
op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward, out="none",
   grad={"grad_output": "mish_backward(grad, self)",
         "self": "mish_double_backward(grad, grad_output, self)"},
   doc="The gradient of `mish`.")
op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", **_activation,
   python="nn functional", variants="function out",
   grad={"self": "softplus_backward(grad, self, beta, threshold)"},
   doc="log(1 + exp(beta * self)) / beta, self above threshold / beta.",
   autocast={"accelerator": "float32"})
op("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
   **_backward,
   grad={"grad_output": "softplus_backward(grad, self, beta, threshold)",
         "self": "softplus_double_backward(grad * grad_output, self, beta, threshold)"},
   doc="The gradient of `softplus`.",
   overloads=["softplus_backward.grad_input(grad_output, self, beta, threshold, grad_input!)"])
op("log_sigmoid(Tensor self) -> Tensor", **_activation, python="nn", variants="function",
   grad={"self": "grad * sigmoid(-self)"}, doc="log(sigmoid(self)).")
composite("logsigmoid(Tensor self) -> Tensor", python="nn functional", variants="function out",
          doc="Alias of `log_sigmoid`.", own=True)
op("hardswish(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "hardswish_backward(grad, self)"}, doc="self * hardsigmoid(self).")
op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward,
   grad={"grad_output": "hardswish_backward(grad, self)",
         "self": "grad * grad_output * (self.abs() < 3) / 3"}, doc="The gradient of `hardswish`.")
op("hardsigmoid(Tensor self) -> Tensor", **_activation, python="nn", variants="function inplace",
   grad={"self": "hardsigmoid_backward(grad, self)"}, doc="(self + 3) / 6 clamped to [0, 1].")
op("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", **_backward,
   grad={"grad_output": "hardsigmoid_backward(grad, self)", "self": _zero},
   doc="The gradient of `hardsigmoid`.",
   overloads=["hardsigmoid_backward.grad_input(grad_output, self, grad_input!)"])
op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", **_activation,
   variants="function method out",
   python="functional",
   grad={"self": "hardshrink_backward(grad, self, lambd)"},
   doc="self, replaced by 0 within [-lambd, lambd].")
op("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
   kernel=pointwise(floating, check=["check_lambda(self, lambd)"]), python="nn functional",
   variants="function out",
   grad={"self": "hardshrink_backward(grad, self, lambd)"}, doc="self moved towards 0 by lambd.")
op("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", **_backward,
   grad={"grad_out": "hardshrink_backward(grad, self, lambd)", "self": _zero},
   doc="The gradient of `hardshrink` and `softshrink`.",
   overloads=["hardshrink_backward.grad_input(grad_out, self, lambd, grad_input!)"])
composite("softsign(Tensor self) -> Tensor", python="nn functional", variants="function",
          doc="self / (1 + |self|).", own=True)
op("_softsign(Tensor self) -> Tensor", **_floats, variants="", own=True,
   shown=("parts", "div(self, add(abs(self), Scalar(1)))"),
   grad={"self": "grad * (1 + self.abs()).reciprocal().square()"},
   doc="`softsign` of real numbers.")
composite("tanhshrink(Tensor self) -> Tensor", python="nn functional", variants="function",
          doc="self - tanh(self).", own=True)
composite("prelu(Tensor self, Tensor weight) -> Tensor", variants="function method",
          python="functional",
          doc="self, multiplied where it is negative by weight, one number or one for each "
              "channel.",
          autocast="lower")
composite("glu(Tensor self, Dim dim=-1) -> Tensor", python="nn functional", variants="function",
          doc="The first half along dim times the sigmoid of the second half.", out="cpp")
op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
   kernel=pointwise(floating, complex_), variants="function",
   grad={"grad_output": "sigmoid_backward(grad, output.conj())",
         "output": "grad.conj() * grad_output * (1 - 2 * output.conj())"},
   doc="The gradient of `sigmoid` from its result.",
   overloads=["sigmoid_backward.grad_input(grad_output, output, grad_input!)"],
   jvp={"grad_output": "sigmoid_backward(grad_output_t, output)",
        "output": "grad_output * ((1 - 2 * output) * output_t).conj()"})
op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
   kernel=pointwise(floating, complex_), variants="function",
   grad={"grad_output": "tanh_backward(grad, output.conj())",
         "output": "grad.conj() * (-2 * output.conj() * grad_output)"},
   doc="The gradient of `tanh` from its result.",
   overloads=["tanh_backward.grad_input(grad_output, output, grad_input!)"],
   jvp={"grad_output": "tanh_backward(grad_output_t, output)",
        "output": "grad_output * (-2 * output * output_t).conj()"})

# ---- losses that are a formula and a mean; reduction is 0 (none), 1 (mean) or 2 (sum) ----

op("_squared_error(Tensor self, Tensor target) -> Tensor", kernel=pointwise(floating, complex_),
   variants="function",
   grad={"self": "grad * (2 * (self - target)).conj()",
         "target": "grad * (2 * (target - self)).conj()"}, doc="(self - target)^2.", own=True)
op("_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * _smooth_l1_slope(self, target, beta)",
         "target": "-grad * _smooth_l1_slope(self, target, beta)"},
   doc="Squared error / (2 beta) below beta, absolute error above.", own=True)
op("_smooth_l1_slope(Tensor self, Tensor target, float beta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * ((self - target).abs() < beta) / beta",
         "target": "-grad * ((self - target).abs() < beta) / beta"},
   doc="The derivative of `_smooth_l1`.", own=True)
op("_huber(Tensor self, Tensor target, float delta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * _huber_slope(self, target, delta)",
         "target": "-grad * _huber_slope(self, target, delta)"},
   doc="Half the squared error below delta, delta times the absolute error above.", own=True)
op("_huber_slope(Tensor self, Tensor target, float delta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * ((self - target).abs() < delta)",
         "target": "-grad * ((self - target).abs() < delta)"},
   doc="The derivative of `_huber`.", own=True)
composite("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", python="nn",
          variants="function out",
          doc="The squared error, reduced by default to its mean.",
          autocast="float32")
composite("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", python="nn",
          variants="function",
          doc="The absolute error, reduced by default to its mean.",
          autocast="float32")
composite("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
          python="nn",
          variants="function out",
          doc="The smooth L1 loss: squared error / (2 beta) below beta, absolute error - beta / "
              "2 above.",
          autocast="float32")
composite("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
          python="nn",
          variants="function out",
          doc="The Huber loss: half the squared error below delta, linear above.",
          autocast="float32")

# ---- comparing tensors ----

composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
          "equal_nan=False) -> Tensor",
          ref="numpy.isclose", doc="True where |self - other| <= atol + rtol * |other|.")
composite("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
          "equal_nan=False) -> bool",
          ref="numpy.allclose",
          doc="Whether |self - other| <= atol + rtol * |other| holds for all elements.",
          tags=("data_dependent_output",))
composite("equal(Tensor self, Tensor other) -> bool", ref="numpy.array_equal",
          doc="Whether sizes and elements are the same.", tags=("data_dependent_output",))

# ---- writing ----

op("fill_(Tensor(a!) self, Tensor|Scalar value) -> Tensor(a!)",
   kernel=update(place="once", shares="elements", stored=(stored,)),
   variants="function method inplace",
   grad={"self": _zero, "value": "grad.sum()"}, doc="Fills the tensor with value.",
   jvp={"self": "zeros_like(self_t)", "value": "value_t"},
   batch={"self": "aligned", "": "self.copy_(with_dims(value, self.dim() - 1))"})
op("zero_(Tensor(a!) self) -> Tensor(a!)",
   kernel=update(place="once", shares="elements", stored=(stored,)),
   variants="function method inplace",
   grad={"self": _zero}, sparse="zero_", doc="Fills the tensor with 0.",
   batch="aligned")

# ---- other names ----

for _alias, _name in {
    "absolute": "abs", "negative": "neg", "arccos": "acos", "arcsin": "asin", "arctan": "atan",
                      "arccosh": "acosh",
    "arcsinh": "asinh", "arctanh": "atanh", "fix": "trunc",
}.items():
    composite(f"{_alias}(Tensor self) -> Tensor", variants="function method out",
              sparse=None if _name in ("acos", "acosh") else "values", doc=f"Alias of `{_name}`.")
    composite(f"{_alias}_(Tensor(a!) self) -> Tensor(a!)", variants="function method inplace",
              doc=f"Alias of `{_name}_`.")
for _alias, _name in {
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne",
}.items():
    composite(f"{_alias}(Tensor self, Tensor|Scalar other) -> Tensor",
              variants="function method out", doc=f"Alias of `{_name}`.")
    composite(f"{_alias}_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)",
              variants="method inplace", doc=f"Alias of `{_name}_`.")
for _alias, _name in {"multiply": "mul", "true_divide": "div"}.items():
    composite(f"{_alias}(Tensor self, Tensor|Scalar other) -> Tensor", python="number_first",
              variants="function method out", doc=f"Alias of `{_name}`.",
              overloads=[f"{_alias}.Tensor(self, other)", f"{_alias}.Scalar(self, Scalar other)",
                         f"{_alias}.out(self, other, out!)"],
              tags=("pointwise.Tensor",) if _name == "div" else ())
    composite(f"{_alias}_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)",
              variants="method inplace", doc=f"Alias of `{_name}_`.",
              overloads=[f"{_alias}_.Tensor(self, other)", f"{_alias}_.Scalar(self, Scalar other)"])
composite("arctan2(Tensor self, Tensor other) -> Tensor", variants="function method out",
          doc="Alias of `atan2`.")
composite("subtract(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
          python="number_first",
          variants="function method out", doc="Alias of `sub`.",
          overloads=["subtract.Tensor(self, other, alpha)",
                     "subtract.Scalar(self, Scalar other, Scalar alpha=1)",
                     "subtract.out(self, other, alpha, out!)"])
composite("subtract_(Tensor(a!) self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor(a!)",
          variants="method inplace", doc="Alias of `sub_`.",
          overloads=["subtract_.Tensor(self, other, alpha)",
                     "subtract_.Scalar(self, Scalar other, Scalar alpha=1)"])
composite("divide(Tensor self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
          python="number_first",
          variants="function method out", doc="Alias of `div`.",
          overloads=["divide.Tensor(self, other)", "divide.Scalar(self, Scalar other)",
                     "divide.Tensor_mode(self, other, *, str? rounding_mode)",
                     "divide.Scalar_mode(self, Scalar other, *, str? rounding_mode)",
                     "divide.out(self, other, out!)",
                     "divide.out_mode(self, other, *, str? rounding_mode, out!)"])
composite("divide_(Tensor(a!) self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor(a!)",
          variants="method inplace", doc="Alias of `div_`.",
          overloads=["divide_.Tensor(self, other)", "divide_.Scalar(self, Scalar other)",
                     "divide_.Tensor_mode(self, other, *, str? rounding_mode)",
                     "divide_.Scalar_mode(self, Scalar other, *, str? rounding_mode)"])
