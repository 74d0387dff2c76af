"""Sobol sequences against PyTorch's: the same points, and the same scrambling by a seed."""

import pytest

torch = pytest.importorskip("torch")

import rushlight as rl  # noqa: E402


@pytest.mark.parametrize("dimension", [1, 2, 7, 1111, 21201])
@pytest.mark.parametrize("scramble", [False, True])
def test_points_are_pytorchs(dimension, scramble):
    ours, theirs = (
        m.quasirandom.SobolEngine(dimension, scramble, seed=5 if scramble else None)
        for m in (rl, torch)
    )
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    for step in (1, 5, 4):
        assert ours.draw(step).tolist() == theirs.draw(step).tolist()
        ours.fast_forward(3)
        theirs.fast_forward(3)
        assert ours.quasi.tolist() == theirs.quasi.tolist()
    assert repr(ours) == repr(theirs)


def test_scrambling_draws_from_the_default_generator():
    points = []
    for m in (rl, torch):
        m.manual_seed(4)
        points.append(m.quasirandom.SobolEngine(6, scramble=True).draw(9).tolist())
    assert points[0] == points[1]
