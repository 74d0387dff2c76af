"""Factorisations of matrices and what follows from them: solutions, inverses, determinants,
norms, functions.

All take batches (leading dimensions) of real or complex matrices. Contracts stand in
src/ops/lapack.cpp, derivatives in src/ops/lapack_backward.cpp, what is written over others in
src/ops/lapack_composites.cpp and lapack_functions.cpp; the kernels walk batches in
src/cpu/factorize.cpp and call LAPACK through src/cpu/lapack.h.
"""

from gen.table import composite, custom, op

_kernel = dict(kernel=custom(place="once"), variants="function out")
_inner = dict(kernel=custom(place="once"), variants="function")
_both = "function method out"
_free = "function out"

# ---- Cholesky ----

op("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
   "Tensor info)", **_kernel,
   nondiff=("info",), grad={"self": "cholesky_backward(grad_L, L, upper)"},
   doc="The Cholesky factor of Hermitian positive-definite matrices, and where it failed (0: "
       "nowhere).",
   overloads=["linalg_cholesky_ex.L(self, upper, check_errors, L!, info!)"],
   jvp="cholesky_tangent(self_t, L, upper)", batch="matrices",
   autocast={"cpu": "float32"})
composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", variants=_free,
          ref="numpy.linalg.cholesky",
          doc="The Cholesky factor. LinAlgError if a matrix is not positive-definite.",
          autocast={"cpu": "float32"})
composite("cholesky(Tensor self, bool upper=False) -> Tensor", variants=_both,
          doc="Alias of `linalg.cholesky`.",
          autocast={"cpu": "float32"})
composite("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", variants=_both,
          doc="X with A X = self, from the Cholesky factor of A.",
          autocast={"cpu": "float32"})
composite("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", variants=_both,
          doc="The inverse of A from its Cholesky factor.",
          autocast={"cpu": "float32"})

# ---- LU ----

op("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
   "Tensor pivots, Tensor info)",
   **_kernel, nondiff=("pivots", "info"), grad={"A": "lu_factor_backward(grad_LU, LU, pivots)"},
   doc="Both factors of P L U in one matrix, row exchanges (from 1), and the first zero on the "
       "diagonal (0: none).",
   jvp="twice: it differs between square, wide and tall matrices", batch="matrices")
composite("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
          variants=_free,
          doc="Both factors of P L U in one matrix, and row exchanges.")
composite("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, "
          "Tensor pivots, Tensor info)", variants="function", doc="Alias of `linalg.lu_factor_ex`.")
composite("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
          variants=_free,
          doc="P, L and U with P L U = A: a permutation, a lower and an upper triangular matrix.")
composite("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
          "adjoint=False) -> Tensor",
          variants=_free,
          doc="X with A X = B (left), or X A = B, from the LU factors of A; adjoint: of A^H.")
composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", variants=_both,
          doc="X with A X = self, from the LU factors of A.",
          autocast={"cpu": "float32"})
composite("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
          "unpack_pivots=True) "
          "-> (Tensor P, Tensor L, Tensor U)", variants=_free,
          doc="P, L and U of an LU factorisation.")
op("_lu_permutation(Tensor pivots, int n) -> Tensor", **_inner, grad="none",
   doc="Row exchanges one after the other (from 1) as a permutation of n rows.", own=True,
   batch="leading")

# ---- solving ----

op("_linalg_solve(Tensor A, Tensor B, bool left=True) -> (Tensor result, Tensor info)", **_inner,
   nondiff=("info",), grad={"A, B": "linalg_solve_backward(grad_result, A, result, left, mask)"},
   doc="`linalg.solve` with B a matrix.", own=True,
   jvp={"A": "-linalg_solve(A, matrix_product(A_t, result, left), left)",
        "B": "linalg_solve(A, B_t, left)"},
   batch="aligned")
composite("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
          "(Tensor result, Tensor info)",
          variants=_free, doc="`linalg.solve`, and an error code for each matrix (0: none).")
composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", variants=_free,
          doc="X with A X = B, or X A = B where left is False. B is a batch of matrices or of "
              "vectors.",
          autocast={"cpu": "float32"})
