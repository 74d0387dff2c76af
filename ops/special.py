"""Special functions: gamma, Bessel and error functions, orthogonal polynomials, greatest common
divisors.

The formulas stand in src/kernels/special.h, composites in src/ops/special.cpp. Python has those
named special_… in `rushlight.special`.
"""

from gen.table import composite, custom, floating, integers, op, pointwise

_floats = dict(kernel=pointwise(floating, promote="float"))
_function = dict(kernel=pointwise(floating, promote="float"), variants="function out")
# For which PyTorch has no derivative either.
_plain = dict(kernel=pointwise(floating, promote="float"), variants="function out", grad="none")

# ---- gamma functions ----

op("lgamma(Tensor self) -> Tensor", **_floats, grad={"self": "grad * self.digamma()"},
   doc="The logarithm of |gamma(self)|.")
op("digamma(Tensor self) -> Tensor", **_floats, grad={"self": "grad * polygamma(1, self)"},
   doc="The derivative of the logarithm of gamma.")
op("_polygamma(Tensor self, int n) -> Tensor", kernel=pointwise(floating, promote="float"),
   variants="function inplace",
   grad={"self": "grad * polygamma(n + 1, self)"}, doc="`polygamma` for an n that is not negative.",
   own=True)
composite("polygamma(int n, Tensor self) -> Tensor", variants="function method out",
          doc="The n-th derivative of digamma.", tags=("pointwise",))
composite("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", variants="method inplace",
          doc="`polygamma` in place.", tags=("pointwise",))
composite("mvlgamma(Tensor self, int p) -> Tensor", variants="function method out",
          doc="The logarithm of the multivariate gamma function of dimension p.",
          tags=("pointwise",))
composite("mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)", variants="method inplace",
          doc="`mvlgamma` in place.", tags=("pointwise",))
op("igamma(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating),
   grad={"self": "no_derivative(\"igamma: input\")",
         "other": "grad * gamma_density(self, other)"},
   doc="The regularised lower incomplete gamma function P(self, other).")
op("igammac(Tensor self, Tensor other) -> Tensor", kernel=pointwise(floating),
   grad={"self": "no_derivative(\"igammac: input\")",
         "other": "-grad * gamma_density(self, other)"},
   doc="The regularised upper incomplete gamma function Q(self, other).")
op("special_zeta(Tensor self, Tensor|Scalar other) -> Tensor", **_function,
   grad={"self": "no_derivative(\"zeta\")",
         "other": "grad * -self * special_zeta(self + 1, other)"},
   doc="The Hurwitz zeta function: the sum of (other + k)^-self over k >= 0.",
   overloads=["special_zeta(self, Tensor other)", "special_zeta.other_scalar(self, Scalar other)",
              "special_zeta.other_scalar_out(self, Scalar other, out!)",
              "special_zeta.out(self, Tensor other, out!)"])
composite("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", variants="function out",
          doc="`zeta` of a number.", tags=("pointwise",))

# Derivatives of random numbers by parameters, src/kernels/gamma_random.h.
op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
   kernel=pointwise(floating, check=['check_same_dtype(self, "output", output)']),
   variants="function",
   grad={"self": "no_derivative(\"_standard_gamma_grad\")",
         "output": "no_derivative(\"_standard_gamma_grad\")"},
   doc="How fast numbers drawn by `_standard_gamma` grow with their shapes.")
op("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
   kernel=pointwise(floating, check=['check_same_dtype(x, "alpha", alpha)',
                                     'check_same_dtype(x, "total", total)']),
   variants="function", grad="missing",
   doc="How fast a beta number x of the parameters alpha and total - alpha grows with alpha, "
       "divided by 1 - x.")

# ---- Bessel functions ----
# Of large arguments the derivatives of scaled ones are small differences of large numbers.

op("i0(Tensor self) -> Tensor", **_floats, grad={"self": "grad * special_i1(self)"}, ref="numpy.i0",
   doc="The modified Bessel function of the first kind, of order 0.")
