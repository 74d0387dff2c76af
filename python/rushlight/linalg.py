"""`rushlight.linalg`: factorisations, solutions, norms and functions of batches of matrices.

Every function is an op of the table (`ops/lapack.py`); here they get the names that programs use.
"""

# ruff: noqa: SIM905

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from rushlight._linalg import *  # noqa: F403

_NAMES = (
    "cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product "
    "inv inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve "
    "matmul matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve "
    "solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm"
).split()
globals().update({name: getattr(_C.ops, f"linalg_{name}") for name in _NAMES})

LinAlgError = _C._LinAlgError

__all__ = ["LinAlgError", *_NAMES]