op("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
   "unitriangular=False) -> Tensor",
   **_kernel, grad={"self, B": "solve_triangular_backward(grad, self, result, upper, left, "
                               "unitriangular, mask)"},
   doc="X with self X = B (left), or X self = B; of self only the upper or lower triangle is read.",
   jvp={"self": "-triangle_tangent(self, self_t, result, upper, left, unitriangular)",
        "B": "linalg_solve_triangular(self, B_t, upper, left, unitriangular)"},
   batch="aligned")
composite("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
          "unitriangular=False) "
          "-> (Tensor solution, Tensor cloned_coefficient)", variants="function method out",
          sparse="triangular_solve",
          doc="X with A X = self for a triangular A, and a copy of A; of a sparse A it is empty.",
          overloads=["triangular_solve.X(self, A, upper, transpose, unitriangular, X!, M!)"],
          autocast={"cpu": "float32"})
op("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
   **_kernel, nondiff=("info",),
   grad={"A": "inv_backward(grad_inverse, inverse)"},
   doc="The inverses of matrices, and an error code for each (0: none).",
   overloads=["linalg_inv_ex.inverse(A, check_errors, inverse!, info!)"],
   jvp="-inverse.matmul(A_t).matmul(inverse)", batch="matrices",
   autocast={"cpu": "float32"})
composite("linalg_inv(Tensor A) -> Tensor", variants=_free, ref="numpy.linalg.inv",
          doc="The inverses of matrices. LinAlgError if one is singular.",
          autocast={"cpu": "float32"})
composite("inverse(Tensor self) -> Tensor", variants=_both, doc="Alias of `linalg.inv`.",
          autocast={"cpu": "float32"})
op("_linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
   "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", **_inner,
   nondiff=("residuals", "rank", "singular_values"),
   grad={"self, b": "lstsq_backward(grad_solution, self, b, mask)"},
   doc="`linalg.lstsq` with b a matrix.", own=True,
   jvp="twice: it differs between wide and tall matrices", batch="matrices")
composite("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
          "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
          variants="function out",
          doc="The X that minimises |self X - b|.",
          autocast={"cpu": "float32"})
op("_linalg_pinv(Tensor self, Tensor atol, Tensor rtol, bool hermitian=False) -> Tensor", **_inner,
   grad={"self": "pinv_backward(grad, result, self)"},
   doc="The pseudo-inverse, given tolerances for each matrix.", own=True,
   jvp="pinv_tangent(self_t, self, result)",
   batch="_linalg_pinv(expand_batch(self, batch), with_dims(atol, self.dim() - 3), "
         "with_dims(rtol, self.dim() - 3), hermitian)")
for _overload, _arguments in (
    (".atol_rtol_tensor", "*, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False"),
    (".atol_rtol_float", "*, float? atol=None, float? rtol=None, bool hermitian=False"),
    ("", "float rcond, bool hermitian=False"),
    (".rcond_tensor", "Tensor rcond, bool hermitian=False"),
):
    _out = (["linalg_pinv.out_rcond_tensor(self, rcond, hermitian, out!)"]
            if _overload == ".rcond_tensor" else [])
    composite(f"linalg_pinv{_overload}(Tensor self, {_arguments}) -> Tensor", variants=_free,
              overloads=_out,
              doc="The pseudo-inverse: singular values of at most max(atol, rtol * the largest) "
                  "count as 0.")
composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor", variants="function method",
          doc="Alias of `linalg.pinv`.",
          autocast={"cpu": "float32"})
composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", variants=_free,
          ref="numpy.linalg.tensorinv",
          doc="The inverse for `tensordot`: the first ind dimensions are rows, the others columns.",
          autocast={"cpu": "float32"})
composite("linalg_tensorsolve(Tensor self, Tensor other, Dim[]? dims=None) -> Tensor",
          variants=_free,
          ref="numpy.linalg.tensorsolve", doc="X with tensordot(self, X, X.ndim) = other.",
          autocast={"cpu": "float32"})

# ---- orthogonal factors ----

op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", **_kernel,
   grad={"A": "qr_backward(grad_Q or none, grad_R or none, Q, R, mode)"},
   doc="Q R = A with Q^H Q = 1 and R upper triangular; mode 'reduced', 'complete' or 'r' (Q is "
       "empty).",
   jvp="twice: it differs between modes, wide and tall matrices", batch="matrices",
   autocast={"cpu": "float32"})
composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", variants=_both,
          doc="Alias of `linalg.qr`.",
          overloads=["qr.Q(self, some, Q!, R!)"],
          autocast={"cpu": "float32"})
op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", kernel=custom(place="once"), variants=_both,
   grad={"self": "no_derivative(\"geqrf\")"},
   doc="R above the diagonal, the reflectors of Q below, and their factors.",
   overloads=["geqrf.a(self, a!, tau!)"],
   batch="matrices",
   autocast={"cpu": "float32"})
op("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", **_kernel,
   grad={"input, tau": "householder_backward(grad, input, tau)"},
   doc="The first columns of the product of reflectors 1 - tau v v^H, as `geqrf` gives them.",
   jvp="twice: a tangent of each reflection in turn", batch="matrices",
   autocast={"cpu": "float32"})
composite("orgqr(Tensor self, Tensor input2) -> Tensor", variants=_both,
          doc="Alias of `linalg.householder_product`.",
          autocast={"cpu": "float32"})
composite("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) "
          "-> Tensor", variants=_both,
          doc="Q input3, input3 Q, or with the adjoint of Q, for the Q of reflectors.",
          autocast={"cpu": "float32"})

# ---- singular values and eigenvalues ----

op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
   "-> (Tensor U, Tensor S, Tensor Vh)", kernel=custom(place="once"), variants=_free,
   grad={"A": "svd_backward(grad_U or none, grad_S or none, grad_Vh or none, U, S, Vh)"},
   doc="`linalg.svd`; U and Vh are empty if not wanted.",
   overloads=["_linalg_svd.U(A, full_matrices, compute_uv, driver, U!, S!, Vh!)"],
   jvp="twice: vectors of singular values are given up to a phase", batch="matrices")
composite("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor "
          "S, Tensor Vh)", variants=_free,
          doc="U, S and Vh with U diag(S) Vh = A; columns of U and rows of Vh are orthonormal, S "
              "is in descending order.",
          overloads=["linalg_svd.U(A, full_matrices, driver, U!, S!, Vh!)"],
          autocast={"cpu": "float32"})
composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", variants=_free,
          doc="Singular values, largest first.",
          autocast={"cpu": "float32"})
composite("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor "
          "V)", variants=_both,
          doc="`linalg.svd`, with V instead of its adjoint.",
          overloads=["svd.U(self, some, compute_uv, U!, S!, V!)"],
          autocast={"cpu": "float32"})
op("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor "
   "eigenvectors)", kernel=custom(place="once"), variants=_free,
   grad={"A": "eigh_backward(grad_eigenvalues or none, grad_eigenvectors or none, eigenvalues, "
              "eigenvectors)"},
   doc="`linalg.eigh`; vectors are empty if not wanted.",
   overloads=["_linalg_eigh.eigenvalues(A, UPLO, compute_v, eigenvalues!, eigenvectors!)"],
   jvp={"eigenvalues": "eigenvectors.adjoint().matmul(A_t).matmul(eigenvectors)"
                       ".diagonal(0, -2, -1)",
        "eigenvectors": "eigh_turn(A_t, eigenvalues, eigenvectors)"},
   batch="matrices")
composite("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
          variants=_free,
          doc="Real eigenvalues in ascending order and orthonormal eigenvectors of Hermitian "
              "matrices, of which one triangle is read.",
          overloads=["linalg_eigh.eigvals(self, UPLO, eigvals!, eigvecs!)"],
          autocast={"cpu": "float32"})
composite("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", variants=_free,
          ref="numpy.linalg.eigvalsh",
          doc="Eigenvalues of Hermitian matrices in ascending order.",
          autocast={"cpu": "float32"})
op("_linalg_eig(Tensor self, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
   **_inner,
   grad={"self": "eig_backward(grad_eigenvalues or none, grad_eigenvectors or none, eigenvalues, "
                 "eigenvectors, self.is_complex())"},
   doc="`linalg.eig`; vectors are empty if not wanted.", own=True,
   jvp="twice: eigenvectors are given up to a phase", batch="matrices")
