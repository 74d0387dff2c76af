"""`rushlight.linalg`: factorisations, solutions, norms and functions of batches of matrices.

Every function is an op of the table (`ops/lapack.py`); here they get the names that programs use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._table import namespace

if TYPE_CHECKING:
    from rushlight._linalg import *  # noqa: F403

_functions = namespace("linalg_")
globals().update(_functions)

LinAlgError = _C._LinAlgError

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = ["LinAlgError", *_functions]
