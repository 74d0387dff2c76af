"""Ops of one complex tensor where a part is zero, of either sign, or infinite: PyTorch's numbers."""

import itertools
import math

import pytest

import rushlight as rl
from rushlight._ops import schemas_of

torch = pytest.importorskip("torch")

PARTS = (0.0, -0.0, 1.0, -2.0, math.inf, -math.inf)
VALUES = [complex(*parts) for parts in itertools.product(PARTS, PARTS)]
# PyTorch divides by an infinite absolute value as by a complex number: NaN for both parts.
BETTER = {"sgn": {complex(-math.inf, 1), complex(-math.inf, -2)}}


def unary():
    """The names of ops that take a tensor and give one, and take complex numbers in both."""
    for qualified in sorted(rl._C._op_names()):
        space, _, name = qualified.partition("::")
        if space != "aten" or name.startswith("_") or not hasattr(torch, name):
            continue
        schemas = schemas_of(qualified)
        if not any(
            [a.type for a in s.arguments] == ["Tensor"]
            and [r.type for r in s.returns] == ["Tensor"]
            for s in schemas
        ):
            continue
        try:
            shown = getattr(torch, name)(torch.ones(2, dtype=torch.complex128))
            getattr(rl, name)(rl.ones(2, dtype=rl.complex128))
        except (RuntimeError, TypeError, AttributeError, IndexError, NotImplementedError):
            continue
        if shown.shape == (2,) and shown.dtype in (torch.complex128, torch.float64):
            yield name


def parts_of(module, t):
    rows = module.view_as_real(t.resolve_conj()) if t.is_complex() else t.unsqueeze(-1)
    return rows.tolist()


def same(a, b):
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= 1e-12 * max(1.0, abs(b))


NAMES = list(unary())


@pytest.mark.parametrize("name", NAMES)
def test_of_zeros_and_infinities(name):
    found = parts_of(rl, getattr(rl, name)(rl.tensor(VALUES, dtype=rl.complex128)))
    wanted = parts_of(torch, getattr(torch, name)(torch.tensor(VALUES, dtype=torch.complex128)))
    for value, got, want in zip(VALUES, found, wanted, strict=True):
        if value not in BETTER.get(name, ()):
            assert all(map(same, got, want)), (value, got, want)


def test_there_are_such_ops():
    assert {"log10", "exp", "tanh", "rsqrt", "acosh", "sgn"} <= set(NAMES)