composite("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", variants=_free,
          doc="Complex eigenvalues and eigenvectors of square matrices.",
          autocast={"cpu": "float32"})
composite("linalg_eigvals(Tensor self) -> Tensor", variants=_free,
          doc="Complex eigenvalues of square matrices.",
          autocast={"cpu": "float32"})
op("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
   "-> (Tensor LD, Tensor pivots, Tensor info)", **_kernel,
   grad={"self": "no_derivative(\"linalg_ldl_factor_ex\")"},
   nondiff=("pivots", "info"),
   doc="The factors L D L^T (or L D L^H) of symmetric (Hermitian) matrices in LAPACK's form.",
   batch="matrices")
composite("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
          variants=_free,
          doc="`ldl_factor_ex`; LinAlgError where it failed.")
op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
   **_kernel,
   grad={"LD": "no_derivative(\"linalg_ldl_solve\")",
         "B": "linalg_ldl_solve(LD.conj(), pivots, grad, hermitian)"},
   doc="X with A X = B from the factors of `ldl_factor`.",
   jvp={"B": "linalg_ldl_solve(LD, pivots, B_t, hermitian)"}, batch="matrices")

# ---- approximations of low rank ----

composite("svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, "
          "Tensor)", variants="function", own=True,
          python="listed",
          doc="U, S, V of the best approximation of rank q to A (or A - M), about: A = U diag(S) "
              "V^H, from q random directions that A is applied to niter times.")
composite("pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, "
          "Tensor)", variants="function", own=True,
          python="listed",
          doc="Principal components: `svd_lowrank` of the rows of A, their mean taken away if "
              "`center`.")

# ---- numbers about a matrix ----

op("linalg_det(Tensor A) -> Tensor", **_kernel, grad={"A": "det_backward(grad, result, A)"},
   ref="numpy.linalg.det",
   doc="Determinants.",
   jvp="(det_backward(ones_like(result), result, A).conj() * A_t).sum({-2, -1})",
   batch="matrices")
composite("det(Tensor self) -> Tensor", doc="Alias of `linalg.det`.")
op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", **_kernel,
   grad={"A": "slogdet_backward(grad_sign or none, grad_logabsdet or none, A, sign)"},
   doc="The sign (complex: of absolute value 1) of determinants and the logarithm of their size.",
   jvp={"sign": "sign * i_times_imag_of((log_det_slopes(A, sign).conj() * A_t).sum({-2, -1}))",
        "logabsdet": "(log_det_slopes(A, sign).conj() * A_t).sum({-2, -1})"},
   batch="matrices")
composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", variants=_both,
          doc="Alias of `linalg.slogdet`.")
composite("logdet(Tensor self) -> Tensor", doc="The logarithm of determinants: NaN where negative.")
for _overload, _matrices, _arguments in (
    (".atol_rtol_tensor", "input", "*, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False"),
    (".atol_rtol_float", "self", "*, float? atol=None, float? rtol=None, bool hermitian=False"),
    ("", "self", "float tol, bool hermitian=False"),
    (".tol_tensor", "input", "Tensor tol, bool hermitian=False"),
):
    _out = (["linalg_matrix_rank.out_tol_tensor(input, tol, hermitian, out!)"]
            if _overload == ".tol_tensor" else [])
    composite(f"linalg_matrix_rank{_overload}(Tensor {_matrices}, {_arguments}) -> Tensor",
              variants=_free, grad="none",
              overloads=_out,
              doc="How many singular values are above max(atol, rtol * the largest).",
              autocast={"cpu": "float32"})
composite("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", variants=_free,
          doc="The condition number |A| |A^-1| in the p-norm.",
          autocast={"cpu": "float32"})
composite("linalg_cond.p_str(Tensor self, str p) -> Tensor", variants=_free,
          doc="The condition number in the 'fro' or 'nuc' norm.",
          autocast={"cpu": "float32"})
composite("linalg_matrix_norm(Tensor self, Scalar ord, Dim[] dim=[-2,-1], bool keepdim=False, *, "
          "ScalarType? dtype=None) "
          "-> Tensor", variants=_free, doc="Norms of matrices: 1, 2, inf and their negatives.",
          overloads=["linalg_matrix_norm(self, ord, dim, keepdim, dtype)",
                     "linalg_matrix_norm.out(self, ord, dim, keepdim, dtype, out!)"],
          autocast={"accelerator": "float32"})
