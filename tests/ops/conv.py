"""Samples of convolutions: strides, paddings, dilations, groups, one to three dimensions, no batch, empty batch."""

_C2 = "x(2, 4, 7, 8), x(6, 4, 3, 3), x(6)"
_G2 = "x(2, 4, 7, 8), x(6, 2, 3, 3), x(6)"
_T2 = "x(2, 4, 4, 5), x(4, 3, 3, 3), x(3)"

SAMPLES = {
    "conv1d": ["x(1, 2, 5), x(2, 2, 3), x(2)", "x(2, 3, 9), x(4, 3, 3), x(4)", "x(3, 9), x(4, 3, 3), x(4), 2, 1", "x(1, 2, 40), x(3, 2, 5), None, 1, 2, 2"],
    "conv2d": [
        *("x(1, 1, 4, 4), x(2, 1, 2, 2), x(2), 2, 1", "x(1, 2, 3, 4), x(2, 1, 2, 2), None, 1, 1, 2, 2"),
        *(_C2, f"{_C2}, 2", f"{_C2}, 1, 1", f"{_C2}, (2, 1), (1, 2)", f"{_C2}, 1, 0, 2", f"{_G2}, groups=2"),
        *(f"{_G2}, 2, 2, 2, 2", "x(4, 7, 8), x(6, 4, 3, 3)", "x(2, 3, 5, 6), x(4, 3, 1, 1), x(4)", "x(0, 4, 7, 8), x(6, 4, 3, 3)"),
        *("x(2, 6, 9, 9), x(6, 1, 3, 3), x(6), 1, 1, 1, 6", "x(3, 20, 6, 7), x(18, 20, 2, 3)", "x(1, 2, 5, 40), x(3, 2, 3, 3), x(3), 3, 1"),
    ],
    "_convolution": ["x(1, 1, 4, 4), x(2, 1, 2, 2), x(2), (2, 2), (1, 1), (1, 1), False, (0, 0), 1, False, False, True, True",
                     f"{_T2}, (2, 2), (1, 1), (1, 1), True, (1, 0), 1, False, False, True, True"],
    "_convolution.deprecated": ["x(1, 1, 4, 4), x(2, 1, 2, 2), x(2), (2, 2), (1, 1), (1, 1), False, (0, 0), 1, False, False, True",
                                f"{_T2}, (2, 2), (1, 1), (1, 1), True, (1, 0), 1, False, False, True"],
    "conv2d.padding": ["x(1, 1, 4, 3), x(2, 1, 2, 2), x(2), 1, 'same'", f"{_C2}, 1, 'same'", f"{_C2}, 2, 'valid'", "x(2, 4, 7, 8), x(6, 4, 2, 4), x(6), 1, 'same', 2"],
    "conv3d": ["x(1, 1, 2, 3, 3), x(1, 1, 2, 2, 2), x(1), 1, 1", "x(2, 3, 4, 5, 6), x(4, 3, 2, 3, 3), x(4)", "x(2, 4, 4, 5, 6), x(4, 2, 2, 2, 3), x(4), 2, 1, 1, 2"],
    "conv_transpose1d": ["x(2, 3, 5), x(3, 4, 3), x(4)", "x(3, 5), x(3, 4, 3), x(4), 2, 1, 1"],
    "conv_transpose2d": [
        "x(1, 2, 3, 3), x(2, 1, 2, 2), x(1), 2, 1, 1",
        *(_T2, f"{_T2}, 2", f"{_T2}, 2, 1", f"{_T2}, 2, 1, 1", f"{_T2}, 1, 1, 0, 1, 2", f"{_T2}, 3, 2, 2, 1, 2"),
        *("x(2, 4, 4, 5), x(4, 3, 3, 3), x(6), 3, 1, 0, 2", "x(4, 4, 5), x(4, 3, 2, 2)", "x(1, 3, 4, 4), x(3, 2, 2, 2), None, 4"),
        *("x(2, 4, 3, 4), x(4, 3, 2, 2), x(3), 1, 0, (2, 1), 1, 3", "x(2, 4, 3, 4), x(4, 3, 1, 1), x(3), 1, 0, (0, 1), 1, 2"),
    ],
    "conv_transpose3d": ["x(1, 1, 2, 2, 3), x(1, 1, 2, 2, 2), x(1), 2, 1", "x(1, 2, 3, 4, 3), x(2, 3, 2, 3, 2), x(3), 2, 1"],
    "conv_tbc": ["x(4, 1, 2), x(2, 2, 3), x(3), 1", "x(5, 2, 3), x(3, 3, 4), x(4), 1"],
    "im2col": ["x(1, 2, 3, 4), 2, 1, 1, 1", "x(2, 3, 5, 6), 2, 1, 0, 1", "x(3, 5, 6), (2, 3), (2, 1), (1, 2), (2, 1)", "x(0, 3, 4, 4), 2, 1, 0, 1"],
    "col2im": ["x(1, 4, 6), (3, 4), 2, 1, 0, 1", "x(2, 12, 20), (5, 6), 2, 1, 0, 1", "x(18, 12), (5, 6), (2, 3), (2, 1), (1, 0), (2, 1)"],
}
DTYPES = dict.fromkeys(SAMPLES, "floating") | {"conv2d": "numbers"}
_GEOMETRY = "stride, padding, dilation, groups"
REFERENCES = {
    "convolution": "conv_transposed(input, weight, bias, stride, padding, output_padding, groups, dilation) if transposed else"
    f" convolved(input, weight, bias, {_GEOMETRY})",
    **dict.fromkeys(("_convolution", "_convolution.deprecated"), "conv_transposed(input, weight, bias, stride, padding,"
    f" output_padding, groups, dilation) if transposed else convolved(input, weight, bias, {_GEOMETRY})"),
    **{f"conv{n}d{kind}": f"convolved(input, weight, bias, {_GEOMETRY})" for n in (1, 2, 3) for kind in ("", ".padding")},
    **{f"conv_transpose{n}d": "conv_transposed(input, weight, bias, stride, padding, output_padding, groups, dilation)" for n in (1, 2, 3)},
    "conv_tbc": "np.moveaxis(convolved(np.moveaxis(self, 0, -1), np.transpose(weight, (2, 1, 0)), bias, 1, pad), -1, 0)",
    "im2col": "unfolded(self, kernel_size, dilation, padding, stride)",
    "col2im": "adjoint_of(lambda i: unfolded(i, kernel_size, dilation, padding, stride, -1), self,"
    " [*self.shape[:-2], self.shape[-2] // np.prod(np.broadcast_to(kernel_size, 2)), *np.broadcast_to(output_size, 2)])",
}
ERRORS = {
    "conv2d": [
        ("x(2), x(1, 1, 2, 2)", RuntimeError, r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d, not one of shape \[2\]"),
        ("x(1, 3, 8, 8), x(6, 1, 5, 5)", RuntimeError,
         r"expected input\[1, 3, 8, 8\] to have 1 channels, but got 3 channels instead"),
        ("x(1, 3, 2, 2), x(6, 3, 3, 3)", RuntimeError,
         "Kernel size can't be greater than actual input size"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), x(5)", RuntimeError, "needs a vector of 6 numbers as bias"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 0", RuntimeError, "non-positive stride is not supported"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 1, -1", RuntimeError, "negative padding is not supported"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 1, 0, 0", RuntimeError, "dilation should be greater than zero"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 1, 0, 1, 0", RuntimeError, "non-positive groups is not supported"),
        ("x(1, 4, 8, 8), x(5, 2, 3, 3), groups=2", RuntimeError, "dimension 0 of the weight must be divisible by 2 groups"),
        ("x(1, 3, 8, 8).double(), x(6, 3, 3, 3), x(6)", RuntimeError, r"Input type \(double\) and bias type \(float\)"),
        ("mask(1, 3, 8, 8), mask(6, 3, 3, 3)", NotImplementedError, "not implemented for 'Bool'"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 2**62", RuntimeError, "too large"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 1, 2**62", RuntimeError, "too large"),
    ],
    "conv2d.padding": [
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 2, 'same'", RuntimeError, "padding='same' is not supported for strided"),
        ("x(1, 3, 8, 8), x(6, 3, 3, 3), None, 1, 'foo'", RuntimeError, "Invalid padding string: 'foo'"),
    ],
    "conv1d": [("x(1, 3, 1, 8), x(4, 3, 3)", RuntimeError, r"Expected 2D \(unbatched\) or 3D \(batched\) input to conv1d")],
    "im2col": [("x(2, 3, 4, 4), 5, 1, 0, 1", RuntimeError, r"sliding blocks would be \(0, 0\)")],
    "col2im": [
        ("x(2, 13, 9), (4, 4), 2, 1, 0, 1", RuntimeError, r"a multiple of the taps of a window, but got input.size\(1\)=13"),
        ("x(2, 12, 8), (4, 4), 2, 1, 0, 1", RuntimeError, r"are 3 \* 3 = 9, but got input.size\(2\)=8"),
    ],
    "conv_transpose2d": [
        ("x(1, 3, 8, 8), x(3, 2, 3, 3), None, 1, 0, 2", RuntimeError, "output padding must be smaller than stride or dilation"),
        ("x(1, 3, 8, 8), x(4, 2, 3, 3)", RuntimeError, "to have 4 channels, but got 3 channels instead"),
        ("x(1, 3, 1, 1), x(3, 2, 3, 3), None, 1, 3", RuntimeError, "images of 1 x 1 would become -3 x -3"),
    ],
}
