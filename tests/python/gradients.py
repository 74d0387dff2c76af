"""What the tests of gradients share."""

import pytest

import rushlight as torch


def assert_close(a, b):
    assert torch.allclose(a, b, rtol=1e-6, atol=1e-9)


def leaf(*values):
    """A float64 vector that requires a gradient."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def raises(message, kind=RuntimeError):
    return pytest.raises(kind, match=message)
