"""Samples of complex numbers and their parts."""

SAMPLES = {
    "view_as_real": ["x(3, 4)"],
    "view_as_complex": ["x(3, 4, 2)", "x(300, 400, 2)"],
    "real": ["x(3, 4)"],
    "imag": ["x(3, 4)"],
    "_complex": ["x(3, 4), x(3, 4)"],
    "polar": ["pos(3, 4), x(3, 4)"],
}
DTYPES = dict.fromkeys(("view_as_real", "real", "imag"), "complexes")
NO_GRADIENT = {"is_conj", "is_neg"}
SKIPS = {("view_as_complex", "layout"): "the two parts must lie side by side"}
REFERENCES = {
    **dict.fromkeys(("resolve_conj", "resolve_neg"), "self"),
    **dict.fromkeys(("is_conj", "is_neg"), "False"),
    "view_as_real": "np.stack((self.real, self.imag), -1)",
    "view_as_complex": "complex_of(self[..., 0], self[..., 1])",
    "_complex": "complex_of(real, imag)",
    "polar": "abs * np.exp(1j * angle)",
}
