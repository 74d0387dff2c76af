"""Comparison, logic and bits, bounds; what numbers are."""

from gen.table import (
    boolean,
    complex_half,
    composite,
    everything,
    float8_e5m2,
    floating,
    formula,
    integers,
    op,
    pointwise,
    real,
    stored,
    wide_unsigned,
)

_backward = dict(kernel=pointwise(floating), variants="function")

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
              variants="function", out="cpp", body=f"bitwise_{_name}(make_number(self), other)",
              doc=f"Bitwise {_name} of a number and a tensor.",
              tags=("pointwise.Scalar_Tensor",))
    composite(f"__{_name}__(Tensor self, Tensor|Scalar other) -> Tensor",
              body=f"bitwise_{_name}(self, other)",
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
              body=f"bitwise_{_name}_shift(make_number(self), other)",
              doc=f"A number shifted to the {_name}.", tags=("pointwise.Scalar_Tensor",))
    composite(f"__{_name[0]}shift__(Tensor self, Tensor|Scalar other) -> Tensor", out="cpp",
              body=f"bitwise_{_name}_shift(self, other)",
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
       formulas=[formula("clamp_bounded", "low", "high", inputs=1,
                         when="not is_nan(low) and not is_nan(high)"),
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
