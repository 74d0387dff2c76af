"""Fourier transforms and special functions at the ends of their ranges, and derivatives that the table's samples leave out."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck


def test_stft_and_back():
    torch.manual_seed(0)
    signal = torch.randn(2, 50, dtype=torch.float64)
    window = torch.hann_window(16, dtype=torch.float64)
    spectrum = torch.stft(signal, 16, 4, window=window, return_complex=True)
    back = torch.istft(spectrum, 16, 4, window=window, length=50)
    np.testing.assert_allclose(back.numpy(), signal.numpy(), atol=1e-12)
    spectrum = spectrum[:, :, :4].detach().requires_grad_()
    assert gradcheck(lambda s: torch.istft(s, 16, 4, window=window), spectrum)


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "irfft", "hfft", "fft2", "irfft2", "hfftn", "ifftn"]
)
def test_gradients_of_complex_inputs(name):
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.complex128, requires_grad=True)
    function = getattr(torch.fft, name)
    assert gradcheck(function, x)
    assert gradgradcheck(function, x)


def test_long_transforms_agree_with_their_definition():
    torch.manual_seed(0)
    for n in (1021, 4096, 30030):
        x = torch.randn(n, dtype=torch.float64)
        np.testing.assert_allclose(torch.fft.fft(x).numpy(), np.fft.fft(x.numpy()), atol=1e-9 * n)
        np.testing.assert_allclose(torch.fft.rfft(x).numpy(), np.fft.rfft(x.numpy()), atol=1e-9 * n)
    many = torch.randn(300, 257)
    np.testing.assert_allclose(torch.fft.fft2(many).numpy(), np.fft.fft2(many.numpy()), atol=1e-2)


def test_frexp_of_exact_powers_and_what_is_not_finite():
    mantissa, exponent = torch.frexp(torch.tensor([0.0, 1.0, -8.0, 1e-40, float("inf")]))
    expected = np.frexp(np.array([0.0, 1.0, -8.0, 1e-40, np.inf], dtype="float32"))
    np.testing.assert_array_equal(mantissa.numpy(), expected[0])
    np.testing.assert_array_equal(exponent[:4].numpy(), expected[1][:4])
    assert exponent.dtype == torch.int32


ENDS = {
    "lgamma": ([0.0, -1.0, np.inf, 1e300], [np.inf, np.inf, np.inf, 6.897755278982137e302]),
    "digamma": ([0.0, -0.0, -2.0, np.inf], [-np.inf, np.inf, np.nan, np.inf]),
    "special.ndtri": ([0.0, 1.0, 2.0, 1e-300], [-np.inf, np.inf, np.nan, -37.0470961]),
    "special.erfcx": ([-30.0, np.inf, 1e10], [np.inf, 0.0, 5.6418958e-11]),
    "special.log_ndtr": ([-1e10, np.inf, 0.0], [-5e19, 0.0, np.log(0.5)]),
    "special.entr": ([0.0, -1.0, np.nan], [0.0, -np.inf, np.nan]),
    "special.bessel_y0": ([0.0, -1.0], [-np.inf, np.nan]),
    "special.modified_bessel_k0": ([0.0, -1.0, np.inf, 800.0], [np.inf, np.nan, 0.0, 0.0]),
    "special.i0e": ([np.inf, -np.inf, np.nan], [0.0, 0.0, np.nan]),
    "special.spherical_bessel_j0": ([0.0, np.inf], [1.0, 0.0]),
    "special.airy_ai": ([200.0, 0.0], [0.0, 0.3550280538878172]),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_of_ranges(name):
    arguments, expected = ENDS[name]
    function = torch.special if "." in name else torch
    x = torch.tensor(arguments, dtype=torch.float64)
    np.testing.assert_allclose(
        getattr(function, name.split(".")[-1])(x).numpy(), expected, rtol=1e-7
    )


def test_zeta_and_incomplete_gamma_at_ends():
    nan, inf = float("nan"), float("inf")

    def values(function, *pairs):
        a, b = zip(*pairs, strict=True)
        return function(
            torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
        ).tolist()

    np.testing.assert_equal(
        values(torch.special.zeta, (1.0, 2.0), (0.5, 2.0), (2.0, 0.0), (2.5, -0.5)),
        [inf, nan, inf, nan],
    )
    np.testing.assert_equal(
        values(torch.igamma, (0.0, 1.0), (2.0, 0.0), (2.0, inf), (-1.0, 1.0), (inf, 1.0)),
        [1.0, 0.0, 1.0, nan, 0.0],
    )
    np.testing.assert_equal(
        values(torch.igammac, (0.0, 1.0), (2.0, 0.0), (2.0, inf)), [0.0, 1.0, 0.0]
    )
    big = values(torch.igamma, (1e5, 1e5), (1e3, 1.1e3))
    np.testing.assert_allclose(big, [0.5004205221, 0.99893213], rtol=1e-5)
