"""Special functions against SciPy, which knows most of them to the last digits."""

import numpy as np
import pytest
from scipy import special

import rushlight

RNG = np.random.default_rng(11)
ALL = np.concatenate([RNG.normal(size=200) * 5, [-30.0, -12.5, -1e-3, 1e-8, 2.0, 25.0]])
POSITIVE = np.concatenate([RNG.gamma(1.0, 5.0, size=200), [1e-6, 0.5, 2.0, 100.0]])
PARTS = np.concatenate([RNG.uniform(size=200), [1e-12, 0.5, 1 - 1e-9]])

ONE = {
    "digamma": (special.digamma, POSITIVE),
    "gammaln": (special.gammaln, POSITIVE),
    "i0": (special.i0, ALL),
    "i0e": (special.i0e, ALL),
    "i1": (special.i1, ALL),
    "i1e": (special.i1e, ALL),
    "bessel_j0": (special.j0, ALL),
    "bessel_j1": (special.j1, ALL),
    "bessel_y0": (special.y0, POSITIVE),
    "bessel_y1": (special.y1, POSITIVE),
    "modified_bessel_k0": (special.k0, POSITIVE),
    "modified_bessel_k1": (special.k1, POSITIVE),
    "scaled_modified_bessel_k0": (special.k0e, POSITIVE),
    "scaled_modified_bessel_k1": (special.k1e, POSITIVE),
    "airy_ai": (lambda x: special.airy(x)[0], ALL),
    "erfcx": (special.erfcx, np.maximum(ALL, -20)),
    "ndtr": (special.ndtr, ALL),
    "log_ndtr": (special.log_ndtr, ALL),
    "ndtri": (special.ndtri, PARTS),
    "entr": (special.entr, POSITIVE),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, np.abs(x)), ALL),
}
TWO = {
    "gammainc": (special.gammainc, POSITIVE, POSITIVE[::-1]),
    "gammaincc": (special.gammaincc, POSITIVE, POSITIVE * 1.1),
    "zeta": (special.zeta, POSITIVE + 1.01, POSITIVE),
    "xlog1py": (special.xlog1py, ALL[: len(POSITIVE)], POSITIVE),
    "chebyshev_polynomial_t": (special.eval_chebyt, np.tanh(ALL), np.arange(len(ALL)) % 13),
    "chebyshev_polynomial_u": (special.eval_chebyu, np.tanh(ALL / 3), np.arange(len(ALL)) % 13),
    "shifted_chebyshev_polynomial_t": (special.eval_sh_chebyt, PARTS, np.arange(len(PARTS)) % 13),
    "hermite_polynomial_h": (special.eval_hermite, ALL / 5, np.arange(len(ALL)) % 9),
    "hermite_polynomial_he": (special.eval_hermitenorm, ALL / 5, np.arange(len(ALL)) % 9),
    "laguerre_polynomial_l": (special.eval_laguerre, POSITIVE, np.arange(len(POSITIVE)) % 9),
    "legendre_polynomial_p": (special.eval_legendre, np.tanh(ALL), np.arange(len(ALL)) % 13),
}


def run(name, *arrays):
    tensors = [rushlight.from_numpy(np.ascontiguousarray(a, dtype="float64")) for a in arrays]
    return getattr(rushlight.special, name)(*tensors).numpy()


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument(name):
    reference, x = ONE[name]
    np.testing.assert_allclose(run(name, x), reference(x), rtol=3e-11, atol=1e-14)
    single = getattr(rushlight.special, name)(rushlight.from_numpy(x.astype("float32")))
    assert single.dtype == rushlight.float32
    expected = reference(x.astype("float32").astype("float64"))
    finite = np.abs(expected) < 1e38
    # ndtr is erfc of a rounded product, which is steep far out.
    tolerance = 1e-4 if name == "ndtr" else 1e-6
    np.testing.assert_allclose(single.numpy()[finite], expected[finite], rtol=tolerance, atol=1e-37)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arguments(name):
    reference, a, b = TWO[name]
    order = (b, a) if "polynomial" in name else (a, b)
    np.testing.assert_allclose(run(name, a, b), reference(*order), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n):
    x = rushlight.from_numpy(POSITIVE)
    np.testing.assert_allclose(
        rushlight.polygamma(n, x).numpy(), special.polygamma(n, POSITIVE), rtol=1e-11
    )


# Ten thousand points over all magnitudes; relative errors, for these never cross zero.
WIDE = 10 ** np.random.default_rng(5).uniform(-8, 6, size=10_000)
SHAPES = 10 ** np.random.default_rng(6).uniform(-3, 2.5, size=10_000)
TO_THE_LAST_DIGITS = {
    "scaled_modified_bessel_k0": (special.k0e, (WIDE,), 2e-15),
    "scaled_modified_bessel_k1": (special.k1e, (WIDE,), 2e-15),
    "airy_ai": (lambda x: special.airy(x)[0], (np.clip(WIDE, 0, 100),), 5e-13),
    "gammaincc": (special.gammaincc, (SHAPES, (SHAPES + 1) * (1 + WIDE % 3)), 1e-12),
    "gammainc": (special.gammainc, (SHAPES, (SHAPES + 1) / (1 + WIDE % 3)), 1e-12),
}


@pytest.mark.parametrize("name", TO_THE_LAST_DIGITS)
def test_ten_thousand_points(name):
    reference, arguments, close = TO_THE_LAST_DIGITS[name]
    np.testing.assert_allclose(run(name, *arguments), reference(*arguments), rtol=close, atol=0)


@pytest.mark.parametrize("a", [1e8, 3e9, 1e12, 1e30])
def test_incomplete_gamma_functions_of_large_numbers(a):
    """Within some deviations (at -4.5 SciPy leaves its expansion and loses digits); far away 0 and 1."""
    x = a + np.linspace(-4, 6, 101) * np.sqrt(a)
    upper, lower = run("gammaincc", np.full(101, a), x), run("gammainc", np.full(101, a), x)
    np.testing.assert_allclose(upper, special.gammaincc(a, x), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(upper + lower, 1, rtol=1e-15)
    far = np.array([a / 2, 2 * a])
    assert run("gammaincc", np.full(2, a), far).tolist() == [1, 0]


@pytest.mark.parametrize("s", [200.0, 1e30, 1e300])
def test_zeta_of_large_exponents(s):
    """The first term decides: none is left from 10 on; below 0 the largest is infinite."""
    q = [10.0, 1e30, 2.5e300, 0.02, -0.02]
    got = run("zeta", np.full(5, s), np.array(q))
    assert got.tolist() == pytest.approx([10.0**-s if s < 300 else 0, 0, 0, np.inf, np.inf])
