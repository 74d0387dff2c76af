"""Samples of matrix products: every rank, sizes on both sides of the limits between kernels, empty sums."""

_MM = ["x(2, 3), x(3, 4)", "x(8, 8), x(8, 8)", "x(17, 33), x(33, 20)", "x(70, 50), x(50, 60)", "x(1, 5), x(5, 1)",
       "x(3, 0), x(0, 2)", "x(0, 3), x(3, 2)", "x(5, 300), x(300, 7)"]
_BMM = ["x(2, 2, 3), x(2, 3, 2)", "x(2, 3, 4), x(2, 4, 5)", "x(5, 8, 8), x(5, 8, 8)", "x(3, 20, 17), x(3, 17, 33)", "x(0, 2, 3), x(0, 3, 2)"]

SAMPLES = {
    "tensordot": ["x(2, 3), x(3, 4), [1], [0]", "x(2, 3, 4), x(4, 3, 2), [1, 2], [1, 0]", "x(2, 3), x(4), [], []", "x(3), x(3), [0], [0]", "x(2, 0), x(0, 3), [1], [0]"],
    "_int_mm": ["ints(2, 3, high=9, low=-9).to(m.int8), ints(3, 4, high=9).to(m.int8)", "ints(20, 33, high=127, low=-128).to(m.int8), ints(17, 33, high=127, low=-128).to(m.int8).t()", "ints(70, 300, high=255).to(m.uint8), ints(300, 40, high=127, low=-128).to(m.int8)", "ints(5, 8, high=255).to(m.uint8)[:, ::2], ints(4, 6, high=9).to(m.int8)[:, ::2]", "ints(3, 0, high=9).to(m.int8), ints(0, 2, high=9).to(m.int8)"],
    "mm": _MM,
    "bmm": _BMM,
    "mv": ["x(3, 4), x(4)", "x(40, 33), x(33)", "x(2, 0), x(0)"],
    "dot": ["x(4), x(4)", "x(37), x(37)", "x(0), x(0)"],
    "addmm": ["x(2, 4), x(2, 3), x(3, 4)", "x(4), x(2, 3), x(3, 4)", "x(2, 1), x(2, 3), x(3, 4), beta=2, alpha=3",
              "x(), x(2, 3), x(3, 4)", "x(20, 40), x(20, 30), x(30, 40), beta=2", "x(2, 2), x(2, 0), x(0, 2), beta=3"],
    "baddbmm": ["x(2, 2, 2), x(2, 2, 3), x(2, 3, 2), beta=2, alpha=3", "x(2, 3, 5), x(2, 3, 4), x(2, 4, 5)", "x(5), x(2, 3, 4), x(2, 4, 5), beta=2, alpha=3"],
    "addmv": ["x(3), x(3, 4), x(4)", "x(1), x(3, 4), x(4), beta=2, alpha=3"],
    "linear": ["x(3, 4), x(5, 4), x(5)", "x(3, 4), x(5, 4)", "x(4), x(5, 4), x(5)", "x(2, 3, 4), x(5, 4), x(5)",
               "x(3, 4), x(4)", "x(60, 40), x(50, 40), x(50)", "x(0, 4), x(5, 4), x(5)", "x(3, 4), x(5, 4), x(1, 5)"],
    "matmul": ["x(2, 3, 4, 5).transpose(1, 2), x(2, 1, 5, 2)", "x(3, 2, 2, 4, 5).permute(2, 0, 1, 3, 4), x(2, 1, 2, 5, 3)", "x(3), x(3)", "x(3, 4), x(4)", "x(3), x(3, 4)", "x(3, 4), x(4, 5)", "x(2, 3, 4), x(4)", "x(2, 3, 4), x(2, 4, 5)",
               "x(2, 3, 4), x(4, 5)", "x(3, 4), x(2, 4, 5)", "x(4), x(2, 4, 5)", "x(2, 1, 3, 4), x(5, 4, 2)",
               "x(2, 0), x(0, 3)", "x(2, 3, 4, 5), x(5)"],
    "vdot": ["x(4), x(4)"],
    "inner": ["x(4), x(4)", "x(2, 3), x(4, 3)", "x(2, 3), x(3)", "x(), x(3)"],
    "outer": ["x(3), x(4)", "x(0), x(2)"],
    "ger": ["x(3), x(4)"],
    "addr": ["x(3, 2), x(3), x(2)", "x(2), x(3), x(2), beta=2, alpha=3", "x(2), x(3), x(2), beta=0", "x(2), x(3), x(2), alpha=0"],
    "addbmm": ["x(2, 2), x(2, 2, 3), x(2, 3, 2), beta=2, alpha=3", "x(3, 5), x(2, 3, 4), x(2, 4, 5)", "x(5), x(2, 3, 4), x(2, 4, 5), beta=2, alpha=3"],
    "bilinear": ["x(4, 2), x(4, 3), x(5, 2, 3), x(5)", "x(2), x(3), x(5, 2, 3)", "x(2, 4, 2), x(2, 4, 3), x(5, 2, 3)"],
    "chain_matmul": ["[x(2, 3), x(3, 4), x(4, 2)]"],
    "einsum": [
        *("'ij,jk->ik', [x(2, 3), x(3, 4)]", "'ij,jk', [x(2, 3), x(3, 4)]", "'ij->ji', [x(2, 3)]", "'ii', [x(3, 3)]"),
        *("'ii->i', [x(3, 3)]", "'ij->j', [x(2, 3)]", "'i,j->ij', [x(2), x(3)]", "'ij,ij->', [x(2, 3), x(2, 3)]"),
        *("'bn,anm,bm->ba', [x(2, 5), x(3, 5, 4), x(2, 4)]", "'...ij,jk->...ik', [x(2, 2, 3, 4), x(4, 5)]"),
        *("'bhqd,bhkd->bhqk', [x(2, 2, 3, 4), x(2, 2, 5, 4)]", "'...,...->...', [x(2, 3), x(3)]", "'a b , b c', [x(2, 3), x(3, 4)]"),
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "numbers") | dict.fromkeys(("chain_matmul", "einsum", "bilinear"), "complex") | {"addr": "all"}
REFERENCES = {
    "_int_mm": "self @ mat2",
    "tensordot": "np.tensordot(self, other, (dims_self, dims_other))",
    "_matmul": "self @ mat2",
    "addmm": "beta * self + alpha * (mat1 @ mat2)",
    "baddbmm": "beta * self + alpha * (batch1 @ batch2)",
    "addbmm": "beta * self + alpha * (batch1 @ batch2).sum(0)",
    "addmv": "beta * self + alpha * (mat @ vec)",
    "addr": "scaled(self, beta) + scaled(np.outer(vec1, vec2), alpha)",
    "linear": "input @ weight.T + (0 if bias is None else bias)",
    "ger": "np.outer(self, vec2)",
    "chain_matmul": "functools.reduce(np.matmul, matrices)",
    "einsum": "np.einsum(equation, *tensors)",
    "bilinear": "np.einsum('...i,oij,...j->...o', input1, weight, input2) + (0 if bias is None else bias)",
}
ERRORS = {
    "_int_mm": [("x(2, 3), x(3, 4)", RuntimeError, "self must be of int8 or uint8"),
                ("x(2, 3).to(m.int8), x(3, 4).to(m.uint8)", RuntimeError, "mat2 must be of int8"),
                ("x(2, 3).to(m.int8), x(4, 4).to(m.int8)", RuntimeError, "must be as many, not 3 and 4")],
    "tensordot": [("x(2, 3), x(2, 3), [0], [1]", RuntimeError, "contracted dimensions need to match"),
                  ("x(2, 3), x(2, 3), [0, 0], [0, 1]", RuntimeError, "appears multiple times"), ("x(2, 3), x(2, 3), [0], [0, 1]", RuntimeError, "should have the same length"),
                  ("x(2), x(2).double(), [0], [0]", RuntimeError, "same dtype")],
    "mm": [
        ("x(2, 3), x(4, 5)", RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
        ("x(2, 3), x(3, 5).double()", RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
        ("x(3), x(3, 3)", RuntimeError, "self must be a matrix"),
        ("x(3, 3), x(3)", RuntimeError, "mat2 must be a matrix"),
        ("mask(2, 2), mask(2, 2)", NotImplementedError, "not implemented for 'Bool'"),
    ],
    "bmm": [
        ("x(2, 3, 4), x(3, 4, 6)", RuntimeError, r"Expected size for first two dimensions \[2, 4\]"),
        ("x(3, 4), x(2, 4, 6)", RuntimeError, "batch1 must be a 3D tensor"),
        ("x(2, 3, 4), x(2, 4, 6).double()", RuntimeError, "expected scalar type Float but found Double"),
    ],
    "mv": [("x(2, 3), x(4)", RuntimeError, r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)")],
    "dot": [
        ("x(2, 2), x(4)", RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
        ("x(3), x(4)", RuntimeError, "the vectors have 3 and 4 elements"),
    ],
    "addmm": [
        ("x(4), x(2, 3), x(3, 5)", RuntimeError, "must match the existing size"),
        ("x(5).double(), x(2, 3), x(3, 5)", RuntimeError, "must have the same dtype, but got Double and Float"),
    ],
    "baddbmm": [("x(5).double(), x(2, 2, 3), x(2, 3, 5)", RuntimeError, "Input dtypes must be the same, but are double")],
    "linear": [
        ("x(2, 3), x(4, 5)", RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"),
        ("x(2, 3).double(), x(4, 3), x(4)", RuntimeError, "must have the same dtype, but got Double and Float"),
        ("x(2, 3), x(4, 3), x(5)", RuntimeError, "must match the existing size"),
    ],
    "matmul": [
        ("x(), x(2)", RuntimeError, "need to be at least 1D, not 0D and 1D"),
        ("x(2, 3, 4), x(3, 4, 5)", RuntimeError, r"tensor a \(2\) must match the size of tensor b \(3\)"),
    ],
    "inner": [("x(2, 3), x(4, 5)", RuntimeError, "the last dimension must match")],
    "outer": [("x(2, 3), x(4)", RuntimeError, "Expected 1-D argument self, but got 2-D")],
    "einsum": [
        ("'ij,jk', [x(2, 3), x(4, 5)]", RuntimeError, "subscript j has size 4 for operand 1, but 3 in an operand before it"),
        ("'ij,jk->ik', [x(2, 3)]", RuntimeError, "fewer operands were provided than the equation names"),
        ("'ij->ijk', [x(2, 3)]", RuntimeError, "output subscript k does not appear before '->'"),
        ("'ij->i.j', [x(2, 2)]", RuntimeError, r"found '.' for output outside of an ellipsis"),
        ("'ij->ii', [x(2, 2)]", RuntimeError, "output subscript i appears more than once"),
    ],
}
SKIPS = {
    ("tensordot", "parity"): "PyTorch's function takes one argument for both lists of dimensions",
    **{(f"{name}.dtype", "parity"): "PyTorch has it on CUDA alone" for name in ("mm", "bmm", "addmm", "baddbmm")},
}
