"""Tools for tests: `assert_close` compares tensors, and `make_tensor` makes them."""

import unittest.mock  # noqa: F401  tests name it without importing it, as they may beside PyTorch

from rushlight.testing._comparison import assert_allclose, assert_close
from rushlight.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
