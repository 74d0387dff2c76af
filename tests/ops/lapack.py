"""Samples of factorisations: batches, wide and tall matrices, empty ones. Gradients of those that read one triangle, and
of factors that are unique only up to a phase, are tested in tests/python/test_lapack.py."""

_SQUARE = ["regular(3, 3)", "regular(2, 4, 4)", "regular(1, 1)", "regular(40, 40)", "regular(0, 0)", "regular(0, 3, 3)", "regular(2, 0, 0)"]
_HERMITIAN = [s.replace("regular", "spd") for s in _SQUARE]
_ANY = ["x(3, 3)", "x(4, 2)", "x(2, 4)", "x(2, 3, 4)", "x(0, 3)", "x(3, 0)", "x(2, 0, 3)", "x(0, 2, 2)"]
_SOLVE = ["regular(3, 3), x(3, 2)", "regular(3, 3), x(3)", "regular(2, 3, 3), x(2, 3, 2)", "regular(2, 3, 3), x(2, 3)",
          "regular(3, 3), x(2, 3, 2)", "regular(2, 3, 3), x(3, 2)", "regular(3, 3), x(2, 3), left=False", "regular(0, 0), x(0, 2)",
          "regular(3, 3), x(3, 0)"]
_NORM = ["x(3, 4)", "x(3, 4), 2", "x(3, 4), -2", "x(3, 4), 1", "x(3, 4), inf", "x(4)", "x(4), 3", "x(2, 3, 4), 2, (0, 2)",
         "x(2, 3, 4), 1, (2, 0), True", "x(2, 3, 4), None, 1", "x(2, 3, 4)", "x()"]

