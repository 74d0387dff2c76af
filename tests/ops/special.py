"""Samples of special functions: arguments in their domains, small and large."""


def _forms(make):
    return [f"{make}(3, 4)", f"{make}()", f"{make}(0, 2)", f"{make}(37)"]


_POSITIVE = [*_forms("pos"), "same(0.01, 0.5, 4.0, 30.0, 200.0)"]
_ALL = [*_forms("x"), "same(-5.0, -0.1, 0.1, 8.0, 20.0)"]
_PAIRS = ["pos(3, 4), pos(3, 4)", "pos(3, 1), pos(4)", "same(0.5, 3.0, 50.0), same(0.4, 9.0, 51.0)"]
_POLYNOMIAL = ["unit(3, 4), same(0.0, 1.0, 2.0, 7.0)", "same(-1.0, 1.0, 0.3), same(3.0, 4.0, 12.0)", "unit(3), 5", "0.5, pos(3)"]

_SOME = ["pos(3, 4)", "pos()", "pos(0, 2)"]

SAMPLES = dict.fromkeys(("digamma", "lgamma", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_k0", "special_modified_bessel_k1", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_entr"), _POSITIVE)
SAMPLES |= dict.fromkeys(("i0", "special_i0e", "special_i1", "special_i1e", "special_erfcx", "special_log_ndtr", "special_ndtr", "special_bessel_j0", "special_bessel_j1", "special_airy_ai", "special_spherical_bessel_j0", "special_modified_bessel_i0", "special_modified_bessel_i1"), _ALL)
SAMPLES |= {f"special_{shift}chebyshev_polynomial_{kind}": _POLYNOMIAL for shift in ("", "shifted_") for kind in "tuvw"}
SAMPLES |= {f"special_{name}": _POLYNOMIAL for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")}
SAMPLES |= {
    "_polygamma": ["pos(3, 4), 1", "pos(3), 3"],
    "polygamma": ["0, pos(3, 4)", "1, pos(3, 4)", "2, pos(3)", "5, pos()"],
    "mvlgamma": ["pos(3, 4) + 1, 2", "pos(3) + 2, 3", "pos(), 1"],
    "igamma": _PAIRS,
    "igammac": _PAIRS,
    "_standard_gamma_grad": [*_PAIRS, "same(0.01, 0.5, 2.0, 200.0), same(1e-6, 4.0, 0.1, 210.0)"],
    "_dirichlet_grad": ["same(0.01, 0.5, 0.99), same(0.5, 20.0, 3.0), same(1.5, 40.0, 4.0)", "unit(3, 4).abs(), pos(3, 4), pos(3, 4) + 9"],
    "special_zeta": ["pos(3, 4) + 1.5, pos(3, 4)", "pos(3) + 1.5, 2", "same(2.0, 3.0), same(-0.5, -1.5)"],
    **dict.fromkeys(("special_gammainc", "special_gammaincc"), _PAIRS),
    **dict.fromkeys(("special_digamma", "special_gammaln", "special_log1p", "special_psi", "special_exp2", "special_expm1", "special_i0", "special_sinc", "special_expit", "special_erf", "special_erfc"), _SOME),
    "special_erfinv": ["unit(3, 4)", "unit()"],
    "special_logit": ["same(0.2, 0.5, 0.9)", "same(0.2, 0.5, 0.9), 0.01"],
    "special_logsumexp": ["x(3, 4), 1", "x(3, 4), [0, 1], True"],
    "special_multigammaln": ["pos(3, 4) + 1, 2"],
    "special_polygamma": ["0, pos(3, 4)", "2, pos(3)"],
    "special_round": ["x(3, 4)", "x(3), decimals=2"],
    "special_log_softmax": ["x(3, 4), 1", "x(3, 4), 0, dtype=m.float64"],
    "special_softmax": ["x(3, 4), 1", "x(3, 4), 0, m.float64"],
    "special_xlogy": ["pos(3, 4), pos(4)", "x(3), 2.0"],
    "special_xlogy.self_scalar": ["2.0, pos(3)"],
    "special_zeta.self_scalar": ["2.5, pos(3)"],
    "special_ndtri": ["same(0.01, 0.2, 0.5, 0.7, 0.99)"],
    "special_xlog1py": ["pos(3, 4), pos(4)", "x(3), 2", "same(0.0, 1.0), same(0.5, 2.0)"],
    "special_xlog1py.self_scalar": ["2, pos(3)"],
    "gcd": ["x(3, 4, low=-40, high=60), x(3, 4, low=-20, high=30)", "x(3), x(3, 1)", "x(0), x(1)"],
    "lcm": ["x(3, 4, low=-10, high=12), x(3, 4, low=-10, high=12)", "x(3), x(3, 1)"],
    "frexp": ["x(3, 4)", "x()", "x(0, 2)", "same(0.7, 3.0, -9.0)"],
    "ldexp": ["x(3, 4), ints(4, high=5)", "x(3), ints(3, low=-3, high=3)"],
}
DTYPES = dict.fromkeys(("gcd", "lcm"), "integers") | {"frexp": "floats", "ldexp": "floating"}
# 16-bit floats cannot hold some of these arguments.
DTYPES |= dict.fromkeys([name for name in SAMPLES if name not in DTYPES], "floats")
_POLYNOMIALS = {"hermite_polynomial_h": "eval_hermite", "hermite_polynomial_he": "eval_hermitenorm", "laguerre_polynomial_l": "eval_laguerre",
                "legendre_polynomial_p": "eval_legendre", "chebyshev_polynomial_t": "eval_chebyt", "chebyshev_polynomial_u": "eval_chebyu",
                "shifted_chebyshev_polynomial_t": "eval_sh_chebyt", "shifted_chebyshev_polynomial_u": "eval_sh_chebyu"}
_SAME = {"lgamma": "gammaln", "digamma": "digamma", "special_i0e": "i0e", "special_i1": "i1", "special_i1e": "i1e", "special_bessel_j0": "j0",
         "special_bessel_j1": "j1", "special_bessel_y0": "y0", "special_bessel_y1": "y1", "special_modified_bessel_i0": "i0",
         "special_modified_bessel_i1": "i1", "special_modified_bessel_k0": "k0", "special_modified_bessel_k1": "k1", "special_erfcx": "erfcx",
         "special_ndtr": "ndtr", "special_log_ndtr": "log_ndtr", "special_ndtri": "ndtri", "special_entr": "entr", "i0": "i0"}
REFERENCES = {name: f"scipy.special.{function}(self)" for name, function in _SAME.items()}
REFERENCES |= {f"special_{name}": f"scipy.special.{function}(np.asarray(n).astype(int), x)" for name, function in _POLYNOMIALS.items()}
REFERENCES |= {
    f"special_{shift}chebyshev_polynomial_{kind}": f"scipy.special.eval_chebyu(np.asarray(n).astype(int), {x}) {sign} scipy.special.eval_chebyu(np.asarray(n).astype(int) - 1, {x})"
    for shift, x in (("", "x"), ("shifted_", "2 * x - 1"))
    for kind, sign in (("v", "-"), ("w", "+"))
}
REFERENCES |= {
    **dict.fromkeys(("polygamma", "_polygamma"), "scipy.special.polygamma(n, self)"),
    "mvlgamma": "p * (p - 1) / 4 * np.log(np.pi) + sum(scipy.special.gammaln(self - k / 2) for k in range(p))",
    "igamma": "scipy.special.gammainc(self, other)",
    "igammac": "scipy.special.gammaincc(self, other)",
    **dict.fromkeys(("special_zeta", "special_zeta.self_scalar"), "scipy.special.zeta(self, other)"),
    **dict.fromkeys(("special_xlog1py", "special_xlog1py.self_scalar"), "scipy.special.xlog1py(self, other)"),
    "special_scaled_modified_bessel_k0": "scipy.special.k0e(x)",
    "special_scaled_modified_bessel_k1": "scipy.special.k1e(x)",
    "special_spherical_bessel_j0": "np.sinc(x / np.pi)",
    "special_airy_ai": "scipy.special.airy(x)[0]",
    "frexp": "np.frexp(self)",
}
ERRORS = {
    "polygamma": [("-1, x(2)", RuntimeError, r"polygamma\(n, x\) does not support negative n.")],
    "mvlgamma": [("x(2), 0", RuntimeError, "p has to be 1 or more, not 0")],
    "frexp": [("x(2).long()", RuntimeError, r"torch.frexp\(\) only supports floating-point dtypes")],
    "gcd": [("m.ones(2), m.ones(2)", RuntimeError, "not implemented for 'Float'")],
    "lgamma": [("m.ones(2, dtype=m.complex64)", RuntimeError, "not implemented for 'ComplexFloat'")],
}
_NO_FIRST = ("igamma", "igammac", "special_gammainc", "special_gammaincc", "special_zeta", "_standard_gamma_grad")
SKIPS = {(name, "grad"): "PyTorch has no derivative by the first argument either" for name in _NO_FIRST}
SKIPS |= {("special_zeta.self_scalar", "gradgrad"): "zeta has no derivative by its first argument"}
_approximate = "PyTorch's approximation is good to 1e-8: tests/python/test_special.py holds these to SciPy's"
SKIPS |= {(name, "parity"): _approximate for name in ("polygamma", "_polygamma", "igamma", "igammac", "special_gammainc", "special_gammaincc", "special_bessel_j0", "special_bessel_j1",
                                                      "special_bessel_y0", "special_bessel_y1")}
SKIPS |= {(name, "parity"): "PyTorch's approximations are good to 1e-3" for name in ("_standard_gamma_grad", "_dirichlet_grad")}
_infinite = "SciPy gives NaN at infinity, not the limit"
SKIPS |= {(name, "special"): _infinite for name in ("i0", "special_i1", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
                                                    "special_spherical_bessel_j0", "special_airy_ai", "special_modified_bessel_i0", "special_modified_bessel_i1")}
SKIPS |= {(name, "special"): "infinities and NaN come out of recurrences in other places than of SciPy's" for name in SAMPLES if "polynomial" in name}
SKIPS |= {(name, "special"): "lgamma is infinite at both ends" for name in ("lgamma", "mvlgamma")}
SKIPS |= {(name, "special"): "SciPy asks first whether the second argument is a pole" for name in ("special_zeta",)}
SKIPS |= {(name, "backward"): "no derivative by the first argument" for name in (*_NO_FIRST, "special_zeta.self_scalar")}
