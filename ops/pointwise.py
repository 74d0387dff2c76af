"""Element by element: arithmetic, functions, choice, other names of ops.

The formulas stand in src/kernels/pointwise.h; checks, conditions and attributes of formulas in
src/ops/pointwise_choice.h; composites and longer derivatives in src/ops/pointwise.cpp. The families
comparison and activation have the same files.
"""

from gen.table import (
    bfloat16,
    boolean,
    complex_,
    complex_half,
    composite,
    everything,
    float8,
    floating,
    floats,
    formula,
    half,
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
_zero = "zeros_like(grad)"

# ---- arithmetic ----

_no_bool = "check_no_bool(self, other)"


def _with_factor(plain, scaled, factor, *dtypes, check=(), loop=""):
    """Two formulas: the plain one where the factor is 1."""
    return pointwise(*dtypes, check=[*check, f"check_{factor}(it, {factor})"],
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
   node={"is_number(other)": 1},
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
   grad={"self": "grad / other.conj()", "other": "-grad * (self / other / other).conj()"},
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
   variants="function inplace", grad={"self": _zero, "other": _zero}, sparse="_div_trunc",
   doc="The quotient, rounded towards zero.", own=True)
op("floor_divide(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("floor_divide", loop="isa"),
   grad={"self": _zero, "other": _zero}, ref="numpy.floor_divide",
   sparse="floor_divide", python="number_first",
   doc="The quotient, rounded down.",
   overloads=["floor_divide(self, other)", "floor_divide.Scalar(self, Scalar other)",
              "floor_divide_.Tensor(self, other)", "floor_divide_.Scalar(self, Scalar other)",
              "floor_divide.out(self, other, out!)",
              "floor_divide.Scalar_out(self, Scalar other, out!)"])
op("remainder(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("remainder", loop="isa"),
   node={"not is_number(other)": 1},
   grad={"self": "grad", "other": "-grad * self.floor_divide(other)"}, ref="numpy.remainder",
   doc="The remainder with the sign of other, as Python's %.", tags=("core",))
composite("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", variants="function",
          doc="self % other.", out="cpp", tags=("pointwise.Scalar_Tensor",))
op("fmod(Tensor self, Tensor|Scalar other) -> Tensor",
   kernel=_division("fmod", loop="isa"),
   node={"not is_number(other)": 1},
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
   node={"not is_number(exponent)": 1, "is_number(self)": 2},
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
         "tensor2": "-scale_gradient(grad * (tensor1 / tensor2 / tensor2).conj(), value.conj())"},
   doc="self + value * tensor1 / tensor2.",
   autocast={"accelerator": "promote"})
op("_standardize(Tensor self, Tensor mean, Tensor std) -> Tensor",
   kernel=pointwise(floating, formulas=[formula("standardize")],
                    check=['check_same_dtype(self, "mean", mean)',
                           'check_same_dtype(self, "std", std)']),
   variants="function inplace", own=True,
   grad={"self": "grad / std", "mean": "-grad / std",
         "std": "-grad * ((self - mean) / std / std)"},
   doc="(self - mean) / std.")
op("lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
   kernel=pointwise(floating, complex_,
                    check=['check_dtype("lerp", set_floating | set_complexes, self)',
                           'check_same_dtype(self, "end", end)',
                           'check_same_dtype(self, "weight", weight)']),
   node={"not is_number(weight)": 1},
   grad={"self": "grad * (1 - number_beside(weight, grad)).conj()", "end": "grad * weight.conj()",
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
   grad={"self": "angle_backward(grad, self)"}, sparse="values",
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
   node={"is_number(other)": 1},
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
   node={"is_number(self)": 1, "is_number(other)": 2},
   grad={"self": "grad * where(self.eq(0).logical_and(other.le(0)), 1, "
                 "number_beside(other, grad)).log()",
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

# ---- choice ----

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

# ---- writing ----

op("fill_(Tensor(a!) self, Tensor|Scalar value) -> Tensor(a!)",
   kernel=update(place="once", shares="elements", stored=(stored,)),
   variants="function method inplace",
   grad={"self": _zero, "value": "grad.sum()"}, sparse="fill_",
   doc="Fills the tensor with value.",
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
              sparse=None if _name in ("acos", "acosh") else "values",
              body=f"{_name}(self)",
              doc=f"Alias of `{_name}`.")
    composite(f"{_alias}_(Tensor(a!) self) -> Tensor(a!)", variants="function method inplace",
              body=f"{_name}_(self)",
              doc=f"Alias of `{_name}_`.")
for _alias, _name in {
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne",
}.items():
    composite(f"{_alias}(Tensor self, Tensor|Scalar other) -> Tensor",
              variants="function method out", body=f"{_name}(self, other)",
              doc=f"Alias of `{_name}`.")
    composite(f"{_alias}_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)",
              variants="method inplace", body=f"{_name}_(self, other)",
              doc=f"Alias of `{_name}_`.")
for _alias, _name in {"multiply": "mul", "true_divide": "div"}.items():
    composite(f"{_alias}(Tensor self, Tensor|Scalar other) -> Tensor", python="number_first",
              variants="function method out", body=f"{_name}(self, other)",
              doc=f"Alias of `{_name}`.",
              overloads=[f"{_alias}.Tensor(self, other)", f"{_alias}.Scalar(self, Scalar other)",
                         f"{_alias}.out(self, other, out!)"],
              tags=("pointwise.Tensor",) if _name == "div" else ())
    composite(f"{_alias}_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)",
              variants="method inplace", body=f"{_name}_(self, other)",
              doc=f"Alias of `{_name}_`.",
              overloads=[f"{_alias}_.Tensor(self, other)", f"{_alias}_.Scalar(self, Scalar other)"])
composite("arctan2(Tensor self, Tensor other) -> Tensor", variants="function method out",
          body="atan2(self, other)",
          doc="Alias of `atan2`.")
composite("subtract(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
          python="number_first",
          variants="function method out", body="sub(self, other, alpha)",
          doc="Alias of `sub`.",
          overloads=["subtract.Tensor(self, other, alpha)",
                     "subtract.Scalar(self, Scalar other, Scalar alpha=1)",
                     "subtract.out(self, other, alpha, out!)"])
composite("subtract_(Tensor(a!) self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor(a!)",
          variants="method inplace", body="sub_(self, other, alpha)",
          doc="Alias of `sub_`.",
          overloads=["subtract_.Tensor(self, other, alpha)",
                     "subtract_.Scalar(self, Scalar other, Scalar alpha=1)"])
composite("divide(Tensor self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
          python="number_first",
          variants="function method out", body="div(self, other, rounding_mode)",
          doc="Alias of `div`.",
          overloads=["divide.Tensor(self, other)", "divide.Scalar(self, Scalar other)",
                     "divide.Tensor_mode(self, other, *, str? rounding_mode)",
                     "divide.Scalar_mode(self, Scalar other, *, str? rounding_mode)",
                     "divide.out(self, other, out!)",
                     "divide.out_mode(self, other, *, str? rounding_mode, out!)"])
composite("divide_(Tensor(a!) self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor(a!)",
          variants="method inplace", body="div_(self, other, rounding_mode)",
          doc="Alias of `div_`.",
          overloads=["divide_.Tensor(self, other)", "divide_.Scalar(self, Scalar other)",
                     "divide_.Tensor_mode(self, other, *, str? rounding_mode)",
                     "divide_.Scalar_mode(self, Scalar other, *, str? rounding_mode)"])
