"""Samples of Fourier transforms: even, odd and prime lengths, cut and filled up, every normalisation."""

_ONE = ["x(8)", "x(7)", "x(3, 10)", "x(4, 3), dim=0", "x(2, 5), 8", "x(2, 5), 3, -1, 'ortho'", "x(6), norm='forward'", "x(1)", "x(31)", "x(0, 4)"]
_TWO = ["x(4, 6)", "x(2, 3, 5)", "x(4, 6), (3, 8)", "x(4, 6), norm='ortho'", "x(3, 4, 5), dim=(0, 2)", "x(3, 4, 5), norm='forward'"]
_MANY = [*_TWO[:4], "x(2, 3, 4, 2)", "x(3, 4, 5), dim=(2, 0)", "x(3, 4, 5), (2, -1)", "x(6)"]
_HALF = ["x(5)", "x(4)", "x(3, 6)", "x(4, 3), dim=0", "x(2, 5), 7", "x(2, 5), 3, -1, 'ortho'", "x(6), norm='forward'", "x(2)"]

SAMPLES = {}
for _name in ("fft", "ifft", "rfft", "ihfft"):
    SAMPLES |= {f"fft_{_name}": _ONE, f"fft_{_name}2": _TWO, f"fft_{_name}n": _MANY}
for _name in ("irfft", "hfft"):
    SAMPLES |= {f"fft_{_name}": _HALF, f"fft_{_name}2": _TWO, f"fft_{_name}n": _MANY}
SAMPLES |= {
    "_fft_c2c": ["x(3, 4), (1,), 0, True", "x(3, 4), (0, 1), 1, False", "x(3, 4), (), 0, True"],
    "_fft_r2c": ["x(3, 4), (0, 1), 0, True", "x(3, 5), (1,), 1, False"],
    "_fft_c2r": ["x(3, 4), (0, 1), 2, 6", "x(3, 4), (1,), 0, 7"],
    "fft_fftfreq": ["5", "6, 0.5", "4, dtype=m.float64"],
    "fft_rfftfreq": ["5", "6, 0.5"],
    "fft_fftshift": ["x(5)", "x(4, 5)", "x(4, 5), 0", "x(2, 3, 4), (0, 2)"],
    "fft_ifftshift": ["x(5)", "x(4, 5)", "x(4, 5), 0"],
    "stft": ["x(20), 8, return_complex=True", "x(2, 20), 8, 3, return_complex=True", "x(20), 8, window=m.hann_window(8, dtype=dtype), return_complex=True",
             "x(20), 8, 4, 6, m.hann_window(6, dtype=dtype), False, return_complex=True", "x(20), 8, 4, normalized=True, onesided=False, return_complex=True"],
    "istft": ["x(5, 6), 8, 2", "x(2, 5, 6), 8, 2, window=weights(8)", "x(8, 6), 8, 4, length=20", "x(5, 6), 8, 2, center=False, normalized=True"],
    **{f"{_name}_window": ["8", "7, False", "1", "0", "5, dtype=m.float64"] for _name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
}
SAMPLES["hamming_window"] = [*SAMPLES["hamming_window"], "6, True, 0.5, 0.4"]
SAMPLES["kaiser_window"] = [*SAMPLES["kaiser_window"], "6, True, 8.0"]
_complex_only = {"_fft_c2c", "_fft_c2r", "istft"}
DTYPES = {name: "complex" for name in SAMPLES if name.split("fft_")[-1].removesuffix("2").removesuffix("n") in ("fft", "ifft", "irfft", "hfft", "fftshift")}
DTYPES |= dict.fromkeys(_complex_only, "complexes")
DTYPES |= dict.fromkeys([name for name in SAMPLES if name.endswith("_window")], "float32")
# By `normalization` of the kernels.
_FORWARD = "('backward', 'ortho', 'forward')[normalization]"
_BACKWARD = "('forward', 'ortho', 'backward')[normalization]"
REFERENCES = {f"fft_{name}{n}": f"scipy.fft.{name}{n}(self, points(self, s, {name in ('irfft', 'hfft')}), axes(dim), norm)" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for n in ("2", "n")}
REFERENCES |= {
    "_fft_c2c": f"np.fft.fftn(self, None, dim, {_FORWARD}) if forward else np.fft.ifftn(self, None, dim, {_BACKWARD})",
    "_fft_r2c": f"(np.fft.rfftn if onesided else np.fft.fftn)(self, None, dim, {_FORWARD})",
    "_fft_c2r": f"np.fft.irfftn(self, [*(self.shape[d] for d in dim[:-1]), last_dim_size], dim, {_BACKWARD})",
    "fft_fftfreq": "np.fft.fftfreq(n, d)",
    "fft_rfftfreq": "np.fft.rfftfreq(n, d)",
    **{f"{name}_window": f"scipy.signal.windows.{name}(window_length, sym=not periodic)" for name in ("bartlett", "blackman", "hann")},
    "hamming_window": "alpha - beta / 0.46 * (0.54 - scipy.signal.windows.hamming(window_length, sym=not periodic)) if window_length > 1 else np.ones(window_length)",
    "kaiser_window": "scipy.signal.windows.kaiser(window_length, beta, sym=not periodic)",
}
ERRORS = {
    "fft_fft": [
        ("x(4), norm='x'", RuntimeError, 'Invalid normalization mode: "x"'),
        ("x(4), 0", RuntimeError, r"Invalid number of data points \(0\) specified"),
        ("x()", IndexError, "Dimension specified as -1 of a number"),
        ("x(4), dim=3", IndexError, "Dimension out of range"),
        ("x(4).half()", RuntimeError, "Unsupported dtype Half"),
    ],
    "fft_rfft": [("m.complex(x(4), x(4))", RuntimeError, "rfft expects a real input tensor, but got ComplexFloat")],
    "fft_irfft": [("x(1)", RuntimeError, r"Invalid number of data points \(0\) specified")],
    "fft_fftn": [
        ("x(3, 4), (1, 2, 3)", RuntimeError, "a shape of 3 values does not fit: input tensor only has 2 dimensions"),
        ("x(3, 4), (1, 2), (0,)", RuntimeError, "dim and shape have 1 and 2"),
        ("x(3, 4), dim=(0, 0)", RuntimeError, "FFT dims must be unique"),
    ],
    "fft_rfftn": [("x()", RuntimeError, "rfftn must transform at least one axis")],
    "stft": [
        ("x(20), 8", RuntimeError, "return_complex must be given for real inputs"),
        ("x(4), 40, center=False, return_complex=True", RuntimeError, "expected 0 < n_fft"),
    ],
    "hann_window": [("-1", RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"), ("5, dtype=m.int32", RuntimeError, "expects floating point dtypes")],
}
SKIPS = {}