SAMPLES = {
    "linalg_cholesky_ex": [*_HERMITIAN, "spd(3, 3), upper=True"],
    "linalg_cholesky": [*_HERMITIAN, "spd(3, 3), upper=True"],
    "cholesky": ["spd(3, 3)", "spd(2, 3, 3), True"],
    "cholesky_solve": ["x(3, 2), spd(3, 3)", "x(2, 3, 1), regular(2, 3, 3), True"],
    "cholesky_inverse": ["spd(3, 3)", "spd(2, 3, 3), True"],
    "_lu_with_info": [*_SQUARE, "x(4, 2)"],
    "linalg_lu_factor_ex": [*_SQUARE, "x(4, 2)", "x(2, 4)", "x(2, 0)"],
    "linalg_lu_factor": _SQUARE[:4],
    "linalg_lu": [*_SQUARE, "x(4, 2)", "x(2, 4)", "x(3, 0)"],
    "lu_unpack": ["regular(3, 3), same(1, 3, 3, dtype='int32')", "x(4, 2), same(2, 4, dtype='int32')", "x(2, 4), same(2, 2, dtype='int32')"],
    "linalg_lu_solve": [
        *("regular(3, 3), same(1, 3, 3, dtype='int32'), x(3, 2)", "regular(3, 3), same(3, 2, 3, dtype='int32'), x(2, 3), left=False"),
        *("regular(3, 3), same(3, 2, 3, dtype='int32'), x(3, 2), adjoint=True",
          "regular(3, 3), same(2, 2, 3, dtype='int32'), x(2, 3), left=False, adjoint=True"),
    ],
    "lu_solve": ["x(3, 2), regular(3, 3), same(2, 3, 3, dtype='int32')"],
    "_linalg_solve": ["regular(3, 3), x(3, 2)", "regular(3, 3), x(2, 3), False"],
    "linalg_solve_ex": _SOLVE,
    "linalg_solve": _SOLVE,
    "linalg_solve_triangular": ["regular(3, 3), x(3, 2), upper=True", "regular(3, 3), x(3, 2), upper=False",
                                "regular(2, 3, 3), x(2, 3), upper=True, left=False", "x(3, 3), x(3, 1), upper=False, unitriangular=True",
                                "regular(3, 3), x(3, 0), upper=True", "regular(0, 0), x(0, 2), upper=True"],
    "triangular_solve": ["x(3, 2), regular(3, 3)", "x(3, 2), regular(3, 3), False, True", "x(3, 2), x(3, 3), True, True, True"],
    "linalg_inv_ex": _SQUARE,
    "linalg_inv": _SQUARE,
    "inverse": ["regular(3, 3)"],
    "_linalg_lstsq": ["x(4, 2), x(4, 1)", "x(2, 4), x(2, 3)"],
    "linalg_lstsq": ["x(5, 3), x(5, 2)", "x(3, 5), x(3, 2)", "x(2, 4, 3), x(2, 4)", "x(4, 2), x(4)", "x(4, 2), x(4, 1), driver='gels'",
                     "x(5, 3), x(5, 2), driver='gelsd'", "x(5, 3), x(5, 2), driver='gelss'"],
    "_linalg_pinv": ["x(4, 2), m.zeros(()), m.zeros(())"],
    "linalg_pinv.atol_rtol_tensor": ["x(4, 2)", "x(2, 3, 4)", "x(4, 2), rtol=m.full((), 1e-9)", "x(0, 3)"],
    "linalg_pinv.atol_rtol_float": ["x(4, 2), rtol=1e-9"],
    "pinverse": ["x(3, 4)"],
    "linalg_pinv": ["x(4, 2), 1e-9"],
    "linalg_pinv.rcond_tensor": ["x(2, 4, 2), m.full((2,), 1e-9)"],
    "linalg_matrix_rank.tol_tensor": ["x(2, 4, 3), m.full((2,), 0.1)"],
    "_lu_permutation": ["same(3, 2, 3, dtype='int32'), 4"],
    "linalg_tensorinv": ["regular(6, 6, seen_as=(2, 3, 3, 2))", "regular(6, 6, seen_as=(6, 3, 2)), 1"],
    "linalg_tensorsolve": ["regular(6, 6, seen_as=(2, 3, 6)), x(2, 3)", "regular(6, 6, seen_as=(6, 2, 3)), x(2, 3), (0,)"],
    "linalg_qr": [*_ANY, *(f"{s}, mode={mode!r}" for s in _ANY for mode in ("complete", "r"))],
    "qr": ["x(4, 2)", "x(4, 2), False"],
    "geqrf": _ANY,
    "linalg_householder_product": ["x(4, 3), x(3)", "x(4, 3), x(2)", "x(2, 3, 3), x(2, 3)", "x(3, 0), x(0)", "x(0, 0), x(0)"],
    "orgqr": ["x(4, 3), x(3)"],
    "ormqr": ["x(4, 3), x(3), x(4, 2)", "x(4, 3), x(3), x(2, 4), False, True", "x(2, 3), x(2), x(2, 4)"],
    "_linalg_svd": ["x(3, 4)", "x(4, 3), True"],
    "linalg_svd": [*_ANY, *(f"{s}, full_matrices=False" for s in _ANY), "x(33, 40)"],
    "linalg_svdvals": _ANY,
    "svd": ["x(4, 3)", "x(3, 4), False", "x(3, 4), True, False"],
    "_linalg_eigh": ["spd(3, 3)"],
    "linalg_eigh": [*_HERMITIAN, "spd(3, 3), 'U'"],
    "linalg_eigvalsh": _HERMITIAN,
    "_linalg_eig": ["x(3, 3)"],
    "linalg_eig": [*_SQUARE, "x(4, 4)"],
    "linalg_eigvals": [*_SQUARE, "x(4, 4)"],
    "linalg_ldl_factor_ex": _HERMITIAN,
    "linalg_ldl_factor": ["spd(3, 3), hermitian=True"],
    "linalg_ldl_solve": ["spd(3, 3), same(1, 2, 3, dtype='int32'), x(3, 2)", "spd(3, 3), same(1, -3, -3, dtype='int32'), x(3, 1)"],
    "linalg_det": [*(s.replace("regular(40, 40)", "unit(40, 40)") for s in _SQUARE), "x(3, 3)", "m.zeros(3, 3)"],
    "det": ["regular(3, 3)"],
    "linalg_slogdet": [*_SQUARE, "x(3, 3)"],
    "slogdet": ["regular(3, 3)"],
    "logdet": ["spd(3, 3)", "regular(2, 3, 3)", "regular(0, 0)"],
    "linalg_matrix_rank.atol_rtol_float": ["x(4, 3)", "m.ones(3, 3)", "x(2, 3, 4), atol=0.1", "spd(3, 3), hermitian=True", "x(0, 3)", "x(2, 3, 0)"],
    "linalg_matrix_rank.atol_rtol_tensor": ["x(2, 4, 3), rtol=m.full((2,), 0.1)"],
    "linalg_matrix_rank": ["x(4, 3), 0.1"],
    "linalg_cond": ["regular(3, 3)", "regular(2, 3, 3), -2", "regular(3, 3), 1", "regular(3, 3), -inf", "x(4, 3)"],
    "linalg_cond.p_str": ["regular(3, 3), 'fro'", "regular(3, 3), 'nuc'"],
    "linalg_matrix_norm": [f"x(3, 4), {p}" for p in ("1", "-1", "2", "-2", "inf", "-inf")] + ["x(2, 3, 4), 2, (0, 2), True", "x(2, 3, 4), 1, (2, 0)"],
    "linalg_matrix_norm.str_ord": ["x(3, 4)", "x(3, 4), 'nuc'", "x(2, 3, 4), 'nuc', (0, 2), True", "x(2, 3, 4), 'fro', (0, 1)"],
    "linalg_norm": _NORM,
    "linalg_norm.ord_str": ["x(3, 4), 'fro'", "x(2, 3, 4), 'nuc', (1, 2)"],
    "frobenius_norm": ["x(3, 4), 1"],
    "nuclear_norm": ["x(3, 4)"],
    "nuclear_norm.dim": ["x(2, 3, 4), (0, 2), True"],
    "linalg_matrix_power": ["x(3, 3), 3", "x(3, 3), 0", "x(3, 3), 1", "regular(2, 3, 3), -2", "x(2, 2), 8"],
    "matrix_power": ["x(3, 3), 2"],
    "linalg_matrix_exp": ["x(3, 3)", "x(2, 2, 2)", "x(1, 1)", "regular(4, 4)", "x(0, 0)"],
    "matrix_exp": ["x(3, 3)"],
    "linalg_multi_dot": ["[x(2, 3), x(3, 4), x(4, 2)]", "[x(3), x(3, 4), x(4)]", "[x(2, 3), x(3)]"],
    "linalg_matmul": ["x(2, 3), x(3, 4)"],
    "linalg_vecdot": ["x(3, 4), x(3, 4)", "x(3, 4), x(4)", "x(3, 4), x(3, 1), dim=0"],
    "linalg_cross": ["x(3), x(3)", "x(2, 3), x(2, 3)", "x(1, 3), x(4, 3)", "x(3, 2), x(3, 2), dim=0"],
    "cross": ["x(2, 3), x(2, 3), 1"],
    "linalg_vander": ["x(3)", "x(2, 3), N=4"],
    "vander": ["x(3)", "x(3), 4, True", "x(3), 1", "x(3), 0"],
    "kron": ["x(2, 3), x(3, 2)", "x(3), x(2, 2)", "x(), x(2)", "x(0, 2), x(2, 2)"],
    "trace": ["x(3, 4)", "x(3, 3)", "x(0, 2)"],
    "linalg_diagonal": ["x(2, 3, 4)", "x(3, 4), offset=1"],
}
DTYPES = dict.fromkeys(SAMPLES, "complex") | dict.fromkeys(("kron", "trace", "linalg_cross", "vander", "linalg_vecdot"), "numbers")
DTYPES |= dict.fromkeys(("logdet", "linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank"), "floats")
# Factors that are unique only up to signs, phases or LAPACK's ways are not told; tests/python/test_lapack.py multiplies them.
_SOLVED = "solved(A, B, left)"
_NORMS = {
    "linalg_matrix_norm": "matrix_norm(self, ord, dim, keepdim)",
    "linalg_matrix_norm.str_ord": "matrix_norm(self, ord, dim, keepdim)",
    "linalg_norm": "np.linalg.norm(self, ord, axes(dim), keepdim) if ord is not None else vector_norm(self, 2, dim, keepdim)",
    "linalg_norm.ord_str": "matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim)",
    "frobenius_norm": "vector_norm(self, 2, dim, keepdim)",
    "nuclear_norm": "np.linalg.norm(self, 'nuc', keepdims=keepdim)",
    "nuclear_norm.dim": "matrix_norm(self, 'nuc', dim, keepdim)",
    "linalg_cond": "np.linalg.cond(self, p)",
    "linalg_cond.p_str": "np.linalg.cond(self, p)",
}
# Derivatives grow with the square of the condition; how a factorisation rounds depends on the processor.
LOOSER = dict.fromkeys(("_linalg_lstsq", "linalg_lstsq"), 4)
REFERENCES = {
    **_NORMS,
    "linalg_cholesky_ex": "(factor(self, upper), None)",
    "linalg_cholesky": "factor(self, upper)",
    "cholesky": "factor(self, upper)",
    "cholesky_solve": "np.linalg.solve(from_factor(input2, upper), self)",
    "cholesky_inverse": "np.linalg.inv(from_factor(self, upper))",
    "_linalg_solve": f"({_SOLVED}, None)",
    "linalg_solve_ex": f"({_SOLVED}, None)",
    "linalg_solve": _SOLVED,
    "linalg_solve_triangular": "solved(triangle(self, upper, unitriangular), B, left, False)",
    "triangular_solve": "(solved(np.swapaxes(triangle(A, upper, unitriangular), -1, -2) if transpose else triangle(A, upper, unitriangular), self), A)",
    "linalg_inv_ex": "(np.linalg.inv(A), None)",
    "inverse": "np.linalg.inv(self)",
    **dict.fromkeys(("_linalg_pinv", "linalg_pinv", "linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float", "linalg_pinv.rcond_tensor"),
                    "np.linalg.pinv(self, hermitian=hermitian)"),
    "pinverse": "np.linalg.pinv(self)",
    **dict.fromkeys(("linalg_svd", "_linalg_svd"), "(None, np.linalg.svd(A, compute_uv=False), None)"),
    "svd": "(None, np.linalg.svd(self, compute_uv=False), None)",
    "linalg_svdvals": "np.linalg.svd(A, compute_uv=False)",
    "linalg_eigh": "(np.linalg.eigvalsh(self), None)",
    "_linalg_eigh": "(np.linalg.eigvalsh(A), None)",
    "det": "np.linalg.det(self)",
    "linalg_slogdet": "tuple(np.linalg.slogdet(A))",
    "slogdet": "tuple(np.linalg.slogdet(self))",
    "logdet": "np.log(np.linalg.det(self))",
    "linalg_matrix_rank": "np.linalg.matrix_rank(self, tol, hermitian)",
    "linalg_matrix_rank.tol_tensor": "np.linalg.matrix_rank(input, tol, hermitian)",
    "linalg_matrix_rank.atol_rtol_float": "np.sum(np.linalg.svd(self, compute_uv=False) > (atol or 1e-5), -1)",
    "linalg_matrix_rank.atol_rtol_tensor": "np.linalg.matrix_rank(input, rtol=rtol, hermitian=hermitian)",
    "linalg_matrix_power": "np.linalg.matrix_power(self, n)",
    "matrix_power": "np.linalg.matrix_power(self, n)",
    "linalg_matrix_exp": "scipy.linalg.expm(self)",
    "matrix_exp": "scipy.linalg.expm(self)",
    "linalg_multi_dot": "np.linalg.multi_dot(tensors)",
    "linalg_vecdot": "np.sum(np.conj(x) * y, dim)",
    "cross": "np.cross(self, other, axis=dim)",
    "linalg_vander": "x[..., None] ** np.arange(x.shape[-1] if N is None else N)",
    "linalg_diagonal": "np.diagonal(A, offset, dim1, dim2)",
    "_lu_permutation": "swapped(pivots, n)",
}
_dims = "must have at least 2 dimensions"
_square = "A must be batches of square matrices, not of 2 x 3"
ERRORS = {
    "linalg_inv": [
        ("m.zeros(2, 2)", RuntimeError, "linalg.inv: the input matrix is singular and has no inverse: element 1 of the diagonal of U is zero"),
        ("m.zeros(3, 2, 2)", RuntimeError, r"linalg.inv: \(Batch element 0\): the input matrix is singular"),
        ("x(2, 3)", RuntimeError, f"linalg.inv: {_square}"),
        ("x(2)", RuntimeError, f"linalg.inv: .*{_dims}"),
        ("x(2, 2).half()", RuntimeError, "linalg.inv: Low precision dtypes not supported, such as Half"),
        ("x(2, 2).long()", RuntimeError, "linalg.inv: the dtype must be floating point or complex, not Long"),
    ],
    "linalg_inv_ex": [("m.zeros(2, 2), check_errors=True", RuntimeError, "linalg.inv_ex: the input matrix is singular")],
    "linalg_solve": [
        ("m.zeros(2, 2), x(2, 2)", RuntimeError, "linalg.solve: no unique solution: the input matrix is singular"),
        ("x(2, 2), x(3, 2)", RuntimeError, r"linalg.solve: Incompatible shapes of A and B: AX = B with 2x2 and 3x2"),
        ("x(2, 2), x(2, 2).double()", RuntimeError, "A and B must have the same dtype, not Float and Double"),
        ("m.eye(2), x(2), left=False", RuntimeError, "Incompatible shapes of A and B: XA = B"),
    ],
    "linalg_solve_triangular": [("x(2, 2), x(3, 2), upper=True", RuntimeError, r"AX = B with 2x2 and 3x2")],
    "linalg_cholesky": [
        ("-m.eye(2)", RuntimeError, r"linalg.cholesky: the input is not positive-definite, for its leading minor of order 1 is not"),
        ("x(2, 3)", RuntimeError, f"linalg.cholesky: {_square}"),
    ],
    "cholesky": [("-m.eye(2)", RuntimeError, "cholesky: the input is not positive-definite")],
    "cholesky_solve": [("x(3, 1), x(2, 2)", RuntimeError, "Incompatible matrix sizes: A of 2 x 2 does not go with B of 3 x 1")],
    "linalg_lu_solve": [("x(2, 2), same(1, 2, dtype='int32'), x(2, 1).double()", RuntimeError, "LU and B must have the same dtype")],
    "linalg_lu_factor": [("m.zeros(2, 2)", RuntimeError, r"linalg.lu_factor: U\[1,1\] is zero, and lu_solve")],
    "linalg_lu": [("x(2, 2), pivot=False", RuntimeError, "pivot=False is not implemented on the CPU")],
    "lu_unpack": [
        ("x(2, 2), same(5, 1, dtype='int32')", RuntimeError, "pivots passed to lu_unpack must be numbers of rows, between 1 and 2, but one is 5"),
        ("x(2, 2), same(1, 1, dtype='int64')", RuntimeError, "torch.int32 dtype"),
        ("x(2, 2), same(1, 1, 1, dtype='int32')", RuntimeError, "too many for 2 rows"),
    ],
    "linalg_lstsq": [("x(2, 2), x(2, 2), driver='x'", RuntimeError, "parameter `driver` should be one of")],
    "linalg_qr": [("x(2, 2), mode='x'", RuntimeError, "qr received unrecognized mode 'x'"), ("x(2)", RuntimeError, f"linalg.qr: .*{_dims}")],
    "linalg_svd": [
        ("x(2)", RuntimeError, f"linalg.svd: .*{_dims}"),
        ("x(2, 2) * nan", RuntimeError, "the input matrix contained non-finite values"),
        ("x(2, 2), driver='gesvd'", RuntimeError, "linalg.svd: `driver=` is only supported on CUDA inputs"),
    ],
    "linalg_eigh": [("x(2, 2), 'x'", RuntimeError, "UPLO argument to be 'L' or 'U' is the triangle to read, but got x"), ("x(2, 3)", RuntimeError, f"linalg.eigh: {_square}")],
    "linalg_eig": [("x(2, 2) * nan", RuntimeError, "the input tensor has infs or NaNs")],
    "linalg_ldl_solve": [
        ("x(2, 2), same(5, 1, dtype='int32'), x(2, 1)", RuntimeError, "pivots must be between 1 and 2"),
        ("x(2, 2), same(1, -2, dtype='int32'), x(2, 1)", RuntimeError, "negative pivots must come in equal pairs"),
    ],
    "linalg_householder_product": [("x(2, 3), x(2)", RuntimeError, r"input.shape\[-2\], 2, must be greater than or equal to input.shape\[-1\], 3")],
    "linalg_matrix_norm": [
        ("x(2, 2), 3", RuntimeError, "linalg.matrix_norm: Order 3 not supported."),
        ("x(2, 2), 2, (0,)", RuntimeError, "dim must be a 2-tuple. Got 0"),
    ],
    "linalg_norm": [("x(3, 2, 2), 2", RuntimeError, "with ord and without dim the input must be 1D or 2D, but is 3D")],
    "linalg_cond": [("x(2, 2), 3", RuntimeError, "linalg.cond got an invalid norm type: 3")],
    "linalg_matrix_power": [("x(2, 3), 2", RuntimeError, f"linalg.matrix_power: {_square}")],
    "linalg_multi_dot": [
        ("[x(2, 2), x(2, 2, 2)]", RuntimeError, r"the last tensor must be 1D or 2D, but is 3D"),
        ("[x(2, 2)]", RuntimeError, r"multi_dot\(\): expected at least 2 tensors but got 1"),
        ("[x(2, 3), x(2, 3)]", RuntimeError, r"factor 0 of shape \[2, 3\] and the next one of \[2, 3\] cannot be multiplied"),
    ],
    "linalg_cross": [("x(2, 2), x(2, 2)", RuntimeError, "inputs dimension -1 must have length 3. Got 2 and 2")],
    "cross": [("x(2, 2), x(2, 2)", RuntimeError, "no dimension of size 3 in input")],
    "linalg_vander": [("x(3), N=1", RuntimeError, "N must be greater than 1.")],
    "linalg_tensorinv": [("x(2, 3, 4), 0", RuntimeError, "it is a strictly positive integer, not 0")],
    "trace": [("x(2, 2, 2)", RuntimeError, "trace: expected a matrix, not a tensor of 3 dimensions")],
    "linalg_det": [("x(2, 3)", RuntimeError, f"linalg.det: {_square}")],
}
_triangle = "differences of one element leave the matrix without its symmetry: tests/python/test_lapack.py"
_phase = "the factors are unique up to a phase: tests/python/test_lapack.py"
SKIPS = {(name, "grad"): _triangle for name in ("linalg_cholesky_ex", "linalg_cholesky", "cholesky", "linalg_eigh", "_linalg_eigh", "linalg_eigvalsh",
                                                "linalg_matrix_rank.atol_rtol_float")}