op("special_i0e(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * (special_i1e(self.to(kFloat64)) - self.sgn() * "
                 "special_i0e(self.to(kFloat64)))"},
   doc="exp(-|self|) i0(self).")
op("special_i1(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * (i0(self) - i1_over(self, result))"},
   doc="The modified Bessel function of the first kind, of order 1.")
op("special_i1e(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * (special_i0e(self.to(kFloat64)) - special_i1e(self.to(kFloat64)) * "
                 "self.sgn() - i1e_over(self, result))"},
   doc="exp(-|self|) i1(self).")
for _name, _doc in {
    "bessel_j0": "The Bessel function of the first kind, of order 0.",
    "bessel_j1": "The Bessel function of the first kind, of order 1.",
    "bessel_y0": "The Bessel function of the second kind, of order 0.",
    "bessel_y1": "The Bessel function of the second kind, of order 1.",
    "modified_bessel_k0": "The modified Bessel function of the second kind, of order 0.",
    "modified_bessel_k1": "The modified Bessel function of the second kind, of order 1.",
}.items():
    op(f"special_{_name}(Tensor self) -> Tensor", **_plain, doc=_doc)
for _name, _doc in {
    "scaled_modified_bessel_k0": "exp(x) modified_bessel_k0(x).",
    "scaled_modified_bessel_k1": "exp(x) modified_bessel_k1(x).",
    "spherical_bessel_j0": "sin(x) / x.",
    "airy_ai": "The Airy function Ai.",
}.items():
    op(f"special_{_name}(Tensor x) -> Tensor", **_plain, doc=_doc)
composite("special_modified_bessel_i0(Tensor self) -> Tensor", variants="function out", grad="none",
          doc="Alias of `i0`.", tags=("pointwise",))
composite("special_modified_bessel_i1(Tensor self) -> Tensor", variants="function out", grad="none",
          doc="Alias of `special.i1`.", tags=("pointwise",))

# ---- what stands elsewhere, under the names of rushlight.special ----

for _alias, _name in {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "gammaln": "lgamma", "i0": "i0", "log1p": "log1p",
    "psi": "digamma", "sinc": "sinc",
}.items():
    composite(f"special_{_alias}(Tensor self) -> Tensor", variants="function out",
              doc=f"Alias of `{_name}`.")
for _signature, _name in (
    ("gammainc(Tensor self, Tensor other)", "igamma"),
    ("gammaincc(Tensor self, Tensor other)", "igammac"),
    ("logit(Tensor self, float? eps=None)", "logit"),
    ("logsumexp(Tensor self, Dim[1] dim, bool keepdim=False)", "logsumexp"),
    ("multigammaln(Tensor self, int p)", "mvlgamma"),
    ("polygamma(int n, Tensor self)", "polygamma"),
    ("round(Tensor self, *, int decimals=0)", "round"),
):
    composite(f"special_{_signature} -> Tensor", variants="function out",
              doc=f"Alias of `{_name}`.")
composite("special_log_softmax(Tensor self, Dim dim, *, ScalarType? dtype=None) -> Tensor",
          variants="function", doc="Alias of `log_softmax`.", autocast={"accelerator": "float32"})
composite("special_softmax(Tensor self, Dim dim, ScalarType? dtype=None) -> Tensor",
          variants="function", doc="Alias of `softmax`.", autocast={"accelerator": "float32"})
composite("special_xlogy(Tensor self, Tensor|Scalar other) -> Tensor", variants="function out",
          doc="Alias of `xlogy`.",
          overloads=["special_xlogy(self, Tensor other)",
                     "special_xlogy.other_scalar(self, Scalar other)",
                     "special_xlogy.out(self, Tensor other, out!)",
                     "special_xlogy.other_scalar_out(self, Scalar other, out!)"])
composite("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", variants="function out",
          doc="`xlogy` of a number.")

# ---- error functions ----

op("special_erfcx(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * erfcx_slope(self, result)"},
   doc="exp(self^2) erfc(self).")
