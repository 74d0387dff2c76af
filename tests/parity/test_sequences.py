"""Sequences of numbers have PyTorch's bits."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("start", "end", "steps"),
    [
        (0, 1, 7),
        (0.1, 0.7, 30),
        (-0.9, 7.5, 31),
        (1e-3, 3.3e4, 100),
        (5, -2, 11),
        (0, 0.9, 10),
        (2, 3, 1),
        (2, 3, 2),
    ],
)
def test_linspace(start, end, steps, dtype):
    ours = rushlight.linspace(start, end, steps, dtype=getattr(rushlight, dtype))
    theirs = torch.linspace(start, end, steps, dtype=getattr(torch, dtype))
    assert ours.tolist() == theirs.tolist()