SKIPS |= {(name, "grad"): _phase for name in ("linalg_eig", "_linalg_eig", "_linalg_svd", "linalg_svd", "svd", "linalg_qr", "qr")}
SKIPS |= {(name, "grad"): "PyTorch has no derivative either" for name in ("geqrf", "linalg_ldl_factor_ex", "linalg_ldl_factor", "linalg_ldl_solve")}
SKIPS |= {(name, "second"): _triangle for name in ("linalg_cholesky_ex", "linalg_cholesky", "cholesky", "linalg_eigh", "_linalg_eigh", "linalg_eigvalsh")}
SKIPS |= {(name, "second"): _phase for name in ("linalg_eig", "_linalg_eig")}
SKIPS |= {(name, "float32 grad"): "vectors that belong to values close to each other are known to few digits" for name in (
    "linalg_svd", "_linalg_eigh", "linalg_eigh", "linalg_eigvalsh", "linalg_eig", "linalg_eigvals")}
SKIPS |= {(name, "precision"): "several orders and phases are right" for name in ("linalg_eig", "linalg_eigvals")}
SKIPS |= {(name, "layout"): "several vectors are right, and strides decide which" for name in ("linalg_eig",)}
SKIPS |= {(name, "parity"): "another library chooses other signs or phases: tests/parity/test_lapack.py" for name in (
    "_linalg_svd", "linalg_svd", "svd", "_linalg_eigh", "linalg_eigh", "_linalg_eig", "linalg_eig", "linalg_eigvals")}
# Asked for gradients they refuse, which tests/python/test_lapack.py tests.
SKIPS |= {(name, "backward"): "no derivative, or none for a sample's shape" for name in (
    "geqrf", "linalg_ldl_factor_ex", "linalg_ldl_factor", "linalg_ldl_solve", "qr", "linalg_qr", "_linalg_svd", "linalg_svd")}
SKIPS |= {(name, "jvp"): _phase for name in ("_linalg_eig", "_linalg_svd")}
SKIPS |= {("_linalg_eigh", "differences"): _phase}
