"""Discrete Fourier transforms, their helpers, and short-time transforms.

Three kernels (src/cpu/isa/fft/fft.cpp, over pocketfft) do the work; what stands in `rushlight.fft`
is composed of them in src/ops/fft.cpp. normalization: 0 none, 1 by the root of the number of
points, 2 by the number.
"""

from gen.table import composite, custom, op

_inner = dict(kernel=custom(), variants="function out")

op("_fft_c2c(Tensor self, Dim[] dim, int normalization, bool forward) -> Tensor", **_inner,
   grad={"self": "_fft_c2c(grad, dim, normalization, not forward)"},
   doc="Complex to complex over dimensions.",
   jvp="linear", batch="dims")
op("_fft_r2c(Tensor self, Dim[] dim, int normalization, bool onesided) -> Tensor", **_inner,
   grad={"self": "fft_r2c_backward(grad, self.sizes(), dim, normalization, onesided)"},
   doc="Real to complex: forward over dimensions; onesided gives the first half of the last one.",
   jvp="linear", batch="dims", tags=("core",))
op("_fft_c2r(Tensor self, Dim[] dim, int normalization, int last_dim_size) -> Tensor", **_inner,
   grad={"self": "fft_c2r_backward(grad, dim, normalization)"},
   doc="Complex to real: backward over dimensions, from the first half of the last one.",
   jvp="linear", batch="dims", tags=("core",))

for _name, _doc in {
    "fft": "The discrete Fourier transform along a dimension.",
    "ifft": "The inverse of `fft`.",
    "rfft": "`fft` of a real tensor; the half that says all.",
    "irfft": "The inverse of `rfft`: n numbers, 2 * (size - 1) if not given.",
    "hfft": "`fft` of a Hermitian signal given by its first half; the result is real.",
    "ihfft": "The inverse of `hfft`.",
}.items():
    composite(f"fft_{_name}(Tensor self, int? n=None, Dim dim=-1, str? norm=None) -> Tensor",
              variants="function out",
              ref=f"numpy.fft.{_name}", doc=_doc,
              autocast={"cpu": "float32"})
    composite(f"fft_{_name}2(Tensor self, int[1]? s=None, Dim[1] dim=[-2,-1], str? norm=None) -> "
              f"Tensor",
              variants="function out", ref=None if "h" in _name else f"numpy.fft.{_name}2",
              doc=f"`{_name}` over two dimensions.",
              autocast={"cpu": "float32"})
    composite(f"fft_{_name}n(Tensor self, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> "
              f"Tensor",
              variants="function out", ref=None if "h" in _name else f"numpy.fft.{_name}n",
              doc=f"`{_name}` over several dimensions, or all.",
              autocast={"cpu": "float32"})
composite("fft_fftfreq(int n, float d=1.0, *, options) -> Tensor", variants="function out",
          ref="numpy.fft.fftfreq",
          doc="The frequencies of `fft`'s results, for samples d apart.")
composite("fft_rfftfreq(int n, float d=1.0, *, options) -> Tensor", variants="function out",
          ref="numpy.fft.rfftfreq",
          doc="The frequencies of `rfft`'s results, for samples d apart.")
composite("fft_fftshift(Tensor self, Dim[1]? dim=None) -> Tensor", variants="function",
          ref="numpy.fft.fftshift",
          doc="Moves frequency 0 to the centre.")
composite("fft_ifftshift(Tensor self, Dim[1]? dim=None) -> Tensor", variants="function",
          ref="numpy.fft.ifftshift",
          doc="The inverse of `fftshift`.")

composite("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
          "window=None, bool center=True, "
          "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? "
          "return_complex=None, "
          "bool? align_to_window=None) -> Tensor",
          python="listed",
          doc="Transforms of overlapping windows of signals: (…, frequencies, frames).",
          overloads=["stft.center(self, n_fft, hop_length, win_length, window, center, pad_mode, "
                     "normalized, onesided, return_complex, align_to_window)",
                     "stft(self, n_fft, hop_length, win_length, window, normalized, onesided, "
                     "return_complex, align_to_window)"],
          autocast={"cpu": "float32"})
composite("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
          "window=None, bool center=True, "
          "bool normalized=False, bool? onesided=None, int? length=None, bool "
          "return_complex=False) -> Tensor",
          python="listed", doc="The signals whose `stft` this is.")

# ---- windows ----

for _name, _more, _doc in (
    ("bartlett", "", "A triangle."),
    ("blackman", "", "0.42 - 0.5 cos + 0.08 cos of the doubled angle."),
    ("hamming", ", float alpha=0.54, float beta=0.46", "alpha - beta cos."),
    ("hann", "", "0.5 - 0.5 cos."),
    ("kaiser", ", float beta=12.0", "The Bessel function i0 over an arc."),
):
    # hamming_window, .periodic, .periodic_alpha, .periodic_alpha_beta: one more argument each
    _windows = [("", "window_length"), ("periodic", "window_length, bool periodic")]
    for _argument in _more.split(", ")[1:]:
        _kind = _argument.partition("=")[0]
        _named = _kind.split()[1]
        _suffix = f"{_windows[-1][0]}_{_named}"
        _windows.append(("beta" if _name == "kaiser" else _suffix, f"{_windows[-1][1]}, {_kind}"))
    composite(f"{_name}_window(int window_length, bool periodic=True{_more}, *, options) -> Tensor",
              variants="function", out="cpp",
              overloads=[f"{_name}_window.{_k}({_a}, options)".replace(".(", "(")
                         for _k, _a in _windows]
                        + [f"{_name}_window.{_k}_out({_a}, out!)".replace("._", ".")
                           for _k, _a in _windows],
              doc=f"A window for spectra: {_doc[0].lower() + _doc[1:]}")