composite("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', Dim[] dim=[-2,-1], bool "
          "keepdim=False, *, "
          "ScalarType? dtype=None) -> Tensor", variants=_free,
          doc="The Frobenius norm ('fro') or the sum of singular values ('nuc').",
          overloads=["linalg_matrix_norm.str_ord(self, ord, dim, keepdim, dtype)",
                     "linalg_matrix_norm.str_ord_out(self, ord, dim, keepdim, dtype, out!)"],
          autocast={"accelerator": "float32"})
composite("linalg_norm(Tensor self, Scalar? ord=None, Dim[1]? dim=None, bool keepdim=False, *, "
          "ScalarType? dtype=None) "
          "-> Tensor", variants=_free, ref="numpy.linalg.norm",
          doc="Norms of vectors (one dim) or matrices (two).")
composite("linalg_norm.ord_str(Tensor self, str ord, Dim[1]? dim=None, bool keepdim=False, *, "
          "ScalarType? dtype=None) "
          "-> Tensor", variants=_free, doc="The norm 'fro' or 'nuc' of matrices.")
composite("frobenius_norm(Tensor self, Dim[1] dim, bool keepdim=False) -> Tensor", variants=_free,
          doc="The root of the sum of squares.",
          overloads=["frobenius_norm.dim(self, dim, keepdim)"])
composite("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", variants=_free,
          doc="The sum of singular values.")
composite("nuclear_norm.dim(Tensor self, Dim[2] dim, bool keepdim=False) -> Tensor", variants=_free,
          doc="The sum of singular values.")

# ---- powers, functions, products ----

composite("linalg_matrix_power(Tensor self, int n) -> Tensor", variants=_free,
          doc="The product of n factors A, or of -n inverses of A if n is negative.")
composite("matrix_power(Tensor self, int n) -> Tensor", variants=_both,
          doc="Alias of `linalg.matrix_power`.")
composite("linalg_matrix_exp(Tensor self) -> Tensor", variants="function",
          doc="The sum of A^k / k!.", out="cpp",
          autocast="float32")
composite("matrix_exp(Tensor self) -> Tensor", variants="function method",
          doc="Alias of `linalg.matrix_exp`.")
composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", variants=_free,
          doc="The product of matrices in the cheapest order; the ends may be vectors.",
          autocast="lower")
composite("linalg_matmul(Tensor self, Tensor other) -> Tensor", variants=_free, ref="numpy.matmul",
          doc="Alias of `matmul`.")
composite("linalg_vecdot(Tensor x, Tensor y, *, Dim dim=-1) -> Tensor", variants=_free,
          doc="The sum of conj(x) y along a dimension.",
          autocast="lower")
composite("linalg_cross(Tensor self, Tensor other, *, Dim dim=-1) -> Tensor", variants=_free,
          ref="numpy.cross",
          doc="The cross product along a dimension of size 3.",
          autocast={"accelerator": "promote"})
composite("cross(Tensor self, Tensor other, Dim? dim=None) -> Tensor", variants=_both,
          doc="The cross product along a dimension of size 3, by default the first such.",
          autocast={"accelerator": "promote"})
composite("linalg_vander(Tensor x, *, int? N=None) -> Tensor", variants="function",
          doc="The Vandermonde matrix: a row 1, x, x^2, … for each x.")
composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", variants="function",
          ref="numpy.vander", doc="The Vandermonde matrix with the highest power first.")
composite("kron(Tensor self, Tensor other) -> Tensor", variants=_both, ref="numpy.kron",
          doc="Every element of self times other, in blocks.")
composite("trace(Tensor self) -> Tensor", variants="function method", out="cpp",
          ref="numpy.trace",
          doc="The sum of a matrix's diagonal.",
          autocast={"cpu": "float32"})
composite("linalg_diagonal(Tensor(a) A, *, int offset=0, Dim dim1=-2, Dim dim2=-1) -> Tensor(a)",
          variants="function",
          doc="`diagonal` of the last two dimensions.")