composite("special_ndtr(Tensor self) -> Tensor", variants="function out",
          doc="The normal distribution function.")
op("special_log_ndtr(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * log_ndtr_slope(self, result)"},
   doc="The logarithm of `ndtr`.")
op("special_ndtri(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * (0.5 * result * result).exp() * 2.5066282746310002"},
   doc="The inverse of `ndtr`.")

# ---- entropy and logarithms ----

op("special_entr(Tensor self) -> Tensor", **_function,
   grad={"self": "grad * (-where(self < 0, NAN, self).log() - 1)"},
   doc="-self log(self), 0 at 0, minus infinity below.")
op("special_xlog1py(Tensor self, Tensor|Scalar other) -> Tensor", **_function,
   grad={"self": "grad * where(self.eq(0).logical_and(other.le(-1)), 0, "
                 "number_beside(other, grad)).log1p()",
         "other": "where(self.eq(0).logical_and(other.eq(-1)), 0, grad * self / "
                  "where(self.eq(0).logical_and(other.eq(-1)), 1, other + 1))"},
   doc="self * log(1 + other), 0 where self is 0.",
   overloads=["special_xlog1py(self, Tensor other)",
              "special_xlog1py.other_scalar(self, Scalar other)",
              "special_xlog1py.other_scalar_out(self, Scalar other, out!)",
              "special_xlog1py.out(self, Tensor other, out!)"])
composite("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
          variants="function out",
          doc="`xlog1py` of a number.", tags=("pointwise",))

# ---- orthogonal polynomials; n is the degree ----

for _name, _doc in {
    **{f"{_shift}chebyshev_polynomial_{_kind}": f"The {_shift.strip('_') or 'plain'} Chebyshev "
                                                f"polynomial of kind {_kind.upper()}."
       for _shift in ("", "shifted_") for _kind in "tuvw"},
    "hermite_polynomial_h": "The physicists' Hermite polynomial.",
    "hermite_polynomial_he": "The probabilists' Hermite polynomial.",
    "laguerre_polynomial_l": "The Laguerre polynomial.",
    "legendre_polynomial_p": "The Legendre polynomial.",
}.items():
    op(f"special_{_name}(Tensor|Scalar x, Tensor|Scalar n) -> Tensor", **_plain, doc=_doc,
       overloads=[f"special_{_name}{_form}({_operands})" for _form, _operands in (
           ("", "Tensor x, Tensor n"), (".x_scalar", "Scalar x, Tensor n"),
           (".n_scalar", "Tensor x, Scalar n"),
           (".out", "Tensor x, Tensor n, out!"), (".x_scalar_out", "Scalar x, Tensor n, out!"),
           (".n_scalar_out", "Tensor x, Scalar n, out!"))])

# ---- integers, parts of floating-point numbers ----

op("gcd(Tensor self, Tensor other) -> Tensor", kernel=pointwise(integers), grad="none",
   python="inplace",
   ref="numpy.gcd", doc="The greatest common divisor.")
op("lcm(Tensor self, Tensor other) -> Tensor", kernel=pointwise(integers), grad="none",
   python="inplace",
   ref="numpy.lcm", doc="The least common multiple.")
op("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", kernel=custom(place="once"),
   nondiff=("exponent",),
   grad={"self": "ldexp(grad_mantissa, -exponent)"},
   doc="mantissa * 2^exponent = self, with 1/2 <= |mantissa| < 1.",
   overloads=["frexp.Tensor(self)", "frexp.Tensor_out(self, mantissa!, exponent!)"],
   jvp="ldexp(self_t, -exponent)", batch="leading", tags=("pointwise",))
composite("ldexp(Tensor self, Tensor other) -> Tensor", variants="function method out",
          ref="numpy.ldexp", doc="self * 2^other.",
          overloads=["ldexp.Tensor(self, other)"], tags=("pointwise",))
composite("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
          variants="function method inplace", doc="`ldexp` in place.", tags=("pointwise",))
